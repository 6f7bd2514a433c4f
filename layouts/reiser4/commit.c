/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The contract's parts of a commit. Interface: layouts/reiser4/atom.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/flush.h"
#include "layouts/reiser4/layout.h"

/* --- the two sets ------------------------------------------------------------------------------
 */

static int writes_append(struct reiser4_writes *writes, const struct reiser4_write *write) {
    if (writes->count == writes->room) {
        size_t room = writes->room ? writes->room * 2 : 64;
        struct reiser4_write *larger = reallocarray(writes->write, room, sizeof(*larger));
        if (!larger)
            return -ENOMEM;
        writes->write = larger;
        writes->room = room;
    }
    writes->write[writes->count++] = *write;
    return 0;
}

static void let_go(struct buffer *buffer) {
    if (!buffer)
        return;
    buffer->pinned = false;
    buffer_put(buffer);
}

/* Takes over the reference to the buffer, which is pinned, also when it fails. */
static int writes_add(struct reiser4_writes *writes, uint64_t block, struct buffer *buffer) {
    const struct reiser4_write write = {
        .block = block, .bytes = buffer_data(buffer), .purpose = buffer->purpose, .buffer = buffer};
    int error = writes_append(writes, &write);

    if (error)
        let_go(buffer);
    return error;
}

static int add_kept(void *context, uint64_t block, uint8_t *data) {
    const struct reiser4_write write = {.block = block, .bytes = data, .purpose = PURPOSE_DATA};

    return writes_append(context, &write);
}

static void writes_free(struct reiser4_writes *writes) {
    for (size_t i = 0; i < writes->count; i++)
        let_go(writes->write[i].buffer);
    free(writes->write);
    *writes = (struct reiser4_writes){0};
}

static int by_block(const void *a, const void *b) {
    const struct reiser4_write *x = a, *y = b;

    return x->block < y->block ? -1 : x->block > y->block;
}

int reiser4_commit_overwrite(struct reiser4_commit *commit, uint64_t block, struct buffer *buffer) {
    buffer->pinned = true;
    return writes_add(&commit->overwrite, block, buffer);
}

static void commit_free(struct reiser4_commit *commit) {
    writes_free(&commit->relocate);
    writes_free(&commit->overwrite);
    reiser4_kept_clear(&commit->kept);
    free(commit->log);
    free(commit->log_block);
    *commit = (struct reiser4_commit){0};
}

/* --- data and begin ----------------------------------------------------------------------------
 */

struct inode *reiser4_commit_data(struct volume *volume, struct inode *inode,
                                  enum commit_cause cause) {
    struct reiser4_atom *atom = &reiser4_of(volume)->atom;
    struct reiser4_inode *first = RB_MIN(reiser4_pending_tree, &atom->pending);

    if (!first)
        return NULL;
    RB_REMOVE(reiser4_pending_tree, &atom->pending, first);
    first->pending = false;
    return reiser4_inode_core(first);
}

static int settle(struct reiser4 *r4) {
    struct reiser4_commit *commit = &r4->atom.commit;
    struct reiser4_jnode *jnode;
    int error = 0;

    while (!error && (jnode = TAILQ_FIRST(&r4->jnodes.list))) {
        bool fresh = jnode->fresh;
        uint64_t block = jnode->block;
        struct buffer *buffer;
        error = reiser4_jnode_settle(&r4->jnodes, jnode, &buffer);
        if (!error)
            error = writes_add(fresh ? &commit->relocate : &commit->overwrite, block, buffer);
    }
    if (error)
        return error;
    reiser4_kept_move(&commit->kept, &r4->atom.kept);
    return reiser4_kept_each(&commit->kept, add_kept, &commit->overwrite);
}

static int overwrite_super(struct reiser4 *r4, uint64_t free_blocks) {
    struct reiser4_commit *commit = &r4->atom.commit;
    struct buffer *buffer;
    int error = buffer_get_zeroed(r4->buffers, REISER4_SUPER, PURPOSE_SUPER, &buffer);

    if (error)
        return error;
    commit->counters = r4->counters;
    commit->counters.free_blocks = free_blocks;
    r4->super.root = r4->tree.root;
    r4->super.height = r4->tree.height;
    r4->super.counters = commit->counters;
    reiser4_super_encode(&r4->super, buffer_data(buffer));
    return reiser4_commit_overwrite(commit, REISER4_SUPER, buffer);
}

static int freeze(struct reiser4 *r4) {
    struct reiser4_commit *commit = &r4->atom.commit;
    uint64_t free_blocks = 0;
    int error = reiser4_flush(r4);

    if (!error)
        error = settle(r4);
    if (!error)
        error = reiser4_space_freeze(r4, commit, &free_blocks);
    if (!error)
        error = overwrite_super(r4, free_blocks);
    if (!error && commit->overwrite.count > 1)
        qsort(commit->overwrite.write, commit->overwrite.count, sizeof(*commit->overwrite.write),
              by_block);
    return error ? error : reiser4_journal_prepare(r4, commit);
}

int reiser4_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                         bool *needed) {
    struct reiser4 *r4 = reiser4_of(volume);

    *needed = false;
    if (r4->failed)
        return -EROFS;
    if (reiser4_atom_is_empty(r4))
        return 0;
    int error = freeze(r4);
    if (error) {
        commit_free(&r4->atom.commit);
        return reiser4_fail(r4, error);
    }
    r4->atom.changed = false;
    r4->atom.commit.busy = *needed = true;
    volume->commit_frees = true;
    return 0;
}

/* --- write and end -----------------------------------------------------------------------------
 */

int reiser4_commit_write(struct volume *volume) {
    struct reiser4 *r4 = reiser4_of(volume);

    return reiser4_journal_commit(r4, &r4->atom.commit);
}

int reiser4_commit_end(struct volume *volume, int error) {
    struct reiser4 *r4 = reiser4_of(volume);
    struct reiser4_commit *commit = &r4->atom.commit;

    if (!error) {
        r4->journal.last_committed = r4->journal.last_flushed = commit->head;
        r4->journal.counters = commit->counters;
    } else {
        log_error(volume->log, "%s: reiser4: a transaction could not be written: %s", volume->name,
                  strerror(-error));
    }
    commit_free(commit);
    if (error)
        return reiser4_fail(r4, error);
    reiser4_space_committed(r4);
    volume->commit_frees = !reiser4_atom_is_empty(r4);
    return 0;
}

int reiser4_commit_now(struct reiser4 *r4) {
    bool needed;

    if (r4->atom.commit.busy)
        return -EBUSY;
    volume_wait_writes(r4->volume); /* of data that the transaction rests on */
    int error = reiser4_commit_begin(r4->volume, NULL, COMMIT_FSYNC, &needed);
    if (error || !needed)
        return error;
    return reiser4_commit_end(r4->volume, reiser4_commit_write(r4->volume));
}

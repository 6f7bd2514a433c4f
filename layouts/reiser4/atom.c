/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. What is in the atom, and when it must be committed. Interface:
 * layouts/reiser4/atom.h.
 */
#include "layouts/reiser4/atom.h"

#include <stdlib.h>

#include "layouts/reiser4/layout.h"

static int release(void *context, uint64_t block) {
    return reiser4_space_release(context, block, 1);
}

static void give_back(void *context, uint64_t block) {
    reiser4_space_give_back(context, block, 1);
}

void reiser4_atom_init(struct reiser4 *r4) {
    RB_INIT(&r4->atom.pending);
    RB_INIT(&r4->atom.kept.tree);
    r4->jnodes.release = release;
    r4->jnodes.give_back = give_back;
    r4->jnodes.context = r4;
}

void reiser4_atom_destroy(struct reiser4 *r4) {
    struct reiser4_jnode *jnode;

    while ((jnode = TAILQ_FIRST(&r4->jnodes.list)))
        reiser4_jnode_forget(&r4->jnodes, jnode);
    reiser4_kept_clear(&r4->atom.kept);
}

void reiser4_atom_mark(struct reiser4 *r4) {
    r4->atom.changed = true;
}

bool reiser4_atom_is_empty(const struct reiser4 *r4) {
    return !r4->atom.changed && r4->jnodes.nodes == 0 && r4->atom.kept.count == 0 &&
           r4->space.released.blocks == 0;
}

/* Blocks from which an atom is committed, so that what is changed fits into memory beside the cache
 * of what is not. */
static uint64_t most(const struct reiser4 *r4) {
    uint64_t half = r4->volume->pool.budget_bytes / 2 / REISER4_BLOCK_SIZE;

    return r4->options.max_size > 0 ? r4->options.max_size : half;
}

void reiser4_atom_look(struct reiser4 *r4) {
    uint64_t size = r4->jnodes.nodes + r4->atom.pending_blocks + r4->atom.kept.count;

    r4->volume->commit_frees = !reiser4_atom_is_empty(r4);
    if (size >= most(r4))
        r4->volume->commit.wanted = true;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/cpfile.h.
 *
 * The file is an array of slots of checkpoint_size bytes; the first ones are the header. Blocks but
 * the first exist only where there are valid checkpoints, and count them in their first slot.
 */
#include "layouts/nilfs/cpfile.h"

#include <errno.h>
#include <string.h>

#include "layouts/nilfs/bmap.h"

struct place { /* of a slot */
    uint64_t offset;
    uint32_t byte;
};

static uint32_t slots_per_block(const struct nilfs_geometry *g) {
    return g->block_size / g->checkpoint_size;
}

static uint32_t header_slots(const struct nilfs_geometry *g) {
    return ((uint32_t)sizeof(struct nilfs_disk_cpfile_header) + g->checkpoint_size - 1) /
           g->checkpoint_size;
}

/* Checkpoints are counted from 1, slots from 0. */
static struct place place_of(const struct nilfs_geometry *g, uint64_t cno) {
    uint64_t slot = cno - 1 + header_slots(g);

    return (struct place){.offset = slot / slots_per_block(g),
                          .byte = (uint32_t)(slot % slots_per_block(g)) * g->checkpoint_size};
}

/* The first checkpoint of the block. */
static uint64_t first_of(const struct nilfs_geometry *g, uint64_t offset) {
    return offset == 0 ? 1 : offset * slots_per_block(g) + 1 - header_slots(g);
}

static bool is_valid(const struct nilfs_disk_checkpoint *slot) {
    return !(le32_load(slot->cp_flags) & NILFS_CP_INVALID);
}

static int no_header(const struct nilfs *nilfs) {
    return nilfs_corrupt(nilfs, "cpfile: there is no header (block 0)");
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Decodes a slot. -ENOENT: it is no valid checkpoint. */
static int decode(const struct nilfs *nilfs, const uint8_t *bytes, uint64_t cno,
                  struct nilfs_checkpoint *checkpoint) {
    const struct nilfs_disk_checkpoint *slot = (const struct nilfs_disk_checkpoint *)bytes;

    if (!is_valid(slot))
        return -ENOENT;
    if (le64_load(slot->cp_cno) != cno)
        return nilfs_corrupt(nilfs, "cpfile: the slot of checkpoint %llu says it is %llu",
                             (unsigned long long)cno, (unsigned long long)le64_load(slot->cp_cno));
    *checkpoint = (struct nilfs_checkpoint){
        .cno = cno,
        .flags = le32_load(slot->cp_flags),
        .created = (int64_t)le64_load(slot->cp_create),
        .increment = le64_load(slot->cp_nblk_inc),
        .inodes = le64_load(slot->cp_inodes_count),
        .blocks = le64_load(slot->cp_blocks_count),
        .snapshot_next = le64_load(slot->cp_snapshots.ssl_next),
        .snapshot_previous = le64_load(slot->cp_snapshots.ssl_prev),
    };
    memcpy(&checkpoint->ifile, bytes + sizeof(*slot), sizeof(checkpoint->ifile));
    return 0;
}

int nilfs_cpfile_read(struct nilfs *nilfs, uint64_t cno, struct nilfs_checkpoint *checkpoint) {
    struct place at = place_of(&nilfs->geometry, cno);
    struct nilfs_view view;

    if (cno == 0 || cno == NILFS_CNO_MAX)
        return -ENOENT;
    int error = nilfs_file_read(nilfs->cpfile, at.offset, PURPOSE_SUPER, &view);
    if (error)
        return error;
    error = decode(nilfs, view.data + at.byte, cno, checkpoint);
    nilfs_view_put(&view);
    return error;
}

static int read_header(struct nilfs *nilfs, struct nilfs_disk_cpfile_header *header) {
    struct nilfs_view view;
    int error = nilfs_file_read(nilfs->cpfile, 0, PURPOSE_SUPER, &view);

    if (error)
        return error == -ENOENT ? no_header(nilfs) : error;
    memcpy(header, view.data, sizeof(*header));
    nilfs_view_put(&view);
    return 0;
}

int nilfs_cpfile_block(struct nilfs *nilfs, uint64_t cno, uint32_t *counted, uint64_t *end) {
    uint64_t offset = place_of(&nilfs->geometry, cno).offset;
    struct nilfs_view view;
    int error = nilfs_file_read(nilfs->cpfile, offset, PURPOSE_SUPER, &view);

    if (error)
        return error;
    const struct nilfs_disk_checkpoint *first = (const struct nilfs_disk_checkpoint *)view.data;
    *counted = offset == 0 ? NILFS_CPFILE_UNCOUNTED : le32_load(first->cp_checkpoints_count);
    *end = first_of(&nilfs->geometry, offset + 1);
    nilfs_view_put(&view);
    return 0;
}

int nilfs_cpfile_counts(struct nilfs *nilfs, uint64_t *checkpoints, uint64_t *snapshots) {
    struct nilfs_disk_cpfile_header header;
    int error = read_header(nilfs, &header);

    if (error)
        return error;
    *checkpoints = le64_load(header.ch_ncheckpoints);
    *snapshots = le64_load(header.ch_nsnapshots);
    return 0;
}

/* The lowest snapshot >= from: along the list, from the one before `from` if that is a snapshot
 * (who asks for one after the other gets each at once), else from the oldest. */
static int next_snapshot(struct nilfs *nilfs, uint64_t from, struct nilfs_checkpoint *checkpoint) {
    struct nilfs_disk_cpfile_header header;
    uint64_t cno, before = 0;
    int error = from > 1 ? nilfs_cpfile_read(nilfs, from - 1, checkpoint) : -ENOENT;

    if (error && error != -ENOENT)
        return error;
    if (!error && checkpoint->flags & NILFS_CP_SNAPSHOT) {
        before = from - 1;
        cno = checkpoint->snapshot_next;
    } else {
        error = read_header(nilfs, &header);
        if (error)
            return error;
        cno = le64_load(header.ch_snapshots.ssl_next);
    }
    while (cno != 0) {
        error = cno <= before ? -ENOENT : nilfs_cpfile_read(nilfs, cno, checkpoint);
        if (error == -ENOENT || (!error && !(checkpoint->flags & NILFS_CP_SNAPSHOT)))
            return nilfs_corrupt(nilfs, "cpfile: the list of snapshots has %llu after %llu",
                                 (unsigned long long)cno, (unsigned long long)before);
        if (error || cno >= from)
            return error;
        before = cno;
        cno = checkpoint->snapshot_next;
    }
    return -ENOENT;
}

/* The lowest valid checkpoint >= from of the block. */
static int next_of_block(struct nilfs *nilfs, uint64_t offset, uint64_t from,
                         struct nilfs_checkpoint *checkpoint) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t first = first_of(g, offset), end = first_of(g, offset + 1);
    struct nilfs_view view;
    int error = nilfs_file_read(nilfs->cpfile, offset, PURPOSE_SUPER, &view);

    if (error)
        return error;
    error = -ENOENT;
    for (uint64_t cno = from > first ? from : first; cno < end && error == -ENOENT; cno++)
        error = decode(nilfs, view.data + place_of(g, cno).byte, cno, checkpoint);
    nilfs_view_put(&view);
    return error;
}

int nilfs_cpfile_next(struct nilfs *nilfs, uint64_t from, bool snapshots,
                      struct nilfs_checkpoint *checkpoint) {
    if (from == 0)
        from = 1;
    if (snapshots)
        return next_snapshot(nilfs, from, checkpoint);
    for (uint64_t offset = place_of(&nilfs->geometry, from).offset;; offset++) {
        int error = nilfs_bmap_seek(nilfs->cpfile, offset, &offset);
        if (error)
            return error;
        error = next_of_block(nilfs, offset, from, checkpoint);
        if (error != -ENOENT)
            return error;
    }
}

/* --- changing --------------------------------------------------------------------------------- */

static int change_header(struct nilfs *nilfs, struct nilfs_disk_cpfile_header **header) {
    uint8_t *data;
    int error = nilfs_file_change(nilfs->cpfile, 0, &data);

    if (error)
        return error == -ENOENT ? no_header(nilfs) : error;
    *header = (struct nilfs_disk_cpfile_header *)data;
    return 0;
}

/* The block's count of valid checkpoints; NULL: the first one has none. */
static le32 *block_count(uint64_t offset, uint8_t *data) {
    return offset == 0 ? NULL : &((struct nilfs_disk_checkpoint *)data)->cp_checkpoints_count;
}

int nilfs_cpfile_create(struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    struct place at = place_of(g, nilfs->cno);
    struct nilfs_disk_cpfile_header *header = NULL;
    uint8_t *data;
    bool made;
    int error = change_header(nilfs, &header);

    if (!error)
        error = nilfs_file_make(nilfs->cpfile, at.offset, &data, &made);
    if (error)
        return error;
    for (uint32_t i = 0; made && i < slots_per_block(g); i++) {
        uint8_t *slot = data + (size_t)i * g->checkpoint_size;
        le32_store(&((struct nilfs_disk_checkpoint *)slot)->cp_flags, NILFS_CP_INVALID);
    }
    struct nilfs_disk_checkpoint *slot = (struct nilfs_disk_checkpoint *)(data + at.byte);
    if (is_valid(slot))
        return 0;
    le32 *count = block_count(at.offset, data);
    uint32_t kept = le32_load(slot->cp_checkpoints_count);
    memset(slot, 0, g->checkpoint_size);
    le32_store(&slot->cp_checkpoints_count, kept);
    le64_store(&slot->cp_cno, nilfs->cno);
    if (count)
        le32_store(count, le32_load(*count) + 1);
    le64_store(&header->ch_ncheckpoints, le64_load(header->ch_ncheckpoints) + 1);
    return 0;
}

/* The slot of a valid checkpoint, for changing. */
static int change_slot(struct nilfs *nilfs, uint64_t cno, struct nilfs_disk_checkpoint **slot) {
    struct place at = place_of(&nilfs->geometry, cno);
    struct nilfs_checkpoint checkpoint;
    uint8_t *data;
    int error = nilfs_cpfile_read(nilfs, cno, &checkpoint);

    if (!error)
        error = nilfs_file_change(nilfs->cpfile, at.offset, &data);
    if (error)
        return error;
    *slot = (struct nilfs_disk_checkpoint *)(data + at.byte);
    return 0;
}

int nilfs_cpfile_fill(struct nilfs *nilfs, const struct nilfs_checkpoint *checkpoint) {
    struct nilfs_disk_checkpoint *slot;
    int error = change_slot(nilfs, checkpoint->cno, &slot);

    if (error)
        return error;
    uint32_t keep = le32_load(slot->cp_flags) & NILFS_CP_SNAPSHOT;
    le32_store(&slot->cp_flags, (checkpoint->flags & ~(uint32_t)NILFS_CP_SNAPSHOT) | keep);
    le64_store(&slot->cp_create, (uint64_t)checkpoint->created);
    le64_store(&slot->cp_nblk_inc, checkpoint->increment);
    le64_store(&slot->cp_inodes_count, checkpoint->inodes);
    le64_store(&slot->cp_blocks_count, checkpoint->blocks);
    memcpy((uint8_t *)slot + sizeof(*slot), &checkpoint->ifile, sizeof(checkpoint->ifile));
    return 0;
}

/* Deletes the checkpoints of [from, to) that are in the block, which is there; *left: valid ones
 * remain. */
static int delete_in_block(struct nilfs *nilfs, uint64_t offset, uint64_t from, uint64_t to,
                           uint32_t *deleted, bool *left) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t first = first_of(g, offset), end = first_of(g, offset + 1);
    uint8_t *data;

    *deleted = 0;
    *left = false;
    int error = nilfs_file_change(nilfs->cpfile, offset, &data);
    for (uint64_t cno = first; cno < end && !error; cno++) {
        struct nilfs_disk_checkpoint *slot =
            (struct nilfs_disk_checkpoint *)(data + place_of(g, cno).byte);
        if (!is_valid(slot))
            continue;
        if (cno < from || cno >= to) {
            *left = true;
            continue;
        }
        le32_store(&slot->cp_flags, le32_load(slot->cp_flags) | NILFS_CP_INVALID);
        ++*deleted;
    }
    le32 *count = error ? NULL : block_count(offset, data);
    if (count)
        le32_store(count, le32_load(*count) - *deleted);
    return error;
}

/* A block with some of [from, to) in it. */
static int delete_block(struct nilfs *nilfs, uint64_t offset, uint64_t from, uint64_t to) {
    struct nilfs_disk_cpfile_header *header = NULL;
    uint32_t deleted;
    bool left;
    int error = delete_in_block(nilfs, offset, from, to, &deleted, &left);

    if (!error && !left && offset != 0)
        error = nilfs_file_free(nilfs->cpfile, offset, offset + 1);
    if (!error)
        error = change_header(nilfs, &header);
    if (!error)
        le64_store(&header->ch_ncheckpoints, le64_load(header->ch_ncheckpoints) - deleted);
    return error;
}

int nilfs_cpfile_delete(struct nilfs *nilfs, uint64_t from, uint64_t to) {
    struct nilfs_checkpoint checkpoint;
    int error = from < to ? nilfs_cpfile_next(nilfs, from, true, &checkpoint) : -ENOENT;

    if (error && error != -ENOENT)
        return error;
    if (!error && checkpoint.cno < to)
        return -EBUSY;
    for (uint64_t cno = from; cno < to;) {
        error = nilfs_cpfile_next(nilfs, cno, false, &checkpoint);
        if (error == -ENOENT || (!error && checkpoint.cno >= to))
            return 0;
        uint64_t offset = place_of(&nilfs->geometry, checkpoint.cno).offset;
        if (!error)
            error = delete_block(nilfs, offset, cno, to);
        if (error)
            return error;
        cno = first_of(&nilfs->geometry, offset + 1);
    }
    return 0;
}

bool nilfs_cpfile_extent(struct nilfs *nilfs, uint64_t from, uint64_t to, uint64_t *first,
                         uint64_t *last) {
    struct nilfs_checkpoint found;

    if (from >= to || nilfs_cpfile_next(nilfs, from, false, &found) || found.cno >= to)
        return false;
    *first = place_of(&nilfs->geometry, found.cno).offset;
    *last = place_of(&nilfs->geometry, to - 1).offset;
    return true;
}

/* --- snapshots -------------------------------------------------------------------------------- */

/* The links of a snapshot; of the header, which is both ends, with 0. */
static int change_links(struct nilfs *nilfs, uint64_t cno,
                        struct nilfs_disk_snapshot_link **links) {
    struct nilfs_disk_cpfile_header *header = NULL;
    struct nilfs_disk_checkpoint *slot = NULL;
    int error = cno == 0 ? change_header(nilfs, &header) : change_slot(nilfs, cno, &slot);

    if (error == -ENOENT)
        return nilfs_corrupt(nilfs, "cpfile: the list of snapshots has %llu, which is none",
                             (unsigned long long)cno);
    if (!error)
        *links = cno == 0 ? &header->ch_snapshots : &slot->cp_snapshots;
    return error;
}

/* The newest snapshot below `cno`; 0: there is none. New snapshots are mostly of young
 * checkpoints. */
static int snapshot_below(struct nilfs *nilfs, uint64_t cno, uint64_t *below) {
    struct nilfs_disk_cpfile_header header;
    struct nilfs_checkpoint checkpoint;
    int error = read_header(nilfs, &header);
    uint64_t at = error ? 0 : le64_load(header.ch_snapshots.ssl_prev), above = UINT64_MAX;

    while (!error && at > cno) {
        error = at < above ? nilfs_cpfile_read(nilfs, at, &checkpoint) : -ENOENT;
        if (error == -ENOENT)
            return nilfs_corrupt(nilfs, "cpfile: the list of snapshots has %llu before %llu",
                                 (unsigned long long)at, (unsigned long long)above);
        above = at;
        if (!error)
            at = checkpoint.snapshot_previous;
    }
    *below = at;
    return error;
}

/* Makes the two neighbours in the list. */
static int join(struct nilfs *nilfs, uint64_t lower, uint64_t higher) {
    struct nilfs_disk_snapshot_link *low = NULL, *high = NULL;
    int error = change_links(nilfs, lower, &low);

    if (!error)
        error = change_links(nilfs, higher, &high);
    if (error)
        return error;
    le64_store(&low->ssl_next, higher);
    le64_store(&high->ssl_prev, lower);
    return 0;
}

static int count_snapshots(struct nilfs *nilfs, int change) {
    struct nilfs_disk_cpfile_header *header = NULL;
    int error = change_header(nilfs, &header);

    if (!error)
        le64_store(&header->ch_nsnapshots,
                   le64_load(header->ch_nsnapshots) + (uint64_t)(int64_t)change);
    return error;
}

static int snapshot_make(struct nilfs *nilfs, uint64_t cno, struct nilfs_disk_checkpoint *slot) {
    struct nilfs_disk_snapshot_link *links = NULL;
    uint64_t lower = 0, higher;
    int error = snapshot_below(nilfs, cno, &lower);

    if (!error)
        error = change_links(nilfs, lower, &links);
    if (error)
        return error;
    higher = le64_load(links->ssl_next);
    error = join(nilfs, lower, cno);
    if (!error)
        error = join(nilfs, cno, higher);
    if (error)
        return error;
    le32_store(&slot->cp_flags, le32_load(slot->cp_flags) | NILFS_CP_SNAPSHOT);
    return count_snapshots(nilfs, 1);
}

static int snapshot_drop(struct nilfs *nilfs, struct nilfs_disk_checkpoint *slot) {
    int error =
        join(nilfs, le64_load(slot->cp_snapshots.ssl_prev), le64_load(slot->cp_snapshots.ssl_next));

    if (error)
        return error;
    le64_store(&slot->cp_snapshots.ssl_next, 0);
    le64_store(&slot->cp_snapshots.ssl_prev, 0);
    le32_store(&slot->cp_flags, le32_load(slot->cp_flags) & ~(uint32_t)NILFS_CP_SNAPSHOT);
    return count_snapshots(nilfs, -1);
}

int nilfs_cpfile_keep(struct nilfs *nilfs, uint64_t cno, bool keep) {
    struct nilfs_disk_checkpoint *slot = NULL;
    struct nilfs_checkpoint checkpoint;
    int error = nilfs_cpfile_read(nilfs, cno, &checkpoint);

    if (error || keep == (bool)(checkpoint.flags & NILFS_CP_SNAPSHOT))
        return error;
    error = change_slot(nilfs, cno, &slot);
    if (error)
        return error;
    return keep ? snapshot_make(nilfs, cno, slot) : snapshot_drop(nilfs, slot);
}

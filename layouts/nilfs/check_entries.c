/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, part of check. Files of numbered entries (palloc.h): bitmaps against
 * descriptors; entries in use have a block. And what the DAT's entries say.
 */
#include <inttypes.h>

#include "fs/bitmap.h"
#include "layouts/nilfs/check.h"
#include "layouts/nilfs/dat.h"

struct examined {
    struct nilfs_check *check;
    struct nilfs_file *file;
    const char *name;
    struct nilfs_palloc layout;
    bool dat;
    uint64_t alive;
};

/* An entry of the DAT in use. */
static void check_life(struct examined *examined, uint64_t vblock, const uint8_t *bytes) {
    const struct nilfs *nilfs = examined->check->nilfs;
    const struct nilfs_disk_dat_entry *entry = (const struct nilfs_disk_dat_entry *)bytes;
    uint64_t block = le64_load(entry->de_blocknr);
    uint64_t start = le64_load(entry->de_start), end = le64_load(entry->de_end);

    if (vblock == 0)
        return;
    examined->alive += end == NILFS_CNO_MAX;
    if (start > nilfs->newest || end < start || (end != NILFS_CNO_MAX && end > nilfs->newest))
        nilfs_check_wrong(examined->check,
                          "DAT: virtual block %" PRIu64 " lives from checkpoint %" PRIu64
                          " to %" PRIu64 ", but the newest is %" PRIu64,
                          vblock, start, end, nilfs->newest);
    if (!nilfs_block_valid(&nilfs->geometry, block))
        nilfs_check_wrong(examined->check,
                          "DAT: virtual block %" PRIu64 " is at disk block %" PRIu64
                          ", which is in no segment",
                          vblock, block);
}

/* The entries [first, end) of the group, which share a block. */
static int check_block(struct examined *examined, uint64_t group, const uint8_t *bitmap,
                       uint32_t first, uint32_t end) {
    const struct nilfs_palloc *p = &examined->layout;
    uint64_t number = group * p->entries_per_group;
    uint32_t used = bitmap_find_set(bitmap, first, end);
    struct nilfs_view view;
    const uint8_t *entry;

    if (used == end)
        return 0;
    int error = nilfs_palloc_read(examined->file, number + first, PURPOSE_OTHER, &view, &entry);
    if (error == -ENOENT) {
        nilfs_check_wrong(examined->check, "%s: entry %" PRIu64 " is in use, but has no block",
                          examined->name, number + used);
        return 0;
    }
    if (error)
        return error;
    for (; used < end && examined->dat; used = bitmap_find_set(bitmap, used + 1, end))
        check_life(examined, number + used, entry + (size_t)(used - first) * p->entry_size);
    nilfs_view_put(&view);
    return 0;
}

/* A group whose descriptor says `free`. */
static int check_group(struct examined *examined, uint64_t group, uint32_t free) {
    const struct nilfs_palloc *p = &examined->layout;
    uint32_t clear = p->entries_per_group;
    struct nilfs_view view;
    int error =
        nilfs_file_read(examined->file, nilfs_palloc_bitmap(p, group), PURPOSE_BITMAP, &view);

    if (error && error != -ENOENT)
        return error;
    bool empty = error == -ENOENT;
    if (!empty)
        clear = bitmap_count_clear(view.data, p->entries_per_group);
    if (free != clear)
        nilfs_check_wrong(examined->check,
                          "%s: the descriptor of group %" PRIu64 " says that %" PRIu32
                          " entries are free, expected %" PRIu32,
                          examined->name, group, free, clear);
    error = 0;
    for (uint32_t at = 0; !empty && !error && at < p->entries_per_group;) {
        uint32_t end = at + p->entries_per_block;
        end = end < p->entries_per_group ? end : p->entries_per_group;
        error = nilfs_check_go_on(check_block(examined, group, view.data, at, end));
        at = end;
    }
    if (!empty)
        nilfs_view_put(&view);
    return error;
}

/* The groups of the descriptor block number `index`. */
static int check_descriptor(struct examined *examined, uint64_t index) {
    const struct nilfs_palloc *p = &examined->layout;
    struct nilfs_view view;
    int error =
        nilfs_file_read(examined->file, index * p->blocks_per_descriptor, PURPOSE_BITMAP, &view);

    if (error == -ENOENT)
        nilfs_check_wrong(examined->check,
                          "%s: there is no descriptor block at %" PRIu64 ", but blocks behind it",
                          examined->name, index * p->blocks_per_descriptor);
    if (error)
        return error == -ENOENT ? 0 : error;
    const le32 *free = (const le32 *)view.data;
    for (uint32_t i = 0; i < p->groups_per_descriptor && !error; i++)
        error = nilfs_check_go_on(
            check_group(examined, index * p->groups_per_descriptor + i, le32_load(free[i])));
    nilfs_view_put(&view);
    return error;
}

int nilfs_check_entries(struct nilfs_check *check, struct nilfs_file *file, const char *name,
                        uint64_t *alive) {
    struct examined examined = {.check = check,
                                .file = file,
                                .name = name,
                                .layout = nilfs_palloc_of(file),
                                .dat = alive != NULL};
    uint64_t offset = 0;
    int error = 0;

    while (!error) {
        error = nilfs_bmap_seek(file, offset, &offset);
        if (error)
            break;
        uint64_t index = offset / examined.layout.blocks_per_descriptor;
        if (index > NILFS_PALLOC_LIMIT / examined.layout.entries_per_group) {
            nilfs_check_wrong(check, "%s: it has a block at %" PRIu64 ", where none can be", name,
                              offset);
            break;
        }
        error = nilfs_check_go_on(check_descriptor(&examined, index));
        offset = (index + 1) * examined.layout.blocks_per_descriptor;
    }
    if (alive)
        *alive = examined.alive;
    return error == -ENOENT ? 0 : error;
}

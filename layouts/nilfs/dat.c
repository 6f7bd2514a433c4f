/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/dat.h.
 */
#include "layouts/nilfs/dat.h"

#include <errno.h>

#include "layouts/nilfs/cleaner.h"

static int unknown(const struct nilfs *nilfs, uint64_t vblock, const char *what) {
    return nilfs_corrupt(nilfs, "DAT: virtual block %llu %s", (unsigned long long)vblock, what);
}

/* --- reading ---------------------------------------------------------------------------------- */

int nilfs_dat_life(struct nilfs *nilfs, uint64_t vblock, struct nilfs_life *life) {
    struct nilfs_view view;
    const uint8_t *bytes;
    int used = nilfs_palloc_used(nilfs->dat, vblock);

    if (used < 0)
        return used;
    if (!used || vblock == 0)
        return unknown(nilfs, vblock, "is pointed at, but not in use");
    int error = nilfs_palloc_read(nilfs->dat, vblock, PURPOSE_MAP, &view, &bytes);
    if (error == -ENOENT)
        return unknown(nilfs, vblock, "is in use, but has no entry");
    if (error)
        return error;
    const struct nilfs_disk_dat_entry *entry = (const struct nilfs_disk_dat_entry *)bytes;
    life->block = le64_load(entry->de_blocknr);
    life->start = le64_load(entry->de_start);
    life->end = le64_load(entry->de_end);
    nilfs_view_put(&view);
    return 0;
}

/* The entry's part of the DAT is in *view, or comes into it; *viewed says which part that is. */
static int view_entry(struct nilfs *nilfs, const struct nilfs_palloc *p, uint64_t vblock,
                      struct nilfs_view *view, uint64_t *viewed,
                      const struct nilfs_disk_dat_entry **entry) {
    uint64_t offset;
    uint32_t byte;
    int error = 0;

    if (vblock == 0 || vblock >= NILFS_PALLOC_LIMIT)
        return unknown(nilfs, vblock, "is pointed at, which cannot be");
    nilfs_palloc_locate(p, vblock, &offset, &byte);
    if (!view->data || offset != *viewed) {
        nilfs_view_put(view);
        view->data = NULL;
        error = nilfs_file_read(nilfs->dat, offset, PURPOSE_MAP, view);
        *viewed = offset;
    }
    if (error)
        return error == -ENOENT ? unknown(nilfs, vblock, "is pointed at, but has no entry") : error;
    *entry = (const struct nilfs_disk_dat_entry *)(const void *)(view->data + byte);
    return 0;
}

int nilfs_dat_lookup_run(struct nilfs *nilfs, const uint64_t *vblocks, uint32_t count,
                         uint64_t *block) {
    struct nilfs_palloc p = nilfs_palloc_of(nilfs->dat);
    struct nilfs_view view = {.data = NULL};
    uint64_t viewed = 0;
    uint32_t found = 0;
    int error = 0;

    while (found < count && !error) {
        const struct nilfs_disk_dat_entry *entry = NULL;
        error = view_entry(nilfs, &p, vblocks[found], &view, &viewed, &entry);
        if (error)
            break;
        uint64_t at = le64_load(entry->de_blocknr);
        if (!nilfs_block_valid(&nilfs->geometry, at))
            error = nilfs_corrupt(
                nilfs, "DAT: virtual block %llu is said to be at block %llu, outside the segments",
                (unsigned long long)vblocks[found], (unsigned long long)at);
        else if (found == 0)
            *block = at;
        else if (at != *block + found)
            break;
        found += !error;
    }
    nilfs_view_put(&view);
    return error ? error : (int)found;
}

int nilfs_dat_lookup(struct nilfs *nilfs, uint64_t vblock, uint64_t *block) {
    int found = nilfs_dat_lookup_run(nilfs, &vblock, 1, block);

    return found < 0 ? found : 0;
}

/* --- changing --------------------------------------------------------------------------------- */

/* Files get different parts of a group, so that each one's blocks stay together. */
static uint64_t goal_of_file(const struct nilfs *nilfs, uint64_t ino) {
    uint64_t per_group = (uint64_t)nilfs->geometry.block_size * 8;

    return ino / per_group * per_group + ino % 8 * (per_group / 8);
}

int nilfs_dat_allocate(struct nilfs *nilfs, uint64_t ino, uint64_t goal, uint64_t *vblock) {
    uint8_t *bytes;
    int error = nilfs_palloc_allocate(nilfs->dat, goal ? goal : goal_of_file(nilfs, ino), true,
                                      vblock, &bytes);
    if (error)
        return error;
    if (*vblock == 0)
        return unknown(nilfs, 0, "is free, which it never is");
    struct nilfs_disk_dat_entry *entry = (struct nilfs_disk_dat_entry *)bytes;
    le64_store(&entry->de_blocknr, 0);
    le64_store(&entry->de_start, 1);
    le64_store(&entry->de_end, NILFS_CNO_MAX);
    le64_store(&entry->de_reserved, 0);
    return 0;
}

/* The entry for changing, of a virtual block that is alive. */
static int change_alive(struct nilfs *nilfs, uint64_t vblock, struct nilfs_disk_dat_entry **entry) {
    uint8_t *bytes;
    int error = vblock == 0 ? -ENOENT : nilfs_palloc_change(nilfs->dat, vblock, &bytes);

    if (error)
        return error == -ENOENT ? unknown(nilfs, vblock, "has no entry") : error;
    *entry = (struct nilfs_disk_dat_entry *)bytes;
    if (le64_load((*entry)->de_end) != NILFS_CNO_MAX)
        return unknown(nilfs, vblock, "is replaced, but its life is over already");
    return 0;
}

int nilfs_dat_end(struct nilfs *nilfs, uint64_t vblock, bool single) {
    struct nilfs_disk_dat_entry *entry = NULL;
    int error = change_alive(nilfs, vblock, &entry);

    if (error)
        return error;
    uint64_t start = le64_load(entry->de_start);
    if (start > nilfs->cno)
        return unknown(nilfs, vblock, "begins its life in a checkpoint of the future");
    bool written = le64_load(entry->de_blocknr) != 0;
    le64_store(&entry->de_end, single || !written ? start : nilfs->cno);
    uint64_t block = le64_load(entry->de_blocknr);
    if (written && !nilfs_cleaner_keeps(nilfs, start)) {
        if (single || start == nilfs->cno)
            nilfs_cleaner_note(nilfs, block, false);
        else
            nilfs_cleaner_note_end(nilfs, block);
    }
    return written ? 0 : nilfs_palloc_free(nilfs->dat, vblock, false);
}

int nilfs_dat_place(struct nilfs *nilfs, uint64_t vblock, uint64_t block) {
    uint8_t *bytes = nilfs_palloc_changed(nilfs->dat, vblock);

    if (!bytes)
        return unknown(nilfs, vblock, "is written, but was not allocated for that");
    struct nilfs_disk_dat_entry *entry = (struct nilfs_disk_dat_entry *)bytes;
    if (le64_load(entry->de_end) != NILFS_CNO_MAX ||
        (le64_load(entry->de_blocknr) != 0 && le64_load(entry->de_start) != nilfs->cno))
        return unknown(nilfs, vblock, "is written, but has been before");
    nilfs_cleaner_note(nilfs, le64_load(entry->de_blocknr), false);
    nilfs_cleaner_note(nilfs, block, true);
    le64_store(&entry->de_blocknr, block);
    le64_store(&entry->de_start, nilfs->cno);
    return 0;
}

int nilfs_dat_move(struct nilfs *nilfs, uint64_t vblock, uint64_t block) {
    uint8_t *bytes;
    int error = vblock == 0 ? -ENOENT : nilfs_palloc_change(nilfs->dat, vblock, &bytes);

    if (error)
        return error == -ENOENT ? unknown(nilfs, vblock, "has no entry") : error;
    struct nilfs_disk_dat_entry *entry = (struct nilfs_disk_dat_entry *)bytes;
    nilfs_cleaner_note(nilfs, le64_load(entry->de_blocknr), false);
    nilfs_cleaner_note(nilfs, block, true);
    le64_store(&entry->de_blocknr, block);
    return 0;
}

int nilfs_dat_free(struct nilfs *nilfs, uint64_t vblock) {
    return nilfs_palloc_free(nilfs->dat, vblock, true);
}

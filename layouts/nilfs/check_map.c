/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, part of check. One file's block map: what reading validates anyway (levels,
 * order, first keys), how full nodes are, whether each virtual block is alive in the checkpoint,
 * and that nothing else holds its disk block.
 */
#include <inttypes.h>

#include "fs/bitmap.h"
#include "layouts/nilfs/btree.h"
#include "layouts/nilfs/check.h"
#include "layouts/nilfs/dat.h"

struct walk {
    struct nilfs_check *check;
    struct nilfs_file *file;
    uint64_t cno; /* 0: the newest state */
    uint64_t blocks;
    uint32_t lonely_level; /* of the root's only child, which may have few children; 0: none */
};

/* --- the DAT's entries ------------------------------------------------------------------------ */

/* The block at `offset`. -ENOENT: a hole. */
static int window_read(struct nilfs_check *check, struct nilfs_check_window *window,
                       uint64_t offset) {
    if (window->view.data && window->offset == offset)
        return 0;
    nilfs_view_put(&window->view);
    window->view.data = NULL;
    window->offset = offset;
    return nilfs_file_read(check->nilfs->dat, offset, PURPOSE_MAP, &window->view);
}

void nilfs_check_map_end(struct nilfs_check *check) {
    nilfs_view_put(&check->bitmap.view);
    nilfs_view_put(&check->entries.view);
    check->bitmap.view.data = check->entries.view.data = NULL;
}

/* As nilfs_dat_life, which looks for both blocks each time. */
static int life_of(struct nilfs_check *check, uint64_t vblock, struct nilfs_life *life) {
    struct nilfs_palloc p = nilfs_palloc_of(check->nilfs->dat);
    uint64_t offset;
    uint32_t byte;

    if (vblock == 0 || vblock >= NILFS_PALLOC_LIMIT)
        return nilfs_dat_life(check->nilfs, vblock, life);
    nilfs_palloc_locate(&p, vblock, &offset, &byte);
    int error =
        window_read(check, &check->bitmap, nilfs_palloc_bitmap(&p, vblock / p.entries_per_group));
    if (!error)
        error = window_read(check, &check->entries, offset);
    if (error && error != -ENOENT)
        return error;
    if (error || !bitmap_test(check->bitmap.view.data, (uint32_t)(vblock % p.entries_per_group)))
        return nilfs_dat_life(check->nilfs, vblock, life); /* which tells what is wrong */
    const void *bytes = check->entries.view.data + byte;
    const struct nilfs_disk_dat_entry *entry = bytes;
    life->block = le64_load(entry->de_blocknr);
    life->start = le64_load(entry->de_start);
    life->end = le64_load(entry->de_end);
    return 0;
}

/* --- the map ---------------------------------------------------------------------------------- */

static bool is_alive(const struct walk *walk, const struct nilfs_life *life) {
    if (walk->cno == 0)
        return life->start <= walk->check->nilfs->newest && life->end == NILFS_CNO_MAX;
    return life->start <= walk->cno && walk->cno < life->end;
}

/* Where a virtual block lies. -EUCLEAN after a finding. */
static int address(const struct walk *walk, uint64_t key, uint64_t vblock, uint64_t *block) {
    struct nilfs *nilfs = walk->check->nilfs;
    struct nilfs_life life;
    int error = life_of(walk->check, vblock, &life);

    if (error)
        return error;
    *block = life.block;
    if (!is_alive(walk, &life))
        nilfs_check_wrong(walk->check,
                          "inode %" PRIu64 ", block %" PRIu64 ": virtual block %" PRIu64
                          " lives from checkpoint %" PRIu64 " to %" PRIu64
                          ", but checkpoint %" PRIu64 " has it",
                          walk->file->ino, key, vblock, life.start, life.end,
                          walk->cno ? walk->cno : nilfs->newest);
    if (nilfs_block_valid(&nilfs->geometry, *block))
        return 0;
    nilfs_check_wrong(walk->check,
                      "inode %" PRIu64 ", block %" PRIu64 ": virtual block %" PRIu64
                      " is at disk block %" PRIu64 ", which is in no segment",
                      walk->file->ino, key, vblock, *block);
    return -EUCLEAN;
}

/* Insertion and deletion keep nodes half full, but for one that has no siblings. */
static int check_fill(const struct walk *walk, uint32_t level, uint64_t key, uint64_t pointer) {
    struct nilfs_check *check = walk->check;
    uint32_t least = (check->nilfs->geometry.node_children - 1) / 2 + 1;
    struct nilfs_view view;
    int error = nilfs_node_read(walk->file, pointer, level, &view);

    if (error || level == walk->lonely_level)
        least = 0;
    if (error)
        return error;
    struct nilfs_node node = nilfs_node_block(walk->file, view.data);
    uint32_t count = nilfs_node_count(&node);
    nilfs_view_put(&view);
    if (count < least)
        nilfs_check_wrong(check,
                          "inode %" PRIu64 ": the level %" PRIu32 " node of block %" PRIu64
                          " has %" PRIu32 " children, expected at least %" PRIu32,
                          walk->file->ino, level, key, count, least);
    return 0;
}

static int visit(void *context, uint32_t level, uint64_t key, uint64_t pointer) {
    struct walk *walk = context;
    struct nilfs_check *check = walk->check;
    bool physical = walk->file->pointers == NILFS_PHYSICAL;
    struct nilfs_log_item item = {
        .ino = walk->file->ino, .level = level, .vblock = physical ? 0 : pointer, .offset = key};
    uint64_t block;

    walk->blocks++;
    int error = physical ? nilfs_file_address(walk->file, pointer, &block)
                         : address(walk, key, pointer, &block);
    if (!physical && walk->cno == 0)
        check->alive++;
    if (!error)
        error = nilfs_check_hold(check, &item, block);
    if (!error && level > 0)
        error = check_fill(walk, level, key, pointer);
    return level > 0 ? error : nilfs_check_go_on(error);
}

int nilfs_check_map(struct nilfs_check *check, struct nilfs_file *file, uint64_t cno,
                    uint64_t *blocks) {
    struct walk walk = {.check = check, .file = file, .cno = cno};

    if (nilfs_bmap_is_tree(file)) {
        struct nilfs_node root = nilfs_node_root(file);
        if (nilfs_node_count(&root) == 1)
            walk.lonely_level = root.header->level - 1u;
    }
    int error = nilfs_bmap_each(file, visit, &walk);
    *blocks = walk.blocks;
    return error;
}

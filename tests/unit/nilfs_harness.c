/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Interface: tests/unit/nilfs_harness.h.
 */
#include "tests/unit/nilfs_harness.h"

#include "layouts/nilfs/bmap.h"

enum { SEGMENT_BLOCKS = 2048, CACHE_BYTES = 64 << 20 };

static void make_header(struct nilfs_file *file, uint8_t **data) {
    bool made;

    ck_assert_int_eq(nilfs_file_make(file, 0, data, &made), 0);
    ck_assert(made);
}

/* What mkfs writes. */
static void make_contents(struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t number;
    uint8_t *data;

    ck_assert_int_eq(nilfs_palloc_allocate(nilfs->dat, 0, false, &number, &data), 0);
    ck_assert_uint_eq(number, 0);
    for (uint64_t ino = 0; ino < NILFS_FIRST_INO; ino++) {
        ck_assert_int_eq(nilfs_palloc_allocate(nilfs->ifile, 0, false, &number, &data), 0);
        ck_assert_uint_eq(number, ino);
    }
    make_header(nilfs->cpfile, &data);
    for (uint32_t at = g->checkpoint_size; at + g->checkpoint_size <= g->block_size;
         at += g->checkpoint_size)
        le32_store(&((struct nilfs_disk_checkpoint *)(data + at))->cp_flags, NILFS_CP_INVALID);
    make_header(nilfs->sufile, &data);
    struct nilfs_disk_sufile_header *header = (struct nilfs_disk_sufile_header *)data;
    le64_store(&header->sh_ncleansegs, g->segments);
    le64_store(&header->sh_last_alloc, g->segments - 1);
    nilfs->clean_segments = g->segments;
}

void harness_open(struct nilfs_harness *h, uint32_t block_bits, uint64_t segments) {
    struct nilfs *nilfs = &h->nilfs;

    memset(h, 0, sizeof(*h));
    clock_init_virtual(&h->clock, NULL);
    h->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(device_open_ram(segments * SEGMENT_BLOCKS << block_bits, &h->clock, &h->log,
                                     &h->volume.device),
                     0);
    h->volume.clock = &h->clock;
    h->volume.log = &h->log;
    h->volume.layout_data = nilfs;
    snprintf(h->volume.name, sizeof(h->volume.name), "harness");
    ck_assert_int_eq(pool_init(&h->volume.pool, CACHE_BYTES), 0);
    nilfs->volume = &h->volume;
    nilfs->geometry = (struct nilfs_geometry){
        .block_bits = block_bits,
        .block_size = 1u << block_bits,
        .sectors_per_block = (1u << block_bits) / 512,
        .blocks = segments * SEGMENT_BLOCKS,
        .segments = segments,
        .segment_blocks = SEGMENT_BLOCKS,
        .first_data_block = ((4096u - 1) >> block_bits) + 1,
        .reserved_percent = 5,
        .inode_size = sizeof(struct nilfs_disk_inode),
        .dat_entry_size = sizeof(struct nilfs_disk_dat_entry),
        .checkpoint_size = 192,
        .usage_size = sizeof(struct nilfs_disk_segment_usage),
        .node_children = ((1u << block_bits) - 16) / 16,
    };
    nilfs_volume_init(nilfs);
    nilfs->cno = 1;
    h->next_block = nilfs->geometry.first_data_block;
    ck_assert_int_eq(buffer_cache_create(h->volume.device, &h->volume.pool, &h->clock,
                                         nilfs->geometry.block_size, &nilfs->buffers),
                     0);
    h->volume.buffers = nilfs->buffers;
    ck_assert_int_eq(nilfs_file_new(nilfs, NILFS_DAT_INO, 0, NILFS_PHYSICAL, NULL, &nilfs->dat), 0);
    ck_assert_int_eq(nilfs_file_new(nilfs, NILFS_CPFILE_INO, 0, NILFS_SINGLE, NULL, &nilfs->cpfile),
                     0);
    ck_assert_int_eq(nilfs_file_new(nilfs, NILFS_SUFILE_INO, 0, NILFS_SINGLE, NULL, &nilfs->sufile),
                     0);
    ck_assert_int_eq(nilfs_file_new(nilfs, NILFS_IFILE_INO, 0, NILFS_MULTI, NULL, &nilfs->ifile),
                     0);
    make_contents(nilfs);
}

void harness_close(struct nilfs_harness *h) {
    struct nilfs *nilfs = &h->nilfs;

    nilfs_file_put(nilfs->ifile);
    nilfs_file_put(nilfs->sufile);
    nilfs_file_put(nilfs->cpfile);
    nilfs_file_put(nilfs->dat);
    ck_assert_uint_eq(nilfs->dirty_blocks, 0);
    buffer_cache_destroy(nilfs->buffers);
    pool_destroy(&h->volume.pool);
    nilfs_volume_destroy(nilfs);
    device_close(h->volume.device);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static void place(struct nilfs_harness *h, struct nilfs_block *block) {
    struct nilfs_file *file = block->file;
    uint64_t at = h->next_block++;

    ck_assert(nilfs_block_valid(&h->nilfs.geometry, at));
    if (file->pointers != NILFS_PHYSICAL) {
        ck_assert_int_eq(nilfs_dat_place(&h->nilfs, block->pointer, at), 0);
        return;
    }
    const le64 *keys = (const le64 *)(block->data + 16);
    uint64_t key = block->level ? le64_load(keys[0]) : block->key;
    ck_assert_int_eq(nilfs_bmap_place(file, key, block->level, at), 0);
    if (block->level)
        nilfs_node_rename(block, at);
    block->pointer = at;
}

/* Places the file's changed blocks, bottom up. */
static void place_all(struct nilfs_harness *h, struct nilfs_file *file) {
    uint64_t first = h->next_block, count = nilfs_file_changed(file), n = 0;
    struct nilfs_block **blocks = calloc(count + 1, sizeof(struct nilfs_block *));
    struct nilfs_block *block;

    ck_assert_ptr_nonnull(blocks);
    RB_FOREACH(block, nilfs_block_tree, &file->changes->data) blocks[n++] = block;
    for (uint32_t level = 1; level < NILFS_LEVEL_MAX; level++)
        RB_FOREACH(block, nilfs_block_tree, &file->changes->nodes)
    if (block->level == level)
        blocks[n++] = block;
    ck_assert_uint_eq(n, count);
    for (n = 0; n < count; n++)
        place(h, blocks[n]);
    free(blocks);
    ck_assert_uint_eq(h->next_block, first + count);
}

static void settle_all(struct nilfs *nilfs, struct nilfs_block_tree *tree) {
    while (!RB_EMPTY(tree)) {
        struct nilfs_block *block = RB_MIN(nilfs_block_tree, tree);
        uint64_t at = block->pointer;
        struct buffer *buffer;

        if (block->file->pointers != NILFS_PHYSICAL)
            ck_assert_int_eq(nilfs_dat_lookup(nilfs, block->pointer, &at), 0);
        ck_assert_int_eq(nilfs_block_settle(block, at, &buffer), 0);
        buffer->pinned = false;
        buffer_dirty(buffer);
        buffer_put(buffer);
    }
}

static void settle_file(struct nilfs_file *file) {
    settle_all(file->nilfs, &file->changes->data);
    settle_all(file->nilfs, &file->changes->nodes);
    nilfs_file_mark_clean(file);
}

void harness_settle(struct nilfs_harness *h, struct nilfs_file *file) {
    place_all(h, file);
    settle_file(file);
    ck_assert_int_eq(buffer_sync(h->nilfs.buffers), 0);
}

void harness_checkpoint(struct nilfs_harness *h) {
    struct nilfs *nilfs = &h->nilfs;
    struct nilfs_file *const metadata[] = {nilfs->ifile, nilfs->cpfile, nilfs->sufile, nilfs->dat};
    const struct nilfs_changes *changes;

    ck_assert_int_eq(nilfs_cpfile_create(nilfs), 0);
    TAILQ_FOREACH (changes, &nilfs->dirty_files, link)
        place_all(h, changes->file);
    for (unsigned i = 0; i < 4; i++)
        place_all(h, metadata[i]);
    while ((changes = TAILQ_FIRST(&nilfs->dirty_files)))
        settle_file(changes->file);
    for (unsigned i = 0; i < 4; i++)
        settle_file(metadata[i]);
    ck_assert_uint_eq(nilfs->dirty_blocks, 0);
    ck_assert_int_eq(buffer_sync(nilfs->buffers), 0);
    nilfs->newest = nilfs->cno++;
}

static void forget(struct nilfs *nilfs, struct nilfs_file **file) {
    struct nilfs_disk_inode map = {.i_bmap = (*file)->bmap};
    struct nilfs_file *fresh;

    ck_assert(!(*file)->dirty);
    le64_store(&map.i_blocks, (*file)->sectors);
    ck_assert_int_eq(
        nilfs_file_new(nilfs, (*file)->ino, (*file)->cno, (*file)->pointers, &map, &fresh), 0);
    nilfs_file_put(*file);
    *file = fresh;
}

void harness_forget(struct nilfs_harness *h) {
    struct nilfs *nilfs = &h->nilfs;

    forget(nilfs, &nilfs->dat);
    forget(nilfs, &nilfs->cpfile);
    forget(nilfs, &nilfs->sufile);
    forget(nilfs, &nilfs->ifile);
    buffer_cache_destroy(nilfs->buffers);
    ck_assert_int_eq(buffer_cache_create(h->volume.device, &h->volume.pool, &h->clock,
                                         nilfs->geometry.block_size, &nilfs->buffers),
                     0);
    h->volume.buffers = nilfs->buffers;
}

static int count(void *context, uint32_t level, uint64_t key, uint64_t pointer) {
    *(uint64_t *)context += level == 0;
    return 0;
}

uint64_t harness_data_blocks(struct nilfs_file *file) {
    uint64_t blocks = 0;

    ck_assert_int_eq(nilfs_bmap_each(file, count, &blocks), 0);
    return blocks;
}

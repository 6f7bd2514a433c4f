/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/indirect.c: random reservations, truncations and punches against a plain array, over
 * all levels of indirection; running out of space; maps that are damaged.
 */
#include <errno.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define BLOCK 1024u
/* An assertion for inner loops: Check's own tell the parent process of each success. */
#define ENSURE(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)
/* With 1 KiB blocks the triple indirect block begins at 12 + 256 + 65536. */
#define MODEL_BLOCKS 70000u

struct model {
    struct fixture f;
    struct ext *ext;
    struct inode *file;
    uint64_t free_before;
    uint32_t *physical; /* of each logical block, 0: hole */
    uint8_t *seen;      /* by physical block */
    uint64_t data, metadata;
    uint64_t last_logical;
};

/* For tests that provoke complaints. */
static void emit_nothing(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
}

static void model_open(struct model *m, uint64_t size, const char *mount_options) {
    struct create_request request = {.mode = S_IFREG | 0644};
    memset(m, 0, sizeof *m);
    fixture_open(&m->f, "ext2", size, "block_size=1024,inode_ratio=65536", mount_options, true);
    m->ext = ext_of(m->f.volume);
    ck_assert_int_eq(volume_create(m->f.root, "file", 4, &request, &m->file), 0);
    m->free_before = m->ext->free_blocks;
    m->physical = calloc(MODEL_BLOCKS, sizeof *m->physical);
    m->seen = calloc(m->ext->geometry.blocks_count, 1);
    ck_assert(m->physical && m->seen);
}

static void model_close(struct model *m) {
    ck_assert_int_eq(ext_truncate(m->file, 0), 0);
    ck_assert_uint_eq(m->file->sectors, 0);
    ck_assert_uint_eq(m->ext->free_blocks, m->free_before);
    volume_put(m->file, 1);
    free(m->physical);
    free(m->seen);
    fixture_close(&m->f);
}

static int model_visit(void *context, const struct ext_run *run) {
    struct model *m = context;
    uint64_t block = run->physical, logical = run->logical;
    ENSURE(run->count == 1 && !run->unwritten);
    ENSURE(!m->seen[block]);
    m->seen[block] = 1;
    if (run->level > 0) {
        m->metadata++;
        return 0;
    }
    ENSURE(logical < MODEL_BLOCKS);
    ENSURE(m->data == 0 || logical > m->last_logical);
    ENSURE(m->physical[logical] == block);
    m->last_logical = logical;
    m->data++;
    return 0;
}

static uint64_t indirect_blocks_needed(const struct model *m) {
    uint64_t needed = 0, last_leaf = UINT64_MAX, last_middle = UINT64_MAX;
    bool slot[3] = {false};
    for (uint64_t i = 12; i < MODEL_BLOCKS; i++) {
        if (m->physical[i] == 0)
            continue;
        uint64_t leaf = (i - 12) / 256, middle = (i - 12 - 256) / 65536;
        needed += leaf != last_leaf; /* leaves begin at multiples of 256 at all levels */
        if (leaf > 0 && leaf <= 256)
            slot[1] = true;
        if (leaf > 256) {
            needed += middle != last_middle;
            last_middle = middle;
            slot[2] = true;
        }
        last_leaf = leaf;
    }
    return needed + slot[1] + slot[2];
}

static void model_verify(struct model *m) {
    uint64_t data = 0;
    memset(m->seen, 0, m->ext->geometry.blocks_count);
    m->data = m->metadata = 0;
    ck_assert_int_eq(ext_blocks_each(m->file, model_visit, m), 0);
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++)
        data += m->physical[i] != 0;
    ck_assert_uint_eq(m->data, data);
    ck_assert_uint_eq(m->metadata, indirect_blocks_needed(m));
    ck_assert_uint_eq(m->file->sectors, (m->data + m->metadata) * (BLOCK / 512));
    ck_assert_uint_eq(m->ext->free_blocks, m->free_before - m->data - m->metadata);

    /* The same, as extents: maximal runs, holes included. */
    for (uint64_t at = 0; at < MODEL_BLOCKS;) {
        struct extent extent;
        ENSURE(ext_map(m->file, at * BLOCK + at % BLOCK, &extent) == 0);
        ENSURE(extent.offset == at * BLOCK);
        uint64_t end = at + extent.length / BLOCK, first = m->physical[at];
        ENSURE(end > at);
        ENSURE(extent.flags == (first ? 0 : EXTENT_HOLE));
        ENSURE(!first || extent.device_offset == first * BLOCK);
        for (uint64_t i = at; i < end && i < MODEL_BLOCKS; i++)
            ENSURE(m->physical[i] == (first ? first + (i - at) : 0));
        ENSURE(end >= MODEL_BLOCKS || m->physical[end] != (first ? first + (end - at) : 0));
        at = end;
    }
}

/* Takes over what the file has now in [from, to): old blocks must not have moved. */
static void model_adopt(struct model *m, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        uint64_t physical, count;
        ENSURE(ext_bmap(m->file, i, &physical, &count) == 0);
        ENSURE(physical != 0);
        ENSURE(m->physical[i] == 0 || m->physical[i] == physical);
        m->physical[i] = (uint32_t)physical;
    }
}

/* Block numbers around the borders between levels, as often as any others. */
static uint64_t model_pick(uint64_t *state) {
    static const uint32_t borders[] = {0, 12, 12 + 256, 12 + 256 + 256, 12 + 256 + 65536};
    if (fixture_random(state) % 2)
        return fixture_random(state) % (MODEL_BLOCKS - 400);
    uint64_t border = borders[fixture_random(state) % 5];
    uint64_t away = fixture_random(state) % 24;
    return border + away < 12 ? away : border + away - 12;
}

static void model_step(struct model *m, uint64_t *state) {
    uint64_t from = model_pick(state), count = 1 + fixture_random(state) % 300;
    uint64_t offset = from * BLOCK + fixture_random(state) % BLOCK;
    uint64_t length = 1 + fixture_random(state) % (count * BLOCK);
    unsigned choice = (unsigned)(fixture_random(state) % 10);

    if (choice < 6) {
        int64_t got = ext_reserve(m->file, offset, length);
        if (got == -ENOSPC)
            return;
        ck_assert(got > 0 && (uint64_t)got <= length);
        model_adopt(m, from, (offset + (uint64_t)got + BLOCK - 1) / BLOCK);
    } else if (choice < 9) {
        ck_assert_int_eq(ext_punch(m->file, offset, length), 0);
        for (uint64_t i = (offset + BLOCK - 1) / BLOCK; i < (offset + length) / BLOCK; i++)
            m->physical[i] = 0;
    } else {
        ck_assert_int_eq(ext_truncate(m->file, offset), 0);
        for (uint64_t i = (offset + BLOCK - 1) / BLOCK; i < MODEL_BLOCKS; i++)
            m->physical[i] = 0;
    }
}

static void run_model(uint64_t size, const char *mount_options, const char *name) {
    struct model m;
    uint64_t state = fixture_seed(name);
    model_open(&m, size, mount_options);
    for (unsigned step = 0; step < 1500 * fixture_factor(); step++) {
        model_step(&m, &state);
        if (step % 10 == 0)
            model_verify(&m);
    }
    model_verify(&m);
    model_close(&m);
}

START_TEST(random_maps_by_goal) {
    run_model(64 << 20, "alloc=goal", "random_maps_by_goal");
}
END_TEST

START_TEST(random_maps_by_first_fit) {
    run_model(64 << 20, "alloc=first-fit", "random_maps_by_first_fit");
}
END_TEST

/* So small that most reservations end short. */
START_TEST(random_maps_on_a_full_volume) {
    run_model(2 << 20, "alloc=goal", "random_maps_on_a_full_volume");
}
END_TEST

START_TEST(a_new_file_is_one_run) {
    struct model m;
    struct extent extent;
    model_open(&m, 64 << 20, "alloc=goal");
    ck_assert_int_eq(ext_reserve(m.file, 0, 12 * BLOCK), 12 * BLOCK);
    ck_assert_int_eq(ext_map(m.file, 0, &extent), 0);
    ck_assert_uint_eq(extent.length, 12 * BLOCK);
    /* The indirect block lies between the direct blocks and what it maps. */
    ck_assert_int_eq(ext_reserve(m.file, 12 * BLOCK, 256 * BLOCK), 256 * BLOCK);
    uint64_t end = extent.device_offset + extent.length;
    ck_assert_int_eq(ext_map(m.file, 12 * BLOCK, &extent), 0);
    ck_assert_uint_eq(extent.device_offset, end + BLOCK);
    ck_assert_uint_eq(extent.length, 256 * BLOCK);
    ck_assert_uint_eq(m.file->sectors, 269 * (BLOCK / 512));
    model_close(&m);
}
END_TEST

/* Two files that grow block by block in turn stay in pieces of a window's size. */
START_TEST(files_growing_side_by_side_are_kept_apart) {
    struct model m;
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *other;
    model_open(&m, 64 << 20, "alloc=goal,prealloc=8");
    ck_assert_int_eq(volume_create(m.f.root, "other", 5, &request, &other), 0);
    m.free_before = m.ext->free_blocks;
    for (uint64_t i = 0; i < 200; i++) {
        ck_assert_int_eq(ext_reserve(m.file, i * BLOCK, BLOCK), BLOCK);
        ck_assert_int_eq(ext_reserve(other, i * BLOCK, BLOCK), BLOCK);
    }
    unsigned pieces = 0;
    for (uint64_t at = 0; at < 200 * BLOCK; pieces++) {
        struct extent extent;
        ck_assert_int_eq(ext_map(m.file, at, &extent), 0);
        at += extent.length;
    }
    ck_assert_uint_le(pieces, 200 / 7 + 3);
    ck_assert_int_eq(ext_truncate(other, 0), 0);
    volume_put(other, 1);
    model_close(&m);
}
END_TEST

START_TEST(no_space_changes_nothing) {
    struct model m;
    model_open(&m, 1 << 20, NULL);
    /* All but one block are taken: a block behind a new indirect block does not fit. */
    uint64_t blocks = 0;
    ck_assert_int_eq(ext_reserve(m.file, 0, 12 * BLOCK), 12 * BLOCK);
    while (m.ext->free_blocks > 1) {
        uint32_t count = (uint32_t)m.ext->free_blocks - 1;
        uint64_t block;
        ck_assert_int_eq(ext_blocks_allocate(m.ext, m.f.root, 0, &count, &block), 0);
        blocks += count;
    }
    m.free_before -= blocks;
    uint64_t sectors = m.file->sectors;
    ck_assert_int_eq(ext_reserve(m.file, 12 * BLOCK, BLOCK), -ENOSPC);
    ck_assert_int_eq(ext_reserve(m.file, (uint64_t)66000 * BLOCK, BLOCK), -ENOSPC);
    ck_assert_uint_eq(m.ext->free_blocks, 1);
    ck_assert_uint_eq(m.file->sectors, sectors);
    ck_assert_uint_eq(ext_inode_of(m.file)->block[EXT_IND], 0);
    ck_assert_int_eq(ext_reserve(m.file, 11 * BLOCK, 2 * BLOCK), BLOCK);
    model_close(&m);
}
END_TEST

START_TEST(a_file_has_a_largest_size) {
    struct ext_geometry geometry = {0};
    static const struct {
        uint32_t bits;
        uint64_t max;
    } sizes[] = {
        {10, UINT64_C(17247252480)},   /* the map's reach: 12 + 2^8 + 2^16 + 2^24 blocks */
        {11, UINT64_C(275415851008)},  /* likewise with 2^9 */
        {12, UINT64_C(2196873666560)}, /* i_blocks' reach, less the indirect blocks */
    };
    for (int i = 0; i < 3; i++) {
        geometry.block_bits = sizes[i].bits;
        geometry.block_size = 1u << sizes[i].bits;
        ck_assert_uint_eq(ext_indirect_size_max(&geometry, true), sizes[i].max);
        ck_assert_uint_eq(ext_indirect_size_max(&geometry, false), INT32_MAX);
    }
    struct model m;
    uint64_t physical, count;
    model_open(&m, 8 << 20, NULL);
    ck_assert_int_eq(ext_reserve(m.file, sizes[0].max, 1), -EFBIG);
    ck_assert_int_eq(ext_reserve(m.file, sizes[0].max - 1, 10), 1);
    ck_assert_int_eq(ext_bmap(m.file, sizes[0].max / BLOCK, &physical, &count), -EFBIG);
    model_close(&m);
}
END_TEST

/* Every way in refuses a pointer that leads out of the volume, into metadata, or in a circle. */
START_TEST(damaged_maps_are_refused) {
    struct model m;
    uint64_t physical, count, done;
    model_open(&m, 8 << 20, "errors=continue");
    m.f.log.emit = emit_nothing;
    struct ext_inode *private = ext_inode_of(m.file);
    const uint32_t bad[] = {(uint32_t)m.ext->geometry.blocks_count, UINT32_MAX, 1,
                            (uint32_t)m.ext->groups[0].inode_table,
                            (uint32_t)m.ext->groups[0].block_bitmap};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct extent extent;
        private->block[3] = bad[i];
        ck_assert_int_eq(ext_bmap(m.file, 3, &physical, &count), -EUCLEAN);
        ck_assert_int_eq(ext_map(m.file, 3 * BLOCK, &extent), -EUCLEAN);
        ck_assert_int_eq(ext_truncate(m.file, 0), -EUCLEAN);
        private->block[3] = 0;
        private->block[EXT_IND + 1] = bad[i];
        ck_assert_int_eq(ext_bmap(m.file, 300, &physical, &count), -EUCLEAN);
        ck_assert_int_eq(ext_bmap_allocate(m.file, 300, 1, &done), -EUCLEAN);
        ck_assert_int_eq(ext_truncate(m.file, 0), -EUCLEAN);
        ck_assert_int_eq(ext_blocks_each(m.file, model_visit, &m), -EUCLEAN);
        private->block[EXT_IND + 1] = 0;
    }
    /* A triple indirect block all of whose entries are itself. */
    ck_assert_int_eq(ext_bmap_allocate(m.file, 0, 1, &done), 0);
    uint32_t block = private->block[0];
    struct buffer *buffer;
    ck_assert_int_eq(buffer_get_zeroed(m.ext->buffers, block, PURPOSE_MAP, &buffer), 0);
    for (int i = 0; i < 256; i++)
        le32_store(&((le32 *)buffer_data(buffer))[i], block);
    buffer_dirty(buffer);
    buffer_put(buffer);
    private->block[0] = 0;
    private->block[EXT_IND + 2] = block;
    struct inode *file = m.file;
    ck_assert_int_eq(ext_truncate(file, 0), -EUCLEAN);
    private->block[EXT_IND + 2] = 0;
    ck_assert_int_eq(ext_blocks_free(m.ext, block, 1, true), 0);
    m.file->sectors = 0;
    model_close(&m);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_indirect");
    TCase *random = tcase_create("random");
    tcase_add_test(random, random_maps_by_goal);
    tcase_add_test(random, random_maps_by_first_fit);
    tcase_add_test(random, random_maps_on_a_full_volume);
    suite_add_tcase(suite, random);
    TCase *cases = tcase_create("cases");
    tcase_add_test(cases, a_new_file_is_one_run);
    tcase_add_test(cases, files_growing_side_by_side_are_kept_apart);
    tcase_add_test(cases, no_space_changes_nothing);
    tcase_add_test(cases, a_file_has_a_largest_size);
    tcase_add_test(cases, damaged_maps_are_refused);
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

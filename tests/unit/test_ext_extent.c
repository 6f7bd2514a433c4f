/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/extent*.c: random allocations, conversions, punches and truncations against a plain
 * array; trees of several levels that grow and shrink; running out of space; trees that are
 * damaged. e2fsck is the judge where it is installed.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "layouts/ext/extent.h"
#include "tests/unit/fixture.h"

#define BLOCK 1024u
/* An assertion for inner loops: Check's own tell the parent process of each success. */
#define ENSURE(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)
#define MODEL_BLOCKS 20000u

enum model_state { HOLE, WRITTEN, UNWRITTEN };

struct model {
    struct fixture f;
    struct ext *ext;
    struct inode *file;
    uint64_t free_before;
    uint32_t *physical; /* of each logical block */
    uint8_t *state;     /* enum model_state of each logical block */
    uint8_t *seen;      /* by physical block */
    uint64_t data, metadata, end;
};

/* For tests that provoke complaints. */
static void emit_nothing(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
}

/* An ext2 volume that has just learned of extents. */
static void extents_announce(struct volume *volume) {
    struct ext *ext = ext_of(volume);
    ext_feature_announce(ext, &ext->geometry.incompat, &ext->super.s_feature_incompat,
                         EXT_INCOMPAT_EXTENTS);
    volume->limits.file_size_max = ext_file_size_max(ext);
}

static void model_open(struct model *m, uint64_t size, const char *mount_options) {
    struct create_request request = {.mode = S_IFREG | 0644};
    memset(m, 0, sizeof *m);
    fixture_open(&m->f, "ext2", size, "block_size=1024,inode_ratio=65536", mount_options, true);
    m->ext = ext_of(m->f.volume);
    extents_announce(m->f.volume);
    ck_assert_int_eq(volume_create(m->f.root, "file", 4, &request, &m->file), 0);
    ck_assert(m->file->flags & EXT_INODE_EXTENTS);
    m->free_before = m->ext->free_blocks;
    m->physical = calloc(MODEL_BLOCKS, sizeof *m->physical);
    m->state = calloc(MODEL_BLOCKS, 1);
    m->seen = calloc(m->ext->geometry.blocks_count, 1);
    ck_assert(m->physical && m->state && m->seen);
}

static void image_save(struct volume *volume, const char *path) {
    static char block[1 << 16];
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    for (uint64_t at = 0; at < volume->device->size; at += sizeof block) {
        ck_assert_int_eq(device_read(volume->device, at, block, sizeof block, PURPOSE_OTHER), 0);
        ck_assert_uint_eq(fwrite(block, 1, sizeof block, file), sizeof block);
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* What others say to the volume as it is; nothing where e2fsck is not installed. */
static void image_judge(struct model *m) {
    char path[64], command[256];
    if (system("PATH=$PATH:/sbin:/usr/sbin command -v e2fsck >/dev/null") != 0)
        return;
    m->file->size = m->end * BLOCK;
    ck_assert_int_eq(ext_inode_store(m->file), 0);
    ck_assert_int_eq(volume_sync(m->f.volume), 0);
    snprintf(path, sizeof path, "extent-%d.img", getpid());
    image_save(m->f.volume, path);
    snprintf(command, sizeof command,
             "PATH=$PATH:/sbin:/usr/sbin; out=$(e2fsck -fn %s 2>&1) || { echo \"$out\"; false; }",
             path);
    ck_assert_int_eq(system(command), 0);
    unlink(path);
}

static void model_close(struct model *m) {
    ck_assert_int_eq(ext_truncate(m->file, 0), 0);
    ck_assert_uint_eq(m->file->sectors, 0);
    ck_assert_uint_eq(m->ext->free_blocks, m->free_before);
    m->file->size = 0;
    volume_put(m->file, 1);
    free(m->physical);
    free(m->state);
    free(m->seen);
    fixture_close(&m->f);
}

static int model_visit(void *context, const struct ext_run *run) {
    struct model *m = context;
    for (uint64_t i = 0; i < run->count; i++) {
        ENSURE(!m->seen[run->physical + i]);
        m->seen[run->physical + i] = 1;
    }
    if (run->level > 0) {
        m->metadata++;
        return 0;
    }
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t logical = run->logical + i;
        ENSURE(logical < MODEL_BLOCKS);
        ENSURE(m->state[logical] == (run->unwritten ? UNWRITTEN : WRITTEN));
        ENSURE(m->physical[logical] == run->physical + i);
    }
    m->data += run->count;
    m->end = run->logical + run->count;
    return 0;
}

static void model_verify(struct model *m) {
    uint64_t data = 0;
    memset(m->seen, 0, m->ext->geometry.blocks_count);
    m->data = m->metadata = m->end = 0;
    ck_assert_int_eq(ext_blocks_each(m->file, model_visit, m), 0);
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++)
        data += m->state[i] != HOLE;
    ck_assert_uint_eq(m->data, data);
    ck_assert_uint_eq(m->file->sectors, (m->data + m->metadata) * (BLOCK / 512));
    ck_assert_uint_eq(m->ext->free_blocks, m->free_before - m->data - m->metadata);

    for (uint64_t at = 0; at < MODEL_BLOCKS;) { /* the same by looking up */
        struct ext_run run;
        ENSURE(ext_lookup(m->file, at, &run) == 0);
        ENSURE(run.logical == at && run.count > 0);
        for (uint64_t i = at; i < at + run.count && i < MODEL_BLOCKS; i++) {
            ENSURE(m->state[i] == (!run.physical ? HOLE : run.unwritten ? UNWRITTEN : WRITTEN));
            ENSURE(!run.physical || m->physical[i] == run.physical + (i - at));
        }
        at += run.count;
    }
}

/* Takes over what the file has now in [from, to): old blocks must not have moved. */
static void model_adopt(struct model *m, uint64_t from, uint64_t to, enum model_state state) {
    for (uint64_t i = from; i < to; i++) {
        struct ext_run run;
        ENSURE(ext_lookup(m->file, i, &run) == 0);
        ENSURE(run.physical != 0);
        ENSURE(m->state[i] == HOLE || m->physical[i] == run.physical);
        m->physical[i] = (uint32_t)run.physical;
        if (m->state[i] == HOLE || state == WRITTEN)
            m->state[i] = (uint8_t)state;
    }
}

static void model_clear(struct model *m, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to && i < MODEL_BLOCKS; i++)
        m->state[i] = HOLE;
}

/* `longest`: blocks in one operation. */
static void model_step(struct model *m, uint64_t *state, uint64_t longest) {
    uint64_t from = fixture_random(state) % (MODEL_BLOCKS - longest - 1), done;
    uint64_t count = 1 + fixture_random(state) % longest;
    uint64_t offset = from * BLOCK + fixture_random(state) % BLOCK;
    uint64_t length = 1 + fixture_random(state) % (count * BLOCK);
    unsigned choice = (unsigned)(fixture_random(state) % 100);

    if (choice < 40) {
        int64_t got = ext_reserve(m->file, offset, length);
        if (got == -ENOSPC)
            return;
        ck_assert(got > 0 && (uint64_t)got <= length);
        model_adopt(m, from, (offset + (uint64_t)got + BLOCK - 1) / BLOCK, WRITTEN);
    } else if (choice < 65) {
        int rc = ext_extent_allocate(m->file, from, count, true, &done);
        if (rc == -ENOSPC)
            return;
        ck_assert_int_eq(rc, 0);
        model_adopt(m, from, from + done, UNWRITTEN);
    } else if (choice < 70) { /* taken out, and a hole put in elsewhere */
        uint64_t room = MODEL_BLOCKS - from - count;
        int rc = ext_collapse(m->file, from * BLOCK, count * BLOCK);
        if (rc == -ENOSPC)
            return;
        ck_assert_int_eq(rc, 0);
        memmove(m->state + from, m->state + from + count, room);
        memmove(m->physical + from, m->physical + from + count, room * sizeof *m->physical);
        model_clear(m, MODEL_BLOCKS - count, MODEL_BLOCKS);
        from = fixture_random(state) % (MODEL_BLOCKS - count);
        room = MODEL_BLOCKS - from - count;
        rc = ext_insert(m->file, from * BLOCK, count * BLOCK);
        if (rc == -ENOSPC)
            return;
        ck_assert_int_eq(rc, 0);
        memmove(m->state + from + count, m->state + from, room);
        memmove(m->physical + from + count, m->physical + from, room * sizeof *m->physical);
        model_clear(m, from, from + count);
    } else if (choice < 99) {
        int rc = ext_punch(m->file, offset, length);
        if (rc == -ENOSPC) /* a cut in the middle of an extent may need a block */
            return;
        ck_assert_int_eq(rc, 0);
        model_clear(m, (offset + BLOCK - 1) / BLOCK, (offset + length) / BLOCK);
    } else {
        m->file->size = (uint64_t)MODEL_BLOCKS * BLOCK; /* it shrinks */
        ck_assert_int_eq(ext_truncate(m->file, offset), 0);
        model_clear(m, (offset + BLOCK - 1) / BLOCK, MODEL_BLOCKS);
    }
}

static void run_model(uint64_t size, uint64_t longest, const char *mount_options,
                      const char *name) {
    struct model m;
    uint64_t state = fixture_seed(name);
    unsigned steps = 3000 * fixture_factor();
    model_open(&m, size, mount_options);
    for (unsigned step = 0; step < steps; step++) {
        model_step(&m, &state, longest);
        if (step % 10 == 0)
            model_verify(&m);
    }
    model_verify(&m);
    image_judge(&m);
    model_close(&m);
}

START_TEST(random_trees_of_short_extents) {
    run_model(64 << 20, 3, "alloc=goal", "random_trees_of_short_extents");
}
END_TEST

START_TEST(random_trees_of_long_extents) {
    run_model(64 << 20, 400, "alloc=goal", "random_trees_of_long_extents");
}
END_TEST

START_TEST(random_trees_by_first_fit) {
    run_model(64 << 20, 40, "alloc=first-fit", "random_trees_by_first_fit");
}
END_TEST

/* So small that most allocations end short. */
START_TEST(random_trees_on_a_full_volume) {
    run_model(1 << 20, 60, "alloc=goal", "random_trees_on_a_full_volume");
}
END_TEST

static uint32_t tree_depth(struct inode *file) {
    return le16_load(ext_inode_of(file)->extents.header.eh_depth);
}

/* Every other block: 30,000 extents, in an order that splits at the end, the front, or anywhere. */
static void run_deep(unsigned order) {
    struct model m;
    const uint64_t count = 30000;
    uint64_t done;
    model_open(&m, 64 << 20, "alloc=goal");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = order == 0 ? i : order == 1 ? count - 1 - i : i * 7919 % count;
        ENSURE(ext_bmap_allocate(m.file, at * 2, 1, &done) == 0);
    }
    ck_assert_uint_ge(tree_depth(m.file), 2);
    for (uint64_t i = 0; i < count; i++) {
        struct ext_run run;
        ENSURE(ext_lookup(m.file, i * 2, &run) == 0 && run.physical && run.count == 1);
        ENSURE(ext_lookup(m.file, i * 2 + 1, &run) == 0 && !run.physical);
    }
    if (order == 0) /* appended to: nodes are full */
        ck_assert_uint_le(m.file->sectors / 2, count + count / 84 + 10);
    m.end = count * 2 - 1;
    image_judge(&m);
    /* What is left fits into the inode again. */
    ck_assert_int_eq(ext_punch(m.file, 8 * BLOCK, (count * 2 - 10) * BLOCK), 0);
    ck_assert_int_eq(ext_truncate(m.file, 8 * BLOCK), 0);
    ck_assert_uint_eq(tree_depth(m.file), 0);
    ck_assert_uint_eq(m.file->sectors, 4 * (BLOCK / 512));
    model_close(&m);
}

START_TEST(deep_trees) {
    run_deep((unsigned)_i);
}
END_TEST

START_TEST(runs_merge_and_have_a_longest) {
    struct model m;
    struct ext_run run;
    uint64_t done;
    fixture_open(&m.f, "ext2", UINT64_C(1) << 30, "block_size=4096,inode_ratio=1048576", NULL,
                 true);
    extents_announce(m.f.volume);
    struct create_request request = {.mode = S_IFREG | 0644};
    ck_assert_int_eq(volume_create(m.f.root, "file", 4, &request, &m.file), 0);
    /* Across two groups, so that a run could be longer. */
    ck_assert_int_eq(ext_bmap_allocate(m.file, 0, 100, &done), 0);
    ck_assert_int_eq(ext_extent_allocate(m.file, 100, 60000, true, &done), 0);
    ck_assert_uint_eq(done, 60000);
    ck_assert_int_eq(ext_lookup(m.file, 0, &run), 0);
    ck_assert(run.count == 100 && !run.unwritten);
    for (uint64_t at = 100; at < 60100; at += run.count) {
        ck_assert_int_eq(ext_lookup(m.file, at, &run), 0);
        ck_assert(run.unwritten && run.count <= 32767);
    }
    /* Written to from the front, the written extent grows into the unwritten one. */
    for (uint64_t at = 100; at < 1000; at += 100)
        ck_assert_int_eq(ext_bmap_allocate(m.file, at, 100, &done), 0);
    ck_assert_int_eq(ext_lookup(m.file, 0, &run), 0);
    ck_assert(run.count == 1000 && !run.unwritten);
    ck_assert_uint_eq(tree_depth(m.file), 0);
    ck_assert_int_eq(ext_truncate(m.file, 0), 0);
    volume_put(m.file, 1);
    fixture_close(&m.f);
}
END_TEST

START_TEST(the_last_logical_block) {
    struct model m;
    uint64_t last = UINT32_MAX - 1, done;
    struct ext_run run;
    model_open(&m, 8 << 20, NULL);
    ck_assert_int_eq(ext_bmap_allocate(m.file, last, 1, &done), 0);
    ck_assert_int_eq(ext_bmap_allocate(m.file, last + 1, 1, &done), -EFBIG);
    ck_assert_int_eq(ext_lookup(m.file, last, &run), 0);
    ck_assert(run.physical && run.count == 1);
    ck_assert_int_eq(ext_lookup(m.file, UINT64_C(1) << 32, &run), -EFBIG);
    model_close(&m);
}
END_TEST

/* Every byte of a root and of a block in turn is set to anything: an answer or -EUCLEAN. */
START_TEST(damaged_trees_are_refused) {
    struct model m;
    uint64_t state = fixture_seed("damaged_trees_are_refused"), done;
    uint32_t saved[EXT_BLOCK_SLOTS];
    uint8_t block[BLOCK];
    struct buffer *buffer;
    static const struct log quiet = {emit_nothing, NULL, LOG_LEVEL_ERROR};
    model_open(&m, 4 << 20, "errors=continue");
    for (uint64_t i = 0; i < 100; i++)
        ENSURE(ext_bmap_allocate(m.file, i * 2, 1, &done) == 0);
    ck_assert_uint_eq(tree_depth(m.file), 1);
    m.f.volume->log = &quiet;
    uint64_t child = ext_extent_index_block((void *)ext_inode_of(m.file)->extents.entries);
    ck_assert_int_eq(buffer_get(m.ext->buffers, child, PURPOSE_MAP, &buffer), 0);
    memcpy(saved, ext_inode_of(m.file)->block, sizeof saved);
    memcpy(block, buffer_data(buffer), BLOCK);
    for (unsigned i = 0; i < 4000; i++) {
        uint8_t *root = (uint8_t *)ext_inode_of(m.file)->block, *node = buffer_data(buffer);
        struct ext_run run;
        if (i % 2)
            root[fixture_random(&state) % sizeof saved] = (uint8_t)fixture_random(&state);
        else
            node[fixture_random(&state) % 120] = (uint8_t)fixture_random(&state);
        buffer->checked = false;
        for (uint64_t at = 0; at < 200; at += 7) {
            int rc = ext_lookup(m.file, at, &run);
            ENSURE(rc == 0 || rc == -EUCLEAN || rc == -EIO);
            ENSURE(rc < 0 || run.count > 0);
        }
        memset(m.seen, 0, m.ext->geometry.blocks_count);
        memcpy(root, saved, sizeof saved);
        memcpy(node, block, BLOCK);
    }
    buffer_put(buffer);
    m.f.volume->log = &m.f.log;
    model_close(&m);
}
END_TEST

/* A log of 1 MiB, and groups so small that a large file has more bitmaps than fit into it. */
static void small_log_open(struct fixture *f, uint64_t size, struct inode **file) {
    struct create_request request = {.mode = S_IFREG | 0644};
    fixture_open(
        f, "ext4", size,
        "block_size=1024,blocks_per_group=256,journal_size=1M,features=^resize_inode:^64bit", "",
        true);
    ck_assert_int_eq(volume_create(f->root, "file", 4, &request, file), 0);
}

static void small_log_close(struct fixture *f, struct inode *file) {
    ck_assert_int_eq(volume_sync(f->volume), 0); /* fails when the journal was given up */
    volume_put(file, 1);
    fixture_close(f);
}

START_TEST(large_files_and_a_small_log) {
    const uint64_t size = 700 << 20, half = size / 2;
    struct attributes attributes;
    struct volume_usage before, after;
    struct fixture f;
    struct inode *file;
    small_log_open(&f, 900 << 20, &file);
    ck_assert_int_eq(volume_statfs(f.volume, &before), 0);
    ck_assert_int_eq(volume_fallocate(file, 0, 0, size), 0);
    ck_assert_int_eq(volume_write(file, "x", 1, size - 1), 1);
    ck_assert_int_eq(volume_fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 4096, half), 0);
    volume_getattr(file, &attributes);
    ck_assert_uint_eq(attributes.size, half);
    char last;
    ck_assert_int_eq(volume_read(file, &last, 1, half - 1), 1);
    ck_assert_int_eq(last, 'x');
    ck_assert_int_eq(
        volume_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, half / 2), 0);
    ck_assert_int_eq(volume_truncate(file, 0), 0);
    ck_assert_int_eq(volume_statfs(f.volume, &after), 0);
    ck_assert_uint_eq(after.free, before.free);
    small_log_close(&f, file);
}
END_TEST

/* What would have to move does not fit into one transaction: nothing changes. */
START_TEST(too_many_extents_to_move) {
    const uint64_t step = 2 * BLOCK, pieces = 30000;
    struct attributes attributes;
    struct fixture f;
    struct inode *file;
    uint8_t byte;
    small_log_open(&f, 64 << 20, &file);
    for (uint64_t i = 0; i < pieces; i++)
        ENSURE(volume_write(file, "x", 1, i * step) == 1);
    ck_assert_int_eq(volume_fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 0, step), -EOPNOTSUPP);
    ck_assert_int_eq(volume_fallocate(file, FALLOC_FL_INSERT_RANGE, 0, step), -EOPNOTSUPP);
    volume_getattr(file, &attributes);
    ck_assert_uint_eq(attributes.size, (pieces - 1) * step + 1);
    for (uint64_t i = 0; i < pieces; i++)
        ENSURE(volume_read(file, &byte, 1, i * step) == 1 && byte == 'x');
    /* Nearer to the end there is less. */
    ck_assert_int_eq(volume_fallocate(file, FALLOC_FL_COLLAPSE_RANGE, (pieces - 1000) * step, step),
                     0);
    ck_assert_int_eq(volume_fallocate(file, FALLOC_FL_INSERT_RANGE, (pieces - 1000) * step, step),
                     0);
    small_log_close(&f, file);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext extents");
    TCase *tcase = tcase_create("extents");
    tcase_set_timeout(tcase, 120 * (double)fixture_factor());
    tcase_add_test(tcase, random_trees_of_short_extents);
    tcase_add_test(tcase, random_trees_of_long_extents);
    tcase_add_test(tcase, random_trees_by_first_fit);
    tcase_add_test(tcase, random_trees_on_a_full_volume);
    tcase_add_loop_test(tcase, deep_trees, 0, 3);
    tcase_add_test(tcase, runs_merge_and_have_a_longest);
    tcase_add_test(tcase, the_last_logical_block);
    tcase_add_test(tcase, damaged_trees_are_refused);
    tcase_add_test(tcase, large_files_and_a_small_log);
    tcase_add_test(tcase, too_many_extents_to_move);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/volume_fallocate.c, fs/volume_copy.c and fs/credentials.c on every layout: preallocating,
 * taking ranges away, copying, and space that is kept for some; fs/pagecache.c: reading past it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include "tests/unit/fixture.h"

#define FILE_MAX (1u << 20)

static struct fixture f;

static void start(int type, const char *mkfs_options) {
    fixture_open(&f, fixture_types[type], 16 << 20, mkfs_options, NULL, true);
}

static struct inode *make(const char *name) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;

    ck_assert_int_eq(volume_create(f.root, name, strlen(name), &request, &inode), 0);
    return inode;
}

static uint64_t free_blocks(void) {
    struct volume_usage usage;

    ck_assert_int_eq(volume_statfs(f.volume, &usage), 0);
    return usage.free;
}

/* --- what a file should hold, and whether it does --------------------------------------------- */

struct model {
    uint32_t size;
    uint8_t data[FILE_MAX];
};

static void model_write(struct model *model, uint32_t offset, uint32_t length, uint8_t first) {
    for (uint32_t i = 0; i < length; i++)
        model->data[offset + i] = (uint8_t)(first + i * 7);
    if (model->size < offset + length)
        model->size = offset + length;
}

static void write_both(struct inode *inode, struct model *model, uint32_t offset, uint32_t length,
                       uint8_t first) {
    model_write(model, offset, length, first);
    ck_assert_int_eq(volume_write(inode, model->data + offset, length, offset), length);
}

static void compare(struct inode *inode, const struct model *model, const char *what) {
    static uint8_t bytes[FILE_MAX];

    ck_assert_msg(inode->size == model->size, "%s: size %llu, not %u", what,
                  (unsigned long long)inode->size, model->size);
    ck_assert_int_eq(volume_read(inode, bytes, FILE_MAX, 0), model->size);
    if (memcmp(bytes, model->data, model->size) == 0)
        return;
    for (uint32_t i = 0; i < model->size; i++)
        ck_assert_msg(bytes[i] == model->data[i], "%s: byte %u is %02x, not %02x", what, i,
                      bytes[i], model->data[i]);
}

static void model_cut(struct model *model, uint32_t size) {
    if (size < model->size)
        memset(model->data + size, 0, model->size - size);
    model->size = size;
}

/* What fallocate is to do to a file's bytes. */
static void model_fallocate(struct model *model, int mode, uint32_t offset, uint32_t length) {
    uint32_t end = offset + length;

    if (mode == FALLOC_FL_COLLAPSE_RANGE) {
        memmove(model->data + offset, model->data + end, model->size - end);
        model_cut(model, model->size - length);
        return;
    }
    if (mode == FALLOC_FL_INSERT_RANGE) {
        memmove(model->data + end, model->data + offset, model->size - offset);
        memset(model->data + offset, 0, length);
        model->size += length;
        return;
    }
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) && offset < model->size)
        memset(model->data + offset, 0, (end < model->size ? end : model->size) - offset);
    if (!(mode & FALLOC_FL_KEEP_SIZE) && end > model->size)
        model->size = end;
}

/* --- fallocate -------------------------------------------------------------------------------- */

/* Random changes of one file, each also made to the model. */
START_TEST(fallocate_random) {
    static const int modes[] = {
        0,
        FALLOC_FL_KEEP_SIZE,
        FALLOC_FL_ZERO_RANGE,
        FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
        FALLOC_FL_COLLAPSE_RANGE,
        FALLOC_FL_INSERT_RANGE,
    };
    static struct model model;
    uint64_t state = fixture_seed("fallocate_random") + (uint64_t)_i;
    unsigned done[7] = {0};
    bool refused[7] = {false};

    start(_i, NULL);
    memset(&model, 0, sizeof(model));
    struct inode *inode = make("file");
    for (unsigned step = 0; step < 2000 * fixture_factor(); step++) {
        uint32_t offset = (uint32_t)(fixture_random(&state) % (FILE_MAX / 4));
        uint32_t length = (uint32_t)(fixture_random(&state) % 40000) + 1;
        unsigned what = fixture_random(&state) % 10;
        if (fixture_random(&state) % 2) {
            offset &= ~(PAGE_SIZE_BYTES - 1);
            length = (length + PAGE_SIZE_BYTES - 1) & ~(PAGE_SIZE_BYTES - 1);
        }
        if (what < 2) {
            write_both(inode, &model, offset, length, (uint8_t)step);
        } else if (what == 2) {
            ck_assert_int_eq(volume_truncate(inode, offset), 0);
            model_cut(&model, offset);
        } else if (model.size + length < FILE_MAX) {
            int error = volume_fallocate(inode, modes[what - 3], offset, length);
            if (!error)
                model_fallocate(&model, modes[what - 3], offset, length);
            else
                ck_assert_msg(error == -EOPNOTSUPP || (what >= 8 && error == -EINVAL), "%d", error);
            done[what - 3] += !error;
            refused[what - 3] |= error == -EOPNOTSUPP;
        }
        if (step % 16 == 0 && step % 32)
            ck_assert_int_eq(volume_drop_caches(f.volume), 0);
        if (step % 8 == 0)
            compare(inode, &model, "after a change");
    }
    compare(inode, &model, "at the end");
    for (unsigned i = 0; i < 7; i++)
        ck_assert_msg(done[i] > 0 || (i >= 5 && refused[i]), "mode %x never worked",
                      (unsigned)modes[i]);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* Preallocated blocks behind the end are there, take space, and go with a truncate. */
START_TEST(preallocate_past_the_end) {
    start(_i, NULL);
    struct inode *inode = make("file");
    uint64_t free_before = free_blocks();
    char byte = 'x';

    ck_assert_int_eq(volume_write(inode, &byte, 1, 0), 1);
    int error = volume_fallocate(inode, FALLOC_FL_KEEP_SIZE, 0, 100000);
    if (!f.volume->layout->preallocate || strcmp(fixture_types[_i], "ext2") == 0 ||
        strcmp(fixture_types[_i], "ext3") == 0) {
        ck_assert_int_eq(error, -EOPNOTSUPP);
        ck_assert_int_eq(volume_fallocate(inode, FALLOC_FL_KEEP_SIZE, 0, 1), 0);
    } else {
        ck_assert_int_eq(error, 0);
        ck_assert_uint_eq(inode->size, 1);
        ck_assert_uint_ge(inode->sectors, 100000 / 512);
        ck_assert_int_eq(volume_truncate(inode, 50000), 0);
        ck_assert_uint_ge(inode->sectors, 100000 / 512);
        ck_assert_int_eq(volume_read(inode, &byte, 1, 49999), 1);
        ck_assert_int_eq(byte, 0);
        ck_assert_int_eq(
            volume_fallocate(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 90000, 10000), 0);
        ck_assert_uint_lt(inode->sectors, 100000 / 512);
        ck_assert_int_eq(volume_truncate(inode, 50000), 0);
        ck_assert_uint_le(inode->sectors, 53248 / 512);
    }
    ck_assert_int_eq(volume_truncate(inode, 0), 0);
    ck_assert_uint_eq(inode->sectors, 0);
    ck_assert_uint_eq(free_blocks(), free_before);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* More than there is room for changes nothing, also where zeros are written. */
START_TEST(preallocate_too_much) {
    start(_i, NULL);
    struct inode *inode = make("file");
    uint64_t size = fixture_size(fixture_types[_i], 16 << 20), free_before = free_blocks();

    if (strcmp(fixture_types[_i], "memory") == 0)
        size = UINT64_C(4) << 30;
    ck_assert_int_eq(volume_fallocate(inode, 0, 0, 2 * size), -ENOSPC);
    ck_assert_uint_eq(inode->size, 0);
    if (!f.volume->layout->preallocate || strcmp(fixture_types[_i], "ext2") == 0 ||
        strcmp(fixture_types[_i], "ext3") == 0)
        ck_assert_uint_eq(free_blocks(), free_before);
    ck_assert_int_eq(volume_truncate(inode, 0), 0);
    ck_assert_int_eq(volume_fallocate(inode, 0, 0, 100000), 0);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(shift_refused) {
    start(_i, NULL);
    struct inode *inode = make("file");
    uint32_t unit = f.volume->buffers ? buffer_block_size(f.volume->buffers) : PAGE_SIZE_BYTES;
    bool can = f.volume->layout->collapse;
    const struct {
        int mode;
        uint64_t offset, length;
        int error;
    } cases[] = {
        {FALLOC_FL_COLLAPSE_RANGE, 1, unit, -EINVAL},
        {FALLOC_FL_COLLAPSE_RANGE, 0, unit - 1, -EINVAL},
        {FALLOC_FL_COLLAPSE_RANGE, unit, 3 * unit, -EINVAL}, /* up to the end */
        {FALLOC_FL_COLLAPSE_RANGE, 5 * unit, unit, -EINVAL},
        {FALLOC_FL_INSERT_RANGE, 4 * unit, unit, -EINVAL}, /* at the end */
        {FALLOC_FL_INSERT_RANGE, unit, unit + 1, -EINVAL},
        {FALLOC_FL_INSERT_RANGE, 0, f.volume->limits.file_size_max / unit * unit, -EFBIG},
    };

    ck_assert_int_eq(volume_truncate(inode, 4 * unit), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ck_assert_int_eq(volume_fallocate(inode, cases[i].mode, cases[i].offset, cases[i].length),
                         can ? cases[i].error : -EOPNOTSUPP);
    ck_assert_int_eq(volume_fallocate(inode, FALLOC_FL_PUNCH_HOLE, 0, unit), -EOPNOTSUPP);
    ck_assert_int_eq(volume_fallocate(inode, 0, 0, 0), -EINVAL);
    ck_assert_uint_eq(inode->size, 4 * unit);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* --- copying ---------------------------------------------------------------------------------- */

START_TEST(copy_random) {
    static struct model models[2];
    uint64_t state = fixture_seed("copy_random") + (uint64_t)_i;

    start(_i, NULL);
    memset(models, 0, sizeof(models));
    struct inode *files[2] = {make("a"), make("b")};
    for (unsigned step = 0; step < 600 * fixture_factor(); step++) {
        uint32_t length = (uint32_t)(fixture_random(&state) % 100000) + 1;
        uint32_t from = (uint32_t)(fixture_random(&state) % 400000);
        uint32_t to = (uint32_t)(fixture_random(&state) % 400000);
        unsigned a = fixture_random(&state) % 2, b = fixture_random(&state) % 2;
        if (step % 4 == 0)
            write_both(files[a], &models[a], from, length / 8 + 1, (uint8_t)step);
        if (step % 16 == 0) {
            ck_assert_int_eq(volume_truncate(files[b], to), 0);
            model_cut(&models[b], to);
        }
        int64_t want = from >= models[a].size ? 0 : models[a].size - from;
        if (want > length)
            want = length;
        if (a == b && want > 0 && from < to + want && to < from + want)
            want = -EINVAL;
        ck_assert_int_eq(volume_copy(files[a], from, files[b], to, length), want);
        if (want > 0) {
            memcpy(models[b].data + to, models[a].data + from, (size_t)want);
            if (models[b].size < to + want)
                models[b].size = to + (uint32_t)want;
        }
        compare(files[b], &models[b], "the copy");
    }
    volume_put(files[0], 1);
    volume_put(files[1], 1);
    fixture_close(&f);
}
END_TEST

START_TEST(copy_rules) {
    char byte;

    start(_i, NULL);
    struct inode *source = make("source"), *target = make("target");
    ck_assert_int_eq(volume_write(source, "x", 1, 0), 1);
    ck_assert_int_eq(volume_write(source, "y", 1, 900000), 1);
    ck_assert_int_eq(volume_setattr(target, SETATTR_MODE, &(struct attributes){.mode = 06755}), 0);
    target->mtime.seconds = 1;
    /* Holes stay holes, where there was a hole and where there was data. */
    ck_assert_int_eq(volume_copy(source, 0, target, 0, UINT32_MAX), 900001);
    ck_assert_uint_eq(target->sectors, source->sectors);
    ck_assert_uint_eq(target->mode & 07777, 0755);
    ck_assert_int_ne(target->mtime.seconds, 1);
    ck_assert_int_eq(volume_copy(source, 4096, target, 0, 4096), 4096);
    ck_assert_uint_lt(target->sectors, source->sectors);
    ck_assert_int_eq(volume_read(target, &byte, 1, 0), 1);
    ck_assert_int_eq(byte, 0);
    /* Nothing, and what is refused. */
    ck_assert_int_eq(volume_copy(source, 900001, target, 0, 1), 0);
    ck_assert_int_eq(volume_copy(source, 0, target, 0, 0), 0);
    ck_assert_int_eq(volume_copy(source, 0, source, 99, 100), -EINVAL);
    ck_assert_int_eq(volume_copy(source, 0, source, 100, 100), 100);
    ck_assert_int_eq(volume_copy(f.root, 0, target, 0, 1), -EISDIR);
    ck_assert_int_eq(volume_copy(source, 0, f.root, 0, 1), -EISDIR);
    ck_assert_int_eq(volume_copy(source, 0, target, f.volume->limits.file_size_max, 1), -EFBIG);
    ck_assert_int_eq(volume_copy(source, UINT64_MAX, target, 0, 1), -EOVERFLOW);
    target->flags |= INODE_IMMUTABLE;
    ck_assert_int_eq(volume_copy(source, 0, target, 0, 1), -EPERM);
    volume_put(source, 1);
    volume_put(target, 1);
    fixture_close(&f);
}
END_TEST

/* --- space that is kept ------------------------------------------------------------------------
 */

static int64_t write_all(struct inode *inode, uint64_t *offset) {
    static const char bytes[65536];
    int64_t result;

    while ((result = volume_write(inode, bytes, sizeof(bytes), *offset)) > 0)
        *offset += (uint64_t)result;
    return result;
}

START_TEST(reserved_space) {
    const struct create_request request = {.mode = S_IFDIR | 0755};
    const struct credentials plain = {1000, 1000};
    struct volume_usage usage;
    uint64_t offset = 0, before;

    /* What a log keeps back is for its cleaner, and Reiser4 for commits, whoever asks. */
    if (strcmp(fixture_types[_i], "memory") == 0 || strcmp(fixture_types[_i], "nilfs2") == 0 ||
        strcmp(fixture_types[_i], "reiser4") == 0)
        return;
    start(_i, "reserved=5");
    struct inode *inode = make("file");
    credentials_set(plain);
    do { /* storing may take less than was promised */
        before = offset;
        ck_assert_int_eq(write_all(inode, &offset), -ENOSPC);
        ck_assert_int_eq(volume_sync(f.volume), 0);
    } while (offset > before);
    ck_assert_int_eq(volume_statfs(f.volume, &usage), 0);
    ck_assert_uint_eq(usage.available, 0);
    ck_assert_uint_ge(usage.free, usage.blocks / 25);
    /* A file may have needed more than what is left, for its map: directories take that. */
    int directories = 0, error;
    char name[2] = "a";
    while ((error = volume_create(f.root, name, 1, &request, NULL)) == 0) {
        ck_assert_int_le(++directories, 4);
        name[0]++;
    }
    ck_assert_int_eq(error, -ENOSPC);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    /* The privileged use them up. */
    credentials_set((struct credentials){0});
    ck_assert_int_eq(volume_create(f.root, "dir", 3, &request, NULL), 0);
    ck_assert_int_eq(write_all(inode, &offset), -ENOSPC);
    ck_assert_uint_le(free_blocks(), 8);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

#define CHURN_FILES 64
#define CHURN_BYTES 150000

/* A file's name in a full volume, and how much of it was accepted. */
struct churn_file {
    char name[8];
    int64_t accepted; /* -1: there is none */
};

static void churn_remove(struct churn_file *file) {
    if (file->accepted >= 0)
        ck_assert_int_eq(volume_unlink(f.root, file->name, (uint32_t)strlen(file->name)), 0);
    file->accepted = -1;
}

/* Writes as much as is accepted, all of it the byte `fill`; sometimes an fsync must keep it. */
static void churn_write(struct churn_file *file, uint8_t fill, bool sync) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    static uint8_t bytes[CHURN_BYTES];
    struct inode *inode;
    int error = volume_create(f.root, file->name, (uint32_t)strlen(file->name), &request, &inode);

    if (error) {
        ck_assert_int_eq(error, -ENOSPC);
        return;
    }
    memset(bytes, fill, sizeof(bytes));
    int64_t written = volume_write(inode, bytes, sizeof(bytes), 0);
    ck_assert(written > 0 || written == -ENOSPC);
    file->accepted = written > 0 ? written : 0;
    ck_assert_uint_eq(inode->size, (uint64_t)file->accepted);
    if (sync)
        ck_assert_int_eq(volume_fsync(inode, false), 0);
    volume_put(inode, 1);
}

static void churn_compare(const struct churn_file *file, uint8_t fill) {
    static uint8_t bytes[CHURN_BYTES];
    struct inode *inode;

    if (file->accepted < 0)
        return;
    ck_assert_int_eq(volume_lookup(f.root, file->name, (uint32_t)strlen(file->name), &inode), 0);
    ck_assert_int_eq(volume_read(inode, bytes, sizeof(bytes), 0), file->accepted);
    for (int64_t i = 0; i < file->accepted; i++)
        ck_assert_int_eq(bytes[i], fill);
    volume_put(inode, 1);
}

/* What is removed on a full volume makes room, which for some is there only after a commit: what is
 * accepted is stored all the same, in the cache (direct = 0) and past it. */
START_TEST(full_and_changing) {
    static struct churn_file files[CHURN_FILES];
    uint8_t fills[CHURN_FILES] = {0};
    const char *type = fixture_types[_i / 2];
    uint64_t seed = fixture_seed("full_and_changing");

    if (strcmp(type, "memory") == 0 || strcmp(type, "nilfs2") == 0)
        return; /* the one is not full so soon, the other too large to be filled in a moment */
    fixture_open(&f, type, 12 << 20, NULL, NULL, false);
    f.volume->direct_write_bytes = _i % 2 ? PAGE_SIZE_BYTES : 0;
    for (int i = 0; i < CHURN_FILES; i++) {
        snprintf(files[i].name, sizeof(files[i].name), "f%d", i);
        files[i].accepted = -1;
    }
    for (unsigned round = 0; round < 400 * fixture_factor(); round++) {
        unsigned which = (unsigned)(fixture_random(&seed) % CHURN_FILES);
        churn_remove(&files[which]);
        fills[which] = (uint8_t)(1 + round % 255);
        churn_write(&files[which], fills[which], round % 7 == 0);
    }
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    for (int i = 0; i < CHURN_FILES; i++)
        churn_compare(&files[i], fills[i]);
    fixture_close(&f);
}
END_TEST

START_TEST(who_may_use_reserved) {
    const struct {
        struct credentials who;
        uint32_t uid, gid;
        bool may;
    } cases[] = {
        {{0, 0}, 5, 6, true},  {{5, 9}, 5, 0, true},  {{9, 6}, 5, 6, true},
        {{9, 9}, 5, 6, false}, {{9, 0}, 5, 0, false}, {{9, 9}, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct credentials before = credentials_set(cases[i].who);
        ck_assert_uint_eq(before.uid, i ? cases[i - 1].who.uid : 0);
        ck_assert_int_eq(credentials_may_use_reserved(cases[i].uid, cases[i].gid), cases[i].may);
    }
}
END_TEST

/* --- reading past the cache --------------------------------------------------------------------
 */

/* Some pages are cached, some only stored, and the last one ends behind the file; what is read is
 * the same, and nothing is written behind the buffer. */
START_TEST(reads_past_the_cache) {
    static struct model model;
    static uint8_t bytes[FILE_MAX + 1];
    uint64_t seed = fixture_seed("reads_past_the_cache");
    struct inode *inode;

    start(_i, NULL);
    f.volume->direct_read_bytes = PAGE_SIZE_BYTES;
    inode = make("file");
    model = (struct model){0};
    for (unsigned round = 0; round < 60 * fixture_factor(); round++) {
        uint32_t offset = (uint32_t)(fixture_random(&seed) % 200000);
        write_both(inode, &model, offset, 1 + (uint32_t)(fixture_random(&seed) % 20000),
                   (uint8_t)round);
        if (round % 3 == 0)
            ck_assert_int_eq(volume_drop_caches(f.volume), 0);
        for (unsigned i = 0; i < 10; i++) {
            uint32_t from = (uint32_t)(fixture_random(&seed) % model.size);
            uint32_t room = 1 + (uint32_t)(fixture_random(&seed) % (FILE_MAX / 4));
            if (i % 2 == 0)
                from -= from % PAGE_SIZE_BYTES;
            int64_t expected = room < model.size - from ? room : model.size - from;
            bytes[room] = 0xA5;
            ck_assert_int_eq(volume_read(inode, bytes, room, from), expected);
            ck_assert_int_eq(memcmp(bytes, model.data + from, (size_t)expected), 0);
            ck_assert_int_eq(bytes[room], 0xA5);
        }
    }
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("volume_data");
    TCase *tests = tcase_create("data");

    tcase_add_loop_test(tests, fallocate_random, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, preallocate_past_the_end, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, preallocate_too_much, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, shift_refused, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, copy_random, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, copy_rules, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, reads_past_the_cache, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, reserved_space, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, full_and_changing, 0, 2 * FIXTURE_TYPE_COUNT);
    tcase_add_test(tests, who_may_use_reserved);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

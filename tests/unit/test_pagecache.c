/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests of the page tree, the page cache, write-back and the volume's data half: a file against a
 * plain array of bytes with a cache too small for it, from one thread and from several.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include "fs/device/disk.h"
#include "fs/page_tree.h"
#include "fs/pagecache.h"
#include "tests/unit/fixture.h"

#define VOLUME_SIZE (UINT64_C(64) << 20)
#define FILE_MAX    (3u << 20)
#define TREE_PAGES  600u

/* --- the page tree ------------------------------------------------------------------------------
 */

/* Indexes that need trees of any height, some close together. */
static uint64_t tree_index(uint64_t *random) {
    uint64_t value = fixture_random(random);

    return value % 200 >> (value >> 32) % 8 | (value >> 40 & 3) << (value >> 48) % 50;
}

static void tree_check(const struct page_tree *tree, struct page *pages, const bool *used,
                       uint64_t from, bool dirty) {
    struct page *expected = NULL;

    for (unsigned i = 0; i < TREE_PAGES; i++)
        if (used[i] && pages[i].index >= from && (pages[i].dirty || !dirty) &&
            (!expected || pages[i].index < expected->index))
            expected = &pages[i];
    ck_assert_ptr_eq(page_tree_next(tree, from, dirty), expected);
}

START_TEST(test_page_tree) {
    static struct page pages[TREE_PAGES];
    static bool used[TREE_PAGES];
    struct recycler nodes = {.size = page_node_size};
    struct page_tree tree = {0};
    uint64_t random = fixture_seed("page_tree"), count = 0;

    for (unsigned step = 0; step < 40000; step++) {
        unsigned i = (unsigned)(fixture_random(&random) % TREE_PAGES);

        if (!used[i]) {
            pages[i] = (struct page){.index = tree_index(&random)};
            if (page_tree_find(&tree, pages[i].index))
                continue;
            ck_assert_int_eq(page_tree_insert(&tree, &nodes, &pages[i]), 0);
            used[i] = true;
            count++;
        } else if (fixture_random(&random) % 3) {
            page_tree_set_dirty(&tree, &pages[i], fixture_random(&random) % 2);
        } else {
            page_tree_remove(&tree, &nodes, &pages[i]);
            ck_assert_ptr_null(page_tree_find(&tree, pages[i].index));
            used[i] = false;
            count--;
        }
        ck_assert_uint_eq(tree.count, count);
        if (used[i])
            ck_assert_ptr_eq(page_tree_find(&tree, pages[i].index), &pages[i]);
        if (step % 16 == 0) {
            tree_check(&tree, pages, used, tree_index(&random), step % 32);
            tree_check(&tree, pages, used, pages[i].index, true);
        }
    }
    for (unsigned i = 0; i < TREE_PAGES; i++)
        if (used[i])
            page_tree_remove(&tree, &nodes, &pages[i]);
    ck_assert_ptr_null(tree.root);
    ck_assert_uint_eq(tree.dirty, 0);
    recycle_drain(&nodes);
}
END_TEST

/* --- a file against an array --------------------------------------------------------------------
 */

struct model {
    struct fixture *fixture;
    struct inode *inode;
    unsigned char *bytes, *scratch;
    uint64_t size;
    uint64_t random;
};

static uint64_t below(struct model *model, uint64_t limit) {
    return limit ? fixture_random(&model->random) % limit : 0;
}

/* Lengths from a byte to some hundred KB, small ones as likely as large ones; often page-sized. */
static uint64_t any_length(struct model *model) {
    uint64_t length = 1 + below(model, UINT64_C(1) << below(model, 19));

    return below(model, 4) ? length : (length + 4095) / 4096 * 4096;
}

static uint64_t any_offset(struct model *model) {
    uint64_t limit = below(model, 3) ? model->size + 20000 : FILE_MAX;
    uint64_t offset = below(model, limit < FILE_MAX ? limit : FILE_MAX);

    return below(model, 4) ? offset : offset / 4096 * 4096;
}

static uint64_t cut(uint64_t offset, uint64_t length, uint64_t end) {
    return offset >= end ? 0 : length < end - offset ? length : end - offset;
}

static struct inode *make_file(struct fixture *f, const char *name) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;

    ck_assert_int_eq(volume_create(f->root, name, (uint32_t)strlen(name), &request, &inode), 0);
    return inode;
}

static void model_write(struct model *model) {
    uint64_t offset = any_offset(model), length = cut(offset, any_length(model), FILE_MAX);
    int value = (int)below(model, 256);

    for (uint64_t i = 0; i < length; i++)
        model->bytes[offset + i] = (unsigned char)(value + i * 7 + i / 4096);
    ck_assert_int_eq(volume_write(model->inode, model->bytes + offset, length, offset),
                     (int64_t)length);
    if (length && offset + length > model->size)
        model->size = offset + length;
}

static void model_compare(struct model *model, uint64_t offset, uint64_t length) {
    uint64_t expected = cut(offset, length, model->size);

    memset(model->scratch, 0xee, length);
    ck_assert_int_eq(volume_read(model->inode, model->scratch, length, offset), (int64_t)expected);
    for (uint64_t i = 0; i < expected; i++)
        if (model->scratch[i] != model->bytes[offset + i])
            ck_abort_msg("byte %llu of a read of %llu at %llu, file of %llu: %02x, not %02x",
                         (unsigned long long)i, (unsigned long long)length,
                         (unsigned long long)offset, (unsigned long long)model->size,
                         model->scratch[i], model->bytes[offset + i]);
}

static void model_truncate(struct model *model) {
    uint64_t size = any_offset(model);

    ck_assert_int_eq(volume_truncate(model->inode, size), 0);
    if (size < model->size)
        memset(model->bytes + size, 0, model->size - size);
    model->size = size;
}

static void model_fallocate(struct model *model) {
    uint64_t offset = any_offset(model), length = cut(offset, any_length(model), FILE_MAX);
    uint64_t end = offset + length;
    unsigned kind = (unsigned)below(model, 3);

    if (length == 0)
        return;
    if (kind == 0) {
        ck_assert_int_eq(volume_fallocate(model->inode, 0, offset, length), 0);
    } else if (kind == 1) {
        ck_assert_int_eq(volume_fallocate(model->inode, FALLOC_FL_ZERO_RANGE, offset, length), 0);
        memset(model->bytes + offset, 0, length);
    } else {
        int error = volume_fallocate(model->inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                     offset, length);
        if (error == -EOPNOTSUPP)
            return;
        ck_assert_int_eq(error, 0);
        memset(model->bytes + offset, 0, length);
        end = 0;
    }
    if (end > model->size)
        model->size = end;
}

/* Holes must read as zeros, and data and holes must alternate up to the end. */
static void model_seek(struct model *model) {
    uint64_t at = 0;

    while (at < model->size) {
        int64_t data = volume_seek(model->inode, at, SEEK_DATA);
        uint64_t hole_end = data < 0 ? model->size : (uint64_t)data;

        ck_assert(data >= 0 || data == -ENXIO);
        ck_assert_uint_ge(hole_end, at);
        for (uint64_t i = at; i < hole_end; i++)
            if (model->bytes[i] != 0)
                ck_abort_msg("byte %llu is in a hole", (unsigned long long)i);
        if (data < 0)
            break;
        at = (uint64_t)volume_seek(model->inode, hole_end, SEEK_HOLE);
        ck_assert_uint_gt(at, hole_end);
    }
    ck_assert_int_eq(volume_seek(model->inode, model->size, SEEK_HOLE), -ENXIO);
}

static void model_maintain(struct model *model) {
    switch (below(model, 4)) {
    case 0:
        ck_assert_int_eq(volume_fsync(model->inode, below(model, 2)), 0);
        break;
    case 1:
        ck_assert_int_eq(volume_drop_caches(model->fixture->volume), 0);
        break;
    case 2:
        model->fixture->clock.now_ns += 40 * NS_PER_SEC; /* of no account in wall mode */
        break;
    default:
        model_seek(model);
    }
}

static void model_step(struct model *model) {
    uint64_t kind = below(model, 100);

    if (kind < 40)
        model_write(model);
    else if (kind < 80)
        model_compare(model, any_offset(model), any_length(model));
    else if (kind < 88)
        model_truncate(model);
    else if (kind < 93)
        model_fallocate(model);
    else
        model_maintain(model);
}

static void model_run(struct fixture *f, const char *name, unsigned steps) {
    struct model model = {.fixture = f, .inode = make_file(f, "file")};
    struct attributes attributes;

    model.bytes = calloc(1, FILE_MAX);
    model.scratch = malloc(FILE_MAX);
    model.random = fixture_seed(name);
    for (unsigned i = 0; i < steps; i++) {
        model_step(&model);
        volume_getattr(model.inode, &attributes);
        ck_assert_uint_eq(attributes.size, model.size);
    }
    model_compare(&model, 0, model.size);
    ck_assert_int_eq(volume_drop_caches(f->volume), 0);
    model_compare(&model, 0, model.size);
    volume_put(model.inode, 1);
    free(model.bytes);
    free(model.scratch);
}

/* The cases of the loop tests below: a type, how it is formatted, and the clock. */
static const struct {
    const char *type, *mkfs_options;
    bool virtual_time;
} cases[] = {
    {"memory", NULL, true},
    {"memory", NULL, false},
    {"ext2", "block_size=4096", true},
    {"ext2", "block_size=1024", true},
    {"ext2", "block_size=1024", false},
};
#define CASES ((int)(sizeof(cases) / sizeof(*cases)))

START_TEST(test_against_array) {
    struct fixture f;

    fixture_open(&f, cases[_i].type, VOLUME_SIZE, cases[_i].mkfs_options, "cache=1M",
                 cases[_i].virtual_time);
    model_run(&f, cases[_i].type, 3000 * fixture_factor());
    fixture_close(&f);
}
END_TEST

/* --- over a modelled disk, where requests stay in flight ------------------------------------- */

static int first_preset(void *context, const struct disk_preset *preset) {
    *(struct disk_preset *)context = *preset;
    return 1;
}

/* Moves a freshly formatted ext2 volume from memory alone to a modelled disk over it. */
static void open_on_disk(struct fixture *f, const char *mount_options) {
    struct disk_preset preset;
    struct device *ram, *disk;
    struct options options;
    const struct layout *layout;
    const struct layout_type *type;

    memset(f, 0, sizeof(*f));
    clock_init_virtual(&f->clock, NULL);
    f->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(disk_each_preset(first_preset, &preset), 1);
    ck_assert_int_eq(device_open_ram(VOLUME_SIZE, &f->clock, &f->log, &ram), 0);
    ck_assert_int_eq(device_open_disk(&preset, ram, &disk), 0);
    ck_assert_int_eq(layout_find("ext2", &layout, &type), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &f->log), 0);
    ck_assert_int_eq(layout_format("ext2", disk, &options), 0);
    options_free(&options);
    struct volume_config config = {.type = "ext2",
                                   .device = disk,
                                   .clock = &f->clock,
                                   .log = &f->log,
                                   .options = mount_options};
    ck_assert_int_eq(volume_open(&config, &f->volume), 0);
    ck_assert_int_eq(volume_root(f->volume, &f->root), 0);
}

START_TEST(test_on_a_modelled_disk) {
    struct fixture f;

    open_on_disk(&f, "cache=1M");
    model_run(&f, "disk", 3000 * fixture_factor());
    fixture_close(&f);
}
END_TEST

#define STREAM_SIZE (UINT64_C(8) << 20)

/* How long a cold sequential reader waits that works for work_ns after every 64 KiB. */
static int64_t stream_wait(struct fixture *f, struct inode *inode, int64_t work_ns) {
    static char data[1 << 16];
    int64_t waited = 0;

    ck_assert_int_eq(volume_drop_caches(f->volume), 0);
    for (uint64_t at = 0; at < STREAM_SIZE; at += sizeof(data)) {
        int64_t started = f->clock.now_ns;

        ck_assert_int_eq(volume_read(inode, data, sizeof(data), at), (int64_t)sizeof(data));
        waited += f->clock.now_ns - started;
        f->clock.now_ns += work_ns;
    }
    return waited;
}

/* The disk reads the next window while the reader works on this one, but no data is used before it
 * has come. */
START_TEST(test_read_ahead_overlaps) {
    struct fixture f;
    struct inode *inode;
    int64_t busy, idle;

    open_on_disk(&f, NULL);
    inode = make_file(&f, "file");
    ck_assert_int_eq(volume_fallocate(inode, 0, 0, STREAM_SIZE), 0);
    busy = stream_wait(&f, inode, NS_PER_SEC / 5);
    idle = stream_wait(&f, inode, 0);
    /* The first window and map blocks are waited for by both. */
    ck_assert_int_lt(busy, 100 * NS_PER_MS);
    ck_assert_int_gt(idle, 2 * busy);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* Other systems may leave old bytes behind the end of a file: they never become visible. */
START_TEST(test_old_bytes_behind_the_end) {
    static char junk[4096 - 512];
    char byte[4096];
    struct fixture f;
    struct inode *inode;
    struct extent extent;

    fixture_open(&f, "ext2", VOLUME_SIZE, "block_size=4096", NULL, true);
    inode = make_file(&f, "file");
    memset(junk, 'j', sizeof(junk));
    for (unsigned growing = 0; growing < 2; growing++) {
        ck_assert_int_eq(volume_truncate(inode, 0), 0);
        ck_assert_int_eq(volume_write(inode, "abc", 3, 0), 3);
        ck_assert_int_eq(volume_drop_caches(f.volume), 0);
        ck_assert_int_eq(volume_map(inode, 0, &extent), 0);
        ck_assert_int_eq(device_write(f.volume->device, extent.device_offset + 512, junk,
                                      sizeof(junk), PURPOSE_DATA),
                         0);
        if (growing)
            ck_assert_int_eq(volume_truncate(inode, 4096), 0);
        else
            ck_assert_int_eq(volume_write(inode, "x", 1, 4096), 1);
        ck_assert_int_eq(volume_drop_caches(f.volume), 0);
        ck_assert_int_eq(volume_read(inode, byte, sizeof(byte), 0), (int64_t)sizeof(byte));
        ck_assert(byte[3] == 0 && memcmp(byte + 3, byte + 4, sizeof(byte) - 4) == 0);
    }
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* A writer is held up by the disk only after it has filled the dirty limit. */
START_TEST(test_writer_runs_ahead_of_the_disk) {
    static char data[1 << 16];
    struct fixture f;
    struct inode *inode;
    int64_t started = 0;

    open_on_disk(&f, "cache=16M");
    inode = make_file(&f, "file");
    for (unsigned i = 0; i < 512; i++) {
        ck_assert_int_eq(volume_write(inode, data, sizeof(data), (uint64_t)i * sizeof(data)),
                         (int64_t)sizeof(data));
        if (i == 0) /* metadata was read */
            started = f.clock.now_ns;
        if (i == 15)
            ck_assert_int_eq(f.clock.now_ns, started);
        ck_assert_uint_le(f.volume->pool.used_bytes, f.volume->pool.budget_bytes);
    }
    ck_assert_int_gt(f.clock.now_ns - started, 100 * NS_PER_MS);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* --- limits --------------------------------------------------------------------------------------
 */

START_TEST(test_read_write_edges) {
    struct fixture f;
    struct inode *inode;
    char byte = 'x';

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, NULL, true);
    inode = make_file(&f, "file");
    ck_assert_int_eq(volume_read(inode, &byte, 1, 0), 0);
    ck_assert_int_eq(volume_write(inode, &byte, 0, 5), 0);
    ck_assert_int_eq(volume_write(inode, &byte, 1, UINT64_MAX), -EFBIG);
    ck_assert_int_eq(volume_write(inode, &byte, 1, f.volume->limits.file_size_max), -EFBIG);
    ck_assert_int_eq(volume_truncate(inode, f.volume->limits.file_size_max + 1), -EFBIG);
    ck_assert_int_eq(volume_read(f.root, &byte, 1, 0), -EISDIR);
    ck_assert_int_eq(volume_write(f.root, &byte, 1, 0), -EISDIR);
    ck_assert_int_eq(volume_fallocate(inode, 0, 0, 0), -EINVAL);
    ck_assert_int_eq(volume_fallocate(inode, FALLOC_FL_UNSHARE_RANGE, 0, 4096), -EOPNOTSUPP);
    ck_assert_int_eq(volume_seek(inode, 0, SEEK_SET), -EINVAL);
    ck_assert_int_eq(volume_seek(inode, 0, SEEK_DATA), -ENXIO);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(test_flags_and_set_id) {
    struct fixture f;
    struct inode *inode;
    struct attributes attributes = {.mode = 06755, .flags = INODE_APPEND};

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, NULL, true);
    inode = make_file(&f, "file");
    ck_assert_int_eq(volume_setattr(inode, SETATTR_MODE, &attributes), 0);
    ck_assert_int_eq(volume_write(inode, "abc", 3, 0), 3);
    volume_getattr(inode, &attributes);
    ck_assert_uint_eq(attributes.mode, S_IFREG | 0755);
    attributes.flags = INODE_APPEND;
    ck_assert_int_eq(volume_setattr(inode, SETATTR_FLAGS, &attributes), 0);
    ck_assert_int_eq(volume_write(inode, "abc", 3, 0), -EPERM);
    ck_assert_int_eq(volume_truncate(inode, 1), -EPERM);
    ck_assert_int_eq(volume_write(inode, "def", 3, 3), 3);
    attributes.flags = INODE_IMMUTABLE;
    ck_assert_int_eq(volume_setattr(inode, SETATTR_FLAGS, &attributes), 0);
    ck_assert_int_eq(volume_write(inode, "ghi", 3, 6), -EPERM);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(test_full_volume) {
    static char data[1 << 18];
    struct fixture f;
    struct inode *inode;
    uint64_t written = 0;
    int64_t result;

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, "size=1M,cache=4M", true);
    inode = make_file(&f, "file");
    memset(data, 'x', sizeof(data));
    while ((result = volume_write(inode, data, sizeof(data) - 100, written)) > 0)
        written += (uint64_t)result;
    ck_assert_int_eq(result, -ENOSPC);
    ck_assert_uint_eq(written, 1 << 20); /* the last write was a short one */
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    for (uint64_t at = 0; at < written; at += (uint64_t)result) {
        result = volume_read(inode, data, sizeof(data), at);
        ck_assert_int_gt(result, 0);
        ck_assert(data[0] == 'x' && memcmp(data, data + 1, (size_t)result - 1) == 0);
    }
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* Two uses, so that the page outlives pages used once. */
static void read_twice(struct inode *inode, uint64_t page) {
    char byte;

    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(volume_read(inode, &byte, 1, page * 4096 + 1), 1);
}

/* A read as large as the cache, most of which others use: loading what is missing after a cached
 * page must not evict what has been loaded before it. */
START_TEST(test_read_larger_than_the_cache) {
    static char data[1 << 20];
    struct fixture f;
    struct inode *inode, *other;

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, "cache=1M", cases[_i].virtual_time);
    inode = make_file(&f, "file");
    other = make_file(&f, "other");
    memset(data, 'x', sizeof(data));
    ck_assert_int_eq(volume_write(inode, data, sizeof(data), 0), (int64_t)sizeof(data));
    ck_assert_int_eq(volume_write(other, data, sizeof(data), 0), (int64_t)sizeof(data));
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    for (uint64_t page = 0; page < 160; page++)
        read_twice(other, page);
    read_twice(inode, 128);
    memset(data, 0, sizeof(data));
    ck_assert_int_eq(volume_read(inode, data, sizeof(data), 0), (int64_t)sizeof(data));
    ck_assert(data[0] == 'x' && memcmp(data, data + 1, sizeof(data) - 1) == 0);
    volume_put(other, 1);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(test_dirty_data_is_bounded) {
    static char data[1 << 16];
    struct fixture f;
    struct inode *inode;

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, "cache=4M", true);
    inode = make_file(&f, "file");
    for (unsigned i = 0; i < 256; i++) {
        ck_assert_int_eq(volume_write(inode, data, sizeof(data), (uint64_t)i * sizeof(data)),
                         (int64_t)sizeof(data));
        ck_assert_uint_le(f.volume->pool.used_bytes, f.volume->pool.budget_bytes);
    }
    ck_assert(page_cache_has_dirty(inode));
    f.clock.now_ns += 60 * NS_PER_SEC; /* everything left is old now */
    ck_assert_int_eq(volume_tick(f.volume), 0);
    ck_assert(!page_cache_has_dirty(inode));
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* Above the background limit write-back stores a piece of the file; or, for a layout that wants it
 * so, the whole. */
START_TEST(test_write_back_in_sweeps) {
    static char data[1 << 16];
    bool sweeps = _i;
    struct fixture f;

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, "cache=64M", true);
    f.volume->store_sweeps = sweeps;
    struct inode *inode = make_file(&f, "file");
    for (uint64_t at = 0; page_cache_next_dirty(inode, 0) == 0 || at == 0; at += sizeof(data)) {
        ck_assert_int_eq(volume_write(inode, data, sizeof(data), at), (int64_t)sizeof(data));
        ck_assert_uint_lt(at, 8 << 20);
    }
    ck_assert(page_cache_has_dirty(inode) == !sweeps);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

static struct {
    int (*store)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    uint64_t offsets[64];
    unsigned count;
} stores;

static int note_store(struct inode *inode, const struct data_range *range,
                      struct device_batch *batch) {
    ck_assert_uint_lt(stores.count, 64);
    stores.offsets[stores.count++] = range->offset;
    return stores.store(inode, range, batch);
}

/* Write-back goes on where it stopped, though what it has stored is dirty again; and at the start
 * when it has been at the end. */
START_TEST(test_write_back_goes_on) {
    const uint64_t turn = WRITEBACK_TURN_BYTES;
    static char data[1 << 16];
    struct fixture f;

    fixture_open(&f, "memory", VOLUME_SIZE, NULL, "cache=64M", true);
    struct layout layout = *f.volume->layout;
    stores.store = layout.store;
    stores.count = 0;
    layout.store = note_store;
    f.volume->layout = &layout;
    struct inode *inode = make_file(&f, "file");
    for (uint64_t at = 0; at < 3 * turn; at += sizeof(data)) {
        unsigned before = stores.count;
        ck_assert_int_eq(volume_write(inode, data, sizeof(data), at), (int64_t)sizeof(data));
        if (stores.count > before) /* some write-back: what it began with changes again */
            ck_assert_int_eq(volume_write(inode, data, 1, 0), 1);
    }
    f.clock.now_ns += 60 * NS_PER_SEC;
    ck_assert_int_eq(volume_tick(f.volume), 0);
    ck_assert(!page_cache_has_dirty(inode));
    for (unsigned i = 1; i + 1 < stores.count; i++)
        ck_assert_uint_gt(stores.offsets[i], stores.offsets[i - 1]);
    ck_assert_uint_gt(stores.offsets[stores.count - 2], turn);
    ck_assert_uint_eq(stores.offsets[stores.count - 1], 0);
    volume_put(inode, 1);
    fixture_close(&f);
}
END_TEST

/* --- threads -----------------------------------------------------------------------------------
 */

#define THREADS     4
#define SHARED_SIZE (1u << 20)

struct worker {
    struct fixture *fixture;
    struct inode *shared;
    unsigned number;
    uint64_t random;
    const char *failure;
};

/* Each 4 KiB piece of the shared file is always full of one value, whoever wrote it. */
static void shared_step(struct worker *worker, unsigned char *piece) {
    uint64_t at = fixture_random(&worker->random) % (SHARED_SIZE / 4096) * 4096;

    if (fixture_random(&worker->random) % 3 == 0) {
        memset(piece, (int)worker->number + 1, 4096);
        if (volume_write(worker->shared, piece, 4096, at) != 4096)
            worker->failure = "shared write";
    } else if (volume_read(worker->shared, piece, 4096, at) != 4096) {
        worker->failure = "shared read";
    } else if (memcmp(piece, piece + 1, 4095) != 0) {
        worker->failure = "a torn piece";
    }
}

static void own_step(struct worker *worker, struct inode *inode, unsigned char *piece) {
    uint64_t at = fixture_random(&worker->random) % (SHARED_SIZE / 4096) * 4096;
    unsigned char value = (unsigned char)(at / 4096 + worker->number);
    int64_t result;

    memset(piece, value, 4096);
    if (volume_write(inode, piece, 4096, at) != 4096)
        worker->failure = "own write";
    at = fixture_random(&worker->random) % (SHARED_SIZE / 4096) * 4096;
    value = (unsigned char)(at / 4096 + worker->number);
    result = volume_read(inode, piece, 4096, at);
    for (int64_t i = 0; i < result; i++)
        if (piece[i] != value && piece[i] != 0)
            worker->failure = "own contents";
}

static void *worker_run(void *argument) {
    struct worker *worker = argument;
    struct create_request request = {.mode = S_IFREG | 0644};
    unsigned char *piece = malloc(4096);
    char name[16];
    struct inode *inode;

    snprintf(name, sizeof(name), "own%u", worker->number);
    if (volume_create(worker->fixture->root, name, (uint32_t)strlen(name), &request, &inode)) {
        worker->failure = "create";
        free(piece);
        return NULL;
    }
    for (unsigned i = 0; i < 4000 && !worker->failure; i++) {
        shared_step(worker, piece);
        own_step(worker, inode, piece);
        if (i % 1000 == 999 && volume_fsync(i % 2000 == 999 ? inode : worker->shared, false))
            worker->failure = "fsync";
    }
    volume_put(inode, 1);
    free(piece);
    return NULL;
}

START_TEST(test_threads) {
    struct fixture f;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t seed = fixture_seed("threads");
    struct inode *shared;

    fixture_open(&f, cases[_i].type, VOLUME_SIZE, cases[_i].mkfs_options, "cache=1M", false);
    shared = make_file(&f, "shared");
    ck_assert_int_eq(volume_truncate(shared, SHARED_SIZE), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&f, shared, i, seed + i, NULL};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(!workers[i].failure, "thread %u: %s", i, workers[i].failure);
    }
    volume_put(shared, 1);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pagecache");
    TCase *tcase = tcase_create("pagecache");

    tcase_add_test(tcase, test_page_tree);
    tcase_add_loop_test(tcase, test_against_array, 0, CASES);
    tcase_add_test(tcase, test_on_a_modelled_disk);
    tcase_add_test(tcase, test_read_ahead_overlaps);
    tcase_add_test(tcase, test_old_bytes_behind_the_end);
    tcase_add_test(tcase, test_writer_runs_ahead_of_the_disk);
    tcase_add_test(tcase, test_read_write_edges);
    tcase_add_test(tcase, test_flags_and_set_id);
    tcase_add_test(tcase, test_full_volume);
    tcase_add_loop_test(tcase, test_read_larger_than_the_cache, 0, 2);
    tcase_add_test(tcase, test_dirty_data_is_bounded);
    tcase_add_loop_test(tcase, test_write_back_in_sweeps, 0, 2);
    tcase_add_test(tcase, test_write_back_goes_on);
    tcase_add_loop_test(tcase, test_threads, 1, 3);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

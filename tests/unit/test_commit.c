/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/commit.c: who shares a commit with whom, errors, the order of the parts. The layout is
 * `memory` with parts of a commit that the test controls; nothing depends on time. Over a modelled
 * disk: the layouts' own commits, in the background.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "fs/device/disk.h"
#include "fs/pagecache.h"
#include "tests/unit/fixture.h"

#define THREADS 8

static struct fixture f;
static struct layout layout;

static struct {
    unsigned begun, written, ended;
    bool begun_for_one, needed;
    int begin_error, write_error;
    uint64_t wait_for; /* the first commit is written when so many have asked */
    struct inode *data;
    unsigned data_asked;
    struct inode *data_inode; /* that data were asked for */
    enum commit_cause cause;
} fake;

static struct inode *fake_data(struct volume *volume, struct inode *inode,
                               enum commit_cause cause) {
    struct inode *next = fake.data;

    fake.data = NULL;
    fake.data_asked++;
    fake.data_inode = inode;
    fake.cause = cause;
    return next;
}

static int fake_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                      bool *needed) {
    ck_assert(!fake.data);
    ck_assert_ptr_eq(inode, fake.data_inode); /* its data, or those of all if it is shared */
    ck_assert(cause == fake.cause && (inode || cause == COMMIT_SYNC || cause == COMMIT_AGE));
    fake.begun++;
    fake.begun_for_one = inode;
    *needed = fake.needed;
    return fake.begin_error;
}

static int fake_write(struct volume *volume) {
    struct commit_counts counts = {0};

    while (fake.begun == 1 && counts.asked < fake.wait_for) {
        volume_commit_counts(volume, &counts);
        usleep(100);
    }
    fake.written++;
    /* No lock is held: somebody else can have it. */
    ck_assert_int_eq(pthread_rwlock_trywrlock(&volume->lock), 0);
    pthread_rwlock_unlock(&volume->lock);
    return fake.write_error;
}

static int fake_end(struct volume *volume, int error) {
    ck_assert_int_eq(error, fake.write_error);
    fake.ended++;
    return error;
}

static void start(bool virtual_time) {
    fixture_open(&f, "memory", 0, NULL, NULL, virtual_time);
    memset(&fake, 0, sizeof(fake));
    fake.needed = true;
    layout = *f.volume->layout;
    layout.commit_data = fake_data;
    layout.commit_begin = fake_begin;
    layout.commit_write = fake_write;
    layout.commit_end = fake_end;
    f.volume->layout = &layout;
}

static void finish(void) {
    fake.begin_error = fake.write_error = 0;
    fixture_close(&f);
}

static struct inode *make(const char *name) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;

    ck_assert_int_eq(volume_create(f.root, name, strlen(name), &request, &inode), 0);
    return inode;
}

#define PAGE 4096u

static struct {
    int (*store)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    char order[64]; /* "file page+pages " of each */
} stores;

static int note_store(struct inode *inode, const struct data_range *range,
                      struct device_batch *batch) {
    size_t used = strlen(stores.order);

    snprintf(stores.order + used, sizeof(stores.order) - used, "%u:%u+%u ",
             (unsigned)(inode->ino - f.root->ino), (unsigned)(range->offset / PAGE),
             (unsigned)(range->length / PAGE));
    return stores.store(inode, range, batch);
}

static void write_page(struct inode *inode, uint64_t page) {
    ck_assert_int_eq(volume_write(inode, "x", 1, page * PAGE), 1);
}

static void *fsync_root(void *argument) {
    int *result = argument;

    *result = volume_fsync(f.root, true);
    return NULL;
}

/* The first commit is not written before all have asked: the others share the second. */
START_TEST(threads_share) {
    pthread_t thread[THREADS];
    struct commit_counts counts;
    int result[THREADS];

    start(false);
    fake.wait_for = THREADS;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, fsync_root, &result[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(result[i], 0);
    }
    volume_commit_counts(f.volume, &counts);
    ck_assert_uint_eq(counts.asked, THREADS);
    ck_assert_uint_le(counts.made, 2);
    ck_assert_uint_ge(counts.made, 1);
    ck_assert_uint_eq(fake.ended, counts.made);
    finish();
}
END_TEST

/* What became dirty first is stored first, page after page and file after file, by a layout that
 * wants it so; a page that changes again keeps its place. */
START_TEST(data_in_the_order_of_the_writes) {
    start(true);
    stores.store = layout.store;
    layout.store = note_store;
    *stores.order = 0;
    f.volume->commit_stores_written = _i;
    struct inode *a = make("a"), *b = make("b");
    const unsigned first = (unsigned)(a->ino - f.root->ino),
                   second = (unsigned)(b->ino - f.root->ino);
    char expected[sizeof(stores.order)] = "";
    write_page(a, 5);
    write_page(a, 6);
    write_page(b, 3);
    write_page(a, 1);
    write_page(a, 5);
    write_page(b, 2);
    ck_assert_int_eq(commit_wait(f.volume, NULL, COMMIT_AGE), 0);
    if (_i) /* else no data that the layout does not name */
        snprintf(expected, sizeof(expected), "%u:5+2 %u:3+1 %u:1+1 %u:2+1 ", first, second, first,
                 second);
    ck_assert_str_eq(stores.order, expected);
    volume_put(a, 1);
    volume_put(b, 1);
    finish();
}
END_TEST

START_TEST(one_thread_leads) {
    start(true);
    struct inode *file = make("file");
    ck_assert_int_eq(volume_fsync(file, false), 0);
    ck_assert(fake.begun_for_one);
    ck_assert_uint_eq(fake.begun, 1);
    ck_assert_uint_eq(fake.written, 1);
    ck_assert_uint_eq(fake.ended, 1);
    fake.needed = false; /* nothing left to do */
    ck_assert_int_eq(volume_fsync(file, false), 0);
    ck_assert_uint_eq(fake.begun, 2);
    ck_assert_uint_eq(fake.written, 1);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    ck_assert(!fake.begun_for_one);
    volume_put(file, 1);
    finish();
}
END_TEST

START_TEST(errors_reach_the_caller) {
    start(true);
    fake.begin_error = -ENOMEM;
    ck_assert_int_eq(volume_fsync(f.root, false), -ENOMEM);
    ck_assert_uint_eq(fake.written, 0);
    fake.begin_error = 0;
    fake.write_error = -EIO;
    ck_assert_int_eq(volume_fsync(f.root, false), -EIO);
    ck_assert_uint_eq(fake.ended, 1);
    fake.write_error = 0;
    ck_assert_int_eq(volume_fsync(f.root, false), 0);
    finish();
}
END_TEST

/* Pages of the inodes that the layout names are stored before the commit begins. */
START_TEST(data_first) {
    start(true);
    struct inode *file = make("file"), *other = make("other");
    ck_assert_int_eq(volume_write(file, "x", 1, 0), 1);
    ck_assert_int_eq(volume_write(other, "x", 1, 0), 1);
    fake.data = file;
    ck_assert_int_eq(volume_fsync(f.root, false), 0);
    ck_assert_uint_gt(fake.data_asked, 1);
    ck_assert(!page_cache_has_dirty(file));
    ck_assert(page_cache_has_dirty(other));
    volume_put(file, 1);
    volume_put(other, 1);
    finish();
}
END_TEST

/* What the layout wants is done before the next change; what a commit would free is had. */
START_TEST(points) {
    bool tried = false;

    start(true);
    f.volume->commit.wanted = true;
    volume_put(make("file"), 1);
    ck_assert_uint_eq(fake.begun, 1);
    volume_put(make("other"), 1);
    ck_assert_uint_eq(fake.begun, 1);

    ck_assert(!commit_for_space(f.volume, -ENOSPC, &tried));
    f.volume->commit_frees = true;
    ck_assert(!commit_for_space(f.volume, -EIO, &tried));
    ck_assert(commit_for_space(f.volume, -ENOSPC, &tried));
    ck_assert(!commit_for_space(f.volume, -ENOSPC, &tried));
    ck_assert_uint_eq(fake.begun, 2);
    finish();
}
END_TEST

/* --- over a modelled disk ----------------------------------------------------------------------
 */

static const char *const disk_types[] = {"ext2", "ext3", "ext4", "nilfs2"};
#define DISK_TYPES ((int)(sizeof(disk_types) / sizeof(*disk_types)))

static void start_on_disk(const char *type) {
    const struct layout *found;
    const struct layout_type *found_type;
    struct disk_preset preset;
    struct options options;
    struct device *ram, *disk;

    memset(&f, 0, sizeof(f));
    clock_init_virtual(&f.clock, NULL);
    f.log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(disk_preset_find("ata-2001", &preset, &f.log), 0);
    ck_assert_int_eq(device_open_ram(UINT64_C(1) << 30, &f.clock, &f.log, &ram), 0);
    ck_assert_int_eq(layout_find(type, &found, &found_type), 0);
    ck_assert_int_eq(options_init(&options, found->options, OPTION_MKFS, &f.log), 0);
    ck_assert_int_eq(options_parse(&options, found_type->mkfs_options), 0);
    ck_assert_int_eq(found->format(ram, &options), 0);
    options_free(&options);
    ck_assert_int_eq(device_open_disk(&preset, ram, &disk), 0);
    struct volume_config config = {.type = type, .device = disk, .clock = &f.clock, .log = &f.log};
    ck_assert_int_eq(volume_open(&config, &f.volume), 0);
    ck_assert_int_eq(volume_root(f.volume, &f.root), 0);
}

static uint64_t commits_made(void) {
    struct commit_counts counts;

    volume_commit_counts(f.volume, &counts);
    return counts.made;
}

/* `ns` pass in which nobody does anything. */
static void idle(int64_t ns) {
    for (int64_t end = f.clock.now_ns + ns; f.clock.now_ns < end;) {
        f.clock.now_ns += NS_PER_MS;
        ck_assert_int_eq(volume_tick(f.volume), 0);
    }
}

/* The commit that is due after five seconds, while it is under way. */
static void commit_under_way(struct inode *file) {
    static const char bytes[1 << 20] = {1};

    idle(4 * NS_PER_SEC);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(volume_write(file, bytes, sizeof(bytes), i * sizeof(bytes)),
                         sizeof(bytes));
    while (!f.volume->commit.task.active)
        idle(NS_PER_MS);
}

/* Nobody waits for a commit that nobody asked for; the program goes on, and changes go into the
 * next one. Who asks waits for both. */
START_TEST(in_the_background) {
    start_on_disk(disk_types[_i]);
    if (f.volume->limits.commit_interval_ns) {
        struct inode *file = make("file");
        ck_assert_int_eq(volume_sync(f.volume), 0);
        uint64_t made = commits_made();
        commit_under_way(file);
        int64_t now = f.clock.now_ns;
        volume_put(make("other"), 1);
        ck_assert_int_eq(volume_write(file, "x", 1, 5), 1);
        ck_assert_int_eq(f.clock.now_ns, now);
        ck_assert_uint_eq(commits_made(), made);
        idle(2 * NS_PER_SEC);
        ck_assert(!f.volume->commit.task.active);
        ck_assert_uint_eq(commits_made(), made + 1);

        ck_assert_int_eq(volume_sync(f.volume), 0);
        made = commits_made();
        commit_under_way(file);
        now = f.clock.now_ns;
        ck_assert_int_eq(volume_fsync(file, false), 0);
        ck_assert(!f.volume->commit.task.active);
        ck_assert_uint_eq(commits_made(), made + 2);
        ck_assert_int_gt(f.clock.now_ns, now);

        commit_under_way(file); /* and the volume is closed */
        volume_put(file, 1);
    }
    finish();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("commit");
    TCase *tcase = tcase_create("commit");

    tcase_add_test(tcase, threads_share);
    tcase_add_test(tcase, one_thread_leads);
    tcase_add_loop_test(tcase, data_in_the_order_of_the_writes, 0, 2);
    tcase_add_test(tcase, errors_reach_the_caller);
    tcase_add_test(tcase, data_first);
    tcase_add_test(tcase, points);
    tcase_add_loop_test(tcase, in_the_background, 0, DISK_TYPES);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

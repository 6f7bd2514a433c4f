/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs: what reaches the disk, and when, beside what the Linux driver writes in the same
 * situation (docs/fidelity.md). 4 KiB blocks; segments of 8 MiB; an idle machine.
 */
#include <inttypes.h>

#include "fs/device/record.h"
#include "tests/unit/fixture.h"

#define DEVICE_SIZE (UINT64_C(512) << 20)
#define BLOCK       4096u

struct rig {
    struct clock clock;
    struct log log;
    struct write_log writes;
    struct volume *volume;
    struct inode *root;
};

struct traffic {
    unsigned runs;    /* of requests, each behind the one before it */
    unsigned flushes; /* that are not of a super block */
    unsigned supers;
    uint64_t requests, blocks; /* without super blocks */
};

static void rig_open(struct rig *rig) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;
    struct device *disk, *recorder;

    memset(rig, 0, sizeof(*rig));
    clock_init_virtual(&rig->clock, NULL);
    rig->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(layout_find("nilfs2", &layout, &type), 0);
    ck_assert_int_eq(device_open_ram(DEVICE_SIZE, &rig->clock, &rig->log, &disk), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &rig->log), 0);
    ck_assert_int_eq(layout_format("nilfs2", disk, &options), 0);
    options_free(&options);
    ck_assert_int_eq(device_open_record(disk, &rig->writes, &recorder), 0);
    struct volume_config config = {
        .type = "nilfs2", .device = recorder, .clock = &rig->clock, .log = &rig->log};
    ck_assert_int_eq(volume_open(&config, &rig->volume), 0);
    ck_assert_int_eq(volume_root(rig->volume, &rig->root), 0);
    write_log_clear(&rig->writes);
}

static void rig_close(struct rig *rig) {
    volume_put(rig->root, 1);
    ck_assert_int_eq(volume_close(rig->volume), 0);
    write_log_free(&rig->writes);
}

static bool is_super(const struct record *record) {
    return record->kind == RECORD_WRITE &&
           (record->offset < BLOCK || record->offset >= DEVICE_SIZE - BLOCK);
}

/* What was written since the last time. A super block is a flush, one write, and a flush. */
static struct traffic traffic(struct rig *rig) {
    struct traffic t = {0};
    uint64_t end = 0;

    for (size_t i = 0; i < rig->writes.count; i++) {
        const struct record *record = &rig->writes.records[i];
        if (record->kind == RECORD_FLUSH) {
            t.flushes++;
        } else if (is_super(record)) {
            t.supers++;
        } else if (record->kind == RECORD_WRITE) {
            t.runs += record->offset != end;
            t.requests++;
            t.blocks += record->length / BLOCK;
            end = record->offset + record->length;
        }
    }
    ck_assert_uint_ge(t.flushes, 2 * t.supers);
    t.flushes -= 2 * t.supers;
    write_log_clear(&rig->writes);
    return t;
}

/* `ns` pass in which nobody does anything. */
static void idle(struct rig *rig, int64_t ns) {
    for (int64_t end = rig->clock.now_ns + ns; rig->clock.now_ns < end;) {
        rig->clock.now_ns += NS_PER_SEC / 100;
        ck_assert_int_eq(volume_tick(rig->volume), 0);
    }
}

static struct inode *file_make(struct rig *rig, const char *name, uint64_t bytes) {
    static const uint8_t piece[1 << 20] = {1, 2, 3};
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;

    ck_assert_int_eq(volume_create(rig->root, name, (uint32_t)strlen(name), &request, &inode), 0);
    for (uint64_t at = 0; at < bytes; at += sizeof(piece)) {
        size_t part = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);
        ck_assert_int_eq(volume_write(inode, piece, part, at), part);
    }
    return inode;
}

static void expect(struct traffic t, unsigned runs, uint64_t blocks, unsigned flushes,
                   unsigned supers) {
    ck_assert_msg(t.runs == runs && t.blocks == blocks && t.flushes == flushes &&
                      t.supers == supers,
                  "%u runs, %" PRIu64 " blocks in %" PRIu64 " requests, %u flushes, %u super "
                  "blocks; expected %u, %" PRIu64 ", %u, %u",
                  t.runs, t.blocks, t.requests, t.flushes, t.supers, runs, blocks, flushes, supers);
}

START_TEST(fsync_of_a_new_file) {
    struct rig rig;

    rig_open(&rig);
    struct inode *inode = file_make(&rig, "file", 1000);
    expect(traffic(&rig), 0, 0, 0, 0);
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    expect(traffic(&rig), 1, 14, 1, 0);
    /* All that there is has been made durable. */
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    ck_assert_int_eq(volume_sync(rig.volume), 0);
    expect(traffic(&rig), 0, 0, 0, 0);
    volume_put(inode, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(fdatasync_of_an_overwrite) {
    uint8_t block[BLOCK] = {9};
    struct rig rig;

    rig_open(&rig);
    struct inode *inode = file_make(&rig, "file", 4 * BLOCK);
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    traffic(&rig);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_int_eq(volume_write(inode, block, BLOCK, i * BLOCK), BLOCK);
        ck_assert_int_eq(volume_fsync(inode, true), 0);
        struct traffic t = traffic(&rig);
        expect(t, 1, 2, 1, 0);
        ck_assert_uint_eq(t.requests, 1);
    }
    volume_put(inode, 1);
    rig_close(&rig);
}
END_TEST

/* One log, five seconds after the first change, which nobody waits for; who asks later does. */
START_TEST(a_file_left_alone) {
    struct rig rig;

    rig_open(&rig);
    idle(&rig, 3 * NS_PER_SEC);
    struct inode *inode = file_make(&rig, "file", 1000);
    idle(&rig, 4900 * NS_PER_MS);
    expect(traffic(&rig), 0, 0, 0, 0);
    idle(&rig, 200 * NS_PER_MS);
    expect(traffic(&rig), 1, 14, 0, 0);
    idle(&rig, 60 * NS_PER_SEC);
    expect(traffic(&rig), 0, 0, 0, 0);
    ck_assert_int_eq(volume_fsync(inode, true), 0);
    expect(traffic(&rig), 0, 0, 1, 0);
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    expect(traffic(&rig), 0, 0, 0, 0);
    volume_put(inode, 1);
    rig_close(&rig);
}
END_TEST

/* A commit in between begins the five seconds anew. */
START_TEST(the_interval_counts_from_the_last_commit) {
    struct rig rig;

    rig_open(&rig);
    struct inode *first = file_make(&rig, "first", 1000);
    idle(&rig, 4 * NS_PER_SEC);
    ck_assert_int_eq(volume_fsync(first, false), 0);
    traffic(&rig);
    idle(&rig, 2 * NS_PER_SEC);
    struct inode *second = file_make(&rig, "second", 1000);
    idle(&rig, 4900 * NS_PER_MS);
    expect(traffic(&rig), 0, 0, 0, 0);
    idle(&rig, 200 * NS_PER_MS);
    struct traffic t = traffic(&rig);
    ck_assert_uint_eq(t.runs, 1);
    volume_put(second, 1);
    volume_put(first, 1);
    rig_close(&rig);
}
END_TEST

/* Logs of about 1 MiB behind one another, each with its summary last. */
START_TEST(a_large_file_left_alone) {
    struct rig rig;

    rig_open(&rig);
    struct inode *inode = file_make(&rig, "file", 20 << 20);
    idle(&rig, 40 * NS_PER_SEC);
    struct traffic t = traffic(&rig);
    ck_assert_uint_ge(t.blocks, 20 * 256);
    ck_assert_uint_le(t.blocks, 21 * 256);
    ck_assert_uint_le(t.requests, 70);
    /* Only before the log that ends the checkpoint, since others lie in earlier segments. */
    ck_assert_uint_eq(t.flushes, 1);
    ck_assert_uint_eq(t.supers, 0);
    volume_put(inode, 1);
    rig_close(&rig);
}
END_TEST

/* Not in the first ten seconds after the last one, or while all stays in one segment; sync(2) does
 * not wait for the ten seconds. */
START_TEST(super_blocks) {
    struct rig rig;

    rig_open(&rig);
    for (unsigned i = 0; i < 40; i++) {
        char name[8];
        snprintf(name, sizeof(name), "f%u", i);
        volume_put(file_make(&rig, name, 4 << 20), 1);
        idle(&rig, NS_PER_SEC);
    }
    struct traffic t = traffic(&rig);
    ck_assert_uint_ge(t.supers, 3);
    ck_assert_uint_le(t.supers, 4);
    volume_put(file_make(&rig, "last", 9 << 20), 1);
    ck_assert_int_eq(volume_sync(rig.volume), 0);
    ck_assert_uint_eq(traffic(&rig).supers, 1);
    volume_put(file_make(&rig, "small", 1), 1);
    ck_assert_int_eq(volume_sync(rig.volume), 0);
    t = traffic(&rig);
    expect(t, 1, t.blocks, 1, 0);
    rig_close(&rig);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_signature");
    TCase *tests = tcase_create("signature");

    tcase_add_test(tests, fsync_of_a_new_file);
    tcase_add_test(tests, fdatasync_of_an_overwrite);
    tcase_add_test(tests, a_file_left_alone);
    tcase_add_test(tests, the_interval_counts_from_the_last_commit);
    tcase_add_test(tests, a_large_file_left_alone);
    tcase_add_test(tests, super_blocks);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

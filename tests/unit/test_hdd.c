/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the modelled disk and the elevator: against data sheets, against counted requests, and
 * against themselves (the same run twice). With --table it prints what docs/disk-model.md quotes.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/device.h"
#include "fs/device/disk.h"
#include "fs/task.h"

#define MIB (UINT64_C(1) << 20)

static const struct log quiet = {0};
static const char *const preset_names[] = {"laptop-2002", "ata-2001", "sata-2008", "modern-7200"};
#define PRESETS ((int)(sizeof(preset_names) / sizeof(preset_names[0])))

struct bench {
    struct disk_preset preset;
    struct machine machine;
    struct clock clock;
    struct device *device;
    uint64_t random;
    unsigned char *memory; /* 1 MiB */
};

static void bench_open_preset(struct bench *bench, uint64_t size) {
    struct device *ram = NULL;
    bench->random = UINT64_C(0x9e3779b97f4a7c15);
    bench->memory = calloc(1, MIB);
    clock_init_virtual(&bench->clock, NULL);
    ck_assert_int_eq(
        device_open_ram(size ? size : bench->preset.capacity, &bench->clock, NULL, &ram), 0);
    ck_assert_int_eq(device_open_disk(&bench->preset, ram, &bench->device), 0);
}

static void bench_find(struct bench *bench, const char *name) {
    memset(bench, 0, sizeof(*bench));
    ck_assert_int_eq(disk_preset_find(name, &bench->preset, NULL), 0);
}

static void bench_open(struct bench *bench, const char *name) {
    bench_find(bench, name);
    bench_open_preset(bench, 0);
}

static void bench_close(struct bench *bench) {
    device_close(bench->device);
    free(bench->memory);
}

static uint64_t bench_random(struct bench *bench, uint64_t limit) {
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 7;
    bench->random ^= bench->random << 17;
    return bench->random % limit;
}

static uint64_t random_offset(struct bench *bench, uint32_t length) {
    return bench_random(bench, bench->device->size / length) * length;
}

static void submit(struct bench *bench, enum device_operation operation, uint64_t offset,
                   uint32_t length, struct device_batch *batch) {
    struct iovec vector = {.iov_base = bench->memory, .iov_len = length};
    struct device_request request = {.operation = operation,
                                     .offset = offset,
                                     .length = length,
                                     .vector = &vector,
                                     .vector_count = 1,
                                     .batch = batch};
    ck_assert_int_eq(device_submit(bench->device, &request), 0);
}

static void read_at(struct bench *bench, uint64_t offset, uint32_t length) {
    ck_assert_int_eq(device_read(bench->device, offset, bench->memory, length, PURPOSE_DATA), 0);
}

static void write_at(struct bench *bench, uint64_t offset, uint32_t length) {
    ck_assert_int_eq(device_write(bench->device, offset, bench->memory, length, PURPOSE_DATA), 0);
}

static struct device_stats stats_of(struct bench *bench) {
    struct device_stats stats;
    device_stats(bench->device, &stats);
    return stats;
}

/* --- measurements ---------------------------------------------------------------------------- */

static double random_read_ms(struct bench *bench) {
    enum { READS = 4000 };
    int64_t start = bench->clock.now_ns;
    for (int i = 0; i < READS; i++)
        read_at(bench, random_offset(bench, 512), 512);
    return (double)(bench->clock.now_ns - start) / 1e6 / READS;
}

static double random_write_ms(struct bench *bench) {
    enum { WRITES = 4000 };
    int64_t start = bench->clock.now_ns;
    for (int i = 0; i < WRITES; i++) {
        write_at(bench, random_offset(bench, 512), 512);
        ck_assert_int_eq(device_flush(bench->device), 0);
    }
    return (double)(bench->clock.now_ns - start) / 1e6 / WRITES;
}

/* MB/s of 64 KiB reads of 256 MiB, each waited for. */
static double sequential_read_rate(struct bench *bench, uint64_t offset) {
    read_at(bench, offset, 65536);
    int64_t start = bench->clock.now_ns;
    for (unsigned i = 1; i <= 4096; i++)
        read_at(bench, offset + i * UINT64_C(65536), 65536);
    return 256.0 * MIB * 1e3 / (double)(bench->clock.now_ns - start);
}

static double sequential_write_rate(struct bench *bench, uint64_t offset) {
    struct device_batch batch = {0};
    int64_t start = bench->clock.now_ns;
    for (unsigned i = 0; i < 4096; i++)
        submit(bench, DEVICE_WRITE, offset + i * UINT64_C(65536), 65536, &batch);
    ck_assert_int_eq(device_wait(bench->device, &batch), 0);
    ck_assert_int_eq(device_flush(bench->device), 0);
    return 256.0 * MIB * 1e3 / (double)(bench->clock.now_ns - start);
}

/* Requests per second with `depth` random reads of 4 KiB always outstanding. */
static double random_read_iops(struct bench *bench, unsigned depth) {
    enum { READS = 3000 };
    struct device_batch batches[64] = {{0}};
    int64_t start = bench->clock.now_ns;
    for (unsigned i = 0; i < READS; i++) {
        struct device_batch *batch = &batches[i % depth];
        ck_assert_int_eq(device_wait(bench->device, batch), 0);
        submit(bench, DEVICE_READ, random_offset(bench, 4096), 4096, batch);
    }
    ck_assert_int_eq(device_drain(bench->device), 0);
    return READS * 1e9 / (double)(bench->clock.now_ns - start);
}

/* --- what the data sheet says ---------------------------------------------------------------- */

static double expected_random_ms(const struct disk_preset *preset) {
    return (double)(preset->seek_average_ns + preset->overhead_ns) / 1e6 + 30e3 / preset->rpm;
}

/* The manuals' formula: sectors of a cylinder in its revolutions, head switches and cylinder
 * switch. */
static double expected_rate(const struct disk_preset *preset, uint32_t zone) {
    int64_t cylinder_switch = preset->seek_track_ns > preset->head_switch_ns
                                  ? preset->seek_track_ns
                                  : preset->head_switch_ns;
    double ns = (preset->heads - 1.0) * (double)preset->head_switch_ns + (double)cylinder_switch +
                preset->heads * 60e9 / preset->rpm;
    return preset->heads * 512e3 * preset->zone_sectors[zone] / ns;
}

static void assert_near(const char *what, double found, double expected, double tolerance) {
    ck_assert_msg(found >= expected * (1 - tolerance) && found <= expected * (1 + tolerance),
                  "%s: %.3f, expected %.3f within %.0f %%", what, found, expected, tolerance * 100);
}

START_TEST(random_reads_take_what_the_data_sheet_says) {
    struct bench bench;
    bench_open(&bench, preset_names[_i]);
    assert_near(bench.preset.name, random_read_ms(&bench), expected_random_ms(&bench.preset), 0.05);
    struct device_stats stats = stats_of(&bench);
    assert_near("seek", (double)stats.seek_ns / 4000, (double)bench.preset.seek_average_ns, 0.05);
    assert_near("rotation", (double)stats.rotation_ns / 4000, 30e9 / bench.preset.rpm, 0.03);
    ck_assert_int_eq(stats.busy_ns, bench.clock.now_ns);
    bench_close(&bench);
}
END_TEST

START_TEST(random_writes_also_settle) {
    struct bench bench;
    bench_open(&bench, preset_names[_i]);
    double settle = (double)bench.preset.write_settle_ns / 1e6;
    assert_near(bench.preset.name, random_write_ms(&bench),
                expected_random_ms(&bench.preset) + settle, 0.05);
    bench_close(&bench);
}
END_TEST

START_TEST(sequential_rates_are_the_zones) {
    struct bench bench;
    bench_open(&bench, preset_names[_i]);
    uint64_t inner = (bench.device->size - 300 * MIB) & ~(uint64_t)511;
    assert_near("outer zone", sequential_read_rate(&bench, 0), expected_rate(&bench.preset, 0),
                0.03);
    assert_near("inner zone", sequential_read_rate(&bench, inner),
                expected_rate(&bench.preset, bench.preset.zones - 1), 0.03);
    assert_near("writing", sequential_write_rate(&bench, 0), expected_rate(&bench.preset, 0), 0.05);
    bench_close(&bench);
}
END_TEST

/* Alternating between the ends, the time is the full stroke, half a revolution and the overhead.
 * The ends are a 200th of the disk each, so that the buffer does not hold them. */
START_TEST(a_full_stroke_takes_the_full_time) {
    struct bench bench;
    bench_open(&bench, preset_names[_i]);
    const struct disk_preset *preset = &bench.preset;
    uint64_t sectors = preset->capacity / 512, end = sectors / 200;
    for (int i = 0; i < 2000; i++)
        read_at(&bench, ((i % 2 ? sectors - end : 0) + bench_random(&bench, end)) * 512, 512);
    assert_near(preset->name, (double)bench.clock.now_ns / 2000,
                (double)(preset->seek_full_ns + preset->overhead_ns) + 30e9 / preset->rpm, 0.05);
    bench_close(&bench);
}
END_TEST

START_TEST(iops_grow_with_the_queue) {
    double last = 0;
    for (unsigned depth = 1; depth <= 64; depth *= 4) {
        struct bench bench;
        bench_open(&bench, preset_names[_i]);
        double iops = random_read_iops(&bench, depth);
        ck_assert_msg(iops > last * 1.05, "%s: %.0f/s at depth %u, %.0f/s before",
                      bench.preset.name, iops, depth, last);
        last = iops;
        bench_close(&bench);
    }
}
END_TEST

/* --- buffer ---------------------------------------------------------------------------------- */

START_TEST(read_ahead_answers_what_follows) {
    struct bench bench;
    bench_open(&bench, "ata-2001");
    read_at(&bench, 10 * MIB, 4096);
    clock_wait_until(&bench.clock, bench.clock.now_ns + 50 * NS_PER_MS);
    int64_t start = bench.clock.now_ns;
    read_at(&bench, 10 * MIB + 4096, 4096);
    read_at(&bench, 10 * MIB + 65536, 4096); /* a gap within what was read ahead */
    ck_assert_int_lt(bench.clock.now_ns - start, NS_PER_MS);
    ck_assert_uint_eq(stats_of(&bench).cache_hits, 2);
    start = bench.clock.now_ns;
    read_at(&bench, 100 * MIB, 4096);
    ck_assert_int_gt(bench.clock.now_ns - start, NS_PER_MS);
    ck_assert_uint_eq(stats_of(&bench).cache_hits, 2);
    bench_close(&bench);
}
END_TEST

START_TEST(a_segment_forgets_what_lies_behind) {
    struct bench bench;
    bench_open(&bench, "ata-2001");
    for (unsigned i = 0; i < 64; i++)
        read_at(&bench, i * UINT64_C(65536), 65536);
    uint64_t hits = stats_of(&bench).cache_hits;
    read_at(&bench, 63 * UINT64_C(65536), 65536); /* the last one is still there */
    ck_assert_uint_eq(stats_of(&bench).cache_hits, hits + 1);
    read_at(&bench, 0, 65536);
    ck_assert_uint_eq(stats_of(&bench).cache_hits, hits + 1);
    bench_close(&bench);
}
END_TEST

START_TEST(a_write_ends_what_was_read_ahead_there) {
    struct bench bench;
    bench_find(&bench, "ata-2001");
    bench.preset.write_cache_bytes = 0;
    bench_open_preset(&bench, 0);
    read_at(&bench, 0, 4096);
    clock_wait_until(&bench.clock, bench.clock.now_ns + 50 * NS_PER_MS);
    write_at(&bench, 8192, 4096);
    read_at(&bench, 8192, 4096);
    ck_assert_uint_eq(stats_of(&bench).cache_hits, 0);
    bench_close(&bench);
}
END_TEST

START_TEST(cached_writes_are_durable_after_a_flush_only) {
    struct bench bench;
    bench_open(&bench, "ata-2001");
    for (int i = 0; i < 20; i++)
        write_at(&bench, random_offset(&bench, 4096), 4096);
    /* In the buffer: far less than a revolution each. */
    ck_assert_int_lt(bench.clock.now_ns, 20 * NS_PER_MS);
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_int_gt(bench.clock.now_ns, 20 * 3 * NS_PER_MS);
    int64_t flushed = bench.clock.now_ns;
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_int_eq(bench.clock.now_ns, flushed);
    ck_assert_uint_eq(stats_of(&bench).flushes, 2);
    /* Given time, the disk writes its cache out by itself. */
    for (int i = 0; i < 20; i++)
        write_at(&bench, random_offset(&bench, 4096), 4096);
    clock_wait_until(&bench.clock, bench.clock.now_ns + NS_PER_SEC);
    int64_t start = bench.clock.now_ns;
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_int_eq(bench.clock.now_ns, start);
    bench_close(&bench);
}
END_TEST

START_TEST(without_a_write_cache_every_write_reaches_the_platter) {
    struct bench bench;
    bench_find(&bench, "ata-2001");
    bench.preset.write_cache_bytes = 0;
    bench_open_preset(&bench, 0);
    for (int i = 0; i < 500; i++)
        write_at(&bench, random_offset(&bench, 4096), 4096);
    double settle = (double)bench.preset.write_settle_ns;
    assert_near("write", (double)bench.clock.now_ns / 500,
                expected_random_ms(&bench.preset) * 1e6 + settle, 0.05);
    bench_close(&bench);
}
END_TEST

/* --- elevator -------------------------------------------------------------------------------- */

START_TEST(neighbours_merge_both_ways_up_to_the_limit) {
    struct bench bench;
    bench_find(&bench, "ata-2001");
    bench.preset.merge_bytes = 65536;
    bench_open_preset(&bench, 0);
    struct device_batch batch = {0}, other = {0};
    submit(&bench, DEVICE_WRITE, 8192, 4096, &batch);
    submit(&bench, DEVICE_WRITE, 12288, 4096, &other); /* behind */
    submit(&bench, DEVICE_WRITE, 4096, 4096, &batch);  /* in front */
    submit(&bench, DEVICE_WRITE, 20480, 4096, &batch); /* a gap */
    submit(&bench, DEVICE_WRITE, 16384, 4096, &other); /* closes it */
    submit(&bench, DEVICE_READ, 24576, 4096, &batch);  /* the other direction */
    ck_assert_uint_eq(batch.pending + other.pending, 6);
    ck_assert_int_eq(device_wait(bench.device, &other), 0);
    ck_assert_int_eq(device_wait(bench.device, &batch), 0);
    struct device_stats stats = stats_of(&bench);
    ck_assert_uint_eq(stats.requests[DEVICE_WRITE], 1);
    ck_assert_uint_eq(stats.requests[DEVICE_READ], 1);
    ck_assert_uint_eq(stats.bytes[DEVICE_WRITE][PURPOSE_DATA], 5 * 4096);
    for (unsigned i = 0; i < 12; i++)
        submit(&bench, DEVICE_WRITE, MIB + i * 16384, 16384, &batch);
    submit(&bench, DEVICE_WRITE, 2 * MIB, 3 * 65536, &batch); /* cut at the limit */
    ck_assert_int_eq(device_wait(bench.device, &batch), 0);
    ck_assert_uint_eq(stats_of(&bench).requests[DEVICE_WRITE], 1 + 3 + 3);
    bench_close(&bench);
}
END_TEST

START_TEST(seeks_count_breaks_and_their_bytes) {
    struct bench bench;
    bench_open(&bench, "ata-2001");
    read_at(&bench, 0, 4096);
    read_at(&bench, 4096, 4096);
    ck_assert_uint_eq(stats_of(&bench).seeks, 0);
    read_at(&bench, 10 * MIB, 4096);
    read_at(&bench, 8192, 4096);
    struct device_stats stats = stats_of(&bench);
    ck_assert_uint_eq(stats.seeks, 2);
    ck_assert_uint_eq(stats.seek_bytes, 10 * MIB - 8192 + 10 * MIB + 4096 - 8192);
    bench_close(&bench);
}
END_TEST

START_TEST(clook_serves_upwards) {
    struct bench bench;
    bench_find(&bench, "ata-2001");
    bench_open_preset(&bench, 0);
    struct device_batch batch = {0};
    static const unsigned order[] = {5, 1, 4, 2, 3, 0};
    for (unsigned i = 0; i < 6; i++)
        submit(&bench, DEVICE_READ, order[i] * 100 * MIB, 4096, &batch);
    ck_assert_int_eq(device_wait(bench.device, &batch), 0);
    /* Upwards in one go: 5 seeks of 100 MiB less the 4 KiB just read. */
    ck_assert_uint_eq(stats_of(&bench).seek_bytes, 5 * (100 * MIB - 4096));
    bench_close(&bench);
    bench_find(&bench, "ata-2001");
    bench.preset.elevator = ELEVATOR_NONE;
    bench_open_preset(&bench, 0);
    for (unsigned i = 0; i < 6; i++)
        submit(&bench, DEVICE_READ, order[i] * 100 * MIB, 4096, &batch);
    ck_assert_int_eq(device_wait(bench.device, &batch), 0);
    ck_assert_uint_gt(stats_of(&bench).seek_bytes, 1500 * MIB);
    bench_close(&bench);
}
END_TEST

/* A reader beside a flood of writes, all of them beyond the reader and never exhausted. */
START_TEST(reads_do_not_starve_behind_writes) {
    struct bench bench;
    bench_find(&bench, preset_names[_i]);
    bench.preset.write_cache_bytes = 0;
    bench_open_preset(&bench, 0);
    struct device_batch writes = {0};
    int64_t longest = 0;
    for (unsigned i = 0; i < 3000; i++) {
        submit(&bench, DEVICE_WRITE, random_offset(&bench, 4096), 4096, &writes);
        if (i % 30)
            continue;
        int64_t start = bench.clock.now_ns;
        read_at(&bench, random_offset(&bench, 4096), 4096);
        if (bench.clock.now_ns - start > longest)
            longest = bench.clock.now_ns - start;
    }
    ck_assert_int_lt(longest, 1500 * NS_PER_MS);
    ck_assert_int_eq(device_wait(bench.device, &writes), 0);
    bench_close(&bench);
}
END_TEST

START_TEST(a_full_queue_makes_the_submitter_wait) {
    struct bench bench;
    bench_find(&bench, "ata-2001");
    bench.preset.queue_requests = 8;
    bench_open_preset(&bench, 0);
    struct device_batch batch = {0};
    for (unsigned i = 0; i < 8; i++)
        submit(&bench, DEVICE_READ, random_offset(&bench, 4096), 4096, &batch);
    ck_assert_int_eq(bench.clock.now_ns, 0);
    submit(&bench, DEVICE_READ, random_offset(&bench, 4096), 4096, &batch);
    ck_assert_int_gt(bench.clock.now_ns, 0);
    ck_assert_uint_eq(batch.pending, 8);
    ck_assert_int_eq(device_drain(bench.device), 0);
    ck_assert_uint_eq(batch.pending, 0);
    bench_close(&bench);
}
END_TEST

START_TEST(the_disk_works_while_the_cpu_does) {
    struct bench bench;
    bench_open(&bench, "ata-2001");
    bench.machine.cost_ns[COST_REQUEST] = 10000;
    bench.clock.machine = &bench.machine;
    struct device_batch batch = {0};
    submit(&bench, DEVICE_READ, 10000 * MIB, 4096, &batch);
    ck_assert_int_eq(bench.clock.now_ns, 10000);
    clock_charge_ns(&bench.clock, 100 * NS_PER_MS);
    ck_assert_int_eq(device_wait(bench.device, &batch), 0);
    ck_assert_int_eq(bench.clock.now_ns, 10000 + 100 * NS_PER_MS);
    ck_assert_int_eq(bench.clock.cpu_ns, bench.clock.now_ns);
    bench_close(&bench);
}
END_TEST

/* --- a task ---------------------------------------------------------------------------------- */

struct writer {
    struct bench *bench;
    struct task task;
    int64_t written_ns, flushed_ns;
};

static void write_and_flush(void *context) {
    struct writer *writer = context;
    struct bench *bench = writer->bench;

    task_may_wait(&writer->task, true);
    write_at(bench, 10000 * MIB, MIB);
    writer->written_ns = bench->clock.now_ns;
    ck_assert_int_eq(device_flush(bench->device), 0);
    writer->flushed_ns = bench->clock.now_ns;
    task_may_wait(&writer->task, false);
}

static void writer_start(struct writer *writer, struct bench *bench) {
    int64_t start = bench->clock.now_ns;

    *writer = (struct writer){.bench = bench};
    ck_assert_int_eq(task_start(&writer->task, &bench->clock, write_and_flush, writer), 0);
    ck_assert(writer->task.active);
    ck_assert_int_eq(bench->clock.now_ns, start);
}

static void writer_go_on(struct writer *writer) {
    ck_assert(device_poll(writer->bench->device) == DEVICE_FREE);
    if (writer->task.active && writer->task.waits_for->pending == 0)
        task_go_on(&writer->task);
}

/* Nobody waits for it, and it takes the time of the mechanism. */
START_TEST(a_task_writes_and_flushes_beside_others) {
    struct bench bench;
    struct writer writer;
    bench_open(&bench, "ata-2001");
    writer_start(&writer, &bench);
    while (writer.task.active) {
        clock_charge_ns(&bench.clock, 10 * NS_PER_US);
        writer_go_on(&writer);
    }
    ck_assert_int_eq(bench.clock.cpu_ns, bench.clock.now_ns);
    ck_assert_int_gt(writer.written_ns, 0);
    ck_assert_int_gt(writer.flushed_ns, writer.written_ns);
    struct device_stats stats = stats_of(&bench);
    ck_assert_uint_eq(stats.flushes, 1);
    ck_assert_int_le(stats.busy_ns, writer.flushed_ns);
    ck_assert_int_ge(stats.busy_ns, writer.flushed_ns - NS_PER_MS);
    bench_close(&bench);
}
END_TEST

/* A flush waits for the writes before it, and the requests behind it for the flush. */
START_TEST(a_flush_beside_others_is_in_order) {
    struct bench bench;
    struct writer writer;
    bench_open(&bench, "ata-2001");
    writer_start(&writer, &bench);
    while (writer.written_ns == 0) {
        clock_charge_ns(&bench.clock, 10 * NS_PER_US);
        writer_go_on(&writer);
    }
    read_at(&bench, 20000 * MIB, 4096);
    int64_t read_ns = bench.clock.now_ns;
    writer_go_on(&writer);
    ck_assert(!writer.task.active);
    ck_assert_int_le(writer.flushed_ns, read_ns);
    /* One that is waited for, with one of a task under way. */
    writer_start(&writer, &bench);
    ck_assert_int_eq(device_flush(bench.device), 0);
    writer_go_on(&writer);
    ck_assert_int_eq(device_flush(bench.device), 0);
    writer_go_on(&writer);
    ck_assert(!writer.task.active);
    ck_assert_uint_eq(stats_of(&bench).flushes, 4);
    bench_close(&bench);
}
END_TEST

/* --- the whole ------------------------------------------------------------------------------- */

static struct device_stats mixed_run(const char *name, int64_t *end) {
    struct bench bench;
    bench_open(&bench, name);
    struct device_batch batch = {0};
    for (unsigned i = 0; i < 5000; i++) {
        enum device_operation operation = bench_random(&bench, 2) ? DEVICE_READ : DEVICE_WRITE;
        uint32_t length = (uint32_t)(bench_random(&bench, 64) + 1) * 512;
        submit(&bench, operation, random_offset(&bench, 65536), length, &batch);
        clock_charge_ns(&bench.clock, (int64_t)bench_random(&bench, NS_PER_MS));
        if (i % 100 == 0)
            ck_assert_int_eq(device_wait(bench.device, &batch), 0);
        if (i % 1000 == 0)
            ck_assert_int_eq(device_flush(bench.device), 0);
    }
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_uint_eq(batch.pending, 0);
    *end = bench.clock.now_ns;
    struct device_stats stats = stats_of(&bench);
    bench_close(&bench);
    return stats;
}

START_TEST(the_same_run_gives_the_same_figures) {
    int64_t first_end, second_end;
    struct device_stats first = mixed_run(preset_names[_i], &first_end);
    struct device_stats second = mixed_run(preset_names[_i], &second_end);
    ck_assert_int_eq(first_end, second_end);
    ck_assert_mem_eq(&first, &second, sizeof(first));
    /* The mechanism cannot have been busy for longer than the run, but for a few transfers that the
     * electronics overlap. */
    ck_assert_int_le(first.busy_ns, first_end + first_end / 50);
}
END_TEST

START_TEST(data_goes_to_the_device_below) {
    struct bench bench;
    bench_open(&bench, "modern-7200");
    unsigned char bytes[4096], found[4096];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7 + 1);
    ck_assert_int_eq(device_write(bench.device, 5 * MIB, bytes, 4096, PURPOSE_DIR), 0);
    ck_assert_int_eq(device_read(bench.device->lower, 5 * MIB, found, 4096, PURPOSE_DIR), 0);
    ck_assert_mem_eq(bytes, found, 4096);
    ck_assert_int_eq(device_zero(bench.device, 4 * MIB, 4 * MIB), 0);
    ck_assert_int_eq(device_read(bench.device, 5 * MIB, found, 4096, PURPOSE_DIR), 0);
    memset(bytes, 0, sizeof(bytes));
    ck_assert_mem_eq(bytes, found, 4096);
    struct device_stats stats = stats_of(&bench);
    ck_assert_uint_eq(stats.bytes[DEVICE_WRITE][PURPOSE_DIR], 4096);
    ck_assert_uint_eq(stats.bytes[DEVICE_WRITE][PURPOSE_OTHER], 4 * MIB);
    bench_close(&bench);
}
END_TEST

static int open_preset(void *context, const struct disk_preset *preset) {
    struct clock clock;
    struct device *ram = NULL, *disk = NULL;
    clock_init_virtual(&clock, NULL);
    ck_assert_int_eq(device_open_ram(preset->capacity, &clock, NULL, &ram), 0);
    ck_assert_int_eq(device_open_disk(preset, ram, &disk), 0);
    ck_assert_uint_gt(strlen(preset->description), 0);
    device_close(disk);
    ++*(int *)context;
    return 0;
}

START_TEST(every_preset_opens_with_its_capacity) {
    int count = 0;
    ck_assert_int_eq(disk_each_preset(open_preset, &count), 0);
    ck_assert_int_ge(count, PRESETS);
}
END_TEST

START_TEST(volumes_that_do_not_fit_are_refused) {
    struct bench bench;
    struct device *ram = NULL, *disk = NULL;
    bench_find(&bench, "laptop-2002");
    clock_init_virtual(&bench.clock, NULL);
    ck_assert_int_eq(device_open_ram(bench.preset.capacity + 512, &bench.clock, &quiet, &ram), 0);
    ck_assert_int_eq(device_open_disk(&bench.preset, ram, &disk), -EFBIG);
    ck_assert_ptr_null(disk);
    device_close(ram);
    ck_assert_int_eq(device_open_ram(MIB, &bench.clock, &quiet, &ram), 0);
    struct disk_preset wrong = bench.preset;
    wrong.seek_average_ns = wrong.seek_full_ns + 1;
    ck_assert_int_eq(device_open_disk(&wrong, ram, &disk), -EINVAL);
    wrong = bench.preset;
    wrong.cylinders /= 2;
    ck_assert_int_eq(device_open_disk(&wrong, ram, &disk), -EINVAL);
    ck_assert_int_eq(device_open_disk(&bench.preset, ram, &disk), 0);
    ck_assert_uint_eq(disk->size, MIB);
    device_close(disk);
    clock_init_wall(&bench.clock);
    ck_assert_int_eq(device_open_ram(MIB, &bench.clock, &quiet, &ram), 0);
    ck_assert_int_eq(device_open_disk(&bench.preset, ram, &disk), -EINVAL);
    device_close(ram);
    ck_assert_int_eq(disk_preset_find("drum-1956", &wrong, &quiet), -ENOENT);
}
END_TEST

/* --- the table ------------------------------------------------------------------------------- */

START_TEST(print_table) {
    printf("%-12s  %-34s %10s %10s %7s\n", "disk", "figure", "data sheet", "measured", "ratio");
    for (int i = 0; i < PRESETS; i++) {
        struct bench bench;
        bench_open(&bench, preset_names[i]);
        const struct disk_preset *preset = &bench.preset;
        double settle = (double)preset->write_settle_ns / 1e6;
        uint64_t inner = (preset->capacity - 300 * MIB) & ~(uint64_t)511;
        struct {
            const char *what;
            double expected, found;
        } rows[] = {
            {"random 512 B read, ms", expected_random_ms(preset), random_read_ms(&bench)},
            {"random 512 B write and flush, ms", expected_random_ms(preset) + settle,
             random_write_ms(&bench)},
            {"sequential read, outer, MB/s", expected_rate(preset, 0),
             sequential_read_rate(&bench, 0)},
            {"sequential read, inner, MB/s", expected_rate(preset, preset->zones - 1),
             sequential_read_rate(&bench, inner)},
            {"sequential write, outer, MB/s", expected_rate(preset, 0),
             sequential_write_rate(&bench, 0)},
        };
        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
            printf("%-12s  %-34s %10.2f %10.2f %7.3f\n", row ? "" : preset->name, rows[row].what,
                   rows[row].expected, rows[row].found, rows[row].found / rows[row].expected);
        bench_close(&bench);
        printf("%-12s  random 4 KiB reads/s with 1, 4, 16, 64 queued:", "");
        for (unsigned depth = 1; depth <= 64; depth *= 4) {
            bench_open(&bench, preset_names[i]);
            printf(" %.0f", random_read_iops(&bench, depth));
            bench_close(&bench);
        }
        printf("\n");
    }
}
END_TEST

static void add_tests(Suite *suite) {
    TCase *sheet = tcase_create("data sheet");
    tcase_add_loop_test(sheet, random_reads_take_what_the_data_sheet_says, 0, PRESETS);
    tcase_add_loop_test(sheet, random_writes_also_settle, 0, PRESETS);
    tcase_add_loop_test(sheet, sequential_rates_are_the_zones, 0, PRESETS);
    tcase_add_loop_test(sheet, a_full_stroke_takes_the_full_time, 0, PRESETS);
    tcase_add_loop_test(sheet, iops_grow_with_the_queue, 0, PRESETS);
    suite_add_tcase(suite, sheet);
    TCase *buffer = tcase_create("buffer");
    tcase_add_test(buffer, read_ahead_answers_what_follows);
    tcase_add_test(buffer, a_segment_forgets_what_lies_behind);
    tcase_add_test(buffer, a_write_ends_what_was_read_ahead_there);
    tcase_add_test(buffer, cached_writes_are_durable_after_a_flush_only);
    tcase_add_test(buffer, without_a_write_cache_every_write_reaches_the_platter);
    suite_add_tcase(suite, buffer);
    TCase *elevator = tcase_create("elevator");
    tcase_add_test(elevator, neighbours_merge_both_ways_up_to_the_limit);
    tcase_add_test(elevator, seeks_count_breaks_and_their_bytes);
    tcase_add_test(elevator, clook_serves_upwards);
    tcase_add_loop_test(elevator, reads_do_not_starve_behind_writes, 0, PRESETS);
    tcase_add_test(elevator, a_full_queue_makes_the_submitter_wait);
    tcase_add_test(elevator, the_disk_works_while_the_cpu_does);
    suite_add_tcase(suite, elevator);
    TCase *task = tcase_create("task");
    tcase_add_test(task, a_task_writes_and_flushes_beside_others);
    tcase_add_test(task, a_flush_beside_others_is_in_order);
    suite_add_tcase(suite, task);
    TCase *whole = tcase_create("whole");
    tcase_add_loop_test(whole, the_same_run_gives_the_same_figures, 0, PRESETS);
    tcase_add_test(whole, data_goes_to_the_device_below);
    tcase_add_test(whole, every_preset_opens_with_its_capacity);
    tcase_add_test(whole, volumes_that_do_not_fit_are_refused);
    suite_add_tcase(suite, whole);
}

static void add_table(Suite *suite) {
    TCase *table = tcase_create("table");
    tcase_add_test(table, print_table);
    tcase_set_timeout(table, 60);
    suite_add_tcase(suite, table);
}

int main(int argc, char **argv) {
    Suite *suite = suite_create("hdd");
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        add_table(suite);
    else
        add_tests(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

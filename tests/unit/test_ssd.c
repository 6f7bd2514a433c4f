/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the modelled flash disk: its map against a simple one, its cleaning against queueing-free
 * theory, its times against data sheets, and itself (the same run twice). With --table it prints
 * what docs/disk-model.md quotes.
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/device/device.h"
#include "fs/device/disk.h"
#include "fs/device/flash.h"
#include "tests/unit/fixture.h"

#define MIB (UINT64_C(1) << 20)

static const char *const preset_names[] = {"ssd-2008", "ssd-2018", "nvme-2018"};
#define PRESETS ((int)(sizeof(preset_names) / sizeof(preset_names[0])))

/* --- the map -----------------------------------------------------------------------------------
 */

struct shadow { /* what flash.c ought to know */
    struct flash_shape shape;
    struct flash *flash;
    uint32_t units, *holder; /* of each place: unit + 1 */
};

static void shadow_open(struct shadow *shadow, const struct flash_shape *shape, uint32_t units,
                        uint32_t occupied) {
    *shadow = (struct shadow){.shape = *shape, .units = units};
    ck_assert_int_eq(flash_open(shape, units, occupied, &shadow->flash), 0);
    shadow->holder = calloc((size_t)shape->dies * shape->blocks * shape->pages * shape->units, 4);
}

static void shadow_close(struct shadow *shadow) {
    flash_close(shadow->flash);
    free(shadow->holder);
}

/* No two units share a place, and as many as should be are somewhere. */
static void shadow_check(struct shadow *shadow, const bool *written) {
    size_t places = (size_t)shadow->shape.dies * shadow->shape.blocks * shadow->shape.pages *
                    shadow->shape.units;

    memset(shadow->holder, 0, places * 4);
    for (uint32_t unit = 0; unit < shadow->units; unit++) {
        uint32_t place = flash_find(shadow->flash, unit);
        ck_assert(written[unit] == (place != FLASH_NONE));
        if (place == FLASH_NONE)
            continue;
        ck_assert_uint_lt(place, places);
        ck_assert_uint_eq(shadow->holder[place], 0);
        shadow->holder[place] = unit + 1;
    }
}

static void write_units(struct shadow *shadow, uint64_t *random, const uint32_t *units,
                        uint32_t count, struct flash_work *work) {
    uint32_t die = (uint32_t)(fixture_random(random) % shadow->shape.dies);

    while (!flash_has_room(shadow->flash, die))
        die = (die + 1) % shadow->shape.dies;
    uint32_t place = flash_program(shadow->flash, die, units, count, work);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(flash_find(shadow->flash, units[i]), place + i);
}

/* Writes, forgets and cleans at random on a disk that is as full as may be. */
START_TEST(every_unit_keeps_its_place) {
    const struct flash_shape shape = {.dies = 3, .blocks = 24, .pages = 8, .units = 4};
    const uint32_t units = 3 * 8 * 4 * (24 - 5);
    uint64_t random = fixture_seed("flash");
    struct shadow shadow;
    bool *written = calloc(units, sizeof(*written));

    shadow_open(&shadow, &shape, units, _i ? units : 0);
    for (uint32_t i = 0; i < units; i++)
        written[i] = _i;
    for (unsigned round = 0; round < 20000; round++) {
        struct flash_work work = {0};
        uint32_t chosen[4], count = 1 + (uint32_t)(fixture_random(&random) % 4);
        uint32_t first = (uint32_t)(fixture_random(&random) % (units - 4));
        for (uint32_t i = 0; i < count; i++)
            chosen[i] = first + i;
        switch (fixture_random(&random) % 8) {
        case 0:
            flash_forget(shadow.flash, first);
            written[first] = false;
            break;
        case 1:
            (void)flash_clean(shadow.flash, round % shape.dies, &work);
            break;
        default:
            write_units(&shadow, &random, chosen, count, &work);
            for (uint32_t i = 0; i < count; i++)
                written[chosen[i]] = true;
        }
        if (round % 500 == 0)
            shadow_check(&shadow, written);
    }
    shadow_check(&shadow, written);
    shadow_close(&shadow);
    free(written);
}
END_TEST

/* Lambert's W on its lower part (x in [-1/e, 0), result <= 1 in magnitude). */
static double lambert(double x) {
    double w = 0;

    for (unsigned i = 0; i < 200; i++)
        w -= (w * exp(w) - x) / (exp(w) * (w + 1));
    return w;
}

/* P. Desnoyers, Analytic modeling of SSD write performance, SYSTOR 2012: uniform random writes,
 * blocks cleaned in the order of their writing (LRU). The greedy choice does a little better. */
static double expected_amplification(double spare) {
    double alpha = 1 + spare;

    return alpha / (alpha + lambert(-alpha * exp(-alpha)));
}

/* Flash programmed for each page written, once the disk is in its steady state. */
static double measured_amplification(double spare) {
    const struct flash_shape shape = {.dies = 2, .blocks = 1024, .pages = 128, .units = 1};
    const uint32_t places = 2 * 1024 * 128;
    const uint32_t units = (uint32_t)(places / (1 + spare));
    uint64_t random = 1, programs = 0;
    struct shadow shadow;

    shadow_open(&shadow, &shape, units, units);
    for (uint32_t i = 0; i < 8 * units; i++) {
        struct flash_work work = {0};
        uint32_t unit = (uint32_t)(fixture_random(&random) % units);
        write_units(&shadow, &random, &unit, 1, &work);
        programs += i >= 6 * units ? 1 + work.programs : 0;
    }
    shadow_close(&shadow);
    return (double)programs / (2 * units);
}

static const double spares[] = {0.10, 0.15, 0.25, 0.40};

START_TEST(cleaning_costs_what_theory_says) {
    double expected = expected_amplification(spares[_i]),
           found = measured_amplification(spares[_i]);

    ck_assert_double_le(found, expected * 1.05);
    ck_assert_double_ge(found, expected * 0.80);
}
END_TEST

/* --- the disk ----------------------------------------------------------------------------------
 */

struct bench {
    struct disk_preset preset;
    struct clock clock;
    struct device *device;
    uint64_t random;
    unsigned char *memory; /* 1 MiB */
};

/* The first `blocks` of every die, and the capacity that goes with them. */
static void shrink(struct disk_preset *preset, uint32_t blocks) {
    preset->capacity = preset->capacity / preset->blocks * blocks / MIB * MIB;
    preset->blocks = blocks;
}

/* With small erase blocks it takes more of them until there are enough to spare. */
static void bench_open(struct bench *bench, const char *name, uint32_t occupied) {
    struct device *ram = NULL;

    memset(bench, 0, sizeof(*bench));
    bench->random = 7;
    bench->memory = calloc(1, MIB);
    ck_assert_int_eq(disk_preset_find(name, &bench->preset, NULL), 0);
    bench->preset.occupied_percent = occupied;
    shrink(&bench->preset, bench->preset.block_pages < 256 ? 256 : 64);
    clock_init_virtual(&bench->clock, NULL);
    ck_assert_int_eq(device_open_ram(bench->preset.capacity, &bench->clock, NULL, &ram), 0);
    ck_assert_int_eq(device_open_disk(&bench->preset, ram, &bench->device), 0);
}

static void bench_close(struct bench *bench) {
    device_close(bench->device);
    free(bench->memory);
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

#define DEPTH_MAX 512u /* more than any disk takes: the host keeps its queue full */

/* Nanoseconds for each of `count` requests with `depth` always queued, at random or in order. */
static double request_ns(struct bench *bench, enum device_operation operation, bool in_order,
                         uint32_t length, unsigned depth, unsigned count) {
    struct device_batch batches[DEPTH_MAX] = {{0}};
    uint64_t places = bench->device->size / length;
    int64_t start = bench->clock.now_ns;

    for (unsigned i = 0; i < count; i++) {
        struct device_batch *batch = &batches[i % depth];
        uint64_t place = in_order ? i % places : fixture_random(&bench->random) % places;
        ck_assert_int_eq(device_wait(bench->device, batch), 0);
        submit(bench, operation, place * length, length, batch);
    }
    ck_assert_int_eq(device_drain(bench->device), 0);
    return (double)(bench->clock.now_ns - start) / count;
}

static struct device_stats stats_of(struct bench *bench) {
    struct device_stats stats;

    device_stats(bench->device, &stats);
    return stats;
}

/* What the preset's sources publish: MB/s of 128 KiB requests, random reads of 4 KiB a second. */
static const struct {
    double read, write, iops;
} sheet[] = {{250, 70, 35000}, {550, 520, 98000}, {3400, 1200, 500000}};

static double rate(struct bench *bench, enum device_operation operation) {
    return 131072 * 1e3 / request_ns(bench, operation, true, 131072, 32, 16000);
}

/* A new disk reads and writes in order as its sheet says; single-bit caches are not modelled, so
 * writing may be slower, and the early disk's firmware was slower than its flash. */
START_TEST(streams_are_as_fast_as_the_sheet_says) {
    struct bench bench;

    bench_open(&bench, preset_names[_i], 0);
    double write = rate(&bench, DEVICE_WRITE);
    double read = rate(&bench, DEVICE_READ);
    ck_assert_double_ge(read, sheet[_i].read * 0.95);
    ck_assert_double_le(read, sheet[_i].read * 1.05);
    ck_assert_double_ge(write, sheet[_i].write * 0.95);
    ck_assert_double_le(write, sheet[_i].write * 1.35);
    bench_close(&bench);
}
END_TEST

START_TEST(random_reads_are_as_many_as_the_sheet_says) {
    struct bench bench;

    bench_open(&bench, preset_names[_i], 100);
    double iops = 1e9 / request_ns(&bench, DEVICE_READ, false, 4096, DEPTH_MAX, 50000);
    ck_assert_double_ge(iops, sheet[_i].iops * 0.7);
    ck_assert_double_le(iops, sheet[_i].iops * 1.05);
    bench_close(&bench);
}
END_TEST

/* A single read: command, flash, channel, interface, and nothing else. */
START_TEST(one_read_takes_the_sum_of_its_parts) {
    struct bench bench;

    bench_open(&bench, preset_names[_i], 100);
    const struct disk_preset *preset = &bench.preset;
    double expected = (double)(preset->overhead_ns + preset->flash_read_ns) +
                      4096e9 / (double)preset->channel_rate +
                      4096e9 / (double)preset->interface_rate;
    double found = request_ns(&bench, DEVICE_READ, false, 4096, 1, 1000);
    ck_assert_double_ge(found, expected * 0.98); /* a few places hold nothing yet */
    ck_assert_double_le(found, expected * 1.001 + 10);
    bench_close(&bench);
}
END_TEST

START_TEST(a_write_is_complete_in_the_cache_and_durable_in_the_flash) {
    struct bench bench;

    bench_open(&bench, "ssd-2018", 0);
    ck_assert_int_eq(device_write(bench.device, 0, bench.memory, 4096, PURPOSE_DATA), 0);
    ck_assert_int_lt(bench.clock.now_ns, bench.preset.flash_program_ns);
    ck_assert_uint_eq(stats_of(&bench).flash_programmed, 0); /* it waits for a page to be full */
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_int_ge(bench.clock.now_ns, bench.preset.flash_program_ns);
    ck_assert_uint_eq(stats_of(&bench).flash_programmed,
                      (uint64_t)bench.preset.planes * bench.preset.page_bytes);
    int64_t before = bench.clock.now_ns;
    ck_assert_int_eq(device_flush(bench.device), 0); /* nothing is left */
    ck_assert_int_lt(bench.clock.now_ns - before, 2 * bench.preset.overhead_ns);
    bench_close(&bench);
}
END_TEST

/* A disk that is full and written at random moves data; one that was trimmed, or rests, less. */
START_TEST(cleaning_slows_a_full_disk) {
    struct bench fresh, full;

    bench_open(&fresh, "ssd-2018", 0);
    bench_open(&full, "ssd-2018", 100);
    unsigned count = (unsigned)(fresh.device->size / 4096 / 8);
    double fresh_ns = request_ns(&fresh, DEVICE_WRITE, false, 4096, 32, count);
    double full_ns = request_ns(&full, DEVICE_WRITE, false, 4096, 32, count);
    ck_assert_double_gt(full_ns, 1.5 * fresh_ns);
    ck_assert_uint_eq(stats_of(&fresh).flash_moved, 0);
    ck_assert_uint_gt(stats_of(&full).flash_moved, 0);
    ck_assert_uint_gt(stats_of(&full).flash_programmed,
                      stats_of(&full).bytes[DEVICE_WRITE][PURPOSE_DATA]);
    /* Forgotten, it is as good as new. */
    ck_assert_int_eq(device_zero(full.device, 0, full.device->size), 0);
    clock_wait_until(&full.clock, full.clock.now_ns + 100 * NS_PER_SEC);
    double trimmed_ns = request_ns(&full, DEVICE_WRITE, false, 4096, 32, count / 4);
    ck_assert_double_lt(trimmed_ns, 1.2 * fresh_ns);
    bench_close(&fresh);
    bench_close(&full);
}
END_TEST

/* A pause lets it clean beforehand. */
START_TEST(a_full_disk_recovers_at_rest) {
    struct bench bench;

    bench_open(&bench, "ssd-2008", 100);
    unsigned count = (unsigned)(bench.device->size / 4096 / 4);
    double busy_ns = request_ns(&bench, DEVICE_WRITE, false, 4096, 32, count);
    clock_wait_until(&bench.clock, bench.clock.now_ns + 100 * NS_PER_SEC);
    double rested_ns = request_ns(&bench, DEVICE_WRITE, false, 4096, 32, 500);
    ck_assert_double_lt(rested_ns, 0.7 * busy_ns);
    bench_close(&bench);
}
END_TEST

static struct device_stats mixed_run(const char *name, int64_t *now) {
    struct bench bench;

    bench_open(&bench, name, 100);
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t at = fixture_random(&bench.random) % (bench.device->size / 512 - 64) * 512;
        uint32_t length = 512 * (1 + (uint32_t)(fixture_random(&bench.random) % 64));
        submit(&bench, i % 3 ? DEVICE_WRITE : DEVICE_READ, at, length, NULL);
        if (i % 100 == 0)
            ck_assert_int_eq(device_flush(bench.device), 0);
    }
    ck_assert_int_eq(device_drain(bench.device), 0);
    struct device_stats stats = stats_of(&bench);
    *now = bench.clock.now_ns;
    bench_close(&bench);
    return stats;
}

START_TEST(the_same_run_gives_the_same_figures) {
    int64_t first, second;
    struct device_stats a = mixed_run(preset_names[_i], &first);
    struct device_stats b = mixed_run(preset_names[_i], &second);

    ck_assert_int_eq(first, second);
    ck_assert_mem_eq(&a, &b, sizeof(a));
}
END_TEST

START_TEST(a_disk_that_cannot_forget_writes_zeros) {
    struct bench bench;

    bench_open(&bench, "ssd-2008", 0);
    ck_assert_int_eq(device_zero(bench.device, 0, MIB), 0);
    ck_assert_int_eq(device_flush(bench.device), 0);
    ck_assert_uint_eq(stats_of(&bench).flash_programmed, MIB);
    bench_close(&bench);
}
END_TEST

START_TEST(wrong_presets_are_refused) {
    static const struct log quiet = {0};
    struct bench bench;
    struct device *ram, *disk = NULL;

    bench_open(&bench, "ssd-2018", 0);
    struct disk_preset wrong[] = {bench.preset, bench.preset, bench.preset, bench.preset};
    wrong[0].capacity = (uint64_t)wrong[0].blocks * wrong[0].block_pages * wrong[0].page_bytes *
                        wrong[0].planes * wrong[0].channels * wrong[0].channel_dies;
    wrong[1].page_bytes = 1024;
    wrong[2].write_cache_bytes = 4096;
    wrong[3].channels = 0;
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(device_open_ram(MIB, &bench.clock, &quiet, &ram), 0);
        ck_assert_int_eq(device_open_disk(&wrong[i], ram, &disk), -EINVAL);
        device_close(ram);
    }
    bench_close(&bench);
}
END_TEST

/* --- the table ---------------------------------------------------------------------------------
 */

START_TEST(print_table) {
    struct timespec from, to;

    printf("%-10s %9s %9s %9s %9s %9s %9s %9s\n", "disk", "read", "write", "reads/s", "1 queued",
           "writes/s", "full", "moved");
    for (int i = 0; i < PRESETS; i++) {
        struct bench bench;
        bench_open(&bench, preset_names[i], 0);
        double write = rate(&bench, DEVICE_WRITE), read = rate(&bench, DEVICE_READ);
        bench_close(&bench);
        bench_open(&bench, preset_names[i], 100);
        double many = 1e9 / request_ns(&bench, DEVICE_READ, false, 4096, DEPTH_MAX, 50000);
        double one = 1e9 / request_ns(&bench, DEVICE_READ, false, 4096, 1, 2000);
        bench_close(&bench);
        bench_open(&bench, preset_names[i], 0);
        double fresh = 1e9 / request_ns(&bench, DEVICE_WRITE, false, 4096, 32, 20000);
        bench_close(&bench);
        bench_open(&bench, preset_names[i], 100);
        unsigned count = (unsigned)(bench.device->size / 4096);
        (void)request_ns(&bench, DEVICE_WRITE, false, 4096, 32, count);
        struct device_stats before = stats_of(&bench);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        double full = 1e9 / request_ns(&bench, DEVICE_WRITE, false, 4096, 32, count);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        struct device_stats after = stats_of(&bench);
        double cpu = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        printf("%-10s %9.0f %9.0f %9.0f %9.0f %9.0f %9.0f %9.2f  (%.0f requests/s simulated)\n",
               preset_names[i], read, write, many, one, fresh, full,
               (double)(after.flash_programmed - before.flash_programmed) / (4096.0 * count),
               count / cpu);
        bench_close(&bench);
    }
    for (size_t i = 0; i < sizeof(spares) / sizeof(*spares); i++)
        printf("spare %.2f: amplification %.2f, theory (LRU) %.2f\n", spares[i],
               measured_amplification(spares[i]), expected_amplification(spares[i]));
}
END_TEST

static void add_tests(Suite *suite) {
    TCase *map = tcase_create("map");
    tcase_add_loop_test(map, every_unit_keeps_its_place, 0, 2);
    tcase_add_loop_test(map, cleaning_costs_what_theory_says, 0, 4);
    suite_add_tcase(suite, map);
    TCase *disk = tcase_create("disk");
    tcase_add_loop_test(disk, streams_are_as_fast_as_the_sheet_says, 0, PRESETS);
    tcase_add_loop_test(disk, random_reads_are_as_many_as_the_sheet_says, 0, PRESETS);
    tcase_add_loop_test(disk, one_read_takes_the_sum_of_its_parts, 0, PRESETS);
    tcase_add_test(disk, a_write_is_complete_in_the_cache_and_durable_in_the_flash);
    tcase_add_test(disk, cleaning_slows_a_full_disk);
    tcase_add_test(disk, a_full_disk_recovers_at_rest);
    tcase_add_loop_test(disk, the_same_run_gives_the_same_figures, 0, PRESETS);
    tcase_add_test(disk, a_disk_that_cannot_forget_writes_zeros);
    tcase_add_test(disk, wrong_presets_are_refused);
    suite_add_tcase(suite, disk);
}

int main(int argc, char **argv) {
    Suite *suite = suite_create("ssd");

    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        TCase *table = tcase_create("table");
        tcase_add_test(table, print_table);
        tcase_set_timeout(table, 120);
        suite_add_tcase(suite, table);
    } else {
        add_tests(suite);
    }
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What is left of an image when the power is cut in the midst of its recovery.
 *
 *     cut_recovery IMAGE
 *     cut_recovery IMAGE COPY N
 *
 * Opens the volume for writing, on a fork in memory, and closes it. The first form prints how many
 * writes that took; the second makes COPY, an image as it was, what it is after the first N of
 * them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fs/device/fork.h"
#include "fs/device/record.h"
#include "fs/volume.h"

static void must(int error, const char *what) {
    if (!error)
        return;
    fprintf(stderr, "cut_recovery: %s: %d\n", what, error);
    exit(1);
}

/* All that the recovery writes. */
static void record_recovery(struct device *image, struct clock *clock, const struct log *log,
                            struct write_log *writes) {
    struct device *fork, *recorder;
    struct volume *volume;

    must(device_open_fork(image, &fork), "fork");
    must(device_open_record(fork, writes, &recorder), "record");
    const struct volume_config config = {.device = recorder, .clock = clock, .log = log};
    must(volume_open(&config, &volume), "mount");
    must(volume_close(volume), "unmount");
}

int main(int argc, char **argv) {
    const struct log log = log_to_stderr("cut_recovery", LOG_LEVEL_WARNING);
    struct write_log writes = {0};
    struct device *image, *copy;
    struct clock clock;
    unsigned long count = 0;

    if (argc != 2 && argc != 4) {
        fputs("usage: cut_recovery IMAGE [COPY N]\n", stderr);
        return 2;
    }
    clock_init_virtual(&clock, NULL);
    must(device_open_image(argv[1], DEVICE_READ_ONLY, 0, &clock, &log, &image), argv[1]);
    record_recovery(image, &clock, &log, &writes);
    if (argc == 4)
        must(device_open_image(argv[2], 0, 0, &clock, &log, &copy), argv[2]);
    for (size_t i = 0; i < writes.count; i++) {
        const struct record *record = &writes.records[i];
        if (record->kind != RECORD_WRITE)
            continue;
        if (argc == 4 && count < strtoul(argv[3], NULL, 10))
            must(write_log_apply(&writes, record, record->length, copy), "write");
        count++;
    }
    if (argc == 2)
        printf("%lu\n", count);
    else
        device_close(copy);
    device_close(image);
    write_log_free(&writes);
    return 0;
}

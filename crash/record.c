/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/record.h.
 */
#include "crash/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/device/disk.h"
#include "fs/device/fork.h"

/* Between operations, so that time stamps and commit intervals mean something. */
#define OPERATION_NS NS_PER_MS
/* Over a modelled disk: some commits are made in the background, between operations and beside. */
#define DISK_OPERATION_NS (1500 * NS_PER_MS)
#define POISON_BYTES      16384u /* written at a time */

/* --- the base --------------------------------------------------------------------------------- */

static int poison_bare(struct device *device) {
    unsigned char bytes[POISON_BYTES];
    int error = 0;

    memset(bytes, POISON, sizeof(bytes));
    for (uint64_t at = 0; at < device->size && !error; at += sizeof(bytes)) {
        uint64_t left = device->size - at;

        error = device_write(device, at, bytes,
                             left < sizeof(bytes) ? (uint32_t)left : (uint32_t)sizeof(bytes),
                             PURPOSE_DATA);
    }
    return error;
}

static int format_base(const struct crash_config *config, const struct type_promise *promise,
                       const struct log *log, struct base *base) {
    const struct layout_type *type;
    struct options options;
    int error = layout_find(config->type, &base->layout, &type);

    if (error || !base->layout->format || !base->layout->check) {
        log_error(log, "%s: no type that can be made and checked", config->type);
        return error ? error : -ENOTSUP;
    }
    error = device_open_ram(config->size ? config->size : promise->size, &base->clock, log,
                            &base->device);
    if (error)
        return error;
    if (promise->poison_bare)
        error = poison_bare(base->device);
    if (!error)
        error = options_init(&options, base->layout->options, OPTION_MKFS, log);
    if (error)
        return error;
    error = type ? options_parse(&options, type->mkfs_options) : 0;
    if (!error)
        error = options_parse(&options,
                              config->mkfs_options ? config->mkfs_options : promise->mkfs_options);
    if (!error)
        error = layout_format(config->type, base->device, &options);
    options_free(&options);
    return error;
}

/* With the type's defaults, whatever the options that are explored. */
static int poison_base(struct base *base, const struct log *log) {
    struct base plain = {.type = base->type};
    struct volume *volume;
    int error = mount_borrowed(&plain, base->device, &base->clock, log, false, &volume);

    if (error)
        return error;
    error = perform_poison(volume);
    int second = volume_close(volume);
    return error ? error : second;
}

/* Options that cannot be mounted with are an error, and not one finding for each workload. */
static int try_options(const struct base *base, const struct log *log) {
    struct clock clock;
    struct volume *volume;

    clock_init_virtual(&clock, NULL);
    int error = mount_borrowed(base, base->device, &clock, log, true, &volume);
    return error ? error : volume_close(volume);
}

int base_make(const struct crash_config *config, const struct type_promise *promise,
              const struct log *log, struct base *base) {
    *base = (struct base){
        .type = config->type, .mount_options = config->mount_options, .disk = config->disk};
    clock_init_virtual(&base->clock, NULL);
    int error = format_base(config, promise, log, base);
    if (!error && !promise->poison_bare)
        error = poison_base(base, log);
    if (!error)
        error = try_options(base, log);
    if (!error)
        return 0;
    log_error(log, "%s: no volume to start from: %s", config->type, strerror(-error));
    base_free(base);
    return error;
}

void base_free(struct base *base) {
    device_close(base->device);
    base->device = NULL;
}

int mount_borrowed(const struct base *base, struct device *device, struct clock *clock,
                   const struct log *log, bool read_only, struct volume **volume) {
    /* Taking a snapshot must not change what it shows. */
    char options[OPTIONS_MAX];
    struct volume_config config = {
        .type = base->type, .clock = clock, .log = log, .options = options, .read_only = read_only};
    snprintf(options, sizeof(options), "atime=noatime,%s",
             base->mount_options ? base->mount_options : "");
    int error = device_open_borrowed(device, &config.device);

    if (error)
        return error;
    config.device->clock = clock;
    config.device->log = log;
    error = volume_open(&config, volume);
    if (error)
        device_close(config.device);
    return error;
}

/* --- recording -------------------------------------------------------------------------------- */

static int add_tree(struct volume *volume, struct recording *recording, char *why, size_t size) {
    char where[NODE_PATH_MAX];
    int error = snapshot_take(volume, &recording->trees[recording->tree_count], where);

    if (error)
        snprintf(why, size, "'%s' cannot be read while nothing is wrong: %s", where,
                 strerror(-error));
    else
        recording->tree_count++;
    return error;
}

static int record_operation(struct volume *volume, struct recording *recording, unsigned number,
                            char *why, size_t size) {
    const struct op *op = &recording->workload->ops[number];

    clock_wait_until(volume->clock, clock_now(volume->clock) + recording->operation_ns);
    int error = write_log_mark(&recording->log, MARK_BEGIN(number));
    if (error)
        return error;
    recording->result[number] = perform(volume, op, number);
    error = write_log_mark(&recording->log, MARK_END(number));
    if (!error && op_changes(op->kind))
        error = add_tree(volume, recording, why, size);
    recording->tree_after[number] = recording->tree_count - 1;
    return error;
}

static int record_volume(struct volume *volume, struct recording *recording, char *why,
                         size_t size) {
    int error = perform_setup(volume, recording->workload);

    if (error) {
        snprintf(why, size, "the files to start with cannot be made: %s", strerror(-error));
        return error;
    }
    error = add_tree(volume, recording, why, size);
    recording->start = recording->log.count;
    for (unsigned i = 0; i < recording->workload->count && !error; i++)
        error = record_operation(volume, recording, i, why, size);
    return error;
}

static int record_mounted(const struct base *base, struct recording *recording,
                          struct device *device, struct clock *clock, char *why, size_t size) {
    unsigned unmount = UNMOUNT(recording->workload);
    struct volume *volume;
    int error = mount_borrowed(base, device, clock, NULL, false, &volume);

    if (error) {
        snprintf(why, size, "mount: %s", strerror(-error));
        return error;
    }
    error = record_volume(volume, recording, why, size);
    int second = write_log_mark(&recording->log, MARK_BEGIN(unmount));
    recording->result[unmount] = volume_close(volume);
    recording->tree_after[unmount] = recording->tree_count - 1;
    if (!error)
        error = second;
    if (!error && recording->result[unmount]) {
        error = recording->result[unmount];
        snprintf(why, size, "unmount: %s", strerror(-error));
    }
    return error ? error : write_log_mark(&recording->log, MARK_END(unmount));
}

/* A copy of the base to record on, on its modelled disk if it has one. */
static int open_copy(const struct base *base, struct clock *clock, struct device **device) {
    struct disk_preset preset;
    struct device *fork;
    int error = device_open_fork(base->device, &fork);

    if (error)
        return error;
    fork->clock = clock;
    *device = fork;
    if (!base->disk)
        return 0;
    error = disk_preset_find(base->disk, &preset, fork->log);
    if (!error)
        error = device_open_disk(&preset, fork, device);
    if (error)
        device_close(fork);
    return error;
}

int recording_make(const struct base *base, const struct workload *workload,
                   struct recording *recording, char *why, size_t size) {
    struct clock clock;
    struct device *copy, *recorder;

    recording->workload = workload;
    recording->operation_ns = base->disk ? DISK_OPERATION_NS : OPERATION_NS;
    recording->tree_count = 0;
    recording->start = 0;
    write_log_clear(&recording->log);
    clock_init_virtual(&clock, NULL);
    snprintf(why, size, "no memory");
    int error = open_copy(base, &clock, &copy);
    if (error)
        return error;
    error = device_open_record(copy, &recording->log, &recorder);
    if (error) {
        device_close(copy);
        return error;
    }
    error = record_mounted(base, recording, recorder, &clock, why, size);
    device_close(recorder);
    return error;
}

void recording_free(struct recording *recording) {
    for (unsigned i = 0; i <= OPS_MAX; i++)
        snapshot_free(&recording->trees[i]);
    write_log_free(&recording->log);
}

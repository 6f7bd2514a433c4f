/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. What a mount costs: a tree of small files unpacked, looked at, read and deleted,
 * then one big file written and read in large requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"

static const struct option_spec mount_parameters[] = {
    {"files", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "20000", 1, 10000000, NULL, "small files"},
    {"bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "80M", 1, INT64_MAX, NULL, "bytes in them"},
    {"stream", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "1G", 0, INT64_MAX, NULL, "bytes of the big file"},
    {"request", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "1M", 4096, 64 << 20, NULL,
     "bytes of one read or write of the big file"},
    {0},
};

#define STREAM_NAME "stream"

static int small_files(struct workload_run *run) {
    struct tree_count count = {0}, removed = {0};
    int error = step_begin(run, "unpack", true);

    if (!error)
        error = tree_unpack(run, 0);
    if (error)
        return error;
    step_end(run, run->source->files, run->source->bytes);
    error = step_cool(run, "remount");
    if (!error)
        error = step_begin(run, "stat", true);
    if (!error)
        error = tree_find(run, NULL, NULL);
    if (error)
        return error;
    step_end(run, run->source->files, 0);
    error = step_begin(run, "read", true);
    if (!error)
        error = tree_read(run, 500, &count);
    if (error)
        return error;
    step_end(run, count.files, count.bytes);
    error = step_begin(run, "delete", true);
    if (!error)
        error = tree_remove(run, &removed);
    if (!error)
        step_end(run, removed.files, run->source->bytes);
    return error;
}

static int stream_write(struct workload_run *run, const struct driver_node *root, char *buffer,
                        uint64_t size, size_t request) {
    struct driver *driver = run->driver;
    struct driver_node node;
    int error = driver->operations->create(driver, root, STREAM_NAME, 0644, &node);

    if (error)
        return error;
    for (uint64_t at = 0; at < size && !error; at += request) {
        memset(buffer, (int)(at / request), request);
        error = driver->operations->write(driver, &node, buffer, request, at);
        step_progress(run, at, size);
    }
    if (!error)
        error = driver->operations->fsync(driver, &node);
    driver->operations->close(driver, &node);
    return error;
}

static int stream_read(struct workload_run *run, const struct driver_node *root, char *buffer,
                       uint64_t size, size_t request) {
    struct driver *driver = run->driver;
    struct driver_node node;
    int error = driver->operations->open(driver, root, STREAM_NAME, &node);

    if (error)
        return error;
    for (uint64_t at = 0; at < size && !error; at += request) {
        int64_t got = driver->operations->read(driver, &node, buffer, request, at);
        if (got != (int64_t)request || buffer[0] != (char)(at / request) ||
            buffer[request - 1] != buffer[0])
            error = got < 0 ? (int)got : -EIO;
        step_progress(run, at, size);
    }
    driver->operations->close(driver, &node);
    return error;
}

typedef int (*stream_work)(struct workload_run *run, const struct driver_node *root, char *buffer,
                           uint64_t size, size_t request);

static int stream_step(struct workload_run *run, const char *step, stream_work work, char *buffer) {
    size_t request = (size_t)options_number(run->parameters, "request");
    uint64_t size = (uint64_t)options_number(run->parameters, "stream") / request * request;
    struct driver_node root;
    int error = step_begin(run, step, true);

    if (!error)
        error = run->driver->operations->root(run->driver, &root);
    if (error)
        return error;
    error = work(run, &root, buffer, size, request);
    run->driver->operations->leave(run->driver, &root);
    if (!error)
        step_end(run, 0, size);
    return error;
}

static int mount_run(struct workload_run *run) {
    char *buffer = malloc((size_t)options_number(run->parameters, "request"));
    int error;

    if (!buffer)
        return -ENOMEM;
    error = small_files(run);
    if (!error)
        error = stream_step(run, "sequential write", stream_write, buffer);
    if (!error)
        error = step_cool(run, "remount");
    if (!error)
        error = stream_step(run, "sequential read", stream_read, buffer);
    free(buffer);
    return error;
}

static const char *const mount_scaled[] = {"files", "bytes", "stream", NULL};

extern const struct workload workload_mount;
const struct workload workload_mount = {
    .name = "mount",
    .description = "small files and one big file, as programs use a mount",
    .parameters = mount_parameters,
    .scaled = mount_scaled,
    .needs_source = true,
    .run = mount_run,
};

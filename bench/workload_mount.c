/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. What a mount costs: a tree of small files unpacked, looked at, read (cold and hot)
 * and deleted; one big file written and read in large requests; small requests in random places.
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
    {"random_file", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "256M", 1 << 20, INT64_MAX, NULL,
     "bytes of the file for random requests"},
    {"random_requests", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "20000", 4, 100000000, NULL,
     "random requests of 4 KiB in each step"},
    {0},
};

#define STREAM_NAME  "stream"
#define RANDOM_NAME  "random"
#define RANDOM_BYTES 4096u

static int find_step(struct workload_run *run, const char *step) {
    int error = step_begin(run, step, true);

    if (!error)
        error = tree_find(run, NULL, NULL);
    if (!error)
        step_end(run, run->source->files, 0);
    return error;
}

static int read_step(struct workload_run *run, const char *step) {
    struct tree_count count = {0};
    int error = step_begin(run, step, true);

    if (!error)
        error = tree_read(run, 500, &count);
    if (!error)
        step_end(run, count.files, count.bytes);
    return error;
}

static int unpack_step(struct workload_run *run) {
    int error = step_begin(run, "unpack", true);

    if (!error)
        error = tree_unpack(run, 0);
    if (!error)
        step_end(run, run->source->files, run->source->bytes);
    return error;
}

static int delete_step(struct workload_run *run) {
    struct tree_count removed = {0};
    int error = step_begin(run, "delete", true);

    if (!error)
        error = tree_remove(run, &removed);
    if (!error)
        step_end(run, removed.files, run->source->bytes);
    return error;
}

static int small_files(struct workload_run *run) {
    int error = unpack_step(run);

    if (!error)
        error = step_cool(run, "remount");
    if (!error)
        error = find_step(run, "stat, cold");
    if (!error)
        error = find_step(run, "stat, hot");
    if (!error)
        error = read_step(run, "read, cold");
    if (!error)
        error = read_step(run, "read, hot");
    return error ? error : delete_step(run);
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
    int error = driver->operations->open(driver, root, STREAM_NAME, false, &node);

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

/* --- small requests in random places ---------------------------------------------------------- */

static struct random_io random_request(const struct workload_run *run, const char *step,
                                       unsigned threads) {
    return (struct random_io){.step = step,
                              .threads = threads,
                              .operations =
                                  (uint64_t)options_number(run->parameters, "random_requests"),
                              .request = RANDOM_BYTES,
                              .size = (uint64_t)options_number(run->parameters, "random_file")};
}

static int fill(struct workload_run *run, const struct driver_node *node, char *buffer) {
    size_t request = (size_t)options_number(run->parameters, "request");
    uint64_t size = (uint64_t)options_number(run->parameters, "random_file");
    struct driver *driver = run->driver;
    int error = step_begin(run, "fill", false);

    for (uint64_t at = 0; at < size && !error; at += request) {
        uint64_t length = size - at < request ? size - at : request;
        error = driver->operations->write(driver, node, buffer, length, at);
    }
    if (!error)
        error = driver->operations->fsync(driver, node);
    if (!error)
        step_end(run, 0, size);
    return error;
}

static int random_writes(struct workload_run *run, const struct driver_node *root, char *buffer) {
    struct random_io one = random_request(run, "random write, 1 thread", 1);
    struct random_io four = random_request(run, "random write, 4 threads", 4);
    struct driver *driver = run->driver;
    struct driver_node node;
    int error = driver->operations->create(driver, root, RANDOM_NAME, 0644, &node);

    if (error)
        return error;
    one.node = four.node = &node;
    one.write = four.write = one.sync = four.sync = true;
    error = fill(run, &node, buffer);
    if (!error)
        error = random_io(run, &one);
    if (!error)
        error = random_io(run, &four);
    driver->operations->close(driver, &node);
    return error;
}

static int random_reads(struct workload_run *run, const char *step, unsigned threads) {
    struct random_io io = random_request(run, step, threads);
    struct driver *driver = run->driver;
    struct driver_node root, node;
    int error = step_cool(run, "remount");

    if (!error)
        error = driver->operations->root(driver, &root);
    if (error)
        return error;
    error = driver->operations->open(driver, &root, RANDOM_NAME, false, &node);
    driver->operations->leave(driver, &root);
    if (error)
        return error;
    io.node = &node;
    error = random_io(run, &io);
    driver->operations->close(driver, &node);
    return error;
}

static int random_requests(struct workload_run *run, char *buffer) {
    struct driver_node root;
    int error = run->driver->operations->root(run->driver, &root);

    if (error)
        return error;
    error = random_writes(run, &root, buffer);
    run->driver->operations->leave(run->driver, &root);
    if (!error)
        error = random_reads(run, "random read, 1 thread", 1);
    if (!error)
        error = random_reads(run, "random read, 4 threads", 4);
    return error;
}

static int mount_run(struct workload_run *run) {
    char *buffer = calloc(1, (size_t)options_number(run->parameters, "request"));
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
    if (!error)
        error = random_requests(run, buffer);
    free(buffer);
    return error;
}

static const char *const mount_scaled[] = {"files",       "bytes",           "stream",
                                           "random_file", "random_requests", NULL};

extern const struct workload workload_mount;
const struct workload workload_mount = {
    .name = "mount",
    .description = "small files, a big file and random requests, as programs use a mount",
    .parameters = mount_parameters,
    .scaled = mount_scaled,
    .needs_source = true,
    .run = mount_run,
};

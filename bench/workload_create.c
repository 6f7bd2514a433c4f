/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Creates many files of one small size: what the code itself costs, in this machine's
 * CPU time, when the disk is a model.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/workload.h"

#define FILE_BYTES_MAX 65536u
#define PROGRESS_STEP  1024u

static const struct option_spec create_parameters[] = {
    {"count", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "100000", 1, 10000000, NULL, "files to create"},
    {"directory_files", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "1000", 1, 1000000, NULL,
     "files in one directory"},
    {"file_bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "4096", 0, FILE_BYTES_MAX, NULL,
     "bytes in each"},
    {0},
};

static int create_file(struct driver *driver, const struct driver_node *dir, uint32_t number,
                       const void *content, size_t size) {
    struct driver_node node;
    char name[16];

    snprintf(name, sizeof(name), "f%07u", number);
    int error = driver->operations->create(driver, dir, name, 0644, &node);
    if (error)
        return error;
    if (size > 0)
        error = driver->operations->write(driver, &node, content, size, 0);
    driver->operations->close(driver, &node);
    return error;
}

static int enter_new(struct driver *driver, const struct driver_node *root, uint32_t number,
                     struct driver_node *dir) {
    char name[16];

    snprintf(name, sizeof(name), "d%05u", number);
    int error = driver->operations->mkdir(driver, root, name, 0755);
    return error ? error : driver->operations->enter(driver, root, name, dir);
}

static int create_files(struct workload_run *run, const struct driver_node *root) {
    static const char content[FILE_BYTES_MAX] = "a file";
    uint32_t count = (uint32_t)options_number(run->parameters, "count");
    uint32_t each = (uint32_t)options_number(run->parameters, "directory_files");
    size_t size = (size_t)options_number(run->parameters, "file_bytes");
    struct driver *driver = run->driver;
    struct driver_node dir;
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++) {
        if (i % each == 0) {
            if (i > 0)
                driver->operations->leave(driver, &dir);
            error = enter_new(driver, root, i / each, &dir);
            if (error)
                return error;
        }
        error = create_file(driver, &dir, i, content, size);
        if (i % PROGRESS_STEP == 0)
            step_progress(run, i, count);
    }
    driver->operations->leave(driver, &dir);
    return error;
}

static int create_run(struct workload_run *run) {
    uint64_t count = (uint64_t)options_number(run->parameters, "count");
    uint64_t bytes = count * (uint64_t)options_number(run->parameters, "file_bytes");
    struct driver_node root;
    int error = run->driver->operations->root(run->driver, &root);

    if (error)
        return error;
    error = step_begin(run, "create", true);
    if (!error)
        error = create_files(run, &root);
    if (!error)
        step_end(run, count, bytes);
    run->driver->operations->leave(run->driver, &root);
    if (!error)
        error = step_begin(run, "sync", false);
    if (!error)
        error = run->driver->operations->sync(run->driver);
    if (!error)
        step_end(run, 0, 0);
    return error;
}

static const char *const create_scaled[] = {"count", NULL};

extern const struct workload workload_create;
const struct workload workload_create = {
    .name = "create",
    .description = "create many small files",
    .parameters = create_parameters,
    .scaled = create_scaled,
    .measures_host = true,
    .run = create_run,
};

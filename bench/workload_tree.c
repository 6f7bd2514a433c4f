/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Unpack a source tree, read it cold, read it again, delete it.
 */
#include <errno.h>

#include "bench/workload.h"

static const struct option_spec tree_parameters[] = {
    {"files", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "13035", 1, 10000000, NULL,
     "files of the published tree: the size of a synthetic tree, and of a fitted one"},
    {"bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "192000000", 1, INT64_MAX, NULL, "bytes in them"},
    {"unpack_cpu_ns_per_kb", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "0", 0, 1000000000, NULL,
     "the decompressor's CPU time for each KB that it puts out, ns"},
    {"batch", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "500", 1, 900, NULL,
     "files that one cat is given"},
    {0},
};

static int traverse(struct workload_run *run, const char *step) {
    struct tree_count count = {0};
    int error = step_begin(run, step, true);

    if (!error)
        error = tree_read(run, (uint32_t)options_number(run->parameters, "batch"), &count);
    if (!error)
        step_end(run, count.files, count.bytes);
    return error;
}

static int unpack(struct workload_run *run) {
    int error = step_begin(run, "unpack", true);

    if (!error)
        error = tree_unpack(run, options_number(run->parameters, "unpack_cpu_ns_per_kb"));
    if (!error)
        step_end(run, run->source->files, run->source->bytes);
    return error;
}

static int delete (struct workload_run *run) {
    struct tree_count count = {0};
    int error = step_begin(run, "delete", true);

    if (!error)
        error = tree_remove(run, &count);
    if (!error)
        step_end(run, count.files, run->source->bytes);
    return error;
}

static int final_sync(struct workload_run *run) {
    int error = step_begin(run, "sync", false);

    if (!error)
        error = run->driver->operations->sync(run->driver);
    if (!error)
        step_end(run, 0, 0);
    return error;
}

static int tree_run(struct workload_run *run) {
    int error = unpack(run);

    if (!error)
        error = step_cool(run, "reboot");
    if (!error)
        error = traverse(run, "cold traversal");
    if (!error)
        error = traverse(run, "hot traversal");
    if (!error)
        error = delete (run);
    if (!error)
        error = final_sync(run);
    return error;
}

static const char *const tree_scaled[] = {"files", "bytes", NULL};

extern const struct workload workload_tree;
const struct workload workload_tree = {
    .name = "tree",
    .description = "unpack an archive, read all files cold and again, delete them",
    .parameters = tree_parameters,
    .scaled = tree_scaled,
    .needs_source = true,
    .run = tree_run,
};

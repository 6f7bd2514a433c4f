/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. The list of workloads, and the measuring of steps.
 */
#include "bench/workload.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

extern const struct workload workload_tree, workload_create, workload_copy, workload_mount,
    workload_records, workload_overwrite;

const struct workload *const workloads[] = {&workload_tree,
                                            &workload_create,
                                            &workload_copy,
                                            &workload_mount,
                                            &workload_records,
                                            &workload_overwrite,
                                            NULL};

const struct workload *workload_find(const char *name) {
    for (size_t i = 0; workloads[i]; i++)
        if (strcmp(workloads[i]->name, name) == 0)
            return workloads[i];
    return NULL;
}

static int64_t host_cpu_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static int64_t host_system_ns(void) {
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_stime.tv_sec * NS_PER_SEC + usage.ru_stime.tv_usec * NS_PER_US;
}

/* later - earlier, in place; both are sums that only grow. */
static void stats_subtract(struct device_stats *later, const struct device_stats *earlier) {
    for (int operation = 0; operation < 2; operation++) {
        later->requests[operation] -= earlier->requests[operation];
        for (int purpose = 0; purpose < PURPOSE_COUNT; purpose++)
            later->bytes[operation][purpose] -= earlier->bytes[operation][purpose];
    }
    later->seeks -= earlier->seeks;
    later->seek_bytes -= earlier->seek_bytes;
    later->seek_ns -= earlier->seek_ns;
    later->rotation_ns -= earlier->rotation_ns;
    later->transfer_ns -= earlier->transfer_ns;
    later->overhead_ns -= earlier->overhead_ns;
    later->busy_ns -= earlier->busy_ns;
    later->cache_hits -= earlier->cache_hits;
    later->flushes -= earlier->flushes;
    later->flash_programmed -= earlier->flash_programmed;
    later->flash_moved -= earlier->flash_moved;
    later->flash_erases -= earlier->flash_erases;
}

int step_begin(struct workload_run *run, const char *name, bool timed) {
    struct driver *driver = run->driver;
    struct step *step;

    if (run->count == STEPS_MAX)
        return -E2BIG;
    step = &run->steps[run->count];
    /* Holds the readings at the start until step_end takes the difference. */
    *step = (struct step){.name = name, .timed = timed};
    driver->operations->stats(driver, &step->device);
    step->ns = driver->operations->now_ns(driver);
    step->cpu_ns = driver->operations->cpu_ns(driver);
    step->host_cpu_ns = host_cpu_ns();
    step->host_system_ns = host_system_ns();
    step_progress(run, 0, 0);
    return 0;
}

void step_end(struct workload_run *run, uint64_t files, uint64_t bytes) {
    struct driver *driver = run->driver;
    struct step *step = &run->steps[run->count++];
    struct device_stats now;

    step->host_cpu_ns = host_cpu_ns() - step->host_cpu_ns;
    step->host_system_ns = host_system_ns() - step->host_system_ns;
    step->ns = driver->operations->now_ns(driver) - step->ns;
    step->cpu_ns = driver->operations->cpu_ns(driver) - step->cpu_ns;
    driver->operations->stats(driver, &now);
    stats_subtract(&now, &step->device);
    step->device = now;
    step->files = files;
    step->bytes = bytes;
}

int step_cool(struct workload_run *run, const char *name) {
    int error = step_begin(run, name, false);

    if (!error)
        error = run->driver->operations->drop_caches(run->driver);
    if (error == -EPERM) {
        run->warm = true;
        error = 0;
    }
    if (!error)
        step_end(run, 0, 0);
    return error;
}

void step_progress(struct workload_run *run, uint64_t done, uint64_t total) {
    if (run->progress)
        run->progress(run->context, run->steps[run->count].name, done, total);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over bench/driver.h and bench/source.h. Under bench/run.h.
 *
 * A workload imitates what people or programs do to a filesystem, in named steps that are measured
 * one by one. It reaches the filesystem through its driver only, so the same code runs on a
 * modelled disk, through a mount, and on any other mounted directory. Adding one: a file with a
 * `const struct workload`, and a line in workload.c.
 */
#ifndef LAYOUTFS_BENCH_WORKLOAD_H
#define LAYOUTFS_BENCH_WORKLOAD_H

#include "bench/driver.h"
#include "bench/source.h"
#include "fs/options.h"

#define STEPS_MAX        32
#define STEP_NAME_MAX    32
#define WORKLOAD_OPTIONS 4u /* the option scope of workload parameters */

/* How long single operations took; all zero where they were not timed one by one. */
struct latency {
    uint64_t operations;
    int64_t p50_ns, p99_ns, max_ns;
};

struct step {
    const char *name;
    bool timed; /* false: something the published figures leave out (a reboot, a sync) */
    int64_t ns, cpu_ns;
    int64_t host_cpu_ns;    /* this machine's CPU time; differs from run to run */
    int64_t host_system_ns; /* of which the system's, mostly for memory touched first */
    uint64_t files, bytes;
    struct latency latency;
    struct device_stats device;
};

struct workload_run {
    struct driver *driver;
    const struct source *source; /* NULL for a workload that needs none */
    const struct options *parameters;
    const struct log *log;
    /* May be NULL: told now and then how far a step is, for a progress line. */
    void (*progress)(void *context, const char *step, uint64_t done, uint64_t total);
    void *context;
    struct step steps[STEPS_MAX];
    unsigned count;
    bool warm; /* caches could not be dropped: the cold steps were not cold */
};

struct workload {
    const char *name;
    const char *description;              /* one line */
    const struct option_spec *parameters; /* scope WORKLOAD_OPTIONS */
    const char *const *scaled;            /* parameters that --scale makes smaller; ended by NULL */
    bool needs_source; /* a file tree, of the size in its parameters "files" and "bytes" */
    /* The figure that counts is this machine's CPU time: rows run one by one, and once before they
     * are measured, so that the memory they use has been handed out already. */
    bool measures_host;
    int (*run)(struct workload_run *run);
};

extern const struct workload *const workloads[]; /* ended by NULL */
const struct workload *workload_find(const char *name);

/* Starts measuring a step; `name` is static. -E2BIG after STEPS_MAX. */
int step_begin(struct workload_run *run, const char *name, bool timed);
/* Ends it; the step's work in files and bytes. */
void step_end(struct workload_run *run, uint64_t files, uint64_t bytes);
/* An untimed step that empties all caches; where that is not permitted, run->warm says so. */
int step_cool(struct workload_run *run, const char *name);
void step_progress(struct workload_run *run, uint64_t done, uint64_t total);

/* --- requests in random places of one file: bench/random_io.c ------------------------------------
 */

struct random_io {
    const char *step; /* its name, static */
    const struct driver_node *node;
    bool write;
    unsigned threads;    /* with one request each at a time; more than one only where the driver's
                          * calls may come from several */
    uint64_t operations; /* of all threads together */
    size_t request;      /* bytes, at aligned offsets */
    uint64_t size;       /* of the file */
    bool sync;           /* fsync once at the end, within the step */
};
/* One timed step, with its latencies. */
int random_io(struct workload_run *run, const struct random_io *io);
/* Of so many times, in ns, which are sorted; of none all zero. */
struct latency latency_of(int64_t *times, uint64_t count);

/* --- pieces that workloads on file trees share: bench/tree.c ---------------------------------- */

struct tree_count {
    uint64_t files, bytes;
};

/* As tar unpacks: entries in archive order, file data in records of 10 KB, owner's umask applied,
 * modes and times restored. `cpu_ns_per_kb`: the decompressor's work for each KB of file data. */
int tree_unpack(struct workload_run *run, int64_t cpu_ns_per_kb);
/* As `find . -type f`: reads each directory whole, then looks at each entry and goes down at
 * directories. Calls visit (may be NULL) for each file: its open directory, depth and name. */
typedef int (*tree_visit)(void *context, const struct driver_node *dir, uint32_t depth,
                          const char *name);
int tree_find(struct workload_run *run, tree_visit visit, void *context);
/* As `find . -type f | xargs -n BATCH cat > /dev/null`. */
int tree_read(struct workload_run *run, uint32_t batch, struct tree_count *count);
/* As `rm -rf` of everything in the root. */
int tree_remove(struct workload_run *run, struct tree_count *count);

#endif

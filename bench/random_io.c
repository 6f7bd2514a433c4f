/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Requests in random places of one file, timed one by one. See workload.h.
 *
 * Each thread draws its places from a sequence of its own, so that they do not depend on how the
 * threads take turns.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"
#include "fs/random.h"

#define RANDOM_SEED    UINT64_C(0x6c61796f75740001)
#define PROGRESS_EVERY 256u
#define THREADS_MAX    64u

struct worker {
    struct workload_run *run;
    const struct random_io *io;
    unsigned number;
    uint64_t operations;
    int64_t *times; /* ns, of each */
    int error;
};

static int one_request(const struct worker *worker, void *buffer, uint64_t offset) {
    struct driver *driver = worker->run->driver;
    const struct random_io *io = worker->io;

    if (io->write)
        return driver->operations->write(driver, io->node, buffer, io->request, offset);
    int64_t got = driver->operations->read(driver, io->node, buffer, io->request, offset);
    return got < 0 ? (int)got : got == (int64_t)io->request ? 0 : -EIO;
}

static void *work(void *context) {
    struct worker *worker = context;
    struct driver *driver = worker->run->driver;
    const struct random_io *io = worker->io;
    struct random random = {.state = RANDOM_SEED + worker->number};
    void *buffer = malloc(io->request);

    if (!buffer) {
        worker->error = -ENOMEM;
        return NULL;
    }
    memset(buffer, (int)worker->number + 1, io->request);
    for (uint64_t i = 0; i < worker->operations && !worker->error; i++) {
        uint64_t place = random_next(&random) % (io->size / io->request);
        int64_t start = driver->operations->now_ns(driver);
        worker->error = one_request(worker, buffer, place * io->request);
        worker->times[i] = driver->operations->now_ns(driver) - start;
        if (worker->number == 0 && i % PROGRESS_EVERY == 0)
            step_progress(worker->run, i * io->threads, io->operations);
    }
    free(buffer);
    return NULL;
}

static int by_value(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

struct latency latency_of(int64_t *times, uint64_t count) {
    if (count == 0)
        return (struct latency){0};
    qsort(times, count, sizeof(*times), by_value);
    return (struct latency){.operations = count,
                            .p50_ns = times[count / 2],
                            .p99_ns = times[count - 1 - count / 100],
                            .max_ns = times[count - 1]};
}

/* Thread 0 is the caller's. */
static int run_workers(struct worker *workers, unsigned count) {
    pthread_t threads[THREADS_MAX];
    unsigned started = 1;
    int error = 0;

    while (started < count && !error) {
        error = -pthread_create(&threads[started], NULL, work, &workers[started]);
        started += !error;
    }
    if (!error)
        work(&workers[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < count && !error; i++)
        error = workers[i].error;
    return error;
}

static int measure(struct workload_run *run, const struct random_io *io, int64_t *times) {
    struct worker workers[THREADS_MAX];
    struct driver *driver = run->driver;
    uint64_t each = io->operations / io->threads;

    for (unsigned i = 0; i < io->threads; i++)
        workers[i] = (struct worker){
            .run = run, .io = io, .number = i, .operations = each, .times = times + i * each};
    int error = step_begin(run, io->step, true);
    if (!error)
        error = run_workers(workers, io->threads);
    if (!error && io->sync)
        error = driver->operations->fsync(driver, io->node);
    if (error)
        return error;
    run->steps[run->count].latency = latency_of(times, each * io->threads);
    step_end(run, 0, each * io->threads * io->request);
    return 0;
}

int random_io(struct workload_run *run, const struct random_io *io) {
    if (io->threads == 0 || io->threads > THREADS_MAX || io->operations < io->threads ||
        io->size < io->request)
        return -EINVAL;
    if (io->threads > 1 && !run->driver->operations->threads)
        return 0;
    int64_t *times = calloc(io->operations, sizeof(*times));
    if (!times)
        return -ENOMEM;
    int error = measure(run, io, times);
    free(times);
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. One large file, parts of which are overwritten in random places again and again,
 * many times the volume's free space: a log-structured layout has to clean meanwhile.
 *
 * A request that finds no space is made again after a while, as a patient program would; the time
 * counts as the request's. When that has gone on for long, the step is over with what was done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"
#include "fs/random.h"

#define FILE_NAME   "data"
#define REQUEST_MAX (16u << 20)
#define PLACES_SEED UINT64_C(0x6f76657277726974)
#define PIECE       (64u << 10) /* of a request, in one call, which is made again as a whole */
#define RETRY_NS    (100 * INT64_C(1000000))
#define GIVE_UP_NS  (60 * NS_PER_SEC)

static const struct option_spec overwrite_parameters[] = {
    {"file_bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "140M", 1, INT64_C(1) << 40, NULL,
     "bytes of the file"},
    {"request", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "1M", 1, REQUEST_MAX, NULL,
     "bytes that are overwritten at a time, at aligned places"},
    {"first", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "100", 1, 10000000, NULL,
     "requests of the first step, which is to use up what is free"},
    {"operations", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "1000", 1, 10000000, NULL,
     "requests of the second step"},
    {"pause_ms", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "0", 0, 60000, NULL,
     "milliseconds between requests"},
    {0},
};

struct overwrite {
    struct workload_run *run;
    struct driver_node node;
    struct random random;
    void *buffer; /* owned: a request */
    size_t request;
    uint64_t places; /* of requests in the file */
};

static int fill(struct overwrite *o, const struct driver_node *root) {
    struct driver *driver = o->run->driver;
    uint64_t size = o->places * o->request;
    int error = step_begin(o->run, "fill", false);

    if (!error)
        error = driver->operations->create(driver, root, FILE_NAME, 0644, &o->node);
    if (error)
        return error;
    for (uint64_t at = 0, length; at < size && !error; at += length) {
        length = size - at < o->request ? size - at : o->request;
        error = driver->operations->write(driver, &o->node, o->buffer, length, at);
        step_progress(o->run, at, size);
    }
    if (!error)
        error = driver->operations->fsync(driver, &o->node);
    if (error)
        driver->operations->close(driver, &o->node);
    else
        step_end(o->run, 1, size);
    return error;
}

/* -ENOSPC: not for a long time. */
static int one_request(struct overwrite *o, int64_t *took) {
    struct driver *driver = o->run->driver;
    uint64_t at = random_next(&o->random) % o->places * o->request;
    int64_t start = driver->operations->now_ns(driver);
    size_t done = 0;

    while (done < o->request) {
        size_t piece = o->request - done < PIECE ? o->request - done : PIECE;
        int error = driver->operations->write(driver, &o->node, o->buffer, piece, at + done);
        *took = driver->operations->now_ns(driver) - start;
        if (error && (error != -ENOSPC || *took > GIVE_UP_NS))
            return error;
        if (error)
            driver->operations->charge_ns(driver, RETRY_NS);
        else
            done += piece;
    }
    return 0;
}

static int requests(struct overwrite *o, const char *step, uint64_t count) {
    struct driver *driver = o->run->driver;
    int64_t pause = options_number(o->run->parameters, "pause_ms") * INT64_C(1000000);
    int64_t *times = calloc(count, sizeof(*times));
    int error = times ? step_begin(o->run, step, true) : -ENOMEM;
    uint64_t done = 0;

    while (done < count && !error) {
        error = one_request(o, &times[done]);
        done += !error;
        step_progress(o->run, done, count);
        if (pause > 0 && !error)
            driver->operations->charge_ns(driver, pause);
    }
    if (error == -ENOSPC)
        error = 0;
    if (!error) {
        o->run->steps[o->run->count].latency = latency_of(times, done);
        step_end(o->run, 0, done * o->request);
    }
    free(times);
    return error;
}

static int overwrite_in(struct overwrite *o, const struct driver_node *root) {
    const struct options *parameters = o->run->parameters;
    int error = fill(o, root);

    if (error)
        return error;
    error = requests(o, "overwrite, at first", (uint64_t)options_number(parameters, "first"));
    if (!error)
        error = requests(o, "overwrite, full", (uint64_t)options_number(parameters, "operations"));
    o->run->driver->operations->close(o->run->driver, &o->node);
    return error;
}

static int overwrite_run(struct workload_run *run) {
    size_t request = (size_t)options_number(run->parameters, "request");
    struct overwrite o = {
        .run = run,
        .random = {.state = PLACES_SEED},
        .request = request,
        .places = (uint64_t)options_number(run->parameters, "file_bytes") / request,
    };
    struct driver_node root;

    if (o.places == 0) {
        log_error(run->log, "overwrite: file_bytes must hold a request, of %zu bytes", request);
        return -EINVAL;
    }
    o.buffer = malloc(request);
    if (!o.buffer)
        return -ENOMEM;
    memset(o.buffer, 'o', request);
    int error = run->driver->operations->root(run->driver, &root);
    if (!error) {
        error = overwrite_in(&o, &root);
        run->driver->operations->leave(run->driver, &root);
    }
    free(o.buffer);
    return error;
}

static const char *const overwrite_scaled[] = {"file_bytes", NULL};

extern const struct workload workload_overwrite;
const struct workload workload_overwrite = {
    .name = "overwrite",
    .description = "overwrite random parts of one large file, again and again",
    .parameters = overwrite_parameters,
    .scaled = overwrite_scaled,
    .run = overwrite_run,
};

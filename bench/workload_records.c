/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. One file written and read record by record, as iozone does with -e and -U: in order
 * and in random order, each pass with its fsync in the timing, and the caches emptied before each.
 * Twice, with small and with large records, each time on a new file.
 *
 * A random pass visits every record once, in an order that is shuffled by a fixed seed. The last
 * pass, which iozone does not have, reads in order what was written in random order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"
#include "fs/random.h"

#define FILE_NAME        "records"
#define RECORD_BYTES_MAX (16u << 20)
#define SHUFFLE_SEED     UINT64_C(0x7265636f72647331)
#define PROGRESS_EVERY   256u

static const struct option_spec records_parameters[] = {
    {"file_bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "500M", 1, INT64_C(1) << 40, NULL,
     "bytes of the file; what is less than a record at its end is left out"},
    {"small_record", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "8K", 1, RECORD_BYTES_MAX, NULL,
     "bytes of a record in the first six passes"},
    {"large_record", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "64K", 1, RECORD_BYTES_MAX, NULL,
     "bytes of a record in the others"},
    {0},
};

enum pass { WRITE, REWRITE, READ, REREAD, RANDOM_READ, RANDOM_WRITE, READ_AFTER, PASSES };

static const char *const small_names[PASSES] = {
    "write, small",       "rewrite, small",      "read, small",      "reread, small",
    "random read, small", "random write, small", "read after, small"};
static const char *const large_names[PASSES] = {
    "write, large",       "rewrite, large",      "read, large",      "reread, large",
    "random read, large", "random write, large", "read after, large"};

struct records {
    struct workload_run *run;
    const char *const *names; /* of the steps */
    size_t size;              /* bytes of a record */
    uint32_t count;           /* of the file */
    uint32_t *shuffled;       /* owned: every record once */
    void *buffer;             /* owned: a record */
};

static bool pass_writes(enum pass pass) {
    return pass == WRITE || pass == REWRITE || pass == RANDOM_WRITE;
}

static bool pass_is_random(enum pass pass) {
    return pass == RANDOM_READ || pass == RANDOM_WRITE;
}

/* Fisher and Yates's. */
static void shuffle(uint32_t *numbers, uint32_t count) {
    struct random random = {.state = SHUFFLE_SEED};

    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = random_below(&random, i), number = numbers[i - 1];
        numbers[i - 1] = numbers[other];
        numbers[other] = number;
    }
}

static int records_init(struct records *records, struct workload_run *run, const char *const *names,
                        const char *record_parameter) {
    size_t size = (size_t)options_number(run->parameters, record_parameter);
    uint64_t count = (uint64_t)options_number(run->parameters, "file_bytes") / size;

    if (count == 0 || count > UINT32_MAX) {
        log_error(run->log, "records: file_bytes must hold 1 to 2^32 - 1 records of %zu bytes",
                  size);
        return -EINVAL;
    }
    *records = (struct records){.run = run,
                                .names = names,
                                .size = size,
                                .count = (uint32_t)count,
                                .shuffled = calloc(count, sizeof(*records->shuffled)),
                                .buffer = malloc(size)};
    if (!records->shuffled || !records->buffer)
        return -ENOMEM;
    shuffle(records->shuffled, records->count);
    memset(records->buffer, 'r', size);
    return 0;
}

static void records_destroy(struct records *records) {
    free(records->shuffled);
    free(records->buffer);
}

static int open_file(struct driver *driver, enum pass pass, struct driver_node *node) {
    struct driver_node root;
    int error = driver->operations->root(driver, &root);

    if (error)
        return error;
    if (pass == WRITE)
        error = driver->operations->create(driver, &root, FILE_NAME, 0640, node);
    else
        error = driver->operations->open(driver, &root, FILE_NAME, pass_writes(pass), node);
    driver->operations->leave(driver, &root);
    return error;
}

static int one_record(const struct records *records, const struct driver_node *node, bool write,
                      uint32_t number) {
    const struct driver_operations *operations = records->run->driver->operations;
    uint64_t offset = (uint64_t)number * records->size;

    if (write)
        return operations->write(records->run->driver, node, records->buffer, records->size,
                                 offset);
    int64_t got =
        operations->read(records->run->driver, node, records->buffer, records->size, offset);
    return got < 0 ? (int)got : got == (int64_t)records->size ? 0 : -EIO;
}

static int all_records(const struct records *records, enum pass pass) {
    struct driver *driver = records->run->driver;
    struct driver_node node;
    int error = open_file(driver, pass, &node);

    if (error)
        return error;
    for (uint32_t i = 0; i < records->count && !error; i++) {
        error = one_record(records, &node, pass_writes(pass),
                           pass_is_random(pass) ? records->shuffled[i] : i);
        if (i % PROGRESS_EVERY == 0)
            step_progress(records->run, i, records->count);
    }
    if (!error && pass_writes(pass))
        error = driver->operations->fsync(driver, &node);
    driver->operations->close(driver, &node);
    return error;
}

static int remove_file(struct driver *driver) {
    struct driver_node root;
    int error = driver->operations->root(driver, &root);

    if (error)
        return error;
    error = driver->operations->unlink(driver, &root, FILE_NAME);
    driver->operations->leave(driver, &root);
    return error;
}

static int all_passes(const struct records *records) {
    struct workload_run *run = records->run;
    int error = 0;

    for (enum pass pass = WRITE; pass < PASSES && !error; pass++) {
        error = step_begin(run, records->names[pass], true);
        if (!error)
            error = all_records(records, pass);
        if (error)
            break;
        step_end(run, 0, (uint64_t)records->count * records->size);
        if (pass == PASSES - 1)
            error = remove_file(run->driver);
        if (!error)
            error = step_cool(run, "unmount");
    }
    return error;
}

static int records_run(struct workload_run *run) {
    static const struct {
        const char *const *names;
        const char *parameter;
    } rounds[] = {{small_names, "small_record"}, {large_names, "large_record"}};
    int error = 0;

    for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds) && !error; i++) {
        struct records records;
        error = records_init(&records, run, rounds[i].names, rounds[i].parameter);
        if (error == -EINVAL)
            break;
        if (!error)
            error = all_passes(&records);
        records_destroy(&records);
    }
    return error;
}

static const char *const records_scaled[] = {"file_bytes", NULL};

extern const struct workload workload_records;
const struct workload workload_records = {
    .name = "records",
    .description = "write and read one file by records, in order and in random order",
    .parameters = records_parameters,
    .scaled = records_scaled,
    .run = records_run,
};

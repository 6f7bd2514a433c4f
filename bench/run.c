/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Runs a scenario's rows on modelled disks. See run.h.
 *
 *     volume -> partition -> hdd (the preset) -> ram
 *
 * Each row has a clock, a disk and a volume of its own, so rows may run on any number of threads
 * and in any order without a figure changing.
 */
#include "bench/run.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/format.h"
#include "bench/partition.h"
#include "bench/progress.h"
#include "fs/device/disk.h"

/* --- one row ---------------------------------------------------------------------------------- */

/* Remembers the first error's sentence for the report; the rest go nowhere, since rows run at the
 * same time. */
static void keep_message(void *context, enum log_level level, const char *text) {
    struct row_result *result = context;

    if (level == LOG_LEVEL_ERROR && result->message[0] == '\0')
        snprintf(result->message, sizeof(result->message), "%s", text);
}

/* A layer takes its lower one over only on success; on failure the caller closes it. */
static int open_disk(const struct scenario *scenario, struct clock *clock, const struct log *log,
                     struct device **disk) {
    struct disk_preset preset;
    struct device *ram, *hdd;
    int error = disk_preset_find(scenario->disk, &preset, log);

    if (!error)
        error = device_open_ram(preset.capacity / DEVICE_SECTOR * DEVICE_SECTOR, clock, log, &ram);
    if (error)
        return error;
    error = device_open_disk(&preset, ram, &hdd);
    if (error) {
        device_close(ram);
        return error;
    }
    error = partition_open(hdd, scenario->volume_start, scenario->volume_size, disk);
    if (error)
        device_close(hdd);
    return error;
}

static int run_workload(const struct run_config *config, struct driver *driver,
                        struct progress_row *progress, const struct log *log,
                        struct row_result *result) {
    struct workload_run *run = calloc(1, sizeof(*run));
    int error;

    if (!run)
        return -ENOMEM;
    *run = (struct workload_run){.driver = driver,
                                 .source = config->source,
                                 .parameters = &config->scenario->parameters,
                                 .log = log,
                                 .progress = progress_report,
                                 .context = progress};
    error = config->scenario->workload->run(run);
    memcpy(result->steps, run->steps, sizeof(result->steps));
    result->step_count = run->count;
    result->warm = run->warm;
    free(run);
    return error;
}

/* Mounts the volume on `disk` (NULL: a volatile layout) and takes the device over in any case. */
static int run_on_volume(const struct run_config *config, struct clock *clock,
                         const struct machine *machine, struct device *disk,
                         struct progress_row *progress, const struct log *log,
                         struct row_result *result) {
    struct volume_config volume_config = {.type = result->row->type,
                                          .device = disk,
                                          .clock = clock,
                                          .log = log,
                                          .options = result->row->mount,
                                          .machine = machine};
    struct driver_volume driver;
    struct volume *volume;
    int error = volume_open(&volume_config, &volume);

    if (error) {
        device_close(disk);
        return error;
    }
    driver_volume_init(&driver, volume);
    error = run_workload(config, &driver.driver, progress, log, result);
    int closed = volume_close(volume);
    return error ? error : closed;
}

static int run_row(const struct run_config *config, struct progress_row *progress,
                   struct row_result *result) {
    struct log log = {.emit = keep_message, .context = result, .threshold = LOG_LEVEL_WARNING};
    const struct layout *layout;
    const struct layout_type *type;
    struct device *disk = NULL;
    struct machine machine;
    struct clock clock;

    if (!scenario_emulates(config->scenario, result->row) ||
        layout_find(result->row->type, &layout, &type)) {
        result->status = ROW_NOT_EMULATED;
        return 0;
    }
    int error = machine_preset(config->scenario->machine, &machine, &log);
    if (error)
        return error;
    if (config->scenario->memory)
        machine.memory_bytes = config->scenario->memory;
    clock_init_virtual(&clock, &machine);
    if (!(layout->flags & LAYOUT_VOLATILE)) {
        error = open_disk(config->scenario, &clock, &log, &disk);
        if (error)
            return error;
        error = format_row(result->row, disk, &log);
        if (error) {
            device_close(disk);
            return error;
        }
    }
    return run_on_volume(config, &clock, &machine, disk, progress, &log, result);
}

/* --- all rows --------------------------------------------------------------------------------- */

struct crew {
    const struct run_config *config;
    struct row_result *results;
    struct progress progress;
    _Atomic unsigned next;
    _Atomic int error; /* the first failure */
};

/* Memory that a row has given back stays with the process, for the row's measured run. */
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
}

static int run_row_measured(const struct run_config *config, struct progress_row *progress,
                            struct row_result *result) {
    if (config->scenario->workload->measures_host) {
        struct row_result rehearsal = {.row = result->row};
        int error = run_row(config, progress, &rehearsal);
        if (error) {
            *result = rehearsal;
            return error;
        }
    }
    return run_row(config, progress, result);
}

static void *work(void *context) {
    struct crew *crew = context;
    unsigned number;

    while ((number = atomic_fetch_add(&crew->next, 1)) < crew->config->scenario->row_count) {
        struct row_result *result = &crew->results[number];
        int error = run_row_measured(crew->config, &crew->progress.rows[number], result);
        int none = 0;
        if (error) {
            result->status = ROW_FAILED;
            if (result->message[0] == '\0')
                snprintf(result->message, sizeof(result->message), "%s", strerror(-error));
            atomic_compare_exchange_strong(&crew->error, &none, error);
        }
        progress_row_done(&crew->progress.rows[number]);
    }
    return NULL;
}

int run_modelled(const struct run_config *config, struct row_result *results) {
    const struct scenario *scenario = config->scenario;
    struct crew *crew = calloc(1, sizeof(*crew));
    pthread_t threads[SCENARIO_ROWS_MAX];
    unsigned started = 0;

    if (!crew)
        return -ENOMEM;
    if (scenario->workload->measures_host)
        keep_memory();
    crew->config = config;
    crew->results = results;
    for (unsigned i = 0; i < scenario->row_count; i++)
        results[i] = (struct row_result){.row = &scenario->rows[i]};
    progress_start(&crew->progress, scenario, config->progress);
    while (started + 1 < config->threads && started + 1 < scenario->row_count &&
           pthread_create(&threads[started], NULL, work, crew) == 0)
        started++;
    work(crew);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    progress_stop(&crew->progress);
    int error = crew->error;
    free(crew);
    return error;
}

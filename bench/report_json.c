/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. results.json; docs/results-schema.md says what each field means. Everything that
 * differs between two runs of one command is in "header" (and "wall", which exists only when
 * something was mounted): the rest is integers and texts in a fixed order.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/report.h"

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *utc_now(void) {
    char text[32];
    time_t now = time(NULL);
    struct tm parts;

    gmtime_r(&now, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static json_t *host_cpu(const struct report *report) {
    json_t *rows = json_object();

    for (unsigned i = 0; i < report->row_count; i++) {
        json_t *steps = json_object();
        for (unsigned j = 0; j < report->rows[i].step_count; j++) {
            const struct step *step = &report->rows[i].steps[j];
            json_object_set_new(steps, step->name, json_integer(step->host_cpu_ns));
        }
        json_object_set_new(rows, report->rows[i].row->id, steps);
    }
    return rows;
}

static json_t *header(const struct report *report) {
    char host[256] = "";
    json_t *object = json_object();

    gethostname(host, sizeof(host) - 1);
    json_object_set_new(object, "date", utc_now());
    json_object_set_new(object, "host", json_string(host));
    json_object_set_new(object, "command", json_string(report->command));
    json_object_set_new(object, "version", json_string(LAYOUTFS_VERSION));
    json_object_set_new(object, "host_ns", json_integer(report->host_ns));
    json_object_set_new(object, "host_cpu_ns", host_cpu(report));
    return object;
}

static json_t *parameters(const struct options *options) {
    json_t *object = json_object();

    for (unsigned i = 0; i < options->count; i++)
        json_object_set_new(object, options->values[i].spec->name,
                            json_integer(options->values[i].number));
    return object;
}

static json_t *describe_scenario(const struct report *report) {
    const struct scenario *scenario = report->scenario;
    json_t *object = json_object(), *notes = json_array();

    json_object_set_new(object, "name", json_string(scenario->name));
    json_object_set_new(object, "title", json_string(scenario->title));
    json_object_set_new(object, "disk", json_string(scenario->disk));
    json_object_set_new(object, "machine", json_string(scenario->machine));
    json_object_set_new(object, "memory_bytes", number(scenario->memory));
    json_object_set_new(object, "volume_start", number(scenario->volume_start));
    json_object_set_new(object, "volume_size", number(scenario->volume_size));
    json_object_set_new(object, "scale_permille", number(report->scale_permille));
    json_object_set_new(object, "workload", json_string(scenario->workload->name));
    json_object_set_new(object, "parameters", parameters(&scenario->parameters));
    for (unsigned i = 0; i < scenario->note_count; i++)
        json_array_append_new(notes, json_string(scenario->notes[i]));
    json_object_set_new(object, "notes", notes);
    return object;
}

static json_t *describe_source(const struct source *source) {
    json_t *object = json_object();

    json_object_set_new(object, "description", json_string(source->description));
    json_object_set_new(object, "files", number(source->files));
    json_object_set_new(object, "directories", number(source->directories));
    json_object_set_new(object, "symlinks", number(source->symlinks));
    json_object_set_new(object, "bytes", number(source->bytes));
    json_object_set_new(object, "skipped", number(source->skipped));
    return object;
}

static json_t *bytes_by_purpose(const uint64_t bytes[PURPOSE_COUNT]) {
    json_t *object = json_object();

    for (unsigned purpose = 0; purpose < PURPOSE_COUNT; purpose++)
        json_object_set_new(object, purpose_name(purpose), number(bytes[purpose]));
    return object;
}

static json_t *describe_device(const struct device_stats *stats) {
    static const char *const operations[] = {[DEVICE_READ] = "read", [DEVICE_WRITE] = "write"};
    json_t *object = json_object(), *requests = json_object(), *bytes = json_object();

    for (unsigned i = 0; i < 2; i++) {
        json_object_set_new(requests, operations[i], number(stats->requests[i]));
        json_object_set_new(bytes, operations[i], bytes_by_purpose(stats->bytes[i]));
    }
    json_object_set_new(object, "requests", requests);
    json_object_set_new(object, "bytes", bytes);
    json_object_set_new(object, "seeks", number(stats->seeks));
    json_object_set_new(object, "seek_bytes", number(stats->seek_bytes));
    json_object_set_new(object, "seek_ns", json_integer(stats->seek_ns));
    json_object_set_new(object, "rotation_ns", json_integer(stats->rotation_ns));
    json_object_set_new(object, "transfer_ns", json_integer(stats->transfer_ns));
    json_object_set_new(object, "overhead_ns", json_integer(stats->overhead_ns));
    json_object_set_new(object, "busy_ns", json_integer(stats->busy_ns));
    json_object_set_new(object, "cache_hits", number(stats->cache_hits));
    json_object_set_new(object, "flushes", number(stats->flushes));
    json_object_set_new(object, "flash_programmed", number(stats->flash_programmed));
    json_object_set_new(object, "flash_moved", number(stats->flash_moved));
    json_object_set_new(object, "flash_erases", number(stats->flash_erases));
    return object;
}

static json_t *describe_step(const struct report *report, unsigned row, const struct step *step) {
    const struct published *published = scenario_published(report->rows[row].row, step->name);
    json_t *object = json_object();

    json_object_set_new(object, "name", json_string(step->name));
    json_object_set_new(object, "timed", json_boolean(step->timed));
    json_object_set_new(object, "ns", json_integer(step->ns));
    json_object_set_new(object, "cpu_ns", json_integer(step->cpu_ns));
    json_object_set_new(object, "files", number(step->files));
    json_object_set_new(object, "bytes", number(step->bytes));
    if (step->timed)
        json_object_set_new(object, "ratio_permille",
                            json_integer(report_ratio(report, row, step->name)));
    if (published && report_published_ratio(report, row, step->name))
        json_object_set_new(object, "published_ratio_permille",
                            json_integer(report_published_ratio(report, row, step->name)));
    json_object_set_new(object, "device", describe_device(&step->device));
    return object;
}

static json_t *describe_published(const struct scenario_row *row) {
    json_t *array = json_array();

    for (unsigned i = 0; i < row->published_count; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "step", json_string(row->published[i].step));
        json_object_set_new(object, "ns", json_integer(row->published[i].ns));
        json_object_set_new(object, "below", json_boolean(row->published[i].below));
        json_object_set_new(object, "rate", json_boolean(row->published[i].rate));
        json_array_append_new(array, object);
    }
    return array;
}

static const char *status_word(enum row_status status) {
    static const char *const words[] = {
        [ROW_DONE] = "done", [ROW_NOT_EMULATED] = "not emulated", [ROW_FAILED] = "failed"};

    return words[status];
}

static json_t *describe_row(const struct report *report, unsigned number_of_row) {
    const struct row_result *result = &report->rows[number_of_row];
    json_t *object = json_object(), *steps = json_array();

    json_object_set_new(object, "id", json_string(result->row->id));
    json_object_set_new(object, "label", json_string(result->row->label));
    json_object_set_new(object, "type", json_string(result->row->type));
    json_object_set_new(object, "mkfs", json_string(result->row->mkfs));
    json_object_set_new(object, "mount", json_string(result->row->mount));
    json_object_set_new(object, "status", json_string(status_word(result->status)));
    if (result->status == ROW_FAILED)
        json_object_set_new(object, "message", json_string(result->message));
    json_object_set_new(object, "published", describe_published(result->row));
    for (unsigned i = 0; i < result->step_count; i++)
        json_array_append_new(steps, describe_step(report, number_of_row, &result->steps[i]));
    json_object_set_new(object, "steps", steps);
    return object;
}

static json_t *describe_orders(const struct report *report) {
    static const char *const words[] = {[ORDER_AGREES] = "agrees", [ORDER_DIFFERS] = "differs"};
    const struct scenario_row *row = report->rows[0].row;
    json_t *object = json_object();

    for (unsigned i = 0; i < row->published_count; i++) {
        enum order order = report_order(report, row->published[i].step);
        if (order != ORDER_NONE)
            json_object_set_new(object, row->published[i].step, json_string(words[order]));
    }
    return object;
}

static void describe_latency(json_t *object, struct latency latency) {
    if (latency.operations == 0)
        return;
    json_object_set_new(object, "operations", number(latency.operations));
    json_object_set_new(object, "p50_ns", json_integer(latency.p50_ns));
    json_object_set_new(object, "p99_ns", json_integer(latency.p99_ns));
    json_object_set_new(object, "max_ns", json_integer(latency.max_ns));
}

static json_t *describe_wall_step(const struct wall_step *step, unsigned rounds) {
    json_t *object = json_object(), *times = json_array();

    json_object_set_new(object, "name", json_string(step->name));
    json_object_set_new(object, "timed", json_boolean(step->timed));
    json_object_set_new(object, "files", number(step->files));
    json_object_set_new(object, "bytes", number(step->bytes));
    json_object_set_new(object, "median_ns", json_integer(wall_median(step, rounds)));
    for (unsigned i = 0; i < rounds; i++)
        json_array_append_new(times, json_integer(step->ns[i]));
    json_object_set_new(object, "ns", times);
    describe_latency(object, wall_latency(step, rounds));
    return object;
}

static json_t *describe_wall(const struct wall_result *result) {
    json_t *object = json_object(), *steps = json_array();

    json_object_set_new(object, "label", json_string(result->label));
    json_object_set_new(object, "peer", json_string(result->peer));
    json_object_set_new(object, "status", json_string(status_word(result->status)));
    json_object_set_new(object, "message", json_string(result->message));
    json_object_set_new(object, "cold", json_boolean(!result->warm));
    for (unsigned i = 0; i < result->step_count; i++)
        json_array_append_new(steps, describe_wall_step(&result->steps[i], result->rounds));
    json_object_set_new(object, "steps", steps);
    return object;
}

int report_json(const char *path, const struct report *report, const struct log *log) {
    json_t *root = json_object(), *rows = json_array(), *wall = json_array();
    int error = 0;

    json_object_set_new(root, "header", header(report));
    json_object_set_new(root, "scenario", describe_scenario(report));
    if (report->source)
        json_object_set_new(root, "source", describe_source(report->source));
    for (unsigned i = 0; i < report->row_count; i++)
        json_array_append_new(rows, describe_row(report, i));
    json_object_set_new(root, "rows", rows);
    if (report->row_count)
        json_object_set_new(root, "order", describe_orders(report));
    for (unsigned i = 0; i < report->wall_count; i++)
        json_array_append_new(wall, describe_wall(&report->wall[i]));
    if (report->wall_count)
        json_object_set(root, "wall", wall);
    errno = 0;
    if (json_dump_file(root, path, JSON_INDENT(2) | JSON_PRESERVE_ORDER) < 0) {
        error = errno ? -errno : -EIO;
        log_error(log, "%s: %s", path, strerror(-error));
    }
    json_decref(wall);
    json_decref(root);
    return error;
}

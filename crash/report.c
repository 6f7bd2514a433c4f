/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/report.h.
 */
#include "crash/report.h"

#include <inttypes.h>
#include <string.h>

static void put_option(FILE *out, const char *name, const char *value) {
    if (value)
        fprintf(out, " %s '%s'", name, value);
}

void report_finding(FILE *out, const struct crash_config *config, const struct finding *finding) {
    fprintf(out, "layoutfs crash --replay %s.%" PRIx64 ".%s -t %s", crash_mode_names[config->mode],
            finding->number, finding->state, config->type);
    put_option(out, "-o", config->mount_options);
    put_option(out, "--mkfs-options", config->mkfs_options);
    put_option(out, "--disk", config->disk);
    if (config->size)
        fprintf(out, " --size %" PRIu64, config->size);
    if (config->length)
        fprintf(out, " --length %u", config->length);
    if (config->expectation >= 0)
        fprintf(out, " --expect %s", expectation_names[config->expectation]);
    put_option(out, "--fsck", config->fsck);
    fprintf(out, "  # %s\n", finding->why);
}

void report_summary(FILE *out, const struct crash_config *config,
                    const struct crash_totals *totals) {
    int64_t ms = totals->elapsed_ns / NS_PER_MS;
    int64_t rate = totals->elapsed_ns > 0 ? (int64_t)totals->states * 1000 / (ms > 0 ? ms : 1) : 0;

    fprintf(out, "%s %s%s%s: %" PRIu64 " workloads, %" PRIu64 " states",
            crash_mode_names[config->mode], config->type, config->mount_options ? "," : "",
            config->mount_options ? config->mount_options : "", totals->workloads, totals->states);
    if (config->mode == CRASH_ERRORS)
        fprintf(out,
                " (error reported in %" PRIu64 ", without effect in %" PRIu64
                "; volume stopped in %" PRIu64 ")",
                totals->reported, totals->absorbed, totals->stopped);
    fprintf(out, ", %" PRIu64 " shown to others' fsck; %" PRIu64 " findings\n",
            totals->checked_by_others, totals->findings);
    fprintf(out, "%" PRId64 ".%03" PRId64 " s, %" PRId64 " states/s\n", ms / 1000, ms % 1000, rate);
}

void report_workload(FILE *out, const struct recording *recording) {
    const struct workload *workload = recording->workload;

    fputs("There from the start, durable:", out);
    for (enum name name = 0; name < NAMES; name++)
        if (workload->setup[name])
            fprintf(out, " %s%s", name_paths[name],
                    workload->setup[name] == SETUP_DIRECTORY ? "/" : "");
    fputs("\nOperations:\n", out);
    for (unsigned i = 0; i < workload->count; i++) {
        char text[128];

        op_text(&workload->ops[i], text, sizeof(text));
        fprintf(out, "  %3u  %s%s%s\n", i, text, recording->result[i] ? ": " : "",
                recording->result[i] ? strerror(-recording->result[i]) : "");
    }
}

/* From the last flush before the cut to a little behind it. */
void report_epoch(FILE *out, const struct write_log *log, const struct state *state) {
    size_t start = state->cut;
    unsigned n = 0;

    while (start > 0 && log->records[start - 1].kind != RECORD_FLUSH)
        start--;
    fputs("Since the last flush:\n", out);
    for (size_t i = start; i < state->cut; i++) {
        const struct record *record = &log->records[i];

        if (record->kind == RECORD_WRITE)
            fprintf(out, "  write %u  %8" PRIu64 " + %6" PRIu32 "  %s\n", n++, record->offset,
                    record->length, purpose_name(record->purpose));
        else if (record->kind == RECORD_MARK)
            fprintf(out, "  operation %u %s\n", MARK_NUMBER(record->offset),
                    MARK_IS_END(record->offset) ? "ends" : "begins");
    }
    fputs("  power cut\n", out);
}

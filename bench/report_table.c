/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. The table on the terminal: for each step a block of rows, ours beside what was
 * published, then notes on what the figures are and how far they agree.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/report.h"

#define LABEL_WIDTH  26
#define FAR_PERMILLE 150 /* ratios farther from the published one are pointed out */

/* --- cells ------------------------------------------------------------------------------------ */

static double seconds(int64_t ns) {
    return (double)ns / 1e9;
}

static void print_count(FILE *file, int width, uint64_t value) {
    char digits[24], text[32];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, value), at = 0;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    fprintf(file, "%*s", width, text);
}

static void print_nothing(FILE *file, int width) {
    fprintf(file, "%*s", width, "-");
}

static void print_ratio(FILE *file, int width, bool below, int64_t permille) {
    char text[24];

    if (permille == 0) {
        print_nothing(file, width);
        return;
    }
    snprintf(text, sizeof(text), "%s%.2f", below ? "< " : "", (double)permille / 1000);
    fprintf(file, "%*s", width, text);
}

static void print_published(FILE *file, int width, const struct published *published) {
    char text[24];

    if (!published) {
        print_nothing(file, width);
        return;
    }
    if (published->rate)
        snprintf(text, sizeof(text), "%s%.2f MB/s", published->below ? "> " : "",
                 1 / seconds(published->ns));
    else
        snprintf(text, sizeof(text), "%s%.1f", published->below ? "< " : "",
                 seconds(published->ns));
    fprintf(file, "%*s", width, text);
}

static void print_rate(FILE *file, int width, uint64_t amount, int64_t ns, double unit,
                       int decimals) {
    if (amount == 0 || ns <= 0)
        print_nothing(file, width);
    else
        fprintf(file, "%*.*f", width, decimals, (double)amount / unit / seconds(ns));
}

/* --- the modelled part ------------------------------------------------------------------------ */

static void print_columns(FILE *file) {
    fprintf(file, "%-*s%9s%11s%7s%11s%8s%9s%9s%10s%6s\n", LABEL_WIDTH, "", "ours", "published",
            "ratio", "published", "", "", "", "mean seek", "");
    fprintf(file, "%-*s%9s%11s%7s%11s%8s%9s%9s%10s%6s\n", LABEL_WIDTH, "step, layout", "s", "s", "",
            "ratio", "MB/s", "files/s", "seeks", "MB", "%CPU");
}

static void print_measured(FILE *file, const struct step *step) {
    print_rate(file, 8, step->bytes, step->ns, 1e6, 1);
    print_rate(file, 9, step->files, step->ns, 1, 0);
    print_count(file, 9, step->device.seeks);
    if (step->device.seeks)
        fprintf(file, "%10.1f", (double)step->device.seek_bytes / 1e6 / (double)step->device.seeks);
    else
        print_nothing(file, 10);
    if (step->ns > 0)
        fprintf(file, "%6.0f", 100.0 * (double)step->cpu_ns / (double)step->ns);
    else
        print_nothing(file, 6);
}

static void print_row(FILE *file, const struct report *report, unsigned row, const char *name) {
    const struct row_result *result = &report->rows[row];
    const struct step *step = report_step(result, name);
    const struct published *published = scenario_published(result->row, name);

    fprintf(file, "  %-*.*s", LABEL_WIDTH - 2, LABEL_WIDTH - 2, result->row->label);
    if (step)
        fprintf(file, "%9.2f", seconds(step->ns));
    else
        print_nothing(file, 9);
    print_published(file, 11, published);
    print_ratio(file, 7, false, report_ratio(report, row, name));
    print_ratio(file, 11, published && published->below, report_published_ratio(report, row, name));
    if (step)
        print_measured(file, step);
    else
        fprintf(file, "  %s", result->status == ROW_NOT_EMULATED ? "not emulated" : "failed");
    fputc('\n', file);
}

/* The first row that ran, or NULL. */
static const struct row_result *first_done(const struct report *report) {
    for (unsigned i = 0; i < report->row_count; i++)
        if (report->rows[i].status == ROW_DONE)
            return &report->rows[i];
    return NULL;
}

static unsigned add_name(const char *names[STEPS_MAX], unsigned count, const char *name) {
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return count;
    if (count < STEPS_MAX)
        names[count++] = name;
    return count;
}

/* The steps to show: those of the first row that ran, and what else there are published figures
 * of. */
static unsigned step_names(const struct report *report, const char *names[STEPS_MAX]) {
    const struct row_result *first = first_done(report);
    unsigned count = 0;

    for (unsigned j = 0; first && j < first->step_count; j++)
        if (first->steps[j].timed)
            count = add_name(names, count, first->steps[j].name);
    for (unsigned i = 0; i < report->row_count; i++)
        for (unsigned j = 0; j < report->rows[i].row->published_count; j++)
            count = add_name(names, count, report->rows[i].row->published[j].step);
    return count;
}

/* A row of another workload has nothing to say of a step. */
static bool has_step(const struct report *report, unsigned row, const char *name) {
    const struct row_result *result = &report->rows[row];

    return report_step(result, name) || scenario_published(result->row, name) ||
           (result->status != ROW_DONE && !result->row->workload[0]);
}

static void print_host_cpu(FILE *file, const struct report *report) {
    fputs("\nCPU time of this machine (differs from run to run)\n", file);
    for (unsigned i = 0; i < report->row_count; i++) {
        const struct row_result *result = &report->rows[i];
        for (unsigned j = 0; j < result->step_count; j++) {
            const struct step *step = &result->steps[j];
            if (!step->timed || step->host_cpu_ns <= 0 || step->files == 0)
                continue;
            fprintf(file, "  %-*s %-16s%7.3f s  ", LABEL_WIDTH - 2, result->row->label, step->name,
                    seconds(step->host_cpu_ns));
            print_count(file, 9, (uint64_t)((double)step->files / seconds(step->host_cpu_ns)));
            fprintf(file, " files/s, %.2f us a file, %.2f of it the system's\n",
                    (double)step->host_cpu_ns / 1e3 / (double)step->files,
                    (double)step->host_system_ns / 1e3 / (double)step->files);
        }
    }
}

/* --- what was moved, by purpose --------------------------------------------------------------- */

#define PURPOSE_WIDTH 9

static void add_bytes(struct device_stats *sum, const struct device_stats *stats) {
    for (int operation = 0; operation < 2; operation++)
        for (int purpose = 0; purpose < PURPOSE_COUNT; purpose++)
            sum->bytes[operation][purpose] += stats->bytes[operation][purpose];
    sum->flushes += stats->flushes;
    sum->flash_programmed += stats->flash_programmed;
}

/* Data, journal, and in the middle everything else, which is metadata. Returns the sum. */
static uint64_t print_moved(FILE *file, const uint64_t bytes[PURPOSE_COUNT]) {
    uint64_t all = 0;

    for (unsigned purpose = 0; purpose < PURPOSE_COUNT; purpose++)
        all += bytes[purpose];
    const uint64_t columns[] = {bytes[PURPOSE_DATA],
                                all - bytes[PURPOSE_DATA] - bytes[PURPOSE_JOURNAL],
                                bytes[PURPOSE_JOURNAL]};
    for (unsigned i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        if (columns[i])
            fprintf(file, "%*.1f", PURPOSE_WIDTH, (double)columns[i] / 1e6);
        else
            print_nothing(file, PURPOSE_WIDTH);
    return all;
}

/* With `flash` also what the disk programmed, cleaning included, and how much that is for each byte
 * that it was sent. */
static void print_purposes_row(FILE *file, const char *label, const struct device_stats *stats,
                               bool flash) {
    fprintf(file, "  %-*.*s", LABEL_WIDTH - 2, LABEL_WIDTH - 2, label);
    print_moved(file, stats->bytes[DEVICE_READ]);
    uint64_t written = print_moved(file, stats->bytes[DEVICE_WRITE]);
    fprintf(file, "%*.1f", PURPOSE_WIDTH, (double)written / 1e6);
    print_count(file, PURPOSE_WIDTH, stats->flushes);
    if (flash)
        fprintf(file, "%*.1f", PURPOSE_WIDTH, (double)stats->flash_programmed / 1e6);
    if (flash && written)
        fprintf(file, "%*.2f", PURPOSE_WIDTH, (double)stats->flash_programmed / (double)written);
    fputc('\n', file);
}

static bool has_flash(const struct row_result *row) {
    for (unsigned i = 0; i < row->step_count; i++)
        if (row->steps[i].device.flash_programmed)
            return true;
    return false;
}

/* Steps that are not timed count here: what a step has put off is written in them. */
static void print_purposes(FILE *file, const struct report *report) {
    static const char *const columns[] = {"data",    "metadata", "journal", "data",  "metadata",
                                          "journal", "all",      "flushes", "flash", "a byte"};
    const struct row_result *first = first_done(report);
    struct device_stats sums[SCENARIO_ROWS_MAX] = {0};
    const bool flash = first && has_flash(first);

    fprintf(file, "\n%-*s%*s%*s\n%-*s", LABEL_WIDTH, "MB by purpose", 3 * PURPOSE_WIDTH, "read",
            4 * PURPOSE_WIDTH, "written", LABEL_WIDTH, "step, layout");
    for (unsigned i = 0; i < sizeof(columns) / sizeof(*columns) - (flash ? 0 : 2); i++)
        fprintf(file, "%*s", PURPOSE_WIDTH, columns[i]);
    fputc('\n', file);
    for (unsigned i = 0; first && i < first->step_count; i++) {
        const char *name = first->steps[i].name;
        fprintf(file, first->steps[i].timed ? "%s\n" : "(%s)\n", name);
        for (unsigned row = 0; row < report->row_count; row++) {
            const struct step *step = report_step(&report->rows[row], name);
            if (!step)
                continue;
            print_purposes_row(file, report->rows[row].row->label, &step->device, flash);
            add_bytes(&sums[row], &step->device);
        }
    }
    fputs("all steps\n", file);
    for (unsigned row = 0; row < report->row_count; row++)
        if (report->rows[row].status == ROW_DONE)
            print_purposes_row(file, report->rows[row].row->label, &sums[row], flash);
}

/* --- latency ---------------------------------------------------------------------------------- */

static double bytes_moved(const struct device_stats *stats, enum device_operation operation) {
    double all = 0;

    for (unsigned purpose = 0; purpose < PURPOSE_COUNT; purpose++)
        all += (double)stats->bytes[operation][purpose];
    return all;
}

static void print_latency_row(FILE *file, const char *label, const struct step *step) {
    const struct latency *latency = &step->latency;

    fprintf(file, "  %-*.*s%9llu%9.2f%9.2f%9.2f", LABEL_WIDTH - 2, LABEL_WIDTH - 2, label,
            (unsigned long long)latency->operations, (double)latency->p50_ns / 1e6,
            (double)latency->p99_ns / 1e6, (double)latency->max_ns / 1e6);
    if (step->bytes)
        fprintf(file, "%9.2f%9.2f", bytes_moved(&step->device, DEVICE_WRITE) / (double)step->bytes,
                bytes_moved(&step->device, DEVICE_READ) / (double)step->bytes);
    fputc('\n', file);
}

static void print_latencies(FILE *file, const struct report *report) {
    const struct row_result *first = first_done(report);

    fprintf(file, "\n%-*s%9s%27s%18s\n%-*s%9s%9s%9s%9s%9s%9s\n", LABEL_WIDTH, "latency", "",
            "milliseconds", "bytes for a byte", LABEL_WIDTH, "step, layout", "requests", "p50",
            "p99", "max", "written", "read");
    for (unsigned i = 0; first && i < first->step_count; i++) {
        if (first->steps[i].latency.operations == 0)
            continue;
        fprintf(file, "%s\n", first->steps[i].name);
        for (unsigned row = 0; row < report->row_count; row++) {
            const struct step *step = report_step(&report->rows[row], first->steps[i].name);
            if (step)
                print_latency_row(file, report->rows[row].row->label, step);
        }
    }
}

/* --- notes ------------------------------------------------------------------------------------ */

static void note_order(FILE *file, const struct report *report, const char *const *names,
                       unsigned count) {
    static const char *const words[] = {NULL, "as published", "NOT as published"};
    const char *separator = "  order of the rows: ";

    for (unsigned i = 0; i < count; i++) {
        enum order order = report_order(report, names[i]);
        if (order == ORDER_NONE)
            continue;
        fprintf(file, "%s%s %s", separator, names[i], words[order]);
        separator = ", ";
    }
    if (separator[0] == ',')
        fputc('\n', file);
}

static void note_far_ratio(FILE *file, const struct report *report, unsigned row,
                           const char *name) {
    const struct published *published = scenario_published(report->rows[row].row, name);
    int64_t ours = report_ratio(report, row, name);
    int64_t theirs = report_published_ratio(report, row, name);
    int64_t off = theirs ? (ours - theirs) * 1000 / theirs : 0;

    if (row == 0 || ours == 0 || theirs == 0 || (published->below && ours < theirs))
        return;
    if (off > FAR_PERMILLE || off < -FAR_PERMILLE)
        fprintf(file, "  %s, %s: ratio %.2f is %+.0f %% off the published %s%.2f\n", name,
                report->rows[row].row->label, (double)ours / 1000, (double)off / 10,
                published->below ? "< " : "", (double)theirs / 1000);
}

static void print_notes(FILE *file, const struct report *report, const char *const *names,
                        unsigned count) {
    bool warm = false;

    fputs("\nnotes\n", file);
    note_order(file, report, names, count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned row = 0; row < report->row_count; row++)
            note_far_ratio(file, report, row, names[i]);
    for (unsigned i = 0; i < report->scenario->note_count; i++)
        fprintf(file, "  %s\n", report->scenario->notes[i]);
    for (unsigned i = 0; i < report->row_count; i++) {
        if (report->rows[i].status == ROW_FAILED)
            fprintf(file, "  %s failed: %s\n", report->rows[i].row->label, report->rows[i].message);
        warm |= report->rows[i].warm;
    }
    if (warm)
        fputs("  caches could not be dropped: the cold steps were not cold\n", file);
    fputs("  \"-\": no figure was published, or nothing to count\n", file);
}

/* --- heading ---------------------------------------------------------------------------------- */

#define SIZE_FAR_PERCENT 10

static void print_source(FILE *file, const struct report *report) {
    const struct source *source = report->source;
    uint64_t published =
        (uint64_t)options_number(&report->scenario->parameters, "bytes") / SIZE_FAR_PERCENT;

    fprintf(file, "source: %s\n        ", source->description);
    print_count(file, 1, source->files);
    fputs(" files in ", file);
    print_count(file, 1, source->directories);
    fprintf(file, " directories, %.1f MB\n", (double)source->bytes / 1e6);
    if (source->skipped)
        fprintf(file, "        %u devices and sockets left out\n", source->skipped);
    if (report->scenario->driver == SCENARIO_MODEL &&
        (source->bytes < published * (SIZE_FAR_PERCENT - 1) ||
         source->bytes > published * (SIZE_FAR_PERCENT + 1)))
        fputs("        another size than the published tree: compare ratios, not seconds\n", file);
}

static void print_heading(FILE *file, const struct report *report) {
    const struct scenario *scenario = report->scenario;

    fprintf(file, "%s: %s\n", scenario->name, scenario->title);
    if (scenario->driver == SCENARIO_MODEL) {
        fprintf(file, "disk: %s, a volume of %.1f GB at %.1f GB; machine: %s", scenario->disk,
                (double)scenario->volume_size / (1 << 30),
                (double)scenario->volume_start / (1 << 30), scenario->machine);
        if (scenario->memory)
            fprintf(file, ", %.0f MB of cache%s", (double)scenario->memory / (1 << 20),
                    report->memory_fitted ? " (in proportion to the tree)" : "");
        fputs("; virtual time\n", file);
    }
    if (report->source)
        print_source(file, report);
    if (report->scale_permille != 1000)
        fprintf(file, "scaled to %.3g of the full size (files, bytes and memory)\n",
                report->scale_permille / 1000.0);
}

/* --- the mounted part ------------------------------------------------------------------------- */

static const struct wall_step *wall_step(const struct wall_result *result, const char *name) {
    for (unsigned i = 0; i < result->step_count; i++)
        if (result->status == ROW_DONE && strcmp(result->steps[i].name, name) == 0)
            return &result->steps[i];
    return NULL;
}

/* The first peer, which ours are compared with; without one, the first row. */
static const struct wall_result *wall_base(const struct report *report) {
    for (unsigned i = 0; i < report->wall_count; i++)
        if (report->wall[i].peer[0] && report->wall[i].status == ROW_DONE)
            return &report->wall[i];
    return &report->wall[0];
}

/* Ours without a disk, if it was run. */
static const struct wall_result *wall_floor(const struct report *report) {
    for (unsigned i = 0; i < report->wall_count; i++)
        if (report->wall[i].floor && report->wall[i].status == ROW_DONE)
            return &report->wall[i];
    return NULL;
}

static void print_times(FILE *file, int64_t of, int64_t over) {
    if (of > 0 && over > 0)
        fprintf(file, "%9.2f", (double)of / (double)over);
    else
        print_nothing(file, 9);
}

static int64_t wall_time(const struct wall_result *result, const char *name) {
    const struct wall_step *step = result ? wall_step(result, name) : NULL;

    return step ? wall_median(step, result->rounds) : 0;
}

static void print_latency(FILE *file, struct latency latency) {
    if (latency.operations)
        fprintf(file, "   p50 %.0f, p99 %.0f, max %.0f us", (double)latency.p50_ns / 1e3,
                (double)latency.p99_ns / 1e3, (double)latency.max_ns / 1e3);
}

static void print_wall_row(FILE *file, const struct report *report,
                           const struct wall_result *result, const char *name) {
    const struct wall_step *step = wall_step(result, name);

    fprintf(file, "  %-*.*s", LABEL_WIDTH - 2, LABEL_WIDTH - 2, result->label);
    if (!step) {
        fprintf(file, "%9s  %s\n", "-",
                result->status == ROW_NOT_EMULATED ? "not emulated" : "failed");
        return;
    }
    int64_t median = wall_median(step, result->rounds);
    fprintf(file, "%9.3f", seconds(median));
    print_times(file, wall_time(wall_base(report), name), median);
    print_times(file, median, wall_time(wall_floor(report), name));
    print_rate(file, 10, step->bytes, median, 1e6, 1);
    print_rate(file, 10, step->files, median, 1, 0);
    if (result->rounds > 1)
        fprintf(file, "   %.3f .. %.3f", seconds(step->ns[0]),
                seconds(step->ns[result->rounds - 1]));
    print_latency(file, wall_latency(step, result->rounds));
    fputc('\n', file);
}

static void print_wall(FILE *file, const struct report *report) {
    const struct wall_result *first = NULL;
    char speed[48];

    for (unsigned i = 0; i < report->wall_count && !first; i++)
        if (report->wall[i].status == ROW_DONE)
            first = &report->wall[i];
    fprintf(file, "\nthrough real mounts: wall time on this machine, median of %u round%s\n",
            first ? first->rounds : 0, first && first->rounds == 1 ? "" : "s");
    snprintf(speed, sizeof(speed), "x %.20s", wall_base(report)->label);
    fprintf(file, "%-*s%9s%9s%9s%10s%10s   %s\n", LABEL_WIDTH, "step, layout", "s", "speed",
            "x floor", "MB/s", "files/s", "fastest .. slowest");
    for (unsigned j = 0; first && j < first->step_count; j++) {
        if (!first->steps[j].timed)
            continue;
        fprintf(file, "%s\n", first->steps[j].name);
        for (unsigned i = 0; i < report->wall_count; i++)
            print_wall_row(file, report, &report->wall[i], first->steps[j].name);
    }
    fprintf(file, "  speed: %s in the same step\n", speed);
    if (wall_floor(report))
        fprintf(file, "  x floor: time over that of %s, which has no disk\n",
                wall_floor(report)->label);
    for (unsigned i = 0; i < report->wall_count; i++) {
        if (report->wall[i].status == ROW_FAILED)
            fprintf(file, "  %s failed: %s\n", report->wall[i].label, report->wall[i].message);
        if (report->wall[i].warm)
            fprintf(file, "  %s: caches could not be dropped; its cold steps were not cold\n",
                    report->wall[i].label);
    }
}

void report_table(FILE *file, const struct report *report) {
    const char *names[STEPS_MAX];

    print_heading(file, report);
    if (report->row_count) {
        unsigned count = step_names(report, names);
        fputc('\n', file);
        print_columns(file);
        for (unsigned i = 0; i < count; i++) {
            fprintf(file, "%s\n", names[i]);
            for (unsigned row = 0; row < report->row_count; row++)
                if (has_step(report, row, names[i]))
                    print_row(file, report, row, names[i]);
        }
        if (report->scenario->show_purposes)
            print_purposes(file, report);
        if (report->scenario->show_latency)
            print_latencies(file, report);
        if (report->host_cpu)
            print_host_cpu(file, report);
        print_notes(file, report, names, count);
    }
    if (report->wall_count)
        print_wall(file, report);
    else if (report->wall_note)
        fprintf(file, "\nnot mounted: %s\n", report->wall_note);
}

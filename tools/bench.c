/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs bench`: picks a scenario and its source, runs it, prints the table and
 * writes results.json. What is measured, and how, is bench/'s.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/report.h"
#include "tools/tool.h"

#define DEFAULT_SCENARIO "orlov-2002"
#define SYNTHETIC_SEED   1
#define SCALE_FULL       1000u
#define WALL_RESULTS_MAX (SCENARIO_ROWS_MAX + 4)

struct bench_arguments {
    const char *scenario, *source, *layouts, *disk, *report, *json;
    unsigned scale, repeat, jobs;
    bool list, fit, mount, peers, quiet;
};

enum { KEY_LIST = 256, KEY_MOUNT, KEY_PEERS, KEY_SCALE, KEY_FIT, KEY_REPEAT };

static const struct argp_option argp_options[] = {
    {"list", KEY_LIST, 0, 0, "list the built-in scenarios", 0},
    {"layout", 'l', "ROW,...", 0,
     "run only these rows of the scenario; TYPE[:OPTION=VALUE...] adds one of your own", 0},
    {"disk", 'd', "NAME", 0,
     "on this modelled disk instead of the scenario's, of which published figures are", 0},
    {"source", 's', "FILE|DIR", 0,
     "the file tree to work with: an archive or a directory (default: a kernel tree that a package "
     "installed, else a synthetic one); \"synthetic\" asks for that",
     0},
    {"fit", KEY_FIT, 0, 0, "use no more of the source than the published tree had files", 0},
    {"scale", KEY_SCALE, "X", 0, "0.001 to 1: make the tree and the memory that much smaller", 0},
    {"mount", KEY_MOUNT, 0, 0, "also run through real mounts, in wall time", 0},
    {"peers", KEY_PEERS, 0, 0,
     "as --mount, in turns with fuse2fs, ntfs-3g and the kernel's ext4, as far as they are here",
     0},
    {"repeat", KEY_REPEAT, "N", 0, "rounds through mounts, of which the median counts", 0},
    {"report", 'r', "DIR", 0, "write results.json to this directory", 0},
    {"json", 'j', "FILE", 0, "write the results to this file (default: results.json)", 0},
    {"jobs", 'J', "N", 0, "rows to run at a time (default: one a processor)", 0},
    {"quiet", 'q', 0, 0, "no progress line", 0},
    {0},
};

/* "0.25" in thousandths; 0 when it is no such number. */
static unsigned parse_scale(const char *text) {
    char *end;
    double value = strtod(text, &end);

    return *end || !(value >= 0.001) || value > 1 ? 0 : (unsigned)(value * SCALE_FULL + 0.5);
}

static unsigned parse_count(struct argp_state *state, const char *name, const char *text) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || value == 0 || value > WALL_ROUNDS_MAX)
        argp_error(state, "--%s: expected 1 to %d, not \"%s\"", name, WALL_ROUNDS_MAX, text);
    return (unsigned)value;
}

static error_t parse_argument(int key, char *text, struct argp_state *state) {
    struct bench_arguments *arguments = state->input;

    switch (key) {
    case KEY_LIST:
        arguments->list = true;
        return 0;
    case 'l':
        arguments->layouts = text;
        return 0;
    case 'd':
        arguments->disk = text;
        return 0;
    case 's':
        arguments->source = text;
        return 0;
    case KEY_FIT:
        arguments->fit = true;
        return 0;
    case KEY_SCALE:
        arguments->scale = parse_scale(text);
        if (arguments->scale == 0)
            argp_error(state, "--scale: expected 0.001 to 1, not \"%s\"", text);
        return 0;
    case KEY_PEERS:
        arguments->peers = true;
        arguments->mount = true;
        return 0;
    case KEY_MOUNT:
        arguments->mount = true;
        return 0;
    case KEY_REPEAT:
        arguments->repeat = parse_count(state, "repeat", text);
        return 0;
    case 'J':
        arguments->jobs = parse_count(state, "jobs", text);
        return 0;
    case 'r':
        arguments->report = text;
        return 0;
    case 'j':
        arguments->json = text;
        return 0;
    case 'q':
        arguments->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error(state, "one scenario at a time");
        arguments->scenario = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp bench_argp = {
    .options = argp_options,
    .parser = parse_argument,
    .args_doc = "[SCENARIO]",
    .doc = "Compare layouts on one modelled disk with one workload.\v"
           "SCENARIO is a built-in one (--list) or an ini file; default: " DEFAULT_SCENARIO ".",
};

/* --- --list ----------------------------------------------------------------------------------- */

static void list_scenario(void *context, const char *name, const char *text) {
    struct scenario *scenario = malloc(sizeof(*scenario));

    if (scenario && scenario_parse(text, name, scenario, context) == 0) {
        printf("%-14s %s\n", name, scenario->title);
        for (unsigned i = 0; i < scenario->row_count; i++)
            printf("  %-12s %s\n", scenario->rows[i].id, scenario->rows[i].label);
        scenario_free(scenario);
    }
    free(scenario);
}

/* --- the source ------------------------------------------------------------------------------- */

static uint64_t wanted(const struct scenario *scenario, const char *name) {
    return (uint64_t)options_number(&scenario->parameters, name);
}

static int thin(struct source *source, uint32_t files, const char *why) {
    uint32_t whole = source->files;
    size_t length = strlen(source->description);

    if (files >= whole)
        return 0;
    snprintf(source->description + length, sizeof(source->description) - length,
             ", %u of its %u files in whole directories, %s", files, whole, why);
    return source_thin(source, files);
}

/* A scaled one is a part of the full one, so that its directories stay as full as they were. */
static int open_synthetic(const struct bench_arguments *arguments, const struct scenario *scenario,
                          const struct log *log, struct source **source) {
    uint64_t files = wanted(scenario, "files"), bytes = wanted(scenario, "bytes");
    int error =
        source_synthetic((uint32_t)(files * SCALE_FULL / arguments->scale),
                         bytes / arguments->scale * SCALE_FULL, SYNTHETIC_SEED, log, source);

    return error ? error : thin(*source, (uint32_t)files, "by --scale");
}

/* A source that the user named is used whole; one that was merely found is cut to the published
 * tree's size when it is more than twice that. */
static int open_source(const struct bench_arguments *arguments, const struct scenario *scenario,
                       const struct log *log, struct source **source) {
    char found[SOURCE_PATH_MAX];
    const char *path = arguments->source;
    bool fit = arguments->fit;

    *source = NULL;
    if (!scenario->workload->needs_source)
        return 0;
    uint32_t files = (uint32_t)wanted(scenario, "files");
    if (!path && scenario->driver == SCENARIO_MODEL && source_find_installed(found) == 0) {
        path = found;
        fit = true;
    }
    if (!path || strcmp(path, "synthetic") == 0)
        return open_synthetic(arguments, scenario, log, source);
    int error = source_open(path, log, source);
    if (!error && fit && (arguments->fit || (*source)->files > 2 * files))
        error = thin(*source, files, "as many as were published");
    else if (!error && arguments->scale != SCALE_FULL)
        error =
            thin(*source, (uint32_t)((uint64_t)(*source)->files * arguments->scale / SCALE_FULL),
                 "by --scale");
    if (error && *source) {
        source_close(*source);
        *source = NULL;
    }
    return error;
}

/* The scenario's tree is larger than its memory; with a smaller tree the memory shrinks too, or a
 * second traversal would find everything in it. */
static bool fit_memory(struct scenario *scenario, const struct source *source) {
    uint64_t published = source ? wanted(scenario, "bytes") : 0;

    if (!source || scenario->driver != SCENARIO_MODEL || scenario->memory == 0 ||
        source->bytes >= published / 10 * 9)
        return false;
    scenario->memory = (uint64_t)((unsigned __int128)scenario->memory * source->bytes / published);
    return true;
}

/* --- running ---------------------------------------------------------------------------------- */

static int64_t wall_now(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static char *join_command(int argc, char **argv) {
    size_t length = 1;
    char *line;

    for (int i = 0; i < argc; i++)
        length += strlen(argv[i]) + 1;
    line = calloc(1, length);
    for (int i = 0; line && i < argc; i++) {
        strcat(line, argv[i]);
        if (i + 1 < argc)
            strcat(line, " ");
    }
    return line;
}

/* Where results.json goes; the directory of --report is made. */
static int results_path(const struct bench_arguments *arguments, char path[SOURCE_PATH_MAX],
                        const struct log *log) {
    if (arguments->report && mkdir(arguments->report, 0777) < 0 && errno != EEXIST) {
        int error = -errno;
        log_error(log, "%s: %s", arguments->report, strerror(-error));
        return error;
    }
    if (arguments->json)
        snprintf(path, SOURCE_PATH_MAX, "%s", arguments->json);
    else
        snprintf(path, SOURCE_PATH_MAX, "%s%sresults.json",
                 arguments->report ? arguments->report : "", arguments->report ? "/" : "");
    return 0;
}

struct results {
    struct row_result rows[SCENARIO_ROWS_MAX];
    struct wall_result wall[WALL_RESULTS_MAX];
};

static int run_all(const struct bench_arguments *arguments, const struct run_config *config,
                   struct results *results, struct report *report) {
    bool modelled = config->scenario->driver == SCENARIO_MODEL;
    bool mounted = !modelled || arguments->mount;
    int error = modelled ? run_modelled(config, results->rows) : 0;

    report->row_count = modelled ? config->scenario->row_count : 0;
    if (!mounted)
        return error;
    report->wall_note = mounted_obstacle();
    if (report->wall_note)
        return error ? error : modelled ? 0 : -ENODEV;
    struct mounted_config mounted_config = {
        .run = config, .peers = arguments->peers, .program = "/proc/self/exe"};
    int second = run_mounted(&mounted_config, results->wall, WALL_RESULTS_MAX, &report->wall_count);
    return error ? error : second;
}

static int run_scenario(const struct bench_arguments *arguments, struct scenario *scenario,
                        const char *command, const struct log *log) {
    struct results *results = calloc(1, sizeof(*results));
    char path[SOURCE_PATH_MAX];
    struct source *source = NULL;
    int64_t start = wall_now();
    int error = results ? results_path(arguments, path, log) : -ENOMEM;

    if (!error)
        error = open_source(arguments, scenario, log, &source);
    if (!error) {
        struct run_config config = {.scenario = scenario,
                                    .source = source,
                                    .threads =
                                        scenario->workload->measures_host ? 1 : arguments->jobs,
                                    .progress = !arguments->quiet,
                                    .log = log};
        struct report report = {.scenario = scenario,
                                .source = source,
                                .rows = results->rows,
                                .wall = results->wall,
                                .scale_permille = arguments->scale,
                                .memory_fitted = fit_memory(scenario, source),
                                .command = command,
                                .host_cpu = scenario->workload->measures_host};
        error = run_all(arguments, &config, results, &report);
        report.host_ns = wall_now() - start;
        report_table(stdout, &report);
        int written = report_json(path, &report, log);
        if (!written)
            printf("\nresults in %s\n", path);
        error = error ? error : written;
    }
    source_close(source);
    free(results);
    return error;
}

static int prepare_scenario(const struct bench_arguments *arguments, struct scenario *scenario,
                            const struct log *log) {
    int error = scenario_load(arguments->scenario, scenario, log);

    if (error)
        return error;
    if (arguments->repeat)
        scenario->repeat = arguments->repeat;
    if (arguments->disk)
        error = scenario_set_disk(scenario, arguments->disk, log);
    if (!error && arguments->layouts)
        error = scenario_select(scenario, arguments->layouts, log);
    if (!error && arguments->scale != SCALE_FULL)
        error = scenario_scale(scenario, arguments->scale);
    if (error)
        scenario_free(scenario);
    return error;
}

int tool_bench(int argc, char **argv) {
    struct bench_arguments arguments = {.scenario = DEFAULT_SCENARIO, .scale = SCALE_FULL};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct log log = log_to_stderr("layoutfs bench", LOG_LEVEL_WARNING);
    char *command = join_command(argc, argv);
    struct scenario *scenario = calloc(1, sizeof(*scenario));
    int error = command && scenario ? 0 : -ENOMEM;

    arguments.jobs = processors > 0 ? (unsigned)processors : 1;
    if (!error)
        argp_parse(&bench_argp, argc, argv, 0, NULL, &arguments);
    if (!error && arguments.list)
        scenario_each(list_scenario, &log);
    else if (!error)
        error = prepare_scenario(&arguments, scenario, &log);
    if (!error && !arguments.list) {
        error = run_scenario(&arguments, scenario, command, &log);
        scenario_free(scenario);
    }
    if (error == -ENOMEM)
        log_error(&log, "out of memory");
    free(scenario);
    free(command);
    return error ? TOOL_FAILED : TOOL_DONE;
}

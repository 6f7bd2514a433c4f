/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs clean`: the layout's cleaning, step by step, so that it can be watched.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

struct clean {
    const char *path;
    const char *policy;
    const char *protection; /* seconds, digits */
    bool one_step, json;
    struct tool_image image;
    json_t *steps; /* with json */
};

static const char *const fates[] = {
    [CLEAN_FREED] = "freed",
    [CLEAN_PUT_OFF] = "put off: too little would be won",
    [CLEAN_PROTECTED] = "left: a super block leads there",
    [CLEAN_DAMAGED] = "left: it cannot be read",
};

/* --- what a step did -------------------------------------------------------------------------- */

static void step_print(unsigned number, const struct clean_report *report) {
    printf("step %u\n", number);
    for (unsigned i = 0; i < report->count; i++)
        printf("  segment %-8" PRIu64 " %6" PRIu64 " blocks alive %6" PRIu64 " dead   %s\n",
               report->segment[i].number, report->segment[i].live, report->segment[i].dead,
               fates[report->segment[i].fate]);
    printf("  %" PRIu64 " blocks moved, %" PRIu64 " checkpoints deleted, %" PRIu64
           " KiB read, %" PRIu64 " KiB written; %" PRIu64 " of %" PRIu64 " segments are clean\n",
           report->moved, report->checkpoints, report->read_bytes >> 10, report->write_bytes >> 10,
           report->clean_segments, report->segments);
}

static json_t *step_json(const struct clean_report *report) {
    json_t *segments = json_array();

    for (unsigned i = 0; i < report->count; i++)
        json_array_append_new(segments, json_pack("{s:I, s:I, s:I, s:s}", "segment",
                                                  (json_int_t)report->segment[i].number, "live",
                                                  (json_int_t)report->segment[i].live, "dead",
                                                  (json_int_t)report->segment[i].dead, "fate",
                                                  fates[report->segment[i].fate]));
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "segments", segments, "moved",
                     (json_int_t)report->moved, "checkpoints", (json_int_t)report->checkpoints,
                     "read_bytes", (json_int_t)report->read_bytes, "write_bytes",
                     (json_int_t)report->write_bytes, "clean", (json_int_t)report->clean_segments,
                     "of", (json_int_t)report->segments);
}

/* --- the command ------------------------------------------------------------------------------ */

/* Until each segment that was in use has had its turn: what was moved is not moved again. */
static int clean_run(struct clean *clean) {
    uint64_t turns = UINT64_MAX, done = 0;
    struct clean_report report;

    for (unsigned number = 1; done < turns && !tool_interrupted(); number++) {
        int error = volume_clean(clean->image.volume, &report);
        if (error == -ENOTSUP)
            return tool_fail("%s: its format needs no cleaning", clean->path);
        if (error)
            return tool_fail("%s: %s", clean->path, strerror(-error));
        if (report.count == 0)
            break;
        if (turns == UINT64_MAX)
            turns = report.segments - report.clean_segments + report.count;
        done += report.count;
        if (clean->json)
            json_array_append_new(clean->steps, step_json(&report));
        else
            step_print(number, &report);
        if (clean->one_step)
            break;
    }
    if (clean->json)
        print_json(stdout, clean->steps);
    else if (done == 0)
        puts("nothing can be cleaned now");
    return TOOL_DONE;
}

static int clean_open(struct clean *clean) {
    char options[256];
    int length = snprintf(options, sizeof(options), "cleaner=%s,protection_period=%s",
                          clean->policy, clean->protection);

    if (length < 0 || (size_t)length >= sizeof(options))
        return -EINVAL;
    return tool_image_open_with(&clean->image, clean->path, false, options);
}

enum { KEY_STEP = 0x100, KEY_POLICY, KEY_PROTECTION, KEY_JSON };

static const struct argp_option clean_options[] = {
    {"step", KEY_STEP, NULL, 0, "Make one step only", 0},
    {"policy", KEY_POLICY, "NAME", 0,
     "Which segments come first: timestamp (the default), greedy, cost-benefit", 0},
    {"protection", KEY_PROTECTION, "SECONDS", 0,
     "Leave alone what is younger (default: 3600, an hour)", 0},
    {"json", KEY_JSON, NULL, 0, "Print as JSON", 0},
    {0},
};

static error_t clean_parse(int key, char *argument, struct argp_state *state) {
    struct clean *clean = state->input;

    switch (key) {
    case KEY_STEP:
        clean->one_step = true;
        return 0;
    case KEY_POLICY:
        if (strcmp(argument, "timestamp") != 0 && strcmp(argument, "greedy") != 0 &&
            strcmp(argument, "cost-benefit") != 0)
            argp_error(state, "'%s' is none of timestamp, greedy, cost-benefit", argument);
        clean->policy = argument;
        return 0;
    case KEY_PROTECTION:
        if (!*argument || argument[strspn(argument, "0123456789")] || strlen(argument) > 9)
            argp_error(state, "'%s' is no number of seconds", argument);
        clean->protection = argument;
        return 0;
    case KEY_JSON:
        clean->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (clean->path)
            argp_error(state, "one image at a time");
        clean->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (!clean->path)
            argp_error(state, "the image is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_clean(int argc, char **argv) {
    static const struct argp argp = {
        .options = clean_options,
        .parser = clean_parse,
        .args_doc = "IMAGE",
        .doc = "Cleans a volume of a log-structured layout that is not mounted: moves what is "
               "alive in its segments together, so that they can be written again, and tells each "
               "step. Mounts clean by themselves.",
    };
    struct clean clean = {.policy = "timestamp", .protection = "3600"};

    argp_parse(&argp, argc, argv, 0, NULL, &clean);
    tool_catch_interruption();
    if (clean_open(&clean))
        return TOOL_FAILED;
    clean.steps = json_array();
    int code = clean_run(&clean);
    json_decref(clean.steps);
    return tool_image_close(&clean.image) ? TOOL_FAILED : code;
}

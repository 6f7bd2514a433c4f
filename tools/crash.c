/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs crash`: the crash explorer, see crash/crash.h.
 */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crash/crash.h"
#include "fs/device/disk.h"
#include "fs/options.h"
#include "tools/image.h"
#include "tools/tool.h"

/* The volume lies in memory, and most layouts' is filled once. */
#define SIZE_MOST  (UINT64_C(1) << 30)
#define COUNT_MOST 100000000u

struct crash {
    struct crash_config config;
    bool mode_given;
    const char *replay, *save;
};

enum {
    KEY_MKFS = 0x100,
    KEY_SIZE,
    KEY_SAMPLE,
    KEY_SEED,
    KEY_LENGTH,
    KEY_SUBSETS,
    KEY_JOBS,
    KEY_EXPECT,
    KEY_DISK,
    KEY_FSCK,
    KEY_FSCK_STATES,
    KEY_REPLAY,
    KEY_SAVE,
};

static const struct argp_option crash_options[] = {
    {"type", 't', "TYPE", 0, "Type of filesystem; `layoutfs options` lists them", 0},
    {NULL, 'o', "NAME=VALUE,...", 0, "Mount options", 0},
    {"mkfs-options", KEY_MKFS, "NAME=VALUE,...", 0, "Options of mkfs; default: a small volume", 0},
    {"disk", KEY_DISK, "PRESET", 0,
     "Run the workloads on this modelled disk, where commits that nobody waits for go on beside "
     "them",
     0},
    {"size", KEY_SIZE, "SIZE", 0, "Size of the volume: bytes, or with K, M or G", 0},
    {"sample", KEY_SAMPLE, "N", 0, "Only N workloads, chosen by the seed", 1},
    {"seed", KEY_SEED, "N", 0, "Where chance begins (default: 1)", 1},
    {"length", KEY_LENGTH, "N", 0, "Operations of a random workload (default: 40)", 1},
    {"subsets", KEY_SUBSETS, "N", 0,
     "States of one kind in which writes since a flush are lost (default: 12)", 1},
    {"jobs", KEY_JOBS, "N", 0, "Processes (default: one a processor)", 1},
    {"expect", KEY_EXPECT, "repair|writeback|strict", 0,
     "What is expected after a crash (default: what the type promises)", 1},
    {"fsck", KEY_FSCK, "COMMAND", 0,
     "A checker that is given the image's name and ends with 0 (default: the format's own; "
     "empty: none)",
     1},
    {"fsck-states", KEY_FSCK_STATES, "N", 0, "States that it is shown (default: 100)", 1},
    {"replay", KEY_REPLAY, "ID", 0, "Make one state again and tell about it", 2},
    {"save", KEY_SAVE, "IMAGE", 0, "With --replay: save the disk as the power cut left it", 2},
    {0},
};

static uint64_t parse_number(struct argp_state *state, const char *text) {
    char *end;

    errno = 0;
    uint64_t number = strtoull(text, &end, 0);
    if (errno || *end || !isdigit((unsigned char)text[0]))
        argp_error(state, "'%s' is no number", text);
    return number;
}

static unsigned parse_count(struct argp_state *state, const char *text, unsigned least,
                            unsigned most) {
    uint64_t number = parse_number(state, text);

    if (number < least || number > most)
        argp_error(state, "%s is not between %u and %u", text, least, most);
    return (unsigned)number;
}

static void parse_size(struct argp_state *state, struct crash_config *config, const char *text) {
    if (size_parse(text, &config->size) || config->size % 4096 || config->size == 0)
        argp_error(state, "'%s' is no size in whole 4 KiB", text);
    if (config->size > SIZE_MOST)
        argp_error(state, "the size is at most 1G, since the volume lies in memory");
}

static void parse_disk(struct argp_state *state, struct crash_config *config, const char *name) {
    struct disk_preset preset;

    config->disk = name;
    if (disk_preset_find(name, &preset, NULL))
        argp_error(state, "there is no disk \"%s\"", name);
}

static void parse_expectation(struct argp_state *state, struct crash_config *config,
                              const char *text) {
    for (int level = 0; level < EXPECT_LEVELS; level++)
        if (strcmp(expectation_names[level], text) == 0)
            config->expectation = level;
    if (config->expectation < 0)
        argp_error(state, "'%s' is no expectation", text);
}

static error_t crash_parse_value(struct crash *crash, int key, char *argument,
                                 struct argp_state *state) {
    struct crash_config *config = &crash->config;

    switch (key) {
    case KEY_SIZE:
        parse_size(state, config, argument);
        return 0;
    case KEY_SAMPLE:
        config->sample = parse_count(state, argument, 1, COUNT_MOST);
        return 0;
    case KEY_SEED:
        config->seed = parse_number(state, argument);
        return 0;
    case KEY_LENGTH:
        config->length = parse_count(state, argument, 1, 200);
        return 0;
    case KEY_SUBSETS:
        config->subsets = parse_count(state, argument, 1, 1000);
        return 0;
    case KEY_JOBS:
        config->jobs = parse_count(state, argument, 1, 64);
        return 0;
    case KEY_FSCK_STATES:
        config->fsck_states = parse_count(state, argument, 0, COUNT_MOST);
        return 0;
    case KEY_EXPECT:
        parse_expectation(state, config, argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void crash_parse_end(const struct crash *crash, struct argp_state *state) {
    if (!crash->config.type)
        argp_error(state, "the type is missing: -t TYPE");
    if (!crash->mode_given && !crash->replay)
        argp_error(state, "the workloads are missing");
    if (crash->mode_given && crash->replay)
        argp_error(state, "--replay names its workload itself");
    if (crash->save && !crash->replay)
        argp_error(state, "--save needs --replay");
    if (crash->save && strncmp(crash->replay, "errors.", strlen("errors.")) == 0)
        argp_error(state, "--save: with errors no power is cut, there is no image to save");
}

static error_t crash_parse(int key, char *argument, struct argp_state *state) {
    struct crash *crash = state->input;

    switch (key) {
    case 't':
        crash->config.type = argument;
        return 0;
    case 'o':
        crash->config.mount_options = argument;
        return 0;
    case KEY_MKFS:
        crash->config.mkfs_options = argument;
        return 0;
    case KEY_DISK:
        parse_disk(state, &crash->config, argument);
        return 0;
    case KEY_FSCK:
        crash->config.fsck = argument;
        return 0;
    case KEY_REPLAY:
        crash->replay = argument;
        return 0;
    case KEY_SAVE:
        crash->save = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (crash->mode_given || crash_mode_find(argument, &crash->config.mode))
            argp_error(state, "'%s' is none of the workloads", argument);
        crash->mode_given = true;
        return 0;
    case ARGP_KEY_END:
        crash_parse_end(crash, state);
        return 0;
    default:
        return crash_parse_value(crash, key, argument, state);
    }
}

static int crash_replay_one(const struct crash *crash, const struct log *log) {
    bool found;
    int error = crash_replay(&crash->config, crash->replay, crash->save, stdout, log, &found);

    return error == -EINVAL ? TOOL_USAGE : error || found ? TOOL_FAILED : TOOL_DONE;
}

int tool_crash(int argc, char **argv) {
    static const struct argp argp = {
        .options = crash_options,
        .parser = crash_parse,
        .args_doc = "seq-1|seq-2|seq-3|random|errors -t TYPE\n--replay ID -t TYPE",
        .doc = "Runs workloads, cuts the power at every write, recovers, and looks whether "
               "everything is there that was promised.\v"
               "seq-N runs all sequences of N operations over a few names (of 3: a sample), random "
               "long ones by chance; errors fails every call to the device, once and from then on. "
               "Each finding is one line, a command that makes it again.\n\n"
               "The exit code is 0 without findings, 1 otherwise.",
    };
    struct crash crash = {
        .config = {.seed = 1, .expectation = -1, .fsck_states = 100, .progress = true}};
    struct log log = log_to_stderr("layoutfs", LOG_LEVEL_ERROR);
    struct crash_totals totals;
    const struct layout *layout;
    const struct layout_type *type;

    argp_parse(&argp, argc, argv, 0, NULL, &crash);
    if (layout_find(crash.config.type, &layout, &type) || !layout->format || !layout->check) {
        tool_fail("'%s' is no type that lies on a disk", crash.config.type);
        return TOOL_USAGE;
    }
    if (crash.replay)
        return crash_replay_one(&crash, &log);
    int error = crash_explore(&crash.config, stdout, &log, &totals);
    return error == -EINVAL ? TOOL_USAGE : error || totals.findings ? TOOL_FAILED : TOOL_DONE;
}

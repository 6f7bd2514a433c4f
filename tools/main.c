/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs COMMAND ARGUMENTS`: finds the command in a table and runs it. Under
 * the name of a mount helper the program is that helper.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mount_helper.h"
#include "tools/tool.h"

static const struct tool tools[] = {
    {"mkfs", "make an empty filesystem in a file or on a block device", tool_mkfs},
    {"mount", "mount an image through FUSE", tool_mount},
    {"umount", "unmount it", tool_umount},
    {"ls", "list directories of an image", tool_ls},
    {"cat", "print files of an image", tool_cat},
    {"cp", "copy into, out of or between images", tool_cp},
    {"rm", "remove files from an image", tool_rm},
    {"mkdir", "make directories in an image", tool_mkdir},
    {"convert", "change the format of an image and keep what is in it", tool_convert},
    {"check", "examine an image and report (or mend) what is wrong", tool_check},
    {"clean", "make room in a log-structured image, step by step", tool_clean},
    {"show", "print a structure of the format", tool_show},
    {"explain", "tell how a file lies on the disk", tool_explain},
    {"snapshot", "list, keep and delete the checkpoints of an image or a mount", tool_snapshot},
    {"diff", "list what changed between two checkpoints", tool_diff},
    {"options", "list layouts, types, strategies and options", tool_options},
    {"bench", "compare layouts on a modelled disk", tool_bench},
    {"crash", "cut the power at every write, recover, and compare", tool_crash},
};

#define TOOL_COUNT (sizeof(tools) / sizeof(tools[0]))

static const struct tool *tool_find(const char *name) {
    for (size_t i = 0; i < TOOL_COUNT; i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

static void print_help(FILE *file) {
    fputs("Usage: layoutfs COMMAND [OPTION...] [ARGUMENT...]\n"
          "Mounts, makes, examines and benchmarks on-disk layouts of filesystems.\n\n",
          file);
    for (size_t i = 0; i < TOOL_COUNT; i++)
        fprintf(file, "  %-8s  %s\n", tools[i].name, tools[i].description);
    fputs("\n`layoutfs COMMAND --help` tells more; so do the manual pages, from layoutfs(1) on.\n",
          file);
}

/* How many letters differ, are missing or are too many at the ends: enough for slips of a key. */
static size_t name_distance(const char *a, const char *b) {
    size_t prefix = 0, suffix = 0, length_a = strlen(a), length_b = strlen(b);
    size_t shorter = length_a < length_b ? length_a : length_b;

    while (prefix < shorter && a[prefix] == b[prefix])
        prefix++;
    while (suffix < shorter - prefix && a[length_a - 1 - suffix] == b[length_b - 1 - suffix])
        suffix++;
    return (length_a > length_b ? length_a : length_b) - prefix - suffix;
}

static int unknown_command(const char *name) {
    const struct tool *nearest = NULL;
    size_t least = 3; /* farther away is no slip */

    for (size_t i = 0; i < TOOL_COUNT; i++) {
        size_t distance = name_distance(name, tools[i].name);

        if (distance < least && distance < strlen(name)) {
            least = distance;
            nearest = &tools[i];
        }
    }
    fprintf(stderr, "layoutfs: there is no command '%s'", name);
    if (nearest)
        fprintf(stderr, "; did you mean '%s'?", nearest->name);
    else
        fputc('.', stderr);
    fprintf(stderr, " 'layoutfs --help' lists them\n");
    return TOOL_USAGE;
}

/* Runs the tool under the name "layoutfs TOOL", which its usage messages show. */
static int tool_run(const struct tool *tool, int argc, char **argv) {
    char name[64];

    snprintf(name, sizeof(name), "layoutfs %s", tool->name);
    argv[0] = name;
    int code = tool->run(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        perror("layoutfs: standard output");
        return code == TOOL_DONE ? TOOL_FAILED : code;
    }
    return code;
}

int main(int argc, char **argv) {
    argp_err_exit_status = TOOL_USAGE;
    argp_program_version = "layoutfs " LAYOUTFS_VERSION;
    mount_helper helper = argc > 0 ? mount_helper_find(argv[0]) : NULL;
    if (helper)
        return helper(argc, argv);
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_help(stdout);
        return TOOL_DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts(argp_program_version);
        return TOOL_DONE;
    }
    if (strcmp(argv[1], "help") == 0) {
        const struct tool *tool = tool_find(argv[2]);
        char help[] = "--help";
        char *help_argv[] = {NULL, help, NULL};

        return tool ? tool_run(tool, 2, help_argv) : unknown_command(argv[2]);
    }
    const struct tool *tool = tool_find(argv[1]);
    return tool ? tool_run(tool, argc - 1, argv + 1) : unknown_command(argv[1]);
}

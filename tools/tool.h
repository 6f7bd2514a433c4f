/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. The commands of `layoutfs`: each parses its arguments, calls the library below, and
 * prints. No filesystem logic lives here.
 *
 * A command gets argv[0] = its own name and returns the exit code: 0 done, 1 failed, 2 usage.
 * Options may stand before or after arguments (argp). Every command has --help.
 */
#ifndef LAYOUTFS_TOOL_H
#define LAYOUTFS_TOOL_H

enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

struct tool {
    const char *name;
    const char *description; /* one line */
    int (*run)(int argc, char **argv);
};

int tool_mkfs(int argc, char **argv);
int tool_mount(int argc, char **argv);
int tool_umount(int argc, char **argv);
int tool_ls(int argc, char **argv);
int tool_cat(int argc, char **argv);
int tool_cp(int argc, char **argv);
int tool_rm(int argc, char **argv);
int tool_mkdir(int argc, char **argv);
int tool_check(int argc, char **argv);
int tool_clean(int argc, char **argv);
int tool_convert(int argc, char **argv);
int tool_show(int argc, char **argv);
int tool_explain(int argc, char **argv);
int tool_snapshot(int argc, char **argv);
int tool_diff(int argc, char **argv);
int tool_options(int argc, char **argv);
int tool_bench(int argc, char **argv);
int tool_crash(int argc, char **argv);

#endif

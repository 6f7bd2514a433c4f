/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Starting programs, and the mounts that some of them serve.
 */
#ifndef LAYOUTFS_BENCH_PROCESS_H
#define LAYOUTFS_BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Is there a program of that name on the PATH? */
bool process_exists(const char *name);
/* Starts argv[0] (found on the PATH), its standard output thrown away. 0 or negative errno. */
int process_start(const char *const *argv, pid_t *process);
/* Waits for it: 0, or -EIO when it did not end with exit code 0. */
int process_finish(pid_t process);
int process_run(const char *const *argv);

/* Waits until a filesystem is mounted on `directory`, served by `process`. -EIO: it ended instead.
 * -ETIMEDOUT after half a minute. */
int process_await_mount(pid_t process, const char *directory);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Checkers that others wrote, run on an image file.
 */
#ifndef LAYOUTFS_CRASH_FSCK_H
#define LAYOUTFS_CRASH_FSCK_H

#include <stdbool.h>

#include "fs/device/device.h"

/* Is the program of a command there to be run? */
bool fsck_exists(const char *command);
/* Runs "PROGRAM ARGUMENT..." with the file's name as its last argument. The exit code, 128 + n for
 * signal n, or negative errno. */
int fsck_run(const char *command, const char *path);
/* Copies a device to a file, made anew. 0 or negative errno. */
int fsck_save(struct device *device, const char *path);

#endif

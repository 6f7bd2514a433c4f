/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. The program under the names by which mount(8) and umount(8) call it.
 */
#ifndef LAYOUTFS_TOOLS_MOUNT_HELPER_H
#define LAYOUTFS_TOOLS_MOUNT_HELPER_H

/* Runs with the program's arguments and returns an exit code of mount(8)'s. */
typedef int (*mount_helper)(int argc, char **argv);
/* What to run under that name (argv[0]), or NULL: it is no mount helper's. */
mount_helper mount_helper_find(const char *program);

#endif

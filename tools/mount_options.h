/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. The text after `mount -o`, sorted by who has to know: the kernel (by way of
 * libfuse), the volume, the serving process, or nobody (what mount(8) and fstab(5) say to each
 * other). One table serves the sorting and `layoutfs options`.
 *
 * What the table lacks is taken to be the volume's, which knows its own: see volume_options_check.
 */
#ifndef LAYOUTFS_TOOLS_MOUNT_OPTIONS_H
#define LAYOUTFS_TOOLS_MOUNT_OPTIONS_H

#include "fs/layout.h"

/* Starts as {0}. */
struct mount_options {
    char *fuse;   /* owned: for the kernel */
    char *volume; /* owned: the core's and the layout's */
    char *log;    /* owned: the file to log to, or NULL */
    bool read_only;
    bool delayed_writes, io_uring;
};

/* An option of every mount. The specification is for people; the name may be a pattern of
 * fnmatch(3): "x-*". */
struct mount_option {
    struct option_spec spec;
    const char *fuse;   /* what it says to libfuse: "" the option itself; NULL: nothing */
    const char *volume; /* what it says to the volume; NULL: nothing */
};
extern const struct mount_option mount_option_table[]; /* ended by a name NULL */

/* Takes up "a,b=c"; later ones win. 0, -ENOMEM, or -EINVAL (an option that cannot be had) after a
 * sentence. */
int mount_options_add(struct mount_options *options, const char *text);
/* Puts what every mount of `type` has before what was asked for. 0 or -ENOMEM. */
int mount_options_complete(struct mount_options *options, const char *type);
/* Drops what the volume of that type would not accept, as mount(8)'s -s wants. 0 or -ENOMEM. */
int mount_options_drop_unknown(struct mount_options *options, const char *type,
                               const struct log *log);
void mount_options_free(struct mount_options *options);

#endif

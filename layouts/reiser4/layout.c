/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the top: what the core sees of this layout. Interface:
 * layouts/reiser4/layout.h.
 */
#include "layouts/reiser4/layout.h"

static const struct layout_type reiser4_types[] = {
    {.name = "reiser4",
     .mkfs_options = "",
     .mount_options = "",
     .description = "everything in one tree that is packed when it is written; since 2004"},
    {0},
};

const struct layout reiser4_layout = {
    .name = "reiser4",
    .description = "a dancing tree: small files packed, transactions by a wandering log",
    .types = reiser4_types,
    .options = reiser4_option_table,
    .inode_private_size = sizeof(struct reiser4_inode),

    .format = reiser4_format,
    .probe = reiser4_probe,
    .mount = reiser4_mount,
    .unmount = reiser4_unmount,
    .statfs = reiser4_statfs,

    .inode_load = reiser4_inode_load,
    .inode_evict = reiser4_inode_evict,

    .dir_find = reiser4_dir_find,
    .dir_iterate = reiser4_dir_iterate,
    .dir_empty = reiser4_dir_empty,

    .symlink_read = reiser4_symlink_read,

    .load = reiser4_load,
    .map = reiser4_map,

    .check = reiser4_check,
    .describe = reiser4_describe,
    .explain = reiser4_explain,
};

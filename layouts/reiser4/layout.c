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
    .inode_store = reiser4_inode_store,
    .inode_create = reiser4_inode_create,
    .inode_free = reiser4_inode_free,
    .orphan_add = reiser4_orphan_add,
    .orphan_remove = reiser4_orphan_remove,
    .inode_evict = reiser4_inode_evict,

    .dir_find = reiser4_dir_find,
    .dir_insert = reiser4_dir_insert,
    .dir_remove = reiser4_dir_remove,
    .dir_rename = reiser4_dir_rename,
    .dir_iterate = reiser4_dir_iterate,
    .dir_empty = reiser4_dir_empty,

    .symlink_write = reiser4_symlink_write,
    .symlink_read = reiser4_symlink_read,

    .reserve = reiser4_reserve,
    .load = reiser4_load,
    .store = reiser4_store,
    .store_failed = reiser4_store_failed,
    .truncate = reiser4_truncate,
    .punch = reiser4_punch,
    .map = reiser4_map,

    .commit_data = reiser4_commit_data,
    .commit_begin = reiser4_commit_begin,
    .commit_write = reiser4_commit_write,
    .commit_end = reiser4_commit_end,

    .check = reiser4_check,
    .describe = reiser4_describe,
    .explain = reiser4_explain,
};

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top: what the core sees of this layout. Interface:
 * layouts/nilfs/layout.h.
 */
#include "layouts/nilfs/layout.h"

#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/history.h"

static const struct layout_type nilfs_types[] = {
    {.name = "nilfs2",
     .mkfs_options = "",
     .mount_options = "",
     .description = "a log with checkpoints, each a whole filesystem; since 2005"},
    {0},
};

const struct layout nilfs_layout = {
    .name = "nilfs",
    .description = "everything is a log: data and metadata are only ever appended",
    .types = nilfs_types,
    .options = nilfs_option_table,
    .inode_private_size = sizeof(struct nilfs_inode),

    .probe = nilfs_probe,
    .format = nilfs_format,
    .mount = nilfs_mount,
    .unmount = nilfs_unmount,
    .statfs = nilfs_statfs,

    .inode_load = nilfs_history_inode_load,
    .inode_store = nilfs_inode_store,
    .inode_create = nilfs_inode_create,
    .inode_free = nilfs_inode_free,
    .inode_evict = nilfs_inode_evict,

    .dir_find = nilfs_history_dir_find,
    .dir_insert = nilfs_dir_insert,
    .dir_remove = nilfs_dir_remove,
    .dir_rename = nilfs_dir_rename,
    .dir_iterate = nilfs_history_dir_iterate,
    .dir_empty = nilfs_history_dir_empty,

    .symlink_write = nilfs_symlink_write,
    .symlink_read = nilfs_history_symlink_read,

    .reserve = nilfs_reserve,
    .load = nilfs_history_load,
    .store = nilfs_store,
    .store_failed = nilfs_store_failed,
    .truncate = nilfs_truncate,
    .punch = nilfs_punch,
    .map = nilfs_history_map,

    .step_begin = nilfs_step_begin,
    .step_end = nilfs_step_end,
    .commit_data = nilfs_commit_data,
    .commit_begin = nilfs_commit_begin,
    .commit_write = nilfs_commit_write,
    .commit_end = nilfs_commit_end,
    .idle = nilfs_idle,

    .checkpoint_list = nilfs_checkpoint_list,
    .checkpoint_keep = nilfs_checkpoint_keep,
    .checkpoint_delete = nilfs_checkpoint_delete,

    .clean = nilfs_clean,

    .describe = nilfs_describe,
    .explain = nilfs_history_explain,

    .check = nilfs_check,
};

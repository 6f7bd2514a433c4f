/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top: what the core sees of this layout. Interface:
 * layouts/nilfs/layout.h.
 */
#include "layouts/nilfs/layout.h"

#include "layouts/nilfs/checkpoint.h"

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
};

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over the device and format.h. The blocks at fixed places: master and
 * format40 super block, status, backup blocks. Facts: docs/reiser4-format.md, "super blocks".
 *
 * The master, the status (but for damage that is found) and the backups are written by mkfs and
 * check only; of the super block a commit changes root, height and the three counters.
 */
#ifndef LAYOUTFS_REISER4_SUPER_H
#define LAYOUTFS_REISER4_SUPER_H

#include "fs/device/device.h"
#include "layouts/reiser4/node.h"
#include "layouts/reiser4/plugin.h"

/* What changes with every commit; in the super block, and in the journal's footer, which counts. */
struct reiser4_counters {
    uint64_t free_blocks;
    uint64_t file_count; /* objects, the root directory included */
    uint64_t next_oid;
};

void reiser4_counters_load(const struct reiser4_disk_counters *disk,
                           struct reiser4_counters *counters);
void reiser4_counters_store(struct reiser4_disk_counters *disk,
                            const struct reiser4_counters *counters);

struct reiser4_super { /* of a volume, validated */
    struct reiser4_disk_master master;
    struct reiser4_disk_super disk; /* as it was read, or is written next */
    const struct reiser4_node_format *node_format;
    uint64_t blocks; /* of the volume; the device has at least so many */
    uint64_t root;
    uint32_t height, mkfs_id, version;
    enum reiser4_formatting formatting;
    struct reiser4_counters counters; /* of the super block; see reiser4_journal_open */
};

/* Is there a master super block of Reiser4? 0, -ENODEV without a word, or a read error. */
int reiser4_master_read(struct device *device, struct reiser4_disk_master *master);
/* Reads and validates the two. -ENODEV; -ENOTSUP: a feature that is named (block size, short keys,
 * another format or node plugin); -EUCLEAN. `where`: the block that has the super block's contents
 * (REISER4_SUPER, but for a journal that was not replayed). */
int reiser4_super_read(struct device *device, uint64_t where, struct reiser4_super *super);
/* The super block as a commit leaves it, in `block` (REISER4_BLOCK_SIZE bytes). */
void reiser4_super_encode(const struct reiser4_super *super, uint8_t *block);
/* enum reiser4_status; *known false: the magic is wrong. */
int reiser4_status_read(struct device *device, uint64_t *status, bool *known);

/* The first backup block behind `after` (0: the first one of all); 0: there are no more. */
uint64_t reiser4_backup_next(uint64_t blocks, uint64_t after);
/* What a backup block has for this volume, in `block` (REISER4_BLOCK_SIZE bytes). */
void reiser4_backup_encode(const struct reiser4_super *super, const struct reiser4_plugins *root,
                           uint8_t *block);
/* Is the block one of those whose place is fixed: boot code, super blocks, bitmaps, journal,
 * status, backups? */
bool reiser4_block_is_fixed(uint64_t blocks, uint64_t block);

#endif

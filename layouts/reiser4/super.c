/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/super.h.
 */
#include "layouts/reiser4/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BACKUP_MASTER (sizeof(((struct reiser4_disk_backup *)0)->master))

/* --- counters ----------------------------------------------------------------------------------
 */

void reiser4_counters_load(const struct reiser4_disk_counters *disk,
                           struct reiser4_counters *counters) {
    *counters = (struct reiser4_counters){.free_blocks = le64_load(disk->free_blocks),
                                          .file_count = le64_load(disk->file_count),
                                          .next_oid = le64_load(disk->next_oid)};
}

void reiser4_counters_store(struct reiser4_disk_counters *disk,
                            const struct reiser4_counters *counters) {
    le64_store(&disk->free_blocks, counters->free_blocks);
    le64_store(&disk->file_count, counters->file_count);
    le64_store(&disk->next_oid, counters->next_oid);
}

/* --- reading -----------------------------------------------------------------------------------
 */

int reiser4_master_read(struct device *device, struct reiser4_disk_master *master) {
    static const char magic[sizeof(master->magic)] = REISER4_MASTER_MAGIC;
    uint8_t sector[DEVICE_SECTOR];

    if (device->size < (uint64_t)REISER4_BLOCKS_MIN * REISER4_BLOCK_SIZE)
        return -ENODEV;
    int error = device_read(device, REISER4_MASTER_OFFSET, sector, sizeof(sector), PURPOSE_SUPER);
    if (error)
        return error;
    memcpy(master, sector, sizeof(*master));
    return memcmp(master->magic, magic, sizeof(magic)) == 0 ? 0 : -ENODEV;
}

static int refuse(const struct device *device, int error, const char *what, uint64_t found) {
    log_error(device->log, "%s: reiser4: super block: %s %" PRIu64 "%s", device->name, what, found,
              error == -ENOTSUP ? " is not supported" : " cannot be");
    return error;
}

/* What the driver refuses, and what would lead us astray. */
static int check(const struct device *device, struct reiser4_super *super) {
    const struct reiser4_disk_super *disk = &super->disk;

    if (!super->node_format)
        return refuse(device, -ENOTSUP, "node plugin", le32_load(disk->node_plugin));
    if (!(le64_load(disk->flags) & REISER4_FLAG_LARGE_KEY))
        return refuse(device, -ENOTSUP, "short keys: flags", le64_load(disk->flags));
    if (super->blocks < REISER4_BLOCKS_MIN || super->blocks > INT64_MAX / REISER4_BLOCK_SIZE)
        return refuse(device, -EUCLEAN, "a size in blocks of", super->blocks);
    if (super->blocks > device->size / REISER4_BLOCK_SIZE)
        return refuse(device, -EUCLEAN,
                      "the device is smaller than the volume; a size in blocks of", super->blocks);
    if (super->height < REISER4_TWIG || super->height > REISER4_HEIGHT_MAX)
        return refuse(device, -EUCLEAN, "a tree of height", super->height);
    if (super->root < REISER4_FIRST_FREE || super->root >= super->blocks)
        return refuse(device, -EUCLEAN, "a root at block", super->root);
    if (le16_load(disk->formatting) > REISER4_FORMATTING_SMART)
        return refuse(device, -ENOTSUP, "tail policy", le16_load(disk->formatting));
    return 0;
}

static void take(struct reiser4_super *super) {
    const struct reiser4_disk_super *disk = &super->disk;

    super->node_format = reiser4_node_format_of(le32_load(disk->node_plugin));
    super->blocks = le64_load(disk->block_count);
    super->root = le64_load(disk->root_block);
    super->height = le16_load(disk->tree_height);
    super->mkfs_id = le32_load(disk->mkfs_id);
    super->version = le32_load(disk->version) & ~REISER4_VERSION_STALE;
    super->formatting = (enum reiser4_formatting)le16_load(disk->formatting);
    super->counters = (struct reiser4_counters){.free_blocks = le64_load(disk->free_blocks),
                                                .file_count = le64_load(disk->file_count),
                                                .next_oid = le64_load(disk->next_oid)};
}

int reiser4_super_read(struct device *device, uint64_t where, struct reiser4_super *super) {
    static const char magic[sizeof(super->disk.magic)] = REISER4_SUPER_MAGIC;
    int error = reiser4_master_read(device, &super->master);

    if (error)
        return error;
    if (le16_load(super->master.format) != REISER4_FORMAT40)
        return refuse(device, -ENOTSUP, "disk format", le16_load(super->master.format));
    if (le16_load(super->master.block_size) != REISER4_BLOCK_SIZE)
        return refuse(device, -ENOTSUP, "a block size of", le16_load(super->master.block_size));
    error = device_read(device, where * REISER4_BLOCK_SIZE, &super->disk, sizeof(super->disk),
                        PURPOSE_SUPER);
    if (error)
        return error;
    if (memcmp(super->disk.magic, magic, sizeof(magic)) != 0) {
        log_error(device->log, "%s: reiser4: block %" PRIu64 " is no format40 super block",
                  device->name, where);
        return -EUCLEAN;
    }
    take(super);
    return check(device, super);
}

int reiser4_status_read(struct device *device, uint64_t *status, bool *known) {
    static const char magic[16] = REISER4_STATUS_MAGIC;
    struct reiser4_disk_status disk;
    uint8_t sector[DEVICE_SECTOR];
    int error = device_read(device, (uint64_t)REISER4_STATUS * REISER4_BLOCK_SIZE, sector,
                            sizeof(sector), PURPOSE_SUPER);

    if (error)
        return error;
    memcpy(&disk, sector, sizeof(disk));
    *known = memcmp(disk.magic, magic, sizeof(magic)) == 0;
    *status = *known ? le64_load(disk.status) : REISER4_STATUS_OK;
    return 0;
}

/* --- writing -----------------------------------------------------------------------------------
 */

void reiser4_super_encode(const struct reiser4_super *super, uint8_t *block) {
    struct reiser4_disk_super *disk = (struct reiser4_disk_super *)block;

    memset(block, 0, REISER4_BLOCK_SIZE);
    *disk = super->disk;
    le64_store(&disk->root_block, super->root);
    le16_store(&disk->tree_height, (uint16_t)super->height);
    le64_store(&disk->free_blocks, super->counters.free_blocks);
    le64_store(&disk->file_count, super->counters.file_count);
    le64_store(&disk->next_oid, super->counters.next_oid);
}

/* --- backups -----------------------------------------------------------------------------------
 */

uint64_t reiser4_backup_next(uint64_t blocks, uint64_t after) {
    uint64_t place = 2, previous = 0;

    for (;;) {
        place = place * 3 / 2;
        if (place <= previous)
            continue;
        uint64_t region = place / REISER4_REGION * REISER4_REGION;
        uint64_t backup = region + 1 < blocks ? region + 1 : 0;
        if (backup < REISER4_BACKUP_FIRST)
            backup = REISER4_BACKUP_FIRST;
        if (place > blocks || backup > blocks)
            return 0;
        if (backup <= previous)
            continue;
        if (backup > after)
            return backup;
        previous = backup;
    }
}

void reiser4_backup_encode(const struct reiser4_super *super, const struct reiser4_plugins *root,
                           uint8_t *block) {
    struct reiser4_disk_backup *backup = (struct reiser4_disk_backup *)block;

    memset(block, 0, REISER4_BLOCK_SIZE);
    memcpy(backup->master, &super->master, BACKUP_MASTER);
    memcpy(backup->magic, super->disk.magic, sizeof(backup->magic));
    backup->block_count = super->disk.block_count;
    backup->mkfs_id = super->disk.mkfs_id;
    backup->formatting = super->disk.formatting;
    backup->flags = super->disk.flags;
    le32_store(&backup->format_version, super->version);
    memcpy(backup->plugins_magic, REISER4_BACKUP_MAGIC, sizeof(backup->plugins_magic));
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        le32_store(&backup->plugins[i], root->id[i]);
}

bool reiser4_block_is_fixed(uint64_t blocks, uint64_t block) {
    if (block < REISER4_FIRST_FREE || block % REISER4_REGION == 0)
        return true;
    return block % REISER4_REGION == 1 && reiser4_backup_next(blocks, block - 1) == block;
}

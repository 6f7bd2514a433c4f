/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the top. An empty volume. Interface: layouts/reiser4/layout.h.
 *
 * It has a twig, the root, and one leaf with the root directory: its stat data, "." and "..". What
 * is written is what mkfs.reiser4 writes for the same wishes, but for random numbers and times.
 *
 * Invariant: the master super block is written last, so that a volume that is not whole is none.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "fs/volume_uuid.h"
#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/layout.h"
#include "layouts/reiser4/units.h"

#define SIGNATURE_AREA ((uint64_t)REISER4_MASTER * REISER4_BLOCK_SIZE)
/* mkfs.reiser4 counts the root's name for itself, too. */
#define ROOT_LINKS 3u

struct format {
    struct device *device;
    const struct log *log;
    struct reiser4_super super;
    struct reiser4_plugins plugins;
    uint64_t twig, leaf; /* blocks */
    struct timestamp now;
};

static int refuse(const struct format *f, const char *sentence) {
    log_error(f->log, "%s: mkfs: %s", f->device->name, sentence);
    return -EINVAL;
}

/* --- wishes ----------------------------------------------------------------------------------- */

static int identity_parse(struct format *f, const struct options *options) {
    const char *text = options_text(options, "uuid"), *label = options_text(options, "label");
    bool random;
    struct reiser4_disk_master *master = &f->super.master;

    if (label && strlen(label) > sizeof(master->label))
        return refuse(f, "label: at most 16 bytes fit");
    if (label)
        memcpy(master->label, label, strlen(label));
    return volume_uuid_choose(text, f->device->clock, master->uuid, &random) == 0
               ? 0
               : refuse(f, VOLUME_UUID_EXPECTED);
}

static uint32_t mkfs_id_choose(const struct format *f) {
    uint8_t random[16];

    volume_uuid_bytes(f->device->clock, f->super.master.uuid, random);
    return (uint32_t)adler32(1, random, sizeof(random));
}

static void plugins_choose(struct format *f, const struct options *options) {
    static const struct {
        enum reiser4_member member;
        const char *option;
    } chosen[] = {
        {REISER4_PLUGIN_FORMATTING, "formatting"}, {REISER4_PLUGIN_HASH, "hash"},
        {REISER4_PLUGIN_FIBRATION, "fibration"},   {REISER4_PLUGIN_COMPRESSION, "compress"},
        {REISER4_PLUGIN_MODE, "compressMode"},     {REISER4_PLUGIN_CLUSTER, "cluster"},
        {REISER4_PLUGIN_CREATE, "create"},
    };

    f->plugins.id[REISER4_PLUGIN_OBJECT] = REISER4_OBJECT_DIR40;
    f->plugins.id[REISER4_PLUGIN_DIR_ITEM] = REISER4_ITEM_ENTRIES;
    for (size_t i = 0; i < sizeof(chosen) / sizeof(*chosen); i++)
        f->plugins.id[chosen[i].member] = (uint8_t)options_number(options, chosen[i].option);
}

static void super_fill(struct format *f, const struct options *options) {
    static const char magic[16] = REISER4_SUPER_MAGIC;
    static const char master_magic[16] = REISER4_MASTER_MAGIC;
    struct reiser4_super *super = &f->super;
    struct reiser4_disk_super *disk = &super->disk;
    uint32_t node = (uint32_t)options_number(options, "node");

    memcpy(super->master.magic, master_magic, sizeof(master_magic));
    le16_store(&super->master.format, REISER4_FORMAT40);
    le16_store(&super->master.block_size, REISER4_BLOCK_SIZE);
    super->node_format = reiser4_node_format_of(node);
    super->mkfs_id = mkfs_id_choose(f);
    super->version = REISER4_VERSION;
    super->height = REISER4_TWIG;
    super->counters = (struct reiser4_counters){.file_count = 1, .next_oid = REISER4_FIRST_OID};
    memcpy(disk->magic, magic, sizeof(magic));
    le64_store(&disk->block_count, super->blocks);
    le32_store(&disk->mkfs_id, super->mkfs_id);
    le16_store(&disk->formatting, f->plugins.id[REISER4_PLUGIN_FORMATTING]);
    le64_store(&disk->flags, REISER4_FLAG_LARGE_KEY);
    le32_store(&disk->version, REISER4_VERSION);
    le32_store(&disk->node_plugin, node);
}

/* --- the tree --------------------------------------------------------------------------------- */

static void put(struct reiser4_node node, const struct reiser4_item *item) {
    reiser4_units_put(node, reiser4_position_end(node), item);
}

static void leaf_fill(const struct format *f, uint8_t *block) {
    const struct reiser4_node leaf = {f->super.node_format, block};
    const struct reiser4_object root = REISER4_ROOT_OBJECT;
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_stat stat = {
        .mask = REISER4_STAT_HAS(REISER4_SD_LIGHT_WEIGHT) | REISER4_STAT_HAS(REISER4_SD_UNIX) |
                REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET),
        .mode = S_IFDIR | 0755,
        .nlink = ROOT_LINKS,
        .size = 2, /* entries */
        .rdev_or_bytes = UINT64_C(2) * REISER4_ENTRY_BYTES,
        .atime = f->now,
        .mtime = f->now,
        .ctime = f->now,
    };
    struct reiser4_item item = {
        .key = reiser4_key_of_stat(&root), .id = REISER4_ITEM_STAT, .body = body};

    for (unsigned i = REISER4_PLUGIN_PERMISSION; i < REISER4_PLUGIN_MEMBERS; i++) {
        stat.plugins.present |= (uint16_t)(1u << i);
        stat.plugins.id[i] = f->plugins.id[i];
    }
    reiser4_node_init(leaf, REISER4_LEAF, f->super.mkfs_id);
    item.length = reiser4_stat_length(&stat);
    reiser4_stat_encode(&stat, body);
    put(leaf, &item);
    for (uint32_t length = 1; length <= 2; length++) {
        struct reiser4_key key =
            reiser4_key_of_name(REISER4_ROOT_OID, f->plugins.id[REISER4_PLUGIN_HASH],
                                f->plugins.id[REISER4_PLUGIN_FIBRATION], "..", length);
        reiser4_entry_make(&key, &root, "..", length, body, &item);
        put(leaf, &item);
    }
    reiser4_node_seal(leaf);
}

static void twig_fill(const struct format *f, uint8_t *block) {
    const struct reiser4_node twig = {f->super.node_format, block};
    const struct reiser4_object root = REISER4_ROOT_OBJECT;
    struct reiser4_key key = reiser4_key_of_stat(&root);
    struct reiser4_disk_pointer *pointer;

    reiser4_node_init(twig, REISER4_TWIG, f->super.mkfs_id);
    pointer = (struct reiser4_disk_pointer *)reiser4_node_insert(
        twig, 0, &key, REISER4_ITEM_POINTER, sizeof(*pointer));
    le64_store(&pointer->block, f->leaf);
    reiser4_node_seal(twig);
}

/* --- bitmaps ---------------------------------------------------------------------------------- */

static bool is_used(const struct format *f, uint64_t block) {
    return block == f->twig || block == f->leaf || block >= f->super.blocks ||
           reiser4_block_is_fixed(f->super.blocks, block);
}

static void bitmap_set(struct reiser4_disk_bitmap *bitmap, uint64_t bit) {
    bitmap->bits[bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* What is used lies at the start of a region, and behind the end of the volume. Returns the number
 * of free blocks. */
static uint64_t bitmap_fill(const struct format *f, uint64_t region, uint8_t *block) {
    struct reiser4_disk_bitmap *bitmap = (struct reiser4_disk_bitmap *)block;
    uint64_t start = region * REISER4_REGION, used = 0;
    uint64_t end =
        f->super.blocks - start < REISER4_REGION ? f->super.blocks - start : REISER4_REGION;

    memset(block, 0, REISER4_BLOCK_SIZE);
    for (uint64_t bit = 0; bit < end && bit <= REISER4_FIRST_FREE + 2; bit++)
        if (is_used(f, start + bit)) {
            bitmap_set(bitmap, bit);
            used++;
        }
    for (uint64_t bit = end; bit < REISER4_REGION; bit++)
        bitmap_set(bitmap, bit);
    le32_store(&bitmap->adler, (uint32_t)adler32(1, bitmap->bits, sizeof(bitmap->bits)));
    return end - used;
}

/* --- the writes ------------------------------------------------------------------------------- */

static int write_block(const struct format *f, uint64_t at, const uint8_t *block,
                       enum purpose purpose) {
    return device_write(f->device, at * REISER4_BLOCK_SIZE, block, REISER4_BLOCK_SIZE, purpose);
}

static int bitmaps_write(struct format *f, uint8_t *block) {
    uint64_t regions = (f->super.blocks + REISER4_REGION - 1) / REISER4_REGION;
    int error = 0;

    for (uint64_t i = 0; i < regions && !error; i++) {
        f->super.counters.free_blocks += bitmap_fill(f, i, block);
        error = write_block(f, reiser4_bitmap_block(i), block, PURPOSE_BITMAP);
    }
    return error;
}

static int tree_write(const struct format *f, uint8_t *block) {
    leaf_fill(f, block);
    int error = write_block(f, f->leaf, block, PURPOSE_INODE);

    twig_fill(f, block);
    return error ? error : write_block(f, f->twig, block, PURPOSE_MAP);
}

static int backups_write(const struct format *f, uint8_t *block) {
    int error = 0;

    reiser4_backup_encode(&f->super, &f->plugins, block);
    for (uint64_t at = reiser4_backup_next(f->super.blocks, 0); at > 0 && !error;
         at = reiser4_backup_next(f->super.blocks, at))
        error = write_block(f, at, block, PURPOSE_SUPER);
    return error;
}

/* Journal header and footer: no transaction yet; and the status. */
static int journal_write(const struct format *f, uint8_t *block) {
    static const char magic[16] = REISER4_STATUS_MAGIC;
    int error;

    memset(block, 0, REISER4_BLOCK_SIZE);
    error = write_block(f, REISER4_JOURNAL_HEADER, block, PURPOSE_JOURNAL);
    if (!error)
        error = write_block(f, REISER4_JOURNAL_FOOTER, block, PURPOSE_JOURNAL);
    memcpy(block, magic, sizeof(magic));
    return error ? error : write_block(f, REISER4_STATUS, block, PURPOSE_SUPER);
}

static int supers_write(const struct format *f, uint8_t *block) {
    reiser4_super_encode(&f->super, block);
    int error = write_block(f, REISER4_SUPER, block, PURPOSE_SUPER);

    if (!error)
        error = device_flush(f->device);
    memset(block, 0, REISER4_BLOCK_SIZE);
    memcpy(block, &f->super.master, sizeof(f->super.master));
    return error ? error : write_block(f, REISER4_MASTER, block, PURPOSE_SUPER);
}

/* Old signatures, ours and others', at both ends of the device; then the new. */
static int format_write(struct format *f) {
    uint64_t size = f->device->size, end = size - size % DEVICE_SECTOR;
    uint8_t *block = calloc(1, REISER4_BLOCK_SIZE);
    int error = block ? device_zero(f->device, 0, SIGNATURE_AREA + REISER4_BLOCK_SIZE) : -ENOMEM;

    if (!error)
        error = device_zero(f->device, end - SIGNATURE_AREA, SIGNATURE_AREA);
    if (!error)
        error = bitmaps_write(f, block);
    if (!error)
        error = tree_write(f, block);
    if (!error)
        error = backups_write(f, block);
    if (!error)
        error = journal_write(f, block);
    if (!error)
        error = supers_write(f, block);
    free(block);
    if (error)
        log_error(f->log, "%s: mkfs: writing failed: %s", f->device->name, strerror(-error));
    return error;
}

int reiser4_format(struct device *device, const struct options *options) {
    struct format f = {.device = device, .log = options->log};

    f.now = clock_calendar(device->clock);
    f.now.nanoseconds = 0; /* the root directory's stat data has none */
    f.super.blocks = device->size / REISER4_BLOCK_SIZE;
    if (f.super.blocks < REISER4_BLOCKS_MIN)
        return refuse(&f, "the device is too small: at least 128 KiB are needed");
    int error = identity_parse(&f, options);
    if (error)
        return error;
    plugins_choose(&f, options);
    if (f.plugins.id[REISER4_PLUGIN_HASH] == REISER4_HASH_RUPASOV)
        log_warning(f.log,
                    "%s: mkfs: Linux and reiser4progs disagree about rupasov_hash of longer names; "
                    "what is made here is as reiser4progs want it",
                    device->name);
    super_fill(&f, options);
    f.twig = REISER4_FIRST_FREE;
    f.leaf = f.twig + 1;
    f.super.root = f.twig;
    return format_write(&f);
}

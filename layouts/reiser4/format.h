/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the bottom: structures as they lie on disk, nothing else.
 * Source of the facts: docs/reiser4-format.md, which says how each was checked. All integers are
 * little-endian and unaligned; offsets are asserted at the end.
 *
 * Two address spaces:
 *  - blocks, counted from the start of the device; 0 is never valid: in an extent, a hole;
 *  - keys, four words, which give everything in the tree its place (layouts/reiser4/key.h).
 */
#ifndef LAYOUTFS_REISER4_FORMAT_H
#define LAYOUTFS_REISER4_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "fs/endian.h"

#define REISER4_BLOCK_BITS 12u
#define REISER4_BLOCK_SIZE 4096u /* the only size that the driver mounts, and so do we */

/* --- where things lie --------------------------------------------------------------------------
 */

#define REISER4_MASTER_OFFSET 65536u /* bytes, whatever the block size */
enum reiser4_place {                 /* blocks */
                     REISER4_MASTER = 16,
                     REISER4_SUPER = 17,
                     REISER4_BITMAP_FIRST = 18, /* of blocks 0 to REISER4_REGION - 1 */
                     REISER4_JOURNAL_HEADER = 19,
                     REISER4_JOURNAL_FOOTER = 20,
                     REISER4_STATUS = 21,
                     REISER4_BACKUP_FIRST = 22, /* the others: reiser4_backup_next, super.h */
                     REISER4_FIRST_FREE = 23,
};
#define REISER4_BLOCKS_MIN 25u
/* Blocks that one bitmap block describes: a region. Region k > 0 starts with its bitmap block. */
#define REISER4_REGION ((REISER4_BLOCK_SIZE - 4) * 8)

/* --- super blocks, status, bitmaps -------------------------------------------------------------
 */

#define REISER4_MASTER_MAGIC   "ReIsEr4"
#define REISER4_SUPER_MAGIC    "ReIsEr40FoRmAt"
#define REISER4_STATUS_MAGIC   "ReiSeR4StATusBl"
#define REISER4_BACKUP_MAGIC   "PsEt"
#define REISER4_FORMAT40       0u
#define REISER4_VERSION        2u          /* the minor version that we know */
#define REISER4_VERSION_STALE  0x80000000u /* backup blocks are out of date; fsck's business */
#define REISER4_FLAG_LARGE_KEY UINT64_C(1)

struct reiser4_disk_master {
    char magic[16];
    le16 format; /* plugin: REISER4_FORMAT40 */
    le16 block_size;
    uint8_t uuid[16];
    char label[16]; /* 16 characters need no terminator */
    le64 diskmap;   /* 0: none */
};

struct reiser4_disk_super { /* format40 */
    le64 block_count;
    le64 free_blocks; /* clear bits of all bitmaps */
    le64 root_block;
    le64 next_oid;
    le64 file_count; /* objects, the root included */
    le64 flushes;
    le32 mkfs_id; /* in every node, too */
    char magic[16];
    le16 tree_height; /* level of the root node */
    le16 formatting;  /* enum reiser4_formatting, of plugin.h */
    le64 flags;
    le32 version;
    le32 node_plugin;
    uint8_t unused[424];
};

#define REISER4_PLUGIN_MEMBERS 14u

struct reiser4_disk_backup {
    uint8_t version; /* 0 */
    uint8_t master[52];
    uint8_t pad[8];
    char magic[16]; /* format40's */
    le64 block_count;
    le32 mkfs_id;
    le16 formatting;
    le64 flags;
    le32 format_version; /* without REISER4_VERSION_STALE */
    uint8_t pad2[8];
    char plugins_magic[4];
    le32 plugins[REISER4_PLUGIN_MEMBERS]; /* the root directory's */
};

enum reiser4_status {
    REISER4_STATUS_OK = 0,
    REISER4_STATUS_CORRUPTED = 1, /* mounts with a warning; the others only for reading */
    REISER4_STATUS_DAMAGED = 2,
    REISER4_STATUS_DESTROYED = 4,
    REISER4_STATUS_IO_ERROR = 8,
};

struct reiser4_disk_status {
    char magic[16];
    le64 status; /* enum reiser4_status */
    le64 extended;
    le64 trace[10];
    char message[256];
};

struct reiser4_disk_bitmap {
    le32 adler;                           /* of `bits`, all of them */
    uint8_t bits[REISER4_BLOCK_SIZE - 4]; /* 1: used; past the volume's end: 1 */
};

/* --- journal -----------------------------------------------------------------------------------
 */

#define REISER4_HEAD_MAGIC   "TxMagic4"
#define REISER4_RECORD_MAGIC "LogMagc4"

struct reiser4_disk_journal_header {
    le64 last_committed; /* a transaction's head; 0: none */
};

struct reiser4_disk_counters { /* as they are after a transaction */
    le64 free_blocks;
    le64 file_count;
    le64 next_oid;
};

struct reiser4_disk_journal_footer {
    le64 last_flushed; /* a transaction's head; not 0: the counters override the super block's */
    struct reiser4_disk_counters counters;
};

struct reiser4_disk_head { /* of a transaction, in any block that was free */
    char magic[8];
    le64 id;      /* 0 */
    le32 records; /* blocks of the log, this one included */
    le32 pad;
    le64 previous; /* what the journal header said before */
    le64 first_record;
    struct reiser4_disk_counters counters;
};

struct reiser4_disk_record_entry {
    le64 original; /* block that is to have the contents... */
    le64 wandered; /* ...which lie here; 0 ends the list */
};

#define REISER4_RECORD_ENTRIES 254u

struct reiser4_disk_record {
    char magic[8];
    le64 id;
    le32 records; /* as in the head */
    le32 serial;  /* from 1 */
    le64 next;    /* record; the last one's is the head */
    struct reiser4_disk_record_entry entry[REISER4_RECORD_ENTRIES];
};

/* --- tree --------------------------------------------------------------------------------------
 */

#define REISER4_LEAF       1u
#define REISER4_TWIG       2u
#define REISER4_HEIGHT_MAX 8u

enum {
    REISER4_ROOT_LOCALITY = 41,
    REISER4_ROOT_OID = 42,
    REISER4_SAFELINK_LOCALITY = 43,
    REISER4_LOST_FOUND_OID = 0xffff, /* of fsck's */
    REISER4_FIRST_OID = 0x10000,     /* of users */
};

struct reiser4_disk_key {
    le64 word[4]; /* enum reiser4_key_word, of key.h */
};

enum { REISER4_NODE40 = 0, REISER4_NODE41 = 1 };
#define REISER4_NODE40_MAGIC 0x52344653u
#define REISER4_NODE41_MAGIC 0x19051966u

struct reiser4_disk_node { /* node40; of node41 the checksum follows */
    le16 plugin;
    le16 items;
    le16 free_space;
    le16 free_start; /* where the last body ends */
    le32 magic;
    le32 mkfs_id;
    le64 flush_id; /* any value */
    le16 flags;    /* any value */
    uint8_t level;
    uint8_t pad;
};

struct reiser4_disk_node41 {
    struct reiser4_disk_node node;
    le32 crc; /* CRC-32C, not inverted at the end, of all bytes but these */
};

/* Item headers grow down from the end of the node: header i is the (i + 1)th from there. */
struct reiser4_disk_item {
    struct reiser4_disk_key key;
    le16 offset; /* of the body, from the start of the node */
    le16 flags;  /* any value: the driver leaves garbage there */
    le16 plugin; /* enum reiser4_item_id, of item.h */
};

/* --- items -------------------------------------------------------------------------------------
 */

struct reiser4_disk_pointer { /* nodeptr40 */
    le64 block;
};

#define REISER4_EXTENT_HOLE        0u
#define REISER4_EXTENT_UNALLOCATED 1u /* in core only, see extent.h */

struct reiser4_disk_extent { /* a unit of extent40 */
    le64 start;              /* block, or one of the above */
    le64 width;              /* blocks */
};

struct reiser4_disk_object { /* a stat data key without its offset, which is 0 */
    le64 word[3];
};

struct reiser4_disk_entry { /* a unit's header in cde40 */
    le64 ordering, objectid, offset;
    le16 body; /* from the start of the item: an object and, of a long name, all of it and a NUL */
};

struct reiser4_disk_entries { /* cde40 */
    le16 count;
    struct reiser4_disk_entry entry[];
};

#define REISER4_CTAIL_UNPREPARED 0xffu /* as the shift: in core only */

struct reiser4_disk_ctail { /* the stored cluster's bytes follow */
    uint8_t shift;          /* log2 of the cluster's size in bytes */
};

struct reiser4_disk_safelink {      /* bbox40 */
    struct reiser4_disk_key object; /* stat data */
    le64 size;                      /* only of a truncation: what the file is to have */
};

/* --- stat data (stat40): a mask word, then the extensions whose bits are set, in order ----------
 */

enum reiser4_extension {
    REISER4_SD_LIGHT_WEIGHT = 0, /* always there */
    REISER4_SD_UNIX = 1,
    REISER4_SD_LARGE_TIMES = 2,
    REISER4_SD_SYMLINK = 3,
    REISER4_SD_PLUGIN_SET = 4,
    REISER4_SD_FLAGS = 5,
    REISER4_SD_CAPABILITIES = 6, /* never written */
    REISER4_SD_CRYPTO = 7,       /* never written */
    REISER4_SD_HEIR_SET = 8,
    REISER4_SD_MORE = 15, /* another mask word follows this word's extensions */
};

struct reiser4_disk_light_weight {
    le16 mode;
    le32 nlink;
    le64 size;
};

struct reiser4_disk_unix {
    le32 uid, gid;
    le32 atime, mtime, ctime; /* unsigned seconds */
    le64 rdev_or_bytes;       /* devices: major << 20 | minor */
};

struct reiser4_disk_large_times { /* nanoseconds; the driver always writes 0 */
    le32 atime, mtime, ctime;
};

struct reiser4_disk_slot {
    le16 member; /* enum reiser4_member, of plugin.h */
    le16 id;
};

struct reiser4_disk_slots { /* plugin set and heir set */
    le16 count;
    struct reiser4_disk_slot slot[];
};

static_assert(offsetof(struct reiser4_disk_master, uuid) == 20, "master uuid");
static_assert(sizeof(struct reiser4_disk_master) == 60, "master");
static_assert(offsetof(struct reiser4_disk_super, magic) == 52, "super magic");
static_assert(offsetof(struct reiser4_disk_super, tree_height) == 68, "super tree_height");
static_assert(offsetof(struct reiser4_disk_super, version) == 80, "super version");
static_assert(sizeof(struct reiser4_disk_super) == 512, "super");
static_assert(offsetof(struct reiser4_disk_backup, magic) == 61, "backup magic");
static_assert(offsetof(struct reiser4_disk_backup, plugins_magic) == 111, "backup plugins");
static_assert(sizeof(struct reiser4_disk_backup) == 171, "backup");
static_assert(offsetof(struct reiser4_disk_status, message) == 112, "status message");
static_assert(sizeof(struct reiser4_disk_bitmap) == REISER4_BLOCK_SIZE, "bitmap");
static_assert(sizeof(struct reiser4_disk_journal_footer) == 32, "journal footer");
static_assert(sizeof(struct reiser4_disk_head) == 64, "transaction head");
static_assert(sizeof(struct reiser4_disk_record) == REISER4_BLOCK_SIZE, "log record");
static_assert(sizeof(struct reiser4_disk_node) == 28, "node40");
static_assert(sizeof(struct reiser4_disk_node41) == 32, "node41");
static_assert(sizeof(struct reiser4_disk_item) == 38, "item header");
static_assert(sizeof(struct reiser4_disk_entry) == 26, "entry header");
static_assert(sizeof(struct reiser4_disk_object) == 24, "object of an entry");
static_assert(sizeof(struct reiser4_disk_safelink) == 40, "safe-link");
static_assert(sizeof(struct reiser4_disk_light_weight) == 14, "light-weight stat data");
static_assert(sizeof(struct reiser4_disk_unix) == 28, "unix stat data");
static_assert(sizeof(struct reiser4_disk_large_times) == 12, "large times");
static_assert(REISER4_REGION == 32736, "region");

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom: structures as they lie on disk, nothing else.
 * Sources of the facts: the Linux kernel's Documentation/filesystems/ext4/ (layout of super block,
 * group descriptors, inodes, directories, hash trees, attributes) and e2fsprogs' manual pages.
 * Offsets are asserted at the end.
 */
#ifndef LAYOUTFS_EXT_FORMAT_H
#define LAYOUTFS_EXT_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "fs/endian.h"

#define EXT_SUPER_OFFSET 1024u
#define EXT_MAGIC        0xEF53u

/* Reserved inode numbers. */
enum {
    EXT_BAD_BLOCKS_INO = 1,
    EXT_ROOT_INO = 2,
    EXT_RESIZE_INO = 7,
    EXT_JOURNAL_INO = 8,
    EXT_FIRST_INO_REV0 = 11,
};

#define EXT_JOURNAL_BACKUP_BLOCKS 1u /* s_jnl_backup_type */

struct ext_disk_super {
    le32 s_inodes_count;
    le32 s_blocks_count;
    le32 s_r_blocks_count;
    le32 s_free_blocks_count;
    le32 s_free_inodes_count;
    le32 s_first_data_block;
    le32 s_log_block_size; /* block size = 1024 << this */
    le32 s_log_cluster_size;
    le32 s_blocks_per_group;
    le32 s_clusters_per_group;
    le32 s_inodes_per_group;
    le32 s_mtime;
    le32 s_wtime;
    le16 s_mnt_count;
    le16 s_max_mnt_count;
    le16 s_magic;
    le16 s_state;  /* enum ext_state */
    le16 s_errors; /* enum ext_errors */
    le16 s_minor_rev_level;
    le32 s_lastcheck;
    le32 s_checkinterval;
    le32 s_creator_os;
    le32 s_rev_level; /* 0, or 1: dynamic inode sizes and features */
    le16 s_def_resuid;
    le16 s_def_resgid;
    le32 s_first_ino;
    le16 s_inode_size;
    le16 s_block_group_nr; /* the group that holds this copy */
    le32 s_feature_compat;
    le32 s_feature_incompat;
    le32 s_feature_ro_compat;
    uint8_t s_uuid[16];
    char s_volume_name[16];
    char s_last_mounted[64];
    le32 s_algorithm_usage_bitmap;
    uint8_t s_prealloc_blocks;
    uint8_t s_prealloc_dir_blocks;
    le16 s_reserved_gdt_blocks;
    uint8_t s_journal_uuid[16];
    le32 s_journal_inum;
    le32 s_journal_dev;
    le32 s_last_orphan;
    le32 s_hash_seed[4];
    uint8_t s_def_hash_version; /* enum ext_hash_version */
    uint8_t s_jnl_backup_type;  /* EXT_JOURNAL_BACKUP_BLOCKS: s_jnl_blocks says something */
    le16 s_desc_size;
    le32 s_default_mount_opts;
    le32 s_first_meta_bg;
    le32 s_mkfs_time;
    le32 s_jnl_blocks[17]; /* the journal inode's i_block, i_size_high, i_size */
    le32 s_blocks_count_hi;
    le32 s_r_blocks_count_hi;
    le32 s_free_blocks_count_hi;
    le16 s_min_extra_isize;
    le16 s_want_extra_isize;
    le32 s_flags; /* enum ext_super_flags */
    le16 s_raid_stride;
    le16 s_mmp_interval;
    le64 s_mmp_block;
    le32 s_raid_stripe_width;
    uint8_t s_log_groups_per_flex; /* flex_bg: so many groups share a place for their metadata */
    uint8_t s_checksum_type;       /* EXT_CHECKSUM_CRC32C */
    uint8_t s_encryption_level;
    uint8_t s_reserved_177;
    le64 s_kbytes_written;
    uint8_t s_snapshot[0x194 - 0x180]; /* no longer in use */
    le32 s_error_count;
    le32 s_first_error_time;
    le32 s_first_error_ino;
    le64 s_first_error_block;
    uint8_t s_first_error_func[32];
    le32 s_first_error_line;
    le32 s_last_error_time;
    le32 s_last_error_ino;
    le32 s_last_error_line;
    le64 s_last_error_block;
    uint8_t s_last_error_func[32];
    uint8_t s_mount_opts[64];
    le32 s_usr_quota_inum;
    le32 s_grp_quota_inum;
    le32 s_overhead_clusters;
    le32 s_backup_bgs[2];
    uint8_t s_encrypt_algos[4];
    uint8_t s_encrypt_pw_salt[16];
    le32 s_lpf_ino;
    le32 s_prj_quota_inum;
    le32 s_checksum_seed;
    uint8_t s_time_high[8];
    le16 s_encoding;
    le16 s_encoding_flags;
    le32 s_orphan_file_inum;
    uint8_t s_reserved_284[0x3FC - 0x284];
    le32 s_checksum;
};

enum ext_state { EXT_STATE_VALID = 1, EXT_STATE_ERROR = 2, EXT_STATE_ORPHANS = 4 };
enum ext_errors { EXT_ERRORS_CONTINUE = 1, EXT_ERRORS_RO = 2, EXT_ERRORS_PANIC = 3 };
#define EXT_CHECKSUM_CRC32C 1u

/* With uninit_bg or metadata_csum: a bitmap that nobody has written yet; an inode table that holds
 * no old garbage. */
enum ext_group_flags {
    EXT_GROUP_INODES_UNSET = 1,
    EXT_GROUP_BLOCKS_UNSET = 2,
    EXT_GROUP_TABLE_ZEROED = 4,
};
enum ext_super_flags { EXT_FLAGS_SIGNED_HASH = 1, EXT_FLAGS_UNSIGNED_HASH = 2 };

enum ext_feature_compat {
    EXT_COMPAT_DIR_PREALLOC = 0x1,
    EXT_COMPAT_IMAGIC_INODES = 0x2,
    EXT_COMPAT_HAS_JOURNAL = 0x4,
    EXT_COMPAT_EXT_ATTR = 0x8,
    EXT_COMPAT_RESIZE_INODE = 0x10,
    EXT_COMPAT_DIR_INDEX = 0x20,
    EXT_COMPAT_SPARSE_SUPER2 = 0x200,
    EXT_COMPAT_FAST_COMMIT = 0x400,
    EXT_COMPAT_STABLE_INODES = 0x800,
    EXT_COMPAT_ORPHAN_FILE = 0x1000,
};

enum ext_feature_incompat {
    EXT_INCOMPAT_COMPRESSION = 0x1,
    EXT_INCOMPAT_FILETYPE = 0x2,
    EXT_INCOMPAT_RECOVER = 0x4,
    EXT_INCOMPAT_JOURNAL_DEV = 0x8,
    EXT_INCOMPAT_META_BG = 0x10,
    EXT_INCOMPAT_EXTENTS = 0x40,
    EXT_INCOMPAT_64BIT = 0x80,
    EXT_INCOMPAT_MMP = 0x100,
    EXT_INCOMPAT_FLEX_BG = 0x200,
    EXT_INCOMPAT_EA_INODE = 0x400,
    EXT_INCOMPAT_DIRDATA = 0x1000,
    EXT_INCOMPAT_CSUM_SEED = 0x2000,
    EXT_INCOMPAT_LARGEDIR = 0x4000,
    EXT_INCOMPAT_INLINE_DATA = 0x8000,
    EXT_INCOMPAT_ENCRYPT = 0x10000,
    EXT_INCOMPAT_CASEFOLD = 0x20000,
};

enum ext_feature_ro_compat {
    EXT_RO_COMPAT_SPARSE_SUPER = 0x1,
    EXT_RO_COMPAT_LARGE_FILE = 0x2,
    EXT_RO_COMPAT_BTREE_DIR = 0x4,
    EXT_RO_COMPAT_HUGE_FILE = 0x8,
    EXT_RO_COMPAT_GDT_CSUM = 0x10,
    EXT_RO_COMPAT_DIR_NLINK = 0x20,
    EXT_RO_COMPAT_EXTRA_ISIZE = 0x40,
    EXT_RO_COMPAT_QUOTA = 0x100,
    EXT_RO_COMPAT_BIGALLOC = 0x200,
    EXT_RO_COMPAT_METADATA_CSUM = 0x400,
    EXT_RO_COMPAT_READONLY = 0x1000,
    EXT_RO_COMPAT_PROJECT = 0x2000,
    EXT_RO_COMPAT_SHARED_BLOCKS = 0x4000,
    EXT_RO_COMPAT_VERITY = 0x8000,
    EXT_RO_COMPAT_ORPHAN_PRESENT = 0x10000,
};

#define EXT_GROUP_SIZE_SHORT 32u /* bytes of a descriptor without the feature 64bit */

struct ext_disk_group {
    le32 bg_block_bitmap;
    le32 bg_inode_bitmap;
    le32 bg_inode_table;
    le16 bg_free_blocks_count;
    le16 bg_free_inodes_count;
    le16 bg_used_dirs_count;
    le16 bg_flags; /* enum ext_group_flags */
    le32 bg_exclude_bitmap;
    le16 bg_block_bitmap_csum;
    le16 bg_inode_bitmap_csum;
    le16 bg_itable_unused; /* inodes at the table's end that were never in use */
    le16 bg_checksum;
    /* past the short form */
    le32 bg_block_bitmap_hi;
    le32 bg_inode_bitmap_hi;
    le32 bg_inode_table_hi;
    le16 bg_free_blocks_count_hi;
    le16 bg_free_inodes_count_hi;
    le16 bg_used_dirs_count_hi;
    le16 bg_itable_unused_hi;
    le32 bg_exclude_bitmap_hi;
    le16 bg_block_bitmap_csum_hi;
    le16 bg_inode_bitmap_csum_hi;
    le32 bg_reserved;
};

#define EXT_DIRECT_BLOCKS 12
#define EXT_IND           12 /* slot of the indirect block; then double and triple */
#define EXT_BLOCK_SLOTS   15

struct ext_disk_inode {
    le16 i_mode;
    le16 i_uid;
    le32 i_size;
    le32 i_atime;
    le32 i_ctime;
    le32 i_mtime;
    le32 i_dtime; /* of deletion; the next inode in the orphan list */
    le16 i_gid;
    le16 i_links_count;
    le32 i_blocks; /* 512-byte units, unless EXT_INODE_HUGE_FILE */
    le32 i_flags;
    le32 i_osd1;
    le32 i_block[EXT_BLOCK_SLOTS];
    le32 i_generation;
    le32 i_file_acl;  /* extended attribute block */
    le32 i_size_high; /* i_dir_acl in revision 0 */
    le32 i_faddr;
    le16 i_blocks_high;
    le16 i_file_acl_high;
    le16 i_uid_high;
    le16 i_gid_high;
    le16 i_checksum_lo;
    le16 i_reserved;
    /* past 128 bytes, of which i_extra_isize bytes are in use */
    le16 i_extra_isize;
    le16 i_checksum_hi;
    le32 i_ctime_extra; /* bits 0-1: high bits of seconds; 2-31: nanoseconds */
    le32 i_mtime_extra;
    le32 i_atime_extra;
    le32 i_crtime;
    le32 i_crtime_extra;
    le32 i_version_hi;
    le32 i_projid;
};

#define EXT_INODE_BASE_SIZE 128u

enum ext_inode_flags {                           /* beside those of enum inode_flags */
                       EXT_INODE_INDEX = 0x1000, /* a hash-indexed directory */
                       EXT_INODE_TOPDIR = 0x20000,
                       EXT_INODE_HUGE_FILE = 0x40000,
                       EXT_INODE_EXTENTS = 0x80000,
                       EXT_INODE_EA_INODE = 0x200000,
                       EXT_INODE_INLINE_DATA = 0x10000000,
};

/* --- extent trees (EXT_INODE_EXTENTS): a node is a header and entries in ascending logical order;
 * the root lies in the inode's 60 bytes of i_block --- */

#define EXT_EXTENT_MAGIC     0xF30Au
#define EXT_EXTENT_DEPTH_MAX 5u
#define EXT_EXTENT_ROOT_MAX  4u     /* entries in the inode */
#define EXT_EXTENT_LENGTH    32768u /* the longest extent; an unwritten one is a block shorter */

struct ext_disk_extent_header {
    le16 eh_magic;
    le16 eh_entries;
    le16 eh_max;   /* entries that fit */
    le16 eh_depth; /* 0: the entries are extents, else ext_disk_extent_index */
    le32 eh_generation;
};

struct ext_disk_extent {
    le32 ee_block; /* logical */
    le16 ee_len;   /* more than EXT_EXTENT_LENGTH: unwritten, that much shorter */
    le16 ee_start_hi;
    le32 ee_start_lo;
};

struct ext_disk_extent_index {
    le32 ei_block; /* the first logical block below, as in the child's first entry */
    le32 ei_leaf_lo;
    le16 ei_leaf_hi;
    le16 ei_unused;
};

struct ext_disk_extent_root { /* in i_block */
    struct ext_disk_extent_header header;
    struct ext_disk_extent entries[EXT_EXTENT_ROOT_MAX];
};

struct ext_disk_extent_tail { /* with metadata_csum, after eh_max entries; never in the inode */
    le32 et_checksum;
};

struct ext_disk_dirent {
    le32 inode;   /* 0: unused */
    le16 rec_len; /* bytes to the next entry; multiple of 4; 65535 or 0 stand for 64 KiB */
    uint8_t name_len;
    uint8_t file_type; /* enum ext_file_type with the filetype feature, else name_len's high byte */
    char name[];
};

enum ext_file_type {
    EXT_FT_UNKNOWN,
    EXT_FT_REG,
    EXT_FT_DIR,
    EXT_FT_CHR,
    EXT_FT_BLK,
    EXT_FT_FIFO,
    EXT_FT_SOCK,
    EXT_FT_SYMLINK,
    EXT_FT_CHECKSUM = 0xDE, /* of an ext_disk_dir_tail */
};

/* The end of a block of entries, with metadata_csum: to those who do not know it, an unused entry.
 */
struct ext_disk_dir_tail {
    le32 inode;   /* 0 */
    le16 rec_len; /* 12 */
    uint8_t name_len;
    uint8_t file_type; /* EXT_FT_CHECKSUM */
    le32 checksum;
};

static inline uint32_t ext_dirent_size(uint32_t name_length) {
    return (8u + name_length + 3u) & ~3u;
}

/* --- hash-indexed directories: block 0 holds "." and ".." as ordinary entries, then this --- */

enum ext_hash_version {
    EXT_HASH_LEGACY,
    EXT_HASH_HALF_MD4,
    EXT_HASH_TEA,
    EXT_HASH_LEGACY_UNSIGNED,
    EXT_HASH_HALF_MD4_UNSIGNED,
    EXT_HASH_TEA_UNSIGNED,
};

struct ext_disk_dx_info { /* at byte 24 of block 0 */
    le32 reserved_zero;
    uint8_t hash_version;
    uint8_t info_length; /* 8 */
    uint8_t indirect_levels;
    uint8_t unused_flags;
};

struct ext_disk_dx_entry {
    le32 hash;  /* least hash of the block; bit 0: continues the previous block's last hash */
    le32 block; /* logical block in the directory; low 28 bits */
};

struct ext_disk_dx_countlimit { /* lies over the first entry's hash */
    le16 limit;
    le16 count;
};

struct ext_disk_dx_tail { /* after the last possible entry, with metadata_csum */
    le32 dt_reserved;
    le32 dt_checksum;
};

#define EXT_DX_ROOT_ENTRIES 32u /* byte offset of the entries in block 0 */
#define EXT_DX_NODE_ENTRIES 8u  /* in an inner node: after one empty dirent */

/* --- extended attributes --- */

#define EXT_XATTR_MAGIC 0xEA020000u

struct ext_disk_xattr_header { /* of an attribute block */
    le32 h_magic;
    le32 h_refcount;
    le32 h_blocks; /* 1 */
    le32 h_hash;
    le32 h_checksum;
    le32 h_reserved[3];
};

struct ext_disk_xattr_entry {
    uint8_t e_name_len; /* 0 with e_name_index 0 and offset 0: four zero bytes end the list */
    uint8_t e_name_index;
    le16 e_value_offs; /* in a block: from its start; in an inode: from the first entry */
    le32 e_value_inum;
    le32 e_value_size;
    le32 e_hash;
    char e_name[];
};

enum ext_xattr_index {
    EXT_XATTR_USER = 1,
    EXT_XATTR_POSIX_ACL_ACCESS = 2,
    EXT_XATTR_POSIX_ACL_DEFAULT = 3,
    EXT_XATTR_TRUSTED = 4,
    EXT_XATTR_SECURITY = 6,
    EXT_XATTR_SYSTEM = 7,
};

/* --- orphan file: a block of inode numbers (0: free) ends with this --- */

#define EXT_ORPHAN_MAGIC 0x0B10CA04u

struct ext_disk_orphan_tail {
    le32 ob_magic;
    le32 ob_checksum;
};

static_assert(sizeof(struct ext_disk_super) == 1024, "super block");
static_assert(offsetof(struct ext_disk_super, s_uuid) == 0x68, "s_uuid");
static_assert(offsetof(struct ext_disk_super, s_hash_seed) == 0xEC, "s_hash_seed");
static_assert(offsetof(struct ext_disk_super, s_jnl_blocks) == 0x10C, "s_jnl_blocks");
static_assert(offsetof(struct ext_disk_super, s_flags) == 0x160, "s_flags");
static_assert(offsetof(struct ext_disk_super, s_mount_opts) == 0x200, "s_mount_opts");
static_assert(offsetof(struct ext_disk_super, s_checksum_seed) == 0x270, "s_checksum_seed");
static_assert(offsetof(struct ext_disk_super, s_orphan_file_inum) == 0x280, "s_orphan_file_inum");
static_assert(offsetof(struct ext_disk_super, s_error_count) == 0x194, "s_error_count");
static_assert(sizeof(struct ext_disk_group) == 64, "group descriptor");
static_assert(offsetof(struct ext_disk_group, bg_block_bitmap_hi) == 32, "short descriptor");
static_assert(sizeof(struct ext_disk_dir_tail) == 12, "directory tail");
static_assert(sizeof(struct ext_disk_inode) == 160, "inode");
static_assert(offsetof(struct ext_disk_inode, i_block) == 40, "i_block");
static_assert(offsetof(struct ext_disk_inode, i_generation) == 100, "i_generation");
static_assert(offsetof(struct ext_disk_inode, i_extra_isize) == 128, "i_extra_isize");
static_assert(sizeof(struct ext_disk_extent_header) == 12, "extent header");
static_assert(sizeof(struct ext_disk_extent) == 12, "extent");
static_assert(sizeof(struct ext_disk_extent_index) == 12, "extent index");
static_assert(sizeof(struct ext_disk_extent_root) == 4 * EXT_BLOCK_SLOTS, "extent root");
static_assert(sizeof(struct ext_disk_dirent) == 8, "directory entry");
static_assert(sizeof(struct ext_disk_dx_info) == 8, "dx info");
static_assert(sizeof(struct ext_disk_dx_entry) == 8, "dx entry");
static_assert(sizeof(struct ext_disk_xattr_header) == 32, "xattr header");
static_assert(sizeof(struct ext_disk_xattr_entry) == 16, "xattr entry");

#endif

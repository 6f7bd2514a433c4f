/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the bottom: structures as they lie on disk, nothing else.
 * Source of the facts: docs/nilfs2-format.md, which says how each was checked against the Linux
 * driver. All integers are little-endian; offsets are asserted at the end.
 *
 * Three address spaces:
 *  - disk blocks, counted from the start of the device; 0 is never valid: as a pointer, a hole;
 *  - virtual blocks: entries of the DAT, which says on which disk block each lies. All files but
 *    the DAT point at their blocks by these, so that the cleaner can move a block and change no
 * map;
 *  - offsets of blocks in files, the keys of their block maps.
 */
#ifndef LAYOUTFS_NILFS_FORMAT_H
#define LAYOUTFS_NILFS_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "fs/endian.h"

#define NILFS_SUPER_OFFSET   1024u /* of the primary; see nilfs_super_second_offset */
#define NILFS_SUPER_SIZE     1024u
#define NILFS_SUPER_CHECKED  280u /* s_bytes as mkfs writes it */
#define NILFS_MAGIC          0x3434u
#define NILFS_REVISION       2u
#define NILFS_BLOCK_BITS_MIN 10u
#define NILFS_BLOCK_BITS_MAX 12u        /* the page size; the format goes to 16 */
#define NILFS_SEGMENT_MIN    16u        /* blocks of a segment */
#define NILFS_CNO_MAX        UINT64_MAX /* as the end of a lifetime: none yet */
#define NILFS_LINK_MAX       32000u

/* Inode numbers. The DAT's, the cpfile's and the sufile's inodes are in the super root, the
 * ifile's in its checkpoint's entry of the cpfile, all others in the ifile. */
enum {
    NILFS_ROOT_INO = 2,
    NILFS_DAT_INO = 3,
    NILFS_CPFILE_INO = 4,
    NILFS_SUFILE_INO = 5,
    NILFS_IFILE_INO = 6,
    NILFS_ATIME_INO = 7,
    NILFS_XATTR_INO = 8,
    NILFS_SKETCH_INO = 10,
    NILFS_FIRST_INO = 11, /* of users */
};

enum nilfs_state { NILFS_STATE_CLEAN = 1, NILFS_STATE_ERROR = 2, NILFS_STATE_RESIZE = 4 };
enum { NILFS_COMPAT_RO_BLOCK_COUNT = 1 };

struct nilfs_disk_super {
    le32 s_rev_level;
    le16 s_minor_rev_level;
    le16 s_magic;
    le16 s_bytes; /* that the checksum covers */
    le16 s_flags;
    le32 s_crc_seed;
    le32 s_sum; /* over s_bytes, this field taken as 0 */
    le32 s_log_block_size;
    le64 s_nsegments;
    le64 s_dev_size; /* bytes */
    le64 s_first_data_block;
    le32 s_blocks_per_segment;
    le32 s_r_segments_percentage;
    le64 s_last_cno;
    le64 s_last_pseg; /* first block of a log with a super root */
    le64 s_last_seq;  /* of the segment it lies in */
    le64 s_free_blocks_count;
    le64 s_ctime;
    le64 s_mtime;
    le64 s_wtime;
    le16 s_mnt_count;
    le16 s_max_mnt_count;
    le16 s_state; /* enum nilfs_state */
    le16 s_errors;
    le64 s_lastcheck;
    le32 s_checkinterval;
    le32 s_creator_os;
    le16 s_def_resuid;
    le16 s_def_resgid;
    le32 s_first_ino;
    le16 s_inode_size;
    le16 s_dat_entry_size;
    le16 s_checkpoint_size;
    le16 s_segment_usage_size;
    uint8_t s_uuid[16];
    char s_volume_name[80];
    le32 s_c_interval;  /* seconds, 0: the default */
    le32 s_c_block_max; /* dirty blocks, 0: the default */
    le64 s_feature_compat;
    le64 s_feature_compat_ro;
    le64 s_feature_incompat;
};

/* The root of a block map, in the inode. `flags` bit 0 set: a B-tree node with this header. Else
 * the map is direct: six pointers from byte 8 on. */
#define NILFS_BMAP_SIZE       56u
#define NILFS_DIRECT_BLOCKS   6u
#define NILFS_ROOT_CHILDREN   3u
#define NILFS_NODE_FLAG_ROOT  1u
#define NILFS_LEVEL_MAX       14u /* a root's level is below this */
#define NILFS_NODE_LEVEL_DATA 0u  /* of what a level 1 node points at */

struct nilfs_disk_node { /* keys follow at byte 16 (at 8 in the root), then pointers */
    uint8_t flags;
    uint8_t level;
    le16 nchildren;
    le32 pad;
};

struct nilfs_disk_bmap {
    union {
        struct nilfs_disk_node node;
        uint8_t byte[8];
    } head;
    union {
        le64 direct[NILFS_DIRECT_BLOCKS];
        struct {
            le64 keys[NILFS_ROOT_CHILDREN];
            le64 pointers[NILFS_ROOT_CHILDREN];
        } root;
    } u;
};

struct nilfs_disk_inode {
    le64 i_blocks; /* 512-byte units, nodes included */
    le64 i_size;
    le64 i_ctime;
    le64 i_mtime;
    le32 i_ctime_nsec;
    le32 i_mtime_nsec;
    le32 i_uid;
    le32 i_gid;
    le16 i_mode;
    le16 i_links_count;
    le32 i_flags;
    struct nilfs_disk_bmap i_bmap; /* devices: the first le64 is the device's code */
    le64 i_xattr;
    le32 i_generation;
    le32 i_pad;
};

/* --- logs ("partial segments") ---------------------------------------------------------------- */

#define NILFS_LOG_MAGIC 0x1eaffa11u

enum nilfs_log_flags {
    NILFS_LOG_BEGIN = 1, /* the first of a logical segment: of what one construction wrote */
    NILFS_LOG_END = 2,   /* the last */
    NILFS_LOG_SUPER_ROOT = 4,
    NILFS_LOG_DATA_ONLY = 8, /* what fdatasync writes */
    NILFS_LOG_GC = 16,
};

struct nilfs_disk_summary {
    le32 ss_datasum; /* from byte 4 of the log to the end of its last block */
    le32 ss_sumsum;  /* from byte 8, ss_sumbytes - 8 bytes */
    le32 ss_magic;
    le16 ss_bytes; /* of this header */
    le16 ss_flags;
    le64 ss_seq;
    le64 ss_create;
    le64 ss_next; /* first block of the next segment */
    le32 ss_nblocks;
    le32 ss_nfinfo;
    le32 ss_sumbytes; /* header and items with their gaps */
    le32 ss_pad;
    le64 ss_cno; /* under construction */
};

struct nilfs_disk_finfo {
    le64 fi_ino;
    le64 fi_cno;
    le32 fi_nblocks;
    le32 fi_ndatablk; /* of which data; these come first */
};

/* What follows an finfo, one a block. Which of them, the file and the kind of block say. */
struct nilfs_disk_binfo_data { /* a data block of any file but the DAT */
    le64 vblocknr;
    le64 offset;
};
struct nilfs_disk_binfo_node { /* a node of any file but the DAT */
    le64 vblocknr;
};
struct nilfs_disk_binfo_dat_data {
    le64 offset;
};
struct nilfs_disk_binfo_dat_node {
    le64 offset; /* the node's first key */
    uint8_t level;
    uint8_t pad[7];
};

struct nilfs_disk_super_root { /* three inodes of s_inode_size bytes follow: DAT, cpfile, sufile */
    le32 sr_sum;               /* from byte 4, sr_bytes - 4 bytes */
    le16 sr_bytes;
    le16 sr_flags;
    le64 sr_nongc_ctime; /* when the last log was made that is not the cleaner's */
};

/* --- metadata files --------------------------------------------------------------------------- */

struct nilfs_disk_dat_entry { /* visible to checkpoints de_start <= cno < de_end */
    le64 de_blocknr;          /* disk block; 0: not written yet */
    le64 de_start;
    le64 de_end;
    le64 de_reserved;
};

enum nilfs_checkpoint_flags {
    NILFS_CP_SNAPSHOT = 1,
    NILFS_CP_INVALID = 2,
    NILFS_CP_SKETCH = 4,
    NILFS_CP_MINOR = 8, /* no change of user files: the cleaner's, say */
};

struct nilfs_disk_snapshot_link { /* numbers of checkpoints; 0: the end, which is the header */
    le64 ssl_next;
    le64 ssl_prev;
};

struct nilfs_disk_cpfile_header {
    le64 ch_ncheckpoints;
    le64 ch_nsnapshots;
    struct nilfs_disk_snapshot_link ch_snapshots;
};

struct nilfs_disk_checkpoint { /* its ifile's inode follows */
    le32 cp_flags;
    le32 cp_checkpoints_count; /* first slot of each block but the first: valid ones in the block */
    struct nilfs_disk_snapshot_link cp_snapshots;
    le64 cp_cno;
    le64 cp_create;
    le64 cp_nblk_inc;
    le64 cp_inodes_count;
    le64 cp_blocks_count;
};

struct nilfs_disk_sufile_header {
    le64 sh_ncleansegs;
    le64 sh_ndirtysegs;
    le64 sh_last_alloc;
};

enum nilfs_segment_flags { NILFS_SU_ACTIVE = 1, NILFS_SU_DIRTY = 2, NILFS_SU_ERROR = 4 };

struct nilfs_disk_segment_usage { /* all zero: clean */
    le64 su_lastmod;
    le32 su_nblocks; /* written, from the segment's start */
    le32 su_flags;
};

/* --- directories ------------------------------------------------------------------------------ */

#define NILFS_DIR_HEADER 12u
#define NILFS_DIR_ALIGN  8u

enum nilfs_file_type {
    NILFS_FT_UNKNOWN,
    NILFS_FT_REGULAR,
    NILFS_FT_DIRECTORY,
    NILFS_FT_CHARACTER,
    NILFS_FT_BLOCK,
    NILFS_FT_FIFO,
    NILFS_FT_SOCKET,
    NILFS_FT_SYMLINK,
    NILFS_FT_COUNT
};

struct nilfs_disk_dir_entry { /* the name follows */
    le64 inode;               /* 0: free */
    le16 rec_len;             /* multiple of 8; 65535 stands for 65536 */
    uint8_t name_len;
    uint8_t file_type;
};

static_assert(offsetof(struct nilfs_disk_super, s_dev_size) == 0x20, "s_dev_size");
static_assert(offsetof(struct nilfs_disk_super, s_last_cno) == 0x38, "s_last_cno");
static_assert(offsetof(struct nilfs_disk_super, s_ctime) == 0x58, "s_ctime");
static_assert(offsetof(struct nilfs_disk_super, s_lastcheck) == 0x78, "s_lastcheck");
static_assert(offsetof(struct nilfs_disk_super, s_inode_size) == 0x90, "s_inode_size");
static_assert(offsetof(struct nilfs_disk_super, s_uuid) == 0x98, "s_uuid");
static_assert(offsetof(struct nilfs_disk_super, s_c_interval) == 0xF8, "s_c_interval");
static_assert(sizeof(struct nilfs_disk_super) == 0x118, "super block");
static_assert(sizeof(struct nilfs_disk_node) == 8, "node");
static_assert(sizeof(struct nilfs_disk_bmap) == NILFS_BMAP_SIZE, "block map");
static_assert(offsetof(struct nilfs_disk_inode, i_bmap) == 56, "i_bmap");
static_assert(sizeof(struct nilfs_disk_inode) == 128, "inode");
static_assert(offsetof(struct nilfs_disk_summary, ss_nblocks) == 0x28, "ss_nblocks");
static_assert(sizeof(struct nilfs_disk_summary) == 64, "summary");
static_assert(sizeof(struct nilfs_disk_finfo) == 24, "finfo");
static_assert(sizeof(struct nilfs_disk_binfo_dat_node) == 16, "binfo of a DAT node");
static_assert(sizeof(struct nilfs_disk_super_root) == 16, "super root");
static_assert(sizeof(struct nilfs_disk_dat_entry) == 32, "DAT entry");
static_assert(sizeof(struct nilfs_disk_cpfile_header) == 32, "cpfile header");
static_assert(sizeof(struct nilfs_disk_checkpoint) == 64, "checkpoint");
static_assert(sizeof(struct nilfs_disk_sufile_header) == 24, "sufile header");
static_assert(sizeof(struct nilfs_disk_segment_usage) == 16, "segment usage");
static_assert(sizeof(struct nilfs_disk_dir_entry) == NILFS_DIR_HEADER, "directory entry");

#endif

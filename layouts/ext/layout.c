/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the top: what the core sees of this layout. Tables only.
 */
#include "layouts/ext/ext.h"

static const struct option_choice errors_choices[] = {
    {"continue", "note the damage in the super block and go on", EXT_ERRORS_CONTINUE},
    {"remount-ro", "stop writing: the volume becomes read-only", EXT_ERRORS_RO},
    {"panic", "stop everything: each later operation fails with EIO", EXT_ERRORS_PANIC},
    {0},
};

static const struct option_choice hash_choices[] = {
    {"half_md4", "half an MD4 round over the name; today's default", EXT_HASH_HALF_MD4},
    {"tea", "the TEA cipher as a hash; slower", EXT_HASH_TEA},
    {"legacy", "the first hash of 2002; spreads similar names badly", EXT_HASH_LEGACY},
    {0},
};

static const struct option_choice dir_placement_choices[] = {
    {"orlov", "top-level directories spread out, the others near their parent (Linux 2.5.46 on)",
     EXT_DIR_ORLOV},
    {"old", "every directory to the emptiest group, an even spread (before Linux 2.5.46)",
     EXT_DIR_OLD},
    {"sequential", "every directory to the first group with room", EXT_DIR_SEQUENTIAL},
    {0},
};

static const struct option_choice alloc_choices[] = {
    {"goal", "near the file's last block, else near its inode, with preallocation", EXT_ALLOC_GOAL},
    {"reservation", "as goal, with a window ahead of every file that grows with its use (ext3)",
     EXT_ALLOC_RESERVATION},
    {"mballoc", "many blocks in one piece, small files together (ext4)", EXT_ALLOC_MBALLOC},
    {"first-fit", "the first free block of the volume, whatever the file", EXT_ALLOC_FIRST_FIT},
    {0},
};

static const struct option_choice delalloc_choices[] = {
    {"off", "at the write, as ext2 and ext3 do", 0},
    {"on", "at write-back, for whole runs at once, as ext4 does; a write only counts", 1},
    {0},
};

static const struct option_choice dir_order_choices[] = {
    {"hash", "in the order that it will have once it is indexed: a listing survives its growth",
     EXT_ORDER_HASH},
    {"stored",
     "in the order on disk (Linux before 2.5.66); a listing may repeat names when the "
     "directory outgrows its block meanwhile",
     EXT_ORDER_STORED},
    {0},
};

static const struct option_choice journal_choices[] = {
    {"ordered", "metadata; a file's new data are stored before what points at them is committed",
     EXT_JOURNAL_ORDERED},
    {"writeback", "metadata; new data at any time: after a crash old contents may show in them",
     EXT_JOURNAL_WRITEBACK},
    {"data", "metadata and data: everything is written twice", EXT_JOURNAL_DATA},
    {"none", "the journal is left alone: as ext2, a crash needs e2fsck", EXT_JOURNAL_NONE},
    {0},
};

static const struct option_choice data_choices[] = {
    {"ordered", "journal=ordered", EXT_JOURNAL_ORDERED},
    {"writeback", "journal=writeback", EXT_JOURNAL_WRITEBACK},
    {"journal", "journal=data", EXT_JOURNAL_DATA},
    {0},
};

static const struct option_choice ordered_choices[] = {
    {"files", "those of files that got new blocks, file by file (ext4; jbd2 since Linux 2.6.27)",
     0},
    {"written", "all that were written, in that order (ext3 up to Linux 2.6.x: jbd)", 1},
    {0},
};

static const struct option_choice journal_fault_choices[] = {
    {"commit-first", "the commit block is written before what it vouches for",
     EXT_JOURNAL_FAULT_COMMIT_FIRST},
    {"no-flush", "a commit counts as durable without a flush", EXT_JOURNAL_FAULT_NO_FLUSH},
    {"no-revoke", "freed metadata is not revoked", EXT_JOURNAL_FAULT_NO_REVOKE},
    {"stale-tail", "the log's tail moves before blocks are at home", EXT_JOURNAL_FAULT_STALE_TAIL},
    {0},
};

static const struct option_choice block_size_choices[] = {
    {"1024", "1 KiB: little waste with small files, files up to 16 GiB", 1024},
    {"2048", "2 KiB", 2048},
    {"4096", "4 KiB: fewest seeks and indirect blocks", 4096},
    {0},
};

static const struct option_choice inode_size_choices[] = {
    {"128", "the classic record: times in whole seconds up to 2038", 128},
    {"256", "nanoseconds, times up to 2446, creation time, attributes beside the inode", 256},
    {0},
};

static const struct option_choice base_choices[] = {
    {"ext2", "those of ext2", EXT_BASE_EXT2},
    {"ext3", "and a journal", EXT_BASE_EXT3},
    {"ext4", "those of ext4", EXT_BASE_EXT4},
    {0},
};

static const struct option_choice flex_choices[] = {
    {"1", "each group by itself", 1},
    {"2", "", 2},
    {"4", "", 4},
    {"8", "", 8},
    {"16", "as mke2fs", 16},
    {"32", "", 32},
    {"64", "", 64},
    {"128", "", 128},
    {"256", "", 256},
    {"512", "", 512},
    {"1024", "", 1024},
    {0},
};

const struct option_spec ext_options[] = {
    {.name = "block_size",
     .letter = 'b',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "4096",
     .choices = block_size_choices,
     .description = "bytes in a block"},
    {.name = "inode_ratio",
     .letter = 'i',
     .kind = OPTION_SIZE,
     .scope = OPTION_MKFS,
     .default_text = "8192",
     .minimum = 1024,
     .maximum = 64 << 20,
     .description = "make one inode for this many bytes of the volume"},
    {.name = "inode_size",
     .letter = 'I',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "128",
     .choices = inode_size_choices,
     .description = "bytes in an inode's record"},
    {.name = "inodes",
     .letter = 'N',
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS,
     .minimum = 1,
     .maximum = UINT32_MAX,
     .description = "make at least this many inodes (default: by inode_ratio)"},
    {.name = "reserved",
     .letter = 'm',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .default_text = "5",
     .description = "percent of the blocks kept for root, 0 to 50, up to 4 decimals"},
    {.name = "label",
     .letter = 'L',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's name, at most 16 bytes (default: none)"},
    {.name = "root_owner",
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .default_text = "0:0",
     .description = "UID:GID, in numbers, of the root directory"},
    {.name = "uuid",
     .letter = 'U',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's UUID; the hash seed then follows from it (default: random)"},
    {.name = "features",
     .letter = 'O',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "list separated by ':' (or ',' after -O), ^ clears: sparse_super, filetype, "
                    "resize_inode, large_file, ext_attr, dir_index, none (default: all); "
                    "has_journal (ext3, ext4), extent, 64bit, flex_bg, huge_file, dir_nlink, "
                    "extra_isize, metadata_csum "
                    "(default of ext4: these too); uninit_bg, metadata_csum_seed, meta_bg, "
                    "sparse_super2, large_dir"},
    {.name = "base",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "ext2",
     .choices = base_choices,
     .description = "the features that the list changes"},
    {.name = "flex_bg_size",
     .letter = 'G',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "16",
     .choices = flex_choices,
     .description = "flex_bg: groups that have their bitmaps and inode tables side by side"},
    {.name = "blocks_per_group",
     .letter = 'g',
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS,
     .minimum = 256,
     .maximum = 32768,
     .description = "blocks in a group, a multiple of 8 (default: 8 for each byte of a block)"},
    {.name = "hash",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "half_md4",
     .choices = hash_choices,
     .description = "the hash of indexed directories"},
    {.name = "errors",
     .letter = 'e',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS | OPTION_MOUNT,
     .choices = errors_choices,
     .description = "what to do when damage is found in use (default: mkfs writes continue, mount "
                    "follows the volume)"},
    {.name = "has_journal",
     .kind = OPTION_BOOL,
     .scope = OPTION_MKFS | OPTION_CONVERT,
     .default_text = "off",
     .description = "make a journal: what ext3 and ext4 have before ext2"},
    {.name = "journal_size",
     .kind = OPTION_SIZE,
     .scope = OPTION_MKFS | OPTION_CONVERT,
     .maximum = INT64_C(1) << 40,
     .description =
         "with has_journal: bytes, 1024 blocks or more (default: by the volume's size, as "
         "mke2fs)"},
    {.name = "dir_placement",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "orlov",
     .choices = dir_placement_choices,
     .description = "which group a new directory goes to"},
    {.name = "alloc",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "goal",
     .choices = alloc_choices,
     .description = "where a file's new blocks go"},
    {.name = "delalloc",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "off",
     .choices = delalloc_choices,
     .description = "when a file's new blocks are chosen"},
    {.name = "dir_order",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "hash",
     .choices = dir_order_choices,
     .description = "with dir_index: how a directory of one block, not indexed yet, is listed"},
    {.name = "prealloc",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "8",
     .minimum = 0,
     .maximum = 1024,
     .description = "alloc=goal: blocks a growing file claims ahead of itself, 0: none"},
    {.name = "journal",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "ordered",
     .choices = journal_choices,
     .description = "what goes through the journal, where the volume has one"},
    {.name = "data",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .choices = data_choices,
     .description = "the kernel's spelling of journal="},
    {.name = "ordered",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "files",
     .choices = ordered_choices,
     .description = "journal=ordered: which data are stored before a commit"},
    {.name = "commit",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "5",
     .minimum = 1,
     .maximum = 3600,
     .description = "with a journal: seconds after which changes are committed"},
    {.name = "barrier",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "on",
     .description = "with a journal: flush the disk's cache before and after a commit block"},
    {.name = "journal_fault",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT | OPTION_UNLISTED,
     .choices = journal_fault_choices,
     .description = "for tests: a journal that is wrong in this way"},
    {0},
};

static const struct layout_type ext_types[] = {
    {.name = "ext2",
     .mkfs_options = "",
     .mount_options = "",
     .description = "block groups without a journal: Linux's filesystem of 1993"},
    {.name = "ext3",
     .mkfs_options = "base=ext3",
     .mount_options = "",
     .description = "ext2 with a journal: survives a crash without fsck (2001)"},
    {.name = "ext4",
     .mkfs_options = "base=ext4,inode_size=256,inode_ratio=16384",
     .mount_options = "delalloc=on,alloc=mballoc",
     .description = "extents, checksums, metadata of several groups side by side: since 2008"},
    {0},
};

const struct layout ext_layout = {
    .name = "ext",
    .description = "block groups with bitmaps, inode tables and block maps: the ext2 family",
    .types = ext_types,
    .options = ext_options,
    .inode_private_size = sizeof(struct ext_inode),

    .probe = ext_probe,
    .format = ext_format,
    .convert = ext_convert,
    .mount = ext_mount,
    .unmount = ext_unmount,
    .statfs = ext_statfs,

    .inode_load = ext_inode_load,
    .inode_store = ext_inode_store,
    .inode_create = ext_inode_create,
    .inode_free = ext_inode_free,
    .inode_evict = ext_inode_evict,
    .orphan_add = ext_orphan_add,
    .orphan_remove = ext_orphan_remove,

    .dir_find = ext_dir_find,
    .dir_insert = ext_dir_insert,
    .dir_remove = ext_dir_remove,
    .dir_rename = ext_dir_rename,
    .dir_iterate = ext_dir_iterate,
    .dir_empty = ext_dir_empty,

    .symlink_write = ext_symlink_write,
    .symlink_read = ext_symlink_read,

    .reserve = ext_reserve,
    .load = ext_load,
    .store = ext_store,
    .truncate = ext_truncate,
    .punch = ext_punch,
    .preallocate = ext_preallocate,
    .collapse = ext_collapse,
    .insert = ext_insert,
    .map = ext_map,

    .xattr_get = ext_xattr_get,
    .xattr_set = ext_xattr_set,
    .xattr_remove = ext_xattr_remove,
    .xattr_list = ext_xattr_list,

    .commit_data = ext_commit_data,
    .commit_begin = ext_commit_begin,
    .commit_write = ext_commit_write,
    .commit_end = ext_commit_end,

    .check = ext_check,
    .describe = ext_describe,
    .explain = ext_explain,
};

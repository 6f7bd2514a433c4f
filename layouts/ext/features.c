/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over format.h only.
 * Features by name, and which of them this layout can live with.
 *
 * The three sets of a super block say what a driver that does not know a feature may still do:
 * compat: everything; ro_compat: read; incompat: nothing.
 */
#include "layouts/ext/ext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUPPORTED_INCOMPAT                                                                         \
    (EXT_INCOMPAT_FILETYPE | EXT_INCOMPAT_EXTENTS | EXT_INCOMPAT_META_BG | EXT_INCOMPAT_64BIT |    \
     EXT_INCOMPAT_FLEX_BG | EXT_INCOMPAT_CSUM_SEED | EXT_INCOMPAT_LARGEDIR |                       \
     EXT_INCOMPAT_INLINE_DATA | EXT_INCOMPAT_RECOVER)
/* mmp is to prevent that two systems write at once; attribute values that inodes share (ea_inode)
 * are counted, which is not done here. Reading harms nobody. */
#define SUPPORTED_INCOMPAT_READING (SUPPORTED_INCOMPAT | EXT_INCOMPAT_MMP | EXT_INCOMPAT_EA_INODE)
/* Not among them: quota and project. Writing would leave their counts wrong, which nobody would
 * notice before e2fsck. */
#define SUPPORTED_RO_COMPAT                                                                        \
    (EXT_RO_COMPAT_SPARSE_SUPER | EXT_RO_COMPAT_LARGE_FILE | EXT_RO_COMPAT_HUGE_FILE |             \
     EXT_RO_COMPAT_GDT_CSUM | EXT_RO_COMPAT_DIR_NLINK | EXT_RO_COMPAT_EXTRA_ISIZE |                \
     EXT_RO_COMPAT_METADATA_CSUM)

static const struct feature_name {
    enum ext_feature_set set;
    uint32_t bit;
    const char *name;
} feature_names[] = {
    {EXT_FEATURES_COMPAT, EXT_COMPAT_DIR_PREALLOC, "dir_prealloc"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_IMAGIC_INODES, "imagic_inodes"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_HAS_JOURNAL, "has_journal"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_EXT_ATTR, "ext_attr"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_RESIZE_INODE, "resize_inode"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_DIR_INDEX, "dir_index"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_SPARSE_SUPER2, "sparse_super2"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_FAST_COMMIT, "fast_commit"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_STABLE_INODES, "stable_inodes"},
    {EXT_FEATURES_COMPAT, EXT_COMPAT_ORPHAN_FILE, "orphan_file"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_COMPRESSION, "compression"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_FILETYPE, "filetype"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_RECOVER, "needs_recovery"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_JOURNAL_DEV, "journal_dev"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_META_BG, "meta_bg"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_EXTENTS, "extents"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_64BIT, "64bit"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_MMP, "mmp"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_FLEX_BG, "flex_bg"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_EA_INODE, "ea_inode"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_DIRDATA, "dirdata"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_CSUM_SEED, "metadata_csum_seed"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_LARGEDIR, "large_dir"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_INLINE_DATA, "inline_data"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_ENCRYPT, "encrypt"},
    {EXT_FEATURES_INCOMPAT, EXT_INCOMPAT_CASEFOLD, "casefold"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_SPARSE_SUPER, "sparse_super"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_LARGE_FILE, "large_file"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_BTREE_DIR, "btree_dir"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_HUGE_FILE, "huge_file"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_GDT_CSUM, "uninit_bg"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_DIR_NLINK, "dir_nlink"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_EXTRA_ISIZE, "extra_isize"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_QUOTA, "quota"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_BIGALLOC, "bigalloc"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_METADATA_CSUM, "metadata_csum"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_READONLY, "read-only"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_PROJECT, "project"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_SHARED_BLOCKS, "shared_blocks"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_VERITY, "verity"},
    {EXT_FEATURES_RO_COMPAT, EXT_RO_COMPAT_ORPHAN_PRESENT, "orphan_present"},
};

const char *ext_feature_name(enum ext_feature_set set, uint32_t bit) {
    for (size_t i = 0; i < sizeof(feature_names) / sizeof(feature_names[0]); i++) {
        if (feature_names[i].set == set && feature_names[i].bit == bit)
            return feature_names[i].name;
    }
    return NULL;
}

/* Logs every feature in `bits` as an obstacle: "disk.img: super block: feature "extents" ...". */
static void features_refuse(const char *name, const struct log *log, enum ext_feature_set set,
                            uint32_t bits, const char *consequence) {
    static const char *const set_names[] = {"compat", "incompat", "ro_compat"};
    for (uint32_t bit = 1; bit; bit <<= 1) {
        if (!(bits & bit))
            continue;
        const char *feature = ext_feature_name(set, bit);
        log_error(log, "%s: super block: feature \"%s\" (%s 0x%" PRIx32 ") is not supported; %s",
                  name, feature ? feature : "unknown", set_names[set], bit, consequence);
    }
}

int ext_features_check(const struct ext_disk_super *super, bool read_only, const char *name,
                       const struct log *log) {
    if (le32_load(super->s_rev_level) == 0)
        return 0;
    uint32_t incompat = le32_load(super->s_feature_incompat);
    uint32_t ro_compat = le32_load(super->s_feature_ro_compat) & ~SUPPORTED_RO_COMPAT;
    if (incompat & EXT_INCOMPAT_RECOVER &&
        !(le32_load(super->s_feature_compat) & EXT_COMPAT_HAS_JOURNAL)) {
        log_error(log,
                  "%s: super block: feature \"needs_recovery\" is set, but there is no journal "
                  "(\"has_journal\"); run e2fsck -f",
                  name);
        return -ENOTSUP;
    }
    if (incompat & ~SUPPORTED_INCOMPAT_READING) {
        features_refuse(name, log, EXT_FEATURES_INCOMPAT, incompat & ~SUPPORTED_INCOMPAT_READING,
                        "mount it with Linux's ext4");
        return -ENOTSUP;
    }
    if (incompat & ~SUPPORTED_INCOMPAT && !read_only) {
        features_refuse(name, log, EXT_FEATURES_INCOMPAT, incompat & ~SUPPORTED_INCOMPAT,
                        "mount it read-only (ro), or with Linux's ext4");
        return -ENOTSUP;
    }
    if (ro_compat && !read_only) {
        features_refuse(name, log, EXT_FEATURES_RO_COMPAT, ro_compat,
                        "mount it read-only (ro), or with Linux's ext4");
        return -ENOTSUP;
    }
    return 0;
}

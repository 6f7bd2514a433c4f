/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, part of check. Every directory: its blocks and entries, what the names mean,
 * whether all is connected to the root, and how often each inode is named.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/check.h"

#define DIRENT_MIN 12u
#define TYPE_DIR   (S_IFDIR >> 12)

struct examined {
    struct check *check;
    struct check_dir *dir;
    uint64_t logical; /* the block at hand */
    uint64_t budget;  /* pointers that may still be followed: as many as the volume has blocks */
};

static struct check_dir *dir_find(struct check *check, uint32_t ino) {
    size_t low = 0, high = check->dir_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (check->dirs[middle].ino < ino)
            low = middle + 1;
        else
            high = middle;
    }
    return low < check->dir_count && check->dirs[low].ino == ino ? &check->dirs[low] : NULL;
}

/* --- entries ---------------------------------------------------------------------------------- */

static void entry_wrong(const struct examined *examined, uint32_t offset, const char *why) {
    check_wrong(examined->check,
                "directory inode %" PRIu32 ", block %" PRIu64 ", entry at byte %" PRIu32
                ": %s; run e2fsck",
                examined->dir->ino, examined->logical, offset, why);
}

/* What is wrong with an entry's shape, or NULL. */
static const char *entry_shape(const struct ext_disk_dirent *entry, uint32_t room) {
    uint32_t length = le16_load(entry->rec_len);
    if (length < DIRENT_MIN || length % 4 != 0)
        return "rec_len is not a multiple of 4 of at least 12";
    if (length > room)
        return "rec_len reaches beyond the block";
    if (length < ext_dirent_size(entry->name_len))
        return "name_len is more than rec_len has room for";
    return NULL;
}

static uint8_t type_to_file_type(uint8_t type) {
    switch ((uint32_t)type << 12) {
    case S_IFREG:
        return EXT_FT_REG;
    case S_IFDIR:
        return EXT_FT_DIR;
    case S_IFCHR:
        return EXT_FT_CHR;
    case S_IFBLK:
        return EXT_FT_BLK;
    case S_IFIFO:
        return EXT_FT_FIFO;
    case S_IFSOCK:
        return EXT_FT_SOCK;
    case S_IFLNK:
        return EXT_FT_SYMLINK;
    default:
        return EXT_FT_UNKNOWN;
    }
}

static bool is_name(const struct ext_disk_dirent *entry, const char *name) {
    return entry->name_len == strlen(name) && memcmp(entry->name, name, entry->name_len) == 0;
}

/* The first two entries of the first block. */
static void check_dot(const struct examined *examined, const struct ext_disk_dirent *entry,
                      uint32_t offset) {
    uint32_t ino = le32_load(entry->inode);
    if (offset == 0) {
        if (!is_name(entry, ".") || ino != examined->dir->ino)
            entry_wrong(examined, offset, "expected \".\" for the directory itself");
    } else if (!is_name(entry, "..") || ino == 0) {
        entry_wrong(examined, offset, "expected \"..\"");
    } else {
        examined->dir->dotdot = ino;
    }
}

static void note_parent(const struct examined *examined, uint32_t offset, uint32_t ino) {
    struct check_dir *child = dir_find(examined->check, ino);
    if (!child)
        return;
    if (child->parent || ino == EXT_ROOT_INO)
        entry_wrong(examined, offset, "a second name for a directory");
    else
        child->parent = examined->dir->ino;
}

static void check_entry(const struct examined *examined, const struct ext_disk_dirent *entry,
                        uint32_t offset, bool dot) {
    struct check *check = examined->check;
    const struct ext_geometry *geometry = &check->ext.geometry;
    uint32_t ino = le32_load(entry->inode);
    struct check_inode *inode = check_inode_find(check, ino);
    if (!ext_inode_number_valid(geometry, ino)) {
        entry_wrong(examined, offset, "its inode number is out of range");
        return;
    }
    if (!inode) {
        entry_wrong(examined, offset, "its inode is not in use");
        return;
    }
    if (inode->names < UINT16_MAX)
        inode->names++;
    if ((geometry->incompat & EXT_INCOMPAT_FILETYPE) && entry->file_type != EXT_FT_UNKNOWN &&
        entry->file_type != type_to_file_type(inode->type))
        entry_wrong(examined, offset, "file_type differs from the inode's type");
    if (dot)
        return;
    if (entry->name_len == 0 || memchr(entry->name, '/', entry->name_len) ||
        memchr(entry->name, 0, entry->name_len))
        entry_wrong(examined, offset, "its name is empty or holds a slash or a zero byte");
    else if (is_name(entry, ".") || is_name(entry, ".."))
        entry_wrong(examined, offset, "a second \".\" or \"..\"");
    else if (inode->type == TYPE_DIR)
        note_parent(examined, offset, ino);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void check_block(const struct examined *examined, const uint8_t *block) {
    uint32_t size = examined->check->ext.geometry.block_size;
    uint32_t dots = examined->logical == 0 ? 2 : 0, length;
    for (uint32_t offset = 0; offset < size; offset += length) {
        const struct ext_disk_dirent *entry = (const struct ext_disk_dirent *)(block + offset);
        const char *wrong = size - offset < DIRENT_MIN ? "there is no room for one"
                                                       : entry_shape(entry, size - offset);
        if (wrong) {
            entry_wrong(examined, offset, wrong);
            return;
        }
        length = le16_load(entry->rec_len);
        bool dot = dots > 0;
        if (dot) {
            check_dot(examined, entry, offset);
            dots--;
        }
        if (le32_load(entry->inode) != 0)
            check_entry(examined, entry, offset, dot);
    }
    if (dots > 0)
        entry_wrong(examined, 0, "there is no \"..\"");
}

static int check_data_block(struct examined *examined, uint64_t block, uint64_t logical) {
    struct buffer *buffer;
    if (examined->budget-- == 0)
        return -EUCLEAN;
    int rc = buffer_get(examined->check->ext.buffers, block, PURPOSE_DIR, &buffer);
    if (rc < 0)
        return rc;
    examined->logical = logical;
    check_block(examined, buffer_data(buffer));
    buffer_put(buffer);
    return 0;
}

static int visit_block(void *context, const struct ext_walk_step *step) {
    struct examined *examined = context;
    if (step->wrong || !ext_blocks_are_data(&examined->check->ext, step->block, step->count))
        return EXT_WALK_SKIP; /* has been reported with its inode */
    if (step->level > 0)
        return examined->budget-- == 0 ? -EUCLEAN : EXT_WALK_ENTER;
    int rc = 0;
    for (uint32_t i = 0; i < step->count && rc == 0; i++)
        rc = check_data_block(examined, step->block + i, step->logical + i);
    return rc < 0 ? rc : EXT_WALK_SKIP;
}

/* Entries that lie in the inode. */
static void check_inline(const struct examined *examined, const struct ext_disk_inode *record) {
    char block[PAGE_SIZE_BYTES];
    const char *fault =
        ext_inline_dir_block(&examined->check->ext, examined->dir->ino, record, block);
    if (fault)
        entry_wrong(examined, 0, fault);
    else
        check_block(examined, (const uint8_t *)block);
}

static int check_directory(struct check *check, struct check_dir *dir) {
    struct examined examined = {
        .check = check,
        .dir = dir,
        .budget = check->ext.geometry.blocks_count,
    };
    struct buffer *buffer;
    struct ext_disk_inode *record;
    int rc = ext_inode_record(&check->ext, dir->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    if (le32_load(record->i_flags) & EXT_INODE_INLINE_DATA)
        check_inline(&examined, record);
    else
        rc = ext_walk_map(&check->ext, dir->ino, record, visit_block, &examined);
    buffer_put(buffer);
    return rc == -EUCLEAN ? 0 : rc; /* a map that goes in circles has been reported, too */
}

/* --- the tree --------------------------------------------------------------------------------- */

/* Follows names upwards. Directories met on an earlier walk are known to be all right (or their
 * trouble has been told). */
static void check_connected(struct check *check, struct check_dir *start, uint32_t mark) {
    struct check_dir *dir = start;
    while (dir && dir->mark == 0 && dir->ino != EXT_ROOT_INO) {
        dir->mark = mark;
        if (dir->parent == 0) {
            check_wrong(check, "directory inode %" PRIu32 " has no name; run e2fsck", dir->ino);
            return;
        }
        dir = dir_find(check, dir->parent);
    }
    if (dir && dir->mark == mark)
        check_wrong(check,
                    "directory inode %" PRIu32 " is not connected to the root: its names go in a "
                    "circle; run e2fsck",
                    start->ino);
}

static void check_tree(struct check *check) {
    struct check_dir *root = dir_find(check, EXT_ROOT_INO);
    if (!root) {
        check_wrong(check, "inode 2 is not the root directory; run e2fsck");
        return;
    }
    root->parent = EXT_ROOT_INO;
    for (size_t i = 0; i < check->dir_count; i++) {
        struct check_dir *dir = &check->dirs[i];
        check_connected(check, dir, (uint32_t)i + 1);
        if (dir->parent && dir->dotdot != dir->parent)
            check_wrong(check,
                        "directory inode %" PRIu32 ": \"..\" is inode %" PRIu32
                        ", but its name is in inode %" PRIu32 "; run e2fsck",
                        dir->ino, dir->dotdot, dir->parent);
    }
}

static int set_links(struct check *check, uint64_t ino, uint16_t links) {
    struct buffer *buffer;
    struct ext_disk_inode *record;
    int rc = ext_inode_record(&check->ext, ino, &buffer, &record);
    if (rc < 0)
        return rc;
    le16_store(&record->i_links_count, links);
    ext_inode_record_changed(&check->ext, ino, buffer, record);
    buffer_put(buffer);
    return 0;
}

/* Only the super block knows the files of some features. */
static bool nameless(const struct ext_disk_super *super, uint64_t ino) {
    return (le32_load(super->s_feature_compat) & EXT_COMPAT_ORPHAN_FILE &&
            ino == le32_load(super->s_orphan_file_inum)) ||
           (le32_load(super->s_feature_ro_compat) & EXT_RO_COMPAT_PROJECT &&
            ino == le32_load(super->s_prj_quota_inum));
}

static int check_links(struct check *check, uint64_t ino, const struct check_inode *inode) {
    if (inode->names == inode->links || nameless(&check->ext.super, ino) ||
        (inode->links == 1 && inode->type == TYPE_DIR && inode->names > 0 &&
         check->ext.geometry.ro_compat & EXT_RO_COMPAT_DIR_NLINK)) /* uncounted */
        return 0;
    if (inode->names == 0) {
        check_wrong(check, "inode %" PRIu64 " is in use, but has no name; run e2fsck", ino);
        return 0;
    }
    check_wrong(check, "inode %" PRIu64 ": i_links_count is %u, but it has %u names", ino,
                inode->links, inode->names);
    return check_repair(check) ? set_links(check, ino, inode->names) : 0;
}

static int check_all_links(struct check *check) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    for (uint32_t group = 0; group < geometry->groups; group++) {
        const struct check_inode *inodes = check->groups[group].inodes;
        for (uint32_t i = 0; inodes && i < geometry->inodes_per_group; i++) {
            uint64_t ino = (uint64_t)group * geometry->inodes_per_group + i + 1;
            if (!inodes[i].type || !ext_inode_number_valid(geometry, ino))
                continue;
            int rc = check_links(check, ino, &inodes[i]);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int check_directories(struct check *check) {
    for (size_t i = 0; i < check->dir_count; i++) {
        int rc = check_directory(check, &check->dirs[i]);
        if (rc < 0)
            return rc;
    }
    check_tree(check);
    return check_all_links(check);
}

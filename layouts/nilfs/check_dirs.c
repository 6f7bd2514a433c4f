/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, part of check. Every directory of a checkpoint: its blocks and entries,
 * what the names mean, and whether all is connected to the root.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/check.h"

#define TYPE_DIR  (S_IFDIR >> 12)
#define ENTRY_MIN 16u /* with the shortest name */

struct examined {
    struct nilfs_check_tree *tree;
    struct nilfs_check_inode *dir;
    uint64_t block;
};

/* --- entries ---------------------------------------------------------------------------------- */

static void entry_wrong(const struct examined *examined, uint32_t offset, const char *why) {
    nilfs_check_wrong(examined->tree->check,
                      "%sdirectory inode %" PRIu64 ", block %" PRIu64 ", entry at byte %" PRIu32
                      ": %s",
                      examined->tree->name, examined->dir->ino, examined->block, offset, why);
}

static uint32_t entry_length(const struct nilfs_disk_dir_entry *entry) {
    uint32_t length = le16_load(entry->rec_len);
    return length == UINT16_MAX ? UINT16_MAX + 1u : length;
}

static const char *entry_shape(const struct nilfs_disk_dir_entry *entry, uint32_t room) {
    uint32_t length = entry_length(entry);

    if (length < ENTRY_MIN || length % 4 != 0)
        return "rec_len is not a multiple of 4 of at least 16";
    if (length > room)
        return "rec_len reaches beyond the block";
    if (length < NILFS_DIR_HEADER + entry->name_len)
        return "name_len is more than rec_len has room for";
    return NULL;
}

static uint8_t type_to_file_type(uint8_t type) {
    switch ((uint32_t)type << 12) {
    case S_IFREG:
        return NILFS_FT_REGULAR;
    case S_IFDIR:
        return NILFS_FT_DIRECTORY;
    case S_IFCHR:
        return NILFS_FT_CHARACTER;
    case S_IFBLK:
        return NILFS_FT_BLOCK;
    case S_IFIFO:
        return NILFS_FT_FIFO;
    case S_IFSOCK:
        return NILFS_FT_SOCKET;
    case S_IFLNK:
        return NILFS_FT_SYMLINK;
    default:
        return NILFS_FT_UNKNOWN;
    }
}

static const char *entry_name(const struct nilfs_disk_dir_entry *entry) {
    return (const char *)(entry + 1);
}

static bool is_name(const struct nilfs_disk_dir_entry *entry, const char *name) {
    return entry->name_len == strlen(name) && memcmp(entry_name(entry), name, strlen(name)) == 0;
}

/* The first two entries of the first block. */
static void check_dot(const struct examined *examined, const struct nilfs_disk_dir_entry *entry,
                      uint32_t offset) {
    uint64_t ino = le64_load(entry->inode);

    if (offset == 0) {
        if (!is_name(entry, ".") || ino != examined->dir->ino)
            entry_wrong(examined, offset, "expected \".\" for the directory itself");
    } else if (!is_name(entry, "..") || ino == 0) {
        entry_wrong(examined, offset, "expected \"..\"");
    } else {
        examined->dir->dotdot = ino;
    }
}

static void check_name(const struct examined *examined, const struct nilfs_disk_dir_entry *entry,
                       uint32_t offset, struct nilfs_check_inode *inode) {
    const char *name = entry_name(entry);

    if (entry->name_len == 0 || memchr(name, '/', entry->name_len) ||
        memchr(name, 0, entry->name_len))
        entry_wrong(examined, offset, "its name is empty or holds a slash or a zero byte");
    else if (is_name(entry, ".") || is_name(entry, ".."))
        entry_wrong(examined, offset, "a second \".\" or \"..\"");
    else if (inode->type != TYPE_DIR)
        return;
    else if (inode->parent || inode->ino == NILFS_ROOT_INO)
        entry_wrong(examined, offset, "a second name for a directory");
    else
        inode->parent = examined->dir->ino;
}

static void check_entry(const struct examined *examined, const struct nilfs_disk_dir_entry *entry,
                        uint32_t offset, bool dot) {
    struct nilfs_check_inode *inode =
        nilfs_check_inode_find(examined->tree, le64_load(entry->inode));

    if (!inode) {
        entry_wrong(examined, offset, "its inode is not in use");
        return;
    }
    if (inode->names < UINT32_MAX)
        inode->names++;
    if (entry->file_type != type_to_file_type(inode->type))
        entry_wrong(examined, offset, "file_type differs from the inode's type");
    if (!dot)
        check_name(examined, entry, offset, inode);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void check_block(const struct examined *examined, const uint8_t *block) {
    uint32_t size = examined->tree->check->nilfs->geometry.block_size, length;
    uint32_t dots = examined->block == 0 ? 2 : 0;

    for (uint32_t offset = 0; offset < size; offset += length) {
        const struct nilfs_disk_dir_entry *entry =
            (const struct nilfs_disk_dir_entry *)(block + offset);
        const char *wrong = size - offset < ENTRY_MIN ? "there is no room for one"
                                                      : entry_shape(entry, size - offset);
        if (wrong) {
            entry_wrong(examined, offset, wrong);
            return;
        }
        length = entry_length(entry);
        bool dot = dots > 0;
        if (dot) {
            check_dot(examined, entry, offset);
            dots--;
        }
        if (le64_load(entry->inode) != 0)
            check_entry(examined, entry, offset, dot);
    }
    if (dots > 0)
        entry_wrong(examined, 0, "there is no \"..\"");
}

static int check_blocks(struct examined *examined, struct nilfs_file *file) {
    int error = 0;

    for (; examined->block < examined->dir->blocks && !error; examined->block++) {
        struct nilfs_view view;
        error = nilfs_file_read(file, examined->block, PURPOSE_DIR, &view);
        if (error == -ENOENT) {
            entry_wrong(examined, 0, "the block is a hole");
            return 0; /* the size may be anything */
        }
        if (error)
            continue;
        check_block(examined, view.data);
        nilfs_view_put(&view);
    }
    return error;
}

static int check_directory(struct nilfs_check_tree *tree, struct nilfs_check_inode *dir) {
    struct examined examined = {.tree = tree, .dir = dir};
    struct nilfs_disk_inode inode;
    struct nilfs_file *file;
    int error = nilfs_ifile_read(tree->ifile, dir->ino, &inode);

    if (!error)
        error = nilfs_file_new(tree->check->nilfs, dir->ino, tree->cno, NILFS_MULTI, &inode, &file);
    if (error)
        return error;
    error = check_blocks(&examined, file);
    nilfs_file_put(file);
    return error;
}

/* --- the tree --------------------------------------------------------------------------------- */

/* Follows names upwards. Directories met on an earlier walk are known to be all right (or their
 * trouble has been told). */
static void check_connected(struct nilfs_check_tree *tree, struct nilfs_check_inode *start,
                            uint64_t mark) {
    struct nilfs_check_inode *dir = start;

    while (dir && dir->mark == 0 && dir->ino != NILFS_ROOT_INO) {
        dir->mark = mark;
        if (dir->parent == 0) {
            nilfs_check_wrong(tree->check, "%sdirectory inode %" PRIu64 " has no name", tree->name,
                              dir->ino);
            return;
        }
        dir = nilfs_check_inode_find(tree, dir->parent);
    }
    if (dir && dir->mark == mark)
        nilfs_check_wrong(tree->check,
                          "%sdirectory inode %" PRIu64
                          " is not connected to the root: its names go in a circle",
                          tree->name, start->ino);
}

static bool is_directory(const struct nilfs_check_inode *inode) {
    return inode->type == TYPE_DIR && inode->links > 0; /* a leftover has no entries any more */
}

static void check_connections(struct nilfs_check_tree *tree) {
    struct nilfs_check_inode *root = nilfs_check_inode_find(tree, NILFS_ROOT_INO);

    if (!root) {
        nilfs_check_wrong(tree->check, "%sthere is no root directory", tree->name);
        return;
    }
    root->parent = NILFS_ROOT_INO;
    for (size_t i = 0; i < tree->count; i++) {
        struct nilfs_check_inode *dir = &tree->inodes[i];
        if (!is_directory(dir))
            continue;
        check_connected(tree, dir, i + 1);
        if (dir->parent && dir->dotdot != dir->parent)
            nilfs_check_wrong(tree->check,
                              "%sdirectory inode %" PRIu64 ": \"..\" is inode %" PRIu64
                              ", but its name is in inode %" PRIu64,
                              tree->name, dir->ino, dir->dotdot, dir->parent);
    }
}

int nilfs_check_dirs(struct nilfs_check_tree *tree) {
    int error = 0;

    for (size_t i = 0; i < tree->count && !error; i++)
        if (is_directory(&tree->inodes[i]))
            error = nilfs_check_go_on(check_directory(tree, &tree->inodes[i]));
    if (!error)
        check_connections(tree);
    return error;
}

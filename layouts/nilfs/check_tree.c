/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, part of check. The inodes of one checkpoint: their records, their maps, how
 * often each is named, and what the checkpoint counts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/check.h"

struct nilfs_check_inode *nilfs_check_inode_find(struct nilfs_check_tree *tree, uint64_t ino) {
    size_t low = 0, high = tree->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->inodes[middle].ino < ino)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tree->count && tree->inodes[low].ino == ino ? &tree->inodes[low] : NULL;
}

static void inode_wrong(const struct nilfs_check_tree *tree, uint64_t ino, const char *why) {
    nilfs_check_wrong(tree->check, "%sinode %" PRIu64 ": %s", tree->name, ino, why);
}

/* --- records ---------------------------------------------------------------------------------- */

static bool has_map(uint32_t mode) {
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

static bool mode_valid(uint32_t mode) {
    return has_map(mode) || S_ISCHR(mode) || S_ISBLK(mode) || S_ISFIFO(mode) || S_ISSOCK(mode);
}

/* Blocks that a file of that size may have. */
static uint64_t size_blocks(const struct nilfs_check_tree *tree, uint64_t size) {
    uint32_t bits = tree->check->nilfs->geometry.block_bits;
    return (size >> bits) + ((size & ((UINT64_C(1) << bits) - 1)) != 0);
}

static void check_size(const struct nilfs_check_tree *tree, struct nilfs_file *file,
                       const struct nilfs_disk_inode *inode) {
    uint64_t size = le64_load(inode->i_size), last;
    uint32_t block_size = tree->check->nilfs->geometry.block_size;
    int error = nilfs_bmap_last(file, &last);

    if (S_ISDIR(le16_load(inode->i_mode)) && (size == 0 || size % block_size))
        inode_wrong(tree, file->ino, "the size of a directory is no number of blocks");
    else if (S_ISLNK(le16_load(inode->i_mode)) && (size == 0 || size >= block_size))
        inode_wrong(tree, file->ino, "the length of a symbolic link cannot be");
    else if (!error && last >= size_blocks(tree, size))
        nilfs_check_wrong(tree->check,
                          "%sinode %" PRIu64 ": it has a block %" PRIu64
                          ", which is behind its end, byte %" PRIu64,
                          tree->name, file->ino, last, size);
}

/* mkfs may have counted the blocks of inodes that it makes in other units. */
static void check_blocks(const struct nilfs_check_tree *tree, const struct nilfs_file *file,
                         uint64_t blocks) {
    uint64_t expected = blocks * tree->check->nilfs->geometry.sectors_per_block;

    if (file->sectors == expected ||
        (file->ino <= NILFS_FIRST_INO && file->sectors < expected && file->sectors >= blocks))
        return;
    nilfs_check_wrong(tree->check,
                      "%sinode %" PRIu64 ": i_blocks is %" PRIu64 ", expected %" PRIu64, tree->name,
                      file->ino, file->sectors, expected);
}

static int check_contents(struct nilfs_check_tree *tree, uint64_t ino,
                          const struct nilfs_disk_inode *inode) {
    struct nilfs_file *file;
    uint64_t blocks;
    int error = nilfs_file_new(tree->check->nilfs, ino, tree->cno, NILFS_MULTI, inode, &file);

    if (error)
        return error;
    error = nilfs_check_map(tree->check, file, tree->cno, &blocks);
    if (!error) {
        check_blocks(tree, file, blocks);
        check_size(tree, file, inode);
    }
    tree->blocks += blocks;
    nilfs_file_put(file);
    return error;
}

static int add_leftover(struct nilfs_check *check, uint64_t ino) {
    int error = nilfs_check_grow((void **)&check->leftovers, check->leftover_count,
                                 &check->leftover_room, sizeof(*check->leftovers));

    if (!error)
        check->leftovers[check->leftover_count++] = ino;
    return error;
}

static int add_inode(struct nilfs_check_tree *tree, uint64_t ino,
                     const struct nilfs_disk_inode *inode) {
    int error =
        nilfs_check_grow((void **)&tree->inodes, tree->count, &tree->room, sizeof(*tree->inodes));

    if (error)
        return error;
    tree->inodes[tree->count++] = (struct nilfs_check_inode){
        .ino = ino,
        .links = le16_load(inode->i_links_count),
        .type = (uint8_t)(le16_load(inode->i_mode) >> 12),
        .blocks = le64_load(inode->i_size) >> tree->check->nilfs->geometry.block_bits,
    };
    return 0;
}

static bool is_users(uint64_t ino) {
    return ino == NILFS_ROOT_INO || ino >= NILFS_FIRST_INO;
}

/* The format keeps some numbers for itself; of these, mkfs makes some files, which are empty. */
static bool is_spare(uint64_t ino) {
    return ino == NILFS_ATIME_INO || ino == NILFS_XATTR_INO || ino == NILFS_SKETCH_INO;
}

static int check_inode(struct nilfs_check_tree *tree, uint64_t ino) {
    struct nilfs_disk_inode inode;
    int error = nilfs_ifile_read(tree->ifile, ino, &inode);
    uint32_t mode = error ? 0 : le16_load(inode.i_mode);

    if (error || (is_spare(ino) && mode == 0))
        return error;
    if (!mode_valid(mode)) {
        inode_wrong(tree, ino, "its mode has no type");
        return 0;
    }
    if (ino == NILFS_ROOT_INO && !S_ISDIR(mode))
        inode_wrong(tree, ino, "it is to be the root, but it is no directory");
    if (is_users(ino))
        error = add_inode(tree, ino, &inode);
    if (!error && has_map(mode))
        error = check_contents(tree, ino, &inode);
    return error;
}

static int check_inodes(struct nilfs_check_tree *tree) {
    uint64_t ino = 0;
    int error = 0;

    while (!error) {
        error = nilfs_ifile_next(tree->ifile, ino, &ino);
        if (!error && (is_users(ino) || is_spare(ino)))
            error = nilfs_check_go_on(check_inode(tree, ino));
        ino++;
    }
    return error == -ENOENT ? 0 : error;
}

/* --- names ------------------------------------------------------------------------------------ */

static int check_links(struct nilfs_check_tree *tree, const struct nilfs_check_inode *inode) {
    /* A directory has its name, its ".", and the ".." of each in it: all are entries. */
    if (inode->names != inode->links)
        nilfs_check_wrong(tree->check,
                          "%sinode %" PRIu64 ": i_links_count is %" PRIu32 ", but it has %" PRIu32
                          " names",
                          tree->name, inode->ino, inode->links, inode->names);
    else if (inode->names == 0 && tree->cno == 0)
        return add_leftover(tree->check, inode->ino);
    return 0;
}

static int check_all_links(struct nilfs_check_tree *tree) {
    int error = 0;

    for (size_t i = 0; i < tree->count && !error; i++)
        error = check_links(tree, &tree->inodes[i]);
    if (!error && tree->cno == 0 && tree->check->leftover_count > 0)
        nilfs_check_note(tree->check,
                         "%zu files have lost their last name, but were not freed (inode %" PRIu64
                         " is the first): left by a crash; repair frees them",
                         tree->check->leftover_count, tree->check->leftovers[0]);
    return error;
}

/* --- the checkpoint --------------------------------------------------------------------------- */

static int check_ifile(struct nilfs_check_tree *tree, const struct nilfs_checkpoint *checkpoint) {
    char name[64];
    uint64_t blocks;
    int error = nilfs_check_map(tree->check, tree->ifile, tree->cno, &blocks);

    tree->blocks += blocks;
    if (!error)
        check_blocks(tree, tree->ifile, blocks);
    snprintf(name, sizeof(name), "%sifile", tree->name);
    return error ? error : nilfs_check_entries(tree->check, tree->ifile, name, NULL);
}

static void check_count(const struct nilfs_check_tree *tree, uint64_t cno, const char *what,
                        uint64_t found, uint64_t expected) {
    if (found != expected)
        nilfs_check_wrong(tree->check,
                          "checkpoint %" PRIu64 ": it counts %" PRIu64 " %s, expected %" PRIu64,
                          cno, found, what, expected);
}

static int examine(struct nilfs_check_tree *tree, const struct nilfs_checkpoint *checkpoint) {
    uint64_t wrong = tree->check->report->wrong;
    int error = check_ifile(tree, checkpoint);

    if (!error)
        error = check_inodes(tree);
    if (!error && tree->check->report->wrong == wrong) {
        check_count(tree, checkpoint->cno, "blocks", checkpoint->blocks, tree->blocks);
        check_count(tree, checkpoint->cno, "inodes", checkpoint->inodes, tree->count);
    }
    if (!error)
        error = nilfs_check_dirs(tree);
    return error ? error : check_all_links(tree);
}

int nilfs_check_tree(struct nilfs_check *check, uint64_t cno) {
    struct nilfs *nilfs = check->nilfs;
    struct nilfs_check_tree tree = {.check = check, .cno = cno, .ifile = nilfs->ifile};
    struct nilfs_checkpoint checkpoint;
    int error = nilfs_cpfile_read(nilfs, cno ? cno : nilfs->newest, &checkpoint);

    if (!error && cno) {
        snprintf(tree.name, sizeof(tree.name), "checkpoint %" PRIu64 ": ", cno);
        error = nilfs_file_new(nilfs, NILFS_IFILE_INO, cno, NILFS_MULTI, &checkpoint.ifile,
                               &tree.ifile);
    }
    if (error)
        return error;
    error = examine(&tree, &checkpoint);
    if (cno)
        nilfs_file_put(tree.ifile);
    free(tree.inodes);
    return error;
}

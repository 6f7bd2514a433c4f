/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over ifile.h and file.h. Interface: layouts/nilfs/recovery.h.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/layout.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/recovery.h"
#include "layouts/nilfs/space.h"

/* What a mount may spend on it: inodes looked at (16 MiB of records), blocks freed. */
#define SCAN_INODES 131072u
#define FREE_BLOCKS 262144u

int nilfs_leftover_free(struct nilfs *nilfs, uint64_t ino) {
    struct nilfs_disk_inode inode;
    struct nilfs_file *file;
    int error = nilfs_ifile_read(nilfs->ifile, ino, &inode);

    if (error || le16_load(inode.i_links_count) != 0)
        return error == -ESTALE ? 0 : error;
    error = nilfs_file_open(nilfs, ino, &file);
    if (error)
        return error;
    if (!file->device)
        error = nilfs_file_free(file, 0, UINT64_MAX);
    if (!error)
        error = nilfs_ifile_free(nilfs, ino);
    if (!error && nilfs->inodes_count > 0)
        nilfs->inodes_count--;
    nilfs_file_mark_clean(file); /* its record is gone: nothing of it is to be written */
    nilfs_file_put(file);
    return error;
}

/* *blocks: of the inode, if it has no name; else 0. */
static int leftover_look(struct nilfs *nilfs, uint64_t ino, bool *found, uint64_t *blocks) {
    struct nilfs_disk_inode inode;
    int error = nilfs_ifile_read(nilfs->ifile, ino, &inode);

    *found = !error && le16_load(inode.i_links_count) == 0;
    *blocks = *found ? le64_load(inode.i_blocks) / nilfs->geometry.sectors_per_block : 0;
    return error;
}

/* Is there space to free so many blocks? (i_blocks counts the nodes.) */
static bool leftover_claim(struct nilfs *nilfs, uint64_t blocks) {
    const struct nilfs_demand demand = {.blocks = nilfs_space_change(nilfs->ifile),
                                        .entries = blocks};

    return nilfs_space_claim(nilfs, NILFS_CLAIM_FINISH, &demand) == 0;
}

static int leftovers_scan(struct nilfs *nilfs, uint64_t *freed, uint64_t *left) {
    uint64_t ino = NILFS_FIRST_INO, blocks, spent = 0;
    bool found;
    int error;

    for (; (error = nilfs_ifile_next(nilfs->ifile, ino, &ino)) == 0; ino++) {
        error = leftover_look(nilfs, ino, &found, &blocks);
        if (!error && found && blocks <= FREE_BLOCKS - spent && leftover_claim(nilfs, blocks)) {
            error = nilfs_fail(nilfs, nilfs_leftover_free(nilfs, ino));
            spent += blocks;
            ++*freed;
        } else if (found) {
            ++*left;
        }
        if (error)
            return error;
    }
    return error == -ENOENT ? 0 : error;
}

int nilfs_leftovers_free(struct nilfs *nilfs) {
    const struct volume *volume = nilfs->volume;
    uint64_t freed = 0, left = 0;

    if (nilfs->inodes_count > SCAN_INODES) {
        log_info(volume->log,
                 "%s: nilfs: files without a name are not looked for among %" PRIu64
                 " inodes; 'layoutfs check --repair' frees them",
                 volume->name, nilfs->inodes_count);
        return 0;
    }
    int error = leftovers_scan(nilfs, &freed, &left);
    if (freed > 0)
        log_info(volume->log, "%s: nilfs: %" PRIu64 " files without a name freed", volume->name,
                 freed);
    if (left > 0)
        log_info(volume->log,
                 "%s: nilfs: %" PRIu64 " files without a name are left; 'layoutfs check "
                 "--repair' frees them",
                 volume->name, left);
    return error;
}

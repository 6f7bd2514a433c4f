/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/ifile.h.
 */
#include "layouts/nilfs/ifile.h"

#include <errno.h>
#include <string.h>

static int no_record(const struct nilfs *nilfs, uint64_t ino) {
    return nilfs_corrupt(nilfs, "ifile: inode %llu is in use, but has no record",
                         (unsigned long long)ino);
}

int nilfs_ifile_read(struct nilfs_file *ifile, uint64_t ino, struct nilfs_disk_inode *inode) {
    struct nilfs_view view;
    const uint8_t *record;
    int used = nilfs_palloc_used(ifile, ino);

    if (used <= 0)
        return used == 0 ? -ESTALE : used;
    int error = nilfs_palloc_read(ifile, ino, PURPOSE_INODE, &view, &record);
    if (error)
        return error == -ENOENT ? no_record(ifile->nilfs, ino) : error;
    memcpy(inode, record, sizeof(*inode));
    nilfs_view_put(&view);
    return 0;
}

int nilfs_ifile_change(struct nilfs *nilfs, uint64_t ino, struct nilfs_disk_inode **inode) {
    uint8_t *record;
    int error = nilfs_palloc_change(nilfs->ifile, ino, &record);

    if (error)
        return error == -ENOENT ? no_record(nilfs, ino) : error;
    *inode = (struct nilfs_disk_inode *)record;
    return 0;
}

int nilfs_ifile_allocate(struct nilfs *nilfs, uint64_t *ino) {
    uint8_t *record;
    int error = nilfs_palloc_allocate(nilfs->ifile, NILFS_FIRST_INO, false, ino, &record);

    if (!error)
        memset(record, 0, nilfs->geometry.inode_size);
    return error;
}

int nilfs_ifile_free(struct nilfs *nilfs, uint64_t ino) {
    return nilfs_palloc_free(nilfs->ifile, ino, false);
}

int nilfs_ifile_next(struct nilfs_file *ifile, uint64_t from, uint64_t *ino) {
    return nilfs_palloc_next(ifile, from, ino);
}

int nilfs_ifile_capacity(struct nilfs_file *ifile, uint64_t *inodes) {
    return nilfs_palloc_capacity(ifile, inodes);
}

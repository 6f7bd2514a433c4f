/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over indirect.c.
 *
 * Symbolic links. A target shorter than the 60 bytes of the inode's block slots lies there and
 * takes no block (fast); a longer one has one block, kept in the buffer cache. With inline_data it
 * may lie in the inode as a file's contents do.
 *
 * Invariant: a symlink has a data block exactly when it is slow, so that the sector count tells
 * which it is; an attribute block does not count. With ea_inode, where more than that may count,
 * the length tells, as the format then demands.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/ext.h"

bool ext_symlink_is_fast(struct inode *inode) {
    if (!S_ISLNK(inode->mode) || ext_is_inline(inode))
        return false;
    if (ext_of(inode->volume)->geometry.incompat & EXT_INCOMPAT_EA_INODE)
        return inode->size < sizeof ext_inode_of(inode)->block;
    uint64_t attributes =
        ext_inode_of(inode)->file_acl ? ext_of(inode->volume)->geometry.block_size / 512 : 0;
    return inode->sectors <= attributes;
}

int ext_symlink_write(struct inode *inode, const char *target, uint32_t length) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);
    if (length >= ext->geometry.block_size)
        return -ENAMETOOLONG;

    if (length < sizeof private->block) {
        memset(private->block, 0, sizeof private->block);
        memcpy(private->block, target, length);
        inode->size = length;
        return 0;
    }
    uint64_t done, block, count;
    struct buffer *buffer;
    ext_map_initialise(inode);
    int rc = ext_bmap_allocate(inode, 0, 1, &done);
    if (rc == 0)
        rc = ext_bmap(inode, 0, &block, &count);
    if (rc == 0)
        rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_DATA, &buffer);
    if (rc < 0) {
        (void)ext_truncate(inode, 0);
        return rc;
    }
    memcpy(buffer_data(buffer), target, length);
    ext_dirty(ext, buffer);
    buffer_put(buffer);
    inode->size = length;
    return 0;
}

int ext_symlink_read(struct inode *inode, char *target) {
    struct ext *ext = ext_of(inode->volume);
    if (ext_symlink_is_fast(inode)) {
        memcpy(target, ext_inode_of(inode)->block, inode->size);
        return 0;
    }
    uint64_t block, count;
    struct buffer *buffer;
    int rc;
    if (ext_is_inline(inode)) {
        char data[PAGE_SIZE_BYTES];
        rc = ext_inline_contents(inode, data);
        if (rc == 0)
            memcpy(target, data, inode->size);
        return rc;
    }
    rc = ext_bmap(inode, 0, &block, &count);
    if (rc < 0)
        return rc;
    if (block == 0)
        return ext_corrupt(ext, "inode %" PRIu64 ": symlink with blocks has none for its target",
                           inode->ino);
    rc = buffer_get(ext->buffers, block, PURPOSE_DATA, &buffer);
    if (rc < 0)
        return rc;
    memcpy(target, buffer_data(buffer), inode->size);
    buffer_put(buffer);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, under xattr.c, over inode.c and data.c. Values of attributes that fill an
 * inode of their own (ea_inode), which has no name and may be shared. They are read here, and not
 * written. Source: the Linux kernel's Documentation/filesystems/ext4/eainode.rst.
 *
 * Invariant: a value is handed out only when it is the one that the attribute means: its checksum,
 * which the inode keeps as i_atime, or (in the feature's first form) the inode's back-reference to
 * its only owner is right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/crc.h"
#include "layouts/ext/ext.h"

/* --- what they count for -----------------------------------------------------------------------
 */

/* Entries lie in [first, size) of the area. Damage ends the walk. */
static uint64_t area_blocks(const struct ext_geometry *geometry, const char *area, uint32_t first,
                            uint32_t size) {
    uint64_t blocks = 0;

    for (uint32_t at = first; at + sizeof(struct ext_disk_xattr_entry) <= size;) {
        const struct ext_disk_xattr_entry *entry = (const void *)(area + at);
        if (entry->e_name_len == 0 && entry->e_name_index == 0)
            break;
        if (le32_load(entry->e_value_inum) != 0)
            blocks += (le32_load(entry->e_value_size) + (uint64_t)geometry->block_size - 1) >>
                      geometry->block_bits;
        at += (uint32_t)((sizeof(*entry) + entry->e_name_len + 3u) & ~3u);
    }
    return blocks;
}

uint64_t ext_xattr_inode_blocks(const struct ext_geometry *geometry,
                                const struct ext_disk_inode *record, const void *block) {
    uint32_t size = geometry->inode_size, extra = EXT_INODE_BASE_SIZE;
    uint64_t blocks = 0;

    if (size > EXT_INODE_BASE_SIZE)
        extra += le16_load(record->i_extra_isize);
    if (extra + sizeof(le32) <= size && extra > EXT_INODE_BASE_SIZE &&
        le32_load(*(const le32 *)(const void *)((const char *)record + extra)) == EXT_XATTR_MAGIC)
        blocks += area_blocks(geometry, (const char *)record, extra + (uint32_t)sizeof(le32), size);
    if (block)
        blocks += area_blocks(geometry, block, sizeof(struct ext_disk_xattr_header),
                              geometry->block_size);
    return blocks;
}

/* --- reading -----------------------------------------------------------------------------------
 */

static int value_copy(struct inode *inode, char *value, uint32_t size) {
    struct ext *ext = ext_of(inode->volume);
    uint32_t block_size = ext->geometry.block_size;

    for (uint32_t at = 0; at < size; at += block_size) {
        uint32_t part = size - at < block_size ? size - at : block_size;
        uint64_t block, count;
        struct buffer *buffer;
        int rc = ext_bmap(inode, at >> ext->geometry.block_bits, &block, &count);
        if (rc < 0)
            return rc;
        if (block == 0)
            return ext_corrupt(ext, "inode %" PRIu64 ": an attribute's value has a hole",
                               inode->ino);
        rc = buffer_get(ext->buffers, block, PURPOSE_XATTR, &buffer);
        if (rc < 0)
            return rc;
        memcpy(value + at, buffer_data(buffer), part);
        buffer_put(buffer);
    }
    return 0;
}

static bool value_is_owners(const struct inode *inode, const struct inode *owner, const void *value,
                            uint32_t size) {
    uint32_t seed = ext_of(inode->volume)->geometry.checksum_seed;
    if (crc32c(seed, value, size) == (uint32_t)inode->atime.seconds)
        return true;
    return (uint32_t)inode->mtime.seconds == owner->ino && inode->generation == owner->generation;
}

/* `inode` is filled, and belongs to the caller. */
static int value_read(struct inode *inode, const struct inode *owner, void *value, uint32_t size) {
    struct ext *ext = ext_of(owner->volume);
    int rc =
        ext_inode_number_valid(&ext->geometry, inode->ino) ? ext_inode_load_any(inode) : -ESTALE;
    if (rc < 0 && rc != -ESTALE)
        return rc;
    if (rc == -ESTALE || !S_ISREG(inode->mode) || !(inode->flags & EXT_INODE_EA_INODE) ||
        inode->size != size)
        return ext_corrupt(ext,
                           "inode %" PRIu64 ": inode %" PRIu64
                           " does not hold the value of an attribute of %" PRIu32 " bytes",
                           owner->ino, inode->ino, size);
    rc = value_copy(inode, value, size);
    if (rc == 0 && !value_is_owners(inode, owner, value, size))
        rc = ext_corrupt(ext,
                         "inode %" PRIu64 ": the attribute's value in inode %" PRIu64
                         " does not match its checksum",
                         owner->ino, inode->ino);
    return rc;
}

int ext_xattr_inode_read(struct inode *owner, uint32_t ino, void *value, uint32_t size) {
    struct inode *inode = calloc(1, sizeof(*inode) + sizeof(struct ext_inode));

    if (!inode)
        return -ENOMEM;
    inode->volume = owner->volume;
    inode->ino = ino;
    int rc = value_read(inode, owner, value, size);
    ext_inode_evict(inode);
    free(inode);
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over data.c, dir.c's blocks and xattr.c. Contents kept in the inode
 * (inline_data): the first 60 bytes lie in i_block, the rest is the value of the attribute
 * system.data in the same record, which is there even when it is empty.
 * Source: the Linux kernel's Documentation/filesystems/ext4/inlinedata.rst.
 *
 * A file stays in its inode while what is written fits into the room that is there, which is never
 * made larger; then it gets a block, and is a file like all others. A directory gets one before the
 * first change, so that what changes directories need not know of this form. Nothing is moved back,
 * and no new inode begins like this.
 *
 * Invariants:
 *  1. The attribute is looked up and bounded in inline_value, and nothing else finds it.
 *  2. A directory in this form is seen as the block that it would be converted to, so that names
 * and cookies are the same before and after.
 *  3. A conversion that fails for want of space has changed nothing.
 *  4. Behind the end of the file there are zeros.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/dir.h"

#define INLINE_SLOT_BYTES ((uint32_t)sizeof(((struct ext_disk_inode *)0)->i_block))
#define INLINE_PARENT     ((uint32_t)sizeof(le32)) /* a directory: its parent's number comes first */

/* --- where the bytes are -----------------------------------------------------------------------
 */

/* Where in the record the value of system.data begins; 0: nowhere. */
static uint32_t inline_value(const struct ext *ext, const struct ext_disk_inode *record,
                             uint32_t *length) {
    static const char name[] = {'d', 'a', 't', 'a'};
    const char *bytes = (const char *)record;
    uint32_t size = ext->geometry.inode_size;
    if (size <= EXT_INODE_BASE_SIZE)
        return 0;
    uint32_t base = EXT_INODE_BASE_SIZE + le16_load(record->i_extra_isize) + (uint32_t)sizeof(le32);
    const struct ext_disk_xattr_entry *entry;
    if (base > size || le32_load(*(const le32 *)(bytes + base - sizeof(le32))) != EXT_XATTR_MAGIC)
        return 0;
    for (uint32_t at = base; at + sizeof(*entry) <= size;
         at += (uint32_t)((sizeof(*entry) + entry->e_name_len + 3u) & ~3u)) {
        entry = (const void *)(bytes + at);
        if (entry->e_name_len == 0 && entry->e_name_index == 0)
            return 0;
        if (entry->e_name_index != EXT_XATTR_SYSTEM || entry->e_name_len != sizeof(name) ||
            at + sizeof(*entry) + sizeof(name) > size || memcmp(entry->e_name, name, sizeof(name)))
            continue;
        uint32_t offset = le16_load(entry->e_value_offs);
        *length = le32_load(entry->e_value_size);
        bool inside = *length <= size - base && offset <= size - base - *length;
        return inside && le32_load(entry->e_value_inum) == 0 ? base + offset : 0;
    }
    return 0;
}

int64_t ext_inline_read(const struct ext *ext, const struct ext_disk_inode *record, char *data) {
    uint32_t length, value = inline_value(ext, record, &length);
    if (value == 0)
        return -EUCLEAN;
    if (data) {
        memcpy(data, record->i_block, INLINE_SLOT_BYTES);
        memcpy(data + INLINE_SLOT_BYTES, (const char *)record + value, length);
    }
    return INLINE_SLOT_BYTES + length;
}

/* Replaces what lies in the inode by as much of `data`. */
static int inline_write(struct inode *inode, const char *data) {
    struct ext *ext = ext_of(inode->volume);
    struct buffer *buffer;
    struct ext_disk_inode *record;
    uint32_t length;
    int rc = ext_inode_record(ext, inode->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    uint32_t value = inline_value(ext, record, &length);
    if (value != 0) {
        memcpy(record->i_block, data, INLINE_SLOT_BYTES);
        memcpy(ext_inode_of(inode)->block, data, INLINE_SLOT_BYTES);
        memcpy((char *)record + value, data + INLINE_SLOT_BYTES, length);
        ext_note_change(inode, true);
        ext_inode_record_changed(ext, inode->ino, buffer, record);
    }
    buffer_put(buffer);
    return value != 0 ? 0 : -EUCLEAN;
}

/* --- files and symlinks ------------------------------------------------------------------------
 */

/* The room in the inode, which holds the file, and its bytes. */
static int64_t inline_room(struct inode *inode, char *data) {
    struct ext *ext = ext_of(inode->volume);
    struct buffer *buffer;
    struct ext_disk_inode *record;
    int rc = ext_inode_record(ext, inode->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    int64_t room = ext_inline_read(ext, record, data);
    buffer_put(buffer);
    if (room < 0 || inode->size > (uint64_t)room)
        return ext_corrupt(ext,
                           "inode %" PRIu64 ": its %" PRIu64
                           " bytes are to lie in the inode, whose attribute system.data is too "
                           "short or makes no sense",
                           inode->ino, inode->size);
    return room;
}

int ext_inline_contents(struct inode *inode, char *data) {
    int64_t room = inline_room(inode, data);
    if (room >= 0)
        memset(data + inode->size, 0, PAGE_SIZE_BYTES - inode->size);
    return room < 0 ? (int)room : 0;
}

int ext_inline_load(struct inode *inode, const struct data_range *range) {
    char data[PAGE_SIZE_BYTES];
    int rc = range->offset == 0 ? ext_inline_contents(inode, data) : 0;
    for (int i = 0; rc == 0 && i < range->vector_count; i++)
        memset(range->vector[i].iov_base, 0, range->vector[i].iov_len);
    if (rc == 0 && range->offset == 0)
        memcpy(range->vector[0].iov_base, data, PAGE_SIZE_BYTES);
    return rc;
}

int ext_inline_store(struct inode *inode, const struct data_range *range) {
    char data[PAGE_SIZE_BYTES] = {0};
    if (range->offset == 0)
        memcpy(data, range->vector[0].iov_base,
               inode->size < PAGE_SIZE_BYTES ? inode->size : PAGE_SIZE_BYTES);
    return range->offset == 0 ? inline_write(inode, data) : 0;
}

int ext_inline_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    int64_t room = inline_room(inode, NULL);
    if (room < 0)
        return (int)room;
    if (length > (uint64_t)room || offset > (uint64_t)room - length)
        return ext_inline_convert(inode);
    ext_order_data(inode);
    return 1;
}

int ext_inline_truncate(struct inode *inode, uint64_t size) {
    char data[PAGE_SIZE_BYTES];
    int64_t room = inline_room(inode, data);
    if (room < 0)
        return (int)room;
    if (size > (uint64_t)room)
        return ext_inline_convert(inode);
    if (size >= inode->size || S_ISDIR(inode->mode)) /* which is being freed */
        return 0;
    memset(data + size, 0, PAGE_SIZE_BYTES - size);
    return inline_write(inode, data);
}

/* --- directories -------------------------------------------------------------------------------
 */

struct filling { /* a block, from its start on */
    char *block;
    uint32_t used, last; /* bytes; where the last entry begins */
    uint32_t room;
};

/* Copies the entries in use of one area. */
static const char *filling_add(struct filling *filling, const char *area, uint32_t size) {
    const struct ext_disk_dirent *entry;
    for (uint32_t at = 0; at < size; at += le16_load(entry->rec_len)) {
        entry = (const void *)(area + at);
        uint32_t needed = size - at < EXT_DIRENT_MIN ? 0 : ext_dirent_size(entry->name_len);
        if (needed == 0 || le16_load(entry->rec_len) < EXT_DIRENT_MIN ||
            le16_load(entry->rec_len) > size - at || needed > le16_load(entry->rec_len))
            return "an entry in the inode reaches beyond its place";
        if (le32_load(entry->inode) == 0)
            continue;
        if (needed > filling->room - filling->used)
            return "there is more in the inode than fits in a block";
        struct ext_disk_dirent *copy = (void *)(filling->block + filling->used);
        memcpy(copy, entry, sizeof(*entry) + entry->name_len);
        le16_store(&copy->rec_len, (uint16_t)needed);
        filling->last = filling->used;
        filling->used += needed;
    }
    return NULL;
}

const char *ext_inline_dir_block(struct ext *ext, uint64_t ino, const struct ext_disk_inode *record,
                                 char *block) {
    char data[PAGE_SIZE_BYTES];
    struct filling filling = {
        .block = block,
        .used = 2 * EXT_DIRENT_MIN,
        .last = EXT_DIRENT_MIN,
        .room = ext_dir_block_room(&ext->geometry),
    };
    le32 parent;
    int64_t size = ext_inline_read(ext, record, data);
    if (size < 0)
        return "its attribute system.data makes no sense";
    memset(block, 0, ext->geometry.block_size);
    memcpy(&parent, data, sizeof(parent));
    ext_dir_block_dots(ext, block, filling.used, ino, le32_load(parent));
    const char *fault =
        filling_add(&filling, data + INLINE_PARENT, INLINE_SLOT_BYTES - INLINE_PARENT);
    if (!fault)
        fault = filling_add(&filling, data + INLINE_SLOT_BYTES, (uint32_t)size - INLINE_SLOT_BYTES);
    struct ext_disk_dirent *last = (void *)(block + filling.last);
    le16_store(&last->rec_len, (uint16_t)(filling.room - filling.last));
    ext_dir_tail_write(&ext->geometry, block);
    return fault;
}

/* --- conversion --------------------------------------------------------------------------------
 */

static int directory_write(struct inode *dir, const char *block) {
    struct buffer *buffer;
    uint64_t logical;
    dir->size = 0;
    int rc = ext_dir_grow(dir, 1, &logical, &buffer);
    if (rc < 0)
        return rc;
    memcpy(buffer_data(buffer), block, ext_of(dir->volume)->geometry.block_size);
    ext_dir_block_changed(dir, buffer);
    buffer_put(buffer);
    return 0;
}

/* At once, and not as a buffer: from here on this is the page cache's block. */
static int file_write(struct inode *inode, const char *data) {
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    uint64_t done, block = 0, count;
    if (inode->size == 0)
        return 0;
    int rc = ext_bmap_allocate(inode, 0, 1, &done);
    if (rc == 0)
        rc = ext_bmap(inode, 0, &block, &count);
    if (rc == 0)
        rc = device_write(inode->volume->device, block << geometry->block_bits, data,
                          geometry->block_size, PURPOSE_DATA);
    return rc;
}

int ext_inline_convert(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    char data[PAGE_SIZE_BYTES];
    const uint64_t size = inode->size;
    const uint32_t flags = inode->flags;
    const struct ext_disk_extent_root slots = private->extents;
    if (!ext_is_inline(inode))
        return 0;
    bool directory = S_ISDIR(inode->mode);
    int rc = directory ? ext_dir_inline_get(inode, data) : ext_inline_contents(inode, data);
    if (rc < 0)
        return rc;
    inode->flags &= ~(uint32_t)EXT_INODE_INLINE_DATA;
    memset(private->block, 0, sizeof(private->block));
    ext_map_initialise(inode);
    rc = directory ? directory_write(inode, data) : file_write(inode, data);
    if (rc < 0) {
        (void)ext_truncate(inode, 0); /* the error to report is the first one */
        inode->size = size;
        inode->flags = flags;
        ext_inode_of(inode)->extents = slots;
        return rc;
    }
    rc = ext_xattr_contents_remove(inode);
    return rc < 0 ? rc : ext_inode_store(inode);
}

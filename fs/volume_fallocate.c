/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the page cache and the layout contract. fallocate(2) of fs/volume.h: giving a
 * file blocks before it is written, and taking ranges away. Locking: as fs/volume_data.c.
 *
 *   mode                 what it needs of the layout            without that
 *   0                    preallocate                            holes are filled with zeros
 *   KEEP_SIZE            preallocate                            the same, refused past the end
 *   PUNCH_HOLE           punch                                  refused
 *   ZERO_RANGE           punch and preallocate                  zeros are written
 *   COLLAPSE_RANGE       collapse                               refused
 *   INSERT_RANGE         insert                                 refused
 */
#include <errno.h>
#include <linux/falloc.h>

#include "fs/volume_internal.h"

struct range {
    uint64_t offset, end;
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t page_round_up(uint64_t offset) {
    return (offset + PAGE_SIZE_BYTES - 1) / PAGE_SIZE_BYTES * PAGE_SIZE_BYTES;
}

/* --- punching --------------------------------------------------------------------------------- */

/* Frees the range's whole blocks and zeroes the rest of it. May answer LAYOUT_AGAIN. Data lock
 * exclusive. */
static int punch(struct inode *inode, struct range range) {
    struct volume *volume = inode->volume;
    /* The whole last block goes if all of it that is in the file does. Nothing is cached behind. */
    uint64_t file_end = page_round_up(inode->size);
    uint64_t cached_end = smaller(range.end, file_end);
    int error = data_may_change(inode, 0);

    if (!volume->layout->preallocate) /* then nothing is stored behind, either */
        range.end = cached_end;
    if (error || range.offset >= range.end)
        return error;
    /* The parts of pages that stay are read before their blocks go; the layout may refuse. */
    if (range.offset < cached_end)
        error = page_cache_prepare(inode, cached_end - range.offset, range.offset);
    if (!error)
        error = volume_change_begin(volume);
    if (error)
        return error;
    int result = volume->layout->punch(inode, range.offset, range.end - range.offset);
    if (result >= 0 && range.offset < inode->size)
        data_modified(inode);
    else if (result >= 0)
        inode_mark_dirty(inode); /* the contents are the same, where they lie is not */
    result = volume_change_end(volume, result);
    if (result >= 0 && range.offset < cached_end)
        error = page_cache_zero(inode, range.offset, cached_end - range.offset);
    return error ? error : result;
}

static int punch_range(struct inode *inode, struct range range) {
    bool tried = false;
    int error;

    if (!inode->volume->layout->punch)
        return -EOPNOTSUPP;
    do {
        error = data_lock(inode);
        if (error)
            return error;
        error = punch(inode, range);
        data_unlock(inode);
    } while (error == LAYOUT_AGAIN || commit_for_space(inode->volume, error, &tried));
    return error;
}

/* --- preallocating, where the format can tell unwritten blocks ---------------------------------
 */

/* The file is to be at least `size` bytes long. Data lock exclusive. */
static int extend(struct inode *inode, uint64_t size) {
    struct volume *volume = inode->volume;

    if (size <= inode->size)
        return 0;
    int error = page_cache_prepare(inode, 0, size);
    if (!error)
        error = volume_change_begin(volume);
    if (error)
        return error;
    inode->size = size;
    data_modified(inode);
    return volume_change_end(volume, 0);
}

/* As much from the range's beginning as the layout gives at once, and takes it off. Data lock
 * exclusive. */
static int preallocate(struct inode *inode, struct range *range) {
    struct volume *volume = inode->volume;
    int error = volume_change_begin(volume);

    if (error)
        return error;
    int64_t granted = volume->layout->preallocate(inode, range->offset, range->end - range->offset);
    if (granted > 0) {
        data_modified(inode);
        range->offset += (uint64_t)granted;
    } else {
        error = granted < 0 ? (int)granted : -ENOSPC;
    }
    return volume_change_end(volume, error);
}

static int preallocate_range(struct inode *inode, struct range range, bool keep_size) {
    bool tried = false;
    int error;

    do {
        error = data_lock(inode);
        if (error)
            return error;
        error = data_may_change(inode, UINT64_MAX);
        if (!error)
            error = preallocate(inode, &range);
        if (!error && !keep_size && range.offset == range.end)
            error = extend(inode, range.end);
        data_unlock(inode);
    } while ((!error && range.offset < range.end) ||
             commit_for_space(inode->volume, error, &tried));
    return error;
}

/* --- preallocating by writing zeros ------------------------------------------------------------
 */

/* The first piece of the range that is a hole; an empty range: there is none. */
static int next_hole(struct inode *inode, struct range *range) {
    while (range->offset < range->end) {
        struct extent extent;
        int error = volume_map(inode, range->offset, &extent);

        if (error)
            return error;
        uint64_t extent_end = extent.offset + extent.length;
        if (extent.flags & EXTENT_HOLE) {
            if (extent_end > range->offset && extent_end < range->end)
                range->end = extent_end;
            return 0;
        }
        range->offset = smaller(extent_end, range->end);
    }
    return 0;
}

static int write_zeros(struct inode *inode, struct range range) {
    if (range.offset >= range.end)
        return 0;
    uint64_t length = range.end - range.offset;
    int64_t result = data_write_pieces(inode, NULL, length, range.offset);

    if (result < 0)
        return (int)result;
    return (uint64_t)result < length ? -ENOSPC : 0;
}

static int fill_holes(struct inode *inode, struct range range) {
    while (range.offset < range.end) {
        struct range hole = range;
        int error = next_hole(inode, &hole);

        if (!error)
            error = write_zeros(inode, hole);
        if (error)
            return error;
        range.offset = hole.end;
    }
    return 0;
}

/* What is a hole only because its pages are to be stored is none. */
static int holes_settle(struct inode *inode) {
    if (!inode->volume->store_changes)
        return 0;
    int error = data_lock(inode);
    if (error)
        return error;
    error = page_cache_flush(inode, false);
    data_unlock(inode);
    return error;
}

/* -ENOSPC where there is clearly no room for all of the range: a disk that is full of zeros, which
 * a log does not even give back at once, would be of use to nobody. */
static int room_to_fill(struct inode *inode, struct range range) {
    struct attributes attributes;
    struct volume_usage usage;
    int error = volume_statfs(inode->volume, &usage);

    if (error)
        return error;
    volume_getattr(inode, &attributes);
    uint64_t length = range.end - range.offset, has = attributes.sectors * 512;
    uint64_t needed = length - smaller(length, has);
    return needed / usage.block_size > usage.free ? -ENOSPC : 0;
}

static int fill_range(struct inode *inode, struct range range, bool keep_size, bool zero) {
    struct attributes attributes;

    volume_getattr(inode, &attributes);
    /* Blocks behind the end would keep their old bytes until the file grows over them. */
    if (keep_size && range.end > attributes.size)
        return -EOPNOTSUPP;
    int error = holes_settle(inode);
    if (!error)
        error = room_to_fill(inode, range);
    if (!error)
        error = zero ? write_zeros(inode, range) : fill_holes(inode, range);
    if (error)
        return error;
    error = data_lock(inode);
    if (error)
        return error;
    if (range.end > inode->size)
        error = data_truncate(inode, range.end);
    data_unlock(inode);
    return error;
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Collapses, which may answer LAYOUT_AGAIN, or inserts; size: the file's afterwards. Data lock
 * exclusive. */
static int shift(struct inode *inode, struct range range, uint64_t size,
                 int (*move)(struct inode *inode, uint64_t offset, uint64_t length)) {
    struct volume *volume = inode->volume;
    int error = page_cache_flush(inode, true);

    if (error)
        return error;
    page_cache_truncate(inode, range.offset / PAGE_SIZE_BYTES * PAGE_SIZE_BYTES);
    error = volume_change_begin(volume);
    if (error)
        return error;
    error = move(inode, range.offset, range.end - range.offset);
    if (!error)
        inode->size = size;
    if (error >= 0)
        data_modified(inode);
    return volume_change_end(volume, error);
}

static int shift_locked(struct inode *inode, struct range range, bool collapse) {
    const struct volume *volume = inode->volume;
    uint64_t length = range.end - range.offset;
    uint32_t block = volume->buffers ? buffer_block_size(volume->buffers) : PAGE_SIZE_BYTES;
    int error = data_may_change(inode, 0);

    if (error)
        return error;
    if (range.offset % block != 0 || length % block != 0 ||
        (collapse ? range.end : range.offset) >= inode->size)
        return -EINVAL;
    if (collapse)
        return shift(inode, range, inode->size - length, volume->layout->collapse);
    if (length > volume->limits.file_size_max - inode->size)
        return -EFBIG;
    return shift(inode, range, inode->size + length, volume->layout->insert);
}

static int shift_range(struct inode *inode, struct range range, bool collapse) {
    const struct layout *layout = inode->volume->layout;
    bool tried = false;
    int error;

    if (!(collapse ? layout->collapse : layout->insert))
        return -EOPNOTSUPP;
    do {
        error = data_lock(inode);
        if (error)
            return error;
        error = shift_locked(inode, range, collapse);
        data_unlock(inode);
    } while (error == LAYOUT_AGAIN || commit_for_space(inode->volume, error, &tried));
    return error;
}

/* ---------------------------------------------------------------------------------------------- */

static int dispatch(struct inode *inode, int mode, struct range range) {
    const struct layout *layout = inode->volume->layout;
    bool keep_size = mode & FALLOC_FL_KEEP_SIZE, zero = mode & FALLOC_FL_ZERO_RANGE;

    switch (mode) {
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
        return punch_range(inode, range);
    case FALLOC_FL_COLLAPSE_RANGE:
    case FALLOC_FL_INSERT_RANGE:
        return shift_range(inode, range, mode == FALLOC_FL_COLLAPSE_RANGE);
    case 0:
    case FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
        break;
    default:
        return -EOPNOTSUPP;
    }
    if (range.end > inode->volume->limits.file_size_max)
        return -EFBIG;
    if (!layout->preallocate || (zero && !layout->punch))
        return fill_range(inode, range, keep_size, zero);
    /* Zeroing, too, begins with it: what cannot be done is refused while the bytes are still there.
     */
    int error = preallocate_range(inode, range, keep_size || zero);
    if (error == -EOPNOTSUPP)
        return fill_range(inode, range, keep_size, zero);
    if (error || !zero)
        return error;
    error = punch_range(inode, range);
    return error ? error : preallocate_range(inode, range, keep_size);
}

int volume_fallocate(struct inode *inode, int mode, uint64_t offset, uint64_t length) {
    if (length == 0)
        return -EINVAL;
    if (offset > INT64_MAX || length > INT64_MAX - offset)
        return -EFBIG;
    int error = dispatch(inode, mode, (struct range){offset, offset + length});
    volume_end_operation(inode->volume);
    return error;
}

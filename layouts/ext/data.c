/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over indirect.c and extent*.c; the core's map, truncate and punch.
 *
 * Where an inode's blocks are, however it maps them: the inode's flag EXT_INODE_EXTENTS decides,
 * one inode after the other, and both kinds live on one volume. Nobody above asks which it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "layouts/ext/ext.h"

bool ext_has_block_map(struct inode *inode) {
    if (ext_is_inline(inode))
        return false;
    return S_ISREG(inode->mode) || S_ISDIR(inode->mode) ||
           (S_ISLNK(inode->mode) && !ext_symlink_is_fast(inode));
}

static bool has_extents(const struct inode *inode) {
    return inode->flags & EXT_INODE_EXTENTS;
}

void ext_map_initialise(struct inode *inode) {
    if (!(ext_of(inode->volume)->geometry.incompat & EXT_INCOMPAT_EXTENTS))
        return;
    inode->flags |= EXT_INODE_EXTENTS;
    ext_extent_initialise(ext_inode_of(inode));
}

/* --- look-up --------------------------------------------------------------------------------- */

int ext_lookup(struct inode *inode, uint64_t logical, struct ext_run *run) {
    if (has_extents(inode))
        return ext_extent_lookup(inode, logical, run);
    *run = (struct ext_run){.logical = logical};
    return ext_indirect_bmap(inode, logical, &run->physical, &run->count);
}

int ext_bmap(struct inode *inode, uint64_t logical, uint64_t *physical, uint64_t *count) {
    struct ext_run run;
    int rc = ext_lookup(inode, logical, &run);
    if (rc < 0)
        return rc;
    *physical = run.unwritten ? 0 : run.physical;
    *count = run.count;
    return 0;
}

/* Does `next` go on where `run` ends? */
static bool run_continues(const struct ext_run *run, const struct ext_run *next) {
    return next->physical == (run->physical ? run->physical + run->count : 0) &&
           next->unwritten == run->unwritten;
}

/* Runs are joined across the borders of extents and indirect blocks, as long as they go on. */
int ext_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    uint64_t logical = offset >> geometry->block_bits;
    struct ext_run run = {.logical = logical}, next;
    int rc = 0;

    if (ext_is_inline(inode) && offset < inode->size) {
        *extent = (struct extent){.length = inode->size, .flags = EXTENT_ENCODED};
        return 0;
    }
    while (ext_has_block_map(inode)) {
        rc = ext_lookup(inode, logical + run.count, &next);
        if (rc < 0)
            break;
        if (run.count == 0)
            run = next;
        else if (run_continues(&run, &next))
            run.count += next.count;
        else
            break;
    }
    if (run.count == 0 && rc < 0 && rc != -EFBIG)
        return rc;
    /* Past the last block that the map can hold there is nothing. */
    if (run.count == 0)
        run.count = 1;
    *extent = (struct extent){
        .offset = logical << geometry->block_bits,
        .length = run.count << geometry->block_bits,
        .device_offset = run.physical << geometry->block_bits,
        .flags = !run.physical   ? EXTENT_HOLE
                 : run.unwritten ? EXTENT_UNWRITTEN
                                 : 0,
    };
    return 0;
}

int ext_blocks_each(struct inode *inode, ext_run_visit visit, void *context) {
    if (!ext_has_block_map(inode))
        return 0;
    return has_extents(inode) ? ext_extent_each(inode, visit, context)
                              : ext_indirect_each(inode, visit, context);
}

/* --- allocation ------------------------------------------------------------------------------ */

int ext_bmap_allocate(struct inode *inode, uint64_t logical, uint64_t count, uint64_t *done) {
    return has_extents(inode) ? ext_extent_allocate(inode, logical, count, false, done)
                              : ext_indirect_allocate(inode, logical, count, done);
}

/* --- removal --------------------------------------------------------------------------------- */

/* LAYOUT_AGAIN when the transaction is full and something may be left. */
static int blocks_remove(struct inode *inode, uint64_t from, uint64_t to) {
    if (!ext_has_block_map(inode) || from >= to)
        return 0;
    ext_window_release(inode);
    int rc = ext_store_forget(inode, from, to);
    if (rc < 0)
        return rc;
    return has_extents(inode) ? ext_extent_remove(inode, from, to)
                              : ext_indirect_remove(inode, from, to);
}

int ext_truncate(struct inode *inode, uint64_t size) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    uint64_t from = (size >> geometry->block_bits) + ((size & (geometry->block_size - 1)) != 0);
    if (writer && writer->stored_size > size)
        writer->stored_size = size;
    int rc = ext_is_inline(inode) ? ext_inline_truncate(inode, size) : 0, error = 0;
    /* What was preallocated stays when the file grows over it. */
    bool grows = has_extents(inode) && size > inode->size;
    if (rc == 0 && !grows)
        rc = blocks_remove(inode, from, UINT64_MAX);
    /* The rest is cut by the next mount, if not by us. */
    if (rc == LAYOUT_AGAIN)
        error = ext_orphan_add(inode);
    else if (rc == 0 && inode->nlink > 0)
        error = ext_orphan_remove(inode);
    return error ? error : rc;
}

int ext_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    uint64_t end = length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
    uint64_t from = (offset >> geometry->block_bits) + ((offset & (geometry->block_size - 1)) != 0);
    return blocks_remove(inode, from, end >> geometry->block_bits);
}

/* --- limits ---------------------------------------------------------------------------------- */

/* As Linux computes it (Documentation/filesystems/ext4/blockgroup.rst: 16 TiB with 4 KiB blocks):
 * logical blocks are 32 bits, one less so that a length fits as well; without huge_file i_blocks
 * counts sectors in 32 bits. */
static uint64_t extents_size_max(const struct ext_geometry *geometry) {
    uint64_t blocks = UINT32_MAX;
    if (!(geometry->ro_compat & EXT_RO_COMPAT_HUGE_FILE))
        blocks >>= geometry->block_bits - 9;
    return blocks << geometry->block_bits;
}

uint64_t ext_file_size_max(const struct ext *ext) {
    /* large_file is announced when the first such file is stored; revision 0 has no features. */
    uint64_t indirect =
        ext_indirect_size_max(&ext->geometry, le32_load(ext->super.s_rev_level) > 0);
    uint64_t extents =
        ext->geometry.incompat & EXT_INCOMPAT_EXTENTS ? extents_size_max(&ext->geometry) : 0;
    return indirect > extents ? indirect : extents;
}

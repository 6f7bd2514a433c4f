/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. A body of tails becomes one of extents. Interface:
 * layouts/reiser4/body.h.
 *
 * It is done in one atom, so that a crash leaves the one or the other. The bytes go to their blocks
 * at once; pending blocks are left as holes, since they will be stored soon.
 */
#include <errno.h>
#include <stdlib.h>

#include "layouts/reiser4/body.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Blocks [from, to) of the file, whose bytes are these. */
static int place(struct inode *inode, uint64_t from, uint64_t to, const uint8_t *bytes) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_run run;
    int error = 0;

    for (; from < to && !error; from += run.count) {
        error = reiser4_space_allocate(r4, 0, to - from, &run);
        if (!error)
            error = reiser4_extent_set(inode, from, from + run.count, run.block);
        if (!error)
            error = device_write(inode->volume->device, run.block * REISER4_BLOCK_SIZE,
                                 bytes + from * REISER4_BLOCK_SIZE,
                                 (uint32_t)(run.count * REISER4_BLOCK_SIZE), PURPOSE_DATA);
    }
    return error;
}

/* What is not pending of the `blocks` of the file. */
static int place_all(struct inode *inode, uint64_t blocks, const uint8_t *bytes) {
    const struct block_set *pending = &reiser4_inode_of(inode)->pending_blocks;
    uint64_t at = 0, start, end;
    int error = 0;

    while (at < blocks && !error) {
        if (!block_set_next(pending, at, &start, &end))
            start = end = blocks;
        error = place(inode, at, smaller(start, blocks), bytes);
        at = end;
    }
    return error;
}

int reiser4_convert_to_extents(struct inode *inode) {
    struct reiser4_inode *private = reiser4_inode_of(inode);
    uint64_t length = private->bytes;
    uint64_t blocks = length / REISER4_BLOCK_SIZE + (length % REISER4_BLOCK_SIZE != 0);
    uint8_t *bytes = calloc(blocks, REISER4_BLOCK_SIZE);

    if (!bytes)
        return -ENOMEM;
    int error = reiser4_tail_read(inode, 0, length, bytes);
    if (!error)
        error = reiser4_tail_cut(inode, 0);
    private->form = REISER4_FORM_EXTENTS;
    if (!error)
        error = place_all(inode, blocks, bytes);
    free(bytes);
    return error;
}

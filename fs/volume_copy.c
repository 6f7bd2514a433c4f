/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the rest of the file API. copy_file_range(2) of fs/volume.h.
 *
 * The source is walked piece by piece, each all data or all hole. No two data locks are held at a
 * time: as with read(2) and write(2), who changes a file while it is copied gets some of both.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/volume_internal.h"

#define COPY_PIECE (1u << 20)

struct copy {
    struct inode *source, *target;
    uint64_t from, to; /* where the next byte comes from and goes to */
    char *buffer;      /* COPY_PIECE bytes; NULL until data is met */
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Up to `length` bytes of data. The bytes copied, 0 at the source's end. */
static int64_t copy_data(struct copy *copy, uint64_t length) {
    if (!copy->buffer)
        copy->buffer = malloc(COPY_PIECE);
    if (!copy->buffer)
        return -ENOMEM;
    int64_t got = volume_read(copy->source, copy->buffer, smaller(length, COPY_PIECE), copy->from);
    return got > 0 ? data_write_pieces(copy->target, copy->buffer, (uint64_t)got, copy->to) : got;
}

/* Makes [copy->to, end) of the target a hole inside the file. */
static int copy_hole(struct copy *copy, uint64_t end) {
    struct inode *target = copy->target;
    struct attributes attributes;
    int error = 0;

    volume_getattr(target, &attributes);
    uint64_t inside = smaller(end, attributes.size);
    if (copy->to < inside)
        error = volume_fallocate(target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, copy->to,
                                 inside - copy->to);
    if (error == -EOPNOTSUPP) {
        int64_t written = data_write_pieces(target, NULL, inside - copy->to, copy->to);
        error = written < 0 ? (int)written : copy->to + (uint64_t)written < inside ? -ENOSPC : 0;
    }
    if (!error)
        error = data_lock(target);
    if (error)
        return error;
    if (end > target->size)
        error = data_truncate(target, end);
    data_unlock(target);
    return error;
}

/* The next piece. The bytes copied, 0 at the source's end. */
static int64_t copy_piece(struct copy *copy, uint64_t length) {
    int64_t data = volume_seek(copy->source, copy->from, SEEK_DATA);

    if (data == (int64_t)copy->from) {
        int64_t hole = volume_seek(copy->source, copy->from, SEEK_HOLE);
        if (hole < 0)
            return hole == -ENXIO ? 0 : hole;
        return copy_data(copy, smaller(length, (uint64_t)hole - copy->from));
    }
    if (data < 0 && data != -ENXIO)
        return data;
    struct attributes attributes;
    volume_getattr(copy->source, &attributes);
    uint64_t end = data < 0 ? attributes.size : (uint64_t)data;
    if (end <= copy->from) /* it has been cut meanwhile */
        return 0;
    length = smaller(length, end - copy->from);
    int error = copy_hole(copy, copy->to + length);
    return error ? error : (int64_t)length;
}

static int64_t copy_all(struct copy *copy, uint64_t length) {
    uint64_t done = 0;

    while (done < length) {
        int64_t result = copy_piece(copy, length - done);
        if (result < 0)
            return done > 0 ? (int64_t)done : result;
        if (result == 0)
            break;
        copy->from += (uint64_t)result;
        copy->to += (uint64_t)result;
        done += (uint64_t)result;
    }
    return (int64_t)done;
}

static int copy_check(const struct copy *copy, uint64_t length) {
    const struct inode *ends[] = {copy->source, copy->target};

    for (int i = 0; i < 2; i++)
        if (!S_ISREG(ends[i]->mode))
            return S_ISDIR(ends[i]->mode) ? -EISDIR : -EINVAL;
    if (copy->source->volume != copy->target->volume)
        return -EXDEV;
    if (copy->from > INT64_MAX - length || copy->to > INT64_MAX - length)
        return -EOVERFLOW;
    return 0;
}

static bool copy_overlaps(const struct copy *copy, uint64_t length) {
    return copy->source == copy->target && copy->from < copy->to + length &&
           copy->to < copy->from + length;
}

int64_t volume_copy(struct inode *source, uint64_t source_offset, struct inode *target,
                    uint64_t target_offset, uint64_t length) {
    struct copy copy = {source, target, source_offset, target_offset, NULL};
    struct attributes attributes;

    if (length > INT64_MAX)
        return -EOVERFLOW;
    int64_t result = copy_check(&copy, length);
    if (result)
        return result;
    uint64_t room = target->volume->limits.file_size_max;
    if (length > 0 && target_offset >= room)
        return -EFBIG;
    volume_getattr(source, &attributes);
    if (source_offset >= attributes.size)
        return 0;
    length = smaller(smaller(length, attributes.size - source_offset), room - target_offset);
    /* What is asked for beyond the source's end does not count. */
    if (copy_overlaps(&copy, length))
        return -EINVAL;
    result = copy_all(&copy, length);
    free(copy.buffer);
    volume_end_operation(target->volume);
    return result;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs, over zlib and libdeflate. Raw deflate (RFC 1951) as Reiser4 writes it: window of
 * 2^15 bytes, memLevel 9, level 1. zlib compresses, since these are its bytes; libdeflate, which
 * takes half the time, decompresses. Interface: codecs/codec.h.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "codecs/codec.h"

#define WINDOW_BITS 15
#define MEM_LEVEL   9

struct codec_workspace {
    uint32_t most;
    z_stream deflater;
    struct libdeflate_decompressor *inflater;
};

/* Blocks that do not shrink are stored, with five bytes each before it: zlib's bound for any
 * parameters. */
static uint32_t gzip1_bound(uint32_t length) {
    return length + (length + 7) / 8 + (length + 63) / 64 + 5;
}

static void gzip1_close(struct codec_workspace *workspace) {
    if (!workspace)
        return;
    (void)deflateEnd(&workspace->deflater); /* it may be in the middle of a stream */
    if (workspace->inflater)
        libdeflate_free_decompressor(workspace->inflater);
    free(workspace);
}

static int gzip1_open(int level, uint32_t most, struct codec_workspace **result) {
    int error = codec_check(&codec_gzip1, level, most);

    if (error)
        return error;
    struct codec_workspace *workspace = calloc(1, sizeof(*workspace));
    if (!workspace)
        return -ENOMEM;
    workspace->most = most;
    workspace->inflater = libdeflate_alloc_decompressor();
    if (!workspace->inflater || deflateInit2(&workspace->deflater, level, Z_DEFLATED, -WINDOW_BITS,
                                             MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        gzip1_close(workspace);
        return -ENOMEM;
    }
    *result = workspace;
    return 0;
}

/* All has been made, and filled the room to its last byte: zlib says so only where there is more.
 */
static bool has_ended(z_stream *stream) {
    uint8_t spare;

    stream->next_out = &spare;
    stream->avail_out = 1;
    return deflate(stream, Z_FINISH) == Z_STREAM_END && stream->avail_out == 1;
}

static int64_t gzip1_compress(struct codec_workspace *workspace, const uint8_t *plain,
                              uint32_t length, uint8_t *out, uint32_t room) {
    z_stream *stream = &workspace->deflater;

    if (length > workspace->most)
        return -EINVAL;
    if (room == 0)
        return -ENOSPC;
    (void)deflateReset(stream);
    stream->next_in = (Bytef *)(uintptr_t)plain;
    stream->avail_in = length;
    stream->next_out = out;
    stream->avail_out = room;
    if (deflate(stream, Z_FINISH) == Z_STREAM_END)
        return room - stream->avail_out;
    return stream->avail_out == 0 && has_ended(stream) ? (int64_t)room : -ENOSPC;
}

static int gzip1_decompress(struct codec_workspace *workspace, const uint8_t *stored,
                            uint32_t stored_length, uint8_t *plain, uint32_t length) {
    size_t taken, made;

    if (length > workspace->most)
        return -EINVAL;
    enum libdeflate_result result = libdeflate_deflate_decompress_ex(
        workspace->inflater, stored, stored_length, plain, length, &taken, &made);
    return result == LIBDEFLATE_SUCCESS && taken == stored_length && made == length ? 0 : -EUCLEAN;
}

const struct codec codec_gzip1 = {
    .name = "gzip1",
    .description = "raw deflate",
    .level = 1,
    .level_min = 1,
    .level_max = 9,
    .bound = gzip1_bound,
    .open = gzip1_open,
    .close = gzip1_close,
    .compress = gzip1_compress,
    .decompress = gzip1_decompress,
};

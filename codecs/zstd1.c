/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs, over libzstd. One zstd frame (RFC 8878) whose header has neither the length nor a
 * checksum, as Reiser4 writes it at level 3. Interface: codecs/codec.h.
 *
 * The library wants more room than it then fills, and what it makes depends on that: where there is
 * less than its bound, it writes to the workspace first.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "codecs/codec.h"

struct codec_workspace {
    uint32_t most;
    uint8_t *out; /* owned; of bound(most) bytes */
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
};

static uint32_t zstd1_bound(uint32_t length) {
    return (uint32_t)ZSTD_compressBound(length);
}

static void zstd1_close(struct codec_workspace *workspace) {
    if (!workspace)
        return;
    (void)ZSTD_freeCCtx(workspace->compressor);
    (void)ZSTD_freeDCtx(workspace->decompressor);
    free(workspace->out);
    free(workspace);
}

static bool set_parameters(ZSTD_CCtx *compressor, int level) {
    return compressor &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, level)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 0)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 0));
}

static int zstd1_open(int level, uint32_t most, struct codec_workspace **result) {
    int error = codec_check(&codec_zstd1, level, most);

    if (error)
        return error;
    struct codec_workspace *workspace = calloc(1, sizeof(*workspace));
    if (!workspace)
        return -ENOMEM;
    workspace->most = most;
    workspace->out = malloc(zstd1_bound(most));
    workspace->compressor = ZSTD_createCCtx();
    workspace->decompressor = ZSTD_createDCtx();
    if (!workspace->out || !workspace->decompressor ||
        !set_parameters(workspace->compressor, level)) {
        zstd1_close(workspace);
        return -ENOMEM;
    }
    *result = workspace;
    return 0;
}

static int64_t zstd1_compress(struct codec_workspace *workspace, const uint8_t *plain,
                              uint32_t length, uint8_t *out, uint32_t room) {
    uint32_t bound = zstd1_bound(length);
    bool direct = room >= bound;

    if (length > workspace->most)
        return -EINVAL;
    size_t size =
        ZSTD_compress2(workspace->compressor, direct ? out : workspace->out, bound, plain, length);
    if (ZSTD_isError(size))
        return -ENOMEM; /* nothing else can be */
    if (size > room)
        return -ENOSPC;
    if (!direct)
        memcpy(out, workspace->out, size);
    return (int64_t)size;
}

/* Frames of the library's other kinds are none of ours. */
static bool is_one_frame(const uint8_t *stored, uint32_t length) {
    return length >= 4 && stored[0] == 0x28 && stored[1] == 0xb5 && stored[2] == 0x2f &&
           stored[3] == 0xfd && ZSTD_findFrameCompressedSize(stored, length) == length;
}

static int zstd1_decompress(struct codec_workspace *workspace, const uint8_t *stored,
                            uint32_t stored_length, uint8_t *plain, uint32_t length) {
    if (length > workspace->most)
        return -EINVAL;
    if (!is_one_frame(stored, stored_length))
        return -EUCLEAN;
    size_t made =
        ZSTD_decompressDCtx(workspace->decompressor, plain, length, stored, stored_length);
    if (made == length)
        return 0;
    return ZSTD_isError(made) && ZSTD_getErrorCode(made) == ZSTD_error_memory_allocation ? -ENOMEM
                                                                                         : -EUCLEAN;
}

const struct codec codec_zstd1 = {
    .name = "zstd1",
    .description = "a zstd frame",
    .level = 3,
    .level_min = 1,
    .level_max = 19,
    .bound = zstd1_bound,
    .open = zstd1_open,
    .close = zstd1_close,
    .compress = zstd1_compress,
    .decompress = zstd1_decompress,
};

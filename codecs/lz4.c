/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs, over liblz4. One LZ4 block. Level 1 is the fast compressor; the others are LZ4 HC,
 * whose blocks are for the same decoder. Interface: codecs/codec.h.
 */
#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

#include "codecs/codec.h"

struct codec_workspace {
    int level;
    uint32_t most;
    void *state; /* owned; the library's */
};

static uint32_t lz4_bound(uint32_t length) {
    return (uint32_t)LZ4_COMPRESSBOUND(length);
}

static void lz4_close(struct codec_workspace *workspace) {
    if (!workspace)
        return;
    free(workspace->state);
    free(workspace);
}

static int lz4_open(int level, uint32_t most, struct codec_workspace **result) {
    int error = codec_check(&codec_lz4, level, most);

    if (error)
        return error;
    struct codec_workspace *workspace = calloc(1, sizeof(*workspace));
    if (!workspace)
        return -ENOMEM;
    workspace->level = level;
    workspace->most = most;
    workspace->state = malloc((size_t)(level == 1 ? LZ4_sizeofState() : LZ4_sizeofStateHC()));
    if (!workspace->state) {
        lz4_close(workspace);
        return -ENOMEM;
    }
    *result = workspace;
    return 0;
}

static int64_t lz4_compress(struct codec_workspace *workspace, const uint8_t *plain,
                            uint32_t length, uint8_t *out, uint32_t room) {
    const char *from = (const char *)plain;
    int most = room > INT32_MAX ? INT32_MAX : (int)room;

    if (length > workspace->most)
        return -EINVAL;
    int made =
        workspace->level == 1
            ? LZ4_compress_fast_extState(workspace->state, from, (char *)out, (int)length, most, 1)
            : LZ4_compress_HC_extStateHC(workspace->state, from, (char *)out, (int)length, most,
                                         workspace->level);
    return made > 0 ? made : -ENOSPC;
}

static int lz4_decompress(struct codec_workspace *workspace, const uint8_t *stored,
                          uint32_t stored_length, uint8_t *plain, uint32_t length) {
    if (length > workspace->most)
        return -EINVAL;
    if (stored_length > lz4_bound(CODEC_PLAIN_MAX))
        return -EUCLEAN;
    int made =
        LZ4_decompress_safe((const char *)stored, (char *)plain, (int)stored_length, (int)length);
    return made >= 0 && (uint32_t)made == length ? 0 : -EUCLEAN;
}

const struct codec codec_lz4 = {
    .name = "lz4",
    .description = "an LZ4 block; levels above 1: LZ4 HC",
    .level = 1,
    .level_min = 1,
    .level_max = 12,
    .bound = lz4_bound,
    .open = lz4_open,
    .close = lz4_close,
    .compress = lz4_compress,
    .decompress = lz4_decompress,
};

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs, over liblzo2. One LZO1X block. Level 1 is LZO1X-1, as in Reiser4; the others are
 * LZO1X-999, which take long and make blocks for the same decoder. Interface: codecs/codec.h.
 *
 * LZO1X-1 does not look where its output ends: where there is less room than its bound, it writes
 * to the workspace first.
 */
#include <errno.h>
#include <lzo/lzo1x.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"

struct codec_workspace {
    int level;
    uint32_t most;
    uint8_t *out;    /* owned; of bound(most) bytes */
    uint8_t *tables; /* owned; the library's */
};

/* The documented worst case of both compressors. */
static uint32_t lzo1_bound(uint32_t length) {
    return length + length / 16 + 64 + 3;
}

static void lzo1_close(struct codec_workspace *workspace) {
    if (!workspace)
        return;
    free(workspace->out);
    free(workspace->tables);
    free(workspace);
}

static int lzo1_open(int level, uint32_t most, struct codec_workspace **result) {
    int error = codec_check(&codec_lzo1, level, most);

    if (error)
        return error;
    if (lzo_init() != LZO_E_OK) /* the library was built for other types than this program */
        return -EINVAL;
    struct codec_workspace *workspace = calloc(1, sizeof(*workspace));
    if (!workspace)
        return -ENOMEM;
    workspace->level = level;
    workspace->most = most;
    workspace->out = malloc(lzo1_bound(most));
    /* Cleared once: what a block before left in the tables does not change the next one. */
    workspace->tables = calloc(1, level == 1 ? LZO1X_1_MEM_COMPRESS : LZO1X_999_MEM_COMPRESS);
    if (!workspace->out || !workspace->tables) {
        lzo1_close(workspace);
        return -ENOMEM;
    }
    *result = workspace;
    return 0;
}

static lzo_uint compress_to(struct codec_workspace *workspace, const uint8_t *plain,
                            uint32_t length, uint8_t *out) {
    lzo_uint made = 0;

    /* Neither fails. */
    if (workspace->level == 1)
        (void)lzo1x_1_compress(plain, length, out, &made, workspace->tables);
    else
        (void)lzo1x_999_compress_level(plain, length, out, &made, workspace->tables, NULL, 0, NULL,
                                       workspace->level);
    return made;
}

static int64_t lzo1_compress(struct codec_workspace *workspace, const uint8_t *plain,
                             uint32_t length, uint8_t *out, uint32_t room) {
    if (length > workspace->most)
        return -EINVAL;
    if (room >= lzo1_bound(length))
        return (int64_t)compress_to(workspace, plain, length, out);
    lzo_uint made = compress_to(workspace, plain, length, workspace->out);
    if (made > room)
        return -ENOSPC;
    memcpy(out, workspace->out, made);
    return (int64_t)made;
}

static int lzo1_decompress(struct codec_workspace *workspace, const uint8_t *stored,
                           uint32_t stored_length, uint8_t *plain, uint32_t length) {
    lzo_uint made = length;

    if (length > workspace->most)
        return -EINVAL;
    int result = lzo1x_decompress_safe(stored, stored_length, plain, &made, NULL);
    return result == LZO_E_OK && made == length ? 0 : -EUCLEAN;
}

const struct codec codec_lzo1 = {
    .name = "lzo1",
    .description = "LZO1X-1; levels above 1: LZO1X-999",
    .level = 1,
    .level_min = 1,
    .level_max = 9,
    .bound = lzo1_bound,
    .open = lzo1_open,
    .close = lzo1_close,
    .compress = lzo1_compress,
    .decompress = lzo1_decompress,
};

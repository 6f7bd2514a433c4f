/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs. The bytes as they are: what the others are compared with. Interface:
 * codecs/codec.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"

struct codec_workspace {
    uint32_t most;
};

static uint32_t none_bound(uint32_t length) {
    return length;
}

static int none_open(int level, uint32_t most, struct codec_workspace **workspace) {
    int error = codec_check(&codec_none, level, most);

    if (error)
        return error;
    *workspace = malloc(sizeof(**workspace));
    if (!*workspace)
        return -ENOMEM;
    (*workspace)->most = most;
    return 0;
}

static void none_close(struct codec_workspace *workspace) {
    free(workspace);
}

static int64_t none_compress(struct codec_workspace *workspace, const uint8_t *plain,
                             uint32_t length, uint8_t *out, uint32_t room) {
    if (length > workspace->most)
        return -EINVAL;
    if (length > room)
        return -ENOSPC;
    memcpy(out, plain, length);
    return length;
}

static int none_decompress(struct codec_workspace *workspace, const uint8_t *stored,
                           uint32_t stored_length, uint8_t *plain, uint32_t length) {
    if (length > workspace->most)
        return -EINVAL;
    if (stored_length != length)
        return -EUCLEAN;
    memcpy(plain, stored, length);
    return 0;
}

const struct codec codec_none = {
    .name = "none",
    .description = "the bytes as they are",
    .bound = none_bound,
    .open = none_open,
    .close = none_close,
    .compress = none_compress,
    .decompress = none_decompress,
};

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs. All of them. Interface: codecs/codec.h.
 */
#include <errno.h>
#include <string.h>

#include "codecs/codec.h"

const struct codec *const codec_registry[] = {
    &codec_lzo1, &codec_gzip1, &codec_zstd1, &codec_lz4, &codec_none, NULL,
};

const struct codec *codec_find(const char *name) {
    for (const struct codec *const *codec = codec_registry; *codec; codec++)
        if (strcmp((*codec)->name, name) == 0)
            return *codec;
    return NULL;
}

int codec_check(const struct codec *codec, int level, uint32_t most) {
    return level >= codec->level_min && level <= codec->level_max && most <= CODEC_PLAIN_MAX
               ? 0
               : -EINVAL;
}

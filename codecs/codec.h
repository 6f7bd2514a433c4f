/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: codecs, beside fs: over the compression libraries, and nothing else. Over it: layouts that
 * compress, and the tools.
 *
 * THE CONTRACT of a codec: bytes to fewer bytes and back, from one buffer to another. One file for
 * each; codecs/registry.c lists them. A codec knows neither devices nor layouts, keeps no state but
 * in workspaces, and says nothing: its answers are exact.
 *
 *   name    stored as                                                   libraries
 *   none    the bytes
 *   lzo1    an LZO1X block                                              liblzo2
 *   gzip1   raw deflate, window of 32 KiB: no header, no checksum       zlib, libdeflate to read
 *   zstd1   a zstd frame without checksum and length                    libzstd
 *   lz4     an LZ4 block                                                liblz4
 *
 * lzo1, gzip1 and zstd1 are those of Reiser4 (docs/reiser4-format.md, "clusters"). At their default
 * levels lzo1 and gzip1 make the very bytes that its driver makes; of zstd this depends on the
 * library's version. What other levels make is read by the same decoder: a level is a choice of who
 * writes, and is not stored.
 *
 * Hostile bytes. Decompression may be given anything. It reads within its input and writes within
 * its output, and ends after time in proportion to the two.
 *
 * Locking: a workspace is used by one thread at a time; the functions are otherwise free of state.
 */
#ifndef LAYOUTFS_CODEC_H
#define LAYOUTFS_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* The most plain bytes that a workspace can be made for. */
#define CODEC_PLAIN_MAX (UINT32_C(1) << 24)

struct codec_workspace; /* each codec's own */

struct codec {
    const char *name;
    const char *description;         /* one line */
    int level, level_min, level_max; /* the default; the others trade time for size */

    /* The most bytes that compress makes of so many, at any level. At most CODEC_PLAIN_MAX are
     * asked about. */
    uint32_t (*bound)(uint32_t length);
    /* Memory and tables for compressing at `level` and for decompressing, of up to `most` plain
     * bytes at a time. -EINVAL: no such level, or `most` is over CODEC_PLAIN_MAX; -ENOMEM. */
    int (*open)(int level, uint32_t most, struct codec_workspace **workspace);
    void (*close)(struct codec_workspace *workspace); /* NULL ok */
    /* Makes of `length` plain bytes at most `room` bytes in `out`, the same ones whatever the
     * workspace has done before. How many; -ENOSPC: they do not fit (never where room is
     * bound(length)), and what is in `out` then means nothing; -EINVAL: length is over the
     * workspace's; -ENOMEM. The buffers lie apart. */
    int64_t (*compress)(struct codec_workspace *workspace, const uint8_t *plain, uint32_t length,
                        uint8_t *out, uint32_t room);
    /* The reverse: 0 when `stored`, to its last byte, stands for exactly `length` plain bytes,
     * which are in `plain` then. -EUCLEAN: it does not, and what is in `plain` means nothing;
     * -EINVAL: length is over the workspace's; -ENOMEM. The buffers lie apart. */
    int (*decompress)(struct codec_workspace *workspace, const uint8_t *stored,
                      uint32_t stored_length, uint8_t *plain, uint32_t length);
};

extern const struct codec codec_none, codec_lzo1, codec_gzip1, codec_zstd1, codec_lz4;
/* All of them, ended by NULL. */
extern const struct codec *const codec_registry[];
/* NULL: none of that name. */
const struct codec *codec_find(const char *name);

/* For the codecs: may a workspace be made so? */
int codec_check(const struct codec *codec, int level, uint32_t most);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache; under everything that changes metadata.
 *
 * The one way to change metadata: bytes of a buffer are changed, then ext_dirty is called; blocks
 * that hold metadata are given up with ext_forget.
 */
#include "layouts/ext/ext.h"

void ext_dirty(struct ext *ext, struct buffer *buffer) {
    (void)ext;
    buffer_dirty(buffer);
}

void ext_forget(struct ext *ext, uint64_t block, uint64_t count) {
    buffer_forget(ext->buffers, block, count);
}

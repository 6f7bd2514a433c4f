/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over item.h. ctail40: bytes of a stored (compressed or plain) cluster of
 * a ccreg40 file. The item's first byte is log2 of the logical cluster's size; the units are the
 * bytes that follow it.
 *
 * Invariants of a sound item (reiser4_ctail_kind.check):
 *  1. The shift is 12 to 16, the key a body's, and there is at least one byte after the shift.
 *  2. The bytes do not cross the end of the logical cluster: (offset mod cluster) + bytes is at
 * most the cluster's size. The items of a cluster follow each other from its start on. Two items of
 * one cluster in a node are one item (item.h, invariant 1): mergeable means the same cluster, and
 * that the right one starts where the left one ends.
 *
 * What the bytes mean is in cluster.h, when compressed files are read and written.
 */
#ifndef LAYOUTFS_REISER4_CTAIL_H
#define LAYOUTFS_REISER4_CTAIL_H

#include "layouts/reiser4/item.h"

#define REISER4_CLUSTER_SHIFT_MIN 12u
#define REISER4_CLUSTER_SHIFT_MAX 16u

static inline uint32_t reiser4_ctail_bytes(const struct reiser4_item *item) {
    return item->length - 1;
}
static inline uint32_t reiser4_ctail_shift(const struct reiser4_item *item) {
    return item->body[0];
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash, over fs/volume.h. A volume's whole tree as programs see it: names, types, link
 * counts, one attribute, contents. Small trees only.
 */
#ifndef LAYOUTFS_CRASH_SNAPSHOT_H
#define LAYOUTFS_CRASH_SNAPSHOT_H

#include "fs/volume.h"

#define SNAPSHOT_XATTR "user.crash"
#define NODE_PATH_MAX  48u
#define NODE_VALUE_MAX 32u

struct node {
    char path[NODE_PATH_MAX]; /* "/A/foo"; the root: "" */
    uint64_t ino;
    uint32_t mode, nlink;  /* mode 0: could not be read */
    uint64_t sectors;      /* allocated, as st_blocks */
    uint32_t value_length; /* of the attribute; 0: none */
    char value[NODE_VALUE_MAX];
    uint64_t entries; /* of a directory: a sum over names and what they mean */
    uint64_t size;    /* of contents, or of a symlink's target; a directory: 0 */
    size_t data;      /* where they begin in the snapshot's bytes */
};

/* Zeroed, it is empty and valid; filling it again reuses its memory. */
struct snapshot {
    struct node *nodes; /* owned, sorted by path */
    size_t count, room;
    unsigned char *bytes; /* owned */
    size_t used, bytes_room;
};

/* 0 or negative errno; `where` (NODE_PATH_MAX bytes) is then the path at which it failed. With
 * `where` NULL, what cannot be read is passed over. */
int snapshot_take(struct volume *volume, struct snapshot *snapshot, char *where);
void snapshot_free(struct snapshot *snapshot);

const struct node *snapshot_find(const struct snapshot *snapshot, const char *path);
/* The first name of an inode, or NULL. */
const struct node *snapshot_find_inode(const struct snapshot *snapshot, uint64_t ino);
static inline const unsigned char *node_data(const struct snapshot *snapshot,
                                             const struct node *node) {
    return snapshot->bytes + node->data;
}

/* Equal but for the size and contents of files? */
bool node_same_metadata(const struct snapshot *a, const struct node *node, const struct snapshot *b,
                        const struct node *other);
bool node_same_data(const struct snapshot *a, const struct node *node, const struct snapshot *b,
                    const struct node *other);
/* Where two trees differ in metadata: a sentence in `why` and true; false: nowhere. `a` is the tree
 * that was expected. */
bool snapshot_differs(const struct snapshot *a, const struct snapshot *b, char *why, size_t size);

#endif

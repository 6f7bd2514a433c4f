/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, below bmap.h: what bmap.c, btree.c and btree_edit.c share. Others include
 * bmap.h.
 */
#ifndef LAYOUTFS_NILFS_BTREE_H
#define LAYOUTFS_NILFS_BTREE_H

#include <errno.h>

#include "layouts/nilfs/bmap.h"

/* A node as arrays. Its bytes are changed only if it is the root or a changed block. */
struct nilfs_node {
    struct nilfs_disk_node *header;
    le64 *keys, *pointers; /* `capacity` of them */
    uint32_t capacity;
};

struct nilfs_step {
    struct nilfs_node node;
    struct nilfs_view view; /* not the root's */
    uint32_t at;            /* the child on the path; in the lowest node see nilfs_path_find */
};

/* From the root down to a node. Steps are known by their level. */
struct nilfs_path {
    struct nilfs_file *file;
    uint32_t top, bottom; /* levels of the root and of the lowest node */
    uint64_t limit;       /* first key of what follows the lowest node; UINT64_MAX: nothing does */
    struct nilfs_step step[NILFS_LEVEL_MAX];
};

static inline bool nilfs_bmap_is_tree(const struct nilfs_file *file) {
    return file->bmap.head.byte[0] & NILFS_NODE_FLAG_ROOT;
}

static inline uint32_t nilfs_node_count(const struct nilfs_node *node) {
    return le16_load(node->header->nchildren);
}
static inline uint64_t nilfs_node_key(const struct nilfs_node *node, uint32_t i) {
    return le64_load(node->keys[i]);
}
static inline uint64_t nilfs_node_pointer(const struct nilfs_node *node, uint32_t i) {
    return le64_load(node->pointers[i]);
}

struct nilfs_node nilfs_node_root(struct nilfs_file *file);
/* `bytes`: a block. */
struct nilfs_node nilfs_node_block(const struct nilfs_file *file, const uint8_t *bytes);
/* Index of the first key >= `key`; the number of keys when there is none. */
uint32_t nilfs_node_search(const struct nilfs_node *node, uint64_t key);
/* Reads the child `i` of a node at `level`. -EUCLEAN: its first key is not the parent's. */
int nilfs_node_child(struct nilfs_file *file, const struct nilfs_node *node, uint32_t level,
                     uint32_t i, struct nilfs_view *view);

/* Goes from the root to the node at level `bottom` where `key` belongs; there, `at` is that of
 * nilfs_node_search. The map is a tree whose root is not below `bottom`. After success the path
 * must be released; until then no other change to the file than the path's. */
int nilfs_path_find(struct nilfs_file *file, uint64_t key, uint32_t bottom,
                    struct nilfs_path *path);
void nilfs_path_release(struct nilfs_path *path);
/* The lowest node has the key that was looked for. */
static inline bool nilfs_path_found(const struct nilfs_path *path, uint64_t key) {
    const struct nilfs_step *step = &path->step[path->bottom];
    return step->at < nilfs_node_count(&step->node) && nilfs_node_key(&step->node, step->at) == key;
}
/* The leaf of file->hints as a node, if the key belongs there. */
bool nilfs_btree_hint(struct nilfs_file *file, uint64_t key, struct nilfs_node *leaf);

/* The tree's part of what bmap.h has; the map is a tree. */
int nilfs_btree_lookup_run(struct nilfs_file *file, uint64_t key, uint64_t *pointers, uint32_t room,
                           uint64_t *next);
int nilfs_btree_seek(struct nilfs_file *file, uint64_t from, uint64_t *key);
int nilfs_btree_before(struct nilfs_file *file, uint64_t to, uint64_t *key);
int nilfs_btree_each(struct nilfs_file *file, nilfs_bmap_visit visit, void *context);
int nilfs_btree_insert(struct nilfs_file *file, uint64_t key, uint64_t pointer);
int nilfs_btree_set(struct nilfs_file *file, uint64_t key, uint64_t pointer);
int nilfs_btree_delete(struct nilfs_file *file, uint64_t key);
/* From a direct map to a tree that has its keys and another one. */
int nilfs_btree_grow_direct(struct nilfs_file *file, uint64_t key, uint64_t pointer);

#endif

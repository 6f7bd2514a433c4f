/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/bmap.h. Direct maps, and what is asked of either
 * kind of map.
 */
#include "layouts/nilfs/bmap.h"

#include <inttypes.h>

#include "layouts/nilfs/btree.h"

static uint64_t direct_pointer(const struct nilfs_file *file, uint64_t key) {
    return key < NILFS_DIRECT_BLOCKS ? le64_load(file->bmap.u.direct[key]) : 0;
}

static int direct_store(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    int rc = nilfs_file_mark_dirty(file);

    if (rc == 0)
        le64_store(&file->bmap.u.direct[key], pointer);
    return rc;
}

/* --- what the disk says ----------------------------------------------------------------------- */

static int bmap_corrupt(const struct nilfs_file *file, const char *what) {
    return nilfs_corrupt(file->nilfs,
                         "the block map in inode %" PRIu64
                         " is damaged: %s; delete the file, or restore the volume from a copy",
                         file->ino, what);
}

static bool pointer_possible(const struct nilfs_file *file, uint64_t pointer) {
    return file->pointers != NILFS_PHYSICAL || nilfs_block_valid(&file->nilfs->geometry, pointer);
}

int nilfs_bmap_check(const struct nilfs_file *file) {
    const struct nilfs_disk_bmap *bmap = &file->bmap;
    uint32_t count = le16_load(bmap->head.node.nchildren), level = bmap->head.node.level;

    if (!nilfs_bmap_is_tree(file)) {
        for (uint32_t i = 0; i < NILFS_DIRECT_BLOCKS; i++)
            if (direct_pointer(file, i) && !pointer_possible(file, direct_pointer(file, i)))
                return bmap_corrupt(file, "a pointer is outside the segments");
        return 0;
    }
    if (level == 0 || level >= NILFS_LEVEL_MAX)
        return bmap_corrupt(file, "the level of the B-tree's root cannot be");
    if (count > NILFS_ROOT_CHILDREN || (count == 0 && level > 1))
        return bmap_corrupt(file, "the number of the root's children cannot be");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && le64_load(bmap->u.root.keys[i - 1]) >= le64_load(bmap->u.root.keys[i]))
            return bmap_corrupt(file, "the keys of the B-tree's root do not ascend");
        if (!pointer_possible(file, le64_load(bmap->u.root.pointers[i])))
            return bmap_corrupt(file, "a pointer of the B-tree's root is outside the segments");
    }
    return 0;
}

/* --- looking up ------------------------------------------------------------------------------- */

static int direct_seek(const struct nilfs_file *file, uint64_t from, uint64_t *key) {
    for (*key = from; *key < NILFS_DIRECT_BLOCKS; ++*key)
        if (direct_pointer(file, *key))
            return 0;
    return -ENOENT;
}

static int direct_before(const struct nilfs_file *file, uint64_t to, uint64_t *key) {
    for (*key = to < NILFS_DIRECT_BLOCKS ? to : NILFS_DIRECT_BLOCKS; *key > 0;)
        if (direct_pointer(file, --*key))
            return 0;
    return -ENOENT;
}

static int direct_lookup_run(const struct nilfs_file *file, uint64_t key, uint64_t *pointers,
                             uint32_t room, uint64_t *next) {
    uint32_t n = 0;

    while (n < room && direct_pointer(file, key + n)) {
        pointers[n] = direct_pointer(file, key + n);
        n++;
    }
    if (n > 0)
        return (int)n;
    if (next && direct_seek(file, key, next))
        *next = UINT64_MAX;
    return -ENOENT;
}

int nilfs_bmap_lookup_run(struct nilfs_file *file, uint64_t key, uint64_t *pointers, uint32_t room,
                          uint64_t *next) {
    return nilfs_bmap_is_tree(file) ? nilfs_btree_lookup_run(file, key, pointers, room, next)
                                    : direct_lookup_run(file, key, pointers, room, next);
}

int nilfs_bmap_lookup(struct nilfs_file *file, uint64_t key, uint64_t *pointer) {
    int n = nilfs_bmap_lookup_run(file, key, pointer, 1, NULL);

    return n < 0 ? n : 0;
}

int nilfs_bmap_seek(struct nilfs_file *file, uint64_t from, uint64_t *key) {
    return nilfs_bmap_is_tree(file) ? nilfs_btree_seek(file, from, key)
                                    : direct_seek(file, from, key);
}

int nilfs_bmap_before(struct nilfs_file *file, uint64_t to, uint64_t *key) {
    return nilfs_bmap_is_tree(file) ? nilfs_btree_before(file, to, key)
                                    : direct_before(file, to, key);
}

int nilfs_bmap_last(struct nilfs_file *file, uint64_t *key) {
    return nilfs_bmap_before(file, UINT64_MAX, key);
}

int nilfs_bmap_each(struct nilfs_file *file, nilfs_bmap_visit visit, void *context) {
    int rc = 0;

    if (nilfs_bmap_is_tree(file))
        return nilfs_btree_each(file, visit, context);
    for (uint64_t key = 0; rc == 0 && direct_seek(file, key, &key) == 0; key++)
        rc = visit(context, NILFS_NODE_LEVEL_DATA, key, direct_pointer(file, key));
    return rc;
}

/* --- changing --------------------------------------------------------------------------------- */

int nilfs_bmap_insert(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    if (nilfs_bmap_is_tree(file))
        return nilfs_btree_insert(file, key, pointer);
    if (key >= NILFS_DIRECT_BLOCKS)
        return nilfs_btree_grow_direct(file, key, pointer);
    return direct_store(file, key, pointer);
}

int nilfs_bmap_set(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    if (nilfs_bmap_is_tree(file))
        return nilfs_btree_set(file, key, pointer);
    return direct_store(file, key, pointer);
}

int nilfs_bmap_delete(struct nilfs_file *file, uint64_t key) {
    if (nilfs_bmap_is_tree(file))
        return nilfs_btree_delete(file, key);
    return direct_store(file, key, 0);
}

/* --- the DAT's, whose pointers are places ----------------------------------------------------- */

int nilfs_bmap_place(struct nilfs_file *file, uint64_t key, uint32_t level, uint64_t pointer) {
    struct nilfs_path path;

    if (!nilfs_bmap_is_tree(file))
        return direct_store(file, key, pointer);
    int rc = nilfs_path_find(file, key, level + 1, &path);
    if (rc)
        return rc;
    struct nilfs_step *parent = &path.step[path.bottom];
    if (!nilfs_path_found(&path, key) || (path.bottom < path.top && !parent->view.changed))
        rc = bmap_corrupt(file, "a changed block has no changed node above it");
    else
        le64_store(&parent->node.pointers[parent->at], pointer);
    nilfs_path_release(&path);
    return rc;
}

int nilfs_bmap_points_at(struct nilfs_file *file, uint64_t key, uint32_t level, uint64_t block,
                         bool *yes) {
    struct nilfs_path path;

    *yes = false;
    if (!nilfs_bmap_is_tree(file)) {
        *yes = level == NILFS_NODE_LEVEL_DATA && direct_pointer(file, key) == block;
        return 0;
    }
    if (level >= file->bmap.head.node.level)
        return 0; /* the root is in no block */
    int rc = nilfs_path_find(file, key, level + 1, &path);
    if (rc)
        return rc;
    const struct nilfs_step *parent = &path.step[path.bottom];
    *yes = nilfs_path_found(&path, key) && nilfs_node_pointer(&parent->node, parent->at) == block;
    nilfs_path_release(&path);
    return 0;
}

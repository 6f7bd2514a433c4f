/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/btree.h. Searching B-trees.
 *
 * Trees from the disk are not trusted: a node's level is its parent's less one, so that no path is
 * longer than the root's level; its first key is what its parent says, so that no node is seen
 * twice in a walk over keys that ascend.
 */
#include "layouts/nilfs/btree.h"

#include <inttypes.h>

static struct nilfs_node node_of(uint8_t *bytes, size_t keys_at, uint32_t capacity) {
    le64 *keys = (le64 *)(bytes + keys_at);
    return (struct nilfs_node){.header = (struct nilfs_disk_node *)bytes,
                               .keys = keys,
                               .pointers = keys + capacity,
                               .capacity = capacity};
}

struct nilfs_node nilfs_node_root(struct nilfs_file *file) {
    return node_of((uint8_t *)&file->bmap, offsetof(struct nilfs_disk_bmap, u),
                   NILFS_ROOT_CHILDREN);
}

struct nilfs_node nilfs_node_block(const struct nilfs_file *file, const uint8_t *bytes) {
    return node_of((uint8_t *)(uintptr_t)bytes, 2 * sizeof(struct nilfs_disk_node),
                   file->nilfs->geometry.node_children);
}

uint32_t nilfs_node_search(const struct nilfs_node *node, uint64_t key) {
    uint32_t low = 0, high = nilfs_node_count(node);

    if (high > 0 && nilfs_node_key(node, high - 1) < key)
        return high; /* files grow at their ends */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (nilfs_node_key(node, middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The child where `key` belongs: the last one that does not begin behind it, or the first. */
static uint32_t child_of(const struct nilfs_node *node, uint64_t key) {
    uint32_t at = nilfs_node_search(node, key);

    if (at == nilfs_node_count(node) || nilfs_node_key(node, at) > key)
        return at > 0 ? at - 1 : 0;
    return at;
}

int nilfs_node_child(struct nilfs_file *file, const struct nilfs_node *node, uint32_t level,
                     uint32_t i, struct nilfs_view *view) {
    int rc = nilfs_node_read(file, nilfs_node_pointer(node, i), level - 1, view);

    if (rc)
        return rc;
    struct nilfs_node child = nilfs_node_block(file, view->data);
    if (nilfs_node_key(&child, 0) == nilfs_node_key(node, i))
        return 0;
    rc = nilfs_corrupt(file->nilfs,
                       "a level %u B-tree node of inode %" PRIu64 " begins with block %" PRIu64
                       " of the file and not with %" PRIu64
                       ", as the node above it says; delete the file, or restore the volume",
                       level - 1, file->ino, nilfs_node_key(&child, 0), nilfs_node_key(node, i));
    nilfs_view_put(view);
    return rc;
}

/* --- one key ---------------------------------------------------------------------------------- */

int nilfs_path_find(struct nilfs_file *file, uint64_t key, uint32_t bottom,
                    struct nilfs_path *path) {
    struct nilfs_step *step;

    path->file = file;
    path->limit = UINT64_MAX;
    path->top = path->bottom = file->bmap.head.node.level;
    step = &path->step[path->top];
    step->node = nilfs_node_root(file);
    while (path->bottom > bottom) {
        uint32_t at = step->at = child_of(&step->node, key);
        if (at + 1 < nilfs_node_count(&step->node))
            path->limit = nilfs_node_key(&step->node, at + 1);
        struct nilfs_step *below = step - 1;
        int rc = nilfs_node_child(file, &step->node, path->bottom, at, &below->view);
        if (rc) {
            nilfs_path_release(path);
            return rc;
        }
        below->node = nilfs_node_block(file, below->view.data);
        step = below;
        path->bottom--;
    }
    step->at = nilfs_node_search(&step->node, key);
    return 0;
}

void nilfs_path_release(struct nilfs_path *path) {
    for (uint32_t level = path->bottom; level < path->top; level++)
        nilfs_view_put(&path->step[level].view);
}

bool nilfs_btree_hint(struct nilfs_file *file, uint64_t key, struct nilfs_node *leaf) {
    const struct nilfs_hints *hints = file->changes ? &file->changes->hints : NULL;

    if (!hints || !hints->leaf || key >= hints->limit)
        return false;
    *leaf = nilfs_node_block(file, hints->leaf->data);
    return key >= nilfs_node_key(leaf, 0);
}

/* What is in a leaf from `at` on, as long as the keys are in a row. */
static uint32_t leaf_run(const struct nilfs_node *leaf, uint32_t at, uint64_t *pointers,
                         uint32_t room) {
    uint32_t count = nilfs_node_count(leaf), n = 0;
    uint64_t key = nilfs_node_key(leaf, at);

    while (n < room && at + n < count && nilfs_node_key(leaf, at + n) == key + n) {
        pointers[n] = nilfs_node_pointer(leaf, at + n);
        n++;
    }
    return n;
}

/* The first key at or behind `at`, where `limit` is that of the next leaf; -ENOENT: none. */
static int leaf_next(const struct nilfs_node *leaf, uint32_t at, uint64_t limit, uint64_t *key) {
    *key = at < nilfs_node_count(leaf) ? nilfs_node_key(leaf, at) : limit;
    return *key == UINT64_MAX ? -ENOENT : 0;
}

static int leaf_answer(const struct nilfs_node *leaf, uint32_t at, uint64_t limit, uint64_t key,
                       uint64_t *pointers, uint32_t room, uint64_t *next) {
    if (at < nilfs_node_count(leaf) && nilfs_node_key(leaf, at) == key)
        return (int)leaf_run(leaf, at, pointers, room);
    if (next)
        (void)leaf_next(leaf, at, limit, next);
    return -ENOENT;
}

int nilfs_btree_lookup_run(struct nilfs_file *file, uint64_t key, uint64_t *pointers, uint32_t room,
                           uint64_t *next) {
    struct nilfs_path path;
    struct nilfs_node leaf;

    if (nilfs_btree_hint(file, key, &leaf))
        return leaf_answer(&leaf, nilfs_node_search(&leaf, key), file->changes->hints.limit, key,
                           pointers, room, next);
    int rc = nilfs_path_find(file, key, 1, &path);
    if (rc)
        return rc;
    rc = leaf_answer(&path.step[1].node, path.step[1].at, path.limit, key, pointers, room, next);
    nilfs_path_release(&path);
    return rc;
}

int nilfs_btree_seek(struct nilfs_file *file, uint64_t from, uint64_t *key) {
    struct nilfs_path path;
    int rc = nilfs_path_find(file, from, 1, &path);

    if (rc)
        return rc;
    rc = leaf_next(&path.step[1].node, path.step[1].at, path.limit, key);
    nilfs_path_release(&path);
    return rc;
}

int nilfs_btree_before(struct nilfs_file *file, uint64_t to, uint64_t *key) {
    struct nilfs_path path;
    struct nilfs_node leaf;

    if (to == 0)
        return -ENOENT;
    if (nilfs_btree_hint(file, to - 1, &leaf)) {
        uint32_t at = nilfs_node_search(&leaf, to);
        *key = nilfs_node_key(&leaf, at - 1); /* its first key is below `to` */
        return 0;
    }
    int rc = nilfs_path_find(file, to - 1, 1, &path);
    if (rc)
        return rc;
    uint32_t at = path.step[1].at + nilfs_path_found(&path, to - 1);
    if (at > 0)
        *key = nilfs_node_key(&path.step[1].node, at - 1);
    else
        rc = -ENOENT;
    nilfs_path_release(&path);
    return rc;
}

/* --- the whole tree --------------------------------------------------------------------------- */

/* Reads the child of the step at `level` whose turn it is; it must end before the next one. */
static int walk_down(struct nilfs_path *path, uint32_t level, uint64_t *limits) {
    struct nilfs_file *file = path->file;
    struct nilfs_step *step = &path->step[level], *below = step - 1;
    uint32_t i = step->at;
    int rc = nilfs_node_child(file, &step->node, level, i, &below->view);

    if (rc)
        return rc;
    path->bottom = level - 1;
    below->node = nilfs_node_block(file, below->view.data);
    below->at = 0;
    limits[level - 1] =
        i + 1 < nilfs_node_count(&step->node) ? nilfs_node_key(&step->node, i + 1) : limits[level];
    uint64_t last = nilfs_node_key(&below->node, nilfs_node_count(&below->node) - 1);
    if (last <= limits[level - 1] - 1)
        return 0;
    return nilfs_corrupt(file->nilfs,
                         "a level %u B-tree node of inode %" PRIu64
                         " goes on behind the first key of its neighbour, %" PRIu64
                         "; delete the file, or restore the volume",
                         level - 1, file->ino, limits[level - 1]);
}

int nilfs_btree_each(struct nilfs_file *file, nilfs_bmap_visit visit, void *context) {
    struct nilfs_path path = {.file = file};
    uint64_t limits[NILFS_LEVEL_MAX]; /* as path.limit; 0, for lack of a greater number: none */
    uint32_t level = file->bmap.head.node.level;
    int rc = 0;

    path.top = path.bottom = level;
    path.step[level].node = nilfs_node_root(file);
    limits[level] = 0;
    while (rc == 0 && level <= path.top) {
        struct nilfs_step *step = &path.step[level];
        if (step->at == nilfs_node_count(&step->node)) {
            if (level < path.top)
                nilfs_view_put(&step->view);
            path.bottom = ++level;
            continue;
        }
        rc = visit(context, level - 1, nilfs_node_key(&step->node, step->at),
                   nilfs_node_pointer(&step->node, step->at));
        if (rc == 0 && level > 1)
            rc = walk_down(&path, level, limits);
        step->at++;
        level = path.bottom;
    }
    nilfs_path_release(&path);
    return rc;
}

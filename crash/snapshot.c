/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/snapshot.h.
 *
 * The tree is walked breadth first, the nodes found so far being the queue.
 */
#include "crash/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NODES_MAX 1000u      /* more: the tree is damaged */
#define SIZE_MAX_ (1u << 24) /* likewise, bytes of one file */

/* --- growing ---------------------------------------------------------------------------------- */

static struct node *add_node(struct snapshot *snapshot) {
    if (snapshot->count == snapshot->room) {
        size_t room = snapshot->room ? snapshot->room * 2 : 16;
        struct node *nodes = reallocarray(snapshot->nodes, room, sizeof(*nodes));

        if (!nodes)
            return NULL;
        snapshot->nodes = nodes;
        snapshot->room = room;
    }
    struct node *node = &snapshot->nodes[snapshot->count++];
    memset(node, 0, sizeof(*node));
    return node;
}

/* Room for `size` more bytes; NULL: no memory. */
static unsigned char *add_bytes(struct snapshot *snapshot, size_t size) {
    if (snapshot->bytes_room - snapshot->used < size || !snapshot->bytes) {
        size_t room = (snapshot->used + size + 4096) * 2;
        unsigned char *bytes = realloc(snapshot->bytes, room);

        if (!bytes)
            return NULL;
        snapshot->bytes = bytes;
        snapshot->bytes_room = room;
    }
    unsigned char *start = snapshot->bytes + snapshot->used;
    snapshot->used += size;
    return start;
}

void snapshot_free(struct snapshot *snapshot) {
    free(snapshot->nodes);
    free(snapshot->bytes);
    *snapshot = (struct snapshot){0};
}

/* --- walking ---------------------------------------------------------------------------------- */

static uint64_t entry_hash(const struct dir_entry *entry) {
    uint64_t hash = entry->ino * UINT64_C(0x9E3779B97F4A7C15);

    for (uint32_t i = 0; i < entry->name_length; i++)
        hash = (hash ^ (unsigned char)entry->name[i]) * UINT64_C(0x100000001B3);
    return hash;
}

struct visit {
    struct snapshot *snapshot;
    size_t parent;
    uint64_t entries;
    int error;
};

static bool visit_entry(void *context, const struct dir_entry *entry) {
    struct visit *visit = context;
    struct snapshot *snapshot = visit->snapshot;
    bool dots = (entry->name_length == 1 && entry->name[0] == '.') ||
                (entry->name_length == 2 && memcmp(entry->name, "..", 2) == 0);

    if (dots)
        return true;
    struct node *node = snapshot->count < NODES_MAX ? add_node(snapshot) : NULL;
    if (!node) {
        visit->error = snapshot->count < NODES_MAX ? -ENOMEM : -ELOOP;
        return false;
    }
    int length =
        snprintf(node->path, sizeof(node->path), "%s/%.*s", snapshot->nodes[visit->parent].path,
                 (int)entry->name_length, entry->name);
    if (length >= (int)sizeof(node->path))
        visit->error = -ENAMETOOLONG;
    node->ino = entry->ino;
    visit->entries += entry_hash(entry);
    return visit->error == 0;
}

static int take_directory(struct snapshot *snapshot, size_t number, struct inode *inode) {
    struct visit visit = {.snapshot = snapshot, .parent = number};
    int error = volume_readdir(inode, 0, visit_entry, &visit);

    snapshot->nodes[number].entries = visit.entries;
    return error < 0 ? error : visit.error;
}

static int take_file(struct snapshot *snapshot, struct node *node, struct inode *inode) {
    unsigned char *bytes = node->size <= SIZE_MAX_ ? add_bytes(snapshot, node->size) : NULL;

    if (!bytes)
        return node->size <= SIZE_MAX_ ? -ENOMEM : -EFBIG;
    int64_t got = volume_read_noatime(inode, bytes, node->size, 0);
    if (got < 0)
        return (int)got;
    return (uint64_t)got == node->size ? 0 : -ENODATA;
}

static int take_symlink(struct snapshot *snapshot, struct node *node, struct inode *inode) {
    char *target = (char *)add_bytes(snapshot, node->size + 1);

    return target ? volume_readlink(inode, target, node->size + 1) : -ENOMEM;
}

static int take_value(struct node *node, struct inode *inode) {
    int64_t length = volume_getxattr(inode, SNAPSHOT_XATTR, node->value, sizeof(node->value));

    if (length == -ENODATA || length == -ENOTSUP)
        length = 0;
    node->value_length = length > 0 ? (uint32_t)length : 0;
    return length < 0 ? (int)length : 0;
}

static int take_node(struct volume *volume, struct snapshot *snapshot, size_t number) {
    struct node *node = &snapshot->nodes[number];
    struct attributes attributes;
    struct inode *inode;
    int error = volume_get(volume, node->ino, &inode);

    if (error)
        return error;
    volume_getattr(inode, &attributes);
    node->mode = attributes.mode;
    node->nlink = attributes.nlink;
    node->sectors = attributes.sectors;
    node->size = S_ISDIR(attributes.mode) ? 0 : attributes.size;
    node->data = snapshot->used;
    error = take_value(node, inode);
    if (!error && S_ISDIR(node->mode))
        error = take_directory(snapshot, number, inode);
    else if (!error && S_ISREG(node->mode))
        error = take_file(snapshot, node, inode);
    else if (!error && S_ISLNK(node->mode))
        error = take_symlink(snapshot, node, inode);
    volume_put(inode, 1);
    return error;
}

static int node_compare(const void *a, const void *b) {
    return strcmp(((const struct node *)a)->path, ((const struct node *)b)->path);
}

int snapshot_take(struct volume *volume, struct snapshot *snapshot, char *where) {
    int error = 0;

    snapshot->count = 0;
    snapshot->used = 0;
    struct node *root = add_node(snapshot);
    if (!root)
        return -ENOMEM;
    root->ino = volume->root_ino;
    for (size_t i = 0; i < snapshot->count && !error; i++) {
        error = take_node(volume, snapshot, i);
        if (!error)
            continue;
        if (where) {
            memcpy(where, snapshot->nodes[i].path, NODE_PATH_MAX);
        } else if (error != -ENOMEM) {
            snapshot->nodes[i].mode = 0;
            error = 0;
        }
    }
    qsort(snapshot->nodes, snapshot->count, sizeof(*snapshot->nodes), node_compare);
    return error;
}

/* --- comparing -------------------------------------------------------------------------------- */

const struct node *snapshot_find(const struct snapshot *snapshot, const char *path) {
    for (size_t i = 0; i < snapshot->count; i++)
        if (strcmp(snapshot->nodes[i].path, path) == 0)
            return &snapshot->nodes[i];
    return NULL;
}

const struct node *snapshot_find_inode(const struct snapshot *snapshot, uint64_t ino) {
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->nodes[i].ino == ino)
            return &snapshot->nodes[i];
    return NULL;
}

bool node_same_data(const struct snapshot *a, const struct node *node, const struct snapshot *b,
                    const struct node *other) {
    return node->size == other->size &&
           (node->size == 0 || memcmp(node_data(a, node), node_data(b, other), node->size) == 0);
}

bool node_same_metadata(const struct snapshot *a, const struct node *node, const struct snapshot *b,
                        const struct node *other) {
    return node->ino == other->ino && node->mode == other->mode && node->nlink == other->nlink &&
           node->entries == other->entries && node->value_length == other->value_length &&
           memcmp(node->value, other->value, node->value_length) == 0 &&
           (!S_ISLNK(node->mode) || node_same_data(a, node, b, other));
}

/* Two nodes of one path. */
static void explain_node(const struct node *node, const struct node *other, char *why,
                         size_t size) {
    if (node->ino != other->ino)
        snprintf(why, size, "'%s' means inode %llu, not %llu", node->path,
                 (unsigned long long)other->ino, (unsigned long long)node->ino);
    else if (node->mode != other->mode)
        snprintf(why, size, "'%s' has mode %o, not %o", node->path, other->mode, node->mode);
    else if (node->nlink != other->nlink)
        snprintf(why, size, "'%s' has %u links, not %u", node->path, other->nlink, node->nlink);
    else if (node->value_length != other->value_length ||
             memcmp(node->value, other->value, node->value_length) != 0)
        snprintf(why, size, "'%s' has another attribute value", node->path);
    else
        snprintf(why, size, "'%s' has another target or other entries", node->path);
}

bool snapshot_differs(const struct snapshot *a, const struct snapshot *b, char *why, size_t size) {
    const struct node *root = NULL; /* differs when something below does: the least telling */

    for (size_t i = 0; i < a->count; i++) {
        const struct node *node = &a->nodes[i];
        const struct node *other = i < b->count && strcmp(b->nodes[i].path, node->path) == 0
                                       ? &b->nodes[i]
                                       : snapshot_find(b, node->path);

        if (!other) {
            snprintf(why, size, "'%s' is missing", node->path);
            return true;
        }
        if (node_same_metadata(a, node, b, other))
            continue;
        if (node->entries != other->entries) {
            root = node;
            continue;
        }
        explain_node(node, other, why, size);
        return true;
    }
    for (size_t i = 0; i < b->count && root; i++) {
        if (!snapshot_find(a, b->nodes[i].path)) {
            snprintf(why, size, "'%s' is there", b->nodes[i].path);
            return true;
        }
    }
    if (root)
        snprintf(why, size, "'%s/' has other entries", root->path);
    return root != NULL;
}

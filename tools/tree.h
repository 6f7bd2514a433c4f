/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. Where `layoutfs cp` copies from and to: one contract, implemented by the host's
 * files (tree_host.c) and by an image (tree_image.c), so that the copying itself (cp.c) does not
 * know which is which.
 *
 * A node is an object (file, directory, symlink, ...) held by its identity, not by its path: what a
 * crafted image is called cannot lead a copy astray, and no symlink is followed below the paths
 * that the user named.
 *
 * Errors are negative errno values.
 */
#ifndef LAYOUTFS_TOOLS_TREE_H
#define LAYOUTFS_TOOLS_TREE_H

#include "tools/image.h"

struct tree;
struct node;

struct node_status {
    struct attributes attributes; /* ino names the object within `device`; rdev as in fs/layout.h */
    uint64_t device;              /* which filesystem of the tree */
};

struct tree_operations {
    /* The object at a path, symlinks followed (the last one only with `follow`). */
    int (*resolve)(struct tree *tree, const char *path, bool follow, struct node **node);
    /* The directory that is to hold the last component of `path`. The component starts at *name
     * and may be followed by slashes only. */
    int (*parent)(struct tree *tree, const char *path, struct node **directory, const char **name,
                  uint32_t *length);
    /* The object of that name in a directory; symlinks are not followed. */
    int (*lookup)(struct node *directory, const char *name, struct node **node);
    void (*put)(struct node *node); /* NULL is allowed */

    int (*status)(struct node *node, struct node_status *status);
    int (*names)(struct node *directory, struct name_list *list); /* sorted */
    /* `target` has room for attributes.size + 1 bytes. */
    int (*read_link)(struct node *node, char *target, size_t room);
    int64_t (*read)(struct node *node, void *buffer, size_t size, uint64_t offset);
    /* The next stored bytes at or after *start: [*start, *end). -ENXIO: none up to the end. */
    int (*next_data)(struct node *node, uint64_t *start, uint64_t *end);

    /* Makes an object of the given mode, rdev, uid and gid; a file can be written, whatever its
     * mode says. `target`: of a symlink. -EEXIST. */
    int (*create)(struct node *directory, const char *name, const struct attributes *attributes,
                  const char *target, struct node **node);
    int (*link)(struct node *directory, const char *name, struct node *node);
    int (*unlink)(struct node *directory, const char *name); /* not directories */
    int64_t (*write)(struct node *node, const void *buffer, size_t size, uint64_t offset);
    int (*set_size)(struct node *node, uint64_t size);
    /* Owner, mode and times as in *attributes; -EPERM when the owner could not be set and all
     * else was. */
    int (*set_attributes)(struct node *node, const struct attributes *attributes);

    /* As listxattr(2), getxattr(2) and setxattr(2). */
    int64_t (*list_xattrs)(struct node *node, char *list, size_t size);
    int64_t (*get_xattr)(struct node *node, const char *name, void *value, size_t size);
    int (*set_xattr)(struct node *node, const char *name, const void *value, size_t size);
};

struct tree { /* embedded first in each implementation's own structure */
    const struct tree_operations *operations;
    const char *name; /* of the image, for messages; NULL: the host */
};

struct host_tree {
    struct tree tree;
};
void host_tree_init(struct host_tree *host);

struct image_tree {
    struct tree tree;
    struct tool_image image;
};
/* Opens the image. 0 or negative errno, after a sentence. */
int image_tree_open(struct image_tree *tree, const char *path, bool read_only);
int image_tree_close(struct image_tree *tree);

#endif

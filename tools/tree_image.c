/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. An image as one side of a copy: see tools/tree.h. A node is a referenced inode.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/tree.h"

/* The inode is the node: nothing else need be remembered. */
static struct inode *inode_of(struct node *node) {
    return (struct inode *)node;
}

static struct node *node_of(struct inode *inode) {
    return (struct node *)inode;
}

static struct volume *volume_of(struct tree *tree) {
    return ((struct image_tree *)tree)->image.volume;
}

static int image_resolve(struct tree *tree, const char *path, bool follow, struct node **node) {
    struct inode *inode;
    int error = volume_resolve(volume_of(tree), *path ? path : "/", follow, &inode);

    if (!error)
        *node = node_of(inode);
    return error;
}

static int image_parent_node(struct tree *tree, const char *path, struct node **directory,
                             const char **name, uint32_t *length) {
    struct inode *inode;
    int error = image_parent(volume_of(tree), path, &inode, name, length);

    if (!error)
        *directory = node_of(inode);
    return error;
}

static int image_lookup(struct node *directory, const char *name, struct node **node) {
    struct inode *inode;
    int error = volume_lookup(inode_of(directory), name, (uint32_t)strlen(name), &inode);

    if (!error)
        *node = node_of(inode);
    return error;
}

static void image_put(struct node *node) {
    if (node)
        volume_put(inode_of(node), 1);
}

static int image_status(struct node *node, struct node_status *status) {
    status->device = 0;
    volume_getattr(inode_of(node), &status->attributes);
    return 0;
}

static int image_names(struct node *directory, struct name_list *list) {
    return name_list_directory(list, inode_of(directory));
}

static int image_read_link(struct node *node, char *target, size_t room) {
    return volume_readlink(inode_of(node), target, room);
}

static int64_t image_read(struct node *node, void *buffer, size_t size, uint64_t offset) {
    return volume_read(inode_of(node), buffer, size, offset);
}

static int image_next_data(struct node *node, uint64_t *start, uint64_t *end) {
    int64_t data = volume_seek(inode_of(node), *start, SEEK_DATA);
    if (data < 0)
        return (int)data;
    int64_t hole = volume_seek(inode_of(node), (uint64_t)data, SEEK_HOLE);
    if (hole < 0)
        return (int)hole;
    *start = (uint64_t)data;
    *end = (uint64_t)hole;
    return 0;
}

static int image_create(struct node *directory, const char *name,
                        const struct attributes *attributes, const char *target,
                        struct node **node) {
    struct create_request request = {
        .mode = attributes->mode,
        .uid = attributes->uid,
        .gid = attributes->gid,
        .rdev = attributes->rdev,
        .target = target,
    };
    struct inode *inode;
    int error = volume_create(inode_of(directory), name, (uint32_t)strlen(name), &request, &inode);

    if (!error)
        *node = node_of(inode);
    return error;
}

static int image_link(struct node *directory, const char *name, struct node *node) {
    return volume_link(inode_of(node), inode_of(directory), name, (uint32_t)strlen(name));
}

static int image_unlink(struct node *directory, const char *name) {
    return volume_unlink(inode_of(directory), name, (uint32_t)strlen(name));
}

static int64_t image_write(struct node *node, const void *buffer, size_t size, uint64_t offset) {
    return volume_write(inode_of(node), buffer, size, offset);
}

static int image_set_size(struct node *node, uint64_t size) {
    return volume_truncate(inode_of(node), size);
}

static int image_set_attributes(struct node *node, const struct attributes *attributes) {
    unsigned mask = SETATTR_UID | SETATTR_GID | SETATTR_ATIME | SETATTR_MTIME;

    if (!S_ISLNK(attributes->mode))
        mask |= SETATTR_MODE;
    return volume_setattr(inode_of(node), mask, attributes);
}

static int64_t image_list_xattrs(struct node *node, char *list, size_t size) {
    return volume_listxattr(inode_of(node), list, size);
}

static int64_t image_get_xattr(struct node *node, const char *name, void *value, size_t size) {
    return volume_getxattr(inode_of(node), name, value, size);
}

static int image_set_xattr(struct node *node, const char *name, const void *value, size_t size) {
    return volume_setxattr(inode_of(node), name, value, size, 0);
}

static const struct tree_operations image_operations = {
    .resolve = image_resolve,
    .parent = image_parent_node,
    .lookup = image_lookup,
    .put = image_put,
    .status = image_status,
    .names = image_names,
    .read_link = image_read_link,
    .read = image_read,
    .next_data = image_next_data,
    .create = image_create,
    .link = image_link,
    .unlink = image_unlink,
    .write = image_write,
    .set_size = image_set_size,
    .set_attributes = image_set_attributes,
    .list_xattrs = image_list_xattrs,
    .get_xattr = image_get_xattr,
    .set_xattr = image_set_xattr,
};

int image_tree_open(struct image_tree *tree, const char *path, bool read_only) {
    tree->tree = (struct tree){.operations = &image_operations, .name = path};
    return tool_image_open(&tree->image, path, read_only);
}

int image_tree_close(struct image_tree *tree) {
    return tool_image_close(&tree->image);
}

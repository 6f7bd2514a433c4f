/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. Extended attributes: a list a node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "layouts/memory/memory.h"

/* The link that points at the attribute, or at the NULL that ends the list. */
static struct memory_xattr **find(struct memory_node *node, const char *name) {
    struct memory_xattr **link = &node->xattrs;

    while (*link && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

static void discard(struct memory_xattr **link) {
    struct memory_xattr *xattr = *link;

    *link = xattr->next;
    free(xattr->name);
    free(xattr->value);
    free(xattr);
}

void memory_xattr_free(struct memory_node *node) {
    while (node->xattrs)
        discard(&node->xattrs);
}

int64_t memory_xattr_get(struct inode *inode, const char *name, void *value, size_t size) {
    const struct memory_xattr *xattr = *find(memory_node_of(inode), name);

    if (!xattr)
        return -ENODATA;
    if (size && size < xattr->size)
        return -ERANGE;
    if (size)
        memcpy(value, xattr->value, xattr->size);
    return (int64_t)xattr->size;
}

static struct memory_xattr *make(const char *name, const void *value, size_t size) {
    struct memory_xattr *xattr = calloc(1, sizeof(*xattr));

    if (!xattr)
        return NULL;
    xattr->name = strdup(name);
    xattr->value = malloc(size ? size : 1);
    xattr->size = size;
    if (!xattr->name || !xattr->value) {
        discard(&xattr);
        return NULL;
    }
    memcpy(xattr->value, value, size);
    return xattr;
}

int memory_xattr_set(struct inode *inode, const char *name, const void *value, size_t size,
                     int flags) {
    struct memory_xattr **link = find(memory_node_of(inode), name);

    if (*link && flags & XATTR_CREATE)
        return -EEXIST;
    if (!*link && flags & XATTR_REPLACE)
        return -ENODATA;
    struct memory_xattr *xattr = make(name, value, size);
    if (!xattr)
        return -ENOMEM;
    xattr->next = *link;
    *link = xattr;
    if (xattr->next && strcmp(xattr->next->name, name) == 0)
        discard(&xattr->next);
    return 0;
}

int memory_xattr_remove(struct inode *inode, const char *name) {
    struct memory_xattr **link = find(memory_node_of(inode), name);

    if (!*link)
        return -ENODATA;
    discard(link);
    return 0;
}

int64_t memory_xattr_list(struct inode *inode, char *list, size_t size) {
    size_t used = 0;

    for (struct memory_xattr *x = memory_node_of(inode)->xattrs; x; x = x->next) {
        size_t length = strlen(x->name) + 1;
        if (size && used + length > size)
            return -ERANGE;
        if (size)
            memcpy(list + used, x->name, length);
        used += length;
    }
    return (int64_t)used;
}

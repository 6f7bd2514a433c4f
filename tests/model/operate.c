/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model's operations on a volume, and the comparison of the two trees. See model.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/model/model.h"

#define PATH_BYTES 65536

static int resolve(struct volume *volume, const struct model *model, uint32_t node,
                   struct inode **inode) {
    char *path = malloc(PATH_BYTES);
    if (!path)
        return -ENOMEM;
    model_path(model, node, path, PATH_BYTES);

    /* By components, since paths here may be longer than PATH_MAX. */
    int error = volume_root(volume, inode);
    for (char *at = path; !error && *at;) {
        size_t length = strcspn(++at, "/");
        struct inode *child;
        error = volume_lookup(*inode, at, (uint32_t)length, &child);
        volume_put(*inode, 1);
        *inode = child;
        at += length;
    }
    free(path);
    return error;
}

static int make(struct inode *dir, const struct operation *op, const char *name) {
    char target[1001] = {0};
    struct create_request request = {.mode = S_IFREG | (op->fill & 0777)};

    if (op->kind == OP_MKDIR)
        request.mode = S_IFDIR | (op->fill & 0777);
    if (op->kind == OP_SYMLINK) {
        request.mode = S_IFLNK | 0777;
        memset(target, 'a' + (int)(op->fill % 26), 1 + op->length % 1000);
        request.target = target;
    }
    return volume_create(dir, name, (uint32_t)strlen(name), &request, NULL);
}

static int link_node(struct volume *volume, const struct model *model, const struct operation *op,
                     struct inode *dir, const char *name) {
    struct inode *inode;
    uint32_t node;

    if (!model_pick(model, S_IFREG, op->file, &node))
        return -ENOENT;
    int error = resolve(volume, model, node, &inode);
    if (error)
        return error;
    error = volume_link(inode, dir, name, (uint32_t)strlen(name));
    volume_put(inode, 1);
    return error;
}

static int on_names(struct volume *volume, const struct model *model, const struct operation *op) {
    char name[256], other[256];
    uint32_t dir_node = 0, other_node = 0;
    struct inode *dir, *other_dir;

    model_pick(model, S_IFDIR, op->dir, &dir_node);
    model_pick(model, S_IFDIR, op->other_dir, &other_node);
    model_name(op->name, name);
    model_name(op->other, other);
    int error = resolve(volume, model, dir_node, &dir);
    if (error)
        return error;
    error = resolve(volume, model, other_node, &other_dir);
    if (error) {
        volume_put(dir, 1);
        return error;
    }
    uint32_t length = (uint32_t)strlen(name);
    if (op->kind == OP_UNLINK)
        error = volume_unlink(dir, name, length);
    else if (op->kind == OP_RMDIR)
        error = volume_rmdir(dir, name, length);
    else if (op->kind == OP_LINK)
        error = link_node(volume, model, op, dir, name);
    else if (op->kind == OP_RENAME || op->kind == OP_EXCHANGE)
        error = volume_rename(dir, name, length, other_dir, other, (uint32_t)strlen(other),
                              op->kind == OP_EXCHANGE ? RENAME_EXCHANGE : 0);
    else
        error = make(dir, op, name);
    volume_put(dir, 1);
    volume_put(other_dir, 1);
    return error;
}

static int write_file(struct inode *inode, const struct operation *op, uint8_t *bytes) {
    model_bytes(op->fill, bytes, op->length);
    int64_t got = volume_write(inode, bytes, op->length, op->offset);

    return got < 0 ? (int)got : got == (int64_t)op->length ? 0 : -ENOSPC;
}

static int read_file(struct inode *inode, const struct model_node *node, uint32_t offset,
                     uint32_t length, uint8_t *bytes, char *why, size_t size) {
    int64_t want = offset >= node->size ? 0 : node->size - offset;

    if (want > length)
        want = length;
    int64_t got = volume_read(inode, bytes, length, offset);
    if (got != want) {
        snprintf(why, size, "read at %u of %u bytes gave %lld, not %lld", offset, length,
                 (long long)got, (long long)want);
        return -1;
    }
    for (int64_t i = 0; i < got; i++) {
        if (bytes[i] != node->data[offset + i]) {
            snprintf(why, size, "byte %lld is %02x, not %02x", (long long)(offset + i), bytes[i],
                     node->data[offset + i]);
            return -1;
        }
    }
    return 0;
}

static int change_xattr(struct inode *inode, const struct model_node *node,
                        const struct operation *op) {
    uint8_t value[64];
    uint32_t length = op->length % sizeof(value);

    if (length == 0)
        return node->value_length ? volume_removexattr(inode, "user.test") : 0;
    model_bytes(op->fill, value, length);
    return volume_setxattr(inode, "user.test", value, length, 0);
}

static int on_inode(struct volume *volume, struct inode *inode, const struct model_node *node,
                    const struct operation *op, uint8_t *bytes, char *why, size_t size) {
    struct attributes a = {.mode = op->fill & 07777, .size = op->offset};

    switch (op->kind) {
    case OP_WRITE:
        return write_file(inode, op, bytes);
    case OP_READ:
        return read_file(inode, node, op->offset, op->length, bytes, why, size);
    case OP_TRUNCATE:
        return volume_setattr(inode, SETATTR_SIZE, &a);
    case OP_PUNCH:
        return op->length ? volume_fallocate(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                             op->offset, op->length)
                          : 0;
    case OP_SETATTR:
        return volume_setattr(inode, SETATTR_MODE, &a);
    case OP_XATTR:
        return change_xattr(inode, node, op);
    case OP_FSYNC:
        return volume_fsync(inode, op->fill & 1);
    default:
        return 0;
    }
}

static int on_file(struct volume *volume, const struct model *model, const struct operation *op,
                   char *why, size_t size) {
    struct inode *inode;
    uint32_t node;

    if (!model_pick(model, S_IFREG, op->file, &node))
        return 0;
    int error = resolve(volume, model, node, &inode);
    if (error)
        return error;
    uint8_t *bytes = malloc(MODEL_FILE_MAX);
    error = bytes ? on_inode(volume, inode, &model->nodes[node], op, bytes, why, size) : -ENOMEM;
    free(bytes);
    volume_put(inode, 1);
    return error;
}

/* --- comparing -------------------------------------------------------------------------------- */

struct listing {
    const struct model *model;
    uint32_t dir;
    uint32_t seen, dots;
    uint64_t cookie;
    uint32_t budget; /* entries until the listing is interrupted */
    char *why;
    size_t size;
};

static bool list_entry(void *context, const struct dir_entry *entry) {
    struct listing *l = context;
    char name[256];

    if (l->budget == 0)
        return false;
    l->budget--;
    memcpy(name, entry->name, entry->name_length);
    name[entry->name_length] = '\0';
    l->cookie = entry->cookie;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        l->dots++;
        return true;
    }
    const struct model_entry *expected = model_find(l->model, l->dir, name);
    if (l->dir == 0 && strcmp(name, "lost+found") == 0)
        return true;
    if (!expected) {
        snprintf(l->why, l->size, "readdir shows \"%.40s\", which should not exist", name);
        return false;
    }
    uint32_t type = l->model->nodes[expected->node].mode & S_IFMT;
    if (entry->type && entry->type != type)
        snprintf(l->why, l->size, "readdir shows \"%.40s\" with type %o, not %o", name, entry->type,
                 type);
    l->seen++;
    return true;
}

/* Lists in pieces of a few entries, so that cookies are used. */
static int compare_names(struct inode *dir, const struct model *model, uint32_t node, char *why,
                         size_t size) {
    struct listing l = {.model = model, .dir = node, .why = why, .size = size};
    uint32_t expected = 0;
    uint64_t before;

    for (const struct model_entry *e = model->nodes[node].entries; e; e = e->next)
        expected++;
    do {
        before = l.cookie;
        l.budget = 7;
        int error = volume_readdir(dir, l.cookie, list_entry, &l);
        if (error)
            snprintf(why, size, "readdir: %s", strerror(-error));
        if (error || *why)
            return -1;
    } while (l.cookie != before);
    if (l.seen != expected || l.dots != 2)
        snprintf(why, size, "readdir shows %u names and %u dots, not %u and 2", l.seen, l.dots,
                 expected);
    return *why ? -1 : 0;
}

static int compare_xattr(struct inode *inode, const struct model_node *node, char *why,
                         size_t size) {
    char value[64];
    int64_t got = volume_getxattr(inode, "user.test", value, sizeof(value));
    int64_t want = node->value_length ? (int64_t)node->value_length : -ENODATA;

    if (got == want && (got <= 0 || memcmp(value, node->value, (size_t)got) == 0))
        return 0;
    snprintf(why, size, "the attribute has %lld bytes, not %lld, or others", (long long)got,
             (long long)want);
    return -1;
}

static int compare_node(struct inode *inode, const struct model *model, uint32_t index, char *why,
                        size_t size) {
    const struct model_node *node = &model->nodes[index];
    struct attributes a;

    volume_getattr(inode, &a);
    uint32_t links = node->nlink;
    if (index == 0) {
        /* A format may come with directories of its own. */
        links = a.nlink >= links ? a.nlink : links;
    }
    if ((index != 0 && a.mode != node->mode) || a.nlink != links) {
        snprintf(why, size, "mode %o links %u, not %o and %u", a.mode, a.nlink, node->mode, links);
        return -1;
    }
    if (S_ISDIR(node->mode))
        return compare_names(inode, model, index, why, size);
    if (a.size != node->size) {
        snprintf(why, size, "size %llu, not %u", (unsigned long long)a.size, node->size);
        return -1;
    }
    uint8_t *bytes = malloc(MODEL_FILE_MAX + 1);
    if (!bytes)
        return -ENOMEM;
    int error;
    if (S_ISLNK(node->mode)) {
        error = volume_readlink(inode, (char *)bytes, MODEL_FILE_MAX);
        if (!error && memcmp(bytes, node->data, node->size) != 0)
            error = -EUCLEAN;
        if (error)
            snprintf(why, size, "readlink: %s", strerror(-error));
    } else {
        error = read_file(inode, node, 0, MODEL_FILE_MAX, bytes, why, size);
        if (!error)
            error = compare_xattr(inode, node, why, size);
    }
    free(bytes);
    return error;
}

int compare_tree(struct volume *volume, const struct model *model, char *why, size_t size) {
    char reason[256] = "", path[128];

    for (uint32_t i = 0; i < model->used; i++) {
        struct inode *inode;
        if (!model->nodes[i].mode)
            continue;
        int error = resolve(volume, model, i, &inode);
        if (error)
            snprintf(reason, sizeof(reason), "look-up: %s", strerror(-error));
        else {
            error = compare_node(inode, model, i, reason, sizeof(reason));
            volume_put(inode, 1);
        }
        if (error) {
            model_path(model, i, path, sizeof(path));
            snprintf(why, size, "%s: %s", path, reason);
            return -1;
        }
    }
    return 0;
}

int operate(struct volume *volume, const struct model *model, const struct operation *op,
            int *answer, char *why, size_t size) {
    *answer = 0;
    *why = '\0';
    if (op->kind == OP_DROP_CACHES)
        *answer = volume_drop_caches(volume);
    else if (op->kind == OP_LIST)
        return compare_tree(volume, model, why, size);
    else if (op->kind <= OP_EXCHANGE)
        *answer = on_names(volume, model, op);
    else
        *answer = on_file(volume, model, op, why, size);
    return *why ? -1 : 0;
}

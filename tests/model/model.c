/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model of a POSIX tree. Linear searches everywhere: it must be obviously right. See
 * model.h.
 */
#include "tests/model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODEL_NAMES 24

struct model *model_new(void) {
    struct model *model = calloc(1, sizeof(*model));

    if (model) {
        model->nodes[0].mode = S_IFDIR | 0755;
        model->nodes[0].nlink = 2;
        model->used = 1;
    }
    return model;
}

static void node_clear(struct model_node *node) {
    while (node->entries) {
        struct model_entry *next = node->entries->next;
        free(node->entries);
        node->entries = next;
    }
    free(node->data);
    memset(node, 0, sizeof(*node));
}

void model_free(struct model *model) {
    for (uint32_t i = 0; i < model->used; i++)
        node_clear(&model->nodes[i]);
    free(model);
}

bool model_pick(const struct model *model, uint32_t type, uint32_t n, uint32_t *node) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->used; i++)
        count += (model->nodes[i].mode & S_IFMT) == type;
    if (count == 0)
        return false;
    n %= count;
    for (uint32_t i = 0; i < model->used; i++) {
        if ((model->nodes[i].mode & S_IFMT) == type && n-- == 0) {
            *node = i;
            return true;
        }
    }
    return false;
}

struct model_entry *model_find(const struct model *model, uint32_t dir, const char *name) {
    struct model_entry *entry = model->nodes[dir].entries;

    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

static bool find_name_of(const struct model *model, uint32_t node, uint32_t *dir,
                         const struct model_entry **entry) {
    for (uint32_t i = 0; i < model->used; i++) {
        for (*entry = model->nodes[i].entries; *entry; *entry = (*entry)->next) {
            if ((*entry)->node == node) {
                *dir = i;
                return true;
            }
        }
    }
    return false;
}

void model_path(const struct model *model, uint32_t node, char *path, size_t size) {
    const struct model_entry *entry;
    uint32_t dir;

    if (node == 0 || !find_name_of(model, node, &dir, &entry)) {
        snprintf(path, size, "%s", "");
        return;
    }
    model_path(model, dir, path, size);
    size_t used = strlen(path);
    snprintf(path + used, size - used, "/%s", entry->name);
}

void model_name(uint32_t number, char name[256]) {
    number %= MODEL_NAMES;
    if (number < 16) {
        snprintf(name, 256, "name-%u", number);
    } else if (number < 20) { /* as long as a name can be */
        memset(name, 'a' + (int)number, 255);
        name[255] = '\0';
    } else { /* any byte but '/' and NUL */
        for (uint32_t i = 0; i < 200; i++)
            name[i] = (char)(1 + (i + number) % 46);
        name[200] = '\0';
    }
}

void model_bytes(uint32_t fill, uint8_t *bytes, uint32_t length) {
    uint32_t state = fill * 2654435761u + 1;

    for (uint32_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        bytes[i] = (uint8_t)(state >> 24);
    }
}

static int add_entry(struct model *model, uint32_t dir, const char *name, uint32_t node) {
    struct model_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->node = node;
    entry->next = model->nodes[dir].entries;
    model->nodes[dir].entries = entry;
    return 0;
}

static void remove_entry(struct model *model, uint32_t dir, const char *name) {
    struct model_entry **link = &model->nodes[dir].entries;

    while (strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    struct model_entry *entry = *link;
    *link = entry->next;
    free(entry);
}

static void drop_link(struct model_node *node) {
    node->nlink = S_ISDIR(node->mode) ? 0 : node->nlink - 1;
    if (node->nlink == 0)
        node_clear(node);
}

static int make(struct model *model, const struct operation *op, uint32_t dir, const char *name) {
    uint32_t node = 1;

    if (model_find(model, dir, name))
        return -EEXIST;
    while (node < MODEL_NODES && model->nodes[node].mode)
        node++;
    if (node == MODEL_NODES)
        return -ENOSPC;
    struct model_node *made = &model->nodes[node];
    made->nlink = 1;
    made->mode = S_IFREG | (op->fill & 0777);
    if (op->kind == OP_MKDIR) {
        made->mode = S_IFDIR | (op->fill & 0777);
        made->nlink = 2;
        made->parent = dir;
        model->nodes[dir].nlink++;
    }
    made->data = calloc(1, S_ISDIR(made->mode) ? 1 : MODEL_FILE_MAX);
    if (op->kind == OP_SYMLINK) {
        made->mode = S_IFLNK | 0777;
        made->size = 1 + op->length % 1000;
        memset(made->data, 'a' + (int)(op->fill % 26), made->size);
    }
    if (node >= model->used)
        model->used = node + 1;
    return made->data ? add_entry(model, dir, name, node) : -ENOMEM;
}

static int link_node(struct model *model, const struct operation *op, uint32_t dir,
                     const char *name) {
    uint32_t node;

    if (!model_pick(model, S_IFREG, op->file, &node))
        return -ENOENT;
    if (model_find(model, dir, name))
        return -EEXIST;
    model->nodes[node].nlink++;
    return add_entry(model, dir, name, node);
}

static int unlink_name(struct model *model, uint32_t dir, const char *name, bool directory) {
    const struct model_entry *entry = model_find(model, dir, name);

    if (!entry)
        return -ENOENT;
    struct model_node *node = &model->nodes[entry->node];
    if (directory != (bool)S_ISDIR(node->mode))
        return directory ? -ENOTDIR : -EISDIR;
    if (node->entries)
        return -ENOTEMPTY;
    remove_entry(model, dir, name);
    if (directory)
        model->nodes[dir].nlink--;
    drop_link(node);
    return 0;
}

static bool is_below(const struct model *model, uint32_t dir, uint32_t ancestor) {
    for (; dir != 0; dir = model->nodes[dir].parent) {
        if (dir == ancestor)
            return true;
    }
    return ancestor == 0;
}

static int rename_refused(const struct model *model, uint32_t from_dir, uint32_t to_dir,
                          const struct model_node *node, uint32_t index,
                          const struct model_entry *victim, bool exchange) {
    if (S_ISDIR(node->mode) && is_below(model, to_dir, index))
        return -EINVAL;
    if (!victim)
        return 0;
    const struct model_node *other = &model->nodes[victim->node];
    if (exchange)
        return S_ISDIR(other->mode) && is_below(model, from_dir, victim->node) ? -EINVAL : 0;
    if (S_ISDIR(node->mode) && !S_ISDIR(other->mode))
        return -ENOTDIR;
    if (!S_ISDIR(node->mode) && S_ISDIR(other->mode))
        return -EISDIR;
    return other->entries ? -ENOTEMPTY : 0;
}

/* A directory in `node` moves from one parent to the other. */
static void move_parent(struct model *model, uint32_t node, uint32_t from, uint32_t to) {
    if (!S_ISDIR(model->nodes[node].mode))
        return;
    model->nodes[from].nlink--;
    model->nodes[to].nlink++;
    model->nodes[node].parent = to;
}

static int rename_node(struct model *model, uint32_t from_dir, const char *from, uint32_t to_dir,
                       const char *to, bool exchange) {
    struct model_entry *entry = model_find(model, from_dir, from);
    struct model_entry *victim = model_find(model, to_dir, to);

    if (!entry || (exchange && !victim))
        return -ENOENT;
    uint32_t index = entry->node;
    struct model_node *node = &model->nodes[index];
    if (victim && victim->node == index)
        return 0;
    int error = rename_refused(model, from_dir, to_dir, node, index, victim, exchange);
    if (error)
        return error;
    if (exchange) {
        entry->node = victim->node;
        move_parent(model, victim->node, to_dir, from_dir);
        victim->node = index;
        move_parent(model, index, from_dir, to_dir);
        return 0;
    }
    if (victim) {
        struct model_node *old = &model->nodes[victim->node];
        if (S_ISDIR(old->mode))
            model->nodes[to_dir].nlink--;
        drop_link(old);
        victim->node = index;
    } else {
        error = add_entry(model, to_dir, to, index);
        if (error)
            return error;
    }
    remove_entry(model, from_dir, from);
    move_parent(model, index, from_dir, to_dir);
    return 0;
}

/* Who changes contents takes away the right to run as their owner. */
static void drop_set_id(struct model_node *node) {
    node->mode &= ~(uint32_t)S_ISUID;
    if (node->mode & S_IXGRP)
        node->mode &= ~(uint32_t)S_ISGID;
}

static void write_bytes(struct model_node *node, const struct operation *op) {
    if (op->length)
        drop_set_id(node);
    model_bytes(op->fill, node->data + op->offset, op->length);
    if (op->length && op->offset + op->length > node->size)
        node->size = op->offset + op->length;
}

static void truncate_node(struct model_node *node, uint32_t size) {
    if (size != node->size)
        drop_set_id(node);
    if (size < node->size)
        memset(node->data + size, 0, node->size - size);
    node->size = size;
}

static void punch(struct model_node *node, const struct operation *op) {
    uint32_t end = op->offset + op->length;

    if (end > node->size)
        end = node->size;
    if (op->offset >= end)
        return;
    drop_set_id(node);
    memset(node->data + op->offset, 0, end - op->offset);
}

static int change_file(struct model *model, const struct operation *op) {
    uint32_t index;

    if (!model_pick(model, S_IFREG, op->file, &index))
        return 0;
    struct model_node *node = &model->nodes[index];
    switch (op->kind) {
    case OP_WRITE:
        write_bytes(node, op);
        break;
    case OP_TRUNCATE:
        truncate_node(node, op->offset);
        break;
    case OP_PUNCH:
        punch(node, op);
        break;
    case OP_SETATTR:
        node->mode = S_IFREG | (op->fill & 07777);
        break;
    case OP_XATTR:
        node->value_length = op->length % sizeof(node->value);
        model_bytes(op->fill, (uint8_t *)node->value, node->value_length);
        break;
    default:
        break;
    }
    return 0;
}

int model_apply(struct model *model, const struct operation *op) {
    char name[256], other[256];
    uint32_t dir = 0, other_dir = 0;

    model_pick(model, S_IFDIR, op->dir, &dir);
    model_pick(model, S_IFDIR, op->other_dir, &other_dir);
    model_name(op->name, name);
    model_name(op->other, other);
    switch (op->kind) {
    case OP_CREATE:
    case OP_MKDIR:
    case OP_SYMLINK:
        return make(model, op, dir, name);
    case OP_LINK:
        return link_node(model, op, dir, name);
    case OP_UNLINK:
    case OP_RMDIR:
        return unlink_name(model, dir, name, op->kind == OP_RMDIR);
    case OP_RENAME:
    case OP_EXCHANGE:
        return rename_node(model, dir, name, other_dir, other, op->kind == OP_EXCHANGE);
    default:
        return change_file(model, op);
    }
}

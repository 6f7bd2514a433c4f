/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. Directories: a hash table by name and a tree by cookie over the same
 * entries. Cookies 1 and 2 belong to "." and "..", which are not stored.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/memory/memory.h"

enum { COOKIE_DOT = 1, COOKIE_DOT_DOT = 2, COOKIE_FIRST = 3 };

static int by_cookie(struct memory_entry *a, struct memory_entry *b) {
    return a->cookie < b->cookie ? -1 : a->cookie > b->cookie;
}

RB_GENERATE_INTERNAL(memory_entry_tree, memory_entry, by_cookie, by_cookie,
                     static __attribute__((unused)))

void memory_dir_init(struct memory_node *node, uint64_t parent) {
    RB_INIT(&node->entries);
    node->parent = parent;
    node->next_cookie = COOKIE_FIRST;
}

static struct memory_entry *find(const struct memory_node *node, const char *name,
                                 uint32_t length) {
    struct memory_entry *entry;

    HASH_FIND(by_name, node->names, name, length, entry);
    return entry;
}

static void discard(struct memory_node *node, struct memory_entry *entry) {
    HASH_DELETE(by_name, node->names, entry);
    RB_REMOVE(memory_entry_tree, &node->entries, entry);
    free(entry);
}

void memory_dir_free(struct memory_node *node) {
    struct memory_entry *entry, *next;

    HASH_ITER (by_name, node->names, entry, next) {
        discard(node, entry);
    }
}

static int insert(struct memory_node *node, const char *name, uint32_t length,
                  const struct inode *inode) {
    struct memory_entry *entry = malloc(sizeof(*entry) + length);

    if (!entry)
        return -ENOMEM;
    entry->cookie = node->next_cookie++;
    entry->ino = inode->ino;
    entry->type = inode->mode & S_IFMT;
    entry->name_length = length;
    memcpy(entry->name, name, length);
    HASH_ADD_KEYPTR(by_name, node->names, entry->name, length, entry);
    RB_INSERT(memory_entry_tree, &node->entries, entry);
    return 0;
}

int memory_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    const struct memory_node *node = memory_node_of(dir);

    if (length == 1 && name[0] == '.') {
        *ino = node->ino;
        return 0;
    }
    if (length == 2 && name[0] == '.' && name[1] == '.') {
        *ino = node->parent;
        return 0;
    }
    const struct memory_entry *entry = find(node, name, length);
    if (!entry)
        return -ENOENT;
    *ino = entry->ino;
    return 0;
}

int memory_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    return insert(memory_node_of(dir), name, length, inode);
}

int memory_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct memory_node *node = memory_node_of(dir);
    struct memory_entry *entry = find(node, name, length);

    if (!entry || entry->ino != inode->ino)
        return -ENOENT;
    discard(node, entry);
    return 0;
}

static void name_other(struct memory_entry *entry, const struct inode *inode) {
    entry->ino = inode->ino;
    entry->type = inode->mode & S_IFMT;
}

int memory_dir_rename(const struct rename *r) {
    struct memory_node *source = memory_node_of(r->source_dir);
    struct memory_node *target = memory_node_of(r->target_dir);
    struct memory_entry *from = find(source, r->source_name, r->source_length);
    struct memory_entry *to = find(target, r->target_name, r->target_length);

    if (!from || (r->victim && !to))
        return -ENOENT;
    if (to) {
        name_other(to, r->inode);
    } else {
        int error = insert(target, r->target_name, r->target_length, r->inode);
        if (error)
            return error;
    }
    if (S_ISDIR(r->inode->mode))
        memory_node_of(r->inode)->parent = target->ino;
    if (r->flags & RENAME_EXCHANGE_NAMES) {
        name_other(from, r->victim);
        if (S_ISDIR(r->victim->mode))
            memory_node_of(r->victim)->parent = source->ino;
    } else if (r->whiteout) {
        name_other(from, r->whiteout);
    } else {
        discard(source, from);
    }
    return 0;
}

static bool visit_dot(const struct memory_node *node, uint64_t cookie, dir_visit visit,
                      void *context) {
    struct dir_entry dot = {".", 1, node->ino, S_IFDIR, COOKIE_DOT};
    struct dir_entry dot_dot = {"..", 2, node->parent, S_IFDIR, COOKIE_DOT_DOT};

    if (cookie < COOKIE_DOT && !visit(context, &dot))
        return false;
    return cookie >= COOKIE_DOT_DOT || visit(context, &dot_dot);
}

int memory_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    struct memory_node *node = memory_node_of(dir);
    struct memory_entry key = {.cookie = cookie + 1};

    if (!visit_dot(node, cookie, visit, context))
        return 0;
    for (struct memory_entry *entry = RB_NFIND(memory_entry_tree, &node->entries, &key); entry;
         entry = RB_NEXT(memory_entry_tree, &node->entries, entry)) {
        struct dir_entry out = {entry->name, entry->name_length, entry->ino, entry->type,
                                entry->cookie};
        if (!visit(context, &out))
            break;
    }
    return 0;
}

int memory_dir_empty(struct inode *dir) {
    return memory_node_of(dir)->names ? -ENOTEMPTY : 0;
}

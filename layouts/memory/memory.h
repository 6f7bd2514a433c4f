/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. The smallest layout: everything is kept in memory and forgotten at
 * unmount. It is the floor for measurements (the cost of all that is not layout) and the example
 * that docs/writing-a-layout.md walks through.
 *
 *   layout.c  the table, options, life of a volume, nodes    dir.c   directories
 *   data.c    file contents                                   xattr.c extended attributes
 *
 * Invariants:
 *  1. A node exists for every inode number in use; nodes[ino] finds it.
 *  2. used_pages is the number of data pages of all nodes, never more than total_pages.
 *  3. Entries of a directory have ascending, never reused cookies.
 * Locking: none of its own. The core's exclusive lock covers all changes but `store`, which copies
 * into pages that `reserve` allocated and needs only the inode's data lock.
 */
#ifndef LAYOUTFS_MEMORY_H
#define LAYOUTFS_MEMORY_H

#include <bsd/sys/tree.h>
#include <uthash.h>

#include "fs/volume.h"

struct memory_entry {
    UT_hash_handle by_name;
    RB_ENTRY(memory_entry) by_cookie;
    uint64_t cookie;
    uint64_t ino;
    uint32_t type;
    uint32_t name_length;
    char name[];
};

RB_HEAD(memory_entry_tree, memory_entry);

struct memory_xattr {
    struct memory_xattr *next;
    size_t size;
    char *name; /* owned, as is the value */
    void *value;
};

/* A page of a file. Where there is none, is a hole. */
struct memory_page {
    RB_ENTRY(memory_page) by_index;
    uint64_t index; /* offset in the file / PAGE_SIZE_BYTES */
    void *data;
};

RB_HEAD(memory_page_tree, memory_page);

/* What a disk layout would keep on disk for one inode. */
struct memory_node {
    uint64_t ino;
    struct inode attributes; /* only the attributes part is used */
    /* regular files */
    struct memory_page_tree pages;
    uint64_t page_count;
    char *target; /* symlinks */
    /* directories */
    struct memory_entry *names;
    struct memory_entry_tree entries;
    uint64_t parent;
    uint64_t next_cookie;
    struct memory_xattr *xattrs;
};

struct memory {
    struct memory_node **nodes; /* by inode number */
    uint64_t node_slots;
    uint64_t node_count;
    uint64_t *free_numbers; /* a stack of numbers given back */
    uint64_t free_count;
    uint64_t next_number;
    uint64_t total_pages, used_pages;
    struct recycler pages, page_data; /* memory for struct memory_page and what is in it */
    uint32_t generation;
};

struct memory_inode { /* struct inode's private part */
    struct memory_node *node;
};

static inline struct memory *memory_of(const struct volume *volume) {
    return volume->layout_data;
}
static inline struct memory_node *memory_node_of(struct inode *inode) {
    return ((struct memory_inode *)inode_private(inode))->node;
}

/* dir.c: the contract's functions, and the emptying of a directory that goes away. */
void memory_dir_init(struct memory_node *node, uint64_t parent);
void memory_dir_free(struct memory_node *node);
int memory_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
int memory_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int memory_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int memory_dir_rename(const struct rename *rename);
int memory_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
int memory_dir_empty(struct inode *dir);

/* data.c */
void memory_data_free(struct memory *memory, struct memory_node *node);
int64_t memory_reserve(struct inode *inode, uint64_t offset, uint64_t length);
int memory_load(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int memory_store(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int memory_truncate(struct inode *inode, uint64_t size);
int memory_punch(struct inode *inode, uint64_t offset, uint64_t length);
int memory_collapse(struct inode *inode, uint64_t offset, uint64_t length);
int memory_insert(struct inode *inode, uint64_t offset, uint64_t length);
int memory_map(struct inode *inode, uint64_t offset, struct extent *extent);

/* xattr.c */
void memory_xattr_free(struct memory_node *node);
int64_t memory_xattr_get(struct inode *inode, const char *name, void *value, size_t size);
int memory_xattr_set(struct inode *inode, const char *name, const void *value, size_t size,
                     int flags);
int memory_xattr_remove(struct inode *inode, const char *name);
int64_t memory_xattr_list(struct inode *inode, char *list, size_t size);

#endif

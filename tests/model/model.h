/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model checker. Random operations run on a volume and on the simplest possible model of
 * a POSIX tree; every answer must be the same, and so must the trees. A sequence is an array of
 * operations made from a seed; a failing one is shrunk by leaving operations out.
 *
 *   model.c     the tree in memory and what each operation does to it
 *   operate.c   the same operations on a volume, and the comparison
 *   test_model.c  sequences, shrinking, the layouts
 */
#ifndef LAYOUTFS_TEST_MODEL_H
#define LAYOUTFS_TEST_MODEL_H

#include "fs/volume.h"

#define MODEL_FILE_MAX (1u << 20) /* bytes of one file */
#define MODEL_NODES    4096

enum operation_kind {
    OP_CREATE,
    OP_MKDIR,
    OP_SYMLINK,
    OP_LINK,
    OP_UNLINK,
    OP_RMDIR,
    OP_RENAME,
    OP_EXCHANGE,
    OP_WRITE,
    OP_READ,
    OP_TRUNCATE,
    OP_PUNCH,
    OP_SETATTR,
    OP_XATTR,
    OP_LIST,
    OP_FSYNC,
    OP_DROP_CACHES,
    OP_KINDS
};

/* Objects are picked as `index modulo how many there are`, so that a sequence stays meaningful when
 * operations are left out. */
struct operation {
    enum operation_kind kind;
    uint32_t dir, name;        /* a directory and one of the names */
    uint32_t other_dir, other; /* of link, rename, exchange */
    uint32_t file;             /* a regular file, for data */
    uint32_t offset, length;   /* bytes */
    uint32_t fill;             /* seeds contents, modes, values */
};

struct model_node {
    uint32_t mode; /* 0: free */
    uint32_t nlink;
    uint32_t parent;
    uint32_t size;
    uint8_t *data;         /* MODEL_FILE_MAX bytes; symlinks: the target */
    uint32_t value_length; /* of the one attribute "user.test"; 0: none */
    char value[64];
    struct model_entry *entries;
};

struct model_entry {
    struct model_entry *next;
    uint32_t node;
    char name[256];
};

struct model {
    struct model_node nodes[MODEL_NODES]; /* 0 is the root */
    uint32_t used;                        /* nodes ever used */
};

struct model *model_new(void);
void model_free(struct model *model);
/* The n-th directory or regular file in a fixed order; false: there is none. */
bool model_pick(const struct model *model, uint32_t type, uint32_t n, uint32_t *node);
struct model_entry *model_find(const struct model *model, uint32_t dir, const char *name);
/* A path from the root; `size` bytes. */
void model_path(const struct model *model, uint32_t node, char *path, size_t size);
/* The name that an operation's number means: short ones, long ones, odd bytes. */
void model_name(uint32_t number, char name[256]);
/* Bytes that `fill` stands for. */
void model_bytes(uint32_t fill, uint8_t *bytes, uint32_t length);

/* Does the operation to the model: 0 or the negative errno that POSIX wants. */
int model_apply(struct model *model, const struct operation *operation);
/* Does it to the volume, comparing what it reads with the model as it was before. `expected` is
 * model_apply's coming answer. Returns 0 when they agree; else says why in `why`. */
int operate(struct volume *volume, const struct model *model, const struct operation *operation,
            int *answer, char *why, size_t size);
/* Compares the whole volume with the model: 0, or why not. */
int compare_tree(struct volume *volume, const struct model *model, char *why, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: what a tree of some hundred thousand objects must look like. The model says which objects
 * there are and, from a seed for each, every byte of their contents; it is kept in a text file
 * between the programs that change a filesystem and those that look at it again.
 *
 * Invariants:
 *  1. objects[0] is the root, its own parent. An object's index never changes; a removed one stays,
 *     with mode 0.
 *  2. No two objects of a directory have the same name: names are made from indices.
 */
#ifndef LAYOUTFS_TEST_SCALE_MODEL_H
#define LAYOUTFS_TEST_SCALE_MODEL_H

#include "bench/driver.h"
#include "fs/random.h"

#define MODEL_ROOT     0u
#define MODEL_NAME_MAX 48u

struct object {
    char name[MODEL_NAME_MAX];
    uint32_t parent;
    uint32_t mode;     /* 0: removed */
    uint32_t children; /* of a directory */
    uint32_t sparse;   /* only the pieces that content_piece gives are there, the rest is a hole */
    uint64_t size;     /* of directories: nothing is known */
    uint64_t seed;     /* of the contents */
    int64_t mtime;     /* seconds; 0: not known */
    /* Of a directory, while it is open: see scale.c. */
    struct driver_node node;
    bool open;
};

struct model {
    struct object *objects;
    uint32_t count, room;
    struct random random;
};

/* Ends the program with a sentence: a test that has found something. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void model_init(struct model *model, uint64_t seed);
void model_load(struct model *model, const char *path);
void model_save(const struct model *model, const char *path);
void model_free(struct model *model);

/* A new object, in no directory's count yet; `name` NULL: a new name of some length. */
struct object *model_new(struct model *model, uint32_t parent, const char *name, uint32_t mode);
/* It has been made, or has gone: its directory has one child more, or less. */
void model_made(struct model *model, const struct object *object);
void model_gone(struct model *model, struct object *object);
/* A new name for it, as a rename gives. */
void model_rename(struct model *model, struct object *object);
/* A live object of that type, or NULL when there are no more than a few. */
struct object *model_pick(struct model *model, uint32_t type);
/* Is `object` `above` or below it? */
bool model_below(const struct model *model, const struct object *object,
                 const struct object *above);
uint32_t model_index(const struct model *model, const struct object *object);
/* For messages; valid until the next call. */
const char *model_path(const struct model *model, const struct object *object);

/* What reading `length` bytes at `offset` must give. */
void content_fill(const struct object *file, uint64_t offset, uint8_t *buffer, size_t length);
/* The pieces of a sparse file that are written. */
#define CONTENT_PIECES      5u
#define CONTENT_PIECE_BYTES 20000u
void content_piece(const struct object *file, uint32_t number, uint64_t *start, uint64_t *end);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a filesystem that the model checker drives. Handles stand for objects, whether they have a
 * name or not; functions answer 0 (or a count) or a negative errno.
 */
#ifndef LAYOUTFS_TEST_TARGET_H
#define LAYOUTFS_TEST_TARGET_H

#include <stdio.h>

#include "tests/model/model.h"

union handle {
    void *pointer;
    int descriptor;
};

struct target_attributes {
    uint64_t size;
    uint32_t mode, nlink, uid, gid, rdev;
    int64_t mtime, ctime; /* nanoseconds since 1970 */
};

struct target_space {
    uint64_t blocks_free, inodes_free;
};

/* Called for every name but "." and ".."; `type` as in a mode, 0: unknown. */
typedef void (*target_visit)(void *context, const char *name, uint32_t type);

struct target;

struct target_type {
    int (*root)(struct target *target, union handle *handle);
    int (*child)(struct target *target, union handle dir, const char *name, union handle *handle);
    /* For use after the last name is gone. */
    int (*hold)(struct target *target, union handle handle, union handle *held);
    void (*put)(struct target *target, union handle handle);

    int (*create)(struct target *target, union handle dir, const char *name,
                  const struct operation *op);
    int (*link)(struct target *target, union handle handle, union handle dir, const char *name);
    int (*unlink)(struct target *target, union handle dir, const char *name, bool directory);
    int (*rename)(struct target *target, union handle dir, const char *name, union handle other_dir,
                  const char *other, unsigned flags);
    /* In pieces, so that positions in a listing are used. */
    int (*list)(struct target *target, union handle dir, target_visit visit, void *context);
    int (*read_link)(struct target *target, union handle handle, char *buffer, size_t size);

    int64_t (*read)(struct target *target, union handle handle, void *buffer, uint32_t length,
                    uint32_t offset, uint32_t how);
    int64_t (*write)(struct target *target, union handle handle, const void *buffer,
                     uint32_t length, uint32_t offset, uint32_t how);
    int64_t (*append)(struct target *target, union handle handle, const void *buffer,
                      uint32_t length);
    int (*truncate)(struct target *target, union handle handle, uint32_t size, bool by_open);
    int (*fallocate)(struct target *target, union handle handle, int mode, uint32_t offset,
                     uint32_t length);
    int64_t (*copy)(struct target *target, union handle from, uint32_t offset, union handle to,
                    uint32_t to_offset, uint32_t length);
    int64_t (*seek)(struct target *target, union handle handle, uint32_t offset, int whence);
    int (*sync)(struct target *target, union handle handle, bool data_only);

    int (*stat)(struct target *target, union handle handle, struct target_attributes *attributes);
    int (*chmod)(struct target *target, union handle handle, uint32_t mode);
    int (*chown)(struct target *target, union handle handle, uint32_t uid, uint32_t gid);
    int (*set_mtime)(struct target *target, union handle handle, int64_t ns);
    int64_t (*get_attribute)(struct target *target, union handle handle, const char *name,
                             void *value, size_t size);
    int (*set_attribute)(struct target *target, union handle handle, const char *name,
                         const void *value, size_t size, int flags);
    int (*remove_attribute)(struct target *target, union handle handle, const char *name);
    int64_t (*list_attributes)(struct target *target, union handle handle, char *list, size_t size);

    int (*drop_caches)(struct target *target);
    int (*remount)(struct target *target); /* never while handles are held */
    int (*space)(struct target *target, struct target_space *space);
    /* Calendar time in nanoseconds, before and after an operation. */
    int64_t (*before)(struct target *target, const struct operation *op);
    int64_t (*after)(struct target *target);
};

struct target {
    const struct target_type *type;
    uint32_t block_size;
    int64_t time_granularity_ns, time_min_s, time_max_s;
    bool keeps_set_id_bits;
    unsigned patience; /* twentieths of a second until freed space must be seen */
    uint64_t without;  /* 1 << kind: what it shall not be asked for */
    bool is_log;       /* blocks are free again when they have been cleaned, which takes its time */
    uint64_t lacks;    /* 1 << kind: what the target refused with EOPNOTSUPP */
    union handle slots[MODEL_SLOTS];
    uint8_t *buffer; /* MODEL_FILE_MAX + 1 bytes, for any one operation */
};

struct difference {
    char text[512]; /* "": none */
};

/* Walks there, or takes the handle of a slot. */
int target_find(struct target *target, const struct model *model, uint32_t node,
                union handle *handle);
/* Does the operation to the target and compares what it reads with the model as it was before.
 * *answer is to be compared with model_apply's; true: both have to be left as they are. */
bool operate(struct target *target, struct model *model, const struct operation *op, int *answer,
             struct difference *difference);
/* Closes all slots and removes everything below the root. */
int target_empty(struct target *target, struct model *model);

/* compare.c; a difference is left in *difference. */
void compare_node(struct target *target, const struct model *model, uint32_t node,
                  struct difference *difference);
void compare_tree(struct target *target, const struct model *model, struct difference *difference);
void compare_bytes(const struct model_node *node, uint32_t offset, uint32_t length,
                   const uint8_t *bytes, int64_t got, struct difference *difference);

/* Everything has been removed: then all the space must be there again. */
void compare_space(struct target *target, const struct target_space *at_first,
                   struct difference *difference);

#define differ(difference, ...)                                                                    \
    snprintf((difference)->text, sizeof((difference)->text), __VA_ARGS__)

#endif

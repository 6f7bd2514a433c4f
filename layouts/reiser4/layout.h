/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the top: the in-core inode's private part, and what the files implement
 * of the contract (fs/layout.h), which layout.c puts together. Each function's promise is the
 * contract's.
 */
#ifndef LAYOUTFS_REISER4_LAYOUT_H
#define LAYOUTFS_REISER4_LAYOUT_H

#include <bsd/sys/tree.h>

#include "fs/block_set.h"
#include "layouts/reiser4/extent.h"
#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/stat.h"

struct reiser4_places;

enum reiser4_form { /* of a regular file's body */
                    REISER4_FORM_UNKNOWN,
                    REISER4_FORM_EMPTY,
                    REISER4_FORM_TAILS,
                    REISER4_FORM_EXTENTS,
                    REISER4_FORM_MIXED, /* an interrupted conversion */
                    REISER4_FORM_CLUSTERS,
};

struct reiser4_inode {
    uint64_t locality, ordering;       /* with the inode's number, the object */
    uint64_t bytes;                    /* of the stat data; not a device's */
    struct reiser4_plugins plugins;    /* that hold */
    struct reiser4_slots slots, heirs; /* as stored */
    uint16_t mask;                     /* extensions that the stat data has, or will have */
    uint8_t form;                      /* enum reiser4_form */
    bool pending;                      /* in atom.pending */
    struct block_set pending_blocks;   /* reserved, not stored */
    RB_ENTRY(reiser4_inode) pending_link;
    struct reiser4_places *places; /* dir_places.c: owned, or NULL */
};

static inline struct reiser4_inode *reiser4_inode_of(struct inode *inode) {
    return inode_private(inode);
}
static inline struct inode *reiser4_inode_core(struct reiser4_inode *inode) {
    return (struct inode *)(void *)inode - 1;
}
static inline struct reiser4_object reiser4_object_of(struct inode *inode) {
    const struct reiser4_inode *private = inode_private(inode);
    return (struct reiser4_object){private->locality, private->ordering, inode->ino};
}

/* options.c */
extern const struct option_spec reiser4_option_table[];
/* What a mount is told. */
void reiser4_options_take(const struct options *options, struct reiser4_options *taken);

/* mkfs.c */
int reiser4_format(struct device *device, const struct options *options);
/* mount.c */
int reiser4_probe(struct device *device, struct probe_result *result);
int reiser4_mount(struct volume *volume, const struct options *options);
int reiser4_unmount(struct volume *volume);
int reiser4_statfs(struct volume *volume, struct volume_usage *usage);
/* inode.c */
int reiser4_inode_load(struct inode *inode);
int reiser4_inode_store(struct inode *inode);
int reiser4_inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int reiser4_inode_free(struct inode *inode);
void reiser4_inode_evict(struct inode *inode);
int reiser4_orphan_add(struct inode *inode);
int reiser4_orphan_remove(struct inode *inode);
int reiser4_symlink_write(struct inode *inode, const char *target, uint32_t length);
int reiser4_symlink_read(struct inode *inode, char *target);
/* The stat data of an object, for those who have no inode: -ENOENT: there is none; -EUCLEAN. `body`
 * (REISER4_BLOCK_SIZE bytes) holds what stat points at. Shared. */
int reiser4_stat_read(struct reiser4 *r4, const struct reiser4_object *object, uint8_t *body,
                      struct reiser4_stat *stat);
/* dir.c: look-ups and listings; dir_edit.c: changes. A directory's size is its number of entries,
 * "." and ".." included. */
int reiser4_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
int reiser4_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
int reiser4_dir_empty(struct inode *dir);
/* The entry of that name: the cursor stands on it. -ENOENT. Shared. */
int reiser4_dir_seek(struct inode *dir, const char *name, uint32_t length,
                     struct reiser4_cursor *cursor);
/* "." and ".." of a new directory; for inode.c and mkfs.c. */
int reiser4_dir_initialise(struct inode *dir, const struct reiser4_object *parent);
/* Takes both out again: the directory is deleted. */
int reiser4_dir_clear(struct inode *dir);
int reiser4_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int reiser4_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int reiser4_dir_rename(const struct rename *rename);
/* dir_places.c: cookies. The key of an entry has 192 bits, a cookie 63: the directory remembers in
 * core which entry each cookie that it has given out stands for, as long as its inode is there. An
 * entry keeps its cookie. A listing goes on with the first entry behind the place that the cookie
 * stands for, whether its entry is still there or not. */
struct reiser4_place_of_entry {
    struct reiser4_key key;
    uint64_t name_hash; /* among entries of one key, those are in the order of this */
};
int reiser4_places_cookie(struct inode *dir, const struct reiser4_place_of_entry *place,
                          uint64_t *cookie);
/* -EINVAL: no such cookie was given out. */
int reiser4_places_find(struct inode *dir, uint64_t cookie, struct reiser4_place_of_entry *place);
void reiser4_places_free(struct reiser4_places *places); /* NULL ok */
/* pending.c: inode->sectors as it follows from what is stored and what is pending. */
void reiser4_sectors_set(struct inode *inode);
/* body.c */
int64_t reiser4_reserve(struct inode *inode, uint64_t offset, uint64_t length);
int reiser4_load(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int reiser4_store(struct inode *inode, const struct data_range *range, struct device_batch *batch);
void reiser4_store_failed(struct volume *volume, int error);
int reiser4_truncate(struct inode *inode, uint64_t size);
int reiser4_punch(struct inode *inode, uint64_t offset, uint64_t length);
int reiser4_map(struct inode *inode, uint64_t offset, struct extent *extent);
/* The inode's data shall not be stored any more: what was reserved for it is given back. */
void reiser4_body_forget(struct inode *inode);
/* describe.c, explain.c */
int reiser4_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                     json_t **object);
int reiser4_explain(struct inode *inode, json_t **object);
/* check.c */
int reiser4_check(struct device *device, const struct log *log, struct check_report *report);

int reiser4_pending_compare(const struct reiser4_inode *a, const struct reiser4_inode *b);
RB_PROTOTYPE(reiser4_pending_tree, reiser4_inode, pending_link, reiser4_pending_compare)

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top: what its files implement of the contract (fs/layout.h), which
 * layout.c puts together. Each function's promise is the contract's.
 */
#ifndef LAYOUTFS_NILFS_LAYOUT_H
#define LAYOUTFS_NILFS_LAYOUT_H

#include "layouts/nilfs/space.h"

/* options.c */
extern const struct option_spec nilfs_option_table[];
/* What a mount is told. */
void nilfs_options_take(const struct options *options, struct nilfs_options *taken);

/* format.c */
int nilfs_format(struct device *device, const struct options *options);
int nilfs_probe(struct device *device, struct probe_result *result);
/* mount.c */
int nilfs_mount(struct volume *volume, const struct options *options);
int nilfs_unmount(struct volume *volume);
int nilfs_statfs(struct volume *volume, struct volume_usage *usage);
/* A step has claimed nothing yet (space.h). */
int nilfs_step_begin(struct volume *volume);
int nilfs_step_end(struct volume *volume);
/* inode.c */
int nilfs_inode_load(struct inode *inode); /* of the live tree */
int nilfs_inode_store(struct inode *inode);
int nilfs_inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int nilfs_inode_free(struct inode *inode);
void nilfs_inode_evict(struct inode *inode);
/* For history.c: loads inode->ino from the record `ino` of that ifile. Shared. */
int nilfs_inode_load_from(struct inode *inode, struct nilfs_file *ifile, uint64_t ino);
int nilfs_symlink_write(struct inode *inode, const char *target, uint32_t length);
int nilfs_symlink_read(struct inode *inode, char *target);
/* dir.c */
/* An empty directory's first block; inode.c. */
int nilfs_dir_initialise(struct inode *dir, uint64_t parent);
int nilfs_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
int nilfs_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int nilfs_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int nilfs_dir_rename(const struct rename *rename);
int nilfs_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
int nilfs_dir_empty(struct inode *dir);
/* dir_index.c */
void nilfs_dir_index_free(struct nilfs_dir_index *index); /* NULL ok */
/* data.c */
/* The inode's data shall not be stored any more: what was reserved for them is given back. */
void nilfs_data_forget(struct inode *inode);
/* Forgets the inode's data, and frees its blocks; LAYOUT_AGAIN. */
int nilfs_data_free(struct inode *inode);
int64_t nilfs_reserve(struct inode *inode, uint64_t offset, uint64_t length);
int nilfs_load(struct inode *inode, const struct data_range *range, struct device_batch *batch);
void nilfs_store_failed(struct volume *volume, int error);
int nilfs_store(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int nilfs_truncate(struct inode *inode, uint64_t size);
int nilfs_punch(struct inode *inode, uint64_t offset, uint64_t length);
int nilfs_map(struct inode *inode, uint64_t offset, struct extent *extent);
/* Takes an inode with data to be stored off the list of those; NULL: there is none. */
struct inode *nilfs_data_pending(struct nilfs *nilfs);
/* cleaner.c */
int nilfs_idle(struct volume *volume, int64_t now_ns, int64_t *next_ns);
int nilfs_clean(struct volume *volume, struct clean_report *report);
/* snapshots.c */
int64_t nilfs_checkpoint_list(struct volume *volume, uint64_t from, struct checkpoint *list,
                              size_t room);
int nilfs_checkpoint_keep(struct volume *volume, uint64_t *number, bool keep);
int nilfs_checkpoint_delete(struct volume *volume, uint64_t number);
/* check.c, describe.c, explain.c */
int nilfs_check(struct device *device, const struct log *log, struct check_report *report);
int nilfs_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                   json_t **object);
int nilfs_explain(struct inode *inode, json_t **object);

#endif

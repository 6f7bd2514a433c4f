/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over the device. The two super blocks: validation, choice, and when which
 * is written (docs/nilfs2-format.md, "super blocks").
 */
#ifndef LAYOUTFS_NILFS_SUPER_H
#define LAYOUTFS_NILFS_SUPER_H

#include "layouts/nilfs/nilfs.h"

uint64_t nilfs_super_second_offset(uint64_t device_bytes);
/* Magic, s_bytes and checksum. */
bool nilfs_super_valid(const struct nilfs_disk_super *super, const uint8_t raw[NILFS_SUPER_SIZE]);
/* Sets s_sum. */
void nilfs_super_seal(struct nilfs_disk_super *super);
/* Reads both, puts the better one in copy[0]. -ENODEV: neither is valid. Logs nothing. */
int nilfs_super_read(struct device *device, struct nilfs_supers *supers);
/* The geometry the current one describes, validated against the device; unknown incompatible
 * features: -ENOTSUP by name; -EUCLEAN with a sentence. */
int nilfs_super_geometry(const struct nilfs_supers *supers, struct device *device,
                         const struct log *log, struct nilfs_geometry *geometry);
/* Falls back to the other one: -EUCLEAN when there is none. */
int nilfs_super_fall_back(struct nilfs_supers *supers);
/* A mount for writing: count, time, not clean; both are written and name the same log. */
int nilfs_super_mounted(struct nilfs *nilfs);
/* Names the newest log with a super root; alternates. Flushes before, so that what it names is
 * durable, and after. One thread at a time, with or without a lock: it touches supers only. */
int nilfs_super_write(struct nilfs *nilfs, uint64_t cno, uint64_t block, uint64_t sequence,
                      uint64_t clean_segments);
/* A log with a super root has become durable: what the super blocks may name from now on. */
void nilfs_super_logged(struct nilfs *nilfs, uint64_t cno, uint64_t block, uint64_t sequence);
/* Is it time to write one? Not while all stays in the segment that the current one names; else in
 * a sync, or ten seconds after the last time. With a broken chain of logs, at once. */
bool nilfs_super_wanted(const struct nilfs *nilfs, bool sync);
/* Damage was found: into both, at once. */
int nilfs_super_note_error(struct nilfs *nilfs);
/* Unmount: clean, with the cursor at what nilfs_super_logged was told last. Flushes around it. */
int nilfs_super_unmounted(struct nilfs *nilfs, uint64_t clean_segments);
/* s_last_seq of the older copy: segments of this and later sequences are not to be cleaned. */
uint64_t nilfs_super_protected_sequence(const struct nilfs *nilfs);

#endif

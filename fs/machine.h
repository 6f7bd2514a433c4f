/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies).
 * The modelled machine: what its CPU needs for the elementary steps of a filesystem, how much
 * memory its page cache has, and how its kernel writes back. Presets and their sources are in
 * fs/machines.ini, embedded at build time.
 */
#ifndef LAYOUTFS_MACHINE_H
#define LAYOUTFS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct log;

/* Elementary steps. Each is charged once, by the layer named. The unit is one of the thing named;
 * machines.ini uses the lower-case names without the prefix. */
enum cost {
    COST_SYSCALL,      /* bench driver: one system call: entry, fd and exit */
    COST_PROCESS,      /* workload: fork, exec and exit of a small process */
    COST_LOOKUP,       /* volume: one path component resolved in memory */
    COST_INODE_CREATE, /* volume: a new in-core inode initialised (create, or load from a block) */
    COST_INODE_UPDATE, /* volume: an inode's attributes put into its block */
    COST_DIR_ENTRY,    /* layout: one directory entry looked at */
    COST_DIR_HASH,     /* layout: one name hashed and its leaf found */
    COST_BLOCK_ALLOC,  /* layout: one block allocated, freed or mapped */
    COST_BITMAP_KB,    /* layout: one KB of bitmap or descriptors scanned */
    COST_BUFFER,       /* buffer cache: one metadata block found */
    COST_PAGE,         /* page cache: one page found, added, or set clean */
    COST_COPY_KB,      /* page cache: one KB copied to or from the caller */
    COST_REQUEST,      /* device: one request submitted, merged and completed */
    COST_COUNT
};

struct machine {
    char name[32];
    char description[128];
    uint64_t memory_bytes; /* what the page and buffer cache may use */
    int64_t cost_ns[COST_COUNT];
    /* Write-back as Linux does it; percentages of memory_bytes. */
    unsigned dirty_background_percent; /* above it write-back starts */
    unsigned dirty_percent;            /* above it a writer waits */
    int64_t dirty_expire_ns;           /* a page this long dirty is written */
    int64_t writeback_interval_ns;     /* how often write-back looks */
    uint32_t readahead_bytes;          /* largest read-ahead window */
};

/* Fills *machine from the preset `name`. -ENOENT: no such preset (the known ones are logged). */
int machine_preset(const char *name, struct machine *machine, const struct log *log);
/* Calls visit for every preset in file order until it returns non-zero, which is returned. */
int machine_each_preset(int (*visit)(void *context, const struct machine *machine), void *context);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench (over libarchive). A file tree as a workload's input, held in memory: from an
 * archive, from a directory, or made up by bench/synthetic.c.
 *
 * Invariants:
 *  1. Entries are in the order in which an archiver would unpack them; a directory precedes what it
 *     holds, so entry->parent is less than the entry's own index.
 *  2. The tree is read-only once made: rows that run at the same time share it.
 */
#ifndef LAYOUTFS_BENCH_SOURCE_H
#define LAYOUTFS_BENCH_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "fs/clock.h"
#include "fs/log.h"

#define SOURCE_ROOT     UINT32_MAX /* the parent of top-level entries */
#define SOURCE_PATH_MAX 4096u

struct source_entry {
    const char *name; /* last component, terminated */
    uint32_t parent;  /* index, or SOURCE_ROOT */
    uint32_t depth;   /* directories above it; 0 at the top */
    uint32_t mode;    /* type (file, directory, symlink) and permissions */
    uint64_t size;    /* bytes of a file */
    struct timestamp mtime;
    const char *target;  /* of a symlink, else NULL */
    const char *content; /* of a file; NULL: taken from source->pool at pool_start */
    uint64_t pool_start;
};

struct source {
    char description[192]; /* one line: what it is and where from */
    struct source_entry *entries;
    uint32_t count;
    uint32_t files, directories, symlinks;
    uint64_t bytes;   /* sum of the files' sizes */
    uint32_t skipped; /* devices, sockets and other things that were left out */
    /* private */
    uint32_t capacity;
    char *pool; /* text from which generated files are cut */
    uint64_t pool_size;
    struct arena *arena;
    struct path_index *index;
};

/* Reads a tar (any compression libarchive knows, zip and others too) or walks a directory, names in
 * byte order. A sentence through `log` on failure. */
int source_open(const char *path, const struct log *log, struct source **source);
/* A kernel-like tree of exactly `files` files and about `bytes` bytes; bench/synthetic.c. */
int source_synthetic(uint32_t files, uint64_t bytes, uint64_t seed, const struct log *log,
                     struct source **source);
/* The source tree a Debian package installed here (linux-source, linux-headers), or -ENOENT. */
int source_find_installed(char path[SOURCE_PATH_MAX]);
void source_close(struct source *source);

/* Keeps about `files` of the files: whole directories, evenly spread over the tree, so that the
 * number of files in a directory stays what it was. Nothing when there are no more than that. */
int source_thin(struct source *source, uint32_t files);

/* The file's bytes from `offset` on: *data points at the returned number of contiguous bytes; 0 at
 * the end. */
size_t source_content(const struct source *source, const struct source_entry *entry,
                      uint64_t offset, const char **data);

/* --- for those who make a source --- */
int source_create(struct source **source);
/* Appends one entry; missing directories of the path are made. Entries without content get it from
 * the pool. *entry (may be NULL) is valid until the next call. -EEXIST: the path is there already
 * (for a directory: its mode and mtime are taken over, 0 returned). -EINVAL: "..", an empty name.
 */
int source_add(struct source *source, const char *path, uint32_t mode, struct timestamp mtime,
               struct source_entry **entry);
/* Memory that lives as long as the source. */
void *source_allocate(struct source *source, size_t size);
/* Fills in the sums; call once all entries are there. */
void source_finish(struct source *source);

#endif

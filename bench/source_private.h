/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. What source.c and source_load.c share.
 */
#ifndef LAYOUTFS_BENCH_SOURCE_PRIVATE_H
#define LAYOUTFS_BENCH_SOURCE_PRIVATE_H

#include "bench/source.h"

int source_load_archive(struct source *source, const char *path, const struct log *log);
int source_load_directory(struct source *source, const char *path, const struct log *log);
/* The entry at `path`, valid until the next source_add. -ENOENT. */
int source_find(struct source *source, const char *path, struct source_entry **entry);

#endif

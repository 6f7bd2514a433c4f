/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the centre: the mounted volume, which all files of the folder share.
 *
 * Reiser4 (format 4.0.2) as a layout, from the bottom up:
 *
 *     format.h     structures on disk
 *     key          keys, hashes and fibres of names          plugin   plugin sets
 *     node         a node as bytes
 *     item         kinds of items: stat, entries, extent, ctail, and in item.c itself the small
 * ones jnode        nodes and other changed blocks in core tree         the dancing tree, over
 * these four super        blocks at fixed places space        bitmaps journal  the wandering log
 *     flush        squeezing, places in parent-first order
 *     atom         what is committed together; commits
 *     objects      where objects with a number are
 *     inode, dir, body, safelink                             the contract's files
 *     layout.h     the contract itself: mount, options, format (mkfs), describe, explain, check
 *
 * Invariants of the volume in core:
 *  1. All changes since the last commit began belong to one *atom*, which the next commit makes
 *     durable, all or nothing. Until then nothing that the newest durable commit has is
 * overwritten.
 *  2. Metadata is in the tree, and nowhere else: changed nodes are jnodes (jnode.h), and get their
 *     places when they are flushed.
 *  3. Data of regular files is in the page cache until it is stored; see body.h.
 *  4. counters, tree.root and tree.height are those that the next commit writes.
 *
 * Locking: as the contract; changes happen under the volume's exclusive lock, and commit_write
 * touches only struct reiser4_commit. An error in the middle of a change (memory, an unreadable
 * node) leaves the volume in core inconsistent: reiser4_fail, after which no commit is made.
 */
#ifndef LAYOUTFS_REISER4_REISER4_H
#define LAYOUTFS_REISER4_REISER4_H

#include <pthread.h>

#include "fs/volume.h"
#include "layouts/reiser4/atom.h"
#include "layouts/reiser4/journal.h"
#include "layouts/reiser4/objects.h"
#include "layouts/reiser4/plugin.h"
#include "layouts/reiser4/space.h"
#include "layouts/reiser4/tree.h"

enum reiser4_txmod { /* which changed blocks keep their place; see flush.h */
                     REISER4_TXMOD_HYBRID,
                     REISER4_TXMOD_JOURNAL,
                     REISER4_TXMOD_WA,
};

enum reiser4_errors { REISER4_ERRORS_RO, REISER4_ERRORS_CONTINUE };

/* log_fault=, for tests: what is wrong on purpose, so that it is found. */
enum reiser4_fault {
    REISER4_FAULT_HEADER_FIRST = 1, /* the journal header names a log before that is durable */
    REISER4_FAULT_IN_PLACE_FIRST,   /* blocks are overwritten before the header is durable */
    REISER4_FAULT_NO_FLUSH,         /* nothing is flushed */
    REISER4_FAULT_REUSE,            /* released blocks may be allocated at once */
    REISER4_FAULT_NO_REPLAY,        /* mount takes no notice of a log */
};

struct reiser4_options { /* of a mount */
    enum reiser4_txmod txmod;
    int formatting;     /* enum reiser4_formatting for new files, or -1: as inherited */
    int64_t max_age_ns; /* tmgr.atom_max_age */
    uint64_t max_size;  /* tmgr.atom_max_size, blocks; 0: by the machine's memory */
    bool squeeze;       /* pack nodes at flush */
    uint32_t
        relocate_from; /* flush.relocate_threshold: adjacent dirty leaves from which all move */
    uint32_t distance; /* flush.relocate_distance, blocks */
    bool load_bitmaps; /* at mount: not dont_load_bitmap */
    bool barrier;      /* flush the disk's cache */
    enum reiser4_errors errors;
    enum reiser4_fault fault; /* 0: none */
};

struct reiser4 {
    struct volume *volume;
    struct buffer_cache *buffers;
    struct reiser4_options options;
    struct reiser4_super super;
    struct reiser4_journal journal;
    struct reiser4_counters counters; /* invariant 4; free_blocks is space.h's */
    struct reiser4_jnodes jnodes;
    struct reiser4_tree tree;
    struct reiser4_space space;
    struct reiser4_objects objects;
    pthread_mutex_t places_mutex;   /* a leaf: dir_places.c */
    struct reiser4_plugins plugins; /* the root directory's: the defaults of all objects */
    struct reiser4_atom atom;
    uint64_t status; /* enum reiser4_status, as found at mount */
    bool failed;
};

static inline struct reiser4 *reiser4_of(const struct volume *volume) {
    return volume->layout_data;
}

/* -EUCLEAN, after a sentence "VOLUME: reiser4: ..." that names structure and block. Under any lock;
 * takes a volume, so that the lower layers need no more. With errors=remount-ro nothing more is
 * written then (once layout_data is set). */
int reiser4_corrupt(const struct volume *volume, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Something failed in the middle of a change: stops the volume (volume_fail); returns `error`,
 * which may be 0: then nothing happens. */
int reiser4_fail(struct reiser4 *r4, int error);

#endif

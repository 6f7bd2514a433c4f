/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over format.h. Plugin sets: which of several ways each thing of an object
 * is done in. Facts: docs/reiser4-format.md, "plugin sets".
 *
 * The effective value of a member is the object's own slot, else the root directory's; of the
 * member `object`, else what follows from the mode.
 *
 * Invariants:
 *  1. Every id in a struct reiser4_plugins is one that the format has (< the member's count).
 *  2. What is stored with an object when it is made is what differs from the root's values, in
 *     ascending order of members, and no set at all where nothing does (reiser4_plugins_wanted). A
 *     set that was found otherwise is kept as it is until the object's values change.
 */
#ifndef LAYOUTFS_REISER4_PLUGIN_H
#define LAYOUTFS_REISER4_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "layouts/reiser4/format.h"

enum reiser4_member {
    REISER4_PLUGIN_OBJECT,      /* enum reiser4_object_plugin */
    REISER4_PLUGIN_DIRECTORY,   /* 0 */
    REISER4_PLUGIN_PERMISSION,  /* 0 */
    REISER4_PLUGIN_FORMATTING,  /* enum reiser4_formatting */
    REISER4_PLUGIN_HASH,        /* enum reiser4_hash */
    REISER4_PLUGIN_FIBRATION,   /* enum reiser4_fibration */
    REISER4_PLUGIN_STAT_DATA,   /* 0 */
    REISER4_PLUGIN_DIR_ITEM,    /* REISER4_ITEM_ENTRIES */
    REISER4_PLUGIN_CIPHER,      /* 0 */
    REISER4_PLUGIN_DIGEST,      /* 0 */
    REISER4_PLUGIN_COMPRESSION, /* enum reiser4_compression */
    REISER4_PLUGIN_MODE,        /* enum reiser4_compression_mode */
    REISER4_PLUGIN_CLUSTER,     /* 0..4: 64K >> id */
    REISER4_PLUGIN_CREATE,      /* of regular files made in the directory */
};
static_assert(REISER4_PLUGIN_CREATE + 1 == REISER4_PLUGIN_MEMBERS, "members");

enum reiser4_object_plugin {
    REISER4_OBJECT_REG40,
    REISER4_OBJECT_DIR40,
    REISER4_OBJECT_SYM40,
    REISER4_OBJECT_SPL40,
    REISER4_OBJECT_CCREG40,
};

enum reiser4_formatting { /* of reg40 bodies */
                          REISER4_FORMATTING_EXTENTS,
                          REISER4_FORMATTING_TAILS,
                          REISER4_FORMATTING_SMART, /* tails up to REISER4_SMART_MAX bytes */
};
#define REISER4_SMART_MAX 16384u

enum reiser4_compression { REISER4_LZO1, REISER4_GZIP1, REISER4_ZSTD1 };
enum reiser4_compression_mode {
    REISER4_MODE_NONE,
    REISER4_MODE_LATT,
    REISER4_MODE_ULTIM,
    REISER4_MODE_FORCE,
    REISER4_MODE_CONV,
};

struct reiser4_plugins {
    uint8_t id[REISER4_PLUGIN_MEMBERS];
};

/* Slots, as stored in a stat data item. */
struct reiser4_slots {
    uint16_t present; /* bit a member */
    uint8_t id[REISER4_PLUGIN_MEMBERS];
};

/* The name of a member, and of a value of it, as mkfs.reiser4 and the manual call them: "hash",
 * "r5_hash"; NULL: no such member or value. */
const char *reiser4_member_name(unsigned member);
const char *reiser4_plugin_name(unsigned member, unsigned id);
/* Has the format a plugin of that id? */
bool reiser4_plugin_valid(unsigned member, unsigned id);
/* The value of `object` that follows from a mode's type. */
enum reiser4_object_plugin reiser4_object_default(uint32_t mode);
/* What holds for an object of that mode with those slots of its own. */
void reiser4_plugins_of(const struct reiser4_plugins *root, const struct reiser4_slots *own,
                        uint32_t mode, struct reiser4_plugins *effective);
/* What a new object of that mode takes from its directory: `heirs`, the directory's heir set, goes
 * before `dir`, its effective set. */
void reiser4_plugins_inherit(const struct reiser4_plugins *root, const struct reiser4_plugins *dir,
                             const struct reiser4_slots *heirs, uint32_t mode,
                             struct reiser4_plugins *effective);
/* The slots that are to be stored for the values: invariant 2. */
void reiser4_plugins_wanted(const struct reiser4_plugins *root,
                            const struct reiser4_plugins *effective, uint32_t mode,
                            struct reiser4_slots *slots);
static inline uint32_t reiser4_slots_count(const struct reiser4_slots *slots) {
    return (uint32_t)__builtin_popcount(slots->present);
}

#endif

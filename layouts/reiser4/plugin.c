/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/plugin.h.
 */
#include "layouts/reiser4/plugin.h"

#include <string.h>
#include <sys/stat.h>

#include "layouts/reiser4/item.h"
#include "layouts/reiser4/key.h"

/* Names by id; NULL: no such plugin. */
static const char *const objects[] = {"reg40", "dir40", "sym40", "spl40", "ccreg40"};
static const char *const directories[] = {"hdir40"};
static const char *const permissions[] = {"perm40"};
static const char *const formattings[] = {"extents", "tails", "smart"};
static const char *const hashes[] = {"rupasov_hash", "r5_hash", "tea_hash", "fnv1_hash",
                                     "deg_hash"};
static const char *const fibrations[] = {"lexic_fibre", "dot_o_fibre", "ext_1_fibre",
                                         "ext_3_fibre"};
static const char *const stat_items[] = {"stat40"};
static const char *const dir_items[] = {NULL, NULL, "cde40"};
static const char *const ciphers[] = {"none"};
static const char *const digests[] = {"none"};
static const char *const compressions[] = {"lzo1", "gzip1", "zstd1"};
static const char *const modes[] = {"none", "latt", "ultim", "force", "conv"};
static const char *const clusters[] = {"64K", "32K", "16K", "8K", "4K"};
static const char *const creates[] = {"reg40", NULL, NULL, NULL, "ccreg40"};

#define MEMBER(name, ids)                                                                          \
    { name, ids, sizeof(ids) / sizeof(*(ids)) }
static const struct {
    const char *name;
    const char *const *ids;
    unsigned count;
} members[REISER4_PLUGIN_MEMBERS] = {
    [REISER4_PLUGIN_OBJECT] = MEMBER("object", objects),
    [REISER4_PLUGIN_DIRECTORY] = MEMBER("directory", directories),
    [REISER4_PLUGIN_PERMISSION] = MEMBER("permission", permissions),
    [REISER4_PLUGIN_FORMATTING] = MEMBER("formatting", formattings),
    [REISER4_PLUGIN_HASH] = MEMBER("hash", hashes),
    [REISER4_PLUGIN_FIBRATION] = MEMBER("fibration", fibrations),
    [REISER4_PLUGIN_STAT_DATA] = MEMBER("statdata", stat_items),
    [REISER4_PLUGIN_DIR_ITEM] = MEMBER("diritem", dir_items),
    [REISER4_PLUGIN_CIPHER] = MEMBER("crypto", ciphers),
    [REISER4_PLUGIN_DIGEST] = MEMBER("digest", digests),
    [REISER4_PLUGIN_COMPRESSION] = MEMBER("compress", compressions),
    [REISER4_PLUGIN_MODE] = MEMBER("compressMode", modes),
    [REISER4_PLUGIN_CLUSTER] = MEMBER("cluster", clusters),
    [REISER4_PLUGIN_CREATE] = MEMBER("create", creates),
};

const char *reiser4_member_name(unsigned member) {
    return member < REISER4_PLUGIN_MEMBERS ? members[member].name : NULL;
}

const char *reiser4_plugin_name(unsigned member, unsigned id) {
    return member < REISER4_PLUGIN_MEMBERS && id < members[member].count ? members[member].ids[id]
                                                                         : NULL;
}

bool reiser4_plugin_valid(unsigned member, unsigned id) {
    return reiser4_plugin_name(member, id) != NULL;
}

enum reiser4_object_plugin reiser4_object_default(uint32_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return REISER4_OBJECT_DIR40;
    case S_IFLNK:
        return REISER4_OBJECT_SYM40;
    case S_IFREG:
        return REISER4_OBJECT_REG40;
    default:
        return REISER4_OBJECT_SPL40;
    }
}

static void take_slots(const struct reiser4_slots *slots, struct reiser4_plugins *plugins) {
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        if (slots->present & 1u << i)
            plugins->id[i] = slots->id[i];
}

void reiser4_plugins_of(const struct reiser4_plugins *root, const struct reiser4_slots *own,
                        uint32_t mode, struct reiser4_plugins *effective) {
    *effective = *root;
    effective->id[REISER4_PLUGIN_OBJECT] = (uint8_t)reiser4_object_default(mode);
    take_slots(own, effective);
}

/* Members that a new file takes from its directory; beside these a ccreg40 file those of
 * compression. */
#define FILE_MEMBERS                                                                               \
    (1u << REISER4_PLUGIN_STAT_DATA | 1u << REISER4_PLUGIN_FORMATTING |                            \
     1u << REISER4_PLUGIN_PERMISSION)
#define CLUSTER_MEMBERS                                                                            \
    (1u << REISER4_PLUGIN_CLUSTER | 1u << REISER4_PLUGIN_CIPHER | 1u << REISER4_PLUGIN_DIGEST |    \
     1u << REISER4_PLUGIN_COMPRESSION | 1u << REISER4_PLUGIN_MODE)

void reiser4_plugins_inherit(const struct reiser4_plugins *root, const struct reiser4_plugins *dir,
                             const struct reiser4_slots *heirs, uint32_t mode,
                             struct reiser4_plugins *effective) {
    struct reiser4_plugins parent = *dir;
    unsigned object = reiser4_object_default(mode), taken = 0;

    take_slots(heirs, &parent);
    if (S_ISREG(mode))
        object = parent.id[REISER4_PLUGIN_CREATE];
    if (S_ISDIR(mode))
        taken = ~0u;
    else if (S_ISREG(mode))
        taken = FILE_MEMBERS | (object == REISER4_OBJECT_CCREG40 ? CLUSTER_MEMBERS : 0);
    *effective = *root;
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        if (taken & 1u << i)
            effective->id[i] = parent.id[i];
    effective->id[REISER4_PLUGIN_OBJECT] = (uint8_t)object;
}

void reiser4_plugins_wanted(const struct reiser4_plugins *root,
                            const struct reiser4_plugins *effective, uint32_t mode,
                            struct reiser4_slots *slots) {
    memset(slots, 0, sizeof(*slots));
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++) {
        unsigned common = i == REISER4_PLUGIN_OBJECT ? reiser4_object_default(mode) : root->id[i];
        if (i == REISER4_PLUGIN_DIRECTORY || effective->id[i] == common)
            continue;
        slots->present |= (uint16_t)(1u << i);
        slots->id[i] = effective->id[i];
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over format.h only. Keys: the place of everything in the tree. Facts:
 * docs/reiser4-format.md, "keys".
 *
 * A key is four words, compared one after the other, as unsigned numbers:
 *
 *     word        entry of a directory        stat data                body
 *     locality    directory's oid << 4 | 0    first directory's oid<<4|1    as its stat data, | 4
 *     ordering    fibre, H, name[0..6]        of the first name's key  likewise
 *     objectid    name[7..14]                 oid                      oid
 *     offset      name[15..22], or the hash   0                        byte in the file
 *
 * so that in one locality (what was made in one directory) all names come first, in the order of
 * the names, then all stat data, then all bodies, both in the order of the names, too. An object's
 * key never changes, wherever its name goes.
 *
 * All functions are pure.
 */
#ifndef LAYOUTFS_REISER4_KEY_H
#define LAYOUTFS_REISER4_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "layouts/reiser4/format.h"

enum reiser4_key_word {
    REISER4_LOCALITY, /* and, in the lowest four bits, the type */
    REISER4_ORDERING,
    REISER4_OBJECTID,
    REISER4_OFFSET,
};

enum reiser4_key_type {
    REISER4_KEY_NAME = 0, /* an entry of a directory; a safe-link */
    REISER4_KEY_STAT = 1,
    REISER4_KEY_BODY = 4,
};

struct reiser4_key {
    uint64_t word[4]; /* enum reiser4_key_word */
};

#define REISER4_KEY_MAX ((struct reiser4_key){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}})
/* An object's number has 60 bits: it stands in the locality word, too. */
#define REISER4_OID_MAX ((UINT64_C(1) << 60) - 1)

struct reiser4_key reiser4_key_load(const struct reiser4_disk_key *disk);
void reiser4_key_store(struct reiser4_disk_key *disk, const struct reiser4_key *key);
/* < 0, 0, > 0. */
int reiser4_key_compare(const struct reiser4_key *a, const struct reiser4_key *b);

static inline enum reiser4_key_type reiser4_key_type(const struct reiser4_key *key) {
    return (enum reiser4_key_type)(key->word[REISER4_LOCALITY] & 15);
}
static inline uint64_t reiser4_key_locality(const struct reiser4_key *key) {
    return key->word[REISER4_LOCALITY] >> 4;
}
static inline struct reiser4_key reiser4_key_make(uint64_t locality, enum reiser4_key_type type,
                                                  uint64_t ordering, uint64_t objectid,
                                                  uint64_t offset) {
    return (struct reiser4_key){{locality << 4 | type, ordering, objectid, offset}};
}
/* Do the two differ in the offset alone: pieces of one body? */
static inline bool reiser4_key_same_object(const struct reiser4_key *a,
                                           const struct reiser4_key *b) {
    return a->word[REISER4_LOCALITY] == b->word[REISER4_LOCALITY] &&
           a->word[REISER4_ORDERING] == b->word[REISER4_ORDERING] &&
           a->word[REISER4_OBJECTID] == b->word[REISER4_OBJECTID];
}

/* --- objects -----------------------------------------------------------------------------------
 */

/* What an entry says of an object, and what is kept in core of it: enough to make all its keys. */
struct reiser4_object {
    uint64_t locality; /* oid of the directory it was made in */
    uint64_t ordering; /* that of its first name's key */
    uint64_t oid;      /* which is the inode's number */
};

#define REISER4_ROOT_OBJECT ((struct reiser4_object){REISER4_ROOT_LOCALITY, 0, REISER4_ROOT_OID})

static inline struct reiser4_key reiser4_key_of_stat(const struct reiser4_object *object) {
    return reiser4_key_make(object->locality, REISER4_KEY_STAT, object->ordering, object->oid, 0);
}
static inline struct reiser4_key reiser4_key_of_body(const struct reiser4_object *object,
                                                     uint64_t offset) {
    return reiser4_key_make(object->locality, REISER4_KEY_BODY, object->ordering, object->oid,
                            offset);
}
/* False: no key of stat data, or one of an object whose number cannot be. */
bool reiser4_object_of_key(const struct reiser4_key *key, struct reiser4_object *object);
bool reiser4_object_load(const struct reiser4_disk_object *disk, struct reiser4_object *object);
void reiser4_object_store(struct reiser4_disk_object *disk, const struct reiser4_object *object);

/* --- names -------------------------------------------------------------------------------------
 */

enum reiser4_hash { /* plugin ids */
                    REISER4_HASH_RUPASOV,
                    REISER4_HASH_R5,
                    REISER4_HASH_TEA,
                    REISER4_HASH_FNV1,
                    REISER4_HASH_DEG,
                    REISER4_HASH_COUNT
};

enum reiser4_fibration {
    REISER4_FIBRE_LEXIC,
    REISER4_FIBRE_DOT_O,
    REISER4_FIBRE_EXT_1,
    REISER4_FIBRE_EXT_3,
    REISER4_FIBRE_COUNT
};

#define REISER4_NAME_IN_KEY 23u /* bytes: a name up to so long is all in its key */
#define REISER4_NAME_MAX    3976u
#define REISER4_NAME_HASHED (UINT64_C(1) << 56) /* in the ordering: H */

uint64_t reiser4_hash_name(enum reiser4_hash hash, const char *name, uint32_t length);
/* Seven bits. */
unsigned reiser4_fibre(enum reiser4_fibration fibration, const char *name, uint32_t length);
/* The key of the entry `name` (length > 0) in the directory of that oid. */
struct reiser4_key reiser4_key_of_name(uint64_t dir, enum reiser4_hash hash,
                                       enum reiser4_fibration fibration, const char *name,
                                       uint32_t length);
/* Is the name stored beside the key? */
static inline bool reiser4_key_is_hashed(const struct reiser4_key *key) {
    return key->word[REISER4_ORDERING] & REISER4_NAME_HASHED;
}
/* The name that is all in its key; `name` has room for REISER4_NAME_IN_KEY bytes. Its length; 0:
 * such a key has no name. */
uint32_t reiser4_name_of_key(const struct reiser4_key *key, char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/key.h.
 */
#include "layouts/reiser4/key.h"

#include <string.h>

#define TYPE_MASK UINT64_C(15)

struct reiser4_key reiser4_key_load(const struct reiser4_disk_key *disk) {
    return (struct reiser4_key){{le64_load(disk->word[0]), le64_load(disk->word[1]),
                                 le64_load(disk->word[2]), le64_load(disk->word[3])}};
}

void reiser4_key_store(struct reiser4_disk_key *disk, const struct reiser4_key *key) {
    for (int i = 0; i < 4; i++)
        le64_store(&disk->word[i], key->word[i]);
}

int reiser4_key_compare(const struct reiser4_key *a, const struct reiser4_key *b) {
    for (int i = 0; i < 4; i++)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

/* --- objects -----------------------------------------------------------------------------------
 */

bool reiser4_object_of_key(const struct reiser4_key *key, struct reiser4_object *object) {
    *object = (struct reiser4_object){.locality = reiser4_key_locality(key),
                                      .ordering = key->word[REISER4_ORDERING],
                                      .oid = key->word[REISER4_OBJECTID]};
    return reiser4_key_type(key) == REISER4_KEY_STAT && object->oid > 0 &&
           object->oid <= REISER4_OID_MAX;
}

bool reiser4_object_load(const struct reiser4_disk_object *disk, struct reiser4_object *object) {
    struct reiser4_key key = {
        {le64_load(disk->word[0]), le64_load(disk->word[1]), le64_load(disk->word[2]), 0}};

    return reiser4_object_of_key(&key, object);
}

void reiser4_object_store(struct reiser4_disk_object *disk, const struct reiser4_object *object) {
    struct reiser4_key key = reiser4_key_of_stat(object);

    for (int i = 0; i < 3; i++)
        le64_store(&disk->word[i], key.word[i]);
}

/* --- hashes ------------------------------------------------------------------------------------
 */

static uint64_t hash_r5(const uint8_t *bytes, uint32_t length) {
    uint64_t a = 0;

    for (uint32_t i = 0; i < length; i++) {
        a += (uint64_t)bytes[i] << 4;
        a += bytes[i] >> 4;
        a *= 11;
    }
    return a;
}

static uint64_t hash_fnv1(const uint8_t *bytes, uint32_t length) {
    uint64_t a = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < length; i++) {
        a *= UINT64_C(0x100000001b3);
        a ^= bytes[i];
    }
    return a;
}

/* The name as a decimal number, whatever its characters; then integers, as if it went on to a
 * certain length. Powers of ten have 32 bits, and so has the first term. */
static uint64_t hash_rupasov(const uint8_t *bytes, uint32_t length) {
    uint32_t power = 1;
    uint64_t a = 0;

    for (uint32_t i = length; i-- > 0; power *= 10) {
        uint64_t digit = (uint64_t)bytes[i] - 48;
        a += i == 0 ? (uint32_t)digit * power : digit * power;
    }
    for (uint64_t i = length < 40 ? 40 : length; i < 256; i++)
        a += i;
    return a << 7;
}

struct tea { /* the state, and the piece of the name that is the key of a round */
    uint64_t h[2], piece[4];
};

static void tea_mix(struct tea *tea, unsigned rounds) {
    uint64_t sum = 0, b0 = tea->h[0], b1 = tea->h[1];

    for (unsigned i = 0; i < rounds; i++) {
        sum += 0x9E3779B9u;
        b0 += ((b1 << 4) + tea->piece[0]) ^ (b1 + sum) ^ ((b1 >> 5) + tea->piece[1]);
        b1 += ((b0 << 4) + tea->piece[2]) ^ (b0 + sum) ^ ((b0 >> 5) + tea->piece[3]);
    }
    tea->h[0] += b0;
    tea->h[1] += b1;
}

/* Davies and Meyer's construction: 16 bytes of the name after the other are keys with which the
 * state is encrypted; what is left of the name is padded with its length. */
static uint64_t hash_tea(const uint8_t *bytes, uint32_t length) {
    struct tea tea = {.h = {0x9464a485u, 0x542e1a94u}};
    uint64_t pad = (uint64_t)length | (uint64_t)length << 8;

    pad |= pad << 16;
    for (; length >= 16; bytes += 16, length -= 16) {
        for (int i = 0; i < 4; i++)
            tea.piece[i] = le32_load(((const le32 *)bytes)[i]);
        tea_mix(&tea, 6);
    }
    for (uint32_t i = 0; i < 4; i++) {
        tea.piece[i] = pad;
        if (length >= 4 * i + 4) {
            tea.piece[i] = le32_load(((const le32 *)bytes)[i]);
            continue;
        }
        for (uint32_t at = 4 * i; at < length; at++)
            tea.piece[i] = tea.piece[i] << 8 | bytes[at];
    }
    tea_mix(&tea, 10);
    return tea.h[0] ^ tea.h[1];
}

uint64_t reiser4_hash_name(enum reiser4_hash hash, const char *name, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)name;

    switch (hash) {
    case REISER4_HASH_RUPASOV:
        return hash_rupasov(bytes, length);
    case REISER4_HASH_TEA:
        return hash_tea(bytes, length);
    case REISER4_HASH_FNV1:
        return hash_fnv1(bytes, length);
    case REISER4_HASH_DEG:
        return UINT64_C(0xc0c0c0c010101010);
    default:
        return hash_r5(bytes, length);
    }
}

/* --- names -------------------------------------------------------------------------------------
 */

unsigned reiser4_fibre(enum reiser4_fibration fibration, const char *name, uint32_t length) {
    const uint8_t *end = (const uint8_t *)name + length;

    switch (fibration) {
    case REISER4_FIBRE_DOT_O:
        return length > 2 && end[-2] == '.' && end[-1] == 'o';
    case REISER4_FIBRE_EXT_1:
        return length > 2 && end[-2] == '.' ? end[-1] & 127u : 0;
    case REISER4_FIBRE_EXT_3:
        return length > 4 && end[-4] == '.' ? (end[-3] + end[-2] + end[-1]) & 127u : 0;
    default:
        return 0;
    }
}

/* Bytes of a name as a number, the first one highest, missing ones 0. */
static uint64_t pack(const char *name, uint32_t length, uint32_t from, uint32_t count) {
    uint64_t number = 0;

    for (uint32_t i = from; i < from + count; i++)
        number = number << 8 | (i < length ? (uint8_t)name[i] : 0u);
    return number;
}

static uint32_t unpack(uint64_t number, uint32_t count, char *name) {
    for (uint32_t i = 0; i < count; i++)
        name[i] = (char)(number >> 8 * (count - 1 - i));
    return count;
}

struct reiser4_key reiser4_key_of_name(uint64_t dir, enum reiser4_hash hash,
                                       enum reiser4_fibration fibration, const char *name,
                                       uint32_t length) {
    uint64_t ordering, offset;

    if (length == 1 && name[0] == '.')
        return reiser4_key_make(dir, REISER4_KEY_NAME, 0, 0, 0);
    ordering = (uint64_t)reiser4_fibre(fibration, name, length) << 57 | pack(name, length, 0, 7);
    if (length > REISER4_NAME_IN_KEY) {
        ordering |= REISER4_NAME_HASHED;
        offset = reiser4_hash_name(hash, name + 15, length - 15);
    } else {
        offset = pack(name, length, 15, 8);
    }
    return reiser4_key_make(dir, REISER4_KEY_NAME, ordering, pack(name, length, 7, 8), offset);
}

uint32_t reiser4_name_of_key(const struct reiser4_key *key, char *name) {
    uint32_t length;

    if (reiser4_key_is_hashed(key))
        return 0;
    if (!key->word[REISER4_ORDERING] && !key->word[REISER4_OBJECTID] &&
        !key->word[REISER4_OFFSET]) {
        name[0] = '.';
        return 1;
    }
    length = unpack(key->word[REISER4_ORDERING], 7, name);
    length += unpack(key->word[REISER4_OBJECTID], 8, name + length);
    length += unpack(key->word[REISER4_OFFSET], 8, name + length);
    while (length > 0 && name[length - 1] == '\0')
        length--;
    return memchr(name, '\0', length) || memchr(name, '/', length) ? 0 : length;
}

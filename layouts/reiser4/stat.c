/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/stat.h.
 *
 * An item is read with a cursor that never passes its end: what does not fit any more makes the
 * decoding fail.
 */
#include "layouts/reiser4/stat.h"

#include <string.h>
#include <sys/stat.h>

#define MASK_MORE REISER4_STAT_HAS(REISER4_SD_MORE)
#define MASK_KNOWN                                                                                 \
    (REISER4_STAT_NEW | REISER4_STAT_HAS(REISER4_SD_SYMLINK) |                                     \
     REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET) | REISER4_STAT_HAS(REISER4_SD_FLAGS) |                \
     REISER4_STAT_HAS(REISER4_SD_HEIR_SET) | MASK_MORE)

static bool has(const struct reiser4_stat *stat, enum reiser4_extension extension) {
    return stat->mask & REISER4_STAT_HAS(extension);
}

/* --- decoding ----------------------------------------------------------------------------------
 */

struct reader {
    const uint8_t *bytes;
    uint32_t left;
};

/* The next bytes; NULL: there are not so many. */
static const void *take(struct reader *reader, uint32_t count) {
    const uint8_t *bytes = reader->bytes;

    if (count > reader->left)
        return NULL;
    reader->bytes += count;
    reader->left -= count;
    return bytes;
}

static const char short_item[] = "is stat data that ends too early";

static const char *decode_fixed(struct reader *reader, struct reiser4_stat *stat) {
    const struct reiser4_disk_light_weight *light = take(reader, sizeof(*light));
    const struct reiser4_disk_unix *owner = NULL;
    const struct reiser4_disk_large_times *large = NULL;

    if (light && has(stat, REISER4_SD_UNIX) && !(owner = take(reader, sizeof(*owner))))
        return short_item;
    if (light && has(stat, REISER4_SD_LARGE_TIMES) && !(large = take(reader, sizeof(*large))))
        return short_item;
    if (!light)
        return short_item;
    stat->mode = le16_load(light->mode);
    stat->nlink = le32_load(light->nlink);
    stat->size = le64_load(light->size);
    if (owner) {
        stat->uid = le32_load(owner->uid);
        stat->gid = le32_load(owner->gid);
        stat->atime.seconds = le32_load(owner->atime);
        stat->mtime.seconds = le32_load(owner->mtime);
        stat->ctime.seconds = le32_load(owner->ctime);
        stat->rdev_or_bytes = le64_load(owner->rdev_or_bytes);
    }
    if (large) {
        stat->atime.nanoseconds = le32_load(large->atime);
        stat->mtime.nanoseconds = le32_load(large->mtime);
        stat->ctime.nanoseconds = le32_load(large->ctime);
    }
    if (stat->atime.nanoseconds >= NS_PER_SEC || stat->mtime.nanoseconds >= NS_PER_SEC ||
        stat->ctime.nanoseconds >= NS_PER_SEC)
        return "is stat data with a time of more nanoseconds than a second has";
    return NULL;
}

static const char *decode_target(struct reader *reader, struct reiser4_stat *stat) {
    const char *end = memchr(reader->bytes, '\0', reader->left);

    if (!S_ISLNK(stat->mode))
        return "is stat data with the target of a symlink, but of no symlink";
    if (!end)
        return "is stat data with a target that does not end";
    stat->target = (const char *)reader->bytes;
    stat->target_length = (uint32_t)(end - stat->target);
    take(reader, stat->target_length + 1);
    return stat->target_length == stat->size && stat->size > 0
               ? NULL
               : "is stat data of a symlink whose size is not that of its target";
}

static const char *decode_slots(struct reader *reader, struct reiser4_slots *slots) {
    const struct reiser4_disk_slots *head = take(reader, sizeof(*head));
    const struct reiser4_disk_slot *slot;

    if (!head)
        return short_item;
    if (le16_load(head->count) == 0)
        return "is stat data with an empty plugin set";
    if (!(slot = take(reader, le16_load(head->count) * (uint32_t)sizeof(*slot))))
        return short_item;
    for (uint32_t i = 0; i < le16_load(head->count); i++) {
        unsigned member = le16_load(slot[i].member), id = le16_load(slot[i].id);
        if (!reiser4_plugin_valid(member, id))
            return "is stat data with a plugin that does not exist";
        if (slots->present & 1u << member)
            return "is stat data with two plugins for one thing";
        slots->present |= (uint16_t)(1u << member);
        slots->id[member] = (uint8_t)id;
    }
    return NULL;
}

static const char *decode_extensions(struct reader *reader, struct reiser4_stat *stat) {
    const char *wrong = decode_fixed(reader, stat);

    if (!wrong && has(stat, REISER4_SD_SYMLINK))
        wrong = decode_target(reader, stat);
    if (!wrong && has(stat, REISER4_SD_PLUGIN_SET))
        wrong = decode_slots(reader, &stat->plugins);
    if (!wrong && has(stat, REISER4_SD_FLAGS)) {
        const le32 *flags = take(reader, sizeof(*flags));
        if (!flags)
            return short_item;
        stat->flags = le32_load(*flags);
    }
    if (!wrong && has(stat, REISER4_SD_HEIR_SET))
        wrong = decode_slots(reader, &stat->heirs);
    if (!wrong && has(stat, REISER4_SD_MORE)) {
        const le16 *more = take(reader, sizeof(*more));
        if (!more || le16_load(*more))
            return "is stat data with an extension that is not known";
    }
    return wrong;
}

const char *reiser4_stat_decode(const struct reiser4_item *item, struct reiser4_stat *stat) {
    struct reader reader = {item->body, item->length};
    const le16 *mask = take(&reader, sizeof(*mask));
    struct reiser4_object object;

    memset(stat, 0, sizeof(*stat));
    if (!mask)
        return short_item;
    if (!reiser4_object_of_key(&item->key, &object) || item->key.word[REISER4_OFFSET])
        return "is stat data whose key cannot be";
    stat->mask = le16_load(*mask);
    if (!has(stat, REISER4_SD_LIGHT_WEIGHT))
        return "is stat data without mode and size";
    if (stat->mask & ~MASK_KNOWN)
        return "is stat data with an extension that is not known";
    const char *wrong = decode_extensions(&reader, stat);
    if (wrong)
        return wrong;
    if (S_ISLNK(stat->mode) && !stat->target)
        return "is stat data of a symlink without a target";
    stat->mask &= (uint16_t)~MASK_MORE;
    return reader.left == 0 ? NULL : "is stat data that ends before its item does";
}

/* --- encoding ----------------------------------------------------------------------------------
 */

static uint32_t slots_length(const struct reiser4_slots *slots) {
    return slots->present
               ? (uint32_t)(sizeof(struct reiser4_disk_slots) +
                            reiser4_slots_count(slots) * sizeof(struct reiser4_disk_slot))
               : 0;
}

uint32_t reiser4_stat_length(const struct reiser4_stat *stat) {
    uint32_t length = sizeof(le16) + sizeof(struct reiser4_disk_light_weight);

    if (has(stat, REISER4_SD_UNIX))
        length += sizeof(struct reiser4_disk_unix);
    if (has(stat, REISER4_SD_LARGE_TIMES))
        length += sizeof(struct reiser4_disk_large_times);
    if (has(stat, REISER4_SD_SYMLINK))
        length += stat->target_length + 1;
    if (has(stat, REISER4_SD_FLAGS))
        length += sizeof(le32);
    return length + slots_length(&stat->plugins) + slots_length(&stat->heirs);
}

static uint8_t *encode_fixed(const struct reiser4_stat *stat, uint8_t *at) {
    struct reiser4_disk_light_weight *light = (void *)at;

    le16_store(&light->mode, stat->mode);
    le32_store(&light->nlink, stat->nlink);
    le64_store(&light->size, stat->size);
    at += sizeof(*light);
    if (has(stat, REISER4_SD_UNIX)) {
        struct reiser4_disk_unix *owner = (void *)at;
        le32_store(&owner->uid, stat->uid);
        le32_store(&owner->gid, stat->gid);
        le32_store(&owner->atime, (uint32_t)stat->atime.seconds);
        le32_store(&owner->mtime, (uint32_t)stat->mtime.seconds);
        le32_store(&owner->ctime, (uint32_t)stat->ctime.seconds);
        le64_store(&owner->rdev_or_bytes, stat->rdev_or_bytes);
        at += sizeof(*owner);
    }
    if (has(stat, REISER4_SD_LARGE_TIMES)) {
        struct reiser4_disk_large_times *large = (void *)at;
        le32_store(&large->atime, stat->atime.nanoseconds);
        le32_store(&large->mtime, stat->mtime.nanoseconds);
        le32_store(&large->ctime, stat->ctime.nanoseconds);
        at += sizeof(*large);
    }
    return at;
}

static uint8_t *encode_slots(const struct reiser4_slots *slots, uint8_t *at) {
    struct reiser4_disk_slots *head = (void *)at;
    uint32_t count = 0;

    if (!slots->present)
        return at;
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        if (slots->present & 1u << i) {
            le16_store(&head->slot[count].member, (uint16_t)i);
            le16_store(&head->slot[count++].id, slots->id[i]);
        }
    le16_store(&head->count, (uint16_t)count);
    return at + slots_length(slots);
}

void reiser4_stat_encode(const struct reiser4_stat *stat, uint8_t *body) {
    uint16_t sets = REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET) | REISER4_STAT_HAS(REISER4_SD_HEIR_SET);
    uint16_t mask = stat->mask & (uint16_t)~sets;

    if (stat->plugins.present)
        mask |= REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET);
    if (stat->heirs.present)
        mask |= REISER4_STAT_HAS(REISER4_SD_HEIR_SET);
    le16_store((le16 *)body, mask);
    uint8_t *at = encode_fixed(stat, body + sizeof(le16));
    if (has(stat, REISER4_SD_SYMLINK)) {
        memcpy(at, stat->target, stat->target_length);
        at[stat->target_length] = '\0';
        at += stat->target_length + 1;
    }
    at = encode_slots(&stat->plugins, at);
    if (has(stat, REISER4_SD_FLAGS)) {
        le32_store((le32 *)at, stat->flags);
        at += sizeof(le32);
    }
    encode_slots(&stat->heirs, at);
}

/* --- the kind ----------------------------------------------------------------------------------
 */

static const char *stat_check(const struct reiser4_item *item) {
    struct reiser4_stat stat;

    return reiser4_stat_decode(item, &stat);
}

const struct reiser4_item_kind reiser4_stat_kind = {.name = "stat40", .check = stat_check};

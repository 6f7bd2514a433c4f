/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, part of mkfs. What is wished for: features, identity. See layouts/ext/mkfs.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/volume_uuid.h"
#include "layouts/ext/mkfs.h"

#define RESERVED_DECIMALS 4

int format_refuse(const struct format *format, const char *sentence) {
    log_error(format->log, "%s: mkfs: %s", format->device->name, sentence);
    return -EINVAL;
}

/* --- options ---------------------------------------------------------------------------------- */

static const struct feature {
    const char *name;
    uint32_t compat, incompat, ro_compat;
    enum ext_base since; /* the first member of the family that has it by default */
} features[] = {
    {.name = "ext_attr", .compat = EXT_COMPAT_EXT_ATTR},
    {.name = "resize_inode", .compat = EXT_COMPAT_RESIZE_INODE},
    {.name = "dir_index", .compat = EXT_COMPAT_DIR_INDEX},
    {.name = "filetype", .incompat = EXT_INCOMPAT_FILETYPE},
    {.name = "sparse_super", .ro_compat = EXT_RO_COMPAT_SPARSE_SUPER},
    {.name = "large_file", .ro_compat = EXT_RO_COMPAT_LARGE_FILE},
    {.name = "has_journal", .compat = EXT_COMPAT_HAS_JOURNAL, .since = EXT_BASE_EXT3},
    {.name = "extent", .incompat = EXT_INCOMPAT_EXTENTS, .since = EXT_BASE_EXT4},
    {.name = "64bit", .incompat = EXT_INCOMPAT_64BIT, .since = EXT_BASE_EXT4},
    {.name = "flex_bg", .incompat = EXT_INCOMPAT_FLEX_BG, .since = EXT_BASE_EXT4},
    {.name = "huge_file", .ro_compat = EXT_RO_COMPAT_HUGE_FILE, .since = EXT_BASE_EXT4},
    {.name = "dir_nlink", .ro_compat = EXT_RO_COMPAT_DIR_NLINK, .since = EXT_BASE_EXT4},
    {.name = "extra_isize", .ro_compat = EXT_RO_COMPAT_EXTRA_ISIZE, .since = EXT_BASE_EXT4},
    {.name = "metadata_csum", .ro_compat = EXT_RO_COMPAT_METADATA_CSUM, .since = EXT_BASE_EXT4},
    {.name = "uninit_bg", .ro_compat = EXT_RO_COMPAT_GDT_CSUM, .since = EXT_BASE_NONE},
    {.name = "metadata_csum_seed", .incompat = EXT_INCOMPAT_CSUM_SEED, .since = EXT_BASE_NONE},
    {.name = "meta_bg", .incompat = EXT_INCOMPAT_META_BG, .since = EXT_BASE_NONE},
    {.name = "sparse_super2", .compat = EXT_COMPAT_SPARSE_SUPER2, .since = EXT_BASE_NONE},
    {.name = "large_dir", .incompat = EXT_INCOMPAT_LARGEDIR, .since = EXT_BASE_NONE},
};
#define FEATURE_COUNT (sizeof(features) / sizeof(features[0]))

static void feature_set(struct ext_geometry *geometry, const struct feature *feature, bool on) {
    geometry->compat =
        on ? geometry->compat | feature->compat : geometry->compat & ~feature->compat;
    geometry->incompat =
        on ? geometry->incompat | feature->incompat : geometry->incompat & ~feature->incompat;
    geometry->ro_compat =
        on ? geometry->ro_compat | feature->ro_compat : geometry->ro_compat & ~feature->ro_compat;
}

/* One word of the list; `length` bytes at `word`. */
static int feature_parse(struct format *format, const char *word, size_t length) {
    bool on = word[0] != '^';
    const char *name = on ? word : word + 1;
    size_t name_length = on ? length : length - 1;
    bool none = on && name_length == 4 && strncmp(name, "none", 4) == 0;
    bool found = none;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        bool match = strlen(features[i].name) == name_length &&
                     strncmp(features[i].name, name, name_length) == 0;
        if (match || none)
            feature_set(&format->geometry, &features[i], on && !none);
        found |= match;
    }
    if (found)
        return 0;
    char names[512] = "";
    for (size_t i = 0, used = 0; i < FEATURE_COUNT; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s, ", features[i].name);
    log_error(format->log, "%s: mkfs: feature \"%.*s\" is not one of %snone", format->device->name,
              (int)name_length, name, names);
    return -EINVAL;
}

/* What one feature asks of the others. */
static int features_agree(struct format *format) {
    struct ext_geometry *geometry = &format->geometry;
    if ((geometry->compat & EXT_COMPAT_RESIZE_INODE) &&
        !(geometry->ro_compat & EXT_RO_COMPAT_SPARSE_SUPER))
        return format_refuse(format, "feature resize_inode needs sparse_super; add ^resize_inode");
    if ((geometry->compat & EXT_COMPAT_RESIZE_INODE) && (geometry->incompat & EXT_INCOMPAT_META_BG))
        return format_refuse(format, "features meta_bg and resize_inode exclude each other; add "
                                     "^resize_inode");
    if ((geometry->incompat & EXT_INCOMPAT_64BIT) && !(geometry->incompat & EXT_INCOMPAT_EXTENTS))
        return format_refuse(format, "feature 64bit needs extent; add extent or ^64bit");
    if ((geometry->incompat & EXT_INCOMPAT_CSUM_SEED) && !ext_has_checksums(geometry))
        return format_refuse(format, "feature metadata_csum_seed needs metadata_csum");
    if (ext_has_checksums(geometry)) /* which does all that uninit_bg does */
        geometry->ro_compat &= ~(uint32_t)EXT_RO_COMPAT_GDT_CSUM;
    return 0;
}

static int features_parse(struct format *format, const struct options *options) {
    const char *list = options_text(options, "features");
    enum ext_base base = (enum ext_base)options_number(options, "base");
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        feature_set(&format->geometry, &features[i], features[i].since <= base);
    while (list && *list) {
        size_t length = strcspn(list, ":,");
        int error = length ? feature_parse(format, list, length) : 0;
        if (error)
            return error;
        list += length + (list[length] != '\0');
    }
    return features_agree(format);
}

/* "5", "0.5", "12.0625" percent into ten-thousandths of a percent. */
int format_percentage(const struct format *format, const char *text, uint32_t *parts) {
    uint32_t value = 0;
    int decimals = -1; /* digits after the point so far; -1: no point yet */
    bool digits = false;
    for (const char *p = text; *p; p++) {
        if (*p == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (*p < '0' || *p > '9' || decimals == RESERVED_DECIMALS || value > 1000000)
            return format_refuse(format,
                                 "reserved: expected a percentage from 0 to 50, like 5 or 0.5");
        value = value * 10 + (uint32_t)(*p - '0');
        decimals += decimals >= 0;
        digits = true;
    }
    for (int i = decimals < 0 ? 0 : decimals; i < RESERVED_DECIMALS; i++)
        value = value > 1000000 ? value : value * 10;
    if (!digits || value > 50 * 10000)
        return format_refuse(format, "reserved: expected a percentage from 0 to 50, like 5 or 0.5");
    *parts = value;
    return 0;
}

/* Scrambles 64 bits (the finaliser of SplitMix64, public domain), so that a UUID's neighbours get
 * unrelated hash seeds. */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static void seed_from_bytes(const uint8_t bytes[16], uint32_t seed[4]) {
    for (int i = 0; i < 4; i++) {
        uint64_t x = (uint64_t)i + 1;
        for (int j = 0; j < 16; j++)
            x = scramble(x ^ bytes[j]);
        seed[i] = (uint32_t)x;
    }
}

/* "1000:100"; no user has the number that is all ones. */
static int owner_parse(struct format *format, const char *text) {
    uint32_t ids[2];
    for (int i = 0; i < 2; i++) {
        char *end;
        errno = 0;
        unsigned long number = strtoul(text, &end, 10);
        if (!isdigit((unsigned char)*text) || errno || number >= UINT32_MAX ||
            *end != (i == 0 ? ':' : '\0'))
            return format_refuse(format, "root_owner: expected two numbers, UID:GID");
        ids[i] = (uint32_t)number;
        text = end + 1;
    }
    format->root_uid = ids[0];
    format->root_gid = ids[1];
    return 0;
}

/* A given UUID decides the hash seed too, so that two runs make equal volumes; so does virtual
 * time, where nothing may be random. */
static int identity_parse(struct format *format, const struct options *options) {
    const char *text = options_text(options, "uuid");
    const char *label = options_text(options, "label");
    if (label) {
        if (strlen(label) > sizeof(format->label))
            return format_refuse(format, "label: at most 16 bytes fit");
        memcpy(format->label, label, strlen(label));
    }
    const struct clock *clock = format->device->clock;
    uint8_t random_seed[16];
    bool random;
    if (volume_uuid_choose(text, clock, format->uuid, &random) != 0)
        return format_refuse(format, VOLUME_UUID_EXPECTED);
    if (random)
        volume_uuid_bytes(clock, format->uuid, random_seed);
    else
        memcpy(random_seed, format->uuid, sizeof(random_seed));
    seed_from_bytes(random_seed, format->hash_seed);
    return 0;
}

int format_options(struct format *format, const struct options *options) {
    int error = features_parse(format, options);
    /* Made last, on a volume that already is one. */
    format->journal =
        format->geometry.compat & EXT_COMPAT_HAS_JOURNAL || options_number(options, "has_journal");
    format->geometry.compat &= ~(uint32_t)EXT_COMPAT_HAS_JOURNAL;
    if (!error)
        error = owner_parse(format, options_text(options, "root_owner"));
    return error ? error : identity_parse(format, options);
}

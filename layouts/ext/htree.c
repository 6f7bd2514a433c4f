/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over dir.c's blocks. Reading hash-indexed directories.
 *
 * Block 0 holds ".", ".." and the root of a tree of one to three levels whose leaves are ordinary
 * directory blocks. An index entry says: names whose hash is at least this lie there. Names of one
 * hash may fill more than one leaf; then the later leaf's index entry has the low bit set.
 *
 * Invariants:
 *  1. An index block is validated each time it is used (it costs a few comparisons), for its bytes
 *     are valid directory entries whatever the index in them looks like.
 *  2. An index that makes no sense never makes the directory unreadable: the caller falls back to
 *     linear search. Only a damaged leaf is an error.
 *  3. Iteration hands out cookies in strictly rising order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/dir.h"

#define HTREE_BLOCK_MASK   0x0FFFFFFFu
#define HTREE_INFO_OFFSET  24u
#define HTREE_INFO_LENGTH  8u
#define HTREE_COOKIE_BASE  3u /* 1 and 2 are "." and "..", 0 is the start */
#define HTREE_COOKIE_TIES  256u
#define HTREE_CONTINUATION 1u

/* --- index blocks ---------------------------------------------------------------------------- */

bool ext_htree_indexed(const struct inode *dir) {
    const struct ext_inode *private = (const struct ext_inode *)(dir + 1);

    return dir->flags & EXT_INODE_INDEX && !private->index_unusable &&
           ext_of(dir->volume)->geometry.compat & EXT_COMPAT_DIR_INDEX;
}

/* Says once what is wrong with the index. */
static int htree_unusable(struct inode *dir, uint64_t logical, const char *fault) {
    struct ext_inode *private = ext_inode_of(dir);

    if (!private->index_unusable)
        log_warning(dir->volume->log,
                    "%s: directory inode %" PRIu64 ", index block %" PRIu64
                    ": %s; searching without the index",
                    dir->volume->name, dir->ino, logical, fault);
    private->index_unusable = true;
    return EXT_HTREE_UNUSABLE;
}

/* Takes over the reference to `buffer`. */
static int htree_frame_init(struct inode *dir, struct ext_htree_frame *frame, struct buffer *buffer,
                            uint64_t logical) {
    const struct ext *ext = ext_of(dir->volume);
    uint32_t offset = logical == 0 ? EXT_DX_ROOT_ENTRIES : EXT_DX_NODE_ENTRIES;
    char *block = buffer_data(buffer);
    const struct ext_disk_dx_countlimit *header = (struct ext_disk_dx_countlimit *)(block + offset);

    frame->buffer = buffer;
    frame->entries = (struct ext_disk_dx_entry *)(block + offset);
    frame->count = le16_load(header->count);
    frame->limit = le16_load(header->limit);
    frame->at = 0;
    if (frame->limit == ext_dx_limit(&ext->geometry, offset) && frame->count >= 1 &&
        frame->count <= frame->limit)
        return 0;
    buffer_put(buffer);
    return htree_unusable(dir, logical, "its number of entries is out of range");
}

int ext_htree_open(struct inode *dir, struct ext_htree_path *path) {
    struct ext *ext = ext_of(dir->volume);
    const char *fault = NULL;
    struct buffer *buffer;

    int rc = ext_dir_block_get(dir, 0, &buffer);
    if (rc < 0)
        return rc;
    const struct ext_disk_dx_info *info =
        (struct ext_disk_dx_info *)((char *)buffer_data(buffer) + HTREE_INFO_OFFSET);
    if (info->hash_version > EXT_HASH_TEA)
        fault = "its hash version is unknown";
    else if (info->info_length != HTREE_INFO_LENGTH || le32_load(info->reserved_zero) != 0)
        fault = "it has no index header";
    else if (info->unused_flags & 1)
        fault = "it has flags that nobody knows";
    else if (info->indirect_levels >= ext_htree_levels(ext))
        fault = "it has more than two levels";
    if (fault) {
        buffer_put(buffer);
        return htree_unusable(dir, 0, fault);
    }
    path->version = info->hash_version + (ext->hash_unsigned ? EXT_HASH_LEGACY_UNSIGNED : 0);
    path->depth = info->indirect_levels + 1u;
    for (uint32_t level = 1; level < EXT_HTREE_LEVELS; level++)
        path->frame[level].buffer = NULL;
    return htree_frame_init(dir, &path->frame[0], buffer, 0);
}

void ext_htree_close(struct ext_htree_path *path) {
    for (uint32_t level = 0; level < EXT_HTREE_LEVELS; level++)
        buffer_put(path->frame[level].buffer);
}

/* The last entry whose hash is not above `hash`; the first has none, it stands for all below. */
static uint32_t htree_search(const struct ext_htree_frame *frame, uint32_t hash) {
    uint32_t low = 0, high = frame->count;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (le32_load(frame->entries[middle].hash) > hash)
            high = middle;
        else
            low = middle;
    }
    return low;
}

static uint64_t htree_block(const struct ext_htree_frame *frame) {
    return le32_load(frame->entries[frame->at].block) & HTREE_BLOCK_MASK;
}

/* Gets the block that the frame points at. */
static int htree_child(struct inode *dir, const struct ext_htree_frame *frame, uint64_t *logical,
                       struct buffer **buffer) {
    *logical = htree_block(frame);
    if (*logical == 0 || *logical >= ext_dir_blocks(dir))
        return htree_unusable(dir, *logical, "the directory has no such block for an index entry");
    return ext_dir_block_get(dir, *logical, buffer);
}

/* Loads the node that the frame at `level` points at into the next frame. */
static int htree_descend(struct inode *dir, struct ext_htree_path *path, uint32_t level) {
    struct ext_htree_frame *child = &path->frame[level + 1];
    struct buffer *buffer;
    uint64_t logical;

    buffer_put(child->buffer);
    child->buffer = NULL;
    int rc = htree_child(dir, &path->frame[level], &logical, &buffer);
    if (rc != 0)
        return rc;
    rc = htree_frame_init(dir, child, buffer, logical);
    if (rc != 0)
        child->buffer = NULL;
    return rc;
}

int ext_htree_seek(struct inode *dir, struct ext_htree_path *path, uint32_t hash) {
    for (uint32_t level = 0;; level++) {
        path->frame[level].at = htree_search(&path->frame[level], hash);
        if (level + 1 == path->depth)
            return 0;
        int rc = htree_descend(dir, path, level);
        if (rc != 0)
            return rc;
    }
}

int ext_htree_leaf(struct inode *dir, const struct ext_htree_path *path, uint64_t *logical,
                   struct buffer **buffer) {
    return htree_child(dir, &path->frame[path->depth - 1], logical, buffer);
}

/* Is there a leaf after the path's, and which hash does its index entry have? */
static bool htree_next_hash(const struct ext_htree_path *path, uint32_t *hash) {
    for (uint32_t level = path->depth; level-- > 0;) {
        const struct ext_htree_frame *frame = &path->frame[level];
        if (frame->at + 1 < frame->count) {
            *hash = le32_load(frame->entries[frame->at + 1].hash);
            return true;
        }
    }
    return false;
}

/* Steps to the leaf that htree_next_hash told of. */
static int htree_advance(struct inode *dir, struct ext_htree_path *path) {
    uint32_t level = path->depth - 1;

    while (level > 0 && path->frame[level].at + 1 >= path->frame[level].count)
        level--;
    path->frame[level].at++;
    for (; level + 1 < path->depth; level++) {
        int rc = htree_descend(dir, path, level);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- finding --------------------------------------------------------------------------------- */

uint32_t ext_htree_hash(struct ext *ext, enum ext_hash_version version, const char *name,
                        uint32_t length) {
    uint32_t major, minor;

    clock_charge(ext->volume->clock, COST_DIR_HASH, 1);
    ext_hash_name(name, length, version, ext->hash_seed, &major, &minor);
    return major;
}

static int htree_find_from(struct inode *dir, struct ext_htree_path *path, uint32_t hash,
                           const char *name, uint32_t length, struct ext_dir_slot *slot) {
    struct ext *ext = ext_of(dir->volume);
    uint32_t next;

    for (;;) {
        int rc = ext_htree_leaf(dir, path, &slot->logical, &slot->buffer);
        if (rc != 0)
            return rc;
        if (ext_dir_block_find(ext, buffer_data(slot->buffer), name, length, slot))
            return 0;
        buffer_put(slot->buffer);
        if (!htree_next_hash(path, &next) || (next & ~HTREE_CONTINUATION) != hash)
            return -ENOENT;
        rc = htree_advance(dir, path);
        if (rc != 0)
            return rc;
    }
}

int ext_htree_find(struct inode *dir, const char *name, uint32_t length,
                   struct ext_dir_slot *slot) {
    struct ext_htree_path path;

    int rc = ext_htree_open(dir, &path);
    if (rc != 0)
        return rc;
    uint32_t hash = ext_htree_hash(ext_of(dir->volume), path.version, name, length);
    rc = ext_htree_seek(dir, &path, hash);
    if (rc == 0)
        rc = htree_find_from(dir, &path, hash, name, length, slot);
    ext_htree_close(&path);
    return rc;
}

/* --- iterating ----------------------------------------------------------------------------------
 *
 * A cookie is the place in hash order: 31 bits of the major hash, 24 bits of the minor one, and an
 * 8-bit number that tells names apart which agree in all of these; plus HTREE_COOKIE_BASE. It does
 * not depend on where the name lies, so it survives splits.
 */

struct htree_name {
    uint64_t key; /* major hash >> 1, minor hash */
    const struct ext_disk_dirent *entry;
};

/* The names of one leaf, and of those that continue it. */
struct htree_names {
    struct htree_name *names;
    uint32_t count, capacity;
    struct buffer **buffers; /* held while their entries are in use */
    uint32_t buffer_count, buffer_capacity;
};

static void htree_names_clear(struct htree_names *list) {
    for (uint32_t i = 0; i < list->buffer_count; i++)
        buffer_put(list->buffers[i]);
    list->buffer_count = 0;
    list->count = 0;
}

static void htree_names_free(struct htree_names *list) {
    htree_names_clear(list);
    free(list->buffers);
    free(list->names);
}

/* Makes room for one more buffer and all its names. */
static int htree_names_reserve(struct htree_names *list) {
    if (list->buffer_count == list->buffer_capacity) {
        uint32_t capacity = list->buffer_capacity ? 2 * list->buffer_capacity : 1;
        struct buffer **buffers = reallocarray(list->buffers, capacity, sizeof(struct buffer *));
        if (!buffers)
            return -ENOMEM;
        list->buffers = buffers;
        list->buffer_capacity = capacity;
    }
    if (list->capacity - list->count < EXT_DIRENTS_MAX) {
        uint32_t capacity = 2 * list->capacity + EXT_DIRENTS_MAX;
        struct htree_name *names = reallocarray(list->names, capacity, sizeof(*names));
        if (!names)
            return -ENOMEM;
        list->names = names;
        list->capacity = capacity;
    }
    return 0;
}

/* A stand-in for the minor hash of the legacy version, which has none (FNV-1a). */
static uint32_t htree_legacy_minor(const char *name, uint32_t length) {
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static uint64_t htree_key(const struct ext *ext, enum ext_hash_version version,
                          const struct ext_disk_dirent *entry) {
    uint32_t major, minor;

    ext_hash_name(entry->name, entry->name_len, version, ext->hash_seed, &major, &minor);
    if (version == EXT_HASH_LEGACY || version == EXT_HASH_LEGACY_UNSIGNED)
        minor = htree_legacy_minor(entry->name, entry->name_len);
    return (uint64_t)(major >> 1) << 32 | minor;
}

/* Adds a block's names, for which there is room. */
static void htree_names_scan(struct ext *ext, struct htree_names *list, void *block,
                             enum ext_hash_version version) {
    uint32_t offset = 0, hashed = list->count;
    const struct ext_disk_dirent *entry;

    while ((entry = ext_dirent_at(block, ext->geometry.block_size, offset)) != NULL) {
        offset += le16_load(entry->rec_len);
        if (le32_load(entry->inode) == 0 || ext_name_is_dot(entry->name, entry->name_len))
            continue;
        if (list->count == list->capacity)
            break; /* more entries than fit: the block was changed under us */
        list->names[list->count].key = htree_key(ext, version, entry);
        list->names[list->count++].entry = entry;
    }
    hashed = list->count - hashed;
    clock_charge(ext->volume->clock, COST_DIR_HASH, hashed);
    clock_charge(ext->volume->clock, COST_DIR_ENTRY, hashed);
}

/* Takes over the reference to the block on success. */
static int htree_names_add(struct ext *ext, struct htree_names *list, struct buffer *buffer,
                           enum ext_hash_version version) {
    int rc = htree_names_reserve(list);
    if (rc < 0)
        return rc;
    list->buffers[list->buffer_count++] = buffer;
    htree_names_scan(ext, list, buffer_data(buffer), version);
    return 0;
}

static int htree_name_compare(const void *a, const void *b) {
    const struct htree_name *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    uint32_t x_length = x->entry->name_len, y_length = y->entry->name_len;
    int order = memcmp(x->entry->name, y->entry->name, x_length < y_length ? x_length : y_length);
    return order != 0 ? order : (int)x_length - (int)y_length;
}

/* Visits the names after *cookie, which moves on with them. 1: the visitor has had enough. */
static int htree_names_visit(struct htree_names *list, uint64_t *cookie, dir_visit visit,
                             void *context) {
    uint64_t place = UINT64_MAX;
    uint32_t tie = 0;

    qsort(list->names, list->count, sizeof(list->names[0]), htree_name_compare);
    for (uint32_t i = 0; i < list->count; i++) {
        uint64_t here = list->names[i].key / HTREE_COOKIE_TIES;
        tie = here != place ? 0 : tie + (tie < HTREE_COOKIE_TIES - 1);
        place = here;
        uint64_t own = place * HTREE_COOKIE_TIES + tie + HTREE_COOKIE_BASE;
        if (own <= *cookie)
            continue;
        if (!ext_dir_emit(list->names[i].entry, own, visit, context))
            return 1;
        *cookie = own;
    }
    return 0;
}

/* Adds the names of the leaf that the path has led to. */
static int htree_names_add_leaf(struct inode *dir, const struct ext_htree_path *path,
                                struct htree_names *list) {
    struct buffer *buffer;
    uint64_t logical;

    int rc = ext_htree_leaf(dir, path, &logical, &buffer);
    if (rc != 0)
        return rc;
    rc = htree_names_add(ext_of(dir->volume), list, buffer, path->version);
    if (rc < 0)
        buffer_put(buffer);
    return rc;
}

/* Visits leaf after leaf, each together with those that continue its last hash. */
static int htree_visit_leaves(struct inode *dir, struct ext_htree_path *path,
                              struct htree_names *list, uint64_t cookie, dir_visit visit,
                              void *context) {
    uint32_t next = 0;

    for (;;) {
        int rc = htree_names_add_leaf(dir, path, list);
        if (rc != 0)
            return rc;
        bool more = htree_next_hash(path, &next);
        if (!more || !(next & HTREE_CONTINUATION)) {
            if (htree_names_visit(list, &cookie, visit, context) || !more)
                return 0;
            htree_names_clear(list);
        }
        rc = htree_advance(dir, path);
        if (rc != 0)
            return rc;
    }
}

/* "." and ".." come first, with cookies 1 and 2. 1: the visitor has had enough. */
static int htree_visit_dots(struct ext *ext, void *block, uint64_t cookie, dir_visit visit,
                            void *context) {
    uint32_t offset = 0;

    for (uint64_t own = 1; own < HTREE_COOKIE_BASE; own++) {
        const struct ext_disk_dirent *entry =
            ext_dirent_at(block, ext->geometry.block_size, offset);
        if (!entry)
            break;
        if (own > cookie && !ext_dir_emit(entry, own, visit, context))
            return 1;
        offset += le16_load(entry->rec_len);
    }
    return 0;
}

static int htree_iterate_indexed(struct inode *dir, struct htree_names *list, uint64_t cookie,
                                 dir_visit visit, void *context) {
    struct ext *ext = ext_of(dir->volume);
    struct ext_htree_path path;
    uint32_t hash = 0;

    int rc = ext_htree_open(dir, &path);
    if (rc != 0)
        return rc;
    if (cookie >= HTREE_COOKIE_BASE)
        hash = (uint32_t)((cookie - HTREE_COOKIE_BASE) >> 32) << 1;
    rc = ext_htree_seek(dir, &path, hash);
    if (rc == 0 &&
        htree_visit_dots(ext, buffer_data(path.frame[0].buffer), cookie, visit, context) == 0) {
        rc = htree_visit_leaves(dir, &path, list, cookie, visit, context);
        if (rc == EXT_HTREE_UNUSABLE) /* too late for another order */
            rc = ext_corrupt(ext, "directory inode %" PRIu64 ": its index is damaged", dir->ino);
    }
    ext_htree_close(&path);
    return rc;
}

static int htree_iterate_block(struct inode *dir, struct htree_names *list, uint64_t cookie,
                               dir_visit visit, void *context) {
    struct ext *ext = ext_of(dir->volume);
    struct buffer *buffer;

    int rc = ext_dir_block_get(dir, 0, &buffer);
    if (rc < 0)
        return rc;
    rc = htree_names_add(ext, list, buffer, ext->hash_version);
    if (rc < 0)
        buffer_put(buffer);
    else if (htree_visit_dots(ext, buffer_data(buffer), cookie, visit, context) == 0)
        htree_names_visit(list, &cookie, visit, context);
    return rc;
}

static int htree_iterate_inline(struct inode *dir, struct htree_names *list, uint64_t cookie,
                                dir_visit visit, void *context) {
    struct ext *ext = ext_of(dir->volume);
    char block[PAGE_SIZE_BYTES];

    int rc = ext_dir_inline_get(dir, block);
    if (rc == 0)
        rc = htree_names_reserve(list);
    if (rc < 0)
        return rc;
    htree_names_scan(ext, list, block, ext->hash_version);
    if (htree_visit_dots(ext, block, cookie, visit, context) == 0)
        htree_names_visit(list, &cookie, visit, context);
    return 0;
}

int ext_htree_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    struct htree_names list = {0};

    int rc;

    if (ext_is_inline(dir))
        rc = htree_iterate_inline(dir, &list, cookie, visit, context);
    else if (ext_htree_indexed(dir))
        rc = htree_iterate_indexed(dir, &list, cookie, visit, context);
    else
        rc = htree_iterate_block(dir, &list, cookie, visit, context);
    htree_names_free(&list);
    return rc;
}

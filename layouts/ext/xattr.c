/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over group.c (blocks) and inode.c (records).
 * Extended attributes. They lie behind the fields of an inode's record where that has room, and in
 * one block of the inode's own or shared with others of the same attributes.
 * Source: the Linux kernel's Documentation/filesystems/ext4/attributes.rst.
 *
 * An area (either place) is decoded into a list, the list is changed, and a new area is made of it.
 *
 * Invariants:
 *  1. Offsets and sizes are checked in xattr_area_load, and nothing else reads an area.
 *  2. Entries are in order of index, name length, name.
 *  3. A block with more than one owner is never changed but for its count: its owner gets a copy.
 *  4. Space is allocated before anything is changed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/xattr.h>

#include "layouts/ext/acl.h"
#include "layouts/ext/checksum.h"

#define XATTR_ALIGN       4u
#define XATTR_LIST_MAX    (PAGE_SIZE_BYTES / sizeof(struct ext_disk_xattr_entry) + 1)
#define XATTR_VALUE_MAX   65536u       /* of a value in an inode of its own, as the system allows */
#define XATTR_INODE_MAGIC sizeof(le32) /* bytes before the first entry in an inode */

static inline uint32_t xattr_round(uint32_t size) {
    return (size + XATTR_ALIGN - 1) & ~(XATTR_ALIGN - 1);
}

/* --- names ----------------------------------------------------------------------------------- */

struct xattr_name {
    uint8_t index;
    const char *suffix;
    uint32_t length; /* of the suffix */
};

static const struct xattr_prefix {
    uint8_t index;
    bool whole; /* the prefix is all of the name */
    const char *text;
} xattr_prefixes[] = {
    {EXT_XATTR_USER, false, "user."},
    {EXT_XATTR_POSIX_ACL_ACCESS, true, "system.posix_acl_access"},
    {EXT_XATTR_POSIX_ACL_DEFAULT, true, "system.posix_acl_default"},
    {EXT_XATTR_TRUSTED, false, "trusted."},
    {EXT_XATTR_SECURITY, false, "security."},
};
#define XATTR_PREFIXES (sizeof xattr_prefixes / sizeof xattr_prefixes[0])

static int xattr_name_parse(const char *name, struct xattr_name *parsed) {
    for (size_t i = 0; i < XATTR_PREFIXES; i++) {
        const struct xattr_prefix *prefix = &xattr_prefixes[i];
        size_t length = strlen(prefix->text);
        if (strncmp(name, prefix->text, length) != 0)
            continue;
        size_t rest = strlen(name + length);
        if (prefix->whole ? rest != 0 : rest == 0)
            continue;
        if (rest > NAME_LENGTH_MAX)
            return -ERANGE;
        *parsed = (struct xattr_name){prefix->index, name + length, (uint32_t)rest};
        return 0;
    }
    return -ENOTSUP;
}

static bool xattr_name_is_acl(const struct xattr_name *name) {
    return name->index == EXT_XATTR_POSIX_ACL_ACCESS || name->index == EXT_XATTR_POSIX_ACL_DEFAULT;
}

/* --- areas ----------------------------------------------------------------------------------- */

struct xattr {
    struct xattr_name name;
    const void *value; /* points into the area, or at the caller's */
    uint32_t value_length;
    uint32_t value_ino; /* the inode that holds the value instead; 0: none */
};

struct xattr_list {
    struct xattr items[XATTR_LIST_MAX];
    uint32_t count;
};

/* Memory that holds entries from `first` on, and values from its end down. */
struct xattr_area {
    struct buffer *buffer;         /* referenced; NULL: the inode has no such place */
    struct ext_disk_inode *record; /* in an inode: the record */
    char *base;                    /* value offsets count from here */
    uint32_t size, first;
};

static const char *xattr_entry_fault(const struct ext_geometry *geometry,
                                     const struct xattr_area *area,
                                     const struct ext_disk_xattr_entry *entry, uint32_t room) {
    uint32_t offset = le16_load(entry->e_value_offs), size = le32_load(entry->e_value_size);

    if (room < sizeof *entry + XATTR_ALIGN ||
        room - XATTR_ALIGN < xattr_round(sizeof *entry + entry->e_name_len))
        return "an entry reaches beyond the area";
    if (le32_load(entry->e_value_inum) != 0) {
        if (!(geometry->incompat & EXT_INCOMPAT_EA_INODE))
            return "a value lies in another inode, which this volume does not allow";
        return size > XATTR_VALUE_MAX ? "a value is larger than an attribute can be" : NULL;
    }
    if (size > area->size || offset > area->size - size)
        return "a value reaches beyond the area";
    return NULL;
}

static int xattr_area_load(const struct inode *inode, const struct xattr_area *area,
                           struct xattr_list *list) {
    const char *fault = NULL;
    uint32_t offset = area->first;
    static const char end[XATTR_ALIGN];

    list->count = 0;
    while (!fault) {
        const struct ext_disk_xattr_entry *entry =
            (struct ext_disk_xattr_entry *)(area->base + offset);
        uint32_t room = area->size - offset;
        if (room >= sizeof end && memcmp(entry, end, sizeof end) == 0)
            return 0;
        if (room < sizeof *entry)
            fault = "it has no end";
        else
            fault = xattr_entry_fault(&ext_of(inode->volume)->geometry, area, entry, room);
        if (fault)
            break;
        struct xattr *item = &list->items[list->count++];
        item->name = (struct xattr_name){entry->e_name_index, entry->e_name, entry->e_name_len};
        item->value_ino = le32_load(entry->e_value_inum);
        item->value = item->value_ino ? NULL : area->base + le16_load(entry->e_value_offs);
        item->value_length = le32_load(entry->e_value_size);
        offset += xattr_round(sizeof *entry + entry->e_name_len);
    }
    return ext_corrupt(ext_of(inode->volume),
                       "inode %" PRIu64 ", volume block %" PRIu64 ": extended attributes: %s",
                       inode->ino, area->buffer->block, fault);
}

/* Bytes that the list takes in an area, the end mark included. */
static uint64_t xattr_list_bytes(const struct xattr_list *list) {
    uint64_t bytes = XATTR_ALIGN;

    for (uint32_t i = 0; i < list->count; i++)
        bytes += xattr_round(sizeof(struct ext_disk_xattr_entry) + list->items[i].name.length) +
                 (uint64_t)xattr_round(list->items[i].value_length);
    return bytes;
}

/* The hash of an entry in a block, over its name and its value's words. */
static uint32_t xattr_entry_hash(const struct ext_disk_xattr_entry *entry, const char *value,
                                 uint32_t value_length) {
    uint32_t hash = 0;

    for (uint32_t i = 0; i < entry->e_name_len; i++)
        hash = (hash << 5 | hash >> 27) ^ (unsigned char)entry->e_name[i];
    for (uint32_t i = 0; i < xattr_round(value_length); i += 4) {
        const le32 *word = (const le32 *)(value + i);
        hash = (hash << 16 | hash >> 16) ^ le32_load(*word);
    }
    return hash;
}

/* Encodes the list, which fits, as `image` of `size` bytes with entries from `first` on. With
 * `hashed` it returns the hash over all entries. */
static uint32_t xattr_image_make(char *image, uint32_t size, uint32_t first,
                                 const struct xattr_list *list, bool hashed) {
    uint32_t offset = first, value_offset = size, hash = 0;

    memset(image + first, 0, size - first);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct xattr *item = &list->items[i];
        struct ext_disk_xattr_entry *entry = (struct ext_disk_xattr_entry *)(image + offset);
        entry->e_name_len = (uint8_t)item->name.length;
        entry->e_name_index = item->name.index;
        memcpy(entry->e_name, item->name.suffix, item->name.length);
        le32_store(&entry->e_value_size, item->value_length);
        if (item->value_length != 0) {
            value_offset -= xattr_round(item->value_length);
            memcpy(image + value_offset, item->value, item->value_length);
            le16_store(&entry->e_value_offs, (uint16_t)value_offset);
        }
        if (hashed) {
            uint32_t own = xattr_entry_hash(entry, image + value_offset, item->value_length);
            le32_store(&entry->e_hash, own);
            hash = (hash << 16 | hash >> 16) ^ own;
        }
        offset += xattr_round(sizeof *entry + item->name.length);
    }
    return hash;
}

/* --- lists ----------------------------------------------------------------------------------- */

static int xattr_name_compare(const struct xattr_name *a, const struct xattr_name *b) {
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->suffix, b->suffix, a->length);
}

static struct xattr *xattr_list_find(struct xattr_list *list, const struct xattr_name *name) {
    for (uint32_t i = 0; i < list->count; i++)
        if (xattr_name_compare(&list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static bool xattr_list_remove(struct xattr_list *list, const struct xattr_name *name) {
    struct xattr *item = xattr_list_find(list, name);

    if (!item)
        return false;
    list->count--;
    memmove(item, item + 1, (size_t)(&list->items[list->count] - item) * sizeof *item);
    return true;
}

/* Inserts in order, unless the area would overflow. */
static bool xattr_list_insert(struct xattr_list *list, const struct xattr *item, uint32_t room) {
    uint32_t at = 0;

    if (list->count == XATTR_LIST_MAX)
        return false;
    while (at < list->count && xattr_name_compare(&list->items[at].name, &item->name) < 0)
        at++;
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof *item);
    list->items[at] = *item;
    list->count++;
    if (xattr_list_bytes(list) <= room)
        return true;
    xattr_list_remove(list, &item->name);
    return false;
}

/* --- the two places -------------------------------------------------------------------------- */

enum { XATTR_IN_INODE, XATTR_IN_BLOCK, XATTR_PLACES };

struct xattr_state {
    struct xattr_area areas[XATTR_PLACES];
    struct xattr_list lists[XATTR_PLACES];
};

static void xattr_state_release(struct xattr_state *state) {
    for (int place = 0; place < XATTR_PLACES; place++)
        buffer_put(state->areas[place].buffer);
}

/* Where the record keeps attributes; no buffer when it has no room for any. */
static int xattr_inode_area(struct inode *inode, struct xattr_area *area) {
    struct ext *ext = ext_of(inode->volume);
    const struct ext_inode *private = ext_inode_of(inode);
    uint32_t start = EXT_INODE_BASE_SIZE + private->extra_size + XATTR_INODE_MAGIC;
    struct ext_disk_inode *record;

    area->buffer = NULL;
    if (private->extra_size == 0 || start + XATTR_ALIGN > ext->geometry.inode_size)
        return 0;
    int rc = ext_inode_record(ext, inode->ino, &area->buffer, &record);
    if (rc < 0) {
        area->buffer = NULL;
        return rc;
    }
    area->record = record;
    area->base = (char *)record + start;
    area->size = ext->geometry.inode_size - start;
    area->first = 0;
    return 0;
}

static le32 *xattr_inode_magic(const struct xattr_area *area) {
    return (le32 *)(area->base - XATTR_INODE_MAGIC);
}

static int xattr_block_get(struct inode *inode, struct buffer **buffer) {
    struct ext *ext = ext_of(inode->volume);
    uint64_t block = ext_inode_of(inode)->file_acl;
    const char *fault = NULL;

    if (!ext_blocks_are_data(ext, block, 1))
        return ext_corrupt(ext, "inode %" PRIu64 ": attribute block %" PRIu64 " is out of range",
                           inode->ino, block);
    int rc = buffer_get(ext->buffers, block, PURPOSE_XATTR, buffer);
    if (rc < 0)
        return rc;
    const struct ext_disk_xattr_header *header = buffer_data(*buffer);
    if (le32_load(header->h_magic) != EXT_XATTR_MAGIC)
        fault = "the magic number of an attribute block";
    else if (le32_load(header->h_blocks) != 1)
        fault = "a length of one block";
    else if (le32_load(header->h_refcount) == 0)
        fault = "at least one owner";
    else if (!((*buffer)->checked && (*buffer)->purpose == PURPOSE_XATTR) &&
             !ext_xattr_checksum_valid(&ext->geometry, block, header))
        fault = "another checksum";
    if (!fault) {
        if (!(*buffer)->checked && (*buffer)->purpose == PURPOSE_XATTR)
            (*buffer)->checked = true;
        return 0;
    }
    buffer_put(*buffer);
    return ext_corrupt(ext, "inode %" PRIu64 ", volume block %" PRIu64 ": expected %s", inode->ino,
                       block, fault);
}

static int xattr_block_area(struct inode *inode, struct xattr_area *area) {
    area->buffer = NULL;
    if (ext_inode_of(inode)->file_acl == 0)
        return 0;
    int rc = xattr_block_get(inode, &area->buffer);
    if (rc < 0) {
        area->buffer = NULL;
        return rc;
    }
    area->base = buffer_data(area->buffer);
    area->size = ext_of(inode->volume)->geometry.block_size;
    area->first = sizeof(struct ext_disk_xattr_header);
    return 0;
}

/* Reads both places. Released by the caller also on failure. */
static int xattr_state_load(struct inode *inode, struct xattr_state *state) {
    struct xattr_area *in_inode = &state->areas[XATTR_IN_INODE];
    struct xattr_area *in_block = &state->areas[XATTR_IN_BLOCK];

    state->lists[XATTR_IN_INODE].count = 0;
    state->lists[XATTR_IN_BLOCK].count = 0;
    in_block->buffer = NULL;
    int rc = xattr_inode_area(inode, in_inode);
    if (rc == 0 && in_inode->buffer && le32_load(*xattr_inode_magic(in_inode)) == EXT_XATTR_MAGIC)
        rc = xattr_area_load(inode, in_inode, &state->lists[XATTR_IN_INODE]);
    if (rc == 0)
        rc = xattr_block_area(inode, in_block);
    if (rc == 0 && in_block->buffer)
        rc = xattr_area_load(inode, in_block, &state->lists[XATTR_IN_BLOCK]);
    return rc;
}

static struct xattr *xattr_state_find(struct xattr_state *state, const struct xattr_name *name) {
    struct xattr *item = xattr_list_find(&state->lists[XATTR_IN_INODE], name);

    return item ? item : xattr_list_find(&state->lists[XATTR_IN_BLOCK], name);
}

/* --- storing --------------------------------------------------------------------------------- */

static void xattr_inode_store(struct ext *ext, uint64_t ino, const struct xattr_area *area,
                              const struct xattr_list *list) {
    char image[PAGE_SIZE_BYTES];

    xattr_image_make(image, area->size, 0, list, false);
    memcpy(area->base, image, area->size);
    le32_store(xattr_inode_magic(area), list->count > 0 ? EXT_XATTR_MAGIC : 0);
    ext_inode_record_changed(ext, ino, area->buffer, area->record);
}

/* The inode gives up its share of the block, which `buffer` holds and which is put here. */
static int xattr_block_release(struct inode *inode, struct buffer *buffer) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_disk_xattr_header *header = buffer_data(buffer);
    uint32_t owners = le32_load(header->h_refcount);
    uint64_t block = buffer->block;

    if (owners > 1) {
        le32_store(&header->h_refcount, owners - 1);
        ext_xattr_checksum_set(&ext->geometry, block, header);
        ext_dirty(ext, buffer);
        buffer_put(buffer);
        return 0;
    }
    buffer_put(buffer);
    return ext_blocks_free(ext, block, 1, true);
}

/* A block of the inode's own. */
static int xattr_block_allocate(struct inode *inode, struct buffer **buffer) {
    struct ext *ext = ext_of(inode->volume);
    uint32_t count = 1;
    uint64_t block;

    int rc = ext_blocks_allocate(ext, inode, 0, &count, &block);
    if (rc < 0)
        return rc;
    rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_XATTR, buffer);
    if (rc < 0)
        ext_blocks_free(ext, block, 1, true);
    return rc;
}

static void xattr_block_fill(struct ext *ext, struct buffer *buffer,
                             const struct xattr_list *list) {
    uint32_t block_size = ext->geometry.block_size;
    char image[PAGE_SIZE_BYTES] = {0};
    struct ext_disk_xattr_header *header = (struct ext_disk_xattr_header *)image;

    le32_store(&header->h_hash, xattr_image_make(image, block_size, sizeof *header, list, true));
    le32_store(&header->h_magic, EXT_XATTR_MAGIC);
    le32_store(&header->h_refcount, 1);
    le32_store(&header->h_blocks, 1);
    memcpy(buffer_data(buffer), image, block_size);
    ext_xattr_checksum_set(&ext->geometry, buffer->block, buffer_data(buffer));
    ext_dirty(ext, buffer);
}

static void xattr_block_set(struct inode *inode, uint64_t block) {
    struct ext_inode *private = ext_inode_of(inode);
    uint32_t sectors = ext_of(inode->volume)->geometry.block_size / DEVICE_SECTOR;

    if (private->file_acl == 0 && block != 0)
        inode->sectors += sectors;
    else if (private->file_acl != 0 && block == 0)
        inode->sectors -= inode->sectors < sectors ? inode->sectors : sectors;
    private->file_acl = block;
}

/* Stores the list in the inode's block, a new one, or none. Takes over the area's buffer. */
static int xattr_block_store(struct inode *inode, struct xattr_area *area,
                             const struct xattr_list *list) {
    struct ext *ext = ext_of(inode->volume);
    struct buffer *old = area->buffer, *fresh;

    if (old && list->count > 0 &&
        le32_load(((struct ext_disk_xattr_header *)buffer_data(old))->h_refcount) == 1) {
        xattr_block_fill(ext, old, list);
        return 0;
    }
    if (list->count > 0) {
        int rc = xattr_block_allocate(inode, &fresh);
        if (rc < 0)
            return rc;
        xattr_block_fill(ext, fresh, list);
        xattr_block_set(inode, fresh->block);
        buffer_put(fresh);
    } else {
        xattr_block_set(inode, 0);
    }
    area->buffer = NULL;
    return old ? xattr_block_release(inode, old) : 0;
}

/* Puts `item` where there is room, in the inode first; item->value NULL: nowhere. */
static int xattr_state_change(struct inode *inode, struct xattr_state *state,
                              const struct xattr *item) {
    struct xattr_area *in_inode = &state->areas[XATTR_IN_INODE];
    struct xattr_list *inode_list = &state->lists[XATTR_IN_INODE];
    struct xattr_list *block_list = &state->lists[XATTR_IN_BLOCK];
    uint32_t block_room =
        ext_of(inode->volume)->geometry.block_size - sizeof(struct ext_disk_xattr_header);
    bool inode_changed = xattr_list_remove(inode_list, &item->name);
    bool block_changed = xattr_list_remove(block_list, &item->name);

    if (item->value) {
        if (in_inode->buffer && xattr_list_insert(inode_list, item, in_inode->size))
            inode_changed = true;
        else if (xattr_list_insert(block_list, item, block_room))
            block_changed = true;
        else
            return -ENOSPC;
    }
    if (block_changed) {
        int rc = xattr_block_store(inode, &state->areas[XATTR_IN_BLOCK], block_list);
        if (rc < 0)
            return rc;
    }
    if (inode_changed)
        xattr_inode_store(ext_of(inode->volume), inode->ino, in_inode, inode_list);
    return 0;
}

static int xattr_change(struct inode *inode, const struct xattr *item, int flags) {
    struct ext *ext = ext_of(inode->volume);
    struct xattr_state state;

    int rc = xattr_state_load(inode, &state);
    if (rc == 0) {
        bool exists = xattr_state_find(&state, &item->name) != NULL;
        if (exists && flags & XATTR_CREATE)
            rc = -EEXIST;
        else if (!exists && flags & XATTR_REPLACE)
            rc = -ENODATA;
        else
            rc = xattr_state_change(inode, &state, item);
    }
    if (rc == 0)
        ext_feature_announce(ext, &ext->geometry.compat, &ext->super.s_feature_compat,
                             EXT_COMPAT_EXT_ATTR);
    xattr_state_release(&state);
    return rc;
}

/* --- the contract's functions ---------------------------------------------------------------- */

/* Of an attribute whose value has an inode of its own. */
static int64_t xattr_value_fetch(struct inode *inode, const struct xattr *item, void *value,
                                 size_t size) {
    if (size == 0)
        return item->value_length;
    if (item->value_length > size)
        return -ERANGE;
    int rc = ext_xattr_inode_read(inode, item->value_ino, value, item->value_length);
    return rc < 0 ? rc : (int64_t)item->value_length;
}

static int64_t xattr_value_copy(struct inode *inode, const struct xattr *item, void *value,
                                size_t size) {
    int64_t length = item->value_length;

    if (item->value_ino && !xattr_name_is_acl(&item->name))
        return xattr_value_fetch(inode, item, value, size);
    if (item->value_ino)
        return -E2BIG; /* no list that anybody could use is so long */
    if (xattr_name_is_acl(&item->name)) {
        length = ext_acl_from_disk(item->value, item->value_length, value, size);
        if (length < 0)
            return ext_corrupt(ext_of(inode->volume),
                               "inode %" PRIu64 ": its access control list makes no sense",
                               inode->ino);
    } else if ((uint64_t)length <= size && length > 0) {
        memcpy(value, item->value, (size_t)length);
    }
    return size != 0 && (uint64_t)length > size ? -ERANGE : length;
}

int64_t ext_xattr_get(struct inode *inode, const char *name, void *value, size_t size) {
    struct xattr_state state;
    struct xattr_name parsed;

    int64_t rc = xattr_name_parse(name, &parsed);
    if (rc < 0)
        return rc;
    rc = xattr_state_load(inode, &state);
    if (rc == 0) {
        const struct xattr *item = xattr_state_find(&state, &parsed);
        rc = item ? xattr_value_copy(inode, item, value, size) : -ENODATA;
    }
    xattr_state_release(&state);
    return rc;
}

int ext_xattr_set(struct inode *inode, const char *name, const void *value, size_t size,
                  int flags) {
    char disk[PAGE_SIZE_BYTES];
    struct xattr_name parsed;

    int rc = xattr_name_parse(name, &parsed);
    if (rc < 0)
        return rc;
    if (xattr_name_is_acl(&parsed)) {
        size = (size_t)ext_acl_to_disk(value, size, disk, sizeof disk);
        value = disk;
    }
    if (size > ext_of(inode->volume)->geometry.block_size)
        return -ENOSPC;
    struct xattr item = {parsed, size > 0 ? value : "", (uint32_t)size, 0};
    return xattr_change(inode, &item, flags);
}

int ext_xattr_remove(struct inode *inode, const char *name) {
    struct xattr item = {0};

    int rc = xattr_name_parse(name, &item.name);
    return rc < 0 ? rc : xattr_change(inode, &item, XATTR_REPLACE);
}

static const struct xattr_prefix *xattr_prefix_of(uint8_t index) {
    for (size_t i = 0; i < XATTR_PREFIXES; i++)
        if (xattr_prefixes[i].index == index)
            return &xattr_prefixes[i];
    return NULL;
}

int64_t ext_xattr_list(struct inode *inode, char *list, size_t size) {
    struct xattr_state state;
    size_t used = 0;

    int rc = xattr_state_load(inode, &state);
    for (int place = 0; rc == 0 && place < XATTR_PLACES; place++) {
        for (uint32_t i = 0; i < state.lists[place].count; i++) {
            const struct xattr_name *name = &state.lists[place].items[i].name;
            const struct xattr_prefix *prefix = xattr_prefix_of(name->index);
            if (!prefix) /* not for users: another system's, or the format's own */
                continue;
            size_t prefix_length = strlen(prefix->text);
            size_t length = prefix_length + name->length + 1;
            if (used + length <= size) {
                memcpy(list + used, prefix->text, prefix_length);
                memcpy(list + used + prefix_length, name->suffix, name->length);
                list[used + length - 1] = '\0';
            }
            used += length;
        }
    }
    xattr_state_release(&state);
    if (rc < 0)
        return rc;
    return size != 0 && used > size ? -ERANGE : (int64_t)used;
}

int ext_xattr_contents_remove(struct inode *inode) {
    const struct xattr item = {.name = {EXT_XATTR_SYSTEM, "data", 4}};

    return xattr_change(inode, &item, XATTR_REPLACE);
}

int ext_xattr_free(struct inode *inode) {
    struct buffer *buffer;

    if (ext_inode_of(inode)->file_acl == 0)
        return 0;
    int rc = xattr_block_get(inode, &buffer);
    if (rc < 0)
        return rc;
    rc = xattr_block_release(inode, buffer);
    xattr_block_set(inode, 0);
    return rc;
}

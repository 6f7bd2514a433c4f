/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/palloc.h.
 */
#include "layouts/nilfs/palloc.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/bitmap.h"

enum { CURSOR_SLOTS = 64 }; /* a power of two */
#define SPAN_UNKNOWN (UINT64_MAX / 16)

struct nilfs_palloc_cursor {
    struct nilfs_palloc layout;
    uint64_t full_from, full_to; /* all numbers of [from, to) are in use */
    uint64_t span;               /* nilfs_palloc_span */
    uint64_t generation;         /* the file's, when the slots were filled */
    struct slot {
        uint64_t offset;
        uint8_t *data; /* of the changed block at `offset`; NULL: the slot is empty */
    } slots[CURSOR_SLOTS];
};

/* --- arithmetic ------------------------------------------------------------------------------- */

struct nilfs_palloc nilfs_palloc_layout(const struct nilfs_geometry *g, uint32_t entry_size) {
    struct nilfs_palloc p = {
        .entry_size = entry_size,
        .entries_per_block = g->block_size / entry_size,
        .entries_per_group = g->block_size * 8,
        .groups_per_descriptor = g->block_size / (uint32_t)sizeof(le32),
    };
    p.blocks_per_group = 1 + (p.entries_per_group + p.entries_per_block - 1) / p.entries_per_block;
    p.blocks_per_descriptor = 1 + p.groups_per_descriptor * p.blocks_per_group;
    return p;
}

struct nilfs_palloc nilfs_palloc_of(const struct nilfs_file *file) {
    const struct nilfs_geometry *g = &file->nilfs->geometry;

    return nilfs_palloc_layout(g, file->ino == NILFS_DAT_INO ? g->dat_entry_size : g->inode_size);
}

uint64_t nilfs_palloc_descriptor(const struct nilfs_palloc *p, uint64_t group) {
    return group / p->groups_per_descriptor * p->blocks_per_descriptor;
}

uint64_t nilfs_palloc_bitmap(const struct nilfs_palloc *p, uint64_t group) {
    return nilfs_palloc_descriptor(p, group) + 1 +
           group % p->groups_per_descriptor * p->blocks_per_group;
}

void nilfs_palloc_locate(const struct nilfs_palloc *p, uint64_t number, uint64_t *offset,
                         uint32_t *byte) {
    uint32_t in_group = (uint32_t)(number % p->entries_per_group);

    *offset =
        nilfs_palloc_bitmap(p, number / p->entries_per_group) + 1 + in_group / p->entries_per_block;
    *byte = in_group % p->entries_per_block * p->entry_size;
}

/* Where the group's count of free entries is in its descriptor block. */
static uint32_t count_index(const struct nilfs_palloc *p, uint64_t group) {
    return (uint32_t)(group % p->groups_per_descriptor);
}

/* --- reading ---------------------------------------------------------------------------------- */

int nilfs_palloc_used(struct nilfs_file *file, uint64_t number) {
    struct nilfs_palloc p = nilfs_palloc_of(file);
    struct nilfs_view view;

    if (number >= NILFS_PALLOC_LIMIT)
        return 0;
    int error = nilfs_file_read(file, nilfs_palloc_bitmap(&p, number / p.entries_per_group),
                                PURPOSE_BITMAP, &view);
    if (error)
        return error == -ENOENT ? 0 : error;
    bool used = bitmap_test(view.data, (uint32_t)(number % p.entries_per_group));
    nilfs_view_put(&view);
    return used;
}

/* The first group from `group` on that has a bitmap: -ENOENT. */
static int next_bitmap(struct nilfs_file *file, const struct nilfs_palloc *p, uint64_t *group) {
    for (;;) {
        uint64_t bitmap = nilfs_palloc_bitmap(p, *group), found;
        int error = nilfs_bmap_seek(file, bitmap, &found);
        if (error || found == bitmap)
            return error;
        /* Something else is next: of this group (impossible), a later group's, or a descriptor. */
        uint64_t descriptor = found / p->blocks_per_descriptor;
        uint64_t inside = found % p->blocks_per_descriptor;
        uint64_t next = descriptor * p->groups_per_descriptor +
                        (inside == 0 ? 0 : (inside - 1) / p->blocks_per_group);
        *group = next > *group ? next : *group + 1;
    }
}

int nilfs_palloc_next(struct nilfs_file *file, uint64_t from, uint64_t *number) {
    struct nilfs_palloc p = nilfs_palloc_of(file);
    uint64_t first = from / p.entries_per_group;

    for (uint64_t group = first; group < NILFS_PALLOC_LIMIT / p.entries_per_group; group++) {
        struct nilfs_view view;
        int error = next_bitmap(file, &p, &group);
        if (!error)
            error = nilfs_file_read(file, nilfs_palloc_bitmap(&p, group), PURPOSE_BITMAP, &view);
        if (error)
            return error;
        uint32_t start = group == first ? (uint32_t)(from % p.entries_per_group) : 0;
        uint32_t bit = bitmap_find_set(view.data, start, p.entries_per_group);
        nilfs_view_put(&view);
        if (bit < p.entries_per_group) {
            *number = group * p.entries_per_group + bit;
            return 0;
        }
    }
    return -ENOENT;
}

int nilfs_palloc_read(struct nilfs_file *file, uint64_t number, enum purpose purpose,
                      struct nilfs_view *view, const uint8_t **entry) {
    struct nilfs_palloc p = nilfs_palloc_of(file);
    uint64_t offset;
    uint32_t byte;

    if (number >= NILFS_PALLOC_LIMIT)
        return -ENOENT;
    nilfs_palloc_locate(&p, number, &offset, &byte);
    int error = nilfs_file_read(file, offset, purpose, view);
    if (!error)
        *entry = view->data + byte;
    return error;
}

int nilfs_palloc_capacity(struct nilfs_file *file, uint64_t *entries) {
    struct nilfs_palloc p = nilfs_palloc_of(file);
    uint64_t last;
    int error = nilfs_bmap_last(file, &last);

    *entries = 0;
    if (!error)
        *entries =
            (last / p.blocks_per_descriptor + 1) * p.groups_per_descriptor * p.entries_per_group;
    return error == -ENOENT ? 0 : error;
}

/* --- the cursor ------------------------------------------------------------------------------- */

static uint64_t span_of(struct nilfs_file *file) {
    uint64_t last;
    int error = nilfs_bmap_last(file, &last);

    return error ? (error == -ENOENT ? 0 : SPAN_UNKNOWN) : last + 1;
}

static struct nilfs_palloc_cursor *cursor_of(struct nilfs_file *file) {
    struct nilfs_changes *changes = file->changes;
    struct nilfs_palloc_cursor *cursor = changes->cursor;

    if (!cursor) {
        cursor = calloc(1, sizeof(*cursor));
        if (!cursor)
            return NULL;
        cursor->layout = nilfs_palloc_of(file);
        cursor->span = span_of(file);
        cursor->generation = changes->generation;
        changes->cursor = cursor;
    }
    if (cursor->generation != changes->generation) {
        memset(cursor->slots, 0, sizeof(cursor->slots));
        cursor->generation = changes->generation;
    }
    return cursor;
}

uint64_t nilfs_palloc_span(struct nilfs_file *file) {
    const struct nilfs_palloc_cursor *cursor = cursor_of(file);

    return cursor ? cursor->span : SPAN_UNKNOWN;
}

static struct slot *slot_of(struct nilfs_palloc_cursor *cursor, uint64_t offset) {
    return &cursor->slots[offset % CURSOR_SLOTS];
}

/* The contents if the slot has them, else NULL. */
static uint8_t *slot_find(struct nilfs_palloc_cursor *cursor, uint64_t offset) {
    const struct slot *slot = slot_of(cursor, offset);

    return slot->offset == offset ? slot->data : NULL;
}

/* As nilfs_file_read, for searches: of a changed block often without a look at the tree. */
static int cursor_read(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor, uint64_t offset,
                       struct nilfs_view *view) {
    uint8_t *data = slot_find(cursor, offset);

    if (!data)
        return nilfs_file_read(file, offset, PURPOSE_BITMAP, view);
    *view = (struct nilfs_view){.data = data};
    return 0;
}

/* As nilfs_file_change, or with `make` as nilfs_file_make. */
static int cursor_change(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor,
                         uint64_t offset, bool make, uint8_t **data, bool *made) {
    *made = false;
    *data = slot_find(cursor, offset);
    if (*data)
        return 0;
    int error =
        make ? nilfs_file_make(file, offset, data, made) : nilfs_file_change(file, offset, data);
    if (!error)
        *slot_of(cursor, offset) = (struct slot){.offset = offset, .data = *data};
    return error;
}

/* The descriptor block of the group, made if need be, as the group's count of free entries. */
static int change_count(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor, uint64_t group,
                        le32 **count) {
    const struct nilfs_palloc *p = &cursor->layout;
    uint8_t *data;
    bool made;
    int error = cursor_change(file, cursor, nilfs_palloc_descriptor(p, group), true, &data, &made);

    if (error)
        return error;
    le32 *counts = (le32 *)data;
    for (uint32_t i = 0; made && i < p->groups_per_descriptor; i++)
        le32_store(&counts[i], p->entries_per_group);
    *count = &counts[count_index(p, group)];
    return 0;
}

/* All of [from, to) are in use: kept if it is news of something larger, or adds to what is known.
 */
static void note_full(struct nilfs_palloc_cursor *cursor, uint64_t from, uint64_t to) {
    if (from <= cursor->full_to && to >= cursor->full_from) {
        if (from < cursor->full_from)
            cursor->full_from = from;
        if (to > cursor->full_to)
            cursor->full_to = to;
    } else if (to - from > cursor->full_to - cursor->full_from) {
        cursor->full_from = from;
        cursor->full_to = to;
    }
}

static void note_free(struct nilfs_palloc_cursor *cursor, uint64_t number) {
    if (number >= cursor->full_from && number < cursor->full_to)
        cursor->full_to = number;
}

/* --- allocation ------------------------------------------------------------------------------- */

/* The first free number of the group at or after bit `from`, in *bit; entries_per_group: none. */
static int search_group(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor, uint64_t group,
                        uint32_t from, uint32_t *bit) {
    const struct nilfs_palloc *p = &cursor->layout;
    struct nilfs_view view;
    int error = cursor_read(file, cursor, nilfs_palloc_descriptor(p, group), &view);

    *bit = from;
    if (error)
        return error == -ENOENT ? 0 : error;
    uint32_t free = le32_load(((const le32 *)view.data)[count_index(p, group)]);
    nilfs_view_put(&view);
    if (free == 0) {
        *bit = p->entries_per_group;
        return 0;
    }
    error = cursor_read(file, cursor, nilfs_palloc_bitmap(p, group), &view);
    if (error)
        return error == -ENOENT ? 0 : error;
    *bit = bitmap_find_clear(view.data, from, p->entries_per_group);
    nilfs_view_put(&view);
    return 0;
}

/* The first free number of [from, to): -ENOSPC. */
static int search(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor, uint64_t from,
                  uint64_t to, uint64_t *number) {
    uint32_t per_group = cursor->layout.entries_per_group, bit;

    while (from < to) {
        if (from >= cursor->full_from && from < cursor->full_to) {
            from = cursor->full_to;
            continue;
        }
        uint64_t group = from / per_group;
        int error = search_group(file, cursor, group, (uint32_t)(from % per_group), &bit);
        if (error)
            return error;
        from = group * per_group + bit;
        if (bit < per_group && from < to) {
            *number = from;
            return 0;
        }
    }
    return -ENOSPC;
}

/* Marks it in use and makes what it needs. */
static int take(struct nilfs_file *file, struct nilfs_palloc_cursor *cursor, uint64_t number,
                uint8_t **entry) {
    const struct nilfs_palloc *p = &cursor->layout;
    uint64_t group = number / p->entries_per_group, offset;
    uint32_t byte;
    uint8_t *bitmap;
    le32 *count;
    bool made;

    nilfs_palloc_locate(p, number, &offset, &byte);
    if (offset >= cursor->span)
        cursor->span = offset + 1;
    int error = cursor_change(file, cursor, offset, true, entry, &made);
    if (!error)
        error = cursor_change(file, cursor, nilfs_palloc_bitmap(p, group), true, &bitmap, &made);
    if (!error)
        error = change_count(file, cursor, group, &count);
    if (error)
        return error;
    bitmap_set(bitmap, (uint32_t)(number % p->entries_per_group), 1);
    le32_store(count, le32_load(*count) - 1);
    *entry += byte;
    return 0;
}

int nilfs_palloc_allocate(struct nilfs_file *file, uint64_t goal, bool wrap, uint64_t *number,
                          uint8_t **entry) {
    struct nilfs_palloc_cursor *cursor = cursor_of(file);

    if (!cursor)
        return -ENOMEM;
    int error = search(file, cursor, goal, NILFS_PALLOC_LIMIT, number);
    if (error == -ENOSPC && wrap) {
        goal = 0;
        error = search(file, cursor, goal, NILFS_PALLOC_LIMIT, number);
    }
    if (!error)
        error = take(file, cursor, *number, entry);
    if (!error)
        note_full(cursor, goal, *number + 1);
    return error;
}

/* --- giving back ------------------------------------------------------------------------------ */

/* Blocks that hold nothing any more, after `number` was freed, become holes. */
static int punch_empty(struct nilfs_file *file, const struct nilfs_palloc *p, uint64_t number,
                       const uint8_t *bitmap, bool group_empty) {
    uint64_t group = number / p->entries_per_group, offset;
    uint32_t bit = (uint32_t)(number % p->entries_per_group), byte;
    uint32_t first = bit - bit % p->entries_per_block, end = first + p->entries_per_block;

    if (end > p->entries_per_group)
        end = p->entries_per_group;
    if (bitmap_find_set(bitmap, first, end) < end)
        return 0;
    nilfs_palloc_locate(p, number, &offset, &byte);
    int error = nilfs_file_free(file, offset, offset + 1);
    if (!error && group_empty) {
        offset = nilfs_palloc_bitmap(p, group);
        error = nilfs_file_free(file, offset, offset + 1);
    }
    return error;
}

int nilfs_palloc_free(struct nilfs_file *file, uint64_t number, bool punch) {
    struct nilfs_palloc_cursor *cursor = cursor_of(file);
    uint8_t *bitmap;
    le32 *count;
    bool made;

    if (!cursor)
        return -ENOMEM;
    const struct nilfs_palloc *p = &cursor->layout;
    uint64_t group = number / p->entries_per_group;
    uint32_t bit = (uint32_t)(number % p->entries_per_group);
    int error =
        number >= NILFS_PALLOC_LIMIT
            ? -ENOENT
            : cursor_change(file, cursor, nilfs_palloc_bitmap(p, group), false, &bitmap, &made);
    if (error == -ENOENT || (!error && !bitmap_test(bitmap, bit)))
        return nilfs_corrupt(file->nilfs,
                             "inode %llu: entry %llu is to be freed, but it is not in use",
                             (unsigned long long)file->ino, (unsigned long long)number);
    if (!error)
        error = change_count(file, cursor, group, &count);
    if (error)
        return error;
    uint32_t free = le32_load(*count) + 1;
    if (free > p->entries_per_group)
        return nilfs_corrupt(file->nilfs,
                             "inode %llu: group %llu has more free entries than there are",
                             (unsigned long long)file->ino, (unsigned long long)group);
    bitmap_clear(bitmap, bit, 1);
    le32_store(count, free);
    note_free(cursor, number);
    return punch ? punch_empty(file, p, number, bitmap, free == p->entries_per_group) : 0;
}

int nilfs_palloc_change(struct nilfs_file *file, uint64_t number, uint8_t **entry) {
    struct nilfs_palloc_cursor *cursor = cursor_of(file);
    uint64_t offset;
    uint32_t byte;
    bool made;

    if (!cursor)
        return -ENOMEM;
    if (number >= NILFS_PALLOC_LIMIT)
        return -ENOENT;
    nilfs_palloc_locate(&cursor->layout, number, &offset, &byte);
    int error = cursor_change(file, cursor, offset, false, entry, &made);
    if (!error)
        *entry += byte;
    return error;
}

uint8_t *nilfs_palloc_changed(struct nilfs_file *file, uint64_t number) {
    struct nilfs_palloc_cursor *cursor = cursor_of(file);
    uint64_t offset;
    uint32_t byte;

    if (!cursor || number >= NILFS_PALLOC_LIMIT)
        return NULL;
    nilfs_palloc_locate(&cursor->layout, number, &offset, &byte);
    uint8_t *data = slot_find(cursor, offset);
    if (!data) {
        struct nilfs_block probe = {.key = offset};
        const struct nilfs_block *block = RB_FIND(nilfs_block_tree, &file->changes->data, &probe);
        if (!block)
            return NULL;
        data = block->data;
        *slot_of(cursor, offset) = (struct slot){.offset = offset, .data = data};
    }
    return data + byte;
}

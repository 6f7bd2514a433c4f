/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/sufile.h.
 *
 * The file is an array of slots of usage_size bytes; the first ones are the header. A block that
 * does not exist has clean segments only.
 *
 * A search for a clean segment goes on where the last one ended and looks at each slot once in a
 * turn around the volume; it begins only when there is something to be found.
 */
#include "layouts/nilfs/sufile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place { /* of a segment's slot */
    uint64_t offset;
    uint32_t byte;
};

static uint32_t slots_per_block(const struct nilfs_geometry *g) {
    return g->block_size / g->usage_size;
}

static uint32_t header_slots(const struct nilfs_geometry *g) {
    return ((uint32_t)sizeof(struct nilfs_disk_sufile_header) + g->usage_size - 1) / g->usage_size;
}

static struct place place_of(const struct nilfs_geometry *g, uint64_t segment) {
    uint64_t slot = segment + header_slots(g);

    return (struct place){.offset = slot / slots_per_block(g),
                          .byte = (uint32_t)(slot % slots_per_block(g)) * g->usage_size};
}

/* The first segment that is not in the block of `segment`. */
static uint64_t block_end(const struct nilfs_geometry *g, uint64_t segment) {
    return (place_of(g, segment).offset + 1) * slots_per_block(g) - header_slots(g);
}

static int no_header(const struct nilfs *nilfs) {
    return nilfs_corrupt(nilfs, "sufile: there is no header (block 0)");
}

static int check_segment(const struct nilfs *nilfs, uint64_t segment) {
    if (segment < nilfs->geometry.segments)
        return 0;
    return nilfs_corrupt(nilfs, "segment %llu is beyond the last one, %llu",
                         (unsigned long long)segment,
                         (unsigned long long)nilfs->geometry.segments - 1);
}

/* --- segments freed, but not for sure --------------------------------------------------------- */

/* Where it is, or would be, in nilfs->freed. */
static size_t freed_index(const struct nilfs *nilfs, uint64_t segment) {
    size_t low = 0, high = nilfs->freed_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (nilfs->freed[middle].segment < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_freed(const struct nilfs *nilfs, uint64_t segment) {
    size_t index = freed_index(nilfs, segment);

    return index < nilfs->freed_count && nilfs->freed[index].segment == segment;
}

/* Room for one more, so that note_freed cannot fail. */
static int reserve_freed(struct nilfs *nilfs) {
    if (nilfs->freed_count < nilfs->freed_room)
        return 0;
    size_t room = nilfs->freed_room ? nilfs->freed_room * 2 : 16;
    struct nilfs_freed *grown = realloc(nilfs->freed, room * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    nilfs->freed = grown;
    nilfs->freed_room = room;
    return 0;
}

static void note_freed(struct nilfs *nilfs, uint64_t segment) {
    size_t index = freed_index(nilfs, segment);

    memmove(&nilfs->freed[index + 1], &nilfs->freed[index],
            (nilfs->freed_count - index) * sizeof(*nilfs->freed));
    nilfs->freed[index] = (struct nilfs_freed){.segment = segment, .cno = nilfs->cno};
    nilfs->freed_count++;
}

/* An error is the device's own matter: it has logged it, and nothing depends on it. */
static void discard(const struct nilfs *nilfs, uint64_t segment) {
    const struct nilfs_geometry *geometry = &nilfs->geometry;
    uint64_t start = nilfs_segment_start(geometry, segment);

    (void)device_discard(nilfs->volume->device, start << geometry->block_bits,
                         (nilfs_segment_end(geometry, segment) - start) << geometry->block_bits);
}

void nilfs_sufile_release_freed(struct nilfs *nilfs, uint64_t cno) {
    size_t left = 0;

    for (size_t i = 0; i < nilfs->freed_count; i++)
        if (nilfs->freed[i].cno > cno)
            nilfs->freed[left++] = nilfs->freed[i];
        else if (nilfs->options.discard)
            discard(nilfs, nilfs->freed[i].segment);
    nilfs->freed_count = left;
}

/* --- reading ---------------------------------------------------------------------------------- */

int nilfs_sufile_totals(struct nilfs *nilfs, struct nilfs_usage_totals *totals) {
    struct nilfs_view view;
    int error = nilfs_file_read(nilfs->sufile, 0, PURPOSE_BITMAP, &view);

    if (error)
        return error == -ENOENT ? no_header(nilfs) : error;
    const void *bytes = view.data;
    const struct nilfs_disk_sufile_header *header = bytes;
    *totals = (struct nilfs_usage_totals){.clean = le64_load(header->sh_ncleansegs),
                                          .dirty = le64_load(header->sh_ndirtysegs),
                                          .last_allocated = le64_load(header->sh_last_alloc)};
    nilfs_view_put(&view);
    if (totals->clean > nilfs->geometry.segments)
        return nilfs_corrupt(nilfs, "sufile: %llu clean segments of %llu",
                             (unsigned long long)totals->clean,
                             (unsigned long long)nilfs->geometry.segments);
    return 0;
}

int nilfs_sufile_read(struct nilfs *nilfs, uint64_t segment, struct nilfs_usage *usage) {
    struct place at = place_of(&nilfs->geometry, segment);
    struct nilfs_view view;
    int error = check_segment(nilfs, segment);

    *usage = (struct nilfs_usage){.flags = 0};
    if (!error)
        error = nilfs_file_read(nilfs->sufile, at.offset, PURPOSE_BITMAP, &view);
    if (error)
        return error == -ENOENT ? 0 : error;
    const void *bytes = view.data + at.byte;
    const struct nilfs_disk_segment_usage *slot = bytes;
    usage->modified = (int64_t)le64_load(slot->su_lastmod);
    usage->blocks = le32_load(slot->su_nblocks);
    usage->flags = le32_load(slot->su_flags) & ~(uint32_t)NILFS_SU_ACTIVE;
    nilfs_view_put(&view);
    return 0;
}

/* --- changing --------------------------------------------------------------------------------- */

/* The header, and the segment's slot in a block that is made if need be. */
static int change(struct nilfs *nilfs, uint64_t segment, struct nilfs_disk_sufile_header **header,
                  struct nilfs_disk_segment_usage **slot) {
    struct place at = place_of(&nilfs->geometry, segment);
    uint8_t *first, *data;
    int error = check_segment(nilfs, segment);

    if (error)
        return error;
    error = nilfs_file_change(nilfs->sufile, 0, &first);
    if (error)
        return error == -ENOENT ? no_header(nilfs) : error;
    error = nilfs_file_make(nilfs->sufile, at.offset, &data, NULL);
    if (error)
        return error;
    *header = (struct nilfs_disk_sufile_header *)first;
    *slot = (struct nilfs_disk_segment_usage *)(data + at.byte);
    return 0;
}

/* A segment becomes dirty (1) or clean (-1). */
static void count_dirty(struct nilfs *nilfs, struct nilfs_disk_sufile_header *header, int change) {
    uint64_t by = (uint64_t)(int64_t)change;

    le64_store(&header->sh_ncleansegs, le64_load(header->sh_ncleansegs) - by);
    le64_store(&header->sh_ndirtysegs, le64_load(header->sh_ndirtysegs) + by);
    nilfs->clean_segments -= by;
}

int nilfs_sufile_touch(struct nilfs *nilfs, uint64_t segment) {
    struct nilfs_disk_sufile_header *header;
    struct nilfs_disk_segment_usage *slot;

    return change(nilfs, segment, &header, &slot);
}

int nilfs_sufile_write(struct nilfs *nilfs, uint64_t segment, const struct nilfs_usage *usage) {
    struct nilfs_disk_sufile_header *header = NULL;
    struct nilfs_disk_segment_usage *slot = NULL;
    int error = change(nilfs, segment, &header, &slot);

    if (error)
        return error;
    if (le32_load(slot->su_flags) == 0)
        count_dirty(nilfs, header, 1);
    le64_store(&slot->su_lastmod, (uint64_t)usage->modified);
    le32_store(&slot->su_nblocks, usage->blocks);
    le32_store(&slot->su_flags, (usage->flags & ~(uint32_t)NILFS_SU_ACTIVE) | NILFS_SU_DIRTY);
    return 0;
}

/* The first clean segment of [from, to) that may be allocated: -ENOSPC. */
static int search(struct nilfs *nilfs, uint64_t from, uint64_t to, uint64_t *segment) {
    const struct nilfs_geometry *g = &nilfs->geometry;

    while (from < to) {
        uint64_t end = block_end(g, from);
        struct nilfs_view view;
        int error = nilfs_file_read(nilfs->sufile, place_of(g, from).offset, PURPOSE_BITMAP, &view);
        bool hole = error == -ENOENT;
        if (error && !hole)
            return error;
        for (end = end < to ? end : to; from < end; from++) {
            const void *bytes = hole ? NULL : view.data + place_of(g, from).byte;
            const struct nilfs_disk_segment_usage *slot = bytes;
            if ((!slot || le32_load(slot->su_flags) == 0) && !is_freed(nilfs, from))
                break;
        }
        if (!hole)
            nilfs_view_put(&view);
        if (from < end) {
            *segment = from;
            return 0;
        }
    }
    return -ENOSPC;
}

int nilfs_sufile_allocate(struct nilfs *nilfs, uint64_t *segment) {
    struct nilfs_disk_sufile_header *header = NULL;
    struct nilfs_disk_segment_usage *slot = NULL;
    struct nilfs_usage_totals totals;
    int error = nilfs_sufile_totals(nilfs, &totals);

    if (error)
        return error;
    if (totals.clean <= nilfs->freed_count)
        return -ENOSPC;
    uint64_t all = nilfs->geometry.segments;
    uint64_t start = totals.last_allocated < all ? totals.last_allocated + 1 : 0;
    error = search(nilfs, start, all, segment);
    if (error == -ENOSPC)
        error = search(nilfs, 0, start, segment);
    if (!error)
        error = change(nilfs, *segment, &header, &slot);
    if (error)
        return error;
    le64_store(&slot->su_lastmod, 0);
    le32_store(&slot->su_nblocks, 0);
    le32_store(&slot->su_flags, NILFS_SU_DIRTY);
    le64_store(&header->sh_last_alloc, *segment);
    count_dirty(nilfs, header, 1);
    return 0;
}

int nilfs_sufile_free(struct nilfs *nilfs, uint64_t segment) {
    struct nilfs_disk_sufile_header *header = NULL;
    struct nilfs_disk_segment_usage *slot = NULL;
    int error = reserve_freed(nilfs);

    if (!error)
        error = change(nilfs, segment, &header, &slot);
    if (error)
        return error;
    if (le32_load(slot->su_flags) == 0)
        return nilfs_corrupt(nilfs, "sufile: segment %llu is to be freed, but it is clean",
                             (unsigned long long)segment);
    memset(slot, 0, sizeof(*slot));
    note_freed(nilfs, segment);
    count_dirty(nilfs, header, -1);
    return 0;
}

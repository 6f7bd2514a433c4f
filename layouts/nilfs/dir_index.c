/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over dir.h's blocks. Interface: layouts/nilfs/dir.h.
 *
 * Invariants:
 *  1. Every entry in use has one slot of the hash table, with its name's tag and its position; a
 *     slot with position 0 is empty, and at least a quarter of the slots is. A slot lies at the
 *     place that its tag says or behind it, with no empty one between (linear probing).
 *  2. The table of room is a tree of maxima: node i has the larger of nodes 2i and 2i+1; block b is
 *     leaf `leaves` + b.
 *
 * Making one takes a lock of the layout's own, nilfs->index_mutex: look-ups run at the same time
 * under the shared lock, and two of them must not read a directory of a million entries twice, or
 * one see half an index. A finished one is changed under the exclusive lock only.
 */
#include "layouts/nilfs/dir.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/layout.h"

#define SMALL_BLOCKS 2u /* a directory up to this is searched through */
#define SLOTS_MIN    256u
#define LEAVES_MIN   16u

struct slot { /* 8 bytes an entry, 11 to 21 with the empty ones */
    uint32_t tag;
    uint32_t position; /* in units of NILFS_DIR_ALIGN, plus one */
};

struct nilfs_dir_index {
    struct slot *slots; /* owned */
    uint32_t slot_count, used;
    uint16_t *room; /* owned: units of NILFS_DIR_ALIGN; see invariant 2 */
    uint32_t leaves;
    uint32_t blocks; /* leaves in use */
    uint32_t block_bits;
};

/* Eight bytes at a time, each step a multiplication whose high half comes back into the low one. */
static uint32_t tag_of(const char *name, uint32_t length) {
    uint64_t hash = length;

    for (; length > 0; name += 8) {
        uint64_t word = 0;
        uint32_t part = length < sizeof word ? length : sizeof word;
        memcpy(&word, name, part);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
        length -= part;
    }
    return (uint32_t)(hash * UINT64_C(0xD6E8FEB86659FD93) >> 32);
}

void nilfs_dir_index_free(struct nilfs_dir_index *index) {
    if (!index)
        return;
    free(index->slots);
    free(index->room);
    free(index);
}

/* --- names ----------------------------------------------------------------------------------- */

static void slot_put(struct slot *slots, uint32_t count, struct slot slot) {
    uint32_t at = slot.tag & (count - 1);

    while (slots[at].position)
        at = (at + 1) & (count - 1);
    slots[at] = slot;
}

static int slots_grow(struct nilfs_dir_index *index) {
    uint32_t count = index->slot_count ? index->slot_count * 2 : SLOTS_MIN;
    struct slot *slots = count > index->slot_count ? calloc(count, sizeof *slots) : NULL;

    if (!slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < index->slot_count; i++) {
        if (index->slots[i].position)
            slot_put(slots, count, index->slots[i]);
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = count;
    return 0;
}

void nilfs_dir_index_start(const struct nilfs_dir_index *index, const char *name, uint32_t length,
                           struct nilfs_dir_probe *probe) {
    probe->tag = tag_of(name, length);
    probe->slot = probe->tag & (index->slot_count - 1);
}

bool nilfs_dir_index_next(const struct nilfs_dir_index *index, struct nilfs_dir_probe *probe,
                          uint64_t *position) {
    const struct slot *slot;

    do {
        slot = &index->slots[probe->slot];
        if (!slot->position)
            return false;
        probe->slot = (probe->slot + 1) & (index->slot_count - 1);
    } while (slot->tag != probe->tag);
    *position = (uint64_t)(slot->position - 1) * NILFS_DIR_ALIGN;
    return true;
}

void nilfs_dir_index_add(struct nilfs_dir_index *index, const char *name, uint32_t length,
                         uint64_t position) {
    struct slot slot = {tag_of(name, length), (uint32_t)(position / NILFS_DIR_ALIGN) + 1};

    slot_put(index->slots, index->slot_count, slot);
    index->used++;
}

void nilfs_dir_index_remove(struct nilfs_dir_index *index, const char *name, uint32_t length,
                            uint64_t position) {
    struct nilfs_dir_probe probe;
    uint32_t mask = index->slot_count - 1;
    uint64_t found;

    nilfs_dir_index_start(index, name, length, &probe);
    do {
        if (!nilfs_dir_index_next(index, &probe, &found))
            return;
    } while (found != position);
    /* What lies behind moves up, as far as its own place allows. */
    uint32_t hole = (probe.slot - 1) & mask;
    for (uint32_t at = probe.slot; index->slots[at].position; at = (at + 1) & mask) {
        uint32_t home = index->slots[at].tag & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->slots[hole].position = 0;
    index->used--;
}

/* --- room ------------------------------------------------------------------------------------ */

static void room_raise(uint16_t *room, uint32_t node) {
    for (node /= 2; node > 0; node /= 2) {
        uint16_t left = room[2 * node], right = room[2 * node + 1];
        room[node] = left > right ? left : right;
    }
}

static int room_grow(struct nilfs_dir_index *index) {
    uint32_t leaves = index->leaves ? index->leaves * 2 : LEAVES_MIN;
    uint16_t *room = calloc((size_t)leaves * 2, sizeof *room);

    if (!room)
        return -ENOMEM;
    if (index->leaves)
        memcpy(room + leaves, index->room + index->leaves, index->leaves * sizeof *room);
    for (uint32_t node = leaves - 1; node > 0; node--)
        room[node] = room[2 * node] > room[2 * node + 1] ? room[2 * node] : room[2 * node + 1];
    free(index->room);
    index->room = room;
    index->leaves = leaves;
    return 0;
}

void nilfs_dir_index_set_room(struct nilfs_dir_index *index, uint64_t block, uint32_t bytes) {
    if (block >= index->blocks)
        index->blocks = (uint32_t)block + 1;
    index->room[index->leaves + block] = (uint16_t)(bytes / NILFS_DIR_ALIGN);
    room_raise(index->room, index->leaves + (uint32_t)block);
}

bool nilfs_dir_index_roomy(const struct nilfs_dir_index *index, uint32_t bytes, uint64_t *block) {
    uint32_t wanted = (bytes + NILFS_DIR_ALIGN - 1) / NILFS_DIR_ALIGN, node = 1;

    if (index->room[1] < wanted)
        return false;
    while (node < index->leaves)
        node = 2 * node + (index->room[2 * node] < wanted);
    *block = node - index->leaves;
    return true;
}

int nilfs_dir_index_reserve(struct nilfs_dir_index *index) {
    int error = 0;

    if (index->used + 1 > index->slot_count / 4 * 3)
        error = slots_grow(index);
    if (!error && index->blocks + 1 > index->leaves)
        error = room_grow(index);
    return error;
}

/* --- making it ------------------------------------------------------------------------------- */

static int index_block(struct nilfs_dir_index *index, struct inode *dir, uint64_t block) {
    uint32_t size = 1u << index->block_bits, most = 0, entries = 0;
    const struct nilfs_disk_dir_entry *entry;
    struct nilfs_view view;
    int error = nilfs_dir_block_read(dir, block, &view);

    if (error)
        return error;
    for (uint32_t offset = 0; (entry = nilfs_dir_entry_at(view.data, size, offset)) && !error;
         offset += le16_load(entry->rec_len)) {
        uint32_t room = nilfs_dir_entry_room(entry);
        if (room > most)
            most = room;
        entries++;
        error = nilfs_dir_index_reserve(index);
        if (!error && le64_load(entry->inode) != 0)
            nilfs_dir_index_add(index, nilfs_dir_entry_name(entry), entry->name_len,
                                (block << index->block_bits) + offset);
    }
    if (!error)
        nilfs_dir_index_set_room(index, block, most);
    nilfs_view_put(&view);
    clock_charge(dir->volume->clock, COST_DIR_ENTRY, entries);
    return error;
}

static int index_make(struct inode *dir, uint64_t blocks, struct nilfs_dir_index **out) {
    struct nilfs_dir_index *index = calloc(1, sizeof *index);
    int error = 0;

    if (!index)
        return -ENOMEM;
    index->block_bits = nilfs_of(dir->volume)->geometry.block_bits;
    for (uint64_t block = 0; block < blocks && !error; block++)
        error = index_block(index, dir, block);
    if (error) {
        nilfs_dir_index_free(index);
        return error;
    }
    *out = index;
    return 0;
}

int nilfs_dir_index_get(struct inode *dir, struct nilfs_dir_index **out) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    struct nilfs_file *file = nilfs_inode_of(dir)->file;
    uint64_t blocks = dir->size >> nilfs->geometry.block_bits;
    struct nilfs_dir_index *index = atomic_load(&file->index);
    int error = 0;

    *out = index;
    if (index || blocks <= SMALL_BLOCKS || dir->size / NILFS_DIR_ALIGN >= UINT32_MAX)
        return 0;
    pthread_mutex_lock(&nilfs->index_mutex);
    index = atomic_load(&file->index);
    if (!index)
        error = index_make(dir, blocks, &index);
    if (!error)
        atomic_store(&file->index, index);
    pthread_mutex_unlock(&nilfs->index_mutex);
    *out = error ? NULL : index;
    return error;
}

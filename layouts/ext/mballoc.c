/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Interface: layouts/ext/mballoc.h.
 *
 * The multi-block allocator. A request goes, in this order, to
 *   - what is preallocated for the inode, if the goal lies in it;
 *   - for the data of a small file, what is preallocated for all small files: they lie together,
 *     however many grow at a time;
 *   - the goal itself, if so much is free there in one piece;
 *   - the nearest group, from the goal's on, that has a large enough chunk; failing that, half as
 *     large, and so on.
 * A file that is no longer small and is seen growing gets more than it asks for, the more the
 * larger it is; the rest stays preallocated for it.
 *
 * Invariants:
 *  1. A block is free in a group's buddy map if and only if the bitmap (the shadow, where there is
 *     one) has it as free and it is in no hold. Maps are built when they are first needed; of
 *     BUDDIES_MAX, the one not used for the longest time makes room for a new one.
 *  2. A group's rank is at least the order of the largest chunk that its map has, or would have;
 *     while there is a map it is exact. Each group is in the set of its rank, and in no other.
 *  3. Preallocated blocks are free on disk and in every count. Nobody is refused a block for them:
 *     when nothing else is left, all are given up.
 *  4. Nothing here depends on addresses or on time.
 */
#include "layouts/ext/mballoc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bitmap.h"
#include "layouts/ext/buddy.h"

#define BUDDIES_MAX     64u
#define SMALL_FILE      (UINT64_C(64) << 10) /* bytes; as ext4's mb_stream_req */
#define SHARED_BLOCKS   512u                 /* as ext4's mb_group_prealloc */
#define STREAM_MIN      (UINT64_C(16) << 10) /* bytes */
#define STREAM_MAX      (UINT64_C(8) << 20)
#define AVAILABLE_SHARE 16u /* no preallocation takes more than this part of what is free */
#define NO_RANK         UINT8_MAX

/* A set of groups in which the next one is found without a look at all: a second map has a bit for
 * each word of the first that is not 0. */
struct group_set {
    uint8_t *groups, *words; /* owned by struct ext_mballoc */
};

struct group_buddy {
    struct buddy map;
    uint32_t group;
    TAILQ_ENTRY(group_buddy) by_use;
};

struct ext_mballoc {
    struct group_buddy **buddies; /* a group's, or NULL */
    uint8_t *ranks;               /* a group's, or NO_RANK: nothing is free */
    uint8_t *set_memory;
    struct group_set sets[BUDDY_ORDERS];
    uint32_t set_words;
    TAILQ_HEAD(, group_buddy) by_use; /* the next to make room first */
    uint32_t buddy_count;
    struct ext_hold shared; /* for small files */
};

/* --- sets of groups by rank ------------------------------------------------------------------ */

static void set_change(struct group_set *set, uint32_t group, bool member) {
    bitmap_fill(set->groups, group, 1, member);
    bitmap_fill(set->words, group / 64, 1, bitmap_word(set->groups, group / 64) != 0);
}

/* The first member of the set from `from` on, or `groups`. */
static uint32_t set_next(const struct ext_mballoc *m, const struct group_set *set, uint32_t from,
                         uint32_t groups) {
    uint32_t word_end = (from / 64 + 1) * 64;
    uint32_t found = bitmap_find_set(set->groups, from, word_end);
    if (found < word_end)
        return found;
    uint32_t word = bitmap_find_set(set->words, from / 64 + 1, m->set_words);
    return word < m->set_words ? bitmap_find_set(set->groups, word * 64, groups) : groups;
}

static void rank_set(struct ext_mballoc *m, uint32_t group, int rank) {
    uint8_t now = rank < 0 ? NO_RANK : (uint8_t)rank;
    if (m->ranks[group] == now)
        return;
    if (m->ranks[group] != NO_RANK)
        set_change(&m->sets[m->ranks[group]], group, false);
    m->ranks[group] = now;
    if (now != NO_RANK)
        set_change(&m->sets[now], group, true);
}

/* Without a map, the best that can be. */
static void rank_guess(struct ext *ext, uint32_t group) {
    uint32_t free_blocks = ext->groups[group].free_blocks;
    rank_set(ext->mballoc, group, free_blocks > 0 ? (int)buddy_order_within(free_blocks) : -1);
}

/* The nearest group from `from` on, beginning again at 0, with this rank or a higher one. */
static bool rank_find(const struct ext *ext, uint32_t rank, uint32_t from, uint32_t *group) {
    const struct ext_mballoc *m = ext->mballoc;
    uint32_t groups = ext->geometry.groups, nearest = groups;
    for (uint32_t r = rank; r < BUDDY_ORDERS; r++) {
        uint32_t found = set_next(m, &m->sets[r], from, groups);
        if (found == groups)
            found = set_next(m, &m->sets[r], 0, groups);
        if (found == groups)
            continue;
        uint32_t distance = found >= from ? found - from : found + groups - from;
        if (distance < nearest)
            nearest = distance;
    }
    *group = (uint32_t)(((uint64_t)from + nearest) % groups);
    return nearest < groups;
}

/* --- buddy maps ------------------------------------------------------------------------------ */

/* Memory for one more: the oldest's, when there are enough. */
static int buddy_memory(struct ext *ext, struct group_buddy **buddy) {
    struct ext_mballoc *m = ext->mballoc;
    if (m->buddy_count == BUDDIES_MAX) {
        *buddy = TAILQ_FIRST(&m->by_use);
        TAILQ_REMOVE(&m->by_use, *buddy, by_use);
        m->buddies[(*buddy)->group] = NULL;
        return 0;
    }
    *buddy = calloc(1, sizeof **buddy);
    if (!*buddy)
        return -ENOMEM;
    if (buddy_init(&(*buddy)->map, ext->geometry.block_size * 8) < 0) {
        free(*buddy);
        return -ENOMEM;
    }
    m->buddy_count++;
    return 0;
}

static void buddy_fill(struct ext *ext, struct buddy *map, uint32_t group, const void *bitmap) {
    uint64_t first = ext_group_first_block(&ext->geometry, group);
    uint32_t bits = ext_group_block_count(&ext->geometry, group);
    const struct ext_group *g = &ext->groups[group];
    buddy_build(map, g->shadow ? g->shadow : bitmap, bits);
    for (struct ext_hold *hold = ext_holds_from(&ext->holds, first);
         hold && hold->block < first + bits; hold = ext_holds_next(hold))
        buddy_take(map, (uint32_t)(hold->block - first), hold->count);
    clock_charge(ext->volume->clock, COST_BITMAP_KB, (bits + 4096) / 8192);
}

/* The group's map, up to date, and its bitmap, which the caller puts. */
static int buddy_get(struct ext *ext, uint32_t group, struct buddy **map, struct buffer **bitmap) {
    struct ext_mballoc *m = ext->mballoc;
    struct group_buddy *buddy = m->buddies[group];
    int rc = ext_block_bitmap_get(ext, group, bitmap);
    if (rc < 0)
        return rc;
    if (buddy) {
        TAILQ_REMOVE(&m->by_use, buddy, by_use);
    } else {
        rc = buddy_memory(ext, &buddy);
        if (rc < 0) {
            buffer_put(*bitmap);
            return rc;
        }
        buddy->group = group;
        m->buddies[group] = buddy;
        buddy_fill(ext, &buddy->map, group, buffer_data(*bitmap));
        rank_set(m, group, buddy_largest(&buddy->map));
    }
    TAILQ_INSERT_TAIL(&m->by_use, buddy, by_use);
    *map = &buddy->map;
    return 0;
}

void ext_mballoc_freed(struct ext *ext, uint32_t group, uint32_t bit, uint32_t count) {
    struct ext_mballoc *m = ext->mballoc;
    struct group_buddy *buddy = m->buddies[group];
    if (!buddy) {
        rank_guess(ext, group);
        return;
    }
    buddy_give(&buddy->map, bit, count);
    rank_set(m, group, buddy_largest(&buddy->map));
}

/* --- searching ------------------------------------------------------------------------------- */

/* Finds a piece of `wanted` blocks, or one of at least `needed` where the goal is; failing both,
 * the largest chunk near it. */
struct search {
    struct ext *ext;
    uint64_t goal;
    uint32_t needed, wanted;
    struct ext_found found;
    struct buddy *map; /* of the group where it was found */
};

/* At the goal. -ENOSPC: not enough there. */
static int search_goal(struct search *search) {
    struct ext *ext = search->ext;
    uint32_t group = ext_group_of_block(&ext->geometry, search->goal);
    uint32_t bit = (uint32_t)(search->goal - ext_group_first_block(&ext->geometry, group));
    if (ext->mballoc->ranks[group] == NO_RANK)
        return -ENOSPC;
    int rc = buddy_get(ext, group, &search->map, &search->found.bitmap);
    if (rc < 0)
        return rc;
    search->found.group = group;
    search->found.bit = bit;
    search->found.count = buddy_run(search->map, bit, search->wanted);
    if (search->found.count >= search->needed)
        return 0;
    buffer_put(search->found.bitmap);
    return -ENOSPC;
}

/* In the nearest group with a chunk of this order. */
static int search_order(struct search *search, uint32_t order) {
    struct ext *ext = search->ext;
    uint32_t goal_group = ext_group_of_block(&ext->geometry, search->goal);
    while (rank_find(ext, order, goal_group, &search->found.group)) {
        uint32_t from = 0;
        if (search->found.group == goal_group)
            from = (uint32_t)(search->goal - ext_group_first_block(&ext->geometry, goal_group));
        int rc = buddy_get(ext, search->found.group, &search->map, &search->found.bitmap);
        if (rc < 0)
            return rc;
        search->found.bit = buddy_find(search->map, order, from);
        if (search->found.bit < search->map->bits) {
            search->found.count = buddy_run(search->map, search->found.bit, search->wanted);
            return 0;
        }
        buffer_put(search->found.bitmap); /* the map has shown its true rank */
    }
    return -ENOSPC;
}

static int search_blocks(struct search *search) {
    int rc = search_goal(search);
    for (int order = (int)buddy_order_around(search->wanted); order >= 0 && rc == -ENOSPC; order--)
        rc = search_order(search, (uint32_t)order);
    if (rc < 0)
        return rc;
    buddy_take(search->map, search->found.bit, search->found.count);
    rank_set(search->ext->mballoc, search->found.group, buddy_largest(search->map));
    return 0;
}

/* --- preallocation --------------------------------------------------------------------------- */

void ext_mballoc_drop(struct ext *ext, struct ext_hold *hold) {
    uint64_t block = hold->block;
    uint32_t count = hold->count;
    if (count == 0)
        return;
    ext_hold_drop(&ext->holds, hold);
    uint32_t group = ext_group_of_block(&ext->geometry, block);
    ext_mballoc_freed(ext, group, (uint32_t)(block - ext_group_first_block(&ext->geometry, group)),
                      count);
}

void ext_mballoc_drop_all(struct ext *ext) {
    struct ext_hold *hold;
    while ((hold = TAILQ_FIRST(&ext->holds.by_time)))
        ext_mballoc_drop(ext, hold);
}

/* What was found beyond the first `taken` blocks is held. */
static void hold_rest(struct ext *ext, struct ext_hold *hold, struct ext_found *found,
                      uint32_t taken) {
    uint64_t first = ext_group_first_block(&ext->geometry, found->group);
    if (found->count <= taken)
        return;
    ext_mballoc_drop(ext, hold);
    if (ext->holds.count == EXT_HOLDS_MAX)
        ext_mballoc_drop(ext, TAILQ_FIRST(&ext->holds.by_time));
    ext_hold_set(&ext->holds, hold, first + found->bit + taken, found->count - taken);
    found->count = taken;
}

/* Blocks from `from` on, which is in the hold; those before it are given up. */
static int hold_take(struct ext *ext, struct ext_hold *hold, uint64_t from, uint32_t wanted,
                     struct ext_found *found) {
    uint64_t block = hold->block;
    found->group = ext_group_of_block(&ext->geometry, block);
    uint64_t first = ext_group_first_block(&ext->geometry, found->group);
    int rc = ext_block_bitmap_get(ext, found->group, &found->bitmap);
    if (rc < 0)
        return rc;
    uint32_t left = (uint32_t)(hold->block + hold->count - from);
    found->bit = (uint32_t)(from - first);
    found->count = wanted < left ? wanted : left;
    ext_hold_advance(&ext->holds, hold, from + found->count);
    if (from > block)
        ext_mballoc_freed(ext, found->group, (uint32_t)(block - first), (uint32_t)(from - block));
    return 0;
}

/* A small file's blocks: the next of those that are kept for all small files. */
static int small_find(struct ext *ext, uint64_t goal, uint32_t wanted, uint64_t available,
                      struct ext_found *found) {
    struct ext_hold *shared = &ext->mballoc->shared;
    if (shared->count >= wanted)
        return hold_take(ext, shared, shared->block, wanted, found);
    uint64_t most = available / AVAILABLE_SHARE;
    struct search search = {.ext = ext, .goal = goal};
    search.wanted = most < SHARED_BLOCKS ? (uint32_t)most : SHARED_BLOCKS;
    if (search.wanted < wanted)
        search.wanted = wanted;
    search.needed = search.wanted;
    ext_mballoc_drop(ext, shared);
    int rc = search_blocks(&search);
    *found = search.found;
    if (rc == 0)
        hold_rest(ext, shared, found, wanted);
    return rc;
}

/* Blocks that a growing file of so many bytes shall get at a time: the next power of two. */
static uint64_t stream_blocks(const struct ext *ext, uint64_t size) {
    uint64_t bytes = STREAM_MIN;
    while (bytes < size && bytes < STREAM_MAX)
        bytes *= 2;
    return bytes >> ext->geometry.block_bits;
}

static int stream_find(struct ext *ext, struct inode *inode, uint64_t goal, uint32_t wanted,
                       uint64_t available, struct ext_found *found) {
    struct ext_writer *writer = ext_writer_take(inode);
    struct search search = {.ext = ext, .goal = goal, .needed = wanted, .wanted = wanted};
    if (!writer)
        return -ENOMEM;
    /* With delayed allocation a file that was written in one go asks once, for all of it. */
    if (S_ISREG(inode->mode) && goal == writer->next_physical) {
        uint64_t more = stream_blocks(ext, inode->size);
        if (more > available / AVAILABLE_SHARE)
            more = available / AVAILABLE_SHARE;
        if (more > wanted)
            search.wanted = (uint32_t)more;
    }
    int rc = search_blocks(&search);
    *found = search.found;
    if (rc == 0)
        hold_rest(ext, &writer->hold, found, wanted);
    return rc;
}

int ext_mballoc_find(struct ext *ext, struct inode *inode, uint64_t goal, uint32_t wanted,
                     struct ext_found *found) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    uint64_t available = ext_blocks_available(ext);
    uint64_t bytes = (uint64_t)wanted << ext->geometry.block_bits;
    if (writer && goal >= writer->hold.block && goal - writer->hold.block < writer->hold.count)
        return hold_take(ext, &writer->hold, goal, wanted, found);
    if (bytes < inode->size)
        bytes = inode->size;
    if (S_ISREG(inode->mode) && bytes < SMALL_FILE)
        return small_find(ext, goal, wanted, available, found);
    return stream_find(ext, inode, goal, wanted, available, found);
}

/* --- mount ----------------------------------------------------------------------------------- */

int ext_mballoc_open(struct ext *ext) {
    uint32_t groups = ext->geometry.groups;
    struct ext_mballoc *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    ext->mballoc = m;
    TAILQ_INIT(&m->by_use);
    m->set_words = (groups + 63) / 64;
    size_t words_bytes = (m->set_words + 63) / 64 * 8, groups_bytes = (size_t)m->set_words * 8;
    m->buddies = calloc(groups, sizeof(struct group_buddy *));
    m->ranks = malloc(groups);
    m->set_memory = calloc(BUDDY_ORDERS, groups_bytes + words_bytes);
    if (!m->buddies || !m->ranks || !m->set_memory) {
        ext_mballoc_close(ext);
        return -ENOMEM;
    }
    for (uint32_t order = 0; order < BUDDY_ORDERS; order++) {
        m->sets[order].groups = m->set_memory + order * (groups_bytes + words_bytes);
        m->sets[order].words = m->sets[order].groups + groups_bytes;
    }
    memset(m->ranks, NO_RANK, groups);
    for (uint32_t group = 0; group < groups; group++)
        rank_guess(ext, group);
    return 0;
}

void ext_mballoc_close(struct ext *ext) {
    struct ext_mballoc *m = ext->mballoc;
    struct group_buddy *buddy;
    if (!m)
        return;
    while ((buddy = TAILQ_FIRST(&m->by_use))) {
        TAILQ_REMOVE(&m->by_use, buddy, by_use);
        buddy_release(&buddy->map);
        free(buddy);
    }
    ext_hold_drop(&ext->holds, &m->shared);
    free((void *)m->buddies);
    free(m->ranks);
    free(m->set_memory);
    free(m);
    ext->mballoc = NULL;
}

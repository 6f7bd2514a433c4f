/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Squeezing, and the parent-first walk. Interface: layouts/reiser4/flush.h.
 */
#include "layouts/reiser4/flush.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "layouts/reiser4/reiser4.h"

struct member {
    struct reiser4_key key; /* the node's first */
    uint64_t block;         /* its number */
    uint32_t level;
};

struct members {
    struct member *member; /* owned */
    size_t count;
};

/* Of nodes with one key, parents come first. */
static int by_key(const void *a, const void *b) {
    const struct member *x = a, *y = b;
    int order = reiser4_key_compare(&x->key, &y->key);

    if (order != 0)
        return order;
    return x->level > y->level ? -1 : x->level < y->level;
}

/* The jnodes of a level (0: of all levels, that have no place yet), in the order of keys. */
static int collect(const struct reiser4 *r4, uint32_t level, struct members *members) {
    const struct reiser4_jnode *jnode;

    members->count = 0;
    members->member = calloc(r4->jnodes.nodes + 1, sizeof(*members->member));
    if (!members->member)
        return -ENOMEM;
    TAILQ_FOREACH (jnode, &r4->jnodes.list, link) {
        struct reiser4_node node = {r4->jnodes.format, jnode->data};
        if (level > 0 ? jnode->level != level : jnode->placed)
            continue;
        members->member[members->count++] =
            (struct member){reiser4_node_key(node, 0), jnode->block, jnode->level};
    }
    qsort(members->member, members->count, sizeof(*members->member), by_key);
    return 0;
}

/* --- a node's path -----------------------------------------------------------------------------
 */

/* The cursor, on a unit, stands on the node of its path at `level` instead; where that is a leaf
 * and the unit an extent, on the first leaf behind it. */
static int rise(struct reiser4_cursor *cursor, uint32_t level) {
    int error = 0;

    while (!error && cursor->bottom > level)
        error = reiser4_cursor_next_item(cursor);
    for (; !error && cursor->bottom < level; cursor->bottom++)
        reiser4_view_put(&cursor->step[cursor->bottom].view);
    return error;
}

/* Where several nodes have one first key (entries that collide), they are tried one by one. */
static int find_among_equals(struct reiser4 *r4, const struct member *member,
                             struct reiser4_cursor *cursor) {
    struct reiser4_key before = member->key;

    for (int word = REISER4_OFFSET; word >= 0 && before.word[word]-- == 0;)
        word--;
    int error = reiser4_tree_floor(&r4->tree, &before, cursor);
    if (error)
        return error;
    error = rise(cursor, member->level);
    while (!error && cursor->step[member->level].view.block != member->block)
        error = reiser4_cursor_right(cursor);
    if (error == -ENOENT)
        reiser4_cursor_release(cursor);
    return error;
}

/* *found false: it has gone since it was collected. */
static int find_node(struct reiser4 *r4, const struct member *member, struct reiser4_cursor *cursor,
                     bool *found) {
    const struct reiser4_jnode *jnode = reiser4_jnode_find(&r4->jnodes, member->block);

    *found = jnode && jnode->level == member->level;
    if (!*found)
        return 0;
    struct reiser4_node node = {r4->jnodes.format, jnode->data};
    struct member now = {reiser4_node_key(node, 0), member->block, member->level};
    int error = reiser4_tree_find_node(&r4->tree, &now.key, now.level, cursor);
    if (!error && cursor->step[now.level].view.block == now.block)
        return 0;
    if (!error)
        reiser4_cursor_release(cursor);
    if (!error || error == -ENOENT)
        error = find_among_equals(r4, &now, cursor);
    return error != -ENOENT
               ? error
               : reiser4_corrupt(r4->volume, "a changed node of level %u is not in the tree",
                                 now.level);
}

/* --- squeezing ---------------------------------------------------------------------------------
 */

static int squeeze_node(struct reiser4 *r4, const struct member *member) {
    struct reiser4_cursor cursor;
    bool moved, found;
    int error = find_node(r4, member, &cursor, &found);

    if (error || !found)
        return error;
    do
        error = reiser4_cursor_pack(&cursor, &moved);
    while (!error && moved);
    if (!error)
        reiser4_cursor_release(&cursor);
    return error;
}

static int squeeze(struct reiser4 *r4) {
    struct members members;
    int error = 0;

    for (uint32_t level = REISER4_LEAF; level <= r4->tree.height && !error; level++) {
        error = collect(r4, level, &members);
        for (size_t i = 0; !error && i < members.count; i++)
            error = squeeze_node(r4, &members.member[i]);
        free(members.member);
    }
    return error;
}

/* --- places ------------------------------------------------------------------------------------
 */

struct walk {
    struct reiser4 *r4;
    uint64_t preceder; /* 0: there is none yet */
    bool leaf_relocate;
};

/* The first of a walk is put behind its parent. */
static void begin_at(struct walk *walk, const struct reiser4_cursor *cursor) {
    if (walk->preceder > 0 || cursor->bottom == cursor->top)
        return;
    uint64_t parent = cursor->step[cursor->bottom + 1].view.block;
    if (!(parent & REISER4_STAND_IN))
        walk->preceder = parent;
}

static int relocate(struct walk *walk, struct reiser4_cursor *cursor, uint64_t block) {
    struct reiser4_run run = {block, 1};
    int error = 0;

    if (block == 0)
        error = reiser4_space_allocate(walk->r4, walk->preceder ? walk->preceder + 1 : 0, 1, &run);
    return error ? error : reiser4_cursor_renumber(cursor, run.block);
}

static int place_node(struct walk *walk, const struct member *member) {
    struct reiser4_cursor cursor;
    enum reiser4_decision decision;
    uint64_t block;
    bool found;
    int error = find_node(walk->r4, member, &cursor, &found);

    if (error)
        return error;
    if (!found) /* placing takes none away: another one has its number */
        return reiser4_corrupt(walk->r4->volume, "block %" PRIu64 " is in the tree twice",
                               member->block);
    struct reiser4_jnode *jnode = cursor.step[cursor.bottom].view.jnode;
    const struct reiser4_candidate candidate = {
        .block = jnode->block & REISER4_STAND_IN ? 0 : jnode->block,
        .level = member->level,
        .root = cursor.bottom == cursor.top,
        .leaf_relocate = walk->leaf_relocate,
    };
    begin_at(walk, &cursor);
    error = reiser4_place_decide(walk->r4, &candidate, walk->preceder, &decision, &block);
    if (!error && decision == REISER4_RELOCATE)
        error = relocate(walk, &cursor, block);
    jnode->placed = true;
    walk->preceder = jnode->block;
    reiser4_cursor_release(&cursor);
    return error;
}

/* Those that have no place; *any: there were some. */
static int place_round(struct reiser4 *r4, bool *any) {
    struct walk walk = {.r4 = r4};
    struct members members;
    uint64_t leaves = 0;
    int error = collect(r4, 0, &members);

    for (size_t i = 0; !error && i < members.count; i++)
        leaves += members.member[i].level == REISER4_LEAF;
    walk.leaf_relocate = leaves >= r4->options.relocate_from;
    for (size_t i = 0; !error && i < members.count; i++)
        error = place_node(&walk, &members.member[i]);
    *any = members.count > 0;
    free(members.member);
    return error;
}

int reiser4_flush(struct reiser4 *r4) {
    bool any = true;
    int error = r4->options.squeeze ? squeeze(r4) : 0;

    /* Each round leaves parents at most, so that there are no more than levels, but where a bitmap
     * has let a node take the place of another one. */
    for (uint32_t round = 0; !error && any && round <= REISER4_HEIGHT_MAX; round++)
        error = place_round(r4, &any);
    return error || !any ? error
                         : reiser4_corrupt(r4->volume, "a block is in the tree twice; "
                                                       "see 'layoutfs check'");
}

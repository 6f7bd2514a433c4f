/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface and invariant: layouts/reiser4/kept.h.
 */
#include "layouts/reiser4/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/format.h"

struct reiser4_kept {
    RB_ENTRY(reiser4_kept) link;
    uint64_t block;
    uint8_t data[REISER4_BLOCK_SIZE];
};

static int compare(const struct reiser4_kept *a, const struct reiser4_kept *b) {
    return a->block < b->block ? -1 : a->block > b->block;
}

RB_GENERATE_INTERNAL(reiser4_kept_tree, reiser4_kept, link, compare, __attribute__((unused)) static)

static struct reiser4_kept *first_at(const struct reiser4_kept_set *set, uint64_t block,
                                     struct reiser4_kept *key) {
    key->block = block;
    return RB_NFIND(reiser4_kept_tree, (struct reiser4_kept_tree *)(uintptr_t)&set->tree, key);
}

static void drop(struct reiser4_kept_set *set, struct reiser4_kept *kept) {
    RB_REMOVE(reiser4_kept_tree, &set->tree, kept);
    set->count--;
    free(kept);
}

int reiser4_kept_put(struct reiser4_kept_set *set, uint64_t block, const uint8_t *data) {
    struct reiser4_kept key, *kept = first_at(set, block, &key);

    if (!kept || kept->block != block) {
        kept = malloc(sizeof(*kept));
        if (!kept)
            return -ENOMEM;
        kept->block = block;
        RB_INSERT(reiser4_kept_tree, &set->tree, kept);
        set->count++;
    }
    memcpy(kept->data, data, sizeof(kept->data));
    return 0;
}

const uint8_t *reiser4_kept_find(const struct reiser4_kept_set *set, uint64_t block) {
    struct reiser4_kept key, *kept = set->count ? first_at(set, block, &key) : NULL;

    return kept && kept->block == block ? kept->data : NULL;
}

void reiser4_kept_drop(struct reiser4_kept_set *set, uint64_t block, uint64_t count) {
    struct reiser4_kept key, *kept = set->count ? first_at(set, block, &key) : NULL;

    while (kept && kept->block - block < count) {
        struct reiser4_kept *next = RB_NEXT(reiser4_kept_tree, &set->tree, kept);
        drop(set, kept);
        kept = next;
    }
}

int reiser4_kept_each(struct reiser4_kept_set *set,
                      int (*visit)(void *context, uint64_t block, uint8_t *data), void *context) {
    struct reiser4_kept *kept;

    RB_FOREACH(kept, reiser4_kept_tree, &set->tree) {
        int result = visit(context, kept->block, kept->data);
        if (result)
            return result;
    }
    return 0;
}

void reiser4_kept_move(struct reiser4_kept_set *to, struct reiser4_kept_set *from) {
    struct reiser4_kept *kept;

    while ((kept = RB_ROOT(&from->tree))) {
        RB_REMOVE(reiser4_kept_tree, &from->tree, kept);
        RB_INSERT(reiser4_kept_tree, &to->tree, kept);
    }
    to->count += from->count;
    from->count = 0;
}

void reiser4_kept_clear(struct reiser4_kept_set *set) {
    struct reiser4_kept *kept;

    while ((kept = RB_ROOT(&set->tree)))
        drop(set, kept);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Cookies of directory entries. Interface: layouts/reiser4/layout.h.
 *
 * An entry's cookie is the number of its place in a list that only grows; a hash table finds the
 * place that an entry has already. Both are as large as the directory that has been listed.
 */
#include <errno.h>
#include <stdlib.h>

#include "layouts/reiser4/layout.h"

#define SIZE_MIN 64u

struct reiser4_places {
    struct reiser4_place_of_entry *place; /* owned: cookie n is place[n - 1] */
    uint32_t *slot;                       /* owned: cookies, 0: free; twice as many as places */
    uint32_t count, room;                 /* room: 0 or a power of two */
};

void reiser4_places_free(struct reiser4_places *places) {
    if (!places)
        return;
    free(places->place);
    free(places->slot);
    free(places);
}

static bool same(const struct reiser4_place_of_entry *a, const struct reiser4_place_of_entry *b) {
    return reiser4_key_compare(&a->key, &b->key) == 0 && a->name_hash == b->name_hash;
}

/* The entry's slot, or the free one where it belongs. */
static uint32_t *probe(const struct reiser4_places *places,
                       const struct reiser4_place_of_entry *place) {
    uint32_t mask = 2 * places->room - 1;
    uint64_t hash = place->name_hash;

    for (int i = REISER4_ORDERING; i <= REISER4_OFFSET; i++)
        hash = (hash ^ place->key.word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    while (places->slot[at] && !same(&places->place[places->slot[at] - 1], place))
        at = (at + 1) & mask;
    return &places->slot[at];
}

static int grow(struct reiser4_places *places) {
    uint32_t room = places->room ? places->room * 2 : SIZE_MIN;
    struct reiser4_place_of_entry *place;
    uint32_t *slot;

    if (room > UINT32_MAX / 4)
        return -ENOMEM;
    slot = calloc((size_t)room * 2, sizeof(*slot));
    place = slot ? reallocarray(places->place, room, sizeof(*place)) : NULL;
    if (!place) {
        free(slot);
        return -ENOMEM;
    }
    free(places->slot);
    places->place = place;
    places->slot = slot;
    places->room = room;
    for (uint32_t i = 0; i < places->count; i++)
        *probe(places, &places->place[i]) = i + 1;
    return 0;
}

static int cookie_of(struct reiser4_inode *private, const struct reiser4_place_of_entry *place,
                     uint64_t *cookie) {
    struct reiser4_places *places = private->places;

    if (!places)
        places = private->places = calloc(1, sizeof(*places));
    if (!places)
        return -ENOMEM;
    if (places->count == places->room) {
        int error = grow(places);
        if (error)
            return error;
    }
    uint32_t *slot = probe(places, place);
    if (!*slot) {
        places->place[places->count++] = *place;
        *slot = places->count;
    }
    *cookie = *slot;
    return 0;
}

int reiser4_places_cookie(struct inode *dir, const struct reiser4_place_of_entry *place,
                          uint64_t *cookie) {
    struct reiser4 *r4 = reiser4_of(dir->volume);

    pthread_mutex_lock(&r4->places_mutex);
    int error = cookie_of(reiser4_inode_of(dir), place, cookie);
    pthread_mutex_unlock(&r4->places_mutex);
    return error;
}

int reiser4_places_find(struct inode *dir, uint64_t cookie, struct reiser4_place_of_entry *place) {
    struct reiser4 *r4 = reiser4_of(dir->volume);

    pthread_mutex_lock(&r4->places_mutex);
    const struct reiser4_places *places = reiser4_inode_of(dir)->places;
    int error = places && cookie > 0 && cookie <= places->count ? 0 : -EINVAL;
    if (!error)
        *place = places->place[cookie - 1];
    pthread_mutex_unlock(&r4->places_mutex);
    return error;
}

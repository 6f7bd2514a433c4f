/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/objects.h. Open addressing with linear
 * probing; a slot that becomes free is filled by what was probed past it, so that there are no
 * tombstones.
 */
#include "layouts/reiser4/objects.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE_MIN 64u

void reiser4_objects_init(struct reiser4_objects *objects) {
    *objects = (struct reiser4_objects){0};
    pthread_mutex_init(&objects->mutex, NULL);
}

void reiser4_objects_destroy(struct reiser4_objects *objects) {
    free(objects->slot);
    pthread_mutex_destroy(&objects->mutex);
}

static size_t home_of(const struct reiser4_objects *objects, uint64_t oid) {
    return (size_t)(oid * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (objects->size - 1);
}

/* The slot of that number, or the free one where it belongs. The table has a free one. */
static struct reiser4_object *probe(const struct reiser4_objects *objects, uint64_t oid) {
    size_t at = home_of(objects, oid);

    while (objects->slot[at].oid != 0 && objects->slot[at].oid != oid)
        at = (at + 1) & (objects->size - 1);
    return &objects->slot[at];
}

static int grow(struct reiser4_objects *objects) {
    struct reiser4_objects old = *objects;
    size_t size = old.size ? old.size * 2 : SIZE_MIN;
    struct reiser4_object *slot = calloc(size, sizeof(*slot));

    if (!slot)
        return -ENOMEM;
    objects->slot = slot;
    objects->size = size;
    for (size_t i = 0; i < old.size; i++)
        if (old.slot[i].oid != 0)
            *probe(objects, old.slot[i].oid) = old.slot[i];
    free(old.slot);
    return 0;
}

int reiser4_objects_note(struct reiser4_objects *objects, const struct reiser4_object *object) {
    int error = 0;

    pthread_mutex_lock(&objects->mutex);
    if (objects->count >= objects->size / 4 * 3)
        error = grow(objects);
    if (!error) {
        struct reiser4_object *slot = probe(objects, object->oid);
        objects->count += slot->oid == 0;
        *slot = *object;
    }
    pthread_mutex_unlock(&objects->mutex);
    return error;
}

int reiser4_objects_find(struct reiser4_objects *objects, uint64_t oid,
                         struct reiser4_object *object) {
    pthread_mutex_lock(&objects->mutex);
    if (objects->size > 0)
        *object = *probe(objects, oid);
    else
        object->oid = 0;
    pthread_mutex_unlock(&objects->mutex);
    return object->oid == oid && oid != 0 ? 0 : -ESTALE;
}

void reiser4_objects_forget(struct reiser4_objects *objects, uint64_t oid) {
    pthread_mutex_lock(&objects->mutex);
    struct reiser4_object *slot = objects->size > 0 ? probe(objects, oid) : NULL;
    if (slot && slot->oid == oid && oid != 0) {
        size_t mask = objects->size - 1, hole = (size_t)(slot - objects->slot);
        objects->count--;
        for (size_t at = (hole + 1) & mask; objects->slot[at].oid != 0; at = (at + 1) & mask) {
            size_t home = home_of(objects, objects->slot[at].oid);
            if (((at - home) & mask) < ((at - hole) & mask))
                continue; /* it would come before its home */
            objects->slot[hole] = objects->slot[at];
            hole = at;
        }
        objects->slot[hole].oid = 0;
    }
    pthread_mutex_unlock(&objects->mutex);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over key.h. Where objects are. An inode's number is the object's, but its
 * stat data lies under a key with two words more, which only directory entries know. What was seen
 * in an entry is noted here, so that the number alone is enough from then on.
 *
 * Memory: 24 bytes an object that was seen, in an open table that is at most three quarters full;
 * kept until the object is deleted, or the volume unmounted.
 *
 * Locking: its own mutex, a leaf: look-ups and listings run under the shared lock.
 */
#ifndef LAYOUTFS_REISER4_OBJECTS_H
#define LAYOUTFS_REISER4_OBJECTS_H

#include <pthread.h>
#include <stddef.h>

#include "layouts/reiser4/key.h"

struct reiser4_objects {
    struct reiser4_object *slot; /* owned; oid 0: free */
    size_t count, size;          /* size: 0 or a power of two */
    pthread_mutex_t mutex;
};

void reiser4_objects_init(struct reiser4_objects *objects);
void reiser4_objects_destroy(struct reiser4_objects *objects);
/* Notes the object, or that it is elsewhere than was thought. -ENOMEM. */
int reiser4_objects_note(struct reiser4_objects *objects, const struct reiser4_object *object);
/* -ESTALE: nothing is known of that number. */
int reiser4_objects_find(struct reiser4_objects *objects, uint64_t oid,
                         struct reiser4_object *object);
void reiser4_objects_forget(struct reiser4_objects *objects, uint64_t oid);

#endif

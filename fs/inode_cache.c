/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. In-core inodes by number: look-up, references, ageing. Interface and invariants:
 * fs/volume_internal.h.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/slab.h"
#include "fs/volume_internal.h"

#define INITIAL_BUCKETS 1024u
/* One unreferenced inode is kept for every so many bytes of cache memory. */
#define BYTES_PER_INODE 4096u
#define INODES_MIN      4096u

TAILQ_HEAD(inode_list, inode);

struct inode_cache {
    struct volume *volume;
    pthread_mutex_t mutex;
    struct inode **buckets;
    uint32_t bucket_count;       /* a power of two */
    uint32_t count;              /* in the table */
    _Atomic uint32_t idle_count; /* on the LRU list */
    uint32_t limit;              /* of idle inodes */
    struct inode_list lru;       /* head: least recently used */
    struct inode_list dirty;
    struct slab_cache inodes;
};

int inode_cache_create(struct volume *volume, struct inode_cache **out) {
    struct inode_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    cache->buckets = calloc(INITIAL_BUCKETS, sizeof(*cache->buckets));
    if (!cache->buckets) {
        free(cache);
        return -ENOMEM;
    }
    cache->volume = volume;
    slab_init(&cache->inodes, sizeof(struct inode) + volume->layout->inode_private_size);
    cache->bucket_count = INITIAL_BUCKETS;
    uint64_t limit = volume->machine.memory_bytes / BYTES_PER_INODE;
    cache->limit = limit < INODES_MIN       ? INODES_MIN
                   : limit > UINT32_MAX / 2 ? UINT32_MAX / 2
                                            : limit;
    pthread_mutex_init(&cache->mutex, NULL);
    TAILQ_INIT(&cache->lru);
    TAILQ_INIT(&cache->dirty);
    *out = cache;
    return 0;
}

void inode_cache_destroy(struct inode_cache *cache) {
    if (!cache)
        return;
    assert(cache->count == 0);
    slab_drain(&cache->inodes);
    pthread_mutex_destroy(&cache->mutex);
    free(cache->buckets);
    free(cache);
}

static struct inode **bucket_of(const struct inode_cache *cache, uint64_t ino) {
    uint64_t hash = ino * UINT64_C(0x9E3779B97F4A7C15); /* Fibonacci hashing */

    return &cache->buckets[(hash >> 32) & (cache->bucket_count - 1)];
}

static struct inode *find(const struct inode_cache *cache, uint64_t ino) {
    struct inode *inode = *bucket_of(cache, ino);

    while (inode && inode->ino != ino)
        inode = inode->hash_next;
    return inode;
}

/* A table that cannot grow only gets slower. */
static void grow(struct inode_cache *cache) {
    struct inode **old = cache->buckets;
    uint32_t old_count = cache->bucket_count;
    struct inode **fresh = calloc((size_t)old_count * 2, sizeof(struct inode *));

    if (!fresh)
        return;
    cache->buckets = fresh;
    cache->bucket_count = old_count * 2;
    for (uint32_t i = 0; i < old_count; i++) {
        while (old[i]) {
            struct inode *inode = old[i];
            struct inode **bucket = bucket_of(cache, inode->ino);

            old[i] = inode->hash_next;
            inode->hash_next = *bucket;
            *bucket = inode;
        }
    }
    free(old);
}

static void link_in(struct inode_cache *cache, struct inode *inode) {
    if (cache->count >= cache->bucket_count)
        grow(cache);
    struct inode **bucket = bucket_of(cache, inode->ino);
    inode->hash_next = *bucket;
    *bucket = inode;
    cache->count++;
}

static void unlink_from(struct inode_cache *cache, struct inode *inode) {
    struct inode **link = bucket_of(cache, inode->ino);

    while (*link != inode)
        link = &(*link)->hash_next;
    *link = inode->hash_next;
    inode->hash_next = NULL;
    cache->count--;
}

static void reference(struct inode_cache *cache, struct inode *inode, uint32_t count) {
    if (inode->references == 0) {
        TAILQ_REMOVE(&cache->lru, inode, lru);
        cache->idle_count--;
    }
    inode->references += count;
}

struct inode *inode_cache_new(struct volume *volume) {
    struct inode_cache *cache = volume->inode_cache;

    pthread_mutex_lock(&cache->mutex);
    struct inode *inode = slab_take(&cache->inodes);
    pthread_mutex_unlock(&cache->mutex);
    if (!inode)
        return NULL;
    inode->volume = volume;
    inode->references = 1;
    return inode;
}

static void recycle(struct inode_cache *cache, struct inode *inode) {
    pthread_mutex_lock(&cache->mutex);
    slab_give(&cache->inodes, inode);
    pthread_mutex_unlock(&cache->mutex);
}

int inode_cache_insert(struct inode *inode) {
    struct volume *volume = inode->volume;
    struct inode_cache *cache = volume->inode_cache;

    pthread_mutex_lock(&cache->mutex);
    bool taken = find(cache, inode->ino) != NULL;
    if (!taken)
        link_in(cache, inode);
    pthread_mutex_unlock(&cache->mutex);
    if (!taken)
        return 0;
    log_error(volume->log, "%s: inode %llu is in use, yet was handed out as free; run a check",
              volume->name, (unsigned long long)inode->ino);
    return -EUCLEAN;
}

/* Its attributes need not be stored. Exclusive volume->lock, or nobody else knows the inode. */
static void unmark_dirty(struct inode *inode) {
    struct inode_cache *cache = inode->volume->inode_cache;

    if (!inode->dirty)
        return;
    pthread_mutex_lock(&cache->mutex);
    TAILQ_REMOVE(&cache->dirty, inode, dirty_link);
    pthread_mutex_unlock(&cache->mutex);
    inode->dirty = false;
}

/* The end of every in-core inode: it is in no table any more. */
static void dispose(struct inode *inode) {
    struct inode_cache *cache = inode->volume->inode_cache;

    unmark_dirty(inode);
    page_cache_forget(inode);
    if (inode->volume->layout->inode_evict)
        inode->volume->layout->inode_evict(inode);
    recycle(cache, inode);
}

void inode_cache_abandon(struct inode *inode) {
    dispose(inode);
}

struct inode *inode_cache_grab(struct volume *volume, uint64_t ino) {
    struct inode_cache *cache = volume->inode_cache;

    pthread_mutex_lock(&cache->mutex);
    struct inode *inode = find(cache, ino);
    if (inode)
        reference(cache, inode, 1);
    pthread_mutex_unlock(&cache->mutex);
    return inode;
}

int inode_cache_get(struct volume *volume, uint64_t ino, struct inode **out) {
    struct inode_cache *cache = volume->inode_cache;
    struct inode *inode = inode_cache_grab(volume, ino);

    if (inode) {
        *out = inode;
        return 0;
    }
    inode = inode_cache_new(volume);
    if (!inode)
        return -ENOMEM;
    inode->ino = ino;
    clock_charge(volume->clock, COST_INODE_CREATE, 1);
    int error = volume->layout->inode_load(inode);
    if (error) {
        recycle(cache, inode);
        return error;
    }
    /* Another reader may have loaded it meanwhile; under a shared lock both are alike. */
    pthread_mutex_lock(&cache->mutex);
    struct inode *other = find(cache, ino);
    if (other)
        reference(cache, other, 1);
    else
        link_in(cache, inode);
    pthread_mutex_unlock(&cache->mutex);
    if (other)
        dispose(inode);
    *out = other ? other : inode;
    return 0;
}

void volume_hold(struct inode *inode, uint32_t count) {
    struct inode_cache *cache = inode->volume->inode_cache;

    pthread_mutex_lock(&cache->mutex);
    reference(cache, inode, count);
    pthread_mutex_unlock(&cache->mutex);
}

/* Frees on disk an inode without names or references; it has left the table already. */
static void delete_inode(struct inode *inode) {
    struct volume *volume = inode->volume;
    pthread_rwlock_t *data_lock = inode_data_lock(inode);

    pthread_rwlock_wrlock(data_lock);
    page_cache_forget(inode);
    pthread_rwlock_unlock(data_lock);

    int error;
    do {
        commit_point(volume);
        error = volume_change_begin(volume);
        if (error)
            break;
        error = volume->layout->inode_free(inode);
        /* Its number is free: a commit must not store it over the next one to have that. */
        if (!error)
            unmark_dirty(inode);
        error = volume_change_end(volume, error);
    } while (error == LAYOUT_AGAIN);
    pthread_rwlock_wrlock(&volume->lock);
    if (error && error != -EROFS)
        log_error(volume->log, "%s: inode %llu: could not be freed: %s", volume->name,
                  (unsigned long long)inode->ino, strerror(-error));
    dispose(inode);
    pthread_rwlock_unlock(&volume->lock);
}

/* Gives references back; true when the caller must now delete the inode. */
static bool release(struct inode_cache *cache, struct inode *inode, uint32_t count) {
    bool dead = false;

    pthread_mutex_lock(&cache->mutex);
    assert(inode->references >= count);
    inode->references -= count;
    if (inode->references == 0 && inode->nlink == 0) {
        unlink_from(cache, inode);
        dead = true;
    } else if (inode->references == 0) {
        TAILQ_INSERT_TAIL(&cache->lru, inode, lru);
        cache->idle_count++;
    }
    pthread_mutex_unlock(&cache->mutex);
    return dead;
}

static void put(struct inode *inode, uint32_t count) {
    if (release(inode->volume->inode_cache, inode, count))
        delete_inode(inode);
}

void volume_put(struct inode *inode, uint32_t count) {
    if (!inode || !count)
        return;
    struct volume *volume = inode->volume;
    put(inode, count);
    /* No operation need follow for a long time: the kernel forgets what it has not used. */
    inode_cache_tidy(volume);
}

void volume_put_all(struct volume *volume) {
    struct inode_cache *cache = volume->inode_cache;

    for (uint32_t i = 0; i < cache->bucket_count; i++) {
        struct inode *next;
        for (struct inode *inode = cache->buckets[i]; inode; inode = next) {
            next = inode->hash_next;
            if (inode->references)
                put(inode, inode->references);
        }
    }
}

/* Takes idle inodes away until `keep` are left; dirty ones only with `lossy`. */
static void take_away(struct volume *volume, uint32_t keep, bool lossy) {
    struct inode_cache *cache = volume->inode_cache;
    struct inode_list victims = TAILQ_HEAD_INITIALIZER(victims);
    struct inode *inode, *next;

    pthread_mutex_lock(&cache->mutex);
    for (inode = TAILQ_FIRST(&cache->lru); inode && cache->idle_count > keep; inode = next) {
        next = TAILQ_NEXT(inode, lru);
        if (!lossy && (inode->dirty || page_cache_has_dirty(inode)))
            continue;
        TAILQ_REMOVE(&cache->lru, inode, lru);
        cache->idle_count--;
        unlink_from(cache, inode);
        TAILQ_INSERT_TAIL(&victims, inode, lru);
    }
    pthread_mutex_unlock(&cache->mutex);
    while ((inode = TAILQ_FIRST(&victims))) {
        TAILQ_REMOVE(&victims, inode, lru);
        dispose(inode);
    }
}

void inode_cache_trim(struct volume *volume, uint32_t keep) {
    take_away(volume, keep, false);
}

void inode_cache_tidy(struct volume *volume) {
    const struct inode_cache *cache = volume->inode_cache;

    /* A racy read: it only decides when. */
    if (cache->idle_count <= cache->limit + cache->limit / 8)
        return;
    pthread_rwlock_wrlock(&volume->lock);
    if (!volume->read_only)
        inode_cache_store_dirty(volume);
    inode_cache_trim(volume, cache->limit);
    pthread_rwlock_unlock(&volume->lock);
}

void inode_cache_purge(struct volume *volume) {
    take_away(volume, 0, true);
}

void inode_mark_dirty(struct inode *inode) {
    struct inode_cache *cache = inode->volume->inode_cache;

    if (inode->dirty)
        return;
    inode->dirty = true;
    volume_note_change(inode->volume);
    pthread_mutex_lock(&cache->mutex);
    TAILQ_INSERT_TAIL(&cache->dirty, inode, dirty_link);
    pthread_mutex_unlock(&cache->mutex);
}

int inode_store(struct inode *inode) {
    clock_charge(inode->volume->clock, COST_INODE_UPDATE, 1);
    int error = inode->volume->layout->inode_store(inode);
    if (!error)
        unmark_dirty(inode);
    return error;
}

int inode_store_if_dirty(struct inode *inode) {
    return inode->dirty ? inode_store(inode) : 0;
}

int inode_cache_store_dirty(struct volume *volume) {
    struct inode_cache *cache = volume->inode_cache;
    struct inode *inode, *next;
    int first_error = 0;

    /* The exclusive lock keeps others from marking inodes; the list changes only through us. */
    for (inode = TAILQ_FIRST(&cache->dirty); inode; inode = next) {
        next = TAILQ_NEXT(inode, dirty_link);
        int error = inode_store(inode);
        if (error && !first_error)
            first_error = error;
    }
    return first_error;
}

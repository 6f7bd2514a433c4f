/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the page cache and layout->store. Interface: fs/pagecache.h.
 *
 * When dirty pages and buffers reach the disk: too many (writeback_throttle), too old
 * (writeback_periodic), asked for (page_cache_flush, writeback_all). Files are taken in the order
 * in which they became dirty, the pages of each in file order; of a large one a piece at a time,
 * which goes on where the last one ended, as in Linux, and behind the last page at the first. A
 * layout may want all pages of a file in turn, from its start (volume->store_sweeps).
 *
 * Under a virtual clock the writer that finds too many dirty pages submits them at once, as the
 * modelled kernel's flusher thread would on its behalf, and goes on while the disk works; it waits
 * when dirty pages and pages in flight exceed the hard limit. In wall mode a thread does that, and
 * above the hard limit the writers do it themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/pagecache_internal.h"

/* The flusher looks whether something is due at least this often. */
#define FLUSHER_INTERVAL_NS NS_PER_SEC

/* --- one inode -------------------------------------------------------------------------------- */

/* The first dirty pages in a row at or after *index, which becomes the index after them. */
static unsigned writeback_collect(const struct inode *inode, uint64_t *index, struct page **pages) {
    struct page *page = inode->pages ? page_tree_next(inode->pages, *index, true) : NULL;
    unsigned count = 0;

    while (page && page->dirty && count < PAGE_RUN_MAX) {
        pages[count++] = page;
        *index = page->index + 1;
        page = page_tree_find(inode->pages, *index);
    }
    return count;
}

int page_store_range(struct inode *inode, const struct data_range *range,
                     struct device_batch *batch) {
    struct volume *volume = inode->volume;
    struct credentials caller = credentials_set((struct credentials){0});
    int error;

    if (volume->store_changes) {
        pthread_rwlock_wrlock(&volume->lock);
        error = volume_step_begin(volume);
        if (!error)
            error = volume_step_end(volume, volume->layout->store(inode, range, batch));
        inode_mark_dirty(inode);
    } else {
        pthread_rwlock_rdlock(&volume->lock);
        error = volume->layout->store(inode, range, batch);
    }
    pthread_rwlock_unlock(&volume->lock);
    credentials_set(caller);
    return error;
}

/* Stores pages in a row. */
static int writeback_store(struct inode *inode, struct page *const *pages, unsigned count,
                           struct device_batch *batch) {
    struct iovec vector[PAGE_RUN_MAX];
    const struct data_range range = {pages[0]->index * PAGE_SIZE_BYTES, count * PAGE_SIZE_BYTES,
                                     vector, (int)count};

    for (unsigned i = 0; i < count; i++)
        vector[i] = (struct iovec){pages[i]->frame.data, PAGE_SIZE_BYTES};
    return page_store_range(inode, &range, batch);
}

/* Stores pages in a row and makes them clean; they stay dirty when that fails. The mutex is held
 * and released meanwhile; the pages stay since they are dirty and the data lock is exclusive. */
static int writeback_run(struct inode *inode, struct page **pages, unsigned count) {
    struct volume *volume = inode->volume;
    struct page_cache *cache = volume->page_cache;
    struct inflight *inflight = inflight_begin(&cache->writes);
    int error, late_error;
    bool pending;

    if (!inflight)
        return -ENOMEM;
    inflight->ino = inode->ino;
    pool_unlock(&volume->pool);
    error = writeback_store(inode, pages, count, &inflight->batch);
    clock_charge(volume->clock, COST_PAGE, count);
    pool_lock(&volume->pool);
    pending =
        inflight_end(&cache->writes, inflight, (uint64_t)count * PAGE_SIZE_BYTES, &late_error);
    if (late_error && !cache->store_error)
        cache->store_error = late_error;
    if (!error)
        error = late_error;
    for (unsigned i = 0; i < count && !error; i++) {
        page_leave_inflight(pages[i]);
        if (pending) {
            pages[i]->inflight = inflight;
            inflight_hold(inflight);
        }
        page_set_dirty(pages[i], false);
    }
    return error;
}

/* Stores the inode's dirty pages from *index on, which becomes the index after them, until at least
 * `limit` bytes are. The bytes stored or an error. Data lock exclusive. */
static int64_t writeback_inode(struct inode *inode, uint64_t *index, uint64_t limit) {
    struct pool *pool = &inode->volume->pool;
    struct page *pages[PAGE_RUN_MAX];
    uint64_t done = 0;
    int error = 0;

    pool_lock(pool);
    while (done < limit && !error) {
        unsigned count = writeback_collect(inode, index, pages);

        if (count == 0)
            break;
        error = writeback_run(inode, pages, count);
        done += (uint64_t)count * PAGE_SIZE_BYTES;
    }
    pool_unlock(pool);
    return error ? error : (int64_t)done;
}

/* --- in the order of the changes -------------------------------------------------------------- */

uint64_t page_cache_dirty_bytes(const struct volume *volume) {
    return volume->page_cache->dirty_bytes;
}

bool page_cache_oldest(struct volume *volume, uint64_t *ino) {
    const struct page *page;
    bool found;

    pool_lock(&volume->pool);
    page = TAILQ_FIRST(&volume->page_cache->dirty_pages);
    found = page != NULL;
    if (found)
        *ino = page->inode->ino;
    pool_unlock(&volume->pool);
    return found;
}

/* The pages that became dirty first, one after the other in the inode and in time. */
static unsigned collect_oldest(const struct inode *inode, struct page **pages) {
    struct page *page = TAILQ_FIRST(&inode->volume->page_cache->dirty_pages);
    unsigned count = 0;

    while (page && page->inode == inode && count < PAGE_RUN_MAX &&
           (count == 0 || page->index == pages[count - 1]->index + 1)) {
        pages[count++] = page;
        page = TAILQ_NEXT(page, dirtied);
    }
    return count;
}

int64_t page_cache_store_oldest(struct inode *inode) {
    struct pool *pool = &inode->volume->pool;
    struct page *pages[PAGE_RUN_MAX];

    pool_lock(pool);
    unsigned count = collect_oldest(inode, pages);
    int error = count ? writeback_run(inode, pages, count) : 0;
    pool_unlock(pool);
    return error ? error : (int64_t)count * PAGE_SIZE_BYTES;
}

void page_cache_skip_oldest(struct volume *volume, uint64_t ino) {
    struct page_queue *queue = &volume->page_cache->dirty_pages;

    pool_lock(&volume->pool);
    struct page *page = TAILQ_FIRST(queue);
    if (page && page->inode->ino == ino) {
        TAILQ_REMOVE(queue, page, dirtied);
        TAILQ_INSERT_TAIL(queue, page, dirtied);
    }
    pool_unlock(&volume->pool);
}

/* --- what fails in flight ----------------------------------------------------------------------
 */

void writeback_failed(void *context, const struct inflight *inflight) {
    struct page_cache *cache = context;

    write_errors_note(&cache->write_errors, inflight->ino, inflight->batch.error);
    if (inflight->ino == 0)
        cache->metadata_error = inflight->batch.error;
    else if (!cache->store_error)
        cache->store_error = inflight->batch.error;
}

/* Waits until no more than `bytes` are in flight. The first error of those that are no more. */
static int writeback_settle(struct volume *volume, uint64_t bytes) {
    struct page_cache *cache = volume->page_cache;
    int error, metadata_error;

    pool_lock(&volume->pool);
    error = inflight_drain(&cache->writes, bytes, &volume->pool, volume->device);
    metadata_error = cache->metadata_error;
    cache->metadata_error = 0;
    pool_unlock(&volume->pool);
    if (metadata_error)
        buffer_writes_failed(volume->buffers, metadata_error);
    return error;
}

int writeback_wait(struct volume *volume) {
    return writeback_settle(volume, 0);
}

void writeback_wait_half(struct volume *volume) {
    (void)writeback_settle(volume, volume->page_cache->writes.bytes / 2);
}

int writeback_tell_layout(struct volume *volume) {
    struct page_cache *cache = volume->page_cache;
    int error;

    pool_lock(&volume->pool);
    error = cache->store_error;
    cache->store_error = 0;
    pool_unlock(&volume->pool);
    if (!error || !volume->layout->store_failed)
        return 0;
    volume->layout->store_failed(volume, error);
    return error;
}

int writeback_settle_stores(struct volume *volume) {
    int error = writeback_wait(volume);
    int store_error = writeback_tell_layout(volume);

    return store_error ? store_error : error;
}

int page_cache_flush(struct inode *inode, bool wait) {
    struct volume *volume = inode->volume;
    uint64_t start = 0;
    int64_t result = writeback_inode(inode, &start, UINT64_MAX);
    int error = 0;

    if (wait) {
        (void)writeback_wait(volume); /* which failed for others is not this file's matter */
        pool_lock(&volume->pool);
        error = write_errors_peek(&volume->page_cache->write_errors, inode->ino);
        pool_unlock(&volume->pool);
    }
    return result < 0 ? (int)result : error;
}

int page_cache_take_error(struct inode *inode) {
    struct volume *volume = inode->volume;
    int error;

    pool_lock(&volume->pool);
    error = write_errors_take(&volume->page_cache->write_errors, inode->ino);
    pool_unlock(&volume->pool);
    return error;
}

int page_cache_take_volume_error(struct volume *volume) {
    int error;

    pool_lock(&volume->pool);
    error = write_errors_take_volume(&volume->page_cache->write_errors);
    pool_unlock(&volume->pool);
    return error;
}

/* --- many inodes; no locks held -------------------------------------------------------------- */

static uint64_t writeback_dirty_bytes(const struct volume *volume) {
    return volume->page_cache->dirty_bytes +
           (volume->buffers ? buffer_dirty_bytes(volume->buffers) : 0);
}

/* The number of the first inode that is dirty since before_ns or longer; false: there is none. */
static bool writeback_first(struct volume *volume, int64_t before_ns, uint64_t *ino) {
    const struct page_tree *tree;
    bool found;

    pool_lock(&volume->pool);
    tree = TAILQ_FIRST(&volume->page_cache->dirty_inodes);
    found = tree && tree->dirty_since_ns <= before_ns;
    if (found)
        *ino = tree->inode->ino;
    pool_unlock(&volume->pool);
    return found;
}

/* Moves inode number `ino`, if it is the first on the list still, behind the others. It stays on
 * the list: the number may have got a new owner since its old one was looked for in vain. */
static void writeback_skip(struct volume *volume, uint64_t ino) {
    const struct page_tree *tree;

    pool_lock(&volume->pool);
    tree = TAILQ_FIRST(&volume->page_cache->dirty_inodes);
    if (tree && tree->inode->ino == ino) {
        page_cache_unlist(tree->inode);
        page_cache_enlist(tree->inode);
    }
    pool_unlock(&volume->pool);
}

/* Stores a piece of the file, from *index on. The bytes stored or an error. */
static int64_t writeback_piece(struct inode *inode, uint64_t *index) {
    commit_point(inode->volume);
    pthread_rwlock_wrlock(inode_data_lock(inode));
    int64_t result = writeback_inode(inode, index, WRITEBACK_TURN_BYTES);
    pthread_rwlock_unlock(inode_data_lock(inode));
    return result;
}

/* Stores all pages in turn, up to where the file ends now: it may grow all the while. The bytes
 * stored last or an error. */
static int64_t writeback_sweep(struct inode *inode) {
    uint64_t index = 0;
    int64_t result;

    pthread_rwlock_rdlock(inode_data_lock(inode));
    const uint64_t end = inode->size / PAGE_SIZE_BYTES;
    pthread_rwlock_unlock(inode_data_lock(inode));
    do {
        result = writeback_piece(inode, &index);
    } while (result >= (int64_t)WRITEBACK_TURN_BYTES && index < end);
    return result;
}

/* Stores the piece behind the last one, and behind the end the first. The bytes or an error. */
static int64_t writeback_next_piece(struct inode *inode) {
    int64_t result, more = 0;

    commit_point(inode->volume);
    pthread_rwlock_wrlock(inode_data_lock(inode));
    uint64_t index = inode->pages ? inode->pages->stored : 0;
    result = writeback_inode(inode, &index, WRITEBACK_TURN_BYTES);
    if (result >= 0 && result < (int64_t)WRITEBACK_TURN_BYTES && index > 0) {
        index = 0;
        more = writeback_inode(inode, &index, WRITEBACK_TURN_BYTES - (uint64_t)result);
    }
    if (inode->pages)
        inode->pages->stored = index;
    pthread_rwlock_unlock(inode_data_lock(inode));
    return more < 0 ? more : result + more;
}

/* Stores some of the first inode, or all. The bytes stored last or an error. */
static int64_t writeback_one(struct volume *volume, uint64_t ino) {
    struct inode *inode = inode_cache_grab(volume, ino);
    int64_t result;

    if (!inode) { /* deleted, and about to be forgotten */
        writeback_skip(volume, ino);
        return 0;
    }
    result = volume->store_sweeps ? writeback_sweep(inode) : writeback_next_piece(inode);
    volume_put(inode, 1);
    if (result < 0) /* stays dirty, but others must not wait for it */
        writeback_skip(volume, ino);
    return result;
}

/* Stores inodes dirty since before_ns or longer until dirty data and metadata come to no more than
 * `target` bytes. Each inode is tried once. The first error is returned. */
static int writeback_inodes(struct volume *volume, int64_t before_ns, uint64_t target) {
    uint64_t left, ino;
    int error = 0;

    pool_lock(&volume->pool);
    left = volume->page_cache->dirty_inode_count;
    pool_unlock(&volume->pool);
    while (left > 0 && writeback_dirty_bytes(volume) > target &&
           writeback_first(volume, before_ns, &ino)) {
        int64_t result = writeback_one(volume, ino);

        if (result < (int64_t)WRITEBACK_TURN_BYTES) /* else there may be more of it */
            left--;
        if (result < 0 && !error)
            error = (int)result;
    }
    return error;
}

/* Submits dirty metadata. */
static int writeback_buffers(struct volume *volume, int64_t before_ns, uint64_t limit_bytes) {
    struct page_cache *cache = volume->page_cache;
    struct inflight *inflight;
    int64_t result;
    int error;

    if (!volume->buffers || buffer_dirty_bytes(volume->buffers) == 0)
        return 0;
    pool_lock(&volume->pool);
    inflight = inflight_begin(&cache->writes);
    pool_unlock(&volume->pool);
    if (!inflight)
        return -ENOMEM;
    pthread_rwlock_rdlock(&volume->lock);
    result = buffer_write_back(volume->buffers, before_ns, limit_bytes, &inflight->batch);
    pool_lock(&volume->pool);
    if (!inflight_end(&cache->writes, inflight, result > 0 ? (uint64_t)result : 0, &error) && error)
        write_errors_note(&cache->write_errors, 0, error);
    pool_unlock(&volume->pool);
    if (error)
        buffer_writes_failed(volume->buffers, error);
    pthread_rwlock_unlock(&volume->lock);
    return result < 0 ? (int)result : error;
}

/* Data first, metadata if that was not enough: it is likely to change again. */
static int writeback_down_to(struct volume *volume, uint64_t target) {
    int error = writeback_inodes(volume, INT64_MAX, target);
    uint64_t dirty = writeback_dirty_bytes(volume);
    int second = 0;

    if (dirty > target)
        second = writeback_buffers(volume, INT64_MAX, dirty - target);
    return error ? error : second;
}

/* Where write-back stops once it has begun: a bit lower, so that it does not run for every page. */
static uint64_t writeback_target(const struct page_cache *cache) {
    return cache->background_bytes - cache->background_bytes / 16;
}

int writeback_all(struct volume *volume) {
    int error = writeback_inodes(volume, INT64_MAX, 0);
    int second = writeback_wait(volume);

    return error ? error : second;
}

int writeback_periodic(struct volume *volume) {
    struct page_cache *cache = volume->page_cache;
    int64_t before_ns = clock_now(volume->clock) - volume->machine.dirty_expire_ns;
    int error = writeback_inodes(volume, before_ns, 0);
    int second = writeback_buffers(volume, before_ns, UINT64_MAX);

    if (!error)
        error = second;
    if (writeback_dirty_bytes(volume) > cache->background_bytes) {
        second = writeback_down_to(volume, writeback_target(cache));
        if (!error)
            error = second;
    }
    (void)writeback_settle(volume, UINT64_MAX); /* noted for who will ask */
    return error;
}

/* Under a virtual clock: lets the disk get on until dirty and in flight are within the limit. */
static void writeback_wait_for_room(struct volume *volume) {
    const struct page_cache *cache = volume->page_cache;
    uint64_t dirty = writeback_dirty_bytes(volume);

    (void)writeback_settle(volume, cache->limit_bytes > dirty ? cache->limit_bytes - dirty : 0);
}

int writeback_throttle(struct volume *volume) {
    const struct page_cache *cache = volume->page_cache;
    uint64_t dirty = writeback_dirty_bytes(volume);
    int error = 0;

    if (volume->limits.dirty_data_max && cache->dirty_bytes > volume->limits.dirty_data_max)
        error = writeback_inodes(volume, INT64_MAX, 0);
    if (error)
        return error;
    if (dirty <= cache->background_bytes)
        return 0;
    if (clock_is_virtual(volume->clock)) {
        error = writeback_down_to(volume, writeback_target(cache));
        writeback_wait_for_room(volume);
    } else {
        flusher_wake(volume);
        if (dirty > cache->limit_bytes)
            error = writeback_down_to(volume, cache->limit_bytes - cache->limit_bytes / 16);
    }
    return error;
}

/* --- the flusher thread ----------------------------------------------------------------------- */

struct flusher {
    struct volume *volume;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    _Atomic bool woken;  /* raised without the mutex by writers that find it raised */
    _Atomic bool asleep; /* waits without a time limit */
};

/* Nothing is dirty and nothing has changed for so long that a commit was made since, too. What
 * `asleep` and volume->changed say to each other does the rest: whoever changes something sets the
 * one and looks at the other, as flusher_sleep does the other way round. */
static bool flusher_may_rest(const struct volume *volume) {
    const struct machine *machine = &volume->machine;
    int64_t quiet_ns = machine->writeback_interval_ns > volume->limits.commit_interval_ns
                           ? machine->writeback_interval_ns
                           : volume->limits.commit_interval_ns;

    if (volume_writable(volume))
        return true;
    if (volume->changed || writeback_dirty_bytes(volume) > 0 ||
        (volume->layout->idle && volume->idle_next_ns != INT64_MAX))
        return false;
    return clock_now(volume->clock) - volume->changed_ns > 2 * quiet_ns;
}

/* When something may be due next, at the latest. */
static struct timespec flusher_next(const struct volume *volume) {
    int64_t interval = volume->machine.writeback_interval_ns;
    struct timespec until;

    if (interval > FLUSHER_INTERVAL_NS)
        interval = FLUSHER_INTERVAL_NS;
    if (volume->layout->idle) {
        int64_t now = clock_now(volume->clock), due = volume->idle_next_ns;
        if (due < now + interval)
            interval = due > now ? due - now : 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + interval;
    until.tv_sec += ns / NS_PER_SEC;
    until.tv_nsec = ns % NS_PER_SEC;
    return until;
}

/* Sleeps until woken, or until something may be due. False: stop. */
static bool flusher_sleep(struct flusher *flusher) {
    const struct timespec until = flusher_next(flusher->volume);
    bool go_on;

    flusher->asleep = true;
    if (!flusher_may_rest(flusher->volume))
        flusher->asleep = false;
    pthread_mutex_lock(&flusher->mutex);
    while (!flusher->stop && !flusher->woken) {
        if (flusher->asleep)
            pthread_cond_wait(&flusher->changed, &flusher->mutex);
        else if (pthread_cond_timedwait(&flusher->changed, &flusher->mutex, &until) == ETIMEDOUT)
            break;
    }
    flusher->asleep = false;
    flusher->woken = false;
    go_on = !flusher->stop;
    pthread_mutex_unlock(&flusher->mutex);
    return go_on;
}

static void *flusher_run(void *argument) {
    struct flusher *flusher = argument;
    struct volume *volume = flusher->volume;
    const struct page_cache *cache = volume->page_cache;

    while (flusher_sleep(flusher)) {
        int error = 0;

        if (!volume_writable(volume) && writeback_dirty_bytes(volume) > cache->background_bytes)
            error = writeback_down_to(volume, writeback_target(cache));
        if (!error)
            error = volume_tick(volume);
        if (error)
            log_error(volume->log, "%s: write-back failed: %s", volume->name, strerror(-error));
    }
    return NULL;
}

int flusher_start(struct volume *volume) {
    struct flusher *flusher = calloc(1, sizeof(*flusher));
    pthread_condattr_t attributes;
    int error;

    if (!flusher)
        return -ENOMEM;
    flusher->volume = volume;
    pthread_mutex_init(&flusher->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    volume->flusher = flusher;
    error = pthread_create(&flusher->thread, NULL, flusher_run, flusher);
    if (error) {
        pthread_cond_destroy(&flusher->changed);
        pthread_mutex_destroy(&flusher->mutex);
        free(flusher);
        volume->flusher = NULL;
    }
    return -error;
}

void flusher_stop(struct volume *volume) {
    struct flusher *flusher = volume->flusher;

    if (!flusher)
        return;
    pthread_mutex_lock(&flusher->mutex);
    flusher->stop = true;
    pthread_cond_signal(&flusher->changed);
    pthread_mutex_unlock(&flusher->mutex);
    pthread_join(flusher->thread, NULL);
    pthread_cond_destroy(&flusher->changed);
    pthread_mutex_destroy(&flusher->mutex);
    free(flusher);
    volume->flusher = NULL;
}

void flusher_wake(struct volume *volume) {
    struct flusher *flusher = volume->flusher;

    if (!flusher || flusher->woken)
        return;
    pthread_mutex_lock(&flusher->mutex);
    flusher->woken = true;
    pthread_cond_signal(&flusher->changed);
    pthread_mutex_unlock(&flusher->mutex);
}

void flusher_rouse(struct volume *volume) {
    struct flusher *flusher = volume->flusher;

    if (!flusher || !flusher->asleep)
        return;
    pthread_mutex_lock(&flusher->mutex);
    flusher->asleep = false;
    pthread_cond_signal(&flusher->changed);
    pthread_mutex_unlock(&flusher->mutex);
}

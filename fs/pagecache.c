/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/pagecache.h, fs/pagecache_internal.h. Writing back is in
 * fs/writeback.c.
 *
 * Every operation works in batches: the pool's mutex is taken once to find (or add) some pages and
 * keep them from eviction, then released to copy. Readers keep pages by pinning them; a writer's
 * pages stay because they are dirty.
 */
#include "fs/pagecache.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/pagecache_internal.h"

#define COPY_PAGES       64u        /* found under one hold of the mutex */
#define DIRECT_MAX       (1u << 20) /* bytes in one transfer past the cache */
#define AHEAD_PAGES_MIN  4u         /* the first read-ahead window: 16 KiB */
#define PAGES_OF(length) (((length) + PAGE_SIZE_BYTES - 1) / PAGE_SIZE_BYTES)

static struct page_cache *cache_of(const struct inode *inode) {
    return inode->volume->page_cache;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- life ------------------------------------------------------------------------------------- */

int page_cache_create(struct volume *volume, struct page_cache **result) {
    const struct machine *machine = &volume->machine;
    struct page_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    cache->volume = volume;
    cache->pages.size = sizeof(struct page);
    cache->trees.size = sizeof(struct page_tree);
    cache->nodes.size = page_node_size;
    cache->background_bytes = machine->memory_bytes / 100 * machine->dirty_background_percent;
    cache->limit_bytes = machine->memory_bytes / 100 * machine->dirty_percent;
    TAILQ_INIT(&cache->dirty_inodes);
    TAILQ_INIT(&cache->dirty_pages);
    inflight_init(&cache->reads);
    inflight_init(&cache->writes);
    cache->writes.failed = writeback_failed;
    cache->writes.context = cache;
    pthread_cond_init(&cache->arrived, NULL);
    *result = cache;
    return 0;
}

void page_cache_destroy(struct page_cache *cache) {
    struct pool *pool;

    if (!cache)
        return;
    pool = &cache->volume->pool;
    assert(cache->dirty_bytes == 0);
    pool_lock(pool);
    (void)inflight_drain(&cache->reads, 0, pool, cache->volume->device);
    (void)inflight_drain(&cache->writes, 0, pool, cache->volume->device);
    pool_unlock(pool);
    inflight_destroy(&cache->reads);
    inflight_destroy(&cache->writes);
    recycle_drain(&cache->pages);
    recycle_drain(&cache->trees);
    recycle_drain(&cache->nodes);
    write_errors_free(&cache->write_errors);
    pthread_cond_destroy(&cache->arrived);
    free(cache);
}

/* --- one page; the pool's mutex is held ------------------------------------------------------ */

void page_cache_enlist(struct inode *inode) {
    struct page_cache *cache = cache_of(inode);

    TAILQ_INSERT_TAIL(&cache->dirty_inodes, inode->pages, writeback);
    cache->dirty_inode_count++;
    inode->pages->listed = true;
    inode->pages->dirty_since_ns = clock_now(inode->volume->clock);
    volume_note_change(inode->volume);
}

void page_cache_unlist(struct inode *inode) {
    struct page_cache *cache = cache_of(inode);

    if (!inode->pages->listed)
        return;
    TAILQ_REMOVE(&cache->dirty_inodes, inode->pages, writeback);
    cache->dirty_inode_count--;
    inode->pages->listed = false;
}

void page_set_dirty(struct page *page, bool dirty) {
    struct inode *inode = page->inode;
    struct page_cache *cache = cache_of(inode);

    if (page->dirty == dirty)
        return;
    page_tree_set_dirty(inode->pages, page, dirty);
    if (dirty) {
        cache->dirty_bytes += PAGE_SIZE_BYTES;
        TAILQ_INSERT_TAIL(&cache->dirty_pages, page, dirtied);
        if (inode->pages->dirty == 1)
            page_cache_enlist(inode);
    } else {
        cache->dirty_bytes -= PAGE_SIZE_BYTES;
        TAILQ_REMOVE(&cache->dirty_pages, page, dirtied);
        if (inode->pages->dirty == 0)
            page_cache_unlist(inode);
    }
}

void page_leave_inflight(struct page *page) {
    struct page_cache *cache = cache_of(page->inode);

    if (!page->inflight)
        return;
    inflight_put(page->arriving ? &cache->reads : &cache->writes, page->inflight);
    page->inflight = NULL;
    page->arriving = false;
}

static void page_drop(struct page *page) {
    struct page_cache *cache = cache_of(page->inode);

    assert(page->pins == 0);
    page_set_dirty(page, false);
    page_leave_inflight(page);
    page_tree_remove(page->inode->pages, &cache->nodes, page);
    pool_detach(&cache->volume->pool, &page->frame);
    recycle_put(&cache->pages, page);
}

static bool page_evict(struct frame *frame) {
    struct page *page = (struct page *)frame;

    if (page->dirty || page->loading || page->pins)
        return false;
    if (page->inflight && inflight_pending(page->inflight))
        return false;
    page_drop(page);
    return true;
}

static struct page_tree *page_cache_tree(struct inode *inode) {
    if (!inode->pages) {
        inode->pages = recycle_get(&cache_of(inode)->trees);
        if (inode->pages)
            inode->pages->inode = inode;
    }
    return inode->pages;
}

/* A new page without contents, where there is none; NULL: no memory. The memory comes first: it may
 * evict pages of this very tree. */
static struct page *page_add(struct inode *inode, uint64_t index) {
    struct page_cache *cache = cache_of(inode);
    struct pool *pool = &cache->volume->pool;
    struct page *page = recycle_get(&cache->pages);

    if (!page)
        return NULL;
    page->inode = inode;
    page->index = index;
    if (pool_attach(pool, &page->frame, PAGE_SIZE_BYTES, page_evict)) {
        recycle_put(&cache->pages, page);
        return NULL;
    }
    if (page_tree_insert(inode->pages, &cache->nodes, page)) {
        pool_detach(pool, &page->frame);
        recycle_put(&cache->pages, page);
        return NULL;
    }
    return page;
}

/* --- loading; the pool's mutex is held and released meanwhile -------------------------------- */

/* Adds pages from `index` on until one is there already; they are `loading`. */
static unsigned page_add_run(struct inode *inode, uint64_t index, uint64_t limit,
                             struct page **pages) {
    unsigned count = 0;

    while (count < limit && count < PAGE_RUN_MAX && !page_tree_find(inode->pages, index + count)) {
        struct page *page = page_add(inode, index + count);

        if (!page)
            break;
        page->loading = true;
        pages[count++] = page;
    }
    clock_charge(inode->volume->clock, COST_PAGE, count);
    return count;
}

static int page_load_range(struct inode *inode, const struct data_range *range,
                           struct device_batch *batch) {
    struct volume *volume = inode->volume;
    int error;

    pthread_rwlock_rdlock(&volume->lock);
    error = volume->layout->load(inode, range, batch);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

/* Calls layout->load for pages in a row. */
static int page_load_call(struct inode *inode, struct page *const *pages, unsigned count,
                          struct device_batch *batch) {
    struct iovec vector[PAGE_RUN_MAX];
    struct data_range range = {pages[0]->index * PAGE_SIZE_BYTES, count * PAGE_SIZE_BYTES, vector,
                               (int)count};

    for (unsigned i = 0; i < count; i++)
        vector[i] = (struct iovec){pages[i]->frame.data, PAGE_SIZE_BYTES};
    return page_load_range(inode, &range, batch);
}

static int page_load_run(struct inode *inode, struct page **pages, unsigned count) {
    struct page_cache *cache = cache_of(inode);
    struct inflight *inflight = inflight_begin(&cache->reads);
    bool pending = false;
    int error = -ENOMEM, late_error = 0;

    if (inflight) {
        pool_unlock(&cache->volume->pool);
        error = page_load_call(inode, pages, count, &inflight->batch);
        pool_lock(&cache->volume->pool);
        pending =
            inflight_end(&cache->reads, inflight, (uint64_t)count * PAGE_SIZE_BYTES, &late_error);
    }
    if (!error)
        error = late_error;
    for (unsigned i = 0; i < count; i++) {
        pages[i]->loading = false;
        if (error) {
            page_drop(pages[i]);
        } else if (pending) {
            pages[i]->inflight = inflight;
            pages[i]->arriving = true;
            inflight_hold(inflight);
        }
    }
    pthread_cond_broadcast(&cache->arrived);
    return error;
}

/* Starts loading the pages of [index, end) that are not cached. An error shows when the page is
 * wanted. */
static void page_cache_load_ahead(struct inode *inode, uint64_t index, uint64_t end) {
    struct page *pages[PAGE_RUN_MAX];
    unsigned count;

    (void)inflight_reap(&cache_of(inode)->reads);
    for (; index < end; index += count) {
        if (page_tree_find(inode->pages, index)) {
            count = 1;
            continue;
        }
        count = page_add_run(inode, index, end - index, pages);
        if (count == 0 || page_load_run(inode, pages, count))
            return;
    }
}

/* Waits until the page's contents have arrived; a page whose request failed is dropped. Sets *again
 * when it must be looked up anew. */
static int page_settle(struct page *page, bool *again) {
    struct page_cache *cache = cache_of(page->inode);
    int error;

    *again = page->loading;
    if (page->loading)
        pthread_cond_wait(&cache->arrived, &cache->volume->pool.mutex);
    if (*again || !page->arriving)
        return 0;
    error = inflight_wait(page->inflight, &cache->volume->pool, cache->volume->device);
    if (error)
        page_drop(page);
    else
        page_leave_inflight(page);
    return error;
}

/* Loads the missing page at `index`, and with it what is missing in a row before `end`. No more:
 * memory for a second row could be had by evicting the first. */
static int page_cache_load_first(struct inode *inode, uint64_t index, uint64_t end) {
    struct page *pages[PAGE_RUN_MAX];
    unsigned count = page_add_run(inode, index, end - index, pages);

    return count ? page_load_run(inode, pages, count) : -ENOMEM;
}

/* The page at `index` with its contents; may load pages before `end` too. */
static int page_cache_get(struct inode *inode, uint64_t index, uint64_t end, struct page **result) {
    bool again = true;
    int error = 0;

    while (again && !error) {
        struct page *page = page_tree_find(inode->pages, index);

        *result = page;
        if (page)
            error = page_settle(page, &again);
        else
            error = page_cache_load_first(inode, index, end);
    }
    return error;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Where reading ahead starts for a read of pages [first, end), or UINT64_MAX: not now. */
static uint64_t page_cache_ahead_start(const struct inode *inode, uint64_t first, uint64_t end) {
    const struct page_tree *tree = inode->pages;
    uint64_t half_window = inode->read_window / PAGE_SIZE_BYTES / 2;

    if (tree->ahead <= first) /* a hit is no reason to read ahead */
        return page_tree_find(tree, first) ? UINT64_MAX : first;
    return end + half_window >= tree->ahead ? tree->ahead : UINT64_MAX;
}

/* The largest window, in pages: what was read ahead shall not be evicted before it is used. */
static uint64_t page_cache_window_max(const struct volume *volume) {
    return smaller(volume->machine.readahead_bytes, volume->pool.budget_bytes / 8) /
           PAGE_SIZE_BYTES;
}

/* A reader that goes on where it stopped gets ever larger windows, as in Linux; the next window is
 * requested when the reader has come within half a window of what was requested before. */
static void page_cache_read_ahead(struct inode *inode, uint64_t offset, uint64_t size) {
    uint64_t limit = page_cache_window_max(inode->volume);
    uint64_t first = offset / PAGE_SIZE_BYTES, end = PAGES_OF(offset + size);
    uint64_t window = inode->read_window / PAGE_SIZE_BYTES;
    bool sequential = offset == inode->read_next || offset == 0;
    uint64_t start;

    inode->read_next = offset + size;
    if (offset == 0 || !sequential) {
        inode->read_window = 0;
        inode->pages->ahead = 0;
        window = 0;
    }
    start = sequential ? page_cache_ahead_start(inode, first, end) : UINT64_MAX;
    if (start >= PAGES_OF(inode->size) || limit == 0)
        return;
    window = window ? window * 2 : AHEAD_PAGES_MIN;
    while (window < 2 * (end - first) && window < limit)
        window *= 2;
    window = smaller(window, limit);
    inode->read_window = (uint32_t)(window * PAGE_SIZE_BYTES);
    inode->pages->ahead = smaller(start + window, PAGES_OF(inode->size));
    page_cache_load_ahead(inode, start, inode->pages->ahead);
}

/* Whether the page's contents can be used without waiting. */
static bool page_ready(struct page *page) {
    if (page->loading)
        return false;
    if (page->arriving && !inflight_pending(page->inflight) && !page->inflight->batch.error)
        page_leave_inflight(page);
    return !page->arriving;
}

/* Pins pages in a row from `index` on, at least one, with their contents. The mutex is held. */
static int page_cache_pin(struct inode *inode, uint64_t index, uint64_t end, struct page **pages,
                          unsigned *count) {
    struct page *page;
    int error = page_cache_get(inode, index, end, &page);

    *count = 0;
    if (error)
        return error;
    while (page && page_ready(page) && *count < COPY_PAGES && index + *count < end) {
        page->pins++;
        pool_touch(&inode->volume->pool, &page->frame);
        pages[(*count)++] = page;
        page = page_tree_find(inode->pages, index + *count);
    }
    clock_charge(inode->volume->clock, COST_PAGE, *count);
    return 0;
}

/* Copies out of pages in a row until the last or `size` bytes; returns how many bytes. */
static size_t page_cache_copy_out(struct page *const *pages, unsigned count, char *buffer,
                                  size_t size, uint64_t offset) {
    size_t done = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t within = (offset + done) % PAGE_SIZE_BYTES;
        size_t piece = smaller(PAGE_SIZE_BYTES - within, size - done);

        memcpy(buffer + done, (const char *)pages[i]->frame.data + within, piece);
        done += piece;
    }
    return done;
}

/* --- past the cache --------------------------------------------------------------------------- */

static bool is_direct(uint32_t least, size_t size, uint64_t offset) {
    return least > 0 && size >= least && offset % PAGE_SIZE_BYTES == 0;
}

bool page_cache_is_direct(const struct inode *inode, size_t size, uint64_t offset) {
    return is_direct(inode->volume->direct_write_bytes, size, offset);
}

static int wait_for(struct volume *volume, struct device_batch *batch, int error) {
    int late_error = volume->device ? device_wait(volume->device, batch) : 0;

    return error ? error : late_error;
}

/* The bytes from `offset` on that are in whole pages of which none is cached, if they are many
 * enough to be read past the cache; the last page as far as there is room for it. The mutex is
 * held. */
static size_t page_cache_direct_run(const struct inode *inode, size_t room, size_t size,
                                    uint64_t offset) {
    const struct page *page = page_tree_next(inode->pages, offset / PAGE_SIZE_BYTES, false);
    uint64_t run = PAGES_OF(size) * PAGE_SIZE_BYTES;

    if (run > room)
        run = size - size % PAGE_SIZE_BYTES;
    if (page && page->index < PAGES_OF(offset + size))
        run = page->index * PAGE_SIZE_BYTES - offset;
    return is_direct(inode->volume->direct_read_bytes, run, offset) ? smaller(run, DIRECT_MAX) : 0;
}

/* The mutex is not held. */
static int page_cache_read_direct(struct inode *inode, void *buffer, size_t size, uint64_t offset) {
    struct device_batch batch = {0};
    struct iovec memory = {buffer, size};
    struct data_range range = {offset, (uint32_t)size, &memory, 1};
    int error = page_load_range(inode, &range, &batch);

    return wait_for(inode->volume, &batch, error);
}

static void page_cache_drop(struct inode *inode, uint64_t index, uint64_t end);

int page_cache_write_direct(struct inode *inode, const void *buffer, size_t size, uint64_t offset) {
    struct volume *volume = inode->volume;
    struct device_batch batch = {0};
    struct iovec memory = {(void *)(uintptr_t)buffer, size};
    struct data_range range = {offset, (uint32_t)size, &memory, 1};
    int error;

    pool_lock(&volume->pool);
    page_cache_drop(inode, offset / PAGE_SIZE_BYTES, (offset + size) / PAGE_SIZE_BYTES);
    pool_unlock(&volume->pool);
    error = page_store_range(inode, &range, &batch);
    return wait_for(volume, &batch, error);
}

/* --- reading, continued ----------------------------------------------------------------------- */

int page_cache_read(struct inode *inode, void *buffer, size_t room, size_t size, uint64_t offset) {
    struct pool *pool = &inode->volume->pool;
    uint64_t end = PAGES_OF(offset + size);
    struct page *pages[COPY_PAGES];
    size_t done = 0;
    int error = 0;

    clock_charge(inode->volume->clock, COST_COPY_KB, (int64_t)(size + 1023) / 1024);
    pool_lock(pool);
    if (!page_cache_tree(inode))
        error = -ENOMEM;
    else if (page_cache_direct_run(inode, room, size, offset) == 0)
        page_cache_read_ahead(inode, offset, size);
    while (done < size && !error) {
        size_t direct = page_cache_direct_run(inode, room - done, size - done, offset + done);
        unsigned count;

        if (direct > 0) {
            pool_unlock(pool);
            error = page_cache_read_direct(inode, (char *)buffer + done, direct, offset + done);
            pool_lock(pool);
            done += smaller(direct, size - done);
            continue;
        }
        error = page_cache_pin(inode, (offset + done) / PAGE_SIZE_BYTES, end, pages, &count);
        if (error)
            break;
        pool_unlock(pool);
        done +=
            page_cache_copy_out(pages, count, (char *)buffer + done, size - done, offset + done);
        pool_lock(pool);
        for (unsigned i = 0; i < count; i++)
            pages[i]->pins--;
    }
    pool_unlock(pool);
    return error;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Loads the page at `index` and makes it dirty, so that it stays until it has been changed. What is
 * dirty then is what the disk holds already, should the change not come about. */
static int page_cache_keep(struct inode *inode, uint64_t index) {
    struct page *page;
    int error = page_cache_get(inode, index, index + 1, &page);

    if (!error)
        page_set_dirty(page, true);
    return error;
}

int page_cache_prepare(struct inode *inode, size_t size, uint64_t offset) {
    uint64_t first = offset / PAGE_SIZE_BYTES, last = (offset + size) / PAGE_SIZE_BYTES;
    uint64_t file_end = inode->size, old_end = file_end / PAGE_SIZE_BYTES;
    bool keep_first = offset % PAGE_SIZE_BYTES && first * PAGE_SIZE_BYTES < file_end;
    bool keep_last = (offset + size) % PAGE_SIZE_BYTES && offset + size < file_end;
    /* The tail of what has been the last page comes into the file; it may hold old bytes. */
    bool keep_old_end = offset > file_end && file_end % PAGE_SIZE_BYTES && old_end != first;
    int error = 0;

    if (!keep_first && !keep_last && !keep_old_end)
        return 0;
    pool_lock(&inode->volume->pool);
    if (!page_cache_tree(inode))
        error = -ENOMEM;
    if (!error && keep_first)
        error = page_cache_keep(inode, first);
    if (!error && keep_last && !(keep_first && first == last))
        error = page_cache_keep(inode, last);
    if (!error && keep_old_end)
        error = page_cache_keep(inode, old_end);
    pool_unlock(&inode->volume->pool);
    return error;
}

/* The dirty page at `index`, of which a write covers all that is to survive (whole) or a part. */
static struct page *page_cache_take(struct inode *inode, uint64_t index, bool whole) {
    struct page *page = page_tree_find(inode->pages, index);

    if (page) {
        page_leave_inflight(page);
    } else {
        page = page_add(inode, index);
        if (!page)
            return NULL;
        if (!whole)
            memset(page->frame.data, 0, PAGE_SIZE_BYTES);
    }
    page_set_dirty(page, true);
    pool_touch(&inode->volume->pool, &page->frame);
    return page;
}

/* Finds or adds pages for the bytes from `offset` on and makes them dirty. The mutex is held. */
static unsigned page_cache_take_run(struct inode *inode, size_t size, uint64_t offset,
                                    struct page **pages) {
    uint64_t end = offset + size;
    unsigned count = 0;

    while (count < COPY_PAGES && offset < end) {
        uint64_t index = offset / PAGE_SIZE_BYTES, next = (index + 1) * PAGE_SIZE_BYTES;

        pages[count] = page_cache_take(inode, index, offset % PAGE_SIZE_BYTES == 0 && next <= end);
        if (!pages[count])
            break;
        count++;
        offset = next;
    }
    clock_charge(inode->volume->clock, COST_PAGE, count);
    return count;
}

/* Copies into pages in a row (zeros where buffer is NULL); returns how many bytes. */
static size_t page_cache_copy_in(struct page *const *pages, unsigned count, const char *buffer,
                                 size_t size, uint64_t offset) {
    size_t done = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t within = (offset + done) % PAGE_SIZE_BYTES;
        size_t piece = smaller(PAGE_SIZE_BYTES - within, size - done);
        char *target = (char *)pages[i]->frame.data + within;

        if (buffer)
            memcpy(target, buffer + done, piece);
        else
            memset(target, 0, piece);
        done += piece;
    }
    return done;
}

int page_cache_write(struct inode *inode, const void *buffer, size_t size, uint64_t offset) {
    struct pool *pool = &inode->volume->pool;
    struct page *pages[COPY_PAGES];
    const char *bytes = buffer;
    size_t done = 0;

    clock_charge(inode->volume->clock, COST_COPY_KB, (int64_t)(size + 1023) / 1024);
    while (done < size) {
        unsigned count = 0;

        pool_lock(pool);
        if (page_cache_tree(inode))
            count = page_cache_take_run(inode, size - done, offset + done, pages);
        pool_unlock(pool);
        if (count == 0)
            return -ENOMEM;
        done += page_cache_copy_in(pages, count, bytes ? bytes + done : NULL, size - done,
                                   offset + done);
    }
    return 0;
}

/* --- taking away ------------------------------------------------------------------------------ */

/* Drops the pages of [index, end). The mutex is held. */
static void page_cache_drop(struct inode *inode, uint64_t index, uint64_t end) {
    struct page *page;

    if (!inode->pages)
        return;
    while ((page = page_tree_next(inode->pages, index, false)) && page->index < end)
        page_drop(page);
}

static bool all_zero(const unsigned char *bytes, size_t size) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Zeroes a part of one page. Where it is zero already, in a hole for instance, nothing changes. */
static int page_cache_zero_part(struct inode *inode, uint64_t offset, uint64_t length) {
    uint64_t index = offset / PAGE_SIZE_BYTES;
    struct page *page;
    int error;

    if (length == 0 || index * PAGE_SIZE_BYTES >= inode->size)
        return 0;
    error = page_cache_get(inode, index, index + 1, &page);
    if (!error) {
        unsigned char *bytes = (unsigned char *)page->frame.data + offset % PAGE_SIZE_BYTES;

        if (!all_zero(bytes, length)) {
            memset(bytes, 0, length);
            page_set_dirty(page, true);
        }
    }
    return error;
}

int page_cache_zero(struct inode *inode, uint64_t offset, uint64_t length) {
    uint64_t end = offset + length;
    uint64_t first = PAGES_OF(offset), last = end / PAGE_SIZE_BYTES; /* whole pages between */
    int error = 0;

    pool_lock(&inode->volume->pool);
    if (!page_cache_tree(inode)) {
        error = -ENOMEM;
    } else if (first > last) { /* inside one page */
        error = page_cache_zero_part(inode, offset, length);
    } else {
        error = page_cache_zero_part(inode, offset, first * PAGE_SIZE_BYTES - offset);
        if (!error)
            error = page_cache_zero_part(inode, last * PAGE_SIZE_BYTES, end % PAGE_SIZE_BYTES);
        if (!error)
            page_cache_drop(inode, first, last);
    }
    pool_unlock(&inode->volume->pool);
    return error;
}

void page_cache_truncate(struct inode *inode, uint64_t offset) {
    pool_lock(&inode->volume->pool);
    page_cache_drop(inode, PAGES_OF(offset), UINT64_MAX);
    pool_unlock(&inode->volume->pool);
}

void page_cache_forget(struct inode *inode) {
    struct page_cache *cache = cache_of(inode);

    pool_lock(&cache->volume->pool);
    if (inode->pages) {
        page_cache_drop(inode, 0, UINT64_MAX);
        recycle_put(&cache->trees, inode->pages);
        inode->pages = NULL;
    }
    if (inode->deleted) /* the number's next owner has nothing to do with it */
        (void)write_errors_take(&cache->write_errors, inode->ino);
    pool_unlock(&cache->volume->pool);
}

bool page_cache_has_dirty(const struct inode *inode) {
    bool dirty;

    pool_lock(&inode->volume->pool);
    dirty = inode->pages && inode->pages->dirty > 0;
    pool_unlock(&inode->volume->pool);
    return dirty;
}

uint64_t page_cache_next_dirty(struct inode *inode, uint64_t offset) {
    const struct page *page = NULL;

    pool_lock(&inode->volume->pool);
    if (inode->pages)
        page = page_tree_next(inode->pages, offset / PAGE_SIZE_BYTES, true);
    pool_unlock(&inode->volume->pool);
    if (!page)
        return UINT64_MAX;
    return page->index * PAGE_SIZE_BYTES > offset ? page->index * PAGE_SIZE_BYTES : offset;
}

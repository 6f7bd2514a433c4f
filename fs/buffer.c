/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/buffer.h.
 *
 * Buffers are found in a hash table by block number; dirty ones also stand on a list in the order
 * in which they became dirty.
 *
 * Invariants:
 *  1. A buffer that is `loading` is neither referenced nor evicted; who needs it waits for
 *     `arrived` and looks it up anew, since it is gone if reading failed.
 *  2. A buffer with `read` set has its bytes, but who needs it must wait for that inflight first.
 *  3. A buffer is on the dirty list exactly while it is dirty.
 *
 * Locking: the pool's mutex guards the table, the list and the buffers' state; references are
 * raised under it and lowered without. write_mutex, taken before it, lets one write-back run at a
 * time, so that no buffer is submitted twice.
 */
#include "fs/buffer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/arena.h"
#include "fs/inflight.h"

#define HASH_BITS_MIN  8u
#define REQUEST_BYTES  (256u * 1024) /* the largest merged request */
#define REQUEST_BLOCKS (REQUEST_BYTES / 512u)

TAILQ_HEAD(dirty_list, buffer);

struct buffer_cache {
    struct device *device; /* borrowed */
    struct pool *pool;     /* borrowed */
    struct clock *clock;   /* borrowed */
    uint32_t block_size;
    uint32_t block_shift;
    uint64_t blocks; /* whole blocks on the device */
    struct buffer **table;
    unsigned table_bits;
    uint64_t count; /* buffers in the table */
    struct dirty_list dirty;
    _Atomic uint64_t dirty_bytes;
    struct inflight_list reads;
    struct recycler recycler;
    pthread_cond_t arrived;
    pthread_mutex_t write_mutex;
    struct buffer **batch; /* guarded by write_mutex: what is being written, by block number */
    size_t batch_size;
    void (*failed)(void *context, const struct buffer_failure *failure);
    void *failed_context;
};

/* --- the table; the pool's mutex is held ------------------------------------------------------ */

static struct buffer **buffer_slot(const struct buffer_cache *cache, uint64_t block) {
    return &cache->table[(block * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - cache->table_bits)];
}

static struct buffer *buffer_find(const struct buffer_cache *cache, uint64_t block) {
    struct buffer *buffer = *buffer_slot(cache, block);

    while (buffer && buffer->block != block)
        buffer = buffer->hash_next;
    return buffer;
}

static void buffer_chain(struct buffer_cache *cache, struct buffer *buffer) {
    struct buffer **slot = buffer_slot(cache, buffer->block);

    buffer->hash_next = *slot;
    *slot = buffer;
}

/* Doubles the table when it is full; where memory is short, chains just grow longer. */
static void buffer_table_grow(struct buffer_cache *cache) {
    size_t old_size = (size_t)1 << cache->table_bits;
    struct buffer **old = cache->table;
    struct buffer **table;

    if (cache->count < old_size)
        return;
    table = calloc(old_size * 2, sizeof(*table));
    if (!table)
        return;
    cache->table = table;
    cache->table_bits++;
    for (size_t i = 0; i < old_size; i++) {
        struct buffer *next;

        for (struct buffer *buffer = old[i]; buffer; buffer = next) {
            next = buffer->hash_next;
            buffer_chain(cache, buffer);
        }
    }
    free(old);
}

static void buffer_clean(struct buffer *buffer) {
    struct buffer_cache *cache = buffer->cache;

    if (!buffer->dirty)
        return;
    buffer->dirty = false;
    TAILQ_REMOVE(&cache->dirty, buffer, dirty_link);
    cache->dirty_bytes -= cache->block_size;
}

static void buffer_arrived(struct buffer *buffer) {
    if (!buffer->read)
        return;
    inflight_put(&buffer->cache->reads, buffer->read);
    buffer->read = NULL;
}

static void buffer_drop(struct buffer *buffer) {
    struct buffer_cache *cache = buffer->cache;
    struct buffer **link = buffer_slot(cache, buffer->block);

    while (*link != buffer)
        link = &(*link)->hash_next;
    *link = buffer->hash_next;
    cache->count--;
    buffer_clean(buffer);
    buffer_arrived(buffer);
    pool_detach(cache->pool, &buffer->frame);
    recycle_put(&cache->recycler, buffer);
}

static bool buffer_evict(struct frame *frame) {
    struct buffer *buffer = (struct buffer *)frame;

    if (buffer->references || buffer->dirty || buffer->pinned || buffer->loading)
        return false;
    if (buffer->read && inflight_pending(buffer->read))
        return false;
    buffer_drop(buffer);
    return true;
}

/* A new buffer in the table, unreferenced; NULL: no memory. */
static struct buffer *buffer_add(struct buffer_cache *cache, uint64_t block, enum purpose purpose) {
    struct buffer *buffer = recycle_get(&cache->recycler);

    if (!buffer)
        return NULL;
    if (pool_attach(cache->pool, &buffer->frame, cache->block_size, buffer_evict)) {
        recycle_put(&cache->recycler, buffer);
        return NULL;
    }
    buffer->cache = cache;
    buffer->block = block;
    buffer->purpose = (uint16_t)purpose;
    buffer_table_grow(cache);
    buffer_chain(cache, buffer);
    cache->count++;
    return buffer;
}

/* Looks up a block that nobody is reading in. */
static struct buffer *buffer_find_settled(struct buffer_cache *cache, uint64_t block) {
    struct buffer *buffer = buffer_find(cache, block);

    while (buffer && buffer->loading) {
        pthread_cond_wait(&cache->arrived, &cache->pool->mutex);
        buffer = buffer_find(cache, block);
    }
    return buffer;
}

/* --- life ------------------------------------------------------------------------------------- */

int buffer_cache_create(struct device *device, struct pool *pool, struct clock *clock,
                        uint32_t block_size, struct buffer_cache **result) {
    struct buffer_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    assert(block_size >= 512 && block_size <= 65536 && (block_size & (block_size - 1)) == 0);
    cache->device = device;
    cache->pool = pool;
    cache->clock = clock;
    cache->block_size = block_size;
    cache->block_shift = (uint32_t)__builtin_ctz(block_size);
    cache->blocks = device->size >> cache->block_shift;
    cache->table_bits = HASH_BITS_MIN;
    cache->recycler.size = sizeof(struct buffer);
    TAILQ_INIT(&cache->dirty);
    inflight_init(&cache->reads);
    cache->table = calloc((size_t)1 << cache->table_bits, sizeof(*cache->table));
    if (!cache->table) {
        free(cache);
        return -ENOMEM;
    }
    pthread_cond_init(&cache->arrived, NULL);
    pthread_mutex_init(&cache->write_mutex, NULL);
    *result = cache;
    return 0;
}

void buffer_cache_destroy(struct buffer_cache *cache) {
    if (!cache)
        return;
    pool_lock(cache->pool);
    for (size_t i = 0; i < (size_t)1 << cache->table_bits; i++) {
        while (cache->table[i]) {
            assert(cache->table[i]->references == 0);
            buffer_drop(cache->table[i]);
        }
    }
    (void)inflight_drain(&cache->reads, 0, cache->pool, cache->device);
    inflight_destroy(&cache->reads);
    pool_unlock(cache->pool);
    recycle_drain(&cache->recycler);
    pthread_cond_destroy(&cache->arrived);
    pthread_mutex_destroy(&cache->write_mutex);
    free(cache->batch);
    free(cache->table);
    free(cache);
}

/* --- failures ----------------------------------------------------------------------------------
 */

void buffer_cache_on_failure(struct buffer_cache *cache,
                             void (*failed)(void *context, const struct buffer_failure *failure),
                             void *context) {
    cache->failed = failed;
    cache->failed_context = context;
}

static void buffer_tell_failure(const struct buffer_cache *cache,
                                const struct buffer_failure *failure) {
    if (cache->failed)
        cache->failed(cache->failed_context, failure);
}

void buffer_writes_failed(struct buffer_cache *cache, int error) {
    buffer_tell_failure(cache, &(struct buffer_failure){.operation = DEVICE_WRITE,
                                                        .purpose = PURPOSE_OTHER,
                                                        .error = error});
}

/* --- reading ---------------------------------------------------------------------------------- */

static int buffer_check_range(const struct buffer_cache *cache, uint64_t block,
                              enum purpose purpose) {
    if (block < cache->blocks)
        return 0;
    log_error(cache->device->log,
              "%s: %s block %" PRIu64 " lies beyond the device's %" PRIu64 " blocks",
              cache->device->name, purpose_name(purpose), block, cache->blocks);
    return -EIO;
}

/* Reads a block that is not in the table; the mutex is released meanwhile. */
static int buffer_load(struct buffer_cache *cache, uint64_t block, enum purpose purpose,
                       struct buffer **result) {
    struct buffer *buffer = buffer_add(cache, block, purpose);
    int error;

    if (!buffer)
        return -ENOMEM;
    buffer->loading = true;
    pool_unlock(cache->pool);
    error = device_read(cache->device, block << cache->block_shift, buffer->frame.data,
                        cache->block_size, purpose);
    if (error)
        buffer_tell_failure(cache, &(struct buffer_failure){DEVICE_READ, purpose, block, 1, error});
    pool_lock(cache->pool);
    buffer->loading = false;
    pthread_cond_broadcast(&cache->arrived);
    if (error) {
        buffer_drop(buffer);
        return error;
    }
    *result = buffer;
    return 0;
}

/* Waits for the prefetch that brings the buffer, which is dropped if that failed. */
static int buffer_await(struct buffer *buffer) {
    struct buffer_cache *cache = buffer->cache;
    int error = inflight_wait(buffer->read, cache->pool, cache->device);

    if (error)
        buffer_drop(buffer);
    else
        buffer_arrived(buffer);
    return error;
}

int buffer_get(struct buffer_cache *cache, uint64_t block, enum purpose purpose,
               struct buffer **result) {
    struct buffer *buffer;
    int error = 0;

    clock_charge(cache->clock, COST_BUFFER, 1);
    pool_lock(cache->pool);
    buffer = buffer_find_settled(cache, block);
    if (!buffer) {
        error = buffer_check_range(cache, block, purpose);
        if (!error)
            error = buffer_load(cache, block, purpose, &buffer);
    } else if (buffer->read) {
        error = buffer_await(buffer);
    }
    if (!error) {
        buffer->references++;
        pool_touch(cache->pool, &buffer->frame);
        *result = buffer;
    }
    pool_unlock(cache->pool);
    return error;
}

int buffer_get_zeroed(struct buffer_cache *cache, uint64_t block, enum purpose purpose,
                      struct buffer **result) {
    struct buffer *buffer;
    int error = buffer_check_range(cache, block, purpose);

    if (error)
        return error;
    clock_charge(cache->clock, COST_BUFFER, 1);
    pool_lock(cache->pool);
    buffer = buffer_find_settled(cache, block);
    if (!buffer)
        buffer = buffer_add(cache, block, purpose);
    if (buffer) {
        buffer_arrived(buffer);
        buffer->purpose = (uint16_t)purpose;
        buffer->references++;
        pool_touch(cache->pool, &buffer->frame);
    }
    pool_unlock(cache->pool);
    if (!buffer)
        return -ENOMEM;
    memset(buffer->frame.data, 0, cache->block_size);
    *result = buffer;
    return 0;
}

struct buffer *buffer_peek(struct buffer_cache *cache, uint64_t block) {
    struct buffer *buffer;

    pool_lock(cache->pool);
    buffer = buffer_find(cache, block);
    if (buffer && (buffer->loading || buffer->read))
        buffer = NULL;
    if (buffer)
        buffer->references++;
    pool_unlock(cache->pool);
    return buffer;
}

void buffer_hold(struct buffer *buffer) {
    buffer->references++;
}

void buffer_put(struct buffer *buffer) {
    if (buffer)
        buffer->references--;
}

/* Adds up to `limit` buffers from `block` on, until one is cached already; they are `loading`. */
static unsigned buffer_add_run(struct buffer_cache *cache, uint64_t block, uint64_t limit,
                               enum purpose purpose, struct buffer **run, struct iovec *vector) {
    unsigned count = 0;

    while (count < limit && !buffer_find(cache, block + count)) {
        struct buffer *buffer = buffer_add(cache, block + count, purpose);

        if (!buffer)
            break;
        buffer->loading = true;
        run[count] = buffer;
        vector[count] = (struct iovec){buffer->frame.data, cache->block_size};
        count++;
    }
    return count;
}

/* One request for the blocks from `block` on that are missing in a row; the mutex is released
 * meanwhile. Returns how many these were. */
static unsigned buffer_prefetch_run(struct buffer_cache *cache, uint64_t block, uint64_t limit,
                                    enum purpose purpose) {
    struct buffer *run[REQUEST_BLOCKS];
    struct iovec vector[REQUEST_BLOCKS];
    struct inflight *inflight = inflight_begin(&cache->reads);
    struct device_request request = {DEVICE_READ, purpose, block << cache->block_shift};
    unsigned count;
    bool pending;
    int error, late_error;

    if (!inflight)
        return 0;
    count = buffer_add_run(cache, block, limit, purpose, run, vector);
    request.length = count << cache->block_shift;
    request.vector = vector;
    request.vector_count = (int)count;
    request.batch = &inflight->batch;
    pool_unlock(cache->pool);
    error = count ? device_submit(cache->device, &request) : 0;
    pool_lock(cache->pool);
    pending = inflight_end(&cache->reads, inflight, request.length, &late_error);
    for (unsigned i = 0; i < count; i++) {
        run[i]->loading = false;
        if (error || late_error) {
            buffer_drop(run[i]);
        } else if (pending) {
            run[i]->read = inflight;
            inflight_hold(inflight);
        }
    }
    pthread_cond_broadcast(&cache->arrived);
    return count;
}

void buffer_prefetch(struct buffer_cache *cache, uint64_t block, uint32_t count,
                     enum purpose purpose) {
    uint64_t request_blocks = REQUEST_BYTES >> cache->block_shift;
    uint64_t end = block >= cache->blocks          ? block
                   : count > cache->blocks - block ? cache->blocks
                                                   : block + count;

    pool_lock(cache->pool);
    (void)inflight_reap(&cache->reads);
    while (block < end) {
        uint64_t limit = end - block < request_blocks ? end - block : request_blocks;

        if (buffer_find(cache, block)) {
            block++;
            continue;
        }
        limit = buffer_prefetch_run(cache, block, limit, purpose);
        if (limit == 0)
            break; /* no memory: reading ahead is optional */
        block += limit;
    }
    pool_unlock(cache->pool);
}

/* --- changing and writing --------------------------------------------------------------------- */

void buffer_dirty(struct buffer *buffer) {
    struct buffer_cache *cache = buffer->cache;

    if (buffer->dirty) /* it changes under the volume's exclusive lock, which the caller has */
        return;
    pool_lock(cache->pool);
    buffer->dirty = true;
    buffer->dirty_since_ns = clock_now(cache->clock);
    TAILQ_INSERT_TAIL(&cache->dirty, buffer, dirty_link);
    cache->dirty_bytes += cache->block_size;
    pool_unlock(cache->pool);
}

static void buffer_forget_one(struct buffer *buffer) {
    assert(buffer->references == 0 && !buffer->loading);
    buffer_drop(buffer);
}

static void buffer_forget_scan(struct buffer_cache *cache, uint64_t block, uint64_t count) {
    for (size_t i = 0; i < (size_t)1 << cache->table_bits; i++) {
        struct buffer *next;

        for (struct buffer *buffer = cache->table[i]; buffer; buffer = next) {
            next = buffer->hash_next;
            if (buffer->block - block < count)
                buffer_forget_one(buffer);
        }
    }
}

void buffer_forget(struct buffer_cache *cache, uint64_t block, uint64_t count) {
    pool_lock(cache->pool);
    if (count > (uint64_t)1 << cache->table_bits) {
        buffer_forget_scan(cache, block, count);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            struct buffer *buffer = buffer_find_settled(cache, block + i);

            if (buffer)
                buffer_forget_one(buffer);
        }
    }
    pool_unlock(cache->pool);
}

static int buffer_compare(const void *a, const void *b) {
    const struct buffer *const *left = a;
    const struct buffer *const *right = b;

    return ((*left)->block > (*right)->block) - ((*left)->block < (*right)->block);
}

/* Puts the dirty buffers to be written into cache->batch, oldest first. Returns their number. */
static size_t buffer_collect(struct buffer_cache *cache, int64_t before_ns, uint64_t limit_bytes) {
    uint64_t limit = limit_bytes >> cache->block_shift;
    uint64_t dirty = cache->dirty_bytes >> cache->block_shift;
    struct buffer *buffer;
    size_t count = 0;

    if (limit > dirty)
        limit = dirty;
    if (limit > cache->batch_size) {
        struct buffer **batch = realloc(cache->batch, limit * sizeof(struct buffer *));

        if (batch) {
            cache->batch = batch;
            cache->batch_size = limit;
        }
    }
    if (limit > cache->batch_size)
        limit = cache->batch_size; /* no memory: write what there is room for */
    TAILQ_FOREACH (buffer, &cache->dirty, dirty_link) {
        if (count == limit || buffer->dirty_since_ns > before_ns)
            break;
        if (!buffer->pinned)
            cache->batch[count++] = buffer;
    }
    return count;
}

/* Submits `count` buffers of consecutive blocks in one request; then they are clean. */
static int buffer_write_run(struct buffer_cache *cache, struct buffer **run, unsigned count,
                            struct device_batch *batch) {
    struct iovec vector[REQUEST_BLOCKS];
    struct device_request request = {
        .operation = DEVICE_WRITE,
        .purpose = run[0]->purpose,
        .offset = run[0]->block << cache->block_shift,
        .length = count << cache->block_shift,
        .vector = vector,
        .vector_count = (int)count,
        .batch = batch,
    };
    int error;

    for (unsigned i = 0; i < count; i++)
        vector[i] = (struct iovec){run[i]->frame.data, cache->block_size};
    error = device_submit(cache->device, &request);
    if (error) {
        buffer_tell_failure(cache, &(struct buffer_failure){DEVICE_WRITE, request.purpose,
                                                            run[0]->block, count, error});
        return error;
    }
    pool_lock(cache->pool);
    for (unsigned i = 0; i < count; i++)
        buffer_clean(run[i]);
    pool_unlock(cache->pool);
    return 0;
}

/* How many buffers from run[0] on one request can take. */
static unsigned buffer_run_length(const struct buffer_cache *cache, struct buffer *const *run,
                                  size_t count) {
    size_t limit = REQUEST_BYTES >> cache->block_shift;
    unsigned length = 1;

    while (length < count && length < limit && run[length]->block == run[0]->block + length &&
           run[length]->purpose == run[0]->purpose)
        length++;
    return length;
}

/* Submits all collected buffers; goes on after an error, so that one bad block does not keep the
 * others from the disk. Returns the bytes submitted or the first error. */
static int64_t buffer_write_batch(struct buffer_cache *cache, size_t count,
                                  struct device_batch *batch) {
    int64_t bytes = 0;
    int error = 0;

    qsort(cache->batch, count, sizeof(struct buffer *), buffer_compare);
    for (size_t i = 0; i < count;) {
        unsigned length = buffer_run_length(cache, cache->batch + i, count - i);
        int result = buffer_write_run(cache, cache->batch + i, length, batch);

        if (!result)
            bytes += (int64_t)length << cache->block_shift;
        else if (!error)
            error = result;
        i += length;
    }
    return error ? error : bytes;
}

int64_t buffer_write_back(struct buffer_cache *cache, int64_t before_ns, uint64_t limit_bytes,
                          struct device_batch *batch) {
    int64_t result = 0;
    size_t count;

    pthread_mutex_lock(&cache->write_mutex);
    pool_lock(cache->pool);
    count = buffer_collect(cache, before_ns, limit_bytes);
    pool_unlock(cache->pool);
    if (count)
        result = buffer_write_batch(cache, count, batch);
    pthread_mutex_unlock(&cache->write_mutex);
    return result;
}

static int buffer_wait(struct buffer_cache *cache, struct device_batch *batch) {
    int error = device_wait(cache->device, batch);

    if (error)
        buffer_writes_failed(cache, error);
    return error;
}

int buffer_write_now(struct buffer *buffer) {
    struct buffer_cache *cache = buffer->cache;
    struct device_batch batch = {0};
    int error;

    pthread_mutex_lock(&cache->write_mutex);
    error = buffer_write_run(cache, &buffer, 1, &batch);
    pthread_mutex_unlock(&cache->write_mutex);
    return error ? error : buffer_wait(cache, &batch);
}

int buffer_sync(struct buffer_cache *cache) {
    struct device_batch batch = {0};
    int64_t result = buffer_write_back(cache, INT64_MAX, UINT64_MAX, &batch);
    int error = buffer_wait(cache, &batch);

    return result < 0 ? (int)result : error;
}

uint64_t buffer_dirty_bytes(const struct buffer_cache *cache) {
    return cache->dirty_bytes;
}

uint32_t buffer_block_size(const struct buffer_cache *cache) {
    return cache->block_size;
}

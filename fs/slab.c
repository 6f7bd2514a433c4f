/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/slab.h.
 */
#include "fs/slab.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_BYTES (2u << 20)
#define SLAB_BYTES   (64u << 10)
#define SLABS        (REGION_BYTES / SLAB_BYTES)
#define PAGE_BYTES   4096u /* the least that can be given back */
#define WARM_MAX     16u

/* Under AddressSanitizer nobody may touch objects that were given back, nor bytes behind others. */
#if defined(__SANITIZE_ADDRESS__)
#define RED_ZONE 16u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RED_ZONE 16u
#endif
#endif
#ifdef RED_ZONE
#include <sanitizer/asan_interface.h>
#else
#define RED_ZONE                                  0u
#define ASAN_POISON_MEMORY_REGION(start, bytes)   ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

struct slab {
    LIST_ENTRY(slab) link; /* on `partial` or `empty` */
    void *free;            /* objects given back, chained through their first word */
    uint32_t capacity, used, fresh;
    bool warm;
};

/* At the start of each region, in what would be its first slab's memory. */
struct slab_region {
    struct slab_region *previous;
    struct slab slabs[SLABS];
};

void slab_init(struct slab_cache *cache, size_t size) {
    *cache = (struct slab_cache){.size = size, .stride = (size + RED_ZONE + 15) / 16 * 16};
    LIST_INIT(&cache->partial);
    LIST_INIT(&cache->empty);
}

static struct slab_region *region_of(const void *within) {
    return (struct slab_region *)((uintptr_t)within & ~(uintptr_t)(REGION_BYTES - 1));
}

static struct slab *slab_of(const void *object) {
    struct slab_region *region = region_of(object);

    return &region->slabs[((uintptr_t)object - (uintptr_t)region) / SLAB_BYTES];
}

/* The slab's memory; *bytes of it. The first one's begins behind the region's head. */
static char *slab_memory(const struct slab *slab, size_t *bytes) {
    struct slab_region *region = region_of(slab);
    size_t index = (size_t)(slab - region->slabs);
    size_t head = index == 0 ? (sizeof(*region) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES : 0;

    *bytes = SLAB_BYTES - head;
    return (char *)region + index * SLAB_BYTES + head;
}

/* Zeroed. Not from malloc(3): under a sanitizer that marks all it hands out and gets back, and
 * twice as much for the alignment, where most volumes use a few pages. */
static struct slab_region *map_region(void) {
    size_t bytes = 2 * REGION_BYTES; /* in which an aligned region lies somewhere */
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED)
        return NULL;
    char *region = (char *)region_of(start + REGION_BYTES - 1), *end = region + REGION_BYTES;
    if (region != start)
        munmap(start, (size_t)(region - start));
    munmap(end, (size_t)(start + bytes - end));
    return (struct slab_region *)region;
}

/* Small volumes have one region, and touch a few pages of it only. */
static bool add_region(struct slab_cache *cache) {
    struct slab_region *region = map_region();

    if (!region)
        return false;
    if (cache->regions)
        madvise(region, REGION_BYTES, MADV_HUGEPAGE); /* an advice: it may fail */
    region->previous = cache->regions;
    cache->regions = region;
    for (unsigned i = SLABS; i-- > 0;) {
        size_t bytes;

        slab_memory(&region->slabs[i], &bytes);
        region->slabs[i].capacity = (uint32_t)(bytes / cache->stride);
        LIST_INSERT_HEAD(&cache->empty, &region->slabs[i], link);
    }
    return true;
}

/* A slab with room, on `partial`. */
static struct slab *slab_with_room(struct slab_cache *cache) {
    struct slab *slab = LIST_FIRST(&cache->partial);

    if (slab)
        return slab;
    if (LIST_EMPTY(&cache->empty) && !add_region(cache))
        return NULL;
    slab = LIST_FIRST(&cache->empty);
    LIST_REMOVE(slab, link);
    LIST_INSERT_HEAD(&cache->partial, slab, link);
    cache->warm -= slab->warm;
    slab->warm = true;
    return slab;
}

void *slab_take(struct slab_cache *cache) {
    struct slab *slab = slab_with_room(cache);
    void *object;
    size_t bytes;

    if (!slab)
        return NULL;
    if (slab->free) {
        object = slab->free;
        ASAN_UNPOISON_MEMORY_REGION(object, cache->size);
        slab->free = *(void **)object;
    } else {
        object = slab_memory(slab, &bytes) + slab->fresh++ * cache->stride;
        ASAN_UNPOISON_MEMORY_REGION(object, cache->size);
        ASAN_POISON_MEMORY_REGION((char *)object + cache->size, cache->stride - cache->size);
    }
    slab->used++;
    if (!slab->free && slab->fresh == slab->capacity)
        LIST_REMOVE(slab, link);
    return memset(object, 0, cache->size);
}

/* Its last object is gone. */
static void slab_emptied(struct slab_cache *cache, struct slab *slab) {
    size_t bytes;
    char *memory = slab_memory(slab, &bytes);

    LIST_REMOVE(slab, link);
    LIST_INSERT_HEAD(&cache->empty, slab, link);
    slab->free = NULL;
    slab->fresh = 0;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    slab->warm = cache->warm < WARM_MAX || madvise(memory, bytes, MADV_DONTNEED) != 0;
    cache->warm += slab->warm;
}

void slab_give(struct slab_cache *cache, void *object) {
    struct slab *slab = slab_of(object);

    if (!slab->free && slab->fresh == slab->capacity) /* it was full */
        LIST_INSERT_HEAD(&cache->partial, slab, link);
    *(void **)object = slab->free;
    slab->free = object;
    ASAN_POISON_MEMORY_REGION(object, cache->size);
    if (--slab->used == 0)
        slab_emptied(cache, slab);
}

static void unmap_region(struct slab_region *region) {
    size_t bytes;

    for (unsigned i = 0; i < SLABS; i++)
        if (region->slabs[i].fresh > 0) {
            const char *memory = slab_memory(&region->slabs[i], &bytes);
            ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
        }
    munmap(region, REGION_BYTES);
}

void slab_drain(struct slab_cache *cache) {
    while (cache->regions) {
        struct slab_region *region = cache->regions;

        cache->regions = region->previous;
        unmap_region(region);
    }
    slab_init(cache, cache->size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. File contents: an array of pages a file. `reserve` allocates pages of
 * zeros, so that a write which was accepted can always be stored, and preallocating is the same;
 * `load` and `store` copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/memory/memory.h"

#define SECTORS_PER_PAGE (PAGE_SIZE_BYTES / 512)

static void *page_at(const struct memory_node *node, uint64_t index) {
    return index < node->page_slots ? node->pages[index] : NULL;
}

static int grow_slots(struct memory_node *node, uint64_t slots) {
    uint64_t wanted = node->page_slots ? node->page_slots : 1;

    if (slots <= node->page_slots)
        return 0;
    while (wanted < slots)
        wanted *= 2;
    if (wanted > SIZE_MAX / sizeof(void *))
        return -EFBIG;
    void **pages = realloc(node->pages, wanted * sizeof(void *));
    if (!pages)
        return -ENOSPC;
    memset(pages + node->page_slots, 0, (wanted - node->page_slots) * sizeof(void *));
    node->pages = pages;
    node->page_slots = wanted;
    return 0;
}

static int add_page(struct memory *memory, struct memory_node *node, uint64_t index) {
    if (node->pages[index])
        return 0;
    if (memory->used_pages >= memory->total_pages)
        return -ENOSPC;
    node->pages[index] = recycle_get(&memory->pages);
    if (!node->pages[index])
        return -ENOSPC;
    memory->used_pages++;
    node->page_count++;
    return 0;
}

static void drop_page(struct memory *memory, struct memory_node *node, uint64_t index) {
    if (!page_at(node, index))
        return;
    recycle_put(&memory->pages, node->pages[index]);
    node->pages[index] = NULL;
    memory->used_pages--;
    node->page_count--;
}

int64_t memory_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory *memory = memory_of(inode->volume);
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES;
    uint64_t end = (offset + length - 1) / PAGE_SIZE_BYTES + 1;
    uint64_t index = first;
    int error = grow_slots(node, end);

    while (!error && index < end) {
        error = add_page(memory, node, index);
        index += !error;
    }
    inode->sectors = node->page_count * SECTORS_PER_PAGE;
    if (index == first)
        return error;
    uint64_t got = index * PAGE_SIZE_BYTES - offset;
    return (int64_t)(got < length ? got : length);
}

/* Calls copy for every page of a range with the caller's memory for it. */
static void each_page(struct memory_node *node, const struct data_range *range,
                      void (*copy)(void *page, void *memory)) {
    uint64_t index = range->offset / PAGE_SIZE_BYTES;

    for (int i = 0; i < range->vector_count; i++) {
        char *at = range->vector[i].iov_base;
        for (size_t done = 0; done < range->vector[i].iov_len; done += PAGE_SIZE_BYTES)
            copy(page_at(node, index++), at + done);
    }
}

static void copy_out(void *page, void *memory) {
    if (page)
        memcpy(memory, page, PAGE_SIZE_BYTES);
    else
        memset(memory, 0, PAGE_SIZE_BYTES);
}

static void copy_in(void *page, void *memory) {
    if (page) /* a hole stays one */
        memcpy(page, memory, PAGE_SIZE_BYTES);
}

int memory_load(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    each_page(memory_node_of(inode), range, copy_out);
    return 0;
}

int memory_store(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    each_page(memory_node_of(inode), range, copy_in);
    return 0;
}

int memory_truncate(struct inode *inode, uint64_t size) {
    struct memory *memory = memory_of(inode->volume);
    struct memory_node *node = memory_node_of(inode);
    uint64_t keep = size / PAGE_SIZE_BYTES + (size % PAGE_SIZE_BYTES != 0);

    if (size > inode->size) /* and keep what was preallocated */
        return 0;
    for (uint64_t index = keep; index < node->page_slots; index++)
        drop_page(memory, node, index);
    inode->sectors = node->page_count * SECTORS_PER_PAGE;
    return 0;
}

int memory_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory *memory = memory_of(inode->volume);
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES + (offset % PAGE_SIZE_BYTES != 0);
    uint64_t end = (offset + length) / PAGE_SIZE_BYTES;

    for (uint64_t index = first; index < end && index < node->page_slots; index++)
        drop_page(memory, node, index);
    inode->sectors = node->page_count * SECTORS_PER_PAGE;
    return 0;
}

/* Pages that go are dropped, then the rest of the array moves. */
int memory_collapse(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES, end = (offset + length) / PAGE_SIZE_BYTES;
    int error = memory_punch(inode, offset, length);

    if (error || first >= node->page_slots)
        return error;
    uint64_t moved = end < node->page_slots ? node->page_slots - end : 0;
    memmove(node->pages + first, node->pages + end, moved * sizeof(void *));
    memset(node->pages + first + moved, 0, (node->page_slots - first - moved) * sizeof(void *));
    return 0;
}

int memory_insert(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES, count = length / PAGE_SIZE_BYTES;
    uint64_t used = node->page_slots;

    while (used > first && !node->pages[used - 1])
        used--;
    if (used <= first)
        return 0;
    int error = grow_slots(node, used + count);
    if (error)
        return error;
    memmove(node->pages + first + count, node->pages + first, (used - first) * sizeof(void *));
    memset(node->pages + first, 0, count * sizeof(void *));
    return 0;
}

int memory_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    const struct memory_node *node = memory_node_of(inode);
    uint64_t index = offset / PAGE_SIZE_BYTES, end = index + 1;
    bool stored = page_at(node, index) != NULL;

    while (end < node->page_slots && (page_at(node, end) != NULL) == stored)
        end++;
    *extent = (struct extent){
        .offset = index * PAGE_SIZE_BYTES,
        .length = (end - index) * PAGE_SIZE_BYTES,
        .flags = stored ? EXTENT_ENCODED : EXTENT_HOLE,
    };
    return 0;
}

void memory_data_free(struct memory *memory, struct memory_node *node) {
    for (uint64_t index = 0; index < node->page_slots; index++)
        drop_page(memory, node, index);
    free(node->pages);
    node->pages = NULL;
    node->page_slots = 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. File contents: pages in a tree by their index, so that one far out costs
 * no more than one near the beginning. `reserve` allocates pages of zeros, so that a write which
 * was accepted can always be stored, and preallocating is the same; `load` and `store` copy.
 */
#include <errno.h>
#include <string.h>

#include "layouts/memory/memory.h"

#define SECTORS_PER_PAGE (PAGE_SIZE_BYTES / 512)

static int compare_pages(struct memory_page *a, struct memory_page *b) {
    return a->index < b->index ? -1 : a->index > b->index;
}

RB_GENERATE_INTERNAL(memory_page_tree, memory_page, by_index, compare_pages,
                     static __attribute__((unused)))

/* The first page at `index` or behind, or NULL. */
static struct memory_page *page_from(struct memory_node *node, uint64_t index) {
    return RB_NFIND(memory_page_tree, &node->pages, &(struct memory_page){.index = index});
}

static struct memory_page *page_next(struct memory_page *page) {
    return RB_NEXT(memory_page_tree, &node->pages, page);
}

static int add_page(struct memory *memory, struct memory_node *node, uint64_t index) {
    struct memory_page *page;

    if (memory->used_pages >= memory->total_pages)
        return -ENOSPC;
    page = recycle_get_dirty(&memory->pages);
    if (!page)
        return -ENOSPC;
    *page = (struct memory_page){.index = index, .data = recycle_get(&memory->page_data)};
    if (!page->data) {
        recycle_put(&memory->pages, page);
        return -ENOSPC;
    }
    RB_INSERT(memory_page_tree, &node->pages, page);
    memory->used_pages++;
    node->page_count++;
    return 0;
}

/* Frees the pages from `first` up to, not including, `end`. */
static void drop_pages(struct memory *memory, struct memory_node *node, uint64_t first,
                       uint64_t end) {
    struct memory_page *page = page_from(node, first), *next;

    for (; page && page->index < end; page = next) {
        next = page_next(page);
        RB_REMOVE(memory_page_tree, &node->pages, page);
        recycle_put(&memory->page_data, page->data);
        recycle_put(&memory->pages, page);
        memory->used_pages--;
        node->page_count--;
    }
}

int64_t memory_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory *memory = memory_of(inode->volume);
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES;
    uint64_t end = (offset + length - 1) / PAGE_SIZE_BYTES + 1;
    struct memory_page *present = page_from(node, first);
    uint64_t index = first;
    int error = 0;

    for (; !error && index < end; index += !error) {
        if (present && present->index == index)
            present = page_next(present);
        else
            error = add_page(memory, node, index);
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
    struct memory_page *page = page_from(node, index);

    for (int i = 0; i < range->vector_count; i++) {
        char *at = range->vector[i].iov_base;
        for (size_t done = 0; done < range->vector[i].iov_len; done += PAGE_SIZE_BYTES, index++) {
            bool present = page && page->index == index;
            copy(present ? page->data : NULL, at + done);
            if (present)
                page = page_next(page);
        }
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
    drop_pages(memory, node, keep, UINT64_MAX);
    inode->sectors = node->page_count * SECTORS_PER_PAGE;
    return 0;
}

int memory_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory *memory = memory_of(inode->volume);
    struct memory_node *node = memory_node_of(inode);
    uint64_t first = offset / PAGE_SIZE_BYTES + (offset % PAGE_SIZE_BYTES != 0);
    uint64_t end = (offset + length) / PAGE_SIZE_BYTES;

    drop_pages(memory, node, first, end);
    inode->sectors = node->page_count * SECTORS_PER_PAGE;
    return 0;
}

/* Pages that go are dropped, then the others move; their order, all that the tree needs, stays. */
int memory_collapse(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory_node *node = memory_node_of(inode);
    int error = memory_punch(inode, offset, length);

    if (error)
        return error;
    for (struct memory_page *page = page_from(node, offset / PAGE_SIZE_BYTES); page;
         page = page_next(page))
        page->index -= length / PAGE_SIZE_BYTES;
    return 0;
}

int memory_insert(struct inode *inode, uint64_t offset, uint64_t length) {
    struct memory_node *node = memory_node_of(inode);

    for (struct memory_page *page = page_from(node, offset / PAGE_SIZE_BYTES); page;
         page = page_next(page))
        page->index += length / PAGE_SIZE_BYTES;
    return 0;
}

int memory_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    uint64_t index = offset / PAGE_SIZE_BYTES, end = index;
    struct memory_page *page = page_from(memory_node_of(inode), index);
    bool stored = page && page->index == index;

    for (; stored && page && page->index == end; page = page_next(page))
        end++;
    if (!stored)
        end = page ? page->index : INT64_MAX / PAGE_SIZE_BYTES + 1;
    *extent = (struct extent){
        .offset = index * PAGE_SIZE_BYTES,
        .length = (end - index) * PAGE_SIZE_BYTES,
        .flags = stored ? EXTENT_ENCODED : EXTENT_HOLE,
    };
    return 0;
}

void memory_data_free(struct memory *memory, struct memory_node *node) {
    drop_pages(memory, node, 0, UINT64_MAX);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/memory. The layout's table, its volumes, and its nodes. See memory.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/memory/memory.h"

#define ROOT_INO UINT64_C(1)

static const struct option_spec options[] = {
    {.name = "size",
     .kind = OPTION_SIZE,
     .scope = OPTION_MOUNT,
     .default_text = "4G",
     .minimum = 1 << 16,
     .maximum = INT64_C(1) << 50,
     .description = "most that all files together may hold, bytes"},
    {.name = "mode",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "0755",
     .maximum = 07777,
     .description = "permissions of the root directory, octal with a leading 0"},
    {0},
};

static const struct layout_type types[] = {
    {.name = "memory", .description = "everything in memory, nothing kept: the floor"},
    {0},
};

/* --- nodes ------------------------------------------------------------------------------------ */

static struct memory_node *node_at(const struct memory *memory, uint64_t ino) {
    return ino < memory->node_slots ? memory->nodes[ino] : NULL;
}

/* Doubles the array of nodes, and with it the stack of free numbers, which holds at most as many.
 */
static int grow_nodes(struct memory *memory) {
    uint64_t slots = memory->node_slots ? memory->node_slots * 2 : 1024;
    struct memory_node **nodes = realloc(memory->nodes, slots * sizeof(*nodes));

    if (!nodes)
        return -ENOSPC;
    memset(nodes + memory->node_slots, 0, (slots - memory->node_slots) * sizeof(*nodes));
    memory->nodes = nodes;
    uint64_t *numbers = realloc(memory->free_numbers, slots * sizeof(*numbers));
    if (!numbers)
        return -ENOSPC;
    memory->free_numbers = numbers;
    memory->node_slots = slots;
    return 0;
}

static int node_new(struct memory *memory, struct memory_node **out) {
    if (memory->free_count == 0 && memory->next_number >= memory->node_slots) {
        int error = grow_nodes(memory);
        if (error)
            return error;
    }
    struct memory_node *node = calloc(1, sizeof(*node));
    if (!node)
        return -ENOSPC;
    node->ino =
        memory->free_count ? memory->free_numbers[--memory->free_count] : memory->next_number++;
    memory->nodes[node->ino] = node;
    memory->node_count++;
    *out = node;
    return 0;
}

static void node_free(struct memory *memory, struct memory_node *node) {
    memory_data_free(memory, node);
    memory_dir_free(node);
    memory_xattr_free(node);
    free(node->target);
    memory->nodes[node->ino] = NULL;
    memory->node_count--;
    memory->free_numbers[memory->free_count++] = node->ino;
    free(node);
}

/* --- inodes ----------------------------------------------------------------------------------- */

static void copy_attributes(struct inode *to, const struct inode *from) {
    to->size = from->size;
    to->sectors = from->sectors;
    to->atime = from->atime;
    to->mtime = from->mtime;
    to->ctime = from->ctime;
    to->btime = from->btime;
    to->generation = from->generation;
    to->mode = from->mode;
    to->uid = from->uid;
    to->gid = from->gid;
    to->nlink = from->nlink;
    to->rdev = from->rdev;
    to->flags = from->flags;
    to->project = from->project;
}

static void attach(struct inode *inode, struct memory_node *node) {
    ((struct memory_inode *)inode_private(inode))->node = node;
}

static int inode_load(struct inode *inode) {
    struct memory_node *node = node_at(memory_of(inode->volume), inode->ino);

    if (!node)
        return -ESTALE;
    copy_attributes(inode, &node->attributes);
    attach(inode, node);
    return 0;
}

static int memory_inode_store(struct inode *inode) {
    copy_attributes(&memory_node_of(inode)->attributes, inode);
    return 0;
}

static int inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct memory *memory = memory_of(dir->volume);
    struct memory_node *node;
    int error = node_new(memory, &node);

    if (error)
        return error;
    inode->ino = node->ino;
    inode->generation = ++memory->generation;
    attach(inode, node);
    if (S_ISDIR(inode->mode))
        memory_dir_init(node, dir->ino);
    return 0;
}

static int inode_free(struct inode *inode) {
    node_free(memory_of(inode->volume), memory_node_of(inode));
    return 0;
}

static int symlink_write(struct inode *inode, const char *target, uint32_t length) {
    memory_node_of(inode)->target = strndup(target, length);
    return memory_node_of(inode)->target ? 0 : -ENOSPC;
}

static int symlink_read(struct inode *inode, char *target) {
    memcpy(target, memory_node_of(inode)->target, inode->size);
    return 0;
}

/* --- life of a volume ------------------------------------------------------------------------ */

static int make_root(struct volume *volume, uint32_t permissions) {
    struct memory_node *node;
    int error = node_new(memory_of(volume), &node);

    if (error)
        return error;
    struct timestamp now = clock_calendar(volume->clock);
    node->attributes.mode = S_IFDIR | permissions;
    node->attributes.nlink = 2;
    node->attributes.atime = node->attributes.mtime = now;
    node->attributes.ctime = node->attributes.btime = now;
    memory_dir_init(node, node->ino);
    volume->root_ino = node->ino;
    return 0;
}

static int memory_unmount(struct volume *volume) {
    struct memory *memory = memory_of(volume);

    for (uint64_t ino = 0; ino < memory->node_slots; ino++) {
        if (memory->nodes[ino])
            node_free(memory, memory->nodes[ino]);
    }
    recycle_drain(&memory->pages);
    recycle_drain(&memory->page_data);
    free(memory->nodes);
    free(memory->free_numbers);
    free(memory);
    return 0;
}

static int memory_mount(struct volume *volume, const struct options *given) {
    struct memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return -ENOMEM;
    memory->total_pages = (uint64_t)options_number(given, "size") / PAGE_SIZE_BYTES;
    memory->pages.size = sizeof(struct memory_page);
    memory->page_data.size = PAGE_SIZE_BYTES;
    memory->next_number = ROOT_INO;
    volume->layout_data = memory;
    volume->limits = (struct layout_limits){
        .file_size_max = (uint64_t)INT64_MAX & ~(uint64_t)(PAGE_SIZE_BYTES - 1),
        .link_max = UINT32_MAX,
        .subdir_max = UINT32_MAX,
        .symlink_max = PAGE_SIZE_BYTES - 1,
        .time_granularity_ns = 1,
        .time_min = {INT64_MIN, 0},
        .time_max = {INT64_MAX, 999999999},
        .projects = true,
    };
    int error = make_root(volume, (uint32_t)options_number(given, "mode"));
    if (error)
        memory_unmount(volume);
    return error;
}

static int memory_statfs(struct volume *volume, struct volume_usage *usage) {
    const struct memory *memory = memory_of(volume);

    *usage = (struct volume_usage){
        .block_size = PAGE_SIZE_BYTES,
        .blocks = memory->total_pages,
        .free = memory->total_pages - memory->used_pages,
        .available = memory->total_pages - memory->used_pages,
        .name_max = NAME_LENGTH_MAX,
    };
    return 0;
}

const struct layout memory_layout = {
    .name = "memory",
    .description = "keeps everything in memory: the cost of all that is not layout",
    .types = types,
    .options = options,
    .flags = LAYOUT_VOLATILE,
    .inode_private_size = sizeof(struct memory_inode),
    .mount = memory_mount,
    .unmount = memory_unmount,
    .statfs = memory_statfs,
    .inode_load = inode_load,
    .inode_store = memory_inode_store,
    .inode_create = inode_create,
    .inode_free = inode_free,
    .dir_find = memory_dir_find,
    .dir_insert = memory_dir_insert,
    .dir_remove = memory_dir_remove,
    .dir_rename = memory_dir_rename,
    .dir_iterate = memory_dir_iterate,
    .dir_empty = memory_dir_empty,
    .symlink_write = symlink_write,
    .symlink_read = symlink_read,
    .reserve = memory_reserve,
    .load = memory_load,
    .store = memory_store,
    .truncate = memory_truncate,
    .punch = memory_punch,
    .preallocate = memory_reserve,
    .collapse = memory_collapse,
    .insert = memory_insert,
    .map = memory_map,
    .xattr_get = memory_xattr_get,
    .xattr_set = memory_xattr_set,
    .xattr_remove = memory_xattr_remove,
    .xattr_list = memory_xattr_list,
};

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface and invariants: layouts/nilfs/file.h.
 *
 * A block that changes for the first time since the last checkpoint gets a new pointer: its old
 * place on disk belongs to earlier checkpoints. Here is that step, once for data and once for
 * nodes; what it means for the nodes above is bmap.c's.
 */
#include "layouts/nilfs/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/layout.h"

#define GOAL_DISTANCE_MAX 7u  /* keys, between which new pointers keep the distance of the keys */
#define DAT_AHEAD         16u /* blocks of the DAT read at once; as many as the driver reads */

int nilfs_block_compare(const struct nilfs_block *a, const struct nilfs_block *b) {
    return (a->key > b->key) - (a->key < b->key);
}

RB_GENERATE(nilfs_block_tree, nilfs_block, link, nilfs_block_compare)

/* --- life ------------------------------------------------------------------------------------- */

int nilfs_file_new(struct nilfs *nilfs, uint64_t ino, uint64_t cno, enum nilfs_pointers pointers,
                   const struct nilfs_disk_inode *map, struct nilfs_file **result) {
    int rc = 0;

    pthread_mutex_lock(&nilfs->files_mutex);
    struct nilfs_file *file = slab_take(&nilfs->files_memory);
    pthread_mutex_unlock(&nilfs->files_mutex);
    if (!file)
        return -ENOMEM;
    file->nilfs = nilfs;
    file->ino = ino;
    file->cno = cno;
    file->pointers = pointers;
    file->references = 1;
    if (!nilfs_file_is_users(file) && !nilfs_changes_take(file))
        rc = -ENOMEM;
    if (map) {
        uint32_t mode = le16_load(map->i_mode);
        file->bmap = map->i_bmap;
        file->sectors = le64_load(map->i_blocks);
        file->device = S_ISCHR(mode) || S_ISBLK(mode);
        if (!file->device && !rc)
            rc = nilfs_bmap_check(file);
    }
    if (rc)
        nilfs_file_put(file);
    else
        *result = file;
    return rc;
}

void nilfs_file_hold(struct nilfs_file *file) {
    pthread_mutex_lock(&file->nilfs->files_mutex);
    file->references++;
    pthread_mutex_unlock(&file->nilfs->files_mutex);
}

static void block_drop(struct nilfs_block *block);

static void blocks_drop(struct nilfs_block_tree *tree) {
    while (!RB_EMPTY(tree))
        block_drop(RB_ROOT(tree));
}

void nilfs_file_put(struct nilfs_file *file) {
    if (!file)
        return;
    struct nilfs *nilfs = file->nilfs;
    pthread_mutex_lock(&nilfs->files_mutex);
    bool last = --file->references == 0;
    pthread_mutex_unlock(&nilfs->files_mutex);
    if (!last)
        return;
    if (file->changes) {
        blocks_drop(&file->changes->data);
        blocks_drop(&file->changes->nodes);
        nilfs_changes_release(file);
    }
    nilfs_dir_index_free(file->index);
    pthread_mutex_lock(&nilfs->files_mutex);
    slab_give(&nilfs->files_memory, file);
    pthread_mutex_unlock(&nilfs->files_mutex);
}

/* --- the trees of changed blocks -------------------------------------------------------------- */

static struct nilfs_block **recent_slot(struct nilfs_changes *changes, uint64_t offset) {
    return &changes->hints.recent[offset % NILFS_RECENT_BLOCKS];
}

static struct nilfs_block *data_find(struct nilfs_file *file, uint64_t offset) {
    struct nilfs_changes *changes = file->changes;

    if (!changes)
        return NULL;
    struct nilfs_block *recent = *recent_slot(changes, offset);
    if (recent && recent->key == offset)
        return recent;
    return RB_FIND(nilfs_block_tree, &changes->data, &(struct nilfs_block){.key = offset});
}

static struct nilfs_block *node_find(struct nilfs_file *file, uint64_t pointer) {
    struct nilfs_changes *changes = file->changes;

    return changes
               ? RB_FIND(nilfs_block_tree, &changes->nodes, &(struct nilfs_block){.key = pointer})
               : NULL;
}

/* Memory for a changed block that is in no tree yet, of a file that is dirty from now on; its bytes
 * are undefined. NULL: none. */
static struct nilfs_block *block_new(struct nilfs_file *file, uint32_t level) {
    struct nilfs *nilfs = file->nilfs;
    struct nilfs_block *block = NULL;

    if (nilfs_file_mark_dirty(file) == 0)
        block = recycle_get(&nilfs->block_records);
    if (!block)
        return NULL;
    block->data = recycle_get_dirty(&nilfs->block_memory);
    if (!block->data) {
        recycle_put(&nilfs->block_records, block);
        return NULL;
    }
    block->file = file;
    block->level = level;
    return block;
}

static void block_recycle(struct nilfs_block *block) {
    struct nilfs *nilfs = block->file->nilfs;

    recycle_put(&nilfs->block_memory, block->data);
    recycle_put(&nilfs->block_records, block);
}

static void block_add(struct nilfs_block *block, uint64_t key, uint64_t pointer) {
    struct nilfs_changes *changes = block->file->changes;

    block->key = key;
    block->pointer = pointer;
    if (block->level == NILFS_NODE_LEVEL_DATA) {
        RB_INSERT(nilfs_block_tree, &changes->data, block);
        *recent_slot(changes, key) = block;
        changes->changed_data++;
    } else {
        RB_INSERT(nilfs_block_tree, &changes->nodes, block);
        changes->changed_nodes++;
    }
    block->file->nilfs->dirty_blocks++;
}

static void block_drop(struct nilfs_block *block) {
    struct nilfs_changes *changes = block->file->changes;

    if (block->level == NILFS_NODE_LEVEL_DATA) {
        if (*recent_slot(changes, block->key) == block)
            *recent_slot(changes, block->key) = NULL;
        RB_REMOVE(nilfs_block_tree, &changes->data, block);
        changes->changed_data--;
        changes->generation++;
    } else {
        if (changes->hints.leaf == block)
            changes->hints.leaf = NULL;
        RB_REMOVE(nilfs_block_tree, &changes->nodes, block);
        changes->changed_nodes--;
    }
    block->file->nilfs->dirty_blocks--;
    block_recycle(block);
}

/* --- counts ----------------------------------------------------------------------------------- */

static bool file_is_counted(const struct nilfs_file *file) {
    return nilfs_file_is_users(file) || file->ino == NILFS_IFILE_INO;
}

static void count_made(struct nilfs_file *file) {
    file->sectors += file->nilfs->geometry.sectors_per_block;
    if (file_is_counted(file))
        file->nilfs->blocks_count++;
}

static uint64_t less(uint64_t a, uint64_t b) { /* what the disk said may have been too little */
    return a > b ? a - b : 0;
}

static void count_freed(struct nilfs_file *file) {
    file->sectors = less(file->sectors, file->nilfs->geometry.sectors_per_block);
    if (file_is_counted(file))
        file->nilfs->blocks_count = less(file->nilfs->blocks_count, 1);
}

/* --- pointers --------------------------------------------------------------------------------- */

int nilfs_file_address(struct nilfs_file *file, uint64_t pointer, uint64_t *block) {
    struct nilfs *nilfs = file->nilfs;

    if (file->pointers != NILFS_PHYSICAL)
        return nilfs_dat_lookup(nilfs, pointer, block);
    if (!nilfs_block_valid(&nilfs->geometry, pointer))
        return nilfs_corrupt(nilfs,
                             "the DAT's block map points at block %" PRIu64
                             ", which is in no segment; the volume must be restored from a copy",
                             pointer);
    *block = pointer;
    return 0;
}

static int pointer_new(struct nilfs_file *file, uint64_t goal, uint64_t *pointer) {
    if (file->pointers != NILFS_PHYSICAL)
        return nilfs_dat_allocate(file->nilfs, file->ino, goal, pointer);
    *pointer = NILFS_STAND_IN | ++file->changes->stand_ins;
    return 0;
}

static int pointer_end(struct nilfs_file *file, uint64_t pointer) {
    if (file->pointers == NILFS_PHYSICAL)
        return 0;
    return nilfs_dat_end(file->nilfs, pointer, file->pointers == NILFS_SINGLE);
}

/* A new pointer for the data block at `offset`. Neighbours in the file are to be neighbours in the
 * DAT, which are looked up together. `old`: what it had, or 0. */
static int data_pointer_new(struct nilfs_file *file, uint64_t offset, uint64_t old,
                            uint64_t *pointer) {
    struct nilfs_changes *changes = nilfs_changes_take(file);
    uint64_t goal = old ? old + 1 : 0;

    if (!changes)
        return -ENOMEM;
    struct nilfs_hints *hints = &changes->hints;
    if (hints->pointer && offset + GOAL_DISTANCE_MAX >= hints->key &&
        offset <= hints->key + GOAL_DISTANCE_MAX && hints->pointer > GOAL_DISTANCE_MAX)
        goal = hints->pointer + offset - hints->key; /* modulo 2^64, but in range */
    int rc = pointer_new(file, goal, pointer);
    if (rc == 0) {
        hints->key = offset;
        hints->pointer = *pointer;
    }
    return rc;
}

/* A pointer that has not got into the map is given back. */
static int pointer_unused(struct nilfs_file *file, uint64_t pointer, int error) {
    int rc = pointer_end(file, pointer);

    return rc ? nilfs_fail(file->nilfs, error) : error;
}

/* The map's pointer at `offset` gives way to a new one. */
static int pointer_replace(struct nilfs_file *file, uint64_t offset, uint64_t old,
                           uint64_t *pointer) {
    int rc = data_pointer_new(file, offset, old, pointer);

    if (rc)
        return rc;
    rc = nilfs_bmap_set(file, offset, *pointer);
    if (rc)
        return pointer_unused(file, *pointer, rc);
    rc = pointer_end(file, old);
    return rc ? nilfs_fail(file->nilfs, rc) : 0;
}

/* A hole gets a pointer. */
static int pointer_insert(struct nilfs_file *file, uint64_t offset, uint64_t *pointer) {
    int rc = data_pointer_new(file, offset, 0, pointer);

    if (rc)
        return rc;
    rc = nilfs_bmap_insert(file, offset, *pointer);
    if (rc)
        return pointer_unused(file, *pointer, rc);
    count_made(file);
    return 0;
}

/* --- data ------------------------------------------------------------------------------------- */

static void charge(const struct nilfs_file *file) {
    /* As for a buffer that is in the cache. */
    clock_charge(file->nilfs->volume->clock, COST_BUFFER, 1);
}

static int clean_read(struct nilfs_file *file, uint64_t pointer, enum purpose purpose,
                      struct nilfs_view *view) {
    uint64_t address;
    int rc = nilfs_file_address(file, pointer, &address);

    if (rc == 0)
        rc = buffer_get(file->nilfs->buffers, address, purpose, &view->buffer);
    if (rc)
        return rc;
    view->data = buffer_data(view->buffer);
    view->changed = NULL;
    return 0;
}

/* The block at `offset`, clean, is about to be read: of the DAT, which a file read or written in
 * order asks for block after block, those behind it are read with it. What cannot be looked up is
 * left to who needs it. */
static void read_ahead(struct nilfs_file *file, uint64_t offset, uint64_t block,
                       enum purpose purpose) {
    struct buffer_cache *buffers = file->nilfs->buffers;
    struct buffer *cached = buffer_peek(buffers, block);
    uint64_t blocks[DAT_AHEAD];

    buffer_put(cached);
    if (cached)
        return;
    int found = nilfs_bmap_lookup_run(file, offset, blocks, DAT_AHEAD, NULL);
    for (int i = 0, length; i < found; i += length) {
        for (length = 1; i + length < found && blocks[i + length] == blocks[i] + (uint64_t)length;)
            length++;
        /* A changed block has a stand-in for a place. */
        if (nilfs_block_valid(&file->nilfs->geometry, blocks[i]))
            buffer_prefetch(buffers, blocks[i], (uint32_t)length, purpose);
    }
}

/* A clean data block of a metadata file or a directory. */
static int clean_data_read(struct nilfs_file *file, uint64_t offset, uint64_t pointer,
                           enum purpose purpose, struct nilfs_view *view) {
    if (file->ino == NILFS_DAT_INO)
        read_ahead(file, offset, pointer, purpose);
    return clean_read(file, pointer, purpose, view);
}

static void changed_view(struct nilfs_block *block, struct nilfs_view *view) {
    charge(block->file);
    *view = (struct nilfs_view){.data = block->data, .changed = block};
}

int nilfs_file_read(struct nilfs_file *file, uint64_t offset, enum purpose purpose,
                    struct nilfs_view *view) {
    struct nilfs_block *block = data_find(file, offset);
    uint64_t pointer;

    if (block) {
        changed_view(block, view);
        return 0;
    }
    int rc = nilfs_bmap_lookup(file, offset, &pointer);
    return rc ? rc : clean_data_read(file, offset, pointer, purpose, view);
}

/* What the file's data are to the statistics of the device. */
static enum purpose file_purpose(const struct nilfs_file *file) {
    switch (file->ino) {
    case NILFS_DAT_INO:
        return PURPOSE_MAP;
    case NILFS_IFILE_INO:
        return PURPOSE_INODE;
    case NILFS_CPFILE_INO:
    case NILFS_SUFILE_INO:
        return PURPOSE_OTHER;
    default:
        return PURPOSE_DIR;
    }
}

/* A clean block becomes a changed one. */
static int data_copy(struct nilfs_file *file, uint64_t offset, struct nilfs_block **result) {
    struct nilfs_view view;
    uint64_t old, pointer;
    int rc = nilfs_bmap_lookup(file, offset, &old);

    if (rc == 0)
        rc = clean_data_read(file, offset, old, file_purpose(file), &view);
    if (rc)
        return rc;
    struct nilfs_block *block = block_new(file, NILFS_NODE_LEVEL_DATA);
    if (block)
        memcpy(block->data, view.data, file->nilfs->geometry.block_size);
    nilfs_view_put(&view);
    if (!block)
        return -ENOMEM;
    rc = pointer_replace(file, offset, old, &pointer);
    if (rc) {
        block_recycle(block);
        return rc;
    }
    block_add(block, offset, pointer);
    *result = block;
    return 0;
}

static int data_make(struct nilfs_file *file, uint64_t offset, struct nilfs_block **result) {
    struct nilfs_block *block = block_new(file, NILFS_NODE_LEVEL_DATA);
    uint64_t pointer;

    if (!block)
        return -ENOMEM;
    int rc = pointer_insert(file, offset, &pointer);
    if (rc) {
        block_recycle(block);
        return rc;
    }
    memset(block->data, 0, file->nilfs->geometry.block_size);
    block_add(block, offset, pointer);
    *result = block;
    return 0;
}

static int data_change(struct nilfs_file *file, uint64_t offset, struct nilfs_block **block) {
    *block = data_find(file, offset);
    if (!*block)
        return data_copy(file, offset, block);
    charge(file);
    *recent_slot(file->changes, offset) = *block;
    return 0;
}

int nilfs_file_change(struct nilfs_file *file, uint64_t offset, uint8_t **data) {
    struct nilfs_block *block;
    int rc = data_change(file, offset, &block);

    if (rc == 0)
        *data = block->data;
    return rc;
}

int nilfs_file_make(struct nilfs_file *file, uint64_t offset, uint8_t **data, bool *made) {
    struct nilfs_block *block;
    int rc = data_change(file, offset, &block);
    bool hole = rc == -ENOENT;

    if (hole)
        rc = data_make(file, offset, &block);
    if (rc)
        return rc;
    *data = block->data;
    if (made)
        *made = hole;
    return 0;
}

static int data_free(struct nilfs_file *file, uint64_t offset) {
    struct nilfs_block *block = data_find(file, offset);
    uint64_t pointer;
    int rc = nilfs_bmap_lookup(file, offset, &pointer);

    if (rc == 0)
        rc = nilfs_bmap_delete(file, offset);
    if (rc)
        return rc;
    count_freed(file);
    if (block)
        block_drop(block);
    rc = pointer_end(file, pointer);
    return rc ? nilfs_fail(file->nilfs, rc) : 0;
}

int nilfs_file_free(struct nilfs_file *file, uint64_t from, uint64_t to) {
    uint64_t offset;
    int rc;

    /* Backwards: nothing in a node has to move up. */
    while ((rc = nilfs_bmap_before(file, to, &offset)) == 0 && offset >= from) {
        rc = data_free(file, offset);
        if (rc)
            return rc;
    }
    return rc == -ENOENT ? 0 : rc;
}

int nilfs_file_renew(struct nilfs_file *file, uint64_t offset, uint64_t *pointer) {
    uint64_t old;
    int rc = nilfs_bmap_lookup(file, offset, &old);

    assert(!data_find(file, offset));
    if (rc == 0)
        return pointer_replace(file, offset, old, pointer);
    return rc == -ENOENT ? pointer_insert(file, offset, pointer) : rc;
}

int nilfs_block_settle(struct nilfs_block *changed, uint64_t block, struct buffer **buffer) {
    struct nilfs *nilfs = changed->file->nilfs;
    bool node = changed->level != NILFS_NODE_LEVEL_DATA;
    enum purpose purpose = node ? PURPOSE_MAP : file_purpose(changed->file);
    int rc = buffer_get_zeroed(nilfs->buffers, block, purpose, buffer);

    if (rc)
        return rc;
    memcpy(buffer_data(*buffer), changed->data, nilfs->geometry.block_size);
    (*buffer)->pinned = true;
    (*buffer)->checked = node;
    block_drop(changed);
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int node_corrupt(const struct nilfs_file *file, uint64_t block, const char *what) {
    return nilfs_corrupt(file->nilfs,
                         "the B-tree node of inode %" PRIu64 " in block %" PRIu64
                         " is damaged: %s; delete the file, or restore the volume from a copy",
                         file->ino, block, what);
}

/* Everything but the level, which only the parent knows. */
static int node_check(const struct nilfs_file *file, const struct buffer *buffer) {
    const struct nilfs_geometry *g = &file->nilfs->geometry;
    const struct nilfs_disk_node *header = buffer_data(buffer);
    const le64 *keys = (const le64 *)(header + 2), *pointers = keys + g->node_children;
    uint32_t count = le16_load(header->nchildren);

    if (header->flags & NILFS_NODE_FLAG_ROOT)
        return node_corrupt(file, buffer->block, "it says that it is a root");
    if (count == 0 || count > g->node_children)
        return node_corrupt(file, buffer->block, "its number of children cannot be");
    for (uint32_t i = 1; i < count; i++)
        if (le64_load(keys[i - 1]) >= le64_load(keys[i]))
            return node_corrupt(file, buffer->block, "its keys do not ascend");
    /* Not even as long as nobody follows them: they might look like stand-ins. */
    for (uint32_t i = 0; i < count && file->pointers == NILFS_PHYSICAL; i++)
        if (!nilfs_block_valid(g, le64_load(pointers[i])))
            return node_corrupt(file, buffer->block, "it points at a block that is in no segment");
    return 0;
}

int nilfs_node_read(struct nilfs_file *file, uint64_t pointer, uint32_t level,
                    struct nilfs_view *view) {
    struct nilfs_block *block = node_find(file, pointer);
    int rc = 0;

    if (block)
        changed_view(block, view);
    else
        rc = clean_read(file, pointer, PURPOSE_MAP, view);
    if (rc)
        return rc;
    if (((const struct nilfs_disk_node *)view->data)->level != level)
        rc = node_corrupt(file, block ? pointer : view->buffer->block,
                          "its level is not what its parent's says");
    else if (!block && !view->buffer->checked)
        rc = node_check(file, view->buffer);
    if (rc)
        nilfs_view_put(view);
    else if (!block && !view->buffer->checked)
        view->buffer->checked = true;
    return rc;
}

int nilfs_node_change(struct nilfs_file *file, uint64_t pointer, uint32_t level,
                      struct nilfs_block **result) {
    struct nilfs_view view;
    uint64_t renewed;
    int rc = nilfs_node_read(file, pointer, level, &view);

    if (rc)
        return rc;
    if (view.changed) {
        *result = view.changed;
        return 0;
    }
    struct nilfs_block *block = block_new(file, level);
    if (block)
        memcpy(block->data, view.data, file->nilfs->geometry.block_size);
    nilfs_view_put(&view);
    if (!block)
        return -ENOMEM;
    rc = pointer_new(file, pointer + 1, &renewed);
    if (rc == 0)
        rc = pointer_end(file, pointer);
    if (rc) {
        block_recycle(block);
        return rc;
    }
    block_add(block, renewed, renewed);
    *result = block;
    return 0;
}

int nilfs_node_make(struct nilfs_file *file, uint32_t level, uint64_t goal,
                    struct nilfs_block **result) {
    struct nilfs_block *block = block_new(file, level);
    uint64_t pointer;

    if (!block)
        return -ENOMEM;
    int rc = pointer_new(file, goal, &pointer);
    if (rc) {
        block_recycle(block);
        return rc;
    }
    memset(block->data, 0, file->nilfs->geometry.block_size);
    ((struct nilfs_disk_node *)block->data)->level = (uint8_t)level;
    block_add(block, pointer, pointer);
    count_made(file);
    *result = block;
    return 0;
}

int nilfs_node_free(struct nilfs_file *file, uint64_t pointer) {
    struct nilfs_block *block = node_find(file, pointer);

    if (block)
        block_drop(block);
    count_freed(file);
    return pointer_end(file, pointer);
}

void nilfs_node_rename(struct nilfs_block *node, uint64_t pointer) {
    struct nilfs_block_tree *nodes = &node->file->changes->nodes;

    RB_REMOVE(nilfs_block_tree, nodes, node);
    node->key = node->pointer = pointer;
    RB_INSERT(nilfs_block_tree, nodes, node);
}

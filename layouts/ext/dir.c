/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the block map (indirect.c) and the buffer cache.
 * Directories: the entries of the contract's namespace functions, and the linear form. Directories
 * with an index go through htree.c.
 *
 * Invariants:
 *  1. A block is validated before its entries are used, and once: buffer->checked.
 *  2. Removal merges an entry with the one before it, so that entries never move.
 *  3. insert_hint: no block before it has got more room since the last insertion there; a removal
 *     lowers it.
 *  4. rename inserts the new name before it removes the old one, so that running out of space
 *     changes nothing.
 */
#include "layouts/ext/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_PREFETCH_BLOCKS 8u

/* --- entries --------------------------------------------------------------------------------- */

static uint8_t dirent_type_of(const struct ext *ext, uint32_t mode) {
    static const uint8_t types[16] = {
        [S_IFIFO >> 12] = EXT_FT_FIFO,  [S_IFCHR >> 12] = EXT_FT_CHR,
        [S_IFDIR >> 12] = EXT_FT_DIR,   [S_IFBLK >> 12] = EXT_FT_BLK,
        [S_IFREG >> 12] = EXT_FT_REG,   [S_IFLNK >> 12] = EXT_FT_SYMLINK,
        [S_IFSOCK >> 12] = EXT_FT_SOCK,
    };

    if (!(ext->geometry.incompat & EXT_INCOMPAT_FILETYPE))
        return EXT_FT_UNKNOWN; /* the byte is the high half of the name's length */
    return types[(mode & S_IFMT) >> 12];
}

static uint32_t dirent_mode(uint8_t type) {
    static const uint32_t modes[] = {
        [EXT_FT_UNKNOWN] = 0,     [EXT_FT_REG] = S_IFREG,     [EXT_FT_DIR] = S_IFDIR,
        [EXT_FT_CHR] = S_IFCHR,   [EXT_FT_BLK] = S_IFBLK,     [EXT_FT_FIFO] = S_IFIFO,
        [EXT_FT_SOCK] = S_IFSOCK, [EXT_FT_SYMLINK] = S_IFLNK,
    };

    return type < sizeof(modes) / sizeof(modes[0]) ? modes[type] : 0;
}

static void dirent_write(struct ext_disk_dirent *entry, uint32_t size,
                         const struct ext_dir_name *name) {
    le32_store(&entry->inode, name->ino);
    le16_store(&entry->rec_len, (uint16_t)size);
    entry->name_len = (uint8_t)name->length;
    entry->file_type = name->type;
    memcpy(entry->name, name->name, name->length);
}

static inline uint64_t name_tail(const char *name, uint32_t length) {
    uint64_t tail;

    memcpy(&tail, name + length - sizeof(tail), sizeof(tail));
    return tail;
}

static inline bool dirent_matches(const struct ext_disk_dirent *entry, const char *name,
                                  uint32_t length) {
    if (entry->name_len != length || le32_load(entry->inode) == 0)
        return false;
    /* The end first: names of one directory tend to begin alike ("img0001.jpg"). */
    if (length >= sizeof(uint64_t) && name_tail(entry->name, length) != name_tail(name, length))
        return false;
    return memcmp(entry->name, name, length) == 0;
}

bool ext_dir_emit(const struct ext_disk_dirent *entry, uint64_t cookie, dir_visit visit,
                  void *context) {
    struct dir_entry out = {
        .name = entry->name,
        .name_length = entry->name_len,
        .ino = le32_load(entry->inode),
        .type = dirent_mode(entry->file_type),
        .cookie = cookie,
    };

    return visit(context, &out);
}

/* --- blocks ---------------------------------------------------------------------------------- */

void ext_dir_block_clear(struct ext *ext, void *block) {
    struct ext_disk_dirent *entry = block;

    memset(block, 0, ext->geometry.block_size);
    le16_store(&entry->rec_len, (uint16_t)ext_dir_block_room(&ext->geometry));
    ext_dir_tail_write(&ext->geometry, block);
}

void ext_dir_block_changed(struct inode *dir, struct buffer *buffer) {
    struct ext *ext = ext_of(dir->volume);

    ext_dir_checksum_set(&ext->geometry, dir->ino, dir->generation, buffer_data(buffer));
    ext_dirty(ext, buffer);
}

void ext_dir_block_dots(struct ext *ext, void *block, uint32_t room, uint64_t ino,
                        uint64_t parent_ino) {
    struct ext_dir_name dot = {".", 1, (uint32_t)ino, dirent_type_of(ext, S_IFDIR)};
    struct ext_dir_name dotdot = {"..", 2, (uint32_t)parent_ino, dot.type};
    char *bytes = block;

    dirent_write((struct ext_disk_dirent *)bytes, EXT_DIRENT_MIN, &dot);
    dirent_write((struct ext_disk_dirent *)(bytes + EXT_DIRENT_MIN), room - EXT_DIRENT_MIN,
                 &dotdot);
}

/* What is wrong with the entry, or NULL. */
static const char *dirent_fault(const struct ext *ext, const struct ext_disk_dirent *entry,
                                uint32_t room) {
    uint32_t size = le16_load(entry->rec_len);
    uint32_t ino = le32_load(entry->inode);

    if (size < EXT_DIRENT_MIN || size % 4 != 0)
        return "its length is not a multiple of 4 of at least 12";
    if (size > room)
        return "it reaches beyond the block";
    if (size < ext_dirent_size(entry->name_len))
        return "its name is longer than it is";
    if (ino == 0)
        return NULL;
    if (!ext_inode_number_valid(&ext->geometry, ino))
        return "its inode number is out of range";
    if (entry->name_len == 0)
        return "it has no name";
    if (memchr(entry->name, '/', entry->name_len) || memchr(entry->name, 0, entry->name_len))
        return "its name holds a slash or a zero byte";
    return NULL;
}

/* What is wrong with the two entries that a directory begins with, or NULL. */
static const char *dots_fault(const struct inode *dir, char *block, uint32_t block_size) {
    struct ext_disk_dirent *dot = ext_dirent_at(block, block_size, 0);
    struct ext_disk_dirent *dotdot =
        dot ? ext_dirent_at(block, block_size, le16_load(dot->rec_len)) : NULL;

    if (!dot || dot->name_len != 1 || dot->name[0] != '.' || le32_load(dot->inode) != dir->ino)
        return "it is not \".\" for the directory itself";
    if (!dotdot || dotdot->name_len != 2 || memcmp(dotdot->name, "..", 2) != 0 ||
        le32_load(dotdot->inode) == 0)
        return "it is not followed by \"..\"";
    return NULL;
}

static const char *entries_fault(const struct ext *ext, char *block, uint32_t *offset) {
    uint32_t block_size = ext->geometry.block_size;

    for (*offset = 0; *offset < block_size;) {
        const struct ext_disk_dirent *entry = (struct ext_disk_dirent *)(block + *offset);
        uint32_t room = block_size - *offset;
        const char *fault =
            room < EXT_DIRENT_MIN ? "the block ends inside it" : dirent_fault(ext, entry, room);
        if (fault)
            return fault;
        *offset += le16_load(entry->rec_len);
    }
    *offset = 0;
    return NULL;
}

int ext_dir_block_get(struct inode *dir, uint64_t logical, struct buffer **buffer) {
    struct ext *ext = ext_of(dir->volume);
    uint64_t physical, count;
    uint32_t offset = 0;
    const char *fault = NULL;

    int rc = ext_bmap(dir, logical, &physical, &count);
    if (rc < 0)
        return rc;
    if (physical == 0)
        return ext_corrupt(
            ext, "directory inode %" PRIu64 ": block %" PRIu64 " is a hole; a directory has none",
            dir->ino, logical);
    rc = buffer_get(ext->buffers, physical, PURPOSE_DIR, buffer);
    if (rc < 0)
        return rc;
    /* A damaged volume may use one block for two things; then the other's check says nothing. */
    if (!(*buffer)->checked || (*buffer)->purpose != PURPOSE_DIR) {
        fault = entries_fault(ext, buffer_data(*buffer), &offset);
        if (!fault && !ext_dir_checksum_valid(&ext->geometry, dir->ino, dir->generation,
                                              buffer_data(*buffer)))
            fault = "the block's checksum is wrong";
    }
    if (!fault && logical == 0)
        fault = dots_fault(dir, buffer_data(*buffer), ext->geometry.block_size);
    if (fault) {
        buffer_put(*buffer);
        *buffer = NULL;
        return ext_corrupt(ext,
                           "directory inode %" PRIu64 ", block %" PRIu64 ": entry at byte %u: %s",
                           dir->ino, logical, offset, fault);
    }
    if (!(*buffer)->checked && (*buffer)->purpose == PURPOSE_DIR)
        (*buffer)->checked = true;
    return 0;
}

int ext_dir_inline_get(struct inode *dir, char *block) {
    struct ext *ext = ext_of(dir->volume);
    struct buffer *buffer;
    struct ext_disk_inode *record;
    uint32_t offset = 0;

    int rc = ext_inode_record(ext, dir->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    const char *fault = ext_inline_dir_block(ext, dir->ino, record, block);
    buffer_put(buffer);
    if (!fault)
        fault = entries_fault(ext, block, &offset);
    if (!fault)
        fault = dots_fault(dir, block, ext->geometry.block_size);
    if (!fault)
        return 0;
    return ext_corrupt(ext, "directory inode %" PRIu64 ", in the inode: entry at byte %u: %s",
                       dir->ino, offset, fault);
}

/* Starts reading what a walk through the directory will want next. */
static void dir_prefetch(struct inode *dir, uint64_t logical) {
    uint64_t left = ext_dir_blocks(dir) - logical;
    uint64_t physical, count;

    if (logical % DIR_PREFETCH_BLOCKS != 0 || left < 2)
        return;
    if (ext_bmap(dir, logical, &physical, &count) < 0 || physical == 0)
        return; /* the walk will meet the error */
    if (count > left)
        count = left;
    if (count > DIR_PREFETCH_BLOCKS)
        count = DIR_PREFETCH_BLOCKS;
    buffer_prefetch(ext_of(dir->volume)->buffers, physical, (uint32_t)count, PURPOSE_DIR);
}

/* Gives back blocks that lie beyond the directory's size, after an allocation that failed midway.
 */
static int dir_grow_undo(struct inode *dir, struct buffer **buffers, uint32_t count, int error) {
    for (uint32_t i = 0; i < count; i++)
        buffer_put(buffers[i]);
    ext_truncate(dir, dir->size);
    return error;
}

int ext_dir_grow(struct inode *dir, uint32_t count, uint64_t *logical, struct buffer **buffers) {
    struct ext *ext = ext_of(dir->volume);
    uint64_t first = ext_dir_blocks(dir);
    uint64_t size = dir->size + (uint64_t)count * ext->geometry.block_size;

    if (size > UINT32_MAX && !(ext->geometry.incompat & EXT_INCOMPAT_LARGEDIR))
        return -ENOSPC; /* a directory's size has 32 bits */
    for (uint64_t done = 0, step; done < count; done += step) {
        int rc = ext_bmap_allocate(dir, first + done, count - done, &step);
        if (rc < 0)
            return dir_grow_undo(dir, buffers, 0, rc);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t physical, run;
        int rc = ext_bmap(dir, first + i, &physical, &run);
        if (rc == 0)
            rc = buffer_get_zeroed(ext->buffers, physical, PURPOSE_DIR, &buffers[i]);
        if (rc < 0)
            return dir_grow_undo(dir, buffers, i, rc);
        ext_dir_block_clear(ext, buffer_data(buffers[i]));
        buffers[i]->checked = true;
        ext_dir_block_changed(dir, buffers[i]);
    }
    dir->size = size;
    *logical = first;
    return 0;
}

bool ext_dir_block_find(struct ext *ext, void *block, const char *name, uint32_t length,
                        struct ext_dir_slot *slot) {
    uint32_t block_size = ext->geometry.block_size;
    uint32_t offset = 0, previous = 0;
    uint32_t scanned = 0;
    struct ext_disk_dirent *entry;

    while ((entry = ext_dirent_at(block, block_size, offset)) != NULL) {
        scanned++;
        if (dirent_matches(entry, name, length))
            break;
        previous = offset;
        offset += le16_load(entry->rec_len);
    }
    clock_charge(ext->volume->clock, COST_DIR_ENTRY, scanned);
    slot->offset = offset;
    slot->previous = previous;
    return entry != NULL;
}

bool ext_dir_block_insert(struct ext *ext, void *block, const struct ext_dir_name *name) {
    uint32_t room = ext_dir_block_room(&ext->geometry);
    uint32_t needed = ext_dirent_size(name->length);
    uint32_t scanned = 0;
    struct ext_disk_dirent *entry;

    for (uint32_t offset = 0; (entry = ext_dirent_at(block, room, offset)) != NULL;) {
        uint32_t size = le16_load(entry->rec_len);
        uint32_t used = le32_load(entry->inode) != 0 ? ext_dirent_size(entry->name_len) : 0;
        scanned++;
        if (size - used >= needed) {
            if (used != 0)
                le16_store(&entry->rec_len, (uint16_t)used);
            dirent_write((struct ext_disk_dirent *)((char *)entry + used), size - used, name);
            break;
        }
        offset += size;
    }
    clock_charge(ext->volume->clock, COST_DIR_ENTRY, scanned);
    return entry != NULL;
}

static void dir_slot_remove(struct inode *dir, struct ext_dir_slot *slot) {
    char *block = buffer_data(slot->buffer);
    struct ext_disk_dirent *entry = (struct ext_disk_dirent *)(block + slot->offset);
    struct ext_disk_dirent *previous = (struct ext_disk_dirent *)(block + slot->previous);

    if (previous == entry)
        le32_store(&entry->inode, 0);
    else
        le16_store(&previous->rec_len,
                   (uint16_t)(le16_load(previous->rec_len) + le16_load(entry->rec_len)));
    ext_dir_block_changed(dir, slot->buffer);
    if (slot->logical < ext_inode_of(dir)->insert_hint)
        ext_inode_of(dir)->insert_hint = (uint32_t)slot->logical;
}

static struct ext_disk_dirent *dir_slot_entry(const struct ext_dir_slot *slot) {
    return (struct ext_disk_dirent *)((char *)buffer_data(slot->buffer) + slot->offset);
}

/* --- finding --------------------------------------------------------------------------------- */

static int linear_find(struct inode *dir, const char *name, uint32_t length,
                       struct ext_dir_slot *slot) {
    uint64_t blocks = ext_dir_blocks(dir);

    for (slot->logical = 0; slot->logical < blocks; slot->logical++) {
        dir_prefetch(dir, slot->logical);
        int rc = ext_dir_block_get(dir, slot->logical, &slot->buffer);
        if (rc < 0)
            return rc;
        if (ext_dir_block_find(ext_of(dir->volume), buffer_data(slot->buffer), name, length, slot))
            return 0;
        buffer_put(slot->buffer);
    }
    return -ENOENT;
}

/* The entry called `name`. The caller puts slot->buffer after a return of 0. */
static int dir_locate(struct inode *dir, const char *name, uint32_t length,
                      struct ext_dir_slot *slot) {
    if (length == 0 || length > NAME_LENGTH_MAX)
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    /* "." and ".." lie in front of the index, not in it; a linear search begins with them. */
    if (ext_htree_indexed(dir) && !ext_name_is_dot(name, length)) {
        int rc = ext_htree_find(dir, name, length, slot);
        if (rc != EXT_HTREE_UNUSABLE)
            return rc;
    }
    return linear_find(dir, name, length, slot);
}

/* The same, and the entry must name `inode`. */
static int dir_locate_inode(struct inode *dir, const char *name, uint32_t length,
                            const struct inode *inode, struct ext_dir_slot *slot) {
    int rc = dir_locate(dir, name, length, slot);
    if (rc < 0)
        return rc;
    uint32_t ino = le32_load(dir_slot_entry(slot)->inode);
    if (ino == inode->ino)
        return 0;
    rc = ext_corrupt(ext_of(dir->volume),
                     "directory inode %" PRIu64 ", block %" PRIu64
                     ": entry at byte %u names inode %u, expected %" PRIu64,
                     dir->ino, slot->logical, slot->offset, ino, inode->ino);
    buffer_put(slot->buffer);
    return rc;
}

/* In the inode, whatever the form of other directories. */
static int inline_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    char block[PAGE_SIZE_BYTES];
    struct ext_dir_slot slot;

    int rc = ext_dir_inline_get(dir, block);
    if (rc < 0)
        return rc;
    if (!ext_dir_block_find(ext_of(dir->volume), block, name, length, &slot))
        return -ENOENT;
    *ino = le32_load(((struct ext_disk_dirent *)(block + slot.offset))->inode);
    return 0;
}

int ext_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    struct ext_dir_slot slot;

    if (ext_is_inline(dir))
        return inline_find(dir, name, length, ino);
    int rc = dir_locate(dir, name, length, &slot);
    if (rc < 0)
        return rc;
    *ino = le32_load(dir_slot_entry(&slot)->inode);
    buffer_put(slot.buffer);
    return 0;
}

/* --- changing -------------------------------------------------------------------------------- */

static int linear_insert(struct inode *dir, const struct ext_dir_name *name) {
    struct ext *ext = ext_of(dir->volume);
    struct ext_inode *private = ext_inode_of(dir);
    uint64_t blocks = ext_dir_blocks(dir);
    struct buffer *buffer;
    uint64_t logical = private->insert_hint < blocks ? private->insert_hint : 0;
    int rc;

    for (; logical < blocks; logical++) {
        rc = ext_dir_block_get(dir, logical, &buffer);
        if (rc < 0)
            return rc;
        if (ext_dir_block_insert(ext, buffer_data(buffer), name))
            break;
        buffer_put(buffer);
    }
    if (logical == blocks) {
        if (blocks == 1 && ext->geometry.compat & EXT_COMPAT_DIR_INDEX)
            return ext_htree_convert(dir, name);
        rc = ext_dir_grow(dir, 1, &logical, &buffer);
        if (rc < 0)
            return rc;
        ext_dir_block_insert(ext, buffer_data(buffer), name);
    }
    private->insert_hint = (uint32_t)logical;
    ext_dir_block_changed(dir, buffer);
    buffer_put(buffer);
    return 0;
}

int ext_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct ext *ext = ext_of(dir->volume);
    struct ext_dir_name entry = {name, length, (uint32_t)inode->ino,
                                 dirent_type_of(ext, inode->mode)};

    if (length > NAME_LENGTH_MAX)
        return -ENAMETOOLONG;
    int rc = ext_inline_convert(dir);
    if (rc < 0)
        return rc;
    if (ext_dir_blocks(dir) == 0)
        return ext_corrupt(ext, "directory inode %" PRIu64 " has no blocks", dir->ino);
    if (ext_htree_indexed(dir)) {
        rc = ext_htree_insert(dir, &entry);
        if (rc != EXT_HTREE_UNUSABLE)
            return rc;
    }
    rc = ext_htree_drop(dir); /* it would no longer tell the truth */
    return rc < 0 ? rc : linear_insert(dir, &entry);
}

int ext_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct ext_dir_slot slot;

    int rc = ext_inline_convert(dir);
    if (rc == 0)
        rc = dir_locate_inode(dir, name, length, inode, &slot);
    if (rc < 0)
        return rc;
    dir_slot_remove(dir, &slot);
    buffer_put(slot.buffer);
    return 0;
}

static void dir_slot_set(struct inode *dir, const struct ext_dir_slot *slot,
                         const struct inode *inode) {
    struct ext_disk_dirent *entry = dir_slot_entry(slot);

    le32_store(&entry->inode, (uint32_t)inode->ino);
    entry->file_type = dirent_type_of(ext_of(dir->volume), inode->mode);
    ext_dir_block_changed(dir, slot->buffer);
}

/* When `inode` is a directory that goes from `from` to `to`, takes hold of its "..". The slot's
 * buffer is NULL when there is nothing to change. */
static int dotdot_locate(struct inode *inode, const struct inode *from, const struct inode *to,
                         struct ext_dir_slot *slot) {
    slot->buffer = NULL;
    if (!S_ISDIR(inode->mode) || from == to)
        return 0;
    return dir_locate(inode, "..", 2, slot);
}

static void dotdot_set(struct inode *dir, const struct ext_dir_slot *slot,
                       const struct inode *parent) {
    if (slot->buffer)
        dir_slot_set(dir, slot, parent);
}

/* The name of one inode becomes another's. */
static int name_give(struct inode *dir, const char *name, uint32_t length, struct inode *from,
                     const struct inode *to) {
    struct ext_dir_slot slot;

    int rc = dir_locate_inode(dir, name, length, from, &slot);
    if (rc < 0)
        return rc;
    dir_slot_set(dir, &slot, to);
    buffer_put(slot.buffer);
    return 0;
}

/* The target's name is the victim's, or a new one. */
static int rename_target(const struct rename *rename) {
    if (rename->victim)
        return name_give(rename->target_dir, rename->target_name, rename->target_length,
                         rename->victim, rename->inode);
    return ext_dir_insert(rename->target_dir, rename->target_name, rename->target_length,
                          rename->inode);
}

/* The source's name becomes the whiteout's, or goes. */
static int rename_source(const struct rename *rename) {
    if (rename->whiteout)
        return name_give(rename->source_dir, rename->source_name, rename->source_length,
                         rename->inode, rename->whiteout);
    return ext_dir_remove(rename->source_dir, rename->source_name, rename->source_length,
                          rename->inode);
}

static int rename_move(const struct rename *rename) {
    struct ext_dir_slot source, dotdot;

    /* Everything that can be missing is looked for before anything is changed. */
    int rc = dir_locate_inode(rename->source_dir, rename->source_name, rename->source_length,
                              rename->inode, &source);
    if (rc < 0)
        return rc;
    buffer_put(source.buffer);
    rc = dotdot_locate(rename->inode, rename->source_dir, rename->target_dir, &dotdot);
    if (rc < 0)
        return rc;
    rc = rename_target(rename);
    if (rc == 0) {
        dotdot_set(rename->inode, &dotdot, rename->target_dir);
        /* The insertion may have moved the source's entry. */
        rc = rename_source(rename);
    }
    buffer_put(dotdot.buffer);
    return rc;
}

static int rename_exchange(const struct rename *rename) {
    struct ext_dir_slot slots[4] = {0}; /* source, target, and the ".." of each */

    int rc = dir_locate_inode(rename->source_dir, rename->source_name, rename->source_length,
                              rename->inode, &slots[0]);
    if (rc < 0)
        return rc;
    rc = dir_locate_inode(rename->target_dir, rename->target_name, rename->target_length,
                          rename->victim, &slots[1]);
    if (rc < 0) {
        slots[1].buffer = NULL;
    } else {
        rc = dotdot_locate(rename->inode, rename->source_dir, rename->target_dir, &slots[2]);
        if (rc == 0)
            rc = dotdot_locate(rename->victim, rename->target_dir, rename->source_dir, &slots[3]);
    }
    if (rc == 0) {
        dir_slot_set(rename->source_dir, &slots[0], rename->victim);
        dir_slot_set(rename->target_dir, &slots[1], rename->inode);
        dotdot_set(rename->inode, &slots[2], rename->target_dir);
        dotdot_set(rename->victim, &slots[3], rename->source_dir);
    }
    for (int i = 0; i < 4; i++)
        buffer_put(slots[i].buffer);
    return rc;
}

int ext_dir_rename(const struct rename *rename) {
    struct inode *const changed[] = {rename->source_dir, rename->target_dir, rename->inode,
                                     rename->flags & RENAME_EXCHANGE_NAMES ? rename->victim : NULL};

    for (int i = 0; i < 4; i++) {
        /* Of those that are renamed, only directories change: their "..". */
        int rc = changed[i] && S_ISDIR(changed[i]->mode) ? ext_inline_convert(changed[i]) : 0;
        if (rc < 0)
            return rc;
    }
    return rename->flags & RENAME_EXCHANGE_NAMES ? rename_exchange(rename) : rename_move(rename);
}

int ext_dir_initialise(struct inode *dir, uint64_t parent_ino) {
    struct ext *ext = ext_of(dir->volume);
    struct buffer *buffer;
    uint64_t logical;

    int rc = ext_dir_grow(dir, 1, &logical, &buffer);
    if (rc < 0)
        return rc;
    ext_dir_block_dots(ext, buffer_data(buffer), ext_dir_block_room(&ext->geometry), dir->ino,
                       parent_ino);
    ext_dir_block_changed(dir, buffer);
    buffer_put(buffer);
    return 0;
}

/* --- walking --------------------------------------------------------------------------------- */

/* Cookies of a linear directory: one more than the entry's byte offset. Entries do not move, but
 * the one at a cookie may be gone and its space merged, so a walk starts at the block's beginning.
 * Visits the block at byte `start`; false: the visitor has had enough. */
static bool linear_visit(struct ext *ext, void *block, uint64_t start, uint64_t cookie,
                         dir_visit visit, void *context) {
    struct ext_disk_dirent *entry;
    uint32_t scanned = 0;
    bool more = true;

    for (uint32_t offset = 0;
         more && (entry = ext_dirent_at(block, ext->geometry.block_size, offset)) != NULL;
         offset += le16_load(entry->rec_len)) {
        scanned++;
        if (le32_load(entry->inode) != 0 && start + offset >= cookie)
            more = ext_dir_emit(entry, start + offset + 1, visit, context);
    }
    clock_charge(ext->volume->clock, COST_DIR_ENTRY, scanned);
    return more;
}

static int linear_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    struct ext *ext = ext_of(dir->volume);
    uint64_t blocks = ext_dir_blocks(dir);

    if (ext_is_inline(dir)) {
        char block[PAGE_SIZE_BYTES];
        int rc = ext_dir_inline_get(dir, block);
        if (rc == 0)
            (void)linear_visit(ext, block, 0, cookie, visit, context);
        return rc;
    }
    for (uint64_t logical = cookie >> ext->geometry.block_bits; logical < blocks; logical++) {
        uint64_t start = logical << ext->geometry.block_bits;
        struct buffer *buffer;

        dir_prefetch(dir, logical);
        int rc = ext_dir_block_get(dir, logical, &buffer);
        if (rc < 0)
            return rc;
        bool more = linear_visit(ext, buffer_data(buffer), start, cookie, visit, context);
        buffer_put(buffer);
        if (!more)
            break;
    }
    return 0;
}

int ext_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    const struct ext *ext = ext_of(dir->volume);

    /* A directory of one block is walked in the order it will have once it is indexed, so that
     * cookies outlive its growth; unless dir_order says otherwise. */
    if (ext_htree_indexed(dir) ||
        (ext->geometry.compat & EXT_COMPAT_DIR_INDEX && ext->dir_order == EXT_ORDER_HASH &&
         (ext_dir_blocks(dir) == 1 || ext_is_inline(dir)))) {
        int rc = ext_htree_iterate(dir, cookie, visit, context);
        if (rc != EXT_HTREE_UNUSABLE)
            return rc;
    }
    return linear_iterate(dir, cookie, visit, context);
}

static bool dir_visit_dots_only(void *context, const struct dir_entry *entry) {
    bool *empty = context;

    *empty = ext_name_is_dot(entry->name, entry->name_length);
    return *empty;
}

int ext_dir_empty(struct inode *dir) {
    bool empty = true;

    int rc = linear_iterate(dir, 0, dir_visit_dots_only, &empty);
    if (rc < 0)
        return rc;
    return empty ? 0 : -ENOTEMPTY;
}

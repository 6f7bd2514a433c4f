/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. Interfaces: layouts/nilfs/layout.h, layouts/nilfs/dir.h.
 *
 * Directories: the contract's namespace functions.
 *
 * Invariants:
 *  1. A block is validated before its entries are used: its names once when it comes from the disk,
 *     its entries' lengths again while it is a changed block, since the cleaner makes such of
 *     blocks that nobody has looked at.
 *  2. Removal merges an entry with the one before it, so that entries never move; a removed first
 *     entry of a block has no name either, since some readers look at names alone.
 *  3. Everything that can be missing, space and memory included, is asked for before anything
 *     changes.
 */
#include "layouts/nilfs/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/space.h"

struct dir_slot { /* where an entry is */
    uint64_t block;
    uint32_t offset;
    uint64_t ino; /* as the core knows it */
};

/* --- entries --------------------------------------------------------------------------------- */

static uint8_t type_of_mode(uint32_t mode) {
    static const uint8_t types[16] = {
        [S_IFIFO >> 12] = NILFS_FT_FIFO,      [S_IFCHR >> 12] = NILFS_FT_CHARACTER,
        [S_IFDIR >> 12] = NILFS_FT_DIRECTORY, [S_IFBLK >> 12] = NILFS_FT_BLOCK,
        [S_IFREG >> 12] = NILFS_FT_REGULAR,   [S_IFLNK >> 12] = NILFS_FT_SYMLINK,
        [S_IFSOCK >> 12] = NILFS_FT_SOCKET,
    };
    return types[(mode & S_IFMT) >> 12];
}

static uint32_t mode_of_type(uint8_t type) {
    static const uint32_t modes[NILFS_FT_COUNT] = {
        [NILFS_FT_REGULAR] = S_IFREG,   [NILFS_FT_DIRECTORY] = S_IFDIR,
        [NILFS_FT_CHARACTER] = S_IFCHR, [NILFS_FT_BLOCK] = S_IFBLK,
        [NILFS_FT_FIFO] = S_IFIFO,      [NILFS_FT_SOCKET] = S_IFSOCK,
        [NILFS_FT_SYMLINK] = S_IFLNK,
    };
    return type < NILFS_FT_COUNT ? modes[type] : 0;
}

static uint32_t entry_size(uint32_t name_length) {
    return (NILFS_DIR_HEADER + name_length + NILFS_DIR_ALIGN - 1) & ~(NILFS_DIR_ALIGN - 1);
}

uint32_t nilfs_dir_entry_room(const struct nilfs_disk_dir_entry *entry) {
    uint32_t used = le64_load(entry->inode) != 0 ? entry_size(entry->name_len) : 0;
    return le16_load(entry->rec_len) - used;
}

static bool entry_matches(const struct nilfs_disk_dir_entry *entry, const char *name,
                          uint32_t length) {
    return entry->name_len == length && le64_load(entry->inode) != 0 &&
           memcmp(nilfs_dir_entry_name(entry), name, length) == 0;
}

static bool is_dot_name(const char *name, uint32_t length) {
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

static void entry_write(uint8_t *at, uint32_t size, const char *name, uint32_t length, uint64_t ino,
                        uint32_t mode) {
    struct nilfs_disk_dir_entry *entry = (struct nilfs_disk_dir_entry *)at;

    le64_store(&entry->inode, ino & NILFS_INO_MASK);
    le16_store(&entry->rec_len, (uint16_t)size);
    entry->name_len = (uint8_t)length;
    entry->file_type = type_of_mode(mode);
    memcpy(entry + 1, name, length);
}

/* The number that the core knows the entry's inode by: those of one tree have the same high bits.
 */
static uint64_t entry_ino(const struct inode *dir, const struct nilfs_disk_dir_entry *entry) {
    return (dir->ino & ~NILFS_INO_MASK) | le64_load(entry->inode);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static uint32_t block_size_of(const struct inode *dir) {
    return nilfs_of(dir->volume)->geometry.block_size;
}

static uint64_t dir_blocks(const struct inode *dir) {
    return dir->size >> nilfs_of(dir->volume)->geometry.block_bits;
}

/* What is wrong with the entry at `offset`, or NULL. */
static const char *entry_wrong(const uint8_t *block, uint32_t size, uint32_t offset, bool names) {
    const struct nilfs_disk_dir_entry *entry = (const void *)(block + offset);
    uint32_t rec_len = le16_load(entry->rec_len), length = entry->name_len;
    uint64_t ino = le64_load(entry->inode);

    if (rec_len < entry_size(1) || rec_len % NILFS_DIR_ALIGN != 0 || rec_len > size - offset)
        return "has a length that does not fit";
    if (rec_len < entry_size(length))
        return "is shorter than its name";
    if (ino == 0)
        return NULL;
    if ((ino < NILFS_SKETCH_INO && ino != NILFS_ROOT_INO) || ino > NILFS_INO_MASK)
        return "names an inode that no file can have";
    if (length == 0)
        return "has no name";
    const char *name = nilfs_dir_entry_name(entry);
    if (names && (memchr(name, '/', length) || memchr(name, '\0', length)))
        return "has a name with a slash or a zero byte";
    return NULL;
}

static int block_check(const struct inode *dir, uint64_t block, const struct nilfs_view *view) {
    uint32_t size = block_size_of(dir), offset = 0;
    const char *wrong = NULL;

    while (offset < size) {
        wrong = entry_wrong(view->data, size, offset, view->buffer);
        if (wrong)
            return nilfs_corrupt(nilfs_of(dir->volume),
                                 "directory inode %" PRIu64 ", block %" PRIu64
                                 ": the entry at byte %u %s",
                                 dir->ino, block, offset, wrong);
        offset += le16_load(nilfs_dir_entry_at(view->data, size, offset)->rec_len);
    }
    return 0;
}

int nilfs_dir_block_read(struct inode *dir, uint64_t block, struct nilfs_view *view) {
    int error = nilfs_file_read(nilfs_inode_of(dir)->file, block, PURPOSE_DIR, view);

    if (error == -ENOENT)
        return nilfs_corrupt(nilfs_of(dir->volume),
                             "directory inode %" PRIu64 ": block %" PRIu64 " is a hole", dir->ino,
                             block);
    if (error || (view->buffer && view->buffer->checked))
        return error;
    error = block_check(dir, block, view);
    if (error)
        nilfs_view_put(view);
    else if (view->buffer)
        view->buffer->checked = true;
    return error;
}

/* Where in the block the name is, or UINT32_MAX. */
static uint32_t block_find(const struct inode *dir, const uint8_t *block, const char *name,
                           uint32_t length) {
    uint32_t size = block_size_of(dir), offset = 0, scanned = 0;
    const struct nilfs_disk_dir_entry *entry;

    while ((entry = nilfs_dir_entry_at(block, size, offset))) {
        scanned++;
        if (entry_matches(entry, name, length))
            break;
        offset += le16_load(entry->rec_len);
    }
    clock_charge(dir->volume->clock, COST_DIR_ENTRY, scanned);
    return entry ? offset : UINT32_MAX;
}

/* Where an entry with so much room is, or UINT32_MAX; and the largest room of all. */
static uint32_t block_room(const struct inode *dir, const uint8_t *block, uint32_t bytes,
                           uint32_t *most) {
    uint32_t size = block_size_of(dir), found = UINT32_MAX, scanned = 0;
    const struct nilfs_disk_dir_entry *entry;

    *most = 0;
    for (uint32_t offset = 0; (entry = nilfs_dir_entry_at(block, size, offset));
         offset += le16_load(entry->rec_len)) {
        uint32_t room = nilfs_dir_entry_room(entry);
        scanned++;
        if (room > *most)
            *most = room;
        if (room >= bytes && found == UINT32_MAX)
            found = offset;
    }
    clock_charge(dir->volume->clock, COST_DIR_ENTRY, scanned);
    return found;
}

/* After a change to the block. */
static void block_changed(struct inode *dir, uint64_t block, const uint8_t *data) {
    struct nilfs_file *file = nilfs_inode_of(dir)->file;
    struct nilfs_dir_index *index = file->index;
    uint32_t most;

    if (index) {
        block_room(dir, data, UINT32_MAX, &most);
        nilfs_dir_index_set_room(index, block, most);
    }
    dir->sectors = file->sectors;
    nilfs_of(dir->volume)->user_changes = true;
}

/* --- finding --------------------------------------------------------------------------------- */

static void slot_fill(const struct inode *dir, uint64_t block, uint32_t offset, const uint8_t *data,
                      struct dir_slot *slot) {
    const struct nilfs_disk_dir_entry *entry = nilfs_dir_entry_at(data, block_size_of(dir), offset);
    *slot = (struct dir_slot){block, offset, entry_ino(dir, entry)};
}

static int linear_find(struct inode *dir, const char *name, uint32_t length,
                       struct dir_slot *slot) {
    for (uint64_t block = 0; block < dir_blocks(dir); block++) {
        struct nilfs_view view;
        int error = nilfs_dir_block_read(dir, block, &view);

        if (error)
            return error;
        uint32_t offset = block_find(dir, view.data, name, length);
        if (offset != UINT32_MAX)
            slot_fill(dir, block, offset, view.data, slot);
        nilfs_view_put(&view);
        if (offset != UINT32_MAX)
            return 0;
    }
    return -ENOENT;
}

/* Looks at the entries that the index knows for names like this one. */
static int index_find(struct inode *dir, const struct nilfs_dir_index *index, const char *name,
                      uint32_t length, struct dir_slot *slot) {
    uint32_t size = block_size_of(dir);
    struct nilfs_dir_probe probe;
    uint64_t position;

    clock_charge(dir->volume->clock, COST_DIR_HASH, 1);
    nilfs_dir_index_start(index, name, length, &probe);
    while (nilfs_dir_index_next(index, &probe, &position)) {
        uint64_t block = position / size;
        uint32_t offset = (uint32_t)(position % size);
        struct nilfs_view view;
        int error = nilfs_dir_block_read(dir, block, &view);

        if (error)
            return error;
        bool found = entry_matches(nilfs_dir_entry_at(view.data, size, offset), name, length);
        if (found)
            slot_fill(dir, block, offset, view.data, slot);
        nilfs_view_put(&view);
        clock_charge(dir->volume->clock, COST_DIR_ENTRY, 1);
        if (found)
            return 0;
    }
    return -ENOENT;
}

static int dir_locate(struct inode *dir, const char *name, uint32_t length, struct dir_slot *slot) {
    struct nilfs_dir_index *index;

    if (length == 0 || length > NAME_LENGTH_MAX)
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    int error = nilfs_dir_index_get(dir, &index);
    if (error)
        return error;
    return index ? index_find(dir, index, name, length, slot)
                 : linear_find(dir, name, length, slot);
}

/* The same, and the entry must name `inode`. */
static int dir_locate_inode(struct inode *dir, const char *name, uint32_t length,
                            const struct inode *inode, struct dir_slot *slot) {
    int error = dir_locate(dir, name, length, slot);

    if (error || slot->ino == inode->ino)
        return error;
    return nilfs_corrupt(nilfs_of(dir->volume),
                         "directory inode %" PRIu64 ", block %" PRIu64
                         ": the entry at byte %u names inode %" PRIu64 ", expected %" PRIu64,
                         dir->ino, slot->block, slot->offset, slot->ino, inode->ino);
}

int nilfs_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    struct dir_slot slot;
    int error = dir_locate(dir, name, length, &slot);

    if (!error)
        *ino = slot.ino;
    return error;
}

/* --- space ------------------------------------------------------------------------------------ */

/* The most blocks that so many entries of a directory change, with its record and that of the inode
 * that is named. */
static uint64_t space_names(struct inode *dir, uint32_t count) {
    return count * nilfs_space_change(nilfs_inode_of(dir)->file) +
           2 * nilfs_space_change(nilfs_of(dir->volume)->ifile);
}

/* An entry of each directory, the whiteout's included, and each party's "..". */
static int space_rename(const struct rename *r) {
    uint64_t blocks = space_names(r->source_dir, 2) + space_names(r->target_dir, 1);

    blocks += S_ISDIR(r->inode->mode) ? space_names(r->inode, 1) : 0;
    blocks += r->victim && S_ISDIR(r->victim->mode) ? space_names(r->victim, 1) : 0;
    return nilfs_space(nilfs_of(r->inode->volume), blocks);
}

/* --- inserting ------------------------------------------------------------------------------- */

/* The first block with room for the name, and where in it; the number of blocks: none. */
static int room_find(struct inode *dir, const struct nilfs_dir_index *index, uint32_t bytes,
                     uint64_t *block, uint32_t *offset) {
    uint64_t blocks = dir_blocks(dir);

    *block = 0;
    if (index && !nilfs_dir_index_roomy(index, bytes, block))
        *block = blocks;
    for (; *block < blocks; ++*block) {
        struct nilfs_view view;
        uint32_t most;
        int error = nilfs_dir_block_read(dir, *block, &view);

        if (error)
            return error;
        *offset = block_room(dir, view.data, bytes, &most);
        nilfs_view_put(&view);
        if (*offset != UINT32_MAX)
            return 0;
    }
    *offset = 0;
    return 0;
}

/* The block for changing, with the entry that has room at *offset; a new one behind the last. */
static int room_take(struct inode *dir, uint64_t block, uint8_t **data) {
    struct nilfs_file *file = nilfs_inode_of(dir)->file;
    uint32_t size = block_size_of(dir);

    if (block < dir_blocks(dir))
        return nilfs_file_change(file, block, data);
    int error = nilfs_file_make(file, block, data, NULL);
    if (error)
        return error;
    struct nilfs_disk_dir_entry *entry = (struct nilfs_disk_dir_entry *)*data;
    le16_store(&entry->rec_len, (uint16_t)size);
    dir->size += size;
    return 0;
}

/* Puts the name into the room of the entry at `offset`; returns where. */
static uint32_t entry_split(uint8_t *data, uint32_t offset, const char *name, uint32_t length,
                            const struct inode *inode) {
    struct nilfs_disk_dir_entry *entry = (struct nilfs_disk_dir_entry *)(data + offset);
    uint32_t rec_len = le16_load(entry->rec_len), room = nilfs_dir_entry_room(entry);

    if (room < rec_len)
        le16_store(&entry->rec_len, (uint16_t)(rec_len - room));
    offset += rec_len - room;
    entry_write(data + offset, room, name, length, inode->ino, inode->mode);
    return offset;
}

int nilfs_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    struct nilfs_dir_index *index;
    uint32_t offset;
    uint64_t block;
    uint8_t *data;

    if (length > NAME_LENGTH_MAX)
        return -ENAMETOOLONG;
    int error = nilfs_space(nilfs, space_names(dir, 1));
    if (!error)
        error = nilfs_dir_index_get(dir, &index);
    if (!error && index)
        error = nilfs_dir_index_reserve(index);
    if (!error)
        error = room_find(dir, index, entry_size(length), &block, &offset);
    if (error)
        return error;
    error = room_take(dir, block, &data);
    if (error)
        return nilfs_fail(nilfs, error);
    offset = entry_split(data, offset, name, length, inode);
    if (index)
        nilfs_dir_index_add(index, name, length, block * nilfs->geometry.block_size + offset);
    block_changed(dir, block, data);
    return 0;
}

int nilfs_dir_initialise(struct inode *dir, uint64_t parent) {
    uint32_t size = block_size_of(dir), dot = entry_size(1);
    uint8_t *data;
    int error = nilfs_file_make(nilfs_inode_of(dir)->file, 0, &data, NULL);

    if (error)
        return error;
    entry_write(data, dot, ".", 1, dir->ino, S_IFDIR);
    entry_write(data + dot, size - dot, "..", 2, parent, S_IFDIR);
    dir->size = size;
    block_changed(dir, 0, data);
    return 0;
}

/* --- removing and renaming ------------------------------------------------------------------- */

/* Takes the entry at `offset` out of a block. */
static void entry_erase(uint8_t *data, uint32_t size, uint32_t offset) {
    struct nilfs_disk_dir_entry *entry = (struct nilfs_disk_dir_entry *)(data + offset);
    uint32_t previous = 0, next = 0;

    while (next < offset) {
        previous = next;
        next += le16_load(nilfs_dir_entry_at(data, size, next)->rec_len);
    }
    if (offset == 0) {
        le64_store(&entry->inode, 0);
        entry->name_len = 0;
        entry->file_type = NILFS_FT_UNKNOWN;
        return;
    }
    struct nilfs_disk_dir_entry *before = (struct nilfs_disk_dir_entry *)(data + previous);
    le16_store(&before->rec_len,
               (uint16_t)(le16_load(before->rec_len) + le16_load(entry->rec_len)));
}

/* Errors have stopped the volume. */
static int slot_remove(struct inode *dir, const struct dir_slot *slot, const char *name,
                       uint32_t length) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    struct nilfs_file *file = nilfs_inode_of(dir)->file;
    uint32_t size = block_size_of(dir);
    uint8_t *data;
    int error = nilfs_file_change(file, slot->block, &data);

    if (error)
        return nilfs_fail(nilfs, error);
    entry_erase(data, size, slot->offset);
    if (file->index)
        nilfs_dir_index_remove(file->index, name, length, slot->block * size + slot->offset);
    block_changed(dir, slot->block, data);
    return 0;
}

static int slot_set(struct inode *dir, const struct dir_slot *slot, const struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    uint8_t *data;
    int error = nilfs_file_change(nilfs_inode_of(dir)->file, slot->block, &data);

    if (error)
        return nilfs_fail(nilfs, error);
    struct nilfs_disk_dir_entry *entry = (struct nilfs_disk_dir_entry *)(data + slot->offset);
    le64_store(&entry->inode, inode->ino & NILFS_INO_MASK);
    entry->file_type = type_of_mode(inode->mode);
    dir->sectors = nilfs_inode_of(dir)->file->sectors;
    nilfs->user_changes = true;
    return 0;
}

int nilfs_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    const struct nilfs_demand demand = {.blocks = space_names(dir, 1)};
    struct dir_slot slot;
    int error = dir_locate_inode(dir, name, length, inode, &slot);

    if (!error)
        error = nilfs_space_claim(nilfs_of(dir->volume), NILFS_CLAIM_REMOVE, &demand);
    return error ? error : slot_remove(dir, &slot, name, length);
}

/* When `inode` is a directory that goes from `from` to `to`, its ".."; else *needed is false. */
static int dotdot_locate(struct inode *inode, const struct inode *from, const struct inode *to,
                         struct dir_slot *slot, bool *needed) {
    *needed = S_ISDIR(inode->mode) && from != to;
    int error = *needed ? dir_locate(inode, "..", 2, slot) : 0;
    if (error == -ENOENT)
        return nilfs_corrupt(nilfs_of(inode->volume),
                             "directory inode %" PRIu64 " has no entry \"..\"", inode->ino);
    return error;
}

static int rename_move(const struct rename *r) {
    struct dir_slot source, target, dotdot;
    bool moves;

    int error =
        dir_locate_inode(r->source_dir, r->source_name, r->source_length, r->inode, &source);
    if (!error)
        error = dotdot_locate(r->inode, r->source_dir, r->target_dir, &dotdot, &moves);
    if (!error && r->victim)
        error =
            dir_locate_inode(r->target_dir, r->target_name, r->target_length, r->victim, &target);
    if (!error)
        error = space_rename(r);
    if (error)
        return error;
    error = r->victim ? slot_set(r->target_dir, &target, r->inode)
                      : nilfs_dir_insert(r->target_dir, r->target_name, r->target_length, r->inode);
    if (!error && moves)
        error = slot_set(r->inode, &dotdot, r->target_dir);
    if (error)
        return error;
    /* Entries do not move: the source's is where it was. */
    return r->whiteout ? slot_set(r->source_dir, &source, r->whiteout)
                       : slot_remove(r->source_dir, &source, r->source_name, r->source_length);
}

static int rename_exchange(const struct rename *r) {
    struct dir_slot source, target, inode_dotdot, victim_dotdot;
    bool inode_moves, victim_moves;

    int error =
        dir_locate_inode(r->source_dir, r->source_name, r->source_length, r->inode, &source);
    if (!error)
        error =
            dir_locate_inode(r->target_dir, r->target_name, r->target_length, r->victim, &target);
    if (!error)
        error = dotdot_locate(r->inode, r->source_dir, r->target_dir, &inode_dotdot, &inode_moves);
    if (!error)
        error =
            dotdot_locate(r->victim, r->target_dir, r->source_dir, &victim_dotdot, &victim_moves);
    if (!error)
        error = space_rename(r);
    if (!error)
        error = slot_set(r->source_dir, &source, r->victim);
    if (!error)
        error = slot_set(r->target_dir, &target, r->inode);
    if (!error && inode_moves)
        error = slot_set(r->inode, &inode_dotdot, r->target_dir);
    if (!error && victim_moves)
        error = slot_set(r->victim, &victim_dotdot, r->source_dir);
    return error;
}

int nilfs_dir_rename(const struct rename *rename) {
    return rename->flags & RENAME_EXCHANGE_NAMES ? rename_exchange(rename) : rename_move(rename);
}

/* --- walking --------------------------------------------------------------------------------- */

/* Calls visit for the entries of a block that begin at or behind `cookie`. */
static bool block_iterate(const struct inode *dir, uint64_t start, const uint8_t *data,
                          uint64_t cookie, dir_visit visit, void *context) {
    uint32_t size = block_size_of(dir), scanned = 0;
    const struct nilfs_disk_dir_entry *entry;
    uint64_t at = start;
    bool more = true;

    while (more && (entry = nilfs_dir_entry_at(data, size, (uint32_t)(at - start)))) {
        struct dir_entry out = {
            .name = nilfs_dir_entry_name(entry),
            .name_length = entry->name_len,
            .ino = entry_ino(dir, entry),
            .type = mode_of_type(entry->file_type),
            .cookie = at + le16_load(entry->rec_len),
        };
        scanned++;
        if (at >= cookie && le64_load(entry->inode) != 0)
            more = visit(context, &out);
        at = out.cookie;
    }
    clock_charge(dir->volume->clock, COST_DIR_ENTRY, scanned);
    return more;
}

/* Cookies: where the entry ended, in bytes of the directory. The entry that begins there may be
 * gone by now and part of another one, so that a walk starts at the block's beginning. */
int nilfs_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    uint32_t size = block_size_of(dir);
    bool more = true;

    for (uint64_t block = cookie / size; more && block < dir_blocks(dir); block++) {
        struct nilfs_view view;
        int error = nilfs_dir_block_read(dir, block, &view);

        if (error)
            return error;
        more = block_iterate(dir, block * size, view.data, cookie, visit, context);
        nilfs_view_put(&view);
    }
    return 0;
}

static bool visit_dots_only(void *context, const struct dir_entry *entry) {
    bool *empty = context;

    *empty = is_dot_name(entry->name, entry->name_length);
    return *empty;
}

int nilfs_dir_empty(struct inode *dir) {
    bool empty = true;
    int error = nilfs_dir_iterate(dir, 0, visit_dots_only, &empty);

    if (error)
        return error;
    return empty ? 0 : -ENOTEMPTY;
}

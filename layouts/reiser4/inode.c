/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Stat data and struct inode; symbolic links, which are nothing but stat
 * data. Interface: layouts/reiser4/layout.h.
 *
 * Invariant: an inode's object is noted (objects.h) from the moment an entry of it was seen, or it
 * was made, so that its number is enough to load it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/reiser4/layout.h"
#include "layouts/reiser4/safelink.h"

#define SECTOR_BYTES 512u

/* --- reading ---------------------------------------------------------------------------------- */

int reiser4_stat_read(struct reiser4 *r4, const struct reiser4_object *object, uint8_t *body,
                      struct reiser4_stat *stat) {
    struct reiser4_key key = reiser4_key_of_stat(object);
    struct reiser4_cursor cursor;
    const char *wrong;

    int error = reiser4_tree_find(&r4->tree, &key, &cursor);
    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    if (item.id != REISER4_ITEM_STAT) {
        reiser4_cursor_release(&cursor);
        return reiser4_corrupt(r4->volume, "object %" PRIu64 ": %s where its stat data should be",
                               object->oid, reiser4_item_kind(item.id)->name);
    }
    memcpy(body, item.body, item.length);
    reiser4_cursor_release(&cursor);
    item.body = body;
    wrong = reiser4_stat_decode(&item, stat);
    return wrong ? reiser4_corrupt(r4->volume, "object %" PRIu64 ": its stat data %s", object->oid,
                                   wrong)
                 : 0;
}

static bool is_device(uint32_t mode) {
    return S_ISCHR(mode) || S_ISBLK(mode);
}

static void decode(struct inode *inode, const struct reiser4_stat *stat) {
    struct reiser4_inode *private = reiser4_inode_of(inode);

    private->slots = stat->plugins;
    private->heirs = stat->heirs;
    private->mask = stat->mask;
    inode->mode = stat->mode;
    if ((stat->mode & S_IFMT) == REISER4_MODE_MIXED) {
        inode->mode = (stat->mode & ~(uint32_t)S_IFMT) | S_IFREG;
        private->form = REISER4_FORM_MIXED;
    }
    inode->nlink = stat->nlink;
    inode->size = stat->size;
    inode->uid = stat->uid;
    inode->gid = stat->gid;
    inode->atime = stat->atime;
    inode->mtime = stat->mtime;
    inode->ctime = stat->ctime;
    inode->flags = stat->flags;
    if (is_device(inode->mode))
        inode->rdev = (uint32_t)stat->rdev_or_bytes;
    else
    private->bytes = stat->rdev_or_bytes;
    inode->sectors = private->bytes / SECTOR_BYTES + (private->bytes % SECTOR_BYTES != 0);
}

static bool type_is_known(uint32_t mode) {
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || is_device(mode) || S_ISFIFO(mode) ||
           S_ISSOCK(mode);
}

/* What the core and the other files rely on. */
static int attributes_check(const struct inode *inode, const struct reiser4_plugins *plugins) {
    const struct volume *volume = inode->volume;
    unsigned object = plugins->id[REISER4_PLUGIN_OBJECT];
    bool compressed = object == REISER4_OBJECT_CCREG40 && S_ISREG(inode->mode);

    if (!type_is_known(inode->mode))
        return reiser4_corrupt(volume, "object %" PRIu64 ": mode 0%o is of no known type",
                               inode->ino, inode->mode);
    if (inode->ino == REISER4_ROOT_OID && !S_ISDIR(inode->mode))
        return reiser4_corrupt(volume,
                               "object %" PRIu64 ": mode 0%o, expected a directory, the root",
                               inode->ino, inode->mode);
    if (object != (unsigned)reiser4_object_default(inode->mode) && !compressed)
        return reiser4_corrupt(volume, "object %" PRIu64 ": mode 0%o, but its plugin is %s",
                               inode->ino, inode->mode,
                               reiser4_plugin_name(REISER4_PLUGIN_OBJECT, object));
    if (inode->size > INT64_MAX)
        return reiser4_corrupt(volume, "object %" PRIu64 ": size %" PRIu64 " cannot be", inode->ino,
                               inode->size);
    return 0;
}

int reiser4_inode_load(struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_inode *private = reiser4_inode_of(inode);
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_object object;
    struct reiser4_stat stat;

    int error = reiser4_objects_find(&r4->objects, inode->ino, &object);
    if (!error)
        error = reiser4_stat_read(r4, &object, body, &stat);
    if (error)
        return error == -ENOENT ? -ESTALE : error;
    *private = (struct reiser4_inode){.locality = object.locality, .ordering = object.ordering};
    decode(inode, &stat);
    private->length = (uint16_t)reiser4_stat_length(&stat);
    reiser4_plugins_of(&r4->plugins, &private->slots, inode->mode, &private->plugins);
    if (inode->ino == REISER4_ROOT_OID)
    private->plugins = r4->plugins;
    return attributes_check(inode, &private->plugins);
}

void reiser4_inode_evict(struct inode *inode) {
    if (S_ISREG(inode->mode))
        reiser4_body_forget(inode);
    reiser4_places_free(reiser4_inode_of(inode)->places);
}

/* --- changing --------------------------------------------------------------------------------- */

static void encode(const struct inode *inode, struct reiser4_stat *stat) {
    const struct reiser4_inode *private = reiser4_inode_of((struct inode *)(uintptr_t)inode);

    stat->mask = private->mask;
    stat->mode = (uint16_t)inode->mode;
    stat->nlink = inode->nlink;
    stat->size = inode->size;
    stat->uid = inode->uid;
    stat->gid = inode->gid;
    stat->atime = inode->atime;
    stat->mtime = inode->mtime;
    stat->ctime = inode->ctime;
    stat->flags = inode->flags;
    if (inode->flags)
        stat->mask |= REISER4_STAT_HAS(REISER4_SD_FLAGS);
    stat->rdev_or_bytes = is_device(inode->mode) ? inode->rdev : private->bytes;
    stat->plugins = private->slots;
    stat->heirs = private->heirs;
}

/* The object's stat data become these; the cursor stands on them, and is released. */
static int replace(struct reiser4_cursor *cursor, const struct reiser4_stat *stat) {
    uint8_t body[REISER4_BLOCK_SIZE], *there;
    struct reiser4_item item = reiser4_cursor_item(cursor);
    uint32_t length = reiser4_stat_length(stat);

    reiser4_stat_encode(stat, body);
    if (length != item.length)
        return reiser4_cursor_replace(cursor, body, length);
    int error = memcmp(item.body, body, length) == 0 ? 0 : reiser4_cursor_change(cursor, &there);
    if (!error && memcmp(item.body, body, length) != 0)
        memcpy(there, body, length);
    reiser4_cursor_release(cursor);
    return error;
}

/* The stat data as they are; the cursor stands on them. */
static int find(struct inode *inode, uint8_t *body, struct reiser4_stat *stat,
                struct reiser4_cursor *cursor) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_stat(&object);
    int error = reiser4_stat_read(r4, &object, body, stat);

    if (!error)
        error = reiser4_tree_find(&r4->tree, &key, cursor);
    return error != -ENOENT
               ? error
               : reiser4_corrupt(inode->volume, "object %" PRIu64 ": its stat data have gone",
                                 inode->ino);
}

int reiser4_inode_store(struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_cursor cursor;
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_stat stat;
    int error = find(inode, body, &stat, &cursor);

    if (!error) {
        encode(inode, &stat);
        error = replace(&cursor, &stat);
    }
    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

/* Room for so many insertions into the tree, or removals. */
static int ask(struct reiser4 *r4, uint32_t changes, bool removal) {
    struct reiser4_need need = {.nodes = changes * REISER4_TREE_NODES(&r4->tree)};

    return reiser4_space_ask(r4, need, removal);
}

static void plugins_inherit(struct inode *dir, struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    const struct reiser4_inode *parent = reiser4_inode_of(dir);
    struct reiser4_inode *private = reiser4_inode_of(inode);

    reiser4_plugins_inherit(&r4->plugins, &parent->plugins, &parent->heirs, inode->mode,
                            &private->plugins);
    /* Compressed files cannot be written yet; a plain one is at home in any volume. */
    if (private->plugins.id[REISER4_PLUGIN_OBJECT] == REISER4_OBJECT_CCREG40) {
        struct reiser4_plugins plain = private->plugins;
        private->plugins = r4->plugins;
        private->plugins.id[REISER4_PLUGIN_FORMATTING] = plain.id[REISER4_PLUGIN_FORMATTING];
        private->plugins.id[REISER4_PLUGIN_OBJECT] = REISER4_OBJECT_REG40;
    }
    if (r4->options.formatting >= 0 && S_ISREG(inode->mode))
    private->plugins.id[REISER4_PLUGIN_FORMATTING] = (uint8_t)r4->options.formatting;
    reiser4_plugins_wanted(&r4->plugins, &private->plugins, inode->mode, &private->slots);
}

static int insert_stat(struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    const struct reiser4_object object = reiser4_object_of(inode);
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_item item = {
        .key = reiser4_key_of_stat(&object), .id = REISER4_ITEM_STAT, .body = body};
    struct reiser4_stat stat = {0};

    encode(inode, &stat);
    item.length = reiser4_stat_length(&stat);
    reiser4_stat_encode(&stat, body);
    return reiser4_tree_insert(&r4->tree, &item);
}

int reiser4_inode_create(struct inode *dir, const char *name, uint32_t length,
                         struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    const struct reiser4_plugins *plugins = &reiser4_inode_of(dir)->plugins;
    struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct reiser4_object parent = reiser4_object_of(dir);
    int error = r4->counters.next_oid > REISER4_OID_MAX ? -ENOSPC : ask(r4, 5, false);

    if (error)
        return error;
    *private = (struct reiser4_inode){
        .locality = dir->ino, .mask = REISER4_STAT_NEW, .form = REISER4_FORM_EMPTY};
    if (name)
    private->ordering = reiser4_key_of_name(dir->ino, plugins->id[REISER4_PLUGIN_HASH],
                                            plugins->id[REISER4_PLUGIN_FIBRATION], name, length)
                            .word[REISER4_ORDERING];
    plugins_inherit(dir, inode);
    if (private->slots.present)
    private->mask |= REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET);
    inode->ino = r4->counters.next_oid;
    inode->generation = 0; /* numbers are not used again */
    inode->flags = 0;
    inode->size = inode->sectors = 0;
    inode->btime = (struct timestamp){0};
    const struct reiser4_object object = reiser4_object_of(inode);
    error = reiser4_objects_note(&r4->objects, &object);
    if (error) {
        inode->ino = 0;
        return error;
    }
    r4->counters.next_oid++;
    r4->counters.file_count++;
    reiser4_atom_mark(r4);
    error = insert_stat(inode);
    if (!error && S_ISDIR(inode->mode))
        error = reiser4_dir_initialise(inode, &parent);
    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

int reiser4_inode_free(struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_cursor cursor;
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_stat stat;
    int error = 0;

    if (S_ISREG(inode->mode)) {
        reiser4_body_forget(inode);
        error = reiser4_truncate(inode, 0);
    } else if (S_ISDIR(inode->mode)) {
        error = reiser4_dir_clear(inode);
    }
    if (!error)
        error = find(inode, body, &stat, &cursor);
    if (!error)
        error = reiser4_cursor_remove(&cursor, 1);
    if (!error)
        error = reiser4_safelink_remove(r4, inode->ino, REISER4_SAFELINK_UNLINK);
    if (error)
        return reiser4_fail(r4, error);
    reiser4_objects_forget(&r4->objects, inode->ino);
    r4->counters.file_count--;
    reiser4_atom_mark(r4);
    reiser4_atom_look(r4);
    return 0;
}

int reiser4_orphan_add(struct inode *inode) {
    const struct reiser4_safelink link = {.kind = REISER4_SAFELINK_UNLINK,
                                          .object = reiser4_object_of(inode)};

    return reiser4_safelink_add(reiser4_of(inode->volume), &link);
}

int reiser4_orphan_remove(struct inode *inode) {
    return reiser4_safelink_remove(reiser4_of(inode->volume), inode->ino, REISER4_SAFELINK_UNLINK);
}

int reiser4_symlink_write(struct inode *inode, const char *target, uint32_t length) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_stat(&object);
    struct reiser4_cursor cursor;
    struct reiser4_stat stat = {0};
    int error = reiser4_tree_find(&r4->tree, &key, &cursor);

    if (error)
        return reiser4_fail(r4, error);
    reiser4_inode_of(inode)->mask |= REISER4_STAT_HAS(REISER4_SD_SYMLINK);
    encode(inode, &stat);
    stat.target = target;
    stat.target_length = length;
    stat.size = length;
    return reiser4_fail(r4, replace(&cursor, &stat));
}

/* --- symlinks --------------------------------------------------------------------------------- */

int reiser4_symlink_read(struct inode *inode, char *target) {
    const struct reiser4_object object = reiser4_object_of(inode);
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_stat stat;

    int error = reiser4_stat_read(reiser4_of(inode->volume), &object, body, &stat);
    if (!error && (!stat.target || stat.target_length != inode->size))
        error = reiser4_corrupt(
            inode->volume, "object %" PRIu64 ": the symlink's target is not there", inode->ino);
    if (!error)
        memcpy(target, stat.target, stat.target_length);
    return error;
}

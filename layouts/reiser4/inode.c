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

/* --- reading ---------------------------------------------------------------------------------- */

/* The object's stat data: the cursor stands on them. -ENOENT: it has none. */
static int find_stat(struct reiser4 *r4, const struct reiser4_object *object,
                     struct reiser4_cursor *cursor) {
    struct reiser4_key key = reiser4_key_of_stat(object);
    int error = reiser4_tree_find(&r4->tree, &key, cursor);

    if (error)
        return error;
    uint16_t id = reiser4_cursor_item(cursor).id;
    if (id == REISER4_ITEM_STAT)
        return 0;
    reiser4_cursor_release(cursor);
    return reiser4_corrupt(r4->volume, "object %" PRIu64 ": %s where its stat data should be",
                           object->oid, reiser4_item_kind(id)->name);
}

static int decode_stat(struct reiser4 *r4, const struct reiser4_object *object,
                       const struct reiser4_item *item, struct reiser4_stat *stat) {
    const char *wrong = reiser4_stat_decode(item, stat);

    return wrong ? reiser4_corrupt(r4->volume, "object %" PRIu64 ": its stat data %s", object->oid,
                                   wrong)
                 : 0;
}

int reiser4_stat_read(struct reiser4 *r4, const struct reiser4_object *object, uint8_t *body,
                      struct reiser4_stat *stat) {
    struct reiser4_cursor cursor;
    int error = find_stat(r4, object, &cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    memcpy(body, item.body, item.length);
    reiser4_cursor_release(&cursor);
    item.body = body;
    return decode_stat(r4, object, &item, stat);
}

static bool is_device(uint32_t mode) {
    return S_ISCHR(mode) || S_ISBLK(mode);
}

static void decode(struct inode *inode, const struct reiser4_stat *stat) {
    struct reiser4_inode *own = reiser4_inode_of(inode);

    own->slots = stat->plugins;
    own->heirs = stat->heirs;
    own->mask = stat->mask;
    inode->mode = stat->mode;
    if ((stat->mode & S_IFMT) == REISER4_MODE_MIXED) {
        inode->mode = (stat->mode & ~(uint32_t)S_IFMT) | S_IFREG;
        own->form = REISER4_FORM_MIXED;
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
        own->bytes = stat->rdev_or_bytes;
    reiser4_sectors_set(inode);
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
    struct reiser4_inode *own = reiser4_inode_of(inode);
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_object object;
    struct reiser4_stat stat;

    int error = reiser4_objects_find(&r4->objects, inode->ino, &object);
    if (!error)
        error = reiser4_stat_read(r4, &object, body, &stat);
    if (error)
        return error == -ENOENT ? -ESTALE : error;
    *own = (struct reiser4_inode){.locality = object.locality, .ordering = object.ordering};
    decode(inode, &stat);
    reiser4_plugins_of(&r4->plugins, &own->slots, inode->mode, &own->plugins);
    if (inode->ino == REISER4_ROOT_OID)
        own->plugins = r4->plugins;
    return attributes_check(inode, &own->plugins);
}

void reiser4_inode_evict(struct inode *inode) {
    if (S_ISREG(inode->mode))
        reiser4_body_forget(inode);
    reiser4_places_free(reiser4_inode_of(inode)->places);
}

/* --- changing --------------------------------------------------------------------------------- */

static void encode(const struct inode *inode, struct reiser4_stat *stat) {
    const struct reiser4_inode *own = reiser4_inode_of((struct inode *)(uintptr_t)inode);

    stat->mask = own->mask;
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
    stat->rdev_or_bytes = is_device(inode->mode) ? inode->rdev : own->bytes;
    stat->plugins = own->slots;
    stat->heirs = own->heirs;
}

/* The object's stat data become these; the cursor stands on them, and is released. */
static int replace(struct reiser4_cursor *cursor, const struct reiser4_stat *stat) {
    uint8_t body[REISER4_BLOCK_SIZE], *there;
    struct reiser4_item item = reiser4_cursor_item(cursor);
    uint32_t length = reiser4_stat_length(stat);
    int error = 0;

    reiser4_stat_encode(stat, body);
    if (length != item.length)
        return reiser4_cursor_replace(cursor, body, length);
    if (memcmp(item.body, body, length) != 0) {
        error = reiser4_cursor_change(cursor, &there);
        if (!error)
            memcpy(there, body, length);
    }
    reiser4_cursor_release(cursor);
    return error;
}

/* An inode that is there has stat data. */
static int find(struct inode *inode, struct reiser4_cursor *cursor) {
    const struct reiser4_object object = reiser4_object_of(inode);
    int error = find_stat(reiser4_of(inode->volume), &object, cursor);

    return error != -ENOENT
               ? error
               : reiser4_corrupt(inode->volume, "object %" PRIu64 ": its stat data have gone",
                                 inode->ino);
}

/* What the inode does not know of is kept; a symlink's target stays where it is until then. */
static int store(struct inode *inode) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_cursor cursor;
    struct reiser4_stat stat;
    int error = find(inode, &cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    error = decode_stat(reiser4_of(inode->volume), &object, &item, &stat);
    if (error) {
        reiser4_cursor_release(&cursor);
        return error;
    }
    encode(inode, &stat);
    return replace(&cursor, &stat);
}

int reiser4_inode_store(struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    int error = store(inode);

    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

static void plugins_inherit(struct inode *dir, struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    const struct reiser4_inode *parent = reiser4_inode_of(dir);
    struct reiser4_inode *own = reiser4_inode_of(inode);

    reiser4_plugins_inherit(&r4->plugins, &parent->plugins, &parent->heirs, inode->mode,
                            &own->plugins);
    /* Compressed files cannot be written yet; a plain one is at home in any volume. */
    if (own->plugins.id[REISER4_PLUGIN_OBJECT] == REISER4_OBJECT_CCREG40) {
        struct reiser4_plugins plain = own->plugins;
        own->plugins = r4->plugins;
        own->plugins.id[REISER4_PLUGIN_FORMATTING] = plain.id[REISER4_PLUGIN_FORMATTING];
        own->plugins.id[REISER4_PLUGIN_OBJECT] = REISER4_OBJECT_REG40;
    }
    if (r4->options.formatting >= 0 && S_ISREG(inode->mode))
        own->plugins.id[REISER4_PLUGIN_FORMATTING] = (uint8_t)r4->options.formatting;
    reiser4_plugins_wanted(&r4->plugins, &own->plugins, inode->mode, &own->slots);
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
    struct reiser4_inode *own = reiser4_inode_of(inode);
    const struct reiser4_object parent = reiser4_object_of(dir);
    int error =
        r4->counters.next_oid > REISER4_OID_MAX ? -ENOSPC : reiser4_space_ask_changes(r4, 5, false);

    if (error)
        return error;
    *own = (struct reiser4_inode){
        .locality = dir->ino, .mask = REISER4_STAT_NEW, .form = REISER4_FORM_EMPTY};
    if (name)
        own->ordering = reiser4_key_of_name(dir->ino, plugins->id[REISER4_PLUGIN_HASH],
                                            plugins->id[REISER4_PLUGIN_FIBRATION], name, length)
                            .word[REISER4_ORDERING];
    plugins_inherit(dir, inode);
    if (own->slots.present)
        own->mask |= REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET);
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
    int error = 0;

    if (S_ISREG(inode->mode)) {
        reiser4_body_forget(inode);
        error = reiser4_truncate(inode, 0);
    } else if (S_ISDIR(inode->mode)) {
        error = reiser4_dir_clear(inode);
    }
    if (!error)
        error = find(inode, &cursor);
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
    struct reiser4_cursor cursor;
    struct reiser4_stat stat = {0};
    int error = find(inode, &cursor);

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

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
    reiser4_places_free(reiser4_inode_of(inode)->places);
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

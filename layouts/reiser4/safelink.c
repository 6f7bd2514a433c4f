/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/safelink.h.
 */
#include "layouts/reiser4/safelink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "layouts/reiser4/layout.h"

const char *reiser4_safelink_load(const struct reiser4_item *item, struct reiser4_safelink *link) {
    const struct reiser4_disk_safelink *disk = (const struct reiser4_disk_safelink *)item->body;
    uint64_t kind = item->key.word[REISER4_OFFSET];

    if (reiser4_key_locality(&item->key) != REISER4_SAFELINK_LOCALITY ||
        reiser4_key_type(&item->key) != REISER4_KEY_NAME || kind > REISER4_SAFELINK_TO_EXTENT)
        return "is a safe-link whose key cannot be";
    link->kind = (enum reiser4_safelink_kind)kind;
    uint32_t length = kind == REISER4_SAFELINK_TRUNCATE ? sizeof(*disk) : sizeof(disk->object);
    if (item->length != length)
        return "is a safe-link whose length is wrong";
    struct reiser4_key key = reiser4_key_load(&disk->object);
    if (!reiser4_object_of_key(&key, &link->object) ||
        link->object.oid != item->key.word[REISER4_OBJECTID])
        return "is a safe-link to no object";
    link->size = kind == REISER4_SAFELINK_TRUNCATE ? le64_load(disk->size) : 0;
    return NULL;
}

static const char *safelink_check(const struct reiser4_item *item) {
    struct reiser4_safelink link;

    return reiser4_safelink_load(item, &link);
}

const struct reiser4_item_kind reiser4_safelink_kind = {.name = "bbox40", .check = safelink_check};

/* --- in the tree -------------------------------------------------------------------------------
 */

static struct reiser4_key key_of(uint64_t oid, enum reiser4_safelink_kind kind) {
    return reiser4_key_make(REISER4_SAFELINK_LOCALITY, REISER4_KEY_NAME, 0, oid, kind);
}

int reiser4_safelink_remove(struct reiser4 *r4, uint64_t oid, enum reiser4_safelink_kind kind) {
    struct reiser4_key key = key_of(oid, kind);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_find(&r4->tree, &key, &cursor);

    if (error)
        return error == -ENOENT ? 0 : error;
    return reiser4_fail(r4, reiser4_cursor_remove(&cursor, 1));
}

int reiser4_safelink_add(struct reiser4 *r4, const struct reiser4_safelink *link) {
    struct reiser4_key stat = reiser4_key_of_stat(&link->object);
    struct reiser4_disk_safelink disk;
    struct reiser4_item item = {
        .key = key_of(link->object.oid, link->kind),
        .id = REISER4_ITEM_SAFELINK,
        .length = link->kind == REISER4_SAFELINK_TRUNCATE ? sizeof(disk) : sizeof(disk.object),
        .body = (uint8_t *)&disk};
    int error = reiser4_safelink_remove(r4, link->object.oid, link->kind);

    if (error)
        return error;
    reiser4_key_store(&disk.object, &stat);
    le64_store(&disk.size, link->size);
    return reiser4_fail(r4, reiser4_tree_insert(&r4->tree, &item));
}

int reiser4_safelink_next(struct reiser4 *r4, uint64_t oid, struct reiser4_safelink *link) {
    struct reiser4_key key = key_of(oid, REISER4_SAFELINK_UNLINK);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_seek(&r4->tree, &key, &cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    if (reiser4_key_locality(&item.key) != REISER4_SAFELINK_LOCALITY)
        error = -ENOENT;
    else if (item.id != REISER4_ITEM_SAFELINK || reiser4_safelink_load(&item, link) != NULL)
        error = reiser4_corrupt(r4->volume, "among safe-links there is a %s",
                                reiser4_item_kind(item.id)->name);
    reiser4_cursor_release(&cursor);
    return error;
}

/* --- at mount ----------------------------------------------------------------------------------
 */

/* An inode that nobody else knows of. */
struct stray {
    struct inode inode;
    struct reiser4_inode private;
};

/* Whether the object may be treated so. The root and a directory that holds names were removed by
 * nobody: such a link is damage, and following it would be more. */
static int may_be(struct inode *inode, const struct reiser4_safelink *link) {
    bool regular = S_ISREG(inode->mode), directory = S_ISDIR(inode->mode);
    int error = 0;

    if (link->kind == REISER4_SAFELINK_TRUNCATE && !regular)
        return reiser4_corrupt(inode->volume,
                               "a safe-link cuts object %" PRIu64 ", which is no regular file",
                               inode->ino);
    if (link->kind == REISER4_SAFELINK_UNLINK && directory)
        error = inode->ino == REISER4_ROOT_OID ? -ENOTEMPTY : reiser4_dir_empty(inode);
    return error != -ENOTEMPTY
               ? error
               : reiser4_corrupt(inode->volume,
                                 "a safe-link deletes directory %" PRIu64 ", which is in use",
                                 inode->ino);
}

static int process_on(struct reiser4 *r4, struct inode *inode,
                      const struct reiser4_safelink *link) {
    int error = may_be(inode, link);

    if (error)
        return error;
    switch (link->kind) {
    case REISER4_SAFELINK_UNLINK:
        return reiser4_inode_free(inode);
    case REISER4_SAFELINK_TRUNCATE:
        error = reiser4_truncate(inode, link->size);
        inode->size = link->size;
        if (!error)
            error = reiser4_inode_store(inode);
        return error ? error : reiser4_safelink_remove(r4, link->object.oid, link->kind);
    default:
        log_error(r4->volume->log,
                  "%s: reiser4: object %" PRIu64 ": a conversion was interrupted, which cannot be "
                  "finished here; mount read-only",
                  r4->volume->name, link->object.oid);
        return -EOPNOTSUPP;
    }
}

static int process(struct reiser4 *r4, const struct reiser4_safelink *link) {
    struct stray *stray = calloc(1, sizeof(*stray));
    int error = stray ? reiser4_objects_note(&r4->objects, &link->object) : -ENOMEM;

    if (!error) {
        stray->inode.volume = r4->volume;
        stray->inode.ino = link->object.oid;
        error = reiser4_inode_load(&stray->inode);
    }
    if (error == -ESTALE) {
        log_warning(r4->volume->log,
                    "%s: reiser4: a safe-link names object %" PRIu64 ", which is not there",
                    r4->volume->name, link->object.oid);
        error = reiser4_safelink_remove(r4, link->object.oid, link->kind);
    } else if (!error) {
        error = process_on(r4, &stray->inode, link);
    }
    free(stray);
    return error;
}

int reiser4_safelinks_process(struct reiser4 *r4) {
    struct reiser4_safelink link;
    int error;

    while ((error = reiser4_safelink_next(r4, 0, &link)) == 0) {
        error = process(r4, &link);
        if (error)
            return error;
    }
    return error == -ENOENT ? 0 : error;
}

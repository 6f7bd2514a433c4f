/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Directories are changed. Interface: layouts/reiser4/layout.h.
 *
 * Invariant: a directory's size is the number of its entries, and private->bytes what they take in
 * items, headers included, whatever items they lie in.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/layout.h"

static struct reiser4_key key_of(struct inode *dir, const char *name, uint32_t length) {
    const struct reiser4_plugins *plugins = &reiser4_inode_of(dir)->plugins;

    return reiser4_key_of_name(dir->ino, plugins->id[REISER4_PLUGIN_HASH],
                               plugins->id[REISER4_PLUGIN_FIBRATION], name, length);
}

/* `sign`: +1, the entry has come; -1, it has gone. */
static void count(struct inode *dir, const struct reiser4_key *key, uint32_t length, int sign) {
    struct reiser4_inode *private = reiser4_inode_of(dir);
    uint64_t change = (uint64_t)(int64_t)sign;

    dir->size += change;
    private->bytes += change * reiser4_entry_bytes(key, length);
    reiser4_sectors_set(dir);
}

/* --- one entry ---------------------------------------------------------------------------------
 */

static int add(struct inode *dir, const char *name, uint32_t length,
               const struct reiser4_object *object) {
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_key key = key_of(dir, name, length);
    struct reiser4_item item;

    clock_charge(dir->volume->clock, COST_DIR_HASH, 1);
    reiser4_entry_make(&key, object, name, length, body, &item);
    int error = reiser4_tree_insert(&reiser4_of(dir->volume)->tree, &item);
    if (!error)
        count(dir, &key, length, 1);
    return error;
}

static int gone(const struct inode *dir) {
    return reiser4_corrupt(dir->volume, "directory %" PRIu64 ": an entry that was there has gone",
                           dir->ino);
}

static int take(struct inode *dir, const char *name, uint32_t length) {
    struct reiser4_key key = key_of(dir, name, length);
    struct reiser4_cursor cursor;
    int error = reiser4_dir_seek(dir, name, length, &cursor);

    if (error)
        return error == -ENOENT ? gone(dir) : error;
    error = reiser4_cursor_remove(&cursor, 1);
    if (!error)
        count(dir, &key, length, -1);
    return error;
}

/* The entry means another object from now on. */
static int set(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_cursor cursor;
    uint8_t *body;
    int error = reiser4_dir_seek(dir, name, length, &cursor);

    if (error)
        return error == -ENOENT ? gone(dir) : error;
    error = reiser4_cursor_change(&cursor, &body);
    if (!error)
        reiser4_entry_set(body, cursor.unit, &object);
    reiser4_cursor_release(&cursor);
    return error;
}

/* --- the contract ------------------------------------------------------------------------------
 */

int reiser4_dir_initialise(struct inode *dir, const struct reiser4_object *parent) {
    const struct reiser4_object self = reiser4_object_of(dir);
    int error = add(dir, ".", 1, &self);

    return error ? error : add(dir, "..", 2, parent);
}

int reiser4_dir_clear(struct inode *dir) {
    int error = take(dir, "..", 2);

    return error ? error : take(dir, ".", 1);
}

int reiser4_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    const struct reiser4_object object = reiser4_object_of(inode);
    int error = reiser4_space_ask_changes(r4, 2, false);

    if (error)
        return error;
    error = add(dir, name, length, &object);
    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

int reiser4_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    int error = reiser4_space_ask_changes(r4, 2, true);

    if (error)
        return error;
    error = take(dir, name, length);
    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

/* A directory that gets another parent says so. */
static int set_parent(struct inode *inode, const struct inode *from, struct inode *to) {
    return S_ISDIR(inode->mode) && from != to ? set(inode, "..", 2, to) : 0;
}

static int exchange(const struct rename *r) {
    int error = set(r->target_dir, r->target_name, r->target_length, r->inode);

    if (!error)
        error = set(r->source_dir, r->source_name, r->source_length, r->victim);
    if (!error)
        error = set_parent(r->inode, r->source_dir, r->target_dir);
    return error ? error : set_parent(r->victim, r->target_dir, r->source_dir);
}

static int move(const struct rename *r) {
    const struct reiser4_object object = reiser4_object_of(r->inode);
    int error = r->victim ? set(r->target_dir, r->target_name, r->target_length, r->inode)
                          : add(r->target_dir, r->target_name, r->target_length, &object);

    if (!error)
        error = set_parent(r->inode, r->source_dir, r->target_dir);
    if (error)
        return error;
    return r->whiteout ? set(r->source_dir, r->source_name, r->source_length, r->whiteout)
                       : take(r->source_dir, r->source_name, r->source_length);
}

int reiser4_dir_rename(const struct rename *rename) {
    struct reiser4 *r4 = reiser4_of(rename->source_dir->volume);
    int error = reiser4_space_ask_changes(r4, 4, false);

    if (error)
        return error;
    error = rename->flags & RENAME_EXCHANGE_NAMES ? exchange(rename) : move(rename);
    reiser4_atom_look(r4);
    return reiser4_fail(r4, error);
}

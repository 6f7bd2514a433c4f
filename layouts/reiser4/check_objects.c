/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. What is said of an object in several places. Interface:
 * layouts/reiser4/check.h.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/reiser4/check.h"
#include "layouts/reiser4/entries.h"

/* --- directories -------------------------------------------------------------------------------
 */

struct directory { /* that is being examined */
    struct reiser4_check *check;
    struct reiser4_object object;
    struct reiser4_plugins plugins;
    bool dot, dotdot;
    uint64_t parent; /* what ".." means */
};

static bool is_name(const struct reiser4_entry *entry, const char *name) {
    return entry->name_length == strlen(name) && memcmp(entry->name, name, entry->name_length) == 0;
}

static void check_key(const struct directory *dir, const struct reiser4_entry *entry) {
    struct reiser4_key key = reiser4_key_of_name(
        dir->object.oid, dir->plugins.id[REISER4_PLUGIN_HASH],
        dir->plugins.id[REISER4_PLUGIN_FIBRATION], entry->name, entry->name_length);

    if (reiser4_key_compare(&key, &entry->key) != 0)
        reiser4_check_wrong(dir->check,
                            "directory %" PRIu64 ": the entry \"%.*s\" has not the key of its name",
                            dir->object.oid, (int)entry->name_length, entry->name);
    if (entry->name_length > NAME_LENGTH_MAX)
        reiser4_check_note(dir->check,
                           "directory %" PRIu64
                           ": an entry has a name of %u bytes, which is not shown",
                           dir->object.oid, entry->name_length);
}

static void check_target(const struct directory *dir, const struct reiser4_entry *entry) {
    struct reiser4_check *check = dir->check;
    struct reiser4_check_object *target = reiser4_check_object_find(check, entry->object.oid);

    if (!target || !target->stat) {
        if (check->complete)
            reiser4_check_wrong(check,
                                "directory %" PRIu64 ": the entry \"%.*s\" means object %" PRIu64
                                ", which does not exist",
                                dir->object.oid, (int)entry->name_length, entry->name,
                                entry->object.oid);
        return;
    }
    if (target->object.locality != entry->object.locality ||
        target->object.ordering != entry->object.ordering)
        reiser4_check_wrong(check,
                            "directory %" PRIu64 ": the entry \"%.*s\" means object %" PRIu64
                            " by a key that is not its",
                            dir->object.oid, (int)entry->name_length, entry->name,
                            entry->object.oid);
    target->names++;
    if (S_ISDIR(target->mode)) {
        target->parent = dir->object.oid;
        reiser4_check_object_find(check, dir->object.oid)->subdirs++;
    }
}

static void check_entry(struct directory *dir, const struct reiser4_entry *entry) {
    check_key(dir, entry);
    if (is_name(entry, ".")) {
        dir->dot = true;
        if (entry->object.oid != dir->object.oid)
            reiser4_check_wrong(dir->check, "directory %" PRIu64 ": \".\" means object %" PRIu64,
                                dir->object.oid, entry->object.oid);
    } else if (is_name(entry, "..")) {
        dir->dotdot = true;
        dir->parent = entry->object.oid;
    } else {
        check_target(dir, entry);
    }
}

/* Of the entries with the cursor's key: does one before the cursor have the same name? */
static int check_twice(const struct directory *dir, const struct reiser4_entry *entry) {
    struct reiser4_cursor cursor;
    uint32_t found = 0;
    int error = reiser4_tree_seek(&dir->check->r4->tree, &entry->key, &cursor);

    while (!error) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        struct reiser4_key key = reiser4_cursor_key(&cursor);
        if (item.id != REISER4_ITEM_ENTRIES || reiser4_key_compare(&key, &entry->key) != 0)
            break;
        found += reiser4_entry_is(&item, cursor.unit, entry->name, entry->name_length);
        error = reiser4_cursor_next(&cursor);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    if (found > 1)
        reiser4_check_wrong(dir->check, "directory %" PRIu64 ": \"%.*s\" is there %u times",
                            dir->object.oid, (int)entry->name_length, entry->name, found);
    return error == -ENOENT ? 0 : error;
}

static int walk_entries(struct directory *dir) {
    const struct reiser4_key first = reiser4_key_make(dir->object.oid, REISER4_KEY_NAME, 0, 0, 0);
    struct reiser4_key before = REISER4_KEY_MAX;
    struct reiser4_cursor cursor;
    int error = reiser4_tree_seek(&dir->check->r4->tree, &first, &cursor), failed = 0;

    while (!error && !failed) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        struct reiser4_entry entry;
        if (item.id != REISER4_ITEM_ENTRIES || reiser4_key_locality(&item.key) != dir->object.oid)
            break;
        reiser4_entry_load(&item, cursor.unit, &entry);
        check_entry(dir, &entry);
        if (reiser4_key_compare(&before, &entry.key) == 0)
            failed = check_twice(dir, &entry);
        before = entry.key;
        if (!failed)
            error = reiser4_cursor_next(&cursor);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    return failed ? failed : error == -ENOENT ? 0 : error;
}

/* Notes the parents of directories, and names. */
static int check_directory(struct reiser4_check *check, struct reiser4_object object,
                           const struct reiser4_plugins *plugins, uint64_t *parent) {
    struct directory dir = {.check = check, .object = object, .plugins = *plugins};
    int error = reiser4_check_go_on(walk_entries(&dir));

    *parent = dir.parent;
    if (!error && check->complete && (!dir.dot || !dir.dotdot))
        reiser4_check_wrong(check, "directory %" PRIu64 ": it has no \"%s\"", object.oid,
                            dir.dot ? ".." : ".");
    return error;
}

static int check_directories(struct reiser4_check *check) {
    int error = 0;

    for (size_t i = 0; i < check->room && !error; i++) {
        struct reiser4_check_object object = check->object[i];
        uint64_t dotdot;
        if (object.object.oid == 0 || !object.stat || !S_ISDIR(object.mode))
            continue;
        error = check_directory(check, object.object, &object.plugins, &dotdot);
        check->object[i].end = dotdot; /* of directories it is not used otherwise */
    }
    return error;
}

/* --- one object --------------------------------------------------------------------------------
 */

static void wrong_number(struct reiser4_check *check, const struct reiser4_check_object *o,
                         const char *what, uint64_t is, uint64_t wanted) {
    if (is != wanted)
        reiser4_check_wrong(check, "object %" PRIu64 ": %s is %" PRIu64 ", expected %" PRIu64,
                            o->object.oid, what, is, wanted);
}

static void check_file(struct reiser4_check *check, const struct reiser4_check_object *o) {
    const uint64_t block = REISER4_BLOCK_SIZE;

    if (o->forms & (o->forms - 1) && (o->mode & S_IFMT) != REISER4_MODE_MIXED)
        reiser4_check_wrong(check, "object %" PRIu64 ": its body has several forms", o->object.oid);
    if (o->gap && !(o->forms & 1u << REISER4_FORM_CLUSTERS))
        reiser4_check_wrong(check, "object %" PRIu64 ": its body has a gap", o->object.oid);
    if (o->plugins.id[REISER4_PLUGIN_OBJECT] == REISER4_OBJECT_CCREG40) {
        wrong_number(check, o, "bytes", o->disk_bytes, o->bytes);
        return;
    }
    wrong_number(check, o, "bytes", o->disk_bytes, o->bytes);
    if (o->forms == 1u << REISER4_FORM_EXTENTS)
        wrong_number(check, o, "the body's length, in blocks,", o->end / block,
                     o->size / block + (o->size % block != 0));
    else if (!(o->forms & 1u << REISER4_FORM_EXTENTS))
        wrong_number(check, o, "the body's length", o->end, o->size);
}

static void check_dir_counts(struct reiser4_check *check, const struct reiser4_check_object *o) {
    bool root = o->object.oid == REISER4_ROOT_OID;
    uint64_t parent = root ? REISER4_ROOT_OID : o->parent;

    wrong_number(check, o, "its number of entries", o->size, o->entries);
    wrong_number(check, o, "bytes", o->disk_bytes, o->bytes);
    if (parent)
        wrong_number(check, o, "its \"..\"", o->end, parent);
    if (o->names > 1)
        reiser4_check_wrong(check, "directory %" PRIu64 ": it has %u names", o->object.oid,
                            o->names);
    /* mkfs.reiser4 gives the root one more. */
    if (!root || o->links != o->subdirs + 3)
        wrong_number(check, o, "its link count", o->links, o->subdirs + 2);
}

static void check_object(struct reiser4_check *check, const struct reiser4_check_object *o) {
    bool root = o->object.oid == REISER4_ROOT_OID;

    if (!o->stat) {
        if (o->forms || o->entries || o->leaving)
            reiser4_check_wrong(check,
                                "object %" PRIu64 ": it has a body, entries or a safe-link, but no "
                                "stat data",
                                o->object.oid);
        return;
    }
    if (o->names == 0 && !root && !o->leaving)
        reiser4_check_wrong(check, "object %" PRIu64 ": it has no name", o->object.oid);
    if (S_ISDIR(o->mode)) {
        check_dir_counts(check, o);
        return;
    }
    if (o->entries)
        reiser4_check_wrong(check, "object %" PRIu64 ": it has entries, but is no directory",
                            o->object.oid);
    wrong_number(check, o, "its link count", o->links, o->names);
    if (S_ISREG(o->mode) || (o->mode & S_IFMT) == REISER4_MODE_MIXED)
        check_file(check, o);
    else if (o->forms)
        reiser4_check_wrong(check, "object %" PRIu64 ": it has a body, but is no file",
                            o->object.oid);
}

int reiser4_check_objects(struct reiser4_check *check) {
    const struct reiser4 *r4 = check->r4;
    int error = check_directories(check);

    if (error || !check->complete)
        return error;
    for (size_t i = 0; i < check->room; i++)
        if (check->object[i].object.oid != 0)
            check_object(check, &check->object[i]);
    if (r4->counters.file_count != check->stats)
        reiser4_check_wrong(check, "super block: file_count is %" PRIu64 ", expected %" PRIu64,
                            r4->counters.file_count, check->stats);
    if (r4->counters.next_oid <= check->largest_oid)
        reiser4_check_wrong(check,
                            "super block: next_oid is %" PRIu64 ", but object %" PRIu64 " exists",
                            r4->counters.next_oid, check->largest_oid);
    return 0;
}

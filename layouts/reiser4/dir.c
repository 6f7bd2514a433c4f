/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Directories are looked up in and listed. Interface:
 * layouts/reiser4/layout.h.
 *
 * Entries are in the order of their keys. Those whose names collide have one key, and lie in any
 * order: a look-up tries them all, a listing brings them in the order of a hash of their names, so
 * that it can be interrupted between them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/layout.h"

/* --- look-up -----------------------------------------------------------------------------------
 */

/* Is the cursor on an entry with that key? */
static bool stands_on(const struct reiser4_cursor *cursor, const struct reiser4_key *key) {
    struct reiser4_item item = reiser4_cursor_item(cursor);
    struct reiser4_key found = reiser4_cursor_key(cursor);

    return item.id == REISER4_ITEM_ENTRIES && reiser4_key_compare(&found, key) == 0;
}

int reiser4_dir_seek(struct inode *dir, const char *name, uint32_t length,
                     struct reiser4_cursor *cursor) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    const struct reiser4_plugins *plugins = &reiser4_inode_of(dir)->plugins;
    struct reiser4_key key =
        reiser4_key_of_name(dir->ino, plugins->id[REISER4_PLUGIN_HASH],
                            plugins->id[REISER4_PLUGIN_FIBRATION], name, length);
    int64_t compared = 0;

    if (length == 0 || length > REISER4_NAME_MAX)
        return -ENOENT;
    clock_charge(dir->volume->clock, COST_DIR_HASH, 1);
    int error = reiser4_tree_seek(&r4->tree, &key, cursor);
    while (!error && stands_on(cursor, &key)) {
        struct reiser4_item item = reiser4_cursor_item(cursor);
        compared++;
        if (reiser4_entry_is(&item, cursor->unit, name, length))
            break;
        error = reiser4_cursor_next(cursor);
    }
    clock_charge(dir->volume->clock, COST_DIR_ENTRY, compared);
    if (!error && stands_on(cursor, &key))
        return 0;
    if (!error || error == -ENOENT)
        reiser4_cursor_release(cursor);
    return error ? error : -ENOENT;
}

int reiser4_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    struct reiser4 *r4 = reiser4_of(dir->volume);
    struct reiser4_cursor cursor;
    struct reiser4_entry entry;
    int error = reiser4_dir_seek(dir, name, length, &cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    reiser4_entry_load(&item, cursor.unit, &entry);
    reiser4_cursor_release(&cursor);
    *ino = entry.object.oid;
    return reiser4_objects_note(&r4->objects, &entry.object);
}

/* --- listing -----------------------------------------------------------------------------------
 */

struct listed {
    uint64_t name_hash;
    struct reiser4_object object;
    size_t name; /* where it starts in `names` */
    uint32_t length;
};

struct listing {
    struct inode *dir;
    struct reiser4_place_of_entry after; /* what was brought last, or before the listing */
    bool any;                            /* `after` is set */
    dir_visit visit;
    void *context;
    /* Entries of one key, most often one: */
    struct reiser4_key key;
    struct listed *listed; /* owned */
    size_t count, room;
    char *names; /* owned */
    size_t names_length, names_room;
};

static int by_name_hash(const void *a, const void *b) {
    const struct listed *x = a, *y = b;

    return x->name_hash < y->name_hash ? -1 : x->name_hash > y->name_hash;
}

static int enlarge(void **memory, size_t needed, size_t *room, size_t element) {
    size_t wanted = *room ? *room : 16;

    while (wanted < needed)
        wanted *= 2;
    if (wanted == *room)
        return 0;
    void *larger = reallocarray(*memory, wanted, element);
    if (!larger)
        return -ENOMEM;
    *memory = larger;
    *room = wanted;
    return 0;
}

static int listing_add(struct listing *listing, const struct reiser4_entry *entry) {
    size_t names = listing->names_length + entry->name_length;
    int error = enlarge((void **)&listing->listed, listing->count + 1, &listing->room,
                        sizeof(*listing->listed));

    if (!error)
        error = enlarge((void **)&listing->names, names, &listing->names_room, 1);
    if (error)
        return error;
    memcpy(listing->names + listing->names_length, entry->name, entry->name_length);
    listing->listed[listing->count++] = (struct listed){
        .name_hash = reiser4_key_is_hashed(&entry->key)
                         ? reiser4_hash_name(REISER4_HASH_FNV1, entry->name, entry->name_length)
                         : 0,
        .object = entry->object,
        .name = listing->names_length,
        .length = entry->name_length,
    };
    listing->names_length = names;
    return 0;
}

/* Was it brought before? */
static bool is_past(const struct listing *listing, const struct reiser4_place_of_entry *place) {
    int order = reiser4_key_compare(&place->key, &listing->after.key);

    return listing->any &&
           (order < 0 || (order == 0 && place->name_hash <= listing->after.name_hash));
}

/* 1: go on; 0: the visitor wants no more. */
static int listing_bring(struct listing *listing, const struct listed *listed) {
    struct inode *dir = listing->dir;
    struct reiser4_place_of_entry place = {listing->key, listed->name_hash};
    struct dir_entry entry = {.name = listing->names + listed->name,
                              .name_length = listed->length,
                              .ino = listed->object.oid};

    if (is_past(listing, &place) || listed->length > NAME_LENGTH_MAX)
        return 1;
    int error = reiser4_objects_note(&reiser4_of(dir->volume)->objects, &listed->object);
    if (!error)
        error = reiser4_places_cookie(dir, &place, &entry.cookie);
    if (error)
        return error;
    if (!listing->visit(listing->context, &entry))
        return 0;
    listing->after = place;
    listing->any = true;
    return 1;
}

/* Brings the entries of one key. As listing_bring. */
static int listing_bring_all(struct listing *listing) {
    int more = 1;

    if (listing->count > 1)
        qsort(listing->listed, listing->count, sizeof(*listing->listed), by_name_hash);
    for (size_t i = 0; i < listing->count && more > 0; i++)
        more = listing_bring(listing, &listing->listed[i]);
    clock_charge(listing->dir->volume->clock, COST_DIR_ENTRY, (int64_t)listing->count);
    listing->count = 0;
    listing->names_length = 0;
    return more;
}

/* What the cursor stands on, after those of the key before it. As listing_bring; 0 also at the end
 * of the directory. */
static int listing_step(struct listing *listing, const struct reiser4_cursor *cursor) {
    struct reiser4_item item = reiser4_cursor_item(cursor);
    struct reiser4_entry entry;
    int more = 1;

    if (item.id != REISER4_ITEM_ENTRIES || reiser4_key_locality(&item.key) != listing->dir->ino)
        return 0;
    reiser4_entry_load(&item, cursor->unit, &entry);
    if (listing->count > 0 && reiser4_key_compare(&entry.key, &listing->key) != 0)
        more = listing_bring_all(listing);
    if (more <= 0)
        return more;
    listing->key = entry.key;
    int error = listing_add(listing, &entry);
    return error ? error : 1;
}

static int listing_walk(struct listing *listing) {
    struct reiser4 *r4 = reiser4_of(listing->dir->volume);
    const struct reiser4_key first = reiser4_key_make(listing->dir->ino, REISER4_KEY_NAME, 0, 0, 0);
    /* Whoever lists a directory wants to know more of its entries. */
    const struct reiser4_key stop =
        reiser4_key_make(listing->dir->ino, REISER4_KEY_STAT, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    struct reiser4_cursor cursor;
    uint64_t leaf = 0;
    int more = 1;
    int error = reiser4_tree_seek(&r4->tree, listing->any ? &listing->after.key : &first, &cursor);

    while (!error) {
        if (cursor.step[cursor.bottom].view.block != leaf)
            reiser4_cursor_read_ahead(&cursor, &stop);
        leaf = cursor.step[cursor.bottom].view.block;
        more = listing_step(listing, &cursor);
        if (more <= 0)
            break;
        error = reiser4_cursor_next(&cursor);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    if (error && error != -ENOENT)
        return error;
    if (more >= 0 && listing->count > 0)
        more = listing_bring_all(listing);
    return more < 0 ? more : 0;
}

static int list_after(struct inode *dir, const struct reiser4_place_of_entry *after,
                      dir_visit visit, void *context) {
    struct listing listing = {.dir = dir, .visit = visit, .context = context};

    if (after) {
        listing.after = *after;
        listing.any = true;
    }
    int error = listing_walk(&listing);
    free(listing.listed);
    free(listing.names);
    return error;
}

int reiser4_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    struct reiser4_place_of_entry after;
    int error = cookie > 0 ? reiser4_places_find(dir, cookie, &after) : 0;

    return error ? error : list_after(dir, cookie > 0 ? &after : NULL, visit, context);
}

static bool is_dots(const struct dir_entry *entry) {
    return entry->name[0] == '.' &&
           (entry->name_length == 1 || (entry->name_length == 2 && entry->name[1] == '.'));
}

static bool visit_dots(void *context, const struct dir_entry *entry) {
    bool *other = context;

    *other = !is_dots(entry);
    return !*other;
}

int reiser4_dir_empty(struct inode *dir) {
    bool other = false;
    int error = list_after(dir, NULL, visit_dots, &other);

    return error ? error : other ? -ENOTEMPTY : 0;
}

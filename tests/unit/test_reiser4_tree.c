/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: layouts/reiser4's dancing tree, apart from the rest: random insertions, changes and
 * removals of all kinds of items beside a simple model, with flushes in between; after each step
 * the tree's invariants hold, and every so often what it has is what the model has.
 */
#include <check.h>
#include <errno.h>

#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/extent.h"
#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/stat.h"
#include "layouts/reiser4/tree.h"
#include "tests/unit/fixture.h"

enum {
    VOLUME_BLOCKS = 16384,
    CACHE_BYTES = 64 << 20,
    MKFS_ID = 0x1234,
    OBJECTS = 60, /* of each of the four sorts */
    NAMES = 300,
    TAIL_MAX = 30000,
    EXTENT_MAX = 1500, /* blocks */
    TARGET_MAX = 3900,
    FIRST_OID = 100,
};

struct model {
    uint32_t target[OBJECTS]; /* length of the symlink's, + 1; 0: no stat data */
    bool name[OBJECTS][NAMES];
    uint32_t tail_size[OBJECTS];
    uint8_t tail[OBJECTS][TAIL_MAX];
    uint32_t extent_size[OBJECTS];
    uint64_t extent[OBJECTS][EXTENT_MAX]; /* block, 0: hole */
};

struct harness {
    struct clock clock;
    struct log log;
    struct volume volume;
    struct buffer_cache *buffers;
    struct reiser4_jnodes jnodes;
    struct reiser4_tree tree;
    uint64_t next_block, released;
    uint64_t random;
    struct model *model;
};

static uint64_t below(struct harness *h, uint64_t limit) {
    return fixture_random(&h->random) % limit;
}

/* --- the harness -------------------------------------------------------------------------------
 */

static int release(void *context, uint64_t block) {
    ((struct harness *)context)->released++;
    return 0;
}

static void give_back(void *context, uint64_t block) {
    ((struct harness *)context)->released++;
}

/* A tree with nothing but one item, which is below all others and stays. */
static void plant(struct harness *h) {
    struct reiser4_stat stat = {.mask = REISER4_STAT_NEW, .mode = S_IFDIR | 0755, .nlink = 2};
    struct reiser4_key key = reiser4_key_make(1, REISER4_KEY_STAT, 0, 1, 0);
    struct reiser4_view leaf, twig;

    ck_assert_int_eq(reiser4_node_make(&h->jnodes, REISER4_LEAF, &leaf), 0);
    reiser4_stat_encode(&stat, reiser4_node_insert(leaf.node, 0, &key, REISER4_ITEM_STAT,
                                                   reiser4_stat_length(&stat)));
    ck_assert_int_eq(reiser4_node_make(&h->jnodes, REISER4_TWIG, &twig), 0);
    struct reiser4_disk_pointer *pointer = (struct reiser4_disk_pointer *)reiser4_node_insert(
        twig.node, 0, &key, REISER4_ITEM_POINTER, sizeof(*pointer));
    le64_store(&pointer->block, leaf.block);
    h->tree = (struct reiser4_tree){.jnodes = &h->jnodes, .root = twig.block, .height = 2};
}

static void harness_open(struct harness *h, uint32_t plugin, const char *test) {
    memset(h, 0, sizeof(*h));
    clock_init_virtual(&h->clock, NULL);
    h->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(device_open_ram((uint64_t)VOLUME_BLOCKS * REISER4_BLOCK_SIZE, &h->clock,
                                     &h->log, &h->volume.device),
                     0);
    h->volume.clock = &h->clock;
    h->volume.log = &h->log;
    snprintf(h->volume.name, sizeof(h->volume.name), "harness");
    ck_assert_int_eq(pool_init(&h->volume.pool, CACHE_BYTES), 0);
    ck_assert_int_eq(buffer_cache_create(h->volume.device, &h->volume.pool, &h->clock,
                                         REISER4_BLOCK_SIZE, &h->buffers),
                     0);
    h->jnodes = (struct reiser4_jnodes){
        .volume = &h->volume,
        .buffers = h->buffers,
        .format = reiser4_node_format_of(plugin),
        .blocks = VOLUME_BLOCKS,
        .mkfs_id = MKFS_ID,
        .release = release,
        .give_back = give_back,
        .context = h,
    };
    ck_assert_int_eq(reiser4_jnodes_init(&h->jnodes), 0);
    h->next_block = REISER4_FIRST_FREE;
    h->random = fixture_seed(test);
    h->model = calloc(1, sizeof(*h->model));
    ck_assert_ptr_nonnull(h->model);
    plant(h);
}

static void harness_close(struct harness *h) {
    reiser4_jnodes_destroy(&h->jnodes);
    buffer_cache_destroy(h->buffers);
    pool_destroy(&h->volume.pool);
    device_close(h->volume.device);
    free(h->model);
}

static void verify(struct harness *h) {
    char text[200];
    const char *wrong = reiser4_tree_verify(&h->tree, text, sizeof(text));

    ck_assert_msg(!wrong, "%s", wrong);
}

/* --- flush -------------------------------------------------------------------------------------
 */

static struct reiser4_key first_key(struct harness *h) {
    struct reiser4_view root;

    ck_assert_int_eq(reiser4_node_get(&h->jnodes, h->tree.root, h->tree.height, &root), 0);
    struct reiser4_key key = reiser4_node_key(root.node, 0);
    reiser4_view_put(&root);
    return key;
}

static uint64_t allocate(struct harness *h) {
    while (!reiser4_block_valid(&h->jnodes, h->next_block))
        h->next_block++;
    return h->next_block++;
}

/* Packs the nodes of a level, or gives those that have none a place. */
static void walk_level(struct harness *h, uint32_t level, bool pack) {
    struct reiser4_key key = first_key(h);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_find_node(&h->tree, &key, level, &cursor);

    ck_assert_int_eq(error, 0);
    while (!error) {
        struct reiser4_view *view = &cursor.step[level].view;
        bool moved = view->jnode && pack;
        while (moved)
            ck_assert_int_eq(reiser4_cursor_pack(&cursor, &moved), 0);
        if (level > h->tree.height)
            break;
        if (!pack && view->jnode && (view->jnode->fresh || below(h, 2)))
            ck_assert_int_eq(reiser4_cursor_renumber(&cursor, allocate(h)), 0);
        error = reiser4_cursor_right(&cursor);
    }
    ck_assert(!error || error == -ENOENT);
    reiser4_cursor_release(&cursor);
}

static void settle(struct harness *h) {
    struct reiser4_jnode *jnode;
    struct buffer *buffer;

    while ((jnode = TAILQ_FIRST(&h->jnodes.list))) {
        uint64_t block = jnode->block;
        ck_assert_msg(block < VOLUME_BLOCKS, "a node has no place");
        ck_assert_int_eq(reiser4_jnode_settle(&h->jnodes, jnode, &buffer), 0);
        ck_assert_int_eq(device_write(h->volume.device, block * REISER4_BLOCK_SIZE,
                                      buffer_data(buffer), REISER4_BLOCK_SIZE, PURPOSE_MAP),
                         0);
        buffer->pinned = false;
        buffer_put(buffer);
    }
}

/* Every node is read from the device again, and validated. */
static void reload(struct harness *h) {
    buffer_cache_destroy(h->buffers);
    ck_assert_int_eq(buffer_cache_create(h->volume.device, &h->volume.pool, &h->clock,
                                         REISER4_BLOCK_SIZE, &h->buffers),
                     0);
    h->jnodes.buffers = h->buffers;
}

static void flush(struct harness *h) {
    for (uint32_t level = REISER4_LEAF; level <= h->tree.height; level++)
        walk_level(h, level, true);
    verify(h);
    for (uint32_t level = h->tree.height; level >= REISER4_LEAF; level--)
        walk_level(h, level, false);
    verify(h);
    if (h->next_block > VOLUME_BLOCKS / 2)
        h->next_block = REISER4_FIRST_FREE; /* what lies there is long released */
    settle(h);
    reload(h);
    verify(h);
}

/* --- keys --------------------------------------------------------------------------------------
 */

enum sort { SORT_STAT, SORT_DIR, SORT_TAIL, SORT_EXTENT };

static uint64_t oid_of(enum sort sort, uint32_t i) {
    return FIRST_OID + i * 4 + sort;
}

/* Two objects in three are of one directory, so that sorts stand beside each other. */
static struct reiser4_object object_of(enum sort sort, uint32_t i) {
    return (struct reiser4_object){50 + i % 3, i % 7, oid_of(sort, i)};
}

static struct reiser4_key stat_key(uint32_t i) {
    struct reiser4_object object = object_of(SORT_STAT, i);
    return reiser4_key_of_stat(&object);
}

static struct reiser4_key body_key(enum sort sort, uint32_t i, uint64_t offset) {
    struct reiser4_object object = object_of(sort, i);
    return reiser4_key_of_body(&object, offset);
}

/* Some names are long, and in some directories all long ones have one key. */
static struct reiser4_key name_key(uint32_t dir, uint32_t i, char *name, uint32_t *length) {
    enum reiser4_hash hash = dir % 4 == 0 ? REISER4_HASH_DEG : REISER4_HASH_R5;

    *length = (uint32_t)snprintf(name, 200, "%s%u%.*s", i % 3 ? "" : "a name of many letters ", i,
                                 (int)(i % 3 ? 0 : i % 100),
                                 "----------------------------------------------------------------"
                                 "------------------------------------");
    return reiser4_key_of_name(oid_of(SORT_DIR, dir), hash, REISER4_FIBRE_EXT_1, name, *length);
}

/* --- steps -------------------------------------------------------------------------------------
 */

static uint32_t make_stat(uint32_t target, uint8_t *body) {
    char text[TARGET_MAX + 1];
    struct reiser4_stat stat = {.mask = REISER4_STAT_NEW | REISER4_STAT_HAS(REISER4_SD_SYMLINK),
                                .mode = S_IFLNK | 0777,
                                .nlink = 1,
                                .size = target,
                                .target = text,
                                .target_length = target};

    memset(text, 'x', sizeof(text));
    reiser4_stat_encode(&stat, body);
    return reiser4_stat_length(&stat);
}

static void change_stat(struct harness *h, uint32_t i) {
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_item item = {.key = stat_key(i), .id = REISER4_ITEM_STAT, .body = body};
    struct reiser4_cursor cursor;
    uint32_t *there = &h->model->target[i];
    uint32_t target = 1 + (uint32_t)below(h, below(h, 3) ? 40 : TARGET_MAX);

    item.length = make_stat(target, body);
    if (*there) {
        ck_assert_int_eq(reiser4_tree_insert(&h->tree, &item), -EEXIST);
        ck_assert_int_eq(reiser4_tree_find(&h->tree, &item.key, &cursor), 0);
        if (below(h, 2)) {
            ck_assert_int_eq(reiser4_cursor_replace(&cursor, body, item.length), 0);
            *there = target + 1;
        } else {
            ck_assert_int_eq(reiser4_cursor_remove(&cursor, 1), 0);
            *there = 0;
        }
    } else {
        ck_assert_int_eq(reiser4_tree_find(&h->tree, &item.key, &cursor), -ENOENT);
        ck_assert_int_eq(reiser4_tree_insert(&h->tree, &item), 0);
        *there = target + 1;
    }
}

/* The cursor stands on the entry. */
static void find_entry(struct harness *h, const struct reiser4_key *key, const char *name,
                       uint32_t length, struct reiser4_cursor *cursor) {
    int error = reiser4_tree_seek(&h->tree, key, cursor);

    for (; !error; error = reiser4_cursor_next(cursor)) {
        struct reiser4_item item = reiser4_cursor_item(cursor);
        if (item.id == REISER4_ITEM_ENTRIES && reiser4_entry_is(&item, cursor->unit, name, length))
            return;
    }
    ck_abort_msg("entry \"%.*s\" is not there", (int)length, name);
}

static void change_name(struct harness *h, uint32_t dir, uint32_t i) {
    uint8_t body[REISER4_BLOCK_SIZE];
    char name[200];
    uint32_t length;
    struct reiser4_key key = name_key(dir, i, name, &length);
    struct reiser4_object object = object_of(SORT_STAT, i % OBJECTS);
    struct reiser4_item item;
    struct reiser4_cursor cursor;
    bool *there = &h->model->name[dir][i];

    if (*there) {
        find_entry(h, &key, name, length, &cursor);
        ck_assert_int_eq(reiser4_cursor_remove(&cursor, 1), 0);
    } else {
        reiser4_entry_make(&key, &object, name, length, body, &item);
        ck_assert_int_eq(reiser4_tree_insert(&h->tree, &item), 0);
    }
    *there = !*there;
}

static void cut(struct harness *h, enum sort sort, uint32_t i, uint64_t from, uint64_t to) {
    struct reiser4_key first = body_key(sort, i, from), last = body_key(sort, i, to);
    bool done = false;

    while (!done)
        ck_assert_int_eq(
            reiser4_tree_cut(&h->tree, &first, &last, 1 + (uint32_t)below(h, 4), NULL, NULL, &done),
            0);
}

static void change_tail(struct harness *h, uint32_t i) {
    uint32_t *size = &h->model->tail_size[i];
    uint8_t *bytes = h->model->tail[i];

    if (*size > 0 && below(h, 3) == 0) {
        uint32_t smaller = (uint32_t)below(h, *size);
        cut(h, SORT_TAIL, i, smaller, UINT64_MAX);
        *size = smaller;
        return;
    }
    uint32_t more = 1 + (uint32_t)below(h, below(h, 2) ? 200 : 9000);
    if (more > TAIL_MAX - *size)
        return;
    for (uint32_t at = *size; at < *size + more; at++)
        bytes[at] = (uint8_t)fixture_random(&h->random);
    struct reiser4_item item = {.key = body_key(SORT_TAIL, i, *size),
                                .id = REISER4_ITEM_TAIL,
                                .length = more,
                                .body = bytes + *size};
    ck_assert_int_eq(reiser4_tree_insert(&h->tree, &item), 0);
    *size += more;
}

/* Units for blocks [from, to) of the model. */
static uint32_t make_extents(const uint64_t *block, uint32_t from, uint32_t to, uint8_t *body) {
    uint32_t units = 0;

    for (uint32_t at = from, end; at < to; at = end) {
        for (end = at + 1; end < to && block[end] == (block[at] ? block[at] + end - at : 0);)
            end++;
        reiser4_extent_store(body, units++, block[at], end - at);
    }
    return units * (uint32_t)sizeof(struct reiser4_disk_extent);
}

static void insert_extents(struct harness *h, uint32_t i, uint32_t from, uint32_t to) {
    uint8_t body[EXTENT_MAX * sizeof(struct reiser4_disk_extent)];
    struct reiser4_item item = {.key =
                                    body_key(SORT_EXTENT, i, (uint64_t)from * REISER4_BLOCK_SIZE),
                                .id = REISER4_ITEM_EXTENT,
                                .length = make_extents(h->model->extent[i], from, to, body),
                                .body = body};

    ck_assert_int_eq(reiser4_tree_insert(&h->tree, &item), 0);
}

static void fill_extents(struct harness *h, uint32_t i, uint32_t from, uint32_t to) {
    uint64_t start = 0;

    for (uint32_t at = from; at < to; at++) {
        if (at == from || below(h, 3) == 0)
            start = below(h, 3) ? 1000 + below(h, 1000000) : 0;
        else
            start += start > 0;
        h->model->extent[i][at] = start;
    }
}

/* The range's units are taken out, those that it cuts as a whole, and others are put there. */
static void overwrite_extents(struct harness *h, uint32_t i, uint32_t from, uint32_t to) {
    struct reiser4_key key = body_key(SORT_EXTENT, i, (uint64_t)from * REISER4_BLOCK_SIZE);
    struct reiser4_cursor cursor;

    ck_assert_int_eq(reiser4_tree_floor(&h->tree, &key, &cursor), 0);
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    from = (uint32_t)(reiser4_extent_load(&item, cursor.unit).offset / REISER4_BLOCK_SIZE);
    reiser4_cursor_release(&cursor);
    key = body_key(SORT_EXTENT, i, (uint64_t)(to - 1) * REISER4_BLOCK_SIZE);
    ck_assert_int_eq(reiser4_tree_floor(&h->tree, &key, &cursor), 0);
    item = reiser4_cursor_item(&cursor);
    struct reiser4_extent last = reiser4_extent_load(&item, cursor.unit);
    to = (uint32_t)(last.offset / REISER4_BLOCK_SIZE + last.width);
    reiser4_cursor_release(&cursor);
    ck_assert_uint_le(to, h->model->extent_size[i]);
    cut(h, SORT_EXTENT, i, (uint64_t)from * REISER4_BLOCK_SIZE,
        (uint64_t)to * REISER4_BLOCK_SIZE - 1);
    fill_extents(h, i, from, to);
    insert_extents(h, i, from, to);
}

static void change_extents(struct harness *h, uint32_t i) {
    uint32_t *size = &h->model->extent_size[i];

    if (*size > 0 && below(h, 3) == 0) {
        uint32_t from = (uint32_t)below(h, *size);
        overwrite_extents(h, i, from, from + 1 + (uint32_t)below(h, *size - from));
        return;
    }
    if (*size > 0 && below(h, 4) == 0) { /* at a unit's start, as a truncation that splits none */
        cut(h, SORT_EXTENT, i, 0, UINT64_MAX);
        *size = 0;
        return;
    }
    uint32_t more = 1 + (uint32_t)below(h, below(h, 2) ? 5 : 400);
    if (more > EXTENT_MAX - *size)
        return;
    fill_extents(h, i, *size, *size + more);
    insert_extents(h, i, *size, *size + more);
    *size += more;
}

static void step(struct harness *h) {
    uint32_t i = (uint32_t)below(h, OBJECTS);

    switch (below(h, 6)) {
    case 0:
        change_stat(h, i);
        break;
    case 1:
        change_tail(h, i);
        break;
    case 2:
        change_extents(h, i);
        break;
    default:
        change_name(h, i % 12, (uint32_t)below(h, NAMES));
        break;
    }
}

/* --- comparison --------------------------------------------------------------------------------
 */

struct seen {
    uint64_t stats, names, tail_bytes, extent_blocks;
};

static void compare_name(struct harness *h, const struct reiser4_item *item, uint32_t unit,
                         struct seen *seen) {
    uint32_t dir = (uint32_t)(reiser4_key_locality(&item->key) - FIRST_OID - SORT_DIR) / 4;
    struct reiser4_entry entry;
    char name[200];
    uint32_t length;

    ck_assert(reiser4_entry_load(item, unit, &entry));
    const char *digits = entry.name;
    uint32_t rest = entry.name_length;
    while (rest > 0 && (*digits < '0' || *digits > '9'))
        digits++, rest--;
    uint32_t i = 0;
    for (; rest > 0 && *digits >= '0' && *digits <= '9'; digits++, rest--)
        i = i * 10 + (uint32_t)(*digits - '0');
    ck_assert(i < NAMES && h->model->name[dir][i]);
    struct reiser4_key key = name_key(dir, i, name, &length);
    ck_assert_int_eq(reiser4_key_compare(&key, &entry.key), 0);
    ck_assert(entry.name_length == length && memcmp(entry.name, name, length) == 0);
    ck_assert_uint_eq(entry.object.oid, oid_of(SORT_STAT, i % OBJECTS));
    seen->names++;
}

static void compare_item(struct harness *h, const struct reiser4_item *item, struct seen *seen) {
    uint64_t oid = item->key.word[REISER4_OBJECTID], offset = item->key.word[REISER4_OFFSET];
    uint32_t i = (uint32_t)(oid - FIRST_OID) / 4;
    uint8_t body[REISER4_BLOCK_SIZE];

    switch (item->id) {
    case REISER4_ITEM_STAT:
        if (oid == 1)
            break;
        ck_assert_uint_ne(h->model->target[i], 0);
        ck_assert_uint_eq(make_stat(h->model->target[i] - 1, body), item->length);
        ck_assert(memcmp(body, item->body, item->length) == 0);
        seen->stats++;
        break;
    case REISER4_ITEM_ENTRIES:
        for (uint32_t unit = 0; unit < reiser4_item_units(item); unit++)
            compare_name(h, item, unit, seen);
        break;
    case REISER4_ITEM_TAIL:
        ck_assert(offset + item->length <= h->model->tail_size[i]);
        ck_assert(memcmp(h->model->tail[i] + offset, item->body, item->length) == 0);
        seen->tail_bytes += item->length;
        break;
    case REISER4_ITEM_EXTENT:
        for (uint32_t unit = 0; unit < reiser4_item_units(item); unit++) {
            struct reiser4_extent extent = reiser4_extent_load(item, unit);
            uint64_t at = extent.offset / REISER4_BLOCK_SIZE;
            for (uint64_t k = 0; k < extent.width; k++)
                ck_assert_uint_eq(h->model->extent[i][at + k], extent.start ? extent.start + k : 0);
            seen->extent_blocks += extent.width;
        }
        break;
    default:
        ck_abort_msg("item of kind %u", item->id);
    }
}

static void compare(struct harness *h) {
    struct seen seen = {0}, expected = {0};
    struct reiser4_key key = first_key(h);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_seek(&h->tree, &key, &cursor);

    ck_assert_int_eq(error, 0);
    for (; !error; error = reiser4_cursor_next_item(&cursor)) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        compare_item(h, &item, &seen);
    }
    ck_assert_int_eq(error, -ENOENT);
    reiser4_cursor_release(&cursor);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        expected.stats += h->model->target[i] > 0;
        for (uint32_t k = 0; k < NAMES; k++)
            expected.names += h->model->name[i][k];
        expected.tail_bytes += h->model->tail_size[i];
        expected.extent_blocks += h->model->extent_size[i];
    }
    ck_assert_uint_eq(seen.stats, expected.stats);
    ck_assert_uint_eq(seen.names, expected.names);
    ck_assert_uint_eq(seen.tail_bytes, expected.tail_bytes);
    ck_assert_uint_eq(seen.extent_blocks, expected.extent_blocks);
}

/* --- cases -------------------------------------------------------------------------------------
 */

static void random_steps(uint32_t plugin, unsigned steps) {
    struct harness h;

    harness_open(&h, plugin, "random_steps");
    for (unsigned i = 1; i <= steps; i++) {
        step(&h);
        if (i % 16 == 0)
            verify(&h);
        if (i % 256 == 0)
            compare(&h);
        if (i % 1500 == 0)
            flush(&h);
    }
    compare(&h);
    flush(&h);
    compare(&h);
    harness_close(&h);
}

START_TEST(random_node40) {
    random_steps(REISER4_NODE40, fixture_share(6000) * fixture_factor());
}
END_TEST

START_TEST(random_node41) {
    random_steps(REISER4_NODE41, fixture_share(3000) * fixture_factor());
}
END_TEST

/* All is taken out again: the tree is as small as it was. */
START_TEST(grows_and_shrinks) {
    struct harness h;

    harness_open(&h, REISER4_NODE40, "grows_and_shrinks");
    for (uint32_t dir = 0; dir < OBJECTS; dir++)
        for (uint32_t i = 0; i < NAMES; i++)
            change_name(&h, dir, (i * 7919) % NAMES);
    for (uint32_t i = 0; i < OBJECTS; i++)
        for (int k = 0; k < 20; k++) {
            change_tail(&h, i);
            change_extents(&h, i);
        }
    ck_assert_uint_gt(h.tree.height, 2);
    compare(&h);
    flush(&h);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        for (uint32_t k = 0; k < NAMES; k++)
            if (h.model->name[i][k])
                change_name(&h, i, k);
        cut(&h, SORT_TAIL, i, 0, UINT64_MAX);
        cut(&h, SORT_EXTENT, i, 0, UINT64_MAX);
        h.model->tail_size[i] = h.model->extent_size[i] = 0;
        verify(&h);
    }
    compare(&h);
    ck_assert_uint_eq(h.tree.height, 2);
    harness_close(&h);
}
END_TEST

/* A flush packs what random insertions have left half empty. */
START_TEST(flush_packs) {
    struct harness h;
    uint64_t nodes = 0, free_bytes = 0;

    harness_open(&h, REISER4_NODE40, "flush_packs");
    for (uint32_t n = 0; n < 12 * NAMES; n++) {
        uint32_t at = (n * 7919) % (12 * NAMES);
        change_name(&h, at / NAMES, at % NAMES);
    }
    for (uint32_t level = REISER4_LEAF; level <= h.tree.height; level++)
        walk_level(&h, level, true);
    verify(&h);
    struct reiser4_jnode *jnode;
    TAILQ_FOREACH (jnode, &h.jnodes.list, link) {
        nodes += jnode->level == REISER4_LEAF;
        if (jnode->level == REISER4_LEAF)
            free_bytes += reiser4_node_free((struct reiser4_node){h.jnodes.format, jnode->data});
    }
    ck_assert_uint_gt(nodes, 20);
    ck_assert_uint_lt(free_bytes, nodes * REISER4_BLOCK_SIZE / 20);
    compare(&h);
    harness_close(&h);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("reiser4_tree");
    TCase *tcase = tcase_create("tree");

    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, random_node40);
    tcase_add_test(tcase, random_node41);
    tcase_add_test(tcase, grows_and_shrinks);
    tcase_add_test(tcase, flush_packs);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

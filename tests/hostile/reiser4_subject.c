/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: what a Reiser4 image needs to be damaged well. Checksums are set again, so that what is
 * behind them is reached: of bitmaps, in place and where a log has put them, and of node41. Places
 * are chosen by what is in a block, since item headers lie at the end of a node, and the bodies
 * that say most anywhere.
 *
 * Invariant: nothing outside the image is touched, and every walk ends, whatever the bytes say.
 */
#include <check.h>
#include <zlib.h>

#include "layouts/reiser4/layout.h"
#include "layouts/reiser4/safelink.h"
#include "tests/hostile/subject.h"
#include "tests/unit/fixture.h"

#define LOG_BLOCKS_MAX 1000u /* of a log that is followed */
#define ITEMS_MAX      106u  /* whose headers, without bodies, fill a node */
#define BODY_REACH     96u   /* bytes: counts, and headers of units */

#define TAIL_FILES    30u /* whose leaves are more than one twig has pointers for */
#define TAIL_BYTES    12000u
#define CLUSTER_SHIFT 16u
#define LAST_CLUSTER  3000u /* bytes, not compressed */

static uint8_t *block_at(uint8_t *image, uint64_t size, uint64_t block) {
    return block < size / REISER4_BLOCK_SIZE ? image + block * REISER4_BLOCK_SIZE : NULL;
}

/* --- checksums -------------------------------------------------------------------------------- */

static void seal_bitmap(uint8_t *block) {
    struct reiser4_disk_bitmap *bitmap = (struct reiser4_disk_bitmap *)block;

    le32_store(&bitmap->adler, (uint32_t)adler32(1, bitmap->bits, sizeof(bitmap->bits)));
}

static bool is_bitmap(uint64_t block) {
    return block == REISER4_BITMAP_FIRST || (block > 0 && block % REISER4_REGION == 0);
}

/* Copies of bitmaps, which the record says have wandered. */
static void seal_wandered(uint8_t *image, uint64_t size, const struct reiser4_disk_record *record) {
    for (unsigned i = 0; i < REISER4_RECORD_ENTRIES; i++) {
        uint64_t wandered = le64_load(record->entry[i].wandered);
        uint8_t *copy = block_at(image, size, wandered);
        if (wandered == 0)
            return;
        if (is_bitmap(le64_load(record->entry[i].original)) && copy)
            seal_bitmap(copy);
    }
}

/* The newest transaction's records. */
static void seal_log(uint8_t *image, uint64_t size) {
    const struct reiser4_disk_journal_header *header =
        (const void *)block_at(image, size, REISER4_JOURNAL_HEADER);
    const struct reiser4_disk_journal_footer *footer =
        (const void *)block_at(image, size, REISER4_JOURNAL_FOOTER);
    uint64_t at = header && footer ? le64_load(header->last_committed) : 0;

    if (at == 0 || at == le64_load(footer->last_flushed))
        return;
    const struct reiser4_disk_head *head = (const void *)block_at(image, size, at);
    at = head ? le64_load(head->first_record) : 0;
    for (unsigned i = 0; i < LOG_BLOCKS_MAX; i++) {
        const struct reiser4_disk_record *record = (const void *)block_at(image, size, at);
        if (!record || memcmp(record->magic, REISER4_RECORD_MAGIC, sizeof(record->magic)) != 0)
            return;
        seal_wandered(image, size, record);
        at = le64_load(record->next);
    }
}

void reiser4_repair(uint8_t *image, uint64_t size) {
    const struct reiser4_node_format *format = reiser4_node_format_of(REISER4_NODE41);

    for (uint64_t block = REISER4_BITMAP_FIRST; block < size / REISER4_BLOCK_SIZE; block++) {
        struct reiser4_node node = {format, image + block * REISER4_BLOCK_SIZE};
        if (is_bitmap(block))
            seal_bitmap(node.bytes);
        else if (le32_load(reiser4_node_header(node)->magic) == format->magic)
            reiser4_node_seal(node);
    }
    seal_log(image, size);
}

/* --- places ----------------------------------------------------------------------------------- */

uint8_t *reiser4_place(uint8_t *block, uint64_t *random, uint32_t *room) {
    struct reiser4_disk_node *header = (struct reiser4_disk_node *)block;
    uint32_t items = le16_load(header->items), magic = le32_load(header->magic);
    struct reiser4_node node = {NULL, block};

    if ((magic != REISER4_NODE40_MAGIC && magic != REISER4_NODE41_MAGIC) || items == 0 ||
        items > ITEMS_MAX)
        return NULL;
    struct reiser4_disk_item *item =
        reiser4_node_item(node, (uint32_t)(fixture_random(random) % items));
    uint8_t *start = (uint8_t *)item;
    *room = sizeof(*item);
    if (fixture_random(random) % 8 == 0) {
        start = block;
        *room = sizeof(*header);
    } else if (fixture_random(random) % 2 && le16_load(item->offset) < REISER4_BLOCK_SIZE) {
        start = block + le16_load(item->offset);
        *room = REISER4_BLOCK_SIZE - le16_load(item->offset);
        *room = *room < BODY_REACH ? *room : BODY_REACH;
    }
    uint32_t at = (uint32_t)(fixture_random(random) % *room);
    *room -= at;
    return start + at;
}

/* --- what is in the volume -------------------------------------------------------------------- */

static struct inode *make_file(struct inode *dir, const char *name) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;

    ck_assert_int_eq(volume_create(dir, name, (uint32_t)strlen(name), &request, &inode), 0);
    return inode;
}

/* So many stored bytes, from the start of a cluster on. */
static void put_cluster(struct inode *inode, uint64_t offset, uint32_t length) {
    const struct reiser4_object object = reiser4_object_of(inode);
    uint8_t *body = calloc(1, length + 1);
    struct reiser4_item item = {.key = reiser4_key_of_body(&object, offset),
                                .id = REISER4_ITEM_CTAIL,
                                .length = length + 1,
                                .body = body};

    ck_assert_ptr_nonnull(body);
    body[0] = CLUSTER_SHIFT;
    ck_assert_int_eq(reiser4_tree_insert(&reiser4_of(inode->volume)->tree, &item), 0);
    free(body);
}

/* A compressed file, though none of its clusters is compressed. */
static void fill_clusters(struct inode *root) {
    struct inode *inode = make_file(root, "clusters");
    struct reiser4_inode *own = reiser4_inode_of(inode);
    const uint32_t cluster = 1u << CLUSTER_SHIFT;
    struct attributes attributes = {.mode = S_IFREG | 0600};

    own->slots.present |= 1u << REISER4_PLUGIN_OBJECT;
    own->slots.id[REISER4_PLUGIN_OBJECT] = REISER4_OBJECT_CCREG40;
    own->plugins.id[REISER4_PLUGIN_OBJECT] = REISER4_OBJECT_CCREG40;
    own->mask |= REISER4_STAT_HAS(REISER4_SD_PLUGIN_SET);
    own->form = REISER4_FORM_CLUSTERS;
    put_cluster(inode, 0, cluster);
    put_cluster(inode, cluster, LAST_CLUSTER);
    own->bytes = UINT64_C(2) * cluster;
    inode->size = cluster + LAST_CLUSTER;
    ck_assert_int_eq(volume_setattr(inode, SETATTR_MODE, &attributes), 0);
    volume_put(inode, 1);
}

/* A cut that a crash has left to do. */
static void fill_safelink(struct inode *root) {
    struct inode *inode = make_file(root, "to-be-cut");
    struct reiser4_safelink link = {
        .kind = REISER4_SAFELINK_TRUNCATE, .object = reiser4_object_of(inode), .size = 100};

    ck_assert_int_eq(reiser4_safelink_add(reiser4_of(inode->volume), &link), 0);
    volume_put(inode, 1);
}

void reiser4_fill(struct volume *volume) {
    static const char bytes[TAIL_BYTES];
    struct inode *root;

    ck_assert_int_eq(volume_root(volume, &root), 0);
    for (unsigned i = 0; i < TAIL_FILES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "tail-%u", i);
        struct inode *inode = make_file(root, name);
        ck_assert_int_eq(volume_write(inode, bytes, sizeof(bytes), 0), sizeof(bytes));
        volume_put(inode, 1);
    }
    fill_clusters(root);
    fill_safelink(root);
    volume_put(root, 1);
}

void reiser4_leave_log(uint8_t *image) {
    const struct reiser4_disk_journal_header *header =
        (const void *)(image + (size_t)REISER4_JOURNAL_HEADER * REISER4_BLOCK_SIZE);
    struct reiser4_disk_journal_footer *footer =
        (void *)(image + (size_t)REISER4_JOURNAL_FOOTER * REISER4_BLOCK_SIZE);
    const struct reiser4_disk_head *head =
        (const void *)(image + le64_load(header->last_committed) * REISER4_BLOCK_SIZE);

    ck_assert_mem_eq(head->magic, REISER4_HEAD_MAGIC, sizeof(head->magic));
    footer->last_flushed = head->previous;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/file.c, bmap.c, btree.c, btree_edit.c: random changes of a file against a plain
 * array, with physical and virtual pointers, over checkpoints after which blocks are read back;
 * the form of the tree; trees that are damaged.
 */
#include <errno.h>

#include "layouts/nilfs/bmap.h"
#include "tests/unit/nilfs_harness.h"

#define ENSURE(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

enum { MODEL_BLOCKS = 16000, SEGMENTS = 512 };

struct model {
    struct nilfs_harness h;
    struct nilfs_file *file;
    enum nilfs_pointers pointers;
    uint32_t *stamp; /* what is in each block, 0: a hole */
    uint32_t stamps;
    uint64_t data, nodes; /* as found by the walk */
    uint64_t last_key;
};

/* The model's blocks lie close together at first, then with holes between them, then far away. */
static uint64_t key_of(uint32_t i) {
    if (i < MODEL_BLOCKS / 2)
        return i;
    if (i < MODEL_BLOCKS * 3 / 4)
        return (uint64_t)i * 3 - MODEL_BLOCKS;
    return (UINT64_C(1) << 50) + i;
}

static uint32_t index_of(uint64_t key) {
    uint32_t low = 0, high = MODEL_BLOCKS;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (key_of(middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void file_open(struct model *m, const struct nilfs_disk_inode *map) {
    uint64_t ino = m->pointers == NILFS_PHYSICAL ? NILFS_DAT_INO : NILFS_FIRST_INO;
    ck_assert_int_eq(nilfs_file_new(&m->h.nilfs, ino, 0, m->pointers, map, &m->file), 0);
}

static void model_open(struct model *m, uint32_t block_bits, enum nilfs_pointers pointers) {
    memset(m, 0, sizeof(*m));
    harness_open(&m->h, block_bits, SEGMENTS);
    m->pointers = pointers;
    m->stamp = calloc(MODEL_BLOCKS, sizeof(*m->stamp));
    ck_assert_ptr_nonnull(m->stamp);
    file_open(m, NULL);
}

static void model_close(struct model *m) {
    uint64_t blocks =
        m->h.nilfs.blocks_count - m->h.nilfs.ifile->sectors / m->h.nilfs.geometry.sectors_per_block;

    ck_assert_int_eq(nilfs_file_free(m->file, 0, UINT64_MAX), 0);
    ck_assert_uint_eq(m->file->sectors, 0);
    ck_assert_uint_eq(m->file->bmap.head.byte[0], 0);
    ck_assert_uint_eq(nilfs_file_changed(m->file), 0);
    ck_assert(m->pointers == NILFS_PHYSICAL ? blocks == 0 : blocks == m->data + m->nodes);
    ck_assert(!m->h.nilfs.failed);
    nilfs_file_mark_clean(m->file);
    nilfs_file_put(m->file);
    harness_checkpoint(&m->h);
    harness_close(&m->h);
    free(m->stamp);
}

/* Everything changed is written; then sometimes nothing of it stays in core. */
static void model_checkpoint(struct model *m, bool forget) {
    if (m->pointers == NILFS_PHYSICAL)
        harness_settle(&m->h, m->file);
    harness_checkpoint(&m->h);
    ENSURE(nilfs_file_changed(m->file) == 0);
    if (!forget)
        return;
    struct nilfs_disk_inode map = {.i_bmap = m->file->bmap};
    le64_store(&map.i_blocks, m->file->sectors);
    nilfs_file_put(m->file);
    harness_forget(&m->h);
    file_open(m, &map);
}

/* --- what must hold --------------------------------------------------------------------------- */

static int verify_visit(void *context, uint32_t level, uint64_t key, uint64_t pointer) {
    struct model *m = context;

    ENSURE(pointer != 0);
    if (level > 0) {
        m->nodes++;
        return 0;
    }
    uint32_t i = index_of(key);
    ENSURE(i < MODEL_BLOCKS && key_of(i) == key && m->stamp[i]);
    ENSURE(m->data == 0 || key > m->last_key);
    m->last_key = key;
    m->data++;
    return 0;
}

struct shape { /* of a node */
    uint32_t level, minimum;
    bool changed;
    uint64_t first;
};

static void verify_node(struct nilfs_file *file, uint64_t pointer, const struct shape *shape) {
    uint32_t capacity = file->nilfs->geometry.node_children;
    struct nilfs_view view;

    ENSURE(nilfs_node_read(file, pointer, shape->level, &view) == 0);
    ENSURE(!view.changed || shape->changed);
    uint32_t count = le16_load(((const struct nilfs_disk_node *)view.data)->nchildren);
    const le64 *keys = (const le64 *)(view.data + 16);
    ENSURE(count >= shape->minimum && count <= capacity);
    ENSURE(le64_load(keys[0]) == shape->first);
    for (uint32_t i = 0; i < count; i++) {
        struct shape below = {shape->level - 1, (capacity - 1) / 2 + 1, view.changed != NULL,
                              le64_load(keys[i])};
        ENSURE(i == 0 || below.first > le64_load(keys[i - 1]));
        if (below.level > 0)
            verify_node(file, le64_load(keys[capacity + i]), &below);
    }
    nilfs_view_put(&view);
}

static void verify_tree(struct nilfs_file *file) {
    const struct nilfs_disk_bmap *root = &file->bmap;
    uint32_t count = le16_load(root->head.node.nchildren), level = root->head.node.level;

    ENSURE(file->dirty || nilfs_bmap_check(file) == 0);
    ENSURE(count > 0);
    for (uint32_t i = 0; i < count && level > 1; i++) {
        struct shape below = {level - 1,
                              count == 1 ? NILFS_ROOT_CHILDREN + 1
                                         : (file->nilfs->geometry.node_children - 1) / 2 + 1,
                              true, le64_load(root->u.root.keys[i])};
        verify_node(file, le64_load(root->u.root.pointers[i]), &below);
    }
}

static void verify_block(struct model *m, uint32_t i) {
    struct nilfs_view view;
    int rc = nilfs_file_read(m->file, key_of(i), PURPOSE_DIR, &view);

    ENSURE(rc == (m->stamp[i] ? 0 : -ENOENT));
    if (rc)
        return;
    ENSURE(le32_load(*(const le32 *)view.data) == m->stamp[i]);
    nilfs_view_put(&view);
}

/* The first one in use from `i` on; MODEL_BLOCKS: none. */
static uint32_t used_from(const struct model *m, uint32_t i) {
    while (i < MODEL_BLOCKS && !m->stamp[i])
        i++;
    return i;
}

static void verify_searches(struct model *m, uint32_t i) {
    uint64_t pointers[40], one, key, next;
    uint32_t after = used_from(m, i), before = i;
    int n = nilfs_bmap_lookup_run(m->file, key_of(i), pointers, 40, &next);

    ENSURE(n == -ENOENT ? !m->stamp[i] : n > 0 && n <= 40);
    ENSURE(n > 0 || next == (after < MODEL_BLOCKS ? key_of(after) : UINT64_MAX));
    for (int at = 0; at < n; at++) {
        ENSURE(i + (uint32_t)at < MODEL_BLOCKS &&
               key_of(i + (uint32_t)at) == key_of(i) + (uint64_t)at);
        ENSURE(nilfs_bmap_lookup(m->file, key_of(i) + (uint64_t)at, &one) == 0);
        ENSURE(one == pointers[at]);
    }
    int rc = nilfs_bmap_seek(m->file, key_of(i), &key);
    ENSURE(rc == (after < MODEL_BLOCKS ? 0 : -ENOENT));
    ENSURE(rc || key == key_of(after));
    while (before > 0 && !m->stamp[before - 1])
        before--;
    rc = nilfs_bmap_before(m->file, key_of(i), &key);
    ENSURE(rc == (before > 0 ? 0 : -ENOENT));
    ENSURE(rc || key == key_of(before - 1));
}

static void model_verify(struct model *m, uint64_t *state) {
    uint64_t used = 0, last;

    m->data = m->nodes = 0;
    ck_assert_int_eq(nilfs_bmap_each(m->file, verify_visit, m), 0);
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++) {
        verify_block(m, i);
        used += m->stamp[i] != 0;
    }
    ck_assert_uint_eq(m->data, used);
    ck_assert_uint_eq(m->file->sectors,
                      (m->data + m->nodes) * m->h.nilfs.geometry.sectors_per_block);
    if (m->file->bmap.head.byte[0])
        verify_tree(m->file);
    ck_assert_int_eq(nilfs_bmap_last(m->file, &last), used ? 0 : -ENOENT);
    ck_assert(!used || last == m->last_key);
    for (unsigned i = 0; i < 100; i++)
        verify_searches(m, (uint32_t)(fixture_random(state) % MODEL_BLOCKS));
}

/* --- changes ---------------------------------------------------------------------------------- */

static void model_write(struct model *m, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to && i < MODEL_BLOCKS; i++) {
        uint8_t *data;
        bool made;
        ENSURE(nilfs_file_make(m->file, key_of(i), &data, &made) == 0);
        ENSURE(made == !m->stamp[i]);
        ENSURE(le32_load(*(le32 *)data) == m->stamp[i]);
        m->stamp[i] = ++m->stamps;
        le32_store((le32 *)data, m->stamp[i]);
    }
}

static void model_change(struct model *m, uint32_t i) {
    uint8_t *data;
    int rc = nilfs_file_change(m->file, key_of(i), &data);

    ENSURE(rc == (m->stamp[i] ? 0 : -ENOENT));
    if (rc)
        return;
    m->stamp[i] = ++m->stamps;
    le32_store((le32 *)data, m->stamp[i]);
}

static void model_free(struct model *m, uint32_t from, uint32_t to) {
    if (to > MODEL_BLOCKS)
        to = MODEL_BLOCKS;
    ENSURE(nilfs_file_free(m->file, key_of(from), to < MODEL_BLOCKS ? key_of(to) : UINT64_MAX) ==
           0);
    for (uint32_t i = from; i < to; i++)
        m->stamp[i] = 0;
}

/* The beginning, where maps change their kind, as often as any other place. */
static uint32_t model_pick(uint64_t *state) {
    return (uint32_t)(fixture_random(state) % (fixture_random(state) % 4 ? MODEL_BLOCKS : 12));
}

static void model_step(struct model *m, uint64_t *state) {
    uint32_t i = model_pick(state), n = 1 + (uint32_t)(fixture_random(state) % 600);

    switch (fixture_random(state) % 16) {
    case 0:
    case 1:
    case 2:
        model_write(m, i, i + n);
        break;
    case 3:
        for (uint32_t k = n; k-- > 0;) /* backwards */
            if (i + k < MODEL_BLOCKS)
                model_write(m, i + k, i + k + 1);
        break;
    case 4:
    case 5:
        for (uint32_t k = 0; k < n; k++) {
            uint32_t at = model_pick(state);
            model_write(m, at, at + 1);
        }
        break;
    case 6:
    case 7:
    case 8:
        model_free(m, i, i + n);
        break;
    case 9:
        for (uint32_t k = i; k < i + n && k < MODEL_BLOCKS; k++) /* forwards */
            model_free(m, k, k + 1);
        break;
    case 10:
        if (fixture_random(state) % 4 == 0)
            model_free(m, i, MODEL_BLOCKS);
        break;
    case 11:
        for (uint32_t k = 0; k < n; k++) {
            uint32_t at = model_pick(state);
            model_free(m, at, at + 1);
        }
        break;
    default:
        for (uint32_t k = 0; k < n / 4; k++)
            model_change(m, model_pick(state));
        break;
    }
}

static const struct variant {
    uint32_t block_bits;
    enum nilfs_pointers pointers;
} variants[] = {
    {10, NILFS_PHYSICAL}, {11, NILFS_PHYSICAL}, {12, NILFS_PHYSICAL},
    {10, NILFS_MULTI},    {11, NILFS_MULTI},    {12, NILFS_MULTI},
};

START_TEST(test_random) {
    const struct variant *variant = &variants[_i];
    uint64_t state = fixture_seed("nilfs_bmap");
    unsigned steps = 120 * fixture_factor();
    struct model m;

    model_open(&m, variant->block_bits, variant->pointers);
    for (unsigned step = 0; step < steps; step++) {
        model_step(&m, &state);
        if (step % 4 == 3)
            model_checkpoint(&m, fixture_random(&state) % 2);
        if (step % 8 > 5)
            model_verify(&m, &state);
        ck_assert(!m.h.nilfs.failed);
    }
    model_verify(&m, &state);
    model_close(&m);
}
END_TEST

/* A file written in order fills its nodes; cut from the end it becomes what it was. */
START_TEST(test_sequential) {
    const struct variant *variant = &variants[_i];
    uint64_t state = 1;
    struct model m;

    model_open(&m, variant->block_bits, variant->pointers);
    model_write(&m, 0, MODEL_BLOCKS / 2);
    model_verify(&m, &state);
    uint64_t children = m.h.nilfs.geometry.node_children;
    ck_assert_uint_le(m.nodes,
                      MODEL_BLOCKS / 2 / children + 4 + MODEL_BLOCKS / 2 / children / children);
    model_checkpoint(&m, true);
    model_free(&m, 6, MODEL_BLOCKS);
    model_verify(&m, &state);
    model_free(&m, 3, MODEL_BLOCKS);
    model_verify(&m, &state);
    ck_assert_uint_eq(m.nodes, 0);
    ck_assert_uint_eq(m.file->bmap.head.byte[0], 0);
    model_close(&m);
}
END_TEST

/* The short cut to a leaf does not outlive a neighbour's taking keys from it. */
START_TEST(test_hint) {
    uint64_t state = 1, children, minimum;
    struct model m;

    model_open(&m, 10, NILFS_PHYSICAL);
    children = m.h.nilfs.geometry.node_children;
    minimum = (children - 1) / 2 + 1;
    model_write(&m, 0, (uint32_t)children * 4);
    model_free(&m, (uint32_t)(children + minimum), (uint32_t)children * 2);
    model_checkpoint(&m, true);
    model_change(&m, 10); /* in the first leaf, which is full; the second has the minimum */
    ck_assert_ptr_nonnull(m.file->changes->hints.leaf);
    model_free(&m, (uint32_t)children + 1, (uint32_t)children + 2);
    model_verify(&m, &state);
    model_close(&m);
}
END_TEST

/* Data that are no changed blocks: each write gives the block another pointer. */
START_TEST(test_renew) {
    struct model m;
    uint64_t first[1000], pointer;
    struct nilfs_life life;

    model_open(&m, 12, NILFS_MULTI);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 1000; i++) {
            ENSURE(nilfs_file_renew(m.file, i, &pointer) == 0);
            ENSURE(nilfs_dat_place(&m.h.nilfs, pointer, m.h.next_block++) == 0);
            if (round == 0)
                first[i] = pointer;
            ENSURE(nilfs_bmap_lookup(m.file, i, &pointer) == 0);
            ENSURE(round == 0 ? pointer <= first[0] + i + 10 : pointer != first[i]);
        }
        ck_assert_uint_eq(m.file->changes->changed_data, 0);
        harness_checkpoint(&m.h);
    }
    ck_assert_int_eq(nilfs_dat_life(&m.h.nilfs, first[7], &life), 0);
    ck_assert_uint_eq(life.end, life.start + 1);
    ck_assert_int_eq(nilfs_dat_life(&m.h.nilfs, pointer, &life), 0);
    ck_assert_uint_eq(life.end, NILFS_CNO_MAX);
    m.data = 1000;
    m.nodes = m.file->sectors / m.h.nilfs.geometry.sectors_per_block - m.data;
    model_close(&m);
}
END_TEST

/* --- damage ----------------------------------------------------------------------------------- */

static void emit_nothing(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
}

/* The buffer of the clean node at `level` in which the key is. */
static struct buffer *node_buffer(struct model *m, uint64_t key, uint32_t level) {
    const struct nilfs_disk_bmap *root = &m->file->bmap;
    uint64_t pointer = le64_load(root->u.root.pointers[0]);
    struct nilfs_view view;

    for (uint32_t at = root->head.node.level; at-- > level;) {
        ck_assert_int_eq(nilfs_node_read(m->file, pointer, at, &view), 0);
        const le64 *keys = (const le64 *)(view.data + 16);
        uint32_t i = 0, count = le16_load(((const struct nilfs_disk_node *)view.data)->nchildren);
        while (i + 1 < count && le64_load(keys[i + 1]) <= key)
            i++;
        pointer = le64_load(keys[m->h.nilfs.geometry.node_children + i]);
        if (at > level)
            nilfs_view_put(&view);
    }
    ck_assert_ptr_nonnull(view.buffer);
    return view.buffer;
}

static void damage(struct nilfs_disk_node *node, uint32_t kind, uint32_t capacity) {
    le64 *keys = (le64 *)(node + 2);

    switch (kind) {
    case 0:
        node->level++;
        break;
    case 1:
        le16_store(&node->nchildren, 0);
        break;
    case 2:
        le16_store(&node->nchildren, (uint16_t)(capacity + 1));
        break;
    case 3:
        node->flags = NILFS_NODE_FLAG_ROOT;
        break;
    case 4:
        keys[9] = keys[8];
        break;
    case 5:
        le64_store(&keys[0], 0);
        break;
    case 6:
        le64_store(&keys[capacity], NILFS_STAND_IN | 1);
        break;
    default:
        break;
    }
}

/* Whatever is wrong with a node: reading says so, and a change that needs it does nothing. */
START_TEST(test_damage) {
    struct model m;
    uint8_t copy[1024];
    uint64_t pointer, key, state = 1;

    model_open(&m, 10, NILFS_PHYSICAL);
    model_write(&m, 0, 3000);
    model_checkpoint(&m, true);
    struct buffer *buffer = node_buffer(&m, 1000, 1);
    struct nilfs_disk_node *node = buffer_data(buffer);
    uint64_t first = le64_load(((le64 *)(node + 2))[0]);
    m.h.log.emit = emit_nothing;
    memcpy(copy, node, sizeof(copy));
    damage(node, (uint32_t)_i, m.h.nilfs.geometry.node_children);
    buffer->checked = false;
    ck_assert_int_eq(nilfs_bmap_lookup(m.file, 1000, &pointer), -EUCLEAN);
    ck_assert_int_eq(nilfs_bmap_seek(m.file, 1000, &key), -EUCLEAN);
    ck_assert_int_eq(nilfs_bmap_each(m.file, verify_visit, &m), -EUCLEAN);
    ck_assert_int_eq(nilfs_bmap_set(m.file, 1000, NILFS_STAND_IN | 77), -EUCLEAN);
    ck_assert_int_eq(nilfs_bmap_delete(m.file, 1000), -EUCLEAN);
    ck_assert_int_eq(nilfs_file_free(m.file, 1000, 1001), -EUCLEAN);
    /* Its right neighbour loses keys until it needs some of the damaged one's. */
    uint64_t next = first + le16_load(((struct nilfs_disk_node *)copy)->nchildren);
    int rc = 0, lost = 0;
    for (; rc == 0 && lost < 60; lost++)
        rc = nilfs_file_free(m.file, next + 1 + (uint64_t)lost, next + 2 + (uint64_t)lost);
    ck_assert_int_eq(rc, -EUCLEAN);
    ck_assert_int_gt(lost, 2);
    ck_assert(!m.h.nilfs.failed);
    memcpy(node, copy, sizeof(copy));
    buffer_put(buffer);
    for (uint32_t i = 0; i < 3000; i++)
        if (nilfs_bmap_lookup(m.file, i, &pointer) == -ENOENT)
            m.stamp[i] = 0;
    model_verify(&m, &state);
    model_close(&m);
}
END_TEST

/* Roots that no map can have. */
START_TEST(test_roots) {
    struct model m;
    struct nilfs_disk_inode map = {.i_bmap.head.node.flags = NILFS_NODE_FLAG_ROOT};
    struct nilfs_disk_node *head = &map.i_bmap.head.node;
    struct nilfs_file *file;

    model_open(&m, 10, NILFS_PHYSICAL);
    m.h.log.emit = emit_nothing;
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), -EUCLEAN);
    head->level = 1; /* an empty tree */
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), 0);
    nilfs_file_put(file);
    head->level = 2;
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), -EUCLEAN);
    le16_store(&head->nchildren, 4);
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), -EUCLEAN);
    le16_store(&head->nchildren, 1);
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), -EUCLEAN);
    le64_store(&map.i_bmap.u.root.pointers[0], 100);
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), 0);
    nilfs_file_put(file);
    head->level = NILFS_LEVEL_MAX;
    ck_assert_int_eq(nilfs_file_new(&m.h.nilfs, 3, 0, NILFS_PHYSICAL, &map, &file), -EUCLEAN);
    model_close(&m);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_bmap");
    TCase *tcase = tcase_create("bmap");

    tcase_add_loop_test(tcase, test_random, 0, sizeof(variants) / sizeof(*variants));
    tcase_add_loop_test(tcase, test_sequential, 0, sizeof(variants) / sizeof(*variants));
    tcase_add_test(tcase, test_hint);
    tcase_add_test(tcase, test_renew);
    tcase_add_loop_test(tcase, test_damage, 0, 7);
    tcase_add_test(tcase, test_roots);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/dir.c and dir_index.c, through the core: random changes against a model with
 * listings under way, on all block sizes, with and without an index; large directories; damaged
 * blocks.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/volume_internal.h"
#include "layouts/nilfs/dir.h"
#include "layouts/nilfs/layout.h"
#include "tests/unit/fixture.h"

#define MIB (UINT64_C(1) << 20)

enum { NAMES = 600, LISTINGS = 3, CHANGES = 12000 };

struct name {
    char text[NAME_LENGTH_MAX];
    uint32_t length;
    uint64_t ino;               /* 0: it is not there */
    bool expected[LISTINGS];    /* it was there since the listing began */
    unsigned visited[LISTINGS]; /* by the listing */
};

struct model {
    struct fixture f;
    struct inode *dir;
    struct name names[NAMES];
    uint64_t random;
    uint64_t cookie[LISTINGS];
};

/* --- the model -------------------------------------------------------------------------------- */

/* Any bytes but '/' and NUL; the first two are the index, so that all differ. */
static void name_invent(struct model *m, uint32_t index) {
    struct name *name = &m->names[index];

    name->length = 2;
    if (fixture_random(&m->random) % 4)
        name->length += (uint32_t)(fixture_random(&m->random) % (NAME_LENGTH_MAX - 1));
    for (uint32_t i = 0; i < name->length; i++)
        name->text[i] = (char)(1 + fixture_random(&m->random) % ('/' - 1));
    name->text[0] = (char)(0x40 + index % 0x80);
    name->text[1] = (char)(0x40 + index / 0x80);
}

static struct name *name_of(struct model *m, const char *text, uint32_t length) {
    for (uint32_t i = 0; i < NAMES; i++)
        if (m->names[i].length == length && memcmp(m->names[i].text, text, length) == 0)
            return &m->names[i];
    return NULL;
}

/* It is another entry from here on. */
static void name_set(struct name *name, uint64_t ino) {
    name->ino = ino;
    for (unsigned i = 0; i < LISTINGS; i++)
        name->expected[i] = false;
}

struct visit {
    struct model *m;
    unsigned listing, room;
};

static bool visit_entry(void *context, const struct dir_entry *entry) {
    struct visit *visit = context;
    struct model *m = visit->m;

    m->cookie[visit->listing] = entry->cookie;
    if (entry->name_length > 2 || entry->name[0] != '.') {
        struct name *name = name_of(m, entry->name, entry->name_length);
        ck_assert_ptr_nonnull(name);
        ck_assert_uint_eq(entry->ino, name->ino);
        ck_assert_uint_eq(entry->type, S_IFREG);
        name->visited[visit->listing]++;
    }
    return --visit->room > 0;
}

/* Goes on with a listing by a few entries; at its end, each that was there all the time has been
 * seen once, and another one begins. */
static void listing_step(struct model *m, unsigned listing) {
    struct visit visit = {m, listing, 1 + (unsigned)(fixture_random(&m->random) % 40)};

    ck_assert_int_eq(volume_readdir(m->dir, m->cookie[listing], visit_entry, &visit), 0);
    if (visit.room == 0)
        return;
    for (uint32_t i = 0; i < NAMES; i++) {
        struct name *name = &m->names[i];
        if (name->expected[listing])
            ck_assert_uint_eq(name->visited[listing], 1);
        name->expected[listing] = name->ino != 0;
        name->visited[listing] = 0;
    }
    m->cookie[listing] = 0;
}

/* --- changes ---------------------------------------------------------------------------------- */

static int create(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *inode;
    int error = volume_create(dir, name, length, &request, &inode);

    if (!error) {
        *ino = inode->ino;
        volume_put(inode, 1);
    }
    return error;
}

static void expect_found(struct model *m, const struct name *name) {
    struct inode *inode;
    int error = volume_lookup(m->dir, name->text, name->length, &inode);

    ck_assert_int_eq(error, name->ino ? 0 : -ENOENT);
    if (error)
        return;
    ck_assert_uint_eq(inode->ino, name->ino);
    volume_put(inode, 1);
}

static void change_names(struct model *m, bool grow) {
    struct name *name = &m->names[fixture_random(&m->random) % NAMES];
    struct name *other = &m->names[fixture_random(&m->random) % NAMES];
    uint64_t ino = 0;
    int error;

    switch (fixture_random(&m->random) % 8) {
    case 0:
    case 1:
        error =
            volume_rename(m->dir, name->text, name->length, m->dir, other->text, other->length, 0);
        ck_assert_int_eq(error, name->ino ? 0 : -ENOENT);
        if (name->ino && name != other) {
            ino = name->ino;
            name_set(name, 0);
            if (other->ino) /* the same entry has another inode */
                other->ino = ino;
            else
                name_set(other, ino);
        }
        break;
    case 2:
        expect_found(m, name);
        break;
    default:
        if (name->ino && (!grow || fixture_random(&m->random) % 4 == 0)) {
            ck_assert_int_eq(volume_unlink(m->dir, name->text, name->length), 0);
            name_set(name, 0);
        } else if (!name->ino && (grow || fixture_random(&m->random) % 4 == 0)) {
            ck_assert_int_eq(create(m->dir, name->text, name->length, &ino), 0);
            name_set(name, ino);
        }
    }
}

static void expect_all(struct model *m) {
    for (uint32_t i = 0; i < NAMES; i++)
        expect_found(m, &m->names[i]);
}

static struct inode *directory(struct fixture *f) {
    struct create_request request = {.mode = S_IFDIR | 0755};
    struct inode *dir;

    ck_assert_int_eq(volume_create(f->root, "dir", 3, &request, &dir), 0);
    return dir;
}

static const char *const block_sizes[] = {"block_size=1024", "block_size=2048", "block_size=4096"};
enum { BLOCK_SIZES = sizeof(block_sizes) / sizeof(*block_sizes) };

START_TEST(random_changes) {
    struct model *m = calloc(1, sizeof(*m));

    ck_assert_ptr_nonnull(m);
    m->random = fixture_seed("random_changes");
    fixture_open(&m->f, "nilfs2", 0, block_sizes[_i], NULL, true);
    m->dir = directory(&m->f);
    for (uint32_t i = 0; i < NAMES; i++)
        name_invent(m, i);
    for (unsigned i = 0; i < CHANGES * fixture_factor(); i++) {
        change_names(m, i / 3000 % 2 == 0); /* it becomes large and small in turns */
        if (fixture_random(&m->random) % 16 == 0)
            listing_step(m, (unsigned)(fixture_random(&m->random) % LISTINGS));
        if (fixture_random(&m->random) % 1000 == 0)
            ck_assert_int_eq(volume_sync(m->f.volume), 0);
        if (fixture_random(&m->random) % 4000 == 0) {
            volume_put(m->dir, 1);
            ck_assert_int_eq(volume_drop_caches(m->f.volume), 0);
            ck_assert_int_eq(volume_lookup(m->f.root, "dir", 3, &m->dir), 0);
            expect_all(m);
        }
    }
    expect_all(m);
    for (uint32_t i = 0; i < NAMES; i++)
        if (m->names[i].ino)
            ck_assert_int_eq(volume_unlink(m->dir, m->names[i].text, m->names[i].length), 0);
    ck_assert_int_eq(volume_rmdir(m->f.root, "dir", 3), 0);
    volume_put(m->dir, 1);
    fixture_close(&m->f);
    free(m);
}
END_TEST

/* --- many names ------------------------------------------------------------------------------- */

static bool count_entry(void *context, const struct dir_entry *entry) {
    uint64_t *count = context;

    (void)entry;
    ++*count;
    return true;
}

static void expect_entries(struct inode *dir, uint64_t names) {
    uint64_t count = 0;

    ck_assert_int_eq(volume_readdir(dir, 0, count_entry, &count), 0);
    ck_assert_uint_eq(count, names + 2);
}

/* All are links of one file, but for the format's limit of links: of one for every 30,000. */
static void insert_many(struct inode *dir, unsigned count) {
    struct inode *inode = NULL;
    char name[32];

    for (unsigned i = 0; i < count; i++) {
        uint32_t length = (uint32_t)snprintf(name, sizeof(name), "name-%u", i);
        if (i % 30000 == 0) {
            struct create_request request = {.mode = S_IFREG | 0644};
            if (inode)
                volume_put(inode, 1);
            ck_assert_int_eq(volume_create(dir, name, length, &request, &inode), 0);
        } else {
            ck_assert_int_eq(volume_link(inode, dir, name, length), 0);
        }
    }
    volume_put(inode, 1);
}

START_TEST(many_names) {
    unsigned count = fixture_factor() > 1 ? 1000000 : 100000;
    struct inode *dir, *inode;
    struct fixture f;
    char name[32];

    fixture_open(&f, "nilfs2", 4096 * MIB, NULL, NULL, true);
    dir = directory(&f);
    insert_many(dir, count);
    expect_entries(dir, count);
    uint64_t size = dir->size;
    /* Room that names leave behind is used again. */
    for (unsigned i = 0; i < count; i += 2)
        ck_assert_int_eq(volume_unlink(dir, name, (uint32_t)sprintf(name, "name-%u", i)), 0);
    expect_entries(dir, count / 2);
    volume_put(dir, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_lookup(f.root, "dir", 3, &dir), 0);
    for (unsigned i = 0; i < count; i++) {
        int error = volume_lookup(dir, name, (uint32_t)sprintf(name, "name-%u", i), &inode);
        ck_assert_int_eq(error, i % 2 ? 0 : -ENOENT);
        if (!error)
            volume_put(inode, 1);
    }
    ck_assert_int_eq(volume_lookup(dir, "name-1", 6, &inode), 0);
    for (unsigned i = 0; i < 16000; i++)
        ck_assert_int_eq(
            volume_link(inode, dir, name, (uint32_t)sprintf(name, "name-%u", count + i)), 0);
    ck_assert_uint_eq(dir->size, size);
    volume_put(inode, 1);
    volume_put(dir, 1);
    fixture_close(&f);
}
END_TEST

/* --- damage ----------------------------------------------------------------------------------- */

/* What is written over a directory's second block, at `offset` of its first entry. */
static const struct {
    const char *what;
    uint32_t offset, length;
    uint8_t bytes[8];
} damages[] = {
    {"an inode that no file has", 0, 8, {5}},
    {"an inode beyond all", 0, 8, {255, 255, 255, 255, 255, 255, 255, 127}},
    {"a length of nothing", 8, 2, {0, 0}},
    {"a length that is not aligned", 8, 2, {25, 0}},
    {"a length beyond the block", 8, 2, {0xf8, 0xff}},
    {"shorter than its name", 8, 3, {16, 0, 200}},
    {"no name", 10, 1, {0}},
    {"a slash", 12, 1, {'/'}},
    {"a zero byte", 13, 1, {0}},
};

static void keep_quiet(void *context, enum log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static void damage_write(struct device *device, uint64_t at, unsigned damage) {
    uint8_t sector[512];

    ck_assert_int_eq(device_read(device, at, sector, sizeof(sector), PURPOSE_OTHER), 0);
    memcpy(sector + damages[damage].offset, damages[damage].bytes, damages[damage].length);
    ck_assert_int_eq(device_write(device, at, sector, sizeof(sector), PURPOSE_OTHER), 0);
}

/* Names of `count` files, and what a cold look at the directory then finds of its second block. */
static void damage_one(const char *block_size, unsigned count, unsigned damage) {
    struct extent extent;
    struct inode *dir, *inode;
    struct fixture f;
    uint64_t entries = 0;
    char name[64];
    uint64_t ino;

    fixture_open(&f, "nilfs2", 0, block_size, NULL, true);
    f.log.emit = keep_quiet;
    dir = directory(&f);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(create(dir, name, (uint32_t)sprintf(name, "%050u", i), &ino), 0);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    uint32_t size = nilfs_of(f.volume)->geometry.block_size;
    ck_assert_int_eq(f.volume->layout->map(dir, size, &extent), 0);
    ck_assert_uint_eq(extent.flags & EXTENT_HOLE, 0);
    volume_put(dir, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    damage_write(f.volume->device, extent.device_offset, damage);
    ck_assert_int_eq(volume_lookup(f.root, "dir", 3, &dir), 0);
    /* What lies behind the first block, or all where it is the index that cannot be made. */
    int error = volume_lookup(dir, name, (uint32_t)sprintf(name, "%050u", count - 1), &inode);
    ck_assert_msg(error == -EUCLEAN, "%s: %d", damages[damage].what, error);
    ck_assert_int_eq(volume_readdir(dir, 0, count_entry, &entries), -EUCLEAN);
    ck_assert_int_ne(create(dir, "new", 3, &ino), 0);
    volume_put(dir, 1);
    volume_put(f.root, 1);
    (void)volume_close(f.volume);
}

START_TEST(damaged) {
    for (unsigned damage = 0; damage < sizeof(damages) / sizeof(*damages); damage++) {
        damage_one(block_sizes[_i], 16 << _i, damage);  /* two blocks: no index */
        damage_one(block_sizes[_i], 200 << _i, damage); /* an index */
    }
}
END_TEST

/* A directory whose inode leaves the core between a change and its checkpoint comes back as it was
 * changed, and not as it is on disk. */
START_TEST(forgotten_while_dirty) {
    const unsigned count = 300;
    struct fixture f;
    struct inode *inode;
    char name[60];
    uint64_t ino;

    fixture_open(&f, "nilfs2", 0, NULL, NULL, true);
    struct inode *dir = directory(&f);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(create(dir, name, (uint32_t)sprintf(name, "%050u", i), &ino), 0);
        if (i == count / 2)
            ck_assert_int_eq(volume_sync(f.volume), 0);
        if (i % 16 != 0)
            continue;
        volume_put(dir, 1);
        pthread_rwlock_wrlock(&f.volume->lock);
        ck_assert_int_eq(inode_cache_store_dirty(f.volume), 0);
        inode_cache_trim(f.volume, 0);
        pthread_rwlock_unlock(&f.volume->lock);
        ck_assert_int_eq(volume_lookup(f.root, "dir", 3, &dir), 0);
    }
    ck_assert_int_eq(volume_sync(f.volume), 0);
    volume_put(dir, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_lookup(f.root, "dir", 3, &dir), 0);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(volume_lookup(dir, name, (uint32_t)sprintf(name, "%050u", i), &inode), 0);
        volume_put(inode, 1);
    }
    volume_put(dir, 1);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_dir");
    TCase *cases = tcase_create("dir");

    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, random_changes, 0, BLOCK_SIZES);
    tcase_add_test(cases, many_names);
    tcase_add_test(cases, forgotten_while_dirty);
    tcase_add_loop_test(cases, damaged, 0, BLOCK_SIZES);
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

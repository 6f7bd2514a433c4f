/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/palloc.c, dat.c, ifile.c, cpfile.c and sufile.c: what they answer and what they
 * leave in the files, against models that know no more than the format's rules.
 */
#include <errno.h>

#include "fs/bitmap.h"
#include "layouts/nilfs/bmap.h"
#include "tests/unit/nilfs_harness.h"

/* --- palloc.c, on the ifile ------------------------------------------------------------------- */

enum { GROUPS = 4, GROUP_ENTRIES = 8192, NUMBERS = GROUPS * GROUP_ENTRIES }; /* 1 KiB blocks */

struct numbers { /* the model: which are in use */
    struct nilfs_harness h;
    struct nilfs_palloc layout;
    bool used[NUMBERS];
};

static uint64_t first_free(const struct numbers *m, uint64_t from) {
    while (from < NUMBERS && m->used[from])
        from++;
    return from;
}

static void allocate(struct numbers *m, uint64_t goal) {
    uint64_t expected = first_free(m, goal), number;
    uint8_t *entry;

    ck_assert_int_eq(nilfs_palloc_allocate(m->h.nilfs.ifile, goal, false, &number, &entry), 0);
    ck_assert_uint_eq(number, expected);
    ck_assert_uint_lt(number, NUMBERS);
    m->used[number] = true;
    memcpy(entry, &number, sizeof(number));
}

static void give_back(struct numbers *m, uint64_t number, bool punch) {
    ck_assert_int_eq(nilfs_palloc_free(m->h.nilfs.ifile, number, punch), 0);
    m->used[number] = false;
}

static void check_count(struct numbers *m, uint64_t group) {
    struct nilfs_view view;
    uint32_t free = 0;
    int rc = nilfs_file_read(m->h.nilfs.ifile, nilfs_palloc_descriptor(&m->layout, group),
                             PURPOSE_BITMAP, &view);

    ck_assert_int_eq(rc, 0);
    for (uint64_t i = group * GROUP_ENTRIES; i < (group + 1) * GROUP_ENTRIES; i++)
        free += !m->used[i];
    ck_assert_uint_eq(le32_load(((const le32 *)view.data)[group]), free);
    nilfs_view_put(&view);
}

static void check_numbers(struct numbers *m) {
    struct nilfs_file *ifile = m->h.nilfs.ifile;
    uint64_t found, contents, last = 0;
    const uint8_t *entry;
    struct nilfs_view view;

    for (uint64_t i = 0; i < NUMBERS; i++) {
        if (!m->used[i])
            continue;
        ck_assert_int_eq(nilfs_palloc_next(ifile, last, &found), 0);
        ck_assert_uint_eq(found, i);
        last = i + 1;
        ck_assert_int_eq(nilfs_palloc_read(ifile, i, PURPOSE_INODE, &view, &entry), 0);
        memcpy(&contents, entry, sizeof(contents));
        ck_assert(i < NILFS_FIRST_INO || contents == i);
        nilfs_view_put(&view);
    }
    ck_assert_int_eq(nilfs_palloc_next(ifile, last, &found), -ENOENT);
    for (uint64_t i = 0; i < NUMBERS; i += 7)
        ck_assert_int_eq(nilfs_palloc_used(ifile, i), m->used[i]);
    for (uint64_t group = 0; group < GROUPS; group++)
        check_count(m, group);
}

static void numbers_open(struct numbers *m) {
    harness_open(&m->h, 10, 64);
    m->layout = nilfs_palloc_of(m->h.nilfs.ifile);
    ck_assert_uint_eq(m->layout.entries_per_group, GROUP_ENTRIES);
    memset(m->used, false, sizeof(m->used));
    for (unsigned i = 0; i < NILFS_FIRST_INO; i++)
        m->used[i] = true;
}

/* Some hundred numbers in one go: as files are made, or as the cleaner frees. */
static void numbers_round(struct numbers *m, uint64_t *state) {
    uint64_t at = fixture_random(state) % NUMBERS, count = fixture_random(state) % 600;
    bool punch = fixture_random(state) % 2;

    switch (fixture_random(state) % 4) {
    case 0:
        while (count-- > 0 && first_free(m, at) < NUMBERS)
            allocate(m, at);
        break;
    case 1:
        while (count-- > 0 && first_free(m, at) < NUMBERS) {
            allocate(m, at);
            at = fixture_random(state) % NUMBERS;
        }
        break;
    case 2:
        for (uint64_t end = at + 4 * count; at < end && at < NUMBERS; at++)
            if (at >= NILFS_FIRST_INO && m->used[at])
                give_back(m, at, punch);
        break;
    default:
        harness_checkpoint(&m->h);
        if (punch)
            harness_forget(&m->h);
    }
}

START_TEST(numbers_agree_with_a_model) {
    static struct numbers m;
    uint64_t state = fixture_seed("numbers"), capacity;

    numbers_open(&m);
    for (unsigned round = 0; round < 300 * fixture_factor(); round++) {
        numbers_round(&m, &state);
        if (round % 50 == 49)
            check_numbers(&m);
        if (round % 100 == 99 && m.h.next_block > 60000) { /* of 131072 blocks */
            harness_close(&m.h);
            numbers_open(&m);
        }
    }
    ck_assert_int_eq(nilfs_palloc_capacity(m.h.nilfs.ifile, &capacity), 0);
    ck_assert_uint_eq(capacity, 256 * GROUP_ENTRIES); /* one descriptor block */
    ck_assert_int_eq(nilfs_palloc_free(m.h.nilfs.ifile, first_free(&m, 0), false), -EUCLEAN);
    harness_close(&m.h);
}
END_TEST

START_TEST(empty_blocks_become_holes) {
    static struct numbers m;

    numbers_open(&m);
    uint64_t before = harness_data_blocks(m.h.nilfs.ifile);
    for (unsigned i = 0; i < 100; i++)
        allocate(&m, 3 * GROUP_ENTRIES - 50);
    for (uint64_t i = 3 * GROUP_ENTRIES - 50; i < 3 * GROUP_ENTRIES + 50; i++)
        give_back(&m, i, true);
    check_numbers(&m);
    ck_assert_uint_eq(harness_data_blocks(m.h.nilfs.ifile), before);
    /* Neither bitmaps nor entries are needed to search there. */
    allocate(&m, 3 * GROUP_ENTRIES);
    give_back(&m, 3 * GROUP_ENTRIES, false);
    ck_assert_uint_gt(harness_data_blocks(m.h.nilfs.ifile), before);
    harness_close(&m.h);
}
END_TEST

START_TEST(numbers_end_somewhere) {
    struct nilfs_harness h;
    uint64_t number;
    uint8_t *entry;

    harness_open(&h, 10, 8);
    struct nilfs_file *ifile = h.nilfs.ifile;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t goal = NILFS_PALLOC_LIMIT - 2;
        ck_assert_int_eq(nilfs_palloc_allocate(ifile, goal, false, &number, &entry), 0);
        ck_assert_uint_eq(number, goal + i);
    }
    ck_assert_int_eq(nilfs_palloc_allocate(ifile, NILFS_PALLOC_LIMIT - 2, false, &number, &entry),
                     -ENOSPC);
    ck_assert_int_eq(nilfs_palloc_allocate(ifile, NILFS_PALLOC_LIMIT - 2, true, &number, &entry),
                     0);
    ck_assert_uint_eq(number, NILFS_FIRST_INO);
    harness_close(&h);
}
END_TEST

/* --- dat.c ------------------------------------------------------------------------------------ */

static void assert_life(struct nilfs *nilfs, uint64_t vblock, uint64_t block, uint64_t start,
                        uint64_t end) {
    struct nilfs_life life;

    ck_assert_int_eq(nilfs_dat_life(nilfs, vblock, &life), 0);
    ck_assert_uint_eq(life.block, block);
    ck_assert_uint_eq(life.start, start);
    ck_assert_uint_eq(life.end, end);
}

static uint64_t new_vblock(struct nilfs *nilfs, uint64_t goal) {
    uint64_t vblock;

    ck_assert_int_eq(nilfs_dat_allocate(nilfs, 17, goal, &vblock), 0);
    assert_life(nilfs, vblock, 0, 1, NILFS_CNO_MAX);
    return vblock;
}

START_TEST(virtual_blocks_live_as_the_format_says) {
    struct nilfs_harness h;
    struct nilfs *nilfs = &h.nilfs;
    struct nilfs_life life;
    uint64_t v[4], block;

    harness_open(&h, 12, 16);
    for (unsigned i = 0; i < 3; i++)
        harness_checkpoint(&h);
    uint64_t cno = nilfs->cno;
    for (unsigned i = 0; i < 4; i++)
        v[i] = new_vblock(nilfs, 0);
    /* As the driver has it for inode 17 where nothing else is. */
    ck_assert_uint_eq(v[0], 4096);
    ck_assert_uint_eq(v[3], 4099);
    /* Written. */
    uint64_t changed = nilfs->dirty_blocks;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(nilfs_dat_lookup(nilfs, v[i], &block), -EUCLEAN);
        ck_assert_int_eq(nilfs_dat_place(nilfs, v[i], 20000 + i), 0);
        assert_life(nilfs, v[i], 20000 + i, cno, NILFS_CNO_MAX);
    }
    ck_assert_uint_eq(nilfs->dirty_blocks, changed);
    ck_assert_int_eq(nilfs_dat_lookup_run(nilfs, v, 3, &block), 3);
    ck_assert_uint_eq(block, 20000);
    ck_assert_int_eq(nilfs_dat_lookup_run(nilfs, (const uint64_t[]){v[2], v[1]}, 2, &block), 1);
    ck_assert_uint_eq(block, 20002);
    ck_assert_int_eq(nilfs_dat_lookup_run(nilfs, v, 4, &block), -EUCLEAN);
    /* Never written, and given up: free at once, for the next. */
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[3], false), 0);
    ck_assert_int_eq(nilfs_palloc_used(nilfs->dat, v[3]), 0);
    ck_assert_int_eq(nilfs_dat_life(nilfs, v[3], &life), -EUCLEAN);
    ck_assert_uint_eq(new_vblock(nilfs, v[2]), v[3]);
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[3], true), 0);
    /* Written and replaced while one checkpoint is made. */
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[0], false), 0);
    assert_life(nilfs, v[0], 20000, cno, cno);
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[0], false), -EUCLEAN);
    harness_checkpoint(&h);
    harness_forget(&h);
    ck_assert_uint_eq(nilfs->cno, cno + 1);
    /* The DAT's block is no changed one. */
    ck_assert_int_eq(nilfs_dat_place(nilfs, v[1], 20009), -EUCLEAN);
    assert_life(nilfs, v[1], 20001, cno, NILFS_CNO_MAX);
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[1], false), 0);
    assert_life(nilfs, v[1], 20001, cno, cno + 1);
    ck_assert_int_eq(nilfs_dat_end(nilfs, v[2], true), 0);
    assert_life(nilfs, v[2], 20002, cno, cno);
    /* A number twice in use. */
    ck_assert_int_eq(nilfs_dat_place(nilfs, v[1], 20009), -EUCLEAN);
    /* The cleaner's. */
    ck_assert_int_eq(nilfs_dat_move(nilfs, v[1], 20010), 0);
    assert_life(nilfs, v[1], 20010, cno, cno + 1);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(nilfs_dat_free(nilfs, v[i]), 0);
        ck_assert_int_eq(nilfs_palloc_used(nilfs->dat, v[i]), 0);
    }
    ck_assert_int_eq(nilfs_dat_free(nilfs, v[0]), -EUCLEAN);
    ck_assert_int_eq(nilfs_dat_life(nilfs, 0, &life), -EUCLEAN);
    ck_assert_int_eq(nilfs_dat_lookup(nilfs, UINT64_MAX, &block), -EUCLEAN);
    ck_assert_int_eq(nilfs_dat_lookup(nilfs, 30000, &block), -EUCLEAN);
    harness_close(&h);
}
END_TEST

START_TEST(blocks_outside_the_segments_are_refused) {
    struct nilfs_harness h;
    uint64_t block;

    harness_open(&h, 12, 16);
    uint64_t v = new_vblock(&h.nilfs, 0);
    ck_assert_int_eq(nilfs_dat_place(&h.nilfs, v, UINT64_C(16) * 2048), 0);
    ck_assert_int_eq(nilfs_dat_lookup(&h.nilfs, v, &block), -EUCLEAN);
    ck_assert_int_eq(nilfs_dat_move(&h.nilfs, v, UINT64_C(16) * 2048 - 1), 0);
    ck_assert_int_eq(nilfs_dat_lookup(&h.nilfs, v, &block), 0);
    ck_assert_uint_eq(block, UINT64_C(16) * 2048 - 1);
    harness_close(&h);
}
END_TEST

/* --- ifile.c ---------------------------------------------------------------------------------- */

START_TEST(the_lowest_inode_number_is_next) {
    struct nilfs_harness h;
    struct nilfs *nilfs = &h.nilfs;
    struct nilfs_disk_inode *record, copy;
    uint64_t ino;

    harness_open(&h, 12, 16);
    for (uint64_t i = 0; i < 100; i++) {
        ck_assert_int_eq(nilfs_ifile_allocate(nilfs, &ino), 0);
        ck_assert_uint_eq(ino, NILFS_FIRST_INO + i);
        ck_assert_int_eq(nilfs_ifile_change(nilfs, ino, &record), 0);
        memset(record, (int)ino, sizeof(*record));
    }
    harness_checkpoint(&h);
    harness_forget(&h);
    ck_assert_int_eq(nilfs_ifile_free(nilfs, 70), 0);
    ck_assert_int_eq(nilfs_ifile_free(nilfs, 50), 0);
    ck_assert_int_eq(nilfs_ifile_read(nilfs->ifile, 50, &copy), -ESTALE);
    ck_assert_int_eq(nilfs_ifile_read(nilfs->ifile, 51, &copy), 0);
    ck_assert_uint_eq(le64_load(copy.i_size), UINT64_C(0x3333333333333333));
    ck_assert_int_eq(nilfs_ifile_next(nilfs->ifile, 50, &ino), 0);
    ck_assert_uint_eq(ino, 51);
    ck_assert_int_eq(nilfs_ifile_allocate(nilfs, &ino), 0);
    ck_assert_uint_eq(ino, 50);
    ck_assert_int_eq(nilfs_ifile_read(nilfs->ifile, 50, &copy), 0);
    ck_assert_uint_eq(le64_load(copy.i_size), 0);
    ck_assert_uint_eq(le32_load(copy.i_pad), 0);
    ck_assert_int_eq(nilfs_ifile_allocate(nilfs, &ino), 0);
    ck_assert_uint_eq(ino, 70);
    ck_assert_int_eq(nilfs_ifile_allocate(nilfs, &ino), 0);
    ck_assert_uint_eq(ino, NILFS_FIRST_INO + 100);
    ck_assert_int_eq(nilfs_ifile_read(nilfs->ifile, UINT64_MAX, &copy), -ESTALE);
    harness_close(&h);
}
END_TEST

/* --- cpfile.c --------------------------------------------------------------------------------- */

enum { CHECKPOINTS = 400, SLOTS = 5 /* of a block of 1 KiB */ };
enum kept { GONE, PLAIN, SNAPSHOT };

struct checkpoints {
    struct nilfs_harness h;
    enum kept kept[CHECKPOINTS + 1];
};

/* The lowest of at least `least`, from `from` on; 0: none. */
static uint64_t next_kept(const struct checkpoints *m, uint64_t from, enum kept least) {
    for (uint64_t cno = from; cno < m->h.nilfs.cno; cno++)
        if (m->kept[cno] >= least)
            return cno;
    return 0;
}

static void check_blocks(struct checkpoints *m) {
    for (uint64_t offset = 0; offset <= m->h.nilfs.newest / SLOTS; offset++) {
        struct nilfs_view view;
        uint32_t valid = 0;
        for (uint64_t cno = offset * SLOTS; cno < (offset + 1) * SLOTS; cno++)
            valid += cno > 0 && cno < m->h.nilfs.cno && m->kept[cno] != GONE;
        int rc = nilfs_file_read(m->h.nilfs.cpfile, offset, PURPOSE_OTHER, &view);
        ck_assert_int_eq(rc, valid == 0 && offset > 0 ? -ENOENT : 0);
        if (rc)
            continue;
        const struct nilfs_disk_checkpoint *slot = (const void *)view.data;
        ck_assert(offset == 0 || le32_load(slot->cp_checkpoints_count) == valid);
        nilfs_view_put(&view);
    }
}

static void check_checkpoints(struct checkpoints *m) {
    struct nilfs *nilfs = &m->h.nilfs;
    struct nilfs_checkpoint c;
    uint64_t counts[3] = {0}, checkpoints, snapshots, previous = 0;

    for (uint64_t cno = 0; cno < nilfs->cno; cno++) {
        uint64_t any = next_kept(m, cno, PLAIN), snapshot = next_kept(m, cno, SNAPSHOT);
        counts[m->kept[cno]]++;
        ck_assert_int_eq(nilfs_cpfile_read(nilfs, cno, &c), any == cno && cno ? 0 : -ENOENT);
        ck_assert_int_eq(nilfs_cpfile_next(nilfs, cno, false, &c), any ? 0 : -ENOENT);
        ck_assert(!any || c.cno == any);
        ck_assert_int_eq(nilfs_cpfile_next(nilfs, cno, true, &c), snapshot ? 0 : -ENOENT);
        ck_assert(!snapshot || c.cno == snapshot);
        if (snapshot != cno || cno == 0)
            continue;
        ck_assert_uint_eq(c.snapshot_previous, previous);
        ck_assert_uint_eq(c.snapshot_next, next_kept(m, cno + 1, SNAPSHOT));
        previous = cno;
    }
    ck_assert_int_eq(nilfs_cpfile_counts(nilfs, &checkpoints, &snapshots), 0);
    ck_assert_uint_eq(checkpoints, counts[PLAIN] + counts[SNAPSHOT]);
    ck_assert_uint_eq(snapshots, counts[SNAPSHOT]);
    check_blocks(m);
}

static void checkpoints_round(struct checkpoints *m, uint64_t *state) {
    struct nilfs *nilfs = &m->h.nilfs;
    uint64_t cno = 1 + fixture_random(state) % nilfs->newest;
    uint64_t end = cno + fixture_random(state) % 30;

    end = end > nilfs->newest ? nilfs->newest : end;
    switch (fixture_random(state) % 4) {
    case 0:
        ck_assert_int_eq(nilfs_cpfile_keep(nilfs, cno, true), m->kept[cno] ? 0 : -ENOENT);
        m->kept[cno] = m->kept[cno] ? SNAPSHOT : GONE;
        break;
    case 1:
        ck_assert_int_eq(nilfs_cpfile_keep(nilfs, cno, false), m->kept[cno] ? 0 : -ENOENT);
        m->kept[cno] = m->kept[cno] ? PLAIN : GONE;
        break;
    case 2: {
        uint64_t snapshot = next_kept(m, cno, SNAPSHOT);
        bool busy = snapshot && snapshot < end;
        ck_assert_int_eq(nilfs_cpfile_delete(nilfs, cno, end), busy ? -EBUSY : 0);
        for (; cno < end && !busy; cno++)
            m->kept[cno] = GONE;
        break;
    }
    default:
        m->kept[nilfs->cno] = PLAIN;
        harness_checkpoint(&m->h);
        if (fixture_random(state) % 8 == 0)
            harness_forget(&m->h);
    }
}

START_TEST(checkpoints_agree_with_a_model) {
    static struct checkpoints m;
    uint64_t state = fixture_seed("checkpoints");

    memset(&m, 0, sizeof(m));
    harness_open(&m.h, 10, 64);
    m.kept[1] = PLAIN;
    harness_checkpoint(&m.h);
    for (unsigned round = 0; m.h.nilfs.cno < CHECKPOINTS; round++) {
        checkpoints_round(&m, &state);
        if (round % 60 == 59)
            check_checkpoints(&m);
    }
    check_checkpoints(&m);
    harness_close(&m.h);
}
END_TEST

START_TEST(a_checkpoint_is_filled_in_place) {
    struct nilfs_harness h;
    struct nilfs *nilfs = &h.nilfs;
    struct nilfs_checkpoint c = {.cno = 3, .flags = NILFS_CP_MINOR, .created = 77, .increment = 5};

    harness_open(&h, 12, 16);
    harness_checkpoint(&h);
    harness_checkpoint(&h);
    ck_assert_int_eq(nilfs_cpfile_fill(nilfs, &c), -ENOENT);
    ck_assert_int_eq(nilfs_cpfile_create(nilfs), 0);
    uint64_t changed = nilfs->dirty_blocks;
    le64_store(&c.ifile.i_size, 1234);
    ck_assert_int_eq(nilfs_cpfile_fill(nilfs, &c), 0);
    ck_assert_uint_eq(nilfs->dirty_blocks, changed);
    ck_assert_int_eq(nilfs_cpfile_create(nilfs), 0);
    harness_checkpoint(&h);
    harness_forget(&h);
    ck_assert_int_eq(nilfs_cpfile_keep(nilfs, 3, true), 0);
    ck_assert_int_eq(nilfs_cpfile_read(nilfs, 3, &c), 0);
    ck_assert_uint_eq(c.flags, NILFS_CP_MINOR | NILFS_CP_SNAPSHOT);
    ck_assert_int_eq(c.created, 77);
    ck_assert_uint_eq(c.increment, 5);
    ck_assert_uint_eq(le64_load(c.ifile.i_size), 1234);
    ck_assert_int_eq(nilfs_cpfile_read(nilfs, 4, &c), -ENOENT);
    harness_close(&h);
}
END_TEST

/* --- sufile.c --------------------------------------------------------------------------------- */

enum { SEGMENTS = 700 };

struct segments {
    struct nilfs_harness h;
    enum state { CLEAN, DIRTY, BROKEN } state[SEGMENTS];
    uint64_t freed[SEGMENTS]; /* while which checkpoint was made; 0: for sure */
    uint64_t last;
};

static void check_segments(struct segments *m) {
    struct nilfs_usage_totals totals;
    struct nilfs_usage usage;
    uint64_t clean = 0;

    for (uint64_t i = 0; i < SEGMENTS; i++) {
        ck_assert_int_eq(nilfs_sufile_read(&m->h.nilfs, i, &usage), 0);
        ck_assert_int_eq(usage.flags == 0, m->state[i] == CLEAN);
        clean += m->state[i] == CLEAN;
    }
    ck_assert_int_eq(nilfs_sufile_totals(&m->h.nilfs, &totals), 0);
    ck_assert_uint_eq(totals.clean, clean);
    ck_assert_uint_eq(totals.dirty, SEGMENTS - clean);
    ck_assert_uint_eq(totals.last_allocated, m->last);
    ck_assert_uint_eq(m->h.nilfs.clean_segments, clean);
}

static void allocate_segment(struct segments *m) {
    uint64_t expected, segment = 0;

    for (expected = 1; expected <= SEGMENTS; expected++) {
        segment = (m->last + expected) % SEGMENTS;
        if (m->state[segment] == CLEAN && m->freed[segment] == 0)
            break;
    }
    uint64_t found;
    ck_assert_int_eq(nilfs_sufile_allocate(&m->h.nilfs, &found), expected > SEGMENTS ? -ENOSPC : 0);
    if (expected > SEGMENTS)
        return;
    ck_assert_uint_eq(found, segment);
    m->state[segment] = DIRTY;
    m->last = segment;
}

static void segments_round(struct segments *m, uint64_t *state) {
    uint64_t segment = fixture_random(state) % SEGMENTS, cno = m->h.nilfs.newest;
    struct nilfs_usage usage = {.modified = 9, .blocks = 7, .flags = NILFS_SU_DIRTY};

    switch (fixture_random(state) % 16) {
    case 0:
        harness_checkpoint(&m->h);
        break;
    case 1:
        nilfs_sufile_release_freed(&m->h.nilfs, cno);
        for (uint64_t i = 0; i < SEGMENTS; i++)
            m->freed[i] = m->freed[i] <= cno ? 0 : m->freed[i];
        break;
    case 2:
        if (m->state[segment] == CLEAN)
            break;
        usage.flags = NILFS_SU_ERROR;
        ck_assert_int_eq(nilfs_sufile_write(&m->h.nilfs, segment, &usage), 0);
        ck_assert_int_eq(nilfs_sufile_read(&m->h.nilfs, segment, &usage), 0);
        ck_assert_uint_eq(usage.flags, NILFS_SU_ERROR | NILFS_SU_DIRTY);
        ck_assert_uint_eq(usage.blocks, 7);
        m->state[segment] = BROKEN;
        break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        if (m->state[segment] != DIRTY)
            break;
        ck_assert_int_eq(nilfs_sufile_free(&m->h.nilfs, segment), 0);
        m->state[segment] = CLEAN;
        m->freed[segment] = m->h.nilfs.cno;
        break;
    default:
        allocate_segment(m);
    }
}

START_TEST(segments_agree_with_a_model) {
    static struct segments m;
    uint64_t state = fixture_seed("segments");

    memset(&m, 0, sizeof(m));
    harness_open(&m.h, 10, SEGMENTS);
    m.last = SEGMENTS - 1;
    for (unsigned round = 0; round < 6000; round++) {
        segments_round(&m, &state);
        if (round % 500 == 499)
            check_segments(&m);
    }
    harness_checkpoint(&m.h);
    harness_forget(&m.h);
    check_segments(&m);
    ck_assert_int_eq(nilfs_sufile_touch(&m.h.nilfs, SEGMENTS), -EUCLEAN);
    harness_close(&m.h);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_meta");
    TCase *tcase = tcase_create("nilfs_meta");

    tcase_add_test(tcase, numbers_agree_with_a_model);
    tcase_add_test(tcase, empty_blocks_become_holes);
    tcase_add_test(tcase, numbers_end_somewhere);
    tcase_add_test(tcase, virtual_blocks_live_as_the_format_says);
    tcase_add_test(tcase, blocks_outside_the_segments_are_refused);
    tcase_add_test(tcase, the_lowest_inode_number_is_next);
    tcase_add_test(tcase, checkpoints_agree_with_a_model);
    tcase_add_test(tcase, a_checkpoint_is_filled_in_place);
    tcase_add_test(tcase, segments_agree_with_a_model);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/check*.c: a volume in use is found to be right; each kind of damage, with all
 * checksums right, is found; what a crash leaves behind is freed. The volumes of the Linux driver
 * are checked by integration/nilfs2_samples.sh.
 */
#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/sufile.h"
#include "tests/unit/fixture.h"

enum { SIZE = 8 << 20, BLOCK = 1024, SEGMENT = 64, PIECE = 1 << 20 };

struct image {
    struct clock clock;
    struct log log;
    struct volume *volume; /* while it is open */
    uint64_t wrong, notes, repaired;
    char first[512]; /* finding */
    uint8_t bytes[SIZE];
};

static struct image good; /* as make_image left it */

static void copy_out(struct image *m, struct device *device) {
    for (uint64_t at = 0; at < SIZE; at += PIECE)
        ck_assert_int_eq(device_read(device, at, m->bytes + at, PIECE, PURPOSE_OTHER), 0);
}

static struct device *device_of(struct image *m) {
    struct device *device;

    ck_assert_int_eq(device_open_ram(SIZE, &m->clock, &m->log, &device), 0);
    for (uint64_t at = 0; at < SIZE; at += PIECE)
        ck_assert_int_eq(device_write(device, at, m->bytes + at, PIECE, PURPOSE_OTHER), 0);
    return device;
}

static struct nilfs *open_image(struct image *m, const char *options) {
    struct volume_config config = {.type = "nilfs2",
                                   .device = device_of(m),
                                   .clock = &m->clock,
                                   .log = &m->log,
                                   .read_only = true,
                                   .options = options};

    ck_assert_int_eq(volume_open(&config, &m->volume), 0);
    return nilfs_of(m->volume);
}

/* --- a volume with something of everything ---------------------------------------------------- */

static void write_file(struct inode *inode, uint64_t from, uint64_t to) {
    uint8_t piece[BLOCK];

    for (uint64_t at = from; at < to; at += sizeof(piece)) {
        memset(piece, (int)(at / BLOCK), sizeof(piece));
        ck_assert_int_eq(volume_write(inode, piece, sizeof(piece), at), sizeof(piece));
    }
}

static struct inode *create(struct inode *dir, const char *name, uint32_t mode) {
    struct create_request request = {.mode = mode, .target = "some/where"};
    struct inode *inode;

    ck_assert_int_eq(volume_create(dir, name, (uint32_t)strlen(name), &request, &inode), 0);
    return inode;
}

static void fill(struct fixture *f) {
    struct inode *dir = create(f->root, "dir", S_IFDIR | 0755);
    struct inode *file = create(dir, "file", S_IFREG | 0644);
    struct inode *below = create(dir, "below", S_IFDIR | 0755);
    uint64_t number;

    volume_put(create(f->root, "link", S_IFLNK | 0777), 1);
    volume_put(create(f->root, "fifo", S_IFIFO | 0600), 1);
    write_file(file, 0, 200 * BLOCK);
    for (unsigned i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "small%u", i);
        struct inode *small = create(below, name, S_IFREG | 0600);
        write_file(small, 0, BLOCK);
        volume_put(small, 1);
    }
    ck_assert_int_eq(volume_checkpoint_create(f->volume, &number), 0);
    write_file(file, 50 * BLOCK, 90 * BLOCK);
    ck_assert_int_eq(volume_link(file, f->root, "again", 5), 0);
    ck_assert_int_eq(volume_unlink(below, "small7", 6), 0);
    ck_assert_int_eq(volume_sync(f->volume), 0);
    ck_assert_int_eq(volume_truncate(file, 120 * BLOCK), 0);
    ck_assert_int_eq(volume_checkpoint_create(f->volume, &number), 0);
    ck_assert_int_eq(volume_sync(f->volume), 0);
    volume_put(file, 1);
    volume_put(below, 1);
    volume_put(dir, 1);
}

static void image_start(struct image *m) {
    clock_init_virtual(&m->clock, NULL);
    m->log = log_to_stderr("test", LOG_LEVEL_ERROR);
    m->volume = NULL;
}

/* On an empty volume of SIZE bytes. */
static void start_volume(struct fixture *f, struct image *m) {
    struct options options;

    image_start(m);
    memset(m->bytes, 0, SIZE);
    struct device *device = device_of(m);
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &m->log), 0);
    ck_assert_int_eq(options_parse(&options, "block_size=1024,blocks_per_segment=64"), 0);
    ck_assert_int_eq(layout_format("nilfs2", device, &options), 0);
    options_free(&options);
    struct volume_config config = {
        .type = "nilfs2", .device = device, .clock = &m->clock, .log = &m->log};
    ck_assert_int_eq(volume_open(&config, &f->volume), 0);
    ck_assert_int_eq(volume_root(f->volume, &f->root), 0);
    fill(f);
}

static void make_image(void) {
    struct fixture f;

    start_volume(&f, &good);
    copy_out(&good, f.volume->device);
    fixture_close(&f);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* The bytes of the file's block. */
static uint8_t *block_at(struct image *m, struct nilfs_file *file, uint64_t offset) {
    uint64_t pointer, block;

    ck_assert_int_eq(nilfs_bmap_lookup(file, offset, &pointer), 0);
    ck_assert_int_eq(nilfs_file_address(file, pointer, &block), 0);
    return m->bytes + block * BLOCK;
}

static uint8_t *entry_at(struct image *m, struct nilfs_file *file, uint64_t number) {
    struct nilfs_palloc p = nilfs_palloc_of(file);
    uint64_t offset;
    uint32_t byte;

    nilfs_palloc_locate(&p, number, &offset, &byte);
    return block_at(m, file, offset) + byte;
}

static uint64_t ino_of(struct image *m, const char *path) {
    struct attributes attributes;
    struct inode *inode;

    ck_assert_int_eq(volume_resolve(m->volume, path, false, &inode), 0);
    volume_getattr(inode, &attributes);
    volume_put(inode, 1);
    return attributes.ino;
}

static struct nilfs_disk_inode *record_of(struct image *m, const char *path) {
    return (void *)entry_at(m, nilfs_of(m->volume)->ifile, ino_of(m, path));
}

/* A virtual block of /again, and its entry in the DAT. */
static struct nilfs_disk_dat_entry *life_of(struct image *m, uint64_t offset) {
    struct nilfs *nilfs = nilfs_of(m->volume);
    struct nilfs_disk_inode *record = record_of(m, "/again");
    struct nilfs_file *file;
    uint64_t vblock;

    ck_assert_int_eq(nilfs_file_new(nilfs, 99, 0, NILFS_MULTI, record, &file), 0);
    ck_assert_int_eq(nilfs_bmap_lookup(file, offset, &vblock), 0);
    nilfs_file_put(file);
    return (void *)entry_at(m, nilfs->dat, vblock);
}

static struct nilfs_disk_checkpoint *slot_of(struct image *m, uint64_t cno) {
    uint64_t slots = BLOCK / 192;
    return (void *)(block_at(m, nilfs_of(m->volume)->cpfile, cno / slots) + cno % slots * 192);
}

static uint64_t snapshot(struct image *m, uint64_t from) {
    struct nilfs_checkpoint checkpoint;

    ck_assert_int_eq(nilfs_cpfile_next(nilfs_of(m->volume), from, true, &checkpoint), 0);
    return checkpoint.cno;
}

static void add64(le64 *field, uint64_t change) {
    le64_store(field, le64_load(*field) + change);
}

static void life_over(struct image *m, struct nilfs *nilfs) {
    le64_store(&life_of(m, 3)->de_end, nilfs->newest);
}

static void life_too_late(struct image *m, struct nilfs *nilfs) {
    le64_store(&life_of(m, 3)->de_start, nilfs->newest + 1);
}

static void block_of_another(struct image *m, struct nilfs *nilfs) {
    life_of(m, 3)->de_blocknr = life_of(m, 4)->de_blocknr;
}

static void block_nowhere(struct image *m, struct nilfs *nilfs) {
    le64_store(&life_of(m, 3)->de_blocknr, SIZE / BLOCK);
}

static void block_unlogged(struct image *m, struct nilfs *nilfs) {
    le64_store(&life_of(m, 3)->de_blocknr, nilfs->position.block + 5);
}

static void inode_unused(struct image *m, struct nilfs *nilfs) {
    uint64_t ino = ino_of(m, "/again");
    block_at(m, nilfs->ifile, 1)[ino / 8] &= (uint8_t) ~(1u << ino % 8);
}

static void ifile_miscounted(struct image *m, struct nilfs *nilfs) {
    le32 *count = (le32 *)block_at(m, nilfs->ifile, 0);
    le32_store(count, le32_load(*count) + 1);
}

static void dat_miscounted(struct image *m, struct nilfs *nilfs) {
    le32 *count = (le32 *)block_at(m, nilfs->dat, 0);
    le32_store(count, le32_load(*count) - 1);
}

static void links_miscounted(struct image *m, struct nilfs *nilfs) {
    le16_store(&record_of(m, "/again")->i_links_count, 1);
}

static void blocks_miscounted(struct image *m, struct nilfs *nilfs) {
    add64(&record_of(m, "/again")->i_blocks, 2);
}

static void size_too_small(struct image *m, struct nilfs *nilfs) {
    le64_store(&record_of(m, "/again")->i_size, 100 * BLOCK);
}

static void no_type(struct image *m, struct nilfs *nilfs) {
    le16_store(&record_of(m, "/again")->i_mode, 0644);
}

static struct nilfs_disk_dir_entry *first_name(struct image *m) {
    struct nilfs_disk_inode *record = record_of(m, "/dir/below");
    struct nilfs_file *file;

    ck_assert_int_eq(nilfs_file_new(nilfs_of(m->volume), 99, 0, NILFS_MULTI, record, &file), 0);
    uint8_t *block = block_at(m, file, 0);
    nilfs_file_put(file);
    return (void *)(block + 32); /* behind "." and ".." */
}

static void name_of_nothing(struct image *m, struct nilfs *nilfs) {
    le64_store(&first_name(m)->inode, 500);
}

static void name_of_another(struct image *m, struct nilfs *nilfs) {
    le64_store(&first_name(m)->inode, ino_of(m, "/link"));
}

static void name_with_slash(struct image *m, struct nilfs *nilfs) {
    *(char *)(first_name(m) + 1) = '/';
}

static void name_too_long(struct image *m, struct nilfs *nilfs) {
    le16_store(&first_name(m)->rec_len, 8);
}

static void checkpoints_miscounted(struct image *m, struct nilfs *nilfs) {
    add64(&((struct nilfs_disk_cpfile_header *)block_at(m, nilfs->cpfile, 0))->ch_ncheckpoints, 1);
}

static void list_of_snapshots_cut(struct image *m, struct nilfs *nilfs) {
    le64_store(&slot_of(m, snapshot(m, 1))->cp_snapshots.ssl_next, 0);
}

static void list_of_snapshots_bent(struct image *m, struct nilfs *nilfs) {
    uint64_t second = snapshot(m, snapshot(m, 1) + 1);
    le64_store(&slot_of(m, second)->cp_snapshots.ssl_prev, 0);
}

static void blocks_of_snapshot(struct image *m, struct nilfs *nilfs) {
    add64(&slot_of(m, snapshot(m, 1))->cp_blocks_count, 1);
}

static void inodes_of_newest(struct image *m, struct nilfs *nilfs) {
    add64(&slot_of(m, nilfs->newest)->cp_inodes_count, 1);
}

static struct nilfs_disk_segment_usage *usage_of(struct image *m, uint64_t segment) {
    return (void *)(block_at(m, nilfs_of(m->volume)->sufile, 0) + 16 * (segment + 2));
}

static void segment_clean(struct image *m, struct nilfs *nilfs) {
    memset(usage_of(m, 1), 0, 16);
}

static void segment_shorter(struct image *m, struct nilfs *nilfs) {
    struct nilfs_disk_segment_usage *usage = usage_of(m, nilfs->position.segment);
    le32_store(&usage->su_nblocks, le32_load(usage->su_nblocks) - 1);
}

static void segments_miscounted(struct image *m, struct nilfs *nilfs) {
    struct nilfs_disk_sufile_header *header = (void *)block_at(m, nilfs->sufile, 0);
    add64(&header->sh_ncleansegs, 1);
}

/* The first item of the volume's newest log gets another virtual block. */
static void log_lies(struct image *m, struct nilfs *nilfs) {
    uint8_t *log = m->bytes + nilfs->supers.newest.block * BLOCK;
    struct nilfs_disk_summary *summary = (void *)log;
    add64((le64 *)(log + le16_load(summary->ss_bytes) + sizeof(struct nilfs_disk_finfo)), 1);
}

/* A leaf loses all keys but three. */
static void node_too_empty(struct image *m, struct nilfs *nilfs) {
    struct nilfs_disk_bmap *map = &record_of(m, "/again")->i_bmap;
    uint64_t block;

    ck_assert_uint_gt(le16_load(map->head.node.nchildren), 1);
    ck_assert_int_eq(nilfs_dat_lookup(nilfs, le64_load(map->u.root.pointers[0]), &block), 0);
    struct nilfs_disk_node *node = (void *)(m->bytes + block * BLOCK);
    le16_store(&node->nchildren, 3);
}

static const struct damage {
    void (*apply)(struct image *m, struct nilfs *nilfs);
    const char *expected; /* part of the first finding */
} damages[] = {
    {life_over, "lives from checkpoint"},
    {life_too_late, "lives from checkpoint"},
    {block_of_another, "holds something else, too"},
    {block_nowhere, "which is in no segment"},
    {block_unlogged, "in no log"},
    {inode_unused, "the descriptor of group 0"},
    {ifile_miscounted, "the descriptor of group 0"},
    {dat_miscounted, "the descriptor of group 0"},
    {links_miscounted, "i_links_count is 1, but it has 2 names"},
    {blocks_miscounted, "i_blocks is"},
    {size_too_small, "which is behind its end"},
    {no_type, "its mode has no type"},
    {name_of_nothing, "its inode is not in use"},
    {name_of_another, "file_type differs"},
    {name_with_slash, "holds a slash"},
    {name_too_long, "rec_len is not"},
    {checkpoints_miscounted, "cpfile: checkpoints: "},
    {list_of_snapshots_cut, "snapshots in the list: 1, expected 2"},
    {list_of_snapshots_bent, "but says 0"},
    {blocks_of_snapshot, "blocks, expected"},
    {inodes_of_newest, "inodes, expected"},
    {segment_clean, "segment 1 is marked clean"},
    {segment_shorter, "but its last log ends"},
    {segments_miscounted, "clean segments: "},
    {log_lies, "its log says that"},
    {node_too_empty, "children, expected at least"},
};

/* All logs there are get the checksums of what they hold now. */
static void seal_logs(struct image *m, uint32_t seed) {
    for (uint64_t segment = 0; segment < SIZE / BLOCK / SEGMENT; segment++) {
        uint64_t at = segment == 0 ? 4 : segment * SEGMENT;
        while (at < (segment + 1) * SEGMENT) {
            uint8_t *log = m->bytes + at * BLOCK;
            struct nilfs_disk_summary *summary = (void *)log;
            uint64_t blocks = le32_load(summary->ss_nblocks);
            if (le32_load(summary->ss_magic) != NILFS_LOG_MAGIC)
                break;
            le32_store(&summary->ss_sumsum,
                       nilfs_crc(seed, log + 8, le32_load(summary->ss_sumbytes) - 8));
            le32_store(&summary->ss_datasum, nilfs_crc(seed, log + 4, blocks * BLOCK - 4));
            at += blocks;
        }
    }
}

/* --- checking --------------------------------------------------------------------------------- */

static void finding(void *context, enum check_severity severity, const char *text) {
    struct image *m = context;

    if (severity == CHECK_NOTE)
        m->notes++;
    else if (m->wrong++ == 0)
        snprintf(m->first, sizeof(m->first), "%s", text);
}

static void check_image(struct image *m, bool repair, bool contents) {
    struct check_report report = {
        .finding = finding, .context = m, .repair = repair, .contents = contents};
    struct device *device = device_of(m);

    m->wrong = m->notes = 0;
    m->first[0] = '\0';
    ck_assert_int_eq(nilfs_check(device, &m->log, &report), 0);
    ck_assert_uint_eq(report.wrong, m->wrong);
    copy_out(m, device);
    device_close(device);
}

START_TEST(a_volume_in_use_is_right) {
    struct image *m = &good;

    make_image();
    check_image(m, false, true);
    ck_assert_msg(m->wrong == 0, "%s", m->first);
    ck_assert_uint_eq(m->notes, 1); /* that it was not unmounted */
}
END_TEST

START_TEST(damage_is_found) {
    static struct image m;
    const struct damage *damage = &damages[_i];

    make_image();
    m = good;
    image_start(&m);
    struct nilfs *nilfs = open_image(&m, NULL);
    uint32_t seed = nilfs->geometry.crc_seed;
    damage->apply(&m, nilfs);
    ck_assert_int_eq(volume_close(m.volume), 0);
    ck_assert_int_ne(memcmp(m.bytes, good.bytes, SIZE), 0);
    seal_logs(&m, seed);
    check_image(&m, false, true);
    ck_assert_uint_gt(m.wrong, 0);
    ck_assert_msg(strstr(m.first, damage->expected) != NULL, "%s", m.first);
}
END_TEST

/* A byte of a file that no structure depends on. */
START_TEST(contents_are_compared) {
    static struct image m;
    struct inode *root, *dir, *file;
    struct extent extent;

    make_image();
    m = good;
    image_start(&m);
    open_image(&m, NULL);
    ck_assert_int_eq(volume_root(m.volume, &root), 0);
    ck_assert_int_eq(volume_lookup(root, "dir", 3, &dir), 0);
    ck_assert_int_eq(volume_lookup(dir, "file", 4, &file), 0);
    ck_assert_int_eq(m.volume->layout->map(file, 100 * BLOCK, &extent), 0);
    m.bytes[extent.device_offset + 100 * BLOCK - extent.offset] ^= 1;
    volume_put(file, 1);
    volume_put(dir, 1);
    volume_put(root, 1);
    ck_assert_int_eq(volume_close(m.volume), 0);
    check_image(&m, false, false);
    ck_assert_msg(m.wrong == 0, "%s", m.first);
    check_image(&m, false, true);
    ck_assert_uint_eq(m.wrong, 1);
    ck_assert_msg(strstr(m.first, "the log's checksum does not hold") != NULL, "%s", m.first);
}
END_TEST

/* --- what a crash leaves ---------------------------------------------------------------------- */

static uint64_t inodes_of(struct image *m) {
    uint64_t inodes = open_image(m, NULL)->inodes_count;

    ck_assert_int_eq(volume_close(m->volume), 0);
    return inodes;
}

START_TEST(nameless_files_are_freed) {
    static struct image m;
    struct create_request request = {.mode = S_IFREG | 0600};
    struct inode *inode;
    struct fixture f;

    start_volume(&f, &m);
    ck_assert_int_eq(volume_create_nameless(f.root, &request, &inode), 0);
    write_file(inode, 0, 100 * BLOCK);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    copy_out(&m, f.volume->device);
    volume_put(inode, 1);
    fixture_close(&f);

    uint64_t before = inodes_of(&m);
    check_image(&m, false, true);
    ck_assert_msg(m.wrong == 0, "%s", m.first);
    ck_assert_uint_eq(m.notes, 2);
    check_image(&m, true, true);
    ck_assert_msg(m.wrong == 0, "%s", m.first);
    ck_assert_uint_eq(inodes_of(&m), before - 1);
    check_image(&m, false, true);
    ck_assert_msg(m.wrong == 0, "%s", m.first);
    ck_assert_uint_eq(m.notes, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_check");
    TCase *tcase = tcase_create("nilfs_check");

    tcase_add_test(tcase, a_volume_in_use_is_right);
    tcase_add_loop_test(tcase, damage_is_found, 0, sizeof(damages) / sizeof(*damages));
    tcase_add_test(tcase, contents_are_compared);
    tcase_add_test(tcase, nameless_files_are_freed);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

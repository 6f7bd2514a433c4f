/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs: what was promised has room. Volumes are filled by writes all over files, new files
 * and directories, overwriting, truncation, removing, renaming and attributes until there is no
 * space, again and again: whatever a call has accepted is stored and synced, no commit takes more
 * than was promised for it, the volume never stops for want of space, and can be emptied. After a
 * crash, what fdatasync wrote has room once more.
 */
#include <errno.h>
#include <fcntl.h>

#include "layouts/nilfs/layout.h"
#include "tests/unit/fixture.h"

#define FILES    6u
#define SPREAD   (UINT64_C(3) << 20) /* bytes of a file that are written to */
#define SEGMENT  65536u
#define NAME     64
#define PUNCH    (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define CLEANING "protection_period=0,wait=on,cleaner="

static const struct {
    const char *mkfs_options, *mount_options;
    uint64_t size;
    unsigned full;        /* refusals after which a volume is left... */
    uint64_t checkpoints; /* ...or so many of these */
    unsigned rounds;
} cases_of[] = {
    {"block_size=1024,blocks_per_segment=16", "cleaner=off", UINT64_C(4) << 20, 40, UINT64_MAX, 3},
    {"block_size=1024,blocks_per_segment=64", "cleaner=off", UINT64_C(8) << 20, 40, UINT64_MAX, 3},
    {"block_size=2048,blocks_per_segment=32", "cleaner=off", UINT64_C(8) << 20, 40, UINT64_MAX, 3},
    {"block_size=4096,blocks_per_segment=16", "cleaner=off", UINT64_C(12) << 20, 40, UINT64_MAX, 3},
    {"block_size=4096,blocks_per_segment=64", "cleaner=off", UINT64_C(24) << 20, 40, UINT64_MAX, 3},
    /* Segments come back, the first one among them, which is shorter than others. */
    {"block_size=1024,blocks_per_segment=16", CLEANING "greedy", UINT64_C(4) << 20, 8, 1000, 1},
    {"block_size=1024,blocks_per_segment=64", CLEANING "timestamp", UINT64_C(8) << 20, 8, 1000, 1},
    {"block_size=4096,blocks_per_segment=16", CLEANING "cost-benefit", UINT64_C(12) << 20, 8, 400,
     1},
};
#define CASES                 ((int)(sizeof(cases_of) / sizeof(*cases_of)))
#define CASES_WITHOUT_CLEANER 5

struct bed {
    struct clock clock;
    struct log log;
    struct volume *volume;
    struct inode *root, *file[FILES];
    uint64_t random;
    unsigned refused, made;
};

static void bed_open(struct bed *bed, int number) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct options options;
    struct device *device;

    bed->log = log_to_stderr("space", LOG_LEVEL_ERROR);
    clock_init_virtual(&bed->clock, NULL);
    ck_assert_int_eq(device_open_ram(cases_of[number].size, &bed->clock, &bed->log, &device), 0);
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &bed->log), 0);
    ck_assert_int_eq(options_parse(&options, cases_of[number].mkfs_options), 0);
    ck_assert_int_eq(layout_format("nilfs2", device, &options), 0);
    options_free(&options);
    struct volume_config config = {.type = "nilfs2",
                                   .device = device,
                                   .clock = &bed->clock,
                                   .log = &bed->log,
                                   .options = cases_of[number].mount_options};
    ck_assert_int_eq(volume_open(&config, &bed->volume), 0);
    ck_assert_int_eq(volume_root(bed->volume, &bed->root), 0);
    for (unsigned i = 0; i < FILES; i++) {
        char name[] = {'f', (char)('0' + i)};
        ck_assert_int_eq(volume_create(bed->root, name, 2, &request, &bed->file[i]), 0);
    }
}

static bool is_full(const struct bed *bed, int number) {
    return bed->refused >= cases_of[number].full ||
           nilfs_of(bed->volume)->newest >= cases_of[number].checkpoints;
}

static void accepted(struct bed *bed, int64_t result) {
    ck_assert_msg(result >= 0 || result == -ENOSPC, "%lld", (long long)result);
    bed->refused += result == -ENOSPC;
}

static uint32_t name_of(char *name, unsigned number) {
    return (uint32_t)snprintf(name, NAME, "a-new-name-of-some-length-%u", number);
}

static void make_one(struct bed *bed) {
    struct create_request request = {.mode = fixture_random(&bed->random) % 2 ? S_IFREG | 0644
                                                                              : S_IFDIR | 0755};
    struct inode *inode;
    char name[NAME];
    uint32_t length = name_of(name, bed->made++);
    int error = volume_create(bed->root, name, length, &request, &inode);

    accepted(bed, error);
    if (!error)
        volume_put(inode, 1);
}

static int remove_name(struct bed *bed, unsigned number) {
    char name[NAME];
    uint32_t length = name_of(name, number);
    int error = volume_unlink(bed->root, name, length);

    return error == -EISDIR ? volume_rmdir(bed->root, name, length) : error;
}

/* One of the names there have been, to another or to nothing. */
static void change_one(struct bed *bed) {
    unsigned from = bed->made ? (unsigned)(fixture_random(&bed->random) % bed->made) : 0;
    char name[NAME], other[NAME];
    int error;

    if (fixture_random(&bed->random) % 2)
        error = remove_name(bed, from);
    else
        error = volume_rename(bed->root, name, name_of(name, from), bed->root, other,
                              name_of(other, bed->made ? (from + 1) % bed->made : 0), 0);
    if (error != -ENOENT && error != -EISDIR && error != -ENOTDIR)
        accepted(bed, error);
}

static void step(struct bed *bed) {
    static char bytes[SEGMENT];
    struct inode *file = bed->file[fixture_random(&bed->random) % FILES];
    uint64_t offset = fixture_random(&bed->random) % SPREAD;
    struct attributes a = {.size = offset, .mode = (uint32_t)offset & 0777};

    switch (fixture_random(&bed->random) % 200) {
    case 0:
        accepted(bed, volume_setattr(file, SETATTR_SIZE, &a));
        break;
    case 1:
        accepted(bed, volume_write(file, bytes, sizeof(bytes), offset));
        break;
    case 2:
        ck_assert_int_eq(volume_fsync(file, fixture_random(&bed->random) % 2), 0);
        break;
    case 3:
    case 4:
        make_one(bed);
        break;
    case 5:
        change_one(bed);
        break;
    case 6:
        accepted(bed, volume_setattr(file, SETATTR_MODE, &a));
        break;
    case 7:
        accepted(bed, volume_fallocate(file, PUNCH, offset, SEGMENT));
        break;
    default:
        accepted(bed, volume_write(file, bytes, 1, offset));
    }
}

static void bed_close(struct bed *bed) {
    const struct nilfs *nilfs = nilfs_of(bed->volume);

    ck_assert_uint_eq(nilfs->overdrafts, 0);
    for (unsigned i = 0; i < FILES; i++)
        volume_put(bed->file[i], 1);
    volume_put(bed->root, 1);
    ck_assert_int_eq(volume_close(bed->volume), 0);
}

START_TEST(what_is_promised_has_room) {
    struct bed bed = {.random = fixture_seed(cases_of[_i].mkfs_options)};

    for (unsigned round = 0; round < cases_of[_i].rounds * fixture_factor(); round++) {
        /* The more is changed between two commits, the less is known of what it will take. */
        uint64_t each = UINT64_C(1) << fixture_random(&bed.random) % 16;
        bed_open(&bed, _i);
        bed.made = 0;
        for (bed.refused = 0; !is_full(&bed, _i);) {
            for (uint64_t i = 0; i < each && !is_full(&bed, _i); i++)
                step(&bed);
            int error = volume_sync(bed.volume);
            ck_assert_msg(error == 0, "round %u, %llu each: sync: %d", round,
                          (unsigned long long)each, error);
        }
        bed_close(&bed);
    }
}
END_TEST

/* Names and data, until there is no space for either. */
static void fill(struct bed *bed, int number) {
    static char bytes[SEGMENT];
    uint64_t each = UINT64_C(1) << fixture_random(&bed->random) % 12;

    for (bed->refused = 0; !is_full(bed, number);) {
        for (uint64_t i = 0; i < each && !is_full(bed, number); i++) {
            struct inode *file = bed->file[fixture_random(&bed->random) % FILES];
            uint64_t offset = fixture_random(&bed->random) % SPREAD;
            if (fixture_random(&bed->random) % 8 == 0)
                make_one(bed);
            accepted(bed, volume_write(file, bytes, i % 16 ? 1 : sizeof(bytes), offset));
        }
        ck_assert_int_eq(volume_sync(bed->volume), 0);
    }
}

static void removed(int error) {
    ck_assert_msg(error == 0 || error == -ENOENT, "%d", error); /* some could not be made */
}

/* A full volume can be emptied, and is of use again when its cleaner works. */
START_TEST(removing_finds_room) {
    struct bed bed = {.random = fixture_seed(cases_of[_i].mkfs_options)};
    struct attributes none = {.size = 0};

    bed_open(&bed, _i);
    fill(&bed, _i);
    for (unsigned i = 0; i < bed.made; i++)
        removed(remove_name(&bed, i));
    for (unsigned i = 0; i < FILES; i++)
        ck_assert_int_eq(volume_setattr(bed.file[i], SETATTR_SIZE, &none), 0);
    ck_assert_int_eq(volume_sync(bed.volume), 0);
    bed.refused = 0;
    make_one(&bed);
    if (strstr(cases_of[_i].mount_options, "wait")) /* it is of use again */
        ck_assert_uint_eq(bed.refused, 0);
    bed_close(&bed);
}
END_TEST

/* The disk as it is now. */
static struct device *copy_of(struct bed *bed, uint64_t size) {
    static uint8_t piece[SEGMENT];
    struct device *copy;

    ck_assert_int_eq(device_open_ram(size, &bed->clock, &bed->log, &copy), 0);
    for (uint64_t at = 0; at < size; at += SEGMENT) {
        ck_assert_int_eq(device_read(bed->volume->device, at, piece, SEGMENT, 0), 0);
        ck_assert_int_eq(device_write(copy, at, piece, SEGMENT, 0), 0);
    }
    return copy;
}

/* The disk as it is now, opened. */
static int recover(struct bed *bed, int number, bool read_only, struct volume **volume) {
    struct volume_config config = {.type = "nilfs2",
                                   .device = copy_of(bed, cases_of[number].size),
                                   .clock = &bed->clock,
                                   .log = &bed->log,
                                   .read_only = read_only,
                                   .options = cases_of[number].mount_options};

    int error = volume_open(&config, volume);

    if (error)
        device_close(config.device);
    return error;
}

/* The first byte of each piece that was overwritten. */
static void expect_recovered(struct volume *volume, const uint8_t *pieces, uint64_t count) {
    struct inode *root, *file;

    ck_assert_int_eq(volume_root(volume, &root), 0);
    ck_assert_int_eq(volume_lookup(root, "f0", 2, &file), 0);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t byte;
        ck_assert_int_eq(volume_read(file, &byte, 1, i * PAGE_SIZE_BYTES), 1);
        ck_assert_uint_eq(byte, pieces[i]);
    }
    volume_put(file, 1);
    volume_put(root, 1);
    ck_assert_int_eq(volume_sync(volume), 0);
    ck_assert_uint_eq(nilfs_of(volume)->overdrafts, 0);
    ck_assert_int_eq(volume_close(volume), 0);
}

/* Two fifths of the volume is overwritten, a piece at a time, until there is no space: logs of data
 * alone, nearly all of them. `blindly`: whether or not there is room for a recovery; until a
 * seventh of the volume is left. */
static void overwrite(struct bed *bed, bool blindly, uint8_t *pieces, uint64_t count) {
    uint8_t bytes[PAGE_SIZE_BYTES] = {0};
    struct nilfs *nilfs = nilfs_of(bed->volume);
    uint64_t written = 0, data_only = 0;
    int64_t result = 0;

    for (uint64_t i = 0; i < count; i++)
        ck_assert_int_eq(volume_write(bed->file[0], bytes, sizeof(bytes), i * sizeof(bytes)),
                         sizeof(bytes));
    ck_assert_int_eq(volume_sync(bed->volume), 0);
    while (!blindly || nilfs->clean_segments > nilfs->geometry.segments / 7) {
        uint64_t i = written++ % count, newest = nilfs->newest;
        bytes[0]++;
        result = volume_write(bed->file[0], bytes, sizeof(bytes), i * sizeof(bytes));
        if (result < 0)
            break;
        pieces[i] = bytes[0];
        if (blindly)
            nilfs->data_only_blocks = 0;
        ck_assert_int_eq(volume_fsync(bed->file[0], true), 0);
        data_only += newest == nilfs->newest;
    }
    ck_assert(blindly || result == -ENOSPC);
    ck_assert_uint_gt(data_only, 20);
}

/* A recovery writes the blocks of data-only logs once more. */
START_TEST(recovery_finds_room) {
    struct bed bed;
    uint64_t count = cases_of[_i].size / 5 * 2 / PAGE_SIZE_BYTES;
    uint8_t *pieces = calloc(count, 1);
    struct volume *volume;

    ck_assert_ptr_nonnull(pieces);
    bed_open(&bed, _i);
    overwrite(&bed, false, pieces, count);
    ck_assert_int_eq(recover(&bed, _i, false, &volume), 0);
    expect_recovered(volume, pieces, count);
    free(pieces);
    bed_close(&bed);
}
END_TEST

static void keep_text(void *context, enum log_level level, const char *text) {
    (void)level;
    snprintf(context, 256, "%s", text);
}

/* A volume of somebody who did not see to it: nothing is lost, but only reading is possible. */
START_TEST(recovery_without_room) {
    const int number = CASES_WITHOUT_CLEANER - 1;
    struct bed bed;
    uint64_t count = cases_of[number].size / 5 * 2 / PAGE_SIZE_BYTES;
    uint8_t *pieces = calloc(count, 1);
    char said[256] = "";
    struct volume *volume;

    ck_assert_ptr_nonnull(pieces);
    bed_open(&bed, number);
    bed.log = (struct log){.emit = keep_text, .context = said, .threshold = LOG_LEVEL_ERROR};
    overwrite(&bed, true, pieces, count);
    ck_assert_int_eq(recover(&bed, number, false, &volume), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(said, "mounted read-only it shows them"));
    ck_assert_int_eq(recover(&bed, number, true, &volume), 0);
    expect_recovered(volume, pieces, count);
    free(pieces);
    bed_close(&bed);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("space");

    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, what_is_promised_has_room, 0, CASES);
    tcase_add_loop_test(cases, removing_finds_room, 0, CASES);
    tcase_add_test(cases, recovery_without_room);
    tcase_add_loop_test(cases, recovery_finds_room, 0, CASES_WITHOUT_CLEANER);
    Suite *suite = suite_create("nilfs_space");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

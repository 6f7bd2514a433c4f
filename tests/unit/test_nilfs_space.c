/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs: what was promised has room. Volumes are filled by writes all over files, new files
 * and directories, overwriting and truncation until there is no space, again and again: whatever a
 * call has accepted is stored and synced, the volume never stops for want of space, and the check
 * finds nothing afterwards.
 */
#include <errno.h>

#include "layouts/nilfs/layout.h"
#include "tests/unit/fixture.h"

#define FILES   6u
#define SPREAD  (UINT64_C(3) << 20) /* bytes of a file that are written to */
#define FULL    40u                 /* refusals after which a volume is left */
#define SEGMENT 65536u

static const struct {
    const char *mkfs_options, *mount_options;
    uint64_t size;
} cases_of[] = {
    {"block_size=1024,blocks_per_segment=16", "cleaner=off", UINT64_C(4) << 20},
    {"block_size=1024,blocks_per_segment=64", "cleaner=off", UINT64_C(8) << 20},
    {"block_size=2048,blocks_per_segment=32", "cleaner=off", UINT64_C(8) << 20},
    {"block_size=4096,blocks_per_segment=16", "cleaner=off", UINT64_C(12) << 20},
    {"block_size=4096,blocks_per_segment=64", "cleaner=off", UINT64_C(24) << 20},
};
#define CASES ((int)(sizeof(cases_of) / sizeof(*cases_of)))

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

static void accepted(struct bed *bed, int64_t result) {
    ck_assert_msg(result >= 0 || result == -ENOSPC, "%lld", (long long)result);
    bed->refused += result == -ENOSPC;
}

static void make_one(struct bed *bed) {
    struct create_request request = {.mode = fixture_random(&bed->random) % 2 ? S_IFREG | 0644
                                                                              : S_IFDIR | 0755};
    struct inode *inode;
    char name[64];
    int length = snprintf(name, sizeof(name), "a-new-name-of-some-length-%u", bed->made++);
    int error = volume_create(bed->root, name, (uint32_t)length, &request, &inode);

    accepted(bed, error);
    if (!error)
        volume_put(inode, 1);
}

static void step(struct bed *bed) {
    static char bytes[SEGMENT];
    struct inode *file = bed->file[fixture_random(&bed->random) % FILES];
    uint64_t offset = fixture_random(&bed->random) % SPREAD;
    struct attributes a = {.size = offset};

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
    default:
        accepted(bed, volume_write(file, bytes, 1, offset));
    }
}

static void bed_close(struct bed *bed) {
    for (unsigned i = 0; i < FILES; i++)
        volume_put(bed->file[i], 1);
    volume_put(bed->root, 1);
    ck_assert_int_eq(volume_close(bed->volume), 0);
}

START_TEST(what_is_promised_has_room) {
    struct bed bed = {.random = fixture_seed(cases_of[_i].mkfs_options)};

    for (unsigned round = 0; round < 3 * fixture_factor(); round++) {
        /* The more is changed between two commits, the less is known of what it will take. */
        uint64_t each = UINT64_C(1) << fixture_random(&bed.random) % 16;
        bed_open(&bed, _i);
        for (bed.refused = 0; bed.refused < FULL;) {
            for (uint64_t i = 0; i < each && bed.refused < FULL; i++)
                step(&bed);
            int error = volume_sync(bed.volume);
            ck_assert_msg(error == 0, "round %u, %llu each: sync: %d", round,
                          (unsigned long long)each, error);
        }
        bed_close(&bed);
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("space");

    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, what_is_promised_has_room, 0, CASES);
    Suite *suite = suite_create("nilfs_space");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

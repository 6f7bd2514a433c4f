/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext: mkfs, mounting and its refusals, statfs, the state of the super block, check and
 * repair. The figures come from mke2fs and the Linux ext4 driver for the same parameters.
 */
#include <errno.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define KIB(n) (UINT64_C(n) << 10)
#define MIB(n) (UINT64_C(n) << 20)

/* --- a disk that outlives its mounts: the volume gets a loan, which it may close --- */

struct loan {
    struct device device;
    struct device *lender;
};

static struct device *lender_of(struct device *device) {
    return ((struct loan *)device)->lender;
}

static int loan_submit(struct device *device, const struct device_request *request) {
    return device_submit(lender_of(device), request);
}

static int loan_wait(struct device *device, struct device_batch *batch) {
    return device_wait(lender_of(device), batch);
}

static int loan_flush(struct device *device) {
    return device_flush(lender_of(device));
}

static void loan_close(struct device *device) {
    free(device);
}

static const struct device_operations loan_operations = {
    .name = "loan",
    .submit = loan_submit,
    .wait = loan_wait,
    .flush = loan_flush,
    .close = loan_close,
};

static struct device *device_lend(struct device *lender) {
    struct loan *loan = calloc(1, sizeof(*loan));
    ck_assert_ptr_nonnull(loan);
    loan->device = *lender;
    loan->device.operations = &loan_operations;
    loan->device.lower = NULL;
    loan->lender = lender;
    return &loan->device;
}

struct disk {
    struct clock clock;
    struct log log;
    char messages[4096];
    struct device *device;
};

static void keep_message(void *context, enum log_level level, const char *text) {
    struct disk *disk = context;
    size_t used = strlen(disk->messages);
    (void)level;
    snprintf(disk->messages + used, sizeof(disk->messages) - used, "%s\n", text);
}

static int disk_make(struct disk *disk, uint64_t size, const char *text) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;
    memset(disk, 0, sizeof(*disk));
    clock_init_virtual(&disk->clock, NULL);
    disk->log = (struct log){keep_message, disk, LOG_LEVEL_WARNING};
    ck_assert_int_eq(layout_find("ext2", &layout, &type), 0);
    ck_assert_int_eq(device_open_ram(size, &disk->clock, &disk->log, &disk->device), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &disk->log), 0);
    ck_assert_int_eq(options_parse(&options, text), 0);
    int error = layout_format("ext2", disk->device, &options);
    options_free(&options);
    return error;
}

static int disk_mount(struct disk *disk, const char *options, bool read_only,
                      struct volume **volume) {
    struct device *loan = device_lend(disk->device);
    struct volume_config config = {
        .type = "ext2",
        .device = loan,
        .clock = &disk->clock,
        .log = &disk->log,
        .options = options,
        .read_only = read_only,
    };
    int error = volume_open(&config, volume);
    if (error)
        device_close(loan);
    return error;
}

static struct ext_disk_super disk_super(struct disk *disk) {
    struct ext_disk_super super;
    ck_assert_int_eq(
        device_read(disk->device, EXT_SUPER_OFFSET, &super, sizeof(super), PURPOSE_SUPER), 0);
    return super;
}

static void disk_set_super(struct disk *disk, const struct ext_disk_super *super) {
    ck_assert_int_eq(
        device_write(disk->device, EXT_SUPER_OFFSET, super, sizeof(*super), PURPOSE_SUPER), 0);
}

static void ignore_finding(void *context, enum check_severity severity, const char *text) {
    if (severity == CHECK_WRONG)
        keep_message(context, LOG_LEVEL_ERROR, text);
}

static uint64_t disk_check(struct disk *disk, bool repair, uint64_t *repaired) {
    struct check_report report = {.finding = ignore_finding, .context = disk, .repair = repair};
    ck_assert_int_eq(ext_check(disk->device, &disk->log, &report), 0);
    if (repaired)
        *repaired = report.repaired;
    return report.wrong;
}

/* --- mkfs and statfs --- */

static const struct {
    uint64_t kib;
    const char *options;
    uint32_t block_size;
    uint64_t blocks, free, available, inodes, inodes_free;
} volumes[] = {
    {60051568, "features=^resize_inode", 4096, 14776901, 14776896, 14026252, 7520256, 7520245},
    {307200, "block_size=1024", 1024, 300225, 300211, 284851, 38608, 38597},
    {3 << 20, "inode_size=256", 4096, 760650, 760644, 721323, 393216, 393205},
    {1 << 30, "inode_ratio=65536", 4096, 267875309, 267875303, 254453531, 16777216, 16777205},
};
#define VOLUME_COUNT ((int)(sizeof(volumes) / sizeof(volumes[0])))

START_TEST(as_linux_counts) {
    struct disk disk;
    struct volume *volume;
    struct volume_usage usage;
    ck_assert_int_eq(disk_make(&disk, volumes[_i].kib << 10, volumes[_i].options), 0);
    ck_assert_int_eq(disk_mount(&disk, NULL, true, &volume), 0);
    ck_assert_int_eq(volume_statfs(volume, &usage), 0);
    ck_assert_uint_eq(usage.block_size, volumes[_i].block_size);
    ck_assert_uint_eq(usage.blocks, volumes[_i].blocks);
    ck_assert_uint_eq(usage.free, volumes[_i].free);
    ck_assert_uint_eq(usage.available, volumes[_i].available);
    ck_assert_uint_eq(usage.inodes, volumes[_i].inodes);
    ck_assert_uint_eq(usage.inodes_free, volumes[_i].inodes_free);
    ck_assert_int_eq(volume_close(volume), 0);
    device_close(disk.device);
}
END_TEST

START_TEST(clean_by_own_check) {
    static const char *const more[] = {"",
                                       "inode_size=256",
                                       "features=none",
                                       "features=^sparse_super:^resize_inode",
                                       "reserved=0.25",
                                       "inodes=9",
                                       "inode_ratio=1024"};
    static const uint64_t sizes[] = {KIB(512), KIB(8300), MIB(64), MIB(129), MIB(600)};
    for (size_t o = 0; o < sizeof(more) / sizeof(more[0]); o++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct disk disk;
            char options[128];
            snprintf(options, sizeof(options), "block_size=%u,%s", 1024u << _i, more[o]);
            ck_assert_int_eq(disk_make(&disk, sizes[s], options), 0);
            ck_assert_msg(disk_check(&disk, false, NULL) == 0, "%s at %llu bytes: %s", options,
                          (unsigned long long)sizes[s], disk.messages);
            device_close(disk.device);
        }
    }
}
END_TEST

START_TEST(refused) {
    static const struct {
        uint64_t size;
        const char *options, *sentence;
        int error;
    } bad[] = {
        {KIB(64), "", "too small", -ENOSPC},
        {KIB(8), "block_size=1024", "too small", -ENOSPC},
        {DEVICE_SECTOR, "block_size=1024", "too small", -ENOSPC},
        {UINT64_C(17) << 40, "", "too large", -EINVAL},
        {MIB(64), "features=extents", "\"extents\"", -EINVAL},
        {MIB(64), "features=^sparse_super", "needs sparse_super", -EINVAL},
        {MIB(64), "reserved=51", "0 to 50", -EINVAL},
        {MIB(64), "reserved=.", "0 to 50", -EINVAL},
        {MIB(64), "reserved=1.00001", "0 to 50", -EINVAL},
        {MIB(64), "reserved=99999999999999", "0 to 50", -EINVAL},
        {MIB(64), "label=seventeen letters", "16 bytes", -EINVAL},
        {MIB(64), "uuid=nonsense", "hexadecimal", -EINVAL},
        {MIB(64), "inodes=4000000", "fill the whole device", -EINVAL},
        {MIB(64), "blocks_per_group=1001", "multiple of 8", -EINVAL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct disk disk;
        ck_assert_int_eq(disk_make(&disk, bad[i].size, bad[i].options), bad[i].error);
        ck_assert_msg(strstr(disk.messages, bad[i].sentence), "%s: %s", bad[i].options,
                      disk.messages);
        device_close(disk.device);
    }
}
END_TEST

START_TEST(reproducible) {
    uint8_t *bytes[2];
    for (int i = 0; i < 2; i++) {
        struct disk disk;
        bytes[i] = malloc(MIB(4));
        ck_assert_ptr_nonnull(bytes[i]);
        ck_assert_int_eq(disk_make(&disk, MIB(4), "uuid=12345678-9abc-def0-1234-56789abcdef0"), 0);
        ck_assert_int_eq(device_read(disk.device, 0, bytes[i], MIB(4), PURPOSE_OTHER), 0);
        device_close(disk.device);
    }
    ck_assert_int_eq(memcmp(bytes[0], bytes[1], MIB(4)), 0);
    free(bytes[0]);
    free(bytes[1]);
}
END_TEST

/* --- mounting --- */

START_TEST(state_follows_the_mount) {
    struct disk disk;
    struct volume *volume;
    ck_assert_int_eq(disk_make(&disk, MIB(16), ""), 0);
    ck_assert_uint_eq(le16_load(disk_super(&disk).s_state), EXT_STATE_VALID);
    ck_assert_int_eq(disk_mount(&disk, NULL, false, &volume), 0);
    struct ext_disk_super super = disk_super(&disk);
    ck_assert_uint_eq(le16_load(super.s_state), 0);
    ck_assert_uint_eq(le16_load(super.s_mnt_count), 1);
    ck_assert_int_eq(volume_close(volume), 0);
    ck_assert_uint_eq(le16_load(disk_super(&disk).s_state), EXT_STATE_VALID);
    /* An unclean volume stays so, and says so. */
    super = disk_super(&disk);
    le16_store(&super.s_state, 0);
    disk_set_super(&disk, &super);
    ck_assert_int_eq(disk_mount(&disk, NULL, false, &volume), 0);
    ck_assert_ptr_nonnull(strstr(disk.messages, "was not unmounted; run e2fsck"));
    ck_assert_int_eq(volume_close(volume), 0);
    ck_assert_uint_eq(le16_load(disk_super(&disk).s_state), 0);
    device_close(disk.device);
}
END_TEST

START_TEST(read_only_changes_nothing) {
    struct disk disk;
    struct volume *volume;
    uint8_t *before = malloc(MIB(4)), *after = malloc(MIB(4));
    ck_assert_int_eq(disk_make(&disk, MIB(4), ""), 0);
    ck_assert_int_eq(device_read(disk.device, 0, before, MIB(4), PURPOSE_OTHER), 0);
    ck_assert_int_eq(disk_mount(&disk, NULL, true, &volume), 0);
    ck_assert_int_eq(volume_sync(volume), 0);
    ck_assert_int_eq(volume_close(volume), 0);
    ck_assert_int_eq(device_read(disk.device, 0, after, MIB(4), PURPOSE_OTHER), 0);
    ck_assert_int_eq(memcmp(before, after, MIB(4)), 0);
    device_close(disk.device);
    free(before);
    free(after);
}
END_TEST

START_TEST(features_refused_by_name) {
    static const struct {
        uint32_t incompat, ro_compat;
        bool read_only;
        int error;
        const char *sentence;
    } cases[] = {
        {EXT_INCOMPAT_RECOVER, 0, true, -ENOTSUP, "needs_recovery"},
        {0x80000000, 0, true, -ENOTSUP, "\"unknown\" (incompat 0x80000000)"},
        {EXT_INCOMPAT_CASEFOLD, 0, true, -ENOTSUP, "\"casefold\" (incompat 0x20000)"},
        {EXT_INCOMPAT_MMP, 0, false, -ENOTSUP, "\"mmp\" (incompat 0x100)"},
        {EXT_INCOMPAT_MMP, 0, true, 0, ""},
        {0, EXT_RO_COMPAT_QUOTA, false, -ENOTSUP, "\"quota\" (ro_compat 0x100)"},
        {0, EXT_RO_COMPAT_QUOTA, true, 0, ""},
        {0, EXT_RO_COMPAT_BIGALLOC, true, -ENOTSUP, "\"bigalloc\""},
        {0, EXT_RO_COMPAT_METADATA_CSUM, true, -EUCLEAN, "checksum is wrong"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct disk disk;
        struct volume *volume;
        ck_assert_int_eq(disk_make(&disk, MIB(16), ""), 0);
        struct ext_disk_super super = disk_super(&disk);
        le32_store(&super.s_feature_incompat, EXT_INCOMPAT_FILETYPE | cases[i].incompat);
        le32_store(&super.s_feature_ro_compat,
                   le32_load(super.s_feature_ro_compat) | cases[i].ro_compat);
        disk_set_super(&disk, &super);
        ck_assert_int_eq(disk_mount(&disk, NULL, cases[i].read_only, &volume), cases[i].error);
        ck_assert_msg(strstr(disk.messages, cases[i].sentence), "%s", disk.messages);
        if (cases[i].error == 0)
            ck_assert_int_eq(volume_close(volume), 0);
        device_close(disk.device);
    }
}
END_TEST

START_TEST(errors_as_told) {
    static const struct {
        const char *options;
        bool read_only, shut_down;
    } cases[] = {
        {"errors=continue", false, false},
        {"errors=remount-ro", true, false},
        {"errors=panic", true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct disk disk;
        struct volume *volume;
        ck_assert_int_eq(disk_make(&disk, MIB(16), ""), 0);
        ck_assert_int_eq(disk_mount(&disk, cases[i].options, false, &volume), 0);
        ck_assert_int_eq(ext_corrupt(ext_of(volume), "block %d is odd", 7), -EUCLEAN);
        ck_assert_ptr_nonnull(strstr(disk.messages, "block 7 is odd"));
        ck_assert_int_eq(volume->read_only, cases[i].read_only);
        ck_assert_int_eq(volume->shut_down, cases[i].shut_down);
        (void)volume_close(volume);
        struct ext_disk_super super = disk_super(&disk);
        ck_assert_uint_eq(le16_load(super.s_state), EXT_STATE_ERROR);
        ck_assert_uint_eq(le32_load(super.s_error_count), 1);
        ck_assert_uint_ne(le32_load(super.s_first_error_time), 0);
        device_close(disk.device);
    }
}
END_TEST

/* --- check --- */

START_TEST(check_mends_counts_and_bitmaps) {
    struct disk disk;
    uint64_t repaired;
    ck_assert_int_eq(disk_make(&disk, MIB(64), ""), 0);
    struct ext_disk_super super = disk_super(&disk);
    le32_store(&super.s_free_blocks_count, 3);
    disk_set_super(&disk, &super);
    uint8_t block[4096] = {0};
    /* The first bitmap of a volume this small: super block, one block of descriptors, reserved. */
    uint64_t bitmap = 2 + le16_load(super.s_reserved_gdt_blocks);
    ck_assert_int_eq(device_write(disk.device, bitmap * 4096, block, sizeof(block), PURPOSE_BITMAP),
                     0);
    ck_assert_uint_eq(disk_check(&disk, false, NULL), 2);
    ck_assert_ptr_nonnull(strstr(disk.messages, "block bitmap"));
    ck_assert_uint_eq(disk_check(&disk, true, &repaired), 2);
    ck_assert_uint_eq(repaired, 2);
    ck_assert_uint_eq(disk_check(&disk, false, NULL), 0);
    device_close(disk.device);
}
END_TEST

/* Random bytes over random metadata: no crash, no hang, no finding that repair makes worse. */
START_TEST(check_survives_damage) {
    uint64_t random = fixture_seed("check_survives_damage");
    for (unsigned round = 0; round < 300 * fixture_factor(); round++) {
        struct disk disk;
        ck_assert_int_eq(disk_make(&disk, MIB(2), "block_size=1024"), 0);
        for (unsigned i = fixture_random(&random) % 8 + 1; i > 0; i--) {
            uint8_t sector[DEVICE_SECTOR];
            uint64_t at = fixture_random(&random) % (KIB(160) / DEVICE_SECTOR) * DEVICE_SECTOR;
            ck_assert_int_eq(device_read(disk.device, at, sector, sizeof(sector), PURPOSE_OTHER),
                             0);
            sector[fixture_random(&random) % sizeof(sector)] = (uint8_t)fixture_random(&random);
            ck_assert_int_eq(device_write(disk.device, at, sector, sizeof(sector), PURPOSE_OTHER),
                             0);
        }
        uint64_t repaired, wrong = disk_check(&disk, true, &repaired);
        ck_assert_uint_le(repaired, wrong);
        size_t told = strlen(disk.messages);
        uint64_t left = disk_check(&disk, false, NULL);
        /* Fewer where a feature forbids mending, but not looking. */
        ck_assert_msg(left <= wrong - repaired, "%llu left:\n%.*s---\n%s", (unsigned long long)left,
                      (int)told, disk.messages, disk.messages + told);
        device_close(disk.device);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_format");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, as_linux_counts, 0, VOLUME_COUNT);
    tcase_add_loop_test(tests, clean_by_own_check, 0, 3);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, reproducible);
    tcase_add_test(tests, state_follows_the_mount);
    tcase_add_test(tests, read_only_changes_nothing);
    tcase_add_test(tests, features_refused_by_name);
    tcase_add_test(tests, errors_as_told);
    tcase_add_test(tests, check_mends_counts_and_bitmaps);
    tcase_add_test(tests, check_survives_damage);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/crc.c, super.c, format.c and log_read.c: checksums against a volume of the Linux
 * driver, what mkfs makes read back, and which of the two super blocks counts.
 */
#include <errno.h>

#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log_read.h"
#include "layouts/nilfs/super.h"
#include "tests/unit/fixture.h"

/* --- checksums -------------------------------------------------------------------------------- */

/* The primary super block of a volume that the Linux driver has used: 136 MiB, 4 KiB blocks. */
static const uint8_t driver_super[] = {
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x34, 0x34, 0x18, 0x01, 0x00, 0x00, 0x66, 0xc1, 0xf9, 0x67,
    0x95, 0x9f, 0x52, 0xd0, 0x02, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x80, 0x08, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x08, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0xdc, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x70, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x72, 0x8a, 0x0d, 0x6b, 0x00, 0x00, 0x00, 0x00,
    0x78, 0x8a, 0x0d, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x7c, 0x8a, 0x0d, 0x6b, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x32, 0x00, 0x01, 0x00, 0x01, 0x00, 0x72, 0x8a, 0x0d, 0x6b, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x4e, 0xed, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0b, 0x00, 0x00, 0x00,
    0x80, 0x00, 0x20, 0x00, 0xc0, 0x00, 0x10, 0x00, 0xb0, 0x81, 0x61, 0x7a, 0x4b, 0xfb, 0x45, 0x8a,
    0xba, 0x1f, 0x98, 0x0f, 0x4c, 0xa0, 0xf7, 0x33, 0x6b, 0x65, 0x72, 0x6e, 0x65, 0x6c, 0x2d, 0x73,
    0x61, 0x6d, 0x70, 0x6c, 0x65};

START_TEST(driver_checksum) {
    uint8_t raw[NILFS_SUPER_SIZE] = {0};
    struct nilfs_disk_super super;
    memcpy(raw, driver_super, sizeof(driver_super));
    memcpy(&super, raw, sizeof(super));
    ck_assert(nilfs_super_valid(&super, raw));
    le32_store(&super.s_sum, 0);
    nilfs_super_seal(&super);
    ck_assert_uint_eq(le32_load(super.s_sum), 0xd0529f95u);
    for (unsigned i = 0; i < NILFS_SUPER_CHECKED; i++) {
        raw[i] ^= 1;
        memcpy(&super, raw, sizeof(super));
        ck_assert_msg(!nilfs_super_valid(&super, raw), "byte %u does not count", i);
        raw[i] ^= 1;
    }
}
END_TEST

START_TEST(checksums_join) {
    uint8_t bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 250) {
        uint32_t whole = nilfs_crc(0x67f9c166, bytes, sizeof(bytes));
        uint32_t a = nilfs_crc(0x67f9c166, bytes, cut);
        uint32_t b = nilfs_crc(0, bytes + cut, sizeof(bytes) - cut);
        ck_assert_uint_eq(nilfs_crc(a, bytes + cut, sizeof(bytes) - cut), whole);
        ck_assert_uint_eq(nilfs_crc_join(a, b, sizeof(bytes) - cut), whole);
    }
}
END_TEST

/* --- mkfs ------------------------------------------------------------------------------------- */

struct made { /* an empty volume */
    struct clock clock;
    struct log log;
    struct device *device;
    struct nilfs_supers supers;
    struct nilfs_geometry geometry;
};

static void keep_quiet(void *context, enum log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static int try_format(struct made *m, uint64_t size, const char *text) {
    struct options options;

    *m = (struct made){.log = {.emit = keep_quiet, .threshold = LOG_LEVEL_ERROR}};
    clock_init_virtual(&m->clock, NULL);
    ck_assert_int_eq(device_open_ram(size, &m->clock, &m->log, &m->device), 0);
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &m->log), 0);
    ck_assert_int_eq(options_parse(&options, text), 0);
    int error = nilfs_format(m->device, &options);
    options_free(&options);
    return error;
}

static void make(struct made *m, uint64_t size, const char *text) {
    ck_assert_int_eq(try_format(m, size, text), 0);
    ck_assert_int_eq(nilfs_super_read(m->device, &m->supers), 0);
    ck_assert_int_eq(nilfs_super_geometry(&m->supers, m->device, &m->log, &m->geometry), 0);
}

static void first_log(struct made *m, unsigned checks, struct nilfs_log_head *head, bool *valid) {
    const char *reason;

    ck_assert_int_eq(nilfs_log_read(m->device, &m->geometry,
                                    le64_load(m->supers.copy[0].s_last_pseg), checks, head, valid,
                                    &reason),
                     0);
}

struct seen {
    uint64_t next;    /* block */
    uint64_t ino[16]; /* of each block, in order */
    uint32_t count;
    uint64_t vblock; /* the last one */
};

static int see(void *context, const struct nilfs_log_item *item, uint64_t block) {
    struct seen *seen = context;

    ck_assert_uint_eq(block, seen->next++);
    ck_assert_uint_lt(seen->count, 16);
    ck_assert_uint_eq(item->level, 0);
    ck_assert_uint_eq(item->cno, 1);
    if (item->ino != NILFS_DAT_INO)
        ck_assert_uint_eq(item->vblock, ++seen->vblock);
    seen->ino[seen->count++] = item->ino;
    return 0;
}

static const struct geometry_case {
    const char *options;
    uint64_t size, segments;
    unsigned blocks; /* of the log */
} geometry_cases[] = {
    {"", UINT64_C(134221824), 16, 11},
    {"", UINT64_C(134221824) + 512, 16, 11},
    {"block_size=1024,blocks_per_segment=16", UINT64_C(266240), 16, 12},
    {"block_size=1024,blocks_per_segment=1024", UINT64_C(64) << 20, 63, 12},
    {"block_size=2048,blocks_per_segment=512", UINT64_C(39999488), 38, 11},
    {"blocks_per_segment=64,reserved=50", UINT64_C(16) << 20, 63, 11},
    {"blocks_per_segment=1048576", UINT64_C(1) << 40, 255, 11},
};

START_TEST(geometries) {
    const struct geometry_case *expected = &geometry_cases[_i];
    struct made m;
    struct nilfs_log_head head;
    struct probe_result probe;
    bool valid;

    make(&m, expected->size, expected->options);
    ck_assert_uint_eq(m.geometry.segments, expected->segments);
    ck_assert(m.supers.present[0] && m.supers.present[1]);
    ck_assert_mem_eq(&m.supers.copy[0], &m.supers.copy[1], sizeof(m.supers.copy[0]));
    ck_assert_uint_eq(le16_load(m.supers.copy[0].s_state), NILFS_STATE_CLEAN);
    ck_assert_int_eq(nilfs_probe(m.device, &probe), 0);
    ck_assert_int_eq(probe.confidence, 100);
    first_log(&m, NILFS_CHECK_SUMMARY | NILFS_CHECK_DATA, &head, &valid);
    ck_assert(valid);
    ck_assert_uint_eq(head.flags, NILFS_LOG_BEGIN | NILFS_LOG_END | NILFS_LOG_SUPER_ROOT);
    ck_assert_uint_eq(head.blocks, expected->blocks);
    ck_assert_uint_eq(head.next_block, m.geometry.segment_blocks);
    struct seen seen = {.next = head.block + head.summary_blocks};
    ck_assert_int_eq(nilfs_log_items(m.device, &m.geometry, &head, see, &seen), 0);
    ck_assert_uint_eq(seen.count, expected->blocks - 2);
    ck_assert_uint_eq(seen.ino[0], NILFS_ROOT_INO);
    ck_assert_uint_eq(seen.ino[1], NILFS_IFILE_INO);
    ck_assert_uint_eq(seen.ino[seen.count - 1], NILFS_DAT_INO);
    device_close(m.device);
}
END_TEST

static const struct refused_case {
    const char *options;
    uint64_t size;
} refused_cases[] = {
    {"", 134221824 - 512},
    {"", 8192},
    {"", 512},
    {"blocks_per_segment=24", 64 << 20},
    {"block_size=1024,blocks_per_segment=16", 266240 - 512},
    {"blocks_per_segment=64,reserved=99", 64 << 20},
    {"label=0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
     256 << 20},
    {"uuid=none", 256 << 20},
};

START_TEST(refused) {
    struct made m;
    struct probe_result probe;

    ck_assert_int_eq(try_format(&m, refused_cases[_i].size, refused_cases[_i].options), -EINVAL);
    ck_assert_int_eq(nilfs_probe(m.device, &probe), 0);
    ck_assert_int_eq(probe.confidence, 0);
    device_close(m.device);
}
END_TEST

/* What was on the device before must not look like a part of the new volume. */
START_TEST(seed_changes) {
    struct made m;
    struct options options;
    struct nilfs_log_head head;
    bool valid;

    make(&m, 4 << 20, "blocks_per_segment=16");
    uint32_t before = m.geometry.crc_seed;
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &m.log), 0);
    ck_assert_int_eq(options_parse(&options, "blocks_per_segment=16"), 0);
    ck_assert_int_eq(nilfs_format(m.device, &options), 0);
    options_free(&options);
    ck_assert_int_eq(nilfs_super_read(m.device, &m.supers), 0);
    ck_assert_uint_ne(le32_load(m.supers.copy[0].s_crc_seed), before);
    first_log(&m, NILFS_CHECK_DATA, &head, &valid);
    ck_assert(!valid); /* with the old seed */
    device_close(m.device);
}
END_TEST

/* --- which super block ------------------------------------------------------------------------ */

static void put_super(struct made *m, int which, const struct nilfs_disk_super *super) {
    uint8_t raw[NILFS_SUPER_SIZE] = {0};
    struct nilfs_disk_super sealed = *super;

    nilfs_super_seal(&sealed);
    memcpy(raw, &sealed, sizeof(sealed));
    ck_assert_int_eq(
        device_write(m->device,
                     which == 0 ? NILFS_SUPER_OFFSET : nilfs_super_second_offset(m->device->size),
                     raw, sizeof(raw), PURPOSE_SUPER),
        0);
}

static void spoil_super(struct made *m, int which) {
    uint8_t raw[NILFS_SUPER_SIZE];
    uint64_t offset = which == 0 ? NILFS_SUPER_OFFSET : nilfs_super_second_offset(m->device->size);

    ck_assert_int_eq(device_read(m->device, offset, raw, sizeof(raw), PURPOSE_SUPER), 0);
    raw[0x40] ^= 4;
    ck_assert_int_eq(device_write(m->device, offset, raw, sizeof(raw), PURPOSE_SUPER), 0);
}

START_TEST(choice) {
    struct made m;
    struct nilfs_supers supers;

    make(&m, 4 << 20, "blocks_per_segment=16");
    struct nilfs_disk_super super = m.supers.copy[0];
    le64_store(&super.s_last_cno, 5);
    put_super(&m, 1, &super);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), 0);
    ck_assert_uint_eq(supers.offset[0], nilfs_super_second_offset(m.device->size)); /* newer */
    ck_assert_int_eq(nilfs_super_fall_back(&supers), 0);
    ck_assert_uint_eq(supers.offset[0], NILFS_SUPER_OFFSET);
    le64_store(&super.s_last_cno, 6);
    put_super(&m, 0, &super);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), 0);
    ck_assert_uint_eq(supers.offset[0], NILFS_SUPER_OFFSET);
    spoil_super(&m, 0);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), 0);
    ck_assert_uint_eq(le64_load(supers.copy[0].s_last_cno), 5);
    ck_assert(!supers.present[1]);
    ck_assert_int_eq(nilfs_super_fall_back(&supers), -EUCLEAN);
    spoil_super(&m, 1);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), -ENODEV);
    device_close(m.device);
}
END_TEST

/* A second super block in the middle of the segments is a file's block, or a remnant. */
START_TEST(second_inside_segments) {
    struct made m;
    struct nilfs_supers supers;

    make(&m, 4 << 20, "blocks_per_segment=16");
    struct nilfs_disk_super super = m.supers.copy[0];
    le64_store(&super.s_last_cno, 5);
    le64_store(&super.s_nsegments, m.geometry.segments + 1);
    put_super(&m, 1, &super);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), 0);
    ck_assert(!supers.present[1]);
    put_super(&m, 0, &super);
    ck_assert_int_eq(nilfs_super_read(m.device, &supers), 0);
    le64_store(&super.s_nsegments, m.geometry.segments + 2);
    supers.copy[0] = super;
    ck_assert_int_eq(nilfs_super_geometry(&supers, m.device, &m.log, &m.geometry), -EUCLEAN);
    device_close(m.device);
}
END_TEST

START_TEST(geometry_refused) {
    struct made m;

    make(&m, 4 << 20, "blocks_per_segment=16");
    const struct nilfs_disk_super good = m.supers.copy[0];
    struct nilfs_disk_super *super = &m.supers.copy[0];
#define EXPECT(change, error)                                                                      \
    do {                                                                                           \
        *super = good;                                                                             \
        change;                                                                                    \
        ck_assert_int_eq(nilfs_super_geometry(&m.supers, m.device, &m.log, &m.geometry), error);   \
    } while (0)
    EXPECT((void)0, 0);
    EXPECT(le64_store(&super->s_feature_incompat, 1), -ENOTSUP);
    EXPECT(le32_store(&super->s_rev_level, 1), -ENOTSUP);
    EXPECT(le32_store(&super->s_log_block_size, 3), -ENOTSUP);
    EXPECT(le32_store(&super->s_log_block_size, UINT32_MAX), -ENOTSUP);
    EXPECT(le64_store(&super->s_nsegments, 0), -EUCLEAN);
    EXPECT(le64_store(&super->s_nsegments, UINT64_MAX), -EUCLEAN);
    EXPECT(le32_store(&super->s_blocks_per_segment, 15), -EUCLEAN);
    EXPECT(le64_store(&super->s_first_data_block, 0), -EUCLEAN);
    EXPECT(le64_store(&super->s_first_data_block, 15), -EUCLEAN);
    EXPECT(le64_store(&super->s_first_data_block, UINT64_MAX), -EUCLEAN);
    EXPECT(le32_store(&super->s_r_segments_percentage, 0), -EUCLEAN);
    EXPECT(le32_store(&super->s_r_segments_percentage, 100), -EUCLEAN);
    EXPECT(le16_store(&super->s_inode_size, 127), -EUCLEAN);
    EXPECT(le16_store(&super->s_inode_size, 2048), -EUCLEAN);
    EXPECT(le16_store(&super->s_inode_size, 256), -EUCLEAN); /* checkpoints have no room */
    EXPECT(le16_store(&super->s_dat_entry_size, 0), -EUCLEAN);
    EXPECT(le16_store(&super->s_checkpoint_size, 191), -EUCLEAN);
    EXPECT(le16_store(&super->s_segment_usage_size, 8192), -EUCLEAN);
#undef EXPECT
    device_close(m.device);
}
END_TEST

/* --- when which is written -------------------------------------------------------------------- */

/* What a mount after a crash would find, with one of the two lost. */
static uint64_t remaining(struct made *m, int lost) {
    struct nilfs_supers supers;
    struct nilfs_disk_super kept;
    uint8_t raw[NILFS_SUPER_SIZE];
    uint64_t offset = lost == 0 ? NILFS_SUPER_OFFSET : nilfs_super_second_offset(m->device->size);

    ck_assert_int_eq(device_read(m->device, offset, raw, sizeof(raw), PURPOSE_SUPER), 0);
    memcpy(&kept, raw, sizeof(kept));
    spoil_super(m, lost);
    ck_assert_int_eq(nilfs_super_read(m->device, &supers), 0);
    uint64_t cno = le64_load(supers.copy[0].s_last_cno);
    put_super(m, lost, &kept);
    return cno;
}

START_TEST(writes_alternate) {
    struct made m;
    struct volume volume = {0};
    struct nilfs nilfs = {.volume = &volume, .options.barrier = true};

    make(&m, 4 << 20, "blocks_per_segment=16");
    volume.device = m.device;
    volume.clock = &m.clock;
    nilfs.supers = m.supers;
    nilfs.geometry = m.geometry;
    ck_assert_int_eq(nilfs_super_mounted(&nilfs), 0);
    ck_assert_uint_eq(nilfs.supers.writes, 2);
    ck_assert_uint_eq(le16_load(nilfs.supers.copy[0].s_state), 0);
    for (uint64_t cno = 2; cno < 60; cno++) {
        ck_assert_int_eq(nilfs_super_write(&nilfs, cno, 1, cno, 7), 0);
        ck_assert_uint_eq(le64_load(nilfs.supers.copy[0].s_last_cno), cno);
        uint64_t worst = remaining(&m, 0), other = remaining(&m, 1);
        worst = worst < other ? worst : other;
        ck_assert_uint_ge(worst + 3, cno); /* at most two turns on the same one */
        ck_assert_uint_le(nilfs_super_protected_sequence(&nilfs), worst);
    }
    nilfs_super_logged(&nilfs, 60, 1, 60);
    ck_assert_int_eq(nilfs_super_unmounted(&nilfs, 7), 0);
    ck_assert_int_eq(nilfs_super_read(m.device, &m.supers), 0);
    ck_assert_uint_eq(le64_load(m.supers.copy[0].s_last_cno), 60);
    ck_assert_uint_eq(le16_load(m.supers.copy[0].s_state), NILFS_STATE_CLEAN);
    ck_assert_uint_eq(le16_load(m.supers.copy[1].s_state), 0); /* it names an older log */
    device_close(m.device);
}
END_TEST

START_TEST(writes_when_due) {
    struct made m;
    struct volume volume = {0};
    struct nilfs nilfs = {.volume = &volume, .options.barrier = true};

    make(&m, 4 << 20, "blocks_per_segment=16");
    volume.device = m.device;
    volume.clock = &m.clock;
    nilfs.supers = m.supers;
    nilfs.geometry = m.geometry;
    ck_assert_int_eq(nilfs_super_mounted(&nilfs), 0);
    nilfs_super_logged(&nilfs, 2, 12, 0); /* the segment that is named already */
    clock_wait_until(&m.clock, 100 * NS_PER_SEC);
    ck_assert(!nilfs_super_wanted(&nilfs, true));
    ck_assert_int_eq(nilfs_super_write(&nilfs, 2, 12, 0, 7), 0);
    nilfs_super_logged(&nilfs, 3, 16, 1);
    ck_assert(nilfs_super_wanted(&nilfs, true));
    clock_wait_until(&m.clock, 110 * NS_PER_SEC - 1);
    ck_assert(!nilfs_super_wanted(&nilfs, false));
    clock_wait_until(&m.clock, 110 * NS_PER_SEC);
    ck_assert(nilfs_super_wanted(&nilfs, false));
    ck_assert_int_eq(nilfs_super_write(&nilfs, 3, 16, 1, 7), 0);
    ck_assert(!nilfs_super_wanted(&nilfs, true));
    nilfs.chain_broken = true;
    ck_assert(nilfs_super_wanted(&nilfs, false));
    ck_assert_int_eq(nilfs_super_note_error(&nilfs), 0);
    ck_assert_int_eq(nilfs_super_read(m.device, &m.supers), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(le16_load(m.supers.copy[i].s_state), NILFS_STATE_ERROR);
    device_close(m.device);
}
END_TEST

/* --- damaged logs ----------------------------------------------------------------------------- */

START_TEST(log_damage_is_seen) {
    struct made m;
    struct nilfs_log_head head;
    bool valid;
    uint8_t block[1024];

    make(&m, 266240, "block_size=1024,blocks_per_segment=16");
    for (uint32_t i = 0; i < 12 * 1024u; i += 97) {
        uint64_t at = (m.geometry.first_data_block << 10) + (i & ~1023u);
        ck_assert_int_eq(device_read(m.device, at, block, 1024, PURPOSE_OTHER), 0);
        block[i & 1023] ^= 0x10;
        ck_assert_int_eq(device_write(m.device, at, block, 1024, PURPOSE_OTHER), 0);
        first_log(&m, NILFS_CHECK_DATA, &head, &valid);
        ck_assert_msg(!valid, "byte %u does not count", i);
        block[i & 1023] ^= 0x10;
        ck_assert_int_eq(device_write(m.device, at, block, 1024, PURPOSE_OTHER), 0);
    }
    first_log(&m, NILFS_CHECK_DATA, &head, &valid);
    ck_assert(valid);
    device_close(m.device);
}
END_TEST

static int pass(void *context, const struct nilfs_log_item *item, uint64_t block) {
    uint64_t *end = context;

    (void)item;
    ck_assert_uint_lt(block, *end);
    return 0;
}

/* Without checksums to protect them: whatever header and items say, reading stays inside the log.
 */
START_TEST(hostile_summaries) {
    uint64_t seed = fixture_seed("hostile_summaries");
    struct made m;
    uint8_t good[1024], block[1024];
    uint64_t at;

    make(&m, 266240, "block_size=1024,blocks_per_segment=16");
    at = m.geometry.first_data_block << 10;
    ck_assert_int_eq(device_read(m.device, at, good, sizeof(good), PURPOSE_OTHER), 0);
    for (int round = 0; round < 20000; round++) {
        struct nilfs_log_head head;
        bool valid;
        memcpy(block, good, sizeof(block));
        for (int i = 0; i < 2; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            block[12 + (seed >> 33) % 320] ^= (uint8_t)(1u << (seed >> 60 & 7));
        }
        ck_assert_int_eq(device_write(m.device, at, block, sizeof(block), PURPOSE_OTHER), 0);
        first_log(&m, 0, &head, &valid);
        uint64_t end = head.block + head.blocks;
        if (valid) {
            int error = nilfs_log_items(m.device, &m.geometry, &head, pass, &end);
            ck_assert(error == 0 || error == -EUCLEAN);
        }
    }
    device_close(m.device);
}
END_TEST

int main(void) {
    TCase *checksums = tcase_create("checksums"), *mkfs = tcase_create("mkfs"),
          *supers = tcase_create("supers"), *logs = tcase_create("logs");
    tcase_add_test(checksums, driver_checksum);
    tcase_add_test(checksums, checksums_join);
    tcase_add_loop_test(mkfs, geometries, 0,
                        (int)(sizeof(geometry_cases) / sizeof(*geometry_cases)));
    tcase_add_loop_test(mkfs, refused, 0, (int)(sizeof(refused_cases) / sizeof(*refused_cases)));
    tcase_add_test(mkfs, seed_changes);
    tcase_add_test(supers, choice);
    tcase_add_test(supers, second_inside_segments);
    tcase_add_test(supers, geometry_refused);
    tcase_add_test(supers, writes_alternate);
    tcase_add_test(supers, writes_when_due);
    tcase_add_test(logs, log_damage_is_seen);
    tcase_add_test(logs, hostile_summaries);
    Suite *suite = suite_create("nilfs_format");
    suite_add_tcase(suite, checksums);
    suite_add_tcase(suite, mkfs);
    suite_add_tcase(suite, supers);
    suite_add_tcase(suite, logs);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/crc.c and checksum.c: published vectors, both implementations against each other, and
 * for every structure: set makes it valid, any changed bit makes it invalid. That the sums are the
 * ones others compute is for e2fsck to say, in integration/ext4_features.sh.
 */
#include "layouts/ext/checksum.h"
#include "layouts/ext/crc.h"
#include "tests/unit/fixture.h"

#define BLOCK_SIZE  1024u
#define INODE_SIZE  256u
#define INO         4711u
#define GENERATION  0xCAFEu
#define BLOCK       UINT64_C(0x123456789)
#define EXTENT_MAX  84u /* (1024 - 12) / 12 */
#define SAMPLE_SIZE 4096u

START_TEST(vectors) {
    static const uint8_t zeros[32];
    uint8_t ones[32], rising[32];
    memset(ones, 0xFF, sizeof(ones));
    for (uint8_t i = 0; i < 32; i++)
        rising[i] = i;
    /* RFC 3720 appendix B.4, and the check values of the catalogue of CRC algorithms. */
    ck_assert_uint_eq(~crc32c(EXT_CRC_START, zeros, 32), 0x8A9136AAu);
    ck_assert_uint_eq(~crc32c(EXT_CRC_START, ones, 32), 0x62A8AB43u);
    ck_assert_uint_eq(~crc32c(EXT_CRC_START, rising, 32), 0x46DD794Eu);
    ck_assert_uint_eq(~crc32c(EXT_CRC_START, "123456789", 9), 0xE3069283u);
    ck_assert_uint_eq(~crc32_be(EXT_CRC_START, "123456789", 9), 0xFC891918u);
    ck_assert_uint_eq(ext_crc16(0, "123456789", 9), 0xBB3Du);
    ck_assert_uint_eq(crc32c(7, "", 0), 7);
}
END_TEST

/* Lengths and alignments of all kinds; in pieces and as a whole. */
START_TEST(implementations_agree) {
    uint64_t seed = fixture_seed("implementations_agree");
    uint8_t bytes[SAMPLE_SIZE];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
    for (size_t start = 0; start < 9; start++) {
        for (size_t length = 0; length < 300; length++)
            ck_assert_uint_eq(crc32c(1, bytes + start, length),
                              crc32c_by_table(1, bytes + start, length));
    }
    uint32_t whole = crc32c(EXT_CRC_START, bytes, sizeof(bytes));
    for (size_t middle = 0; middle < sizeof(bytes); middle += 97) {
        uint32_t pieces = crc32c(EXT_CRC_START, bytes, middle);
        ck_assert_uint_eq(crc32c(pieces, bytes + middle, sizeof(bytes) - middle), whole);
    }
}
END_TEST

static struct ext_geometry sample_geometry(void) {
    struct ext_disk_super super = {0};
    memset(super.s_uuid, 0x5A, sizeof(super.s_uuid));
    struct ext_geometry geometry = {
        .block_size = BLOCK_SIZE,
        .block_bits = 10,
        .blocks_per_group = 8192,
        .inodes_per_group = 2000,
        .inode_size = INODE_SIZE,
        .descriptor_size = sizeof(struct ext_disk_group),
        .ro_compat = EXT_RO_COMPAT_METADATA_CSUM,
    };
    ext_checksum_identify(&super, &geometry);
    return geometry;
}

/* Every structure behind one interface, so that one loop can test them all. */
struct subject {
    const char *name;
    uint32_t size; /* bytes that the checksum covers or is */
    void (*set)(const struct ext_geometry *, void *);
    bool (*valid)(const struct ext_geometry *, const void *);
};

static void super_set(const struct ext_geometry *geometry, void *data) {
    struct ext_disk_super *super = data;
    (void)geometry;
    super->s_checksum_type = EXT_CHECKSUM_CRC32C;
    le32_store(&super->s_rev_level, 1);
    le32_store(&super->s_feature_ro_compat, EXT_RO_COMPAT_METADATA_CSUM);
    ext_super_checksum_set(super);
}
static bool super_valid(const struct ext_geometry *geometry, const void *data) {
    const struct ext_disk_super *super = data;
    /* Without the feature, which is one of the bits, there is nothing to compare. */
    return (le32_load(super->s_feature_ro_compat) & geometry->ro_compat) &&
           le32_load(super->s_rev_level) > 0 && ext_super_checksum_valid(super);
}

static void group_set(const struct ext_geometry *geometry, void *data) {
    ext_group_checksum_set(geometry, 3, data);
}
static bool group_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_group_checksum_valid(geometry, 3, data);
}

static void inode_set(const struct ext_geometry *geometry, void *data) {
    struct ext_disk_inode *record = data;
    le16_store(&record->i_extra_isize, 32);
    ext_inode_checksum_set(geometry, INO, record);
}
static bool inode_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_inode_checksum_valid(geometry, INO, data);
}

static void dir_set(const struct ext_geometry *geometry, void *data) {
    ext_dir_tail_write(geometry, data);
    ext_dir_checksum_set(geometry, INO, GENERATION, data);
}
static bool dir_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_dir_checksum_valid(geometry, INO, GENERATION, data);
}

static void dx_set(const struct ext_geometry *geometry, void *data) {
    struct ext_disk_dx_countlimit *header =
        (struct ext_disk_dx_countlimit *)((char *)data + EXT_DX_NODE_ENTRIES);
    uint32_t limit = ext_dx_limit(geometry, EXT_DX_NODE_ENTRIES);
    le16_store(&header->limit, (uint16_t)limit);
    le16_store(&header->count, (uint16_t)limit);
    struct ext_disk_dirent *cover = data;
    le32_store(&cover->inode, 0);
    le16_store(&cover->rec_len, BLOCK_SIZE);
    ext_dir_checksum_set(geometry, INO, GENERATION, data);
}

static void extent_set(const struct ext_geometry *geometry, void *data) {
    ((uint8_t *)data)[4] = EXTENT_MAX;
    ((uint8_t *)data)[5] = 0;
    ext_extent_block_checksum_set(geometry, INO, GENERATION, data);
}
static bool extent_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_extent_block_checksum_valid(geometry, INO, GENERATION, data);
}

static void xattr_set(const struct ext_geometry *geometry, void *data) {
    ext_xattr_checksum_set(geometry, BLOCK, data);
}
static bool xattr_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_xattr_checksum_valid(geometry, BLOCK, data);
}

static void orphan_set(const struct ext_geometry *geometry, void *data) {
    ext_orphan_checksum_set(geometry, INO, GENERATION, BLOCK, data);
}
static bool orphan_valid(const struct ext_geometry *geometry, const void *data) {
    return ext_orphan_checksum_valid(geometry, INO, GENERATION, BLOCK, data);
}

static const struct subject subjects[] = {
    {"super block", sizeof(struct ext_disk_super), super_set, super_valid},
    {"group descriptor", sizeof(struct ext_disk_group), group_set, group_valid},
    {"inode", INODE_SIZE, inode_set, inode_valid},
    {"directory", BLOCK_SIZE, dir_set, dir_valid},
    {"index", BLOCK_SIZE, dx_set, dir_valid},
    {"extents", BLOCK_SIZE, extent_set, extent_valid},
    {"attributes", BLOCK_SIZE, xattr_set, xattr_valid},
    {"orphans", BLOCK_SIZE - 8, orphan_set, orphan_valid},
};

START_TEST(every_bit_counts) {
    const struct subject *subject = &subjects[_i];
    struct ext_geometry geometry = sample_geometry();
    uint8_t data[BLOCK_SIZE];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    subject->set(&geometry, data);
    ck_assert_msg(subject->valid(&geometry, data), "%s: not valid after set", subject->name);
    for (uint32_t bit = 0; bit < subject->size * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(!subject->valid(&geometry, data), "%s: bit %u does not count", subject->name,
                      bit);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* Another volume's structure is not this one's; the super block's seed is the same for all. */
    geometry.checksum_seed++;
    ck_assert(subject->valid(&geometry, data) == (_i == 0));
}
END_TEST

START_TEST(none_without_feature) {
    struct ext_geometry geometry = sample_geometry();
    uint8_t data[BLOCK_SIZE] = {0}, before[BLOCK_SIZE] = {0};
    geometry.ro_compat = 0;
    ext_xattr_checksum_set(&geometry, BLOCK, data);
    ext_dir_tail_write(&geometry, data);
    ext_dir_checksum_set(&geometry, INO, GENERATION, data);
    ext_group_checksum_set(&geometry, 0, (struct ext_disk_group *)data);
    ck_assert_mem_eq(data, before, sizeof(data));
    ck_assert(ext_inode_checksum_valid(&geometry, INO, (struct ext_disk_inode *)data));
    ck_assert_uint_eq(ext_dir_block_room(&geometry), BLOCK_SIZE);
    ck_assert_uint_eq(ext_block_bitmap_checksum(&geometry, data), 0);
}
END_TEST

/* uninit_bg alone: 16 bits, descriptors only. */
START_TEST(descriptors_of_16_bits) {
    struct ext_geometry geometry = sample_geometry();
    struct ext_disk_group group = {0};
    geometry.ro_compat = EXT_RO_COMPAT_GDT_CSUM;
    geometry.descriptor_size = EXT_GROUP_SIZE_SHORT;
    le32_store(&group.bg_inode_table, 42);
    ext_group_checksum_set(&geometry, 1, &group);
    ck_assert(ext_group_checksum_valid(&geometry, 1, &group));
    ck_assert(!ext_group_checksum_valid(&geometry, 2, &group));
    le32_store(&group.bg_inode_table_hi, 42); /* not part of it */
    ck_assert(ext_group_checksum_valid(&geometry, 1, &group));
    le16_store(&group.bg_itable_unused, 1);
    ck_assert(!ext_group_checksum_valid(&geometry, 1, &group));
}
END_TEST

/* A short descriptor and an inode without an extra part have room for 16 bits. */
START_TEST(halves) {
    struct ext_geometry geometry = sample_geometry();
    uint8_t bitmap[BLOCK_SIZE] = {1};
    uint32_t wide = ext_block_bitmap_checksum(&geometry, bitmap);
    geometry.descriptor_size = EXT_GROUP_SIZE_SHORT;
    ck_assert_uint_eq(ext_block_bitmap_checksum(&geometry, bitmap), wide & 0xFFFF);
    struct ext_disk_inode record = {0};
    geometry.inode_size = EXT_INODE_BASE_SIZE;
    ext_inode_checksum_set(&geometry, INO, &record);
    ck_assert_uint_eq(le16_load(record.i_checksum_hi), 0);
    ck_assert(ext_inode_checksum_valid(&geometry, INO, &record));
    ck_assert(!ext_inode_checksum_valid(&geometry, INO + 1, &record));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_checksum");
    TCase *cases = tcase_create("ext_checksum");
    tcase_add_test(cases, vectors);
    tcase_add_test(cases, implementations_agree);
    tcase_add_loop_test(cases, every_bit_counts, 0, sizeof(subjects) / sizeof(subjects[0]));
    tcase_add_test(cases, none_without_feature);
    tcase_add_test(cases, descriptors_of_16_bits);
    tcase_add_test(cases, halves);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

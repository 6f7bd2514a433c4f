/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/geometry.c: the arithmetic against figures worked out by hand, and super blocks that
 * must be refused.
 */
#include <errno.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define DEVICE_SIZE (UINT64_C(300) << 20)

/* A plausible super block of a 300 MiB volume with 1 KiB blocks. */
static struct ext_disk_super sample(void) {
    struct ext_disk_super super = {0};
    le16_store(&super.s_magic, EXT_MAGIC);
    le32_store(&super.s_rev_level, 1);
    le32_store(&super.s_first_data_block, 1);
    le32_store(&super.s_blocks_count, 307200);
    le32_store(&super.s_blocks_per_group, 8192);
    le32_store(&super.s_inodes_per_group, 1008);
    le32_store(&super.s_inodes_count, 38 * 1008);
    le32_store(&super.s_first_ino, 11);
    le16_store(&super.s_inode_size, 256);
    le16_store(&super.s_reserved_gdt_blocks, 256);
    le32_store(&super.s_feature_compat, EXT_COMPAT_RESIZE_INODE);
    le32_store(&super.s_feature_ro_compat, EXT_RO_COMPAT_SPARSE_SUPER);
    return super;
}

static int load(const struct ext_disk_super *super, struct ext_geometry *geometry) {
    return ext_geometry_load(super, DEVICE_SIZE, "sample", NULL, geometry);
}

START_TEST(figures) {
    struct ext_disk_super super = sample();
    struct ext_geometry geometry;
    ck_assert_int_eq(load(&super, &geometry), 0);
    ck_assert_uint_eq(geometry.groups, 38);
    ck_assert_uint_eq(geometry.inode_table_blocks, 252);
    ck_assert_uint_eq(geometry.descriptor_blocks, 2);
    ck_assert_uint_eq(ext_group_overhead(&geometry, 0), 259);
    ck_assert_uint_eq(ext_group_overhead(&geometry, 2), 0);
    ck_assert_uint_eq(ext_group_first_block(&geometry, 37), 303105);
    ck_assert_uint_eq(ext_group_block_count(&geometry, 37), 4095);
    ck_assert_uint_eq(ext_group_block_count(&geometry, 36), 8192);
    /* Boot block, 38 times bitmaps and table, super blocks in 0, 1, 3, 5, 7, 9, 25 and 27. */
    ck_assert_uint_eq(ext_geometry_overhead(&geometry), 1 + 38 * 254 + 8 * 259);
}
END_TEST

START_TEST(sparse_groups) {
    struct ext_disk_super super = sample();
    struct ext_geometry geometry;
    ck_assert_int_eq(load(&super, &geometry), 0);
    static const uint32_t with[] = {0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125, 243, 343, 2187, 16807};
    static const uint32_t without[] = {2, 4, 6, 8, 11, 15, 21, 35, 45, 63, 105, 2186, 2188};
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        ck_assert(ext_group_has_super(&geometry, with[i]));
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        ck_assert(!ext_group_has_super(&geometry, without[i]));
    geometry.ro_compat = 0;
    ck_assert(ext_group_has_super(&geometry, 2));
}
END_TEST

START_TEST(revision_0) {
    struct ext_disk_super super = sample();
    struct ext_geometry geometry;
    le32_store(&super.s_rev_level, 0);
    le16_store(&super.s_inode_size, 0); /* fields that revision 0 does not have */
    le32_store(&super.s_first_ino, 0);
    ck_assert_int_eq(load(&super, &geometry), 0);
    ck_assert_uint_eq(geometry.inode_size, 128);
    ck_assert_uint_eq(geometry.first_ino, 11);
    ck_assert_uint_eq(geometry.ro_compat, 0);
}
END_TEST

/* One field each, with a value that must be refused. */
#define BAD(member, value, error)                                                                  \
    {                                                                                              \
        offsetof(struct ext_disk_super, member), sizeof(((struct ext_disk_super *)0)->member),     \
            value, error                                                                           \
    }
static const struct {
    size_t offset, width;
    uint32_t value;
    int error;
} bad_fields[] = {
    BAD(s_magic, 0, -EUCLEAN),
    BAD(s_rev_level, 2, -ENOTSUP),
    BAD(s_log_block_size, 3, -ENOTSUP),
    BAD(s_log_block_size, 7, -EUCLEAN),
    BAD(s_log_block_size, 0xFFFFFFFF, -EUCLEAN),
    BAD(s_first_data_block, 0, -EUCLEAN),
    BAD(s_blocks_count, 0, -EUCLEAN),
    BAD(s_blocks_count, 1, -EUCLEAN),
    BAD(s_blocks_count, 307201, -EUCLEAN),
    BAD(s_blocks_count, 0xFFFFFFFF, -EUCLEAN),
    BAD(s_r_blocks_count, 307201, -EUCLEAN),
    BAD(s_blocks_per_group, 0, -EUCLEAN),
    BAD(s_blocks_per_group, 4, -EUCLEAN),
    BAD(s_blocks_per_group, 8193, -EUCLEAN),
    BAD(s_blocks_per_group, 8200, -EUCLEAN),
    BAD(s_blocks_per_group, 256, -EUCLEAN),
    BAD(s_inodes_per_group, 0, -EUCLEAN),
    BAD(s_inodes_per_group, 8200, -EUCLEAN),
    BAD(s_inodes_count, 0, -EUCLEAN),
    BAD(s_inodes_count, 0xFFFFFFFF, -EUCLEAN),
    BAD(s_inode_size, 0, -EUCLEAN),
    BAD(s_inode_size, 64, -EUCLEAN),
    BAD(s_inode_size, 192, -EUCLEAN),
    BAD(s_inode_size, 2048, -EUCLEAN),
    BAD(s_first_ino, 2, -EUCLEAN),
    BAD(s_first_ino, 38 * 1008 + 1, -EUCLEAN),
    BAD(s_reserved_gdt_blocks, 257, -EUCLEAN),
    BAD(s_feature_ro_compat, EXT_RO_COMPAT_BIGALLOC, -ENOTSUP),
    BAD(s_feature_ro_compat, EXT_RO_COMPAT_METADATA_CSUM, -EUCLEAN),
    BAD(s_feature_incompat, EXT_INCOMPAT_64BIT, -EUCLEAN), /* with s_desc_size 0 */
};
#define BAD_COUNT ((int)(sizeof(bad_fields) / sizeof(bad_fields[0])))

START_TEST(refused) {
    struct ext_disk_super super = sample();
    struct ext_geometry geometry;
    for (size_t i = 0; i < bad_fields[_i].width; i++)
        ((uint8_t *)&super)[bad_fields[_i].offset + i] = (uint8_t)(bad_fields[_i].value >> 8 * i);
    ck_assert_int_eq(load(&super, &geometry), bad_fields[_i].error);
}
END_TEST

/* Whatever the bytes, an accepted geometry keeps its invariants. */
START_TEST(random_bytes) {
    uint64_t random = fixture_seed("random_bytes");
    for (unsigned round = 0; round < 200000 * fixture_factor(); round++) {
        struct ext_disk_super super = sample();
        struct ext_geometry g;
        for (unsigned i = fixture_random(&random) % 4 + 1; i > 0; i--)
            ((uint8_t *)&super)[fixture_random(&random) % 0x100] = (uint8_t)fixture_random(&random);
        if (load(&super, &g) != 0)
            continue;
        uint32_t last = ext_group_block_count(&g, g.groups - 1);
        bool sound = g.blocks_count << g.block_bits <= DEVICE_SIZE && last >= 1 &&
                     last <= g.blocks_per_group &&
                     (uint64_t)g.groups * g.inodes_per_group == g.inodes_count &&
                     ext_group_overhead(&g, 0) + 2 + g.inode_table_blocks <= g.blocks_per_group;
        if (!sound) /* one assertion a round would take longer than the rest */
            ck_abort_msg("round %u: an accepted geometry breaks its invariants", round);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_geometry");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, figures);
    tcase_add_test(tests, sparse_groups);
    tcase_add_test(tests, revision_0);
    tcase_add_loop_test(tests, refused, 0, BAD_COUNT);
    tcase_add_test(tests, random_bytes);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/hash.c: fixed vectors, and agreement with debugfs over random names.
 */
#include <inttypes.h>
#include <unistd.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define RANDOM_NAMES 400

static const uint32_t no_seed[4];
/* fedcba98-7654-3210-fedc-ba9876543210, as four little-endian words. */
static const uint32_t seed[4] = {0x98BADCFE, 0x10325476, 0x98BADCFE, 0x10325476};

static const char long_name[] = "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
                                "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
                                "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
                                "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"
                                "abcdefghijabcde";

/* As debugfs 1.47.0's dx_hash prints them. */
static const struct vector {
    enum ext_hash_version version;
    const char *name;
    uint32_t plain[2], seeded[2]; /* major, minor */
} vectors[] = {
    {EXT_HASH_LEGACY, "a", {0xE74B53E2, 0x0}, {0xE74B53E2, 0x0}},
    {EXT_HASH_LEGACY, "hello", {0x32252546, 0x0}, {0x32252546, 0x0}},
    {EXT_HASH_LEGACY, "linux-2.4.20.tar.bz2", {0xBDDC12B6, 0x0}, {0xBDDC12B6, 0x0}},
    {EXT_HASH_LEGACY, "0123456789abcdef0123456789abcdef", {0x6D4A15EE, 0x0}, {0x6D4A15EE, 0x0}},
    {EXT_HASH_LEGACY, "0123456789abcdef0123456789abcdef0", {0x8AEB8700, 0x0}, {0x8AEB8700, 0x0}},
    {EXT_HASH_LEGACY, "caf\xC3\xA9", {0x96CA5A2C, 0x0}, {0x96CA5A2C, 0x0}},
    {EXT_HASH_LEGACY, long_name, {0x3565B034, 0x0}, {0x3565B034, 0x0}},
    {EXT_HASH_HALF_MD4, "a", {0xD5FA7D7A, 0xACB48187}, {0x66FF49C6, 0xA19648FF}},
    {EXT_HASH_HALF_MD4, "hello", {0x1746DA32, 0x420013B5}, {0xC013668E, 0x6EB6F5CE}},
    {EXT_HASH_HALF_MD4, "linux-2.4.20.tar.bz2", {0x66E1FEFC, 0x482E0FF2}, {0xBBC4C938, 0xB0E4744F}},
    {EXT_HASH_HALF_MD4,
     "0123456789abcdef0123456789abcdef",
     {0x36184620, 0xC959DF59},
     {0x4475D4E0, 0x3254E8A1}},
    {EXT_HASH_HALF_MD4,
     "0123456789abcdef0123456789abcdef0",
     {0xE2C5682, 0x453B8D31},
     {0x4387BEE8, 0x6DAD611B}},
    {EXT_HASH_HALF_MD4, "caf\xC3\xA9", {0xFB9C5E5C, 0x573E8B8}, {0x97ED1696, 0x877D6A98}},
    {EXT_HASH_HALF_MD4, long_name, {0x4DE49A96, 0xCC8B064E}, {0xF1389030, 0x7E20C820}},
    {EXT_HASH_TEA, "a", {0x6D0EA4C0, 0xC18922DF}, {0xC5BE6C94, 0x38A831AD}},
    {EXT_HASH_TEA, "hello", {0x6F5BB1A8, 0x231917C2}, {0xF11A04A, 0xADA95B24}},
    {EXT_HASH_TEA, "linux-2.4.20.tar.bz2", {0xACBBC4B4, 0x82C77EB}, {0x93817656, 0xBE29ABE3}},
    {EXT_HASH_TEA,
     "0123456789abcdef0123456789abcdef",
     {0xCBE95E3C, 0x17627589},
     {0xF4467FDC, 0x5886346B}},
    {EXT_HASH_TEA,
     "0123456789abcdef0123456789abcdef0",
     {0x60300318, 0xEAE30598},
     {0x9FCBBED2, 0x8B7FCBFB}},
    {EXT_HASH_TEA, "caf\xC3\xA9", {0x105842EA, 0xFB9165CA}, {0x65E49A2, 0xB916301F}},
    {EXT_HASH_TEA, long_name, {0x204AF032, 0x65CDD40B}, {0x238958CE, 0x32D03149}},
};

START_TEST(known_vectors) {
    const struct vector *v = &vectors[_i];
    uint32_t major, minor;

    ext_hash_name(v->name, strlen(v->name), v->version, no_seed, &major, &minor);
    ck_assert_uint_eq(major, v->plain[0]);
    ck_assert_uint_eq(minor, v->plain[1]);
    ext_hash_name(v->name, strlen(v->name), v->version, seed, &major, &minor);
    ck_assert_uint_eq(major, v->seeded[0]);
    ck_assert_uint_eq(minor, v->seeded[1]);
}
END_TEST

/* Signedness matters for bytes above 127 only. */
START_TEST(signedness) {
    static const char plain[] = "plain", high[] = "caf\xC3\xA9";
    uint32_t major[2], minor[2];

    for (int i = 0; i < 2; i++)
        ext_hash_name(plain, strlen(plain), _i + 3 * i, seed, &major[i], &minor[i]);
    ck_assert_uint_eq(major[0], major[1]);
    ck_assert_uint_eq(minor[0], minor[1]);
    for (int i = 0; i < 2; i++)
        ext_hash_name(high, strlen(high), _i + 3 * i, seed, &major[i], &minor[i]);
    ck_assert_uint_ne(major[0], major[1]);
}
END_TEST

static const char *const debugfs_versions[] = {"legacy", "half_md4", "tea"};

/* Letters, digits and bytes above 127: what debugfs's command line passes through. */
static void random_name(uint64_t *state, char *name) {
    uint32_t length = 1 + fixture_random(state) % NAME_LENGTH_MAX;

    for (uint32_t i = 0; i < length; i++) {
        uint64_t r = fixture_random(state);
        name[i] = r & 1 ? (char)('a' + r / 2 % 26) : (char)(0x80 + r / 2 % 0x80);
    }
    name[length] = '\0';
}

START_TEST(agrees_with_debugfs) {
    static char names[RANDOM_NAMES][NAME_LENGTH_MAX + 1];
    char path[] = "/tmp/test_ext_hash.XXXXXX", command[128], line[512];
    uint64_t state = fixture_seed("agrees_with_debugfs");
    int checked = 0;

    if (system("PATH=$PATH:/sbin:/usr/sbin command -v debugfs >/dev/null") != 0)
        return;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *script = fdopen(fd, "w");
    for (int i = 0; i < RANDOM_NAMES; i++) {
        random_name(&state, names[i]);
        fprintf(script, "dx_hash -h %s%s %s\n", debugfs_versions[i % 3],
                i & 1 ? " -s fedcba98-7654-3210-fedc-ba9876543210" : "", names[i]);
    }
    fclose(script);
    snprintf(command, sizeof(command), "PATH=$PATH:/sbin:/usr/sbin debugfs -f %s 2>/dev/null",
             path);
    FILE *answers = popen(command, "r");
    while (fgets(line, sizeof(line), answers)) {
        uint32_t expected[2], major, minor;
        const char *text = strstr(line, " is 0x");
        if (!text || sscanf(text, " is 0x%" SCNx32 " (minor 0x%" SCNx32 ")", &expected[0],
                            &expected[1]) != 2)
            continue;
        ck_assert_int_lt(checked, RANDOM_NAMES);
        ext_hash_name(names[checked], strlen(names[checked]), checked % 3,
                      checked & 1 ? seed : no_seed, &major, &minor);
        ck_assert_uint_eq(major, expected[0]);
        ck_assert_uint_eq(minor, expected[1]);
        checked++;
    }
    pclose(answers);
    unlink(path);
    ck_assert_int_eq(checked, RANDOM_NAMES);
}
END_TEST

/* The largest value stands for the end of a directory: a name that would have it gets the next
 * smaller one. */
START_TEST(never_the_end) {
    uint32_t major, minor;

    ext_hash_name("hgybhaa`", 8, EXT_HASH_LEGACY, no_seed, &major, &minor);
    ck_assert_uint_eq(major, 0xFFFFFFFC);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_hash");
    TCase *tests = tcase_create("hash");

    tcase_add_loop_test(tests, known_vectors, 0, sizeof(vectors) / sizeof(vectors[0]));
    tcase_add_loop_test(tests, signedness, 0, 3);
    tcase_add_test(tests, agrees_with_debugfs);
    tcase_add_test(tests, never_the_end);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * bench/source, synthetic and loaded: counts, order, determinism, thinning, contents.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/source.h"

#define FILES 13035u
#define BYTES UINT64_C(192000000)

static uint64_t digest(const struct source *source) {
    uint64_t hash = UINT64_C(14695981039346656037);

    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        uint64_t fields[] = {entry->parent, entry->mode, entry->size, entry->pool_start,
                             (uint64_t)entry->mtime.seconds};
        for (size_t j = 0; j < sizeof(fields) / sizeof(*fields); j++)
            hash = (hash ^ fields[j]) * UINT64_C(1099511628211);
        for (const char *c = entry->name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    return hash;
}

static void check_order(const struct source *source) {
    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        if (entry->parent == SOURCE_ROOT) {
            ck_assert_uint_eq(entry->depth, 0);
            continue;
        }
        ck_assert_uint_lt(entry->parent, i);
        ck_assert(S_ISDIR(source->entries[entry->parent].mode));
        ck_assert_uint_eq(entry->depth, source->entries[entry->parent].depth + 1);
    }
}

START_TEST(test_synthetic) {
    struct source *source;

    ck_assert_int_eq(source_synthetic(FILES, BYTES, 1, NULL, &source), 0);
    ck_assert_uint_eq(source->files, FILES);
    ck_assert_uint_le(source->bytes, BYTES);
    ck_assert_uint_gt(source->bytes, BYTES - FILES);
    ck_assert_uint_gt(source->directories, 600);
    ck_assert_uint_lt(source->directories, 1000);
    ck_assert_uint_eq(source->files + source->directories, source->count);
    check_order(source);
    source_close(source);
}
END_TEST

/* The digest is a constant: any machine and compiler makes this very tree. */
START_TEST(test_synthetic_is_deterministic) {
    struct source *first, *second, *other;

    ck_assert_int_eq(source_synthetic(2000, 10000000, 7, NULL, &first), 0);
    ck_assert_int_eq(source_synthetic(2000, 10000000, 7, NULL, &second), 0);
    ck_assert_int_eq(source_synthetic(2000, 10000000, 8, NULL, &other), 0);
    ck_assert_uint_eq(digest(first), digest(second));
    ck_assert_uint_ne(digest(first), digest(other));
    ck_assert_mem_eq(first->pool, second->pool, first->pool_size);
    ck_assert_uint_eq(digest(first), UINT64_C(12636544498624976355));
    source_close(first);
    source_close(second);
    source_close(other);
}
END_TEST

START_TEST(test_synthetic_too_small) {
    struct source *source;

    ck_assert_int_eq(source_synthetic(10, 1000, 1, NULL, &source), -EINVAL);
}
END_TEST

START_TEST(test_add) {
    struct timestamp mtime = {.seconds = 5};
    struct source_entry *entry;
    struct source *source;

    ck_assert_int_eq(source_create(&source), 0);
    ck_assert_int_eq(source_add(source, "a/b/file", S_IFREG | 0600, mtime, &entry), 0);
    entry->size = 3;
    ck_assert_int_eq(source_add(source, "./a//b", S_IFDIR | 0700, mtime, NULL), 0);
    ck_assert_int_eq(source_add(source, "a/b/file", S_IFREG | 0600, mtime, NULL), -EEXIST);
    ck_assert_int_eq(source_add(source, "a/b/file/x", S_IFREG | 0600, mtime, NULL), -ENOTDIR);
    ck_assert_int_eq(source_add(source, "a/../x", S_IFREG | 0600, mtime, NULL), -EINVAL);
    ck_assert_int_eq(source_add(source, "..", S_IFREG | 0600, mtime, NULL), -EINVAL);
    ck_assert_int_eq(source_add(source, "", S_IFREG | 0600, mtime, NULL), -EINVAL);
    ck_assert_int_eq(source_add(source, ".", S_IFDIR | 0755, mtime, NULL), -EINVAL);
    source_finish(source);
    ck_assert_uint_eq(source->count, 3);
    ck_assert_uint_eq(source->files, 1);
    ck_assert_uint_eq(source->directories, 2);
    ck_assert_uint_eq(source->bytes, 3);
    ck_assert_uint_eq(source->entries[1].mode, S_IFDIR | 0700);
    check_order(source);
    source_close(source);
}
END_TEST

/* Whole directories stay, so a kept one has as many files as before. */
START_TEST(test_thin) {
    struct source *source;

    ck_assert_int_eq(source_synthetic(FILES, BYTES, 1, NULL, &source), 0);
    ck_assert_int_eq(source_thin(source, FILES / 4), 0);
    ck_assert_uint_gt(source->files, FILES / 4 - 300);
    ck_assert_uint_lt(source->files, FILES / 4 + 300);
    check_order(source);
    ck_assert_int_eq(source_thin(source, FILES), 0);
    ck_assert_uint_lt(source->files, FILES / 4 + 300);
    source_close(source);
}
END_TEST

START_TEST(test_content_is_contiguous_pieces) {
    struct source *source;
    uint64_t total = 0;

    ck_assert_int_eq(source_synthetic(1000, 60000000, 3, NULL, &source), 0);
    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        const char *data;
        uint64_t offset = 0;
        size_t length;
        if (!S_ISREG(entry->mode))
            continue;
        while ((length = source_content(source, entry, offset, &data))) {
            ck_assert(data >= source->pool && data + length <= source->pool + source->pool_size);
            offset += length;
        }
        ck_assert_uint_eq(offset, entry->size);
        total += offset;
    }
    ck_assert_uint_eq(total, source->bytes);
    source_close(source);
}
END_TEST

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(test_directory) {
    char root[] = "/tmp/test_bench_source.XXXXXX";
    struct source *source;
    const char *data;

    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(chdir(root), 0);
    ck_assert_int_eq(mkdir("b", 0755), 0);
    write_file("b/inner", "hello");
    write_file("a", "x");
    write_file("c", "");
    ck_assert_int_eq(symlink("b/inner", "link"), 0);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(source_open(root, NULL, &source), 0);
    static const char *const names[] = {"a", "b", "inner", "c", "link"};
    ck_assert_uint_eq(source->count, 5);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(source->entries[i].name, names[i]);
    ck_assert_str_eq(source->entries[4].target, "b/inner");
    ck_assert_uint_eq(source_content(source, &source->entries[2], 1, &data), 4);
    ck_assert_mem_eq(data, "ello", 4);
    ck_assert_uint_eq(source->skipped, 1);
    ck_assert_uint_eq(source->bytes, 6);
    source_close(source);
    unlink("b/inner"), rmdir("b"), unlink("a"), unlink("c"), unlink("link"), unlink("pipe");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(root);
}
END_TEST

static char message[512];

static void keep(void *context, enum log_level level, const char *text) {
    strncpy(message, text, sizeof(message) - 1);
}

START_TEST(test_bad_archive) {
    char path[] = "/tmp/test_bench_source.XXXXXX";
    struct log log = {.emit = keep, .threshold = LOG_LEVEL_INFO};
    struct source *source;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "this is no archive", 18), 18);
    close(fd);
    ck_assert_int_eq(source_open(path, &log, &source), -EINVAL);
    ck_assert_ptr_nonnull(strstr(message, path));
    unlink(path);
    ck_assert_int_eq(source_open(path, &log, &source), -ENOENT);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bench_source");
    TCase *tcase = tcase_create("source");

    tcase_add_test(tcase, test_synthetic);
    tcase_add_test(tcase, test_synthetic_is_deterministic);
    tcase_add_test(tcase, test_synthetic_too_small);
    tcase_add_test(tcase, test_add);
    tcase_add_test(tcase, test_thin);
    tcase_add_test(tcase, test_content_is_contiguous_pieces);
    tcase_add_test(tcase, test_directory);
    tcase_add_test(tcase, test_bad_archive);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

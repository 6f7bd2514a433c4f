/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext as a whole, driven to its limits through the volume: random files, directories,
 * links and holes until blocks or inodes run out, again and again. What is left must be clean to
 * e2fsck (the test is silent about that where e2fsck is not installed) and keep its free counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define NAMES 400u

struct stress {
    const char *mkfs_options, *mount_options;
    uint64_t size;
    uint32_t file_bytes; /* the most that one write adds */
};

static const struct stress cases[] = {
    {"block_size=1024,inodes=200", "dir_placement=orlov,alloc=goal", 12 << 20, 5000},
    {"block_size=1024,inode_size=256", "dir_placement=old,alloc=goal", 3 << 20, 60000},
    {"block_size=2048", "dir_placement=sequential,alloc=first-fit", 5 << 20, 100000},
    {"block_size=4096,inode_size=256", "alloc=goal,prealloc=64", 20 << 20, 400000},
    {"block_size=4096,features=none", "alloc=first-fit", 20 << 20, 400000},
};

struct run {
    char image[300];
    struct clock clock;
    struct log log;
    struct volume *volume;
    struct inode *dirs[8]; /* the root first */
    uint32_t dir_count;
    uint64_t random;
    uint8_t *data;
    unsigned full; /* times that an operation found no space */
};

static void open_image(struct run *run, const struct stress *stress, bool format) {
    struct device *device;
    unsigned flags = format ? DEVICE_CREATE : 0;
    ck_assert_int_eq(device_open_image(run->image, flags, format ? stress->size : 0, &run->clock,
                                       &run->log, &device),
                     0);
    if (format) {
        const struct layout *layout;
        const struct layout_type *type;
        struct options options;
        ck_assert_int_eq(layout_find("ext2", &layout, &type), 0);
        ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &run->log), 0);
        ck_assert_int_eq(options_parse(&options, stress->mkfs_options), 0);
        ck_assert_int_eq(layout_format("ext2", device, &options), 0);
        options_free(&options);
    }
    struct volume_config config = {.type = "ext2",
                                   .device = device,
                                   .clock = &run->clock,
                                   .log = &run->log,
                                   .options = stress->mount_options};
    ck_assert_int_eq(volume_open(&config, &run->volume), 0);
    ck_assert_int_eq(volume_root(run->volume, &run->dirs[0]), 0);
    run->dir_count = 1;
    for (int i = 1; i < 8; i++) {
        char name[8];
        struct create_request request = {.mode = S_IFDIR | 0755};
        int length = snprintf(name, sizeof name, "dir%d", i);
        struct inode **dir = &run->dirs[run->dir_count];
        int rc = volume_create(run->dirs[0], name, (uint32_t)length, &request, dir);
        if (rc == -EEXIST)
            rc = volume_lookup(run->dirs[0], name, (uint32_t)length, dir);
        ck_assert(rc == 0 || rc == -ENOSPC);
        run->dir_count += rc == 0;
    }
}

static void close_image(struct run *run) {
    for (uint32_t i = 0; i < run->dir_count; i++)
        volume_put(run->dirs[i], 1);
    ck_assert_int_eq(volume_close(run->volume), 0);
}

static void assert_clean(const struct run *run) {
    char command[1024];
    if (system("command -v e2fsck >/dev/null 2>&1") != 0)
        return;
    snprintf(command, sizeof command, "e2fsck -fn %s >%s.log 2>&1 || { cat %s.log; false; }",
             run->image, run->image, run->image);
    ck_assert_int_eq(system(command), 0);
}

static uint32_t pick(struct run *run, uint32_t below) {
    return (uint32_t)(fixture_random(&run->random) % below);
}

/* The result of an operation: done, refused for a good reason, or a failure of the test. */
static void judge(struct run *run, int64_t rc) {
    if (rc == -ENOSPC)
        run->full++;
    ck_assert_msg(rc >= 0 || rc == -ENOSPC || rc == -ENOENT || rc == -EEXIST || rc == -EISDIR ||
                      rc == -ENOTEMPTY || rc == -ENOTDIR,
                  "unexpected %s", strerror((int)-rc));
}

static struct create_request random_request(struct run *run, char *target) {
    static const uint32_t modes[] = {S_IFREG, S_IFREG, S_IFREG, S_IFREG,
                                     S_IFLNK, S_IFIFO, S_IFCHR, S_IFDIR};
    uint32_t length = 1 + pick(run, pick(run, 2) ? 59 : 900);
    memset(target, 't', length);
    target[length] = 0;
    return (struct create_request){.mode = modes[pick(run, 8)] | 0640,
                                   .uid = pick(run, 200000),
                                   .gid = pick(run, 200000),
                                   .rdev = pick(run, 4096) << 20 | pick(run, 1 << 20),
                                   .target = target};
}

static void change_file(struct run *run, const struct stress *stress, struct inode *inode) {
    uint64_t end = inode->size;
    uint32_t length = 1 + pick(run, stress->file_bytes);
    if (!S_ISREG(inode->mode))
        return;
    switch (pick(run, 6)) {
    case 0:
        judge(run, volume_truncate(inode, pick(run, (uint32_t)end + 10000)));
        break;
    case 1:
        judge(run, volume_fallocate(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                    pick(run, (uint32_t)end + 1), length));
        break;
    case 2: /* far out: holes, and up to three levels of indirection */
        judge(run, volume_write(inode, run->data, length % 5000 + 1, pick(run, 200 << 20)));
        break;
    default:
        if (end > 100 << 20)
            end = 0;
        judge(run, volume_write(inode, run->data, length, end));
    }
}

static void step(struct run *run, const struct stress *stress) {
    struct inode *dir = run->dirs[pick(run, run->dir_count)], *inode;
    char name[8], other[8], target[1024];
    uint32_t length = (uint32_t)snprintf(name, sizeof name, "n%u", pick(run, NAMES));
    uint32_t other_length = (uint32_t)snprintf(other, sizeof other, "n%u", pick(run, NAMES));
    uint32_t choice = pick(run, 20);

    if (choice < 9) {
        struct create_request request = random_request(run, target);
        int rc = volume_create(dir, name, length, &request, &inode);
        judge(run, rc);
        if (rc == 0) {
            change_file(run, stress, inode);
            volume_put(inode, 1);
        }
    } else if (choice < 14) {
        int rc = volume_lookup(dir, name, length, &inode);
        judge(run, rc);
        if (rc == 0) {
            change_file(run, stress, inode);
            volume_put(inode, 1);
        }
    } else if (choice < 17) {
        int rc = volume_unlink(dir, name, length);
        if (rc == -EISDIR || rc == -EPERM)
            rc = volume_rmdir(dir, name, length);
        judge(run, rc);
    } else {
        struct inode *target_dir = run->dirs[pick(run, run->dir_count)];
        judge(run, volume_rename(dir, name, length, target_dir, other, other_length, 0));
    }
    if (pick(run, 500) == 0)
        ck_assert_int_eq(volume_sync(run->volume), 0);
    if (pick(run, 500) == 0)
        ck_assert_int_eq(volume_drop_caches(run->volume), 0);
}

/* Removes about half of the names, so that the next round has room. */
static void thin_out(struct run *run) {
    for (uint32_t d = 0; d < run->dir_count; d++)
        for (uint32_t n = 0; n < NAMES; n++) {
            char name[8];
            uint32_t length = (uint32_t)snprintf(name, sizeof name, "n%u", n);
            if (pick(run, 2) == 0)
                continue;
            int rc = volume_unlink(run->dirs[d], name, length);
            if (rc == -EISDIR || rc == -EPERM)
                rc = volume_rmdir(run->dirs[d], name, length);
            judge(run, rc);
        }
}

static void run_init(struct run *run) {
    const char *tmp = getenv("TMPDIR");
    snprintf(run->image, sizeof run->image, "%s/ext_stress.%d.img", tmp ? tmp : "/tmp",
             (int)getpid());
    clock_init_virtual(&run->clock, NULL);
    run->log = log_to_stderr("test", LOG_LEVEL_WARNING);
}

static void run_remove(struct run *run) {
    unlink(run->image);
    strcat(run->image, ".log");
    unlink(run->image);
}

START_TEST(full_again_and_again) {
    const struct stress *stress = &cases[_i];
    struct run run = {.random = fixture_seed("full_again_and_again")};
    run_init(&run);
    run.data = malloc(stress->file_bytes + 5000);
    ck_assert_ptr_nonnull(run.data);
    memset(run.data, 0xA5, stress->file_bytes + 5000);
    for (unsigned round = 0; round < 3 * fixture_factor(); round++) {
        open_image(&run, stress, round == 0);
        for (unsigned i = 0; i < 3000; i++)
            step(&run, stress);
        close_image(&run);
        assert_clean(&run);
        open_image(&run, stress, false);
        thin_out(&run);
        close_image(&run);
        assert_clean(&run);
    }
    ck_assert_msg(run.full > 0, "the volume was never full");
    free(run.data);
    run_remove(&run);
}
END_TEST

/* Sparse, with the feature announced on the way, and at the very end of what the format can hold.
 */
START_TEST(large_files) {
    static const struct stress volume = {"block_size=4096,features=^large_file:^resize_inode", NULL,
                                         16 << 20, 0};
    struct create_request request = {.mode = S_IFREG | 0600};
    struct run run = {0};
    uint64_t sizes[] = {(UINT64_C(1) << 31) - 1, UINT64_C(1) << 31, UINT64_C(5) << 30, 0};
    run_init(&run);
    for (int i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), 'x'}, byte = 'z';
        struct inode *inode;
        open_image(&run, &volume, i == 0);
        if (sizes[i] == 0)
            sizes[i] = run.volume->limits.file_size_max;
        ck_assert_int_eq(volume_create(run.dirs[0], name, 2, &request, &inode), 0);
        ck_assert_int_eq(volume_write(inode, &byte, 1, sizes[i] - 1), 1);
        volume_put(inode, 1);
        ck_assert_int_eq(volume_sync(run.volume), 0);
        bool announced = ext_of(run.volume)->geometry.ro_compat & EXT_RO_COMPAT_LARGE_FILE;
        ck_assert_int_eq(announced, i > 0);
        close_image(&run);
        assert_clean(&run);
    }
    open_image(&run, &volume, false);
    for (int i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), 'x'}, bytes[2] = "";
        struct inode *inode;
        ck_assert_int_eq(volume_lookup(run.dirs[0], name, 2, &inode), 0);
        ck_assert_uint_eq(inode->size, sizes[i]);
        ck_assert_int_eq(volume_read(inode, bytes, 2, sizes[i] - 2), 2);
        ck_assert(bytes[0] == 0 && bytes[1] == 'z');
        volume_put(inode, 1);
    }
    close_image(&run);
    run_remove(&run);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_stress");
    TCase *tcase = tcase_create("stress");
    tcase_add_loop_test(tcase, full_again_and_again, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tcase, large_files);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}

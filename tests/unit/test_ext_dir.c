/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext: directories, linear and indexed, through the core: random changes against a model
 * with listings under way, large directories, damaged ones. e2fsck is the judge where it is
 * installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define MIB (UINT64_C(1) << 20)

/* --- a volume on an image file, so that other tools can look at it --- */

struct image {
    char path[64];
    struct clock clock;
    struct log log;
    char message[512]; /* the last warning or error */
    struct volume *volume;
    struct inode *root;
};

static void keep_message(void *context, enum log_level level, const char *text) {
    struct image *image = context;

    (void)level;
    snprintf(image->message, sizeof(image->message), "%s", text);
}

static void image_mount(struct image *image) {
    struct device *device;

    ck_assert_int_eq(device_open_image(image->path, 0, 0, &image->clock, &image->log, &device), 0);
    struct volume_config config = {
        .type = "ext2", .device = device, .clock = &image->clock, .log = &image->log};
    ck_assert_int_eq(volume_open(&config, &image->volume), 0);
    ck_assert_int_eq(volume_root(image->volume, &image->root), 0);
}

static void image_unmount(struct image *image) {
    volume_put(image->root, 1);
    ck_assert_int_eq(volume_close(image->volume), 0);
}

static void image_create(struct image *image, uint64_t size, const char *mkfs_options) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;
    struct device *device;

    memset(image, 0, sizeof(*image));
    snprintf(image->path, sizeof(image->path), "/tmp/test_ext_dir.XXXXXX");
    int fd = mkstemp(image->path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    clock_init_virtual(&image->clock, NULL);
    image->log = (struct log){keep_message, image, LOG_LEVEL_WARNING};
    ck_assert_int_eq(layout_find("ext2", &layout, &type), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &image->log), 0);
    ck_assert_int_eq(options_parse(&options, mkfs_options), 0);
    ck_assert_int_eq(
        device_open_image(image->path, DEVICE_CREATE, size, &image->clock, &image->log, &device),
        0);
    ck_assert_int_eq(layout_format("ext2", device, &options), 0);
    device_close(device);
    options_free(&options);
    image_mount(image);
}

/* Is the unmounted image in order? True when e2fsck is not installed. */
static bool image_clean(const struct image *image) {
    char command[384];

    if (system("PATH=$PATH:/sbin:/usr/sbin command -v e2fsck >/dev/null") != 0)
        return true;
    snprintf(command, sizeof(command),
             "PATH=$PATH:/sbin:/usr/sbin e2fsck -fn %s >%s.log 2>&1 || "
             "{ grep -v '^Pass' %s.log | head -30; false; }",
             image->path, image->path, image->path);
    bool clean = system(command) == 0;
    snprintf(command, sizeof(command), "%s.log", image->path);
    unlink(command);
    return clean;
}

static void image_destroy(struct image *image) {
    unlink(image->path);
}

static int make(struct inode *dir, const char *name, uint32_t mode, uint64_t *ino) {
    struct create_request request = {.mode = mode};
    struct inode *inode;

    int rc = volume_create(dir, name, strlen(name), &request, &inode);
    if (rc == 0) {
        *ino = inode->ino;
        volume_put(inode, 1);
    }
    return rc;
}

static int look(struct inode *dir, const char *name, uint64_t *ino) {
    struct inode *inode;

    int rc = volume_lookup(dir, name, strlen(name), &inode);
    if (rc == 0) {
        *ino = inode->ino;
        volume_put(inode, 1);
    }
    return rc;
}

static struct inode *make_dir(struct inode *parent, const char *name) {
    struct create_request request = {.mode = S_IFDIR | 0755};
    struct inode *dir;

    ck_assert_int_eq(volume_create(parent, name, strlen(name), &request, &dir), 0);
    return dir;
}

/* --- the model --- */

#define NAMES 2500
#define DIRS  3

struct model_dir {
    struct inode *dir;
    uint64_t ino[NAMES]; /* 0: absent */
    uint32_t count;
    /* the listing under way */
    uint64_t cookie;
    bool expected[NAMES]; /* there since the listing began */
    uint8_t visits[NAMES];
};

struct model {
    struct image image;
    uint64_t random;
    struct model_dir dirs[DIRS];
    char names[NAMES][NAME_LENGTH_MAX + 1];
    bool is_dir[1 << 16]; /* by inode number */
};

static struct model model;

/* "N" and a filler; most names are short, some as long as can be. */
static void model_names(struct model *m) {
    for (int i = 0; i < NAMES; i++) {
        uint32_t length = fixture_random(&m->random) % 4 ? 6 + fixture_random(&m->random) % 20
                                                         : 6 + fixture_random(&m->random) % 250;
        int digits = snprintf(m->names[i], sizeof(m->names[i]), "%d", i);
        memset(m->names[i] + digits, 'a' + i % 26, length - digits);
        m->names[i][length] = '\0';
    }
}

static uint64_t pick(struct model *m, uint64_t below) {
    return fixture_random(&m->random) % below;
}

static void model_set(struct model_dir *d, int name, uint64_t ino) {
    d->count += (ino != 0) - (d->ino[name] != 0);
    if (ino == 0)
        d->expected[name] = false;
    d->ino[name] = ino;
}

static void model_create(struct model *m, struct model_dir *d, int name) {
    uint32_t mode = pick(m, 8) == 0 ? S_IFDIR | 0755 : S_IFREG | 0644;
    uint64_t ino = 0;

    int rc = make(d->dir, m->names[name], mode, &ino);
    ck_assert_int_eq(rc, d->ino[name] ? -EEXIST : 0);
    if (rc == 0) {
        m->is_dir[ino] = S_ISDIR(mode);
        model_set(d, name, ino);
    }
}

static void model_remove(struct model *m, struct model_dir *d, int name) {
    const char *text = m->names[name];
    bool is_dir = m->is_dir[d->ino[name]];
    int rc = is_dir ? volume_rmdir(d->dir, text, strlen(text))
                    : volume_unlink(d->dir, text, strlen(text));

    ck_assert_int_eq(rc, d->ino[name] ? 0 : -ENOENT);
    model_set(d, name, 0);
}

static void check_parent(struct model *m, const struct model_dir *d, int name) {
    struct inode *inode;
    uint64_t parent;

    if (d->ino[name] == 0 || !m->is_dir[d->ino[name]])
        return;
    ck_assert_int_eq(volume_get(m->image.volume, d->ino[name], &inode), 0);
    ck_assert_int_eq(look(inode, "..", &parent), 0);
    ck_assert_uint_eq(parent, d->dir->ino);
    volume_put(inode, 1);
}

static void model_rename(struct model *m, struct model_dir *d, int name) {
    struct model_dir *to = &m->dirs[pick(m, DIRS)];
    int target = pick(m, NAMES);
    bool exchange = pick(m, 4) == 0;
    uint64_t a = d->ino[name], b = to->ino[target];
    int expected = a == 0 || (exchange && b == 0) ? -ENOENT : 0;

    if (expected == 0 && !exchange && b != 0 && a != b && m->is_dir[a] != m->is_dir[b])
        expected = m->is_dir[a] ? -ENOTDIR : -EISDIR;
    int rc =
        volume_rename(d->dir, m->names[name], strlen(m->names[name]), to->dir, m->names[target],
                      strlen(m->names[target]), exchange ? RENAME_EXCHANGE : 0);
    ck_assert_int_eq(rc, expected);
    if (rc != 0 || a == b)
        return;
    model_set(d, name, exchange ? b : 0);
    model_set(to, target, a);
    check_parent(m, to, target);
    check_parent(m, d, name);
}

static void model_lookup(struct model *m, struct model_dir *d, int name) {
    uint64_t ino = 0;

    int rc = look(d->dir, m->names[name], &ino);
    ck_assert_int_eq(rc, d->ino[name] ? 0 : -ENOENT);
    ck_assert_uint_eq(ino, d->ino[name]);
}

struct listing {
    struct model *m;
    struct model_dir *d;
    uint32_t room; /* stop after so many entries */
    uint32_t seen;
};

static bool list_one(void *context, const struct dir_entry *entry) {
    struct listing *list = context;
    struct model_dir *d = list->d;

    if (list->room == 0)
        return false;
    list->room--;
    list->seen++;
    ck_assert_uint_gt(entry->cookie, 0);
    ck_assert_uint_le(entry->cookie, INT64_MAX);
    d->cookie = entry->cookie;
    ck_assert_uint_eq(entry->type,
                      entry->name[0] == '.' || list->m->is_dir[entry->ino] ? S_IFDIR : S_IFREG);
    if (entry->name[0] == '.')
        return true;
    int name = atoi(entry->name);
    ck_assert_int_lt(name, NAMES);
    ck_assert_uint_eq(entry->name_length, strlen(list->m->names[name]));
    ck_assert(memcmp(entry->name, list->m->names[name], entry->name_length) == 0);
    ck_assert_uint_eq(entry->ino, d->ino[name]);
    d->visits[name]++;
    return true;
}

/* Lists up to `room` entries more; at the end every name that was there all the time must have been
 * seen once. */
static void model_list(struct model *m, struct model_dir *d, uint32_t room) {
    struct listing list = {m, d, room, 0};

    if (d->cookie == 0) {
        for (int i = 0; i < NAMES; i++)
            d->expected[i] = d->ino[i] != 0;
        memset(d->visits, 0, sizeof(d->visits));
    }
    ck_assert_int_eq(volume_readdir(d->dir, d->cookie, list_one, &list), 0);
    if (list.room == 0)
        return;
    for (int i = 0; i < NAMES; i++)
        if (d->expected[i])
            ck_assert_msg(d->visits[i] == 1, "%s was listed %d times", m->names[i], d->visits[i]);
    d->cookie = 0;
}

static void model_list_all(struct model *m) {
    for (int i = 0; i < DIRS; i++) {
        m->dirs[i].cookie = 0;
        struct listing list = {m, &m->dirs[i], UINT32_MAX, 0};
        ck_assert_int_eq(volume_readdir(m->dirs[i].dir, 0, list_one, &list), 0);
        ck_assert_uint_eq(list.seen, m->dirs[i].count + 2);
        m->dirs[i].cookie = 0;
    }
}

static void model_step(struct model *m, uint32_t growth) {
    struct model_dir *d = &m->dirs[pick(m, DIRS)];
    int name = pick(m, NAMES);
    uint64_t what = pick(m, 100);

    if (what < growth)
        model_create(m, d, name);
    else if (what < 50)
        model_remove(m, d, name);
    else if (what < 70)
        model_rename(m, d, name);
    else if (what < 90)
        model_lookup(m, d, name);
    else
        model_list(m, d, 1 + pick(m, 100));
}

static void model_open_dirs(struct model *m) {
    static const char *const names[DIRS] = {"first", "second", "third"};

    for (int i = 0; i < DIRS; i++) {
        struct inode *dir;
        int rc = volume_lookup(m->image.root, names[i], strlen(names[i]), &dir);
        m->dirs[i].dir = rc == 0 ? dir : make_dir(m->image.root, names[i]);
        m->is_dir[m->dirs[i].dir->ino] = true;
    }
}

static void model_close_dirs(struct model *m) {
    for (int i = 0; i < DIRS; i++)
        volume_put(m->dirs[i].dir, 1);
}

static const char *const random_options[] = {
    "block_size=1024,hash=half_md4",
    "block_size=1024,hash=legacy",
    "block_size=1024,hash=tea",
    "block_size=2048",
    "block_size=4096,inode_size=256",
    "block_size=1024,features=^dir_index",
    "block_size=4096,features=^dir_index",
};
#define RANDOM_OPTIONS ((int)(sizeof(random_options) / sizeof(random_options[0])))

START_TEST(random_changes) {
    struct model *m = &model;
    char options[128];

    memset(m, 0, sizeof(*m));
    m->random = fixture_seed(random_options[_i]);
    snprintf(options, sizeof(options), "%s,inodes=20000", random_options[_i]);
    image_create(&m->image, 64 * MIB, options);
    model_names(m);
    model_open_dirs(m);
    for (int round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 6000 * fixture_factor(); i++)
            model_step(m, round % 2 == 0 ? 45 : 15);
        model_list_all(m);
        model_close_dirs(m);
        image_unmount(&m->image);
        ck_assert(image_clean(&m->image));
        image_mount(&m->image);
        model_open_dirs(m);
        model_list_all(m);
    }
    model_close_dirs(m);
    image_unmount(&m->image);
    ck_assert_str_eq(m->image.message, "");
    image_destroy(&m->image);
}
END_TEST

/* --- large directories --- */

static int64_t cpu_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static void long_name(char *name, int number, uint32_t length) {
    int digits = snprintf(name, NAME_LENGTH_MAX + 1, "%07d", number);

    if ((uint32_t)digits < length) {
        memset(name + digits, 'x', length - digits);
        name[length] = '\0';
    }
}

static bool count_one(void *context, const struct dir_entry *entry) {
    (void)entry;
    ++*(int *)context;
    return true;
}

static const struct large {
    const char *options;
    uint32_t name_length;
    int count;
} large_cases[] = {
    {"block_size=1024,inodes=110000", 12, 100000},
    {"block_size=4096,inodes=110000", 12, 100000},
    {"block_size=4096,inodes=110000", 255, 100000},
    {"block_size=4096,inodes=10000,features=^dir_index", 40, 5000},
};

START_TEST(large_directory) {
    const struct large *large = &large_cases[_i];
    char name[NAME_LENGTH_MAX + 1];
    struct image image;
    uint64_t ino;
    int listed = 0;

    image_create(&image, 256 * MIB, large->options);
    struct inode *dir = make_dir(image.root, "large");
    int64_t start = cpu_ns();
    for (int i = 0; i < large->count; i++) {
        long_name(name, i, large->name_length);
        ck_assert_int_eq(make(dir, name, S_IFREG | 0644, &ino), 0);
    }
    int64_t created = cpu_ns();
    for (int i = 0; i < large->count; i++) {
        long_name(name, i, large->name_length);
        ck_assert_int_eq(ext_dir_find(dir, name, strlen(name), &ino), 0);
    }
    int64_t found = cpu_ns();
    ck_assert_int_eq(volume_readdir(dir, 0, count_one, &listed), 0);
    int64_t walked = cpu_ns();
    ck_assert_int_eq(listed, large->count + 2);
    printf("%s, names of %u: create %lld, find %lld, list %lld ns each; %llu bytes\n",
           large->options, large->name_length, (long long)(created - start) / large->count,
           (long long)(found - created) / large->count, (long long)(walked - found) / large->count,
           (unsigned long long)dir->size);
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));

    image_mount(&image);
    ck_assert_int_eq(volume_lookup(image.root, "large", 5, &dir), 0);
    for (int i = 0; i < large->count; i += 2) {
        long_name(name, i, large->name_length);
        ck_assert_int_eq(volume_unlink(dir, name, strlen(name)), 0);
    }
    ck_assert_int_eq(volume_rmdir(image.root, "large", 5), -ENOTEMPTY);
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));
    image_destroy(&image);
}
END_TEST

/* --- names of one hash --- */

#define CANDIDATES 1000000
#define PAIRS_MAX  500

/* A hash and the number whose name has it; sorts by hash. */
static int compare_candidates(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Numbers whose longest names have the same hash, in pairs. Returns how many numbers. */
static int find_collisions(int numbers[2 * PAIRS_MAX]) {
    static const uint32_t no_seed[4];
    static uint64_t candidates[CANDIDATES];
    char name[NAME_LENGTH_MAX + 1];
    int count = 0;

    for (int i = 0; i < CANDIDATES; i++) {
        uint32_t major, minor;
        long_name(name, i, 255);
        ext_hash_name(name, 255, EXT_HASH_LEGACY, no_seed, &major, &minor);
        candidates[i] = (uint64_t)major << 32 | (uint32_t)i;
    }
    qsort(candidates, CANDIDATES, sizeof(candidates[0]), compare_candidates);
    for (int i = 1; i < CANDIDATES && count < 2 * PAIRS_MAX; i++) {
        if (candidates[i] >> 32 == candidates[i - 1] >> 32) {
            numbers[count++] = (int)(uint32_t)candidates[i - 1];
            numbers[count++] = (int)(uint32_t)candidates[i];
        }
    }
    return count;
}

struct steps {
    uint64_t cookie;
    int seen; /* in all */
    bool one; /* in this call */
};

static bool step_one(void *context, const struct dir_entry *entry) {
    struct steps *steps = context;

    if (steps->one)
        return false;
    steps->one = true;
    steps->seen++;
    ck_assert_uint_gt(entry->cookie, steps->cookie);
    steps->cookie = entry->cookie;
    return true;
}

/* Leaves of three names: a pair is often divided between two. */
START_TEST(colliding_names) {
    static int numbers[2 * PAIRS_MAX];
    char name[NAME_LENGTH_MAX + 1];
    struct image image;
    struct steps steps = {0};
    uint64_t ino;
    int count = find_collisions(numbers);

    ck_assert_int_gt(count, 100);
    image_create(&image, 32 * MIB, "block_size=1024,inodes=3000,hash=legacy");
    struct inode *dir = make_dir(image.root, "pairs");
    for (int i = 0; i < count; i++) {
        long_name(name, numbers[(int64_t)i * 7919 % count], 255);
        int rc = make(dir, name, S_IFREG | 0644, &ino);
        ck_assert(rc == 0 || rc == -EEXIST); /* a triple gives one name twice */
    }
    for (int i = 0; i < count; i++) {
        long_name(name, numbers[i], 255);
        ck_assert_int_eq(look(dir, name, &ino), 0);
    }
    int listed = 0;
    ck_assert_int_eq(volume_readdir(dir, 0, count_one, &listed), 0);
    do {
        steps.one = false;
        ck_assert_int_eq(volume_readdir(dir, steps.cookie, step_one, &steps), 0);
    } while (steps.one);
    ck_assert_int_eq(steps.seen, listed);
    for (int i = 0; i < count; i += 2) {
        long_name(name, numbers[i], 255);
        ck_assert_int_eq(volume_unlink(dir, name, 255), 0);
        long_name(name, numbers[i + 1], 255);
        ck_assert_int_eq(look(dir, name, &ino), 0);
    }
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));
    image_destroy(&image);
}
END_TEST

/* With two levels of 1 KiB blocks and the longest names an index fills up before the volume does:
 * -ENOSPC, and nothing has changed. */
START_TEST(full_index) {
    char name[NAME_LENGTH_MAX + 1];
    struct image image;
    uint64_t ino, size;
    int count = 0, rc;

    image_create(&image, 128 * MIB, "block_size=1024,inodes=60000");
    struct inode *dir = make_dir(image.root, "large");
    do {
        size = dir->size;
        long_name(name, count, 255);
        rc = make(dir, name, S_IFREG | 0644, &ino);
    } while (rc == 0 && ++count < 60000);
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_eq(dir->size, size);
    ck_assert_int_gt(count, 15000);
    ck_assert_ptr_nonnull(strstr(image.message, "index is full"));
    ck_assert_int_eq(look(dir, name, &ino), -ENOENT);
    for (int i = 0; i < count; i++) {
        long_name(name, i, 255);
        ck_assert_int_eq(look(dir, name, &ino), 0);
    }
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));
    image_destroy(&image);
}
END_TEST

/* When the volume is full, a directory that cannot grow is left as it was. */
START_TEST(full_volume) {
    char name[NAME_LENGTH_MAX + 1];
    struct image image;
    uint64_t ino;
    int count = 0, rc;

    image_create(&image, 2 * MIB, "block_size=1024,inodes=8000");
    struct inode *dir = make_dir(image.root, "large");
    do {
        long_name(name, count, 100);
        rc = make(dir, name, S_IFREG | 0644, &ino);
    } while (rc == 0 && ++count < 8000);
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_int_gt(count, 100);
    ck_assert_int_eq(look(dir, name, &ino), -ENOENT);
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));
    image_destroy(&image);
}
END_TEST

/* --- damage --- */

#define DAMAGED_COUNT 200

/* Writes over bytes of the directory's block. */
static void damage(struct image *image, struct inode *dir, uint64_t logical, uint32_t at,
                   const void *bytes, size_t length) {
    uint64_t physical, run;

    ck_assert_int_eq(ext_bmap(dir, logical, &physical, &run), 0);
    volume_put(dir, 1);
    image_unmount(image);
    int fd = open(image->path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, bytes, length, physical * 1024 + at), (ssize_t)length);
    close(fd);
    image->message[0] = '\0';
    image_mount(image);
}

static struct inode *damaged_create(struct image *image) {
    char name[NAME_LENGTH_MAX + 1];
    uint64_t ino;

    image_create(image, 8 * MIB, "block_size=1024");
    struct inode *dir = make_dir(image->root, "damaged");
    for (int i = 0; i < DAMAGED_COUNT; i++) {
        long_name(name, i, 20);
        ck_assert_int_eq(make(dir, name, S_IFREG | 0644, &ino), 0);
    }
    return dir;
}

static const struct {
    uint32_t at; /* in block 0 */
    const char *bytes;
    size_t length;
    const char *message;
} index_damages[] = {
    {28, "\x09", 1, "hash version"},
    {29, "\x07", 1, "index header"},
    {30, "\x02", 1, "two levels"},
    {31, "\x01", 1, "flags"},
    {32, "\xFF\xFF", 2, "out of range"},
    {34, "\x00\x00", 2, "out of range"},
    {36, "\x00\x01\x00", 3, "no such block"},
};

/* An index that makes no sense: every name is still there, and the next insertion drops it. */
START_TEST(damaged_index) {
    char name[NAME_LENGTH_MAX + 1];
    struct image image;
    struct inode *dir = damaged_create(&image);
    uint64_t ino;
    int listed = 0;

    damage(&image, dir, 0, index_damages[_i].at, index_damages[_i].bytes, index_damages[_i].length);
    ck_assert_int_eq(volume_lookup(image.root, "damaged", 7, &dir), 0);
    ck_assert(dir->flags & EXT_INODE_INDEX);
    for (int i = 0; i < DAMAGED_COUNT; i++) {
        long_name(name, i, 20);
        ck_assert_int_eq(look(dir, name, &ino), 0);
    }
    ck_assert_ptr_nonnull(strstr(image.message, index_damages[_i].message));
    ck_assert_int_eq(volume_readdir(dir, 0, count_one, &listed), 0);
    ck_assert_int_eq(listed, DAMAGED_COUNT + 2);
    ck_assert_int_eq(make(dir, "another", S_IFREG | 0644, &ino), 0);
    ck_assert(!(dir->flags & EXT_INODE_INDEX));
    ck_assert_int_eq(look(dir, "another", &ino), 0);
    volume_put(dir, 1);
    image_unmount(&image);
    ck_assert(image_clean(&image));
    image_destroy(&image);
}
END_TEST

static const struct {
    uint64_t logical;
    uint32_t at;
    const char *bytes;
    size_t length;
    const char *message;
} leaf_damages[] = {
    {1, 4, "\x03\x00", 2, "multiple of 4"},
    {1, 4, "\xFC\x7F", 2, "beyond the block"},
    {1, 6, "\xFF", 1, "longer than it is"},
    {1, 0, "\xFF\xFF\xFF\x7F", 4, "out of range"},
    {1, 8, "/", 1, "slash"},
    {0, 0, "\x02\x00\x00\x00", 4, "directory itself"},
    {0, 20, "x", 1, "followed by"},
};

/* A block that is no chain of entries: an error that says where and why. */
START_TEST(damaged_block) {
    char name[NAME_LENGTH_MAX + 1], where[64];
    struct image image;
    struct inode *dir = damaged_create(&image);
    uint64_t ino;
    int failed = 0, count = 0;

    snprintf(where, sizeof(where), "directory inode %llu, block %llu", (unsigned long long)dir->ino,
             (unsigned long long)leaf_damages[_i].logical);
    damage(&image, dir, leaf_damages[_i].logical, leaf_damages[_i].at, leaf_damages[_i].bytes,
           leaf_damages[_i].length);
    ck_assert_int_eq(volume_lookup(image.root, "damaged", 7, &dir), 0);
    for (int i = 0; i < DAMAGED_COUNT; i++) {
        long_name(name, i, 20);
        int rc = look(dir, name, &ino);
        ck_assert(rc == 0 || rc == -EUCLEAN);
        failed += rc != 0;
    }
    ck_assert_int_gt(failed, 0);
    ck_assert_ptr_nonnull(strstr(image.message, where));
    ck_assert_ptr_nonnull(strstr(image.message, leaf_damages[_i].message));
    ck_assert_int_eq(volume_readdir(dir, 0, count_one, &count), -EUCLEAN);
    volume_put(dir, 1);
    image_unmount(&image);
    image_destroy(&image);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_dir");
    TCase *tests = tcase_create("directories");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, random_changes, 0, RANDOM_OPTIONS);
    tcase_add_loop_test(tests, large_directory, 0, sizeof(large_cases) / sizeof(large_cases[0]));
    tcase_add_test(tests, colliding_names);
    tcase_add_test(tests, full_index);
    tcase_add_test(tests, full_volume);
    tcase_add_loop_test(tests, damaged_index, 0, sizeof(index_damages) / sizeof(index_damages[0]));
    tcase_add_loop_test(tests, damaged_block, 0, sizeof(leaf_damages) / sizeof(leaf_damages[0]));
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

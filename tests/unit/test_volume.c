/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/volume*.c, the rules that POSIX and Linux have for every filesystem, on every layout: set-id
 * bits, access times, whiteouts, holes, deletion.
 */
#include <errno.h>
#include <fcntl.h>

#include "tests/unit/fixture.h"

static struct fixture f;

static void start(int type, const char *options) {
    fixture_open(&f, fixture_types[type], 16 << 20, NULL, options, true);
}

static struct inode *make(const char *name, uint32_t mode) {
    const struct create_request request = {.mode = mode, .uid = 7, .gid = 8, .target = "target"};
    struct inode *inode;

    ck_assert_int_eq(volume_create(f.root, name, strlen(name), &request, &inode), 0);
    return inode;
}

/* --- set-id bits --- */

static void set_mode(struct inode *inode, uint32_t mode) {
    ck_assert_int_eq(volume_setattr(inode, SETATTR_MODE, &(struct attributes){.mode = mode}), 0);
}

static void change_contents(struct inode *inode, int how) {
    switch (how) {
    case 0:
        ck_assert_int_eq(volume_write(inode, "x", 1, 0), 1);
        break;
    case 1:
        ck_assert_int_eq(volume_truncate(inode, inode->size + 10), 0);
        break;
    default:
        ck_assert_int_eq(volume_fallocate(inode, 0, 0, inode->size + 10), 0);
    }
}

START_TEST(setid_and_contents) {
    start(_i, NULL);
    struct inode *file = make("file", S_IFREG);
    for (int how = 0; how < 3; how++) {
        set_mode(file, 06755);
        change_contents(file, how);
        ck_assert_uint_eq(file->mode & 07777, 0755);
        set_mode(file, 06745); /* not the group's to execute: that bit means something else */
        change_contents(file, how);
        ck_assert_uint_eq(file->mode & 07777, 02745);
    }
    /* A front end that knows the writer. */
    f.volume->setid_by_caller = true;
    set_mode(file, 06755);
    for (int how = 0; how < 3; how++)
        change_contents(file, how);
    ck_assert_uint_eq(file->mode & 07777, 06755);
    ck_assert_int_eq(
        volume_setattr(file, SETATTR_SIZE | SETATTR_KILL_SUID_SGID, &(struct attributes){0}), 0);
    ck_assert_uint_eq(file->mode & 07777, 0755);
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(setid_and_owners) {
    const struct attributes owner = {.uid = 5, .gid = 6, .mode = 06711};

    start(_i, NULL);
    struct inode *file = make("file", S_IFREG), *dir = make("dir", S_IFDIR);
    set_mode(file, 06755);
    ck_assert_int_eq(volume_setattr(file, SETATTR_UID, &owner), 0);
    ck_assert_uint_eq(file->mode & 07777, 0755);
    set_mode(file, 06755);
    ck_assert_int_eq(volume_setattr(file, SETATTR_GID, &owner), 0);
    ck_assert_uint_eq(file->mode & 07777, 0755);
    /* Who says both means both, and directories have no set-id programs in them. */
    ck_assert_int_eq(volume_setattr(file, SETATTR_UID | SETATTR_MODE, &owner), 0);
    ck_assert_uint_eq(file->mode & 07777, 06711);
    set_mode(dir, 06755);
    ck_assert_int_eq(volume_setattr(dir, SETATTR_UID | SETATTR_GID, &owner), 0);
    ck_assert_uint_eq(dir->mode & 07777, 06755);
    volume_put(file, 1);
    volume_put(dir, 1);
    fixture_close(&f);
}
END_TEST

/* --- access times --- */

static bool keep_nothing(void *context, const struct dir_entry *entry) {
    (void)context;
    (void)entry;
    return true;
}

static void use(struct inode *inode) {
    char bytes[16];

    if (S_ISREG(inode->mode))
        ck_assert_int_eq(volume_read(inode, bytes, sizeof(bytes), 0), 5);
    else if (S_ISDIR(inode->mode))
        ck_assert_int_eq(volume_readdir(inode, 0, keep_nothing, NULL), 0);
    else
        ck_assert_int_eq(volume_readlink(inode, bytes, sizeof(bytes)), 0);
}

/* Whether using the inode moves an access time of `atime` seconds, mtime and ctime being 1000. */
static bool moves(struct inode *inode, int64_t atime) {
    const struct attributes times = {
        .atime.seconds = atime, .mtime.seconds = 1000, .ctime.seconds = 1000};

    ck_assert_int_eq(volume_setattr(inode, SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME, &times),
                     0);
    use(inode);
    return inode->atime.seconds != atime;
}

static const struct {
    const char *options;
    bool file[3], dir[3]; /* an access time that is older; newer; newer, but a day ago */
} policies[] = {
    {"atime=relatime", {true, false, true}, {true, false, true}},
    {"atime=strictatime", {true, true, true}, {true, true, true}},
    {"atime=noatime", {false, false, false}, {false, false, false}},
    {"atime=strictatime,nodiratime", {true, true, true}, {false, false, false}},
};
#define POLICIES ((int)(sizeof(policies) / sizeof(*policies)))

START_TEST(access_times) {
    int policy = _i % POLICIES;

    start(_i / POLICIES, policies[policy].options);
    int64_t now = clock_calendar(&f.clock).seconds;
    const int64_t times[] = {500, now - 3600, now - 25 * 3600};
    struct inode *file = make("file", S_IFREG | 0644), *dir = make("dir", S_IFDIR | 0755),
                 *link = make("link", S_IFLNK | 0777);
    ck_assert_int_gt(now, 26 * 3600);
    ck_assert_int_eq(volume_write(file, "hello", 5, 0), 5);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(moves(file, times[i]), policies[policy].file[i]);
        ck_assert_int_eq(moves(link, times[i]), policies[policy].file[i]);
        ck_assert_int_eq(moves(dir, times[i]), policies[policy].dir[i]);
    }
    /* O_NOATIME. */
    char bytes[16];
    int64_t before = file->atime.seconds;
    ck_assert_int_eq(volume_read_noatime(file, bytes, sizeof(bytes), 0), 5);
    ck_assert_int_eq(file->atime.seconds, before);
    volume_put(file, 1);
    volume_put(dir, 1);
    volume_put(link, 1);
    fixture_close(&f);
}
END_TEST

/* --- whiteouts --- */

static struct inode *look(struct inode *dir, const char *name) {
    struct inode *inode;

    ck_assert_int_eq(volume_lookup(dir, name, strlen(name), &inode), 0);
    return inode;
}

static void expect_whiteout(struct inode *dir, const char *name) {
    struct inode *inode = look(dir, name);

    ck_assert_uint_eq(inode->mode, S_IFCHR);
    ck_assert_uint_eq(inode->rdev, 0);
    ck_assert_uint_eq(inode->nlink, 1);
    ck_assert_uint_eq(inode->uid, 7);
    ck_assert_uint_eq(inode->gid, 8);
    volume_put(inode, 1);
}

/* Onto nothing (0), a file (1), in the same directory or another (+2). */
START_TEST(whiteouts) {
    int kind = _i % 4;

    start(_i / 4, NULL);
    struct inode *other = make("other", S_IFDIR | 0755), *moved = make("moved", S_IFREG | 0644);
    struct inode *dir = kind & 2 ? other : f.root;
    if (kind & 1)
        ck_assert_int_eq(
            volume_create(dir, "target", 6, &(struct create_request){.mode = S_IFREG | 0644}, NULL),
            0);
    ck_assert_int_eq(volume_rename(f.root, "moved", 5, dir, "target", 6, RENAME_WHITEOUT), 0);
    struct inode *target = look(dir, "target");
    ck_assert_ptr_eq(target, moved);
    ck_assert_uint_eq(moved->nlink, 1);
    volume_put(target, 1);
    volume_put(moved, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    expect_whiteout(f.root, "moved");
    /* A directory leaves one like any other, and its parent has one directory less. */
    uint32_t links = f.root->nlink;
    struct inode *sub = make("sub", S_IFDIR | 0755);
    ck_assert_int_eq(volume_rename(f.root, "sub", 3, other, "sub", 3, RENAME_WHITEOUT), 0);
    expect_whiteout(f.root, "sub");
    ck_assert_uint_eq(f.root->nlink, links);
    ck_assert_uint_eq(other->nlink, 3);
    volume_put(sub, 1);
    volume_put(other, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(whiteouts_refused) {
    struct volume_usage before, after;

    start(_i, NULL);
    struct inode *a = make("a", S_IFREG | 0644), *b = make("b", S_IFREG | 0644);
    ck_assert_int_eq(volume_statfs(f.volume, &before), 0);
    ck_assert_int_eq(
        volume_rename(f.root, "a", 1, f.root, "b", 1, RENAME_WHITEOUT | RENAME_EXCHANGE), -EINVAL);
    ck_assert_int_eq(
        volume_rename(f.root, "a", 1, f.root, "b", 1, RENAME_WHITEOUT | RENAME_NOREPLACE), -EEXIST);
    ck_assert_int_eq(volume_rename(f.root, "c", 1, f.root, "b", 1, RENAME_WHITEOUT), -ENOENT);
    ck_assert_int_eq(volume_rename(f.root, "a", 1, f.root, "b", 1, 1u << 20), -EINVAL);
    /* Two names of one file: nothing happens. */
    ck_assert_int_eq(volume_link(a, f.root, "c", 1), 0);
    ck_assert_int_eq(volume_rename(f.root, "a", 1, f.root, "c", 1, RENAME_WHITEOUT), 0);
    struct inode *same = look(f.root, "a");
    ck_assert_ptr_eq(same, a);
    ck_assert_int_eq(volume_statfs(f.volume, &after), 0);
    ck_assert_uint_eq(before.inodes_free, after.inodes_free);
    volume_put(same, 1);
    volume_put(a, 1);
    volume_put(b, 1);
    fixture_close(&f);
}
END_TEST

/* --- projects ----------------------------------------------------------------------------------
 */

static int set_project(struct inode *inode, uint32_t project, uint32_t flags) {
    const struct attributes a = {.project = project, .flags = flags};

    return volume_setattr(inode, SETATTR_PROJECT | SETATTR_FLAGS, &a);
}

static struct inode *make_in(struct inode *dir, const char *name, uint32_t mode) {
    const struct create_request request = {.mode = mode, .target = "target"};
    struct inode *inode;

    ck_assert_int_eq(volume_create(dir, name, strlen(name), &request, &inode), 0);
    return inode;
}

START_TEST(projects) {
    start(_i, NULL);
    struct inode *file = make("file", S_IFREG), *dir = make("dir", S_IFDIR);
    bool has = f.volume->limits.projects;

    ck_assert_int_eq(set_project(file, 0, 0), 0);
    ck_assert_int_eq(set_project(dir, 5, INODE_PROJECT_INHERIT), has ? 0 : -EOPNOTSUPP);
    if (has) {
        struct inode *child = make_in(dir, "child", S_IFREG), *sub = make_in(dir, "sub", S_IFDIR);
        ck_assert_uint_eq(child->project, 5);
        ck_assert(!(child->flags & INODE_PROJECT_INHERIT));
        ck_assert_uint_eq(sub->project, 5);
        ck_assert(sub->flags & INODE_PROJECT_INHERIT);
        /* What belongs elsewhere does not come in: neither linked, nor moved, nor exchanged. */
        ck_assert_int_eq(volume_link(file, dir, "link", 4), -EXDEV);
        ck_assert_int_eq(volume_rename(f.root, "file", 4, dir, "file", 4, 0), -EXDEV);
        ck_assert_int_eq(volume_rename(dir, "child", 5, f.root, "file", 4, RENAME_EXCHANGE),
                         -EXDEV);
        ck_assert_int_eq(volume_rename(dir, "child", 5, sub, "child", 5, 0), 0);
        ck_assert_int_eq(volume_rename(sub, "child", 5, f.root, "child", 5, 0), 0);
        ck_assert_int_eq(set_project(file, 5, INODE_PROJECT_INHERIT), -EOPNOTSUPP);
        ck_assert_int_eq(set_project(file, 5, 0), 0);
        ck_assert_int_eq(volume_link(file, dir, "link", 4), 0);
        volume_put(child, 1);
        volume_put(sub, 1);
    }
    volume_put(file, 1);
    volume_put(dir, 1);
    fixture_close(&f);
}
END_TEST

/* --- large directories -------------------------------------------------------------------------
 */

struct listing {
    uint8_t *seen; /* of each number, how often */
    uint64_t cookie;
    unsigned budget; /* entries until the listing is interrupted */
};

static bool list_number(void *context, const struct dir_entry *entry) {
    struct listing *listing = context;
    char name[NAME_LENGTH_MAX + 1];

    if (listing->budget == 0)
        return false;
    listing->budget--;
    listing->cookie = entry->cookie;
    memcpy(name, entry->name, entry->name_length);
    name[entry->name_length] = '\0';
    if (name[0] == 'n')
        listing->seen[atoi(name + 1)]++;
    return true;
}

static void change_name(unsigned number, bool insert) {
    const struct create_request request = {.mode = S_IFREG};
    char name[16];
    uint32_t length = (uint32_t)snprintf(name, sizeof(name), "n%u", number);

    ck_assert_int_eq(insert ? volume_create(f.root, name, length, &request, NULL)
                            : volume_unlink(f.root, name, length),
                     0);
}

/* While a listing stands still, every other of the first names goes and as many are added: what is
 * there all the time is listed once. A million entries with LAYOUTFS_TEST_FACTOR=20. */
START_TEST(large_directory) {
    unsigned factor = fixture_factor(), count = 50000 * (factor < 20 ? factor : 20);
    struct listing listing = {.seen = calloc(2 * (size_t)count, 1)};
    uint64_t before;
    unsigned gone = 0;

    ck_assert_ptr_nonnull(listing.seen);
    const char *type = fixture_types[_i];
    fixture_open(&f, type, UINT64_C(2) << 30,
                 strncmp(type, "ext", 3) == 0 ? "inode_ratio=1024" : NULL, NULL, true);
    for (unsigned i = 0; i < count; i++)
        change_name(i, true);
    do {
        before = listing.cookie;
        listing.budget = 1000;
        ck_assert_int_eq(volume_readdir(f.root, before, list_number, &listing), 0);
        for (unsigned i = 0; i < 250 && gone + 1 < count / 2; i++, gone += 2) {
            change_name(gone, false);
            change_name(count + gone, true);
        }
    } while (listing.cookie != before);
    for (unsigned i = 0; i < 2 * count; i++) {
        bool stays = i < count && (i >= gone || i % 2);
        ck_assert_msg(listing.seen[i] == 1 || (!stays && listing.seen[i] == 0),
                      "number %u was listed %u times", i, listing.seen[i]);
    }
    for (unsigned i = 0; i < count; i++)
        change_name(i < gone && i % 2 == 0 ? count + i : i, false);
    free(listing.seen);
    fixture_close(&f);
}
END_TEST

/* --- files without a name ----------------------------------------------------------------------
 */

START_TEST(nameless) {
    const struct create_request request = {.mode = S_IFREG | 0640, .uid = 7, .gid = 8};
    struct volume_usage before, after;
    struct inode *inode, *found;

    start(_i, NULL);
    ck_assert_int_eq(volume_statfs(f.volume, &before), 0);
    /* It goes with its last reference. */
    ck_assert_int_eq(volume_create_nameless(f.root, &request, &inode), 0);
    ck_assert_uint_eq(inode->nlink, 0);
    ck_assert_int_eq(volume_write(inode, "text", 4, 0), 4);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    volume_put(inode, 1);
    ck_assert_int_eq(volume_statfs(f.volume, &after), 0);
    ck_assert_uint_eq(after.free, before.free);
    ck_assert_uint_eq(after.inodes_free, before.inodes_free);
    /* Or it gets names, and stays. */
    ck_assert_int_eq(volume_create_nameless(f.root, &request, &inode), 0);
    ck_assert_int_eq(volume_write(inode, "text", 4, 0), 4);
    ck_assert_int_eq(volume_link(inode, f.root, "a", 1), 0);
    ck_assert_int_eq(volume_link(inode, f.root, "b", 1), 0);
    ck_assert_int_eq(volume_link(inode, f.root, "b", 1), -EEXIST);
    ck_assert_uint_eq(inode->nlink, 2);
    volume_put(inode, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_lookup(f.root, "a", 1, &found), 0);
    ck_assert_uint_eq(found->nlink, 2);
    ck_assert_uint_eq(found->size, 4);
    /* What lost its last name gets none again. */
    ck_assert_int_eq(volume_unlink(f.root, "a", 1), 0);
    ck_assert_int_eq(volume_unlink(f.root, "b", 1), 0);
    ck_assert_int_eq(volume_link(found, f.root, "c", 1), -ENOENT);
    volume_put(found, 1);
    ck_assert_int_eq(
        volume_create_nameless(f.root, &(struct create_request){.mode = S_IFDIR}, &inode), -EINVAL);
    fixture_close(&f);
}
END_TEST

/* --- holes --- */

/* A page far from the others costs what one page costs, on every format that can hold it. */
START_TEST(far_apart) {
    static const uint64_t places[] = {
        0, 15 << 12, 16 << 12, UINT64_C(1) << 30, UINT64_C(1) << 44, UINT64_C(1) << 60};
    struct volume_usage before, after;
    uint64_t end = 0;
    int count = 0;

    start(_i, NULL);
    struct inode *file = make("sparse", S_IFREG | 0644);
    ck_assert_int_eq(volume_statfs(f.volume, &before), 0);
    for (; count < 6 && places[count] < f.volume->limits.file_size_max - 4096; count++) {
        ck_assert_int_eq(volume_write(file, &places[count], 8, places[count]), 8);
        end = places[count] + 8;
    }
    ck_assert_int_ge(count, 4);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_uint_eq(file->size, end);
    for (int i = 0; i < count; i++) {
        uint64_t found = 1, hole = places[i] + 4096;

        ck_assert_int_eq(volume_read(file, &found, 8, places[i]), 8);
        ck_assert_uint_eq(found, places[i]);
        ck_assert_int_eq(volume_read(file, &found, 8, places[i] + 4088), hole < end ? 8 : 0);
        ck_assert_int_eq(volume_seek(file, places[i], SEEK_DATA), places[i]);
        if (i == 1) /* the third is the second's neighbour */
            hole += 4096;
        ck_assert_int_eq(volume_seek(file, places[i], SEEK_HOLE), hole < end ? hole : end);
        if (i > 2)
            ck_assert_int_eq(volume_seek(file, places[i - 1] + 4096, SEEK_DATA), places[i]);
    }
    ck_assert_int_eq(
        volume_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8, UINT64_C(1) << 30),
        0);
    ck_assert_int_eq(volume_seek(file, 4096, SEEK_DATA), places[3]);
    ck_assert_int_eq(volume_truncate(file, 0), 0);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    ck_assert_int_eq(volume_statfs(f.volume, &after), 0);
    ck_assert_uint_eq(before.free, after.free);
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

/* --- deletion --- */

static struct {
    const struct layout *real;
    const struct inode *freed;
    int checked;
} spy;

static int spy_inode_free(struct inode *inode) {
    int error = spy.real->inode_free(inode);

    spy.freed = error ? NULL : inode;
    return error;
}

/* The last of a step, before others get the lock. */
static int spy_step_end(struct volume *volume) {
    if (spy.freed) {
        ck_assert(!spy.freed->dirty);
        spy.checked++;
    }
    spy.freed = NULL;
    return spy.real->step_end ? spy.real->step_end(volume) : 0;
}

/* Another thread's commit between the freeing of an inode and its end in the cache must not store
 * it: somebody else may have its number by then. */
START_TEST(freed_is_not_dirty) {
    start(_i, NULL);
    struct layout spying = *f.volume->layout;

    spy.real = f.volume->layout;
    spy.checked = 0;
    spying.inode_free = spy_inode_free;
    spying.step_end = spy_step_end;
    f.volume->layout = &spying;
    struct inode *file = make("file", S_IFREG | 0644);
    ck_assert_int_eq(volume_unlink(f.root, "file", 4), 0);
    ck_assert_int_eq(volume_write(file, "x", 1, 0), 1);
    ck_assert(file->dirty);
    volume_put(file, 1);
    ck_assert_int_eq(spy.checked, 1);
    f.volume->layout = spy.real;
    fixture_close(&f);
}
END_TEST

/* --- links --------------------------------------------------------------------------------------
 */

/* As many names of a file as Linux's driver of the type allows, and no more. */
START_TEST(links_of_a_file) {
    const struct {
        const char *type;
        uint32_t links;
    } cases[] = {{"ext2", 32000}, {"ext3", 65000}, {"ext4", 65000}, {"nilfs2", 32000}};
    char name[16];
    int error = 0;
    uint32_t links = 1;

    fixture_open(&f, cases[_i].type, 64 << 20, NULL, NULL, true);
    struct inode *file = make("file", S_IFREG | 0644);
    while (links <= cases[_i].links && !error) {
        int length = snprintf(name, sizeof(name), "%u", links);
        error = volume_link(file, f.root, name, (uint32_t)length);
        links += error ? 0 : 1;
    }
    ck_assert_int_eq(error, -EMLINK);
    ck_assert_uint_eq(links, cases[_i].links);
    ck_assert_uint_eq(file->nlink, links);
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("volume");
    TCase *tests = tcase_create("rules");

    tcase_add_loop_test(tests, setid_and_contents, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, setid_and_owners, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, access_times, 0, FIXTURE_TYPE_COUNT * POLICIES);
    tcase_add_loop_test(tests, whiteouts, 0, FIXTURE_TYPE_COUNT * 4);
    tcase_add_loop_test(tests, whiteouts_refused, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, projects, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, large_directory, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, links_of_a_file, 0, 4);
    tcase_add_loop_test(tests, nameless, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, far_apart, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, freed_is_not_dirty, 0, FIXTURE_TYPE_COUNT);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}

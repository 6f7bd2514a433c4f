/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: damaged images. A volume with every kind of structure is made once; then it is damaged in
 * thousands of ways, mounted, walked, changed, synced, unmounted and checked. Nothing may crash,
 * hang, or touch memory or sectors that are not its own (run under ASan and UBSan); every refusal
 * must come with a sentence.
 *
 * Where the structures lie is learnt by tracing the device while the sound volume is walked, so the
 * mutator knows no format: each request says what it is for. A mutant is named by its number: seed,
 * subject and number make it again (LAYOUTFS_TEST_SEED, LAYOUTFS_TEST_SUBJECT=type for its subjects
 * alone, and LAYOUTFS_TEST_MUTANT=number for one mutant of each).
 *
 * A format with checksums has them set again after most mutations, by the subject's `repair`: else
 * the code behind a checksum would never meet damage.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/subject.h"
#include "tests/unit/fixture.h"

#define MUTANTS_EACH   2600u /* of each subject; those of ext make more than 20,000 */
#define MUTANTS_LOGS   1700u /* where four trees are to be checked, and logs to be sealed again */
#define MUTANTS_TREES  280u  /* where what is damaged is mostly in use */
#define NAMES          200u  /* in the big directory: with 1 KiB blocks a tree of hashes */
#define NAMES_LOGS     60u   /* where it is a list: of some blocks, in each of four checkpoints */
#define SCATTERED      400u  /* extents: with 1 KiB blocks a tree two levels deep */
#define BATCH          200u  /* mutants a child process */
#define MUTANT_SECONDS 60u   /* more is a hang, even under a sanitizer on a busy machine */
#define WALK_DEPTH     12u
#define WALK_ENTRIES   4000u

struct subject {
    const char *type, *mkfs_options;
    uint64_t size;
    unsigned mutants; /* 0: MUTANTS_EACH */
    unsigned names;   /* 0: NAMES */
    bool unclean;     /* as a power cut leaves it: what was changed last is in the journal alone */
    bool scattered;   /* with a file of many extents */
    bool moves;       /* blocks do not keep their places: most that were written mean nothing now */
    /* Of the format; each may be NULL: subject.h. */
    void (*repair)(uint8_t *image, uint64_t size);
    uint8_t *(*place)(uint8_t *block, uint64_t *random, uint32_t *room);
    void (*fill)(struct volume *volume);
    void (*leave_log)(uint8_t *image);
};

#define REISER4_SUBJECT                                                                            \
    .size = UINT64_C(4) << 20, .mutants = MUTANTS_TREES, .moves = true, .repair = reiser4_repair,  \
    .place = reiser4_place, .fill = reiser4_fill

static const struct subject subjects[] = {
    {.type = "ext2",
     .mkfs_options = "block_size=1024,inode_size=128,inode_ratio=4096",
     .size = UINT64_C(2) << 20},
    {.type = "ext2",
     .mkfs_options = "block_size=1024,inode_size=256,inode_ratio=4096",
     .size = UINT64_C(2) << 20},
    {.type = "ext2",
     .mkfs_options = "block_size=4096,inode_size=256,inode_ratio=8192",
     .size = UINT64_C(3) << 20},
    {.type = "ext2",
     .mkfs_options = "block_size=1024,features=none,inode_ratio=4096",
     .size = UINT64_C(2) << 20},
    {.type = "ext3",
     .mkfs_options = "block_size=1024,inode_ratio=4096",
     .size = UINT64_C(3) << 20,
     .unclean = true},
    {.type = "ext4",
     .mkfs_options = "block_size=1024,inode_ratio=4096,has_journal=off",
     .size = UINT64_C(3) << 20,
     .scattered = true,
     .repair = ext_repair},
    {.type = "ext4",
     .mkfs_options = "block_size=1024,inode_ratio=4096",
     .size = UINT64_C(4) << 20,
     .unclean = true,
     .scattered = true,
     .repair = ext_repair},
    {.type = "ext4",
     .mkfs_options = "block_size=1024,inode_ratio=4096,"
                     "features=uninit_bg:^metadata_csum:^64bit:^resize_inode:meta_bg",
     .size = UINT64_C(4) << 20,
     .scattered = true,
     .repair = ext_repair},
    {.type = "nilfs2",
     .mkfs_options = "block_size=1024,blocks_per_segment=64",
     .size = UINT64_C(6) << 20,
     .mutants = MUTANTS_LOGS,
     .names = NAMES_LOGS,
     .scattered = true,
     .repair = nilfs_repair},
    {.type = "nilfs2",
     .mkfs_options = "block_size=1024,blocks_per_segment=128",
     .size = UINT64_C(6) << 20,
     .mutants = MUTANTS_LOGS,
     .names = NAMES_LOGS,
     .unclean = true,
     .repair = nilfs_repair},
    {.type = "nilfs2",
     .mkfs_options = "block_size=4096,blocks_per_segment=16",
     .size = UINT64_C(8) << 20,
     .mutants = MUTANTS_LOGS,
     .names = NAMES_LOGS,
     .unclean = true,
     .scattered = true,
     .repair = nilfs_repair},
    {.type = "reiser4", .mkfs_options = "node=node40", .scattered = true, REISER4_SUBJECT},
    {.type = "reiser4",
     .mkfs_options = "node=node40,hash=deg_hash",
     .unclean = true,
     .leave_log = reiser4_leave_log,
     REISER4_SUBJECT},
    {.type = "reiser4",
     .mkfs_options = "node=node41,fibration=lexic_fibre",
     .unclean = true,
     .scattered = true,
     .leave_log = reiser4_leave_log,
     REISER4_SUBJECT},
};
#define SUBJECT_COUNT ((int)(sizeof(subjects) / sizeof(*subjects)))

/* --- a device that is one exact piece of memory, so that ASan sees every stray byte -------------
 */

struct flat {
    struct device device;
    uint8_t *bytes; /* borrowed */
};

static int flat_submit(struct device *device, const struct device_request *request) {
    uint8_t *at = ((struct flat *)device)->bytes + request->offset;

    for (int i = 0; i < request->vector_count; i++) {
        const struct iovec *piece = &request->vector[i];
        if (request->operation == DEVICE_READ)
            memcpy(piece->iov_base, at, piece->iov_len);
        else
            memcpy(at, piece->iov_base, piece->iov_len);
        at += piece->iov_len;
    }
    return 0;
}

static void flat_close(struct device *device) {
    free(device);
}

static const struct device_operations flat_operations = {
    .name = "flat", .submit = flat_submit, .close = flat_close};

static struct device *flat_open(uint8_t *bytes, uint64_t size, struct clock *clock,
                                const struct log *log) {
    struct flat *flat = calloc(1, sizeof(*flat));

    ck_assert_ptr_nonnull(flat);
    flat->device = (struct device){
        .operations = &flat_operations, .clock = clock, .log = log, .size = size, .name = "image"};
    flat->bytes = bytes;
    return &flat->device;
}

/* --- where the structures are ---------------------------------------------------------------- */

struct region {
    uint64_t offset;
    uint32_t length;
};

struct map {
    struct region *regions[PURPOSE_COUNT]; /* owned */
    unsigned count[PURPOSE_COUNT];
};

static void map_add(void *context, const struct trace_record *record) {
    struct map *map = context;
    enum purpose purpose = record->purpose;

    if (purpose == PURPOSE_DATA)
        return;
    unsigned n = map->count[purpose]++;
    map->regions[purpose] = realloc(map->regions[purpose], (n + 1) * sizeof(struct region));
    ck_assert_ptr_nonnull(map->regions[purpose]);
    map->regions[purpose][n] = (struct region){record->offset, record->length};
}

/* --- the sound volume ------------------------------------------------------------------------ */

static struct inode *make(struct inode *dir, const char *name, uint32_t mode, const char *target) {
    struct create_request request = {.mode = mode, .target = target};
    struct inode *inode = NULL;

    ck_assert_int_eq(volume_create(dir, name, (uint32_t)strlen(name), &request, &inode), 0);
    return inode;
}

static void fill_file(struct inode *inode, uint64_t offset, size_t length) {
    char *bytes = malloc(length);

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', length);
    ck_assert_int_eq(volume_write(inode, bytes, length, offset), (int64_t)length);
    free(bytes);
}

static void fill_directory(struct inode *dir, unsigned count) {
    char name[64];

    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "a-name-that-takes-some-room-%u", i);
        volume_put(make(dir, name, S_IFREG | 0644, NULL), 1);
    }
}

/* Every structure: small and big directories, all levels of the map, both kinds of symlinks,
 * devices, attributes in the inode and outside. */
static void fill_volume(struct volume *volume, const struct subject *subject) {
    struct inode *root, *inode;
    char value[300];

    memset(value, 'v', sizeof(value));
    ck_assert_int_eq(volume_root(volume, &root), 0);
    struct inode *dir = make(root, "small", S_IFDIR | 0755, NULL);
    inode = make(dir, "below", S_IFDIR | 0755, NULL);
    volume_put(inode, 1);
    fill_directory(dir, 5);
    volume_put(dir, 1);
    dir = make(root, "big", S_IFDIR | 0755, NULL);
    fill_directory(dir, subject->names ? subject->names : NAMES);
    volume_put(dir, 1);
    inode = make(root, "file", S_IFREG | 0644, NULL);
    fill_file(inode, 0, 400000);
    if (volume->layout->xattr_set) {
        ck_assert_int_eq(volume_setxattr(inode, "user.short", value, 10, 0), 0);
        ck_assert_int_eq(volume_setxattr(inode, "user.long", value, sizeof(value), 0), 0);
    }
    volume_put(inode, 1);
    inode = make(root, "sparse", S_IFREG | 0600, NULL);
    fill_file(inode, 0, 100);
    fill_file(inode, UINT64_C(300) << 10, 5000);
    fill_file(inode, UINT64_C(80) << 20, 5000);
    volume_put(inode, 1);
    inode = make(root, "scattered", S_IFREG | 0644, NULL);
    for (unsigned i = 0; subject->scattered && i < SCATTERED; i++)
        fill_file(inode, (uint64_t)i * 8192, 100);
    volume_put(inode, 1);
    value[200] = '\0';
    volume_put(make(root, "fast", S_IFLNK | 0777, "target"), 1);
    volume_put(make(root, "slow", S_IFLNK | 0777, value), 1);
    volume_put(make(root, "device", S_IFBLK | 0600, NULL), 1);
    volume_put(root, 1);
}

/* Checkpoints, of which one is kept, where there can be such. */
static void fill_history(struct volume *volume) {
    struct inode *root;
    uint64_t number = 0;

    if (!volume->layout->checkpoint_keep)
        return;
    ck_assert_int_eq(volume_root(volume, &root), 0);
    for (unsigned i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof(name), "history-%u", i);
        struct inode *inode = make(root, name, S_IFREG | 0644, NULL);
        fill_file(inode, 0, 2000);
        volume_put(inode, 1);
        ck_assert_int_eq(volume_sync(volume), 0);
        if (i % 2)
            ck_assert_int_eq(volume_checkpoint_create(volume, &number), 0);
    }
    volume_put(root, 1);
}

/* --- using a volume that may be damaged ------------------------------------------------------ */

struct walk {
    struct volume *volume;
    unsigned entries;
    uint64_t random;
    char names[16][NAME_LENGTH_MAX];
    uint32_t lengths[16];
    unsigned count;
    uint64_t cookie;
};

static bool collect(void *context, const struct dir_entry *entry) {
    struct walk *walk = context;

    if (walk->count == 16)
        return false;
    ck_assert_uint_le(entry->name_length, NAME_LENGTH_MAX);
    memcpy(walk->names[walk->count], entry->name, entry->name_length);
    walk->lengths[walk->count++] = entry->name_length;
    walk->cookie = entry->cookie;
    return true;
}

static void read_around(struct inode *inode) {
    static const uint64_t places[] = {0, 4096, 12 << 10, 300 << 10, UINT64_C(80) << 20};
    char bytes[8192];

    for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
        volume_read(inode, bytes, sizeof(bytes), places[i]);
    volume_seek(inode, 0, SEEK_HOLE);
    volume_seek(inode, 5000, SEEK_DATA);
}

static void change(struct walk *walk, struct inode *dir, struct inode *inode) {
    struct attributes a = {.size = fixture_random(&walk->random) % 500000};
    struct create_request request = {.mode = S_IFREG | 0644};
    char value[500] = "value";
    json_t *object = NULL;

    switch (fixture_random(&walk->random) % 10) {
    case 0:
        volume_setattr(inode, SETATTR_SIZE, &a);
        break;
    case 1:
        volume_write(inode, value, sizeof(value), a.size);
        break;
    case 2:
        volume_setxattr(inode, "user.new", value, fixture_random(&walk->random) % 500, 0);
        break;
    case 3:
        volume_removexattr(inode, "user.long");
        break;
    case 4:
        volume_create(dir, "created", 7, &request, NULL);
        break;
    case 5:
        volume_link(inode, dir, "linked", 6);
        break;
    case 6:
        volume_rename(dir, walk->names[0], walk->lengths[0], dir, "renamed", 7, 0);
        break;
    case 7:
        if (volume_explain(inode, &object) == 0)
            json_decref(object);
        break;
    default:
        if (volume_unlink(dir, walk->names[0], walk->lengths[0]) == -EISDIR)
            volume_rmdir(dir, walk->names[0], walk->lengths[0]);
    }
}

static void visit(struct walk *walk, struct inode *dir, unsigned depth);

static void visit_child(struct walk *walk, struct inode *dir, struct inode *inode, unsigned depth) {
    struct attributes a;
    char target[5000], list[4096];

    volume_getattr(inode, &a);
    volume_readlink(inode, target, sizeof(target));
    volume_listxattr(inode, list, sizeof(list));
    volume_getxattr(inode, "user.long", list, sizeof(list));
    if (S_ISREG(a.mode))
        read_around(inode);
    if (S_ISDIR(a.mode) && depth < WALK_DEPTH)
        visit(walk, inode, depth + 1);
    if (fixture_random(&walk->random) % 8 == 0)
        change(walk, dir, inode);
}

static void visit(struct walk *walk, struct inode *dir, unsigned depth) {
    struct walk *piece = malloc(sizeof(*piece)); /* names of this level */
    uint64_t cookie = 0;

    ck_assert_ptr_nonnull(piece);
    *piece = *walk;
    do {
        piece->count = 0;
        piece->cookie = cookie;
        if (volume_readdir(dir, cookie, collect, piece) || piece->cookie == cookie)
            break;
        cookie = piece->cookie;
        for (unsigned i = 0; i < piece->count && walk->entries < WALK_ENTRIES; i++) {
            struct inode *inode;
            uint32_t length = piece->lengths[i];
            bool dots = piece->names[i][0] == '.' && length <= 2;
            walk->entries++;
            if (dots || volume_lookup(dir, piece->names[i], length, &inode))
                continue;
            memcpy(walk->names[0], piece->names[i], length);
            walk->lengths[0] = length;
            visit_child(walk, dir, inode, depth);
            volume_put(inode, 1);
        }
    } while (walk->entries < WALK_ENTRIES);
    free(piece);
}

static void use_history(struct volume *volume, uint64_t random) {
    struct checkpoint list[8];
    int64_t count = volume_checkpoint_list(volume, random % 2 ? 0 : random, list, 8);

    ck_assert_int_le(count, 8);
    if (count <= 0)
        return;
    uint64_t number = list[random % (uint64_t)count].number;
    if (random % 3 == 0)
        volume_checkpoint_keep(volume, number, random % 2);
    else if (random % 3 == 1)
        volume_checkpoint_delete(volume, number);
}

static void use_volume(struct volume *volume, uint64_t random) {
    struct walk *walk = calloc(1, sizeof(*walk));
    struct volume_usage usage;
    struct inode *root;

    ck_assert_ptr_nonnull(walk);
    walk->volume = volume;
    walk->random = random;
    volume_statfs(volume, &usage);
    if (volume_root(volume, &root) == 0) {
        visit(walk, root, 0);
        volume_put(root, 1);
    }
    use_history(volume, random);
    for (int kind = DESCRIBE_SUPER; kind <= DESCRIBE_MAP; kind++) {
        json_t *object = NULL;
        if (volume_describe(volume, (enum describe_kind)kind, fixture_random(&random) % 64,
                            &object) == 0)
            json_decref(object);
    }
    free(walk);
}

/* --- damage ---------------------------------------------------------------------------------- */

static void damage_field(uint8_t *at, uint32_t room, uint64_t *random) {
    static const uint64_t values[] = {0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF};
    uint32_t width = UINT32_C(1) << fixture_random(random) % 3;
    uint64_t value = values[fixture_random(random) % (sizeof(values) / sizeof(*values))];

    if (fixture_random(random) % 3 == 0)
        value = fixture_random(random) >> fixture_random(random) % 64;
    for (uint32_t i = 0; i < width && i < room; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* One bit, or a field. */
static void damage_place(uint8_t *at, uint32_t room, uint64_t *random) {
    if (fixture_random(random) % 3 == 0)
        at[0] ^= (uint8_t)(1u << fixture_random(random) % 8);
    else
        damage_field(at, room, random);
}

static void damage_region(const struct subject *subject, uint8_t *image, const struct map *map,
                          enum purpose purpose, uint64_t *random) {
    const struct region *all = map->regions[purpose];
    const struct region *region = &all[fixture_random(random) % map->count[purpose]];
    const struct region *other = &all[fixture_random(random) % map->count[purpose]];
    /* Fields are aligned, and most of the sense of a structure lies near its start. */
    uint32_t reach = fixture_random(random) % 2 ? region->length : 128;
    uint32_t at =
        (uint32_t)(fixture_random(random) % (reach < region->length ? reach : region->length));
    uint32_t length = region->length < other->length ? region->length : other->length, room;
    uint8_t *place = subject->place && region->length >= 4096 && fixture_random(random) % 4
                         ? subject->place(image + region->offset, random, &room)
                         : NULL;

    if (place) {
        damage_place(place, room, random);
        return;
    }
    switch (fixture_random(random) % 12) {
    case 0:
        memset(image + region->offset, 0, region->length);
        break;
    case 1:
        memmove(image + region->offset, image + other->offset, length);
        break;
    case 2:
        memset(image + region->offset + at, 0xFF, region->length - at);
        break;
    case 3:
    case 4:
    case 5:
        image[region->offset + at] ^= (uint8_t)(1u << fixture_random(random) % 8);
        break;
    default:
        at &= ~3u;
        damage_field(image + region->offset + at, region->length - at, random);
    }
}

/* Damages the image in one to four places; returns the size that is left of it. */
static uint64_t damage(const struct subject *subject, uint8_t *image, const struct map *map,
                       uint64_t *random) {
    uint64_t size = subject->size;
    unsigned places = 1 + (unsigned)(fixture_random(random) % 4);

    if (fixture_random(random) % 50 == 0) /* cut off */
        return (fixture_random(random) % size) & ~(uint64_t)(DEVICE_SECTOR - 1);
    if (fixture_random(random) % 200 == 0) { /* nothing but noise */
        for (uint64_t i = 0; i < size; i++)
            image[i] = (uint8_t)fixture_random(random);
        return size;
    }
    while (places > 0) {
        enum purpose purpose = (enum purpose)(fixture_random(random) % PURPOSE_COUNT);
        if (map->count[purpose] == 0)
            continue;
        damage_region(subject, image, map, purpose, random);
        places--;
    }
    return size;
}

/* --- one mutant ------------------------------------------------------------------------------ */

struct voice {
    unsigned sentences;
};

static void hear(void *context, enum log_level level, const char *text) {
    ((struct voice *)context)->sentences += level <= LOG_LEVEL_WARNING && *text;
}

static void ignore_finding(void *context, enum check_severity severity, const char *text) {}

static void run_mutant(const struct subject *subject, uint8_t *image, uint64_t size,
                       uint64_t random) {
    struct voice voice = {0};
    struct log log = {.emit = hear, .context = &voice, .threshold = LOG_LEVEL_WARNING};
    struct clock clock;
    struct volume *volume;
    const struct layout *layout;
    const struct layout_type *type;

    clock_init_virtual(&clock, NULL);
    ck_assert_int_eq(layout_find(subject->type, &layout, &type), 0);
    struct device *device = flat_open(image, size, &clock, &log);
    struct check_report report = {
        .finding = ignore_finding, .repair = random % 4 == 0, .contents = random % 3 == 0};
    layout->check(device, &log, &report);

    voice.sentences = 0;
    struct volume_config config = {
        .device = device, .clock = &clock, .log = &log, .read_only = random % 5 == 0};
    if (layout->checkpoint_list && random % 7 == 0)
        config.options = random % 2 ? "cp=3" : "history";
    int error = volume_open(&config, &volume);
    if (error) {
        ck_assert_msg(voice.sentences > 0, "refused with %d but without a sentence", error);
        device_close(device);
        return;
    }
    use_volume(volume, random);
    if (random % 3 == 0) { /* what was changed is read again */
        volume_drop_caches(volume);
        use_volume(volume, random + 1);
    }
    volume_close(volume);
}

struct progress { /* shared with the child */
    unsigned mutant;
};

static void run_batch(const struct subject *subject, const uint8_t *sound, const struct map *map,
                      uint64_t seed, unsigned first, unsigned last, struct progress *progress) {
    uint8_t *scratch = malloc(subject->size);

    ck_assert_ptr_nonnull(scratch);
    for (unsigned n = first; n < last; n++) {
        uint64_t random = seed + (uint64_t)n * 7919;
        progress->mutant = n;
        alarm(MUTANT_SECONDS);
        memcpy(scratch, sound, subject->size);
        uint64_t size = damage(subject, scratch, map, &random);
        if (subject->repair && fixture_random(&random) % 8 != 0)
            subject->repair(scratch, size);
        if (size == subject->size) {
            run_mutant(subject, scratch, size, random);
            continue;
        }
        /* Exactly as long as what is left, so that the sanitizer guards its end. */
        uint8_t *image = malloc(size ? size : 1);
        ck_assert_ptr_nonnull(image);
        memcpy(image, scratch, size);
        run_mutant(subject, image, size, random);
        free(image);
    }
    free(scratch);
}

/* Data whose place no metadata know yet, where the format has such. */
static void overwrite(struct inode *root) {
    struct inode *inode;

    ck_assert_int_eq(volume_lookup(root, "file", 4, &inode), 0);
    for (unsigned i = 0; i < 3; i++) {
        fill_file(inode, i * 40000, 5000);
        ck_assert_int_eq(volume_fsync(inode, true), 0);
    }
    volume_put(inode, 1);
}

/* What a power cut leaves when all of this has been committed, and none of it is at home. */
static void change_and_cut(struct volume *volume, const uint8_t *image, uint8_t *after,
                           uint64_t size) {
    struct inode *root, *inode;

    ck_assert_int_eq(volume_root(volume, &root), 0);
    for (unsigned i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "late-%u", i);
        inode = make(root, name, i % 2 ? S_IFREG | 0644 : S_IFDIR | 0755, NULL);
        if (i % 2)
            fill_file(inode, 0, 3000);
        volume_put(inode, 1);
        if (i == 3) /* freed blocks are revoked */
            ck_assert_int_eq(volume_rmdir(root, "late-0", 6), 0);
        ck_assert_int_eq(volume_sync(volume), 0);
    }
    overwrite(root);
    inode = make(root, "nameless", S_IFREG | 0644, NULL);
    ck_assert_int_eq(volume_unlink(root, "nameless", 8), 0);
    ck_assert_int_eq(volume_sync(volume), 0);
    memcpy(after, image, size);
    volume_put(inode, 1);
    volume_put(root, 1);
}

/* Where what is there now lies. */
static void map_again(const struct subject *subject, uint8_t *image, struct map *map) {
    struct log log = log_to_stderr("hostile", LOG_LEVEL_WARNING);
    struct check_report report = {.finding = ignore_finding};
    struct clock clock;
    struct volume *volume;
    struct device *device;

    memset(map->count, 0, sizeof(map->count));
    clock_init_virtual(&clock, NULL);
    ck_assert_int_eq(
        device_open_trace(flat_open(image, subject->size, &clock, &log), map_add, map, &device), 0);
    struct volume_config config = {
        .type = subject->type, .device = device, .clock = &clock, .log = &log, .read_only = true};
    ck_assert_int_eq(volume_open(&config, &volume), 0);
    use_volume(volume, 1);
    ck_assert_int_eq(volume->layout->check(device, &log, &report), 0);
    ck_assert_uint_eq(report.wrong, 0);
    ck_assert_int_eq(volume_close(volume), 0);
}

static uint8_t *make_sound(const struct subject *subject, struct map *map) {
    uint8_t *image = calloc(1, subject->size), *after = malloc(subject->size);
    struct log log = log_to_stderr("hostile", LOG_LEVEL_WARNING);
    struct clock clock;
    struct options options;
    struct volume *volume;
    const struct layout *layout;
    const struct layout_type *type;
    struct device *device;

    ck_assert(image && after);
    clock_init_virtual(&clock, NULL);
    ck_assert_int_eq(layout_find(subject->type, &layout, &type), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &log), 0);
    ck_assert_int_eq(options_parse(&options, type->mkfs_options), 0);
    ck_assert_int_eq(options_parse(&options, subject->mkfs_options), 0);
    ck_assert_int_eq(options_parse(&options, "uuid=5a0e1d6c-8c2e-4c58-9d7b-3f0d1c2b4a69"), 0);
    ck_assert_int_eq(
        device_open_trace(flat_open(image, subject->size, &clock, &log), map_add, map, &device), 0);
    ck_assert_int_eq(layout_format(subject->type, device, &options), 0);
    options_free(&options);
    struct volume_config config = {.device = device, .clock = &clock, .log = &log};
    ck_assert_int_eq(volume_open(&config, &volume), 0);
    fill_volume(volume, subject);
    fill_history(volume);
    if (subject->fill)
        subject->fill(volume);
    ck_assert_int_eq(volume_drop_caches(volume), 0);
    use_volume(volume, 1); /* also reads what was never written */
    if (subject->unclean)
        change_and_cut(volume, image, after, subject->size);
    ck_assert_int_eq(volume_close(volume), 0);
    if (subject->unclean)
        memcpy(image, after, subject->size);
    if (subject->leave_log)
        subject->leave_log(image);
    free(after);
    if (subject->moves)
        map_again(subject, image, map);
    return image;
}

/* On a sound image the repair finds every checksum right, and knows where it is. */
static void check_repair(const struct subject *subject, const uint8_t *sound) {
    uint8_t *copy = malloc(subject->size);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, sound, subject->size);
    if (subject->repair)
        subject->repair(copy, subject->size);
    for (uint64_t i = 0; i < subject->size; i++)
        ck_assert_msg(copy[i] == sound[i], "byte %llu is repaired, but was sound",
                      (unsigned long long)i);
    free(copy);
}

static void check_child(pid_t child, const struct progress *progress, uint64_t seed) {
    int status;

    ck_assert(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        ck_abort_msg("seed %llu, mutant %u: hangs", (unsigned long long)seed, progress->mutant);
    ck_assert_msg(status == 0, "seed %llu, mutant %u: status %x", (unsigned long long)seed,
                  progress->mutant, (unsigned)status);
}

START_TEST(test_mutants) {
    const struct subject *subject = &subjects[_i];
    struct map map = {0};
    uint8_t *sound = make_sound(subject, &map);
    uint64_t seed = fixture_seed(subject->mkfs_options);
    const char *one = getenv("LAYOUTFS_TEST_MUTANT");
    unsigned each = subject->mutants ? subject->mutants : MUTANTS_EACH;
    unsigned last = one ? (unsigned)atoi(one) + 1 : each * fixture_factor();
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(progress, MAP_FAILED);
    check_repair(subject, sound);
    for (unsigned n = one ? last - 1 : 0; n < last; n += BATCH) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            run_batch(subject, sound, &map, seed, n, n + BATCH < last ? n + BATCH : last, progress);
            _exit(0);
        }
        check_child(child, progress, seed);
    }
    munmap(progress, sizeof(*progress));
    for (int i = 0; i < PURPOSE_COUNT; i++)
        free(map.regions[i]);
    free(sound);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("mutants");
    const char *only = getenv("LAYOUTFS_TEST_SUBJECT");
    tcase_set_timeout(cases, 3600);
    for (int i = 0; i < SUBJECT_COUNT; i++)
        if (!only || strcmp(only, subjects[i].type) == 0)
            tcase_add_loop_test(cases, test_mutants, i, i + 1);
    Suite *suite = suite_create("hostile");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

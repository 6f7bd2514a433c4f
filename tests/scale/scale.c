/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a filesystem at its limits, through the bench's drivers, so that the same program runs on
 * an image without mounting it and in any mounted directory.
 *
 *     scale STAGE IMAGE|DIRECTORY MODEL [MOUNT_OPTIONS]
 *
 * Each stage changes what the stages before it have left, says in the file MODEL what there must be
 * now, and prints the free blocks and inodes that the filesystem reports. The stage `verify` only
 * looks: every name, size, mode, time and byte must be as the model says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/source.h"
#include "tests/scale/model.h"

#define IO_BYTES (64u << 10)

#define UNPACK_FILES    21000u
#define UNPACK_BYTES    (UINT64_C(100) << 20)
#define STORM_RENAMES   20000u
#define CROWD_ENTRIES   100000u
#define TARGET_MAX      1000u /* bytes of a symlink's target; every block size has room for it */
#define DIRECTORY_FILES 200u
#define SETTLE_US       100000u

struct scale {
    struct model model;
    struct driver *driver;
    struct driver_volume in_process;
    struct driver_posix mounted;
    const char *target;
    /* in process only */
    const char *options;
    struct clock clock;
    struct log log;
    struct volume *volume;
    uint8_t data[IO_BYTES], want[IO_BYTES];
};

static struct object *object_at(struct scale *scale, uint32_t index) {
    return &scale->model.objects[index];
}

static void must(struct scale *scale, int64_t result, const char *what,
                 const struct object *object) {
    if (result < 0)
        die("%s %s: %s", what, model_path(&scale->model, object), strerror((int)-result));
}

/* --- the filesystem under test ---------------------------------------------------------------- */

static void open_image(struct scale *scale) {
    struct device *device;

    clock_init_virtual(&scale->clock, NULL);
    scale->log = log_to_stderr("scale", LOG_LEVEL_WARNING);
    if (device_open_image(scale->target, 0, 0, &scale->clock, &scale->log, &device))
        exit(1);
    struct volume_config config = {
        .device = device, .clock = &scale->clock, .log = &scale->log, .options = scale->options};
    if (volume_open(&config, &scale->volume))
        exit(1);
    driver_volume_init(&scale->in_process, scale->volume);
    scale->driver = &scale->in_process.driver;
}

static void open_target(struct scale *scale) {
    struct rlimit files;
    struct stat stat_of;

    if (stat(scale->target, &stat_of) < 0)
        die("%s: %s", scale->target, strerror(errno));
    if (!S_ISDIR(stat_of.st_mode)) {
        open_image(scale);
        return;
    }
    umask(0);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* one for each directory of the tree */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    driver_posix_init(&scale->mounted, scale->target, NULL, NULL);
    scale->driver = &scale->mounted.driver;
}

static void usage(struct scale *scale, struct volume_usage *usage) {
    struct statvfs host;

    if (scale->volume) {
        if (volume_statfs(scale->volume, usage))
            die("%s: statfs fails", scale->target);
        return;
    }
    if (statvfs(scale->target, &host) < 0)
        die("%s: %s", scale->target, strerror(errno));
    *usage = (struct volume_usage){
        .free = host.f_bfree, .inodes = host.f_files, .inodes_free = host.f_ffree};
}

/* Directories stay open from their first use on. */
static const struct driver_node *directory(struct scale *scale, uint32_t index) {
    struct object *object = object_at(scale, index);
    int error;

    if (object->open)
        return &object->node;
    if (index == MODEL_ROOT)
        error = scale->driver->operations->root(scale->driver, &object->node);
    else
        error = scale->driver->operations->enter(scale->driver, directory(scale, object->parent),
                                                 object->name, &object->node);
    must(scale, error, "enter", object);
    object->open = true;
    return &object->node;
}

static void leave(struct scale *scale, struct object *object) {
    if (object->open)
        scale->driver->operations->leave(scale->driver, &object->node);
    object->open = false;
}

/* Through a mount, removed files are freed when the kernel gets round to forgetting them. */
static void settled_usage(struct scale *scale, struct volume_usage *now) {
    struct volume_usage before;

    usage(scale, now);
    if (scale->volume)
        return;
    do {
        before = *now;
        usleep(SETTLE_US);
        usage(scale, now);
    } while (now->free != before.free || now->inodes_free != before.inodes_free);
}

static void close_target(struct scale *scale) {
    struct volume_usage now;

    for (uint32_t i = 0; i < scale->model.count; i++)
        leave(scale, object_at(scale, i));
    if (scale->driver->operations->sync(scale->driver))
        die("%s: sync fails", scale->target);
    settled_usage(scale, &now);
    printf("%" PRIu64 " %" PRIu64 "\n", now.free, now.inodes_free);
    if (scale->volume && volume_close(scale->volume))
        die("%s: close fails", scale->target);
}

/* --- making and removing ---------------------------------------------------------------------- */

static int write_range(struct scale *scale, const struct object *file,
                       const struct driver_node *node, uint64_t start, uint64_t end) {
    while (start < end) {
        size_t size = 1 + random_below(&scale->model.random, IO_BYTES);
        if (size > end - start)
            size = (size_t)(end - start);
        content_fill(file, start, scale->data, size);
        int error = scale->driver->operations->write(scale->driver, node, scale->data, size, start);
        if (error)
            return error;
        start += size;
    }
    return 0;
}

/* Sparse files from the end, so that every piece but the first fills a hole. */
static int write_contents(struct scale *scale, const struct object *file,
                          const struct driver_node *node) {
    if (!file->sparse)
        return write_range(scale, file, node, 0, file->size);
    for (uint32_t i = CONTENT_PIECES; i-- > 0;) {
        uint64_t start, end;
        content_piece(file, i, &start, &end);
        int error = write_range(scale, file, node, start, end);
        if (error)
            return error;
    }
    return 0;
}

/* On a full disk a file ends where space ran out: what was written before must be there. */
static void note_size(struct scale *scale, struct object *file, const struct driver_node *node) {
    struct driver_stat stat;

    must(scale, scale->driver->operations->fstat(scale->driver, node, &stat), "fstat", file);
    if (stat.size > file->size)
        die("%s is longer than what was written", model_path(&scale->model, file));
    file->size = stat.size;
}

/* Makes the newest object, a regular file, and leaves it open. -ENOSPC: it is not there, or (when
 * *node is) it is as long as there was room. */
static int create_file(struct scale *scale, struct driver_node *node, bool *created) {
    struct object *file = object_at(scale, scale->model.count - 1);
    const struct driver_node *parent = directory(scale, file->parent);
    int error =
        scale->driver->operations->create(scale->driver, parent, file->name, file->mode, node);

    *created = error == 0;
    if (error) {
        file->mode = 0;
    } else {
        model_made(&scale->model, file);
        error = write_contents(scale, file, node);
        if (error)
            note_size(scale, file, node);
    }
    if (error != -ENOSPC)
        must(scale, error, "write", file);
    return error;
}

static int make_file(struct scale *scale, uint32_t parent, const char *name, uint64_t size,
                     bool sparse, int64_t mtime) {
    uint32_t mode = S_IFREG | 0600 | (uint32_t)(random_next(&scale->model.random) & 0177);
    struct object *file = model_new(&scale->model, parent, name, mode);
    struct driver_node node;
    bool created;

    file->size = size;
    file->sparse = sparse;
    file->mtime = mtime;
    int error = create_file(scale, &node, &created);
    if (!created)
        return error;
    scale->driver->operations->close(scale->driver, &node);
    if (mtime) {
        struct timestamp time = {.seconds = mtime};
        must(scale,
             scale->driver->operations->restore(scale->driver, directory(scale, parent), file->name,
                                                mode, time),
             "restore", file);
    }
    return error;
}

/* The index of a new directory, or 0: no space. */
static uint32_t make_directory(struct scale *scale, uint32_t parent, const char *name) {
    struct object *made = model_new(&scale->model, parent, name, S_IFDIR | 0755);
    int error = scale->driver->operations->mkdir(scale->driver, directory(scale, parent),
                                                 made->name, made->mode);

    if (error == -ENOSPC) {
        made->mode = 0;
        return 0;
    }
    must(scale, error, "mkdir", made);
    model_made(&scale->model, made);
    return model_index(&scale->model, made);
}

static int make_symlink(struct scale *scale, uint32_t parent) {
    char target[TARGET_MAX + 1];
    uint32_t length = 1 + random_below(&scale->model.random, TARGET_MAX);
    struct object *made = model_new(&scale->model, parent, NULL, S_IFLNK | 0777);

    memset(target, 't', length);
    target[length] = '\0';
    made->size = length;
    int error = scale->driver->operations->symlink(scale->driver, directory(scale, parent),
                                                   made->name, target);
    if (error == -ENOSPC) {
        made->mode = 0;
        return error;
    }
    must(scale, error, "symlink", made);
    model_made(&scale->model, made);
    return 0;
}

static void remove_object(struct scale *scale, struct object *object) {
    const struct driver_operations *operations = scale->driver->operations;
    const struct driver_node *parent = directory(scale, object->parent);

    leave(scale, object);
    must(scale,
         S_ISDIR(object->mode) ? operations->rmdir(scale->driver, parent, object->name)
                               : operations->unlink(scale->driver, parent, object->name),
         "remove", object);
    model_gone(&scale->model, object);
}

/* --- stages ----------------------------------------------------------------------------------- */

/* A kernel-like tree, with a symlink now and then; as a mount takes long for them, every fourth
 * file only has its mode and time restored. */
static void unpack(struct scale *scale) {
    struct source *source;

    if (source_synthetic(UNPACK_FILES, UNPACK_BYTES, scale->model.random.state, &scale->log,
                         &source))
        exit(1);
    uint32_t *made = calloc(source->count, sizeof(*made));
    if (!made)
        die("out of memory");
    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        uint32_t parent = entry->parent == SOURCE_ROOT ? MODEL_ROOT : made[entry->parent];
        int64_t mtime = i % 4 == 0 ? entry->mtime.seconds : 0;
        if (S_ISDIR(entry->mode))
            made[i] = make_directory(scale, parent, entry->name);
        else if (make_file(scale, parent, entry->name, entry->size, false, mtime))
            die("no space for a tree of %u files", source->files);
        if (i % 40 == 0 && make_symlink(scale, parent))
            die("no space for a symlink");
    }
    free(made);
    source_close(source);
}

/* Every second file, and directories that this empties. */
static void halve(struct scale *scale) {
    for (uint32_t i = 1; i < scale->model.count; i++) {
        struct object *object = object_at(scale, i);
        if (object->mode && !S_ISDIR(object->mode) && random_next(&scale->model.random) & 1)
            remove_object(scale, object);
    }
    for (uint32_t i = scale->model.count; i-- > 1;) {
        struct object *object = object_at(scale, i);
        if (S_ISDIR(object->mode) && object->children == 0)
            remove_object(scale, object);
    }
}

/* Moved directories may lie in younger ones, hence the passes. */
static void clear(struct scale *scale) {
    while (object_at(scale, MODEL_ROOT)->children > 0)
        for (uint32_t i = scale->model.count; i-- > 1;) {
            struct object *object = object_at(scale, i);
            if (object->mode && object->children == 0)
                remove_object(scale, object);
        }
}

static int rename_to(struct scale *scale, const struct object *object, uint32_t new_parent,
                     const char *new_name) {
    return scale->driver->operations->rename(scale->driver, directory(scale, object->parent),
                                             object->name, directory(scale, new_parent), new_name);
}

static void move(struct scale *scale, struct object *object, uint32_t new_parent) {
    struct object old = *object;

    if (object == object_at(scale, MODEL_ROOT))
        return;
    if (model_below(&scale->model, object_at(scale, new_parent), object)) {
        if (rename_to(scale, object, new_parent, "inside-itself") != -EINVAL)
            die("%s could be moved into itself", model_path(&scale->model, object));
        return;
    }
    model_rename(&scale->model, object);
    must(scale, rename_to(scale, &old, new_parent, object->name), "rename", &old);
    object_at(scale, old.parent)->children--;
    object->parent = new_parent;
    model_made(&scale->model, object);
}

/* A file takes another one's place. */
static void replace(struct scale *scale, struct object *object, struct object *victim) {
    must(scale, rename_to(scale, object, victim->parent, victim->name), "replace", victim);
    uint32_t old_parent = object->parent;
    memcpy(object->name, victim->name, sizeof(object->name));
    object->parent = victim->parent;
    object_at(scale, old_parent)->children--;
    victim->mode = 0; /* whose directory now has `object` in its place */
}

static void storm(struct scale *scale) {
    for (uint32_t i = 0; i < STORM_RENAMES; i++) {
        uint32_t choice = random_below(&scale->model.random, 20);
        struct object *object = model_pick(&scale->model, choice ? S_IFREG : S_IFDIR);
        struct object *to = model_pick(&scale->model, choice <= 2 ? S_IFREG : S_IFDIR);
        if (!object || !to)
            die("nothing to rename");
        if (choice == 0)
            move(scale, object, to->parent);
        else if (choice > 10) /* where it is */
            move(scale, object, object->parent);
        else if (choice > 2)
            move(scale, object, model_index(&scale->model, to));
        else if (object != to)
            replace(scale, object, to);
    }
}

/* Sizes around every power of two up to 4 GiB, around what 1, 2 and 3 levels of indirection reach
 * with blocks of 1, 2 and 4 KiB, and beyond. From SPARSE_FROM on they have holes. */
#define SPARSE_FROM (UINT64_C(1) << 20)

static void make_sizes_around(struct scale *scale, uint32_t parent, uint64_t size) {
    for (uint64_t each = size - 1; each <= size + 1; each++)
        if (make_file(scale, parent, NULL, each, each >= SPARSE_FROM, 1))
            die("no space for a file of %" PRIu64 " bytes", each);
}

static void sizes(struct scale *scale) {
    uint32_t parent = make_directory(scale, MODEL_ROOT, "sizes");

    for (unsigned shift = 0; shift <= 32; shift += shift < 20 ? 1 : 4)
        make_sizes_around(scale, parent, UINT64_C(1) << shift);
    for (uint64_t block = 1024; block <= 4096; block *= 2) {
        uint64_t pointers = block / 4;
        make_sizes_around(scale, parent, 12 * block);
        make_sizes_around(scale, parent, (12 + pointers) * block);
        make_sizes_around(scale, parent, (12 + pointers + pointers * pointers) * block);
    }
    make_sizes_around(scale, parent, UINT64_C(5) << 30);
    if (make_file(scale, parent, NULL, UINT64_C(70) << 20, false, 1))
        die("no space for a dense file");
}

static void crowd(struct scale *scale) {
    uint32_t parent = make_directory(scale, MODEL_ROOT, "crowd");

    for (uint32_t i = 0; i < CROWD_ENTRIES; i++)
        if (make_file(scale, parent, NULL, 0, false, 0))
            die("no space for %u entries", CROWD_ENTRIES);
}

/* Makes files until that fails; in new directories while those can be made. `bytes_max` 0: a byte
 * each. */
static void make_files(struct scale *scale, uint32_t bytes_max) {
    uint32_t parent = MODEL_ROOT, made = 0;
    uint64_t size;

    do {
        if (made++ % DIRECTORY_FILES == 0) {
            uint32_t new_parent = make_directory(scale, MODEL_ROOT, NULL);
            if (new_parent)
                parent = new_parent;
        }
        size = bytes_max ? random_below(&scale->model.random, bytes_max) : 1;
        if (size > 0 && random_below(&scale->model.random, 4))
            size = 1 + size / 64; /* most files are small */
    } while (make_file(scale, parent, NULL, size, false, 0) == 0);
}

/* What needs a block, or an inode, is refused; what needs none goes on. */
static void refuse(struct scale *scale, const char *what) {
    if (make_directory(scale, MODEL_ROOT, NULL))
        die("a directory could be made without free %s", what);
    for (int i = 0; i < 20; i++) /* short ones need no block */
        if (make_symlink(scale, MODEL_ROOT) == 0 && what[0] == 'i')
            die("a symlink could be made without free %s", what);
}

/* Blocks that the format keeps back for what it must be able to do on a full disk. */
static uint64_t kept_back(void) {
    const char *blocks = getenv("SCALE_KEPT_BACK");

    return blocks ? strtoul(blocks, NULL, 10) : 0;
}

/* With what it has already. Where new data go elsewhere that may be refused, but not later. */
static void overwrite(struct scale *scale, const struct object *file,
                      const struct driver_node *node) {
    int error = write_contents(scale, file, node);

    if (error != -ENOSPC || !kept_back())
        must(scale, error, "overwrite", file);
    must(scale, scale->driver->operations->fsync(scale->driver, node), "fsync", file);
}

/* What was refused needed a few blocks more than there are, or than may be used up. */
static void expect_full(struct scale *scale, struct volume_usage *now, uint64_t needed) {
    usage(scale, now);
    if (now->free >= needed + kept_back())
        die("no space although %" PRIu64 " blocks are free", now->free);
    if (now->inodes && now->inodes_free == 0)
        die("inodes ran out before blocks");
}

/* Fills the disk: with files of all sizes, the rest with those of one byte. */
static void fill(struct scale *scale) {
    struct volume_usage now;
    struct driver_node node;
    bool created;
    struct object *file = model_new(&scale->model, MODEL_ROOT, NULL, S_IFREG | 0644);
    uint32_t overwritten = model_index(&scale->model, file);

    file->size = 300000;
    if (create_file(scale, &node, &created))
        die("%s was full before it began", scale->target);
    make_files(scale, 2u << 20); /* a block of data, and five for a tree of extents at its worst */
    expect_full(scale, &now, 6);
    make_files(scale, 0); /* two blocks for a directory, and one for its map */
    expect_full(scale, &now, 3);
    if (now.free == 0)
        refuse(scale, "blocks");
    overwrite(scale, object_at(scale, overwritten), &node);
    scale->driver->operations->close(scale->driver, &node);
}

static void exhaust(struct scale *scale) {
    struct volume_usage now;

    make_files(scale, 4000);
    usage(scale, &now);
    if (now.inodes_free != 0 || now.free == 0)
        die("no space although %" PRIu64 " inodes and %" PRIu64 " blocks are free", now.inodes_free,
            now.free);
    refuse(scale, "inodes");
}

/* --- looking at it ---------------------------------------------------------------------------- */

static void verify_range(struct scale *scale, const struct object *file,
                         const struct driver_node *node, uint64_t start, uint64_t end) {
    while (start < end) {
        size_t size = end - start < IO_BYTES ? (size_t)(end - start) : IO_BYTES;
        int64_t got =
            scale->driver->operations->read(scale->driver, node, scale->data, size, start);
        must(scale, got, "read", file);
        if (got == 0)
            die("%s ends at %" PRIu64, model_path(&scale->model, file), start);
        content_fill(file, start, scale->want, (size_t)got);
        for (int64_t i = 0; memcmp(scale->data, scale->want, (size_t)got) != 0; i++)
            if (scale->data[i] != scale->want[i])
                die("%s: byte %" PRIu64 " is wrong", model_path(&scale->model, file),
                    start + (uint64_t)i);
        start += (uint64_t)got;
    }
}

/* Of a large sparse file the pieces, the holes beside them and a part in the middle of each. */
static void verify_sparse(struct scale *scale, const struct object *file,
                          const struct driver_node *node) {
    uint64_t before = 0;

    for (uint32_t i = 0; i < CONTENT_PIECES; i++) {
        uint64_t start, end;
        content_piece(file, i, &start, &end);
        uint64_t middle = before + (start - before) / 2;
        verify_range(scale, file, node, middle, middle + 5000);
        verify_range(scale, file, node, start > IO_BYTES ? start - IO_BYTES : 0,
                     end + IO_BYTES < file->size ? end + IO_BYTES : file->size);
        before = end;
    }
}

static void verify_file(struct scale *scale, const struct object *file,
                        const struct driver_node *parent) {
    const struct driver_operations *operations = scale->driver->operations;
    struct driver_node node;

    must(scale, operations->open(scale->driver, parent, file->name, false, &node), "open", file);
    if (file->sparse)
        verify_sparse(scale, file, &node);
    else
        verify_range(scale, file, &node, 0, file->size);
    if (operations->read(scale->driver, &node, scale->data, 1, file->size) != 0)
        die("%s does not end where it should", model_path(&scale->model, file));
    operations->close(scale->driver, &node);
}

static void verify_object(struct scale *scale, const struct object *object) {
    const struct driver_node *parent = directory(scale, object->parent);
    struct driver_stat stat;

    must(scale, scale->driver->operations->stat(scale->driver, parent, object->name, &stat), "stat",
         object);
    if (stat.mode != object->mode)
        die("%s: mode %o instead of %o", model_path(&scale->model, object), stat.mode,
            object->mode);
    if (!S_ISDIR(object->mode) && stat.size != object->size)
        die("%s: %" PRIu64 " bytes instead of %" PRIu64, model_path(&scale->model, object),
            stat.size, object->size);
    if (object->mtime && stat.mtime.seconds != object->mtime)
        die("%s: time %" PRId64 " instead of %" PRId64, model_path(&scale->model, object),
            stat.mtime.seconds, object->mtime);
    if (S_ISREG(object->mode) && object->size > 0)
        verify_file(scale, object, parent);
}

/* The names of a directory, whatever their order: their number and the sum of their hashes. */
struct listing {
    uint64_t count, sum;
};

static void listing_add(struct listing *listing, const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    listing->count++;
    listing->sum += hash;
}

static int list_name(void *context, const char *name, uint32_t type) {
    if (strcmp(name, "lost+found") != 0)
        listing_add(context, name);
    return 0;
}

static void verify_names(struct scale *scale, uint32_t index, const struct listing *want) {
    struct listing got = {0};

    must(
        scale,
        scale->driver->operations->readdir(scale->driver, directory(scale, index), list_name, &got),
        "list", object_at(scale, index));
    if (got.count != want->count || got.sum != want->sum)
        die("%s lists %" PRIu64 " names, not the %" PRIu64 " it should",
            model_path(&scale->model, object_at(scale, index)), got.count, want->count);
}

static void verify(struct scale *scale) {
    struct listing *listings = calloc(scale->model.count, sizeof(*listings));

    if (!listings)
        die("out of memory");
    for (uint32_t i = 1; i < scale->model.count; i++)
        if (object_at(scale, i)->mode)
            listing_add(&listings[object_at(scale, i)->parent], object_at(scale, i)->name);
    for (uint32_t i = 0; i < scale->model.count; i++)
        if (S_ISDIR(object_at(scale, i)->mode))
            verify_names(scale, i, &listings[i]);
    for (uint32_t i = 1; i < scale->model.count; i++)
        if (object_at(scale, i)->mode)
            verify_object(scale, object_at(scale, i));
    free(listings);
}

static const struct {
    const char *name;
    void (*run)(struct scale *scale);
} stages[] = {
    {"unpack", unpack}, {"halve", halve},     {"storm", storm},
    {"sizes", sizes},   {"crowd", crowd},     {"fill", fill},
    {"clear", clear},   {"exhaust", exhaust}, {"verify", verify},
};
#define STAGES (sizeof(stages) / sizeof(*stages))

int main(int argc, char **argv) {
    static struct scale scale;
    size_t stage = 0;

    while (argc >= 4 && stage < STAGES && strcmp(stages[stage].name, argv[1]) != 0)
        stage++;
    if (argc < 4 || argc > 5 || stage == STAGES)
        die("usage: scale STAGE IMAGE|DIRECTORY MODEL [MOUNT_OPTIONS]");
    scale.target = argv[2];
    scale.options = argv[4]; /* NULL: none */
    if (access(argv[3], F_OK) == 0)
        model_load(&scale.model, argv[3]);
    else
        model_init(&scale.model, 1);
    open_target(&scale);
    stages[stage].run(&scale);
    close_target(&scale);
    if (stages[stage].run != verify)
        model_save(&scale.model, argv[3]);
    model_free(&scale.model);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over bench/driver.h. What tar, find, xargs, cat and rm do to a tree of files,
 * system call by system call. What is imitated, and from which versions' behaviour, is in
 * docs/fidelity.md.
 *
 * Directories are kept open along the current path only, as those programs do: memory and open
 * files are bounded by the tree's depth.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/workload.h"

#define TAR_RECORD    10240u /* GNU tar's blocking factor of 20 */
#define PIPE_BYTES    4096u  /* what a pipe of that time held */
#define CAT_BUFFER    4096u  /* st_blksize */
#define DEPTH_MAX     64u
#define UMASK         022u
#define PROGRESS_STEP 256u

/* --- unpacking -------------------------------------------------------------------------------- */

/* The open directories from the root down to the one last worked in. */
struct open_path {
    struct driver_node nodes[DEPTH_MAX + 1];
    uint32_t entries[DEPTH_MAX + 1]; /* source index of each; [0] is SOURCE_ROOT */
    uint32_t depth;                  /* of the last one */
};

static int path_start(struct driver *driver, struct open_path *path) {
    path->depth = 0;
    path->entries[0] = SOURCE_ROOT;
    return driver->operations->root(driver, &path->nodes[0]);
}

static void path_shorten(struct driver *driver, struct open_path *path, uint32_t depth) {
    while (path->depth > depth)
        driver->operations->leave(driver, &path->nodes[path->depth--]);
}

static void path_stop(struct driver *driver, struct open_path *path) {
    path_shorten(driver, path, 0);
    driver->operations->leave(driver, &path->nodes[0]);
}

/* Opens the directory that is entry number `wanted`, closing what does not lead there. */
static int path_enter(struct driver *driver, const struct source *source, struct open_path *path,
                      uint32_t wanted) {
    uint32_t chain[DEPTH_MAX + 1];
    uint32_t depth = wanted == SOURCE_ROOT ? 0 : source->entries[wanted].depth + 1;

    if (depth > DEPTH_MAX)
        return -ENAMETOOLONG;
    for (uint32_t at = wanted, level = depth; level > 0; at = source->entries[at].parent)
        chain[level--] = at;
    uint32_t common = 0;
    while (common < depth && common < path->depth && path->entries[common + 1] == chain[common + 1])
        common++;
    path_shorten(driver, path, common);
    while (path->depth < depth) {
        uint32_t next = path->depth + 1;
        int error =
            driver->operations->enter(driver, &path->nodes[path->depth],
                                      source->entries[chain[next]].name, &path->nodes[next]);
        if (error)
            return error;
        path->entries[next] = chain[next];
        path->depth = next;
    }
    return 0;
}

/* The decompressor's share: its own work, and handing the bytes to tar through a pipe. */
static void charge_decompression(struct driver *driver, uint64_t bytes, int64_t cpu_ns_per_kb) {
    int64_t pieces = (int64_t)((bytes + PIPE_BYTES - 1) / PIPE_BYTES);

    if (cpu_ns_per_kb == 0)
        return;
    driver->operations->charge_ns(driver, (int64_t)(bytes * (uint64_t)cpu_ns_per_kb / 1024));
    driver->operations->charge(driver, COST_SYSCALL, 2 * pieces);
    driver->operations->charge(driver, COST_COPY_KB, (int64_t)(2 * bytes / 1024));
}

static int write_content(struct workload_run *run, const struct source_entry *entry,
                         const struct driver_node *node, int64_t cpu_ns_per_kb) {
    struct driver *driver = run->driver;

    for (uint64_t offset = 0; offset < entry->size;) {
        const char *data;
        size_t size = source_content(run->source, entry, offset, &data);
        if (size > TAR_RECORD)
            size = TAR_RECORD;
        charge_decompression(driver, size, cpu_ns_per_kb);
        int error = driver->operations->write(driver, node, data, size, offset);
        if (error)
            return error;
        offset += size;
    }
    return 0;
}

static int unpack_file(struct workload_run *run, const struct source_entry *entry,
                       const struct driver_node *dir, int64_t cpu_ns_per_kb) {
    struct driver *driver = run->driver;
    uint32_t mode = entry->mode & ~UMASK;
    struct driver_node node;
    int error = driver->operations->create(driver, dir, entry->name, mode, &node);

    if (error)
        return error;
    error = write_content(run, entry, &node, cpu_ns_per_kb);
    driver->operations->close(driver, &node);
    if (error)
        return error;
    driver_walk(driver, 2 * entry->depth);
    return driver->operations->restore(driver, dir, entry->name, mode, entry->mtime);
}

static int unpack_entry(struct workload_run *run, struct open_path *path, uint32_t number,
                        int64_t cpu_ns_per_kb) {
    const struct source_entry *entry = &run->source->entries[number];
    struct driver *driver = run->driver;
    int error = path_enter(driver, run->source, path, entry->parent);

    if (error)
        return error;
    const struct driver_node *dir = &path->nodes[path->depth];
    driver_walk(driver, entry->depth);
    if (S_ISDIR(entry->mode))
        return driver->operations->mkdir(driver, dir, entry->name, entry->mode & ~UMASK);
    if (S_ISLNK(entry->mode))
        return driver->operations->symlink(driver, dir, entry->name, entry->target);
    return unpack_file(run, entry, dir, cpu_ns_per_kb);
}

/* tar restores directories last, since filling them changes their times. */
static int restore_directories(struct workload_run *run, struct open_path *path) {
    const struct source *source = run->source;
    struct driver *driver = run->driver;
    int error = 0;

    for (uint32_t i = source->count; i-- > 0 && !error;) {
        const struct source_entry *entry = &source->entries[i];
        if (!S_ISDIR(entry->mode))
            continue;
        error = path_enter(driver, source, path, entry->parent);
        driver_walk(driver, 2 * entry->depth);
        if (!error)
            error = driver->operations->restore(driver, &path->nodes[path->depth], entry->name,
                                                entry->mode & ~UMASK, entry->mtime);
    }
    return error;
}

int tree_unpack(struct workload_run *run, int64_t cpu_ns_per_kb) {
    const struct source *source = run->source;
    struct open_path path;
    int error = path_start(run->driver, &path);

    if (error)
        return error;
    run->driver->operations->charge(run->driver, COST_PROCESS, 2); /* tar and its decompressor */
    for (uint32_t i = 0; i < source->count && !error; i++) {
        error = unpack_entry(run, &path, i, cpu_ns_per_kb);
        if (error)
            log_error(run->log, "unpacking \"%s\": %s", source->entries[i].name, strerror(-error));
        if (i % PROGRESS_STEP == 0)
            step_progress(run, i, source->count);
    }
    if (!error)
        error = restore_directories(run, &path);
    path_stop(run->driver, &path);
    return error;
}

/* --- a directory's names, read before they are used ------------------------------------------ */

struct names {
    char *text; /* type (4 bytes), name, 0; repeated */
    size_t length, capacity;
};

static int names_add(void *context, const char *name, uint32_t type) {
    struct names *names = context;
    size_t length = strlen(name) + 1, needed = names->length + sizeof(type) + length;

    if (needed > names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 8192;
        while (capacity < needed)
            capacity *= 2;
        char *text = realloc(names->text, capacity);
        if (!text)
            return -ENOMEM;
        names->text = text;
        names->capacity = capacity;
    }
    memcpy(names->text + names->length, &type, sizeof(type));
    memcpy(names->text + names->length + sizeof(type), name, length);
    names->length = needed;
    return 0;
}

/* The next name at *at, or NULL at the end. */
static const char *names_next(const struct names *names, size_t *at, uint32_t *type) {
    const char *name;

    if (*at >= names->length)
        return NULL;
    memcpy(type, names->text + *at, sizeof(*type));
    name = names->text + *at + sizeof(*type);
    *at += sizeof(*type) + strlen(name) + 1;
    return name;
}

/* Calls work for each name in `dir`, all read beforehand. */
typedef int (*name_work)(void *context, const struct driver_node *dir, uint32_t depth,
                         const char *name, uint32_t type);

static int each_name(struct driver *driver, const struct driver_node *dir, uint32_t depth,
                     name_work work, void *context) {
    struct names names = {0};
    const char *name;
    uint32_t type;
    size_t at = 0;
    int error;

    if (depth > DEPTH_MAX)
        return -ENAMETOOLONG;
    error = driver->operations->readdir(driver, dir, names_add, &names);
    while (!error && (name = names_next(&names, &at, &type)))
        error = work(context, dir, depth, name, type);
    free(names.text);
    return error;
}

static int each_name_below(struct driver *driver, const struct driver_node *dir, uint32_t depth,
                           const char *name, name_work work, void *context) {
    struct driver_node child;
    int error = driver->operations->enter(driver, dir, name, &child);

    if (error)
        return error;
    error = each_name(driver, &child, depth + 1, work, context);
    driver->operations->leave(driver, &child);
    return error;
}

static int each_name_from_root(struct driver *driver, name_work work, void *context) {
    struct driver_node root;
    int error = driver->operations->root(driver, &root);

    if (error)
        return error;
    error = each_name(driver, &root, 0, work, context);
    driver->operations->leave(driver, &root);
    return error;
}

/* --- find ------------------------------------------------------------------------------------- */

struct finder {
    struct workload_run *run;
    tree_visit visit;
    void *context;
    uint64_t files;
};

static int find_name(void *context, const struct driver_node *dir, uint32_t depth, const char *name,
                     uint32_t type) {
    struct finder *finder = context;
    struct driver *driver = finder->run->driver;
    struct driver_stat stat;
    int error = driver->operations->stat(driver, dir, name, &stat);

    if (error)
        return error;
    if (S_ISDIR(stat.mode))
        return each_name_below(driver, dir, depth, name, find_name, finder);
    if (!S_ISREG(stat.mode))
        return 0;
    if (finder->files++ % PROGRESS_STEP == 0)
        step_progress(finder->run, finder->files, finder->run->source->files);
    return finder->visit ? finder->visit(finder->context, dir, depth, name) : 0;
}

int tree_find(struct workload_run *run, tree_visit visit, void *context) {
    struct finder finder = {.run = run, .visit = visit, .context = context};

    run->driver->operations->charge(run->driver, COST_PROCESS, 1);
    return each_name_from_root(run->driver, find_name, &finder);
}

/* --- xargs cat -------------------------------------------------------------------------------- */

/* Files that find has printed and xargs has not yet handed to a cat. */
struct pending_file {
    struct driver_node dir;
    uint32_t depth;
    char name[NAME_LENGTH_MAX + 1];
};

struct reader {
    struct workload_run *run;
    struct tree_count *count;
    struct pending_file *files;
    uint32_t pending, batch;
    char buffer[CAT_BUFFER];
};

static int cat_file(struct reader *reader, const struct pending_file *file) {
    struct driver *driver = reader->run->driver;
    struct driver_node node;
    struct driver_stat stat;
    uint64_t offset = 0;
    int64_t got;

    driver_walk(driver, file->depth);
    int error = driver->operations->open(driver, &file->dir, file->name, false, &node);
    if (error)
        return error;
    error = driver->operations->fstat(driver, &node, &stat);
    while (!error && (got = driver->operations->read(driver, &node, reader->buffer, CAT_BUFFER,
                                                     offset)) != 0) {
        if (got < 0)
            error = (int)got;
        else
            offset += (uint64_t)got;
        driver->operations->charge(driver, COST_SYSCALL, 1); /* write to /dev/null */
    }
    driver->operations->close(driver, &node);
    if (!error && offset != stat.size)
        error = -EIO;
    reader->count->files++;
    reader->count->bytes += offset;
    return error;
}

static int cat_pending(struct reader *reader) {
    struct driver *driver = reader->run->driver;
    int error = 0;

    if (reader->pending > 0)
        driver->operations->charge(driver, COST_PROCESS, 1);
    for (uint32_t i = 0; i < reader->pending; i++) {
        struct pending_file *file = &reader->files[i];
        if (!error)
            error = cat_file(reader, file);
        if (error)
            log_error(reader->run->log, "reading \"%s\": %s", file->name, strerror(-error));
        driver->operations->leave(driver, &file->dir);
    }
    reader->pending = 0;
    return error;
}

static int batch_file(void *context, const struct driver_node *dir, uint32_t depth,
                      const char *name) {
    struct reader *reader = context;
    struct driver *driver = reader->run->driver;
    struct pending_file *file = &reader->files[reader->pending];
    int error = driver->operations->hold(driver, dir, &file->dir);

    if (error)
        return error;
    file->depth = depth;
    strcpy(file->name, name); /* a name that readdir gave is never longer */
    if (++reader->pending == reader->batch)
        return cat_pending(reader);
    return 0;
}

int tree_read(struct workload_run *run, uint32_t batch, struct tree_count *count) {
    struct reader reader = {.run = run, .count = count, .batch = batch};
    int error, last;

    reader.files = calloc(batch, sizeof(*reader.files));
    if (!reader.files)
        return -ENOMEM;
    error = tree_find(run, batch_file, &reader);
    last = cat_pending(&reader);
    free(reader.files);
    return error ? error : last;
}

/* --- rm --------------------------------------------------------------------------------------- */

struct remover {
    struct workload_run *run;
    struct tree_count *count;
};

static int remove_name(void *context, const struct driver_node *dir, uint32_t depth,
                       const char *name, uint32_t type) {
    struct remover *remover = context;
    struct driver *driver = remover->run->driver;
    struct driver_stat stat;
    int error;

    if (type == 0) { /* the directory does not say: look */
        error = driver->operations->stat(driver, dir, name, &stat);
        if (error)
            return error;
        type = stat.mode & S_IFMT;
    }
    if (type == S_IFDIR) {
        error = each_name_below(driver, dir, depth, name, remove_name, remover);
        return error ? error : driver->operations->rmdir(driver, dir, name);
    }
    if (remover->count->files++ % PROGRESS_STEP == 0)
        step_progress(remover->run, remover->count->files, remover->run->source->files);
    return driver->operations->unlink(driver, dir, name);
}

int tree_remove(struct workload_run *run, struct tree_count *count) {
    struct remover remover = {.run = run, .count = count};

    run->driver->operations->charge(run->driver, COST_PROCESS, 1);
    return each_name_from_root(run->driver, remove_name, &remover);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Prints the tree of an image as tests/vm/manifest.sh prints that of a directory, without a mount:
 * one line an object, in byte order of the paths.
 *
 *     manifest [-w] IMAGE [MOUNT-OPTIONS]
 *
 * -w: the volume is opened for writing, so that what must be recovered is so on the disk, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/volume.h"

#define CHUNK      (1u << 20)
#define WHOLE_SIZE (UINT64_C(32) << 20) /* larger files: the first and last CHUNK only */

struct object {
    char *path; /* owned */
    uint64_t ino;
};

struct manifest {
    struct volume *volume;
    struct object *objects;
    size_t count, room;
    const char *directory; /* of the listing under way */
    uint8_t *chunk;
    int error;
};

static bool manifest_grow(struct manifest *m) {
    size_t room = m->room ? 2 * m->room : 64;
    struct object *objects = reallocarray(m->objects, room, sizeof(*objects));

    if (!objects)
        return false;
    m->objects = objects;
    m->room = room;
    return true;
}

static void manifest_add(struct manifest *m, const char *directory, const char *name, size_t length,
                         uint64_t ino) {
    struct object object = {.ino = ino};

    if ((m->count == m->room && !manifest_grow(m)) ||
        asprintf(&object.path, "%s%s%.*s", directory, directory[0] ? "/" : "", (int)length, name) <
            0)
        m->error = -ENOMEM;
    else
        m->objects[m->count++] = object;
}

static bool manifest_entry(void *context, const struct dir_entry *entry) {
    struct manifest *m = context;
    bool dot = entry->name_length == 1 && entry->name[0] == '.';
    bool dots = entry->name_length == 2 && entry->name[0] == '.' && entry->name[1] == '.';

    if (!dot && !dots)
        manifest_add(m, m->directory, entry->name, entry->name_length, entry->ino);
    return m->error == 0;
}

/* Lists what is found, breadth first, until nothing new appears. */
static int manifest_collect(struct manifest *m) {
    manifest_add(m, "", ".", 1, m->volume->root_ino);
    for (size_t i = 0; i < m->count && !m->error; i++) {
        struct inode *inode;
        int error = volume_get(m->volume, m->objects[i].ino, &inode);

        m->directory = m->objects[i].path;
        if (!error && S_ISDIR(inode->mode))
            error = volume_readdir(inode, 0, manifest_entry, m);
        if (error) {
            fprintf(stderr, "manifest: %s: %s\n", m->directory, strerror(-error));
            m->error = error;
        } else {
            volume_put(inode, 1);
        }
    }
    return m->error;
}

static int object_compare(const void *a, const void *b) {
    return strcmp(((const struct object *)a)->path, ((const struct object *)b)->path);
}

/* Adds [from, to) of the file's contents to the sum. */
static int sum_range(struct manifest *m, struct inode *inode, SHA2_CTX *sum, uint64_t from,
                     uint64_t to) {
    while (from < to) {
        size_t size = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        int64_t got = volume_read_noatime(inode, m->chunk, size, from);
        if (got <= 0)
            return got < 0 ? (int)got : -EIO;
        SHA256Update(sum, m->chunk, (size_t)got);
        from += (uint64_t)got;
    }
    return 0;
}

static int print_sum(struct manifest *m, struct inode *inode, uint64_t size) {
    char text[SHA256_DIGEST_STRING_LENGTH];
    bool whole = size <= WHOLE_SIZE;
    SHA2_CTX sum;

    SHA256Init(&sum);
    int error = sum_range(m, inode, &sum, 0, whole ? size : CHUNK);
    if (!error && !whole)
        error = sum_range(m, inode, &sum, size - CHUNK, size);
    printf("%s%s\n", whole ? "" : "ends:", SHA256End(&sum, text));
    return error;
}

static int print_target(struct inode *inode, uint64_t size) {
    char *target = malloc(size + 1);
    int error = target ? volume_readlink(inode, target, size + 1) : -ENOMEM;

    printf("->%s\n", error ? "" : target);
    free(target);
    return error;
}

static const char *type_name(const struct attributes *a) {
    switch (a->mode & S_IFMT) {
    case S_IFREG:
        return a->size ? "regular file" : "regular empty file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symbolic link";
    case S_IFCHR:
        return "character special file";
    case S_IFBLK:
        return "block special file";
    case S_IFIFO:
        return "fifo";
    default:
        return "socket";
    }
}

static int print_object(struct manifest *m, const struct object *object) {
    struct attributes a;
    struct inode *inode;
    int error = volume_get(m->volume, object->ino, &inode);

    if (error)
        return error;
    volume_getattr(inode, &a);
    printf("%s|%o|%" PRIu32 "|%" PRIu32 "|%" PRIu32 "|%" PRIu64 "|%" PRIu64 "|%x:%x|%" PRId64
           "|%s|",
           type_name(&a), a.mode & 07777, a.uid, a.gid, a.nlink, a.size, a.ino, a.rdev >> 20,
           a.rdev & 0xFFFFF, (int64_t)a.mtime.seconds, object->path);
    if (S_ISREG(a.mode))
        error = print_sum(m, inode, a.size);
    else if (S_ISLNK(a.mode))
        error = print_target(inode, a.size);
    else
        puts("-");
    volume_put(inode, 1);
    return error;
}

static int manifest_print(struct manifest *m) {
    int error = manifest_collect(m);

    if (m->count > 1)
        qsort(m->objects, m->count, sizeof(*m->objects), object_compare);
    for (size_t i = 0; i < m->count && !error; i++) {
        error = print_object(m, &m->objects[i]);
        if (error)
            fprintf(stderr, "manifest: %s: %s\n", m->objects[i].path, strerror(-error));
    }
    return error;
}

/* Opens the image, prints it, and closes it again; errors were told. */
static int manifest_image(struct manifest *m, const char *path, bool writable,
                          const char *options) {
    struct log log = log_to_stderr("manifest", LOG_LEVEL_WARNING);
    struct clock clock;
    struct device *device;

    clock_init_wall(&clock);
    int error = device_open_image(path, writable ? 0 : DEVICE_READ_ONLY, 0, &clock, &log, &device);
    if (error)
        return error;
    struct volume_config config = {
        .device = device,
        .clock = &clock,
        .log = &log,
        .read_only = !writable,
        .options = options,
    };
    error = volume_open(&config, &m->volume);
    if (error) {
        device_close(device);
        return error;
    }
    error = manifest_print(m);
    int closed = volume_close(m->volume);
    return error ? error : closed;
}

int main(int argc, char **argv) {
    bool writable = argc > 1 && strcmp(argv[1], "-w") == 0;
    char **arguments = argv + 1 + writable;
    int count = argc - 1 - writable;

    if (count < 1 || count > 2) {
        fputs("usage: manifest [-w] IMAGE [MOUNT-OPTIONS]\n", stderr);
        return 2;
    }
    struct manifest m = {.chunk = malloc(CHUNK)};
    int error = m.chunk
                    ? manifest_image(&m, arguments[0], writable, count == 2 ? arguments[1] : NULL)
                    : -ENOMEM;
    for (size_t i = 0; i < m.count; i++)
        free(m.objects[i].path);
    free(m.objects);
    free(m.chunk);
    return error ? 1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests. Interface: tests/tools/image_tree.h.
 */
#include "tests/tools/image_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK (1u << 20)

struct object {
    char *path; /* owned */
    uint64_t ino;
};

struct tree {
    struct volume *volume;
    struct object *objects;
    size_t count, room;
    const char *directory; /* of the listing under way */
    int error;
};

static bool tree_grow(struct tree *tree) {
    size_t room = tree->room ? 2 * tree->room : 64;
    struct object *objects = reallocarray(tree->objects, room, sizeof(*objects));

    if (!objects)
        return false;
    tree->objects = objects;
    tree->room = room;
    return true;
}

static void tree_add(struct tree *tree, const char *directory, const char *name, size_t length,
                     uint64_t ino) {
    struct object object = {.ino = ino};

    if ((tree->count == tree->room && !tree_grow(tree)) ||
        asprintf(&object.path, "%s%s%.*s", directory, directory[0] ? "/" : "", (int)length, name) <
            0)
        tree->error = -ENOMEM;
    else
        tree->objects[tree->count++] = object;
}

static bool tree_entry(void *context, const struct dir_entry *entry) {
    struct tree *tree = context;
    bool dot = entry->name_length == 1 && entry->name[0] == '.';
    bool dots = entry->name_length == 2 && entry->name[0] == '.' && entry->name[1] == '.';

    if (!dot && !dots)
        tree_add(tree, tree->directory, entry->name, entry->name_length, entry->ino);
    return tree->error == 0;
}

/* Lists what is found, breadth first, until nothing new appears. */
static int tree_list(struct tree *tree, uint64_t ino) {
    struct inode *inode;
    int error = volume_get(tree->volume, ino, &inode);

    if (error)
        return error;
    if (S_ISDIR(inode->mode))
        error = volume_readdir(inode, 0, tree_entry, tree);
    volume_put(inode, 1);
    return error;
}

static int tree_collect(struct tree *tree) {
    tree_add(tree, "", ".", 1, tree->volume->root_ino);
    for (size_t i = 0; i < tree->count && !tree->error; i++) {
        tree->directory = tree->objects[i].path;
        int error = tree_list(tree, tree->objects[i].ino);
        if (error) {
            fprintf(stderr, "%s: %s\n", tree->directory, strerror(-error));
            tree->error = error;
        }
    }
    return tree->error;
}

static int object_compare(const void *a, const void *b) {
    return strcmp(((const struct object *)a)->path, ((const struct object *)b)->path);
}

static int tree_visit(struct tree *tree, image_tree_visit visit, void *context) {
    int error = tree_collect(tree);

    if (tree->count > 1)
        qsort(tree->objects, tree->count, sizeof(*tree->objects), object_compare);
    for (size_t i = 0; i < tree->count && !error; i++) {
        struct inode *inode;
        error = volume_get(tree->volume, tree->objects[i].ino, &inode);
        if (!error) {
            error = visit(context, tree->objects[i].path, inode);
            volume_put(inode, 1);
        }
        if (error)
            fprintf(stderr, "%s: %s\n", tree->objects[i].path, strerror(-error));
    }
    for (size_t i = 0; i < tree->count; i++)
        free(tree->objects[i].path);
    free(tree->objects);
    return error;
}

int image_tree_each(const char *image, bool writable, const char *options, image_tree_visit visit,
                    void *context) {
    struct log log = log_to_stderr("image", LOG_LEVEL_WARNING);
    struct tree tree = {0};
    struct clock clock;
    struct device *device;

    clock_init_wall(&clock);
    int error = device_open_image(image, writable ? 0 : DEVICE_READ_ONLY, 0, &clock, &log, &device);
    if (error)
        return error;
    struct volume_config config = {
        .device = device,
        .clock = &clock,
        .log = &log,
        .read_only = !writable,
        .options = options,
    };
    error = volume_open(&config, &tree.volume);
    if (error) {
        device_close(device);
        return error;
    }
    error = tree_visit(&tree, visit, context);
    int closed = volume_close(tree.volume);
    return error ? error : closed;
}

int image_tree_read(struct inode *inode, uint64_t from, uint64_t to,
                    void (*add)(void *context, const void *bytes, size_t size), void *context) {
    void *chunk = malloc(CHUNK);
    int error = chunk ? 0 : -ENOMEM;

    while (from < to && !error) {
        size_t size = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        int64_t got = volume_read_noatime(inode, chunk, size, from);
        if (got <= 0) {
            error = got < 0 ? (int)got : -EIO;
            break;
        }
        add(context, chunk, (size_t)got);
        from += (uint64_t)got;
    }
    free(chunk);
    return error;
}

char *image_tree_target(struct inode *inode, uint64_t size, int *error) {
    char *target = malloc(size + 1);

    *error = target ? volume_readlink(inode, target, size + 1) : -ENOMEM;
    if (*error) {
        free(target);
        return NULL;
    }
    return target;
}

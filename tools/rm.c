/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs rm`: removes files, and with -r directories, from an image.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/image.h"
#include "tools/tool.h"

struct rm {
    struct image_arguments arguments;
    bool recursive, force;
    struct tool_image image;
    int code;
};

static void rm_complain(struct rm *rm, const char *path, int error) {
    rm->code = tool_fail_path(rm->image.path, path, error);
}

static void rm_entry(struct rm *rm, struct inode *parent, const char *name, uint32_t length,
                     const char *path, const struct ancestor *up);

static int rm_contents(struct rm *rm, struct inode *directory, const char *path,
                       const struct ancestor *up) {
    struct ancestor here = {.ino = directory->ino, .up = up};
    struct name_list list = {0};
    int error = 0;

    if (ancestor_includes(up, directory->ino))
        return -ELOOP;
    error = name_list_directory(&list, directory);
    for (size_t i = 0; !error && i < list.count; i++) {
        char *child = path_join(path, list.names[i]);

        if (!child)
            error = -ENOMEM;
        else if (tool_interrupted())
            error = -EINTR;
        else
            rm_entry(rm, directory, list.names[i], (uint32_t)strlen(list.names[i]), child, &here);
        free(child);
    }
    name_list_free(&list);
    return error;
}

/* A directory whose contents could not all be removed answers -ENOTEMPTY; what was in the way has
 * been reported by then. */
static void rm_entry(struct rm *rm, struct inode *parent, const char *name, uint32_t length,
                     const char *path, const struct ancestor *up) {
    struct inode *inode;
    int error = volume_lookup(parent, name, length, &inode);

    if (error) {
        if (error != -ENOENT || !rm->force)
            rm_complain(rm, path, error);
        return;
    }
    bool directory = S_ISDIR(inode->mode);
    if (directory)
        error = rm->recursive ? rm_contents(rm, inode, path, up) : -EISDIR;
    volume_put(inode, 1);
    if (!error)
        error =
            directory ? volume_rmdir(parent, name, length) : volume_unlink(parent, name, length);
    if (error)
        rm_complain(rm, path, error);
}

static void rm_path(struct rm *rm, const char *path) {
    struct inode *parent;
    const char *name;
    uint32_t length;
    int error = image_parent(rm->image.volume, path, &parent, &name, &length);

    if (error == -EINVAL) {
        rm->code = tool_fail("%s:%s: the last part of a path to remove must be a name",
                             rm->image.path, path);
    } else if (error) {
        if (error != -ENOENT || !rm->force)
            rm_complain(rm, path, error);
    } else {
        rm_entry(rm, parent, name, length, path, NULL);
        volume_put(parent, 1);
    }
}

static const struct argp_option rm_options[] = {
    {"recursive", 'r', NULL, 0, "Directories and all they hold, too", 0},
    {NULL, 'R', NULL, OPTION_ALIAS, NULL, 0},
    {"force", 'f', NULL, 0, "Say nothing about paths that are not there", 0},
    {0},
};

static error_t rm_parse(int key, char *argument, struct argp_state *state) {
    struct rm *rm = state->input;

    switch (key) {
    case 'r':
    case 'R':
        rm->recursive = true;
        return 0;
    case 'f':
        rm->force = true;
        return 0;
    default:
        return image_arguments_parse(&rm->arguments, 1, -1, key, state);
    }
}

int tool_rm(int argc, char **argv) {
    static const struct argp argp = {
        .options = rm_options,
        .parser = rm_parse,
        .args_doc = "IMAGE PATH...",
        .doc = "Removes files from an image.",
    };
    struct rm rm = {.code = TOOL_DONE};

    argp_parse(&argp, argc, argv, 0, NULL, &rm);
    if (tool_image_open(&rm.image, rm.arguments.image, false))
        return TOOL_FAILED;
    for (int i = 0; i < rm.arguments.count && !tool_interrupted(); i++)
        rm_path(&rm, rm.arguments.paths[i]);
    if (tool_image_close(&rm.image))
        rm.code = TOOL_FAILED;
    return rm.code;
}

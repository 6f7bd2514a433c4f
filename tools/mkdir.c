/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs mkdir`: makes directories in an image.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/image.h"
#include "tools/tool.h"

struct mkdir {
    struct image_arguments arguments;
    bool parents;
    uint32_t mode;
    struct tool_image image;
};

static int mkdir_one(const struct mkdir *mkdir, const char *path) {
    struct create_request request = {
        .mode = S_IFDIR | mkdir->mode,
        .uid = getuid(),
        .gid = getgid(),
    };
    struct inode *parent;
    const char *name;
    uint32_t length;
    int error = image_parent(mkdir->image.volume, path, &parent, &name, &length);

    if (error)
        return error;
    error = volume_create(parent, name, length, &request, NULL);
    volume_put(parent, 1);
    return error;
}

static bool is_directory(struct volume *volume, const char *path) {
    struct inode *inode;

    if (volume_resolve(volume, path, true, &inode))
        return false;
    bool directory = S_ISDIR(inode->mode);
    volume_put(inode, 1);
    return directory;
}

/* Makes every directory on the way that is not there yet. */
static int mkdir_parents(const struct mkdir *mkdir, const char *path) {
    char *prefix = strdup(path);
    int error = prefix ? 0 : -ENOMEM;

    for (size_t end = 0; !error && path[end]; end++) {
        if (path[end + 1] != '/' && path[end + 1] != '\0')
            continue;
        prefix[end + 1] = '\0';
        if (!is_directory(mkdir->image.volume, prefix))
            error = mkdir_one(mkdir, prefix);
        prefix[end + 1] = path[end + 1];
    }
    free(prefix);
    return error;
}

static const struct argp_option mkdir_options[] = {
    {"parents", 'p', NULL, 0, "Make what is missing on the way; existing directories are fine", 0},
    {"mode", 'm', "MODE", 0, "Permissions as an octal number (default: 755)", 0},
    {0},
};

static error_t mkdir_parse(int key, char *argument, struct argp_state *state) {
    struct mkdir *mkdir = state->input;
    char *end;

    switch (key) {
    case 'p':
        mkdir->parents = true;
        return 0;
    case 'm':
        mkdir->mode = (uint32_t)strtoul(argument, &end, 8);
        if (end == argument || *end || mkdir->mode > 07777)
            argp_error(state, "'%s' is no octal mode", argument);
        return 0;
    default:
        return image_arguments_parse(&mkdir->arguments, 1, -1, key, state);
    }
}

int tool_mkdir(int argc, char **argv) {
    static const struct argp argp = {
        .options = mkdir_options,
        .parser = mkdir_parse,
        .args_doc = "IMAGE PATH...",
        .doc = "Makes directories in an image.",
    };
    struct mkdir mkdir = {.mode = 0755};
    int code = TOOL_DONE;

    argp_parse(&argp, argc, argv, 0, NULL, &mkdir);
    if (tool_image_open(&mkdir.image, mkdir.arguments.image, false))
        return TOOL_FAILED;
    for (int i = 0; i < mkdir.arguments.count; i++) {
        const char *path = mkdir.arguments.paths[i];
        int error = mkdir.parents ? mkdir_parents(&mkdir, path) : mkdir_one(&mkdir, path);

        if (error)
            code = tool_fail_path(mkdir.image.path, path, error);
    }
    if (tool_image_close(&mkdir.image))
        code = TOOL_FAILED;
    return code;
}

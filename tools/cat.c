/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs cat`: prints files of an image.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/image.h"
#include "tools/tool.h"

#define CAT_CHUNK (1u << 20)

static int cat_inode(struct inode *inode, char *buffer) {
    uint64_t offset = 0;

    if (S_ISDIR(inode->mode))
        return -EISDIR;
    if (!S_ISREG(inode->mode))
        return -EINVAL;
    for (;;) {
        int64_t done = volume_read(inode, buffer, CAT_CHUNK, offset);

        if (done <= 0)
            return (int)done;
        if (fwrite(buffer, 1, (size_t)done, stdout) != (size_t)done)
            return -EIO;
        offset += (uint64_t)done;
    }
}

static int cat_path(const struct tool_image *image, const char *path, char *buffer) {
    struct inode *inode;
    int error = volume_resolve(image->volume, path, true, &inode);

    if (!error) {
        error = cat_inode(inode, buffer);
        volume_put(inode, 1);
    }
    /* main() tells why standard output failed. */
    if (error && !ferror(stdout))
        tool_fail_path(image->path, path, error);
    return error;
}

static error_t cat_parse(int key, char *argument, struct argp_state *state) {
    return image_arguments_parse(state->input, 1, -1, key, state);
}

int tool_cat(int argc, char **argv) {
    static const struct argp argp = {
        .parser = cat_parse,
        .args_doc = "IMAGE PATH...",
        .doc = "Prints files of an image to standard output.",
    };
    struct image_arguments arguments = {0};
    struct tool_image image;
    int code = TOOL_DONE;

    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    char *buffer = malloc(CAT_CHUNK);
    if (!buffer)
        return tool_fail("out of memory");
    if (tool_image_open(&image, arguments.image, true)) {
        free(buffer);
        return TOOL_FAILED;
    }
    for (int i = 0; i < arguments.count && !ferror(stdout); i++)
        if (cat_path(&image, arguments.paths[i], buffer))
            code = TOOL_FAILED;
    if (tool_image_close(&image))
        code = TOOL_FAILED;
    free(buffer);
    return code;
}

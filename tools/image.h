/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. What the commands that work on an image without mounting it share: opening it,
 * complaining, noticing an interruption, and listing directories.
 *
 * Invariants:
 *  1. An image opened for writing is closed again whatever happens, Ctrl-C included: loops over
 *     files ask tool_interrupted, so that no command leaves a volume half-way.
 *  2. Names that come from an image are used only if they are a single path component.
 */
#ifndef LAYOUTFS_TOOLS_IMAGE_H
#define LAYOUTFS_TOOLS_IMAGE_H

#include <argp.h>

#include "fs/volume.h"

/* --- complaints ------------------------------------------------------------------------------- */

/* Prints "layoutfs: SENTENCE" to standard error and returns TOOL_FAILED. */
int tool_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a path in an image: "layoutfs: IMAGE:PATH: reason". `error` is a negative errno. */
int tool_fail_path(const char *image, const char *path, int error);

/* --- images ----------------------------------------------------------------------------------- */

/* Must stay where it is while open: the volume borrows from it. */
struct tool_image {
    const char *path; /* borrowed */
    struct clock clock;
    struct log log;
    struct volume *volume;
};

/* 0 or negative errno, after a sentence. */
int tool_image_open(struct tool_image *image, const char *path, bool read_only);
/* The same with mount options; NULL: none. */
int tool_image_open_with(struct tool_image *image, const char *path, bool read_only,
                         const char *options);
/* Writes everything back; 0 or negative errno, after a sentence. */
int tool_image_close(struct tool_image *image);
/* The device of an image that is not to be mounted. 0 or negative errno, after a sentence. */
int tool_image_open_device(struct tool_image *image, const char *path, bool read_only,
                           struct device **device);

/* From the first call on, SIGINT, SIGTERM and SIGHUP no longer end the program. */
void tool_catch_interruption(void);
bool tool_interrupted(void);

/* --- "IMAGE PATH..." on the command line ------------------------------------------------------ */

struct image_arguments {
    const char *image;
    char **paths;
    int count;
};

/* The default case of a command's argp parser: takes the arguments, at least `minimum` paths and at
 * most `maximum` (-1: any number). */
error_t image_arguments_parse(struct image_arguments *arguments, int minimum, int maximum, int key,
                              struct argp_state *state);

/* --- directories ------------------------------------------------------------------------------ */

struct name_list {
    char **names; /* owned, sorted by bytes; without "." and ".." */
    size_t count, room;
};

/* `list` starts as {0}. -ENOMEM; -EUCLEAN: an entry is no possible name. */
int name_list_add(struct name_list *list, const char *name, size_t length);
int name_list_directory(struct name_list *list, struct inode *directory);
void name_list_sort(struct name_list *list);
void name_list_free(struct name_list *list);

/* The directories between the top of a recursion and the present one: a crafted image may hold a
 * directory that contains itself. */
struct ancestor {
    uint64_t ino;
    const struct ancestor *up;
};
bool ancestor_includes(const struct ancestor *ancestor, uint64_t ino);

/* "DIRECTORY/NAME" without a doubled slash; owned by the caller, NULL without memory. */
char *path_join(const char *directory, const char *name);
/* The last component ("" for "/"): `length` bytes from the returned place. Trailing slashes are no
 * part of it. */
const char *path_last(const char *path, size_t *length);
/* The directory that is to hold the last component of `path`, referenced, and that component. The
 * component is not empty, "." or "..": -EINVAL. */
int image_parent(struct volume *volume, const char *path, struct inode **parent, const char **name,
                 uint32_t *length);

#endif

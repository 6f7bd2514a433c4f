/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools, over tools/tree.h. `layoutfs cp`: copies into, out of and between images, with all
 * that belongs to a file: mode, owner, times, extended attributes, holes, hard links.
 *
 * Invariants:
 *  1. A directory's times are set after its last entry was made.
 *  2. What is in the way of a file is replaced, never written through: no symlink in the
 *     destination is followed below the path that the user gave.
 *  3. The destination image is closed properly however the copy ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "tools/tool.h"
#include "tools/tree.h"

#define CP_CHUNK   (1u << 20)
#define XATTR_ROOM (64u << 10) /* the largest value, and the longest list of names, in Linux */

struct location {
    struct tree *tree;
    const char *path;
};

/* Where the copy of a file with several names lies: the other names become links to it. */
struct copied_file {
    struct {
        uint64_t tree, device, ino; /* tree: its address, an identity only */
    } key;
    char *path; /* in the destination; owned */
    UT_hash_handle hh;
};

struct cp {
    bool recursive, archive;
    char **arguments; /* sources, then the destination */
    int argument_count;
    struct host_tree host;
    struct image_tree *images; /* owned; room for one an argument */
    int image_count;
    struct tree *target; /* the destination's tree */
    uint64_t target_top; /* inode number of the first directory made there */
    struct copied_file *copied;
    char *buffer; /* CP_CHUNK bytes */
    char *xattr_names, *xattr_value;
    bool stop; /* going on would only repeat the error */
    int code;
};

/* A source object and its way: what a recursive step needs to know. */
struct cp_item {
    struct tree *tree;
    struct node *node;
    const char *path;        /* for messages */
    const char *target_path; /* for messages and later links */
    struct node_status status;
};

/* --- complaints ------------------------------------------------------------------------------- */

static void cp_complain(struct cp *cp, const struct tree *tree, const char *path, int error) {
    if (error == -ENOSPC || error == -EROFS || error == -EINTR)
        cp->stop = true;
    if (tree->name)
        cp->code = tool_fail_path(tree->name, path, error);
    else
        cp->code = tool_fail("%s: %s", path, strerror(-error));
}

static void cp_complain_target(struct cp *cp, const struct cp_item *item, int error) {
    cp_complain(cp, cp->target, item->target_path, error);
}

/* --- contents --------------------------------------------------------------------------------- */

static int cp_write(struct cp *cp, struct node *node, size_t size, uint64_t offset) {
    size_t written = 0;

    while (written < size) {
        int64_t done = cp->target->operations->write(node, cp->buffer + written, size - written,
                                                     offset + written);
        if (done <= 0)
            return done < 0 ? (int)done : -EIO;
        written += (size_t)done;
    }
    return 0;
}

/* Copies [offset, end). The source's error is reported here, the destination's returned. */
static int cp_range(struct cp *cp, const struct cp_item *item, struct node *node, uint64_t offset,
                    uint64_t end) {
    while (offset < end) {
        size_t wanted = end - offset < CP_CHUNK ? (size_t)(end - offset) : CP_CHUNK;

        if (tool_interrupted())
            return -EINTR;
        int64_t done = item->tree->operations->read(item->node, cp->buffer, wanted, offset);
        if (done < 0)
            cp_complain(cp, item->tree, item->path, (int)done);
        if (done <= 0)
            return 0;
        int error = cp_write(cp, node, (size_t)done, offset);
        if (error)
            return error;
        offset += (uint64_t)done;
    }
    return 0;
}

/* Copies what is stored; holes stay holes. */
static void cp_contents(struct cp *cp, const struct cp_item *item, struct node *node) {
    uint64_t size = item->status.attributes.size, start = 0, end;
    int error = 0;

    while (!error && start < size) {
        int seek = item->tree->operations->next_data(item->node, &start, &end);

        if (seek == -ENXIO)
            break;
        if (seek) {
            cp_complain(cp, item->tree, item->path, seek);
            return;
        }
        if (end > size)
            end = size;
        error = cp_range(cp, item, node, start, end);
        start = end;
    }
    if (!error)
        error = cp->target->operations->set_size(node, size);
    if (error)
        cp_complain_target(cp, item, error);
}

/* --- attributes ------------------------------------------------------------------------------- */

static bool is_unsupported(int64_t error) {
    return error == -ENOTSUP || error == -EPERM || error == -ENOSYS;
}

/* Attributes that the destination cannot keep are passed over, except under --archive. */
static void cp_xattrs(struct cp *cp, const struct cp_item *item, struct node *node) {
    const struct tree_operations *source = item->tree->operations;
    int64_t length = source->list_xattrs(item->node, cp->xattr_names, XATTR_ROOM);

    if (length < 0 && !is_unsupported(length))
        cp_complain(cp, item->tree, item->path, (int)length);
    for (int64_t i = 0; i < length; i += (int64_t)strlen(cp->xattr_names + i) + 1) {
        const char *name = cp->xattr_names + i;
        int64_t size = source->get_xattr(item->node, name, cp->xattr_value, XATTR_ROOM);

        if (size < 0) {
            if (size != -ENODATA)
                cp_complain(cp, item->tree, item->path, (int)size);
            continue;
        }
        int error = cp->target->operations->set_xattr(node, name, cp->xattr_value, (size_t)size);
        if (error && (cp->archive || !is_unsupported(error))) {
            tool_fail("the attribute %s cannot be kept:", name);
            cp_complain_target(cp, item, error);
        }
    }
}

static void cp_attributes(struct cp *cp, const struct cp_item *item, struct node *node) {
    cp_xattrs(cp, item, node);
    int error = cp->target->operations->set_attributes(node, &item->status.attributes);
    /* Plain users cannot give files away; their copies are their own. */
    if (error && error != -EPERM)
        cp_complain_target(cp, item, error);
}

/* --- hard links ------------------------------------------------------------------------------- */

static bool has_other_names(const struct cp_item *item) {
    return item->status.attributes.nlink > 1 && !S_ISDIR(item->status.attributes.mode);
}

static struct copied_file copied_key(const struct cp_item *item) {
    struct copied_file file = {0};

    file.key.tree = (uintptr_t)item->tree;
    file.key.device = item->status.device;
    file.key.ino = item->status.attributes.ino;
    return file;
}

static void cp_remember(struct cp *cp, const struct cp_item *item) {
    struct copied_file *file = malloc(sizeof(*file));

    if (file) {
        *file = copied_key(item);
        file->path = strdup(item->target_path);
    }
    if (!file || !file->path) {
        free(file);
        cp_complain_target(cp, item, -ENOMEM);
        return;
    }
    HASH_ADD(hh, cp->copied, key, sizeof(file->key), file);
}

/* Makes `name` a link to the copy made before. False: there is none. */
static bool cp_link(struct cp *cp, const struct cp_item *item, struct node *directory,
                    const char *name) {
    const struct tree_operations *target = cp->target->operations;
    struct copied_file wanted = copied_key(item), *file;
    struct node *node;

    HASH_FIND(hh, cp->copied, &wanted.key, sizeof(wanted.key), file);
    if (!file)
        return false;
    int error = target->resolve(cp->target, file->path, false, &node);
    if (!error) {
        error = target->link(directory, name, node);
        if (error == -EEXIST && (error = target->unlink(directory, name)) == 0)
            error = target->link(directory, name, node);
        target->put(node);
    }
    if (error)
        cp_complain_target(cp, item, error);
    return true;
}

static void cp_forget_all(struct cp *cp) {
    struct copied_file *file, *next;

    HASH_ITER (hh, cp->copied, file, next) {
        HASH_DEL(cp->copied, file);
        free(file->path);
        free(file);
    }
}

/* --- objects ---------------------------------------------------------------------------------- */

static void cp_item(struct cp *cp, struct cp_item *item, struct node *directory, const char *name,
                    const struct ancestor *up);

/* Is `name` in the destination the very object that is to be copied there? */
static bool is_same_object(struct cp *cp, const struct cp_item *item, struct node *directory,
                           const char *name) {
    struct node_status status;
    struct node *node;

    if (item->tree != cp->target || cp->target->operations->lookup(directory, name, &node))
        return false;
    bool same = cp->target->operations->status(node, &status) == 0 &&
                status.attributes.ino == item->status.attributes.ino;
    cp->target->operations->put(node);
    return same;
}

/* Makes the object, in place of another one that is no directory. */
static int cp_create(struct cp *cp, const struct cp_item *item, struct node *directory,
                     const char *name, const char *link_target, struct node **node) {
    const struct tree_operations *target = cp->target->operations;
    const struct attributes *attributes = &item->status.attributes;
    int error = target->create(directory, name, attributes, link_target, node);

    if (error != -EEXIST)
        return error;
    if (is_same_object(cp, item, directory, name)) {
        tool_fail("source and destination are the same file:");
        return -EEXIST;
    }
    error = target->unlink(directory, name);
    return error ? error : target->create(directory, name, attributes, link_target, node);
}

static void cp_file(struct cp *cp, const struct cp_item *item, struct node *directory,
                    const char *name) {
    const struct attributes *attributes = &item->status.attributes;
    char *link_target = NULL;
    struct node *node;
    int error;

    if (S_ISLNK(attributes->mode)) {
        link_target = malloc(attributes->size + 1);
        error = link_target ? item->tree->operations->read_link(item->node, link_target,
                                                                attributes->size + 1)
                            : -ENOMEM;
        if (error) {
            cp_complain(cp, item->tree, item->path, error);
            free(link_target);
            return;
        }
    }
    error = cp_create(cp, item, directory, name, link_target, &node);
    free(link_target);
    if (error) {
        cp_complain_target(cp, item, error);
        return;
    }
    if (S_ISREG(attributes->mode))
        cp_contents(cp, item, node);
    cp_attributes(cp, item, node);
    cp->target->operations->put(node);
    if (has_other_names(item))
        cp_remember(cp, item);
}

/* Copies what a directory holds into `node`. */
static void cp_entries(struct cp *cp, const struct cp_item *item, struct node *node,
                       const struct ancestor *up) {
    struct ancestor here = {.ino = item->status.attributes.ino, .up = up};
    struct name_list list = {0};
    int error = item->tree->operations->names(item->node, &list);

    if (error)
        cp_complain(cp, item->tree, item->path, error);
    for (size_t i = 0; i < list.count && !cp->stop; i++) {
        char *path = path_join(item->path, list.names[i]);
        char *target_path = path_join(item->target_path, list.names[i]);
        struct cp_item child = {.tree = item->tree, .path = path, .target_path = target_path};

        error = path && target_path ? 0 : -ENOMEM;
        if (!error)
            error = tool_interrupted() ? -EINTR : 0;
        if (!error)
            error = item->tree->operations->lookup(item->node, list.names[i], &child.node);
        if (error) {
            cp_complain(cp, item->tree, path ? path : list.names[i], error);
        } else {
            cp_item(cp, &child, node, list.names[i], &here);
            item->tree->operations->put(child.node);
        }
        free(path);
        free(target_path);
    }
    name_list_free(&list);
}

/* The directory of that name in the destination, made unless it is there. */
static int cp_directory_node(struct cp *cp, const struct cp_item *item, struct node *directory,
                             const char *name, struct node **node) {
    const struct tree_operations *target = cp->target->operations;
    struct node_status status;
    int error = target->create(directory, name, &item->status.attributes, NULL, node);

    if (error == -EEXIST) {
        error = target->lookup(directory, name, node);
        if (error)
            return error;
        error = target->status(*node, &status);
        if (!error && !S_ISDIR(status.attributes.mode))
            error = -ENOTDIR;
        if (error)
            target->put(*node);
    }
    return error;
}

/* Copies the directory's contents and attributes onto `node`. */
static void cp_onto(struct cp *cp, const struct cp_item *item, struct node *node,
                    const struct ancestor *up) {
    struct node_status status;

    if (cp->target_top == 0 && cp->target->operations->status(node, &status) == 0)
        cp->target_top = status.attributes.ino;
    cp_entries(cp, item, node, up);
    cp_attributes(cp, item, node);
}

static void cp_directory(struct cp *cp, const struct cp_item *item, struct node *directory,
                         const char *name, const struct ancestor *up) {
    uint64_t ino = item->status.attributes.ino;
    struct node *node;

    if (!cp->recursive) {
        cp->code = tool_fail("%s is a directory, and -r is not given", item->path);
        return;
    }
    if (ancestor_includes(up, ino)) {
        cp_complain(cp, item->tree, item->path, -ELOOP);
        return;
    }
    if (item->tree == cp->target && ino == cp->target_top) {
        cp->code = tool_fail("%s: cannot copy a directory into itself", item->path);
        return;
    }
    int error = cp_directory_node(cp, item, directory, name, &node);
    if (error) {
        cp_complain_target(cp, item, error);
        return;
    }
    cp_onto(cp, item, node, up);
    cp->target->operations->put(node);
}

/* Copies an object to `name` in the destination's directory. */
static void cp_item(struct cp *cp, struct cp_item *item, struct node *directory, const char *name,
                    const struct ancestor *up) {
    int error = item->tree->operations->status(item->node, &item->status);

    if (error)
        cp_complain(cp, item->tree, item->path, error);
    else if (S_ISDIR(item->status.attributes.mode))
        cp_directory(cp, item, directory, name, up);
    else if (!has_other_names(item) || !cp_link(cp, item, directory, name))
        cp_file(cp, item, directory, name);
}

/* --- the arguments ---------------------------------------------------------------------------- */

/* The opened image of that name; an image named twice is opened once. */
static int cp_open_image(struct cp *cp, const char *path, bool read_only, struct tree **tree) {
    struct stat wanted, present;
    bool exists = stat(path, &wanted) == 0;

    for (int i = 0; exists && i < cp->image_count; i++) {
        if (stat(cp->images[i].tree.name, &present) == 0 && present.st_dev == wanted.st_dev &&
            present.st_ino == wanted.st_ino) {
            *tree = &cp->images[i].tree;
            return 0;
        }
    }
    struct image_tree *image = &cp->images[cp->image_count];
    int error = image_tree_open(image, path, read_only);
    if (!error) {
        cp->image_count++;
        *tree = &image->tree;
    }
    return error;
}

/* "IMAGE:/path" or a path of the host. The image's name is cut off in place. */
static int cp_locate(struct cp *cp, char *argument, bool read_only, struct location *location) {
    char *colon = strstr(argument, ":/");

    if (!colon || colon == argument) {
        *location = (struct location){&cp->host.tree, argument};
        return 0;
    }
    *colon = '\0';
    location->path = colon + 1;
    return cp_open_image(cp, argument, read_only, &location->tree);
}

/* Does the path stand for what the directory holds ("/", "dir/.") rather than for its name? */
static bool means_contents(const char *path) {
    size_t length;
    const char *name = path_last(path, &length);

    return length == 0 || strncmp(name, ".", length) == 0 || strncmp(name, "..", length) == 0;
}

/* Copies one source into the existing directory `directory`. */
static void cp_into(struct cp *cp, struct cp_item *item, struct node *directory,
                    const char *directory_path) {
    size_t length;
    const char *last = path_last(item->path, &length);
    char *name = strndup(last, length);
    char *path = name ? path_join(directory_path, name) : NULL;

    item->target_path = path;
    if (!path)
        cp_complain(cp, cp->target, directory_path, -ENOMEM);
    else
        cp_item(cp, item, directory, name, NULL);
    free(path);
    free(name);
}

/* Copies what the source directory holds into the existing directory `directory`. */
static void cp_merge(struct cp *cp, struct cp_item *item, struct node *directory,
                     const char *directory_path) {
    int error = item->tree->operations->status(item->node, &item->status);

    item->target_path = directory_path;
    if (error)
        cp_complain(cp, item->tree, item->path, error);
    else if (!cp->recursive)
        cp->code = tool_fail("%s is a directory, and -r is not given", item->path);
    else
        cp_onto(cp, item, directory, NULL);
}

/* Copies one source to a path that names no directory yet. */
static void cp_to_path(struct cp *cp, struct cp_item *item, const char *path) {
    struct node *directory;
    const char *last;
    uint32_t length;
    int error = cp->target->operations->parent(cp->target, path, &directory, &last, &length);

    if (error) {
        cp_complain(cp, cp->target, path, error);
        return;
    }
    char *name = strndup(last, length);
    item->target_path = path;
    if (name)
        cp_item(cp, item, directory, name, NULL);
    else
        cp_complain(cp, cp->target, path, -ENOMEM);
    free(name);
    cp->target->operations->put(directory);
}

/* The destination if it is an existing directory, else NULL. */
static struct node *cp_destination_directory(struct cp *cp, const char *path) {
    const struct tree_operations *target = cp->target->operations;
    struct node_status status;
    struct node *node;

    if (target->resolve(cp->target, path, true, &node))
        return NULL;
    if (target->status(node, &status) == 0 && S_ISDIR(status.attributes.mode))
        return node;
    target->put(node);
    return NULL;
}

static void cp_source(struct cp *cp, const struct location *source, const char *target_path,
                      struct node *directory) {
    struct cp_item item = {.tree = source->tree, .path = source->path};
    int error = item.tree->operations->resolve(item.tree, item.path, !cp->recursive, &item.node);

    if (error) {
        cp_complain(cp, item.tree, item.path, error);
        return;
    }
    if (!directory)
        cp_to_path(cp, &item, target_path);
    else if (means_contents(item.path))
        cp_merge(cp, &item, directory, target_path);
    else
        cp_into(cp, &item, directory, target_path);
    item.tree->operations->put(item.node);
}

static int cp_all(struct cp *cp) {
    int sources = cp->argument_count - 1;
    struct location source, target;

    if (cp_locate(cp, cp->arguments[sources], false, &target))
        return TOOL_FAILED;
    cp->target = target.tree;
    struct node *directory = cp_destination_directory(cp, target.path);
    if (!directory && sources > 1)
        return tool_fail("%s: with several sources the destination must be a directory",
                         target.path);
    for (int i = 0; i < sources && !cp->stop; i++) {
        if (cp_locate(cp, cp->arguments[i], true, &source)) {
            cp->code = TOOL_FAILED;
        } else if (!source.tree->name && !target.tree->name) {
            tool_fail("neither %s nor %s lies in an image (IMAGE:/path)", source.path, target.path);
            cp->code = TOOL_USAGE;
        } else {
            cp->target_top = 0;
            cp_source(cp, &source, target.path, directory);
        }
    }
    if (directory)
        cp->target->operations->put(directory);
    return cp->code;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct argp_option cp_options[] = {
    {"recursive", 'r', NULL, 0, "Copy directories with all they hold; keep symlinks", 0},
    {NULL, 'R', NULL, OPTION_ALIAS, NULL, 0},
    {"archive", 'a', NULL, 0, "As -r, and report extended attributes that cannot be kept", 0},
    {0},
};

static error_t cp_parse(int key, char *argument, struct argp_state *state) {
    struct cp *cp = state->input;

    switch (key) {
    case 'a':
        cp->archive = true;
        cp->recursive = true;
        return 0;
    case 'r':
    case 'R':
        cp->recursive = true;
        return 0;
    case ARGP_KEY_ARGS:
        cp->arguments = state->argv + state->next;
        cp->argument_count = state->argc - state->next;
        if (cp->argument_count < 2)
            argp_error(state, "the destination is missing");
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "source and destination are missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_cp(int argc, char **argv) {
    static const struct argp argp = {
        .options = cp_options,
        .parser = cp_parse,
        .args_doc = "SOURCE... DESTINATION",
        .doc =
            "Copies into, out of or between images. A place in an image is written IMAGE:/path."
            "\vMode, owner, times, extended attributes, holes and hard links are kept, as far as "
            "the destination and the user's rights allow. A source that ends in / or /. stands "
            "for what the directory holds. An existing file is replaced.",
    };
    struct cp cp = {.code = TOOL_DONE};

    argp_parse(&argp, argc, argv, 0, NULL, &cp);
    host_tree_init(&cp.host);
    cp.images = calloc((size_t)cp.argument_count, sizeof(*cp.images));
    cp.buffer = malloc(CP_CHUNK);
    cp.xattr_names = malloc(XATTR_ROOM);
    cp.xattr_value = malloc(XATTR_ROOM);
    if (cp.images && cp.buffer && cp.xattr_names && cp.xattr_value)
        cp.code = cp_all(&cp);
    else
        cp.code = tool_fail("out of memory");
    for (int i = 0; i < cp.image_count; i++)
        if (image_tree_close(&cp.images[i]))
            cp.code = TOOL_FAILED;
    cp_forget_all(&cp);
    free(cp.images);
    free(cp.buffer);
    free(cp.xattr_names);
    free(cp.xattr_value);
    return cp.code;
}

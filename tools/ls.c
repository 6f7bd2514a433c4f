/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs ls`: lists an image's directories, in byte order of the names.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

struct ls {
    struct image_arguments arguments;
    bool all, directories, inode_numbers, long_format, recursive;
    struct tool_image image;
    bool printed; /* something, so that the next heading is set off by an empty line */
    int code;
};

struct ls_row {
    const char *name; /* borrowed */
    char *target;     /* owned; of a symlink, else NULL */
    struct attributes attributes;
};

/* --- rows ------------------------------------------------------------------------------------- */

static int ls_row_fill(struct ls_row *row, const char *name, struct inode *inode) {
    row->name = name;
    volume_getattr(inode, &row->attributes);
    if (!S_ISLNK(row->attributes.mode))
        return 0;
    size_t room = row->attributes.size + 1;
    row->target = malloc(room);
    if (!row->target)
        return -ENOMEM;
    return volume_readlink(inode, row->target, room);
}

struct ls_widths {
    int ino, nlink, uid, gid, size;
};

static int digits(uint64_t number) {
    return snprintf(NULL, 0, "%" PRIu64, number);
}

static void widen(int *width, int needed) {
    if (needed > *width)
        *width = needed;
}

static bool is_device(uint32_t mode) {
    return S_ISCHR(mode) || S_ISBLK(mode);
}

/* Sizes of files, "major, minor" of devices. */
static int ls_size_text(const struct attributes *attributes, char *text, size_t room) {
    if (is_device(attributes->mode))
        return snprintf(text, room, "%" PRIu32 ", %" PRIu32, attributes->rdev >> 20,
                        attributes->rdev & 0xFFFFF);
    return snprintf(text, room, "%" PRIu64, attributes->size);
}

static struct ls_widths ls_measure(const struct ls_row *rows, size_t count) {
    struct ls_widths widths = {0};
    char size[32];

    for (size_t i = 0; i < count; i++) {
        const struct attributes *attributes = &rows[i].attributes;
        widen(&widths.ino, digits(attributes->ino));
        widen(&widths.nlink, digits(attributes->nlink));
        widen(&widths.uid, digits(attributes->uid));
        widen(&widths.gid, digits(attributes->gid));
        widen(&widths.size, ls_size_text(attributes, size, sizeof(size)));
    }
    return widths;
}

static void ls_print_long(const struct ls_row *row, const struct ls_widths *widths) {
    const struct attributes *attributes = &row->attributes;
    char mode[MODE_TEXT_SIZE], time[TIME_TEXT_SIZE], size[32];

    mode_text(attributes->mode, mode);
    time_text(attributes->mtime, time);
    ls_size_text(attributes, size, sizeof(size));
    printf("%s %*" PRIu32 " %*" PRIu32 " %*" PRIu32 " %*s %s ", mode, widths->nlink,
           attributes->nlink, widths->uid, attributes->uid, widths->gid, attributes->gid,
           widths->size, size, time);
}

static void ls_print(struct ls *ls, const struct ls_row *rows, size_t count) {
    struct ls_widths widths = ls_measure(rows, count);

    for (size_t i = 0; i < count; i++) {
        if (ls->inode_numbers)
            printf("%*" PRIu64 " ", widths.ino, rows[i].attributes.ino);
        if (ls->long_format)
            ls_print_long(&rows[i], &widths);
        fputs(rows[i].name, stdout);
        if (ls->long_format && rows[i].target)
            printf(" -> %s", rows[i].target);
        putchar('\n');
        ls->printed = true;
    }
}

/* --- directories ------------------------------------------------------------------------------ */

static void ls_complain(struct ls *ls, const char *path, int error) {
    ls->code = tool_fail_path(ls->image.path, path, error);
}

/* Adds the row of one entry; a damaged inode is reported and costs only its own row. */
static size_t ls_entry(struct ls *ls, struct inode *directory, const char *path, const char *name,
                       struct ls_row *row) {
    struct inode *inode;
    int error = volume_lookup(directory, name, (uint32_t)strlen(name), &inode);

    if (!error) {
        error = ls_row_fill(row, name, inode);
        volume_put(inode, 1);
    }
    if (!error)
        return 1;
    free(row->target);
    row->target = NULL;
    char *full = path_join(path, name);
    ls_complain(ls, full ? full : name, error);
    free(full);
    return 0;
}

static void ls_directory(struct ls *ls, const char *path, struct inode *directory,
                         const struct ancestor *up);

static void ls_subdirectory(struct ls *ls, const char *path, const struct ls_row *row,
                            const struct ancestor *up) {
    struct inode *inode;
    char *full = path_join(path, row->name);
    int error = full ? 0 : -ENOMEM;

    if (!error && ancestor_includes(up, row->attributes.ino))
        error = -ELOOP;
    if (!error)
        error = volume_get(ls->image.volume, row->attributes.ino, &inode);
    if (error) {
        ls_complain(ls, full ? full : row->name, error);
    } else {
        ls_directory(ls, full, inode, up);
        volume_put(inode, 1);
    }
    free(full);
}

static void ls_rows(struct ls *ls, const char *path, struct inode *directory,
                    const struct name_list *list, const struct ancestor *up) {
    struct ls_row *rows = calloc(list->count + 1, sizeof(*rows));
    size_t count = 0;

    if (!rows) {
        ls_complain(ls, path, -ENOMEM);
        return;
    }
    for (size_t i = 0; i < list->count; i++)
        if (ls->all || list->names[i][0] != '.')
            count += ls_entry(ls, directory, path, list->names[i], &rows[count]);
    ls_print(ls, rows, count);
    for (size_t i = 0; ls->recursive && i < count; i++) {
        const char *name = rows[i].name;
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (S_ISDIR(rows[i].attributes.mode) && !dots)
            ls_subdirectory(ls, path, &rows[i], up);
    }
    for (size_t i = 0; i < count; i++)
        free(rows[i].target);
    free(rows);
}

static void ls_directory(struct ls *ls, const char *path, struct inode *directory,
                         const struct ancestor *up) {
    struct ancestor here = {.ino = directory->ino, .up = up};
    struct name_list list = {0};
    int error = 0;

    if (ls->recursive || ls->arguments.count > 1) {
        printf("%s%s:\n", ls->printed ? "\n" : "", path);
        ls->printed = true;
    }
    if (ls->all) {
        error = name_list_add(&list, ".", 1);
        if (!error)
            error = name_list_add(&list, "..", 2);
    }
    if (!error)
        error = name_list_directory(&list, directory);
    if (error)
        ls_complain(ls, path, error);
    ls_rows(ls, path, directory, &list, &here);
    name_list_free(&list);
}

static void ls_path(struct ls *ls, const char *path) {
    struct inode *inode;
    int error = volume_resolve(ls->image.volume, path, !ls->long_format, &inode);

    if (error) {
        ls_complain(ls, path, error);
        return;
    }
    if (S_ISDIR(inode->mode) && !ls->directories) {
        ls_directory(ls, path, inode, NULL);
    } else {
        struct ls_row row = {0};
        error = ls_row_fill(&row, path, inode);
        if (error)
            ls_complain(ls, path, error);
        else
            ls_print(ls, &row, 1);
        free(row.target);
    }
    volume_put(inode, 1);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct argp_option ls_options[] = {
    {"all", 'a', NULL, 0, "Names that start with a dot, too", 0},
    {"directory", 'd', NULL, 0, "Directories themselves, not what they hold", 0},
    {"inode", 'i', NULL, 0, "Inode numbers", 0},
    {"long", 'l', NULL, 0, "Mode, links, owner, group, size and mtime (UTC)", 0},
    {"recursive", 'R', NULL, 0, "Subdirectories, too", 0},
    {0},
};

static error_t ls_parse(int key, char *argument, struct argp_state *state) {
    struct ls *ls = state->input;

    switch (key) {
    case 'a':
        ls->all = true;
        return 0;
    case 'd':
        ls->directories = true;
        return 0;
    case 'i':
        ls->inode_numbers = true;
        return 0;
    case 'l':
        ls->long_format = true;
        return 0;
    case 'R':
        ls->recursive = true;
        return 0;
    default:
        return image_arguments_parse(&ls->arguments, 0, -1, key, state);
    }
}

int tool_ls(int argc, char **argv) {
    static const struct argp argp = {
        .options = ls_options,
        .parser = ls_parse,
        .args_doc = "IMAGE [PATH...]",
        .doc = "Lists files and directories of an image, by default its root.",
    };
    struct ls ls = {.code = TOOL_DONE};

    argp_parse(&argp, argc, argv, 0, NULL, &ls);
    if (tool_image_open(&ls.image, ls.arguments.image, true))
        return TOOL_FAILED;
    for (int i = 0; i < ls.arguments.count; i++)
        ls_path(&ls, ls.arguments.paths[i]);
    if (ls.arguments.count == 0)
        ls_path(&ls, "/");
    if (tool_image_close(&ls.image))
        ls.code = TOOL_FAILED;
    return ls.code;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs mkfs`: makes an empty filesystem in a file or on a block device.
 *
 * The single-letter options (-b, -N, -L, ...) are those of the layouts' option tables.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/image.h"
#include "tools/tool.h"

#define LETTERS_MAX 64

struct mkfs_letter {
    char letter;
    const char *value; /* NULL: a switch */
};

struct mkfs {
    const char *type, *image;
    const char *option_text[LETTERS_MAX]; /* each -o's */
    int option_text_count;
    struct mkfs_letter letters[LETTERS_MAX];
    int letter_count;
    uint64_t size; /* 0: as the image is */
    bool dry_run, force, quiet;
};

/* --- options ---------------------------------------------------------------------------------- */

/* The type's defaults, then all that was given on the command line. */
static int mkfs_options(const struct mkfs *mkfs, const struct layout *layout,
                        const struct layout_type *type, const struct log *log,
                        struct options *options) {
    int error = options_init(options, layout->options, OPTION_MKFS, log);

    if (error)
        return error;
    if (type && type->mkfs_options)
        error = options_parse(options, type->mkfs_options);
    for (int i = 0; !error && i < mkfs->letter_count; i++) {
        const struct mkfs_letter *letter = &mkfs->letters[i];

        error = options_set_letter(options, letter->letter, letter->value);
        if (error == -ENOENT)
            tool_fail("%s has no option -%c", mkfs->type, letter->letter);
    }
    for (int i = 0; !error && i < mkfs->option_text_count; i++)
        error = options_parse(options, mkfs->option_text[i]);
    if (error)
        options_free(options);
    return error;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Refuses to overwrite what a layout recognises. */
static int mkfs_check_existing(const struct mkfs *mkfs, const struct stat *status) {
    struct tool_image image;
    struct probe_result probe;
    const struct layout *layout;
    struct device *device;

    if (mkfs->force || (S_ISREG(status->st_mode) && status->st_size < DEVICE_SECTOR))
        return 0;
    if (tool_image_open_device(&image, mkfs->image, true, &device))
        return -EIO;
    device->log = NULL; /* that nothing is recognised is what we hope for */
    int error = layout_probe(device, &layout, &probe);
    device_close(device);
    if (error)
        return 0;
    tool_fail("%s holds a filesystem (%s); --force overwrites it", mkfs->image, probe.description);
    return -EEXIST;
}

/* The device to format; *created says that the file is new. */
static int mkfs_open(const struct mkfs *mkfs, struct clock *clock, const struct log *log,
                     bool *created, struct device **device) {
    struct stat status;

    *created = false;
    if (stat(mkfs->image, &status)) {
        if (errno == ENOENT && mkfs->size == 0) {
            tool_fail("%s does not exist; --size makes it", mkfs->image);
            return -ENOENT;
        }
        *created = errno == ENOENT;
    } else {
        int error = mkfs_check_existing(mkfs, &status);

        if (error)
            return error;
        if (S_ISBLK(status.st_mode) && mkfs->size) {
            tool_fail("%s is a block device, whose size cannot be chosen", mkfs->image);
            return -EINVAL;
        }
    }
    return device_open_image(mkfs->image, mkfs->size ? DEVICE_CREATE : 0, mkfs->size, clock, log,
                             device);
}

/* For --dry-run: memory of the size that the image has or would get. */
static int mkfs_open_dry(const struct mkfs *mkfs, struct clock *clock, const struct log *log,
                         struct device **device) {
    struct tool_image image;
    struct device *existing;
    uint64_t size = mkfs->size;

    if (size == 0) {
        if (tool_image_open_device(&image, mkfs->image, true, &existing))
            return -EIO;
        size = existing->size;
        device_close(existing);
    }
    return device_open_ram(size / DEVICE_SECTOR * DEVICE_SECTOR, clock, log, device);
}

/* --- the work --------------------------------------------------------------------------------- */

/* One line about the new filesystem, in the words of its own probe. */
static void mkfs_summary(const struct mkfs *mkfs, struct device *device) {
    const struct layout *layout;
    struct probe_result probe;

    if (!mkfs->quiet && layout_probe(device, &layout, &probe) == 0)
        printf("%s%s: %s, %" PRIu64 " KiB\n", mkfs->dry_run ? "would make " : "", mkfs->image,
               probe.description, device->size / 1024);
}

static int mkfs_run(const struct mkfs *mkfs, const struct layout *layout,
                    const struct layout_type *type) {
    struct log log = log_to_stderr("layoutfs", LOG_LEVEL_WARNING);
    struct options options;
    struct clock clock;
    struct device *device;
    bool created = false;

    clock_init_wall(&clock);
    if (mkfs_options(mkfs, layout, type, &log, &options))
        return TOOL_USAGE;
    int error = mkfs->dry_run ? mkfs_open_dry(mkfs, &clock, &log, &device)
                              : mkfs_open(mkfs, &clock, &log, &created, &device);
    if (!error) {
        error = layout_format(mkfs->type, device, &options);
        if (error)
            tool_fail("%s: not formatted: %s", mkfs->image, strerror(-error));
        else
            mkfs_summary(mkfs, device);
        device_close(device);
        if (error && created)
            unlink(mkfs->image);
    }
    options_free(&options);
    return !error ? TOOL_DONE : error == -EINVAL ? TOOL_USAGE : TOOL_FAILED;
}

/* --- the command ------------------------------------------------------------------------------ */

enum { KEY_SIZE = 0x100 };

static const struct argp_option mkfs_own_options[] = {
    {"type", 't', "TYPE", 0, "Type of filesystem; `layoutfs options` lists them", 0},
    {NULL, 'o', "NAME=VALUE,...", 0, "Options of the layout, listed there, too", 0},
    {"size", KEY_SIZE, "SIZE", 0, "Make the image this large: bytes, or with K, M, G or T", 0},
    {"force", 'F', NULL, 0, "Overwrite a filesystem that is there", 0},
    {"dry-run", 'n', NULL, 0, "Only tell what would be made", 0},
    {"quiet", 'q', NULL, 0, "Print nothing", 0},
};

#define OWN_OPTIONS (sizeof(mkfs_own_options) / sizeof(mkfs_own_options[0]))

static bool option_known(const struct argp_option *options, int count, int key) {
    for (int i = 0; i < count; i++)
        if (options[i].key == key)
            return true;
    return false;
}

/* Our own options, then the letters of every layout's table, then the end mark. */
static void mkfs_argp_options(struct argp_option *options) {
    int count = OWN_OPTIONS;

    memcpy(options, mkfs_own_options, sizeof(mkfs_own_options));
    for (int i = 0; layout_registry[i]; i++) {
        const struct option_spec *spec = layout_registry[i]->options;

        for (; spec && spec->name && count < LETTERS_MAX; spec++) {
            if (!spec->letter || !(spec->scope & OPTION_MKFS) ||
                option_known(options, count, spec->letter))
                continue;
            options[count++] = (struct argp_option){
                .key = spec->letter,
                .arg = spec->kind == OPTION_BOOL ? NULL : spec->name,
                .doc = spec->description,
                .group = 1,
            };
        }
    }
    options[count] = (struct argp_option){0};
}

static error_t mkfs_parse(int key, char *argument, struct argp_state *state) {
    struct mkfs *mkfs = state->input;

    switch (key) {
    case 't':
        mkfs->type = argument;
        return 0;
    case 'o':
        if (mkfs->option_text_count == LETTERS_MAX)
            argp_error(state, "too many options");
        mkfs->option_text[mkfs->option_text_count++] = argument;
        return 0;
    case KEY_SIZE:
        if (size_parse(argument, &mkfs->size) || mkfs->size < DEVICE_SECTOR)
            argp_error(state, "'%s' is no size", argument);
        mkfs->size = mkfs->size / DEVICE_SECTOR * DEVICE_SECTOR;
        return 0;
    case 'F':
        mkfs->force = true;
        return 0;
    case 'n':
        mkfs->dry_run = true;
        return 0;
    case 'q':
        mkfs->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (mkfs->image)
            argp_error(state, "one image only");
        mkfs->image = argument;
        return 0;
    case ARGP_KEY_END:
        if (!mkfs->image)
            argp_error(state, "the image is missing");
        if (!mkfs->type)
            argp_error(state, "the type is missing: -t TYPE");
        return 0;
    default:
        if (key <= 0 || key > 0x7F)
            return ARGP_ERR_UNKNOWN;
        if (mkfs->letter_count == LETTERS_MAX)
            argp_error(state, "too many options");
        mkfs->letters[mkfs->letter_count++] = (struct mkfs_letter){(char)key, argument};
        return 0;
    }
}

static void list_types(void) {
    fputs("layoutfs: the types are:", stderr);
    for (int i = 0; layout_registry[i]; i++) {
        const struct layout_type *type = layout_registry[i]->types;

        for (; type && type->name && !(layout_registry[i]->flags & LAYOUT_VOLATILE); type++)
            fprintf(stderr, " %s", type->name);
    }
    fputc('\n', stderr);
}

int tool_mkfs(int argc, char **argv) {
    struct argp_option options[LETTERS_MAX + 1];
    const struct argp argp = {
        .options = options,
        .parser = mkfs_parse,
        .args_doc = "-t TYPE IMAGE",
        .doc = "Makes an empty filesystem that fills IMAGE, a file or a block device.",
    };
    struct mkfs mkfs = {0};
    const struct layout *layout;
    const struct layout_type *type = NULL;

    mkfs_argp_options(options);
    argp_parse(&argp, argc, argv, 0, NULL, &mkfs);
    if (layout_find(mkfs.type, &layout, &type)) {
        tool_fail("there is no type '%s'", mkfs.type);
        list_types();
        return TOOL_USAGE;
    }
    if (!layout->format) {
        tool_fail("%s keeps nothing on a disk", mkfs.type);
        return TOOL_USAGE;
    }
    return mkfs_run(&mkfs, layout, type);
}

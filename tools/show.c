/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs show` prints a structure of the format, `layoutfs explain` how a file
 * lies on the disk. Both print the layout's JSON object as text unless asked for JSON.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

struct show {
    struct image_arguments arguments;
    bool json;
};

static const struct {
    const char *name;
    enum describe_kind kind;
    bool numbered;
} show_kinds[] = {
    {"super", DESCRIBE_SUPER, false},    {"group", DESCRIBE_GROUP, true},
    {"inode", DESCRIBE_INODE, true},     {"block", DESCRIBE_BLOCK, true},
    {"log", DESCRIBE_LOG, true},         {"checkpoint", DESCRIBE_CHECKPOINT, true},
    {"virtual", DESCRIBE_VIRTUAL, true}, {"map", DESCRIBE_MAP, true},
};

#define SHOW_KINDS (sizeof(show_kinds) / sizeof(show_kinds[0]))

enum { KEY_JSON = 0x100 };

static const struct argp_option show_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static void print_either(bool json, json_t *object) {
    if (json)
        print_json(stdout, object);
    else
        print_object(stdout, object);
}

/* --- show ------------------------------------------------------------------------------------- */

static error_t show_parse(int key, char *argument, struct argp_state *state) {
    struct show *show = state->input;

    if (key == KEY_JSON) {
        show->json = true;
        return 0;
    }
    return image_arguments_parse(&show->arguments, 1, 2, key, state);
}

/* The place of the structure in show_kinds and its number; false: not understood. */
static bool show_target(const struct image_arguments *arguments, size_t *kind, uint64_t *number) {
    for (*kind = 0; *kind < SHOW_KINDS; (*kind)++)
        if (strcmp(arguments->paths[0], show_kinds[*kind].name) == 0)
            break;
    if (*kind == SHOW_KINDS || show_kinds[*kind].numbered != (arguments->count == 2))
        return false;
    *number = 0;
    if (!show_kinds[*kind].numbered)
        return true;
    const char *text = arguments->paths[1];
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && end != text && !*end && text[0] != '-';
}

int tool_show(int argc, char **argv) {
    static const struct argp argp = {
        .options = show_options,
        .parser = show_parse,
        .args_doc = "IMAGE super\nIMAGE group|inode|block|log|checkpoint|virtual|map NUMBER",
        .doc = "Prints a structure of the image's format, every field by its name.",
    };
    struct show show = {0};
    struct tool_image image;
    size_t kind;
    uint64_t number;
    json_t *object;

    argp_parse(&argp, argc, argv, 0, NULL, &show);
    if (!show_target(&show.arguments, &kind, &number)) {
        tool_fail("show what? 'super', or 'group', 'inode', 'block', 'log', 'checkpoint', "
                  "'virtual' or 'map' and a number");
        return TOOL_USAGE;
    }
    if (tool_image_open(&image, show.arguments.image, true))
        return TOOL_FAILED;
    int code = TOOL_DONE;
    int error = volume_describe(image.volume, show_kinds[kind].kind, number, &object);
    if (error) {
        code =
            tool_fail("%s: cannot show %s%s%s: %s", image.path, show_kinds[kind].name,
                      show_kinds[kind].numbered ? " " : "",
                      show_kinds[kind].numbered ? show.arguments.paths[1] : "", strerror(-error));
    } else {
        print_either(show.json, object);
        json_decref(object);
    }
    if (tool_image_close(&image))
        code = TOOL_FAILED;
    return code;
}

/* --- explain ---------------------------------------------------------------------------------- */

static error_t explain_parse(int key, char *argument, struct argp_state *state) {
    struct show *explain = state->input;

    if (key == KEY_JSON) {
        explain->json = true;
        return 0;
    }
    return image_arguments_parse(&explain->arguments, 1, -1, key, state);
}

/* The object for one path, with "path" as its first member. */
static int explain_path(struct volume *volume, const char *path, json_t **object) {
    struct inode *inode;
    json_t *explanation;
    int error = volume_resolve(volume, path, false, &inode);

    if (error)
        return error;
    error = volume_explain(inode, &explanation);
    volume_put(inode, 1);
    if (error)
        return error;
    *object = json_pack("{s:s}", "path", path);
    if (!*object || json_object_update(*object, explanation)) {
        json_decref(*object);
        error = -ENOMEM;
    }
    json_decref(explanation);
    return error;
}

int tool_explain(int argc, char **argv) {
    static const struct argp argp = {
        .options = show_options,
        .parser = explain_parse,
        .args_doc = "IMAGE PATH...",
        .doc = "Tells how files lie on the disk: their extents, fragments and metadata blocks.",
    };
    struct show explain = {0};
    struct tool_image image;
    int code = TOOL_DONE;

    argp_parse(&argp, argc, argv, 0, NULL, &explain);
    if (tool_image_open(&image, explain.arguments.image, true))
        return TOOL_FAILED;
    for (int i = 0; i < explain.arguments.count; i++) {
        json_t *object;
        int error = explain_path(image.volume, explain.arguments.paths[i], &object);

        if (error) {
            code = tool_fail_path(image.path, explain.arguments.paths[i], error);
            continue;
        }
        if (i > 0)
            putchar('\n');
        print_either(explain.json, object);
        json_decref(object);
    }
    if (tool_image_close(&image))
        code = TOOL_FAILED;
    return code;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs convert`: changes the format of an image that is not mounted, and keeps
 * what is in it. What can be changed is the layout's business: its options of scope OPTION_CONVERT.
 */
#include <string.h>

#include "tools/image.h"
#include "tools/tool.h"

struct convert {
    struct image_arguments arguments;
    const char *options;
};

static int convert_device(const struct convert *convert, const struct log *log,
                          struct device *device) {
    const char *image = convert->arguments.image;
    const struct layout *layout;
    struct probe_result probe;
    struct options options;

    if (layout_probe(device, &layout, &probe))
        return TOOL_FAILED;
    if (!layout->convert)
        return tool_fail("%s: %s images cannot be converted", image, probe.type);
    if (options_init(&options, layout->options, OPTION_CONVERT, log))
        return TOOL_FAILED;
    int error = options_parse(&options, convert->options);
    int code = error ? TOOL_USAGE : TOOL_DONE;
    if (!error)
        error = layout->convert(device, &options);
    if (!error)
        error = device_flush(device);
    options_free(&options);
    if (error && code == TOOL_DONE)
        code = tool_fail("%s: not converted: %s", image, strerror(-error));
    return code;
}

static const struct argp_option convert_options[] = {
    {"options", 'o', "OPTIONS", 0, "what is to change, as layoutfs options lists it", 0},
    {0},
};

static error_t convert_parse(int key, char *argument, struct argp_state *state) {
    struct convert *convert = state->input;

    switch (key) {
    case 'o':
        convert->options = argument;
        return 0;
    case ARGP_KEY_SUCCESS:
        if (!convert->options)
            argp_error(state, "-o is missing: nothing is to change");
        return 0;
    default:
        return image_arguments_parse(&convert->arguments, 0, 0, key, state);
    }
}

int tool_convert(int argc, char **argv) {
    static const struct argp argp = {
        .options = convert_options,
        .parser = convert_parse,
        .args_doc = "IMAGE",
        .doc = "Changes the format of an image that is not mounted, and keeps what is in it.\v"
               "An ext2 volume becomes ext3 by a journal: -o has_journal, and ext2 again without "
               "it: -o nohas_journal.",
    };
    struct convert convert = {0};
    struct tool_image image;
    struct device *device;

    argp_parse(&argp, argc, argv, 0, NULL, &convert);
    if (tool_image_open_device(&image, convert.arguments.image, false, &device))
        return TOOL_FAILED;
    int code = convert_device(&convert, &image.log, device);
    device_close(device);
    return code;
}

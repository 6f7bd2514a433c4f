/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See format.h.
 */
#include "bench/format.h"

#include <string.h>

/* Directory hashes are seeded from a volume's UUID: a random one would make each run another. */
#define FIXED_UUID "7b1d2c6e-0f5a-4c3b-9a70-2b6e5d1c8f40"

static int fix_uuid(struct options *options) {
    for (unsigned i = 0; i < options->count; i++)
        if (strcmp(options->values[i].spec->name, "uuid") == 0 && !options->values[i].given)
            return options_set(options, "uuid", FIXED_UUID);
    return 0;
}

int format_row(const struct scenario_row *row, struct device *device, const struct log *log) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;
    int error = layout_find(row->type, &layout, &type);

    if (!error)
        error = options_init(&options, layout->options, OPTION_MKFS, log);
    if (error)
        return error;
    if (type && type->mkfs_options)
        error = options_parse(&options, type->mkfs_options);
    if (!error)
        error = options_parse(&options, row->mkfs);
    if (!error)
        error = fix_uuid(&options);
    if (!error)
        error = layout_format(row->type, device, &options);
    options_free(&options);
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See format.h.
 */
#include "bench/format.h"

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
        error = layout_format(row->type, device, &options);
    options_free(&options);
    return error;
}

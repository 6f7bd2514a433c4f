/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts. Where the core and the layouts meet: adding a layout is one folder and one line
 * in layout_registry. Interface: the end of fs/layout.h.
 */
#include <errno.h>
#include <string.h>

#include "fs/layout.h"

extern const struct layout memory_layout, ext_layout, nilfs_layout, reiser4_layout;

const struct layout *const layout_registry[] = {
    &ext_layout, &nilfs_layout, &reiser4_layout, &memory_layout, NULL,
};

static const struct layout_type *type_of(const struct layout *layout, const char *name) {
    for (const struct layout_type *type = layout->types; type && type->name; type++) {
        if (strcmp(type->name, name) == 0)
            return type;
    }
    return NULL;
}

int layout_find(const char *name, const struct layout **layout, const struct layout_type **type) {
    for (const struct layout *const *at = layout_registry; *at; at++) {
        *type = type_of(*at, name);
        if (*type || strcmp((*at)->name, name) == 0) {
            *layout = *at;
            return 0;
        }
    }
    return -ENOENT;
}

int layout_probe(struct device *device, const struct layout **layout, struct probe_result *best) {
    memset(best, 0, sizeof(*best));
    for (const struct layout *const *at = layout_registry; *at; at++) {
        struct probe_result result = {0};

        if (!(*at)->probe)
            continue;
        int error = (*at)->probe(device, &result);
        if (error)
            return error;
        if (result.confidence > best->confidence) {
            *best = result;
            *layout = *at;
        }
    }
    if (best->confidence > 0)
        return 0;
    log_error(device->log, "%s: holds no filesystem that layoutfs knows", device->name);
    return -ENODEV;
}

int layout_format(const char *type_name, struct device *device, struct options *options) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options defaults;
    int error = layout_find(type_name, &layout, &type);

    if (error || !layout->format) {
        log_error(device->log, "%s: no such type to make; 'layoutfs options' lists them",
                  type_name);
        return error ? error : -ENOTSUP;
    }
    if (!options) {
        error = options_init(&defaults, layout->options, OPTION_MKFS, device->log);
        if (!error && type && type->mkfs_options)
            error = options_parse(&defaults, type->mkfs_options);
        if (error)
            return error;
        options = &defaults;
    }
    error = layout->format(device, options);
    if (options == &defaults)
        options_free(&defaults);
    return error ? error : device_flush(device);
}

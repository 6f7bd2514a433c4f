/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The contract's functions for file data, which ask the object's plugin.
 * Interface: layouts/reiser4/body.h, layouts/reiser4/layout.h.
 */
#include "layouts/reiser4/body.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

const struct reiser4_body_plugin *reiser4_body_plugin_of(struct inode *inode) {
    unsigned object = reiser4_inode_of(inode)->plugins.id[REISER4_PLUGIN_OBJECT];

    return S_ISREG(inode->mode) && object == REISER4_OBJECT_REG40 ? &reiser4_reg40 : NULL;
}

static enum reiser4_form form_of_item(uint16_t id) {
    switch (id) {
    case REISER4_ITEM_TAIL:
        return REISER4_FORM_TAILS;
    case REISER4_ITEM_EXTENT:
        return REISER4_FORM_EXTENTS;
    case REISER4_ITEM_CTAIL:
        return REISER4_FORM_CLUSTERS;
    default:
        return REISER4_FORM_EMPTY;
    }
}

int reiser4_body_form(struct inode *inode, enum reiser4_form *form) {
    struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, 0);
    struct reiser4_cursor cursor;

    *form = (enum reiser4_form) private->form;
    if (*form != REISER4_FORM_UNKNOWN)
        return 0;
    *form = REISER4_FORM_EMPTY;
    int error = reiser4_tree_seek(&reiser4_of(inode->volume)->tree, &key, &cursor);
    if (error && error != -ENOENT)
        return error;
    if (!error) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        if (reiser4_key_same_object(&item.key, &key))
            *form = form_of_item(item.id);
        reiser4_cursor_release(&cursor);
    }
    if (*form == REISER4_FORM_CLUSTERS && reiser4_body_plugin_of(inode) == &reiser4_reg40)
        return reiser4_corrupt(inode->volume,
                               "object %" PRIu64 ": it is no compressed file, but has clusters",
                               inode->ino);
    private->form = (uint8_t)*form;
    return 0;
}

bool reiser4_body_wants_tails(struct inode *inode, uint64_t size) {
    switch (reiser4_inode_of(inode)->plugins.id[REISER4_PLUGIN_FORMATTING]) {
    case REISER4_FORMATTING_EXTENTS:
        return false;
    case REISER4_FORMATTING_TAILS:
        return true;
    default:
        return size <= REISER4_SMART_MAX;
    }
}

static int unreadable(const struct inode *inode) {
    log_error(inode->volume->log,
              "%s: reiser4: object %" PRIu64 " is a compressed file: these cannot be read yet",
              inode->volume->name, inode->ino);
    return -EOPNOTSUPP;
}

int reiser4_load(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->load(inode, range, batch) : unreadable(inode);
}

int reiser4_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->map(inode, offset, extent) : unreadable(inode);
}

int64_t reiser4_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->reserve(inode, offset, length) : unreadable(inode);
}

int reiser4_store(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->store(inode, range, batch) : unreadable(inode);
}

/* Commits rest on all that was stored. */
void reiser4_store_failed(struct volume *volume, int error) {
    (void)reiser4_fail(reiser4_of(volume), error);
}

int reiser4_truncate(struct inode *inode, uint64_t size) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->truncate(inode, size) : unreadable(inode);
}

int reiser4_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    const struct reiser4_body_plugin *plugin = reiser4_body_plugin_of(inode);

    return plugin ? plugin->punch(inode, offset, length) : unreadable(inode);
}

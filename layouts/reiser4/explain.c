/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, read-only: how an object lies in the tree and on the disk. Interface:
 * layouts/reiser4/layout.h.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fs/describe.h"
#include "layouts/reiser4/body.h"
#include "layouts/reiser4/describe.h"

/* The nodes from the root down to the object's stat data. */
static int put_path(struct inode *inode, json_t *object) {
    const struct reiser4_object self = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_stat(&self);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_find(&reiser4_of(inode->volume)->tree, &key, &cursor);

    if (error)
        return error;
    json_t *nodes = json_array();
    json_object_set_new(object, "nodes", nodes);
    for (uint32_t level = cursor.top; level >= cursor.bottom; level--) {
        const struct reiser4_step *step = &cursor.step[level];
        json_array_append_new(nodes,
                              json_pack("{s:I, s:I, s:I, s:I}", "level", (json_int_t)level, "block",
                                        (json_int_t)step->view.block, "item", (json_int_t)step->at,
                                        "items", (json_int_t)reiser4_node_items(step->view.node)));
    }
    reiser4_cursor_release(&cursor);
    return 0;
}

static const char *form_name(enum reiser4_form form) {
    static const char *const names[] = {[REISER4_FORM_UNKNOWN] = "unknown",
                                        [REISER4_FORM_EMPTY] = "empty",
                                        [REISER4_FORM_TAILS] = "tails",
                                        [REISER4_FORM_EXTENTS] = "extents",
                                        [REISER4_FORM_MIXED] = "tails and extents",
                                        [REISER4_FORM_CLUSTERS] = "clusters"};

    return names[form];
}

/* Extents as the contract has them, and what is between them. */
static int put_extents(struct inode *inode, json_t *object) {
    json_t *extents = json_array();
    uint64_t fragments = 0, gap = 0, end = 0;

    json_object_set_new(object, "extents", extents);
    for (uint64_t offset = 0; offset < inode->size;) {
        struct extent extent;
        int error = reiser4_map(inode, offset, &extent);
        if (error)
            return error;
        offset = extent.offset + extent.length;
        if (extent.flags & EXTENT_HOLE)
            continue;
        if (!(extent.flags & EXTENT_ENCODED) && extent.device_offset != end) {
            gap += end == 0                     ? 0
                   : extent.device_offset > end ? extent.device_offset - end
                                                : end - extent.device_offset;
            fragments++;
        }
        end = extent.device_offset + extent.length;
        json_array_append_new(extents,
                              json_pack("{s:I, s:I, s:I, s:b}", "offset", (json_int_t)extent.offset,
                                        "bytes", (json_int_t)extent.length, "block",
                                        (json_int_t)(extent.device_offset / REISER4_BLOCK_SIZE),
                                        "in_tree", (extent.flags & EXTENT_ENCODED) != 0));
    }
    describe_number(object, "fragments", fragments);
    describe_number(object, "mean_gap_bytes", fragments > 1 ? gap / (fragments - 1) : 0);
    return 0;
}

static int put_body(struct inode *inode, json_t *object) {
    const struct reiser4_object self = reiser4_object_of(inode);
    enum reiser4_form form;
    int error = reiser4_body_form(inode, &form);

    if (error)
        return error;
    describe_text(object, "body", form_name(form));
    error = reiser4_body_plugin_of(inode) ? put_extents(inode, object) : 0;
    if (error)
        return error;
    json_t *items = json_array();
    json_object_set_new(object, "items", items);
    return reiser4_describe_body(reiser4_of(inode->volume), &self, items);
}

int reiser4_explain(struct inode *inode, json_t **object) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct reiser4_object self = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_stat(&self);

    *object = json_object();
    if (!*object)
        return -ENOMEM;
    describe_number(*object, "inode", inode->ino);
    describe_text(*object, "type", describe_type(inode->mode));
    describe_number(*object, "size", inode->size);
    describe_number(*object, "block_size", REISER4_BLOCK_SIZE);
    describe_number(*object, "bytes_stored", private->bytes);
    reiser4_describe_key(*object, "key", &key);
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        if (private->slots.present & 1u << i)
            describe_text(*object, reiser4_member_name(i),
                          reiser4_plugin_name(i, private->slots.id[i]));
    int error = put_path(inode, *object);
    if (!error && S_ISREG(inode->mode))
        error = put_body(inode, *object);
    if (!json_object_get(*object, "extents"))
        json_object_set_new(*object, "extents", json_array());
    if (error) {
        json_decref(*object);
        *object = NULL;
    }
    return error;
}

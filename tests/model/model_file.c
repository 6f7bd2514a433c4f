/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: what operations on one object do to the model: contents, attributes, times. See model.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "tests/model/model.h"

uint32_t model_without_set_id(uint32_t mode) {
    mode &= ~(uint32_t)S_ISUID;
    return mode & S_IXGRP ? mode & ~(uint32_t)S_ISGID : mode;
}

void model_touch(struct model *model, struct model_node *node) {
    node->mtime = node->ctime = model->now;
    if (!model->keeps_set_id_bits) {
        node->mode = model_without_set_id(node->mode);
        node->set_id_unsure = false;
    }
}

static void may_change(struct model_time *time, struct model_time now) {
    if (now.earliest < time->earliest)
        time->earliest = now.earliest;
    if (now.latest > time->latest)
        time->latest = now.latest;
}

/* Where nothing changes, a filesystem may or may not take that for a change. */
static void may_touch(struct model *model, struct model_node *node) {
    may_change(&node->mtime, model->now);
    may_change(&node->ctime, model->now);
    node->set_id_unsure |= !model->keeps_set_id_bits;
}

static void write_bytes(struct model *model, struct model_node *node, const struct operation *op,
                        uint32_t offset) {
    if (op->length == 0)
        return;
    model_bytes(op->fill, node->data + offset, op->length);
    if (offset + op->length > node->size)
        node->size = offset + op->length;
    model_touch(model, node);
}

static void truncate_node(struct model *model, struct model_node *node, uint32_t size) {
    if (size == node->size) {
        may_touch(model, node);
        return;
    }
    if (size < node->size)
        memset(node->data + size, 0, node->size - size);
    node->size = size;
    model_touch(model, node);
}

static void zero_range(struct model *model, struct model_node *node, const struct operation *op) {
    uint32_t end = op->offset + op->length;

    if (end > node->size)
        end = node->size;
    if (op->offset < end) {
        memset(node->data + op->offset, 0, end - op->offset);
        model_touch(model, node);
    }
}

static bool is_aligned(const struct model *model, const struct operation *op) {
    return op->offset % model->block_size == 0 && op->length % model->block_size == 0;
}

static int collapse(struct model *model, struct model_node *node, const struct operation *op) {
    uint32_t end = op->offset + op->length;

    if (!is_aligned(model, op) || end >= node->size)
        return -EINVAL;
    memmove(node->data + op->offset, node->data + end, node->size - end);
    memset(node->data + node->size - op->length, 0, op->length);
    node->size -= op->length;
    model_touch(model, node);
    return 0;
}

static int insert(struct model *model, struct model_node *node, const struct operation *op) {
    if (!is_aligned(model, op) || op->offset >= node->size)
        return -EINVAL;
    memmove(node->data + op->offset + op->length, node->data + op->offset, node->size - op->offset);
    memset(node->data + op->offset, 0, op->length);
    node->size += op->length;
    model_touch(model, node);
    return 0;
}

/* What the kernel's ext4 refuses may have moved the times all the same. */
static int allocate(struct model *model, struct model_node *node, const struct operation *op) {
    uint32_t end = op->offset + op->length;

    may_touch(model, node);
    if (op->length == 0)
        return -EINVAL;
    switch (op->kind) {
    case OP_COLLAPSE:
        return collapse(model, node, op);
    case OP_INSERT:
        return insert(model, node, op);
    case OP_PUNCH:
    case OP_ZERO_KEEP:
        zero_range(model, node, op);
        return 0;
    case OP_ZERO:
        zero_range(model, node, op);
        break;
    default:
        break;
    }
    if (op->kind != OP_KEEP_SIZE && end > node->size) {
        node->size = end;
        model_touch(model, node);
    }
    return 0;
}

static int change_attribute(struct model *model, struct model_node *node,
                            const struct operation *op) {
    uint32_t which = op->other % MODEL_ATTRIBUTES, flags = op->how % 4;
    struct model_attribute *attribute = &node->attributes[which];

    if (which < 2 && !S_ISREG(node->mode) && !S_ISDIR(node->mode))
        return -EPERM; /* user attributes are for these alone: xattr(7) */
    if (flags == 3) {
        if (!attribute->present)
            return -ENODATA;
        attribute->present = false;
    } else {
        if (attribute->present && flags == XATTR_CREATE)
            return -EEXIST;
        if (!attribute->present && flags == XATTR_REPLACE)
            return -ENODATA;
        attribute->present = true;
        attribute->length = op->length % (MODEL_VALUE_MAX + 1);
        model_bytes(op->fill, attribute->value, attribute->length);
    }
    node->ctime = model->now;
    return 0;
}

static int change_owner(struct model *model, struct model_node *node, const struct operation *op) {
    node->uid = model_owner(op->fill);
    node->gid = model_owner(op->fill >> 8);
    node->whiteout = false;
    node->ctime = model->now;
    if (!S_ISDIR(node->mode) && !S_ISLNK(node->mode))
        node->mode = model_without_set_id(node->mode);
    return 0;
}

void model_refused(struct model *model, struct model_node *node) {
    may_touch(model, node);
}

int model_change(struct model *model, struct model_node *node, const struct operation *op) {
    int64_t time = model_utime(op);

    switch (op->kind) {
    case OP_WRITE:
        write_bytes(model, node, op, op->offset);
        return 0;
    case OP_APPEND:
        write_bytes(model, node, op, node->size);
        return 0;
    case OP_TRUNCATE:
        truncate_node(model, node, op->offset);
        return 0;
    case OP_OPEN_TRUNCATE:
        truncate_node(model, node, 0);
        return 0;
    case OP_CHMOD:
        if (!S_ISLNK(node->mode)) {
            node->mode = (node->mode & S_IFMT) | (op->fill & 07777);
            node->ctime = model->now;
            node->set_id_unsure = false;
        }
        return 0;
    case OP_CHOWN:
        return change_owner(model, node, op);
    case OP_UTIMENS:
        node->mtime = (struct model_time){time, time};
        node->ctime = model->now;
        return 0;
    case OP_XATTR:
        return change_attribute(model, node, op);
    default:
        return op->kind >= OP_PREALLOCATE && op->kind <= OP_INSERT ? allocate(model, node, op) : 0;
    }
}

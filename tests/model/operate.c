/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model's operations on a target. See model.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <unistd.h>

#include "tests/model/target.h"

/* Components from the root to a node, in reverse order. */
struct walk {
    const char *names[MODEL_NODES];
    uint32_t count;
};

static const struct model_entry *find_name(const struct model *model, uint32_t dir, uint32_t node) {
    const struct model_entry *entry = model->nodes[dir].entries;

    while (entry && entry->node != node)
        entry = entry->next;
    return entry;
}

static bool find_way(const struct model *model, uint32_t node, struct walk *walk) {
    walk->count = 0;
    while (node) {
        uint32_t dir = model->nodes[node].parent;
        const struct model_entry *entry = find_name(model, dir, node);
        for (uint32_t i = 0; i < model->used && !entry; i++) {
            dir = i;
            entry = find_name(model, dir, node);
        }
        if (!entry)
            return false;
        walk->names[walk->count++] = entry->name;
        node = dir;
    }
    return true;
}

int target_find(struct target *target, const struct model *model, uint32_t node,
                union handle *handle) {
    uint32_t slot = model_slot_of(model, node);
    struct walk walk;

    if (slot != MODEL_NONE && (model->nodes[node].nlink == 0 || slot % 2 == 0))
        return target->type->hold(target, target->slots[slot], handle);
    if (!find_way(model, node, &walk))
        return -ENOENT;
    int error = target->type->root(target, handle);
    while (!error && walk.count > 0) {
        union handle child;
        error = target->type->child(target, *handle, walk.names[--walk.count], &child);
        target->type->put(target, *handle);
        *handle = child;
    }
    return error;
}

/* --- names ------------------------------------------------------------------------------------ */

static int on_link(struct target *target, const struct model *model, const struct operation *op,
                   union handle dir, const char *name) {
    union handle handle;
    uint32_t node;

    if (!model_pick(model, PICK_LINKABLE, op->file, &node))
        return -ENOENT;
    int error = target_find(target, model, node, &handle);
    if (error)
        return error;
    error = target->type->link(target, handle, dir, name);
    target->type->put(target, handle);
    return error;
}

static int on_rename(struct target *target, const struct model *model, const struct operation *op,
                     union handle dir, const char *name) {
    static const unsigned flags[OP_KINDS] = {[OP_NOREPLACE] = RENAME_NOREPLACE,
                                             [OP_EXCHANGE] = RENAME_EXCHANGE,
                                             [OP_WHITEOUT] = RENAME_WHITEOUT};
    char other[256];
    union handle other_dir;
    uint32_t node = 0;

    model_name(op->other, other);
    model_pick(model, PICK_DIRECTORY, op->other_dir, &node);
    int error = target_find(target, model, node, &other_dir);
    if (error)
        return error;
    error = target->type->rename(target, dir, name, other_dir, other, flags[op->kind]);
    target->type->put(target, other_dir);
    return error;
}

static int on_names(struct target *target, const struct model *model, const struct operation *op) {
    char name[256];
    union handle dir;
    uint32_t node = 0;

    model_name(op->name, name);
    model_pick(model, PICK_DIRECTORY, op->dir, &node);
    int error = target_find(target, model, node, &dir);
    if (error)
        return error;
    if (op->kind < OP_LINK)
        error = target->type->create(target, dir, name, op);
    else if (op->kind == OP_LINK)
        error = on_link(target, model, op, dir, name);
    else if (op->kind >= OP_RENAME)
        error = on_rename(target, model, op, dir, name);
    else
        error = target->type->unlink(target, dir, name, op->kind == OP_RMDIR);
    target->type->put(target, dir);
    return error;
}

/* --- one object ------------------------------------------------------------------------------- */

static int all_written(int64_t written, uint32_t length) {
    return written < 0 ? (int)written : written == (int64_t)length ? 0 : -ENOSPC;
}

static int on_fallocate(struct target *target, union handle handle, const struct operation *op) {
    static const int modes[OP_KINDS] = {
        [OP_KEEP_SIZE] = FALLOC_FL_KEEP_SIZE,
        [OP_PUNCH] = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
        [OP_ZERO] = FALLOC_FL_ZERO_RANGE,
        [OP_ZERO_KEEP] = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
        [OP_COLLAPSE] = FALLOC_FL_COLLAPSE_RANGE,
        [OP_INSERT] = FALLOC_FL_INSERT_RANGE,
    };

    return target->type->fallocate(target, handle, modes[op->kind], op->offset, op->length);
}

static int on_copy(struct target *target, const struct model *model, const struct operation *op,
                   union handle from, const struct model_node *source) {
    uint32_t length = model_copy_length(source, op), node;
    union handle to;

    model_pick(model, PICK_FILE, op->other_file, &node);
    int error = target_find(target, model, node, &to);
    if (error)
        return error;
    /* More than there is: the copy has to end at the end. */
    uint32_t asked = length < op->length ? op->length : length;
    error = all_written(target->type->copy(target, from, op->offset, to, op->other_offset, asked),
                        length);
    target->type->put(target, to);
    return error;
}

static bool all_zero(const struct model_node *node, uint32_t from, uint32_t to) {
    for (; from < to && from < node->size; from++) {
        if (node->data[from])
            return false;
    }
    return true;
}

/* Where the holes are is the filesystem's business, but there must be no data in them. */
static int on_seek(struct target *target, union handle handle, const struct model_node *node,
                   const struct operation *op, struct difference *difference) {
    int64_t hole = target->type->seek(target, handle, op->offset, SEEK_HOLE);
    int64_t data = target->type->seek(target, handle, op->offset, SEEK_DATA);

    if (op->offset >= node->size) {
        if (hole != -ENXIO || data != -ENXIO)
            differ(difference, "seek at %u, past the end, finds a hole at %lld and data at %lld",
                   op->offset, (long long)hole, (long long)data);
        return 0;
    }
    if (hole < op->offset || hole > node->size ||
        (data != -ENXIO && (data < op->offset || data >= node->size)))
        differ(difference, "seek at %u of %u bytes: hole at %lld, data at %lld", op->offset,
               node->size, (long long)hole, (long long)data);
    else if (!all_zero(node, op->offset, data < 0 ? node->size : (uint32_t)data))
        differ(difference, "SEEK_DATA from %u skips data, to %lld", op->offset, (long long)data);
    else if (hole != op->offset && data != op->offset)
        differ(difference, "at %u there is neither a hole nor data", op->offset);
    return 0;
}

static int on_attribute(struct target *target, union handle handle, const struct operation *op) {
    const char *name = model_attribute_names[op->other % MODEL_ATTRIBUTES];
    uint32_t length = op->length % (MODEL_VALUE_MAX + 1), flags = op->how % 4;

    if (flags == 3)
        return target->type->remove_attribute(target, handle, name);
    model_bytes(op->fill, target->buffer, length);
    return target->type->set_attribute(target, handle, name, target->buffer, length, (int)flags);
}

static int on_data(struct target *target, union handle handle, const struct model_node *node,
                   const struct operation *op, struct difference *difference) {
    const struct target_type *type = target->type;
    int64_t got;

    switch (op->kind) {
    case OP_WRITE:
        model_bytes(op->fill, target->buffer, op->length);
        return all_written(
            type->write(target, handle, target->buffer, op->length, op->offset, op->how),
            op->length);
    case OP_APPEND:
        model_bytes(op->fill, target->buffer, op->length);
        return all_written(type->append(target, handle, target->buffer, op->length), op->length);
    case OP_READ:
        got = type->read(target, handle, target->buffer, op->length, op->offset, op->how);
        compare_bytes(node, op->offset, op->length, target->buffer, got, difference);
        return 0;
    case OP_TRUNCATE:
        return type->truncate(target, handle, op->offset, false);
    case OP_OPEN_TRUNCATE:
        return type->truncate(target, handle, 0, true);
    case OP_SEEK:
        return on_seek(target, handle, node, op, difference);
    case OP_FSYNC:
        return type->sync(target, handle, op->fill & 1);
    default:
        return on_fallocate(target, handle, op);
    }
}

static int close_slot(struct target *target, const struct model *model, uint32_t slot) {
    if (model->slots[slot] != MODEL_NONE)
        target->type->put(target, target->slots[slot]);
    return 0;
}

static int open_slot(struct target *target, const struct model *model, uint32_t slot,
                     union handle handle) {
    union handle held;
    int error = target->type->hold(target, handle, &held);

    if (!error) {
        close_slot(target, model, slot);
        target->slots[slot] = held;
    }
    return error;
}

static int on_handle(struct target *target, const struct model *model, const struct operation *op,
                     uint32_t index, union handle handle, struct difference *difference) {
    const struct model_node *node = &model->nodes[index];
    const struct target_type *type = target->type;

    switch (op->kind) {
    case OP_OPEN:
        return open_slot(target, model, op->other_file % MODEL_SLOTS, handle);
    case OP_COPY:
        return on_copy(target, model, op, handle, node);
    case OP_CHMOD:
        return S_ISLNK(node->mode) ? 0 : type->chmod(target, handle, op->fill & 07777);
    case OP_CHOWN:
        return type->chown(target, handle, model_owner(op->fill), model_owner(op->fill >> 8));
    case OP_UTIMENS:
        return type->set_mtime(target, handle, model_utime(op));
    case OP_XATTR:
        return on_attribute(target, handle, op);
    case OP_STAT:
        compare_node(target, model, index, difference);
        return 0;
    default:
        return on_data(target, handle, node, op, difference);
    }
}

/* What no filesystem is asked for: files too large for the model; and "user." attributes of what is
 * neither file nor directory, which the kernel refuses (xattr(7)). */
static bool is_out_of_scope(const struct operation *op, const struct model_node *node) {
    return model_too_large(op, node->size) ||
           (op->kind == OP_XATTR && op->other % MODEL_ATTRIBUTES < 2 && !S_ISREG(node->mode) &&
            !S_ISDIR(node->mode));
}

static bool on_object(struct target *target, const struct model *model, const struct operation *op,
                      int *answer, struct difference *difference) {
    enum model_choice choice = op->kind < OP_CHMOD ? PICK_FILE : PICK_ANY;
    union handle handle;
    uint32_t index;

    if (!model_pick(model, choice, op->file, &index) || is_out_of_scope(op, &model->nodes[index]))
        return true;
    *answer = target_find(target, model, index, &handle);
    if (*answer)
        return false;
    *answer = on_handle(target, model, op, index, handle, difference);
    target->type->put(target, handle);
    return false;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int remount(struct target *target, const struct model *model) {
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        if (model->slots[i] != MODEL_NONE)
            return target->type->drop_caches(target);
    }
    return target->type->remount(target);
}

static void list_one(struct target *target, const struct model *model, const struct operation *op,
                     struct difference *difference) {
    uint32_t node = 0;

    model_pick(model, PICK_DIRECTORY, op->dir, &node);
    compare_node(target, model, node, difference);
}

/* Kinds that a format may have no means for. */
static bool is_optional(enum operation_kind kind) {
    return (kind >= OP_PREALLOCATE && kind <= OP_COPY) || kind == OP_XATTR;
}

static void refused(struct model *model, const struct operation *op) {
    uint32_t node = 0;

    if (op->kind != OP_XATTR && model_pick(model, PICK_FILE, op->file, &node))
        model_refused(model, &model->nodes[node]);
}

bool operate(struct target *target, struct model *model, const struct operation *op, int *answer,
             struct difference *difference) {
    bool skip = false;

    *answer = 0;
    if (target->without >> op->kind & 1)
        return true;
    model->now.earliest = target->type->before(target, op);
    if (op->kind <= OP_WHITEOUT)
        *answer = on_names(target, model, op);
    else if (op->kind < OP_CLOSE)
        skip = on_object(target, model, op, answer, difference);
    else if (op->kind == OP_CLOSE)
        *answer = close_slot(target, model, op->file % MODEL_SLOTS);
    else if (op->kind == OP_LIST)
        list_one(target, model, op, difference);
    else if (op->kind == OP_VERIFY)
        compare_tree(target, model, difference);
    else if (op->kind == OP_DROP_CACHES)
        *answer = target->type->drop_caches(target);
    else
        *answer = remount(target, model);
    model->now.latest = target->type->after(target);
    if (*answer == -EOPNOTSUPP && is_optional(op->kind)) {
        target->lacks |= UINT64_C(1) << op->kind;
        refused(model, op);
        skip = true;
    }
    return skip;
}

static int empty_directory(struct target *target, const struct model *model, uint32_t dir) {
    union handle handle;
    int error = 0;

    for (const struct model_entry *e = model->nodes[dir].entries; e && !error; e = e->next) {
        bool directory = S_ISDIR(model->nodes[e->node].mode);
        if (directory)
            error = empty_directory(target, model, e->node);
        if (!error)
            error = target_find(target, model, dir, &handle);
        if (!error) {
            error = target->type->unlink(target, handle, e->name, directory);
            target->type->put(target, handle);
        }
    }
    return error;
}

int target_empty(struct target *target, struct model *model) {
    struct operation op = {.kind = OP_CLOSE};

    for (op.file = 0; op.file < MODEL_SLOTS; op.file++) {
        close_slot(target, model, op.file);
        model_apply(model, &op);
    }
    return empty_directory(target, model, 0);
}

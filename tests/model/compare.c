/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: is on the target what is in the model? See model.h.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/model/target.h"

void compare_bytes(const struct model_node *node, uint32_t offset, uint32_t length,
                   const uint8_t *bytes, int64_t got, struct difference *difference) {
    int64_t want = offset >= node->size ? 0 : node->size - offset;

    if (want > length)
        want = length;
    if (got != want) {
        differ(difference, "read at %u of %u bytes gives %lld, not %lld", offset, length,
               (long long)got, (long long)want);
        return;
    }
    for (int64_t i = 0; i < got && memcmp(bytes, node->data + offset, (size_t)got) != 0; i++) {
        if (bytes[i] != node->data[offset + i]) {
            differ(difference, "byte %lld of %u is %02x, not %02x", (long long)(offset + i),
                   node->size, bytes[i], node->data[offset + i]);
            return;
        }
    }
}

struct listing {
    const struct model *model;
    uint32_t dir, seen;
    struct difference *difference;
};

static void listed(void *context, const char *name, uint32_t type) {
    struct listing *l = context;
    const struct model_entry *expected = model_find(l->model, l->dir, name);

    if (!expected) {
        differ(l->difference, "a listing shows \"%.40s\", which should not exist", name);
        return;
    }
    uint32_t wanted = l->model->nodes[expected->node].mode & S_IFMT;
    if (type && type != wanted)
        differ(l->difference, "a listing shows \"%.40s\" with type %o, not %o", name, type, wanted);
    l->seen++;
}

static void compare_names(struct target *target, union handle dir, const struct model *model,
                          uint32_t node, struct difference *difference) {
    struct listing l = {.model = model, .dir = node, .difference = difference};
    uint32_t expected = 0;
    int error = target->type->list(target, dir, listed, &l);

    for (const struct model_entry *e = model->nodes[node].entries; e; e = e->next)
        expected++;
    if (error)
        differ(difference, "list: %s", strerror(-error));
    else if (!*difference->text && l.seen != expected)
        differ(difference, "a listing shows %u names, not %u", l.seen, expected);
}

static void compare_attributes(struct target *target, union handle handle,
                               const struct model_node *node, struct difference *difference) {
    char list[512];
    size_t names = 0;

    for (uint32_t i = 0; i < MODEL_ATTRIBUTES; i++) {
        const struct model_attribute *a = &node->attributes[i];
        const char *name = model_attribute_names[i];
        int64_t got =
            target->type->get_attribute(target, handle, name, target->buffer, MODEL_VALUE_MAX);
        int64_t want = a->present ? (int64_t)a->length : -ENODATA;
        if (got == -EOPNOTSUPP && !a->present) {
            target->lacks |= UINT64_C(1) << OP_XATTR;
            return;
        }
        if (got != want || (got > 0 && memcmp(target->buffer, a->value, (size_t)got) != 0))
            differ(difference, "%s has %lld bytes, not %lld, or others", name, (long long)got,
                   (long long)want);
        names += a->present ? strlen(name) + 1 : 0;
    }
    int64_t got = target->type->list_attributes(target, handle, list, sizeof(list));
    if (!*difference->text && got != (int64_t)names)
        differ(difference, "the list of attributes has %lld bytes, not %zu", (long long)got, names);
}

/* A time as the format keeps it: in its range, and rounded down. */
static int64_t kept_time(const struct target *target, int64_t ns) {
    int64_t excess = ns % target->time_granularity_ns;

    if (ns < 0 && target->time_min_s > ns / 1000000000)
        return target->time_min_s * 1000000000;
    if (ns > 0 && target->time_max_s < ns / 1000000000)
        return target->time_max_s * 1000000000;
    return ns - (excess < 0 ? excess + target->time_granularity_ns : excess);
}

static void compare_time(const struct target *target, const char *what, int64_t ns,
                         struct model_time expected, struct difference *difference) {
    int64_t earliest = kept_time(target, expected.earliest);
    int64_t latest = kept_time(target, expected.latest);

    if (ns < earliest || ns > latest)
        differ(difference, "%s is %lld ns off [%lld, %lld]", what,
               (long long)(ns < earliest ? ns - earliest : ns - latest), (long long)earliest,
               (long long)latest);
}

static bool same_mode(uint32_t mode, const struct model_node *node) {
    return mode == node->mode || (node->set_id_unsure && mode == model_without_set_id(node->mode));
}

static void compare_stat(struct target *target, union handle handle, const struct model_node *node,
                         bool root, struct difference *difference) {
    struct target_attributes a = {0};
    int error = target->type->stat(target, handle, &a);

    if (error)
        differ(difference, "stat: %s", strerror(-error));
    else if ((!root && !same_mode(a.mode, node)) || a.nlink != node->nlink)
        differ(difference, "mode %o links %u, not %o and %u", a.mode, a.nlink, node->mode,
               node->nlink);
    else if (!root && !node->whiteout && (a.uid != node->uid || a.gid != node->gid))
        differ(difference, "owner %u:%u, not %u:%u", a.uid, a.gid, node->uid, node->gid);
    else if (a.rdev != node->rdev)
        differ(difference, "device %x, not %x", a.rdev, node->rdev);
    else if (!S_ISDIR(node->mode) && a.size != node->size)
        differ(difference, "size %llu, not %u", (unsigned long long)a.size, node->size);
    else if (!root) {
        compare_time(target, "mtime", a.mtime, node->mtime, difference);
        compare_time(target, "ctime", a.ctime, node->ctime, difference);
    }
}

static void compare_contents(struct target *target, union handle handle, const struct model *model,
                             uint32_t index, struct difference *difference) {
    const struct model_node *node = &model->nodes[index];
    int64_t got;

    if (S_ISDIR(node->mode)) {
        compare_names(target, handle, model, index, difference);
    } else if (S_ISLNK(node->mode)) {
        int error = target->type->read_link(target, handle, (char *)target->buffer, 1024);
        if (error)
            differ(difference, "readlink: %s", strerror(-error));
        else if (memcmp(target->buffer, node->data, node->size) != 0)
            differ(difference, "the target of the link is another");
    } else if (S_ISREG(node->mode)) {
        got = target->type->read(target, handle, target->buffer, node->size + 1, 0, 0);
        compare_bytes(node, 0, node->size + 1, target->buffer, got, difference);
    }
}

void compare_node(struct target *target, const struct model *model, uint32_t index,
                  struct difference *difference) {
    const struct model_node *node = &model->nodes[index];
    struct difference found = {0};
    union handle handle;
    char path[128];

    int error = target_find(target, model, index, &handle);
    if (error) {
        differ(&found, "look-up: %s", strerror(-error));
    } else {
        compare_stat(target, handle, node, index == 0, &found);
        if (!*found.text)
            compare_contents(target, handle, model, index, &found);
        if (!*found.text && index != 0 && !(target->lacks & UINT64_C(1) << OP_XATTR))
            compare_attributes(target, handle, node, &found);
        target->type->put(target, handle);
    }
    if (*found.text) {
        model_path(model, index, path, sizeof(path));
        for (char *c = path; *c; c++)
            *c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
        differ(difference, "%.100s: %.300s", path, found.text);
    }
}

void compare_tree(struct target *target, const struct model *model, struct difference *difference) {
    for (uint32_t i = 0; i < model->used && !*difference->text; i++) {
        if (model->nodes[i].mode)
            compare_node(target, model, i, difference);
    }
}

/* Over FUSE a removed file is gone when the kernel says that it has forgotten it, a little later.
 */
static bool same_space(const struct target *target, const struct target_space *a,
                       const struct target_space *b) {
    return a->inodes_free == b->inodes_free && (target->is_log || a->blocks_free == b->blocks_free);
}

void compare_space(struct target *target, const struct target_space *at_first,
                   struct difference *difference) {
    struct target_space left = {0};
    int error = target->type->space(target, &left);

    for (unsigned n = 0; n < target->patience && !error; n++) {
        if (same_space(target, &left, at_first))
            return;
        usleep(50000);
        error = target->type->space(target, &left);
    }
    if (error)
        differ(difference, "statfs: %s", strerror(-error));
    else if (!same_space(target, &left, at_first))
        differ(difference, "of %llu blocks and %llu inodes that were free, %llu and %llu are left",
               (unsigned long long)at_first->blocks_free, (unsigned long long)at_first->inodes_free,
               (unsigned long long)left.blocks_free, (unsigned long long)left.inodes_free);
}

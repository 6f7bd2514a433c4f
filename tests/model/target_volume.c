/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a volume in this process as a target. A handle is an inode with a reference. See
 * target_volume.h.
 */
#include "tests/model/target_volume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BASE "model"

static struct volume_target *self(struct target *target) {
    return (struct volume_target *)target;
}

static uint32_t length_of(const char *name) {
    return (uint32_t)strlen(name);
}

static int64_t in_ns(struct timestamp time) {
    return time.seconds * NS_PER_SEC + time.nanoseconds;
}

static int find(struct target *target, union handle dir, const char *name, union handle *handle) {
    struct inode *inode;
    int error = volume_lookup(dir.pointer, name, length_of(name), &inode);

    (void)target;
    handle->pointer = error ? NULL : inode;
    return error;
}

static int root(struct target *target, union handle *handle) {
    struct inode *top;
    int error = volume_root(self(target)->volume, &top);

    if (error)
        return error;
    error = find(target, (union handle){.pointer = top}, BASE, handle);
    volume_put(top, 1);
    return error;
}

static int hold(struct target *target, union handle handle, union handle *held) {
    (void)target;
    volume_hold(handle.pointer, 1);
    *held = handle;
    return 0;
}

static void put(struct target *target, union handle handle) {
    (void)target;
    volume_put(handle.pointer, 1);
}

static int create(struct target *target, union handle dir, const char *name,
                  const struct operation *op) {
    char link_target[1024];
    struct create_request request = {.mode = model_mode(op), .rdev = model_rdev(op)};

    (void)target;
    if (op->kind == OP_SYMLINK) {
        model_link_target(op, link_target);
        request.target = link_target;
    }
    return volume_create(dir.pointer, name, length_of(name), &request, NULL);
}

static int link_to(struct target *target, union handle handle, union handle dir, const char *name) {
    (void)target;
    return volume_link(handle.pointer, dir.pointer, name, length_of(name));
}

static int unlink_name(struct target *target, union handle dir, const char *name, bool directory) {
    (void)target;
    return (directory ? volume_rmdir : volume_unlink)(dir.pointer, name, length_of(name));
}

static int rename_to(struct target *target, union handle dir, const char *name,
                     union handle other_dir, const char *other, unsigned flags) {
    (void)target;
    return volume_rename(dir.pointer, name, length_of(name), other_dir.pointer, other,
                         length_of(other), flags);
}

struct piece {
    target_visit visit;
    void *context;
    uint64_t cookie;
    uint32_t budget; /* entries until the listing is interrupted */
};

static bool visit_entry(void *context, const struct dir_entry *entry) {
    struct piece *piece = context;
    char name[NAME_LENGTH_MAX + 1];

    if (piece->budget-- == 0)
        return false;
    memcpy(name, entry->name, entry->name_length);
    name[entry->name_length] = '\0';
    piece->cookie = entry->cookie;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        piece->visit(piece->context, name, entry->type);
    return true;
}

static int list(struct target *target, union handle dir, target_visit visit, void *context) {
    struct piece piece = {.visit = visit, .context = context};
    uint64_t before;
    int error;

    (void)target;
    do {
        before = piece.cookie;
        piece.budget = 7;
        error = volume_readdir(dir.pointer, before, visit_entry, &piece);
    } while (!error && piece.cookie != before);
    return error;
}

static int read_link(struct target *target, union handle handle, char *buffer, size_t size) {
    (void)target;
    return volume_readlink(handle.pointer, buffer, size);
}

static int64_t read_bytes(struct target *target, union handle handle, void *buffer, uint32_t length,
                          uint32_t offset, uint32_t how) {
    (void)target;
    return (how & 1 ? volume_read_noatime : volume_read)(handle.pointer, buffer, length, offset);
}

static int64_t write_bytes(struct target *target, union handle handle, const void *buffer,
                           uint32_t length, uint32_t offset, uint32_t how) {
    (void)target;
    (void)how;
    return volume_write(handle.pointer, buffer, length, offset);
}

static int64_t append(struct target *target, union handle handle, const void *buffer,
                      uint32_t length) {
    struct attributes attributes;

    (void)target;
    volume_getattr(handle.pointer, &attributes);
    return volume_write(handle.pointer, buffer, length, attributes.size);
}

static int truncate_to(struct target *target, union handle handle, uint32_t size, bool by_open) {
    struct attributes attributes = {.size = size};

    (void)target;
    return by_open ? volume_truncate(handle.pointer, size)
                   : volume_setattr(handle.pointer, SETATTR_SIZE, &attributes);
}

static int allocate(struct target *target, union handle handle, int mode, uint32_t offset,
                    uint32_t length) {
    (void)target;
    return volume_fallocate(handle.pointer, mode, offset, length);
}

static int64_t copy(struct target *target, union handle from, uint32_t offset, union handle to,
                    uint32_t to_offset, uint32_t length) {
    (void)target;
    return volume_copy(from.pointer, offset, to.pointer, to_offset, length);
}

static int64_t seek(struct target *target, union handle handle, uint32_t offset, int whence) {
    (void)target;
    return volume_seek(handle.pointer, offset, whence);
}

static int sync_file(struct target *target, union handle handle, bool data_only) {
    (void)target;
    return volume_fsync(handle.pointer, data_only);
}

static int stat_handle(struct target *target, union handle handle,
                       struct target_attributes *attributes) {
    struct attributes a;

    (void)target;
    volume_getattr(handle.pointer, &a);
    *attributes = (struct target_attributes){.size = a.size,
                                             .mode = a.mode,
                                             .nlink = a.nlink,
                                             .uid = a.uid,
                                             .gid = a.gid,
                                             .rdev = a.rdev,
                                             .mtime = in_ns(a.mtime),
                                             .ctime = in_ns(a.ctime)};
    return 0;
}

static int change_mode(struct target *target, union handle handle, uint32_t mode) {
    struct attributes attributes = {.mode = mode};

    (void)target;
    return volume_setattr(handle.pointer, SETATTR_MODE, &attributes);
}

static int change_owner(struct target *target, union handle handle, uint32_t uid, uint32_t gid) {
    struct attributes attributes = {.uid = uid, .gid = gid};

    (void)target;
    return volume_setattr(handle.pointer, SETATTR_UID | SETATTR_GID, &attributes);
}

static int set_mtime(struct target *target, union handle handle, int64_t ns) {
    int64_t rest = ns % NS_PER_SEC;
    struct attributes attributes = {.mtime.seconds = ns / NS_PER_SEC - (rest < 0),
                                    .mtime.nanoseconds =
                                        (uint32_t)(rest < 0 ? rest + NS_PER_SEC : rest)};

    (void)target;
    return volume_setattr(handle.pointer, SETATTR_MTIME, &attributes);
}

static int64_t get_attribute(struct target *target, union handle handle, const char *name,
                             void *value, size_t size) {
    (void)target;
    return volume_getxattr(handle.pointer, name, value, size);
}

static int set_attribute(struct target *target, union handle handle, const char *name,
                         const void *value, size_t size, int flags) {
    (void)target;
    return volume_setxattr(handle.pointer, name, value, size, flags);
}

static int remove_attribute(struct target *target, union handle handle, const char *name) {
    (void)target;
    return volume_removexattr(handle.pointer, name);
}

static int64_t list_attributes(struct target *target, union handle handle, char *names,
                               size_t size) {
    (void)target;
    return volume_listxattr(handle.pointer, names, size);
}

static int drop_caches(struct target *target) {
    return volume_drop_caches(self(target)->volume);
}

static int remount(struct target *target) {
    struct volume_target *t = self(target);

    if (!t->image)
        return volume_drop_caches(t->volume);
    int error = volume_close(t->volume);
    return error ? error : volume_target_open(t);
}

static int space(struct target *target, struct target_space *left) {
    struct volume_usage usage;
    int error = volume_statfs(self(target)->volume, &usage);

    if (!error)
        *left = (struct target_space){usage.free, usage.inodes_free};
    return error;
}

/* A millisecond an operation; sometimes enough for what is done periodically. */
static int64_t before(struct target *target, const struct operation *op) {
    struct clock *clock = &self(target)->clock;
    int64_t step = op->fill % 64 == 0 ? 40 * NS_PER_SEC : NS_PER_MS + 1;

    clock_wait_until(clock, clock_now(clock) + step);
    return in_ns(clock_calendar(clock));
}

static int64_t after(struct target *target) {
    return in_ns(clock_calendar(&self(target)->clock));
}

static const struct target_type volume_type = {
    .root = root,
    .child = find,
    .hold = hold,
    .put = put,
    .create = create,
    .link = link_to,
    .unlink = unlink_name,
    .rename = rename_to,
    .list = list,
    .read_link = read_link,
    .read = read_bytes,
    .write = write_bytes,
    .append = append,
    .truncate = truncate_to,
    .fallocate = allocate,
    .copy = copy,
    .seek = seek,
    .sync = sync_file,
    .stat = stat_handle,
    .chmod = change_mode,
    .chown = change_owner,
    .set_mtime = set_mtime,
    .get_attribute = get_attribute,
    .set_attribute = set_attribute,
    .remove_attribute = remove_attribute,
    .list_attributes = list_attributes,
    .drop_caches = drop_caches,
    .remount = remount,
    .space = space,
    .before = before,
    .after = after,
};

int volume_target_open(struct volume_target *t) {
    struct device *device = NULL;
    struct volume_usage usage;
    int error = t->image ? device_open_image(t->image, 0, 0, &t->clock, &t->log, &device) : 0;

    if (error)
        return error;
    struct volume_config config = {.type = t->type,
                                   .device = device,
                                   .clock = &t->clock,
                                   .log = &t->log,
                                   .options = t->options};
    error = volume_open(&config, &t->volume);
    if (error) {
        if (device)
            device_close(device);
        return error;
    }
    error = volume_statfs(t->volume, &usage);
    const struct layout_limits *limits = &t->volume->limits;
    t->target.type = &volume_type;
    t->target.block_size = usage.block_size;
    t->target.time_granularity_ns = limits->time_granularity_ns;
    t->target.time_min_s = limits->time_min.seconds;
    t->target.time_max_s = limits->time_max.seconds;
    return error;
}

static int with_top(struct volume_target *t, bool make) {
    struct create_request request = {.mode = S_IFDIR | 0755};
    struct inode *top;
    int error = volume_root(t->volume, &top);

    if (error)
        return error;
    error = make ? volume_create(top, BASE, length_of(BASE), &request, NULL)
                 : volume_rmdir(top, BASE, length_of(BASE));
    volume_put(top, 1);
    return error;
}

int volume_target_begin(struct volume_target *t) {
    t->target.buffer = malloc(MODEL_FILE_MAX + 1);
    return t->target.buffer ? with_top(t, true) : -ENOMEM;
}

int volume_target_end(struct volume_target *t) {
    return with_top(t, false);
}

int volume_target_close(struct volume_target *t) {
    free(t->target.buffer);
    return volume_close(t->volume);
}

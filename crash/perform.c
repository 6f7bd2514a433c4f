/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/perform.h.
 */
#include "crash/perform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "crash/snapshot.h"

#define WRITE_MAX 16384u

unsigned char pattern_byte(unsigned number, uint64_t offset) {
    return (unsigned char)(0x20 + (number * 7 + offset / 64 * 11 + offset) % 95);
}

/* --- names ------------------------------------------------------------------------------------ */

static int find(struct volume *volume, enum name name, struct inode **inode) {
    return volume_resolve(volume, name_paths[name], false, inode);
}

/* The directory of a name, referenced, and the name in it. */
static int find_parent(struct volume *volume, enum name name, struct inode **dir,
                       const char **last) {
    *last = strrchr(name_paths[name], '/') + 1;
    return find(volume, name_parent(name), dir);
}

static int make(struct volume *volume, enum name name, uint32_t mode, const char *target) {
    struct create_request request = {.mode = mode, .target = target};
    struct inode *dir;
    const char *last;
    int error = find_parent(volume, name, &dir, &last);

    if (error)
        return error;
    error = volume_create(dir, last, (uint32_t)strlen(last), &request, NULL);
    volume_put(dir, 1);
    return error;
}

static int take_away(struct volume *volume, enum name name, bool directory) {
    struct inode *dir;
    const char *last;
    int error = find_parent(volume, name, &dir, &last);

    if (error)
        return error;
    error = directory ? volume_rmdir(dir, last, (uint32_t)strlen(last))
                      : volume_unlink(dir, last, (uint32_t)strlen(last));
    volume_put(dir, 1);
    return error;
}

static int link_name(struct volume *volume, const struct op *op) {
    struct inode *inode, *dir;
    const char *last;
    int error = find(volume, op->name, &inode);

    if (error)
        return error;
    error = find_parent(volume, op->other, &dir, &last);
    if (!error) {
        error = volume_link(inode, dir, last, (uint32_t)strlen(last));
        volume_put(dir, 1);
    }
    volume_put(inode, 1);
    return error;
}

static int rename_name(struct volume *volume, const struct op *op) {
    struct inode *dir, *new_dir;
    const char *last, *new_last;
    unsigned flags = op->kind == OP_EXCHANGE ? RENAME_EXCHANGE : 0;
    int error = find_parent(volume, op->name, &dir, &last);

    if (error)
        return error;
    error = find_parent(volume, op->other, &new_dir, &new_last);
    if (!error) {
        error = volume_rename(dir, last, (uint32_t)strlen(last), new_dir, new_last,
                              (uint32_t)strlen(new_last), flags);
        volume_put(new_dir, 1);
    }
    volume_put(dir, 1);
    return error;
}

/* --- data ------------------------------------------------------------------------------------- */

static int write_pattern(struct inode *inode, uint64_t offset, uint32_t length, unsigned number) {
    unsigned char bytes[WRITE_MAX];

    for (uint32_t i = 0; i < length; i++)
        bytes[i] = pattern_byte(number, offset + i);
    int64_t written = volume_write(inode, bytes, length, offset);
    if (written < 0)
        return (int)written;
    return written == (int64_t)length ? 0 : -ENOSPC;
}

static int set_value(struct inode *inode, unsigned number) {
    char value[NODE_VALUE_MAX];
    int length = snprintf(value, sizeof(value), "set by operation %u", number);

    return volume_setxattr(inode, SNAPSHOT_XATTR, value, (size_t)length, 0);
}

static int change_file(struct inode *inode, const struct op *op, unsigned number) {
    struct attributes attributes;

    volume_getattr(inode, &attributes);
    switch (op->kind) {
    case OP_APPEND:
        return write_pattern(inode, attributes.size, op->length, number);
    case OP_OVERWRITE:
        return write_pattern(inode, op->offset, op->length, number);
    case OP_FALLOC:
        return volume_fallocate(inode, 0, op->offset, op->length);
    case OP_PUNCH:
        return volume_fallocate(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, op->offset,
                                op->length);
    case OP_SHRINK:
    case OP_GROW:
        return volume_truncate(inode, op->length);
    case OP_SETXATTR:
        return set_value(inode, number);
    case OP_REMOVEXATTR:
        return volume_removexattr(inode, SNAPSHOT_XATTR);
    default:
        return volume_fsync(inode, op->kind == OP_FDATASYNC);
    }
}

/* What one does to a file or directory that is there. */
static int perform_on(struct volume *volume, const struct op *op, unsigned number) {
    struct inode *inode;
    int error = find(volume, op->name, &inode);

    if (error)
        return error;
    error = change_file(inode, op, number);
    volume_put(inode, 1);
    return error;
}

static int pass_time(struct volume *volume, uint32_t seconds) {
    int error = 0;

    for (uint32_t i = 0; i < seconds && !error; i++) {
        clock_wait_until(volume->clock, clock_now(volume->clock) + NS_PER_SEC);
        error = volume_tick(volume);
    }
    return error;
}

int perform(struct volume *volume, const struct op *op, unsigned number) {
    switch (op->kind) {
    case OP_CREATE:
        return make(volume, op->name, S_IFREG | 0644, NULL);
    case OP_MKDIR:
        return make(volume, op->name, S_IFDIR | 0755, NULL);
    case OP_SYMLINK:
        return make(volume, op->name, S_IFLNK | 0777, "where/it/points/to");
    case OP_UNLINK:
    case OP_RMDIR:
        return take_away(volume, op->name, op->kind == OP_RMDIR);
    case OP_LINK:
        return link_name(volume, op);
    case OP_RENAME:
    case OP_RENAME_OVER:
    case OP_EXCHANGE:
        return rename_name(volume, op);
    case OP_SYNC:
        return volume_sync(volume);
    case OP_WAIT:
        return pass_time(volume, op->length);
    default:
        return perform_on(volume, op, number);
    }
}

/* --- what is there from the start ------------------------------------------------------------- */

/* Patterns of files that are there from the start, which no operation has. */
#define SETUP_NUMBER OPS_MAX

static int setup_name(struct volume *volume, enum name name, enum setup setup) {
    static const enum op_kind kinds[] = {
        [SETUP_FILE] = OP_CREATE, [SETUP_DIRECTORY] = OP_MKDIR, [SETUP_SYMLINK] = OP_SYMLINK};
    struct op make_it = {.kind = kinds[setup], .name = name};
    struct op fill_it = {.kind = OP_APPEND, .name = name, .length = SETUP_BYTES};
    struct op mark_it = {.kind = OP_SETXATTR, .name = name};
    int error = perform(volume, &make_it, 0);

    if (error || setup != SETUP_FILE)
        return error;
    error = perform(volume, &fill_it, SETUP_NUMBER + name);
    if (!error)
        error = perform(volume, &mark_it, SETUP_NUMBER + name);
    return error == -ENOTSUP ? 0 : error;
}

int perform_setup(struct volume *volume, const struct workload *workload) {
    /* Directories before what they hold. */
    for (int pass = 0; pass < 2; pass++) {
        for (enum name name = 0; name < NAMES; name++) {
            enum setup setup = workload->setup[name];

            if (setup == SETUP_NOTHING || (setup == SETUP_DIRECTORY) != (pass == 0))
                continue;
            int error = setup_name(volume, name, setup);
            if (error)
                return error;
        }
    }
    return volume_sync(volume);
}

int perform_make_file(struct volume *volume, const char *path, uint32_t length, unsigned number) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *root, *inode;
    int error = volume_root(volume, &root);

    if (error)
        return error;
    error = volume_create(root, path + 1, (uint32_t)strlen(path + 1), &request, &inode);
    volume_put(root, 1);
    if (error)
        return error;
    error = write_pattern(inode, 0, length, number);
    if (!error)
        error = volume_fsync(inode, false);
    volume_put(inode, 1);
    return error;
}

static int fill_with_poison(struct inode *inode) {
    unsigned char bytes[WRITE_MAX];
    int64_t written;
    uint64_t offset = 0;

    memset(bytes, POISON, sizeof(bytes));
    do {
        written = volume_write(inode, bytes, sizeof(bytes), offset);
        offset += written > 0 ? (uint64_t)written : 0;
    } while (written > 0);
    return written == -ENOSPC ? 0 : (int)written;
}

int perform_poison(struct volume *volume) {
    struct create_request request = {.mode = S_IFREG | 0600};
    struct inode *root, *inode;
    int error = volume_root(volume, &root);

    if (error)
        return error;
    error = volume_create(root, "poison", 6, &request, &inode);
    if (!error) {
        error = fill_with_poison(inode);
        if (!error)
            error = volume_sync(volume);
        volume_put(inode, 1);
        int second = volume_unlink(root, "poison", 6);
        error = error ? error : second;
    }
    volume_put(root, 1);
    return error;
}

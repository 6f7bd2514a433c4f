/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over fs/volume.h. The driver that runs in this process under a virtual clock.
 * Each function charges COST_SYSCALL for every system call it stands for; what happens inside the
 * call is charged by the volume and the layers below it.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/driver.h"

/* What getdents(2) fills per call for the C library's readdir of 2002. */
#define READDIR_BUFFER 4096u
/* Bytes of a directory entry in that buffer beside its name, and its alignment. */
#define READDIR_HEADER 24u
#define READDIR_ALIGN  8u

static struct volume *volume_of(struct driver *driver) {
    return ((struct driver_volume *)driver)->volume;
}

static void syscalls(struct driver *driver, int64_t count) {
    clock_charge(volume_of(driver)->clock, COST_SYSCALL, count);
}

static uint32_t length_of(const char *name) {
    return (uint32_t)strlen(name);
}

static int volume_driver_root(struct driver *driver, struct driver_node *root) {
    return volume_root(volume_of(driver), &root->inode);
}

static int volume_driver_enter(struct driver *driver, const struct driver_node *dir,
                               const char *name, struct driver_node *node) {
    return volume_lookup(dir->inode, name, length_of(name), &node->inode);
}

static int volume_driver_hold(struct driver *driver, const struct driver_node *dir,
                              struct driver_node *node) {
    volume_hold(dir->inode, 1);
    node->inode = dir->inode;
    return 0;
}

static void volume_driver_leave(struct driver *driver, struct driver_node *dir) {
    volume_put(dir->inode, 1);
    dir->inode = NULL;
}

static int volume_driver_open(struct driver *driver, const struct driver_node *dir,
                              const char *name, bool write, struct driver_node *node) {
    (void)write;
    syscalls(driver, 1);
    return volume_lookup(dir->inode, name, length_of(name), &node->inode);
}

static int volume_driver_create(struct driver *driver, const struct driver_node *dir,
                                const char *name, uint32_t mode, struct driver_node *node) {
    struct create_request request = {.mode = S_IFREG | (mode & 07777)};

    syscalls(driver, 1);
    return volume_create(dir->inode, name, length_of(name), &request, &node->inode);
}

static void volume_driver_close(struct driver *driver, struct driver_node *node) {
    syscalls(driver, 1);
    volume_put(node->inode, 1);
    node->inode = NULL;
}

static int64_t volume_driver_read(struct driver *driver, const struct driver_node *node,
                                  void *buffer, size_t size, uint64_t offset) {
    syscalls(driver, 1);
    return volume_read(node->inode, buffer, size, offset);
}

static int volume_driver_write(struct driver *driver, const struct driver_node *node,
                               const void *buffer, size_t size, uint64_t offset) {
    const char *bytes = buffer;

    while (size > 0) {
        syscalls(driver, 1);
        int64_t written = volume_write(node->inode, bytes, size, offset);
        if (written < 0)
            return (int)written;
        if (written == 0)
            return -ENOSPC;
        bytes += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

static int volume_driver_fsync(struct driver *driver, const struct driver_node *node) {
    syscalls(driver, 1);
    return volume_fsync(node->inode, false);
}

static void stat_inode(struct inode *inode, struct driver_stat *stat) {
    struct attributes attributes;

    volume_getattr(inode, &attributes);
    *stat = (struct driver_stat){.mode = attributes.mode,
                                 .size = attributes.size,
                                 .ino = attributes.ino,
                                 .mtime = attributes.mtime};
}

static int volume_driver_fstat(struct driver *driver, const struct driver_node *node,
                               struct driver_stat *stat) {
    syscalls(driver, 1);
    stat_inode(node->inode, stat);
    return 0;
}

static int volume_driver_stat(struct driver *driver, const struct driver_node *dir,
                              const char *name, struct driver_stat *stat) {
    struct inode *inode;

    syscalls(driver, 1);
    int error = volume_lookup(dir->inode, name, length_of(name), &inode);
    if (error)
        return error;
    stat_inode(inode, stat);
    volume_put(inode, 1);
    return 0;
}

static int volume_driver_mkdir(struct driver *driver, const struct driver_node *dir,
                               const char *name, uint32_t mode) {
    struct create_request request = {.mode = S_IFDIR | (mode & 07777)};

    syscalls(driver, 1);
    return volume_create(dir->inode, name, length_of(name), &request, NULL);
}

static int volume_driver_symlink(struct driver *driver, const struct driver_node *dir,
                                 const char *name, const char *target) {
    struct create_request request = {.mode = S_IFLNK | 0777, .target = target};

    syscalls(driver, 1);
    return volume_create(dir->inode, name, length_of(name), &request, NULL);
}

static int volume_driver_unlink(struct driver *driver, const struct driver_node *dir,
                                const char *name) {
    syscalls(driver, 1);
    return volume_unlink(dir->inode, name, length_of(name));
}

static int volume_driver_rmdir(struct driver *driver, const struct driver_node *dir,
                               const char *name) {
    syscalls(driver, 1);
    return volume_rmdir(dir->inode, name, length_of(name));
}

static int volume_driver_rename(struct driver *driver, const struct driver_node *dir,
                                const char *name, const struct driver_node *new_dir,
                                const char *new_name) {
    syscalls(driver, 1);
    return volume_rename(dir->inode, name, length_of(name), new_dir->inode, new_name,
                         length_of(new_name), 0);
}

static int volume_driver_restore(struct driver *driver, const struct driver_node *dir,
                                 const char *name, uint32_t mode, struct timestamp mtime) {
    struct attributes attributes = {.mode = mode & 07777, .mtime = mtime, .atime = mtime};
    struct inode *inode;

    syscalls(driver, 2);
    int error = volume_lookup(dir->inode, name, length_of(name), &inode);
    if (error)
        return error;
    attributes.mode |= inode->mode & S_IFMT;
    error = volume_setattr(inode, SETATTR_ATIME | SETATTR_MTIME, &attributes);
    if (!error && attributes.mode != inode->mode)
        error = volume_setattr(inode, SETATTR_MODE, &attributes);
    volume_put(inode, 1);
    return error;
}

struct listing {
    driver_visit visit;
    void *context;
    uint64_t bytes; /* that the entries take in a getdents buffer */
    int result;
};

static bool list_entry(void *context, const struct dir_entry *entry) {
    struct listing *listing = context;
    char name[NAME_LENGTH_MAX + 1];

    listing->bytes += (READDIR_HEADER + entry->name_length + READDIR_ALIGN) & ~(READDIR_ALIGN - 1u);
    if (entry->name[0] == '.' &&
        (entry->name_length == 1 || (entry->name_length == 2 && entry->name[1] == '.')))
        return true;
    memcpy(name, entry->name, entry->name_length);
    name[entry->name_length] = '\0';
    listing->result = listing->visit(listing->context, name, entry->type);
    return listing->result == 0;
}

static int volume_driver_readdir(struct driver *driver, const struct driver_node *dir,
                                 driver_visit visit, void *context) {
    struct listing listing = {.visit = visit, .context = context};

    int error = volume_readdir(dir->inode, 0, list_entry, &listing);
    /* open, fstat, close, and the getdents calls, the last of which finds nothing more. */
    syscalls(driver, 3 + (int64_t)(listing.bytes / READDIR_BUFFER) + 2);
    return error ? error : listing.result;
}

static int volume_driver_sync(struct driver *driver) {
    syscalls(driver, 1);
    return volume_sync(volume_of(driver));
}

static int volume_driver_drop_caches(struct driver *driver) {
    return volume_drop_caches(volume_of(driver));
}

static int64_t volume_driver_now(struct driver *driver) {
    return clock_now(volume_of(driver)->clock);
}

static int64_t volume_driver_cpu(struct driver *driver) {
    return volume_of(driver)->clock->cpu_ns;
}

static void volume_driver_charge(struct driver *driver, enum cost cost, int64_t count) {
    clock_charge(volume_of(driver)->clock, cost, count);
}

static void volume_driver_charge_ns(struct driver *driver, int64_t ns) {
    clock_charge_ns(volume_of(driver)->clock, ns);
}

static void volume_driver_stats(struct driver *driver, struct device_stats *stats) {
    memset(stats, 0, sizeof(*stats));
    if (volume_of(driver)->device)
        device_stats(volume_of(driver)->device, stats);
}

static const struct driver_operations volume_operations = {
    .name = "volume",
    .root = volume_driver_root,
    .enter = volume_driver_enter,
    .hold = volume_driver_hold,
    .leave = volume_driver_leave,
    .open = volume_driver_open,
    .create = volume_driver_create,
    .close = volume_driver_close,
    .read = volume_driver_read,
    .write = volume_driver_write,
    .fsync = volume_driver_fsync,
    .fstat = volume_driver_fstat,
    .mkdir = volume_driver_mkdir,
    .symlink = volume_driver_symlink,
    .unlink = volume_driver_unlink,
    .rmdir = volume_driver_rmdir,
    .rename = volume_driver_rename,
    .stat = volume_driver_stat,
    .restore = volume_driver_restore,
    .readdir = volume_driver_readdir,
    .sync = volume_driver_sync,
    .drop_caches = volume_driver_drop_caches,
    .now_ns = volume_driver_now,
    .cpu_ns = volume_driver_cpu,
    .charge = volume_driver_charge,
    .charge_ns = volume_driver_charge_ns,
    .stats = volume_driver_stats,
};

void driver_volume_init(struct driver_volume *driver, struct volume *volume) {
    *driver = (struct driver_volume){.driver.operations = &volume_operations, .volume = volume};
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over system calls. The driver that runs in any mounted directory, in wall time.
 * Costs of the modelled program are not charged: a real program pays them by running.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/driver.h"

static int result_of(int returned) {
    return returned < 0 ? -errno : 0;
}

static const char *path_of(struct driver *driver) {
    return ((struct driver_posix *)driver)->path;
}

static int posix_root(struct driver *driver, struct driver_node *root) {
    root->fd = open(path_of(driver), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return result_of(root->fd);
}

static int posix_enter(struct driver *driver, const struct driver_node *dir, const char *name,
                       struct driver_node *node) {
    node->fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return result_of(node->fd);
}

static int posix_hold(struct driver *driver, const struct driver_node *dir,
                      struct driver_node *node) {
    node->fd = fcntl(dir->fd, F_DUPFD_CLOEXEC, 0);
    return result_of(node->fd);
}

static int posix_open(struct driver *driver, const struct driver_node *dir, const char *name,
                      bool write, struct driver_node *node) {
    node->fd = openat(dir->fd, name, (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
    return result_of(node->fd);
}

static int posix_create(struct driver *driver, const struct driver_node *dir, const char *name,
                        uint32_t mode, struct driver_node *node) {
    node->fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode & 07777);
    return result_of(node->fd);
}

static void posix_close(struct driver *driver, struct driver_node *node) {
    close(node->fd);
    node->fd = -1;
}

static int64_t posix_read(struct driver *driver, const struct driver_node *node, void *buffer,
                          size_t size, uint64_t offset) {
    ssize_t got = pread(node->fd, buffer, size, (off_t)offset);

    return got < 0 ? -errno : got;
}

static int posix_write(struct driver *driver, const struct driver_node *node, const void *buffer,
                       size_t size, uint64_t offset) {
    const char *bytes = buffer;

    while (size > 0) {
        ssize_t written = pwrite(node->fd, bytes, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

static int posix_fsync(struct driver *driver, const struct driver_node *node) {
    return result_of(fsync(node->fd));
}

static void stat_copy(const struct stat *from, struct driver_stat *to) {
    *to = (struct driver_stat){
        .mode = from->st_mode,
        .size = (uint64_t)from->st_size,
        .ino = from->st_ino,
        .mtime = {.seconds = from->st_mtim.tv_sec, .nanoseconds = (uint32_t)from->st_mtim.tv_nsec}};
}

static int posix_fstat(struct driver *driver, const struct driver_node *node,
                       struct driver_stat *stat) {
    struct stat host;

    if (fstat(node->fd, &host) < 0)
        return -errno;
    stat_copy(&host, stat);
    return 0;
}

static int posix_stat(struct driver *driver, const struct driver_node *dir, const char *name,
                      struct driver_stat *stat) {
    struct stat host;

    if (fstatat(dir->fd, name, &host, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    stat_copy(&host, stat);
    return 0;
}

static int posix_mkdir(struct driver *driver, const struct driver_node *dir, const char *name,
                       uint32_t mode) {
    return result_of(mkdirat(dir->fd, name, mode & 07777));
}

static int posix_symlink(struct driver *driver, const struct driver_node *dir, const char *name,
                         const char *target) {
    return result_of(symlinkat(target, dir->fd, name));
}

static int posix_unlink(struct driver *driver, const struct driver_node *dir, const char *name) {
    return result_of(unlinkat(dir->fd, name, 0));
}

static int posix_rmdir(struct driver *driver, const struct driver_node *dir, const char *name) {
    return result_of(unlinkat(dir->fd, name, AT_REMOVEDIR));
}

static int posix_rename(struct driver *driver, const struct driver_node *dir, const char *name,
                        const struct driver_node *new_dir, const char *new_name) {
    return result_of(renameat(dir->fd, name, new_dir->fd, new_name));
}

static int posix_restore(struct driver *driver, const struct driver_node *dir, const char *name,
                         uint32_t mode, struct timestamp mtime) {
    struct timespec time = {.tv_sec = mtime.seconds, .tv_nsec = mtime.nanoseconds};
    struct timespec times[2] = {time, time};

    if (utimensat(dir->fd, name, times, 0) < 0)
        return -errno;
    return result_of(fchmodat(dir->fd, name, mode & 07777, 0));
}

static int visit_all(DIR *stream, driver_visit visit, void *context) {
    struct dirent *entry;
    int result;

    for (;;) {
        errno = 0;
        entry = readdir(stream);
        if (!entry)
            return -errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        result = visit(context, entry->d_name, DTTOIF(entry->d_type));
        if (result)
            return result;
    }
}

static int posix_readdir(struct driver *driver, const struct driver_node *dir, driver_visit visit,
                         void *context) {
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream;
    int result;

    if (fd < 0)
        return -errno;
    stream = fdopendir(fd);
    if (!stream) {
        result = -errno;
        close(fd);
        return result;
    }
    result = visit_all(stream, visit, context);
    closedir(stream);
    return result;
}

/* syncfs(2) makes the kernel write what it holds, but a FUSE server hears nothing of it; that of
 * layoutfs takes an fsync of its root for a sync of the volume. Until then its cache may hold data
 * for which blocks are only promised, more than there will be in use. */
static int posix_sync(struct driver *driver) {
    struct driver_node root;
    int error = posix_root(driver, &root);

    if (error)
        return error;
    error = result_of(syncfs(root.fd));
    if (!error)
        error = posix_fsync(driver, &root);
    posix_close(driver, &root);
    return error;
}

static int posix_drop_caches(struct driver *driver) {
    struct driver_posix *posix = (struct driver_posix *)driver;
    int error, fd;

    if (posix->remount)
        return posix->remount(posix->context);
    error = posix_sync(driver);
    if (error)
        return error;
    fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? -EPERM : -errno;
    error = write(fd, "3", 1) == 1 ? 0 : -errno;
    close(fd);
    return error;
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static int64_t posix_now(struct driver *driver) {
    return clock_ns(CLOCK_MONOTONIC);
}

static int64_t posix_cpu(struct driver *driver) {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void posix_charge(struct driver *driver, enum cost cost, int64_t count) {}

static void posix_charge_ns(struct driver *driver, int64_t ns) {}

static void posix_stats(struct driver *driver, struct device_stats *stats) {
    memset(stats, 0, sizeof(*stats));
}

static const struct driver_operations posix_operations = {
    .name = "posix",
    .threads = true,
    .root = posix_root,
    .enter = posix_enter,
    .hold = posix_hold,
    .leave = posix_close,
    .open = posix_open,
    .create = posix_create,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .fsync = posix_fsync,
    .fstat = posix_fstat,
    .mkdir = posix_mkdir,
    .symlink = posix_symlink,
    .unlink = posix_unlink,
    .rmdir = posix_rmdir,
    .rename = posix_rename,
    .stat = posix_stat,
    .restore = posix_restore,
    .readdir = posix_readdir,
    .sync = posix_sync,
    .drop_caches = posix_drop_caches,
    .now_ns = posix_now,
    .cpu_ns = posix_cpu,
    .charge = posix_charge,
    .charge_ns = posix_charge_ns,
    .stats = posix_stats,
};

void driver_posix_init(struct driver_posix *driver, const char *path, int (*remount)(void *context),
                       void *context) {
    *driver = (struct driver_posix){.driver.operations = &posix_operations,
                                    .path = path,
                                    .remount = remount,
                                    .context = context};
}

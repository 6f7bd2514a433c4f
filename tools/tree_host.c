/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. The host's files as one side of a copy: see tools/tree.h. A node is a descriptor
 * opened with O_PATH, which stands for the object itself; data and attributes are reached through
 * its entry in /proc/self/fd.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/tool.h"
#include "tools/tree.h"

struct host_node {
    int handle; /* O_PATH */
    int data;   /* for reading or writing; -1: not opened yet */
};

static struct host_node *host_of(struct node *node) {
    return (struct host_node *)node;
}

#define PROC_PATH_SIZE 40

static void proc_path(const struct host_node *host, char path[PROC_PATH_SIZE]) {
    snprintf(path, PROC_PATH_SIZE, "/proc/self/fd/%d", host->handle);
}

static int host_node_open(int directory, const char *name, int flags, struct node **node) {
    int handle = openat(directory, name, O_PATH | O_CLOEXEC | flags);

    if (handle < 0)
        return -errno;
    struct host_node *host = malloc(sizeof(*host));
    if (!host) {
        close(handle);
        return -ENOMEM;
    }
    *host = (struct host_node){.handle = handle, .data = -1};
    *node = (struct node *)host;
    return 0;
}

static int host_resolve(struct tree *tree, const char *path, bool follow, struct node **node) {
    return host_node_open(AT_FDCWD, path, follow ? 0 : O_NOFOLLOW, node);
}

static int host_parent(struct tree *tree, const char *path, struct node **directory,
                       const char **name, uint32_t *length) {
    size_t name_length;

    *name = path_last(path, &name_length);
    *length = (uint32_t)name_length;
    if (name_length == 0)
        return -EINVAL;
    char *prefix = strndup(path, (size_t)(*name - path));
    if (!prefix)
        return -ENOMEM;
    int error = host_node_open(AT_FDCWD, *prefix ? prefix : ".", O_DIRECTORY, directory);
    free(prefix);
    return error;
}

static int host_lookup(struct node *directory, const char *name, struct node **node) {
    return host_node_open(host_of(directory)->handle, name, O_NOFOLLOW, node);
}

static void host_put(struct node *node) {
    if (!node)
        return;
    struct host_node *host = host_of(node);
    if (host->data >= 0)
        close(host->data);
    close(host->handle);
    free(host);
}

static struct timestamp timestamp_of(struct timespec time) {
    return (struct timestamp){.seconds = time.tv_sec, .nanoseconds = (uint32_t)time.tv_nsec};
}

static int host_status(struct node *node, struct node_status *status) {
    struct stat stat;

    if (fstatat(host_of(node)->handle, "", &stat, AT_EMPTY_PATH))
        return -errno;
    *status = (struct node_status){
        .device = stat.st_dev,
        .attributes =
            {
                .ino = stat.st_ino,
                .size = (uint64_t)stat.st_size,
                .mode = stat.st_mode,
                .uid = stat.st_uid,
                .gid = stat.st_gid,
                .nlink = (uint32_t)stat.st_nlink,
                .rdev = (major(stat.st_rdev) << 20) | (minor(stat.st_rdev) & 0xFFFFF),
                .atime = timestamp_of(stat.st_atim),
                .mtime = timestamp_of(stat.st_mtim),
            },
    };
    return 0;
}

/* Opens the object itself, however its name may have changed its meaning since. */
static int host_open_data(struct host_node *host, int flags) {
    char path[PROC_PATH_SIZE];

    if (host->data >= 0)
        return 0;
    proc_path(host, path);
    host->data = open(path, flags | O_CLOEXEC);
    return host->data < 0 ? -errno : 0;
}

static int host_names(struct node *directory, struct name_list *list) {
    int fd = openat(host_of(directory)->handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    int error = 0;

    if (!stream) {
        error = -errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    while (!error) {
        errno = 0;
        const struct dirent *entry = readdir(stream);

        if (!entry) {
            error = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            error = name_list_add(list, entry->d_name, strlen(entry->d_name));
    }
    closedir(stream);
    name_list_sort(list);
    return error;
}

static int host_read_link(struct node *node, char *target, size_t room) {
    ssize_t length = readlinkat(host_of(node)->handle, "", target, room);

    if (length < 0)
        return -errno;
    if ((size_t)length >= room)
        return -ERANGE; /* it has grown meanwhile */
    target[length] = '\0';
    return 0;
}

static int64_t host_read(struct node *node, void *buffer, size_t size, uint64_t offset) {
    int error = host_open_data(host_of(node), O_RDONLY);

    if (error)
        return error;
    ssize_t done = pread(host_of(node)->data, buffer, size, (off_t)offset);
    return done < 0 ? -errno : done;
}

static int host_next_data(struct node *node, uint64_t *start, uint64_t *end) {
    int error = host_open_data(host_of(node), O_RDONLY);

    if (error)
        return error;
    off_t data = lseek(host_of(node)->data, (off_t)*start, SEEK_DATA);
    if (data < 0)
        return -errno;
    off_t hole = lseek(host_of(node)->data, data, SEEK_HOLE);
    if (hole < 0)
        return -errno;
    *start = (uint64_t)data;
    *end = (uint64_t)hole;
    return 0;
}

/* Until host_set_attributes gives it its mode, a new object is its maker's alone. */
static int host_create(struct node *directory, const char *name,
                       const struct attributes *attributes, const char *target,
                       struct node **node) {
    int at = host_of(directory)->handle;
    int failed, file = -1;

    switch (attributes->mode & S_IFMT) {
    case S_IFREG:
        file = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        failed = file < 0;
        break;
    case S_IFDIR:
        failed = mkdirat(at, name, 0700);
        break;
    case S_IFLNK:
        failed = symlinkat(target, at, name);
        break;
    default:
        failed = mknodat(at, name, (attributes->mode & S_IFMT) | 0600,
                         makedev(attributes->rdev >> 20, attributes->rdev & 0xFFFFF));
    }
    if (failed)
        return -errno;
    int error = host_lookup(directory, name, node);
    if (!error)
        host_of(*node)->data = file;
    else if (file >= 0)
        close(file);
    return error;
}

static int host_link(struct node *directory, const char *name, struct node *node) {
    char path[PROC_PATH_SIZE];

    proc_path(host_of(node), path);
    return linkat(AT_FDCWD, path, host_of(directory)->handle, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int host_unlink(struct node *directory, const char *name) {
    return unlinkat(host_of(directory)->handle, name, 0) ? -errno : 0;
}

static int64_t host_write(struct node *node, const void *buffer, size_t size, uint64_t offset) {
    ssize_t done = pwrite(host_of(node)->data, buffer, size, (off_t)offset);
    return done < 0 ? -errno : done;
}

static int host_set_size(struct node *node, uint64_t size) {
    return ftruncate(host_of(node)->data, (off_t)size) ? -errno : 0;
}

static struct timespec timespec_of(struct timestamp time) {
    return (struct timespec){.tv_sec = (time_t)time.seconds, .tv_nsec = time.nanoseconds};
}

static int host_set_attributes(struct node *node, const struct attributes *attributes) {
    struct timespec times[2] = {timespec_of(attributes->atime), timespec_of(attributes->mtime)};
    int handle = host_of(node)->handle;
    bool symlink = S_ISLNK(attributes->mode);
    uint32_t mode = attributes->mode & 07777;
    char path[PROC_PATH_SIZE];
    int owner_error = 0;

    proc_path(host_of(node), path);
    if (fchownat(handle, "", attributes->uid, attributes->gid, AT_EMPTY_PATH)) {
        owner_error = -errno;
        mode &= ~(uint32_t)(S_ISUID | S_ISGID); /* meant for another owner */
    }
    /* Changing the owner clears the set-id bits, so the mode comes second. */
    if (!symlink && chmod(path, mode))
        return -errno;
    if (utimensat(handle, "", times, AT_EMPTY_PATH))
        return -errno;
    return owner_error;
}

static int64_t host_list_xattrs(struct node *node, char *list, size_t size) {
    char path[PROC_PATH_SIZE];

    proc_path(host_of(node), path);
    ssize_t length = listxattr(path, list, size);
    return length < 0 ? -errno : length;
}

static int64_t host_get_xattr(struct node *node, const char *name, void *value, size_t size) {
    char path[PROC_PATH_SIZE];

    proc_path(host_of(node), path);
    ssize_t length = getxattr(path, name, value, size);
    return length < 0 ? -errno : length;
}

static int host_set_xattr(struct node *node, const char *name, const void *value, size_t size) {
    char path[PROC_PATH_SIZE];

    proc_path(host_of(node), path);
    return setxattr(path, name, value, size, 0) ? -errno : 0;
}

static const struct tree_operations host_operations = {
    .resolve = host_resolve,
    .parent = host_parent,
    .lookup = host_lookup,
    .put = host_put,
    .status = host_status,
    .names = host_names,
    .read_link = host_read_link,
    .read = host_read,
    .next_data = host_next_data,
    .create = host_create,
    .link = host_link,
    .unlink = host_unlink,
    .write = host_write,
    .set_size = host_set_size,
    .set_attributes = host_set_attributes,
    .list_xattrs = host_list_xattrs,
    .get_xattr = host_get_xattr,
    .set_xattr = host_set_xattr,
};

void host_tree_init(struct host_tree *host) {
    host->tree = (struct tree){.operations = &host_operations};
}

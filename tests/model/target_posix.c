/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a directory of a mounted filesystem as a target, through system calls. A handle is a
 * descriptor opened with O_PATH, which every kind of object has; what needs a real one opens it
 * anew through /proc/self/fd. See target_posix.h.
 */
#include "tests/model/target_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BASE             "model"
#define DIRECT_ALIGNMENT 4096u

static struct posix_target *self(struct target *target) {
    return (struct posix_target *)target;
}

static int answer(int result) {
    return result < 0 ? -errno : 0;
}

struct link_path {
    char text[32];
};

/* What a path-taking call needs to reach the object of a handle. */
static struct link_path path_of(union handle handle) {
    struct link_path path;

    snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", handle.descriptor);
    return path;
}

static int count_or_error(int returned) {
    return returned < 0 ? -errno : returned;
}

static int open_again(union handle handle, int flags) {
    return count_or_error(open(path_of(handle).text, flags | O_CLOEXEC));
}

static int opened(int descriptor, union handle *handle) {
    handle->descriptor = descriptor;
    return answer(descriptor);
}

static int root(struct target *target, union handle *handle) {
    return opened(dup(self(target)->base), handle);
}

static int child(struct target *target, union handle dir, const char *name, union handle *handle) {
    (void)target;
    return opened(openat(dir.descriptor, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), handle);
}

/* Really open, since O_PATH keeps less than a descriptor for reading and writing does. */
static int hold(struct target *target, union handle handle, union handle *held) {
    (void)target;
    held->descriptor = open_again(handle, O_RDWR);
    return held->descriptor < 0 ? held->descriptor : 0;
}

static void put(struct target *target, union handle handle) {
    (void)target;
    close(handle.descriptor);
}

static int create(struct target *target, union handle dir, const char *name,
                  const struct operation *op) {
    char link_target[1024];
    uint32_t rdev = model_rdev(op);

    (void)target;
    switch (op->kind) {
    case OP_MKDIR:
        return answer(mkdirat(dir.descriptor, name, model_mode(op) & 0777));
    case OP_SYMLINK:
        model_link_target(op, link_target);
        return answer(symlinkat(link_target, dir.descriptor, name));
    case OP_MKNOD:
        return answer(
            mknodat(dir.descriptor, name, model_mode(op), makedev(rdev >> 20, rdev & 0xfffff)));
    default: {
        int file = openat(dir.descriptor, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC,
                          model_mode(op) & 0777);
        return answer(file < 0 ? file : close(file));
    }
    }
}

static int link_to(struct target *target, union handle handle, union handle dir, const char *name) {
    (void)target;
    return answer(linkat(AT_FDCWD, path_of(handle).text, dir.descriptor, name, AT_SYMLINK_FOLLOW));
}

static int unlink_name(struct target *target, union handle dir, const char *name, bool directory) {
    (void)target;
    return answer(unlinkat(dir.descriptor, name, directory ? AT_REMOVEDIR : 0));
}

static int rename_to(struct target *target, union handle dir, const char *name,
                     union handle other_dir, const char *other, unsigned flags) {
    (void)target;
    return answer(renameat2(dir.descriptor, name, other_dir.descriptor, other, flags));
}

/* Every few names the position is told, and the directory opened anew there. */
static int list(struct target *target, union handle dir, target_visit visit, void *context) {
    int descriptor = open_again(dir, O_RDONLY | O_DIRECTORY);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    (void)target;
    if (!stream)
        return descriptor < 0 ? descriptor : -errno;
    errno = 0;
    for (unsigned n = 1; (entry = readdir(stream)); n++) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(context, entry->d_name, DTTOIF(entry->d_type));
        if (n % 7 == 0) {
            long position = telldir(stream);
            rewinddir(stream);
            seekdir(stream, position);
        }
    }
    int error = -errno;
    closedir(stream);
    return error;
}

static int read_link(struct target *target, union handle handle, char *buffer, size_t size) {
    (void)target;
    return answer((int)readlinkat(handle.descriptor, "", buffer, size));
}

/* --- data: buffered, past the caches, or through a mapping ------------------------------------ */

enum path { PATH_BUFFERED, PATH_DIRECT, PATH_MAPPED };

static enum path choose_path(union handle handle, uint32_t length, uint32_t offset, uint32_t how) {
    struct stat status;

    if (how % 4 == 2 && length && (offset | length) % DIRECT_ALIGNMENT == 0)
        return PATH_DIRECT;
    if (how % 4 == 3 && length && fstat(handle.descriptor, &status) == 0 &&
        offset + (off_t)length <= status.st_size)
        return PATH_MAPPED;
    return PATH_BUFFERED;
}

/* Synchronous, so that the file's times move within the operation. */
static int64_t copy_mapped(int file, void *to, const void *from, uint32_t length, uint32_t offset) {
    uint32_t page = offset & ~(uint32_t)(DIRECT_ALIGNMENT - 1);
    size_t size = offset + length - page;
    uint8_t *memory = mmap(NULL, size, PROT_READ | (from ? PROT_WRITE : 0), MAP_SHARED, file, page);

    if (memory == MAP_FAILED)
        return -errno;
    if (from)
        memcpy(memory + (offset - page), from, length);
    else
        memcpy(to, memory + (offset - page), length);
    int error = from ? answer(msync(memory, size, MS_SYNC)) : 0;
    munmap(memory, size);
    return error ? error : (int64_t)length;
}

static int64_t copy_direct(int file, void *to, const void *from, uint32_t length, uint32_t offset) {
    void *memory = aligned_alloc(DIRECT_ALIGNMENT, length);

    if (!memory)
        return -ENOMEM;
    if (from)
        memcpy(memory, from, length);
    int64_t done =
        from ? pwrite(file, memory, length, offset) : pread(file, memory, length, offset);
    int64_t result = done < 0 ? -errno : done;
    if (!from && done > 0)
        memcpy(to, memory, (size_t)done);
    free(memory);
    return result;
}

static int64_t transfer(struct target *target, union handle handle, void *to, const void *from,
                        uint32_t length, uint32_t offset, uint32_t how) {
    (void)target;
    enum path path = choose_path(handle, length, offset, how);
    int flags = (path == PATH_DIRECT ? O_DIRECT : 0) | (!from                 ? O_RDONLY
                                                        : path == PATH_MAPPED ? O_RDWR
                                                                              : O_WRONLY);
    int64_t result;

    int file = open_again(handle, flags);
    if (file < 0)
        return file;
    if (path == PATH_DIRECT)
        result = copy_direct(file, to, from, length, offset);
    else if (path == PATH_MAPPED)
        result = copy_mapped(file, to, from, length, offset);
    else
        result = from ? pwrite(file, from, length, offset) : pread(file, to, length, offset);
    if (result < 0 && path == PATH_BUFFERED)
        result = -errno;
    close(file);
    return result;
}

static int64_t read_bytes(struct target *target, union handle handle, void *buffer, uint32_t length,
                          uint32_t offset, uint32_t how) {
    return transfer(target, handle, buffer, NULL, length, offset, how);
}

static int64_t write_bytes(struct target *target, union handle handle, const void *buffer,
                           uint32_t length, uint32_t offset, uint32_t how) {
    return transfer(target, handle, NULL, buffer, length, offset, how);
}

static int64_t append(struct target *target, union handle handle, const void *buffer,
                      uint32_t length) {
    int file = open_again(handle, O_WRONLY | O_APPEND);

    (void)target;
    if (file < 0)
        return file;
    int64_t done = write(file, buffer, length);
    int64_t result = done < 0 ? -errno : done;
    close(file);
    return result;
}

static int truncate_to(struct target *target, union handle handle, uint32_t size, bool by_open) {
    (void)target;
    if (!by_open)
        return answer(truncate(path_of(handle).text, size));
    int file = open_again(handle, O_WRONLY | O_TRUNC);
    return file < 0 ? file : answer(close(file));
}

static int allocate(struct target *target, union handle handle, int mode, uint32_t offset,
                    uint32_t length) {
    int file = open_again(handle, O_RDWR);

    (void)target;
    if (file < 0)
        return file;
    int error = answer(fallocate(file, mode, offset, length));
    close(file);
    return error;
}

static int64_t copy(struct target *target, union handle from, uint32_t offset, union handle to,
                    uint32_t to_offset, uint32_t length) {
    int source = open_again(from, O_RDONLY), destination = open_again(to, O_WRONLY);
    off_t from_at = offset, to_at = to_offset;
    int64_t result = source < 0 ? source : destination < 0 ? destination : 0;

    (void)target;
    if (result == 0) {
        ssize_t copied = copy_file_range(source, &from_at, destination, &to_at, length, 0);
        result = copied < 0 ? -errno : copied;
    }
    if (source >= 0)
        close(source);
    if (destination >= 0)
        close(destination);
    return result;
}

static int64_t seek(struct target *target, union handle handle, uint32_t offset, int whence) {
    int file = open_again(handle, O_RDONLY);

    (void)target;
    if (file < 0)
        return file;
    int64_t found = lseek(file, offset, whence);
    int64_t result = found < 0 ? -errno : found;
    close(file);
    return result;
}

static int sync_file(struct target *target, union handle handle, bool data_only) {
    int file = open_again(handle, O_RDONLY);

    (void)target;
    if (file < 0)
        return file;
    int error = answer(data_only ? fdatasync(file) : fsync(file));
    close(file);
    return error;
}

/* --- attributes ------------------------------------------------------------------------------- */

static int64_t in_ns(struct timespec time) {
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int stat_handle(struct target *target, union handle handle,
                       struct target_attributes *attributes) {
    struct stat s;

    (void)target;
    if (fstat(handle.descriptor, &s))
        return -errno;
    *attributes = (struct target_attributes){.size = (uint64_t)s.st_size,
                                             .mode = s.st_mode,
                                             .nlink = (uint32_t)s.st_nlink,
                                             .uid = s.st_uid,
                                             .gid = s.st_gid,
                                             .rdev = major(s.st_rdev) << 20 | minor(s.st_rdev),
                                             .mtime = in_ns(s.st_mtim),
                                             .ctime = in_ns(s.st_ctim)};
    return 0;
}

static int change_mode(struct target *target, union handle handle, uint32_t mode) {
    (void)target;
    return answer(chmod(path_of(handle).text, mode));
}

static int change_owner(struct target *target, union handle handle, uint32_t uid, uint32_t gid) {
    (void)target;
    return answer(fchownat(handle.descriptor, "", uid, gid, AT_EMPTY_PATH));
}

static int set_mtime(struct target *target, union handle handle, int64_t ns) {
    int64_t rest = ns % 1000000000;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

    (void)target;
    times[1].tv_sec = ns / 1000000000 - (rest < 0);
    times[1].tv_nsec = rest < 0 ? rest + 1000000000 : rest;
    return answer(utimensat(handle.descriptor, "", times, AT_EMPTY_PATH));
}

static int64_t get_attribute(struct target *target, union handle handle, const char *name,
                             void *value, size_t size) {
    ssize_t got = getxattr(path_of(handle).text, name, value, size);

    (void)target;
    return got < 0 ? -errno : got;
}

static int set_attribute(struct target *target, union handle handle, const char *name,
                         const void *value, size_t size, int flags) {
    (void)target;
    return answer(setxattr(path_of(handle).text, name, value, size, flags));
}

static int remove_attribute(struct target *target, union handle handle, const char *name) {
    (void)target;
    return answer(removexattr(path_of(handle).text, name));
}

static int64_t list_attributes(struct target *target, union handle handle, char *names,
                               size_t size) {
    ssize_t got = listxattr(path_of(handle).text, names, size);

    (void)target;
    return got < 0 ? -errno : got;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int drop_caches(struct target *target) {
    return answer(syncfs(self(target)->base));
}

static int open_base(struct posix_target *t) {
    int parent = open(t->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (parent < 0)
        return -errno;
    t->base = openat(parent, BASE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = answer(t->base);
    close(parent);
    return error;
}

static int remount(struct target *target) {
    struct posix_target *t = self(target);

    if (!t->remount)
        return drop_caches(target);
    close(t->base);
    int status = system(t->remount);
    return status ? -EIO : open_base(t);
}

static int space(struct target *target, struct target_space *left) {
    int directory = open(self(target)->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statvfs usage;
    int error = answer(directory);

    if (error)
        return error;
    error = syncfs(directory) || fstatvfs(directory, &usage) ? -errno : 0;
    close(directory);
    if (!error)
        *left = (struct target_space){usage.f_bfree, usage.f_ffree};
    return error;
}

static int64_t now(clockid_t clock) {
    struct timespec time;

    clock_gettime(clock, &time);
    return in_ns(time);
}

/* The kernel takes time stamps from a clock that stands still between its ticks. */
static int64_t before(struct target *target, const struct operation *op) {
    (void)target;
    (void)op;
    return now(CLOCK_REALTIME_COARSE);
}

static int64_t after(struct target *target) {
    (void)target;
    return now(CLOCK_REALTIME);
}

static const struct target_type posix_type = {
    .root = root,
    .child = child,
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

/* The time that the tree's root shows when it is told to have the one given. */
static int try_time(const struct posix_target *t, int64_t seconds, struct timespec *kept) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
    struct stat status;

    times[1].tv_sec = seconds;
    times[1].tv_nsec = 999999999;
    if (futimens(t->base, times) || fstat(t->base, &status))
        return -errno;
    *kept = status.st_mtim;
    return 0;
}

static int find_time_limits(struct posix_target *t) {
    struct timespec lowest, middle, highest;
    int error = try_time(t, -(INT64_C(1) << 40), &lowest);

    if (!error)
        error = try_time(t, 0, &middle);
    if (!error)
        error = try_time(t, INT64_C(1) << 40, &highest);
    if (error)
        return error;
    t->target.time_granularity_ns = 1000000000 - middle.tv_nsec;
    t->target.time_min_s = lowest.tv_sec;
    t->target.time_max_s = highest.tv_sec;
    return 0;
}

static int make_base(struct posix_target *t, bool make) {
    int parent = open(t->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (parent < 0)
        return -errno;
    int error = answer(make ? mkdirat(parent, BASE, 0755) : unlinkat(parent, BASE, AT_REMOVEDIR));
    close(parent);
    return error;
}

int posix_target_open(struct posix_target *t) {
    struct statvfs usage;
    char command[4096];

    snprintf(command, sizeof(command), "rm -rf '%s/" BASE "'", t->directory);
    if (system(command))
        return -EIO;
    if (statvfs(t->directory, &usage))
        return -errno;
    t->target.type = &posix_type;
    t->target.block_size = (uint32_t)usage.f_frsize;
    t->target.keeps_set_id_bits = geteuid() == 0;
    t->target.patience = 100;
    umask(0);
    return 0;
}

int posix_target_begin(struct posix_target *t) {
    t->target.buffer = malloc(MODEL_FILE_MAX + 1);
    int error = t->target.buffer ? make_base(t, true) : -ENOMEM;

    if (!error)
        error = open_base(t);
    return error ? error : find_time_limits(t);
}

int posix_target_end(struct posix_target *t) {
    free(t->target.buffer);
    close(t->base);
    return make_base(t, false);
}

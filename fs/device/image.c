/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, a bottom.
 * An image file or a block device.
 *
 * Invariants:
 *  1. The lock (flock, and O_EXCL for a block device) is taken before the first byte is changed:
 *     creating empties an existing file only once nobody else can hold it.
 *  2. A transfer is complete or has failed; a short one is continued.
 * Locking: none needed, the descriptor is only used with explicit offsets.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fs/device/device.h"
#include "fs/device/stack.h"

#define VECTOR_WINDOW 64 /* pieces given to one system call */
#define LOCK_ATTEMPTS 20
#define LOCK_GRACE_NS 500000000L

struct image {
    struct device device;
    int fd;
    bool block_device;
};

/* Moves one window of pieces completely; the window is used up. */
static int image_transfer(const struct image *image, enum device_operation operation,
                          struct iovec *window, int count, uint64_t offset) {
    while (count > 0) {
        ssize_t done = operation == DEVICE_WRITE ? pwritev(image->fd, window, count, (off_t)offset)
                                                 : preadv(image->fd, window, count, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int error = done < 0 ? errno : EIO;
            log_error(image->device.log, "%s: cannot %s at byte %" PRIu64 ": %s",
                      image->device.name, operation == DEVICE_WRITE ? "write" : "read", offset,
                      done < 0 ? strerror(error) : "the file has become shorter");
            return -error;
        }
        offset += (uint64_t)done;
        while (count > 0 && (size_t)done >= window->iov_len) {
            done -= (ssize_t)window->iov_len;
            window++;
            count--;
        }
        if (count > 0) {
            window->iov_base = (char *)window->iov_base + done;
            window->iov_len -= (size_t)done;
        }
    }
    return 0;
}

static int image_submit(struct device *device, const struct device_request *request) {
    struct image *image = (struct image *)device;
    uint64_t offset = request->offset;
    for (int next = 0; next < request->vector_count;) {
        struct iovec window[VECTOR_WINDOW];
        int count = 0;
        uint64_t length = 0;
        while (count < VECTOR_WINDOW && next < request->vector_count) {
            window[count] = request->vector[next++];
            length += window[count++].iov_len;
        }
        int error = image_transfer(image, request->operation, window, count, offset);
        if (error)
            return error;
        offset += length;
    }
    return 0;
}

static int image_flush(struct device *device) {
    struct image *image = (struct image *)device;
    if (device->read_only || fdatasync(image->fd) == 0)
        return 0;
    int error = errno;
    log_error(device->log, "%s: cannot flush: %s", device->name, strerror(error));
    return -error;
}

/* Has the kernel zero (or, of a block device only, discard) a range. */
static int image_unmap(struct device *device, unsigned long block_device_request, const char *what,
                       uint64_t offset, uint64_t length) {
    struct image *image = (struct image *)device;
    int result;
    do {
        if (image->block_device) {
            uint64_t range[2] = {offset, length};
            result = ioctl(image->fd, block_device_request, range);
        } else {
            result = fallocate(image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                               (off_t)length);
        }
    } while (result < 0 && errno == EINTR);
    if (result == 0)
        return 0;
    /* EINVAL: a block device whose sectors are larger than ours; ENOTTY, ENOSYS: an old kernel. */
    if (errno == EINVAL || errno == ENOTTY || errno == ENOSYS || errno == EOPNOTSUPP)
        return -EOPNOTSUPP;
    int error = errno;
    log_error(device->log, "%s: cannot %s %" PRIu64 " bytes at byte %" PRIu64 ": %s", device->name,
              what, length, offset, strerror(error));
    return -error;
}

static int image_zero(struct device *device, uint64_t offset, uint64_t length) {
    return image_unmap(device, BLKZEROOUT, "zero", offset, length);
}

static int image_discard(struct device *device, uint64_t offset, uint64_t length) {
    return image_unmap(device, BLKDISCARD, "discard", offset, length);
}

static void image_close(struct device *device) {
    struct image *image = (struct image *)device;
    close(image->fd);
    free(image);
}

static const struct device_operations image_operations = {
    .name = "image",
    .submit = image_submit,
    .flush = image_flush,
    .zero = image_zero,
    .discard = image_discard,
    .close = image_close,
};

static int image_fail(const struct image *image, int error, const char *reason) {
    log_error(image->device.log, "%s: %s", image->device.name, reason ? reason : strerror(error));
    return -error;
}

/* Looks at the type before opening, since opening some (a FIFO) would block. */
static int image_check_type(struct image *image, const char *path, bool create) {
    struct stat status;
    if (stat(path, &status) < 0)
        return errno == ENOENT && create ? 0 : image_fail(image, errno, NULL);
    image->block_device = S_ISBLK(status.st_mode);
    if (S_ISDIR(status.st_mode))
        return image_fail(image, EISDIR, "is a directory, not an image file or block device");
    if (!S_ISREG(status.st_mode) && !image->block_device)
        return image_fail(image, EINVAL, "is neither a regular file nor a block device");
    return 0;
}

/* Who looks at /proc/PID/fd keeps a file, and so the lock of a process that has just ended, for an
 * instant: one that lasts is somebody's. Else returns -1 and sets errno. */
static int image_lock(const struct image *image, int how) {
    const struct timespec pause = {.tv_nsec = LOCK_GRACE_NS / LOCK_ATTEMPTS};

    for (int i = 1; flock(image->fd, how | LOCK_NB) != 0; i++) {
        if (errno == EWOULDBLOCK && i == LOCK_ATTEMPTS)
            errno = EBUSY;
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static int image_open_and_lock(struct image *image, const char *path, unsigned flags) {
    bool lock = !(flags & DEVICE_NO_LOCK);
    int mode = O_CLOEXEC | (flags & DEVICE_READ_ONLY ? O_RDONLY : O_RDWR);
    if (image->block_device)
        mode |= lock ? O_EXCL : 0; /* refused while mounted or opened like this elsewhere */
    else
        mode |= flags & DEVICE_CREATE ? O_CREAT : 0;
    image->fd = open(path, mode, 0666);
    if (image->fd < 0)
        return image_fail(image, errno,
                          errno == EBUSY ? "is mounted or in use by another program" : NULL);
    if (!lock)
        return 0;
    if (image_lock(image, flags & DEVICE_READ_ONLY ? LOCK_SH : LOCK_EX) == 0)
        return 0;
    return image_fail(image, errno, errno == EBUSY ? "is in use by another program" : NULL);
}

static int image_size_block_device(struct image *image, uint64_t wanted) {
    uint64_t size;
    if (ioctl(image->fd, BLKGETSIZE64, &size) < 0)
        return image_fail(image, errno, NULL);
    if (wanted > size)
        return image_fail(image, ENOSPC, "is smaller than the size asked for");
    image->device.size = wanted ? wanted : size;
    return 0;
}

static int image_size_file(struct image *image, bool create, uint64_t wanted) {
    struct stat status;
    if (create) {
        if (wanted > INT64_MAX)
            return image_fail(image, EFBIG, NULL);
        if (ftruncate(image->fd, 0) < 0 || ftruncate(image->fd, (off_t)wanted) < 0)
            return image_fail(image, errno, NULL);
    }
    if (fstat(image->fd, &status) < 0)
        return image_fail(image, errno, NULL);
    image->device.size = (uint64_t)status.st_size;
    return 0;
}

static int image_open(struct image *image, const char *path, unsigned flags, uint64_t size) {
    bool create = flags & DEVICE_CREATE;
    if (create && (flags & DEVICE_READ_ONLY))
        return image_fail(image, EINVAL, "cannot be made read-only");
    int error = image_check_type(image, path, create);
    if (!error)
        error = image_open_and_lock(image, path, flags);
    if (!error)
        error = image->block_device ? image_size_block_device(image, create ? size : 0)
                                    : image_size_file(image, create, size);
    if (error)
        return error;
    image->device.size -= image->device.size % DEVICE_SECTOR;
    return image->device.size ? 0 : image_fail(image, EINVAL, "is empty: it has no whole sector");
}

int device_open_image(const char *path, unsigned flags, uint64_t size, struct clock *clock,
                      const struct log *log, struct device **device) {
    struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return -ENOMEM;
    image->fd = -1;
    image->device.operations = &image_operations;
    image->device.clock = clock;
    image->device.log = log;
    image->device.read_only = flags & DEVICE_READ_ONLY;
    snprintf(image->device.name, sizeof(image->device.name), "%s", path);
    int error = image_open(image, path, flags, size);
    if (error) {
        if (image->fd >= 0)
            close(image->fd);
        free(image);
        return error;
    }
    *device = &image->device;
    return 0;
}

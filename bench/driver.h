/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, between the workloads and what they are run on.
 *
 * A driver performs the file operations of the program that a workload imitates. Two exist:
 *   driver_volume.c  a volume in this process under a virtual clock: each call is charged the
 * system calls that the real program would make, and time is what the model says; driver_posix.c
 * any mounted directory: each call makes those system calls, and time is the wall's. The same
 * workload code runs on both.
 *
 * Nodes are open files and directories. Names are single components looked up in an open directory,
 * so that the host's CPU is not spent on walking long paths; a workload says with driver_walk which
 * components the real program would have resolved.
 *
 * All calls return 0 (or a count) or negative errno. A driver belongs to one thread, but for reads
 * and writes where it says `threads`.
 */
#ifndef LAYOUTFS_BENCH_DRIVER_H
#define LAYOUTFS_BENCH_DRIVER_H

#include "fs/device/device.h"
#include "fs/volume.h"

struct driver;

/* An open file or directory; the field in use is the driver's affair. */
struct driver_node {
    union {
        struct inode *inode;
        int fd;
    };
};

struct driver_stat {
    uint32_t mode;
    uint64_t size;
    uint64_t ino;
    struct timestamp mtime;
};

/* One name in a directory ("." and ".." are left out); `name` is terminated and valid during the
 * call. `type` is the S_IFMT bits, 0: not known. The directory must not be changed meanwhile. */
typedef int (*driver_visit)(void *context, const char *name, uint32_t type);

struct driver_operations {
    const char *name;
    bool threads; /* reads and writes of files may come from several threads */
    /* Directories as places to name things in: no call that the real program makes. Each node is
     * given back with leave. `hold` makes a second node of one directory. */
    int (*root)(struct driver *driver, struct driver_node *root);
    int (*enter)(struct driver *driver, const struct driver_node *dir, const char *name,
                 struct driver_node *node);
    int (*hold)(struct driver *driver, const struct driver_node *dir, struct driver_node *node);
    void (*leave)(struct driver *driver, struct driver_node *dir);

    /* Files: given back with close. */
    int (*open)(struct driver *driver, const struct driver_node *dir, const char *name, bool write,
                struct driver_node *node);
    int (*create)(struct driver *driver, const struct driver_node *dir, const char *name,
                  uint32_t mode, struct driver_node *node);
    void (*close)(struct driver *driver, struct driver_node *node);
    int64_t (*read)(struct driver *driver, const struct driver_node *node, void *buffer,
                    size_t size, uint64_t offset);
    /* Writes all of it or fails. */
    int (*write)(struct driver *driver, const struct driver_node *node, const void *buffer,
                 size_t size, uint64_t offset);
    int (*fsync)(struct driver *driver, const struct driver_node *node);
    int (*fstat)(struct driver *driver, const struct driver_node *node, struct driver_stat *stat);

    int (*mkdir)(struct driver *driver, const struct driver_node *dir, const char *name,
                 uint32_t mode);
    int (*symlink)(struct driver *driver, const struct driver_node *dir, const char *name,
                   const char *target);
    int (*unlink)(struct driver *driver, const struct driver_node *dir, const char *name);
    int (*rmdir)(struct driver *driver, const struct driver_node *dir, const char *name);
    int (*rename)(struct driver *driver, const struct driver_node *dir, const char *name,
                  const struct driver_node *new_dir, const char *new_name);
    /* lstat(2). */
    int (*stat)(struct driver *driver, const struct driver_node *dir, const char *name,
                struct driver_stat *stat);
    /* utime(2) and chmod(2), as an archiver restores them; symlinks: nothing. */
    int (*restore)(struct driver *driver, const struct driver_node *dir, const char *name,
                   uint32_t mode, struct timestamp mtime);
    /* opendir to closedir. Stops with visit's first non-zero value and returns it. */
    int (*readdir)(struct driver *driver, const struct driver_node *dir, driver_visit visit,
                   void *context);

    int (*sync)(struct driver *driver);
    /* Makes the next access cold. No node is open. -EPERM: this machine does not let us. */
    int (*drop_caches)(struct driver *driver);

    int64_t (*now_ns)(struct driver *driver);
    int64_t (*cpu_ns)(struct driver *driver);
    /* Work of the modelled program beside its file operations; free where time is the wall's. */
    void (*charge)(struct driver *driver, enum cost cost, int64_t count);
    void (*charge_ns)(struct driver *driver, int64_t ns);
    /* What the modelled disk did; all zero where there is none. */
    void (*stats)(struct driver *driver, struct device_stats *stats);
};

struct driver {
    const struct driver_operations *operations;
};

/* The real program named an object by a path whose directory part has `components` components. */
static inline void driver_walk(struct driver *driver, uint32_t components) {
    driver->operations->charge(driver, COST_LOOKUP, components);
}

struct driver_volume {
    struct driver driver;
    struct volume *volume; /* borrowed; its clock is virtual */
};

void driver_volume_init(struct driver_volume *driver, struct volume *volume);

struct driver_posix {
    struct driver driver;
    const char *path; /* of the directory; borrowed */
    /* Unmounts and mounts again, to empty caches that the kernel's drop_caches does not reach.
     * NULL: sync and /proc/sys/vm/drop_caches, which only root may write. */
    int (*remount)(void *context);
    void *context;
};

void driver_posix_init(struct driver_posix *driver, const char *path, int (*remount)(void *context),
                       void *context);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs umount`, and what mount helpers need of it. Interface: tools/mount.h.
 *
 * The kernel lets go of a FUSE mount before the server has written its last block. Whoever unmounts
 * here therefore waits for the lock that the server holds on the image.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/image.h"
#include "tools/mount.h"
#include "tools/tool.h"

/* --- mount points ---------------------------------------------------------------------------- */

/* A dead mount cannot be looked at, so that realpath(3) fails on it: its parent can. */
static int resolve_dead(const char *directory, char *resolved) {
    size_t length;
    const char *last = path_last(directory, &length);
    char *parent = strndup(directory, (size_t)(last - directory));
    if (!parent)
        return -ENOMEM;
    int error = realpath(*parent ? parent : ".", resolved) ? 0 : -errno;
    free(parent);
    size_t used = error ? 0 : strlen(resolved);
    if (!error && used + length + 2 > PATH_MAX)
        error = -ENAMETOOLONG;
    if (!error)
        snprintf(resolved + used, PATH_MAX - used, "%s%.*s", used > 1 ? "/" : "", (int)length,
                 last);
    return error;
}

/* The kernel may answer all else from its caches; statfs always asks the server. ECONNABORTED: it
 * died over this question. */
static bool is_dead(const char *directory) {
    struct statfs unused;
    return statfs(directory, &unused) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

int mount_point_resolve(const char *directory, char *resolved) {
    if (realpath(directory, resolved))
        return is_dead(resolved) ? -ENOTCONN : 0;
    if (errno != ENOTCONN)
        return -errno;
    int error = resolve_dead(directory, resolved);
    return error ? error : -ENOTCONN;
}

struct mounted {
    char source[PATH_MAX]; /* the image, or "none" */
    bool read_only;
    uid_t user; /* who mounted it, and may unmount it, beside root */
};

/* What is mounted on `directory`, topmost. TOOL_FAILED after a sentence when it is none of ours. */
static int find_mounted(const char *directory, struct mounted *mounted) {
    FILE *table = setmntent("/proc/self/mounts", "r");
    struct mntent entry;
    char strings[3 * PATH_MAX], type[64] = "";
    if (!table)
        return tool_fail("/proc/self/mounts: %s", strerror(errno));
    while (getmntent_r(table, &entry, strings, sizeof strings)) {
        if (strcmp(entry.mnt_dir, directory) != 0)
            continue;
        snprintf(type, sizeof type, "%s", entry.mnt_type);
        snprintf(mounted->source, sizeof mounted->source, "%s", entry.mnt_fsname);
        mounted->read_only = hasmntopt(&entry, "ro") != NULL;
        const char *user = hasmntopt(&entry, "user_id");
        mounted->user = user ? (uid_t)strtoul(user + strlen("user_id="), NULL, 10) : 0;
    }
    endmntent(table);
    if (!*type)
        return tool_fail("%s: nothing is mounted here", directory);
    if (strncmp(type, "fuse.layoutfs", strlen("fuse.layoutfs")) != 0)
        return tool_fail("%s: this is a mount of type %s, not one of layoutfs", directory, type);
    return TOOL_DONE;
}

int mount_point_detach(const char *directory) {
    struct mounted mounted;
    return find_mounted(directory, &mounted) == TOOL_DONE ? fuse_unmount(directory, true)
                                                          : -ENOTCONN;
}

#define PATIENCE 500 /* times a pause of 10 ms */

/* Does the lock come within PATIENCE? */
static bool lock_soon(int image, int operation) {
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < PATIENCE; i++) {
        if (flock(image, operation | LOCK_NB) == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Returns when the serving process has let go of the image, which it does with its last write. It
 * holds a lock while it has the image open: an exclusive one, or for reading a shared one. Another
 * reader may share that, so there the wait is bounded; nothing is lost with it. */
static int wait_for_image(const struct mounted *mounted) {
    int image = open(mounted->source, O_RDONLY | O_CLOEXEC);
    if (image < 0) /* "none", or removed while mounted */
        return errno == ENOENT ? TOOL_DONE
                               : tool_fail("%s: cannot tell whether it is complete: %s",
                                           mounted->source, strerror(errno));
    int result = 0;
    if (!lock_soon(image, LOCK_SH)) {
        fprintf(stderr,
                "layoutfs: %s: unmounted, waiting for the last writes, or for another mount "
                "namespace that still has it mounted\n",
                mounted->source);
        do
            result = flock(image, LOCK_SH);
        while (result != 0 && errno == EINTR);
    }
    if (result == 0 && mounted->read_only)
        (void)lock_soon(image, LOCK_EX);
    close(image);
    return result == 0 ? TOOL_DONE
                       : tool_fail("%s: cannot tell whether it is complete: %s", mounted->source,
                                   strerror(errno));
}

/* Has everything written while the server can still say that it fails: nobody hears it later. */
static int save(const char *directory) {
    int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return 0; /* the directory may be closed to who unmounts */
    int error = syncfs(root) == 0 && fsync(root) == 0 ? 0 : -errno;
    close(root);
    return error;
}

/* --- unmounting ------------------------------------------------------------------------------ */

static int unmount_failed(const char *directory, const struct mounted *mounted, int error) {
    if (error == -EBUSY && geteuid() != 0 && geteuid() != mounted->user)
        return tool_fail("%s: only root and who mounted it may unmount it", directory);
    if (error == -EBUSY)
        return tool_fail("%s: in use", directory);
    return tool_fail("%s: %s", directory, strerror(-error));
}

int unmount_image(const struct unmount_request *request) {
    char directory[PATH_MAX];
    struct mounted mounted;

    int error = mount_point_resolve(request->directory, directory);
    if (error && error != -ENOTCONN)
        return tool_fail("%s: %s", request->directory, strerror(-error));
    if (find_mounted(directory, &mounted) != TOOL_DONE)
        return TOOL_FAILED;
    /* What nobody serves is of no use to whoever holds the name. */
    int save_error = error ? 0 : save(directory);
    bool dead = error || is_dead(directory);
    error = fuse_unmount(directory, request->lazy || dead);
    if (error)
        return unmount_failed(directory, &mounted, error);
    if (dead)
        return tool_fail("%s: its server died; the image may be incomplete", mounted.source);
    int code = request->lazy ? TOOL_DONE : wait_for_image(&mounted);
    if (save_error)
        return tool_fail("%s: not everything could be written: %s", mounted.source,
                         strerror(-save_error));
    return code;
}

/* --- layoutfs umount ------------------------------------------------------------------------- */

static const struct argp_option umount_argp_options[] = {
    {"lazy", 'l', NULL, 0,
     "take the name away at once, and do not wait: what is in use goes on until it is closed", 0},
    {0},
};

static error_t parse_umount(int key, char *argument, struct argp_state *state) {
    struct unmount_request *request = state->input;
    if (key == 'l')
        request->lazy = true;
    else if (key == ARGP_KEY_ARG && state->arg_num == 0)
        request->directory = argument;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "too many arguments");
    else if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "the directory is missing");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp umount_argp = {
    .options = umount_argp_options,
    .parser = parse_umount,
    .args_doc = "DIR",
    .doc = "Unmount DIR and wait until its image is complete.",
};

int tool_umount(int argc, char **argv) {
    struct unmount_request request = {0};

    argp_parse(&umount_argp, argc, argv, 0, NULL, &request);
    return unmount_image(&request);
}

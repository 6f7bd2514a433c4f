/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs mount` and `layoutfs umount`.
 *
 * A mount in the background is a child of this process: it opens the image, mounts and serves; the
 * parent waits for one byte, which says that the mount answers, and leaves. Without the byte the
 * child's exit code is the command's. (The fork comes first because an open volume has threads.)
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/image.h"
#include "tools/tool.h"

/* --- mount options --------------------------------------------------------------------------- */

struct mount_options {
    char *fuse;   /* for the kernel, by way of libfuse */
    char *volume; /* the core's and the layout's: volume_open knows whether they exist */
    bool read_only;
    bool delayed_writes;
};

/* Options that every filesystem has. What is not here is the volume's. */
static const struct generic_option {
    const char *name;
    const char *fuse;   /* NULL: nothing to say */
    const char *volume; /* NULL: nothing to say */
} generic_options[] = {
    {"defaults", NULL, NULL},
    {"rw", NULL, NULL},
    {"ro", "ro", NULL},
    {"suid", "suid", NULL},
    {"nosuid", "nosuid", NULL},
    {"dev", "dev", NULL},
    {"nodev", "nodev", NULL},
    {"exec", "exec", NULL},
    {"noexec", "noexec", NULL},
    {"sync", "sync", NULL},
    {"async", "async", NULL},
    {"dirsync", "dirsync", NULL},
    {"noatime", "noatime", "atime=noatime"},
    {"relatime", NULL, "atime=relatime"},
    {"strictatime", NULL, "atime=strictatime"},
    {"allow_other", "allow_other", NULL},
    {"default_permissions", NULL, NULL}, /* always on */
    {"writeback", NULL, NULL},
    {"nowriteback", NULL, NULL},
};

static bool append_option(char **list, const char *option) {
    char *longer;
    int length =
        *list ? asprintf(&longer, "%s,%s", *list, option) : asprintf(&longer, "%s", option);
    if (length < 0)
        return false;
    free(*list);
    *list = longer;
    return true;
}

static bool sort_option(struct mount_options *options, const char *option) {
    for (size_t i = 0; i < sizeof generic_options / sizeof *generic_options; i++) {
        const struct generic_option *generic = &generic_options[i];
        if (strcmp(option, generic->name) != 0)
            continue;
        if (strcmp(option, "ro") == 0 || strcmp(option, "rw") == 0)
            options->read_only = option[1] == 'o';
        if (strcmp(option, "writeback") == 0 || strcmp(option, "nowriteback") == 0)
            options->delayed_writes = option[0] == 'w';
        return (!generic->fuse || append_option(&options->fuse, generic->fuse)) &&
               (!generic->volume || append_option(&options->volume, generic->volume));
    }
    return append_option(&options->volume, option);
}

/* Sorts "a,b=c" into *options. */
static bool sort_options(struct mount_options *options, const char *text) {
    char *copy = strdup(text), *rest = copy, *option;
    bool done = copy != NULL;
    while (done && (option = strsep(&rest, ",")))
        if (*option)
            done = sort_option(options, option);
    free(copy);
    return done;
}

/* What a kernel filesystem offers without being asked. A plain user's mount is nosuid and nodev,
 * and for that user alone: fusermount3 sees to it. */
static bool default_options(struct mount_options *options, const char *type) {
    char subtype[64];
    snprintf(subtype, sizeof subtype, "subtype=layoutfs.%s", type);
    char *users = options->fuse;
    options->fuse = NULL;
    bool done = append_option(&options->fuse, "default_permissions") &&
                append_option(&options->fuse, subtype) &&
                (geteuid() != 0 || append_option(&options->fuse, "allow_other,suid,dev")) &&
                (!users || append_option(&options->fuse, users));
    free(users);
    return done;
}

/* --- the serving process --------------------------------------------------------------------- */

struct mount {
    const char *image, *directory; /* absolute, except "none" */
    const char *type;              /* NULL: what the image says */
    struct mount_options options;
    bool foreground, verbose;
    int ready; /* where the waiting parent reads; -1 in the foreground */
    struct clock clock;
    struct log log;
};

/* Where messages go once there is no terminal any more. */
static void emit_to_syslog(void *context, enum log_level level, const char *text) {
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    syslog(LOG_DAEMON | priorities[level], "%s", text);
}

/* The mount answers: let go of the terminal and tell the parent. */
static void detach(void *context) {
    struct mount *mount = context;
    if (mount->ready < 0)
        return;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    openlog("layoutfs", LOG_PID, LOG_DAEMON);
    mount->log.emit = emit_to_syslog;
    if (chdir("/") != 0 || nowhere < 0 || dup2(nowhere, STDIN_FILENO) < 0 ||
        dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        log_warning(&mount->log, "%s: cannot let go of the terminal: %s", mount->directory,
                    strerror(errno));
    if (nowhere > STDERR_FILENO)
        close(nowhere);
    /* A parent that was killed meanwhile is no reason to stop. */
    signal(SIGPIPE, SIG_IGN);
    if (write(mount->ready, "", 1) != 1)
        log_warning(&mount->log, "%s: nobody waits for this mount", mount->directory);
    close(mount->ready);
}

/* The device, and in mount->type the type. 0 or negative errno, after a sentence. */
static int open_device(struct mount *mount, struct device **device) {
    const struct layout *layout;
    const struct layout_type *type;
    *device = NULL;
    if (mount->type && layout_find(mount->type, &layout, &type) == 0 &&
        (layout->flags & LAYOUT_VOLATILE))
        return 0;
    int error = device_open_image(mount->image, mount->options.read_only ? DEVICE_READ_ONLY : 0, 0,
                                  &mount->clock, &mount->log, device);
    if (error || mount->type)
        return error;
    struct probe_result probe;
    error = layout_probe(*device, &layout, &probe);
    if (error)
        device_close(*device);
    else
        mount->type = probe.type ? probe.type : layout->name;
    return error;
}

/* The kernel caches what goes over the mount; it reads ahead 128 KiB and writes up to 1 MiB at a
 * time. */
#define DIRECT_BYTES (64u << 10)

static int open_volume(struct mount *mount, struct volume **volume) {
    struct volume_config config = {
        .clock = &mount->clock,
        .log = &mount->log,
        .options = mount->options.volume,
        .read_only = mount->options.read_only,
        .direct_bytes = DIRECT_BYTES,
        .setid_by_caller = true,
    };
    int error = open_device(mount, &config.device);
    if (error)
        return error;
    config.type = mount->type;
    error = volume_open(&config, volume);
    if (error)
        device_close(config.device);
    return error;
}

/* A layout that can only read has made the volume read-only by itself. */
static bool announce_read_only(struct mount *mount, const struct volume *volume) {
    if (!volume->read_only || mount->options.read_only)
        return true;
    log_warning(&mount->log, "%s: mounted read-only", mount->image);
    return append_option(&mount->options.fuse, "ro");
}

/* Any serving thread allocates what another frees later, so arenas of their own gain the threads
 * nothing; and glibc extends those by a few pages and a system call at a time. */
static void prepare_allocator(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, 4 << 20);
}

/* A volume that is made by mounting it belongs to who mounts it. */
static int own_new_volume(struct volume *volume) {
    const struct attributes owner = {.uid = geteuid(), .gid = getegid()};
    struct inode *root;
    if (!(volume->layout->flags & LAYOUT_VOLATILE) || volume->read_only)
        return 0;
    int error = volume_root(volume, &root);
    if (error)
        return error;
    error = volume_setattr(root, SETATTR_UID | SETATTR_GID, &owner);
    volume_put(root, 1);
    return error;
}

static int serve_volume(struct mount *mount, struct volume *volume) {
    int error = own_new_volume(volume);
    if (error)
        return error;
    if (!default_options(&mount->options, mount->type) || !announce_read_only(mount, volume))
        return -ENOMEM;
    const struct fuse_mount_config config = {
        .volume = volume,
        .mount_point = mount->directory,
        .fuse_options = mount->options.fuse,
        .source = mount->image,
        .mounted = detach,
        .context = mount,
        .delayed_writes = mount->options.delayed_writes,
    };
    return fuse_mount_serve(&config);
}

/* Returns when the mount is over and the image complete; the exit code. */
static int serve(struct mount *mount) {
    struct volume *volume;
    prepare_allocator();
    mount->log = log_to_stderr("layoutfs", mount->verbose ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING);
    clock_init_wall(&mount->clock);
    fuse_block_signals();
    if (open_volume(mount, &volume) != 0)
        return TOOL_FAILED;
    int error = serve_volume(mount, volume);
    int close_error = volume_close(volume);
    if (error || close_error)
        log_error(&mount->log, "%s: %s", mount->image, strerror(error ? -error : -close_error));
    return error || close_error ? TOOL_FAILED : TOOL_DONE;
}

static int serve_in_background(struct mount *mount) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tool_fail("cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        return tool_fail("cannot start a process: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        setsid();
        mount->ready = ends[1];
        return serve(mount);
    }
    close(ends[1]);
    char byte;
    ssize_t count;
    do
        count = read(ends[0], &byte, 1);
    while (count < 0 && errno == EINTR);
    close(ends[0]);
    if (count == 1)
        return TOOL_DONE;
    int status;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status))
        return WEXITSTATUS(status);
    return tool_fail("%s: the serving process died before the mount was ready", mount->image);
}

/* --- layoutfs mount -------------------------------------------------------------------------- */

struct mount_arguments {
    char *image, *directory;
    struct mount mount;
};

static const struct argp_option mount_argp_options[] = {
    {"options", 'o', "OPTION[,...]", 0,
     "mount options: ro, nosuid, noatime and so on, and those `layoutfs options` lists", 0},
    {"type", 't', "TYPE", 0, "the layout; default: what the image holds", 0},
    {"foreground", 'f', NULL, 0, "stay in the foreground", 0},
    {"verbose", 'v', NULL, 0, "also tell what is not a problem", 0},
    {0},
};

static error_t parse_mount(int key, char *argument, struct argp_state *state) {
    struct mount_arguments *arguments = state->input;
    switch (key) {
    case 'o':
        return sort_options(&arguments->mount.options, argument) ? 0 : ENOMEM;
    case 't':
        arguments->mount.type = argument;
        return 0;
    case 'f':
        arguments->mount.foreground = true;
        return 0;
    case 'v':
        arguments->mount.verbose = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            argp_error(state, "too many arguments");
        *(state->arg_num == 0 ? &arguments->image : &arguments->directory) = argument;
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2)
            argp_error(state, "an image and a directory are needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp mount_argp = {
    .options = mount_argp_options,
    .parser = parse_mount,
    .args_doc = "IMAGE DIR",
    .doc = "Mount the filesystem in IMAGE, a file or block device, on the directory DIR.\v"
           "The volatile type memory has no image: `layoutfs mount -t memory none DIR`.",
};

static int check_directory(const char *directory) {
    struct stat stat_data;
    if (stat(directory, &stat_data) != 0)
        return tool_fail("%s: %s", directory, strerror(errno));
    if (!S_ISDIR(stat_data.st_mode))
        return tool_fail("%s: not a directory", directory);
    return TOOL_DONE;
}

int tool_mount(int argc, char **argv) {
    struct mount_arguments arguments = {.mount.ready = -1};
    struct mount *mount = &arguments.mount;
    char image[PATH_MAX], directory[PATH_MAX];
    int code = TOOL_FAILED;

    if (argp_parse(&mount_argp, argc, argv, 0, NULL, &arguments) != 0) {
        code = tool_fail("cannot take up the arguments: %s", strerror(ENOMEM));
    } else if (check_directory(arguments.directory) == TOOL_DONE) {
        /* An image that is not there is device_open_image's to complain about. */
        mount->image = realpath(arguments.image, image) ? image : arguments.image;
        mount->directory = realpath(arguments.directory, directory);
        if (!mount->directory)
            code = tool_fail("%s: %s", arguments.directory, strerror(errno));
        else
            code = mount->foreground ? serve(mount) : serve_in_background(mount);
    }
    free(mount->options.fuse);
    free(mount->options.volume);
    return code;
}

/* --- layoutfs umount ------------------------------------------------------------------------- */

static const struct argp_option umount_argp_options[] = {{0}};

static error_t parse_umount(int key, char *argument, struct argp_state *state) {
    if (key == ARGP_KEY_ARG && state->arg_num == 0)
        *(char **)state->input = argument;
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

struct mounted {
    char source[PATH_MAX]; /* the image, or "none" */
    bool read_only;
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
    }
    endmntent(table);
    if (!*type)
        return tool_fail("%s: nothing is mounted here", directory);
    if (strncmp(type, "fuse.layoutfs", strlen("fuse.layoutfs")) != 0)
        return tool_fail("%s: this is a mount of type %s, not one of layoutfs", directory, type);
    return TOOL_DONE;
}

/* Returns when the serving process has let go of the image, which it does with its last write. It
 * holds a lock while it has the image open: an exclusive one, or for reading a shared one. Another
 * reader may share that, so there the wait is bounded; nothing is lost with it. */
static int wait_for_image(const struct mounted *mounted) {
    const struct timespec pause = {.tv_nsec = 10000000};
    int image = open(mounted->source, O_RDONLY | O_CLOEXEC);
    if (image < 0) /* "none", or removed while mounted */
        return errno == ENOENT ? TOOL_DONE
                               : tool_fail("%s: cannot tell whether it is complete: %s",
                                           mounted->source, strerror(errno));
    int result;
    do
        result = flock(image, LOCK_SH);
    while (result != 0 && errno == EINTR);
    if (result == 0 && mounted->read_only)
        for (int i = 0; i < 100 && flock(image, LOCK_EX | LOCK_NB) != 0; i++)
            nanosleep(&pause, NULL);
    close(image);
    return result == 0 ? TOOL_DONE
                       : tool_fail("%s: cannot tell whether it is complete: %s", mounted->source,
                                   strerror(errno));
}

/* Has everything written while the server can still say that it fails: nobody hears it later. */
static int save(const char *directory) {
    int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return errno == ENOTCONN ? -errno : 0; /* the directory may be closed to who unmounts */
    int error = syncfs(root) == 0 && fsync(root) == 0 ? 0 : -errno;
    close(root);
    return error;
}

int tool_umount(int argc, char **argv) {
    char *directory = NULL, resolved[PATH_MAX];
    struct mounted mounted;

    argp_parse(&umount_argp, argc, argv, 0, NULL, &directory);
    /* A mount whose server died cannot be resolved any more; its path must then be written out. */
    if (realpath(directory, resolved))
        directory = resolved;
    if (find_mounted(directory, &mounted) != TOOL_DONE)
        return TOOL_FAILED;
    int save_error = save(directory);
    int error = fuse_unmount(directory, false);
    if (error == -EBUSY)
        return tool_fail("%s: in use", directory);
    if (error)
        return tool_fail("%s: %s", directory, strerror(-error));
    int code = wait_for_image(&mounted);
    if (save_error == -ENOTCONN)
        return tool_fail("%s: its server died; the image may be incomplete", mounted.source);
    if (save_error)
        return tool_fail("%s: not everything could be written: %s", mounted.source,
                         strerror(-save_error));
    return code;
}

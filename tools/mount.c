/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs mount`, and what serves a mount. Interface for mount helpers:
 * tools/mount.h.
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/image.h"
#include "tools/mount.h"
#include "tools/tool.h"

/* --- the serving process --------------------------------------------------------------------- */

struct mount {
    const char *image, *directory; /* absolute, except "none" */
    const char *type;              /* NULL: what the image says */
    struct mount_options *options;
    bool foreground, sloppy;
    FILE *log_file; /* of log=, or NULL */
    int ready;      /* where the waiting parent reads; -1 in the foreground */
    struct clock clock;
    struct log log;
};

/* Where messages go once there is no terminal any more. */
static void emit_to_syslog(void *context, enum log_level level, const char *text) {
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    syslog(LOG_DAEMON | priorities[level], "%s", text);
}

static void emit_to_file(void *context, enum log_level level, const char *text) {
    static const char *const label[] = {"", "warning: ", "", "debug: "};
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        strftime(stamp, sizeof stamp, "%F %T", &local);
    fprintf(context, "%s layoutfs[%d]: %s%s\n", stamp, (int)getpid(), label[level], text);
}

/* From now on there may be nobody at the terminal. */
static void redirect_log(struct mount *mount) {
    if (mount->log_file) {
        mount->log.emit = emit_to_file;
        mount->log.context = mount->log_file;
    } else if (!mount->foreground) {
        openlog("layoutfs", LOG_PID, LOG_DAEMON);
        mount->log.emit = emit_to_syslog;
    }
}

/* The mount answers: let go of the terminal and tell the parent. */
static void detach(void *context) {
    struct mount *mount = context;
    redirect_log(mount);
    if (mount->foreground)
        return;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
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
        (layout->flags & LAYOUT_VOLATILE)) {
        if (access(mount->image, F_OK) != 0)
            return 0;
        log_error(&mount->log, "%s: type %s keeps nothing in an image; give none in its place",
                  mount->image, mount->type);
        return -EINVAL;
    }
    int error = device_open_image(mount->image, mount->options->read_only ? DEVICE_READ_ONLY : 0, 0,
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

/* The kernel caches what goes over the mount and reads ahead, and the host caches the image: a
 * third copy of what is read would be of no use. Small writes are gathered. */
#define DIRECT_READ_BYTES  PAGE_SIZE_BYTES
#define DIRECT_WRITE_BYTES (64u << 10)

/* An option that the volume does not know is a mistake of whoever calls: TOOL_USAGE. */
static int check_options(struct mount *mount) {
    int error = 0;
    if (mount->sloppy)
        error = mount_options_drop_unknown(mount->options, mount->type, &mount->log);
    if (!error)
        error = volume_options_check(mount->type, mount->options->volume, &mount->log);
    if (error == -ENOENT)
        log_error(&mount->log, "%s: unknown type; 'layoutfs options' lists them", mount->type);
    if (error == -ENOMEM)
        log_error(&mount->log, "%s: %s", mount->image, strerror(ENOMEM));
    return error == 0 ? TOOL_DONE : error == -ENOMEM ? TOOL_FAILED : TOOL_USAGE;
}

/* The exit code: TOOL_DONE with *volume. */
static int open_volume(struct mount *mount, struct volume **volume) {
    struct volume_config config = {
        .clock = &mount->clock,
        .log = &mount->log,
        .read_only = mount->options->read_only,
        .direct_read_bytes = DIRECT_READ_BYTES,
        .direct_write_bytes = DIRECT_WRITE_BYTES,
        .setid_by_caller = true,
    };
    if (open_device(mount, &config.device) != 0)
        return TOOL_FAILED;
    int code = check_options(mount);
    config.type = mount->type;
    config.options = mount->options->volume;
    if (code == TOOL_DONE && volume_open(&config, volume) != 0)
        code = TOOL_FAILED;
    if (code != TOOL_DONE)
        device_close(config.device);
    return code;
}

/* A layout that can only read has made the volume read-only by itself. */
static bool announce_read_only(struct mount *mount, const struct volume *volume) {
    if (!volume->read_only || mount->options->read_only)
        return true;
    log_warning(&mount->log, "%s: mounted read-only", mount->image);
    return mount_options_add(mount->options, "ro") == 0;
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
    if (mount_options_complete(mount->options, mount->type) != 0 ||
        !announce_read_only(mount, volume))
        return -ENOMEM;
    const struct fuse_mount_config config = {
        .volume = volume,
        .mount_point = mount->directory,
        .fuse_options = mount->options->fuse,
        .source = mount->image,
        .mounted = detach,
        .context = mount,
        .delayed_writes = mount->options->delayed_writes,
        .io_uring = mount->options->io_uring,
    };
    return fuse_mount_serve(&config);
}

/* Returns when the mount is over and the image complete; the exit code. */
static int serve(struct mount *mount) {
    struct volume *volume;
    prepare_allocator();
    clock_init_wall(&mount->clock);
    fuse_block_signals();
    int code = open_volume(mount, &volume);
    if (code != TOOL_DONE)
        return code;
    int error = serve_volume(mount, volume);
    int close_error = volume_close(volume);
    int unsaid = error && error != -ECANCELED ? error : close_error;
    if (unsaid)
        log_error(&mount->log, "%s: %s", mount->image, strerror(-unsaid));
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
        exit(serve(mount)); /* the parent makes the command's exit code of it */
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

/* --- mounting -------------------------------------------------------------------------------- */

/* The image's and the directory's absolute paths, for the serving process leaves its directory.
 * TOOL_DONE, or TOOL_FAILED after a sentence. */
static int find_places(struct mount *mount, const struct mount_request *request, char *image,
                       char *directory) {
    struct stat stat_data;
    int error = mount_point_resolve(request->directory, directory);
    if (error == -ENOTCONN) {
        log_warning(&mount->log, "%s: the server of what was mounted here died; detached",
                    directory);
        error = mount_point_detach(directory);
    }
    if (!error && stat(directory, &stat_data) != 0)
        error = -errno;
    if (error)
        return tool_fail("%s: %s", request->directory, strerror(-error));
    if (!S_ISDIR(stat_data.st_mode))
        return tool_fail("%s: not a directory", request->directory);
    mount->directory = directory;
    /* An image that is not there is device_open_image's to complain about. */
    mount->image = realpath(request->image, image) ? image : request->image;
    return TOOL_DONE;
}

/* mount(8)'s -f: all but the mount itself. */
static int pretend(struct mount *mount) {
    struct volume *volume;
    clock_init_wall(&mount->clock);
    mount->options->read_only = true;
    int code = open_volume(mount, &volume);
    if (code == TOOL_DONE && volume_close(volume) != 0)
        code = TOOL_FAILED;
    return code;
}

int mount_image(const struct mount_request *request) {
    char image[PATH_MAX], directory[PATH_MAX];
    struct mount mount = {
        .type = request->type,
        .options = request->options,
        .foreground = request->foreground,
        .sloppy = request->sloppy,
        .ready = -1,
        .log = log_to_stderr("layoutfs", request->verbose ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING),
    };
    int code = find_places(&mount, request, image, directory);
    if (code != TOOL_DONE)
        return code;
    if (mount.options->log) {
        mount.log_file = fopen(mount.options->log, "ae");
        if (!mount.log_file)
            return tool_fail("log=%s: %s", mount.options->log, strerror(errno));
        setlinebuf(mount.log_file);
    }
    code = request->pretend      ? pretend(&mount)
           : request->foreground ? serve(&mount)
                                 : serve_in_background(&mount);
    if (mount.log_file)
        fclose(mount.log_file);
    return code;
}

/* --- layoutfs mount -------------------------------------------------------------------------- */

static const struct argp_option mount_argp_options[] = {
    {"options", 'o', "OPTION[,...]", 0,
     "mount options: ro, nosuid, noatime and so on; `layoutfs options --mount` lists them", 0},
    {"type", 't', "TYPE", 0, "the layout; default: what the image holds", 0},
    {"foreground", 'f', NULL, 0, "stay in the foreground", 0},
    {"verbose", 'v', NULL, 0, "also tell what is not a problem", 0},
    {0},
};

static error_t parse_mount(int key, char *argument, struct argp_state *state) {
    struct mount_request *request = state->input;
    int error;
    switch (key) {
    case 'o':
        error = mount_options_add(request->options, argument);
        if (error == -EINVAL)
            exit(TOOL_USAGE);
        return -error;
    case 't':
        request->type = argument;
        return 0;
    case 'f':
        request->foreground = true;
        return 0;
    case 'v':
        request->verbose = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            argp_error(state, "too many arguments");
        *(state->arg_num == 0 ? &request->image : &request->directory) = argument;
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

int tool_mount(int argc, char **argv) {
    struct mount_options options = {0};
    struct mount_request request = {.options = &options};
    int code;

    if (argp_parse(&mount_argp, argc, argv, 0, NULL, &request) != 0)
        code = tool_fail("cannot take up the arguments: %s", strerror(ENOMEM));
    else
        code = mount_image(&request);
    mount_options_free(&options);
    return code;
}

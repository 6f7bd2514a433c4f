/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's life cycle. Interface: fs/fuse.h; the parts: fs/fuse_server.h.
 *
 * Every serving thread blocks in read(2) on the session's descriptor and handles what it gets to
 * the end. On a signal the mount point is unmounted *while they go on serving*: unmounting is what
 * makes the kernel write its dirty pages, and somebody has to answer these requests. The threads
 * end when the kernel closes the connection.
 *
 * Invariant: once fuse_mount_serve has passed its `stop` label no thread of it runs and the volume
 * holds no reference for the kernel.
 */
#include "fs/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse_protocol.h"
#include "fs/fuse_ring.h"
#include "fs/fuse_server.h"

/* A handler may wait for the disk, so there are more threads than processors. */
enum { THREADS_A_PROCESSOR = 3, THREADS_MAX = 32 };
/* Little but FORGET reaches those that read when there are rings. */
enum { THREADS_BESIDE_RINGS = 2 };

extern char **environ;

static sigset_t ending_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void fuse_block_signals(void) {
    sigset_t set = ending_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* --- unmounting ------------------------------------------------------------------------------ */

static int run_fusermount(const char *mount_point, bool lazy) {
    char program[] = "fusermount3", unmount[] = "-u", lazily[] = "-uz", end[] = "--";
    char *path = strdup(mount_point);
    if (!path)
        return -ENOMEM;
    char *arguments[] = {program, lazy ? lazily : unmount, end, path, NULL};
    pid_t child;
    int error = -posix_spawnp(&child, program, NULL, NULL, arguments, environ);
    free(path);
    if (error)
        return error;
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

/* Who looks at all mounts, or at what processes have open, holds a mount for an instant: one that
 * is still in use after half a second is somebody's. */
int fuse_unmount(const char *mount_point, bool lazy) {
    const struct timespec pause = {.tv_nsec = 25000000};

    for (int attempts = 20; umount2(mount_point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) != 0;) {
        if (errno != EBUSY || --attempts == 0)
            return errno == EPERM ? run_fusermount(mount_point, lazy) : -errno;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* --- reading and writing the session's descriptor -------------------------------------------- */

/* The one place where a serving thread can be cancelled. */
static ssize_t session_read(int descriptor, void *buffer, size_t size, void *userdata) {
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    ssize_t count = read(descriptor, buffer, size);
    int error = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    errno = error;
    return count;
}

/* Adds to the answer to INIT what libfuse 3.14 has no name for. With FUSE_HANDLE_KILLPRIV_V2 the
 * kernel remembers that a file has no set-id bits or capabilities to clear; without, it asks for
 * security.capability again before every single write(2). FUSE_SETXATTR_EXT: fuse_raw.c. */
static void complete_init(const struct fuse_server *server, struct iovec *vector, int count) {
    if (count < 2 || vector[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE)
        return;
    struct fuse_init_out *answer = vector[1].iov_base;
    answer->flags |= server->kernel_flags & (FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT);
    if (server->rings_offered)
        fuse_ring_accept(answer);
}

static ssize_t session_write(int descriptor, struct iovec *vector, int count, void *userdata) {
    const struct fuse_server *server = userdata;
    if (fuse_ring_answer(vector, count))
        return 0;
    if (!server->initialised)
        complete_init(server, vector, count);
    return writev(descriptor, vector, count);
}

int fuse_server_answer(struct fuse_server *server, uint64_t unique, int error, const void *value,
                       size_t size) {
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + size), .error = error, .unique = unique};
    struct iovec vector[] = {{&header, sizeof header}, {(void *)(uintptr_t)value, size}};
    ssize_t written = session_write(fuse_session_fd(server->session), vector, size ? 2 : 1, server);
    return written < 0 ? -errno : 0;
}

/* The request that this thread handles. libfuse hands its handlers no place for it. */
static _Thread_local const struct fuse_in_header *handled;

const void *fuse_server_argument(void) {
    return handled + 1;
}

void fuse_server_handle(struct fuse_server *server, const struct fuse_buf *request) {
    const struct fuse_in_header *header = request->mem;
    const struct fuse_init_in *init = (const void *)(header + 1);
    if (header->opcode < FUSE_OPCODES)
        atomic_fetch_add_explicit(&server->requests[header->opcode], 1, memory_order_relaxed);
    if (header->opcode == FUSE_INIT && !server->initialised) {
        server->kernel_flags = init->flags;
        server->rings_offered = fuse_ring_offered(init);
    }
    handled = header;
    credentials_set((struct credentials){header->uid, header->gid});
    if (!fuse_raw_handle(server, header))
        fuse_session_process_buf(server->session, request);
    if (header->opcode == FUSE_INIT)
        server->initialised = true;
}

/* Receives one request and handles it. 1, 0 when the connection is closed, negative errno. */
static int serve_one(struct fuse_server *server, struct fuse_buf *buffer) {
    int length = fuse_session_receive_buf(server->session, buffer);
    if (length == -EINTR)
        return 1;
    if (length <= 0)
        return length;
    fuse_server_handle(server, buffer);
    return 1;
}

/* --- threads --------------------------------------------------------------------------------- */

static void release_memory(void *context) {
    free(((struct fuse_buf *)context)->mem);
}

static void tell_end(void *context) {
    sem_post(&((struct fuse_server *)context)->ended);
}

static void *serve(void *context) {
    struct fuse_buf buffer = {0};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_push(tell_end, context);
    pthread_cleanup_push(release_memory, &buffer);
    while (serve_one(context, &buffer) > 0)
        ;
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return NULL;
}

/* The mount is in use and cannot simply go: what programs wrote so far is saved, what they do from
 * now on fails. */
static void abandon(struct fuse_server *server) {
    log_warning(server->log, "%s: still in use; open files are cut off", server->mount_point);
    int directory = open(server->mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        if (syncfs(directory) != 0)
            log_error(server->log, "%s: cannot save all data: %s", server->mount_point,
                      strerror(errno));
        close(directory);
    }
    fuse_unmount(server->mount_point, true);
    for (unsigned i = 0; i < server->thread_count; i++)
        pthread_cancel(server->threads[i]);
}

/* Read ahead at a time, so that more than one thread copies. */
#define READ_AHEAD_REQUESTS 4u

/* The kernel reads 128 KiB ahead unless told otherwise, and only root may tell: that is a nicety,
 * so failure means nothing. Asks the mount for its device number, so it must be served already. */
static void raise_read_ahead(const struct fuse_server *server) {
    char path[64];
    struct stat stat_data;
    if (stat(server->mount_point, &stat_data) != 0)
        return;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major(stat_data.st_dev),
             minor(stat_data.st_dev));
    FILE *file = fopen(path, "we");
    if (!file)
        return;
    fprintf(file, "%u", READ_AHEAD_REQUESTS * FUSE_TRANSFER_MAX / 1024);
    fclose(file);
}

static void *await_signal(void *context) {
    struct fuse_server *server = context;
    sigset_t set = ending_signals();
    int signal;
    raise_read_ahead(server);
    sigwait(&set, &signal);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (fuse_unmount(server->mount_point, false) != 0)
        abandon(server);
    return NULL;
}

static unsigned thread_count(unsigned wanted) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count =
        wanted ? wanted : (unsigned)(processors > 0 ? processors : 1) * THREADS_A_PROCESSOR;
    return count < THREADS_MAX ? count : THREADS_MAX;
}

/* Returns when no thread serves any more. They are joined after the signal thread, which may still
 * cancel them: a joined thread must not be cancelled. */
static void await_end(struct fuse_server *server, const pthread_t *signals) {
    for (unsigned i = 0; i < server->thread_count; i++)
        while (sem_wait(&server->ended) != 0)
            ;
    if (signals) {
        pthread_cancel(*signals);
        pthread_join(*signals, NULL);
    }
    for (unsigned i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
}

/* Serves until the connection is closed. */
static int serve_all(struct fuse_server *server, unsigned wanted) {
    struct fuse_rings *rings = NULL;
    pthread_t signals;
    if (server->rings_offered && fuse_rings_start(server, THREADS_A_PROCESSOR, &rings) == 0) {
        log_info(server->log, "%s: served by io_uring", server->mount_point);
        wanted = THREADS_BESIDE_RINGS;
    }
    server->threads = calloc(thread_count(wanted), sizeof *server->threads);
    int error = server->threads ? 0 : -ENOMEM;
    while (!error && server->thread_count < thread_count(wanted)) {
        error = -pthread_create(&server->threads[server->thread_count], NULL, serve, server);
        server->thread_count += !error;
    }
    /* Fewer threads than wanted will do; none will not. */
    if (server->thread_count > 0) {
        error = -pthread_create(&signals, NULL, await_signal, server);
        if (error)
            abandon(server);
        await_end(server, error ? NULL : &signals);
    }
    fuse_rings_stop(rings);
    free(server->threads);
    return error;
}

/* --- the session ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t opcode;
} opcode_names[] = {
    {"lookup", FUSE_LOOKUP},
    {"forget", FUSE_FORGET},
    {"batch_forget", FUSE_BATCH_FORGET},
    {"getattr", FUSE_GETATTR},
    {"setattr", FUSE_SETATTR},
    {"readlink", FUSE_READLINK},
    {"symlink", FUSE_SYMLINK},
    {"mknod", FUSE_MKNOD},
    {"mkdir", FUSE_MKDIR},
    {"create", FUSE_CREATE},
    {"unlink", FUSE_UNLINK},
    {"rmdir", FUSE_RMDIR},
    {"rename", FUSE_RENAME},
    {"rename2", FUSE_RENAME2},
    {"link", FUSE_LINK},
    {"open", FUSE_OPEN},
    {"opendir", FUSE_OPENDIR},
    {"read", FUSE_READ},
    {"write", FUSE_WRITE},
    {"flush", FUSE_FLUSH},
    {"release", FUSE_RELEASE},
    {"releasedir", FUSE_RELEASEDIR},
    {"fsync", FUSE_FSYNC},
    {"fsyncdir", FUSE_FSYNCDIR},
    {"readdir", FUSE_READDIR},
    {"readdirplus", FUSE_READDIRPLUS},
    {"statfs", FUSE_STATFS},
    {"getxattr", FUSE_GETXATTR},
    {"setxattr", FUSE_SETXATTR},
    {"listxattr", FUSE_LISTXATTR},
    {"removexattr", FUSE_REMOVEXATTR},
    {"access", FUSE_ACCESS},
    {"ioctl", FUSE_IOCTL},
    {"fallocate", FUSE_FALLOCATE},
    {"lseek", FUSE_LSEEK},
    {"copy_file_range", FUSE_COPY_FILE_RANGE},
    {"copy_file_range_64", PROTOCOL_COPY_FILE_RANGE_64},
    {"tmpfile", FUSE_TMPFILE},
    {"statx", PROTOCOL_STATX},
    {"interrupt", FUSE_INTERRUPT},
};

static void report_requests(struct fuse_server *server) {
    char text[1024];
    size_t used = 0;
    for (size_t i = 0; i < sizeof opcode_names / sizeof *opcode_names; i++) {
        uint64_t count = server->requests[opcode_names[i].opcode];
        if (count && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s %llu",
                                     opcode_names[i].name, (unsigned long long)count);
    }
    if (used)
        log_info(server->log, "%s: requests served:%s", server->mount_point, text);
}

/* What group commit has saved: every fsync, sync and period asks, and many share one. */
static void report_commits(struct fuse_server *server) {
    struct commit_counts counts;
    volume_commit_counts(server->volume, &counts);
    if (counts.made)
        log_info(server->log, "%s: commits: %" PRIu64 " written, %" PRIu64 " asked for",
                 server->mount_point, counts.made, counts.asked);
}

static int build_options(const struct fuse_mount_config *config, char **options) {
    char max_read[32];
    char *source = NULL;
    *options = NULL;
    snprintf(max_read, sizeof max_read, "max_read=%u", FUSE_TRANSFER_MAX);
    bool done = asprintf(&source, "fsname=%s", config->source) >= 0 &&
                fuse_opt_add_opt(options, max_read) == 0 &&
                fuse_opt_add_opt_escaped(options, source) == 0 &&
                (!config->fuse_options || !*config->fuse_options ||
                 fuse_opt_add_opt(options, config->fuse_options) == 0);
    free(source);
    return done ? 0 : -ENOMEM;
}

static int open_session(struct fuse_server *server, const struct fuse_mount_config *config) {
    static const struct fuse_custom_io io = {.read = session_read, .writev = session_write};
    struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
    char *options;
    int error = build_options(config, &options);
    if (!error &&
        (fuse_opt_add_arg(&arguments, "layoutfs") != 0 || fuse_opt_add_arg(&arguments, "-o") != 0 ||
         fuse_opt_add_arg(&arguments, options) != 0))
        error = -ENOMEM;
    if (!error) {
        server->session = fuse_session_new(&arguments, &fuse_server_operations,
                                           sizeof fuse_server_operations, server);
        if (!server->session) {
            log_error(server->log, "%s: the mount options \"%s\" are not valid",
                      config->mount_point, options);
            error = -EINVAL;
        }
    }
    free(options);
    fuse_opt_free_args(&arguments);
    if (error)
        return error;
    if (fuse_session_mount(server->session, config->mount_point) != 0) {
        log_error(server->log, "%s: cannot mount %s here", config->mount_point, config->source);
        return -ECANCELED; /* libfuse has said why, and gives no reason as a number */
    }
    return fuse_session_custom_io(server->session, &io, fuse_session_fd(server->session));
}

static int answer_init(struct fuse_server *server) {
    struct fuse_buf buffer = {0};
    int result = 1;
    while (result > 0 && !server->initialised)
        result = serve_one(server, &buffer);
    free(buffer.mem);
    if (result > 0)
        return 0;
    return result < 0 ? result : -ENOTCONN;
}

/* Mounts and answers INIT. The kernel decides what it offers when it mounts; its setting is left as
 * it was found. */
static int handshake(struct fuse_server *server, const struct fuse_mount_config *config) {
    bool offered = false;
    int no_offer = config->io_uring ? fuse_ring_offer(true, &offered) : 0;
    int error = open_session(server, config);
    if (!error)
        error = answer_init(server);
    if (config->io_uring && !no_offer && !offered)
        no_offer = fuse_ring_offer(false, &offered);
    if (no_offer)
        log_warning(server->log, "%s: io_uring is not used: %s", config->mount_point,
                    strerror(-no_offer));
    return error;
}

static void close_session(struct fuse_server *server) {
    fuse_session_unmount(server->session); /* nothing, after an orderly end */
    fuse_session_destroy(server->session);
    for (union fuse_reply *buffer = server->buffers, *next; buffer; buffer = next) {
        next = buffer->next;
        free(buffer);
    }
}

int fuse_mount_serve(const struct fuse_mount_config *config) {
    struct fuse_server server = {
        .volume = config->volume,
        .log = config->volume->log,
        .mount_point = config->mount_point,
        .delayed_writes = config->delayed_writes,
        .buffers_lock = PTHREAD_MUTEX_INITIALIZER,
        .listing_lock = PTHREAD_MUTEX_INITIALIZER,
    };
    sem_init(&server.ended, 0, 0);
    fuse_block_signals();
    int error = handshake(&server, config);
    if (error)
        goto stop;
    if (config->mounted)
        config->mounted(config->context);
    error = serve_all(&server, config->threads);
    report_requests(&server);
    report_commits(&server);
stop:
    if (server.session)
        close_session(&server);
    sem_destroy(&server.ended);
    volume_put_all(config->volume);
    int sync_error = volume_sync(config->volume);
    return error ? error : sync_error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over bench/driver_posix.c. Runs a scenario's rows through real mounts, in wall
 * time, and other programs' mounts of the same format in turns with ours. See run.h.
 *
 * Each target gets a fresh image in each round, all in one directory, in memory when it has the
 * room. The serving process is a child that stays in the foreground, so that its end says that the
 * image is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/format.h"
#include "bench/peer.h"
#include "bench/process.h"
#include "bench/progress.h"
#include "bench/run.h"

#define PATH_BYTES 512
#define ROOM_SPARE (UINT64_C(2) << 30)

struct target {
    const struct scenario_row *row;
    const struct peer *peer; /* that serves it instead of us, or NULL */
    bool in_memory;
    const struct mounted_config *config;
    struct log log; /* into its result */
    char image[PATH_BYTES + 16], mount_point[PATH_BYTES + 16];
    pid_t server;
};

const char *mounted_obstacle(void) {
    if (access("/dev/fuse", R_OK | W_OK) != 0)
        return "/dev/fuse is missing or not for this user";
    if (!process_exists("fusermount3"))
        return "fusermount3 is not installed (package fuse3)";
    return NULL;
}

/* --- mounting a target ------------------------------------------------------------------------ */

static int mount_ours(struct target *target) {
    const char *command[] = {target->config->program,
                             "mount",
                             "-f",
                             "-t",
                             target->row->type,
                             target->in_memory ? "none" : target->image,
                             target->mount_point,
                             target->row->mount[0] ? "-o" : NULL,
                             target->row->mount,
                             NULL};
    int error = process_start(command, &target->server);

    return error ? error : process_await_mount(target->server, target->mount_point);
}

static int target_mount(struct target *target) {
    int error = target->peer
                    ? peer_mount(target->peer, target->image, target->mount_point, &target->server)
                    : mount_ours(target);

    if (error)
        log_error(&target->log, "%s: could not be mounted: %s",
                  target->peer ? target->peer->name : target->row->label, strerror(-error));
    return error;
}

static int unmount_ours(struct target *target) {
    const char *command[] = {"fusermount3", "-u", target->mount_point, NULL};
    int error = process_run(command);

    return error ? error : process_finish(target->server);
}

static int target_unmount(struct target *target) {
    int error = target->peer ? peer_unmount(target->peer, target->mount_point, target->server)
                             : unmount_ours(target);

    if (error)
        log_error(&target->log, "%s: could not be unmounted", target->mount_point);
    return error;
}

static int target_remount(void *context) {
    struct target *target = context;
    int error = target_unmount(target);

    return error ? error : target_mount(target);
}

/* --- making its image ------------------------------------------------------------------------- */

/* A plain user must own the root to create things in it. */
static int give_root(const struct target *target, struct device *device, struct clock *clock) {
    struct volume_config config = {
        .type = target->row->type, .device = device, .clock = clock, .log = &target->log};
    struct attributes attributes = {.uid = geteuid(), .gid = getegid()};
    struct volume *volume;
    struct inode *root;
    int error = volume_open(&config, &volume);

    if (error) {
        device_close(device);
        return error;
    }
    error = volume_root(volume, &root);
    if (!error) {
        error = volume_setattr(root, SETATTR_UID | SETATTR_GID, &attributes);
        volume_put(root, 1);
    }
    int closed = volume_close(volume);
    return error ? error : closed;
}

static int make_image(const struct target *target) {
    struct device *device;
    struct clock clock;

    clock_init_wall(&clock);
    int error =
        device_open_image(target->image, DEVICE_CREATE, target->config->run->scenario->volume_size,
                          &clock, &target->log, &device);
    if (error)
        return error;
    bool ours = !target->peer || target->peer->format;
    if (ours)
        error = format_row(target->row, device, &target->log);
    if (!error && ours && geteuid() != 0)
        return give_root(target, device, &clock);
    device_close(device);
    return error || ours ? error : peer_make_image(target->peer, target->image);
}

/* --- one round -------------------------------------------------------------------------------- */

static int keep_steps(struct wall_result *result, const struct workload_run *run) {
    if (result->rounds > 0 && result->step_count != run->count)
        return -EIO;
    result->step_count = run->count;
    result->warm |= run->warm;
    for (unsigned i = 0; i < run->count; i++) {
        struct wall_step *step = &result->steps[i];
        step->name = run->steps[i].name;
        step->timed = run->steps[i].timed;
        step->files = run->steps[i].files;
        step->bytes = run->steps[i].bytes;
        step->ns[result->rounds] = run->steps[i].ns;
        step->latency[result->rounds] = run->steps[i].latency;
    }
    result->rounds++;
    return 0;
}

static int run_on_mount(struct target *target, struct progress_row *progress,
                        struct wall_result *result) {
    const struct run_config *config = target->config->run;
    struct workload_run *run = calloc(1, sizeof(*run));
    struct driver_posix driver;

    if (!run)
        return -ENOMEM;
    /* What lives in memory only cannot be mounted again; there the kernel's caches must do. */
    driver_posix_init(&driver, target->mount_point, target->in_memory ? NULL : target_remount,
                      target);
    *run = (struct workload_run){.driver = &driver.driver,
                                 .source = config->source,
                                 .parameters = &config->scenario->parameters,
                                 .log = &target->log,
                                 .progress = progress_report,
                                 .context = progress};
    int error = config->scenario->workload->run(run);
    if (!error)
        error = keep_steps(result, run);
    free(run);
    return error;
}

static int run_round(struct target *target, struct progress_row *progress,
                     struct wall_result *result) {
    int error = target->in_memory ? 0 : make_image(target);

    if (!error)
        error = target_mount(target);
    if (!error) {
        error = run_on_mount(target, progress, result);
        int unmounted = target_unmount(target);
        if (!error)
            error = unmounted;
    }
    if (!target->in_memory)
        unlink(target->image);
    return error;
}

/* --- interruption ----------------------------------------------------------------------------- */

/* An interrupt reaches the serving process too, which unmounts; the workload then fails, and all
 * that is left to do here is not to start another. */
static volatile sig_atomic_t interrupted;

static void note_signal(int number) {
    interrupted = 1;
}

struct handlers {
    struct sigaction interrupt, terminate;
};

static void handlers_install(struct handlers *before) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};

    interrupted = 0;
    sigaction(SIGINT, &action, &before->interrupt);
    sigaction(SIGTERM, &action, &before->terminate);
}

static void handlers_restore(const struct handlers *before) {
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void keep_message(void *context, enum log_level level, const char *text) {
    struct wall_result *result = context;

    if (level == LOG_LEVEL_ERROR && result->message[0] == '\0')
        snprintf(result->message, sizeof(result->message), "%s", text);
}

static uint64_t room_needed(const struct run_config *config) {
    uint64_t bytes = (config->source ? config->source->bytes * 2 : 0) + ROOM_SPARE;
    uint64_t volume = config->scenario->volume_size;

    return bytes < volume ? bytes : volume;
}

static int make_directory(const struct run_config *config, char directory[PATH_BYTES]) {
    const char *temporary = getenv("TMPDIR");
    struct statvfs room;
    int error;

    if (statvfs("/dev/shm", &room) == 0 &&
        room.f_bavail * (uint64_t)room.f_frsize > room_needed(config))
        temporary = "/dev/shm";
    snprintf(directory, PATH_BYTES, "%.400s/layoutfs-bench.XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(directory)) {
        error = -errno;
        log_error(config->log, "%s: %s", directory, strerror(-error));
        return error;
    }
    return 0;
}

static struct target make_target(const struct mounted_config *config,
                                 const struct scenario_row *row, struct wall_result *result) {
    return (struct target){
        .row = row,
        .config = config,
        .log = {.emit = keep_message, .context = result, .threshold = LOG_LEVEL_WARNING}};
}

static unsigned list_rows(const struct mounted_config *config, struct target *targets,
                          struct wall_result *results, unsigned capacity) {
    const struct scenario *scenario = config->run->scenario;
    unsigned count = 0;

    for (; count < scenario->row_count && count < capacity; count++) {
        const struct scenario_row *row = &scenario->rows[count];
        const struct layout *layout;
        const struct layout_type *type;
        struct wall_result *result = &results[count];

        memset(result, 0, sizeof(*result));
        snprintf(result->label, sizeof(result->label), "%s", row->label);
        targets[count] = make_target(config, row, result);
        if (!scenario_emulates(config->run->scenario, row) ||
            layout_find(row->type, &layout, &type))
            result->status = ROW_NOT_EMULATED;
        else
            result->floor = targets[count].in_memory = layout->flags & LAYOUT_VOLATILE;
    }
    return count;
}

/* The row whose image the peer is given: the first of its format that we can make; the first of
 * all when it makes an image of its own. */
static const struct scenario_row *row_for_peer(const struct peer *peer,
                                               const struct scenario *scenario,
                                               const struct wall_result *results) {
    for (unsigned i = 0; i < scenario->row_count; i++)
        if (!peer->format ||
            (results[i].status == ROW_DONE &&
             strncmp(scenario->rows[i].type, peer->format, strlen(peer->format)) == 0))
            return &scenario->rows[i];
    return NULL;
}

static unsigned list_peers(const struct mounted_config *config, struct target *targets,
                           struct wall_result *results, unsigned count, unsigned capacity) {
    for (const struct peer *peer = peers; peer->name && count < capacity; peer++) {
        const struct scenario_row *row = row_for_peer(peer, config->run->scenario, results);

        if (!row || !peer_usable(peer))
            continue;
        memset(&results[count], 0, sizeof(results[count]));
        snprintf(results[count].label, sizeof(results[count].label), "%s", peer->name);
        snprintf(results[count].peer, sizeof(results[count].peer), "%s", peer->name);
        targets[count] = make_target(config, row, &results[count]);
        targets[count++].peer = peer;
    }
    return count;
}

static void run_target(struct target *target, const char *directory, struct progress *progress,
                       struct wall_result *result) {
    snprintf(target->image, sizeof(target->image), "%s/image", directory);
    snprintf(target->mount_point, sizeof(target->mount_point), "%s/mnt", directory);
    progress->rows[0].label = result->label;
    int error = run_round(target, &progress->rows[0], result);
    if (error) {
        result->status = ROW_FAILED;
        if (result->message[0] == '\0')
            snprintf(result->message, sizeof(result->message), "%s", strerror(-error));
    }
}

static int by_value(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static int64_t median(int64_t *values, unsigned count) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void sort_times(struct wall_result *result) {
    for (unsigned i = 0; i < result->step_count; i++)
        qsort(result->steps[i].ns, result->rounds, sizeof(int64_t), by_value);
}

int64_t wall_median(const struct wall_step *step, unsigned rounds) {
    int64_t values[WALL_ROUNDS_MAX];

    memcpy(values, step->ns, rounds * sizeof(*values));
    return median(values, rounds);
}

struct latency wall_latency(const struct wall_step *step, unsigned rounds) {
    int64_t half[WALL_ROUNDS_MAX], most[WALL_ROUNDS_MAX];
    struct latency latency = {0};

    for (unsigned i = 0; i < rounds; i++) {
        half[i] = step->latency[i].p50_ns;
        most[i] = step->latency[i].p99_ns;
        latency.operations = step->latency[i].operations;
        if (step->latency[i].max_ns > latency.max_ns)
            latency.max_ns = step->latency[i].max_ns;
    }
    latency.p50_ns = median(half, rounds);
    latency.p99_ns = median(most, rounds);
    return latency;
}

int run_mounted(const struct mounted_config *config, struct wall_result *results, unsigned capacity,
                unsigned *count) {
    struct target *targets = calloc(capacity, sizeof(*targets));
    char directory[PATH_BYTES], mount_point[PATH_BYTES + 16];
    struct handlers handlers;
    struct progress progress;
    int error = targets ? make_directory(config->run, directory) : -ENOMEM;

    if (error) {
        free(targets);
        return error;
    }
    snprintf(mount_point, sizeof(mount_point), "%s/mnt", directory);
    if (mkdir(mount_point, 0700) < 0)
        error = -errno;
    *count = list_rows(config, targets, results, capacity);
    if (config->peers)
        *count = list_peers(config, targets, results, *count, capacity);
    progress_start(&progress, config->run->scenario, config->run->progress);
    progress.count = 1;
    handlers_install(&handlers);
    for (unsigned round = 0; round < config->run->scenario->repeat && !error; round++)
        for (unsigned i = 0; i < *count && !interrupted; i++)
            if (results[i].status == ROW_DONE)
                run_target(&targets[i], directory, &progress, &results[i]);
    handlers_restore(&handlers);
    progress_stop(&progress);
    if (interrupted)
        error = -EINTR;
    for (unsigned i = 0; i < *count; i++) {
        sort_times(&results[i]);
        if (results[i].status == ROW_FAILED && !error)
            error = -EIO;
    }
    rmdir(mount_point);
    rmdir(directory);
    free(targets);
    return error;
}

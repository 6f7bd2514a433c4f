/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See process.h.
 */
#include "bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AWAIT_PAUSE_NS 2000000L /* 2 ms */
#define AWAIT_ROUNDS   15000    /* 30 s */

bool process_exists(const char *name) {
    const char *path = getenv("PATH");
    char candidate[4096];

    while (path && *path) {
        size_t length = strcspn(path, ":");
        snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, path, name);
        if (access(candidate, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

int process_start(const char *const *argv, pid_t *process) {
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return -error;
    error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error) /* posix_spawn takes the strings for reading only; its prototype cannot say so */
        error = posix_spawnp(process, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

int process_finish(pid_t process) {
    int status;

    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

int process_run(const char *const *argv) {
    pid_t process;
    int error = process_start(argv, &process);

    return error ? error : process_finish(process);
}

/* A mount point is on another device than the directory that holds it. */
static bool is_mount_point(const char *directory) {
    struct stat here, above;
    char parent[4096];

    snprintf(parent, sizeof(parent), "%s/..", directory);
    return stat(directory, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

int process_await_mount(pid_t process, const char *directory) {
    const struct timespec pause = {.tv_nsec = AWAIT_PAUSE_NS};

    for (int i = 0; i < AWAIT_ROUNDS; i++) {
        if (is_mount_point(directory))
            return 0;
        if (waitpid(process, NULL, WNOHANG) == process)
            return -EIO;
        nanosleep(&pause, NULL);
    }
    kill(process, SIGTERM);
    process_finish(process);
    return -ETIMEDOUT;
}

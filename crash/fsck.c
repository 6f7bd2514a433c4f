/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/fsck.h.
 */
#include "crash/fsck.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16
#define COMMAND_MAX   256
#define SAVE_PIECE    65536u

extern char **environ;

/* Splits the command at spaces into argv, which then has room for one more. */
static int split(const char *command, char *text, char **argv) {
    char *place;
    int count = 0;

    snprintf(text, COMMAND_MAX, "%s", command);
    for (char *word = strtok_r(text, " ", &place); word && count < ARGUMENTS_MAX - 2;
         word = strtok_r(NULL, " ", &place))
        argv[count++] = word;
    return count;
}

bool fsck_exists(const char *command) {
    char text[COMMAND_MAX], *argv[ARGUMENTS_MAX], path[512], *place;
    const char *directories = getenv("PATH");

    if (!command || split(command, text, argv) == 0)
        return false;
    if (strchr(argv[0], '/'))
        return access(argv[0], X_OK) == 0;
    char *copy = strdup(directories ? directories : "/usr/bin:/bin");
    bool found = false;
    for (char *directory = copy ? strtok_r(copy, ":", &place) : NULL; directory && !found;
         directory = strtok_r(NULL, ":", &place)) {
        snprintf(path, sizeof(path), "%s/%s", directory, argv[0]);
        found = access(path, X_OK) == 0;
    }
    free(copy);
    return found;
}

int fsck_run(const char *command, const char *path) {
    char text[COMMAND_MAX], *argv[ARGUMENTS_MAX], *image = strdup(path);
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status, error = -ENOMEM;

    if (!image)
        return -ENOMEM;
    int count = split(command, text, argv);
    argv[count] = image;
    argv[count + 1] = NULL;
    if (count > 0 && posix_spawn_file_actions_init(&actions) == 0) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        error = -posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(image);
    if (error)
        return error;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool all_zero(const unsigned char *bytes, size_t length) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static int save_bytes(struct device *device, int file, unsigned char *bytes) {
    if (ftruncate(file, (off_t)device->size))
        return -errno;
    for (uint64_t offset = 0; offset < device->size; offset += SAVE_PIECE) {
        uint64_t rest = device->size - offset;
        uint32_t piece = rest < SAVE_PIECE ? (uint32_t)rest : SAVE_PIECE;
        int error = device_read(device, offset, bytes, piece, PURPOSE_OTHER);

        if (error)
            return error;
        if (!all_zero(bytes, piece) && pwrite(file, bytes, piece, (off_t)offset) != (ssize_t)piece)
            return errno ? -errno : -EIO;
    }
    return 0;
}

int fsck_save(struct device *device, const char *path) {
    unsigned char *bytes = malloc(SAVE_PIECE);
    int file = bytes ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    int error = !bytes ? -ENOMEM : file < 0 ? -errno : save_bytes(device, file, bytes);

    if (file >= 0 && close(file) && !error)
        error = -errno;
    free(bytes);
    return error;
}

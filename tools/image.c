/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. See tools/image.h.
 */
#include "tools/image.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

/* --- complaints ------------------------------------------------------------------------------- */

int tool_fail(const char *format, ...) {
    va_list arguments;

    fflush(stdout);
    fputs("layoutfs: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return TOOL_FAILED;
}

int tool_fail_path(const char *image, const char *path, int error) {
    const char *reason = error == -EUCLEAN ? "the filesystem is damaged here" : strerror(-error);

    return tool_fail("%s:%s%s: %s", image, path[0] == '/' ? "" : "/", path, reason);
}

/* --- images ----------------------------------------------------------------------------------- */

int tool_image_open_device(struct tool_image *image, const char *path, bool read_only,
                           struct device **device) {
    *image = (struct tool_image){.path = path};
    image->log = log_to_stderr("layoutfs", LOG_LEVEL_WARNING);
    clock_init_wall(&image->clock);
    return device_open_image(path, read_only ? DEVICE_READ_ONLY : 0, 0, &image->clock, &image->log,
                             device);
}

int tool_image_open(struct tool_image *image, const char *path, bool read_only) {
    return tool_image_open_with(image, path, read_only, NULL);
}

int tool_image_open_with(struct tool_image *image, const char *path, bool read_only,
                         const char *options) {
    struct device *device;
    int error = tool_image_open_device(image, path, read_only, &device);

    if (error)
        return error;
    struct volume_config config = {
        .device = device,
        .clock = &image->clock,
        .log = &image->log,
        .options = options,
        .read_only = read_only,
    };
    error = volume_open(&config, &image->volume);
    if (error) {
        device_close(device);
        return error;
    }
    if (!read_only)
        tool_catch_interruption();
    return 0;
}

int tool_image_close(struct tool_image *image) {
    int error = volume_close(image->volume);

    image->volume = NULL;
    if (error)
        tool_fail("%s: not everything could be written: %s", image->path, strerror(-error));
    return error;
}

/* The one thing that cannot be handed down: a signal handler has no context. */
static volatile sig_atomic_t interrupted;

static void note_interruption(int signal) {
    interrupted = signal;
}

void tool_catch_interruption(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_interruption, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &action, NULL);
}

bool tool_interrupted(void) {
    return interrupted != 0;
}

/* --- "IMAGE PATH..." on the command line ------------------------------------------------------ */

error_t image_arguments_parse(struct image_arguments *arguments, int minimum, int maximum, int key,
                              struct argp_state *state) {
    switch (key) {
    case ARGP_KEY_ARGS: {
        int count = state->argc - state->next - 1;

        if (count < minimum)
            argp_error(state, "a path in the image is missing");
        if (maximum >= 0 && count > maximum)
            argp_error(state, "too many arguments");
        arguments->image = state->argv[state->next];
        arguments->paths = state->argv + state->next + 1;
        arguments->count = count;
        return 0;
    }
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "the image is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- directories ------------------------------------------------------------------------------ */

int name_list_add(struct name_list *list, const char *name, size_t length) {
    if (length == 0 || memchr(name, '/', length) || memchr(name, '\0', length))
        return -EUCLEAN;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        char **names = reallocarray(list->names, room, sizeof(*names));

        if (!names)
            return -ENOMEM;
        list->names = names;
        list->room = room;
    }
    char *copy = strndup(name, length);
    if (!copy)
        return -ENOMEM;
    list->names[list->count++] = copy;
    return 0;
}

static bool is_dot(const char *name, size_t length) {
    return (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.');
}

struct directory_visit {
    struct name_list *list;
    int error;
};

static bool directory_visit_entry(void *context, const struct dir_entry *entry) {
    struct directory_visit *visit = context;

    if (!is_dot(entry->name, entry->name_length))
        visit->error = name_list_add(visit->list, entry->name, entry->name_length);
    return visit->error == 0;
}

static int name_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void name_list_sort(struct name_list *list) {
    if (list->count > 1)
        qsort(list->names, list->count, sizeof(*list->names), name_compare);
}

int name_list_directory(struct name_list *list, struct inode *directory) {
    struct directory_visit visit = {.list = list};
    int error = volume_readdir(directory, 0, directory_visit_entry, &visit);

    name_list_sort(list);
    return error < 0 ? error : visit.error;
}

void name_list_free(struct name_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct name_list){0};
}

bool ancestor_includes(const struct ancestor *ancestor, uint64_t ino) {
    for (; ancestor; ancestor = ancestor->up)
        if (ancestor->ino == ino)
            return true;
    return false;
}

char *path_join(const char *directory, const char *name) {
    size_t length = strlen(directory);
    bool slash = length == 0 || directory[length - 1] != '/';
    char *path;

    return asprintf(&path, "%s%s%s", directory, slash ? "/" : "", name) < 0 ? NULL : path;
}

const char *path_last(const char *path, size_t *length) {
    const char *end = path + strlen(path);

    while (end > path && end[-1] == '/')
        end--;
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    *length = (size_t)(end - start);
    return start;
}

int image_parent(struct volume *volume, const char *path, struct inode **parent, const char **name,
                 uint32_t *length) {
    size_t name_length;

    *name = path_last(path, &name_length);
    if (name_length == 0 || is_dot(*name, name_length))
        return -EINVAL;
    if (name_length > NAME_LENGTH_MAX)
        return -ENAMETOOLONG;
    *length = (uint32_t)name_length;
    char *directory = strndup(path, (size_t)(*name - path));
    if (!directory)
        return -ENOMEM;
    int error = volume_resolve(volume, *directory ? directory : "/", true, parent);
    free(directory);
    return error;
}

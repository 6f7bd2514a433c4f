/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs snapshot`: the checkpoints of an image, or of a mount (fs/fuse_ioctl.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fuse_ioctl.h"
#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

enum action {
    ACTION_LIST,
    ACTION_CREATE,
    ACTION_KEEP,
    ACTION_RELEASE,
    ACTION_DELETE,
    ACTION_COUNT
};

static const struct {
    const char *name;
    unsigned long request; /* over a mount */
    bool numbered;
} actions[ACTION_COUNT] = {
    [ACTION_LIST] = {"list", LAYOUTFS_IOC_CHECKPOINT_LIST, false},
    [ACTION_CREATE] = {"create", LAYOUTFS_IOC_CHECKPOINT_CREATE, false},
    [ACTION_KEEP] = {"keep", LAYOUTFS_IOC_CHECKPOINT_KEEP, true},
    [ACTION_RELEASE] = {"release", LAYOUTFS_IOC_CHECKPOINT_RELEASE, true},
    [ACTION_DELETE] = {"delete", LAYOUTFS_IOC_CHECKPOINT_DELETE, true},
};

struct snapshot {
    enum action action;
    const char *path;
    char **numbers;
    int number_count;
    bool json, all;
    /* where the checkpoints are: one of both */
    int mount; /* a directory of it, or -1 */
    struct tool_image image;
    json_t *list; /* with json */
};

/* --- an image or a mount ---------------------------------------------------------------------- */

static int snapshot_open(struct snapshot *snapshot) {
    struct stat status;

    snapshot->mount = -1;
    if (stat(snapshot->path, &status) == 0 && S_ISDIR(status.st_mode)) {
        snapshot->mount = open(snapshot->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (snapshot->mount >= 0)
            return 0;
        int error = -errno;
        tool_fail("%s: %s", snapshot->path, strerror(-error));
        return error;
    }
    return tool_image_open(&snapshot->image, snapshot->path, snapshot->action == ACTION_LIST);
}

static int snapshot_close(struct snapshot *snapshot) {
    if (snapshot->mount < 0)
        return tool_image_close(&snapshot->image);
    close(snapshot->mount);
    return 0;
}

static int ask_mount(const struct snapshot *snapshot, void *argument) {
    return ioctl(snapshot->mount, actions[snapshot->action].request, argument) < 0 ? -errno : 0;
}

static int snapshot_page(struct snapshot *snapshot, struct checkpoint_page *page) {
    if (snapshot->mount >= 0)
        return ask_mount(snapshot, page);
    int64_t count =
        volume_checkpoint_list(snapshot->image.volume, page->from, page->list, CHECKPOINT_PAGE);
    page->count = count < 0 ? 0 : (uint64_t)count;
    return count < 0 ? (int)count : 0;
}

static int snapshot_change(struct snapshot *snapshot, uint64_t *number) {
    if (snapshot->mount >= 0)
        return ask_mount(snapshot, number);
    switch (snapshot->action) {
    case ACTION_CREATE:
        return volume_checkpoint_create(snapshot->image.volume, number);
    case ACTION_DELETE:
        return volume_checkpoint_delete(snapshot->image.volume, *number);
    default:
        return volume_checkpoint_keep(snapshot->image.volume, *number,
                                      snapshot->action == ACTION_KEEP);
    }
}

/* --- the actions ------------------------------------------------------------------------------ */

static const char *reason(int error) {
    switch (error) {
    case -ENOTTY:
        return "not a mount of layoutfs";
    case -EOPNOTSUPP:
        return "its format keeps no checkpoints";
    case -ENOENT:
        return "there is no such checkpoint";
    case -EBUSY:
        return "it is in use: kept as a snapshot, or the newest";
    default:
        return strerror(-error);
    }
}

static void list_row(struct snapshot *snapshot, const struct checkpoint *checkpoint) {
    bool kept = checkpoint->flags & CHECKPOINT_KEPT, minor = checkpoint->flags & CHECKPOINT_MINOR;
    char time[TIME_TEXT_SIZE];

    if (minor && !kept && !snapshot->all)
        return;
    time_text((struct timestamp){.seconds = checkpoint->time}, time);
    time[strcspn(time, ".")] = '\0';
    if (snapshot->json)
        json_array_append_new(
            snapshot->list,
            json_pack("{s:I, s:s, s:b, s:b, s:I, s:I, s:I}", "number",
                      (json_int_t)checkpoint->number, "time", time, "snapshot", kept, "minor",
                      minor, "inodes", (json_int_t)checkpoint->inodes, "blocks",
                      (json_int_t)checkpoint->blocks, "written", (json_int_t)checkpoint->written));
    else
        printf("%10" PRIu64 "  %s  %-8s %-5s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n",
               checkpoint->number, time, kept ? "snapshot" : "", minor ? "minor" : "",
               checkpoint->inodes, checkpoint->blocks, checkpoint->written);
}

static void list_head(void) {
    printf("%10s  %-19s  %-8s %-5s %10s %10s %10s\n", "number", "time (UTC)", "", "", "inodes",
           "blocks", "written");
}

static int snapshot_list(struct snapshot *snapshot) {
    struct checkpoint_page *page = calloc(1, sizeof(*page));
    int error = page ? 0 : -ENOMEM;

    bool first = true;

    do {
        if (!error)
            error = snapshot_page(snapshot, page);
        if (!error && first && !snapshot->json)
            list_head();
        first = false;
        for (uint64_t i = 0; !error && i < page->count && i < CHECKPOINT_PAGE; i++) {
            list_row(snapshot, &page->list[i]);
            page->from = page->list[i].number + 1;
        }
    } while (!error && page->count >= CHECKPOINT_PAGE);
    free(page);
    if (error)
        return tool_fail("%s: %s", snapshot->path, reason(error));
    if (snapshot->json)
        print_json(stdout, snapshot->list);
    return TOOL_DONE;
}

static int snapshot_create(struct snapshot *snapshot) {
    uint64_t number = 0;
    int error = snapshot_change(snapshot, &number);

    if (error)
        return tool_fail("%s: %s", snapshot->path, reason(error));
    printf("%" PRIu64 "\n", number);
    return TOOL_DONE;
}

static int snapshot_numbered(struct snapshot *snapshot) {
    int code = TOOL_DONE;

    for (int i = 0; i < snapshot->number_count; i++) {
        uint64_t number = strtoull(snapshot->numbers[i], NULL, 10);
        int error = snapshot_change(snapshot, &number);
        if (error)
            code =
                tool_fail("%s: checkpoint %" PRIu64 ": %s", snapshot->path, number, reason(error));
    }
    return code;
}

static int snapshot_run(struct snapshot *snapshot) {
    if (snapshot->action == ACTION_LIST)
        return snapshot_list(snapshot);
    return actions[snapshot->action].numbered ? snapshot_numbered(snapshot)
                                              : snapshot_create(snapshot);
}

/* --- the command ------------------------------------------------------------------------------ */

enum { KEY_JSON = 0x100 };

static const struct argp_option snapshot_options[] = {
    {"all", 'a', NULL, 0, "List minor checkpoints, too: no file changed in them", 0},
    {"json", KEY_JSON, NULL, 0, "List as JSON", 0},
    {0},
};

static bool is_number(const char *text) {
    return *text && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 20;
}

static void take_arguments(struct snapshot *snapshot, struct argp_state *state) {
    char **arguments = state->argv + state->next;
    int count = state->argc - state->next;

    while (snapshot->action < ACTION_COUNT &&
           strcmp(arguments[0], actions[snapshot->action].name) != 0)
        snapshot->action++;
    if (snapshot->action == ACTION_COUNT)
        argp_error(state, "'%s' is none of list, create, keep, release, delete", arguments[0]);
    else if (count < 2)
        argp_error(state, "the image or mount is missing");
    else if (actions[snapshot->action].numbered != (count > 2))
        argp_error(state, count > 2 ? "too many arguments" : "a checkpoint's number is missing");
    for (int i = 2; i < count; i++)
        if (!is_number(arguments[i]))
            argp_error(state, "'%s' is no checkpoint's number", arguments[i]);
    snapshot->path = arguments[1];
    snapshot->numbers = arguments + 2;
    snapshot->number_count = count - 2;
}

static error_t snapshot_parse(int key, char *argument, struct argp_state *state) {
    struct snapshot *snapshot = state->input;

    switch (key) {
    case 'a':
        snapshot->all = true;
        return 0;
    case KEY_JSON:
        snapshot->json = true;
        return 0;
    case ARGP_KEY_ARGS:
        take_arguments(snapshot, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "what is to be done: list, create, keep, release, delete?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_snapshot(int argc, char **argv) {
    static const struct argp argp = {
        .options = snapshot_options,
        .parser = snapshot_parse,
        .args_doc = "list IMAGE|DIRECTORY\ncreate IMAGE|DIRECTORY\n"
                    "keep|release|delete IMAGE|DIRECTORY NUMBER...",
        .doc =
            "Lists checkpoints of an image or a mount, makes one that is kept (a snapshot, whose "
            "number is printed), keeps or releases some, or deletes them.",
    };
    struct snapshot snapshot = {0};

    argp_parse(&argp, argc, argv, 0, NULL, &snapshot);
    if (snapshot_open(&snapshot))
        return TOOL_FAILED;
    snapshot.list = json_array();
    int code = snapshot_run(&snapshot);
    json_decref(snapshot.list);
    return snapshot_close(&snapshot) ? TOOL_FAILED : code;
}

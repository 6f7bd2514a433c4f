/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs diff`: what changed in a volume between two of its checkpoints.
 *
 * Both states are opened as volumes of their own. An object is known by its inode number and
 * generation, so that what was renamed is told from what is new. Contents are compared only where
 * they do not lie in the same place of the image.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

#define DIFF_CHUNK (256u << 10)
#define NOTHING    SIZE_MAX /* no index */

struct item {
    char *path;       /* owned */
    const char *name; /* its last component */
    size_t up;        /* its directory, as `index` */
    size_t index;     /* in the order of the walk */
    struct {
        uint64_t ino, generation;
    } id;
    struct attributes attributes;
    struct item *match; /* the same object in the other state */
    struct item *here;  /* another object of that path in the other state */
    UT_hash_handle hh;
};

struct state {
    struct tool_image image;
    struct item **items; /* owned; by path when the walk is done */
    struct item **walk;  /* owned: the same in the order of the walk */
    size_t count, room;
};

struct diff {
    const char *path;
    const char *number[2];
    struct state state[2]; /* before, after */
    uint8_t *chunk[2];
    bool json;
    json_t *list;
};

/* --- a state's objects ------------------------------------------------------------------------ */

static int state_room(struct state *state) {
    if (state->count < state->room)
        return 0;
    size_t room = state->room ? 2 * state->room : 256;
    struct item **items = reallocarray(state->items, room, sizeof(struct item *));
    if (!items)
        return -ENOMEM;
    state->items = items;
    state->room = room;
    return 0;
}

/* Takes the path over. */
static int state_add(struct state *state, char *path, struct inode *inode, size_t up) {
    struct item *item = path ? calloc(1, sizeof(*item)) : NULL;
    int error = item ? state_room(state) : -ENOMEM;

    if (error) {
        free(path);
        free(item);
        return error;
    }
    volume_getattr(inode, &item->attributes);
    item->path = path;
    item->name = strrchr(path, '/') + 1;
    item->up = up;
    item->index = state->count;
    item->id.ino = item->attributes.ino;
    item->id.generation = item->attributes.generation;
    state->items[state->count++] = item;
    return 0;
}

static int state_add_names(struct state *state, struct inode *directory, size_t up) {
    struct name_list list = {0};
    int error = name_list_directory(&list, directory);

    for (size_t i = 0; i < list.count && !error; i++) {
        struct inode *inode;
        error = volume_lookup(directory, list.names[i], (uint32_t)strlen(list.names[i]), &inode);
        if (error)
            break;
        error = state_add(state, path_join(state->items[up]->path, list.names[i]), inode, up);
        volume_put(inode, 1);
    }
    name_list_free(&list);
    return error;
}

/* A directory that contains itself would be walked for ever. */
static bool is_own_ancestor(const struct state *state, const struct item *item) {
    for (size_t up = item->up; up != NOTHING; up = state->items[up]->up)
        if (state->items[up]->id.ino == item->id.ino)
            return true;
    return false;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp((*(struct item *const *)a)->path, (*(struct item *const *)b)->path);
}

static int state_walk(struct state *state) {
    struct inode *inode;
    int error = volume_root(state->image.volume, &inode);

    if (error)
        return error;
    error = state_add(state, strdup("/"), inode, NOTHING);
    volume_put(inode, 1);
    for (size_t i = 0; i < state->count && !error; i++) {
        struct item *item = state->items[i];
        if (!S_ISDIR(item->attributes.mode))
            continue;
        error = is_own_ancestor(state, item)
                    ? -ELOOP
                    : volume_get(state->image.volume, item->id.ino, &inode);
        if (!error) {
            error = state_add_names(state, inode, i);
            volume_put(inode, 1);
        }
        if (error)
            tool_fail_path(state->image.path, item->path, error);
    }
    if (error)
        return error;
    state->walk = calloc(state->count, sizeof(struct item *));
    if (!state->walk)
        return -ENOMEM;
    memcpy(state->walk, state->items, state->count * sizeof(struct item *));
    qsort(state->items, state->count, sizeof(struct item *), compare_paths);
    return 0;
}

static int state_open(struct state *state, const char *path, const char *number) {
    char options[32];

    snprintf(options, sizeof(options), "cp=%s", number ? number : "");
    return tool_image_open_with(&state->image, path, true, number ? options : NULL);
}

static void state_close(struct state *state) {
    for (size_t i = 0; i < state->count; i++) {
        free(state->items[i]->path);
        free(state->items[i]);
    }
    free(state->items);
    free(state->walk);
    tool_image_close(&state->image);
}

/* --- contents --------------------------------------------------------------------------------- */

static bool reads_as_zeros(const struct extent *extent) {
    return extent->flags & (EXTENT_HOLE | EXTENT_UNWRITTEN);
}

/* Bytes from `offset` on that need not be read to be known as equal; 0: they must. */
static int equal_by_place(struct inode *const inode[2], uint64_t offset, uint64_t *equal) {
    uint64_t start[2], end[2];
    struct extent extent[2];

    for (int i = 0; i < 2; i++) {
        int error = volume_map(inode[i], offset, &extent[i]);
        if (error)
            return error;
        start[i] = extent[i].device_offset + (offset - extent[i].offset);
        end[i] = extent[i].offset + extent[i].length;
    }
    bool zeros = reads_as_zeros(&extent[0]) && reads_as_zeros(&extent[1]);
    bool same = extent[0].flags == 0 && extent[1].flags == 0 && start[0] == start[1];
    *equal = zeros || same ? (end[0] < end[1] ? end[0] : end[1]) - offset : 0;
    return 0;
}

/* 1: the two differ, 0: they do not; or negative errno. */
static int contents_differ(struct diff *diff, struct inode *const inode[2], uint64_t size) {
    for (uint64_t offset = 0; offset < size;) {
        uint64_t equal;
        int error = equal_by_place(inode, offset, &equal);
        if (error)
            return error;
        if (equal > 0) {
            offset = equal < size - offset ? offset + equal : size;
            continue;
        }
        size_t length = size - offset < DIFF_CHUNK ? (size_t)(size - offset) : DIFF_CHUNK;
        for (int i = 0; i < 2; i++) {
            int64_t got = volume_read_noatime(inode[i], diff->chunk[i], length, offset);
            if (got != (int64_t)length)
                return got < 0 ? (int)got : -EIO;
        }
        if (memcmp(diff->chunk[0], diff->chunk[1], length) != 0)
            return 1;
        offset += length;
    }
    return 0;
}

/* The files' contents, whose change shows in the change time. */
static int item_contents_differ(struct diff *diff, const struct item *before,
                                const struct item *after) {
    const struct attributes *a = &before->attributes, *b = &after->attributes;
    struct inode *inode[2];

    if (!S_ISREG(a->mode) || !S_ISREG(b->mode))
        return 0;
    if (a->size != b->size)
        return 1;
    if (a->ctime.seconds == b->ctime.seconds && a->ctime.nanoseconds == b->ctime.nanoseconds)
        return 0;
    int differ = volume_get(diff->state[0].image.volume, before->id.ino, &inode[0]);
    if (differ)
        return differ;
    differ = volume_get(diff->state[1].image.volume, after->id.ino, &inode[1]);
    if (!differ) {
        differ = contents_differ(diff, inode, a->size);
        volume_put(inode[1], 1);
    }
    volume_put(inode[0], 1);
    return differ;
}

/* --- what is told ----------------------------------------------------------------------------- */

static void tell(struct diff *diff, const char *what, const char *path, const char *more) {
    if (diff->json) {
        json_t *object = json_pack("{s:s, s:s}", "change", what, "path", path);
        if (more)
            json_object_set_new(object, strcmp(what, "renamed") == 0 ? "to" : "what",
                                json_string(more));
        json_array_append_new(diff->list, object);
    } else if (!more) {
        printf("%-8s %s\n", what, path);
    } else {
        printf(strcmp(what, "renamed") == 0 ? "%-8s %s -> %s\n" : "%-8s %s (%s)\n", what, path,
               more);
    }
}

static void add_word(char *text, size_t room, bool add, const char *word) {
    size_t used = strlen(text);

    if (add)
        snprintf(text + used, room - used, "%s%s", used ? ", " : "", word);
}

/* Tells how an object, known by its path afterwards, has changed. Of directories only what does not
 * follow from changes of its entries. */
static int tell_changes(struct diff *diff, const struct item *before, const struct item *after,
                        bool replaced) {
    const struct attributes *a = &before->attributes, *b = &after->attributes;
    bool directory = S_ISDIR(b->mode);
    char text[128] = "";
    int differ = item_contents_differ(diff, before, after);

    if (differ < 0) {
        tool_fail_path(diff->path, after->path, differ);
        return differ;
    }
    add_word(text, sizeof(text), replaced, "replaced");
    add_word(text, sizeof(text), differ, "contents");
    add_word(text, sizeof(text), a->mode != b->mode, "mode");
    add_word(text, sizeof(text), a->uid != b->uid || a->gid != b->gid, "owner");
    add_word(text, sizeof(text), a->flags != b->flags, "flags");
    add_word(text, sizeof(text), !directory && a->nlink != b->nlink, "links");
    add_word(
        text, sizeof(text),
        !directory && !differ &&
            (a->mtime.seconds != b->mtime.seconds || a->mtime.nanoseconds != b->mtime.nanoseconds),
        "time");
    if (text[0])
        tell(diff, "changed", after->path, text);
    return 0;
}

/* It moved with its directory, under the same name. */
static bool moved_along(const struct diff *diff, const struct item *before,
                        const struct item *after) {
    return before->up != NOTHING && after->up != NOTHING &&
           diff->state[0].walk[before->up]->match == diff->state[1].walk[after->up] &&
           strcmp(before->name, after->name) == 0;
}

static int tell_item_before(struct diff *diff, const struct item *before) {
    const struct item *after = before->match;

    if (after) {
        if (strcmp(before->path, after->path) != 0 && !moved_along(diff, before, after))
            tell(diff, "renamed", before->path, after->path);
        return tell_changes(diff, before, after, false);
    }
    if (before->here)
        return tell_changes(diff, before, before->here, true);
    tell(diff, "removed", before->path, NULL);
    return 0;
}

static int tell_item_after(struct diff *diff, const struct item *after) {
    if (!after->match && !after->here)
        tell(diff, "added", after->path, NULL);
    return 0;
}

/* --- which is which --------------------------------------------------------------------------- */

/* Calls visit for pairs in order of the paths; one of both is NULL where the other has none. */
static int merge(struct diff *diff,
                 int (*visit)(struct diff *diff, struct item *before, struct item *after)) {
    const struct state *a = &diff->state[0], *b = &diff->state[1];
    int error = 0;

    for (size_t i = 0, j = 0; (i < a->count || j < b->count) && !error && !tool_interrupted();) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : strcmp(a->items[i]->path, b->items[j]->path);
        struct item *before = order <= 0 ? a->items[i++] : NULL;
        struct item *after = order >= 0 ? b->items[j++] : NULL;
        error = visit(diff, before, after);
    }
    return error;
}

static int match_in_place(struct diff *diff, struct item *before, struct item *after) {
    if (before && after && before->id.ino == after->id.ino &&
        before->id.generation == after->id.generation) {
        before->match = after;
        after->match = before;
    }
    return 0;
}

static int match_replaced(struct diff *diff, struct item *before, struct item *after) {
    if (before && after && !before->match && !after->match &&
        ((before->attributes.mode ^ after->attributes.mode) & S_IFMT) == 0) {
        before->here = after;
        after->here = before;
    }
    return 0;
}

/* Objects that are elsewhere now. Of several names that went and came any two may be paired. */
static void match_renamed(struct diff *diff) {
    struct item *table = NULL, *after;

    for (size_t i = 0; i < diff->state[1].count; i++) {
        after = diff->state[1].items[i];
        if (!after->match)
            HASH_ADD(hh, table, id, sizeof(after->id), after);
    }
    for (size_t i = 0; i < diff->state[0].count; i++) {
        struct item *before = diff->state[0].items[i];
        after = NULL;
        if (!before->match)
            HASH_FIND(hh, table, &before->id, sizeof(before->id), after);
        if (after) {
            HASH_DEL(table, after);
            before->match = after;
            after->match = before;
        }
    }
    HASH_CLEAR(hh, table);
}

static int tell_pair(struct diff *diff, struct item *before, struct item *after) {
    int error = before ? tell_item_before(diff, before) : 0;

    return error || !after ? error : tell_item_after(diff, after);
}

static int diff_states(struct diff *diff) {
    int error = state_walk(&diff->state[0]);

    if (!error)
        error = state_walk(&diff->state[1]);
    if (error)
        return error;
    merge(diff, match_in_place);
    match_renamed(diff);
    merge(diff, match_replaced);
    error = merge(diff, tell_pair);
    if (!error && diff->json)
        print_json(stdout, diff->list);
    return error;
}

/* --- the command ------------------------------------------------------------------------------ */

enum { KEY_JSON = 0x100 };

static const struct argp_option diff_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print a JSON array", 0},
    {0},
};

static error_t diff_parse(int key, char *argument, struct argp_state *state) {
    struct diff *diff = state->input;

    switch (key) {
    case KEY_JSON:
        diff->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 2)
            return ARGP_ERR_UNKNOWN;
        if (state->arg_num == 0)
            diff->path = argument;
        else if (!*argument || argument[strspn(argument, "0123456789")] || strlen(argument) > 19)
            argp_error(state, "'%s' is no checkpoint's number", argument);
        else
            diff->number[state->arg_num - 1] = argument;
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2)
            argp_error(state, "an image and a checkpoint's number are needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int diff_run(struct diff *diff) {
    if (state_open(&diff->state[0], diff->path, diff->number[0]))
        return TOOL_FAILED;
    int error = state_open(&diff->state[1], diff->path, diff->number[1]);
    if (!error) {
        for (int i = 0; i < 2; i++)
            diff->chunk[i] = malloc(DIFF_CHUNK);
        error = diff->chunk[0] && diff->chunk[1] ? diff_states(diff) : -ENOMEM;
        for (int i = 0; i < 2; i++)
            free(diff->chunk[i]);
        state_close(&diff->state[1]);
    }
    state_close(&diff->state[0]);
    return error ? TOOL_FAILED : TOOL_DONE;
}

int tool_diff(int argc, char **argv) {
    static const struct argp argp = {
        .options = diff_options,
        .parser = diff_parse,
        .args_doc = "IMAGE CHECKPOINT [CHECKPOINT]",
        .doc = "Lists what changed in an image between two of its checkpoints, or from one to what "
               "there is now: added, removed, renamed and changed objects.",
    };
    struct diff diff = {0};

    argp_parse(&argp, argc, argv, 0, NULL, &diff);
    diff.list = json_array();
    int code = diff_run(&diff);
    json_decref(diff.list);
    return code;
}

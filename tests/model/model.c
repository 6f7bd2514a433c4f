/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model of a POSIX tree, and what operations on names do to it. Linear searches
 * everywhere: it must be obviously right. See model.h.
 */
#include "tests/model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/fixture.h"

#define MODEL_NAMES 28

const char *const model_attribute_names[MODEL_ATTRIBUTES] = {"user.test", "user.a-longer-name",
                                                             "trusted.test"};

struct model *model_new(void) {
    struct model *model = calloc(1, sizeof(*model));

    if (model) {
        model->nodes[0].mode = S_IFDIR | 0755;
        model->nodes[0].nlink = 2;
        model->used = 1;
        for (uint32_t i = 0; i < MODEL_SLOTS; i++)
            model->slots[i] = MODEL_NONE;
    }
    return model;
}

static uint8_t *data_new(struct model *model) {
    struct model_spare *spare = model->spare;

    if (!spare) { /* calloc would clear all of it */
        uint8_t *data =
            mmap(NULL, MODEL_FILE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
            return NULL;
        return data;
    }
    model->spare = spare->next;
    memset(spare, 0, sizeof(*spare));
    return (uint8_t *)spare;
}

static void data_free(struct model *model, uint8_t *data, uint32_t size) {
    struct model_spare *spare = (struct model_spare *)data;

    if (!data)
        return;
    memset(data, 0, size);
    spare->next = model->spare;
    model->spare = spare;
}

static void node_clear(struct model *model, struct model_node *node) {
    while (node->entries) {
        struct model_entry *next = node->entries->next;
        free(node->entries);
        node->entries = next;
    }
    data_free(model, node->data, node->size);
    memset(node, 0, sizeof(*node));
}

void model_free(struct model *model) {
    for (uint32_t i = 0; i < model->used; i++)
        node_clear(model, &model->nodes[i]);
    while (model->spare) {
        struct model_spare *next = model->spare->next;
        munmap(model->spare, MODEL_FILE_MAX);
        model->spare = next;
    }
    free(model);
}

static bool may_pick(const struct model_node *node, enum model_choice choice) {
    switch (choice) {
    case PICK_DIRECTORY:
        return S_ISDIR(node->mode);
    case PICK_FILE:
        return S_ISREG(node->mode);
    case PICK_LINKABLE:
        return node->mode && !S_ISDIR(node->mode) && node->nlink > 0;
    default:
        return node->mode;
    }
}

bool model_pick(const struct model *model, enum model_choice choice, uint32_t number,
                uint32_t *node) {
    uint32_t nearest = UINT32_MAX;
    bool found = false;

    for (uint32_t i = 0; i < model->used; i++) {
        uint32_t distance = model->nodes[i].identity - number;
        if (may_pick(&model->nodes[i], choice) && (!found || distance < nearest)) {
            nearest = distance;
            *node = i;
            found = true;
        }
    }
    return found;
}

struct model_entry *model_find(const struct model *model, uint32_t dir, const char *name) {
    struct model_entry *entry = model->nodes[dir].entries;

    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

uint32_t model_slot_of(const struct model *model, uint32_t node) {
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        if (model->slots[i] == node)
            return i;
    }
    return MODEL_NONE;
}

static const struct model_entry *find_name_of(const struct model *model, uint32_t node,
                                              uint32_t *dir) {
    for (*dir = 0; *dir < model->used; ++*dir) {
        for (const struct model_entry *e = model->nodes[*dir].entries; e; e = e->next) {
            if (e->node == node)
                return e;
        }
    }
    return NULL;
}

void model_path(const struct model *model, uint32_t node, char *path, size_t size) {
    uint32_t dir;
    const struct model_entry *entry = node ? find_name_of(model, node, &dir) : NULL;

    if (!entry) {
        snprintf(path, size, "%s", node ? "/(no name left)" : "");
        return;
    }
    model_path(model, dir, path, size);
    size_t used = strlen(path);
    snprintf(path + used, size - used, "/%s", entry->name);
}

void model_name(uint32_t number, char name[256]) {
    number %= MODEL_NAMES;
    if (number < 16) {
        snprintf(name, 256, "name-%u", number);
    } else if (number < 20) { /* as long as a name can be */
        memset(name, 'a' + (int)number, 255);
        name[255] = '\0';
    } else { /* all bytes but '/' and NUL: those below '/', and those above */
        uint32_t first = number < 24 ? 1 : '/' + 1;
        uint32_t count = number < 24 ? '/' - 1 : 255 - '/';
        for (uint32_t i = 0; i < 210; i++)
            name[i] = (char)(first + (i + number) % count);
        name[210] = '\0';
    }
}

void model_bytes(uint32_t fill, uint8_t *bytes, uint32_t length) {
    uint64_t state = fill, word;

    for (uint32_t i = 0; i < length; i += sizeof(word)) {
        word = fixture_random(&state);
        memcpy(bytes + i, &word, length - i < sizeof(word) ? length - i : sizeof(word));
    }
}

uint32_t model_mode(const struct operation *op) {
    static const uint32_t special[] = {S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
    uint32_t permissions = op->fill & 0777;

    switch (op->kind) {
    case OP_MKDIR:
        return S_IFDIR | permissions;
    case OP_SYMLINK:
        return S_IFLNK | 0777;
    case OP_MKNOD:
        return special[op->length % 4] | permissions;
    default:
        return S_IFREG | permissions;
    }
}

uint32_t model_rdev(const struct operation *op) {
    mode_t mode = model_mode(op);

    if (op->kind != OP_MKNOD || !(S_ISCHR(mode) || S_ISBLK(mode)))
        return 0;
    /* Every second one fits in the 8 + 8 bits that devices once had. 0, 0 would be a whiteout. */
    return op->fill & 1 ? 1 << 20 | (op->fill >> 8 & 0xff) : (op->fill | 1 << 20) >> 1;
}

uint32_t model_link_target(const struct operation *op, char target[1024]) {
    /* Where an inode's own room ends, around 60 bytes, twice as often. */
    uint32_t length = 1 + op->length % (op->fill & 1 ? 1000 : 100);

    memset(target, 'a' + (int)(op->fill % 26), length);
    target[length] = '\0';
    return length;
}

uint32_t model_owner(uint32_t number) {
    static const uint32_t owners[] = {0, 1, 1000, 65535, 65536, 4294967294};

    return owners[number % 6];
}

int64_t model_utime(const struct operation *op) {
    /* From before 1970 to the last second of an inode of 128 bytes, and beyond. */
    int64_t seconds = (int32_t)(op->offset * 2654435761u) + (op->fill & 1 ? INT64_C(0) : 3) * 1000;

    return seconds * 1000000000 + op->fill % 1000000000;
}

uint32_t model_copy_length(const struct model_node *source, const struct operation *op) {
    uint32_t behind = op->offset < source->size ? source->size - op->offset : 0;

    return op->length < behind ? op->length : behind;
}

bool model_too_large(const struct operation *op, uint32_t size) {
    if (op->kind == OP_APPEND || op->kind == OP_INSERT)
        return size + op->length > MODEL_FILE_MAX;
    return op->kind == OP_COPY && op->other_offset + op->length > MODEL_FILE_MAX;
}

/* --- names ------------------------------------------------------------------------------------ */

static int add_entry(struct model *model, uint32_t dir, const char *name, uint32_t node) {
    struct model_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->node = node;
    entry->next = model->nodes[dir].entries;
    model->nodes[dir].entries = entry;
    model->nodes[node].parent = dir;
    return 0;
}

static void remove_entry(struct model *model, uint32_t dir, const char *name) {
    struct model_entry **link = &model->nodes[dir].entries;

    while (strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    struct model_entry *entry = *link;
    *link = entry->next;
    free(entry);
}

static void names_changed(struct model *model, uint32_t dir) {
    model->nodes[dir].mtime = model->nodes[dir].ctime = model->now;
}

static void drop_link(struct model *model, struct model_node *node) {
    node->nlink = S_ISDIR(node->mode) ? 0 : node->nlink - 1;
    node->ctime = model->now;
    if (node->nlink == 0 && node->slots == 0)
        node_clear(model, node);
}

/* A new object in `dir`, without a name; NULL: there is no room. */
static struct model_node *new_node(struct model *model, uint32_t dir, uint32_t mode,
                                   uint32_t identity, uint32_t *node) {
    const struct model_node *parent = &model->nodes[dir];

    for (*node = 1; model->nodes[*node].mode; ++*node) {
        if (*node == MODEL_NODES - 1)
            return NULL;
    }
    struct model_node *made = &model->nodes[*node];
    if (S_ISREG(mode) || S_ISLNK(mode)) {
        made->data = data_new(model);
        if (!made->data)
            return NULL;
    }
    made->mode = mode;
    made->identity = identity;
    made->nlink = 1;
    made->mtime = made->ctime = model->now;
    if (parent->mode & S_ISGID)
        made->gid = parent->gid;
    if (S_ISDIR(mode)) {
        made->mode |= parent->mode & S_ISGID;
        made->nlink = 2;
        made->parent = dir;
        model->nodes[dir].nlink++;
    }
    if (*node >= model->used)
        model->used = *node + 1;
    return made;
}

static int make(struct model *model, const struct operation *op, uint32_t dir, const char *name) {
    uint32_t node;

    if (model_find(model, dir, name))
        return -EEXIST;
    struct model_node *made = new_node(model, dir, model_mode(op), op->fill, &node);
    if (!made)
        return -ENOSPC;
    made->rdev = model_rdev(op);
    if (op->kind == OP_SYMLINK)
        made->size = model_link_target(op, (char *)made->data);
    names_changed(model, dir);
    return add_entry(model, dir, name, node);
}

static int link_node(struct model *model, const struct operation *op, uint32_t dir,
                     const char *name) {
    uint32_t node;

    if (!model_pick(model, PICK_LINKABLE, op->file, &node))
        return -ENOENT;
    if (model_find(model, dir, name))
        return -EEXIST;
    model->nodes[node].nlink++;
    model->nodes[node].ctime = model->now;
    names_changed(model, dir);
    return add_entry(model, dir, name, node);
}

static int unlink_name(struct model *model, uint32_t dir, const char *name, bool directory) {
    const struct model_entry *entry = model_find(model, dir, name);

    if (!entry)
        return -ENOENT;
    struct model_node *node = &model->nodes[entry->node];
    if (directory != (bool)S_ISDIR(node->mode))
        return directory ? -ENOTDIR : -EISDIR;
    if (node->entries)
        return -ENOTEMPTY;
    remove_entry(model, dir, name);
    if (directory)
        model->nodes[dir].nlink--;
    names_changed(model, dir);
    drop_link(model, node);
    return 0;
}

static bool is_below(const struct model *model, uint32_t dir, uint32_t ancestor) {
    for (; dir != 0; dir = model->nodes[dir].parent) {
        if (dir == ancestor)
            return true;
    }
    return ancestor == 0;
}

struct renaming {
    uint32_t from_dir, to_dir;
    const char *from, *to;
    struct model_entry *entry, *victim;
    uint32_t node, fill;
    enum operation_kind kind;
};

static int rename_refused(const struct model *model, const struct renaming *r) {
    uint32_t mode = model->nodes[r->node].mode;

    if (S_ISDIR(mode) && is_below(model, r->to_dir, r->node))
        return -EINVAL;
    if (!r->victim)
        return 0;
    const struct model_node *other = &model->nodes[r->victim->node];
    if (r->kind == OP_EXCHANGE)
        return S_ISDIR(other->mode) && is_below(model, r->from_dir, r->victim->node) ? -EINVAL : 0;
    /* Before all that: a directory that the source lies in cannot be replaced, being not empty. */
    if (S_ISDIR(mode) && !S_ISDIR(other->mode))
        return -ENOTDIR;
    if (!S_ISDIR(mode) && S_ISDIR(other->mode))
        return is_below(model, r->from_dir, r->victim->node) ? -ENOTEMPTY : -EISDIR;
    return other->entries ? -ENOTEMPTY : 0;
}

/* `node` moves from one parent to the other. */
static void move_parent(struct model *model, uint32_t node, uint32_t from, uint32_t to) {
    model->nodes[node].ctime = model->now;
    if (!S_ISDIR(model->nodes[node].mode))
        return;
    model->nodes[from].nlink--;
    model->nodes[to].nlink++;
    model->nodes[node].parent = to;
}

static int leave_whiteout(struct model *model, const struct renaming *r) {
    uint32_t node;
    struct model_node *made = new_node(model, r->from_dir, S_IFCHR, r->fill, &node);

    if (!made)
        return -ENOSPC;
    made->whiteout = true;
    return add_entry(model, r->from_dir, r->from, node);
}

static int rename_onto(struct model *model, const struct renaming *r) {
    int error = 0;

    if (r->victim) {
        struct model_node *old = &model->nodes[r->victim->node];
        if (S_ISDIR(old->mode))
            model->nodes[r->to_dir].nlink--;
        drop_link(model, old);
        r->victim->node = r->node;
    } else {
        error = add_entry(model, r->to_dir, r->to, r->node);
    }
    remove_entry(model, r->from_dir, r->from);
    move_parent(model, r->node, r->from_dir, r->to_dir);
    if (!error && r->kind == OP_WHITEOUT)
        error = leave_whiteout(model, r);
    return error;
}

static void exchange(struct model *model, const struct renaming *r) {
    r->entry->node = r->victim->node;
    r->victim->node = r->node;
    move_parent(model, r->entry->node, r->to_dir, r->from_dir);
    move_parent(model, r->node, r->from_dir, r->to_dir);
}

static int rename_node(struct model *model, struct renaming *r) {
    r->entry = model_find(model, r->from_dir, r->from);
    r->victim = model_find(model, r->to_dir, r->to);
    if (!r->entry)
        return -ENOENT;
    if (r->victim && r->kind == OP_NOREPLACE)
        return -EEXIST;
    if (!r->victim && r->kind == OP_EXCHANGE)
        return -ENOENT;
    r->node = r->entry->node;
    if (r->victim && r->victim->node == r->node)
        return 0; /* two names of one object */
    int error = rename_refused(model, r);
    if (error)
        return error;
    names_changed(model, r->from_dir);
    names_changed(model, r->to_dir);
    if (r->kind != OP_EXCHANGE)
        return rename_onto(model, r);
    exchange(model, r);
    return 0;
}

static int close_slot(struct model *model, uint32_t slot) {
    if (model->slots[slot] == MODEL_NONE)
        return 0;
    struct model_node *node = &model->nodes[model->slots[slot]];
    model->slots[slot] = MODEL_NONE;
    if (--node->slots == 0 && node->nlink == 0)
        node_clear(model, node);
    return 0;
}

static int open_slot(struct model *model, uint32_t slot, uint32_t node) {
    model->nodes[node].slots++; /* first, as what is closed may be its last use */
    close_slot(model, slot);
    model->slots[slot] = node;
    return 0;
}

static int copy_range(struct model *model, const struct operation *op, struct model_node *from) {
    uint32_t to_index = 0, length = model_copy_length(from, op);

    model_pick(model, PICK_FILE, op->other_file, &to_index);
    struct model_node *to = &model->nodes[to_index];
    if (length == 0)
        return 0;
    if (to == from && op->offset < op->other_offset + length &&
        op->other_offset < op->offset + length)
        return -EINVAL;
    memcpy(to->data + op->other_offset, from->data + op->offset, length);
    if (op->other_offset + length > to->size)
        to->size = op->other_offset + length;
    model_touch(model, to);
    return 0;
}

static int apply_to_object(struct model *model, const struct operation *op) {
    enum model_choice choice = op->kind < OP_CHMOD ? PICK_FILE : PICK_ANY;
    uint32_t index;

    if (!model_pick(model, choice, op->file, &index))
        return 0;
    struct model_node *node = &model->nodes[index];
    if (model_too_large(op, node->size))
        return 0;
    if (op->kind == OP_OPEN)
        return open_slot(model, op->other_file % MODEL_SLOTS, index);
    if (op->kind == OP_COPY)
        return copy_range(model, op, node);
    return model_change(model, node, op);
}

static int apply_to_names(struct model *model, const struct operation *op) {
    char name[256], other[256];
    struct renaming renaming = {.from = name, .to = other, .fill = op->fill, .kind = op->kind};

    model_pick(model, PICK_DIRECTORY, op->dir, &renaming.from_dir);
    model_name(op->name, name);
    switch (op->kind) {
    case OP_LINK:
        return link_node(model, op, renaming.from_dir, name);
    case OP_UNLINK:
    case OP_RMDIR:
        return unlink_name(model, renaming.from_dir, name, op->kind == OP_RMDIR);
    case OP_RENAME:
    case OP_NOREPLACE:
    case OP_EXCHANGE:
    case OP_WHITEOUT:
        model_pick(model, PICK_DIRECTORY, op->other_dir, &renaming.to_dir);
        model_name(op->other, other);
        return rename_node(model, &renaming);
    default:
        return make(model, op, renaming.from_dir, name);
    }
}

int model_apply(struct model *model, const struct operation *op) {
    if (op->kind <= OP_WHITEOUT)
        return apply_to_names(model, op);
    if (op->kind < OP_CLOSE)
        return apply_to_object(model, op);
    return op->kind == OP_CLOSE ? close_slot(model, op->file % MODEL_SLOTS) : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over btree.c. Interface: layouts/nilfs/btree.h. Changing B-trees.
 *
 * A change has three parts, so that what can fail comes before what must not:
 *   plan     Finds the leaf, and decides from the leaf up how each node makes room for one child
 *            more, or how it makes up for one less. Reads the siblings that this takes. Failing
 *            here changes nothing.
 *   prepare  Makes the nodes on the path, and those siblings, changed blocks, and new nodes where
 *            nodes will be split. Needs memory and pointers; failing here fails the volume.
 *   perform  Moves keys and pointers about in memory, from the leaf up.
 *
 *   room     A full node gives to its left sibling, or else to its right one, half of what that has
 *            less; if both are full, it is split in halves. A full root moves into a node, and the
 *            tree grows by a level.
 *   want     A node with fewer children than the minimum takes from its left sibling (from its
 *            right one where there is no left one) half of what that has more; if that is at the
 *            minimum itself, the two become one. A root's only child moves into the root when it
 *            fits there, and the tree shrinks by a level.
 */
#include <string.h>

#include "layouts/nilfs/btree.h"

enum mend {
    MEND_NONE,    /* the change ends in this node */
    SHARE_LEFT,   /* balances with the sibling */
    SHARE_RIGHT,  /* likewise */
    SPLIT,        /* half of it goes to a new right sibling */
    GROW,         /* the root only */
    MERGE_LEFT,   /* it goes into the sibling */
    MERGE_RIGHT,  /* the sibling goes into it */
    MERGE_NOTHING /* it is empty and has no siblings (damaged trees only) */
};

/* What happens at one level, and with whom. */
struct measure {
    enum mend mend;
    struct nilfs_view view; /* the sibling, as it was read */
    struct nilfs_node node; /* the sibling, or the new node: changed */
    uint64_t pointer;       /* new node: its own */
};

struct edit {
    struct nilfs_path path;
    uint32_t highest;                        /* level where the change ends */
    struct measure measure[NILFS_LEVEL_MAX]; /* of levels up to the highest */
};

/* --- nodes in memory -------------------------------------------------------------------------- */

static void count_set(struct nilfs_node *node, uint32_t count) {
    le16_store(&node->header->nchildren, (uint16_t)count);
}

static void entry_set(struct nilfs_node *node, uint32_t i, uint64_t key, uint64_t pointer) {
    le64_store(&node->keys[i], key);
    le64_store(&node->pointers[i], pointer);
}

static void entries_move(struct nilfs_node *to, uint32_t at, const struct nilfs_node *from,
                         uint32_t first, uint32_t count) {
    memmove(to->keys + at, from->keys + first, count * sizeof(le64));
    memmove(to->pointers + at, from->pointers + first, count * sizeof(le64));
}

static void node_insert(struct nilfs_node *node, uint32_t at, uint64_t key, uint64_t pointer) {
    uint32_t count = nilfs_node_count(node);

    entries_move(node, at + 1, node, at, count - at);
    entry_set(node, at, key, pointer);
    count_set(node, count + 1);
}

static void node_remove(struct nilfs_node *node, uint32_t at) {
    uint32_t count = nilfs_node_count(node) - 1;

    entries_move(node, at, node, at + 1, count - at);
    count_set(node, count);
}

/* The first `count` of `right` go to the end of `left`. */
static void shift_left(struct nilfs_node *left, struct nilfs_node *right, uint32_t count) {
    uint32_t n = nilfs_node_count(left), rest = nilfs_node_count(right) - count;

    entries_move(left, n, right, 0, count);
    entries_move(right, 0, right, count, rest);
    count_set(left, n + count);
    count_set(right, rest);
}

/* The last `count` of `left` go to the front of `right`. */
static void shift_right(struct nilfs_node *left, struct nilfs_node *right, uint32_t count) {
    uint32_t n = nilfs_node_count(right), rest = nilfs_node_count(left) - count;

    entries_move(right, count, right, 0, n);
    entries_move(right, 0, left, rest, count);
    count_set(left, rest);
    count_set(right, n + count);
}

/* --- steps of a path -------------------------------------------------------------------------- */

/* The first key of the step's node has changed, or that of its child `at`: so does what leads
 * there. */
static void keys_correct(struct nilfs_path *path, uint32_t level) {
    for (; level < path->top; level++) {
        struct nilfs_step *parent = &path->step[level + 1];
        parent->node.keys[parent->at] = path->step[level].node.keys[0];
        if (parent->at > 0)
            return;
    }
}

static void hint_forget(struct nilfs_file *file) {
    if (file->changes)
        file->changes->hints.leaf = NULL;
}

/* The path's leaf has been changed, and the tree has its form still. */
static void hint_note(const struct nilfs_path *path) {
    struct nilfs_hints *hints = &path->file->changes->hints;

    hints->leaf = path->top > 1 ? path->step[1].view.changed : NULL;
    hints->limit = path->limit;
}

/* A node that was read becomes a changed one; its parent, changed already, has it as child `i`. */
static int step_change(struct nilfs_file *file, struct nilfs_node *parent, uint32_t i,
                       uint32_t level, struct nilfs_view *view, struct nilfs_node *node) {
    struct nilfs_block *block;

    if (!view->changed) {
        nilfs_view_put(view);
        int rc = nilfs_node_change(file, nilfs_node_pointer(parent, i), level, &block);
        if (rc)
            return rc;
        *view = (struct nilfs_view){.data = block->data, .changed = block};
        le64_store(&parent->pointers[i], block->pointer);
    }
    *node = nilfs_node_block(file, view->data);
    return 0;
}

/* All nodes from the root down to the path's lowest. */
static int path_change(struct nilfs_path *path) {
    int rc = nilfs_file_mark_dirty(path->file);

    for (uint32_t level = path->top; rc == 0 && level-- > path->bottom;) {
        struct nilfs_step *step = &path->step[level], *parent = step + 1;
        rc = step_change(path->file, &parent->node, parent->at, level, &step->view, &step->node);
    }
    return rc;
}

/* --- plan ------------------------------------------------------------------------------------- */

static void edit_begin(struct edit *edit) {
    edit->highest = 0;
}

static void edit_end(struct edit *edit) {
    for (uint32_t level = 1; level <= edit->highest; level++)
        nilfs_view_put(&edit->measure[level].view);
    nilfs_path_release(&edit->path);
}

static struct measure *measure_begin(struct edit *edit, uint32_t level) {
    struct measure *measure = &edit->measure[level];

    edit->highest = level;
    measure->mend = MEND_NONE;
    measure->view = (struct nilfs_view){0};
    return measure;
}

/* Reads the sibling on one side of the path's node at `level`; none: measure->view.data is NULL. */
static int sibling_read(struct edit *edit, uint32_t level, bool left) {
    struct measure *measure = &edit->measure[level];
    const struct nilfs_step *parent = &edit->path.step[level + 1];
    uint32_t i = left ? parent->at - 1 : parent->at + 1;

    nilfs_view_put(&measure->view);
    measure->view = (struct nilfs_view){0};
    if (i >= nilfs_node_count(&parent->node)) /* also 0 - 1 */
        return 0;
    int rc = nilfs_node_child(edit->path.file, &parent->node, level + 1, i, &measure->view);
    if (rc)
        measure->view = (struct nilfs_view){0};
    else
        measure->node = nilfs_node_block(edit->path.file, measure->view.data);
    return rc;
}

static bool sibling_has_room(const struct measure *measure) {
    return measure->view.data && nilfs_node_count(&measure->node) < measure->node.capacity;
}

static int room_find(struct edit *edit, uint32_t level) {
    struct measure *measure = measure_begin(edit, level);
    const struct nilfs_node *node = &edit->path.step[level].node;
    int rc;

    if (nilfs_node_count(node) < node->capacity)
        return 0;
    if (level == edit->path.top) {
        measure->mend = GROW;
        return level + 1 < NILFS_LEVEL_MAX ? 0 : -EFBIG;
    }
    measure->mend = SHARE_LEFT;
    rc = sibling_read(edit, level, true);
    if (rc || sibling_has_room(measure))
        return rc;
    measure->mend = SHARE_RIGHT;
    rc = sibling_read(edit, level, false);
    if (rc || sibling_has_room(measure))
        return rc;
    measure->mend = SPLIT;
    nilfs_view_put(&measure->view);
    measure->view = (struct nilfs_view){0};
    return 0;
}

static uint32_t node_minimum(const struct nilfs_node *node) {
    return (node->capacity - 1) / 2 + 1;
}

static int want_find(struct edit *edit, uint32_t level) {
    struct measure *measure = measure_begin(edit, level);
    const struct nilfs_node *node = &edit->path.step[level].node;
    uint32_t minimum = node_minimum(node);

    if (level == edit->path.top || nilfs_node_count(node) > minimum)
        return 0;
    bool left = edit->path.step[level + 1].at > 0;
    int rc = sibling_read(edit, level, left);
    if (rc)
        return rc;
    if (!measure->view.data)
        measure->mend = nilfs_node_count(node) > 1 ? MEND_NONE : MERGE_NOTHING;
    else if (nilfs_node_count(&measure->node) > minimum)
        measure->mend = left ? SHARE_LEFT : SHARE_RIGHT;
    else
        measure->mend = left ? MERGE_LEFT : MERGE_RIGHT;
    return 0;
}

/* Does the node above lose or gain a child, too? */
static bool mend_goes_up(enum mend mend) {
    return mend == SPLIT || mend >= MERGE_LEFT;
}

static int edit_plan(struct edit *edit, int (*find)(struct edit *edit, uint32_t level)) {
    uint32_t level = 0;
    int rc;

    do
        rc = find(edit, ++level);
    while (rc == 0 && mend_goes_up(edit->measure[level].mend));
    return rc;
}

/* --- prepare ---------------------------------------------------------------------------------- */

static int measure_prepare(struct edit *edit, uint32_t level) {
    struct nilfs_file *file = edit->path.file;
    struct measure *measure = &edit->measure[level];
    struct nilfs_step *parent = &edit->path.step[level + 1];
    struct nilfs_block *block;
    int rc;

    switch (measure->mend) {
    case SHARE_LEFT:
    case MERGE_LEFT:
        return step_change(file, &parent->node, parent->at - 1, level, &measure->view,
                           &measure->node);
    case SHARE_RIGHT:
    case MERGE_RIGHT:
        return step_change(file, &parent->node, parent->at + 1, level, &measure->view,
                           &measure->node);
    case SPLIT:
    case GROW:
        rc = nilfs_node_make(file, level, nilfs_node_pointer(&edit->path.step[level].node, 0) + 1,
                             &block);
        if (rc == 0) {
            measure->node = nilfs_node_block(file, block->data);
            measure->pointer = block->pointer;
        }
        return rc;
    default:
        return 0;
    }
}

static int edit_prepare(struct edit *edit) {
    int rc = path_change(&edit->path);

    /* From above: a sibling's pointer is in the parent, which may be changed only now. */
    for (uint32_t level = edit->highest; rc == 0 && level > 0; level--)
        rc = measure_prepare(edit, level);
    return rc;
}

/* --- insertion: perform ----------------------------------------------------------------------- */

/* Where a new entry goes, and what. */
struct entry {
    uint32_t at;
    uint64_t key, pointer;
};

static void entry_insert(struct nilfs_node *node, const struct entry *entry) {
    node_insert(node, entry->at, entry->key, entry->pointer);
}

/* The full `node` and `left`, with room, share the new entry with what they have evenly. */
static void insert_share_left(struct nilfs_node *left, struct nilfs_node *node,
                              struct entry *entry) {
    uint32_t n = nilfs_node_count(node), m = nilfs_node_count(left);
    uint32_t moved = (n + m + 1) / 2 - m;

    if (moved > entry->at) { /* the new one is among those that move */
        shift_left(left, node, --moved);
        entry->at += m;
        entry_insert(left, entry);
    } else {
        shift_left(left, node, moved);
        entry->at -= moved;
        entry_insert(node, entry);
    }
}

/* The same with `right`, which is empty when the node is being split. */
static void insert_share_right(struct nilfs_node *node, struct nilfs_node *right,
                               struct entry *entry) {
    uint32_t n = nilfs_node_count(node), m = nilfs_node_count(right);
    uint32_t moved = (n + m + 1) / 2 - m;

    if (moved > n - entry->at) {
        shift_right(node, right, --moved);
        entry->at -= n - moved;
        entry_insert(right, entry);
    } else {
        shift_right(node, right, moved);
        entry_insert(node, entry);
    }
}

/* The root's children become those of a new node, which has room for one more. */
static void insert_grow(struct nilfs_step *root, struct measure *measure,
                        const struct entry *entry) {
    struct nilfs_node *child = &measure->node;
    uint32_t count = nilfs_node_count(&root->node);

    entries_move(child, 0, &root->node, 0, count);
    count_set(child, count);
    entry_insert(child, entry);
    root->node.header->level++;
    entry_set(&root->node, 0, nilfs_node_key(child, 0), measure->pointer);
    count_set(&root->node, 1);
}

/* One level of an insertion; *entry becomes what the level above gets. */
static void insert_perform(struct edit *edit, uint32_t level, struct entry *entry) {
    struct nilfs_step *step = &edit->path.step[level], *parent = step + 1;
    struct measure *measure = &edit->measure[level];
    bool first = entry->at == 0;

    switch (measure->mend) {
    case SHARE_LEFT:
        insert_share_left(&measure->node, &step->node, entry);
        first = true; /* other children lead the node now */
        break;
    case SHARE_RIGHT:
        insert_share_right(&step->node, &measure->node, entry);
        parent->node.keys[parent->at + 1] = measure->node.keys[0];
        break;
    case SPLIT:
        insert_share_right(&step->node, &measure->node, entry);
        *entry =
            (struct entry){parent->at + 1, nilfs_node_key(&measure->node, 0), measure->pointer};
        break;
    case GROW:
        insert_grow(step, measure, entry);
        return;
    default:
        entry_insert(&step->node, entry);
        break;
    }
    if (first)
        keys_correct(&edit->path, level);
}

/* Puts the entry where the leaf of the hint has room for it behind its first one. */
static bool insert_by_hint(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    struct nilfs_node leaf;

    if (!nilfs_btree_hint(file, key, &leaf) || nilfs_node_count(&leaf) == leaf.capacity)
        return false;
    uint32_t at = nilfs_node_search(&leaf, key);
    if (at < nilfs_node_count(&leaf) && nilfs_node_key(&leaf, at) == key)
        return false;
    node_insert(&leaf, at, key, pointer);
    return true;
}

int nilfs_btree_insert(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    struct edit edit;

    if (insert_by_hint(file, key, pointer))
        return 0;
    int rc = nilfs_path_find(file, key, 1, &edit.path);
    if (rc)
        return rc;
    edit_begin(&edit);
    rc = nilfs_path_found(&edit.path, key) ? -EEXIST : edit_plan(&edit, room_find);
    if (rc) {
        edit_end(&edit);
        return rc;
    }
    rc = edit_prepare(&edit);
    if (rc == 0) {
        struct entry entry = {edit.path.step[1].at, key, pointer};
        for (uint32_t level = 1; level <= edit.highest; level++)
            insert_perform(&edit, level, &entry);
    }
    if (rc == 0 && edit.measure[1].mend == MEND_NONE)
        hint_note(&edit.path);
    else
        hint_forget(file);
    edit_end(&edit);
    return rc ? nilfs_fail(file->nilfs, rc) : 0;
}

/* --- replacement ------------------------------------------------------------------------------ */

int nilfs_btree_set(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    struct nilfs_path path;
    struct nilfs_node leaf;

    if (nilfs_btree_hint(file, key, &leaf)) {
        uint32_t at = nilfs_node_search(&leaf, key);
        if (at < nilfs_node_count(&leaf) && nilfs_node_key(&leaf, at) == key) {
            le64_store(&leaf.pointers[at], pointer);
            return 0;
        }
    }
    int rc = nilfs_path_find(file, key, 1, &path);
    if (rc)
        return rc;
    if (!nilfs_path_found(&path, key)) {
        nilfs_path_release(&path);
        return -ENOENT;
    }
    rc = path_change(&path);
    if (rc == 0) {
        le64_store(&path.step[1].node.pointers[path.step[1].at], pointer);
        hint_note(&path);
    }
    nilfs_path_release(&path);
    return rc ? nilfs_fail(file->nilfs, rc) : 0;
}

/* --- deletion: perform ------------------------------------------------------------------------ */

/* One level of a deletion; *at becomes the child that the level above loses. */
static int delete_perform(struct edit *edit, uint32_t level, uint32_t *at) {
    struct nilfs_step *step = &edit->path.step[level], *parent = step + 1;
    struct nilfs_node *node = &step->node, *sibling = &edit->measure[level].node;
    bool first = *at == 0;
    uint32_t n, m;

    node_remove(node, *at);
    n = nilfs_node_count(node);
    switch (edit->measure[level].mend) {
    case SHARE_LEFT:
        m = nilfs_node_count(sibling);
        shift_right(sibling, node, (n + m) / 2 - n);
        first = true;
        break;
    case SHARE_RIGHT:
        m = nilfs_node_count(sibling);
        shift_left(node, sibling, (n + m) / 2 - n);
        parent->node.keys[parent->at + 1] = sibling->keys[0];
        break;
    case MERGE_LEFT:
        shift_left(sibling, node, n);
        *at = parent->at;
        return nilfs_node_free(edit->path.file, nilfs_node_pointer(&parent->node, *at));
    case MERGE_RIGHT:
        shift_left(node, sibling, nilfs_node_count(sibling));
        if (first)
            keys_correct(&edit->path, level);
        *at = parent->at + 1;
        return nilfs_node_free(edit->path.file, nilfs_node_pointer(&parent->node, *at));
    case MERGE_NOTHING:
        *at = parent->at;
        return nilfs_node_free(edit->path.file, nilfs_node_pointer(&parent->node, *at));
    default:
        break;
    }
    if (first && nilfs_node_count(node) > 0)
        keys_correct(&edit->path, level);
    return 0;
}

/* As long as the root's only child is a changed node that fits into the root, it moves there. It is
 * one exactly if the deletion has made it so small. */
static int root_shrink(struct nilfs_file *file) {
    struct nilfs_node root = nilfs_node_root(file);
    int rc = 0;

    while (rc == 0 && root.header->level > 1 && nilfs_node_count(&root) == 1) {
        struct nilfs_view view;
        uint64_t pointer = nilfs_node_pointer(&root, 0);
        rc = nilfs_node_child(file, &root, root.header->level, 0, &view);
        if (rc)
            break;
        struct nilfs_node child = nilfs_node_block(file, view.data);
        uint32_t count = nilfs_node_count(&child);
        bool fits = view.changed && count <= root.capacity;
        if (fits) {
            entries_move(&root, 0, &child, 0, count);
            count_set(&root, count);
            root.header->level--;
        }
        nilfs_view_put(&view);
        if (!fits)
            break;
        rc = nilfs_node_free(file, pointer);
    }
    return rc;
}

/* A tree whose keys are below NILFS_ROOT_CHILDREN, or that is empty, becomes a direct map. (A map
 * with keys up to 5 could be one, too; but then it would go to and fro more often.) */
static void root_to_direct(struct nilfs_file *file) {
    struct nilfs_node root = nilfs_node_root(file);
    struct nilfs_disk_bmap direct = {0};
    uint32_t count = nilfs_node_count(&root);

    if (count > 0 &&
        (root.header->level > 1 || nilfs_node_key(&root, count - 1) >= NILFS_ROOT_CHILDREN))
        return;
    for (uint32_t i = 0; i < count; i++)
        direct.u.direct[nilfs_node_key(&root, i)] = root.pointers[i];
    file->bmap = direct;
}

/* Takes the entry out where the leaf of the hint has enough others, and it is not the first. */
static bool delete_by_hint(struct nilfs_file *file, uint64_t key) {
    struct nilfs_node leaf;

    if (!nilfs_btree_hint(file, key, &leaf) || nilfs_node_count(&leaf) <= node_minimum(&leaf))
        return false;
    uint32_t at = nilfs_node_search(&leaf, key);
    if (at == 0 || at == nilfs_node_count(&leaf) || nilfs_node_key(&leaf, at) != key)
        return false;
    node_remove(&leaf, at);
    return true;
}

int nilfs_btree_delete(struct nilfs_file *file, uint64_t key) {
    struct edit edit;

    if (delete_by_hint(file, key))
        return 0;
    int rc = nilfs_path_find(file, key, 1, &edit.path);
    if (rc)
        return rc;
    edit_begin(&edit);
    rc = nilfs_path_found(&edit.path, key) ? edit_plan(&edit, want_find) : -ENOENT;
    if (rc) {
        edit_end(&edit);
        return rc;
    }
    rc = edit_prepare(&edit);
    uint32_t at = edit.path.step[1].at;
    for (uint32_t level = 1; rc == 0 && level <= edit.highest; level++)
        rc = delete_perform(&edit, level, &at);
    if (rc == 0 && edit.measure[1].mend == MEND_NONE)
        hint_note(&edit.path);
    else
        hint_forget(file);
    edit_end(&edit);
    if (rc == 0)
        rc = root_shrink(file);
    if (rc == 0)
        root_to_direct(file);
    return rc ? nilfs_fail(file->nilfs, rc) : 0;
}

/* --- from a direct map ------------------------------------------------------------------------ */

int nilfs_btree_grow_direct(struct nilfs_file *file, uint64_t key, uint64_t pointer) {
    struct nilfs_disk_bmap direct = file->bmap;
    struct nilfs_node root, node;
    struct nilfs_block *block = NULL;
    uint32_t total = 1, n = 0;
    int rc = nilfs_file_mark_dirty(file);

    if (rc)
        return rc;
    for (uint32_t i = 0; i < NILFS_DIRECT_BLOCKS; i++)
        total += le64_load(direct.u.direct[i]) != 0;
    if (total > NILFS_ROOT_CHILDREN) {
        rc = nilfs_node_make(file, 1, pointer + 1, &block);
        if (rc)
            return rc;
    }
    file->bmap = (struct nilfs_disk_bmap){.head.node.flags = NILFS_NODE_FLAG_ROOT,
                                          .head.node.level = block ? 2 : 1};
    root = nilfs_node_root(file);
    node = block ? nilfs_node_block(file, block->data) : root;
    for (uint32_t i = 0; i < NILFS_DIRECT_BLOCKS; i++)
        if (le64_load(direct.u.direct[i]) != 0)
            entry_set(&node, n++, i, le64_load(direct.u.direct[i]));
    entry_set(&node, n++, key, pointer);
    count_set(&node, n);
    if (block) {
        entry_set(&root, 0, nilfs_node_key(&node, 0), block->pointer);
        count_set(&root, 1);
    }
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/oracle.h.
 */
#include "crash/oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- what is durable -------------------------------------------------------------------------- */

void oracle_start(struct oracle *oracle, const struct recording *recording) {
    *oracle = (struct oracle){.recording = recording, .position = recording->start};
}

void oracle_advance(struct oracle *oracle, size_t position) {
    const struct write_log *log = &oracle->recording->log;

    for (; oracle->position < position; oracle->position++) {
        const struct record *record = &log->records[oracle->position];

        if (record->kind != RECORD_MARK)
            continue;
        unsigned number = MARK_NUMBER(record->offset);
        if (!MARK_IS_END(record->offset))
            oracle_begun(oracle, number);
        else if (oracle->recording->result[number] == 0)
            oracle_ended(oracle, number);
    }
}

void oracle_begun(struct oracle *oracle, unsigned number) {
    oracle->newest = oracle->recording->tree_after[number];
}

static uint64_t parent_ino(const struct snapshot *tree, const struct node *node) {
    char path[NODE_PATH_MAX];
    char *slash;

    memcpy(path, node->path, sizeof(path));
    slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    const struct node *parent = snapshot_find(tree, path);
    return parent ? parent->ino : 0;
}

/* The same entry of the same directory, wherever that is by now. */
static bool same_entry(const struct snapshot *a, const struct node *node, const struct snapshot *b,
                       const struct node *other) {
    const char *name = strrchr(node->path, '/'), *other_name = strrchr(other->path, '/');

    if (!name || !other_name) /* the root */
        return name == other_name;
    return strcmp(name, other_name) == 0 && parent_ino(a, node) == parent_ino(b, other);
}

/* Did the inode change from this tree to the next: names, links, attribute (`data_only`: its
 * existence), size or contents (`data_only`: size)? */
static bool inode_touched(const struct snapshot *before, const struct snapshot *after, uint64_t ino,
                          bool data_only) {
    const struct node *old = snapshot_find_inode(before, ino);
    const struct node *new = snapshot_find_inode(after, ino);

    if (!old || !new)
        return old != new;
    if (data_only)
        return old->size != new->size;
    return !same_entry(before, old, after, new) || !node_same_metadata(before, old, after, new) ||
           !node_same_data(before, old, after, new);
}

static void raise_floor(struct oracle *oracle, unsigned tree) {
    if (tree > oracle->floor)
        oracle->floor = tree;
}

/* An fsync makes durable all that was done to the inode, and thus what was done before that. */
static void inode_durable(struct oracle *oracle, uint64_t ino, unsigned tree, bool data_only) {
    const struct snapshot *trees = oracle->recording->trees;
    unsigned touched = tree, i = 0;

    while (touched > 0 && !inode_touched(&trees[touched - 1], &trees[touched], ino, data_only))
        touched--;
    raise_floor(oracle, touched);
    while (i < oracle->durable_count && oracle->durable[i].ino != ino)
        i++;
    assert(i < ORACLE_INODES);
    if (i == oracle->durable_count)
        oracle->durable_count++;
    oracle->durable[i].ino = ino;
    oracle->durable[i].tree = tree;
    oracle->durable[i].names = data_only ? touched : tree;
}

void oracle_ended(struct oracle *oracle, unsigned number) {
    const struct recording *recording = oracle->recording;
    unsigned tree = recording->tree_after[number];
    bool unmount = number == UNMOUNT(recording->workload);
    const struct op *op = &recording->workload->ops[number];

    if (unmount || op->kind == OP_SYNC) {
        raise_floor(oracle, tree);
        oracle->data_floor = tree;
        oracle->durable_count = 0;
        oracle->unmounted = unmount;
    } else if (op->kind == OP_FSYNC || op->kind == OP_FDATASYNC) {
        const char *path = op->name == NAME_ROOT ? "" : name_paths[op->name];
        const struct node *node = snapshot_find(&recording->trees[tree], path);

        if (node)
            inode_durable(oracle, node->ino, tree, op->kind == OP_FDATASYNC);
    }
}

static unsigned data_floor_of(const struct oracle *oracle, uint64_t ino) {
    for (unsigned i = 0; i < oracle->durable_count; i++)
        if (oracle->durable[i].ino == ino)
            return oracle->durable[i].tree;
    return oracle->data_floor;
}

/* --- contents --------------------------------------------------------------------------------- */

/* A file's contents in the trees from its floor on. */
struct versions {
    const struct snapshot *trees[OPS_MAX + 1];
    const struct node *nodes[OPS_MAX + 1];
    unsigned count;
    uint64_t smallest, largest; /* sizes */
};

static void versions_find(const struct oracle *oracle, uint64_t ino, struct versions *versions) {
    versions->count = 0;
    versions->smallest = UINT64_MAX;
    versions->largest = 0;
    for (unsigned i = data_floor_of(oracle, ino); i <= oracle->newest; i++) {
        const struct snapshot *tree = &oracle->recording->trees[i];
        const struct node *node = snapshot_find_inode(tree, ino);

        if (!node || !S_ISREG(node->mode))
            continue;
        versions->trees[versions->count] = tree;
        versions->nodes[versions->count++] = node;
        if (node->size < versions->smallest)
            versions->smallest = node->size;
        if (node->size > versions->largest)
            versions->largest = node->size;
    }
}

static bool byte_allowed(const struct versions *versions, uint64_t offset, unsigned char byte) {
    if (byte == 0 && offset >= versions->smallest)
        return true;
    for (unsigned i = 0; i < versions->count; i++)
        if (offset < versions->nodes[i]->size &&
            node_data(versions->trees[i], versions->nodes[i])[offset] == byte)
            return true;
    return false;
}

/* May the block at `offset` be a new one: does its page differ between versions, or their blocks?
 */
static bool page_changed(const struct versions *versions, uint64_t offset) {
    uint64_t start = offset - offset % PAGE_SIZE_BYTES, end = start + PAGE_SIZE_BYTES;

    if (end > versions->smallest)
        end = versions->smallest;
    if (start >= end)
        return true;
    const unsigned char *first = node_data(versions->trees[0], versions->nodes[0]) + start;
    for (unsigned i = 1; i < versions->count; i++)
        if (versions->nodes[i]->sectors != versions->nodes[0]->sectors ||
            memcmp(first, node_data(versions->trees[i], versions->nodes[i]) + start, end - start))
            return true;
    return end < versions->largest && end % PAGE_SIZE_BYTES != 0;
}

static bool same_as_a_version(const struct versions *versions, const struct snapshot *found,
                              const struct node *node) {
    for (unsigned i = versions->count; i-- > 0;)
        if (node_same_data(versions->trees[i], versions->nodes[i], found, node))
            return true;
    return false;
}

static bool contents_allowed(const struct oracle *oracle, enum expectation expectation,
                             const struct snapshot *found, const struct node *node, char *why,
                             size_t size) {
    const unsigned char *bytes = node_data(found, node);
    struct versions versions;

    versions_find(oracle, node->ino, &versions);
    if (versions.count == 0 || same_as_a_version(&versions, found, node))
        return true;
    if (node->size < versions.smallest || node->size > versions.largest) {
        snprintf(why, size, "'%s' has %" PRIu64 " bytes; it had %" PRIu64 " to %" PRIu64,
                 node->path, node->size, versions.smallest, versions.largest);
        return false;
    }
    for (uint64_t i = 0; i < node->size; i++) {
        if (byte_allowed(&versions, i, bytes[i]) ||
            (expectation == EXPECT_WRITEBACK && page_changed(&versions, i)))
            continue;
        snprintf(why, size, "'%s' has at %" PRIu64 " %s (0x%02x)", node->path, i,
                 bytes[i] == POISON ? "what an old block held"
                 : bytes[i] == 0    ? "a zero instead of durable data"
                                    : "a byte that was not there",
                 bytes[i]);
        return false;
    }
    return true;
}

/* --- trees ------------------------------------------------------------------------------------ */

static bool tree_in_order(const struct oracle *oracle, const struct snapshot *found, char *why,
                          size_t size) {
    const struct snapshot *trees = oracle->recording->trees;
    char difference[256];

    for (unsigned i = oracle->newest + 1; i-- > oracle->floor;)
        if (!snapshot_differs(&trees[i], found, difference, sizeof(difference)))
            return true;
    /* The last comparison was with the durable tree. */
    if (oracle->floor == oracle->newest)
        snprintf(why, size, "not the durable tree: %s", difference);
    else
        snprintf(why, size, "none of the %u trees since the durable one; compared with that, %s",
                 oracle->newest - oracle->floor + 1, difference);
    return false;
}

/* The same inode with the same attributes and blocks; a directory may have other entries. */
static bool same_but_entries(const struct snapshot *a, const struct node *node,
                             const struct snapshot *b, const struct node *other) {
    return node->ino == other->ino && node->mode == other->mode &&
           (S_ISDIR(node->mode) || node->nlink == other->nlink) &&
           node->sectors == other->sectors && node->value_length == other->value_length &&
           memcmp(node->value, other->value, node->value_length) == 0 &&
           node_same_data(a, node, b, other);
}

/* Does the path mean the same file, unchanged, in every tree from number `from` on? */
static bool node_untouched(const struct oracle *oracle, unsigned from, const struct node *node) {
    const struct snapshot *trees = oracle->recording->trees;

    for (unsigned i = from + 1; i <= oracle->newest; i++) {
        const struct node *later = snapshot_find(&trees[i], node->path);

        if (!later || !same_but_entries(&trees[from], node, &trees[i], later))
            return false;
    }
    return true;
}

/* The same for a node of tree `from`, with all directories above it since the last sync. */
static bool untouched(const struct oracle *oracle, unsigned from, const struct node *node) {
    const struct snapshot *synced = &oracle->recording->trees[oracle->data_floor];
    char path[NODE_PATH_MAX];

    if (!node_untouched(oracle, from, node))
        return false;
    memcpy(path, node->path, sizeof(path));
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        const struct node *above = snapshot_find(synced, path);
        if (!above || !node_untouched(oracle, oracle->data_floor, above))
            return false;
    }
    return true;
}

/* A node that was durable as it is in tree `from`: if nothing has touched it, it must be there. */
static bool node_survived(const struct oracle *oracle, unsigned from, const struct node *node,
                          const struct snapshot *found, char *why, size_t size) {
    const struct snapshot *durable = &oracle->recording->trees[from];
    const struct node *other = snapshot_find(found, node->path);

    if (!untouched(oracle, from, node))
        return true;
    if (!other || other->ino != node->ino || other->mode != node->mode) {
        snprintf(why, size, "'%s' was durable and is %s", node->path,
                 !other             ? "missing"
                 : other->mode == 0 ? "beyond reading"
                                    : "another file");
        return false;
    }
    if (S_ISREG(node->mode) && !node_same_data(durable, node, found, other)) {
        snprintf(why, size, "'%s' was durable and has other contents", node->path);
        return false;
    }
    return true;
}

static bool durable_survived(const struct oracle *oracle, const struct snapshot *found, char *why,
                             size_t size) {
    const struct snapshot *trees = oracle->recording->trees;
    const struct snapshot *synced = &trees[oracle->data_floor];

    for (size_t i = 0; i < synced->count; i++)
        if (!node_survived(oracle, oracle->data_floor, &synced->nodes[i], found, why, size))
            return false;
    for (unsigned i = 0; i < oracle->durable_count; i++) {
        unsigned tree = oracle->durable[i].names;
        const struct node *node = snapshot_find_inode(&trees[tree], oracle->durable[i].ino);

        if (node && !node_survived(oracle, tree, node, found, why, size))
            return false;
    }
    return true;
}

bool oracle_allows(const struct oracle *oracle, enum expectation expectation,
                   const struct snapshot *found, char *why, size_t size) {
    if (expectation == EXPECT_REPAIR && !oracle->unmounted)
        return durable_survived(oracle, found, why, size);
    if (!tree_in_order(oracle, found, why, size))
        return false;
    for (size_t i = 0; i < found->count; i++)
        if (S_ISREG(found->nodes[i].mode) &&
            !contents_allowed(oracle, expectation, found, &found->nodes[i], why, size))
            return false;
    return true;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/sequence.h.
 */
#include "crash/sequence.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "fs/random.h"

const char *const name_paths[NAMES] = {
    "/foo", "/bar", "/A/foo", "/A/bar", "/A", "/B", "/B/foo", "/B/bar", "/A/C", "/A/C/foo", "/",
};

enum name name_parent(enum name name) {
    static const enum name parents[NAMES] = {
        [NAME_FOO] = NAME_ROOT,    [NAME_BAR] = NAME_ROOT,  [NAME_A_FOO] = NAME_A,
        [NAME_A_BAR] = NAME_A,     [NAME_A] = NAME_ROOT,    [NAME_B] = NAME_ROOT,
        [NAME_B_FOO] = NAME_B,     [NAME_B_BAR] = NAME_B,   [NAME_A_C] = NAME_A,
        [NAME_A_C_FOO] = NAME_A_C, [NAME_ROOT] = NAME_ROOT,
    };
    return parents[name];
}

/* --- operations ------------------------------------------------------------------------------- */

/* What is made durable after an operation. */
enum persist { PERSIST_NOTHING, PERSIST_FILE, PERSIST_ALL, PERSIST_DATA, PERSIST_PARENT };
#define PERSIST_BETWEEN 3u /* after an operation that is not the last: the first three */
#define PERSIST_LAST    5u

enum shape { SHAPE_FILE, SHAPE_TWO_FILES, SHAPE_DIRECTORY, SHAPE_OTHER };

static const struct kind {
    const char *text;
    enum shape shape;
    uint32_t offset, length;
} kinds[OP_KINDS] = {
    [OP_CREATE] = {"create", SHAPE_FILE, 0, 0},
    [OP_APPEND] = {"append", SHAPE_FILE, UINT32_MAX, 9000}, /* past a small block map's end */
    [OP_OVERWRITE] = {"overwrite", SHAPE_FILE, 1500, 2000},
    [OP_FALLOC] = {"falloc", SHAPE_FILE, 3000, 7000},
    [OP_PUNCH] = {"punch", SHAPE_FILE, 900, 3300},
    [OP_SHRINK] = {"truncate", SHAPE_FILE, 0, 700},
    [OP_GROW] = {"truncate", SHAPE_FILE, 0, 9500},
    [OP_UNLINK] = {"unlink", SHAPE_FILE, 0, 0},
    [OP_SYMLINK] = {"symlink", SHAPE_FILE, 0, 0},
    [OP_SETXATTR] = {"setxattr", SHAPE_FILE, 0, 0},
    [OP_REMOVEXATTR] = {"removexattr", SHAPE_FILE, 0, 0},
    [OP_LINK] = {"link", SHAPE_TWO_FILES, 0, 0},
    [OP_RENAME] = {"rename", SHAPE_TWO_FILES, 0, 0},
    [OP_RENAME_OVER] = {"rename over", SHAPE_TWO_FILES, 0, 0},
    [OP_EXCHANGE] = {"exchange", SHAPE_TWO_FILES, 0, 0},
    [OP_MKDIR] = {"mkdir", SHAPE_DIRECTORY, 0, 0},
    [OP_RMDIR] = {"rmdir", SHAPE_DIRECTORY, 0, 0},
    [OP_FSYNC] = {"fsync", SHAPE_OTHER, 0, 0},
    [OP_FDATASYNC] = {"fdatasync", SHAPE_OTHER, 0, 0},
    [OP_SYNC] = {"sync", SHAPE_OTHER, 0, 0},
    [OP_WAIT] = {"wait", SHAPE_OTHER, 0, 40}, /* seconds */
};

#define FILES           4u /* NAME_FOO to NAME_A_BAR */
#define DIRECTORIES     2u /* NAME_A, NAME_B */
#define DIRECTORY_MOVES 3u /* rename A B; over an empty one; exchange */
#define FIRST_TWO_FILES OP_LINK
#define FIRST_DIRECTORY OP_MKDIR
#define FILE_OPS        ((uint32_t)FIRST_TWO_FILES * FILES)
#define TWO_FILES_OPS   ((FIRST_DIRECTORY - FIRST_TWO_FILES) * FILES * (FILES - 1))
#define DIRECTORY_OPS   ((OP_FSYNC - FIRST_DIRECTORY) * DIRECTORIES)
#define OP_CHOICES      (FILE_OPS + TWO_FILES_OPS + DIRECTORY_OPS + DIRECTORY_MOVES)

bool op_changes(enum op_kind kind) {
    return kind < OP_FSYNC;
}

static struct op op_new(enum op_kind kind, enum name name, enum name other) {
    return (struct op){kind, name, other, kinds[kind].offset, kinds[kind].length};
}

/* The operation of a number below OP_CHOICES. */
static struct op op_choice(uint32_t number) {
    if (number < FILE_OPS)
        return op_new((enum op_kind)(number / FILES), (enum name)(number % FILES), NAME_FOO);
    number -= FILE_OPS;
    if (number < TWO_FILES_OPS) {
        uint32_t pair = number % (FILES * (FILES - 1));
        uint32_t name = pair / (FILES - 1), other = pair % (FILES - 1);

        return op_new((enum op_kind)(FIRST_TWO_FILES + number / (FILES * (FILES - 1))),
                      (enum name)name, (enum name)(other + (other >= name)));
    }
    number -= TWO_FILES_OPS;
    if (number < DIRECTORY_OPS)
        return op_new((enum op_kind)(FIRST_DIRECTORY + number / DIRECTORIES),
                      (enum name)(NAME_A + number % DIRECTORIES), NAME_FOO);
    number -= DIRECTORY_OPS;
    return op_new((enum op_kind)(OP_RENAME + number), NAME_A, NAME_B);
}

static bool op_has_other(const struct op *op) {
    return op->kind == OP_LINK || op->kind == OP_RENAME || op->kind == OP_RENAME_OVER ||
           op->kind == OP_EXCHANGE;
}

void op_text(const struct op *op, char *text, size_t size) {
    const struct kind *kind = &kinds[op->kind];

    if (op->kind == OP_SYNC)
        snprintf(text, size, "sync");
    else if (op->kind == OP_WAIT)
        snprintf(text, size, "wait %u s", op->length);
    else if (op_has_other(op))
        snprintf(text, size, "%s %s %s", kind->text, name_paths[op->name], name_paths[op->other]);
    else if (op->offset == UINT32_MAX)
        snprintf(text, size, "%s %s %u", kind->text, name_paths[op->name], op->length);
    else if (op->length)
        snprintf(text, size, "%s %s %u %u", kind->text, name_paths[op->name], op->offset,
                 op->length);
    else
        snprintf(text, size, "%s %s", kind->text, name_paths[op->name]);
}

/* --- sequences -------------------------------------------------------------------------------- */

struct choice {
    struct op op;
    enum persist persist;
};

uint64_t sequence_numbers(unsigned length) {
    uint64_t count = (uint64_t)OP_CHOICES * PERSIST_LAST;

    for (unsigned i = 1; i < length; i++)
        count *= (uint64_t)OP_CHOICES * PERSIST_BETWEEN;
    return count;
}

static void sequence_decode(unsigned length, uint64_t number, struct choice *choices) {
    for (unsigned i = length; i-- > 0;) {
        uint64_t persists = i + 1 == length ? PERSIST_LAST : PERSIST_BETWEEN;

        choices[i].persist = (enum persist)(number % persists);
        number /= persists;
        choices[i].op = op_choice((uint32_t)(number % OP_CHOICES));
        number /= OP_CHOICES;
    }
}

/* An operation whose name is gone or no file has no file to be made durable. */
static bool persist_possible(const struct choice *choice) {
    enum op_kind kind = choice->op.kind;
    bool no_file = kind == OP_UNLINK || kind == OP_RMDIR || kind == OP_SYMLINK;

    return !no_file || (choice->persist != PERSIST_FILE && choice->persist != PERSIST_DATA);
}

/* The second name of a directory comes after its first. */
static bool name_in_order(enum name name, unsigned *seen) {
    bool second = name == NAME_BAR || name == NAME_A_BAR;

    if (second && !(*seen & 1u << (name - 1)))
        return false;
    *seen |= 1u << name;
    return true;
}

bool sequence_canonical(unsigned length, uint64_t number) {
    struct choice choices[3];
    unsigned seen = 0;

    assert(length <= 3);
    sequence_decode(length, number, choices);
    for (unsigned i = 0; i < length; i++) {
        const struct op *op = &choices[i].op;

        if (!persist_possible(&choices[i]) || !name_in_order(op->name, &seen) ||
            (op_has_other(op) && !name_in_order(op->other, &seen)))
            return false;
    }
    return true;
}

/* --- making what operations need -------------------------------------------------------------- */

/* What is known of a name while a sequence is being made. */
enum known { UNKNOWN, ABSENT, PRESENT_FILE, PRESENT_DIRECTORY, PRESENT_SYMLINK };

struct maker {
    struct workload *workload;
    enum known known[NAMES];
};

static void emit(struct maker *maker, struct op op) {
    struct workload *workload = maker->workload;

    assert(workload->count < OPS_MAX);
    workload->ops[workload->count++] = op;
}

/* No name can be below a directory that is not there. */
static void now(struct maker *maker, enum name name, enum known known) {
    maker->known[name] = known;
    if (known != ABSENT)
        return;
    for (enum name child = 0; child < NAME_ROOT; child++)
        if (name_parent(child) == name)
            now(maker, child, ABSENT);
}

static void need(struct maker *maker, enum name name, enum known wanted);

static void make_absent(struct maker *maker, enum name name) {
    if (maker->known[name] == PRESENT_DIRECTORY) {
        for (enum name child = 0; child < NAME_ROOT; child++)
            if (name_parent(child) == name)
                need(maker, child, ABSENT);
        emit(maker, op_new(OP_RMDIR, name, NAME_FOO));
    } else {
        emit(maker, op_new(OP_UNLINK, name, NAME_FOO));
    }
    now(maker, name, ABSENT);
}

static void make_present(struct maker *maker, enum name name, enum known wanted) {
    if (maker->known[name] != ABSENT)
        make_absent(maker, name);
    if (wanted == PRESENT_DIRECTORY) {
        emit(maker, op_new(OP_MKDIR, name, NAME_FOO));
    } else {
        struct op append = op_new(OP_APPEND, name, NAME_FOO);

        append.length = SETUP_BYTES;
        emit(maker, op_new(OP_CREATE, name, NAME_FOO));
        emit(maker, append);
    }
    now(maker, name, wanted);
}

/* Makes the name what it has to be: before the workload, if that is still possible. */
static void need(struct maker *maker, enum name name, enum known wanted) {
    if (name == NAME_ROOT)
        return;
    need(maker, name_parent(name), PRESENT_DIRECTORY);
    if (maker->known[name] == wanted)
        return;
    if (maker->known[name] != UNKNOWN) {
        if (wanted == ABSENT)
            make_absent(maker, name);
        else
            make_present(maker, name, wanted);
        return;
    }
    now(maker, name, wanted);
    if (wanted == PRESENT_FILE)
        maker->workload->setup[name] = SETUP_FILE;
    else if (wanted == PRESENT_DIRECTORY)
        maker->workload->setup[name] = SETUP_DIRECTORY;
}

/* The directory is to be moved or removed: what is below it is known from here on. */
static void settle_children(struct maker *maker, enum name name, bool empty) {
    for (enum name child = 0; child < NAME_ROOT; child++) {
        if (name_parent(child) != name)
            continue;
        if (maker->known[child] == UNKNOWN)
            maker->known[child] = ABSENT;
        else if (empty)
            need(maker, child, ABSENT);
    }
}

/* What is known of the two names changes places; of directories, what is known below them, too. */
static void exchange_known(struct maker *maker, enum name name, enum name other) {
    enum known first = maker->known[name];

    maker->known[name] = maker->known[other];
    maker->known[other] = first;
    if (name == NAME_A && other == NAME_B) {
        exchange_known(maker, NAME_A_FOO, NAME_B_FOO);
        exchange_known(maker, NAME_A_BAR, NAME_B_BAR);
    }
}

static void prepare_two(struct maker *maker, const struct op *op) {
    bool directory = op->name == NAME_A;
    enum known present = directory ? PRESENT_DIRECTORY : PRESENT_FILE;
    bool over = op->kind == OP_RENAME_OVER || op->kind == OP_EXCHANGE;

    need(maker, op->name, present);
    need(maker, op->other, over ? present : ABSENT);
    if (directory) {
        settle_children(maker, op->name, false);
        settle_children(maker, op->other, op->kind == OP_RENAME_OVER);
    }
}

static void prepare(struct maker *maker, const struct op *op) {
    switch (op->kind) {
    case OP_CREATE:
    case OP_SYMLINK:
    case OP_MKDIR:
        need(maker, op->name, ABSENT);
        break;
    case OP_RMDIR:
        need(maker, op->name, PRESENT_DIRECTORY);
        settle_children(maker, op->name, true);
        break;
    case OP_LINK:
    case OP_RENAME:
    case OP_RENAME_OVER:
    case OP_EXCHANGE:
        prepare_two(maker, op);
        break;
    default:
        need(maker, op->name, PRESENT_FILE);
        break;
    }
}

static void conclude(struct maker *maker, const struct op *op) {
    switch (op->kind) {
    case OP_CREATE:
        now(maker, op->name, PRESENT_FILE);
        break;
    case OP_SYMLINK:
        now(maker, op->name, PRESENT_SYMLINK);
        break;
    case OP_MKDIR:
        now(maker, op->name, PRESENT_DIRECTORY);
        break;
    case OP_UNLINK:
    case OP_RMDIR:
        now(maker, op->name, ABSENT);
        break;
    case OP_LINK:
        now(maker, op->other, PRESENT_FILE);
        break;
    case OP_RENAME:
    case OP_RENAME_OVER:
        exchange_known(maker, op->name, op->other);
        now(maker, op->name, ABSENT);
        break;
    case OP_EXCHANGE:
        exchange_known(maker, op->name, op->other);
        break;
    default:
        break;
    }
}

static void emit_persist(struct maker *maker, const struct choice *choice) {
    const struct op *op = &choice->op;
    enum name name = op_has_other(op) ? op->other : op->name;

    if (choice->persist == PERSIST_FILE)
        emit(maker, op_new(OP_FSYNC, name, NAME_FOO));
    else if (choice->persist == PERSIST_DATA)
        emit(maker, op_new(OP_FDATASYNC, name, NAME_FOO));
    else if (choice->persist == PERSIST_PARENT)
        emit(maker, op_new(OP_FSYNC, name_parent(name), NAME_FOO));
    else if (choice->persist == PERSIST_ALL)
        emit(maker, op_new(OP_SYNC, NAME_ROOT, NAME_FOO));
}

static void make_sequence(struct maker *maker, unsigned length, uint64_t number) {
    struct choice choices[3];

    sequence_decode(length, number, choices);
    for (unsigned i = 0; i < length; i++) {
        prepare(maker, &choices[i].op);
        emit(maker, choices[i].op);
        conclude(maker, &choices[i].op);
        emit_persist(maker, &choices[i]);
    }
}

/* --- random workloads: mostly what can be done; what fails must change nothing ---------------- */

#define RANDOM_OFFSET_MAX 40000u
#define RANDOM_LENGTH_MAX 12000u
#define RANDOM_TRIES      8u

/* Any operation on any names. */
static struct op op_random(struct random *random) {
    enum op_kind kind = (enum op_kind)random_below(random, OP_KINDS);
    struct op op = op_new(kind, (enum name)random_below(random, NAME_ROOT),
                          (enum name)random_below(random, NAME_ROOT));

    if (kind == OP_SYNC || kind == OP_WAIT)
        op.length = 1 + random_below(random, 8); /* seconds */
    else if (kind == OP_APPEND)
        op.length = 1 + random_below(random, RANDOM_LENGTH_MAX);
    else if (kind <= OP_GROW && kind != OP_CREATE)
        op.offset = random_below(random, RANDOM_OFFSET_MAX),
        op.length = 1 + random_below(random, RANDOM_LENGTH_MAX);
    return op;
}

/* Is the name what the operation needs? An operation to which this does not apply fits. */
static bool op_fits(const struct maker *maker, const struct op *op) {
    enum known known = maker->known[op->name];

    if (op->kind >= OP_SYNC)
        return true;
    if (maker->known[name_parent(op->name)] != PRESENT_DIRECTORY)
        return false;
    if (op->kind == OP_CREATE || op->kind == OP_SYMLINK || op->kind == OP_MKDIR)
        return known == ABSENT;
    if (op->kind == OP_RMDIR)
        return known == PRESENT_DIRECTORY;
    return op->kind <= OP_LINK && op->kind != OP_SETXATTR ? known == PRESENT_FILE : known != ABSENT;
}

static void make_random(struct maker *maker, unsigned length, uint64_t number) {
    struct random random = {number};

    for (enum name name = 0; name < NAME_ROOT; name++)
        maker->known[name] = ABSENT;
    maker->known[NAME_FOO] = maker->known[NAME_A_FOO] = PRESENT_FILE;
    maker->known[NAME_A] = maker->known[NAME_ROOT] = PRESENT_DIRECTORY;
    maker->workload->setup[NAME_FOO] = maker->workload->setup[NAME_A_FOO] = SETUP_FILE;
    maker->workload->setup[NAME_A] = SETUP_DIRECTORY;
    for (unsigned i = 0; i < length; i++) {
        struct op op = op_random(&random);
        unsigned tries = 0;

        while (!op_fits(maker, &op) && tries++ < RANDOM_TRIES)
            op = op_random(&random);
        emit(maker, op);
        if (op_fits(maker, &op))
            conclude(maker, &op);
    }
}

void workload_make(enum crash_mode mode, uint64_t number, unsigned length,
                   struct workload *workload) {
    struct maker maker = {.workload = workload};

    *workload = (struct workload){.mode = mode, .number = number};
    if (mode <= CRASH_SEQ_3)
        make_sequence(&maker, mode - CRASH_SEQ_1 + 1, number);
    else
        make_random(&maker, length, number);
    /* Then nothing happens for a while: what was not made durable is written back. */
    emit(&maker, op_new(OP_WAIT, NAME_ROOT, NAME_FOO));
}

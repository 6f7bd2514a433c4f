/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash (fs/random.h only). Workloads: sequences of operations over a few names, each made
 * from a number.
 *
 * A sequence of n operations is named by a number in a mixed radix: for each position an operation
 * with its names, and what is made durable after it. Names of files in one directory are equal but
 * for their spelling; of sequences that differ only by swapping them, one is *canonical*, and only
 * that is run.
 *
 * What an operation needs (a file to append to, no file where one is created) is there: from the
 * start, durable, if no earlier operation of the sequence has touched the name; else an operation
 * that makes it so is put in before.
 */
#ifndef LAYOUTFS_CRASH_SEQUENCE_H
#define LAYOUTFS_CRASH_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crash/crash.h"

enum op_kind {
    OP_CREATE,
    OP_APPEND,
    OP_OVERWRITE,
    OP_FALLOC,
    OP_PUNCH,
    OP_SHRINK,
    OP_GROW,
    OP_UNLINK,
    OP_SYMLINK,
    OP_SETXATTR,
    OP_REMOVEXATTR,
    OP_LINK,
    OP_RENAME,
    OP_RENAME_OVER,
    OP_EXCHANGE,
    OP_MKDIR,
    OP_RMDIR,
    OP_FSYNC,
    OP_FDATASYNC,
    OP_SYNC,
    OP_WAIT, /* time passes, and periodic work is done */
    OP_KINDS
};

enum name {
    NAME_FOO,
    NAME_BAR,
    NAME_A_FOO,
    NAME_A_BAR,
    NAME_A,
    NAME_B,
    NAMES_EXHAUSTIVE, /* of the sequences; random workloads use all */
    NAME_B_FOO = NAMES_EXHAUSTIVE,
    NAME_B_BAR,
    NAME_A_C,
    NAME_A_C_FOO,
    NAME_ROOT, /* for OP_FSYNC */
    NAMES
};
extern const char *const name_paths[NAMES];
/* The directory that holds the name. */
enum name name_parent(enum name name);

struct op {
    enum op_kind kind;
    enum name name, other;   /* `other`: the new name of link and renames */
    uint32_t offset, length; /* of data operations, bytes; offset UINT32_MAX: the file's end */
};

enum setup { SETUP_NOTHING, SETUP_FILE, SETUP_DIRECTORY, SETUP_SYMLINK };

#define SETUP_BYTES 5000u /* of a file that is there from the start */
#define OPS_MAX     256u

struct workload {
    enum crash_mode mode;
    uint64_t number;
    enum setup setup[NAMES];
    struct op ops[OPS_MAX];
    unsigned count;
};

/* Numbers of sequences are below this. */
uint64_t sequence_numbers(unsigned length);
/* Is the sequence canonical? */
bool sequence_canonical(unsigned length, uint64_t number);
/* Makes the workload of a number; `length` is that of random ones. */
void workload_make(enum crash_mode mode, uint64_t number, unsigned length,
                   struct workload *workload);
/* "rename A/foo bar", for people. */
void op_text(const struct op *op, char *text, size_t size);
/* Does the operation change the tree, or only make it durable? */
bool op_changes(enum op_kind kind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model checker, in the manner of fsx and fsstress. Random operations run on a
 * filesystem and on the simplest possible model of a POSIX tree; every answer must be the same, and
 * so must the trees. A sequence is an array of operations made from a seed; a failing one is shrunk
 * by leaving operations out.
 *
 *   model.c          the tree in memory, and what each operation on names does to it
 *   model_file.c     what each operation on one object does
 *   operate.c        the same operations on a target
 *   compare.c        what is on a target against what is in the model
 *   sequence.c       sequences: made, run, shrunk, printed
 *   target.h         a filesystem under test:
 *   target_volume.c    a volume in this process
 *   target_posix.c     any directory, through system calls
 *   test_model.c     every layout in process
 *   mounted.c        a directory of a mounted filesystem
 */
#ifndef LAYOUTFS_TEST_MODEL_H
#define LAYOUTFS_TEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define MODEL_FILE_MAX   (1u << 20) /* bytes of one file */
#define MODEL_NODES      4096u
#define MODEL_SLOTS      8u /* files held open */
#define MODEL_ATTRIBUTES 3u
#define MODEL_VALUE_MAX  200u /* bytes of an extended attribute's value */
#define MODEL_NONE       UINT32_MAX

enum operation_kind {
    /* on names */
    OP_CREATE,
    OP_MKDIR,
    OP_SYMLINK,
    OP_MKNOD,
    OP_LINK,
    OP_UNLINK,
    OP_RMDIR,
    OP_RENAME,
    OP_NOREPLACE,
    OP_EXCHANGE,
    OP_WHITEOUT,
    /* on a regular file */
    OP_WRITE,
    OP_APPEND,
    OP_READ,
    OP_TRUNCATE,
    OP_OPEN_TRUNCATE,
    OP_PREALLOCATE,
    OP_KEEP_SIZE,
    OP_PUNCH,
    OP_ZERO,
    OP_ZERO_KEEP,
    OP_COLLAPSE,
    OP_INSERT,
    OP_COPY,
    OP_SEEK,
    OP_FSYNC,
    OP_OPEN,
    /* on anything */
    OP_CHMOD,
    OP_CHOWN,
    OP_UTIMENS,
    OP_XATTR,
    OP_STAT,
    /* on the whole */
    OP_CLOSE,
    OP_LIST,
    OP_VERIFY,
    OP_DROP_CACHES,
    OP_REMOUNT,
    OP_KINDS
};

/* Objects are picked by the nearest identity, which an object has from the operation that made it:
 * when operations are left out of a sequence, the others keep their meaning. */
struct operation {
    enum operation_kind kind;
    uint32_t dir, name;        /* a directory and one of the names */
    uint32_t other_dir, other; /* of link, rename, exchange */
    uint32_t file;             /* an object, or a slot */
    uint32_t other_file;       /* of copy */
    uint32_t offset, length;   /* bytes */
    uint32_t other_offset;     /* of copy: where to */
    uint32_t fill;             /* seeds contents, modes, values */
    uint32_t how;              /* buffered, direct, mapped, where a target has these */
};

/* A time stamp is known as an interval of calendar time, in nanoseconds since 1970, since nobody
 * knows when exactly within a system call it is taken. */
struct model_time {
    int64_t earliest, latest;
};

struct model_attribute {
    uint32_t length;
    bool present;
    uint8_t value[MODEL_VALUE_MAX];
};

struct model_node {
    uint32_t mode; /* 0: free */
    uint32_t identity;
    uint32_t parent; /* of a directory; of another object one that had a name of it */
    struct model_entry *entries;
    uint32_t uid, gid, rdev;
    bool whiteout;      /* whose it is differs between the kernel's filesystems and FUSE */
    bool set_id_unsure; /* nothing was changed: its set-id bits may be there or not */
    uint32_t nlink;
    uint32_t slots; /* that hold it open */
    uint32_t size;
    /* MODEL_FILE_MAX bytes, zero beyond the size; of a regular file, or a symlink's target */
    uint8_t *data;
    struct model_time mtime, ctime;
    struct model_attribute attributes[MODEL_ATTRIBUTES];
};

struct model_entry {
    struct model_entry *next;
    uint32_t node;
    char name[256];
};

/* Fresh memory from the kernel would cost more than most operations. */
struct model_spare {
    struct model_spare *next;
};

struct model {
    struct model_node nodes[MODEL_NODES]; /* 0 is the root */
    uint32_t used;                        /* nodes ever used */
    uint32_t slots[MODEL_SLOTS];          /* nodes, MODEL_NONE: closed */
    struct model_time now;                /* while the operation ran */
    struct model_spare *spare;            /* contents of files that are gone, zeroed */
    /* facts about the target */
    uint32_t block_size;    /* collapse and insert move whole ones */
    bool keeps_set_id_bits; /* who writes has CAP_FSETID */
};

struct model *model_new(void);
void model_free(struct model *model);

/* What an operation may pick. Only PICK_FILE and PICK_ANY find files that are open but have no name
 * left. */
enum model_choice { PICK_DIRECTORY, PICK_FILE, PICK_LINKABLE, PICK_ANY };
/* The one whose identity comes next to `number`; false: there is none. */
bool model_pick(const struct model *model, enum model_choice choice, uint32_t number,
                uint32_t *node);
struct model_entry *model_find(const struct model *model, uint32_t dir, const char *name);
/* A slot that holds the node open, or MODEL_NONE. */
uint32_t model_slot_of(const struct model *model, uint32_t node);
/* A path from the root; `size` bytes. */
void model_path(const struct model *model, uint32_t node, char *path, size_t size);

/* --- what the numbers of an operation stand for: the model and the targets must agree --- */
/* Names: short ones, long ones, every byte. */
void model_name(uint32_t number, char name[256]);
extern const char *const model_attribute_names[MODEL_ATTRIBUTES];
void model_bytes(uint32_t fill, uint8_t *bytes, uint32_t length);
uint32_t model_mode(const struct operation *op); /* of what it creates, with its type */
uint32_t model_rdev(const struct operation *op); /* of mknod; major << 20 | minor */
uint32_t model_link_target(const struct operation *op, char target[1024]); /* its length */
uint32_t model_owner(uint32_t number);                                     /* user or group */
int64_t model_utime(const struct operation *op); /* nanoseconds since 1970 */
/* The bytes that copy moves: what the source has from `offset` on, at most `length`. */
uint32_t model_copy_length(const struct model_node *source, const struct operation *op);
/* The operation, on a file of so many bytes, would make it larger than MODEL_FILE_MAX. */
bool model_too_large(const struct operation *op, uint32_t size);

/* Does the operation to the model: 0 or the negative errno that POSIX wants. */
int model_apply(struct model *model, const struct operation *op);
/* model_file.c: the operations from OP_WRITE to OP_STAT, to one object. */
int model_change(struct model *model, struct model_node *node, const struct operation *op);
/* Contents have changed: times and set-id bits follow. */
void model_touch(struct model *model, struct model_node *node);
/* The target has refused to change the file, though it may have moved the times already. */
void model_refused(struct model *model, struct model_node *node);
/* The mode of a file that somebody without CAP_FSETID has changed. */
uint32_t model_without_set_id(uint32_t mode);

#endif

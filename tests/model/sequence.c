/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: sequences of operations. See sequence.h.
 */
#include "tests/model/sequence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/fixture.h"

static const struct {
    const char *name;
    unsigned weight; /* in a thousand and some */
} kinds[OP_KINDS] = {
    [OP_CREATE] = {"create", 110},
    [OP_MKDIR] = {"mkdir", 40},
    [OP_SYMLINK] = {"symlink", 30},
    [OP_MKNOD] = {"mknod", 15},
    [OP_LINK] = {"link", 35},
    [OP_UNLINK] = {"unlink", 110},
    [OP_RMDIR] = {"rmdir", 35},
    [OP_RENAME] = {"rename", 70},
    [OP_NOREPLACE] = {"rename-noreplace", 10},
    [OP_EXCHANGE] = {"rename-exchange", 15},
    [OP_WHITEOUT] = {"rename-whiteout", 10},
    [OP_WRITE] = {"write", 130},
    [OP_APPEND] = {"append", 20},
    [OP_READ] = {"read", 60},
    [OP_TRUNCATE] = {"truncate", 50},
    [OP_OPEN_TRUNCATE] = {"open-truncate", 10},
    [OP_PREALLOCATE] = {"preallocate", 10},
    [OP_KEEP_SIZE] = {"preallocate-keep-size", 5},
    [OP_PUNCH] = {"punch", 20},
    [OP_ZERO] = {"zero", 8},
    [OP_ZERO_KEEP] = {"zero-keep-size", 5},
    [OP_COLLAPSE] = {"collapse", 12},
    [OP_INSERT] = {"insert", 12},
    [OP_COPY] = {"copy", 20},
    [OP_SEEK] = {"seek", 20},
    [OP_FSYNC] = {"fsync", 10},
    [OP_OPEN] = {"open", 20},
    [OP_CHMOD] = {"chmod", 20},
    [OP_CHOWN] = {"chown", 15},
    [OP_UTIMENS] = {"utimens", 15},
    [OP_XATTR] = {"xattr", 40},
    [OP_STAT] = {"stat", 40},
    [OP_CLOSE] = {"close", 15},
    [OP_LIST] = {"list", 15},
    [OP_VERIFY] = {"verify", 1},
    [OP_DROP_CACHES] = {"drop-caches", 2},
    [OP_REMOUNT] = {"remount", 1},
};

const char *sequence_kind_name(enum operation_kind kind) {
    return kinds[kind].name;
}

static enum operation_kind pick_kind(uint64_t random) {
    unsigned total = 0, kind = 0;

    for (int i = 0; i < OP_KINDS; i++)
        total += kinds[i].weight;
    uint32_t pick = (uint32_t)(random % total);
    while (pick >= kinds[kind].weight)
        pick -= kinds[kind++].weight;
    return (enum operation_kind)kind;
}

/* Most files are small, most offsets near the start, since an operation on a large file takes the
 * time of a hundred on small ones; some things only whole blocks can do. */
static void pick_range(struct operation *op, uint64_t random, uint64_t other) {
    uint32_t power = random % 13 < other % 13 ? random % 13 : other % 13;
    uint32_t reach = UINT32_C(1) << (8 + power);

    op->offset = (uint32_t)(random >> 8) % reach;
    op->length = (uint32_t)(random >> 36) % reach;
    op->other_offset = (uint32_t)other % reach;
    if (random >> 4 & 1 &&
        (op->kind == OP_COLLAPSE || op->kind == OP_INSERT || (other >> 32) % 4 == 0)) {
        op->offset &= ~UINT32_C(4095);
        op->length = (op->length + 4095) & ~UINT32_C(4095);
    }
    if (op->offset + op->length > MODEL_FILE_MAX)
        op->length = MODEL_FILE_MAX - op->offset;
}

void sequence_make(uint64_t seed, struct operation *ops, unsigned count) {
    for (unsigned n = 0; n < count; n++) {
        uint64_t a = fixture_random(&seed), b = fixture_random(&seed), c = fixture_random(&seed);
        uint64_t d = fixture_random(&seed), e = fixture_random(&seed);
        ops[n] = (struct operation){.kind = pick_kind(fixture_random(&seed)),
                                    .dir = (uint32_t)a,
                                    .name = (uint32_t)(a >> 32),
                                    .other_dir = (uint32_t)b,
                                    .other = (uint32_t)(b >> 32),
                                    .file = (uint32_t)c,
                                    .fill = (uint32_t)(c >> 32),
                                    .other_file = (uint32_t)(e >> 32),
                                    .how = (uint32_t)(e >> 24) & 0xff};
        pick_range(&ops[n], d, e);
    }
}

static void print_operation(unsigned n, const struct operation *op) {
    printf("  %u: %s dir %u name %u other %u/%u file %u, %u at %u to %u length %u fill %u how %u\n",
           n, kinds[op->kind].name, op->dir, op->name, op->other_dir, op->other, op->file,
           op->other_file, op->offset, op->other_offset, op->length, op->fill, op->how);
}

/* A file onto a directory that it lies in: both answers are true, and which of them comes first is
 * up to whether the kernel looks at the names before the filesystem does. */
static bool is_as_expected(int answer, int expected) {
    return answer == expected || (answer == -EISDIR && expected == -ENOTEMPTY);
}

static void one_operation(struct target *target, struct model *model, const struct operation *op,
                          struct difference *difference) {
    int answer;
    bool skip = operate(target, model, op, &answer, difference);
    int expected = skip ? answer : model_apply(model, op);

    if (!*difference->text && !is_as_expected(answer, expected))
        differ(difference, "%s answers %d (%s), not %d (%s)", kinds[op->kind].name, answer,
               strerror(-answer), expected, strerror(-expected));
}

static void compare_at_end(struct target *target, struct model *model,
                           struct difference *difference) {
    compare_tree(target, model, difference);
    if (*difference->text)
        return;
    int error = target->type->drop_caches(target);
    if (error)
        differ(difference, "dropping caches: %s", strerror(-error));
    compare_tree(target, model, difference);
    error = target_empty(target, model);
    if (error && !*difference->text)
        differ(difference, "removing everything: %s", strerror(-error));
}

void sequence_on_target(struct target *target, const struct operation *ops, unsigned count,
                        struct outcome *outcome) {
    struct model *model = model_new();
    struct difference *difference = &outcome->difference;

    if (!model) {
        differ(difference, "out of memory");
        return;
    }
    model->block_size = target->block_size;
    model->keeps_set_id_bits = target->keeps_set_id_bits;
    for (unsigned n = 0; n < count && !*difference->text; n++) {
        outcome->failed_at = n;
        one_operation(target, model, &ops[n], difference);
    }
    if (!*difference->text) {
        outcome->failed_at = count;
        compare_at_end(target, model, difference);
    }
    outcome->lacks = target->lacks;
    model_free(model);
}

struct outcome *sequence_outcome(void) {
    void *memory = mmap(NULL, sizeof(struct outcome), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static bool fails(sequence_run run, void *context, const struct operation *ops, unsigned count,
                  struct outcome *outcome) {
    int status;

    fflush(stdout);
    memset(outcome, 0, sizeof(*outcome));
    pid_t child = fork();
    if (child == 0) {
        run(context, ops, count, outcome);
        fflush(stdout);
        _exit(*outcome->difference.text ? 1 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        exit(EXIT_FAILURE);
    }
    if (WIFSIGNALED(status))
        differ(&outcome->difference, "killed by signal %d", WTERMSIG(status));
    else if (status != 0 && !*outcome->difference.text)
        differ(&outcome->difference, "exit status %d", WEXITSTATUS(status));
    return status != 0;
}

/* Leaves out ever smaller pieces as long as the rest still fails (delta debugging). */
static unsigned shrink(sequence_run run, void *context, struct operation *ops, unsigned count,
                       struct outcome *outcome) {
    struct operation *trial = malloc(count * sizeof(*trial));

    for (unsigned piece = (count + 1) / 2; trial && piece > 0; piece /= 2) {
        for (unsigned start = 0; start + piece <= count;) {
            memcpy(trial, ops, start * sizeof(*ops));
            memcpy(trial + start, ops + start + piece, (count - start - piece) * sizeof(*ops));
            if (fails(run, context, trial, count - piece, outcome)) {
                count -= piece;
                memcpy(ops, trial, count * sizeof(*ops));
            } else {
                start += piece;
            }
        }
    }
    free(trial);
    fails(run, context, ops, count, outcome);
    return count;
}

bool sequence_try(sequence_run run, void *context, uint64_t seed, unsigned count,
                  struct outcome *outcome) {
    struct operation *ops = calloc(count, sizeof(*ops));

    if (!ops) {
        perror("calloc");
        exit(EXIT_FAILURE);
    }
    sequence_make(seed, ops, count);
    bool failed = fails(run, context, ops, count, outcome);
    if (failed) {
        printf("seed %llu, operation %u: %s\n", (unsigned long long)seed, outcome->failed_at,
               outcome->difference.text);
        if (outcome->failed_at && outcome->failed_at < count)
            count = outcome->failed_at + 1;
        count = shrink(run, context, ops, count, outcome);
        for (unsigned i = 0; i < count; i++)
            print_operation(i, &ops[i]);
        printf("seed %llu, shrunk to %u operations: %s\n", (unsigned long long)seed, count,
               outcome->difference.text);
    }
    fflush(stdout);
    free(ops);
    return !failed;
}

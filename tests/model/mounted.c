/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the model checker on a directory of any mounted filesystem.
 *
 *   model_mounted [-s SEED] [-n SEQUENCES] [-l LENGTH] [-r COMMAND] [-w KIND]... [-x] DIRECTORY
 *
 * COMMAND unmounts the filesystem and mounts it again. -x: nobody else uses it, so that all its
 * space must be free again when everything has been removed. -w: without operations of that kind.
 * Ends with 0, or with 1 when the filesystem differs from the model; the shortest sequence found
 * that shows it is then on standard output, and -s with the seed that is told replays it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/model/sequence.h"
#include "tests/model/target_posix.h"
#include "tests/unit/fixture.h"

struct run {
    const char *directory, *remount;
    uint64_t without; /* 1 << kind */
    bool alone;
};

static void run_directory(void *context, const struct operation *ops, unsigned count,
                          struct outcome *outcome) {
    const struct run *run = context;
    struct posix_target t = {.directory = run->directory, .remount = run->remount};
    struct target_space at_first;
    int error = posix_target_open(&t);

    if (!error)
        error = t.target.type->space(&t.target, &at_first);
    if (!error)
        error = posix_target_begin(&t);
    if (error)
        differ(&outcome->difference, "%s: %s", run->directory, strerror(-error));
    t.target.without = run->without;
    if (!error)
        sequence_on_target(&t.target, ops, count, outcome);
    if (*outcome->difference.text)
        return;
    error = posix_target_end(&t);
    if (error)
        differ(&outcome->difference, "removing the tree's root: %s", strerror(-error));
    else if (run->alone)
        compare_space(&t.target, &at_first, &outcome->difference);
}

static uint64_t kind_named(const char *name) {
    for (int kind = 0; kind < OP_KINDS; kind++) {
        if (strcmp(sequence_kind_name((enum operation_kind)kind), name) == 0)
            return UINT64_C(1) << kind;
    }
    fprintf(stderr, "there is no operation \"%s\"\n", name);
    exit(2);
}

static void print_lacks(uint64_t lacks) {
    printf("not supported:");
    for (int kind = 0; kind < OP_KINDS; kind++) {
        if (lacks >> kind & 1)
            printf(" %s", sequence_kind_name((enum operation_kind)kind));
    }
    printf("\n");
}

int main(int argc, char **argv) {
    struct run run = {NULL};
    unsigned sequences = 1, length = 1000;
    const char *seed_given = NULL;
    int option;

    while ((option = getopt(argc, argv, "s:n:l:r:w:x")) != -1) {
        switch (option) {
        case 's':
            seed_given = optarg;
            break;
        case 'n':
            sequences = (unsigned)atoi(optarg);
            break;
        case 'l':
            length = (unsigned)atoi(optarg);
            break;
        case 'r':
            run.remount = optarg;
            break;
        case 'w':
            run.without |= kind_named(optarg);
            break;
        case 'x':
            run.alone = true;
            break;
        default:
            return 2;
        }
    }
    if (optind != argc - 1 || length == 0) {
        fprintf(stderr,
                "usage: %s [-s SEED] [-n SEQUENCES] [-l LENGTH] [-r COMMAND] [-w KIND]... [-x] "
                "DIRECTORY\n",
                argv[0]);
        return 2;
    }
    run.directory = argv[optind];
    uint64_t seed = seed_given ? strtoull(seed_given, NULL, 0) : fixture_seed(run.directory);
    uint64_t lacks = 0;
    struct outcome *outcome = sequence_outcome();
    for (unsigned n = 0; n < sequences; n++) {
        if (!sequence_try(run_directory, &run, seed + n, length, outcome))
            return 1;
        lacks |= outcome->lacks;
    }
    print_lacks(lacks);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: random sequences against the model, on every layout, shrunk when they fail; then the
 * layout's own check and, where it is installed, the format's own checker on the image.
 *
 * LAYOUTFS_TEST_SEED replays one run; LAYOUTFS_TEST_FACTOR makes it longer.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/model.h"
#include "tests/unit/fixture.h"

#define SEQUENCE_LENGTH 1500
#define SEQUENCES       6
#define VOLUME_BYTES    (UINT64_C(512) << 20)

struct subject {
    const char *type, *mkfs_options, *mount_options;
    const char *checker; /* a command that takes the image's path, or NULL */
};

static const struct subject subjects[] = {
    {"memory", NULL, NULL, NULL},
    {"ext2", "block_size=4096", NULL, "e2fsck -fn"},
    {"ext2", "block_size=1024,inode_size=256", "dir_placement=old", "e2fsck -fn"},
    {"ext2", "block_size=2048,features=^dir_index", "alloc=first-fit,dir_placement=sequential",
     "e2fsck -fn"},
    {"ext2", "block_size=1024,features=none", NULL, "e2fsck -fn"},
};
#define SUBJECT_COUNT ((int)(sizeof(subjects) / sizeof(*subjects)))

static const struct {
    const char *name;
    unsigned weight;
} kinds[OP_KINDS] = {
    [OP_CREATE] = {"create", 14},
    [OP_MKDIR] = {"mkdir", 5},
    [OP_SYMLINK] = {"symlink", 4},
    [OP_LINK] = {"link", 4},
    [OP_UNLINK] = {"unlink", 9},
    [OP_RMDIR] = {"rmdir", 3},
    [OP_RENAME] = {"rename", 9},
    [OP_EXCHANGE] = {"exchange", 2},
    [OP_WRITE] = {"write", 16},
    [OP_READ] = {"read", 8},
    [OP_TRUNCATE] = {"truncate", 8},
    [OP_PUNCH] = {"punch", 4},
    [OP_SETATTR] = {"setattr", 2},
    [OP_XATTR] = {"xattr", 4},
    [OP_LIST] = {"list", 1},
    [OP_FSYNC] = {"fsync", 2},
    [OP_DROP_CACHES] = {"drop-caches", 1},
};

static void make_sequence(uint64_t seed, struct operation *ops, unsigned count) {
    unsigned total = 0;

    for (int i = 0; i < OP_KINDS; i++)
        total += kinds[i].weight;
    for (unsigned n = 0; n < count; n++) {
        uint32_t pick = (uint32_t)(fixture_random(&seed) % total);
        int kind = 0;
        while (pick >= kinds[kind].weight)
            pick -= kinds[kind++].weight;
        uint64_t a = fixture_random(&seed), b = fixture_random(&seed), c = fixture_random(&seed);
        uint64_t d = fixture_random(&seed);
        /* Most files are small, most offsets near the start. */
        uint32_t reach = UINT32_C(1) << (8 + d % 13);
        ops[n] = (struct operation){.kind = (enum operation_kind)kind,
                                    .dir = (uint32_t)a,
                                    .name = (uint32_t)(a >> 32),
                                    .other_dir = (uint32_t)b,
                                    .other = (uint32_t)(b >> 32),
                                    .file = (uint32_t)c,
                                    .fill = (uint32_t)(c >> 32),
                                    .offset = (uint32_t)(d >> 8) % reach,
                                    .length = (uint32_t)(d >> 36) % reach};
        if (ops[n].offset + ops[n].length > MODEL_FILE_MAX)
            ops[n].length = MODEL_FILE_MAX - ops[n].offset;
    }
}

static void print_operation(unsigned n, const struct operation *op) {
    printf("  %u: %s dir %u name %u other %u/%u file %u at %u length %u fill %u\n", n,
           kinds[op->kind].name, op->dir, op->name, op->other_dir, op->other, op->file, op->offset,
           op->length, op->fill);
}

static void finding(void *context, enum check_severity severity, const char *text) {
    if (severity == CHECK_WRONG) {
        printf("  check: %s\n", text);
        *(int *)context = 1;
    }
}

/* After unmounting: what the layout and the format's own checker say. */
static int check_image(const struct subject *subject, const char *path, char *why, size_t size) {
    const struct layout *layout;
    const struct layout_type *type;
    struct clock clock;
    struct device *device;
    int wrong = 0;

    clock_init_wall(&clock);
    if (layout_find(subject->type, &layout, &type) || !layout->check)
        return 0;
    struct check_report report = {.finding = finding, .context = &wrong};
    int error = device_open_image(path, DEVICE_READ_ONLY, 0, &clock, NULL, &device);
    if (!error) {
        error = layout->check(device, NULL, &report);
        device_close(device);
    }
    if (error || wrong) {
        snprintf(why, size, "the layout's own check finds the volume wrong (%d)", error);
        return -1;
    }
    char command[1024];
    snprintf(command, sizeof(command), "%s %s > %s.log 2>&1", subject->checker, path, path);
    int status = system(command);
    if (status != 0 && WEXITSTATUS(status) != 127) {
        snprintf(command, sizeof(command), "cat %s.log", path);
        status = system(command);
        snprintf(why, size, "%s finds the image wrong", subject->checker);
        return -1;
    }
    return 0;
}

static int run_operations(struct volume *volume, const struct operation *ops, unsigned count,
                          unsigned *failed_at, char *why, size_t size) {
    struct model *model = model_new();
    int result = model ? 0 : -1;

    for (unsigned n = 0; n < count && !result; n++) {
        int answer;
        *failed_at = n;
        result = operate(volume, model, &ops[n], &answer, why, size);
        int expected = model_apply(model, &ops[n]);
        if (!result && answer != expected) {
            snprintf(why, size, "answer %d (%s), not %d (%s)", answer, strerror(-answer), expected,
                     strerror(-expected));
            result = -1;
        }
    }
    *failed_at = result ? *failed_at : count;
    if (!result)
        result = compare_tree(volume, model, why, size);
    if (!result && volume_drop_caches(volume) == 0)
        result = compare_tree(volume, model, why, size);
    model_free(model);
    return result;
}

static int run_sequence(const struct subject *subject, const struct operation *ops, unsigned count,
                        unsigned *failed_at, char *why, size_t size) {
    char path[256];
    struct clock clock;
    struct device *device = NULL;
    struct volume *volume;
    const struct layout *layout;
    const struct layout_type *type;
    struct log log = log_to_stderr("model", LOG_LEVEL_ERROR);

    clock_init_virtual(&clock, NULL);
    snprintf(path, sizeof(path), "%s/model-%d.img", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    int error = layout_find(subject->type, &layout, &type);
    if (!error && !(layout->flags & LAYOUT_VOLATILE)) {
        struct options options;
        error = device_open_image(path, DEVICE_CREATE, VOLUME_BYTES, &clock, &log, &device);
        if (!error)
            error = options_init(&options, layout->options, OPTION_MKFS, &log);
        if (!error) {
            error = options_parse(&options, subject->mkfs_options);
            if (!error)
                error = layout_format(subject->type, device, &options);
            options_free(&options);
        }
    }
    struct volume_config config = {.type = subject->type,
                                   .device = device,
                                   .clock = &clock,
                                   .log = &log,
                                   .options = subject->mount_options};
    if (!error)
        error = volume_open(&config, &volume);
    if (error) {
        snprintf(why, size, "the volume cannot be made: %s", strerror(-error));
        return -1;
    }
    int result = run_operations(volume, ops, count, failed_at, why, size);
    error = volume_close(volume);
    if (!result && error) {
        snprintf(why, size, "unmount: %s", strerror(-error));
        result = -1;
    }
    if (!result && device)
        result = check_image(subject, path, why, size);
    unlink(path);
    strcat(path, ".log");
    unlink(path);
    return result;
}

struct outcome {
    int result;
    unsigned failed_at;
    char why[512];
};

/* In a process of its own, since a wrong layout may also crash. */
static bool fails(const struct subject *subject, const struct operation *ops, unsigned count,
                  struct outcome *outcome) {
    fflush(stdout);
    memset(outcome, 0, sizeof(*outcome));
    pid_t child = fork();
    if (child == 0) {
        outcome->result = run_sequence(subject, ops, count, &outcome->failed_at, outcome->why,
                                       sizeof(outcome->why));
        fflush(stdout);
        _exit(outcome->result ? 1 : 0);
    }
    int status;
    ck_assert(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status))
        snprintf(outcome->why, sizeof(outcome->why), "killed by signal %d", WTERMSIG(status));
    return status != 0;
}

/* Leaves out ever smaller pieces as long as the rest still fails (delta debugging). */
static unsigned shrink(const struct subject *subject, struct operation *ops, unsigned count,
                       struct outcome *outcome) {
    struct operation *trial = malloc(count * sizeof(*trial));

    ck_assert_ptr_nonnull(trial);
    for (unsigned piece = count / 2; piece > 0; piece /= 2) {
        for (unsigned start = 0; start + piece <= count;) {
            memcpy(trial, ops, start * sizeof(*ops));
            memcpy(trial + start, ops + start + piece, (count - start - piece) * sizeof(*ops));
            if (fails(subject, trial, count - piece, outcome)) {
                count -= piece;
                memcpy(ops, trial, count * sizeof(*ops));
            } else {
                start += piece;
            }
        }
    }
    free(trial);
    fails(subject, ops, count, outcome);
    return count;
}

START_TEST(test_sequences) {
    const struct subject *subject = &subjects[_i];
    struct operation *ops = calloc(SEQUENCE_LENGTH, sizeof(*ops));
    struct outcome *outcome =
        mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = fixture_seed(subject->type);

    ck_assert_ptr_nonnull(ops);
    ck_assert_ptr_ne(outcome, MAP_FAILED);
    for (unsigned n = 0; n < SEQUENCES * fixture_factor(); n++) {
        make_sequence(seed + n, ops, SEQUENCE_LENGTH);
        if (!fails(subject, ops, SEQUENCE_LENGTH, outcome))
            continue;
        printf("%s %s: %s\n", subject->type, subject->mkfs_options ? subject->mkfs_options : "",
               outcome->why);
        fflush(stdout);
        unsigned count = outcome->failed_at ? outcome->failed_at + 1 : SEQUENCE_LENGTH;
        count = shrink(subject, ops, count < SEQUENCE_LENGTH ? count : SEQUENCE_LENGTH, outcome);
        for (unsigned i = 0; i < count; i++)
            print_operation(i, &ops[i]);
        ck_abort_msg("seed %llu, %u operations: %s", (unsigned long long)seed + n, count,
                     outcome->why);
    }
    munmap(outcome, sizeof(*outcome));
    free(ops);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("sequences");
    tcase_set_timeout(cases, 600);
    tcase_add_loop_test(cases, test_sequences, 0, SUBJECT_COUNT);
    Suite *suite = suite_create("model");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

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

#include "tests/model/sequence.h"
#include "tests/model/target_volume.h"
#include "tests/unit/fixture.h"

#define SEQUENCE_LENGTH 10000
#define SEQUENCES       4 /* and a share of as many under the sanitizers, others */
#define SEQUENCES_LONG  6 /* times the factor */
#define VOLUME_BYTES    (UINT64_C(256) << 20)

#define LACKS(kind) (UINT64_C(1) << (kind))
#define INDIRECT_LACKS                                                                             \
    (LACKS(OP_KEEP_SIZE) | LACKS(OP_ZERO_KEEP) | LACKS(OP_COLLAPSE) | LACKS(OP_INSERT) |           \
     LACKS(OP_COPY))
#define NILFS_LACKS   (INDIRECT_LACKS | LACKS(OP_XATTR))
#define REISER4_LACKS (NILFS_LACKS | LACKS(OP_PREALLOCATE))
#define REISER4_FSCK  "fsck.reiser4 --check -y"
#define EXTENT_LACKS  (LACKS(OP_COLLAPSE) | LACKS(OP_INSERT) | LACKS(OP_COPY))

/* A cleaner that never rests. */
#define NILFS_CLEANS                                                                               \
    "protection_period=0,min_clean_segments=0,clean_check_interval=1,cleaning_interval=1,"         \
    "min_reclaimable_blocks=0"

struct subject {
    const char *type, *mkfs_options, *mount_options;
    const char *checker; /* a command that takes the image's path, or NULL */
    uint64_t may_lack;   /* what the format has no means for */
};

static const struct subject subjects[] = {
    {"memory", NULL, NULL, NULL, INDIRECT_LACKS},
    {"ext2", "block_size=4096", NULL, "e2fsck -fn", INDIRECT_LACKS},
    {"ext2", "block_size=1024,inode_size=256", "dir_placement=old", "e2fsck -fn", INDIRECT_LACKS},
    {"ext2", "block_size=2048,features=^dir_index", "alloc=first-fit,dir_placement=sequential",
     "e2fsck -fn", INDIRECT_LACKS},
    {"ext2", "block_size=1024,features=none", NULL, "e2fsck -fn", INDIRECT_LACKS},
    {"ext2", "block_size=1024", "delalloc=on", "e2fsck -fn", INDIRECT_LACKS},
    {"ext2", "block_size=1024", "alloc=mballoc", "e2fsck -fn", INDIRECT_LACKS},
    {"ext3", "block_size=1024", "alloc=reservation", "e2fsck -fn", INDIRECT_LACKS},
    {"ext4", "block_size=1024", "delalloc=off,alloc=mballoc,commit=1", "e2fsck -fn",
     LACKS(OP_COPY)},
    {"ext4", "block_size=1024", "delalloc=on,commit=1", "e2fsck -fn", LACKS(OP_COPY)},
    {"ext4", "block_size=4096", "delalloc=off", "e2fsck -fn", LACKS(OP_COPY)},
    {"ext3", "block_size=1024,inode_size=256", "commit=1,ordered=written", "e2fsck -fn",
     INDIRECT_LACKS},
    {"ext3", "block_size=1024", "journal=data", "e2fsck -fn", INDIRECT_LACKS},
    {"ext3", "block_size=4096", "journal=writeback,barrier=off", "e2fsck -fn", INDIRECT_LACKS},
    {"nilfs2", "blocks_per_segment=256", NULL, NULL, NILFS_LACKS},
    {"nilfs2", "block_size=1024,blocks_per_segment=1024", "interval=1", NULL, NILFS_LACKS},
    {"reiser4", NULL, NULL, REISER4_FSCK, REISER4_LACKS},
    {"reiser4", "node=node41,hash=deg_hash,formatting=extents", "txmod=journal,tmgr.atom_max_age=1",
     REISER4_FSCK, REISER4_LACKS},
    {"reiser4", "formatting=extents,fibration=lexic_fibre", "txmod=wa", REISER4_FSCK,
     REISER4_LACKS},
    {"reiser4", "formatting=tails", "squeeze=off,tmgr.atom_max_age=1", REISER4_FSCK, REISER4_LACKS},
    {"nilfs2", "block_size=2048,blocks_per_segment=128", "order=strict," NILFS_CLEANS, NULL,
     NILFS_LACKS},
    {"nilfs2", "block_size=1024,blocks_per_segment=64", "cleaner=cost-benefit,wait," NILFS_CLEANS,
     NULL, NILFS_LACKS},
    {"ext4", NULL, NULL, "e2fsck -fn", EXTENT_LACKS},
    {"ext4", "block_size=1024", "commit=1", "e2fsck -fn", EXTENT_LACKS},
    {"ext4", "block_size=1024,has_journal=off", "delalloc=on", "e2fsck -fn", EXTENT_LACKS},
    {"ext4", "block_size=2048", "journal=data", "e2fsck -fn", EXTENT_LACKS},
};
#define SUBJECT_COUNT ((int)(sizeof(subjects) / sizeof(*subjects)))

static void finding(void *context, enum check_severity severity, const char *text) {
    if (severity == CHECK_WRONG) {
        printf("  check: %s\n", text);
        *(int *)context = 1;
    }
}

/* After unmounting: what the layout and the format's own checker say. */
static void check_image(const struct subject *subject, const char *path,
                        struct difference *difference) {
    const struct layout *layout;
    const struct layout_type *type;
    struct clock clock;
    struct device *device;
    int wrong = 0;

    clock_init_wall(&clock);
    if (layout_find(subject->type, &layout, &type) || !layout->check)
        return;
    struct check_report report = {.finding = finding, .context = &wrong, .contents = true};
    int error = device_open_image(path, DEVICE_READ_ONLY, 0, &clock, NULL, &device);
    if (!error) {
        error = layout->check(device, NULL, &report);
        device_close(device);
    }
    if (error || wrong) {
        differ(difference, "the layout's own check finds the volume wrong (%d)", error);
        return;
    }
    if (!subject->checker)
        return;
    char command[1024];
    snprintf(command, sizeof(command), "%s %s > /dev/null 2>&1", subject->checker, path);
    int status = system(command);
    if (status != 0 && WEXITSTATUS(status) != 127) {
        snprintf(command, sizeof(command), "%s %s", subject->checker, path);
        status = system(command); /* to be read */
        differ(difference, "%s finds the image wrong (%d)", subject->checker, status);
    }
}

/* An image file in memory, which nobody has to wait for; false: there can be none. */
static bool image_in_memory(char *path, size_t size) {
    int file = memfd_create("model", 0);

    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), file);
    return file >= 0;
}

static int format_image(const struct subject *subject, struct volume_target *t) {
    const struct layout *layout;
    const struct layout_type *type;
    struct device *device;
    struct options options;

    int error = layout_find(subject->type, &layout, &type);
    if (error || layout->flags & LAYOUT_VOLATILE) {
        t->image = NULL;
        return error;
    }
    error = device_open_image(t->image, DEVICE_CREATE, VOLUME_BYTES, &t->clock, &t->log, &device);
    if (error)
        return error;
    error = options_init(&options, layout->options, OPTION_MKFS, &t->log);
    if (!error) {
        error = options_parse(&options, type ? type->mkfs_options : NULL);
        if (!error)
            error = options_parse(&options, subject->mkfs_options);
        if (!error)
            error = layout_format(subject->type, device, &options);
        options_free(&options);
    }
    device_close(device);
    return error;
}

static void run_volume(struct volume_target *t, const struct operation *ops, unsigned count,
                       struct outcome *outcome) {
    struct target *target = &t->target;
    struct target_space at_first;

    int error = target->type->space(target, &at_first);
    if (!error)
        error = volume_target_begin(t);
    if (error)
        differ(&outcome->difference, "the volume cannot be used: %s", strerror(-error));
    else
        sequence_on_target(target, ops, count, outcome);
    if (*outcome->difference.text)
        return; /* what is still held open, the process takes with it */
    if (volume_target_end(t) == 0)
        compare_space(target, &at_first, &outcome->difference);
    error = volume_target_close(t);
    if (error && !*outcome->difference.text)
        differ(&outcome->difference, "unmount: %s", strerror(-error));
}

static void run_subject(void *context, const struct operation *ops, unsigned count,
                        struct outcome *outcome) {
    const struct subject *subject = context;
    char path[64];
    struct volume_target t = {
        .log = log_to_stderr("model", LOG_LEVEL_ERROR),
        .type = subject->type,
        .options = subject->mount_options,
        .image = path,
    };

    clock_init_virtual(&t.clock, NULL);
    int error = image_in_memory(path, sizeof(path)) ? format_image(subject, &t) : -errno;
    if (!error)
        error = volume_target_open(&t);
    if (error) {
        differ(&outcome->difference, "the volume cannot be made: %s", strerror(-error));
    } else {
        t.target.is_log = strcmp(subject->type, "nilfs2") == 0;
        run_volume(&t, ops, count, outcome);
    }
    if (!*outcome->difference.text && t.image)
        check_image(subject, path, &outcome->difference);
    uint64_t unexpected = outcome->lacks & ~subject->may_lack;
    if (unexpected && !*outcome->difference.text)
        differ(&outcome->difference, "%s is not supported",
               sequence_kind_name((enum operation_kind)__builtin_ctzll(unexpected)));
}

START_TEST(test_sequences) {
    struct subject subject = subjects[_i];
    struct outcome *outcome = sequence_outcome();
    uint64_t seed = fixture_seed(subject.type);
    unsigned count = fixture_factor() > 1 ? SEQUENCES_LONG * fixture_factor() : SEQUENCES;

    for (unsigned n = 0; n < fixture_share(count); n++) {
        if (!sequence_try(run_subject, &subject, seed + n, SEQUENCE_LENGTH, outcome))
            ck_abort_msg("%s %s", subject.type, subject.mkfs_options ? subject.mkfs_options : "");
    }
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

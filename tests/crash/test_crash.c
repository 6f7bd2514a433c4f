/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the crash explorer itself. That it finds nothing where nothing is wrong, finds what is
 * wrong, and says the same whatever the number of processes.
 *
 * ext2 serves for both: promised no more than a repair can give, it keeps its promise; expected to
 * keep metadata in order, it must be found wanting. A recording whose flushed states alone are
 * looked at is in order, and stops being so when one write is lost.
 */
#include <errno.h>
#include <unistd.h>

#include "crash/errors.h"
#include "crash/report.h"
#include "fs/device/fork.h"
#include "fs/random.h"
#include "tests/unit/fixture.h"

#define SEQ_1_WORKLOADS 213u

static struct log quiet;

static struct crash_config config_of(enum crash_mode mode) {
    return (struct crash_config){
        .mode = mode, .type = "ext2", .seed = 1, .expectation = -1, .fsck = "", .jobs = 2};
}

/* What an exploration prints, without the last line, which tells the time. */
static char *explore(const struct crash_config *config, struct crash_totals *totals) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(crash_explore(config, out, &quiet, totals), 0);
    fclose(out);
    text[strlen(text) - 1] = '\0';
    char *last = strrchr(text, '\n');
    ck_assert_ptr_nonnull(last);
    last[1] = '\0';
    return text;
}

/* --- explorations ----------------------------------------------------------------------------- */

static void expect_nothing(struct crash_config config, uint64_t states) {
    struct crash_totals totals;
    char *text = explore(&config, &totals);

    ck_assert_msg(totals.findings == 0, "%s", text);
    ck_assert_uint_ge(totals.states, states);
    free(text);
}

/* Something is wrong on purpose. */
static void expect_something(struct crash_config config) {
    struct crash_totals totals;

    free(explore(&config, &totals));
    printf("%s,%s: %u of %u workloads\n", config.type, config.mount_options,
           (unsigned)totals.findings, (unsigned)totals.workloads);
    ck_assert_uint_gt(totals.findings, 0);
}

/* All workloads of one step; of them, too, the sanitizers see a share, another in each run. */
static struct crash_config one_step(void) {
    struct crash_config config = config_of(CRASH_SEQ_1);
    unsigned share = fixture_share(SEQ_1_WORKLOADS);

    config.sample = share < SEQ_1_WORKLOADS ? share : 0;
    config.seed = fixture_seed("seq-1");
    return config;
}

START_TEST(test_ext2_keeps_its_promise) {
    struct crash_config config = one_step();

    expect_nothing(config, fixture_share(1000));
    config = config_of(CRASH_SEQ_2);
    config.sample = fixture_share(200) * fixture_factor();
    config.seed = fixture_seed("seq-2");
    expect_nothing(config, fixture_share(1000));
    config = config_of(CRASH_RANDOM);
    config.sample = fixture_share(20) * fixture_factor();
    config.seed = fixture_seed("random");
    expect_nothing(config, fixture_share(1000));
}
END_TEST

static const char *const journalled_types[] = {"ext3", "ext4"};
static const char *const journal_modes[] = {"journal=ordered", "journal=data", "journal=writeback"};
#define JOURNAL_MODES 3

START_TEST(test_journal_keeps_its_promise) {
    struct crash_config config = one_step();

    config.type = journalled_types[_i / JOURNAL_MODES];
    config.mount_options = journal_modes[_i % JOURNAL_MODES];
    expect_nothing(config, fixture_share(6000));
    config.mode = CRASH_SEQ_2;
    config.sample = fixture_share(60) * fixture_factor();
    config.seed = fixture_seed("seq-2");
    expect_nothing(config, fixture_share(1000));
    config.mode = CRASH_RANDOM;
    config.sample = fixture_share(5) * fixture_factor();
    config.length = 120;
    config.seed = fixture_seed("random");
    expect_nothing(config, fixture_share(500));
}
END_TEST

static const char *const faults[] = {
    "journal=data,journal_fault=commit-first", "journal=data,journal_fault=no-flush",
    /* A missing revoke shows when a freed block is used again soon. */
    "journal=ordered,journal_fault=no-revoke,alloc=first-fit",
    "journal=data,journal_fault=stale-tail"};
#define FAULTS 4

/* Journals that are wrong on purpose, in workloads that are long enough to fill them. They
 * test what the explorer finds, so that the sanitizers look on only in the long run. */
START_TEST(test_broken_journals_are_found) {
    struct crash_config config = config_of(CRASH_RANDOM);

    config.type = journalled_types[_i / FAULTS];
    config.mount_options = faults[_i % FAULTS];
    config.length = 200;
    config.sample = 20;
    expect_something(config);
}
END_TEST

/* Segments of 64 KiB. */
static const char *const block_sizes[] = {"block_size=1024,blocks_per_segment=64",
                                          "block_size=2048,blocks_per_segment=32",
                                          "block_size=4096,blocks_per_segment=16"};
#define BLOCK_SIZES 3
/* A cleaner that never rests, by each policy. */
#define BUSY "protection_period=0,min_clean_segments=0,cleaning_interval=1,clean_check_interval=1"
static const char *const busy_cleaners[BLOCK_SIZES] = {"cleaner=timestamp,order=strict," BUSY,
                                                       "cleaner=greedy," BUSY,
                                                       "cleaner=cost-benefit,wait," BUSY};

START_TEST(test_logs_keep_their_promise) {
    struct crash_config config = one_step();

    config.type = "nilfs2";
    config.mkfs_options = block_sizes[_i];
    expect_nothing(config, fixture_share(450));
    config.mode = CRASH_SEQ_2;
    config.sample = fixture_share(300) * fixture_factor();
    config.seed = fixture_seed("seq-2");
    expect_nothing(config, fixture_share(1000));
    config.mode = CRASH_RANDOM;
    config.sample = fixture_share(10) * fixture_factor();
    config.length = 200;
    config.seed = fixture_seed("random");
    expect_nothing(config, fixture_share(300));
    config.mount_options = "order=strict";
    expect_nothing(config, fixture_share(300));
    config.mount_options = busy_cleaners[_i];
    expect_nothing(config, fixture_share(300));
}
END_TEST

static const char *const txmods[] = {"txmod=hybrid", "txmod=journal", "txmod=wa"};
#define TXMODS 3

START_TEST(test_atoms_keep_their_promise) {
    struct crash_config config = one_step();

    config.type = "reiser4";
    config.mount_options = txmods[_i];
    expect_nothing(config, fixture_share(2000));
    config.mode = CRASH_SEQ_2;
    config.sample = fixture_share(60) * fixture_factor();
    config.seed = fixture_seed("seq-2");
    expect_nothing(config, fixture_share(200));
    config.mode = CRASH_RANDOM;
    config.sample = fixture_share(10) * fixture_factor();
    config.seed = fixture_seed("random");
    expect_nothing(config, fixture_share(300));
}
END_TEST

static const char *const atom_faults[] = {"log_fault=header-first", "log_fault=in-place-first",
                                          "log_fault=no-flush", "log_fault=reuse",
                                          "log_fault=no-replay"};
#define ATOM_FAULTS 5

START_TEST(test_broken_atoms_are_found) {
    struct crash_config config = config_of(CRASH_RANDOM);

    config.type = "reiser4";
    config.mount_options = atom_faults[_i];
    config.sample = 10;
    expect_something(config);
}
END_TEST

static const struct {
    const char *type, *mount_options;
    bool broken;
} beside[] = {{"ext3", NULL, false},
              {"ext4", NULL, false},
              {"nilfs2", NULL, false},
              {"reiser4", "tmgr.atom_max_age=5", false},
              {"ext4", "journal_fault=no-flush", true},
              {"nilfs2", "log_fault=no-flush", true}};
#define BESIDE 6

/* Commits that go on while operations do. */
START_TEST(test_commits_beside_operations) {
    struct crash_config config = config_of(CRASH_RANDOM);

    config.type = beside[_i].type;
    config.mount_options = beside[_i].mount_options;
    config.disk = "laptop-2002";
    config.sample = fixture_share(10) * fixture_factor();
    if (!beside[_i].broken) {
        config.seed = fixture_seed("random on a disk");
        expect_nothing(config, fixture_share(50));
        return;
    }
    expect_something(config);
}
END_TEST

static const struct {
    enum crash_mode mode;
    const char *mount_options;
} log_faults[] = {{CRASH_RANDOM, "log_fault=super-first"},
                  {CRASH_RANDOM, "log_fault=no-order"},
                  {CRASH_SEQ_1, "log_fault=no-flush"},
                  {CRASH_SEQ_1, "log_fault=unchecked"},
                  {CRASH_SEQ_1, "log_fault=no-replay"}};
#define LOG_FAULTS 5

START_TEST(test_broken_logs_are_found) {
    struct crash_config config = config_of(log_faults[_i].mode);

    config.type = "nilfs2";
    config.mount_options = log_faults[_i].mount_options;
    config.length = config.mode == CRASH_RANDOM ? 200 : 0;
    config.sample = config.mode == CRASH_RANDOM ? 10 : 0;
    expect_something(config);
}
END_TEST

static const struct {
    const char *type, *mount_options, *mkfs_options;
} errors_of[] = {{"ext2", NULL, NULL},
                 {"ext2", "errors=remount-ro", NULL},
                 {"ext2", "errors=panic", NULL},
                 {"ext3", NULL, NULL},
                 {"ext3", "journal=data", NULL},
                 {"ext4", NULL, NULL},
                 {"ext4", "errors=panic", NULL},
                 {"nilfs2", NULL, NULL},
                 {"nilfs2", NULL, "block_size=4096,blocks_per_segment=16"},
                 {"reiser4", NULL, NULL}};

START_TEST(test_errors_are_survived) {
    struct crash_config config = config_of(CRASH_ERRORS);

    config.type = errors_of[_i].type;
    config.mount_options = errors_of[_i].mount_options;
    config.mkfs_options = errors_of[_i].mkfs_options;
    config.sample = 2 * fixture_factor();
    config.seed = fixture_seed("errors");
    expect_nothing(config, 200);
}
END_TEST

/* Do runs with errors find that the volume goes on without metadata that it could not write? */
static bool goes_on(const struct crash_config *config, const struct type_promise *promise) {
    struct recording *recording = calloc(1, sizeof(*recording));
    struct error_outcome outcome = {.reached = true};
    struct workload workload;
    struct examiner examiner;
    struct base base;
    char why[WHY_SIZE] = "";

    ck_assert_ptr_nonnull(recording);
    ck_assert_int_eq(base_make(config, promise, &quiet, &base), 0);
    ck_assert_int_eq(examiner_open(config, &base, promise, 0, &examiner), 0);
    workload_make(CRASH_ERRORS, 1, 40, &workload);
    ck_assert_int_eq(recording_make(&base, &workload, recording, why, sizeof(why)), 0);
    for (uint64_t call = 1; outcome.reached && !strstr(why, "the volume goes on"); call++)
        (void)errors_run(&examiner, recording, call, 0, false, &outcome, why);
    recording_free(recording);
    free(recording);
    examiner_close(&examiner);
    base_free(&base);
    return strstr(why, "the volume goes on") != NULL;
}

/* Stopping is asked of a volume only where errors= or a journal promise it. */
START_TEST(test_going_on_is_found) {
    struct crash_config config = config_of(CRASH_ERRORS);
    struct type_promise strict = *type_promise_find("ext2", NULL);

    ck_assert(!type_stops(&strict, NULL));
    ck_assert(!type_stops(&strict, "alloc=goal,errors=continue"));
    ck_assert(type_stops(&strict, "alloc=goal,errors=panic"));
    ck_assert(type_stops(type_promise_find("ext3", NULL), NULL));
    ck_assert(!type_stops(type_promise_find("ext3", "journal=none"), "journal=none"));
    strict.expectation = EXPECT_STRICT;
    ck_assert(goes_on(&config, &strict));
}
END_TEST

START_TEST(test_ext2_is_not_in_order) {
    struct crash_config config = config_of(CRASH_SEQ_1);
    struct crash_totals totals;

    config.expectation = EXPECT_STRICT;
    char *text = explore(&config, &totals);
    ck_assert_uint_gt(totals.findings, 50);
    ck_assert_ptr_nonnull(strstr(text, "the check finds"));
    free(text);
}
END_TEST

START_TEST(test_jobs_make_no_difference) {
    struct crash_config config = config_of(CRASH_SEQ_1);
    struct crash_totals totals;

    config.expectation = EXPECT_STRICT;
    config.jobs = 1;
    char *one = explore(&config, &totals);
    config.jobs = 3;
    char *three = explore(&config, &totals);
    ck_assert_str_eq(one, three);
    free(one);
    free(three);
}
END_TEST

/* The first finding's ID, and what was found. */
static void first_finding(char *text, char **id, char **why) {
    *id = strstr(text, "--replay ");
    ck_assert_ptr_nonnull(*id);
    *id += strlen("--replay ");
    *why = strstr(*id, "# ");
    ck_assert_ptr_nonnull(*why);
    *why += 2;
    (*why)[strcspn(*why, "\n")] = '\0';
    (*id)[strcspn(*id, " ")] = '\0';
}

START_TEST(test_finding_replays) {
    struct crash_config config = config_of(CRASH_SEQ_1);
    struct crash_totals totals;
    char *told, *id, *why, path[] = "/tmp/test-crash-XXXXXX";
    size_t size;
    bool found = false;
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    config.expectation = EXPECT_STRICT;
    char *text = explore(&config, &totals);
    first_finding(text, &id, &why);
    FILE *out = open_memstream(&told, &size);
    ck_assert_int_eq(crash_replay(&config, id, path, out, &quiet, &found), 0);
    fclose(out);
    ck_assert(found);
    ck_assert_msg(strstr(told, why) != NULL, "'%s' is not in: %s", why, told);
    ck_assert_int_eq(lseek(file, 0, SEEK_END), 4 << 20);
    free(told);
    free(text);
    close(file);
    unlink(path);
}
END_TEST

START_TEST(test_wrong_ids_are_refused) {
    static const char *const ids[] = {
        "",          "seq-1",        "seq-1.0",           "seq-9.0.1.a", "seq-1.ffffffff.40.a",
        "seq-1.0.a", "seq-1.0.9.x1", "seq-1.0.9999999.a", "seq-1.0.1.a", "seq-1.0.40.a3x"};
    struct crash_config config = config_of(CRASH_SEQ_1);
    FILE *out = fopen("/dev/null", "w");

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        bool found = false;

        ck_assert_msg(crash_replay(&config, ids[i], NULL, out, &quiet, &found) == -EINVAL, "%s",
                      ids[i]);
    }
    fclose(out);
}
END_TEST

/* --- the oracle ------------------------------------------------------------------------------- */

struct bed {
    struct crash_config config;
    struct base base;
    struct examiner examiner;
    struct recording *recording;
    struct workload workload;
};

static void bed_open(struct bed *bed) {
    const struct type_promise *promise = type_promise_find("ext2", NULL);

    *bed = (struct bed){.config = config_of(CRASH_SEQ_2)};
    bed->config.expectation = EXPECT_STRICT;
    ck_assert_int_eq(base_make(&bed->config, promise, &quiet, &bed->base), 0);
    ck_assert_int_eq(examiner_open(&bed->config, &bed->base, promise, 0, &bed->examiner), 0);
    bed->recording = calloc(1, sizeof(*bed->recording));
    ck_assert_ptr_nonnull(bed->recording);
}

static void bed_close(struct bed *bed) {
    recording_free(bed->recording);
    free(bed->recording);
    examiner_close(&bed->examiner);
    base_free(&bed->base);
}

static void bed_record(struct bed *bed, uint64_t number) {
    char why[WHY_SIZE];

    workload_make(CRASH_SEQ_2, number, 0, &bed->workload);
    ck_assert_msg(recording_make(&bed->base, &bed->workload, bed->recording, why, sizeof(why)) == 0,
                  "%s", why);
}

/* Nothing is made durable but all at once? */
static bool only_syncs(const struct workload *workload) {
    for (unsigned i = 0; i < workload->count; i++)
        if (workload->ops[i].kind == OP_FSYNC || workload->ops[i].kind == OP_FDATASYNC)
            return false;
    return true;
}

static bool examine(struct bed *bed, size_t cut, enum state_kind kind, uint32_t argument,
                    char *why) {
    struct state state = {cut, kind, argument};
    struct oracle oracle;

    oracle_start(&oracle, bed->recording);
    oracle_advance(&oracle, cut);
    state_maker_start(&bed->examiner.maker, &bed->recording->log);
    return examine_state(&bed->examiner, &oracle, &state, 0, why);
}

/* A sync's flushed states are in order. With a write lost before the flush that they rest on, as
 * on a disk that lies about flushes, they are not. */
START_TEST(test_lost_writes_are_found) {
    struct random random = {fixture_seed("lost writes")};
    unsigned losses = 0, found = 0;
    struct bed bed;
    char why[WHY_SIZE];

    bed_open(&bed);
    while (losses < 150 * fixture_factor()) {
        uint64_t number = random_next(&random) % sequence_numbers(2);

        workload_make(CRASH_SEQ_2, number, 0, &bed.workload);
        if (!sequence_canonical(2, number) || !only_syncs(&bed.workload))
            continue;
        bed_record(&bed, number);
        const struct write_log *log = &bed.recording->log;
        unsigned writes = 0;
        for (size_t i = bed.recording->start; i < log->count; i++) {
            writes += log->records[i].kind == RECORD_WRITE;
            if (log->records[i].kind != RECORD_FLUSH)
                continue;
            ck_assert_msg(examine(&bed, i + 1, STATE_ALL, 0, why), "%llx.%zu: %s",
                          (unsigned long long)number, i + 1, why);
            for (unsigned lost = 0; lost < writes; lost++) {
                losses++;
                found += !examine(&bed, i, STATE_DROP, lost, why);
            }
            writes = 0;
        }
    }
    bed_close(&bed);
    printf("%u writes lost, %u found\n", losses, found);
    /* Not all: losing the super block's time stamps, say, or data that was zero, is harmless. */
    ck_assert_uint_gt(found, losses / 3);
}
END_TEST

/* Trees made by hand, against the rules of crash/oracle.h. */
static void bed_tree(struct bed *bed, unsigned tree, const char *text) {
    struct snapshot *snapshot = &bed->recording->trees[tree];

    for (size_t i = 0; i < snapshot->count; i++) {
        struct node *node = &snapshot->nodes[i];

        if (strcmp(node->path, "/foo") == 0) {
            node->size = strlen(text);
            memcpy(snapshot->bytes + node->data, text, node->size);
        }
    }
}

/* A workload of one overwrite of /foo, whose tree before and after hold these bytes. */
static bool contents_pass(struct bed *bed, enum expectation expectation, const char *before,
                          const char *after, const char *found) {
    struct oracle oracle;
    char why[WHY_SIZE];

    bed_tree(bed, 0, before);
    bed_tree(bed, 1, after);
    bed_tree(bed, 2, found);
    oracle_start(&oracle, bed->recording);
    oracle_begun(&oracle, 0);
    return oracle_allows(&oracle, expectation, &bed->recording->trees[2], why, sizeof(why));
}

START_TEST(test_contents_are_judged_by_bytes) {
    struct bed bed;

    bed_open(&bed);
    bed.workload = (struct workload){.mode = CRASH_SEQ_2, .setup = {[NAME_FOO] = SETUP_FILE}};
    bed.workload.ops[0] = (struct op){.kind = OP_OVERWRITE, .name = NAME_FOO, .length = 10};
    bed.workload.ops[1] = bed.workload.ops[0];
    bed.workload.count = 2;
    char why[WHY_SIZE];
    ck_assert_int_eq(recording_make(&bed.base, &bed.workload, bed.recording, why, sizeof(why)), 0);
    ck_assert_uint_eq(bed.recording->tree_count, 3);

    ck_assert(contents_pass(&bed, EXPECT_STRICT, "abcd", "wxyz", "abcd"));
    ck_assert(contents_pass(&bed, EXPECT_STRICT, "abcd", "wxyz", "wbyd"));
    ck_assert(!contents_pass(&bed, EXPECT_STRICT, "abcd", "wxyz", "wbyq"));
    ck_assert(!contents_pass(&bed, EXPECT_STRICT, "abcd", "wxyz", "wby"));
    ck_assert(!contents_pass(&bed, EXPECT_STRICT, "abcd", "wxyz", "wbyzz"));
    ck_assert(contents_pass(&bed, EXPECT_WRITEBACK, "abcd", "wxyz", "wbyq"));
    ck_assert(contents_pass(&bed, EXPECT_STRICT, "ab", "abyz", "abyz"));
    ck_assert(contents_pass(&bed, EXPECT_STRICT, "ab", "abyz", "aby"));
    ck_assert(!contents_pass(&bed, EXPECT_STRICT, "ab", "abyz", "a"));
    ck_assert(!contents_pass(&bed, EXPECT_STRICT, "ab", "abyz", "abqz"));
    ck_assert(!contents_pass(&bed, EXPECT_WRITEBACK, "ab", "ab", "qb"));
    ck_assert(contents_pass(&bed, EXPECT_WRITEBACK, "ab", "abyz", "abqz"));
    bed_close(&bed);
}
END_TEST

/* --- sequences -------------------------------------------------------------------------------- */

/* rename(2) of one name of a file over another does nothing, and leaves a name too many. */
static bool renames_links(const struct workload *workload) {
    bool link = false, rename = false;

    for (unsigned i = 0; i < workload->count; i++) {
        link |= workload->ops[i].kind == OP_LINK;
        rename |= workload->ops[i].kind == OP_RENAME_OVER;
    }
    return link && rename;
}

/* Operations of sequences can all be done: what they need was made. */
START_TEST(test_sequences_can_be_done) {
    struct random random = {fixture_seed("sequences")};
    struct bed bed;
    char why[WHY_SIZE], text[128];

    bed_open(&bed);
    for (unsigned round = 0; round < 1000 * fixture_factor(); round++) {
        uint64_t number = random_next(&random) % sequence_numbers(3);

        workload_make(CRASH_SEQ_3, number, 0, &bed.workload);
        if (!sequence_canonical(3, number) || renames_links(&bed.workload))
            continue;
        ck_assert_msg(recording_make(&bed.base, &bed.workload, bed.recording, why, sizeof(why)) ==
                          0,
                      "%s", why);
        for (unsigned i = 0; i < bed.workload.count; i++) {
            int result = bed.recording->result[i];

            op_text(&bed.workload.ops[i], text, sizeof(text));
            ck_assert_msg(result == 0 || result == -ENODATA, "%llx: %s: %s",
                          (unsigned long long)number, text, strerror(-result));
        }
    }
    bed_close(&bed);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("crash");

    tcase_set_timeout(cases, 900);
    tcase_add_test(cases, test_sequences_can_be_done);
    tcase_add_test(cases, test_contents_are_judged_by_bytes);
    tcase_add_test(cases, test_lost_writes_are_found);
    tcase_add_test(cases, test_ext2_keeps_its_promise);
    tcase_add_loop_test(cases, test_journal_keeps_its_promise, 0, 2 * JOURNAL_MODES);
    if (fixture_share(20) == 20 || fixture_factor() > 1) {
        tcase_add_loop_test(cases, test_broken_journals_are_found, 0, 2 * FAULTS);
        tcase_add_loop_test(cases, test_broken_atoms_are_found, 0, ATOM_FAULTS);
    }
    tcase_add_loop_test(cases, test_logs_keep_their_promise, 0, BLOCK_SIZES);
    tcase_add_loop_test(cases, test_atoms_keep_their_promise, 0, TXMODS);
    tcase_add_loop_test(cases, test_commits_beside_operations, 0, BESIDE);
    tcase_add_loop_test(cases, test_broken_logs_are_found, 0, LOG_FAULTS);
    tcase_add_loop_test(cases, test_errors_are_survived, 0, sizeof(errors_of) / sizeof(*errors_of));
    tcase_add_test(cases, test_going_on_is_found);
    tcase_add_test(cases, test_ext2_is_not_in_order);
    tcase_add_test(cases, test_jobs_make_no_difference);
    tcase_add_test(cases, test_finding_replays);
    tcase_add_test(cases, test_wrong_ids_are_refused);
    Suite *suite = suite_create("crash");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}

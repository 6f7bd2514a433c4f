/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/crash.h.
 *
 * Workloads are handed out one by one to worker processes, which share nothing but a page of
 * counters. Processes and not threads: what is looked for may end a program.
 *
 * Invariants:
 *  1. What is found in a workload depends on its number and the configuration alone.
 *  2. A workload is left at its first finding; findings are told in the order of workloads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crash/errors.h"
#include "crash/fsck.h"
#include "crash/report.h"
#include "fs/random.h"

#define JOBS_MAX        64u
#define SEQ_3_DEFAULT   10000u
#define RANDOM_DEFAULT  100u
#define LENGTH_DEFAULT  40u
#define SUBSETS_DEFAULT 12u
#define AGAIN_EVERY     16u /* states of which one is recovered twice */
#define CALLS_USUAL     64u /* to the device, in a workload of errors */
#define PROGRESS_NS     (200 * NS_PER_MS)

/* What the processes share. */
struct shared {
    _Atomic uint64_t next; /* workload to be handed out */
    _Atomic uint64_t workloads, states, checked_by_others, reported, absorbed, stopped;
    struct {
        _Atomic uint64_t ordinal; /* what the job is at */
        char state[STATE_TEXT_SIZE];
    } jobs[JOBS_MAX];
};

struct exploration {
    struct crash_config config; /* defaults filled in */
    const struct crash_config *given;
    const struct type_promise *promise;
    const struct log *log;
    struct base base;
    uint64_t *numbers; /* owned; of the workloads, in order */
    uint64_t count;
    struct shared *shared;
};

/* One process's. */
struct worker {
    struct exploration *exploration;
    unsigned job;
    struct examiner examiner;
    struct recording recording;
    struct workload workload;
    struct state_list states;
    FILE *findings;
};

/* --- which workloads -------------------------------------------------------------------------- */

static unsigned sequence_length(enum crash_mode mode) {
    return mode <= CRASH_SEQ_3 ? mode - CRASH_SEQ_1 + 1 : 0;
}

static uint64_t workload_count(const struct crash_config *config) {
    unsigned length = sequence_length(config->mode);
    uint64_t count = 0;

    if (config->sample)
        return config->mode == CRASH_ERRORS ? config->sample * ERROR_WAYS : config->sample;
    if (config->mode == CRASH_SEQ_3)
        return SEQ_3_DEFAULT;
    if (config->mode == CRASH_RANDOM)
        return RANDOM_DEFAULT;
    if (config->mode == CRASH_ERRORS)
        return ERROR_WAYS;
    for (uint64_t number = 0; number < sequence_numbers(length); number++)
        count += sequence_canonical(length, number);
    return count;
}

static void list_all(struct exploration *exploration, unsigned length) {
    uint64_t i = 0;

    for (uint64_t number = 0; number < sequence_numbers(length); number++)
        if (sequence_canonical(length, number))
            exploration->numbers[i++] = number;
}

static void list_sample(struct exploration *exploration, unsigned length) {
    struct random random = {exploration->config.seed};
    uint64_t numbers = length ? sequence_numbers(length) : 0;

    for (uint64_t i = 0; i < exploration->count; i++) {
        do
            exploration->numbers[i] = random_next(&random) % (numbers ? numbers : UINT64_MAX);
        while (length && !sequence_canonical(length, exploration->numbers[i]));
    }
}

/* All the ways of one workload's calls to fail, then the next workload. */
static void list_errors(struct exploration *exploration) {
    for (uint64_t i = 0; i < exploration->count; i++)
        exploration->numbers[i] =
            (exploration->config.seed + i / ERROR_WAYS) * ERROR_WAYS + i % ERROR_WAYS;
}

static int list_workloads(struct exploration *exploration) {
    const struct crash_config *config = &exploration->config;
    unsigned length = sequence_length(config->mode);

    exploration->count = workload_count(config);
    exploration->numbers = calloc(exploration->count, sizeof(*exploration->numbers));
    if (!exploration->numbers)
        return -ENOMEM;
    if (config->mode == CRASH_ERRORS)
        list_errors(exploration);
    else if (config->sample || config->mode > CRASH_SEQ_2)
        list_sample(exploration, length);
    else
        list_all(exploration, length);
    return 0;
}

/* --- one workload ----------------------------------------------------------------------------- */

static void worker_at(struct worker *worker, const char *state) {
    snprintf(worker->exploration->shared->jobs[worker->job].state, STATE_TEXT_SIZE, "%s", state);
}

static void worker_found(struct worker *worker, uint64_t number, const char *state,
                         const char *why) {
    struct finding finding = {.number = number};

    snprintf(finding.state, sizeof(finding.state), "%s", state);
    snprintf(finding.why, sizeof(finding.why), "%s", why);
    fwrite(&finding, sizeof(finding), 1, worker->findings);
    fflush(worker->findings);
}

/* Is the i-th of `count` states among the `quota` that are spread over them? */
static bool in_quota(uint64_t i, uint64_t quota, uint64_t count, uint64_t number) {
    uint64_t phase = number % count;

    return (i + phase + 1) * quota / count != (i + phase) * quota / count;
}

/* How many of this workload's states others shall see. */
static uint64_t quota_of(const struct exploration *exploration, uint64_t ordinal) {
    uint64_t all = exploration->config.fsck_states, count = exploration->count;

    return (ordinal + 1) * all / count - ordinal * all / count;
}

static unsigned extras_of(uint64_t i, uint64_t quota, uint64_t count, uint64_t number) {
    unsigned extras = in_quota(i, quota, count, number) ? EXAMINE_OTHERS : 0;

    return extras | ((i + number) % AGAIN_EVERY == 0 ? EXAMINE_AGAIN : 0);
}

static int record_workload(struct worker *worker, enum crash_mode mode, uint64_t number,
                           char *why) {
    const struct crash_config *config = &worker->exploration->config;

    workload_make(mode, number, config->length, &worker->workload);
    return recording_make(&worker->exploration->base, &worker->workload, &worker->recording, why,
                          WHY_SIZE);
}

static void explore_states(struct worker *worker, uint64_t number, uint64_t quota) {
    struct shared *shared = worker->exploration->shared;
    struct oracle oracle;
    char why[WHY_SIZE], text[STATE_TEXT_SIZE];

    oracle_start(&oracle, &worker->recording);
    state_maker_start(&worker->examiner.maker, &worker->recording.log);
    for (size_t i = 0; i < worker->states.count; i++) {
        const struct state *state = &worker->states.states[i];
        unsigned extras = extras_of(i, quota, worker->states.count, number);

        state_text(state, text);
        worker_at(worker, text);
        oracle_advance(&oracle, state->cut);
        shared->states++;
        shared->checked_by_others += extras & EXAMINE_OTHERS && worker->examiner.fsck;
        if (!examine_state(&worker->examiner, &oracle, state, extras, why)) {
            worker_found(worker, number, text, why);
            return;
        }
    }
}

static void explore_sequence(struct worker *worker, uint64_t ordinal, uint64_t number) {
    const struct crash_config *config = &worker->exploration->config;
    bool tear = worker->examiner.expectation != EXPECT_REPAIR;
    char why[WHY_SIZE];
    int error = record_workload(worker, config->mode, number, why);

    if (!error)
        error = state_list_make(&worker->recording.log, worker->recording.start, config->subsets,
                                tear, &worker->states);
    if (error)
        worker_found(worker, number, "-", why);
    else
        explore_states(worker, number, quota_of(worker->exploration, ordinal));
}

/* Fails one call after the other, until the run ends before the call. */
static void explore_errors(struct worker *worker, uint64_t ordinal, uint64_t number) {
    const struct exploration *exploration = worker->exploration;
    struct shared *shared = exploration->shared;
    uint64_t every = 1 + CALLS_USUAL * exploration->count / (exploration->config.fsck_states + 1);
    unsigned way = (unsigned)(number % ERROR_WAYS);
    struct error_outcome outcome = {.reached = true};
    char why[WHY_SIZE], text[STATE_TEXT_SIZE];

    if (record_workload(worker, CRASH_ERRORS, number / ERROR_WAYS, why)) {
        worker_found(worker, number, "-", why);
        return;
    }
    for (uint64_t call = 1; outcome.reached; call++) {
        bool others = (call + ordinal) % every == 0 && worker->examiner.fsck;

        errors_text(call, way, text);
        worker_at(worker, text);
        bool good =
            errors_run(&worker->examiner, &worker->recording, call, way, others, &outcome, why);
        shared->states++;
        shared->checked_by_others += others;
        shared->reported += outcome.reached && outcome.reported;
        shared->absorbed += outcome.reached && !outcome.reported;
        shared->stopped += outcome.stopped;
        if (!good) {
            worker_found(worker, number, text, why);
            return;
        }
    }
}

/* --- worker processes ------------------------------------------------------------------------- */

static int worker_open(struct exploration *exploration, unsigned job, struct worker *worker) {
    worker->exploration = exploration;
    worker->job = job;
    return examiner_open(&exploration->config, &exploration->base, exploration->promise, job,
                         &worker->examiner);
}

static void worker_close(struct worker *worker) {
    unlink(worker->examiner.image);
    examiner_close(&worker->examiner);
    recording_free(&worker->recording);
    state_list_free(&worker->states);
}

static int worker_run(struct exploration *exploration, unsigned job, FILE *findings) {
    struct shared *shared = exploration->shared;
    struct worker *worker = calloc(1, sizeof(*worker));
    int error = worker ? worker_open(exploration, job, worker) : -ENOMEM;

    if (error) {
        free(worker);
        return error;
    }
    worker->findings = findings;
    for (;;) {
        uint64_t ordinal = atomic_fetch_add(&shared->next, 1);

        if (ordinal >= exploration->count)
            break;
        shared->jobs[job].ordinal = ordinal;
        worker_at(worker, "-");
        if (exploration->config.mode == CRASH_ERRORS)
            explore_errors(worker, ordinal, exploration->numbers[ordinal]);
        else
            explore_sequence(worker, ordinal, exploration->numbers[ordinal]);
        shared->workloads++;
    }
    worker_close(worker);
    free(worker);
    return 0;
}

struct job {
    pid_t process; /* 0: has ended */
    FILE *findings;
};

static int job_start(struct exploration *exploration, struct job *job, unsigned number) {
    fflush(NULL);
    job->process = fork();
    if (job->process < 0) {
        job->process = 0;
        return -errno;
    }
    if (job->process > 0)
        return 0;
    int error = worker_run(exploration, number, job->findings);
    free(exploration->numbers);
    base_free(&exploration->base);
    fclose(job->findings);
    exit(error ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* A process that ended badly is itself a finding; another one goes on with the next workload. */
static int job_ended(struct exploration *exploration, struct job *job, unsigned number,
                     int status) {
    struct shared *shared = exploration->shared;
    struct finding finding;

    job->process = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return 0;
    finding.number = exploration->numbers[shared->jobs[number].ordinal];
    memcpy(finding.state, shared->jobs[number].state, sizeof(finding.state));
    finding.state[sizeof(finding.state) - 1] = '\0';
    if (WIFSIGNALED(status))
        snprintf(finding.why, sizeof(finding.why), "the program ends with signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(finding.why, sizeof(finding.why), "the program ends with code %d",
                 WEXITSTATUS(status));
    fwrite(&finding, sizeof(finding), 1, job->findings);
    return shared->next < exploration->count ? job_start(exploration, job, number) : 0;
}

/* --- progress --------------------------------------------------------------------------------- */

static int64_t monotonic_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

static void progress_draw(const struct exploration *exploration, int64_t started_ns) {
    const struct shared *shared = exploration->shared;
    int64_t ms = (monotonic_ns() - started_ns) / NS_PER_MS + 1;

    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " workloads, %" PRIu64 " states, %" PRIu64 "/s ",
            shared->workloads, exploration->count, shared->states,
            shared->states * 1000 / (uint64_t)ms);
}

static int wait_for_jobs(struct exploration *exploration, struct job *jobs, int64_t started_ns) {
    bool progress = exploration->config.progress && isatty(STDERR_FILENO);
    const struct timespec nap = {.tv_nsec = PROGRESS_NS};
    unsigned running = exploration->config.jobs;
    int error = 0;

    while (running > 0) {
        int status;
        pid_t process = waitpid(-1, &status, progress ? WNOHANG : 0);

        if (process < 0 && errno != EINTR)
            return -errno;
        if (process == 0) {
            progress_draw(exploration, started_ns);
            nanosleep(&nap, NULL);
        }
        running = 0;
        for (unsigned i = 0; i < exploration->config.jobs; i++) {
            if (process > 0 && jobs[i].process == process) {
                int failed = job_ended(exploration, &jobs[i], i, status);
                error = error ? error : failed;
            }
            running += jobs[i].process != 0;
        }
    }
    if (progress)
        fprintf(stderr, "\r%60s\r", "");
    return error;
}

/* --- findings --------------------------------------------------------------------------------- */

static int compare_findings(const void *a, const void *b) {
    const struct finding *first = a, *second = b;

    return first->number < second->number ? -1 : first->number > second->number;
}

/* Collects what the jobs have found, in order. */
static int collect(const struct exploration *exploration, struct job *jobs,
                   struct finding **findings, uint64_t *count) {
    struct finding finding;
    uint64_t room = 0;

    *findings = NULL;
    *count = 0;
    for (unsigned i = 0; i < exploration->config.jobs; i++) {
        rewind(jobs[i].findings);
        while (fread(&finding, sizeof(finding), 1, jobs[i].findings) == 1) {
            if (*count == room) {
                room = room ? room * 2 : 64;
                struct finding *more = reallocarray(*findings, room, sizeof(*more));
                if (!more)
                    return -ENOMEM;
                *findings = more;
            }
            (*findings)[(*count)++] = finding;
        }
    }
    if (*count > 1)
        qsort(*findings, *count, sizeof(**findings), compare_findings);
    return 0;
}

static int report(const struct exploration *exploration, struct job *jobs, FILE *out,
                  struct crash_totals *totals) {
    const struct shared *shared = exploration->shared;
    struct finding *findings;
    int error = collect(exploration, jobs, &findings, &totals->findings);

    for (uint64_t i = 0; i < totals->findings && i < FINDINGS_SHOWN && !error; i++)
        report_finding(out, exploration->given, &findings[i]);
    if (!error && totals->findings > FINDINGS_SHOWN)
        fprintf(out, "... and %" PRIu64 " more\n", totals->findings - FINDINGS_SHOWN);
    free(findings);
    totals->workloads = shared->workloads;
    totals->states = shared->states;
    totals->checked_by_others = shared->checked_by_others;
    totals->reported = shared->reported;
    totals->absorbed = shared->absorbed;
    totals->stopped = shared->stopped;
    report_summary(out, exploration->given, totals);
    return error;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int exploration_open(const struct crash_config *config, const struct log *log,
                            struct exploration *exploration) {
    struct crash_config *own = &exploration->config;

    *exploration = (struct exploration){.config = *config, .given = config, .log = log};
    if (own->jobs == 0)
        own->jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (own->jobs > JOBS_MAX)
        own->jobs = JOBS_MAX;
    if (own->length == 0)
        own->length = LENGTH_DEFAULT;
    if (own->subsets == 0)
        own->subsets = SUBSETS_DEFAULT;
    if (config->fsck && config->fsck[0] && !fsck_exists(config->fsck)) {
        log_error(log, "--fsck: '%s' is no command that can be run", config->fsck);
        return -ENOENT;
    }
    exploration->promise = type_promise_find(config->type, config->mount_options);
    exploration->shared = mmap(NULL, sizeof(*exploration->shared), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (exploration->shared == MAP_FAILED)
        return -ENOMEM;
    int error = base_make(own, exploration->promise, log, &exploration->base);
    if (error)
        munmap(exploration->shared, sizeof(*exploration->shared));
    return error;
}

static void exploration_close(struct exploration *exploration) {
    free(exploration->numbers);
    base_free(&exploration->base);
    munmap(exploration->shared, sizeof(*exploration->shared));
}

static int run_jobs(struct exploration *exploration, struct job *jobs) {
    int64_t started_ns = monotonic_ns();
    int error = 0;

    for (unsigned i = 0; i < exploration->config.jobs && !error; i++) {
        jobs[i].findings = tmpfile();
        error = jobs[i].findings ? job_start(exploration, &jobs[i], i) : -errno;
    }
    int second = wait_for_jobs(exploration, jobs, started_ns);
    return error ? error : second;
}

int crash_explore(const struct crash_config *config, FILE *out, const struct log *log,
                  struct crash_totals *totals) {
    struct exploration exploration;
    struct job jobs[JOBS_MAX] = {0};
    int64_t started_ns = monotonic_ns();
    int error = exploration_open(config, log, &exploration);

    *totals = (struct crash_totals){0};
    if (error)
        return error;
    error = list_workloads(&exploration);
    if (!error)
        error = run_jobs(&exploration, jobs);
    totals->elapsed_ns = monotonic_ns() - started_ns;
    if (!error)
        error = report(&exploration, jobs, out, totals);
    for (unsigned i = 0; i < JOBS_MAX; i++)
        if (jobs[i].findings)
            fclose(jobs[i].findings);
    if (error)
        log_error(log, "the exploration was not completed: %s", strerror(-error));
    exploration_close(&exploration);
    return error;
}

/* --- replay ----------------------------------------------------------------------------------- */

/* "seq-2.1f3.57.d3", spelled as we spell it. */
static int parse_id(const char *id, enum crash_mode *mode, uint64_t *number, const char **state) {
    char name[16], spelled[24];
    size_t length = strcspn(id, ".");
    char *end;

    if (length >= sizeof(name) || id[length] != '.')
        return -EINVAL;
    memcpy(name, id, length);
    name[length] = '\0';
    *number = strtoull(id + length + 1, &end, 16);
    *state = end + 1;
    if (*end != '.' || crash_mode_find(name, mode))
        return -EINVAL;
    int digits = snprintf(spelled, sizeof(spelled), "%" PRIx64 ".", *number);
    if (strncmp(id + length + 1, spelled, (size_t)digits) != 0)
        return -EINVAL;
    unsigned sequence = sequence_length(*mode);
    return sequence && *number >= sequence_numbers(sequence) ? -EINVAL : 0;
}

static int replay_errors(struct worker *worker, uint64_t number, const char *text, FILE *out,
                         struct finding *finding, bool *good) {
    unsigned way = (unsigned)(number % ERROR_WAYS);
    struct error_outcome outcome;
    char spelled[STATE_TEXT_SIZE];
    uint64_t call = strtoull(text, NULL, 10);

    errors_text(call, way, spelled);
    if (call == 0 || strcmp(spelled, text) != 0)
        return -EINVAL;
    *good =
        errors_run(&worker->examiner, &worker->recording, call, way, true, &outcome, finding->why);
    if (!outcome.reported)
        fputs("No error was reported\n", out);
    else if (outcome.at < worker->workload.count)
        fprintf(out, "Operation %u reports an error\n", outcome.at);
    else
        fprintf(out, "%s reports an error\n",
                outcome.at == UNMOUNT(&worker->workload) ? "Unmounting" : "Mounting");
    return 0;
}

static int replay_state(struct worker *worker, const char *text, const char *save, FILE *out,
                        struct finding *finding, bool *good) {
    struct state state;
    struct oracle oracle;
    int error = state_parse(text, &worker->recording.log, worker->recording.start, &state);

    if (error)
        return error;
    report_epoch(out, &worker->recording.log, &state);
    oracle_start(&oracle, &worker->recording);
    state_maker_start(&worker->examiner.maker, &worker->recording.log);
    oracle_advance(&oracle, state.cut);
    error = save ? state_make(&worker->examiner.maker, &state) : 0;
    if (!error && save) {
        error = fsck_save(worker->examiner.device, save);
        if (error)
            log_error(worker->exploration->log, "%s: not saved", save);
    }
    if (!error)
        *good = examine_state(&worker->examiner, &oracle, &state, EXAMINE_OTHERS | EXAMINE_AGAIN,
                              finding->why);
    return error;
}

static int replay(struct worker *worker, const char *id, const char *save, FILE *out, bool *found) {
    struct exploration *exploration = worker->exploration;
    enum crash_mode mode = exploration->config.mode;
    struct finding finding = {0};
    const char *text;
    bool good = false;
    int error = parse_id(id, &mode, &finding.number, &text);

    if (error)
        return error;
    bool recorded = !record_workload(
        worker, mode, mode == CRASH_ERRORS ? finding.number / ERROR_WAYS : finding.number,
        finding.why);
    report_workload(out, &worker->recording);
    if (recorded && mode == CRASH_ERRORS)
        error = replay_errors(worker, finding.number, text, out, &finding, &good);
    else if (recorded)
        error = replay_state(worker, text, save, out, &finding, &good);
    *found = !good;
    if (!error)
        fprintf(out, "%s\n", good ? "All is as it should be." : finding.why);
    return error;
}

int crash_replay(const struct crash_config *config, const char *id, const char *save, FILE *out,
                 const struct log *log, bool *found) {
    struct exploration exploration;
    struct worker *worker = calloc(1, sizeof(*worker));
    int error = worker ? exploration_open(config, log, &exploration) : -ENOMEM;

    if (error) {
        free(worker);
        return error;
    }
    error = worker_open(&exploration, 0, worker);
    if (!error) {
        error = replay(worker, id, save, out, found);
        worker_close(worker);
    }
    if (error == -EINVAL)
        log_error(log, "'%s' names no state of this volume and its options", id);
    else if (error)
        log_error(log, "%s: %s", id, strerror(-error));
    free(worker);
    exploration_close(&exploration);
    return error;
}

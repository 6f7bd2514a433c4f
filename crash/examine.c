/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/examine.h.
 *
 * Every step returns true when all is well; the first that does not leaves its reason in `why`.
 */
#include "crash/examine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash/fsck.h"
#include "fs/device/fork.h"

#define AFTER_PATH   "/after"
#define AFTER_BYTES  3000u
#define AFTER_NUMBER (OPS_MAX + NAMES)
#define POWER_ON_NS  (3600 * NS_PER_SEC) /* on the recovering machine's clock */

/* --- life ------------------------------------------------------------------------------------- */

static void keep_first(void *context, enum log_level level, const char *text) {
    struct examiner *examiner = context;

    if (!examiner->message[0])
        snprintf(examiner->message, sizeof(examiner->message), "%s", text);
}

/* The forks tell the time by the examiner's clock, which starts anew with each state. */
static void clock_restart(struct examiner *examiner) {
    clock_init_virtual(&examiner->clock, NULL);
    clock_wait_until(&examiner->clock, POWER_ON_NS);
    examiner->message[0] = '\0';
}

int examiner_open(const struct crash_config *config, const struct base *base,
                  const struct type_promise *promise, unsigned number, struct examiner *examiner) {
    const char *directory = getenv("TMPDIR");

    *examiner = (struct examiner){
        .base = base,
        .expectation =
            config->expectation >= 0 ? (enum expectation)config->expectation : promise->expectation,
        .stops = type_stops(promise, config->mount_options),
        .fsck = config->fsck ? config->fsck : promise->fsck,
    };
    if (!fsck_exists(examiner->fsck))
        examiner->fsck = NULL;
    if (examiner->fsck && fsck_exists(promise->fsck_repair))
        examiner->fsck_repair = promise->fsck_repair;
    examiner->errors =
        (struct log){.emit = keep_first, .context = examiner, .threshold = LOG_LEVEL_ERROR};
    snprintf(examiner->image, sizeof(examiner->image), "%s/layoutfs-crash-%d-%u.img",
             directory ? directory : "/tmp", (int)getpid(), number);
    int error = device_open_fork(base->device, &examiner->stable);
    if (error)
        return error;
    examiner->stable->clock = &examiner->clock;
    examiner->stable->log = NULL;
    error = device_open_fork(examiner->stable, &examiner->device);
    if (error)
        device_close(examiner->stable);
    examiner->maker.stable = examiner->stable;
    examiner->maker.device = examiner->device;
    return error;
}

void examiner_close(struct examiner *examiner) {
    device_close(examiner->device);
    device_close(examiner->stable);
    snapshot_free(&examiner->found);
    snapshot_free(&examiner->again);
    write_log_free(&examiner->log);
}

static bool complain(const struct examiner *examiner, char *why, const char *what, int error) {
    snprintf(why, WHY_SIZE, "%s: %s%s%s", what, strerror(-error), examiner->message[0] ? "; " : "",
             examiner->message);
    return false;
}

/* --- our own check ---------------------------------------------------------------------------- */

struct check_context {
    char first[256];
};

static void note_finding(void *context, enum check_severity severity, const char *text) {
    struct check_context *first = context;

    if (severity == CHECK_WRONG && !first->first[0])
        snprintf(first->first, sizeof(first->first), "%s", text);
}

static bool check(struct examiner *examiner, char *why) {
    struct check_context context = {0};
    struct check_report report = {.finding = note_finding, .context = &context, .contents = true};
    int error = examiner->base->layout->check(examiner->device, &examiner->errors, &report);

    if (error)
        return complain(examiner, why, "the check fails", error);
    if (report.wrong == 0)
        return true;
    snprintf(why, WHY_SIZE, "the check finds: %s", context.first);
    return false;
}

/* What it cannot mend may have been in the middle of a change. */
static bool repair(struct examiner *examiner, char *why) {
    struct check_report report = {.repair = true};
    int error = examiner->base->layout->check(examiner->device, NULL, &report);

    return !error || error == -EUCLEAN || complain(examiner, why, "the repair fails", error);
}

/* --- recovery and comparison ------------------------------------------------------------------ */

static bool take(struct examiner *examiner, struct volume *volume, bool lenient,
                 struct snapshot *snapshot, char *why) {
    char where[NODE_PATH_MAX] = "", what[NODE_PATH_MAX + 32];
    int error = snapshot_take(volume, snapshot, lenient ? NULL : where);

    if (!error)
        return true;
    snprintf(what, sizeof(what), "'%s' cannot be read", where);
    return complain(examiner, why, what, error);
}

/* Takes the tree of a volume on `device`, and leaves the volume unmounted. Where only a repair has
 * been, files that were being changed may be beyond reading (`lenient`), which is not to stop the
 * volume. */
static bool recover(struct examiner *examiner, struct device *device, bool lenient,
                    struct snapshot *snapshot, char *why) {
    struct base base = *examiner->base;
    struct volume *volume;
    char options[OPTIONS_MAX];

    if (lenient && base.mount_options && strstr(base.mount_options, "errors=")) {
        snprintf(options, sizeof(options), "%s,errors=continue", base.mount_options);
        base.mount_options = options;
    }
    int error = mount_borrowed(&base, device, &examiner->clock, &examiner->errors,
                               device->read_only, &volume);

    if (error)
        return complain(examiner, why, "the volume cannot be recovered", error);
    bool good = take(examiner, volume, lenient, snapshot, why);
    error = volume_close(volume);
    if (good && error)
        return complain(examiner, why, "unmount after the recovery fails", error);
    return good;
}

static bool compare(const struct examiner *examiner, const struct oracle *oracle,
                    const struct snapshot *found, char *why) {
    return oracle_allows(oracle, examiner->expectation, found, why, WHY_SIZE);
}

/* --- others' programs ------------------------------------------------------------------------- */

/* Recovers the raw state; what they leave must be an allowed tree, too. */
static bool others_recover(struct examiner *examiner, const struct oracle *oracle, char *why) {
    struct device *image;
    char reason[WHY_SIZE - 32] = "";
    int error = fsck_save(examiner->device, examiner->image);
    int code = error ? 0 : fsck_run(examiner->fsck_repair, examiner->image);

    if (error || code < 0)
        return complain(examiner, why, "no image for others", error ? error : code);
    if (code > 1) {
        snprintf(why, WHY_SIZE, "'%s' ends with %d", examiner->fsck_repair, code);
        return false;
    }
    error = device_open_image(examiner->image, DEVICE_READ_ONLY, 0, &examiner->clock, NULL, &image);
    if (error)
        return complain(examiner, why, "no image from others", error);
    bool good =
        recover(examiner, image, false, &examiner->again, reason) &&
        oracle_allows(oracle, examiner->expectation, &examiner->again, reason, sizeof(reason));
    device_close(image);
    if (!good)
        snprintf(why, WHY_SIZE, "after '%s': %s", examiner->fsck_repair, reason);
    return good;
}

static bool others_check(struct examiner *examiner, char *why) {
    int error = fsck_save(examiner->device, examiner->image);
    int code = error ? error : fsck_run(examiner->fsck, examiner->image);

    if (code < 0)
        return complain(examiner, why, "no image for others", code);
    if (code > 0)
        snprintf(why, WHY_SIZE, "'%s' ends with %d after our recovery", examiner->fsck, code);
    return code == 0;
}

/* --- going on after a recovery ---------------------------------------------------------------- */

/* Works on the recovered volume and lets the power go after its fsync: the recording's first
 * *length records are on the disk. */
static bool work_on(struct examiner *examiner, struct device *recorder, size_t *length, char *why) {
    struct volume *volume;
    int error = mount_borrowed(examiner->base, recorder, &examiner->clock, &examiner->errors, false,
                               &volume);

    if (error)
        return complain(examiner, why, "the volume cannot be recovered", error);
    error = perform_make_file(volume, AFTER_PATH, AFTER_BYTES, AFTER_NUMBER);
    *length = examiner->log.count;
    bool good = !error || complain(examiner, why, "a new file after the recovery", error);
    good = good && take(examiner, volume, false, &examiner->again, why);
    int second = volume_close(volume);
    if (good && second)
        return complain(examiner, why, "unmount after new work fails", second);
    return good;
}

/* The tree that is to be there is in `again`; what is there comes to `found`. */
static bool compare_again(struct examiner *examiner, char *why) {
    char difference[WHY_SIZE - 64];

    if (!recover(examiner, examiner->device, false, &examiner->found, why))
        return false;
    if (snapshot_differs(&examiner->again, &examiner->found, difference, sizeof(difference))) {
        snprintf(why, WHY_SIZE, "recovered, worked on, recovered again: %s", difference);
        return false;
    }
    for (size_t i = 0; i < examiner->again.count; i++) {
        if (node_same_data(&examiner->again, &examiner->again.nodes[i], &examiner->found,
                           &examiner->found.nodes[i]))
            continue;
        snprintf(why, WHY_SIZE, "recovered, worked on, recovered again: '%s' has other contents",
                 examiner->again.nodes[i].path);
        return false;
    }
    return true;
}

/* A log that was replayed once must not be replayed over what came after it. */
static bool recover_twice(struct examiner *examiner, const struct state *state, char *why) {
    struct device *borrowed, *recorder;
    size_t length = 0;
    int error = state_make(&examiner->maker, state);

    write_log_clear(&examiner->log);
    if (!error)
        error = device_open_borrowed(examiner->device, &borrowed);
    if (!error) {
        error = device_open_record(borrowed, &examiner->log, &recorder);
        if (error)
            device_close(borrowed);
    }
    if (error)
        return complain(examiner, why, "no recording", error);
    bool good = work_on(examiner, recorder, &length, why);
    device_close(recorder);
    if (!good)
        return false;
    error = state_make(&examiner->maker, state);
    for (size_t i = 0; i < length && !error; i++)
        if (examiner->log.records[i].kind == RECORD_WRITE)
            error = write_log_apply(&examiner->log, &examiner->log.records[i],
                                    examiner->log.records[i].length, examiner->device);
    if (error)
        return complain(examiner, why, "no second state", error);
    return compare_again(examiner, why) && check(examiner, why);
}

/* --- one state -------------------------------------------------------------------------------- */

bool examine_state(struct examiner *examiner, const struct oracle *oracle,
                   const struct state *state, unsigned extras, char *why) {
    /* Without a journal a repair has to come first, and order is not to be expected. */
    bool in_order = examiner->expectation != EXPECT_REPAIR || oracle->unmounted;
    int error = state_make(&examiner->maker, state);

    clock_restart(examiner);
    if (error)
        return complain(examiner, why, "no such state", error);
    if (extras & EXAMINE_OTHERS && examiner->fsck_repair && !others_recover(examiner, oracle, why))
        return false;
    if ((!in_order && !repair(examiner, why)) ||
        !recover(examiner, examiner->device, !in_order, &examiner->found, why) ||
        !compare(examiner, oracle, &examiner->found, why))
        return false;
    if (!in_order)
        return true;
    return check(examiner, why) &&
           (!(extras & EXAMINE_OTHERS) || !examiner->fsck || others_check(examiner, why)) &&
           (!(extras & EXAMINE_AGAIN) || recover_twice(examiner, state, why));
}

bool examine_damaged(struct examiner *examiner, const struct oracle *oracle, bool others,
                     char *why) {
    clock_restart(examiner);
    if (others && examiner->fsck_repair) {
        int error = fsck_save(examiner->device, examiner->image);
        int code = error ? error : fsck_run(examiner->fsck_repair, examiner->image);

        if (code < 0 || code > 1) {
            snprintf(why, WHY_SIZE, "'%s' ends with %d", examiner->fsck_repair, code);
            return false;
        }
    }
    if (!oracle->unmounted && !repair(examiner, why))
        return false;
    return recover(examiner, examiner->device, !oracle->unmounted, &examiner->found, why) &&
           oracle_allows(oracle, EXPECT_REPAIR, &examiner->found, why, WHY_SIZE);
}

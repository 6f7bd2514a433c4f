/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/errors.h.
 */
#include "crash/errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs/device/fault.h"
#include "fs/device/fork.h"

const char error_way_letters[ERROR_WAYS + 1] = "oflm"; /* once, from then on; the same, late */

void errors_text(uint64_t call, unsigned way, char text[STATE_TEXT_SIZE]) {
    snprintf(text, STATE_TEXT_SIZE, "%" PRIu64 ".%c", call, error_way_letters[way]);
}

/* The tree is read where the recording read it, too: the same calls in the same order. */
static bool tree_readable(struct examiner *examiner, struct volume *volume) {
    char where[NODE_PATH_MAX];

    return snapshot_take(volume, &examiner->again, where) == 0;
}

/* Until the first error that no fault-free run has. */
static void run_operations(struct examiner *examiner, struct volume *volume,
                           const struct recording *recording, struct oracle *oracle,
                           struct error_outcome *outcome) {
    const struct workload *workload = recording->workload;

    outcome->reported = perform_setup(volume, workload) != 0 || !tree_readable(examiner, volume);
    if (!outcome->reported)
        oracle_start(oracle, recording);
    for (unsigned i = 0; i < workload->count && !outcome->reported; i++) {
        clock_wait_until(volume->clock, clock_now(volume->clock) + NS_PER_MS);
        oracle_begun(oracle, i);
        int result = perform(volume, &workload->ops[i], i);
        outcome->reported = result != recording->result[i];
        outcome->at = i;
        if (result == 0 && !outcome->reported)
            oracle_ended(oracle, i);
        if (op_changes(workload->ops[i].kind) && !outcome->reported)
            outcome->reported = !tree_readable(examiner, volume);
    }
}

static void run_mounted(struct examiner *examiner, const struct recording *recording,
                        struct device *device, struct oracle *oracle,
                        struct error_outcome *outcome) {
    struct volume *volume;
    int error = mount_borrowed(examiner->base, device, &examiner->clock, NULL, false, &volume);

    outcome->reported = error != 0;
    if (error)
        return;
    run_operations(examiner, volume, recording, oracle, outcome);
    if (!outcome->reported) {
        outcome->at = UNMOUNT(recording->workload);
        oracle_begun(oracle, outcome->at);
    }
    outcome->stopped = volume->failed;
    outcome->metadata_lost = device_fault_metadata_lost(device) > 0;
    error = volume_close(volume);
    outcome->reported |= error != 0;
    if (!outcome->reported)
        oracle_ended(oracle, UNMOUNT(recording->workload));
}

bool errors_run(struct examiner *examiner, const struct recording *recording, uint64_t call,
                unsigned way, bool others, struct error_outcome *outcome, char *why) {
    struct fault_plan plan = {
        .fail_call = call, .fail_onwards = way % 2 == 1, .fail_late = way / 2 == 1};
    /* Until the start is durable nothing is promised. */
    static const struct recording nothing;
    struct oracle oracle = {.recording = &nothing};
    struct device *borrowed, *fault;

    *outcome = (struct error_outcome){.at = UNMOUNT(recording->workload) + 1};
    device_fork_reset(examiner->device);
    device_fork_reset(examiner->stable);
    clock_init_virtual(&examiner->clock, NULL);
    int error = device_open_borrowed(examiner->device, &borrowed);
    if (!error) {
        error = device_open_fault(borrowed, &plan, &fault);
        if (error)
            device_close(borrowed);
    }
    if (error) {
        snprintf(why, WHY_SIZE, "%s", strerror(-error));
        return false;
    }
    run_mounted(examiner, recording, fault, &oracle, outcome);
    outcome->reached = device_fault_failures(fault) > 0;
    device_close(fault);
    if (outcome->metadata_lost && !outcome->stopped && examiner->stops) {
        snprintf(why, WHY_SIZE, "metadata could not be written, and the volume goes on");
        return false;
    }
    return examine_damaged(examiner, &oracle, others, why);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/fault.h.
 *
 * Writes go down at once. So that a power cut can take back what the disk had only in its cache,
 * each write since the last flush is kept with the bytes that it replaced.
 *
 * Invariants:
 *  1. Undoing `undo` from its end to its start leaves the device below as at the last flush.
 *  2. `undo` stays empty where the plan keeps all and tears nothing.
 *  3. After the cut nothing is passed on any more.
 */
#include "fs/device/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/stack.h"
#include "fs/random.h"

#define MILLION    1000000u
#define ROOM_CHUNK 4096u /* the backing store's unit of allocation */

struct undo {
    uint64_t offset;
    uint32_t length;
    unsigned char *old, *new; /* one allocation, owned through `old` */
};

struct fault {
    struct device device;
    struct fault_plan plan;
    struct random random;
    uint64_t calls, writes, failures, metadata_lost;
    bool cut;
    struct undo *undo; /* since the last flush, in order */
    size_t undo_count, undo_room;
    uint64_t room_left;
    uint8_t *allocated; /* bit by ROOM_CHUNK; NULL: room is unlimited */
};

/* --- power ------------------------------------------------------------------------------------ */

static void undo_clear(struct fault *fault) {
    for (size_t i = 0; i < fault->undo_count; i++)
        free(fault->undo[i].old);
    fault->undo_count = 0;
}

static void copy_from_vector(const struct device_request *request, unsigned char *bytes) {
    for (int i = 0; i < request->vector_count; i++) {
        memcpy(bytes, request->vector[i].iov_base, request->vector[i].iov_len);
        bytes += request->vector[i].iov_len;
    }
}

/* Remembers what the write replaces, before it is passed on. */
static int undo_append(struct fault *fault, const struct device_request *request) {
    if (fault->undo_count == fault->undo_room) {
        size_t room = fault->undo_room ? fault->undo_room * 2 : 64;
        struct undo *undo = reallocarray(fault->undo, room, sizeof(*undo));

        if (!undo)
            return -ENOMEM;
        fault->undo = undo;
        fault->undo_room = room;
    }
    unsigned char *bytes = malloc((size_t)request->length * 2);
    if (!bytes)
        return -ENOMEM;
    int error =
        device_read(fault->device.lower, request->offset, bytes, request->length, request->purpose);
    if (error) {
        free(bytes);
        return error;
    }
    copy_from_vector(request, bytes + request->length);
    fault->undo[fault->undo_count++] =
        (struct undo){request->offset, request->length, bytes, bytes + request->length};
    return 0;
}

static int put_back(struct fault *fault, const struct undo *undo, const unsigned char *bytes) {
    return device_write(fault->device.lower, undo->offset, bytes, undo->length, PURPOSE_OTHER);
}

/* Some of the first `count` writes, in any order (Fisher and Yates). */
static int reorder(struct fault *fault, size_t count) {
    int error = 0;

    for (size_t left = count; left > 0 && !error; left--) {
        size_t pick = random_below(&fault->random, (uint32_t)left);
        struct undo chosen = fault->undo[pick];

        fault->undo[pick] = fault->undo[left - 1];
        fault->undo[left - 1] = chosen;
        if (random_below(&fault->random, 2))
            error = put_back(fault, &chosen, chosen.new);
    }
    return error;
}

/* The last write, of which only some first sectors arrive. */
static int tear(struct fault *fault, const struct undo *last) {
    uint32_t sectors = last->length / DEVICE_SECTOR;
    uint32_t stored = random_below(&fault->random, sectors) * DEVICE_SECTOR;
    int error = 0;

    if (stored > 0)
        error = device_write(fault->device.lower, last->offset, last->new, stored, PURPOSE_OTHER);
    if (error || !fault->plan.garbage)
        return error;
    unsigned char sector[DEVICE_SECTOR];
    for (size_t i = 0; i < sizeof(sector); i++)
        sector[i] = (unsigned char)random_next(&fault->random);
    return device_write(fault->device.lower, last->offset + stored, sector, sizeof(sector),
                        PURPOSE_OTHER);
}

/* Right after the last write was passed on. */
static int power_cut(struct fault *fault) {
    const struct fault_plan *plan = &fault->plan;
    int error = 0;

    fault->cut = true;
    if (fault->undo_count == 0)
        return -EIO;
    struct undo last = fault->undo[fault->undo_count - 1];
    for (size_t i = fault->undo_count; i-- > 0 && !error;)
        error = put_back(fault, &fault->undo[i], fault->undo[i].old);
    size_t earlier = fault->undo_count - plan->tear;
    if (!error && plan->unsynced == FAULT_KEEP)
        for (size_t i = 0; i < earlier && !error; i++)
            error = put_back(fault, &fault->undo[i], fault->undo[i].new);
    else if (!error && plan->unsynced == FAULT_REORDER)
        error = reorder(fault, earlier);
    if (!error && plan->tear)
        error = tear(fault, &last);
    undo_clear(fault);
    return error ? error : -EIO;
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool by_chance(struct fault *fault, uint32_t per_million) {
    return per_million > 0 && random_below(&fault->random, MILLION) < per_million;
}

static int fault_error(struct fault *fault) {
    fault->failures++;
    return fault->plan.error ? fault->plan.error : -EIO;
}

/* Counts the call. 0, or the error that it is to answer. */
static int call_begins(struct fault *fault) {
    const struct fault_plan *plan = &fault->plan;

    fault->calls++;
    if (fault->cut)
        return -EIO;
    if (plan->fail_call &&
        (fault->calls == plan->fail_call || (plan->fail_onwards && fault->calls > plan->fail_call)))
        return fault_error(fault);
    return 0;
}

static bool touches_area(const struct fault_plan *plan, const struct device_request *request) {
    bool write = request->operation == DEVICE_WRITE;

    for (unsigned i = 0; i < plan->area_count; i++) {
        const struct fault_area *area = &plan->areas[i];

        if ((write ? area->fails_write : area->fails_read) &&
            request->offset < area->offset + area->length &&
            area->offset < request->offset + request->length)
            return true;
    }
    return false;
}

/* Takes room for chunks that were never written to. */
static int take_room(struct fault *fault, const struct device_request *request) {
    uint64_t first = request->offset / ROOM_CHUNK;
    uint64_t last = (request->offset + request->length - 1) / ROOM_CHUNK;

    for (uint64_t chunk = first; fault->allocated && chunk <= last; chunk++) {
        uint8_t bit = (uint8_t)(1u << chunk % 8);

        if (fault->allocated[chunk / 8] & bit)
            continue;
        if (fault->room_left < ROOM_CHUNK) {
            fault->failures++;
            return -ENOSPC;
        }
        fault->room_left -= ROOM_CHUNK;
        fault->allocated[chunk / 8] |= bit;
    }
    return 0;
}

static int request_error(struct fault *fault, const struct device_request *request) {
    const struct fault_plan *plan = &fault->plan;

    if (touches_area(plan, request) || by_chance(fault, plan->fail_per_million[request->operation]))
        return fault_error(fault);
    return request->operation == DEVICE_WRITE ? take_room(fault, request) : 0;
}

static void flip_bit(struct fault *fault, const struct device_request *request) {
    uint32_t bit = random_below(&fault->random, 8);
    uint32_t byte = random_below(&fault->random, request->length);

    for (int i = 0; i < request->vector_count; i++) {
        const struct iovec *piece = &request->vector[i];

        if (byte < piece->iov_len) {
            ((unsigned char *)piece->iov_base)[byte] ^= (unsigned char)(1u << bit);
            return;
        }
        byte -= (uint32_t)piece->iov_len;
    }
}

/* --- the layer -------------------------------------------------------------------------------- */

static int fault_write(struct fault *fault, const struct device_request *request) {
    const struct fault_plan *plan = &fault->plan;
    int error = 0;

    if (plan->cut_at_write && (plan->unsynced != FAULT_KEEP || plan->tear))
        error = undo_append(fault, request);
    if (!error)
        error = device_pass(fault->device.lower, request);
    if (error)
        return error;
    fault->writes++;
    return fault->writes == plan->cut_at_write ? power_cut(fault) : 0;
}

static int fault_submit(struct device *device, const struct device_request *request) {
    struct fault *fault = (struct fault *)device;
    const struct fault_plan *plan = &fault->plan;
    int error = call_begins(fault);

    if (!error)
        error = request_error(fault, request);
    if (error && request->operation == DEVICE_WRITE && request->purpose != PURPOSE_DATA)
        fault->metadata_lost++;
    if (error && plan->fail_late && request->batch && !fault->cut) {
        if (!request->batch->error)
            request->batch->error = error;
        return 0;
    }
    if (error)
        return error;
    if (by_chance(fault, plan->slow_per_million))
        clock_wait_until(device->clock, clock_now(device->clock) + plan->slow_ns);
    if (request->operation == DEVICE_WRITE)
        return fault_write(fault, request);
    error = device_pass(device->lower, request);
    if (!error && by_chance(fault, plan->flips_per_million))
        flip_bit(fault, request);
    return error;
}

static int fault_flush(struct device *device) {
    struct fault *fault = (struct fault *)device;
    int error = call_begins(fault);

    if (!error)
        error = device_flush(device->lower);
    if (!error)
        undo_clear(fault);
    return error;
}

static int fault_zero(struct device *device, uint64_t offset, uint64_t length) {
    return -EOPNOTSUPP; /* device_zero then writes zeros, which may fail */
}

static void fault_close(struct device *device) {
    struct fault *fault = (struct fault *)device;

    undo_clear(fault);
    free(fault->undo);
    free(fault->allocated);
    free(fault);
}

static const struct device_operations fault_operations = {
    .name = "fault",
    .submit = fault_submit,
    .flush = fault_flush,
    .zero = fault_zero,
    .close = fault_close,
};

int device_open_fault(struct device *lower, const struct fault_plan *plan, struct device **out) {
    struct fault *fault = calloc(1, sizeof(*fault));

    if (!fault)
        return -ENOMEM;
    device_layer_init(&fault->device, &fault_operations, lower);
    fault->plan = *plan;
    fault->random.state = plan->seed;
    fault->room_left = plan->room;
    if (plan->room) {
        fault->allocated = calloc(lower->size / ROOM_CHUNK / 8 + 1, 1);
        if (!fault->allocated) {
            free(fault);
            return -ENOMEM;
        }
    }
    *out = &fault->device;
    return 0;
}

uint64_t device_fault_calls(const struct device *device) {
    return ((const struct fault *)device)->calls;
}

uint64_t device_fault_failures(const struct device *device) {
    return ((const struct fault *)device)->failures;
}

uint64_t device_fault_metadata_lost(const struct device *device) {
    return ((const struct fault *)device)->metadata_lost;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/fork.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/device/fork.h"
#include "fs/device/stack.h"

struct borrowed {
    struct device device;
    struct device *target; /* not device.lower, which device_close would close */
};

static struct device *borrowed_target(struct device *device) {
    return ((struct borrowed *)device)->target;
}

static int borrowed_submit(struct device *device, const struct device_request *request) {
    return device_pass(borrowed_target(device), request);
}

static int borrowed_wait(struct device *device, struct device_batch *batch) {
    return device_wait(borrowed_target(device), batch);
}

static int borrowed_flush(struct device *device) {
    return device_flush(borrowed_target(device));
}

static enum device_state borrowed_poll(struct device *device) {
    return device_poll(borrowed_target(device));
}

static int borrowed_drain(struct device *device) {
    return device_drain(borrowed_target(device));
}

static int borrowed_zero(struct device *device, uint64_t offset, uint64_t length) {
    return device_zero(borrowed_target(device), offset, length);
}

static int borrowed_discard(struct device *device, uint64_t offset, uint64_t length) {
    return device_discard(borrowed_target(device), offset, length);
}

static void borrowed_stats(struct device *device, struct device_stats *stats) {
    device_stats(borrowed_target(device), stats);
}

static void borrowed_close(struct device *device) {
    free(device);
}

static const struct device_operations borrowed_operations = {
    .name = "borrowed",
    .submit = borrowed_submit,
    .wait = borrowed_wait,
    .flush = borrowed_flush,
    .drain = borrowed_drain,
    .poll = borrowed_poll,
    .zero = borrowed_zero,
    .discard = borrowed_discard,
    .stats = borrowed_stats,
    .close = borrowed_close,
};

int device_open_borrowed(struct device *target, struct device **out) {
    struct borrowed *borrowed = calloc(1, sizeof(*borrowed));

    if (!borrowed)
        return -ENOMEM;
    device_layer_init(&borrowed->device, &borrowed_operations, target);
    borrowed->device.lower = NULL;
    borrowed->target = target;
    *out = &borrowed->device;
    return 0;
}

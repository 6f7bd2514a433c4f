/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See partition.h. Every call but these two is passed down by the device layer
 * itself.
 */
#include "bench/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct partition {
    struct device device; /* first */
    uint64_t start;
};

static uint64_t start_of(const struct device *device) {
    return ((const struct partition *)device)->start;
}

static int partition_submit(struct device *device, const struct device_request *request) {
    struct device_request moved = *request;

    moved.offset += start_of(device);
    return device_submit(device->lower, &moved);
}

static int partition_zero(struct device *device, uint64_t offset, uint64_t length) {
    return device_zero(device->lower, start_of(device) + offset, length);
}

static int partition_discard(struct device *device, uint64_t offset, uint64_t length) {
    return device_discard(device->lower, start_of(device) + offset, length);
}

static void partition_close(struct device *device) {
    free(device);
}

static const struct device_operations partition_operations = {
    .name = "partition",
    .submit = partition_submit,
    .zero = partition_zero,
    .discard = partition_discard,
    .close = partition_close,
};

int partition_open(struct device *lower, uint64_t start, uint64_t size, struct device **device) {
    struct partition *partition;

    if (start % DEVICE_SECTOR || size % DEVICE_SECTOR || start > lower->size ||
        size > lower->size - start) {
        log_error(lower->log,
                  "%s: a volume of %" PRIu64 " bytes at %" PRIu64
                  " does not fit in the disk's %" PRIu64,
                  lower->name, size, start, lower->size);
        return -EINVAL;
    }
    partition = calloc(1, sizeof(*partition));
    if (!partition)
        return -ENOMEM;
    partition->device = (struct device){.operations = &partition_operations,
                                        .lower = lower,
                                        .clock = lower->clock,
                                        .log = lower->log,
                                        .size = size,
                                        .read_only = lower->read_only};
    snprintf(partition->device.name, sizeof(partition->device.name), "%.200s partition",
             lower->name);
    partition->start = start;
    *device = &partition->device;
    return 0;
}

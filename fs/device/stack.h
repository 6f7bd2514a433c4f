/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private.
 * What the implementations of the device contract share.
 */
#ifndef LAYOUTFS_DEVICE_STACK_H
#define LAYOUTFS_DEVICE_STACK_H

#include <errno.h>
#include <stdio.h>

#include "fs/device/device.h"

/* Hands a request that the layer above has validated to a device of at least the same size. */
static inline int device_pass(struct device *device, const struct device_request *request) {
    return device->operations->submit(device, request);
}

/* Initialises the common part of a layer from the device it stands on. */
static inline void device_layer_init(struct device *device,
                                     const struct device_operations *operations,
                                     struct device *lower) {
    device->operations = operations;
    device->lower = lower;
    device->clock = lower->clock;
    device->log = lower->log;
    device->size = lower->size;
    device->read_only = lower->read_only;
    snprintf(device->name, sizeof(device->name), "%s", lower->name);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, a layer over any device.
 * Reports every request, at its submission and before the layers below merge or reorder it.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/device/device.h"
#include "fs/device/stack.h"

struct trace {
    struct device device;
    void (*record)(void *, const struct trace_record *);
    void *context;
};

static int trace_submit(struct device *device, const struct device_request *request) {
    struct trace *trace = (struct trace *)device;
    struct trace_record record = {.submit_ns = clock_now(device->clock),
                                  .offset = request->offset,
                                  .length = request->length,
                                  .operation = request->operation,
                                  .purpose = request->purpose};
    trace->record(trace->context, &record);
    return device_pass(device->lower, request);
}

static void trace_close(struct device *device) {
    free(device);
}

static const struct device_operations trace_operations = {
    .name = "trace",
    .submit = trace_submit,
    .close = trace_close,
};

int device_open_trace(struct device *lower, void (*record)(void *, const struct trace_record *),
                      void *context, struct device **device) {
    struct trace *trace = calloc(1, sizeof(*trace));
    if (!trace)
        return -ENOMEM;
    device_layer_init(&trace->device, &trace_operations, lower);
    trace->record = record;
    trace->context = context;
    *device = &trace->device;
    return 0;
}

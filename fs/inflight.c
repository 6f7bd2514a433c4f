/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/inflight.h.
 */
#include "fs/inflight.h"

#include <assert.h>

void inflight_init(struct inflight_list *list) {
    *list = (struct inflight_list){.recycler.size = sizeof(struct inflight)};
    STAILQ_INIT(&list->queue);
}

void inflight_destroy(struct inflight_list *list) {
    inflight_reap(list);
    assert(STAILQ_EMPTY(&list->queue));
    recycle_drain(&list->recycler);
}

struct inflight *inflight_begin(struct inflight_list *list) {
    struct inflight *inflight = recycle_get(&list->recycler);

    if (inflight)
        inflight->users = 1;
    return inflight;
}

bool inflight_end(struct inflight_list *list, struct inflight *inflight, uint64_t bytes,
                  int *error) {
    *error = inflight->batch.error;
    if (!inflight_pending(inflight)) {
        inflight_put(list, inflight);
        return false;
    }
    inflight->bytes = bytes;
    list->bytes += bytes;
    list->entered++;
    STAILQ_INSERT_TAIL(&list->queue, inflight, link);
    return true;
}

void inflight_hold(struct inflight *inflight) {
    inflight->users++;
}

void inflight_put(struct inflight_list *list, struct inflight *inflight) {
    if (--inflight->users == 0)
        recycle_put(&list->recycler, inflight);
}

int inflight_reap(struct inflight_list *list) {
    struct inflight *inflight;
    int error = 0;

    while ((inflight = STAILQ_FIRST(&list->queue)) && !inflight_pending(inflight)) {
        if (!error)
            error = inflight->batch.error;
        if (inflight->batch.error && list->failed)
            list->failed(list->context, inflight);
        STAILQ_REMOVE_HEAD(&list->queue, link);
        list->bytes -= inflight->bytes;
        list->left++;
        inflight_put(list, inflight);
    }
    return error;
}

int inflight_wait(struct inflight *inflight, struct pool *pool, struct device *device) {
    int error;

    if (!inflight_pending(inflight))
        return inflight->batch.error;
    pool_unlock(pool);
    error = device_wait(device, &inflight->batch);
    pool_lock(pool);
    return error;
}

int inflight_drain(struct inflight_list *list, uint64_t bytes, struct pool *pool,
                   struct device *device) {
    int error = inflight_reap(list);
    uint64_t last = list->entered;

    while (list->left < last && list->bytes > bytes) {
        struct inflight *first = STAILQ_FIRST(&list->queue);
        int result;

        inflight_hold(first);
        inflight_wait(first, pool, device);
        inflight_put(list, first);
        result = inflight_reap(list);
        if (!error)
            error = result;
    }
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, over any device that holds the bytes.
 * The host's request queue in front of a modelled disk: merging, scheduling, and the events of the
 * simulation. The disk itself is behind fs/device/drive.h.
 *
 * C-LOOK works as Linux's deadline scheduler does: requests are served in batches of one direction
 * (reading or writing), upwards on the disk from where the last request ended, then from the
 * lowest. Reads go before writes, but writes are passed over at most twice; a request that has
 * waited its deadline starts the next batch of its direction.
 *
 * Plugging: requests that come in a burst to an idle disk are held back until somebody waits, the
 * burst pauses, or it is large, so that neighbours are merged before the first is served.
 *
 * Invariants:
 *  1. Everything up to e->now has happened, and e->now <= the clock's time except inside step().
 *  2. A request is in its direction's tree and FIFO list until dispatched, then in the disk, then
 *     free; count[direction] counts those not free, at most queue_requests.
 *  3. A batch's pending is the sum of the counts of its parts in requests that are not free.
 *  4. A flush is pending in its batch, as are the writes before it. When these are complete, the
 * disk gets it, empty, and nothing else until it is over.
 *  5. At any moment, completions are processed before submissions, and a decision to dispatch falls
 *     only when time has passed beyond it or somebody waits.
 */
#include <bsd/sys/tree.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "fs/device/device.h"
#include "fs/device/disk.h"
#include "fs/device/drive.h"
#include "fs/device/stack.h"

/* The defaults of Linux's deadline scheduler. */
#define READ_DEADLINE_NS  (500 * NS_PER_MS)
#define WRITE_DEADLINE_NS (5 * NS_PER_SEC)
#define DISPATCH_BATCH    16
#define WRITES_STARVED    2
/* The plug: as Linux's, 3 ms at most and less for a large burst; a pause ends it too, which stands
 * for the submitter's explicit unplugging at the end of its batch. */
#define PLUG_NS       (3 * NS_PER_MS)
#define PLUG_PAUSE_NS (100 * NS_PER_US)
#define PLUG_REQUESTS 16

#define PART_CHUNK 256

/* Of the requests that the queue has room for: with more, it is congested (Linux: 7/8). */
#define CONGESTED_EIGHTHS 7

/* One batch's share in a request. */
struct part {
    struct part *next;
    struct device_batch *batch;
    uint32_t count;
};

struct elevator_request {
    struct drive_command command; /* first, so that the disk's command is the request */
    RB_ENTRY(elevator_request) node;
    TAILQ_ENTRY(elevator_request) fifo;
    uint64_t sequence;
    int64_t deadline_ns;
    struct part *parts;
    struct elevator_request *next_free;
};
RB_HEAD(requests, elevator_request);
TAILQ_HEAD(request_fifo, elevator_request);

struct part_chunk {
    struct part_chunk *next;
    struct part parts[PART_CHUNK];
};

struct elevator_device {
    struct device device;
    struct drive *drive;
    struct device_stats stats;
    enum elevator policy;
    uint32_t queue_requests, queue_depth, merge_sectors;
    int64_t now;

    struct requests sorted[2]; /* by device_operation */
    struct request_fifo fifo[2];
    uint32_t queued;            /* in both trees */
    struct request_fifo inside; /* handed to the disk, not complete */
    uint32_t in_disk;           /* so many */
    uint32_t count[2];          /* queued or in the disk */
    uint64_t sequence;

    uint64_t head_lba; /* where the request dispatched last ended */
    enum device_operation direction;
    unsigned batch_left;
    unsigned writes_passed_over;

    struct device_batch *flush; /* of one under way beside others' requests; NULL: none is */
    int64_t flush_ns;           /* when the disk's cache is empty; 0: the disk has not got it yet */

    bool plugged;
    int64_t plug_start_ns, plug_last_ns;

    struct elevator_request *request_room, *request_free;
    struct part_chunk *part_chunks;
    struct part *part_free;
};

static int request_compare(const struct elevator_request *a, const struct elevator_request *b) {
    if (a->command.lba != b->command.lba)
        return a->command.lba < b->command.lba ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

RB_GENERATE_INTERNAL(requests, elevator_request, node, request_compare,
                     __attribute__((unused)) static)

static inline uint64_t request_end(const struct elevator_request *request) {
    return request->command.lba + request->command.sectors;
}

/* The first queued request at or after `lba`. */
static struct elevator_request *queue_at(struct elevator_device *e, enum device_operation direction,
                                         uint64_t lba) {
    struct elevator_request key = {.command = {.lba = lba}};
    return RB_NFIND(requests, &e->sorted[direction], &key);
}

/* --- parts ----------------------------------------------------------------------------------- */

static int parts_reserve(struct elevator_device *e, uint32_t count) {
    struct part *part = e->part_free;
    while (part && count) {
        part = part->next;
        count--;
    }
    for (; count; count -= count < PART_CHUNK ? count : PART_CHUNK) {
        struct part_chunk *chunk = calloc(1, sizeof(*chunk));
        if (!chunk)
            return -ENOMEM;
        chunk->next = e->part_chunks;
        e->part_chunks = chunk;
        for (unsigned i = 0; i < PART_CHUNK; i++) {
            chunk->parts[i].next = e->part_free;
            e->part_free = &chunk->parts[i];
        }
    }
    return 0;
}

static void part_add(struct elevator_device *e, struct elevator_request *request,
                     struct device_batch *batch) {
    if (!batch)
        return;
    batch->pending++;
    struct part *part = request->parts;
    if (part && part->batch == batch) {
        part->count++;
        return;
    }
    part = e->part_free;
    e->part_free = part->next;
    *part = (struct part){.next = request->parts, .batch = batch, .count = 1};
    request->parts = part;
}

static void parts_complete(struct elevator_device *e, struct elevator_request *request) {
    while (request->parts) {
        struct part *part = request->parts;
        request->parts = part->next;
        part->batch->pending -= part->count;
        part->next = e->part_free;
        e->part_free = part;
    }
}

/* --- the queue ------------------------------------------------------------------------------- */

static void queue_insert(struct elevator_device *e, struct elevator_request *request) {
    enum device_operation direction = request->command.operation;
    request->sequence = ++e->sequence;
    request->deadline_ns =
        e->now + (direction == DEVICE_READ ? READ_DEADLINE_NS : WRITE_DEADLINE_NS);
    RB_INSERT(requests, &e->sorted[direction], request);
    TAILQ_INSERT_TAIL(&e->fifo[direction], request, fifo);
    e->queued++;
}

static void queue_remove(struct elevator_device *e, struct elevator_request *request) {
    enum device_operation direction = request->command.operation;
    RB_REMOVE(requests, &e->sorted[direction], request);
    TAILQ_REMOVE(&e->fifo[direction], request, fifo);
    e->queued--;
}

static void request_release(struct elevator_device *e, struct elevator_request *request) {
    e->count[request->command.operation]--;
    request->next_free = e->request_free;
    e->request_free = request;
}

/* Unites a request with the one that begins where it ends, if they are not too large together. The
 * older's deadline and place in the FIFO list hold for both. */
static void queue_join(struct elevator_device *e, struct elevator_request *request,
                       struct elevator_request *next) {
    if (!request || !next || next->command.lba != request_end(request) ||
        request->command.sectors + next->command.sectors > e->merge_sectors)
        return;
    if (next->sequence < request->sequence) {
        TAILQ_REMOVE(&e->fifo[request->command.operation], request, fifo);
        TAILQ_INSERT_BEFORE(next, request, fifo);
        request->deadline_ns = next->deadline_ns;
    }
    queue_remove(e, next);
    request->command.sectors += next->command.sectors;
    struct part **tail = &request->parts;
    while (*tail)
        tail = &(*tail)->next;
    *tail = next->parts;
    next->parts = NULL;
    request_release(e, next);
}

/* Extends a queued request by a neighbouring range; NULL: there is none. */
static struct elevator_request *queue_merge(struct elevator_device *e,
                                            enum device_operation direction, uint64_t lba,
                                            uint32_t sectors) {
    struct elevator_request *above = queue_at(e, direction, lba);
    struct elevator_request *below = above ? RB_PREV(requests, &e->sorted[direction], above)
                                           : RB_MAX(requests, &e->sorted[direction]);
    if (below && request_end(below) == lba &&
        below->command.sectors + sectors <= e->merge_sectors) {
        below->command.sectors += sectors;
        queue_join(e, below, above);
        return below;
    }
    above = queue_at(e, direction, lba + sectors);
    if (above && above->command.lba == lba + sectors &&
        above->command.sectors + sectors <= e->merge_sectors) {
        /* Requests may overlap, so that the lower start can change its order. */
        RB_REMOVE(requests, &e->sorted[direction], above);
        above->command.lba = lba;
        above->command.sectors += sectors;
        RB_INSERT(requests, &e->sorted[direction], above);
        return above;
    }
    return NULL;
}

/* --- choosing the next request --------------------------------------------------------------- */

static enum device_operation choose_direction(struct elevator_device *e) {
    bool reads = !RB_EMPTY(&e->sorted[DEVICE_READ]);
    bool writes = !RB_EMPTY(&e->sorted[DEVICE_WRITE]);
    if (reads && !(writes && e->writes_passed_over >= WRITES_STARVED)) {
        e->writes_passed_over += writes;
        return DEVICE_READ;
    }
    e->writes_passed_over = 0;
    return DEVICE_WRITE;
}

static struct elevator_request *choose_clook(struct elevator_device *e) {
    struct elevator_request *request = queue_at(e, e->direction, e->head_lba);
    if (request && e->batch_left) {
        e->batch_left--;
        return request;
    }
    e->direction = choose_direction(e);
    e->batch_left = DISPATCH_BATCH - 1;
    struct elevator_request *oldest = TAILQ_FIRST(&e->fifo[e->direction]);
    if (oldest->deadline_ns <= e->now)
        return oldest;
    request = queue_at(e, e->direction, e->head_lba);
    return request ? request : RB_MIN(requests, &e->sorted[e->direction]);
}

static struct elevator_request *choose_fifo(struct elevator_device *e) {
    struct elevator_request *read = TAILQ_FIRST(&e->fifo[DEVICE_READ]);
    struct elevator_request *write = TAILQ_FIRST(&e->fifo[DEVICE_WRITE]);
    if (!read || !write)
        return read ? read : write;
    return read->sequence < write->sequence ? read : write;
}

/* --- events ---------------------------------------------------------------------------------- */

static void account_dispatch(struct elevator_device *e, const struct elevator_request *request) {
    uint64_t lba = request->command.lba;
    e->stats.requests[request->command.operation]++;
    if (lba != e->head_lba) {
        uint64_t distance = lba > e->head_lba ? lba - e->head_lba : e->head_lba - lba;
        e->stats.seeks++;
        e->stats.seek_bytes += distance * DEVICE_SECTOR;
    }
    e->head_lba = request_end(request);
}

/* All writes before the flush are complete. */
static bool flush_is_next(const struct elevator_device *e) {
    return e->flush && e->flush->pending == 1;
}

static bool can_dispatch(const struct elevator_device *e) {
    return e->queued && e->in_disk < e->queue_depth && !flush_is_next(e);
}

/* Fills the disk's queue at e->now. */
static void dispatch(struct elevator_device *e) {
    e->plugged = false;
    while (can_dispatch(e)) {
        struct elevator_request *request =
            e->policy == ELEVATOR_CLOOK ? choose_clook(e) : choose_fifo(e);
        queue_remove(e, request);
        account_dispatch(e, request);
        TAILQ_INSERT_TAIL(&e->inside, request, fifo);
        e->in_disk++;
        e->drive->operations->accept(e->drive, &request->command, e->now);
    }
    e->drive->operations->start(e->drive, e->now);
}

static int64_t next_completion(const struct elevator_device *e) {
    return e->flush_ns ? e->flush_ns : e->drive->operations->next_completion(e->drive);
}

static void flush_begin_if_next(struct elevator_device *e) {
    if (flush_is_next(e) && e->in_disk == 0)
        e->flush_ns = e->drive->operations->flush(e->drive, e->now);
}

static void flush_complete(struct elevator_device *e) {
    e->flush->pending--;
    e->flush = NULL;
    e->flush_ns = 0;
    e->stats.flushes++;
}

static void request_complete(struct elevator_device *e) {
    struct elevator_request *request =
        (struct elevator_request *)e->drive->operations->complete(e->drive);
    TAILQ_REMOVE(&e->inside, request, fifo);
    e->in_disk--;
    parts_complete(e, request);
    request_release(e, request);
    e->drive->operations->start(e->drive, e->now);
    flush_begin_if_next(e);
}

static void complete(struct elevator_device *e) {
    e->now = next_completion(e);
    if (e->flush_ns)
        flush_complete(e);
    else
        request_complete(e);
}

/* When the queue's requests may go to the disk. */
static int64_t release_time(const struct elevator_device *e) {
    if (!e->plugged)
        return e->now;
    int64_t longest = e->plug_start_ns + PLUG_NS;
    int64_t pause = e->plug_last_ns + PLUG_PAUSE_NS;
    return longest < pause ? longest : pause;
}

/* Lets everything happen that happens by `until`; invariant 4 says what does not yet. */
static void advance(struct elevator_device *e, int64_t until) {
    for (;;) {
        int64_t next = next_completion(e);
        int64_t release = can_dispatch(e) ? release_time(e) : INT64_MAX;
        if (release < until && release <= next) {
            e->now = release > e->now ? release : e->now;
            dispatch(e);
        } else if (next <= until) {
            complete(e);
        } else {
            break;
        }
    }
    if (e->now < until)
        e->now = until;
}

/* Lets the next thing happen because somebody waits for it; there is one. */
static void step(struct elevator_device *e) {
    if (can_dispatch(e))
        dispatch(e);
    else
        complete(e);
}

static void elevator_idle(struct elevator_device *e) {
    advance(e, e->device.clock->now_ns);
    while (e->queued || e->in_disk || e->flush)
        step(e);
    clock_wait_until(e->device.clock, e->now);
}

/* --- the device contract --------------------------------------------------------------------- */

static void plug(struct elevator_device *e) {
    if (e->queued == 0 && e->in_disk == 0) {
        e->plugged = true;
        e->plug_start_ns = e->now;
    }
    e->plug_last_ns = e->now;
    if (e->queued + 1 >= PLUG_REQUESTS)
        e->plugged = false;
}

static void enqueue_piece(struct elevator_device *e, enum device_operation operation, uint64_t lba,
                          uint32_t sectors, struct device_batch *batch) {
    plug(e);
    struct elevator_request *request = queue_merge(e, operation, lba, sectors);
    if (!request) {
        while (e->count[operation] >= e->queue_requests)
            step(e);
        clock_wait_until(e->device.clock, e->now);
        request = e->request_free;
        e->request_free = request->next_free;
        e->count[operation]++;
        request->command =
            (struct drive_command){.lba = lba, .sectors = sectors, .operation = operation};
        request->parts = NULL;
        queue_insert(e, request);
    }
    part_add(e, request, batch);
}

/* The modelled life of a request whose bytes have moved; parts are reserved. */
static void enqueue(struct elevator_device *e, enum device_operation operation,
                    enum purpose purpose, uint64_t offset, uint32_t length,
                    struct device_batch *batch) {
    struct clock *clock = e->device.clock;
    clock_charge(clock, COST_REQUEST, 1);
    advance(e, clock->now_ns);
    e->stats.bytes[operation][purpose] += length;
    uint64_t lba = offset / DEVICE_SECTOR;
    for (uint32_t left = length / DEVICE_SECTOR; left;) {
        uint32_t sectors = left < e->merge_sectors ? left : e->merge_sectors;
        enqueue_piece(e, operation, lba, sectors, batch);
        lba += sectors;
        left -= sectors;
    }
}

static int elevator_submit(struct device *device, const struct device_request *request) {
    struct elevator_device *e = (struct elevator_device *)device;
    uint32_t pieces = request->length / DEVICE_SECTOR / e->merge_sectors + 1;
    int error = request->batch ? parts_reserve(e, pieces) : 0;
    if (!error)
        error = device_pass(device->lower, request);
    if (!error)
        enqueue(e, request->operation, request->purpose, request->offset, request->length,
                request->batch);
    return error;
}

static int elevator_wait(struct device *device, struct device_batch *batch) {
    struct elevator_device *e = (struct elevator_device *)device;
    advance(e, device->clock->now_ns);
    while (batch->pending)
        step(e);
    clock_wait_until(device->clock, e->now);
    return batch->error;
}

static int elevator_drain(struct device *device) {
    elevator_idle((struct elevator_device *)device);
    return device_drain(device->lower);
}

static int elevator_flush(struct device *device) {
    struct elevator_device *e = (struct elevator_device *)device;
    elevator_idle(e);
    e->now = e->drive->operations->flush(e->drive, e->now);
    clock_wait_until(device->clock, e->now);
    e->stats.flushes++;
    return device_flush(device->lower);
}

/* The writes that are not complete become part of the batch, and then the flush itself. */
static int elevator_flush_submit(struct device *device, struct device_batch *batch) {
    struct elevator_device *e = (struct elevator_device *)device;
    struct elevator_request *request;
    int error = e->flush ? -EBUSY : parts_reserve(e, e->count[DEVICE_WRITE]);
    if (!error)
        error = device_flush(device->lower);
    if (error)
        return error;
    advance(e, device->clock->now_ns);
    e->plugged = false;
    RB_FOREACH(request, requests, &e->sorted[DEVICE_WRITE]) {
        part_add(e, request, batch);
    }
    TAILQ_FOREACH (request, &e->inside, fifo)
        if (request->command.operation == DEVICE_WRITE)
            part_add(e, request, batch);
    batch->pending++;
    e->flush = batch;
    flush_begin_if_next(e);
    return 0;
}

static enum device_state elevator_poll(struct device *device) {
    struct elevator_device *e = (struct elevator_device *)device;
    advance(e, device->clock->now_ns);
    return e->count[DEVICE_WRITE] > e->queue_requests / 8 * CONGESTED_EIGHTHS ? DEVICE_CONGESTED
                                                                              : DEVICE_FREE;
}

/* Like ATA's TRIM without NCQ: alone in the disk. */
static void elevator_trim(struct elevator_device *e, uint64_t offset, uint64_t length) {
    elevator_idle(e);
    e->now = e->drive->operations->trim(e->drive, offset / DEVICE_SECTOR, length / DEVICE_SECTOR,
                                        e->now);
    clock_wait_until(e->device.clock, e->now);
}

/* Where the drive cannot forget, the bytes below may vanish, but the platter is written. */
static int elevator_zero(struct device *device, uint64_t offset, uint64_t length) {
    struct elevator_device *e = (struct elevator_device *)device;
    int error = device_zero(device->lower, offset, length);
    if (!error && e->drive->operations->trim) {
        elevator_trim(e, offset, length);
        return 0;
    }
    while (!error && length) {
        uint32_t piece = length < (1u << 20) ? (uint32_t)length : 1u << 20;
        enqueue(e, DEVICE_WRITE, PURPOSE_OTHER, offset, piece, NULL);
        offset += piece;
        length -= piece;
    }
    return error;
}

static int elevator_discard(struct device *device, uint64_t offset, uint64_t length) {
    struct elevator_device *e = (struct elevator_device *)device;
    if (!e->drive->operations->trim)
        return 0;
    elevator_trim(e, offset, length);
    return device_discard(device->lower, offset, length);
}

static void elevator_stats(struct device *device, struct device_stats *stats) {
    struct elevator_device *e = (struct elevator_device *)device;
    advance(e, device->clock->now_ns);
    *stats = e->stats;
    stats->busy_ns = stats->seek_ns + stats->rotation_ns + stats->transfer_ns + stats->overhead_ns;
}

static void elevator_close(struct device *device) {
    struct elevator_device *e = (struct elevator_device *)device;
    if (e->drive)
        e->drive->operations->close(e->drive);
    while (e->part_chunks) {
        struct part_chunk *chunk = e->part_chunks;
        e->part_chunks = chunk->next;
        free(chunk);
    }
    free(e->request_room);
    free(e);
}

static const struct device_operations elevator_operations = {
    .name = "disk",
    .submit = elevator_submit,
    .wait = elevator_wait,
    .flush = elevator_flush,
    .flush_submit = elevator_flush_submit,
    .poll = elevator_poll,
    .drain = elevator_drain,
    .zero = elevator_zero,
    .discard = elevator_discard,
    .stats = elevator_stats,
    .close = elevator_close,
};

static int elevator_init_queue(struct elevator_device *e, const struct disk_preset *preset) {
    e->policy = preset->elevator;
    e->queue_requests = preset->queue_requests;
    e->queue_depth = preset->queue_depth;
    e->merge_sectors = preset->merge_bytes / DEVICE_SECTOR;
    TAILQ_INIT(&e->inside);
    for (int i = 0; i < 2; i++) {
        RB_INIT(&e->sorted[i]);
        TAILQ_INIT(&e->fifo[i]);
    }
    size_t count = 2 * (size_t)e->queue_requests;
    e->request_room = calloc(count, sizeof(*e->request_room));
    if (!e->request_room)
        return -ENOMEM;
    for (size_t i = count; i-- > 0;) {
        e->request_room[i].next_free = e->request_free;
        e->request_free = &e->request_room[i];
    }
    return 0;
}

static int check_stack(const struct disk_preset *preset, const struct device *lower) {
    if (!clock_is_virtual(lower->clock)) {
        log_error(lower->log, "%s: a modelled disk needs a virtual clock", lower->name);
        return -EINVAL;
    }
    if (preset->queue_requests == 0 || preset->merge_bytes < DEVICE_SECTOR) {
        log_error(lower->log, "disk \"%s\": queue_requests or merge is out of range", preset->name);
        return -EINVAL;
    }
    if (lower->size > preset->capacity) {
        log_error(lower->log,
                  "%s: its %" PRIu64 " bytes do not fit on the disk \"%s\" of %" PRIu64 " bytes",
                  lower->name, lower->size, preset->name, preset->capacity);
        return -EFBIG;
    }
    return 0;
}

int device_open_disk(const struct disk_preset *preset, struct device *lower,
                     struct device **device) {
    int error = check_stack(preset, lower);
    if (error)
        return error;
    struct elevator_device *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    device_layer_init(&e->device, &elevator_operations, lower);
    e->now = lower->clock->now_ns;
    error = elevator_init_queue(e, preset);
    if (!error)
        error = preset->kind == DISK_SSD ? ssd_open(preset, &e->stats, lower->log, &e->drive)
                                         : hdd_open(preset, &e->stats, lower->log, &e->drive);
    if (error) {
        elevator_close(&e->device);
        return error;
    }
    *device = &e->device;
    return 0;
}

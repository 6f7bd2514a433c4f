/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, inside the FUSE front end. Interface and sources: fs/fuse_ring.h.
 *
 * Each serving thread has an io_uring of its own, with one request slot registered in the queue of
 * its processor; several threads serve one queue, since a handler may wait for the disk.
 *
 * Invariants:
 *  1. A slot is the kernel's from submission until its completion arrives, then the thread's until
 *     it submits again with the answer. Nothing else touches its memory.
 *  2. Every queue of the kernel has at least one slot; the kernel uses the rings only then.
 *  3. A thread ends when its slot fails (the connection is closed) or `stop` becomes readable.
 */
#include "fs/fuse_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/fuse_server.h"

/* --- the protocol, as far as older headers do not have it ------------------------------------- */

#define RING_INIT_EXT       (1u << 30) /* FUSE_INIT_EXT: flags2 counts */
#define RING_INIT_FLAG2     (1u << 9)  /* FUSE_OVER_IO_URING, bit 41 of both words */
#define RING_CMD_REGISTER   1u
#define RING_CMD_COMMIT     2u /* and fetch the next */
#define RING_HEADER_BYTES   128u
#define RING_REGISTER_SPACE 2 /* header and payload */

struct ring_header {                  /* fuse_uring_req_header */
    char in_out[RING_HEADER_BYTES];   /* fuse_in_header, then fuse_out_header */
    char argument[RING_HEADER_BYTES]; /* the opcode's fixed argument */
    struct {
        uint64_t flags;
        uint64_t commit_id;
        uint32_t payload_bytes; /* used of the payload, in the request and in the answer */
        uint32_t padding;
        uint64_t reserved;
    } entry;
};

struct ring_command { /* fuse_uring_cmd_req, in the submission */
    uint64_t flags;
    uint64_t commit_id;
    uint16_t queue;
    uint8_t padding[6];
};

/* --- a thread and its slot -------------------------------------------------------------------- */

/* The payload is preceded by a page whose end has room for header and argument, so that a request
 * can be put together as one piece without moving its data. */
#define SLOT_PREFIX 4096u
#define SLOT_BYTES  (SLOT_PREFIX + FUSE_TRANSFER_MAX)

struct ring {
    struct fuse_server *server;
    struct io_uring uring;
    struct ring_header header;
    char *memory; /* SLOT_BYTES, mapped */
    struct iovec vector[RING_REGISTER_SPACE];
    int stop; /* an eventfd of the rings */
    uint16_t queue;
    bool brought_data, answered;
    pthread_t thread;
};

struct fuse_rings {
    int stop;
    unsigned count;
    struct ring rings[];
};

enum { COMPLETION_SLOT = 1, COMPLETION_STOP = 2 };

static _Thread_local struct ring *handling;

static char *payload_of(const struct ring *ring) {
    return ring->memory + SLOT_PREFIX;
}

void *fuse_ring_payload(void) {
    return handling && !handling->brought_data ? payload_of(handling) : NULL;
}

bool fuse_ring_answer(const struct iovec *vector, int count) {
    struct ring *ring = handling;
    if (!ring)
        return false;
    char *at = payload_of(ring);
    memcpy(ring->header.in_out, vector[0].iov_base, vector[0].iov_len);
    for (int i = 1; i < count; i++) {
        if (vector[i].iov_base != at)
            memmove(at, vector[i].iov_base, vector[i].iov_len);
        at += vector[i].iov_len;
    }
    ring->header.entry.payload_bytes = (uint32_t)(at - payload_of(ring));
    ring->answered = true;
    return true;
}

/* --- submissions ------------------------------------------------------------------------------ */

static void prepare_command(struct ring *ring, uint32_t operation) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    struct ring_command command = {.queue = ring->queue, .commit_id = ring->header.entry.commit_id};
    bool first = operation == RING_CMD_REGISTER;

    io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fuse_session_fd(ring->server->session),
                     first ? ring->vector : NULL, first ? RING_REGISTER_SPACE : 0, 0);
    sqe->cmd_op = operation;
    memcpy(sqe->cmd, &command, sizeof command);
    io_uring_sqe_set_data64(sqe, COMPLETION_SLOT);
}

static void prepare_stop(struct ring *ring) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

    io_uring_prep_poll_add(sqe, ring->stop, POLLIN);
    io_uring_sqe_set_data64(sqe, COMPLETION_STOP);
}

/* --- serving ---------------------------------------------------------------------------------- */

/* Header, argument and payload as one piece, as read(2) would have given it. */
static struct fuse_buf assemble(const struct ring *ring) {
    const struct fuse_in_header *header = (const void *)ring->header.in_out;
    uint32_t payload = ring->header.entry.payload_bytes;
    size_t argument = header->len - sizeof *header - payload;
    char *start = payload_of(ring) - argument - sizeof *header;

    memcpy(start, header, sizeof *header);
    memcpy(start + sizeof *header, ring->header.argument, argument);
    return (struct fuse_buf){.mem = start, .size = header->len};
}

static bool sound(const struct ring *ring) {
    const struct fuse_in_header *header = (const void *)ring->header.in_out;
    uint32_t payload = ring->header.entry.payload_bytes;

    return payload <= FUSE_TRANSFER_MAX && header->len >= sizeof *header + payload &&
           header->len - sizeof *header - payload <= RING_HEADER_BYTES;
}

/* An answer that no handler gave. */
static void answer_error(const struct ring *ring) {
    const struct fuse_in_header *header = (const void *)ring->header.in_out;
    struct fuse_out_header answer = {.len = sizeof answer, .error = -EIO, .unique = header->unique};
    struct iovec vector = {&answer, sizeof answer};

    fuse_ring_answer(&vector, 1);
}

static void handle(struct ring *ring) {
    handling = ring;
    ring->answered = false;
    ring->brought_data = ring->header.entry.payload_bytes > 0;
    if (sound(ring)) {
        struct fuse_buf request = assemble(ring);
        fuse_server_handle(ring->server, &request);
    }
    if (!ring->answered)
        answer_error(ring);
    handling = NULL;
}

/* Waits for the next completion, submitting what is prepared. False: it is time to end. */
static bool await(struct ring *ring) {
    struct io_uring_cqe *cqe;
    int error = io_uring_submit_and_wait(&ring->uring, 1);

    if (error < 0 && error != -EINTR)
        return false;
    while ((error = io_uring_wait_cqe(&ring->uring, &cqe)) == -EINTR)
        ;
    if (error)
        return false;
    bool go_on = io_uring_cqe_get_data64(cqe) == COMPLETION_SLOT && cqe->res == 0;
    io_uring_cqe_seen(&ring->uring, cqe);
    return go_on;
}

static void bind_to_processor(unsigned number) {
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(number, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set); /* a nicety */
}

static void *serve_ring(void *context) {
    struct ring *ring = context;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    bind_to_processor(ring->queue);
    prepare_stop(ring);
    prepare_command(ring, RING_CMD_REGISTER);
    while (await(ring)) {
        handle(ring);
        prepare_command(ring, RING_CMD_COMMIT);
    }
    return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static int ring_open(struct ring *ring, struct fuse_server *server, unsigned queue, int stop) {
    struct io_uring_params params = {.flags = IORING_SETUP_SQE128 | IORING_SETUP_COOP_TASKRUN};

    *ring = (struct ring){.server = server, .queue = (uint16_t)queue, .stop = stop};
    int error = io_uring_queue_init_params(4, &ring->uring, &params);
    if (error)
        return error;
    ring->memory =
        mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->memory == MAP_FAILED) {
        io_uring_queue_exit(&ring->uring);
        return -ENOMEM;
    }
    ring->vector[0] = (struct iovec){&ring->header, sizeof ring->header};
    ring->vector[1] = (struct iovec){payload_of(ring), FUSE_TRANSFER_MAX};
    return 0;
}

static void ring_close(struct ring *ring) {
    io_uring_queue_exit(&ring->uring);
    munmap(ring->memory, SLOT_BYTES);
}

static int ring_start(struct ring *ring, struct fuse_server *server, unsigned queue, int stop) {
    int error = ring_open(ring, server, queue, stop);
    if (error)
        return error;
    error = -pthread_create(&ring->thread, NULL, serve_ring, ring);
    if (error)
        ring_close(ring);
    return error;
}

int fuse_rings_start(struct fuse_server *server, unsigned threads_a_queue,
                     struct fuse_rings **result) {
    long queues = sysconf(_SC_NPROCESSORS_CONF);
    unsigned count = (queues > 0 ? (unsigned)queues : 1) * threads_a_queue;
    struct fuse_rings *rings = calloc(1, sizeof *rings + count * sizeof rings->rings[0]);
    int error = 0;

    if (!rings)
        return -ENOMEM;
    rings->stop = eventfd(0, EFD_CLOEXEC);
    if (rings->stop < 0) {
        error = -errno;
        free(rings);
        return error;
    }
    while (!error && rings->count < count) {
        error = ring_start(&rings->rings[rings->count], server, rings->count / threads_a_queue,
                           rings->stop);
        rings->count += !error;
    }
    if (error) {
        fuse_rings_stop(rings);
        return error;
    }
    *result = rings;
    return 0;
}

void fuse_rings_stop(struct fuse_rings *rings) {
    if (!rings)
        return;
    eventfd_write(rings->stop, 1);
    for (unsigned i = 0; i < rings->count; i++) {
        pthread_join(rings->rings[i].thread, NULL);
        ring_close(&rings->rings[i]);
    }
    close(rings->stop);
    free(rings);
}

/* --- negotiation ------------------------------------------------------------------------------ */

#define OFFER_PATH "/sys/module/fuse/parameters/enable_uring"

int fuse_ring_offer(bool wanted, bool *before) {
    char state = 'N';
    int error = 0;
    int file = open(OFFER_PATH, O_RDWR | O_CLOEXEC);

    if (file < 0)
        return -errno;
    if (pread(file, &state, 1, 0) != 1)
        error = -EIO;
    *before = state == 'Y';
    if (!error && *before != wanted && pwrite(file, wanted ? "Y" : "N", 1, 0) != 1)
        error = -errno;
    close(file);
    return error;
}

bool fuse_ring_offered(const struct fuse_init_in *init) {
    return init->flags & RING_INIT_EXT && init->flags2 & RING_INIT_FLAG2;
}

void fuse_ring_accept(struct fuse_init_out *answer) {
    answer->flags |= RING_INIT_EXT;
    answer->flags2 |= RING_INIT_FLAG2;
}

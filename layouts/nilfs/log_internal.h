/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, shared by log.c, log_write.c, checkpoint.c, commit.c and cleaner_move.c.
 * The log under construction, and those that a checkpoint keeps until it is written.
 */
#ifndef LAYOUTFS_NILFS_LOG_INTERNAL_H
#define LAYOUTFS_NILFS_LOG_INTERNAL_H

#include "layouts/nilfs/log.h"

enum nilfs_payload_state {
    NILFS_PAYLOAD_DIRECT,  /* written to its place by who added it */
    NILFS_PAYLOAD_COPY,    /* data in core */
    NILFS_PAYLOAD_CHANGED, /* metadata that may still change */
    NILFS_PAYLOAD_SETTLED, /* metadata, final */
};

struct nilfs_payload { /* one block of it */
    enum nilfs_payload_state state;
    union {
        uint8_t *copy; /* owned, of nilfs->block_memory */
        struct nilfs_block *changed;
        struct buffer *buffer; /* referenced and pinned until the log is freed */
    } u;
};

struct nilfs_log {
    STAILQ_ENTRY(nilfs_log) link;
    uint64_t block; /* its first: the summary */
    uint64_t sequence;
    uint64_t next_block; /* first of the next segment */
    uint64_t cno;
    int64_t created; /* seconds */
    unsigned flags;  /* enum nilfs_log_flags */
    uint32_t limit;  /* blocks up to the segment's end */
    uint32_t blocks; /* so far, the summary included */
    uint32_t finfos;
    uint32_t used;    /* bytes of the summary */
    uint32_t finfo;   /* byte in the summary of the newest one, 0: none */
    uint32_t summed;  /* blocks of the payload, from its start, that `crc` covers */
    uint32_t crc;     /* with start 0 */
    uint64_t ino;     /* of the file whose data are all that it has; 0: none, or there is more */
    uint8_t *summary; /* a block, owned, of nilfs->block_memory; the header is filled when sealed */
    struct nilfs_payload payload[];
};
STAILQ_HEAD(nilfs_logs, nilfs_log);

struct nilfs_written { /* a segment that got logs which the sufile does not know of yet */
    uint64_t segment;
    uint32_t blocks; /* from the segment's start to the end of the last log */
    int64_t time;    /* seconds: of the last log */
};

/* nilfs->commit: made with the first log. Exclusive lock, but for nilfs_commit_write. */
struct nilfs_commit {
    struct nilfs_written *written; /* owned; in the chain's order, the newest one last */
    uint32_t written_count, written_room;
    bool collecting; /* nilfs_commit_begin is at work: closed logs are kept in `logs` */
    bool counted;    /* ...and no segment may be allocated but the spares */
    bool busy;       /* from nilfs_commit_begin to nilfs_commit_end */
    uint64_t begun;  /* sequence of the logical segment's first closed log */
    struct nilfs_logs logs;
    /* What nilfs_commit_write is told. */
    uint64_t cno;
    uint64_t log_block, sequence; /* of the log with the super root */
    uint64_t clean_segments;
    bool data_only; /* a file's data: the rest above says nothing */
    bool ordered;   /* the last log may be written only when all others are durable */
    bool super_due; /* the super block is to name this checkpoint */
    bool flush;     /* somebody waits until it is durable */
};

/* nilfs->commit, made if need be. */
int nilfs_commit_ready(struct nilfs *nilfs);
/* Blocks of metadata that a log with nothing in it has room for at least, of up to three files. */
uint32_t nilfs_log_capacity(const struct nilfs_geometry *g);
/* The same of what the open log has left. */
uint32_t nilfs_log_room(const struct nilfs *nilfs);
/* The next log's last block, for the super root. Its contents go into *payload. */
int nilfs_log_super_root(struct nilfs *nilfs, uint64_t *block, struct nilfs_payload **payload);
/* Closes the open log, if there is one, with these flags (the first of a logical segment gets
 * NILFS_LOG_BEGIN): writes it, or keeps it when a checkpoint collects. */
int nilfs_log_close(struct nilfs *nilfs, unsigned flags, struct device_batch *batch);
/* Fills the header and both checksums; everything is settled. No lock, as nilfs_log_write. */
void nilfs_log_seal(const struct nilfs_geometry *g, struct nilfs_log *log);
/* Submits the summary and what of the payload is in core. */
int nilfs_log_write(struct device *device, const struct nilfs_geometry *g,
                    const struct nilfs_log *log, struct device_batch *batch);
/* NULL ok. Buffers are unpinned and put, copies freed. */
void nilfs_log_free(struct nilfs *nilfs, struct nilfs_log *log);

/* Stages 1 to 5 (checkpoint.h): all that has changed is in commit->logs afterwards, settled. An
 * error is for nilfs_fail. */
int nilfs_checkpoint_collect(struct nilfs *nilfs);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/recovery.h. Nothing is written here.
 *
 * The super block names some log with a super root, not always the newest. From there logs follow
 * each other: in a segment back to back, then from the start of the segment that each names as the
 * next, whose sequence number is one higher. Checksums tell a log of the chain from what was there
 * before. The search ends, since each step goes up in the segment or in the sequence, and a block
 * has only one.
 */
#include "layouts/nilfs/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/sufile.h"
#include "layouts/nilfs/super.h"

#define LOG_BLOCKS_MIN 2u

/* --- the newest log with a super root --------------------------------------------------------- */

struct search {
    struct nilfs *nilfs;
    struct nilfs_found *found;
    uint64_t block, sequence; /* where a log is expected, and of which segment */
    const char *reason;       /* why there is none */
};

/* The log that belongs at the place. Its own sequence first: to read all of what is only a remnant
 * would be in vain. */
static int read_expected(struct search *search, struct nilfs_log_head *head, bool *valid) {
    struct device *device = search->nilfs->volume->device;
    const struct nilfs_geometry *g = &search->nilfs->geometry;
    int error = nilfs_log_read(device, g, search->block, 0, head, valid, &search->reason);

    if (error || !*valid)
        return error;
    if (head->sequence != search->sequence) {
        *valid = false;
        search->reason = "the log is of another sequence of segments";
        return 0;
    }
    if (search->nilfs->options.fault == NILFS_FAULT_UNCHECKED)
        return 0;
    return nilfs_log_read(device, g, search->block, NILFS_CHECK_DATA, head, valid, &search->reason);
}

static void take_super_root(struct nilfs_found *found, const struct nilfs_log_head *head) {
    found->newest = *head;
    found->cno++;
    found->pending_start = found->pending_end = 0;
}

static void take_pending(struct nilfs_found *found, const struct nilfs_log_head *head) {
    if (!found->pending_start && head->flags & NILFS_LOG_BEGIN) {
        found->pending_start = head->block;
        found->pending_start_sequence = head->sequence;
    }
    if (head->flags & NILFS_LOG_END)
        found->pending_end = head->block;
}

static void to_next_segment(struct search *search) {
    const struct nilfs_geometry *g = &search->nilfs->geometry;

    search->block = nilfs_segment_start(g, nilfs_segment_of(g, search->found->last_next));
    search->sequence++;
}

static void take(struct search *search, const struct nilfs_log_head *head) {
    struct nilfs_found *found = search->found;

    if (head->flags & NILFS_LOG_SUPER_ROOT)
        take_super_root(found, head);
    else
        take_pending(found, head);
    found->last_sequence = head->sequence;
    found->last_next = head->next_block;
    search->block = head->block + head->blocks;
}

/* Where the next log would be; false: there is no room for one in the segment. */
static bool more_in_segment(const struct search *search, const struct nilfs_log_head *last) {
    const struct nilfs_geometry *g = &search->nilfs->geometry;
    uint64_t end = nilfs_segment_end(g, nilfs_segment_of(g, last->block));

    return end - search->block >= LOG_BLOCKS_MIN;
}

/* From behind the first log, until neither the rest of a segment nor the start of the next has a
 * log of the chain. */
static int follow(struct search *search, const struct nilfs_log_head *first) {
    struct nilfs_log_head head;
    bool at_start = !more_in_segment(search, first), valid;

    if (at_start)
        to_next_segment(search);
    for (;;) {
        int error = read_expected(search, &head, &valid);
        if (error || (!valid && at_start))
            return error;
        if (valid)
            take(search, &head);
        at_start = !valid || !more_in_segment(search, &head);
        if (at_start)
            to_next_segment(search);
    }
}

int nilfs_recovery_find(struct nilfs *nilfs, bool clean, struct nilfs_found *found) {
    const struct nilfs_disk_super *super = &nilfs->supers.copy[0];
    struct search search = {
        .nilfs = nilfs,
        .found = found,
        .block = le64_load(super->s_last_pseg),
        .sequence = le64_load(super->s_last_seq),
    };
    struct nilfs_log_head first;
    bool valid;

    *found = (struct nilfs_found){.cno = le64_load(super->s_last_cno) - 1};
    int error = read_expected(&search, &first, &valid);
    if (error)
        return error;
    if (valid && !(first.flags & NILFS_LOG_SUPER_ROOT)) {
        valid = false;
        search.reason = "the log has no super root";
    }
    if (!valid) { /* no end yet: there is another super block */
        log_warning(nilfs->volume->log,
                    "%s: nilfs: super block at byte %" PRIu64 ": it names checkpoint %" PRIu64
                    " in the log at block %" PRIu64 ": %s",
                    nilfs->volume->name, nilfs->supers.offset[0], le64_load(super->s_last_cno),
                    search.block, search.reason);
        return -EUCLEAN;
    }
    take(&search, &first);
    return clean ? 0 : follow(&search, &first);
}

/* --- the checkpoint --------------------------------------------------------------------------- */

static int metadata_open(struct nilfs *nilfs, const struct nilfs_found *found, const uint8_t *raw,
                         uint64_t ino, enum nilfs_pointers pointers, struct nilfs_file **file) {
    struct nilfs_disk_inode inode;

    memcpy(&inode, raw, sizeof(inode));
    if (!S_ISREG(le16_load(inode.i_mode)) || le16_load(inode.i_links_count) == 0)
        return nilfs_corrupt(
            nilfs, "super root of the log at block %" PRIu64 ": inode %" PRIu64 " is no file",
            found->newest.block, ino);
    int error = nilfs_file_new(nilfs, ino, 0, pointers, &inode, file);
    return error ? error : nilfs_bmap_check(*file);
}

static int super_root_open(struct nilfs *nilfs, const struct nilfs_found *found,
                           const uint8_t *block) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    const struct nilfs_disk_super_root *root = (const struct nilfs_disk_super_root *)block;
    const size_t from = offsetof(struct nilfs_disk_super_root, sr_bytes);
    const uint8_t *inodes = block + sizeof(*root);
    uint32_t bytes = le16_load(root->sr_bytes);

    if (bytes < sizeof(*root) + 3 * (size_t)g->inode_size || bytes > g->block_size ||
        nilfs_crc(g->crc_seed, block + from, bytes - from) != le32_load(root->sr_sum))
        return nilfs_corrupt(
            nilfs, "super root of the log at block %" PRIu64 ": its size or checksum does not hold",
            found->newest.block);
    nilfs->nongc_time = (int64_t)le64_load(root->sr_nongc_ctime);
    int error = metadata_open(nilfs, found, inodes, NILFS_DAT_INO, NILFS_PHYSICAL, &nilfs->dat);
    if (!error)
        error = metadata_open(nilfs, found, inodes + g->inode_size, NILFS_CPFILE_INO, NILFS_SINGLE,
                              &nilfs->cpfile);
    if (!error)
        error = metadata_open(nilfs, found, inodes + 2 * (size_t)g->inode_size, NILFS_SUFILE_INO,
                              NILFS_SINGLE, &nilfs->sufile);
    return error;
}

/* The tree that the volume shows: the newest checkpoint's, which changes, or an older one's. */
static int tree_open(struct nilfs *nilfs, uint64_t newest) {
    uint64_t wanted = nilfs->options.checkpoint;
    struct nilfs_checkpoint checkpoint;
    int error = nilfs_cpfile_read(nilfs, wanted ? wanted : newest, &checkpoint);

    if (error == -ENOENT && wanted) {
        log_error(nilfs->volume->log,
                  "%s: nilfs: cp=%" PRIu64 ": there is no such checkpoint (any more)",
                  nilfs->volume->name, wanted);
        return -EINVAL;
    }
    if (error == -ENOENT)
        return nilfs_corrupt(nilfs, "cpfile: the newest checkpoint, %" PRIu64 ", is not in it",
                             newest);
    if (error)
        return error;
    nilfs->inodes_count = checkpoint.inodes;
    nilfs->blocks_count = checkpoint.blocks;
    error = nilfs_file_new(nilfs, NILFS_IFILE_INO, wanted, NILFS_MULTI, &checkpoint.ifile,
                           &nilfs->ifile);
    return error ? error : nilfs_bmap_check(nilfs->ifile);
}

static void position_take(struct nilfs *nilfs, const struct nilfs_log_head *newest) {
    const struct nilfs_geometry *g = &nilfs->geometry;

    nilfs->position = (struct nilfs_position){
        .segment = nilfs_segment_of(g, newest->block),
        .next = nilfs_segment_of(g, newest->next_block),
        .sequence = newest->sequence,
        .block = newest->block + newest->blocks,
    };
}

int nilfs_recovery_open(struct nilfs *nilfs, const struct nilfs_found *found) {
    const struct nilfs_log_head *newest = &found->newest;
    struct nilfs_usage_totals totals = {0};
    struct buffer *buffer;

    nilfs->newest = found->cno;
    nilfs->cno = found->cno + 1;
    nilfs->supers.written_seq = le64_load(nilfs->supers.copy[0].s_last_seq);
    nilfs_super_logged(nilfs, found->cno, newest->block, newest->sequence);
    position_take(nilfs, newest);
    int error =
        buffer_get(nilfs->buffers, newest->block + newest->blocks - 1, PURPOSE_INODE, &buffer);
    if (error)
        return error;
    error = super_root_open(nilfs, found, buffer_data(buffer));
    buffer_put(buffer);
    if (!error)
        error = tree_open(nilfs, found->cno);
    if (!error)
        error = nilfs_sufile_totals(nilfs, &totals);
    if (!error)
        nilfs->clean_segments = totals.clean;
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over everything else here, read-only. Structures as JSON: fields under
 * their names in format.h, followed by what the numbers mean. Interface: layouts/nilfs/layout.h.
 */
#include "fs/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log_read.h"
#include "layouts/nilfs/palloc.h"
#include "layouts/nilfs/sufile.h"

#define SUPER_FIELD(member) DESCRIBE_FIELD(nilfs_disk_super, member)
#define INODE_FIELD(member) DESCRIBE_FIELD(nilfs_disk_inode, member)

static const struct describe_field super_fields[] = {
    SUPER_FIELD(s_rev_level),
    SUPER_FIELD(s_magic),
    SUPER_FIELD(s_bytes),
    SUPER_FIELD(s_crc_seed),
    SUPER_FIELD(s_sum),
    SUPER_FIELD(s_log_block_size),
    SUPER_FIELD(s_nsegments),
    SUPER_FIELD(s_dev_size),
    SUPER_FIELD(s_first_data_block),
    SUPER_FIELD(s_blocks_per_segment),
    SUPER_FIELD(s_r_segments_percentage),
    SUPER_FIELD(s_last_cno),
    SUPER_FIELD(s_last_pseg),
    SUPER_FIELD(s_last_seq),
    SUPER_FIELD(s_free_blocks_count),
    SUPER_FIELD(s_ctime),
    SUPER_FIELD(s_mtime),
    SUPER_FIELD(s_wtime),
    SUPER_FIELD(s_mnt_count),
    SUPER_FIELD(s_state),
    SUPER_FIELD(s_inode_size),
    SUPER_FIELD(s_dat_entry_size),
    SUPER_FIELD(s_checkpoint_size),
    SUPER_FIELD(s_segment_usage_size),
    SUPER_FIELD(s_c_interval),
    SUPER_FIELD(s_c_block_max),
    SUPER_FIELD(s_feature_compat),
    SUPER_FIELD(s_feature_compat_ro),
    SUPER_FIELD(s_feature_incompat),
    {0},
};

static const struct describe_field inode_fields[] = {
    INODE_FIELD(i_blocks),
    INODE_FIELD(i_size),
    INODE_FIELD(i_ctime),
    INODE_FIELD(i_mtime),
    INODE_FIELD(i_uid),
    INODE_FIELD(i_gid),
    INODE_FIELD(i_mode),
    INODE_FIELD(i_flags),
    INODE_FIELD(i_links_count),
    INODE_FIELD(i_generation),
    {0},
};

/* The names of the bits that are set, separated by spaces. */
static void put_flags(json_t *object, const char *key, uint32_t flags, const char *const *names,
                      uint32_t count) {
    char text[96] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        if (flags & 1u << i)
            snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", names[i]);
    }
    describe_text(object, key, text);
}

static const char *file_name(uint64_t ino) {
    switch (ino) {
    case NILFS_DAT_INO:
        return "DAT";
    case NILFS_CPFILE_INO:
        return "cpfile";
    case NILFS_SUFILE_INO:
        return "sufile";
    case NILFS_IFILE_INO:
        return "ifile";
    default:
        return NULL;
    }
}

static void put_ino(json_t *object, uint64_t ino) {
    describe_number(object, "inode", ino);
    if (file_name(ino))
        describe_text(object, "file", file_name(ino));
}

/* --- super block, segment, checkpoint, virtual block -------------------------------------------
 */

static void describe_super(const struct nilfs *nilfs, json_t *object) {
    static const char *const states[] = {"clean", "errors", "resize"};
    const struct nilfs_supers *supers = &nilfs->supers;
    const struct nilfs_disk_super *super = &supers->copy[0];

    describe_fields(object, super_fields, super);
    put_flags(object, "state", le16_load(super->s_state), states, 3);
    describe_uuid(object, "uuid", super->s_uuid);
    describe_name(object, "label", super->s_volume_name, sizeof(super->s_volume_name));
    describe_time(object, "made", (int64_t)le64_load(super->s_ctime));
    describe_time(object, "mounted", (int64_t)le64_load(super->s_mtime));
    describe_number(object, "offset", supers->offset[0]);
    if (supers->present[1]) {
        describe_number(object, "other_offset", supers->offset[1]);
        describe_number(object, "other_last_cno", le64_load(supers->copy[1].s_last_cno));
        put_flags(object, "other_state", le16_load(supers->copy[1].s_state), states, 3);
    }
    describe_number(object, "newest_checkpoint", nilfs->newest);
    describe_number(object, "reserved_segments", nilfs_reserved_segments(&nilfs->geometry));
    describe_number(object, "clean_segments", nilfs->clean_segments);
}

static void put_log_head(json_t *object, const struct nilfs_log_head *head) {
    static const char *const flags[] = {"begin", "end", "super-root", "data-only", "gc"};

    describe_number(object, "block", head->block);
    describe_number(object, "blocks", head->blocks);
    describe_number(object, "checkpoint", head->cno);
    describe_number(object, "sequence", head->sequence);
    put_flags(object, "flags", head->flags, flags, 5);
    describe_time(object, "created", head->created);
}

/* Calls visit for the valid logs of a segment, as far as it was written; stops as visits do. */
typedef int (*log_visit)(void *context, const struct nilfs_log_head *head);
static int each_log(struct nilfs *nilfs, uint64_t segment, log_visit visit, void *context) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t block = nilfs_segment_start(g, segment), end = nilfs_segment_end(g, segment);
    uint64_t sequence = 0;
    int rc = 0;

    for (bool first = true; block < end && rc == 0; first = false) {
        struct nilfs_log_head head;
        const char *reason;
        bool valid;
        rc = nilfs_log_read(nilfs->volume->device, g, block, NILFS_CHECK_SUMMARY, &head, &valid,
                            &reason);
        /* What follows may be left over from an earlier use of the segment. */
        if (rc || !valid || (!first && head.sequence != sequence))
            break;
        sequence = head.sequence;
        rc = visit(context, &head);
        block += head.blocks;
    }
    return rc;
}

static int add_log_row(void *context, const struct nilfs_log_head *head) {
    json_t *row = json_object();

    put_log_head(row, head);
    return json_array_append_new(context, row) ? -ENOMEM : 0;
}

static int describe_segment(struct nilfs *nilfs, uint64_t segment, json_t *object) {
    static const char *const flags[] = {"active", "dirty", "error"};
    struct nilfs_usage usage;

    if (segment >= nilfs->geometry.segments)
        return -EINVAL;
    int error = nilfs_sufile_read(nilfs, segment, &usage);
    if (error)
        return error;
    describe_number(object, "segment", segment);
    describe_number(object, "first_block", nilfs_segment_start(&nilfs->geometry, segment));
    describe_number(object, "end_block", nilfs_segment_end(&nilfs->geometry, segment));
    put_flags(object, "flags", usage.flags, flags, 3);
    describe_number(object, "written_blocks", usage.blocks);
    describe_time(object, "modified", usage.modified);
    describe_bool(object, "being_filled", segment == nilfs->position.segment);
    describe_bool(object, "next_to_fill", segment == nilfs->position.next);
    json_t *logs = json_array();
    json_object_set_new(object, "logs", logs);
    return usage.flags ? each_log(nilfs, segment, add_log_row, logs) : 0;
}

static int describe_checkpoint(struct nilfs *nilfs, uint64_t cno, json_t *object) {
    static const char *const flags[] = {"snapshot", "invalid", "sketch", "minor"};
    struct nilfs_checkpoint checkpoint;
    int error = cno > nilfs->newest ? -ENOENT : nilfs_cpfile_read(nilfs, cno, &checkpoint);

    if (error)
        return error;
    describe_number(object, "checkpoint", cno);
    put_flags(object, "flags", checkpoint.flags, flags, 4);
    describe_time(object, "created", checkpoint.created);
    describe_number(object, "written_blocks", checkpoint.increment);
    describe_number(object, "inodes", checkpoint.inodes);
    describe_number(object, "blocks", checkpoint.blocks);
    if (checkpoint.flags & NILFS_CP_SNAPSHOT) {
        describe_number(object, "previous_snapshot", checkpoint.snapshot_previous);
        describe_number(object, "next_snapshot", checkpoint.snapshot_next);
    }
    describe_number(object, "ifile_sectors", le64_load(checkpoint.ifile.i_blocks));
    return 0;
}

static void put_life(json_t *object, const struct nilfs_life *life) {
    describe_number(object, "block", life->block);
    describe_number(object, "from_checkpoint", life->start);
    if (life->end == NILFS_CNO_MAX)
        describe_text(object, "to_checkpoint", "now");
    else
        describe_number(object, "before_checkpoint", life->end);
}

static int describe_virtual(struct nilfs *nilfs, uint64_t vblock, json_t *object) {
    struct nilfs_life life;
    int used = nilfs_palloc_used(nilfs->dat, vblock), error;

    if (used <= 0 || vblock == 0) /* who asks for it may be mistaken: no damage */
        return used < 0 ? used : -ENOENT;
    error = nilfs_dat_life(nilfs, vblock, &life);
    if (error)
        return error;
    describe_number(object, "virtual", vblock);
    put_life(object, &life);
    if (life.block)
        describe_number(object, "segment", nilfs_segment_of(&nilfs->geometry, life.block));
    return 0;
}

/* --- logs and blocks ---------------------------------------------------------------------------
 */

static void put_item(json_t *object, const struct nilfs_log_item *item) {
    put_ino(object, item->ino);
    describe_text(object, "kind", item->level == 0 ? "data" : "node");
    if (item->ino != NILFS_DAT_INO)
        describe_number(object, "virtual", item->vblock);
    if (item->level == 0 || item->ino == NILFS_DAT_INO)
        describe_number(object, "offset", item->offset);
    describe_number(object, "of_checkpoint", item->cno);
}

static int add_item_row(void *context, const struct nilfs_log_item *item, uint64_t block) {
    json_t *row = json_object();

    describe_number(row, "block", block);
    put_item(row, item);
    return json_array_append_new(context, row) ? -ENOMEM : 0;
}

static int describe_log(struct nilfs *nilfs, uint64_t block, json_t *object) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    struct device *device = nilfs->volume->device;
    struct nilfs_log_head head;
    const char *reason;
    bool valid;
    int error = nilfs_log_read(device, g, block, NILFS_CHECK_SUMMARY | NILFS_CHECK_DATA, &head,
                               &valid, &reason);

    if (error)
        return error;
    if (!valid) {
        describe_number(object, "block", block);
        describe_text(object, "no_log", reason);
        return 0;
    }
    put_log_head(object, &head);
    describe_number(object, "next_segment", nilfs_segment_of(g, head.next_block));
    describe_number(object, "files", head.finfos);
    describe_number(object, "summary_bytes", head.summary_bytes);
    json_t *items = json_array();
    json_object_set_new(object, "items", items);
    return nilfs_log_items(device, g, &head, add_item_row, items);
}

struct block_search {
    struct nilfs *nilfs;
    uint64_t block;
    json_t *object;
};

/* Is the payload block what its file still points at? */
static int put_current(struct nilfs *nilfs, json_t *object, const struct nilfs_log_item *item,
                       uint64_t block) {
    struct nilfs_life life;

    if (item->ino == NILFS_DAT_INO) {
        bool current;
        int error = nilfs_bmap_points_at(nilfs->dat, item->offset, item->level, block, &current);
        if (!error)
            describe_bool(object, "in_use", current);
        return error;
    }
    int error = nilfs_dat_life(nilfs, item->vblock, &life);
    if (error == -EUCLEAN) { /* the cleaner has freed the number */
        describe_bool(object, "in_use", false);
        return 0;
    }
    if (!error && life.block != block)
        describe_number(object, "moved_to", life.block);
    else if (!error)
        put_life(object, &life);
    return error;
}

static int find_item(void *context, const struct nilfs_log_item *item, uint64_t block) {
    struct block_search *search = context;

    if (block != search->block)
        return 0;
    put_item(search->object, item);
    int error = put_current(search->nilfs, search->object, item, block);
    return error ? error : 1;
}

static int find_log(void *context, const struct nilfs_log_head *head) {
    struct block_search *search = context;
    const struct nilfs_geometry *g = &search->nilfs->geometry;

    if (search->block >= head->block + head->blocks)
        return 0;
    describe_number(search->object, "log", head->block);
    if (search->block < head->block + head->summary_blocks) {
        describe_text(search->object, "kind", "summary");
        return 1;
    }
    if (head->flags & NILFS_LOG_SUPER_ROOT && search->block == head->block + head->blocks - 1) {
        describe_text(search->object, "kind", "super root");
        describe_number(search->object, "checkpoint", head->cno);
        return 1;
    }
    return nilfs_log_items(search->nilfs->volume->device, g, head, find_item, search);
}

static int describe_block(struct nilfs *nilfs, uint64_t block, json_t *object) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    struct block_search search = {.nilfs = nilfs, .block = block, .object = object};

    if (block >= g->blocks)
        return -EINVAL;
    describe_number(object, "block", block);
    if (!nilfs_block_valid(g, block)) {
        describe_text(object, "kind", "outside the segments");
        return 0;
    }
    describe_number(object, "segment", nilfs_segment_of(g, block));
    int rc = each_log(nilfs, nilfs_segment_of(g, block), find_log, &search);
    if (rc == 0)
        describe_text(object, "kind", "in no log");
    return rc < 0 ? rc : 0;
}

/* --- inodes and maps ---------------------------------------------------------------------------
 */

/* The file of any number; *file is referenced. */
static int file_of(struct nilfs *nilfs, uint64_t ino, struct nilfs_file **file) {
    struct nilfs_disk_inode record;

    switch (ino) {
    case NILFS_DAT_INO:
        *file = nilfs->dat;
        break;
    case NILFS_CPFILE_INO:
        *file = nilfs->cpfile;
        break;
    case NILFS_SUFILE_INO:
        *file = nilfs->sufile;
        break;
    case NILFS_IFILE_INO:
        *file = nilfs->ifile;
        break;
    default: {
        int error = nilfs_ifile_read(nilfs->ifile, ino, &record);
        return error ? error
                     : nilfs_file_new(nilfs, ino, nilfs->ifile->cno, NILFS_MULTI, &record, file);
    }
    }
    nilfs_file_hold(*file);
    return 0;
}

static int describe_inode(struct nilfs *nilfs, uint64_t ino, json_t *object) {
    struct nilfs_disk_inode record;

    put_ino(object, ino);
    if (file_name(ino)) {
        struct nilfs_file *file;
        int error = file_of(nilfs, ino, &file);
        if (error)
            return error;
        describe_number(object, "i_blocks", file->sectors);
        nilfs_file_put(file);
        return 0;
    }
    int error = nilfs_ifile_read(nilfs->ifile, ino, &record);
    if (error)
        return error;
    describe_fields(object, inode_fields, &record);
    describe_text(object, "type", describe_type(le16_load(record.i_mode)));
    describe_time(object, "modified", (int64_t)le64_load(record.i_mtime));
    const struct nilfs_disk_node *root = &record.i_bmap.head.node;
    bool tree = root->flags & NILFS_NODE_FLAG_ROOT;
    describe_text(object, "map", tree ? "B-tree" : "direct");
    if (tree)
        describe_number(object, "levels", root->level);
    return 0;
}

struct map_rows {
    struct nilfs_file *file;
    json_t *rows;
};

static int add_map_row(void *context, uint32_t level, uint64_t key, uint64_t pointer) {
    struct map_rows *map = context;
    json_t *row = json_object();
    struct nilfs_life life = {.block = pointer};
    int error = 0;

    describe_number(row, "level", level);
    describe_number(row, "key", key);
    if (map->file->pointers != NILFS_PHYSICAL) {
        describe_number(row, "virtual", pointer);
        error = nilfs_dat_life(map->file->nilfs, pointer, &life);
    }
    describe_number(row, "block", life.block);
    if (map->file->pointers != NILFS_PHYSICAL)
        describe_number(row, "from_checkpoint", life.start);
    if (json_array_append_new(map->rows, row))
        return -ENOMEM;
    return error;
}

static int describe_map(struct nilfs *nilfs, uint64_t ino, json_t *object) {
    struct map_rows map = {.rows = json_array()};
    int error = file_of(nilfs, ino, &map.file);

    put_ino(object, ino);
    json_object_set_new(object, "pointers", map.rows);
    if (error)
        return error;
    if (!map.file->device)
        error = nilfs_bmap_each(map.file, add_map_row, &map);
    nilfs_file_put(map.file);
    return error;
}

int nilfs_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                   json_t **object) {
    struct nilfs *nilfs = nilfs_of(volume);
    int error = 0;

    *object = json_object();
    if (!*object)
        return -ENOMEM;
    switch (kind) {
    case DESCRIBE_SUPER:
        if (nilfs_commit_busy(nilfs)) /* it may be writing them, without a lock */
            error = -EBUSY;
        else
            describe_super(nilfs, *object);
        break;
    case DESCRIBE_GROUP:
        error = describe_segment(nilfs, number, *object);
        break;
    case DESCRIBE_INODE:
        error = describe_inode(nilfs, number, *object);
        break;
    case DESCRIBE_BLOCK:
        error = describe_block(nilfs, number, *object);
        break;
    case DESCRIBE_LOG:
        error = describe_log(nilfs, number, *object);
        break;
    case DESCRIBE_CHECKPOINT:
        error = describe_checkpoint(nilfs, number, *object);
        break;
    case DESCRIBE_VIRTUAL:
        error = describe_virtual(nilfs, number, *object);
        break;
    case DESCRIBE_MAP:
        error = describe_map(nilfs, number, *object);
        break;
    }
    if (error) {
        json_decref(*object);
        *object = NULL;
    }
    return error == -ESTALE ? -ENOENT : error; /* an inode that is not in use */
}

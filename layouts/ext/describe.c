/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over everything else here, read-only. Structures as JSON: every field under
 * its name in format.h, followed by what the numbers mean.
 *
 * Invariant: an object comes out for anything that can be read, damaged or not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bitmap.h"
#include "fs/describe.h"
#include "layouts/ext/extent.h"
#include "layouts/ext/walk.h"

/* --- fields ----------------------------------------------------------------------------------- */

#define SUPER_FIELD(member) DESCRIBE_FIELD(ext_disk_super, member)
#define GROUP_FIELD(member) DESCRIBE_FIELD(ext_disk_group, member)
#define INODE_FIELD(member) DESCRIBE_FIELD(ext_disk_inode, member)

static const struct describe_field super_fields[] = {
    SUPER_FIELD(s_inodes_count),
    SUPER_FIELD(s_blocks_count),
    SUPER_FIELD(s_r_blocks_count),
    SUPER_FIELD(s_free_blocks_count),
    SUPER_FIELD(s_free_inodes_count),
    SUPER_FIELD(s_first_data_block),
    SUPER_FIELD(s_log_block_size),
    SUPER_FIELD(s_log_cluster_size),
    SUPER_FIELD(s_blocks_per_group),
    SUPER_FIELD(s_clusters_per_group),
    SUPER_FIELD(s_inodes_per_group),
    SUPER_FIELD(s_mtime),
    SUPER_FIELD(s_wtime),
    SUPER_FIELD(s_mnt_count),
    SUPER_FIELD(s_max_mnt_count),
    SUPER_FIELD(s_magic),
    SUPER_FIELD(s_state),
    SUPER_FIELD(s_errors),
    SUPER_FIELD(s_minor_rev_level),
    SUPER_FIELD(s_lastcheck),
    SUPER_FIELD(s_checkinterval),
    SUPER_FIELD(s_creator_os),
    SUPER_FIELD(s_rev_level),
    SUPER_FIELD(s_def_resuid),
    SUPER_FIELD(s_def_resgid),
    SUPER_FIELD(s_first_ino),
    SUPER_FIELD(s_inode_size),
    SUPER_FIELD(s_block_group_nr),
    SUPER_FIELD(s_feature_compat),
    SUPER_FIELD(s_feature_incompat),
    SUPER_FIELD(s_feature_ro_compat),
    SUPER_FIELD(s_reserved_gdt_blocks),
    SUPER_FIELD(s_journal_inum),
    SUPER_FIELD(s_last_orphan),
    SUPER_FIELD(s_def_hash_version),
    SUPER_FIELD(s_default_mount_opts),
    SUPER_FIELD(s_mkfs_time),
    SUPER_FIELD(s_min_extra_isize),
    SUPER_FIELD(s_want_extra_isize),
    SUPER_FIELD(s_flags),
    SUPER_FIELD(s_error_count),
    SUPER_FIELD(s_first_error_time),
    SUPER_FIELD(s_last_error_time),
    SUPER_FIELD(s_overhead_clusters),
    {0},
};

static const struct describe_field group_fields[] = {
    GROUP_FIELD(bg_block_bitmap),
    GROUP_FIELD(bg_inode_bitmap),
    GROUP_FIELD(bg_inode_table),
    GROUP_FIELD(bg_free_blocks_count),
    GROUP_FIELD(bg_free_inodes_count),
    GROUP_FIELD(bg_used_dirs_count),
    GROUP_FIELD(bg_flags),
    {0},
};

static const struct describe_field inode_fields[] = {
    INODE_FIELD(i_mode),     INODE_FIELD(i_uid),       INODE_FIELD(i_size),
    INODE_FIELD(i_atime),    INODE_FIELD(i_ctime),     INODE_FIELD(i_mtime),
    INODE_FIELD(i_dtime),    INODE_FIELD(i_gid),       INODE_FIELD(i_links_count),
    INODE_FIELD(i_blocks),   INODE_FIELD(i_flags),     INODE_FIELD(i_generation),
    INODE_FIELD(i_file_acl), INODE_FIELD(i_size_high), INODE_FIELD(i_blocks_high),
    INODE_FIELD(i_uid_high), INODE_FIELD(i_gid_high),  {0},
};

static const struct describe_field inode_extra_fields[] = {
    INODE_FIELD(i_extra_isize),
    INODE_FIELD(i_ctime_extra),
    INODE_FIELD(i_mtime_extra),
    INODE_FIELD(i_atime_extra),
    INODE_FIELD(i_crtime),
    INODE_FIELD(i_crtime_extra),
    {0},
};

/* --- super block ------------------------------------------------------------------------------ */

static void put_features(json_t *object, const struct ext_geometry *geometry) {
    const uint32_t sets[] = {geometry->compat, geometry->incompat, geometry->ro_compat};
    json_t *names = json_array();
    for (int set = EXT_FEATURES_COMPAT; set <= EXT_FEATURES_RO_COMPAT; set++) {
        for (uint32_t bit = 1; bit; bit <<= 1) {
            const char *name = ext_feature_name((enum ext_feature_set)set, bit);
            if (sets[set] & bit)
                json_array_append_new(names, json_string(name ? name : "unknown"));
        }
    }
    json_object_set_new(object, "features", names);
}

static void describe_super(const struct ext *ext, json_t *object) {
    static const char *const errors[] = {"unknown", "continue", "remount-ro", "panic"};
    static const char *const hashes[] = {"legacy", "half_md4", "tea"};
    const struct ext_disk_super *super = &ext->super;
    const struct ext_geometry *geometry = &ext->geometry;
    uint32_t on_error = le16_load(super->s_errors);
    describe_fields(object, super_fields, super);
    describe_uuid(object, "uuid", super->s_uuid);
    describe_name(object, "label", super->s_volume_name, sizeof(super->s_volume_name));
    put_features(object, geometry);
    describe_text(object, "state",
                  ext->mount_state & EXT_STATE_ERROR   ? "has errors"
                  : ext->mount_state & EXT_STATE_VALID ? "clean"
                                                       : "not clean");
    describe_text(object, "on_error", errors[on_error <= EXT_ERRORS_PANIC ? on_error : 0]);
    describe_text(object, "hash", hashes[ext->hash_version % 3]);
    describe_text(object, "hash_characters", ext->hash_unsigned ? "unsigned" : "signed");
    describe_time(object, "made", le32_load(super->s_mkfs_time));
    describe_time(object, "written", le32_load(super->s_wtime));
    describe_number(object, "block_size", geometry->block_size);
    describe_number(object, "groups", geometry->groups);
    describe_number(object, "inode_table_blocks", geometry->inode_table_blocks);
    describe_number(object, "descriptor_blocks", geometry->descriptor_blocks);
    describe_number(object, "free_blocks", ext->free_blocks);
    describe_number(object, "free_inodes", ext->free_inodes);
    describe_number(object, "directories", ext->used_dirs);
}

/* --- groups ----------------------------------------------------------------------------------- */

static int describe_group(struct ext *ext, uint64_t number, json_t *object) {
    const struct ext_geometry *geometry = &ext->geometry;
    if (number >= geometry->groups) {
        log_error(ext->volume->log, "%s: there is no group %" PRIu64 ", the last is %" PRIu32,
                  ext->volume->name, number, geometry->groups - 1);
        return -EINVAL;
    }
    uint32_t group = (uint32_t)number;
    uint32_t per_block = ext_descriptors_per_block(geometry);
    uint64_t block = ext_descriptor_block(geometry, group / per_block);
    struct buffer *buffer;
    int rc = buffer_get(ext->buffers, block, PURPOSE_SUPER, &buffer);
    if (rc < 0)
        return rc;
    uint64_t first = ext_group_first_block(geometry, group);
    describe_number(object, "group", group);
    describe_number(object, "descriptor_in_block", block);
    describe_fields(object, group_fields,
                    ext_descriptor_at(geometry, buffer_data(buffer), group % per_block));
    buffer_put(buffer);
    describe_number(object, "first_block", first);
    describe_number(object, "last_block", first + ext_group_block_count(geometry, group) - 1);
    describe_bool(object, "has_super_block", ext_group_has_super(geometry, group));
    describe_number(object, "first_inode", (uint64_t)group * geometry->inodes_per_group + 1);
    describe_number(object, "last_inode", (uint64_t)(group + 1) * geometry->inodes_per_group);
    return 0;
}

/* --- inodes ----------------------------------------------------------------------------------- */

static void put_location(json_t *object, const struct ext *ext, uint64_t ino) {
    const struct ext_geometry *geometry = &ext->geometry;
    uint32_t group = ext_group_of_inode(geometry, ino);
    uint64_t byte = (uint64_t)((ino - 1) % geometry->inodes_per_group) * geometry->inode_size;
    json_t *location = json_object();
    describe_number(location, "group", group);
    describe_number(location, "block",
                    ext->groups[group].inode_table + (byte >> geometry->block_bits));
    describe_number(location, "offset", byte & (geometry->block_size - 1));
    json_object_set_new(object, "record", location);
}

static int put_in_use(json_t *object, const struct ext *ext, uint64_t ino) {
    uint32_t group = ext_group_of_inode(&ext->geometry, ino);
    struct buffer *bitmap;
    uint32_t bit = (uint32_t)((ino - 1) % ext->geometry.inodes_per_group);
    bool used = false;
    if (!(ext->groups[group].flags & EXT_GROUP_INODES_UNSET)) {
        int rc = buffer_get(ext->buffers, ext->groups[group].inode_bitmap, PURPOSE_BITMAP, &bitmap);
        if (rc < 0)
            return rc;
        used = bitmap_test(buffer_data(bitmap), bit);
        buffer_put(bitmap);
    }
    describe_bool(object, "in_use", used);
    return 0;
}

static int describe_inode(struct ext *ext, uint64_t ino, json_t *object) {
    const struct ext_geometry *geometry = &ext->geometry;
    if (ino == 0 || ino > geometry->inodes_count) {
        log_error(ext->volume->log, "%s: there is no inode %" PRIu64 ", the last is %" PRIu32,
                  ext->volume->name, ino, geometry->inodes_count);
        return -EINVAL;
    }
    struct buffer *buffer;
    struct ext_disk_inode *record;
    int rc = ext_inode_record(ext, ino, &buffer, &record);
    if (rc < 0)
        return rc;
    uint32_t mode = le16_load(record->i_mode);
    describe_number(object, "inode", ino);
    put_location(object, ext, ino);
    describe_fields(object, inode_fields, record);
    if (geometry->inode_size > EXT_INODE_BASE_SIZE)
        describe_fields(object, inode_extra_fields, record);
    json_t *slots = json_array();
    for (int i = 0; i < EXT_BLOCK_SLOTS; i++)
        json_array_append_new(slots, json_integer(le32_load(record->i_block[i])));
    json_object_set_new(object, "i_block", slots);
    char permissions[8];
    snprintf(permissions, sizeof(permissions), "%04o", mode & 07777);
    describe_text(object, "type", describe_type(mode));
    describe_text(object, "permissions", permissions);
    describe_number(object, "size",
                    le32_load(record->i_size) |
                        (S_ISREG(mode) ? (uint64_t)le32_load(record->i_size_high) << 32 : 0));
    describe_bool(object, "indexed",
                  S_ISDIR(mode) && (le32_load(record->i_flags) & EXT_INODE_INDEX));
    describe_time(object, "modified", (int32_t)le32_load(record->i_mtime));
    buffer_put(buffer);
    return put_in_use(object, ext, ino);
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* The kind of metadata that a group's descriptor puts at the block, or NULL. */
static const char *group_kind(const struct ext *ext, uint64_t block, uint32_t group) {
    const struct ext_group *g = &ext->groups[group];
    if (block == g->block_bitmap)
        return "block bitmap";
    if (block == g->inode_bitmap)
        return "inode bitmap";
    if (block >= g->inode_table && block < g->inode_table + ext->geometry.inode_table_blocks)
        return "inode table";
    return NULL;
}

/* The kind of metadata of the groups' own that lies at the block, or NULL. */
static const char *fixed_kind(const struct ext *ext, uint64_t block, uint32_t group) {
    const struct ext_geometry *geometry = &ext->geometry;
    uint64_t offset = block - ext_group_first_block(geometry, group);
    const char *kind = NULL;
    if (offset < ext_group_overhead(geometry, group)) {
        bool super = ext_group_has_super(geometry, group);
        if (super && offset == 0)
            return "super block";
        return offset < super + ext_group_descriptor_blocks(geometry, group)
                   ? "group descriptors"
                   : "reserved for group descriptors";
    }
    if (!ext_zones_meet(ext, block, 1))
        return NULL;
    /* With flex_bg, that of another group. */
    for (uint32_t i = 0; i < geometry->groups && !kind; i++)
        kind = group_kind(ext, block, (group + geometry->groups - i) % geometry->groups);
    return kind;
}

struct owner_search {
    struct ext *ext;
    uint64_t block;
    uint64_t steps;   /* pointers left to look at in this file: no map is larger than the volume */
    const char *kind; /* NULL: not found yet */
    uint64_t ino, logical;
    uint32_t level, mode;
    bool extents; /* is the inode's map a tree of them? */
};

static int owner_visit(void *context, const struct ext_walk_step *step) {
    struct owner_search *search = context;
    if (step->wrong)
        return EXT_WALK_SKIP;
    if (search->block >= step->block && search->block - step->block < step->count) {
        search->kind = !step->level ? "data" : search->extents ? "extent block" : "indirect block";
        search->logical = step->logical + (search->block - step->block);
        search->level = step->level;
        return -ECANCELED; /* found: an error ends the walk */
    }
    if (search->steps-- == 0)
        return -EUCLEAN;
    return step->level && ext_blocks_are_data(search->ext, step->block, 1) ? EXT_WALK_ENTER
                                                                           : EXT_WALK_SKIP;
}

static int owner_visit_inode(void *context, uint64_t ino, const struct ext_disk_inode *record) {
    struct owner_search *search = context;
    uint32_t mode = le16_load(record->i_mode);
    search->ino = ino;
    search->mode = mode;
    search->extents = le32_load(record->i_flags) & EXT_INODE_EXTENTS;
    search->steps = search->ext->geometry.blocks_count;
    if (ext_record_file_acl(search->ext, record) == search->block)
        search->kind = "extended attributes";
    else if (ext_walk_has_map(search->ext, record))
        ext_walk_map(search->ext, ino, record, owner_visit, search);
    return search->kind != NULL;
}

/* Searches all inodes, those of the block's own group first: files lie near their inodes. */
static int find_owner(struct owner_search *search, uint32_t start) {
    uint32_t groups = search->ext->geometry.groups;
    for (uint32_t i = 0; i < groups; i++) {
        int rc = ext_walk_inodes(search->ext, (start + i) % groups, owner_visit_inode, search);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    return 0;
}

static void put_entries(json_t *object, const struct ext *ext, const void *block) {
    uint32_t size = ext->geometry.block_size;
    json_t *entries = json_array();
    for (uint32_t offset = 0; offset + sizeof(struct ext_disk_dirent) <= size;) {
        const struct ext_disk_dirent *entry =
            (const struct ext_disk_dirent *)((const uint8_t *)block + offset);
        uint32_t length = le16_load(entry->rec_len);
        if (length < ext_dirent_size(entry->name_len) || length > size - offset)
            break;
        json_t *row = json_object();
        describe_number(row, "offset", offset);
        describe_number(row, "inode", le32_load(entry->inode));
        describe_number(row, "rec_len", length);
        describe_number(row, "file_type", entry->file_type);
        describe_name(row, "name", entry->name, entry->name_len);
        json_array_append_new(entries, row);
        offset += length;
    }
    json_object_set_new(object, "entries", entries);
}

static void put_pointers(json_t *object, const struct ext *ext, const void *block) {
    const le32 *pointers = block;
    json_t *runs = json_array();
    uint32_t entries = ext->geometry.block_size / 4, count;
    for (uint32_t i = 0; i < entries; i += count) {
        uint32_t first = le32_load(pointers[i]), step = first ? 1 : 0;
        for (count = 1; i + count < entries; count++) {
            if (le32_load(pointers[i + count]) != first + count * step)
                break;
        }
        if (first)
            json_array_append_new(runs,
                                  json_pack("{s:I, s:I, s:I}", "index", (json_int_t)i, "block",
                                            (json_int_t)first, "count", (json_int_t)count));
    }
    json_object_set_new(object, "pointers", runs);
}

/* The entries of a node of an extent tree, as far as there can be. */
static void put_extent_node(json_t *object, const struct ext *ext, const void *block) {
    uint32_t max = ext_extent_block_max(&ext->geometry);
    const struct ext_disk_extent_header *header = block;
    uint32_t depth = le16_load(header->eh_depth), entries = le16_load(header->eh_entries);
    json_t *rows = json_array();
    describe_number(object, "eh_magic", le16_load(header->eh_magic));
    describe_number(object, "eh_entries", entries);
    describe_number(object, "eh_max", le16_load(header->eh_max));
    describe_number(object, "eh_depth", depth);
    for (uint32_t i = 0; i < entries && i < max; i++) {
        const struct ext_disk_extent *extent = (const struct ext_disk_extent *)(header + 1) + i;
        json_t *row = json_object();
        struct ext_run run;
        ext_extent_decode(extent, &run);
        describe_number(row, "logical", run.logical);
        if (depth > 0) {
            describe_number(row, "leaf", ext_extent_index_block((const void *)extent));
        } else {
            describe_number(row, "block", run.physical);
            describe_number(row, "count", run.count);
            describe_bool(row, "unwritten", run.unwritten);
        }
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "extents", rows);
}

static void put_attributes(json_t *object, const void *block) {
    const struct ext_disk_xattr_header *header = block;
    describe_number(object, "h_magic", le32_load(header->h_magic));
    describe_number(object, "h_refcount", le32_load(header->h_refcount));
    describe_number(object, "h_blocks", le32_load(header->h_blocks));
    describe_number(object, "h_hash", le32_load(header->h_hash));
}

static int put_contents(json_t *object, struct ext *ext, const struct owner_search *owner) {
    struct buffer *buffer;
    bool directory = owner->level == 0 && S_ISDIR(owner->mode);
    if (strcmp(owner->kind, "data") == 0 && !directory)
        return 0; /* contents of files are nobody's business here */
    int rc = buffer_get(ext->buffers, owner->block, PURPOSE_OTHER, &buffer);
    if (rc < 0)
        return rc;
    if (strcmp(owner->kind, "indirect block") == 0)
        put_pointers(object, ext, buffer_data(buffer));
    else if (strcmp(owner->kind, "extent block") == 0)
        put_extent_node(object, ext, buffer_data(buffer));
    else if (directory)
        put_entries(object, ext, buffer_data(buffer));
    else
        put_attributes(object, buffer_data(buffer));
    buffer_put(buffer);
    return 0;
}

static int describe_owned(struct ext *ext, uint64_t block, uint32_t group, json_t *object) {
    struct owner_search owner = {.ext = ext, .block = block};
    int rc = find_owner(&owner, group);
    if (rc < 0)
        return rc;
    if (!owner.kind) {
        describe_text(object, "kind", "in use, but no inode refers to it");
        return 0;
    }
    bool directory = owner.level == 0 && S_ISDIR(owner.mode) && strcmp(owner.kind, "data") == 0;
    describe_text(object, "kind", directory ? "directory" : owner.kind);
    describe_number(object, "inode", owner.ino);
    if (strcmp(owner.kind, "extended attributes") != 0) {
        describe_number(object, "logical", owner.logical);
        describe_number(object, "level", owner.level);
    }
    return put_contents(object, ext, &owner);
}

static int describe_block(struct ext *ext, uint64_t block, json_t *object) {
    const struct ext_geometry *geometry = &ext->geometry;
    if (block >= geometry->blocks_count) {
        log_error(ext->volume->log, "%s: there is no block %" PRIu64 ", the last is %" PRIu64,
                  ext->volume->name, block, geometry->blocks_count - 1);
        return -EINVAL;
    }
    describe_number(object, "block", block);
    describe_number(object, "device_offset", block << geometry->block_bits);
    if (block < geometry->first_data_block) {
        describe_text(object, "kind", "boot block");
        return 0;
    }
    uint32_t group = ext_group_of_block(geometry, block);
    describe_number(object, "group", group);
    struct buffer *bitmap;
    int rc = buffer_get(ext->buffers, ext->groups[group].block_bitmap, PURPOSE_BITMAP, &bitmap);
    if (rc < 0)
        return rc;
    uint32_t bit = (uint32_t)(block - ext_group_first_block(geometry, group));
    bool in_use = bitmap_test(buffer_data(bitmap), bit);
    buffer_put(bitmap);
    describe_bool(object, "in_use", in_use);
    const char *kind = fixed_kind(ext, block, group);
    if (!kind && in_use)
        return describe_owned(ext, block, group, object);
    describe_text(object, "kind", kind ? kind : "free");
    if (kind && strcmp(kind, "inode table") == 0) {
        uint64_t first = (block - ext->groups[group].inode_table) *
                         (geometry->block_size / geometry->inode_size);
        describe_number(object, "first_inode",
                        (uint64_t)group * geometry->inodes_per_group + first + 1);
    }
    return 0;
}

int ext_describe(struct volume *volume, enum describe_kind kind, uint64_t number, json_t **object) {
    struct ext *ext = ext_of(volume);
    int rc = 0;
    *object = json_object();
    if (!*object)
        return -ENOMEM;
    switch (kind) {
    case DESCRIBE_SUPER:
        describe_super(ext, *object);
        break;
    case DESCRIBE_GROUP:
        rc = describe_group(ext, number, *object);
        break;
    case DESCRIBE_INODE:
        rc = describe_inode(ext, number, *object);
        break;
    case DESCRIBE_BLOCK:
        rc = describe_block(ext, number, *object);
        break;
    default:
        rc = -ENOTSUP;
        break;
    }
    if (rc < 0) {
        json_decref(*object);
        *object = NULL;
    }
    return rc;
}

/* --- explain ---------------------------------------------------------------------------------- */

struct explanation {
    const struct ext_geometry *geometry;
    json_t *extents, *map;
    struct ext_run run; /* the extent being gathered; count 0: none yet */
    uint64_t data_blocks, extent_count;
    uint64_t gap_blocks; /* distances between an extent's end and the next one's start, summed */
};

static void extent_finish(struct explanation *explanation) {
    const struct ext_run *run = &explanation->run;
    uint32_t bits = explanation->geometry->block_bits;
    if (run->count == 0)
        return;
    json_t *row = json_object();
    describe_number(row, "offset", run->logical << bits);
    describe_number(row, "length", run->count << bits);
    describe_number(row, "device_offset", run->physical << bits);
    describe_number(row, "block", run->physical);
    describe_number(row, "blocks", run->count);
    if (run->unwritten)
        describe_bool(row, "unwritten", true);
    json_array_append_new(explanation->extents, row);
    explanation->extent_count++;
}

static void explain_map_block(struct explanation *explanation, const struct ext_run *run) {
    json_t *row = json_object();
    describe_number(row, "level", run->level);
    describe_number(row, "block", run->physical);
    describe_number(row, "first_logical", run->logical);
    json_array_append_new(explanation->map, row);
}

static int explain_visit(void *context, const struct ext_run *next) {
    struct explanation *explanation = context;
    struct ext_run *run = &explanation->run;
    uint64_t end = run->physical + run->count;
    if (next->level > 0) {
        explain_map_block(explanation, next);
        return 0;
    }
    explanation->data_blocks += next->count;
    if (run->count > 0 && next->physical == end && next->logical == run->logical + run->count &&
        next->unwritten == run->unwritten) {
        run->count += next->count;
        return 0;
    }
    if (run->count > 0)
        explanation->gap_blocks +=
            next->physical > end ? next->physical - end : end - next->physical;
    extent_finish(explanation);
    *run = *next;
    return 0;
}

int ext_explain(struct inode *inode, json_t **object) {
    struct ext *ext = ext_of(inode->volume);
    struct explanation explanation = {
        .geometry = &ext->geometry,
        .extents = json_array(),
        .map = json_array(),
    };
    int rc = ext_blocks_each(inode, explain_visit, &explanation);
    extent_finish(&explanation);
    *object = rc < 0 ? NULL : json_object();
    if (!*object) {
        json_decref(explanation.extents);
        json_decref(explanation.map);
        return rc < 0 ? rc : -ENOMEM;
    }
    describe_number(*object, "inode", inode->ino);
    describe_text(*object, "type", describe_type(inode->mode));
    describe_number(*object, "size", inode->size);
    put_location(*object, ext, inode->ino);
    describe_number(*object, "block_size", ext->geometry.block_size);
    describe_number(*object, "data_blocks", explanation.data_blocks);
    describe_number(*object, "fragments", explanation.extent_count);
    describe_number(*object, "mean_gap_bytes",
                    explanation.extent_count > 1
                        ? (explanation.gap_blocks << ext->geometry.block_bits) /
                              (explanation.extent_count - 1)
                        : 0);
    if (ext_inode_of(inode)->file_acl)
        describe_number(*object, "attribute_block", ext_inode_of(inode)->file_acl);
    if (S_ISDIR(inode->mode))
        describe_bool(*object, "indexed", inode->flags & EXT_INODE_INDEX);
    json_object_set_new(*object, "extents", explanation.extents);
    json_object_set_new(*object,
                        inode->flags & EXT_INODE_EXTENTS ? "extent_blocks" : "indirect_blocks",
                        explanation.map);
    return 0;
}

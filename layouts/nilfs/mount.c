/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top. The volume is taken up and given back. Interface:
 * layouts/nilfs/layout.h.
 *
 * Invariants:
 *  1. A read-only mount changes no byte of the device, not even on a volume that was not unmounted:
 *     what recovery finds is put together in core.
 *  2. While mounted for writing, the super blocks do not say "clean"; unmount says so in the
 * current one, when everything is on the disk.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/history.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/recovery.h"
#include "layouts/nilfs/super.h"

#define INTERVAL_DEFAULT 5 /* seconds */

/* --- what the volume is told, and says -------------------------------------------------------- */

static void io_failed(void *context, const struct buffer_failure *failure) {
    const struct nilfs *nilfs = context;
    const struct volume *volume = nilfs->volume;
    const char *what = failure->operation == DEVICE_WRITE ? "written" : "read";

    log_error(volume->log, "%s: nilfs: %s block %" PRIu64 " (%u in a row) cannot be %s: %s",
              volume->name, purpose_name(failure->purpose), failure->block, failure->count, what,
              strerror(-failure->error));
}

static int64_t interval_of(const struct nilfs *nilfs) {
    uint32_t stored = le32_load(nilfs->supers.copy[0].s_c_interval);

    if (nilfs->options.interval_ns)
        return nilfs->options.interval_ns;
    return (stored ? stored : INTERVAL_DEFAULT) * NS_PER_SEC;
}

static void set_limits(const struct nilfs *nilfs, struct layout_limits *limits) {
    /* Whole pages; the format itself goes to 2^63 - 1. */
    limits->file_size_max = INT64_MAX & ~(uint64_t)(PAGE_SIZE_BYTES - 1);
    limits->link_max = NILFS_LINK_MAX;
    limits->subdir_max = NILFS_LINK_MAX;
    limits->symlink_max = nilfs->geometry.block_size - 1;
    limits->time_granularity_ns = 1;
    limits->commit_interval_ns = interval_of(nilfs);
    /* The format's seconds are unsigned, but the driver's numbers are not. */
    limits->time_min = (struct timestamp){INT64_MIN, 0};
    limits->time_max = (struct timestamp){INT64_MAX, (uint32_t)NS_PER_SEC - 1};
}

/* What the super block calls the volume, for whoever asks while a commit writes super blocks. */
static void name_volume(struct nilfs *nilfs) {
    const struct nilfs_disk_super *super = &nilfs->supers.copy[0];

    static_assert(sizeof(nilfs->label) == sizeof(super->s_volume_name) + 1, "room for a NUL");
    memcpy(nilfs->uuid, super->s_uuid, sizeof(nilfs->uuid));
    memcpy(nilfs->label, super->s_volume_name, sizeof(super->s_volume_name));
}

/* Generations differ from mount to mount, so that an old file handle is known for one. */
static uint32_t first_generation(const struct nilfs_disk_super *super) {
    uint32_t generation;

    memcpy(&generation, super->s_uuid, sizeof(generation));
    return generation + ((uint32_t)le16_load(super->s_mnt_count) << 16);
}

static int check_read_only_features(const struct nilfs *nilfs) {
    const struct volume *volume = nilfs->volume;
    uint64_t known = NILFS_COMPAT_RO_BLOCK_COUNT;
    uint64_t unknown = le64_load(nilfs->supers.copy[0].s_feature_compat_ro) & ~known;

    if (!unknown || volume->read_only)
        return 0;
    log_error(volume->log,
              "%s: nilfs: super block: features 0x%" PRIx64
              " are not known here; it can be mounted read-only",
              volume->name, unknown);
    return -EROFS;
}

static int check_options(const struct nilfs *nilfs, bool clean) {
    const struct volume *volume = nilfs->volume;

    if (clean || nilfs->options.recover || volume->read_only)
        return 0;
    log_error(volume->log,
              "%s: nilfs: it was not unmounted; with norecovery it can only be mounted read-only",
              volume->name);
    return -EINVAL;
}

/* --- mount ------------------------------------------------------------------------------------ */

static int read_supers(struct nilfs *nilfs) {
    struct volume *volume = nilfs->volume;
    int error = nilfs_super_read(volume->device, &nilfs->supers);

    if (error == -ENODEV)
        log_error(volume->log, "%s: nilfs: neither of the two super blocks is valid", volume->name);
    if (!error)
        error = nilfs_super_geometry(&nilfs->supers, volume->device, volume->log, &nilfs->geometry);
    return error;
}

/* The newest log from the current super block on or, when that one names none, from the other on.
 */
static int find_newest(struct nilfs *nilfs, bool *clean, struct nilfs_found *found) {
    uint32_t block_size = nilfs->geometry.block_size;
    int error = nilfs_recovery_find(nilfs, *clean, found);

    if (error != -EUCLEAN || nilfs_super_fall_back(&nilfs->supers) != 0)
        return error;
    *clean = false;
    log_warning(nilfs->volume->log, "%s: nilfs: the other super block is used, at byte %" PRIu64,
                nilfs->volume->name, nilfs->supers.offset[0]);
    error = nilfs_super_geometry(&nilfs->supers, nilfs->volume->device, nilfs->volume->log,
                                 &nilfs->geometry);
    if (!error && nilfs->geometry.block_size != block_size)
        error = nilfs_corrupt(nilfs, "the two super blocks name different block sizes");
    return error ? error : nilfs_recovery_find(nilfs, false, found);
}

static void tell_state(const struct nilfs *nilfs, bool clean, const struct nilfs_found *found) {
    const struct volume *volume = nilfs->volume;

    if (le16_load(nilfs->supers.copy[0].s_state) & NILFS_STATE_ERROR)
        log_warning(volume->log, "%s: nilfs: damage was found in it earlier; see 'layoutfs check'",
                    volume->name);
    if (!clean)
        log_info(volume->log,
                 "%s: nilfs: it was not unmounted; the newest checkpoint is %" PRIu64
                 ", in the log at block %" PRIu64,
                 volume->name, found->cno, found->newest.block);
}

static int open_tree(struct nilfs *nilfs) {
    struct volume *volume = nilfs->volume;
    bool clean = le16_load(nilfs->supers.copy[0].s_state) & NILFS_STATE_CLEAN;
    struct nilfs_found found;
    int error = find_newest(nilfs, &clean, &found);

    if (!error)
        error = check_options(nilfs, clean);
    if (!error)
        error = nilfs_recovery_open(nilfs, &found);
    if (error)
        return error;
    tell_state(nilfs, clean, &found);
    name_volume(nilfs);
    nilfs->next_generation = first_generation(&nilfs->supers.copy[0]);
    if (nilfs->options.recover && !nilfs->options.checkpoint)
        error = nilfs_recovery_roll_forward(nilfs, &found);
    if (!error && !clean && !volume->read_only && nilfs->position.sequence == found.newest.sequence)
        error = nilfs_recovery_start_afresh(nilfs, &found);
    if (!error && !clean && !volume->read_only)
        error = nilfs_leftovers_free(nilfs);
    if (!error && !volume->read_only)
        error = nilfs_cleaner_new(nilfs);
    if (!error && nilfs->options.history && !nilfs->options.checkpoint)
        error = nilfs_history_new(nilfs);
    return error || volume->read_only ? error : nilfs_super_mounted(nilfs);
}

static int take_up(struct nilfs *nilfs, const struct options *options) {
    struct volume *volume = nilfs->volume;
    int error = read_supers(nilfs);

    nilfs_options_take(options, &nilfs->options);
    if (nilfs->options.checkpoint)
        volume->read_only = true;
    if (!error)
        error = check_read_only_features(nilfs);
    if (!error)
        error = buffer_cache_create(volume->device, &volume->pool, volume->clock,
                                    nilfs->geometry.block_size, &volume->buffers);
    if (error)
        return error;
    nilfs->buffers = volume->buffers;
    nilfs_volume_init(nilfs);
    buffer_cache_on_failure(nilfs->buffers, io_failed, nilfs);
    volume->root_ino = NILFS_ROOT_INO;
    volume->store_changes = true;
    volume->store_sweeps = true;
    set_limits(nilfs, &volume->limits);
    return open_tree(nilfs);
}

/* Changes that have not got into a checkpoint are dropped. */
static void tree_close(struct nilfs *nilfs) {
    const struct nilfs_changes *changes;

    nilfs_commit_free(nilfs);
    nilfs_cleaner_free(nilfs);
    nilfs_history_free(nilfs);
    while ((changes = TAILQ_FIRST(&nilfs->dirty_files)))
        nilfs_file_mark_clean(changes->file);
    nilfs_file_put(nilfs->ifile);
    nilfs_file_put(nilfs->sufile);
    nilfs_file_put(nilfs->cpfile);
    nilfs_file_put(nilfs->dat);
    nilfs_volume_destroy(nilfs);
}

static void release(struct volume *volume) {
    struct nilfs *nilfs = nilfs_of(volume);

    if (nilfs->buffers)
        tree_close(nilfs);
    free(nilfs);
    volume->layout_data = NULL;
}

int nilfs_mount(struct volume *volume, const struct options *options) {
    struct nilfs *nilfs = calloc(1, sizeof(*nilfs));

    if (!nilfs)
        return -ENOMEM;
    nilfs->volume = volume;
    volume->layout_data = nilfs;
    int error = take_up(nilfs, options);
    if (error)
        release(volume);
    return error;
}

int nilfs_unmount(struct volume *volume) {
    struct nilfs *nilfs = nilfs_of(volume);
    int error = 0;

    if (nilfs->supers.mounted && !volume->shut_down)
        error = volume->failed ? nilfs_super_note_error(nilfs)
                               : nilfs_super_unmounted(nilfs, nilfs->clean_segments);
    release(volume);
    return error;
}

/* --- statfs ----------------------------------------------------------------------------------- */

/* Only clean segments count as free: what was deleted does when the cleaner has been there. */
int nilfs_statfs(struct volume *volume, struct volume_usage *usage) {
    struct nilfs *nilfs = nilfs_of(volume);
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t reserved = nilfs_reserved_segments(g) * g->segment_blocks;
    int error = nilfs_ifile_capacity(nilfs->ifile, &usage->inodes);

    if (error)
        return error;
    usage->block_size = g->block_size;
    usage->blocks = g->segments * g->segment_blocks - g->first_data_block;
    usage->free = nilfs->clean_segments * g->segment_blocks;
    usage->available = usage->free > reserved ? usage->free - reserved : 0;
    usage->inodes_free =
        usage->inodes > nilfs->inodes_count ? usage->inodes - nilfs->inodes_count : 0;
    usage->name_max = NAME_LENGTH_MAX;
    memcpy(usage->uuid, nilfs->uuid, sizeof(usage->uuid));
    memcpy(usage->label, nilfs->label, sizeof(nilfs->label));
    return 0;
}

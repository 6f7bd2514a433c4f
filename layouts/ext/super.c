/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache and descriptors.c. The super block: recognised, taken
 * up at mount, kept, and given back at unmount.
 *
 * Invariants:
 *  1. A read-only mount changes no byte of the device.
 *  2. While mounted for writing, the super block on disk lacks EXT_STATE_VALID; unmount restores
 * the state found at mount, so that an unclean volume stays so until somebody checks it.
 *  3. Copies of the super block and descriptors in other groups are mkfs's and e2fsck's business;
 *     only the first is written here (as Linux does).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/checksum.h"
#include "layouts/ext/journal.h"
#include "layouts/ext/mballoc.h"

#define MAP_BLOCKS_KEPT UINT64_C(4096)
#define LINK_MAX_EXT2   32000u
#define LINK_MAX_EXT4   65000u
#define SECONDS_32_MIN  (-INT64_C(0x80000000))
#define SECONDS_32_MAX  INT64_C(0x7FFFFFFF)
#define SECONDS_34_MAX  (SECONDS_32_MIN + (INT64_C(1) << 34) - 1) /* two more bits: year 2446 */

/* --- probe ------------------------------------------------------------------------------------ */

/* The family member whose features these are; this layout mounts them all as ext2 if it can. */
static const char *member_name(const struct ext_disk_super *super) {
    uint32_t ext4_incompat = EXT_INCOMPAT_EXTENTS | EXT_INCOMPAT_64BIT | EXT_INCOMPAT_FLEX_BG |
                             EXT_INCOMPAT_INLINE_DATA | EXT_INCOMPAT_EA_INODE | EXT_INCOMPAT_MMP;
    uint32_t ext4_ro_compat =
        EXT_RO_COMPAT_HUGE_FILE | EXT_RO_COMPAT_GDT_CSUM | EXT_RO_COMPAT_METADATA_CSUM;
    if (le32_load(super->s_rev_level) == 0)
        return "ext2";
    if ((le32_load(super->s_feature_incompat) & ext4_incompat) ||
        (le32_load(super->s_feature_ro_compat) & ext4_ro_compat))
        return "ext4";
    return le32_load(super->s_feature_compat) & EXT_COMPAT_HAS_JOURNAL ? "ext3" : "ext2";
}

int ext_probe(struct device *device, struct probe_result *result) {
    struct ext_disk_super super;
    *result = (struct probe_result){0};
    if (device->size < EXT_SUPER_OFFSET + sizeof(super))
        return 0;
    int error = device_read(device, EXT_SUPER_OFFSET, &super, sizeof(super), PURPOSE_SUPER);
    if (error)
        return error;
    if (le16_load(super.s_magic) != EXT_MAGIC)
        return 0;
    /* The magic is only 16 bits: the fields that arithmetic depends on must make sense, too. */
    struct ext_geometry geometry;
    bool plausible = ext_geometry_load(&super, device->size, device->name, NULL, &geometry) == 0;
    const char *member = member_name(&super);
    result->type = member;
    result->confidence = plausible ? 100 : 30;
    result->recover = le32_load(super.s_feature_incompat) & EXT_INCOMPAT_RECOVER;
    int length = snprintf(result->description, sizeof(result->description), "%s, %u-byte blocks",
                          member, 1024u << (le32_load(super.s_log_block_size) & 7));
    if (super.s_volume_name[0])
        snprintf(result->description + length, sizeof(result->description) - (size_t)length,
                 ", label \"%.16s\"", super.s_volume_name);
    return 0;
}

/* --- damage ----------------------------------------------------------------------------------- */

/* The first error's and the last error's time, for dumpe2fs and its like. */
static void note_error(struct ext *ext) {
    struct ext_disk_super *super = &ext->super;
    uint32_t now = (uint32_t)clock_calendar(ext->volume->clock).seconds;
    uint32_t count = le32_load(super->s_error_count);
    if (count == 0)
        le32_store(&super->s_first_error_time, now);
    le32_store(&super->s_last_error_time, now);
    le32_store(&super->s_error_count, count + 1);
    le16_store(&super->s_state, le16_load(super->s_state) | EXT_STATE_ERROR);
    ext->super_dirty = true;
}

/* The note must get to the disk before writing stops; past the buffer, whose bytes only the holder
 * of the exclusive lock may change. */
static void stop_writing(struct ext *ext) {
    struct volume *volume = ext->volume;
    bool panic = ext->errors == EXT_ERRORS_PANIC;
    ext_super_checksum_set(&ext->super);
    device_write(volume->device, EXT_SUPER_OFFSET, &ext->super, sizeof(ext->super), PURPOSE_SUPER);
    volume_fail(volume, panic);
    log_error(volume->log, "%s: errors=%s: the volume is %s now", volume->name,
              panic ? "panic" : "remount-ro", panic ? "shut down" : "read-only");
}

void ext_fail(struct ext *ext) {
    if (ext->volume->read_only)
        return;
    note_error(ext);
    stop_writing(ext);
}

int ext_super_note_error(struct ext *ext) {
    struct volume *volume = ext->volume;
    struct ext_disk_super super;
    int error = ext_super_read(volume->device, volume->log, &super);
    if (error)
        return error;
    le16_store(&super.s_state, le16_load(super.s_state) | EXT_STATE_ERROR);
    ext_super_checksum_set(&super);
    return device_write(volume->device, EXT_SUPER_OFFSET, &super, sizeof(super), PURPOSE_SUPER);
}

static void errors_apply(struct ext *ext) {
    if (ext->volume->read_only)
        return;
    note_error(ext);
    if (ext->errors != EXT_ERRORS_CONTINUE)
        stop_writing(ext);
}

int ext_corrupt(struct ext *ext, const char *format, ...) {
    struct volume *volume = ext->volume;
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    log_error(volume->log, "%s: %s", volume->name, sentence);
    errors_apply(ext);
    return -EUCLEAN;
}

void ext_io_failed(void *context, const struct buffer_failure *failure) {
    struct ext *ext = context;
    bool write = failure->operation == DEVICE_WRITE;
    const char *name = ext->volume->name, *what = purpose_name(failure->purpose);

    if (failure->count == 0)
        log_error(ext->volume->log, "%s: metadata was not written: %s; run e2fsck -f", name,
                  strerror(-failure->error));
    else
        log_error(ext->volume->log, "%s: %s block %" PRIu64 " (%u in a row) cannot be %s: %s", name,
                  what, failure->block, failure->count, write ? "written" : "read",
                  strerror(-failure->error));
    if (write && ext->journal)
        ext_journal_abort(ext->journal, failure->error);
    else
        errors_apply(ext);
}

/* --- super block ------------------------------------------------------------------------------ */

int ext_super_read(struct device *device, const struct log *log, struct ext_disk_super *super) {
    if (device->size < EXT_SUPER_OFFSET + sizeof(*super)) {
        log_error(log, "%s: %" PRIu64 " bytes are too few for a super block", device->name,
                  device->size);
        return -EUCLEAN;
    }
    return device_read(device, EXT_SUPER_OFFSET, super, sizeof(*super), PURPOSE_SUPER);
}

/* Our copy of the super block into its buffer: with 1 KiB blocks it has its own, else it lies in
 * block 0 after the boot block. */
static int super_to_buffer(struct ext *ext) {
    uint64_t block = EXT_SUPER_OFFSET >> ext->geometry.block_bits;
    uint32_t offset = EXT_SUPER_OFFSET & (ext->geometry.block_size - 1);
    struct buffer *buffer;
    int error = buffer_get(ext->buffers, block, PURPOSE_SUPER, &buffer);
    if (error)
        return error;
    memcpy((uint8_t *)buffer_data(buffer) + offset, &ext->super, sizeof(ext->super));
    ext_dirty(ext, buffer);
    buffer_put(buffer);
    return 0;
}

void ext_feature_announce(struct ext *ext, uint32_t *known, le32 *stored, uint32_t feature) {
    if (*known & feature)
        return;
    *known |= feature;
    le32_store(stored, *known);
    ext->super_dirty = true;
}

static uint64_t super_free_blocks(const struct ext *ext) {
    const struct ext_disk_super *super = &ext->super;
    return ext_blocks_load(super, super->s_free_blocks_count, super->s_free_blocks_count_hi);
}

int ext_super_store(struct ext *ext) {
    struct ext_disk_super *super = &ext->super;
    int error = ext_groups_store(ext);
    if (error)
        return error;
    if (ext->free_blocks != super_free_blocks(ext) ||
        ext->free_inodes != le32_load(super->s_free_inodes_count))
        ext->super_dirty = true;
    if (!ext->super_dirty)
        return 0;
    ext_blocks_store(&super->s_free_blocks_count, &super->s_free_blocks_count_hi, ext->free_blocks);
    le32_store(&super->s_free_inodes_count, ext->free_inodes);
    le32_store(&super->s_wtime, (uint32_t)clock_calendar(ext->volume->clock).seconds);
    ext_super_checksum_set(super);
    error = super_to_buffer(ext);
    if (!error)
        ext->super_dirty = false;
    return error;
}

static int write_everything(struct ext *ext) {
    int error = ext_super_store(ext);
    if (!error)
        error = buffer_sync(ext->buffers);
    if (!error)
        error = device_flush(ext->volume->device);
    return error;
}

/* --- mount ------------------------------------------------------------------------------------ */

static void set_limits(const struct ext *ext, struct layout_limits *limits) {
    const struct ext_geometry *geometry = &ext->geometry;
    bool wide_times = geometry->inode_size > EXT_INODE_BASE_SIZE;
    limits->file_size_max = ext_file_size_max(ext);
    limits->subdirs_uncounted = geometry->ro_compat & EXT_RO_COMPAT_DIR_NLINK;
    /* Linux's only driver of ext3, too, is ext4's now. */
    bool ext4 = limits->subdirs_uncounted || geometry->incompat & EXT_INCOMPAT_EXTENTS ||
                geometry->compat & EXT_COMPAT_HAS_JOURNAL;
    limits->link_max = ext4 ? LINK_MAX_EXT4 : LINK_MAX_EXT2;
    limits->subdir_max = limits->link_max;
    limits->symlink_max = geometry->block_size - 1;
    limits->time_granularity_ns = wide_times ? 1 : (uint32_t)NS_PER_SEC;
    limits->time_min = (struct timestamp){SECONDS_32_MIN, 0};
    limits->time_max = (struct timestamp){wide_times ? SECONDS_34_MAX : SECONDS_32_MAX, 0};
}

/* The hash of new indexed directories: as the super block says, with the signedness of the machine
 * that made the volume. */
static void set_hash(struct ext *ext) {
    const struct ext_disk_super *super = &ext->super;
    for (int i = 0; i < 4; i++)
        ext->hash_seed[i] = le32_load(super->s_hash_seed[i]);
    ext->hash_unsigned = le32_load(super->s_flags) & EXT_FLAGS_UNSIGNED_HASH;
    uint32_t version = super->s_def_hash_version;
    if (version > EXT_HASH_TEA)
        version = EXT_HASH_HALF_MD4;
    ext->hash_version = version + (ext->hash_unsigned ? EXT_HASH_LEGACY_UNSIGNED : 0);
}

/* journal=; `data=` is the kernel's way to say it, and what is given last counts. */
static enum ext_journal_mode journal_mode(const struct ext *ext, const struct options *options) {
    if (!(ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL) || ext->volume->read_only)
        return EXT_JOURNAL_NONE;
    if (options_given(options, "data"))
        return (enum ext_journal_mode)options_number(options, "data");
    return (enum ext_journal_mode)options_number(options, "journal");
}

static int set_journal(struct ext *ext, const struct options *options) {
    struct ext_journal_settings *settings = &ext->journal_settings;
    bool asked =
        options_given(options, "data") || (options_given(options, "journal") &&
                                           options_number(options, "journal") != EXT_JOURNAL_NONE);
    settings->mode = journal_mode(ext, options);
    settings->barrier = options_number(options, "barrier");
    settings->ordered_written = options_number(options, "ordered");
    settings->interval_ns = options_number(options, "commit") * NS_PER_SEC;
    if (options_given(options, "journal_fault"))
        settings->faults = (unsigned)options_number(options, "journal_fault");
    if (!asked || ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL)
        return 0;
    log_error(ext->volume->log,
              "%s: journal=: the volume has no journal; 'layoutfs convert' or tune2fs -j adds one",
              ext->volume->name);
    return -EINVAL;
}

static void set_strategies(struct ext *ext, const struct options *options) {
    ext->dir_order = (enum ext_dir_order)options_number(options, "dir_order");
    ext->dir_placement = (enum ext_dir_placement)options_number(options, "dir_placement");
    ext->block_placement = (enum ext_block_placement)options_number(options, "alloc");
    ext->prealloc_blocks = (uint32_t)options_number(options, "prealloc");
    ext->delayed = options_number(options, "delalloc") == 1;
    ext->volume->store_changes =
        ext->delayed || ext->geometry.incompat & (EXT_INCOMPAT_EXTENTS | EXT_INCOMPAT_INLINE_DATA);
    uint32_t errors = le16_load(ext->super.s_errors);
    if (options_given(options, "errors"))
        errors = (uint32_t)options_number(options, "errors");
    ext->errors =
        errors == EXT_ERRORS_RO || errors == EXT_ERRORS_PANIC ? errors : EXT_ERRORS_CONTINUE;
}

static void warn_if_unclean(const struct ext *ext) {
    const char *why = NULL;
    if (ext->mount_state & EXT_STATE_ERROR)
        why = "damage was found in it earlier";
    else if (!(ext->mount_state & EXT_STATE_VALID))
        why = "it was not unmounted";
    if (why)
        log_warning(ext->volume->log, "%s: super block: %s; run e2fsck -f", ext->volume->name, why);
    /* With a journal the sums are brought up to date at unmount only (Linux). */
    if (ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL)
        return;
    if (ext->free_blocks != super_free_blocks(ext) ||
        ext->free_inodes != le32_load(ext->super.s_free_inodes_count))
        log_warning(ext->volume->log,
                    "%s: super block: its free counts differ from the sum of the groups', which is "
                    "used",
                    ext->volume->name);
}

/* To be recovered before it is used, if the system fails. */
static void set_recovery(struct ext *ext, bool needed) {
    uint32_t *incompat = &ext->geometry.incompat;
    *incompat = needed ? *incompat | EXT_INCOMPAT_RECOVER : *incompat & ~EXT_INCOMPAT_RECOVER;
    le32_store(&ext->super.s_feature_incompat, *incompat);
    ext->super_dirty = true;
}

/* From here on the volume counts as in use. With a journal it stays valid, once recovered. */
static int mark_in_use(struct ext *ext) {
    struct ext_disk_super *super = &ext->super;
    bool journal = ext->journal_settings.mode != EXT_JOURNAL_NONE;
    if (!journal)
        le16_store(&super->s_state, le16_load(super->s_state) & (uint16_t)~EXT_STATE_VALID);
    if (le32_load(super->s_rev_level) > 0)
        set_recovery(ext, journal);
    le16_store(&super->s_mnt_count, le16_load(super->s_mnt_count) + 1);
    le32_store(&super->s_mtime, (uint32_t)clock_calendar(ext->volume->clock).seconds);
    ext->super_dirty = true;
    return write_everything(ext);
}

static void release_groups(struct ext *ext) {
    for (uint32_t i = 0; ext->groups && i < ext->geometry.groups; i++)
        free(ext->groups[i].shadow);
    ext_groups_release(ext);
    ext->free_blocks = 0;
    ext->free_inodes = ext->used_dirs = 0;
}

static void ext_release(struct volume *volume) {
    struct ext *ext = ext_of(volume);
    ext_mballoc_close(ext);
    release_groups(ext);
    free(ext);
    volume->layout_data = NULL;
}

static void group_wrong(void *context, uint32_t group, uint64_t block, const char *why) {
    const struct ext *ext = context;
    log_error(ext->volume->log,
              "%s: group %" PRIu32 " descriptor in block %" PRIu64 ": %s; run e2fsck",
              ext->volume->name, group, block, why);
}

/* Validates the super block that ext->super is, and what follows from it. */
static int examine_super(struct ext *ext) {
    struct volume *volume = ext->volume;
    int error = 0;
    if (le16_load(ext->super.s_magic) == EXT_MAGIC)
        error = ext_features_check(&ext->super, volume->read_only, volume->name, volume->log);
    if (!error)
        error = ext_geometry_load(&ext->super, volume->device->size, volume->name, volume->log,
                                  &ext->geometry);
    return error;
}

/* The journal has brought blocks home: the super block and the descriptors may be among them. */
static int examine_again(struct ext *ext) {
    uint32_t block_size = ext->geometry.block_size;
    struct buffer *buffer;
    release_groups(ext);
    if (!ext->volume->read_only)
        buffer_forget(ext->buffers, 0, UINT64_MAX);
    int error = buffer_get(ext->buffers, EXT_SUPER_OFFSET / block_size, PURPOSE_SUPER, &buffer);
    if (error)
        return error;
    memcpy(&ext->super, (char *)buffer_data(buffer) + EXT_SUPER_OFFSET % block_size,
           sizeof(ext->super));
    buffer_put(buffer);
    error = examine_super(ext);
    if (!error && ext->geometry.block_size != block_size)
        error = ext_corrupt(ext, "super block: its block size was another before the journal was "
                                 "replayed");
    return error ? error : ext_groups_load(ext, group_wrong, ext);
}

/* The volume as it is once its journal has been replayed. */
static int recover(struct ext *ext) {
    bool replayed;
    int error = ext_groups_load(ext, group_wrong, ext);
    if (!error)
        error = ext_journal_recover(ext, &replayed);
    if (!error && replayed)
        error = examine_again(ext);
    return error;
}

static int begin_use(struct ext *ext) {
    int error = mark_in_use(ext);
    if (!error)
        error = ext_journal_start(ext);
    if (!error)
        error = ext_orphans_clean(ext);
    return error;
}

/* What the super block says of the volume as a whole. */
static void apply_super(struct ext *ext, const struct options *options) {
    ext->reserved_blocks =
        ext_blocks_load(&ext->super, ext->super.s_r_blocks_count, ext->super.s_r_blocks_count_hi);
    ext->reserved_uid = le16_load(ext->super.s_def_resuid);
    ext->reserved_gid = le16_load(ext->super.s_def_resgid);
    ext->overhead_blocks = ext_geometry_overhead(&ext->geometry) + ext->journal_blocks;
    ext->mount_state = le16_load(ext->super.s_state);
    memcpy(&ext->generation, ext->super.s_uuid, sizeof(ext->generation));
    ext->generation += (uint32_t)le16_load(ext->super.s_mnt_count) << 16;
    set_hash(ext);
    set_strategies(ext, options);
    set_limits(ext, &ext->volume->limits);
    ext->volume->root_ino = EXT_ROOT_INO;
}

static int take_up(struct volume *volume, struct ext *ext, const struct options *options) {
    int error = buffer_cache_create(volume->device, &volume->pool, volume->clock,
                                    ext->geometry.block_size, &volume->buffers);
    if (error)
        return error;
    ext->buffers = volume->buffers;
    TAILQ_INIT(&ext->orphans);
    ext_holds_init(&ext->holds);
    TAILQ_INIT(&ext->writers);
    apply_super(ext, options);
    error = set_journal(ext, options);
    if (!error)
        error = recover(ext);
    if (error)
        return error;
    apply_super(ext, options);
    warn_if_unclean(ext);
    buffer_cache_on_failure(ext->buffers, ext_io_failed, ext);
    if (volume->read_only)
        return 0;
    error = ext->block_placement == EXT_ALLOC_MBALLOC ? ext_mballoc_open(ext) : 0;
    return error ? error : begin_use(ext);
}

int ext_mount(struct volume *volume, const struct options *options) {
    struct ext *ext = calloc(1, sizeof(*ext));
    if (!ext)
        return -ENOMEM;
    ext->volume = volume;
    volume->layout_data = ext;
    int error = ext_super_read(volume->device, volume->log, &ext->super);
    if (!error)
        error = examine_super(ext);
    if (!error)
        error = take_up(volume, ext, options);
    if (error) {
        (void)ext_journal_stop(ext); /* what has gone wrong already is what counts */
        ext_release(volume);
    }
    return error;
}

int ext_unmount(struct volume *volume) {
    struct ext *ext = ext_of(volume);
    int error = ext_journal_stop(ext);
    if (!error && !volume->read_only && !volume->shut_down) {
        if (le32_load(ext->super.s_rev_level) > 0)
            set_recovery(ext, false);
        /* Everything else is on the disk before the state says that it is. */
        error = write_everything(ext);
        uint16_t state = le16_load(ext->super.s_state);
        le16_store(&ext->super.s_state, state | (ext->mount_state & EXT_STATE_VALID));
        ext->super_dirty = true;
        if (!error && !(state & EXT_STATE_ERROR))
            error = write_everything(ext);
    }
    ext_release(volume);
    return error;
}

/* --- editing ---------------------------------------------------------------------------------- */

static int edit_open(struct ext *ext) {
    struct volume *volume = ext->volume;
    int error = ext_super_read(volume->device, volume->log, &ext->super);
    if (!error)
        error = examine_super(ext);
    if (!error && ext->geometry.incompat & EXT_INCOMPAT_RECOVER) {
        log_error(volume->log, "%s: its journal is to be replayed first; mount it once",
                  volume->name);
        error = -EBUSY;
    }
    if (!error)
        error = buffer_cache_create(volume->device, &volume->pool, volume->clock,
                                    ext->geometry.block_size, &volume->buffers);
    if (error)
        return error;
    ext->buffers = volume->buffers;
    ext->errors = EXT_ERRORS_CONTINUE;
    set_limits(ext, &volume->limits);
    return ext_groups_load(ext, group_wrong, ext);
}

int ext_edit(struct device *device, const struct log *log,
             int (*edit)(struct ext *ext, const void *context), const void *context) {
    struct volume *volume = calloc(1, sizeof(*volume));
    struct ext *ext = calloc(1, sizeof(*ext));
    int error = volume && ext ? volume_init_bare(volume, device, log, UINT64_C(64) << 20) : -ENOMEM;
    if (error) {
        free(volume);
        free(ext);
        return error;
    }
    volume->layout_data = ext;
    ext->volume = volume;
    TAILQ_INIT(&ext->orphans);
    ext_holds_init(&ext->holds);
    TAILQ_INIT(&ext->writers);
    error = edit_open(ext);
    if (!error)
        error = edit(ext, context);
    if (!error)
        error = write_everything(ext);
    ext_release(volume);
    volume_destroy_bare(volume);
    free(volume);
    return error;
}

/* With extents, Linux keeps a fiftieth of the volume, 4096 blocks at most, for maps that grow when
 * data are stored; df leaves them out. */
static uint64_t map_blocks_kept(const struct ext_geometry *geometry) {
    uint64_t blocks = geometry->blocks_count / 50;
    if (!(geometry->incompat & EXT_INCOMPAT_EXTENTS))
        return 0;
    return blocks < MAP_BLOCKS_KEPT ? blocks : MAP_BLOCKS_KEPT;
}

int ext_statfs(struct volume *volume, struct volume_usage *usage) {
    const struct ext *ext = ext_of(volume);
    *usage = (struct volume_usage){
        .block_size = ext->geometry.block_size,
        .blocks = ext->geometry.blocks_count - ext->overhead_blocks,
        .free =
            ext->free_blocks > ext->promised_blocks ? ext->free_blocks - ext->promised_blocks : 0,
        .inodes = ext->geometry.inodes_count,
        .inodes_free = ext->free_inodes,
        .name_max = NAME_LENGTH_MAX,
    };
    uint64_t kept = ext->reserved_blocks + map_blocks_kept(&ext->geometry);
    if (usage->free > kept)
        usage->available = usage->free - kept;
    memcpy(usage->uuid, ext->super.s_uuid, sizeof(usage->uuid));
    memcpy(usage->label, ext->super.s_volume_name, sizeof(ext->super.s_volume_name));
    return 0;
}

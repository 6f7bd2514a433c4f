/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the top. The volume is taken up and given back. Interface:
 * layouts/reiser4/layout.h.
 *
 * Invariants:
 *  1. A read-only mount changes no byte of the device: what a replay would write is read from the
 * log.
 *  2. Nothing but sizes is believed of the super block before the journal has been looked at; where
 *     the footer has counters, these count.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/layout.h"
#include "layouts/reiser4/safelink.h"

/* The most names of an object: nlink has 32 bits, st_nlink as many. */
#define LINK_MAX_REISER4 (UINT32_MAX - 1)

/* --- what the volume is told, and says -------------------------------------------------------- */

static void io_failed(void *context, const struct buffer_failure *failure) {
    const struct reiser4 *r4 = context;
    const char *what = failure->operation == DEVICE_WRITE ? "written" : "read";

    log_error(r4->volume->log, "%s: reiser4: %s block %" PRIu64 " (%u in a row) cannot be %s: %s",
              r4->volume->name, purpose_name(failure->purpose), failure->block, failure->count,
              what, strerror(-failure->error));
}

static void set_limits(const struct reiser4 *r4, struct layout_limits *limits) {
    /* Whole pages; keys go to 2^64 - 1. */
    limits->file_size_max = INT64_MAX & ~(uint64_t)(PAGE_SIZE_BYTES - 1);
    limits->link_max = LINK_MAX_REISER4;
    limits->subdir_max = LINK_MAX_REISER4;
    limits->symlink_max = REISER4_SYMLINK_MAX;
    limits->time_granularity_ns = 1;
    limits->commit_interval_ns = r4->options.max_age_ns;
    limits->time_min = (struct timestamp){0, 0};
    limits->time_max = (struct timestamp){UINT32_MAX, (uint32_t)NS_PER_SEC - 1};
}

static int tell_status(struct reiser4 *r4) {
    struct volume *volume = r4->volume;
    bool known;
    int error = reiser4_status_read(volume->device, &r4->status, &known);

    if (error)
        return error;
    if (!known)
        log_warning(volume->log, "%s: reiser4: block %d is no status block", volume->name,
                    REISER4_STATUS);
    else if (r4->status != REISER4_STATUS_OK)
        log_warning(volume->log,
                    "%s: reiser4: its status block says that it is damaged (%" PRIu64
                    "); see 'layoutfs check'",
                    volume->name, r4->status);
    if (r4->status > REISER4_STATUS_CORRUPTED)
        volume->read_only = true;
    if (r4->super.version > REISER4_VERSION)
        log_warning(volume->log,
                    "%s: reiser4: its format has minor version %" PRIu32
                    ", %u is known here: what is newer is not seen",
                    volume->name, r4->super.version, REISER4_VERSION);
    return 0;
}

/* --- mount ------------------------------------------------------------------------------------ */

/* Super block and journal, in this order and again. */
static int read_supers(struct reiser4 *r4) {
    struct volume *volume = r4->volume;
    int error = reiser4_super_read(volume->device, REISER4_SUPER, &r4->super);

    if (error == -ENODEV)
        log_error(volume->log, "%s: reiser4: block %d is no master super block", volume->name,
                  REISER4_MASTER);
    if (!error)
        error = tell_status(r4);
    if (!error && r4->options.fault != REISER4_FAULT_NO_REPLAY)
        error = reiser4_journal_open(volume, r4->super.blocks, &r4->journal);
    if (error)
        return error;
    if (r4->journal.replayed > 0)
        error = reiser4_super_read(
            volume->device, reiser4_overlay_at(&r4->journal.overlay, REISER4_SUPER), &r4->super);
    r4->counters = r4->journal.counters_known ? r4->journal.counters : r4->super.counters;
    return error;
}

/* The values that hold for all objects, but where these have their own. */
static int read_defaults(struct reiser4 *r4) {
    static const struct reiser4_plugins bare = {
        .id = {[REISER4_PLUGIN_FORMATTING] = REISER4_FORMATTING_SMART,
               [REISER4_PLUGIN_HASH] = REISER4_HASH_R5,
               [REISER4_PLUGIN_FIBRATION] = REISER4_FIBRE_EXT_1,
               [REISER4_PLUGIN_DIR_ITEM] = REISER4_ITEM_ENTRIES}};
    const struct reiser4_object root = REISER4_ROOT_OBJECT;
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_stat stat;
    int error = reiser4_stat_read(r4, &root, body, &stat);

    if (error == -ENOENT)
        return reiser4_corrupt(r4->volume, "there is no root directory");
    if (!error)
        reiser4_plugins_of(&bare, &stat.plugins, stat.mode, &r4->plugins);
    return error ? error : reiser4_objects_note(&r4->objects, &root);
}

static int open_tree(struct reiser4 *r4) {
    struct volume *volume = r4->volume;
    int error = buffer_cache_create(volume->device, &volume->pool, volume->clock,
                                    REISER4_BLOCK_SIZE, &volume->buffers);

    if (error)
        return error;
    r4->buffers = volume->buffers;
    buffer_cache_on_failure(r4->buffers, io_failed, r4);
    r4->jnodes = (struct reiser4_jnodes){.volume = volume,
                                         .buffers = volume->buffers,
                                         .format = r4->super.node_format,
                                         .overlay = &r4->journal.overlay,
                                         .blocks = r4->super.blocks,
                                         .mkfs_id = r4->super.mkfs_id,
                                         .context = r4};
    reiser4_atom_init(r4);
    r4->tree = (struct reiser4_tree){&r4->jnodes, r4->super.root, r4->super.height};
    error = reiser4_jnodes_init(&r4->jnodes);
    if (!error)
        error = reiser4_space_open(r4);
    return error ? error : read_defaults(r4);
}

/* What a crash has left half done. */
static int clean_up(struct reiser4 *r4) {
    int error = reiser4_safelinks_process(r4);

    if (!error)
        error = reiser4_commit_now(r4);
    if (error && error != -EUCLEAN) /* which has been told */
        log_error(r4->volume->log,
                  "%s: reiser4: what a crash has left half done cannot be finished: %s; mount it "
                  "read-only, or see 'layoutfs check'",
                  r4->volume->name, strerror(-error));
    return error;
}

static int take_up(struct reiser4 *r4, const struct options *options) {
    struct volume *volume = r4->volume;

    reiser4_options_take(options, &r4->options);
    reiser4_objects_init(&r4->objects);
    pthread_mutex_init(&r4->places_mutex, NULL);
    int error = read_supers(r4);
    if (!error)
        error = open_tree(r4);
    if (error)
        return error;
    volume->root_ino = REISER4_ROOT_OID;
    volume->store_changes = true;
    set_limits(r4, &volume->limits);
    return volume->read_only ? 0 : clean_up(r4);
}

static void release(struct volume *volume) {
    struct reiser4 *r4 = reiser4_of(volume);

    reiser4_atom_destroy(r4);
    reiser4_jnodes_destroy(&r4->jnodes);
    reiser4_space_close(r4);
    reiser4_objects_destroy(&r4->objects);
    pthread_mutex_destroy(&r4->places_mutex);
    reiser4_journal_close(&r4->journal);
    free(r4);
    volume->layout_data = NULL;
}

int reiser4_mount(struct volume *volume, const struct options *options) {
    struct reiser4 *r4 = calloc(1, sizeof(*r4));

    if (!r4)
        return -ENOMEM;
    r4->volume = volume;
    volume->layout_data = r4;
    int error = take_up(r4, options);
    if (error)
        release(volume);
    return error;
}

int reiser4_unmount(struct volume *volume) {
    release(volume);
    return 0;
}

/* --- statfs ----------------------------------------------------------------------------------- */

/* As the driver: what only commits may use does not count. */
int reiser4_statfs(struct volume *volume, struct volume_usage *usage) {
    const struct reiser4 *r4 = reiser4_of(volume);
    uint64_t reserve = REISER4_SPACE_RESERVE(r4->super.blocks);

    *usage = (struct volume_usage){.block_size = REISER4_BLOCK_SIZE,
                                   .blocks = r4->super.blocks - reserve,
                                   .name_max = NAME_LENGTH_MAX};
    reiser4_space_usage(r4, &usage->available);
    usage->free = usage->available;
    memcpy(usage->uuid, r4->super.master.uuid, sizeof(usage->uuid));
    memcpy(usage->label, r4->super.master.label, sizeof(r4->super.master.label));
    return 0;
}

/* --- probe ------------------------------------------------------------------------------------ */

int reiser4_probe(struct device *device, struct probe_result *result) {
    struct reiser4_disk_master master;
    int error = reiser4_master_read(device, &master);

    *result = (struct probe_result){0};
    if (error)
        return error == -ENODEV ? 0 : error;
    result->type = "reiser4";
    result->confidence = 100;
    snprintf(result->description, sizeof(result->description), "reiser4, %u-byte blocks%s%.16s%s",
             le16_load(master.block_size), *master.label ? ", label \"" : "", master.label,
             *master.label ? "\"" : "");
    return 0;
}

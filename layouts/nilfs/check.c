/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/layout.h; how it is done: layouts/nilfs/check.h.
 *
 * A checkpoint is consistent or it is damage, and there is nothing in it to be mended from. All
 * that a crash leaves behind are files that had lost their last name, but not been closed. These
 * are freed, by taking the volume up for writing.
 */
#include "layouts/nilfs/check.h"
#include "layouts/nilfs/recovery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/checkpoint.h"

#define CHECK_CACHE_BYTES (32u << 20)

/* --- findings --------------------------------------------------------------------------------- */

static void emit_wrong(struct nilfs_check *check, const char *text) {
    check->report->wrong++;
    if (check->report->finding)
        check->report->finding(check->report->context, CHECK_WRONG, text);
}

static void emit_note(const struct nilfs_check *check, const char *text) {
    if (check->report->finding)
        check->report->finding(check->report->context, CHECK_NOTE, text);
}

void nilfs_check_wrong(struct nilfs_check *check, const char *format, ...) {
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emit_wrong(check, text);
}

void nilfs_check_note(struct nilfs_check *check, const char *format, ...) {
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emit_note(check, text);
}

/* What would have been logged at mount, or later, is a finding here. */
static void log_to_finding(void *context, enum log_level level, const char *text) {
    struct nilfs_check *check = context;

    if (level == LOG_LEVEL_ERROR)
        emit_wrong(check, text);
    else
        emit_note(check, text);
}

/* --- tables ----------------------------------------------------------------------------------- */

int nilfs_check_grow(void **array, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return 0;
    size_t wanted = *room ? *room * 2 : 64;
    void *larger = reallocarray(*array, wanted, element);
    if (!larger)
        return -ENOMEM;
    *array = larger;
    *room = wanted;
    return 0;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* A log does not tell level and key of a node but in the DAT, nor the checkpoint for sure. */
uint32_t nilfs_check_identity(const struct nilfs_log_item *item) {
    bool dat = item->ino == NILFS_DAT_INO, data = item->level == 0;
    uint64_t hash = mix(item->ino, dat || data ? item->level : 1);

    hash = mix(hash, dat || data ? item->offset : 0);
    hash = mix(hash, dat ? 0 : item->vblock);
    return (uint32_t)(hash >> 32) | 1;
}

int nilfs_check_hold(struct nilfs_check *check, const struct nilfs_log_item *item, uint64_t block) {
    const struct nilfs_geometry *g = &check->nilfs->geometry;
    uint64_t segment = nilfs_segment_of(g, block);
    uint32_t **blocks = &check->held[segment], identity = nilfs_check_identity(item);

    if (!*blocks)
        *blocks = calloc(g->segment_blocks, sizeof(**blocks));
    if (!*blocks)
        return -ENOMEM;
    uint32_t *holder = &(*blocks)[block % g->segment_blocks];
    if (*holder && *holder != identity)
        nilfs_check_wrong(check,
                          "inode %" PRIu64 ", %s %" PRIu64 ": its disk block, %" PRIu64
                          ", holds something else, too",
                          item->ino, item->level ? "a node at" : "block", item->offset, block);
    *holder = identity;
    return 0;
}

/* --- the volume ------------------------------------------------------------------------------- */

/* As mount does; what is only in data-only logs is not looked at: no structure has it yet. */
static int take_up(struct nilfs_check *check, bool read_only) {
    struct options options;
    int error = options_init(&options, nilfs_option_table, OPTION_MOUNT, check->volume.log);

    check->volume.read_only = read_only;
    if (!error)
        error = options_parse(&options, read_only ? "norecovery" : NULL);
    if (!error)
        error = nilfs_mount(&check->volume, &options);
    options_free(&options);
    if (error)
        return error;
    check->nilfs = nilfs_of(&check->volume);
    check->nilfs->options.errors = NILFS_ERRORS_CONTINUE;
    return 0;
}

static int give_back(struct nilfs_check *check) {
    if (!check->nilfs)
        return 0;
    nilfs_check_map_end(check);
    int error = nilfs_unmount(&check->volume);
    check->nilfs = NULL;
    buffer_cache_destroy(check->volume.buffers);
    check->volume.buffers = NULL;
    return error;
}

static void check_supers(struct nilfs_check *check) {
    const struct nilfs_supers *supers = &check->nilfs->supers;
    uint16_t state = le16_load(supers->copy[0].s_state);

    for (unsigned i = 0; i < 2; i++)
        if (!supers->present[i])
            nilfs_check_wrong(check,
                              "super block at byte %" PRIu64
                              ": its magic or checksum is wrong; the next mount for writing "
                              "replaces it",
                              supers->offset[i]);
    if (state & NILFS_STATE_ERROR)
        nilfs_check_note(check, "super block: damage was found while the volume was mounted");
    else if (!(state & NILFS_STATE_CLEAN))
        nilfs_check_note(check, "super block: the volume was not unmounted");
}

/* A metadata file of the newest state. mkfs may have counted its first blocks in other units. */
static int check_metadata(struct nilfs_check *check, struct nilfs_file *file, const char *name) {
    uint64_t blocks;
    int error = nilfs_check_map(check, file, 0, &blocks);

    if (!error && file->sectors > blocks * check->nilfs->geometry.sectors_per_block)
        nilfs_check_wrong(check, "%s: i_blocks is %" PRIu64 ", expected at most %" PRIu64, name,
                          file->sectors, blocks * check->nilfs->geometry.sectors_per_block);
    return nilfs_check_go_on(error);
}

static int check_snapshots(struct nilfs_check *check) {
    struct nilfs_checkpoint snapshot = {.cno = 0};
    int error = 0;

    while (!error) {
        error = nilfs_cpfile_next(check->nilfs, snapshot.cno + 1, true, &snapshot);
        if (!error)
            error = nilfs_check_go_on(nilfs_check_tree(check, snapshot.cno));
    }
    return error == -ENOENT ? 0 : nilfs_check_go_on(error);
}

/* The DAT's entries without an end are what the newest state points at. */
static int check_alive(struct nilfs_check *check) {
    uint64_t wrong = check->report->wrong, entries;
    int error = nilfs_check_entries(check, check->nilfs->dat, "DAT", &entries);

    if (!error && check->report->wrong == wrong && entries != check->alive)
        nilfs_check_note(check,
                         "DAT: %" PRIu64 " virtual blocks are alive, but files have %" PRIu64,
                         entries, check->alive);
    return nilfs_check_go_on(error);
}

static int check_volume(struct nilfs_check *check) {
    struct nilfs *nilfs = check->nilfs;

    check->held = calloc(nilfs->geometry.segments, sizeof(*check->held));
    if (!check->held)
        return -ENOMEM;
    check_supers(check);
    int error = check_metadata(check, nilfs->dat, "DAT");
    if (!error)
        error = check_metadata(check, nilfs->cpfile, "cpfile");
    if (!error)
        error = check_metadata(check, nilfs->sufile, "sufile");
    if (!error)
        error = nilfs_check_checkpoints(check);
    if (!error)
        error = nilfs_check_go_on(nilfs_check_tree(check, 0));
    if (!error)
        error = check_alive(check);
    if (!error)
        error = check_snapshots(check);
    return error ? error : nilfs_check_segments(check);
}

/* --- mending ---------------------------------------------------------------------------------- */

static int free_leftovers(struct nilfs_check *check) {
    int error = give_back(check);

    if (!error)
        error = take_up(check, false);
    for (size_t i = 0; i < check->leftover_count && !error; i++)
        error = nilfs_leftover_free(check->nilfs, check->leftovers[i]);
    if (!error)
        error = nilfs_checkpoint_now(check->nilfs);
    if (!error)
        nilfs_check_note(check, "%zu files without a name were freed", check->leftover_count);
    return error;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int check_close(struct nilfs_check *check, uint64_t segments, int error) {
    int closed = give_back(check);

    for (uint64_t i = 0; check->held && i < segments; i++)
        free(check->held[i]);
    free(check->held);
    free(check->leftovers);
    volume_destroy_bare(&check->volume);
    free(check);
    return error ? error : closed;
}

int nilfs_check(struct device *device, const struct log *log, struct check_report *report) {
    struct nilfs_check *check = calloc(1, sizeof(*check));
    uint64_t segments = 0;

    if (!check)
        return -ENOMEM;
    const struct log findings = {log_to_finding, check, log ? log->threshold : LOG_LEVEL_WARNING};
    check->report = report;
    int error = volume_init_bare(&check->volume, device, &findings, CHECK_CACHE_BYTES);
    if (error) {
        free(check);
        return error;
    }
    error = take_up(check, true);
    if (!error) {
        segments = check->nilfs->geometry.segments;
        error = check_volume(check);
    }
    if (!error && report->repair && report->wrong == 0 && check->leftover_count > 0)
        error = free_leftovers(check);
    error = check_close(check, segments, error);
    /* Damage that ended the examination has been reported as a finding. */
    return report->wrong > 0 && (error == -EUCLEAN || error == -ENOTSUP) ? 0 : error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the centre. What all files of the folder ask of the mounted volume.
 * Interface: layouts/nilfs/nilfs.h.
 */
#include "layouts/nilfs/nilfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/file.h"
#include "layouts/nilfs/super.h"

#define RESERVED_SEGMENTS_MIN UINT64_C(8)

void nilfs_volume_init(struct nilfs *nilfs) {
    nilfs->block_memory.size = nilfs->geometry.block_size;
    nilfs->block_records.size = sizeof(struct nilfs_block);
    slab_init(&nilfs->files_memory, sizeof(struct nilfs_file));
    slab_init(&nilfs->changes_memory, sizeof(struct nilfs_changes));
    TAILQ_INIT(&nilfs->dirty_files);
    TAILQ_INIT(&nilfs->idle_changes);
    TAILQ_INIT(&nilfs->pending_files);
    pthread_mutex_init(&nilfs->files_mutex, NULL);
    pthread_mutex_init(&nilfs->index_mutex, NULL);
}

void nilfs_volume_destroy(struct nilfs *nilfs) {
    free(nilfs->freed);
    recycle_drain(&nilfs->block_memory);
    recycle_drain(&nilfs->block_records);
    recycle_drain(&nilfs->node_marks);
    slab_drain(&nilfs->files_memory);
    slab_drain(&nilfs->changes_memory);
    pthread_mutex_destroy(&nilfs->files_mutex);
    pthread_mutex_destroy(&nilfs->index_mutex);
}

uint64_t nilfs_reserved_segments(const struct nilfs_geometry *g) {
    uint64_t part = g->segments / 100 * g->reserved_percent +
                    (g->segments % 100 * g->reserved_percent + 99) / 100;

    return part > RESERVED_SEGMENTS_MIN ? part : RESERVED_SEGMENTS_MIN;
}

/* Under the shared lock, too: the super blocks are left to unmount, which sees that the volume has
 * failed. */
int nilfs_corrupt(const struct nilfs *nilfs, const char *format, ...) {
    struct volume *volume = nilfs->volume;
    char sentence[512];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    log_error(volume->log, "%s: nilfs: %s", volume->name, sentence);
    if (!volume->read_only && nilfs->options.errors == NILFS_ERRORS_RO)
        volume_fail(volume, false);
    return -EUCLEAN;
}

int nilfs_fail(struct nilfs *nilfs, int error) {
    struct volume *volume = nilfs->volume;

    if (nilfs->failed || error == 0)
        return error;
    nilfs->failed = true;
    log_error(volume->log,
              "%s: nilfs: a change was cut short: %s; nothing more is written, and the volume will "
              "be as it was at checkpoint %" PRIu64,
              volume->name, strerror(-error), nilfs->newest);
    /* What has failed already is what counts. While a commit writes super blocks, these are left to
     * unmount. */
    if (nilfs->supers.mounted && !volume->shut_down && !nilfs_commit_busy(nilfs))
        (void)nilfs_super_note_error(nilfs);
    volume_fail(volume, false);
    return error;
}

int64_t nilfs_now(const struct nilfs *nilfs) {
    return clock_calendar(nilfs->volume->clock).seconds;
}

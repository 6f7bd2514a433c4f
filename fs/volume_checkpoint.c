/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the volume's checkpoints, and cleaning. Interface: fs/volume.h.
 */
#include <errno.h>

#include "fs/volume_internal.h"

int64_t volume_checkpoint_list(struct volume *volume, uint64_t from, struct checkpoint *list,
                               size_t room) {
    if (!volume->layout->checkpoint_list)
        return -ENOTSUP;
    pthread_rwlock_rdlock(&volume->lock);
    int64_t count = volume->layout->checkpoint_list(volume, from, list, room);
    pthread_rwlock_unlock(&volume->lock);
    return count;
}

/* What was kept or deleted is itself a change, which the next checkpoint makes durable. */
static int keep_and_sync(struct volume *volume, uint64_t *number, bool keep) {
    int error = volume_change_begin(volume);

    if (error)
        return error;
    error = volume_change_end(volume, volume->layout->checkpoint_keep(volume, number, keep));
    return error ? error : volume_sync(volume);
}

int volume_checkpoint_create(struct volume *volume, uint64_t *number) {
    if (!volume->layout->checkpoint_keep)
        return -ENOTSUP;
    int error = volume_sync(volume);

    *number = 0;
    return error ? error : keep_and_sync(volume, number, true);
}

int volume_checkpoint_keep(struct volume *volume, uint64_t number, bool keep) {
    if (!volume->layout->checkpoint_keep)
        return -ENOTSUP;
    return number == 0 ? -ENOENT : keep_and_sync(volume, &number, keep);
}

int volume_checkpoint_delete(struct volume *volume, uint64_t number) {
    if (!volume->layout->checkpoint_delete)
        return -ENOTSUP;
    int error = volume_change_begin(volume);

    if (error)
        return error;
    error = volume_change_end(volume, volume->layout->checkpoint_delete(volume, number));
    return error ? error : volume_sync(volume);
}

int volume_clean(struct volume *volume, struct clean_report *report) {
    *report = (struct clean_report){0};
    if (!volume->layout->clean)
        return -ENOTSUP;
    int error = volume_sync(volume);
    if (!error)
        error = volume_change_begin(volume);
    if (error)
        return error;
    error = volume_change_end(volume, volume->layout->clean(volume, report));
    return error ? error : volume_sync(volume);
}

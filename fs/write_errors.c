/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/write_errors.h.
 */
#include "fs/write_errors.h"

#include <stdlib.h>

struct write_error {
    uint64_t ino;
    int error;
};

void write_errors_free(struct write_errors *errors) {
    free(errors->files);
    *errors = (struct write_errors){0};
}

/* There are none as long as disks are well, and few later: a list will do. */
static struct write_error *find(const struct write_errors *errors, uint64_t ino) {
    for (size_t i = 0; i < errors->count; i++)
        if (errors->files[i].ino == ino)
            return &errors->files[i];
    return NULL;
}

static struct write_error *add(struct write_errors *errors) {
    if (errors->count == errors->room) {
        size_t room = errors->room ? errors->room * 2 : 8;
        struct write_error *files = reallocarray(errors->files, room, sizeof(*files));

        if (!files)
            return NULL;
        errors->files = files;
        errors->room = room;
    }
    return &errors->files[errors->count++];
}

void write_errors_note(struct write_errors *errors, uint64_t ino, int error) {
    struct write_error *file;

    if (!errors->volume)
        errors->volume = error;
    if (ino && find(errors, ino))
        return;
    file = ino ? add(errors) : NULL;
    if (file)
        *file = (struct write_error){ino, error};
    else if (!errors->unknown)
        errors->unknown = error;
}

int write_errors_peek(const struct write_errors *errors, uint64_t ino) {
    const struct write_error *file = find(errors, ino);

    return file ? file->error : errors->unknown;
}

int write_errors_take(struct write_errors *errors, uint64_t ino) {
    struct write_error *file = find(errors, ino);
    int error = write_errors_peek(errors, ino);

    if (file)
        *file = errors->files[--errors->count];
    errors->unknown = 0;
    return error;
}

int write_errors_take_volume(struct write_errors *errors) {
    int error = errors->volume;

    errors->volume = errors->unknown = 0;
    return error;
}

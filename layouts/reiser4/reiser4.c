/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the centre. What all files of the folder ask of the mounted volume.
 * Interface: layouts/reiser4/reiser4.h.
 */
#include "layouts/reiser4/reiser4.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Under the shared lock, too, and before the volume is taken up. */
int reiser4_corrupt(const struct volume *volume, const char *format, ...) {
    const struct reiser4 *r4 = reiser4_of(volume);
    char sentence[512];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    log_error(volume->log, "%s: reiser4: %s", volume->name, sentence);
    if (r4 && r4->volume && !volume->read_only && r4->options.errors == REISER4_ERRORS_RO)
        volume_fail(r4->volume, false);
    return -EUCLEAN;
}

int reiser4_fail(struct reiser4 *r4, int error) {
    struct volume *volume = r4->volume;

    if (r4->failed || error == 0)
        return error;
    r4->failed = true;
    log_error(
        volume->log,
        "%s: reiser4: a change was cut short: %s; nothing more is written, and the volume will "
        "be as the last commit left it",
        volume->name, strerror(-error));
    volume_fail(volume, false);
    return error;
}

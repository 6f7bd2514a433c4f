/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/volume_uuid.h.
 */
#include "fs/volume_uuid.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <uuid/uuid.h>

int volume_uuid_choose(const char *text, const struct clock *clock, uint8_t uuid[16],
                       bool *random) {
    *random = false;
    if (text && strcasecmp(text, "clear") == 0) {
        uuid_clear(uuid);
        return 0;
    }
    if (text && strcasecmp(text, "random") != 0)
        return uuid_parse(text, uuid) == 0 ? 0 : -EINVAL;
    *random = !clock_is_virtual(clock);
    if (*random)
        uuid_generate(uuid);
    else
        memset(uuid, 0x11, 16);
    return 0;
}

void volume_uuid_bytes(const struct clock *clock, const uint8_t uuid[16], uint8_t bytes[16]) {
    if (clock_is_virtual(clock))
        memcpy(bytes, uuid, 16);
    else
        uuid_generate(bytes);
}

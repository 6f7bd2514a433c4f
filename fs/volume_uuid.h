/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over libuuid. The UUID of a new volume.
 */
#ifndef LAYOUTFS_VOLUME_UUID_H
#define LAYOUTFS_VOLUME_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/clock.h"

#define VOLUME_UUID_EXPECTED "uuid: expected 8-4-4-4-12 hexadecimal digits, random or clear"

/* By mkfs's option (NULL, as "random": none is given). Under a virtual clock, where nothing may be
 * random, always the same. -EINVAL: `text` is none (VOLUME_UUID_EXPECTED). *random: it is random,
 * and other random numbers of the volume may be, too. */
int volume_uuid_choose(const char *text, const struct clock *clock, uint8_t uuid[16], bool *random);
/* Sixteen more random bytes; under a virtual clock those of the UUID. */
void volume_uuid_bytes(const struct clock *clock, const uint8_t uuid[16], uint8_t bytes[16]);

#endif

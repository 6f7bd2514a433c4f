/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to fs/device/ssd.c: what a flash disk's firmware keeps account of. No
 * time passes here.
 *
 * Flash is programmed a page at a time, each once and in order within its block, and erased a block
 * at a time. So the firmware keeps a map from each unit of the disk (FLASH_UNIT bytes) to where its
 * data lie, writes always somewhere new, and cleans: it moves what is still valid in a block
 * elsewhere and erases it. The block with the least valid data goes first (greedy).
 *
 * A place is a number: ((die * blocks + block) * pages + page) * units + slot.
 */
#ifndef LAYOUTFS_FLASH_H
#define LAYOUTFS_FLASH_H

#include <stdbool.h>
#include <stdint.h>

#define FLASH_UNIT           4096u
#define FLASH_NONE           UINT32_MAX
#define FLASH_PAGE_UNITS_MAX 64u

struct flash_shape {
    uint32_t dies;
    uint32_t blocks; /* of a die */
    uint32_t pages;  /* of a block */
    uint32_t units;  /* of a page */
};

/* What cleaning has taken: pages read, pages programmed, blocks erased. */
struct flash_work {
    uint32_t reads, programs, erases;
};

struct flash;

/* `units` is the disk's size, of which the first `occupied` (rounded down to whole blocks of all
 * dies) hold data already. 0, -ENOMEM, or -EINVAL: the flash has too little room to spare. */
int flash_open(const struct flash_shape *shape, uint64_t units, uint64_t occupied,
               struct flash **flash);
void flash_close(struct flash *flash);

/* The place of a unit's data, or FLASH_NONE. */
uint32_t flash_find(const struct flash *flash, uint32_t unit);
/* Whether the die may take another page: if not, another one may. */
bool flash_has_room(const struct flash *flash, uint32_t die);
/* Programs a page of a die that has room with the new data of 1 to shape->units units, and cleans
 * there as far as is needed to go on; adds that to *work. The page's first place. */
uint32_t flash_program(struct flash *flash, uint32_t die, const uint32_t *units, uint32_t count,
                       struct flash_work *work);
/* One step of cleaning beforehand, on a die that nobody needs; false: there is enough room. */
bool flash_clean(struct flash *flash, uint32_t die, struct flash_work *work);
/* How many dies would have something to do in flash_clean. */
uint32_t flash_wanting(const struct flash *flash);
/* The unit's data are not needed any more. */
void flash_forget(struct flash *flash, uint32_t unit);

#endif

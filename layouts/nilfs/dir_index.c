/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/layout.h.
 */
#include "layouts/nilfs/layout.h"

#include <stdlib.h>

void nilfs_dir_index_free(struct nilfs_dir_index *index) {
    free(index);
}

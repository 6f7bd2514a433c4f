/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/bmap.h.
 */
#include "layouts/nilfs/bmap.h"

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/crc.h.
 */
#include "layouts/nilfs/crc.h"

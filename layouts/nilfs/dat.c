/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/dat.h.
 */
#include "layouts/nilfs/dat.h"

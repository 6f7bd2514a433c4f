/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/super.h.
 */
#include "layouts/nilfs/super.h"

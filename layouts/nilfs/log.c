/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/log.h.
 */
#include "layouts/nilfs/log.h"

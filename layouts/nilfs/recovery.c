/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/recovery.h.
 */
#include "layouts/nilfs/recovery.h"

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/log_read.h.
 */
#include "layouts/nilfs/log_read.h"

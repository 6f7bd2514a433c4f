/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/checkpoint.h.
 */
#include "layouts/nilfs/checkpoint.h"

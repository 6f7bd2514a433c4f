/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/palloc.h.
 */
#include "layouts/nilfs/palloc.h"

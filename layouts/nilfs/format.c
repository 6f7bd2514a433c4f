/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/layout.h.
 */
#include "layouts/nilfs/layout.h"

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/file.h.
 */
#include "layouts/nilfs/file.h"

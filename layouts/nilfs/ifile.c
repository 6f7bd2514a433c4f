/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/ifile.h.
 */
#include "layouts/nilfs/ifile.h"

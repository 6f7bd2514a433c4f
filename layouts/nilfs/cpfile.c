/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/cpfile.h.
 */
#include "layouts/nilfs/cpfile.h"

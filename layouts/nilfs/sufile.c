/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/sufile.h.
 */
#include "layouts/nilfs/sufile.h"

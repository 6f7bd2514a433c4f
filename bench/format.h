/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Making a row's volume; shared by the two ways to run it.
 */
#ifndef LAYOUTFS_BENCH_FORMAT_H
#define LAYOUTFS_BENCH_FORMAT_H

#include "bench/scenario.h"

/* Formats the device as the row's type with its mkfs options, and flushes it. */
int format_row(const struct scenario_row *row, struct device *device, const struct log *log);

#endif

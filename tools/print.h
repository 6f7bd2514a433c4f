/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. Text for people: any JSON object as aligned lines and tables, modes and times.
 */
#ifndef LAYOUTFS_TOOLS_PRINT_H
#define LAYOUTFS_TOOLS_PRINT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/clock.h"

/* The object as text: "key  value" lines in the object's order, objects indented below their key,
 * arrays of objects as tables. */
void print_object(FILE *file, json_t *object);
/* The object as JSON and a newline. */
void print_json(FILE *file, json_t *object);

/* "drwxr-xr-x". */
#define MODE_TEXT_SIZE 11
void mode_text(uint32_t mode, char text[MODE_TEXT_SIZE]);
/* "2002-11-05 00:00:00.000000000", in UTC. */
#define TIME_TEXT_SIZE 64
void time_text(struct timestamp time, char text[TIME_TEXT_SIZE]);

#endif

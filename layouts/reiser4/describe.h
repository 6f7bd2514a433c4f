/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4: what describe.c and explain.c share.
 */
#ifndef LAYOUTFS_REISER4_DESCRIBE_H
#define LAYOUTFS_REISER4_DESCRIBE_H

#include <jansson.h>

#include "layouts/reiser4/layout.h"

/* As debugfs.reiser4 writes keys: locality:type:ordering:objectid:offset, hexadecimal. */
void reiser4_describe_key(json_t *object, const char *name, const struct reiser4_key *key);
/* Kind, key, length, and what is in the item. */
void reiser4_describe_item(json_t *object, const struct reiser4_item *item);
/* A row for each item of the body, with the node that it is in. Shared. */
int reiser4_describe_body(struct reiser4 *r4, const struct reiser4_object *object, json_t *rows);

#endif

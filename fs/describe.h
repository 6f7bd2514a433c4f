/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, for layouts' `describe` and `explain`: structures of a format as JSON objects. A
 * member that cannot be made, for lack of memory, is left out.
 */
#ifndef LAYOUTFS_DESCRIBE_H
#define LAYOUTFS_DESCRIBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A little-endian number in a record; a table of them ends with {0}. */
struct describe_field {
    const char *name;
    uint16_t offset;
    uint8_t width; /* bytes: 1, 2, 4 or 8 */
};
#define DESCRIBE_FIELD(type, member)                                                               \
    { #member, offsetof(struct type, member), sizeof(((struct type *)0)->member) }

void describe_number(json_t *object, const char *key, uint64_t number);
void describe_text(json_t *object, const char *key, const char *text);
void describe_bool(json_t *object, const char *key, bool value);
/* Bytes of a name from the disk, which need not be UTF-8: what is not printable becomes '?'. */
void describe_name(json_t *object, const char *key, const char *name, size_t length);
void describe_time(json_t *object, const char *key, int64_t seconds);
void describe_uuid(json_t *object, const char *key, const uint8_t uuid[16]);
void describe_fields(json_t *object, const struct describe_field *fields, const void *record);
/* "directory", "file", ... of the mode's type. */
const char *describe_type(uint32_t mode);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (over fs/log.h).
 * Presets: readable tables of named records in INI form, embedded in the program. A section is a
 * record, its keys are the record's fields. Quantities carry their unit ("12.5 ms", "2 MiB").
 *
 * Every field must be given exactly once a section and no other key may occur: a preset is complete
 * where it stands, nothing is inherited or defaulted.
 */
#ifndef LAYOUTFS_PRESET_H
#define LAYOUTFS_PRESET_H

#include <stddef.h>

#include "fs/log.h"

enum preset_kind {
    PRESET_TEXT,   /* char[] of `room` bytes */
    PRESET_COUNT,  /* uint32_t, a plain number */
    PRESET_SIZE,   /* uint64_t bytes: B, KB, MB, GB (powers of 1000), KiB, MiB, GiB */
    PRESET_SIZE32, /* the same, uint32_t */
    PRESET_TIME,   /* int64_t nanoseconds: ns, us, ms, s */
    PRESET_LIST,   /* uint32_t[] of `room` elements, separated by blanks */
    PRESET_CHOICE, /* unsigned int: index into `choices` */
};

struct preset_field {
    const char *key;
    enum preset_kind kind;
    size_t offset;
    size_t room;
    size_t count_offset;        /* PRESET_LIST: where the number of elements goes (uint32_t) */
    const char *const *choices; /* PRESET_CHOICE: names, NULL last */
};

#define PRESET_FIELDS_MAX 64
#define PRESET_NAME_MAX   32

struct preset_schema {
    const char *file; /* for messages: "machines.ini" */
    const char *what; /* "machine", "disk" */
    const char *text; /* the embedded file */
    size_t record_size;
    size_t name_offset; /* char[PRESET_NAME_MAX] that receives the section's name */
    const struct preset_field *fields;
    size_t field_count;
};

/* Calls visit for each record in file order until it returns non-zero, which is returned. `record`
 * is room for one. -EINVAL: the table is wrong, and the log says where. */
int preset_each(const struct preset_schema *schema, void *record,
                int (*visit)(void *context, const void *record), void *context,
                const struct log *log);
/* Fills *record from the preset `name`. -ENOENT: there is none; the known ones are logged. */
int preset_find(const struct preset_schema *schema, const char *name, void *record,
                const struct log *log);

#endif

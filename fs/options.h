/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (over fs/log.h).
 * Strategies and parameters by name. Each layout has one table of `struct option_spec`; mkfs,
 * mount, help texts, `layoutfs options`, man pages and bench sweeps are all derived from it.
 *
 * A set of options is parsed from "key=value,key=value" against such tables. A key that is not in
 * them, a value out of range, or a value of the wrong kind is an error that names the key, the
 * value and what is allowed.
 */
#ifndef LAYOUTFS_OPTIONS_H
#define LAYOUTFS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/log.h"

enum option_kind {
    OPTION_BOOL,   /* key, nokey, key=on|off */
    OPTION_NUMBER, /* integer */
    OPTION_SIZE,   /* bytes; suffixes K M G T are powers of 1024 */
    OPTION_CHOICE, /* one of the `choices` */
    OPTION_TEXT
};

enum option_scope {
    OPTION_MKFS = 1,
    OPTION_MOUNT = 2,
    OPTION_CONVERT = 8,  /* of layoutfs convert */
    OPTION_UNLISTED = 4, /* with one of the others: works, but is for tests, and not listed */
};

struct option_choice {
    const char *label;
    const char *description; /* one line */
    int value;
};

struct option_spec {
    const char *name;
    char letter; /* mke2fs's letter on the mkfs command line, or 0 */
    enum option_kind kind;
    unsigned scope;           /* of option_scope */
    const char *default_text; /* as the user would write it; NULL: not set (see description) */
    int64_t minimum, maximum; /* NUMBER and SIZE; both 0: unchecked */
    const struct option_choice *choices; /* CHOICE: ends with label NULL */
    const char *description;             /* one line, states the unit */
};

/* One parsed value. */
struct option_value {
    const struct option_spec *spec;
    bool given;     /* by the user (or a preset), not by default_text */
    bool present;   /* has a value at all */
    int64_t number; /* BOOL, NUMBER, SIZE, and the value of a CHOICE */
    char *text;     /* owned; the text as written */
};

struct options {
    struct option_value *values; /* owned; one a spec, in table order */
    unsigned count;
    unsigned scope;
    const struct log *log;
};

/* Prepares *options for the specs of `table` (ended by name NULL) that belong to `scope`, with
 * their defaults. The table is borrowed for the life of *options. 0 or -ENOMEM, -EINVAL. */
int options_init(struct options *options, const struct option_spec *table, unsigned scope,
                 const struct log *log);
/* Parses "a=b,c,nod"; empty or NULL text is allowed. Later values win. -EINVAL with a sentence. */
int options_parse(struct options *options, const char *text);
/* Sets one option by name; `value` NULL means the bare key. */
int options_set(struct options *options, const char *name, const char *value);
/* Sets one by its letter; -ENOENT when the table has no such letter. */
int options_set_letter(struct options *options, char letter, const char *value);
void options_free(struct options *options);

/* The value called `name`; asking for a name that the table lacks is a bug (abort). */
const struct option_value *options_get(const struct options *options, const char *name);
static inline int64_t options_number(const struct options *options, const char *name) {
    return options_get(options, name)->number;
}
static inline bool options_given(const struct options *options, const char *name) {
    return options_get(options, name)->given;
}
const char *options_text(const struct options *options, const char *name); /* NULL: not set */

/* Parses "4G", "512", "100M": bytes. -EINVAL, -ERANGE. */
int size_parse(const char *text, uint64_t *bytes);

#endif

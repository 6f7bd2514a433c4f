/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Parses option texts against the declarative tables. Interface: options.h.
 */
#include "fs/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int size_parse(const char *text, uint64_t *bytes) {
    static const char suffixes[] = "KMGTP";
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno)
        return -ERANGE;
    const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
    if (suffix) {
        unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
        if (value >> (64 - shift))
            return -ERANGE;
        value <<= shift;
        end++;
        if (strcmp(end, "iB") == 0)
            end += 2;
    }
    if (*end)
        return -EINVAL;
    *bytes = value;
    return 0;
}

static int complain(const struct options *options, const struct option_spec *spec,
                    const char *value, const char *expected) {
    log_error(options->log, "option %s=%s: %s", spec->name, value ? value : "", expected);
    return -EINVAL;
}

static int in_range(const struct options *options, const struct option_spec *spec,
                    const char *value, int64_t number) {
    char expected[96];

    if ((spec->minimum == 0 && spec->maximum == 0) ||
        (number >= spec->minimum && number <= spec->maximum))
        return 0;
    snprintf(expected, sizeof(expected), "must be from %lld to %lld", (long long)spec->minimum,
             (long long)spec->maximum);
    return complain(options, spec, value, expected);
}

static int parse_bool(const char *value, int64_t *number) {
    static const char *const yes[] = {"on", "yes", "true", "1"};
    static const char *const no[] = {"off", "no", "false", "0"};

    for (unsigned i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
        if (!value || strcmp(value, yes[i]) == 0) {
            *number = 1;
            return 0;
        }
        if (strcmp(value, no[i]) == 0) {
            *number = 0;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_choice(const struct options *options, const struct option_spec *spec,
                        const char *value, int64_t *number) {
    char expected[256] = "must be one of";
    size_t used = strlen(expected);

    for (const struct option_choice *choice = spec->choices; choice->label; choice++) {
        if (strcmp(choice->label, value) == 0) {
            *number = choice->value;
            return 0;
        }
        if (used < sizeof(expected))
            used +=
                (size_t)snprintf(expected + used, sizeof(expected) - used, " %s", choice->label);
    }
    return complain(options, spec, value, expected);
}

static int parse_number(const struct options *options, const struct option_spec *spec,
                        const char *value, int64_t *number) {
    char *end;

    errno = 0;
    long long parsed = strtoll(value, &end, 0);
    if (errno || end == value || *end)
        return complain(options, spec, value, "must be a whole number");
    *number = parsed;
    return in_range(options, spec, value, parsed);
}

static int parse_size(const struct options *options, const struct option_spec *spec,
                      const char *value, int64_t *number) {
    uint64_t bytes;

    if (size_parse(value, &bytes) || bytes > INT64_MAX)
        return complain(options, spec, value, "must be a size such as 4096, 64K, 512M or 4G");
    *number = (int64_t)bytes;
    return in_range(options, spec, value, *number);
}

/* The value's number; 0 for text. */
static int parse_value(const struct options *options, const struct option_spec *spec,
                       const char *value, int64_t *number) {
    *number = 0;
    if (!value && spec->kind != OPTION_BOOL)
        return complain(options, spec, value, "needs a value");
    switch (spec->kind) {
    case OPTION_BOOL:
        return parse_bool(value, number) ? complain(options, spec, value, "must be on or off") : 0;
    case OPTION_NUMBER:
        return parse_number(options, spec, value, number);
    case OPTION_SIZE:
        return parse_size(options, spec, value, number);
    case OPTION_CHOICE:
        return parse_choice(options, spec, value, number);
    case OPTION_TEXT:
        return 0;
    }
    return -EINVAL;
}

static int set_value(struct options *options, struct option_value *slot, const char *value,
                     bool given) {
    int64_t number;
    int error = parse_value(options, slot->spec, value, &number);

    if (error)
        return error;
    char *text = strdup(value ? value : "on");
    if (!text)
        return -ENOMEM;
    free(slot->text);
    slot->text = text;
    slot->number = number;
    slot->present = true;
    slot->given = slot->given || given;
    return 0;
}

int options_init(struct options *options, const struct option_spec *table, unsigned scope,
                 const struct log *log) {
    unsigned total = 0;

    *options = (struct options){.scope = scope, .log = log};
    while (table && table[total].name)
        total++;
    options->values = calloc(total ? total : 1, sizeof(*options->values));
    if (!options->values)
        return -ENOMEM;
    for (unsigned i = 0; i < total; i++) {
        if (!(table[i].scope & scope))
            continue;
        struct option_value *slot = &options->values[options->count++];
        slot->spec = &table[i];
        if (!table[i].default_text)
            continue;
        int error = set_value(options, slot, table[i].default_text, false);
        if (error) {
            options_free(options);
            return error;
        }
    }
    return 0;
}

void options_free(struct options *options) {
    for (unsigned i = 0; i < options->count; i++)
        free(options->values[i].text);
    free(options->values);
    *options = (struct options){0};
}

static struct option_value *find(const struct options *options, const char *name, size_t length) {
    for (unsigned i = 0; i < options->count; i++) {
        const char *known = options->values[i].spec->name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return &options->values[i];
    }
    return NULL;
}

/* "nodiscard" is "discard=off", where discard is a yes-or-no option. */
static struct option_value *find_negated(const struct options *options, const char *name) {
    if (strncmp(name, "no", 2) != 0)
        return NULL;
    struct option_value *slot = find(options, name + 2, strlen(name + 2));
    return slot && slot->spec->kind == OPTION_BOOL ? slot : NULL;
}

int options_set(struct options *options, const char *name, const char *value) {
    struct option_value *slot = find(options, name, strlen(name));

    if (slot)
        return set_value(options, slot, value, true);
    slot = value ? NULL : find_negated(options, name);
    if (slot)
        return set_value(options, slot, "off", true);
    log_error(options->log, "unknown option \"%s\"; 'layoutfs options' lists them", name);
    return -EINVAL;
}

int options_set_letter(struct options *options, char letter, const char *value) {
    for (unsigned i = 0; i < options->count; i++) {
        if (options->values[i].spec->letter == letter)
            return set_value(options, &options->values[i], value, true);
    }
    return -ENOENT;
}

int options_parse(struct options *options, const char *text) {
    char *copy = strdup(text ? text : "");
    char *state = NULL;
    int error = copy ? 0 : -ENOMEM;

    for (char *item = copy ? strtok_r(copy, ",", &state) : NULL; item && !error;
         item = strtok_r(NULL, ",", &state)) {
        char *value = strchr(item, '=');
        if (value)
            *value++ = '\0';
        error = options_set(options, item, value);
    }
    free(copy);
    return error;
}

const struct option_value *options_get(const struct options *options, const char *name) {
    const struct option_value *slot = find(options, name, strlen(name));

    if (!slot)
        abort(); /* the caller asks for what its own table lacks */
    return slot;
}

const char *options_text(const struct options *options, const char *name) {
    const struct option_value *slot = options_get(options, name);

    return slot->present ? slot->text : NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. See fs/preset.h.
 *
 * Invariant: a record is visited only after its section has set each field of the schema once.
 */
#include "fs/preset.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t scale;
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct unit size_units[] = {{"B", 1},           {"KB", 1000},       {"MB", 1000000},
                                         {"GB", 1000000000}, {"KiB", 1u << 10u}, {"MiB", 1u << 20u},
                                         {"GiB", 1u << 30u}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

struct parser {
    const struct preset_schema *schema;
    char *record;
    uint64_t seen; /* bit per field of the current section */
    bool open;     /* a section has begun */
    int result;
    int (*visit)(void *, const void *);
    void *context;
    const struct log *log;
};

/* Parses digits[.digits] [unit] exactly, without floating point. */
static bool parse_quantity(const char *text, const struct unit *units, uint64_t *value) {
    uint64_t digits = 0;
    uint64_t divisor = 0; /* 0 until the decimal point, then 10 per decimal */
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !divisor); text++) {
        if (*text == '.') {
            divisor = 1;
            continue;
        }
        if (__builtin_mul_overflow(digits, 10u, &digits) ||
            __builtin_add_overflow(digits, (uint64_t)(*text - '0'), &digits) ||
            __builtin_mul_overflow(divisor, 10u, &divisor))
            return false;
    }
    text += strspn(text, " \t");
    for (; units->name; units++) {
        if (strcmp(text, units->name) == 0) {
            bool overflow = __builtin_mul_overflow(digits, units->scale, value);
            *value /= divisor ? divisor : 1;
            return !overflow;
        }
    }
    return false;
}

static bool store_u32(void *target, uint64_t value) {
    uint32_t narrow = (uint32_t)value;
    memcpy(target, &narrow, sizeof(narrow));
    return value <= UINT32_MAX;
}

static bool store_u64(void *target, uint64_t value) {
    memcpy(target, &value, sizeof(value));
    return value <= INT64_MAX;
}

static bool store_text(void *target, size_t room, const char *text) {
    size_t length = strlen(text);
    if (length >= room)
        return false;
    memcpy(target, text, length + 1);
    return true;
}

static bool store_list(char *record, const struct preset_field *field, const char *text) {
    uint32_t count = 0;
    while (*text) {
        char number[24];
        size_t length = strcspn(text, " \t");
        uint64_t value;
        if (length >= sizeof(number) || count >= field->room)
            return false;
        memcpy(number, text, length);
        number[length] = '\0';
        if (!parse_quantity(number, no_units, &value) ||
            !store_u32(record + field->offset + count * sizeof(uint32_t), value))
            return false;
        count++;
        text += length;
        text += strspn(text, " \t");
    }
    return store_u32(record + field->count_offset, count);
}

static bool store_choice(void *target, const char *const *choices, const char *text) {
    for (unsigned i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0)
            return store_u32(target, i);
    }
    return false;
}

static bool store_field(char *record, const struct preset_field *field, const char *text) {
    void *target = record + field->offset;
    uint64_t value;
    switch (field->kind) {
    case PRESET_TEXT:
        return store_text(target, field->room, text);
    case PRESET_COUNT:
        return parse_quantity(text, no_units, &value) && store_u32(target, value);
    case PRESET_SIZE:
        return parse_quantity(text, size_units, &value) && store_u64(target, value);
    case PRESET_SIZE32:
        return parse_quantity(text, size_units, &value) && store_u32(target, value);
    case PRESET_TIME:
        return parse_quantity(text, time_units, &value) && store_u64(target, value);
    case PRESET_LIST:
        return store_list(record, field, text);
    case PRESET_CHOICE:
        return store_choice(target, field->choices, text);
    }
    return false;
}

/* Hands the finished record to the visitor. False ends the parsing. */
static bool finish_record(struct parser *parser) {
    const struct preset_schema *schema = parser->schema;
    for (size_t i = 0; i < schema->field_count; i++) {
        if (!(parser->seen & (UINT64_C(1) << i))) {
            log_error(parser->log, "%s: [%s] lacks \"%s\"", schema->file,
                      parser->record + schema->name_offset, schema->fields[i].key);
            parser->result = -EINVAL;
            return false;
        }
    }
    parser->result = parser->visit(parser->context, parser->record);
    return parser->result == 0;
}

static bool begin_record(struct parser *parser, const char *section) {
    if (parser->open && !finish_record(parser))
        return false;
    memset(parser->record, 0, parser->schema->record_size);
    parser->open = true;
    parser->seen = 0;
    if (store_text(parser->record + parser->schema->name_offset, PRESET_NAME_MAX, section))
        return true;
    parser->result = -EINVAL;
    return false;
}

static const struct preset_field *find_field(const struct parser *parser, const char *key,
                                             uint64_t *bit) {
    for (size_t i = 0; i < parser->schema->field_count; i++) {
        *bit = UINT64_C(1) << i;
        if (strcmp(key, parser->schema->fields[i].key) == 0)
            return &parser->schema->fields[i];
    }
    return NULL;
}

/* The INI library's callback: 1 goes on, 0 marks an error. It cannot be stopped, so that once a
 * result is set the rest is passed over. */
static int parse_pair(void *user, const char *section, const char *key, const char *value) {
    struct parser *parser = user;
    if (parser->result)
        return 0;
    const char *current = parser->record + parser->schema->name_offset;
    if ((!parser->open || strcmp(section, current) != 0) && !begin_record(parser, section))
        return 0;
    uint64_t bit = 0;
    const struct preset_field *field = find_field(parser, key, &bit);
    if (field && !(parser->seen & bit) && store_field(parser->record, field, value)) {
        parser->seen |= bit;
        return 1;
    }
    log_error(parser->log, "%s: [%s] %s = %s: %s", parser->schema->file, section, key, value,
              !field               ? "unknown key"
              : parser->seen & bit ? "given twice"
                                   : "not a valid value");
    parser->result = -EINVAL;
    return 0;
}

int preset_each(const struct preset_schema *schema, void *record,
                int (*visit)(void *context, const void *record), void *context,
                const struct log *log) {
    struct parser parser = {
        .schema = schema, .record = record, .visit = visit, .context = context, .log = log};
    int line = ini_parse_string(schema->text, parse_pair, &parser);
    if (line && !parser.result) {
        log_error(log, "%s: line %d is not INI", schema->file, line);
        return -EINVAL;
    }
    if (!parser.result && parser.open)
        finish_record(&parser);
    return parser.result;
}

struct search {
    const struct preset_schema *schema;
    const char *name;
    char known[512]; /* the names passed on the way, for the message */
};

static int compare_name(void *context, const void *record) {
    struct search *search = context;
    const char *name = (const char *)record + search->schema->name_offset;
    if (strcmp(name, search->name) == 0)
        return 1;
    size_t used = strlen(search->known);
    snprintf(search->known + used, sizeof(search->known) - used, "%s%s", used ? ", " : "", name);
    return 0;
}

int preset_find(const struct preset_schema *schema, const char *name, void *record,
                const struct log *log) {
    struct search search = {.schema = schema, .name = name};
    int result = preset_each(schema, record, compare_name, &search, log);
    if (result == 1)
        return 0;
    if (result)
        return result;
    log_error(log, "there is no %s \"%s\"; known: %s", schema->what, name, search.known);
    return -ENOENT;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See scenario.h. The parser is inih's; lines are counted by its reader function, so
 * that each message can say where it is about.
 */
#include "bench/scenario.h"
#include "fs/device/disk.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (1u << 20)

extern const char embedded_orlov_2002_ini[], embedded_ext3_journal_ini[],
    embedded_create_speed_ini[], embedded_mount_speed_ini[], embedded_nilfs2_2008_ini[],
    embedded_nilfs2_full_ini[];

static const struct builtin {
    const char *name, *text;
} builtins[] = {
    {"orlov-2002", embedded_orlov_2002_ini},     {"ext3-journal", embedded_ext3_journal_ini},
    {"create-speed", embedded_create_speed_ini}, {"mount-speed", embedded_mount_speed_ini},
    {"nilfs2-2008", embedded_nilfs2_2008_ini},   {"nilfs2-full", embedded_nilfs2_full_ini},
};
#define BUILTINS (sizeof(builtins) / sizeof(*builtins))

struct parser {
    struct scenario *scenario;
    const char *name, *text; /* `text` is what is left to read */
    unsigned line;
    unsigned failed_line; /* 0: none yet */
    const struct log *log;
    struct log located; /* prefixes messages with name and line */
};

/* --- reading lines and placing messages ------------------------------------------------------- */

static char *next_line(char *line, int size, void *context) {
    struct parser *parser = context;
    size_t length = strcspn(parser->text, "\n");
    size_t fits = length < (size_t)size - 1 ? length : (size_t)size - 1;

    if (*parser->text == '\0')
        return NULL;
    memcpy(line, parser->text, fits);
    line[fits] = '\0';
    parser->text += length + (parser->text[length] == '\n');
    parser->line++;
    if (fits < length && !parser->failed_line) {
        parser->failed_line = parser->line;
        log_error(&parser->located, "line longer than %d bytes", size - 1);
    }
    return line;
}

static void emit_located(void *context, enum log_level level, const char *text) {
    const struct parser *parser = context;

    log_message(parser->log, level, "%s:%u: %s", parser->name, parser->line, text);
}

static int fail(struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(struct parser *parser, const char *format, ...) {
    va_list args;

    va_start(args, format);
    log_vmessage(&parser->located, LOG_LEVEL_ERROR, format, args);
    va_end(args);
    return -EINVAL;
}

/* --- values ----------------------------------------------------------------------------------- */

static int set_text(struct parser *parser, char *to, size_t size, const char *key,
                    const char *value) {
    if (strlen(value) >= size)
        return fail(parser, "%s: longer than %zu bytes", key, size - 1);
    strcpy(to, value);
    return 0;
}

static int set_size(struct parser *parser, uint64_t *to, const char *key, const char *value) {
    if (size_parse(value, to))
        return fail(parser, "%s: expected a size such as 192M, not \"%s\"", key, value);
    return 0;
}

/* "86.6", "< 2": seconds with up to nine decimals; "44.918 MB/s": a rate. */
static int parse_figure(const char *text, struct published *published) {
    int64_t ns = 0, unit = NS_PER_SEC;
    bool point = false, digit = false;

    published->below = *text == '<';
    text += published->below + (int)strspn(text + published->below, " ");
    for (; *text && *text != ' '; text++) {
        if (*text == '.' && !point) {
            point = true;
        } else if (*text >= '0' && *text <= '9' && (!point || unit >= 10) && ns < INT64_MAX / 100) {
            digit = true;
            if (point)
                ns += (*text - '0') * (unit /= 10);
            else
                ns = ns * 10 + (*text - '0') * NS_PER_SEC;
        } else {
            return -EINVAL;
        }
    }
    published->rate = strcmp(text, " MB/s") == 0;
    if (!digit || (*text && !published->rate) || (published->rate && ns == 0))
        return -EINVAL;
    published->ns = published->rate ? NS_PER_SEC * NS_PER_SEC / ns : ns;
    return 0;
}

/* --- sections --------------------------------------------------------------------------------- */

static int set_scenario(struct parser *parser, const char *key, const char *value) {
    struct scenario *scenario = parser->scenario;

    if (strcmp(key, "title") == 0)
        return set_text(parser, scenario->title, sizeof(scenario->title), key, value);
    if (strcmp(key, "disk") == 0)
        return set_text(parser, scenario->disk, sizeof(scenario->disk), key, value);
    if (strcmp(key, "machine") == 0)
        return set_text(parser, scenario->machine, sizeof(scenario->machine), key, value);
    if (strcmp(key, "memory") == 0)
        return set_size(parser, &scenario->memory, key, value);
    if (strcmp(key, "volume_start") == 0)
        return set_size(parser, &scenario->volume_start, key, value);
    if (strcmp(key, "volume_size") == 0)
        return set_size(parser, &scenario->volume_size, key, value);
    if (strcmp(key, "note") == 0) {
        if (scenario->note_count == SCENARIO_NOTES_MAX)
            return fail(parser, "more than %d notes", SCENARIO_NOTES_MAX);
        return set_text(parser, scenario->notes[scenario->note_count++], sizeof(scenario->notes[0]),
                        key, value);
    }
    if (strcmp(key, "show") == 0) {
        scenario->show_purposes |= strcmp(value, "purposes") == 0;
        scenario->show_latency |= strcmp(value, "latency") == 0;
        if (strcmp(value, "purposes") == 0 || strcmp(value, "latency") == 0)
            return 0;
        return fail(parser, "show: expected purposes or latency, not \"%s\"", value);
    }
    if (strcmp(key, "repeat") == 0) {
        scenario->repeat = (unsigned)strtoul(value, NULL, 10);
        if (scenario->repeat == 0 || scenario->repeat > 99)
            return fail(parser, "repeat: expected 1 to 99, not \"%s\"", value);
        return 0;
    }
    if (strcmp(key, "driver") == 0) {
        scenario->driver = strcmp(value, "mount") == 0 ? SCENARIO_MOUNT : SCENARIO_MODEL;
        if (scenario->driver == SCENARIO_MODEL && strcmp(value, "model") != 0)
            return fail(parser, "driver: expected model or mount, not \"%s\"", value);
        return 0;
    }
    return fail(parser, "[scenario] has no key \"%s\"", key);
}

static int set_workload(struct parser *parser, const char *workload, const char *key,
                        const char *value) {
    struct scenario *scenario = parser->scenario;

    if (!scenario->workload) {
        scenario->workload = workload_find(workload);
        if (!scenario->workload)
            return fail(parser, "unknown workload \"%s\"", workload);
        int error = options_init(&scenario->parameters, scenario->workload->parameters,
                                 WORKLOAD_OPTIONS, &parser->located);
        if (error) {
            scenario->workload = NULL;
            return error;
        }
    } else if (strcmp(scenario->workload->name, workload) != 0) {
        return fail(parser, "a second workload, \"%s\"; a scenario has one", workload);
    }
    return options_set(&scenario->parameters, key, value);
}

static int set_published(struct parser *parser, struct scenario_row *row, const char *step,
                         const char *value) {
    struct published *published = &row->published[row->published_count];

    if (row->published_count == STEPS_MAX)
        return fail(parser, "more than %d published figures in a row", STEPS_MAX);
    if (parse_figure(value, published))
        return fail(parser,
                    "published.%s: expected seconds such as 86.6 or < 2, or a rate such as "
                    "44.9 MB/s, not \"%s\"",
                    step, value);
    row->published_count++;
    return set_text(parser, published->step, sizeof(published->step), "published", step);
}

static struct scenario_row *find_row(struct scenario *scenario, const char *id) {
    for (unsigned i = 0; i < scenario->row_count; i++)
        if (strcmp(scenario->rows[i].id, id) == 0)
            return &scenario->rows[i];
    return NULL;
}

static int set_row(struct parser *parser, const char *id, const char *key, const char *value) {
    struct scenario *scenario = parser->scenario;
    struct scenario_row *row = find_row(scenario, id);

    if (!row) {
        if (scenario->row_count == SCENARIO_ROWS_MAX)
            return fail(parser, "more than %d rows", SCENARIO_ROWS_MAX);
        row = &scenario->rows[scenario->row_count++];
        int error = set_text(parser, row->id, sizeof(row->id), "row", id);
        if (error)
            return error;
    }
    if (strcmp(key, "label") == 0)
        return set_text(parser, row->label, sizeof(row->label), key, value);
    if (strcmp(key, "type") == 0)
        return set_text(parser, row->type, sizeof(row->type), key, value);
    if (strcmp(key, "mkfs") == 0)
        return set_text(parser, row->mkfs, sizeof(row->mkfs), key, value);
    if (strcmp(key, "mount") == 0)
        return set_text(parser, row->mount, sizeof(row->mount), key, value);
    if (strcmp(key, "workload") == 0)
        return set_text(parser, row->workload, sizeof(row->workload), key, value);
    if (strncmp(key, "published.", 10) == 0)
        return set_published(parser, row, key + 10, value);
    return fail(parser, "[row %s] has no key \"%s\"", id, key);
}

/* inih's handler: 1 to go on, 0 for an error at this line. */
static int set_key(void *context, const char *section, const char *key, const char *value) {
    struct parser *parser = context;
    int error;

    if (parser->failed_line)
        return 1; /* only the first error is told */
    if (strcmp(section, "scenario") == 0)
        error = set_scenario(parser, key, value);
    else if (strncmp(section, "workload ", 9) == 0)
        error = set_workload(parser, section + 9, key, value);
    else if (strncmp(section, "row ", 4) == 0)
        error = set_row(parser, section + 4, key, value);
    else
        error =
            fail(parser, "expected [scenario], [workload NAME] or [row NAME], not [%s]", section);
    if (error)
        parser->failed_line = parser->line;
    return error ? 0 : 1;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int require(const struct parser *parser, bool there, const char *what) {
    if (!there)
        log_error(parser->log, "%s: %s", parser->name, what);
    return there ? 0 : -EINVAL;
}

static int check_complete(struct parser *parser) {
    struct scenario *scenario = parser->scenario;
    bool modelled = scenario->driver == SCENARIO_MODEL;
    int error = require(parser, scenario->workload, "no [workload NAME] section with a parameter");

    if (!error)
        error = require(parser, scenario->row_count, "no [row NAME] section");
    if (!error)
        error = require(parser, scenario->volume_size, "[scenario] says no volume_size");
    if (!error && modelled)
        error = require(parser, scenario->disk[0] && scenario->machine[0],
                        "[scenario] says no disk or no machine");
    for (unsigned i = 0; i < scenario->row_count && !error; i++) {
        struct scenario_row *row = &scenario->rows[i];
        error = require(parser, row->type[0], "a row says no type");
        if (!row->label[0])
            memcpy(row->label, row->id, sizeof(row->id));
    }
    return error;
}

int scenario_parse(const char *text, const char *name, struct scenario *scenario,
                   const struct log *log) {
    struct parser parser = {.scenario = scenario, .name = name, .text = text, .log = log};
    int error;

    parser.located =
        (struct log){.emit = emit_located, .context = &parser, .threshold = LOG_LEVEL_WARNING};
    memset(scenario, 0, sizeof(*scenario));
    scenario->repeat = 1;
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    snprintf(scenario->name, sizeof(scenario->name), "%.*s", (int)strcspn(base, "."), base);
    int line = ini_parse_stream(next_line, &parser, set_key, &parser);
    if (line > 0 && !parser.failed_line) {
        parser.line = (unsigned)line;
        error = fail(&parser, "expected [section], key = value or a comment");
    } else if (parser.failed_line || line < 0) {
        error = line < 0 ? -ENOMEM : -EINVAL;
    } else {
        error = check_complete(&parser);
    }
    scenario->parameters.log = log;
    if (error)
        scenario_free(scenario);
    return error;
}

static int read_text(const char *path, char **text, const struct log *log) {
    FILE *file = fopen(path, "re");
    char *buffer = file ? malloc(FILE_BYTES_MAX + 1) : NULL;
    int error = file ? buffer ? 0 : -ENOMEM : -errno;

    if (!error) {
        size_t length = fread(buffer, 1, FILE_BYTES_MAX + 1, file);
        if (ferror(file))
            error = -EIO;
        else if (length > FILE_BYTES_MAX)
            error = -EFBIG;
        else
            buffer[length] = '\0';
    }
    if (file)
        fclose(file);
    if (error) {
        log_error(log, "%s: %s", path, strerror(-error));
        free(buffer);
        return error;
    }
    *text = buffer;
    return 0;
}

int scenario_load(const char *name, struct scenario *scenario, const struct log *log) {
    char *text;
    int error;

    for (size_t i = 0; i < BUILTINS; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return scenario_parse(builtins[i].text, name, scenario, log);
    if (!strpbrk(name, "/.")) {
        log_error(log, "no scenario \"%s\"; --list shows them, and a file's name has a '/' or '.'",
                  name);
        return -ENOENT;
    }
    error = read_text(name, &text, log);
    if (error)
        return error;
    error = scenario_parse(text, name, scenario, log);
    free(text);
    return error;
}

void scenario_free(struct scenario *scenario) {
    if (scenario->workload)
        options_free(&scenario->parameters);
    scenario->workload = NULL;
}

void scenario_each(void (*visit)(void *context, const char *name, const char *text),
                   void *context) {
    for (size_t i = 0; i < BUILTINS; i++)
        visit(context, builtins[i].name, builtins[i].text);
}

/* --- changes from the command line ------------------------------------------------------------ */

/* A row that the scenario does not have: "ext2:dir_placement=orlov:alloc=goal". */
/* An option that only mkfs takes. */
static bool is_for_mkfs(const struct layout *layout, const char *item) {
    size_t length = strcspn(item, "=");

    for (const struct option_spec *spec = layout->options; spec && spec->name; spec++)
        if (strncmp(spec->name, item, length) == 0 && spec->name[length] == '\0')
            return spec->scope == OPTION_MKFS;
    return false;
}

/* Sorts "a=b:c" into the row's options of mkfs and of mount, which have room for all of it. */
static void sort_options(const struct layout *layout, const char *text, struct scenario_row *row) {
    char items[sizeof(row->mount)], *position;

    snprintf(items, sizeof(items), "%s", text);
    for (char *item = strtok_r(items, ":", &position); item;
         item = strtok_r(NULL, ":", &position)) {
        char *list = is_for_mkfs(layout, item) ? row->mkfs : row->mount;
        if (*list)
            strcat(list, ",");
        strcat(list, item);
    }
}

static int make_row(const char *wish, struct scenario_row *row, const struct log *log) {
    const struct layout *layout;
    const struct layout_type *type;
    size_t type_length = strcspn(wish, ":");
    const char *options = wish[type_length] ? wish + type_length + 1 : "";

    memset(row, 0, sizeof(*row));
    if (type_length >= sizeof(row->type) || strlen(options) >= sizeof(row->mount) ||
        strlen(options) >= sizeof(row->mkfs)) {
        log_error(log, "--layout: \"%s\" is too long", wish);
        return -EINVAL;
    }
    memcpy(row->type, wish, type_length);
    snprintf(row->id, sizeof(row->id), "%.31s", wish);
    snprintf(row->label, sizeof(row->label), "%.47s", wish);
    if (layout_find(row->type, &layout, &type)) {
        log_error(log, "--layout: \"%s\" is neither a row of this scenario nor a layout's type",
                  wish);
        return -ENOENT;
    }
    sort_options(layout, options, row);
    return 0;
}

int scenario_select(struct scenario *scenario, const char *selection, const struct log *log) {
    struct scenario_row *rows = calloc(SCENARIO_ROWS_MAX, sizeof(*rows));
    char *wishes = strdup(selection), *position;
    unsigned count = 0;
    int error = rows && wishes ? 0 : -ENOMEM;

    for (char *wish = error ? NULL : strtok_r(wishes, ",", &position); wish && !error;
         wish = strtok_r(NULL, ",", &position)) {
        const struct scenario_row *found = find_row(scenario, wish);
        if (count == SCENARIO_ROWS_MAX)
            error = -E2BIG;
        else if (found)
            rows[count++] = *found;
        else
            error = make_row(wish, &rows[count++], log);
    }
    if (!error && count > 0) {
        memcpy(scenario->rows, rows, count * sizeof(*rows));
        scenario->row_count = count;
    }
    free(rows);
    free(wishes);
    return error;
}

int scenario_set_disk(struct scenario *scenario, const char *name, const struct log *log) {
    struct disk_preset preset;
    int error = disk_preset_find(name, &preset, log);

    if (error)
        return error;
    snprintf(scenario->disk, sizeof(scenario->disk), "%s", preset.name);
    if (preset.capacity < scenario->volume_start ||
        preset.capacity - scenario->volume_start < scenario->volume_size)
        scenario->volume_start = 0;
    for (unsigned i = 0; i < scenario->row_count; i++)
        scenario->rows[i].published_count = 0;
    return 0;
}

int scenario_scale(struct scenario *scenario, unsigned permille) {
    const char *const *name = scenario->workload->scaled;
    int error = 0;

    for (; name && *name && !error; name++) {
        uint64_t value = (uint64_t)options_number(&scenario->parameters, *name);
        char text[24];
        snprintf(text, sizeof(text), "%" PRIu64,
                 value / 1000 * permille + value % 1000 * permille / 1000);
        error = options_set(&scenario->parameters, *name, text);
    }
    scenario->memory = scenario->memory / 1000 * permille;
    return error;
}

bool scenario_emulates(const struct scenario *scenario, const struct scenario_row *row) {
    const struct layout *layout;
    const struct layout_type *type;

    return (!row->workload[0] || strcmp(row->workload, scenario->workload->name) == 0) &&
           layout_find(row->type, &layout, &type) == 0;
}

const struct published *scenario_published(const struct scenario_row *row, const char *step) {
    for (unsigned i = 0; i < row->published_count; i++)
        if (strcmp(row->published[i].step, step) == 0)
            return &row->published[i];
    return NULL;
}

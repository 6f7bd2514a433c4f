/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs options`: every layout, type, strategy and option, from the one table of
 * each layout. The manual pages' tables are this command's --scdoc output.
 */
#include <errno.h>
#include <string.h>

#include "tools/image.h"
#include "tools/mount_options.h"
#include "tools/print.h"
#include "tools/tool.h"

enum options_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SCDOC };

struct options_command {
    enum options_format format;
    unsigned scope; /* which options to list */
    char **names;   /* of layouts or types; count 0: all */
    int count;
};

/* --- the table as JSON ------------------------------------------------------------------------ */

static const char *kind_name(enum option_kind kind) {
    switch (kind) {
    case OPTION_BOOL:
        return "switch";
    case OPTION_NUMBER:
        return "number";
    case OPTION_SIZE:
        return "size";
    case OPTION_CHOICE:
        return "choice";
    case OPTION_TEXT:
        return "text";
    }
    return "text";
}

static json_t *choices_object(const struct option_choice *choice) {
    json_t *choices = json_array();

    for (; choice->label; choice++)
        json_array_append_new(choices, json_pack("{s:s, s:s}", "value", choice->label,
                                                 "description", choice->description));
    return choices;
}

static json_t *option_object(const struct option_spec *spec, unsigned scope) {
    json_t *object = json_pack("{s:s, s:s, s:s}", "name", spec->name, "kind", kind_name(spec->kind),
                               "description", spec->description);

    json_object_set_new(object, "default",
                        spec->default_text ? json_string(spec->default_text) : json_null());
    json_object_set_new(object, "mkfs", json_boolean(spec->scope & OPTION_MKFS));
    json_object_set_new(object, "mount", json_boolean(spec->scope & OPTION_MOUNT));
    if (spec->letter && scope & OPTION_MKFS) /* letters are mkfs's */
        json_object_set_new(object, "letter", json_stringn(&spec->letter, 1));
    if (spec->minimum || spec->maximum) {
        json_object_set_new(object, "minimum", json_integer(spec->minimum));
        json_object_set_new(object, "maximum", json_integer(spec->maximum));
    }
    if (spec->kind == OPTION_CHOICE)
        json_object_set_new(object, "choices", choices_object(spec->choices));
    return object;
}

static json_t *table_object(const struct option_spec *table, unsigned scope) {
    json_t *options = json_array();

    for (; table && table->name; table++)
        if (table->scope & scope && !(table->scope & OPTION_UNLISTED))
            json_array_append_new(options, option_object(table, scope));
    return options;
}

static json_t *type_object(const struct layout_type *type) {
    return json_pack("{s:s, s:s, s:s, s:s}", "name", type->name, "description", type->description,
                     "mkfs_options", type->mkfs_options ? type->mkfs_options : "", "mount_options",
                     type->mount_options ? type->mount_options : "");
}

static json_t *layout_object(const struct layout *layout, unsigned scope) {
    json_t *types = json_array();

    for (const struct layout_type *type = layout->types; type && type->name; type++)
        json_array_append_new(types, type_object(type));
    return json_pack("{s:s, s:s, s:o, s:o}", "name", layout->name, "description",
                     layout->description, "types", types, "options",
                     table_object(layout->options, scope));
}

/* What every mount understands whatever it mounts: the core's options, and the front end's. */
static json_t *common_object(unsigned scope) {
    json_t *options = table_object(volume_options, scope);

    for (const struct mount_option *option = mount_option_table; option->spec.name; option++)
        if (option->spec.scope & scope)
            json_array_append_new(options, option_object(&option->spec, scope));
    return options;
}

/* Layouts, and the options of all. */
static json_t *all_object(const struct options_command *command) {
    json_t *layouts = json_array();

    for (int i = 0; layout_registry[i]; i++) {
        /* mkfs has no business with a layout that keeps nothing. */
        bool wanted = command->count == 0 && (command->scope != OPTION_MKFS ||
                                              !(layout_registry[i]->flags & LAYOUT_VOLATILE));

        for (int j = 0; j < command->count; j++) {
            const struct layout *layout = NULL;
            const struct layout_type *type;
            wanted |=
                layout_find(command->names[j], &layout, &type) == 0 && layout == layout_registry[i];
        }
        if (wanted)
            json_array_append_new(layouts, layout_object(layout_registry[i], command->scope));
    }
    return json_pack("{s:o, s:o}", "layouts", layouts, "options", common_object(command->scope));
}

/* --- the table as text ------------------------------------------------------------------------ */

static const char *member(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool member_true(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

static const char *scope_name(const json_t *option) {
    if (!member_true(option, "mount"))
        return "mkfs";
    return member_true(option, "mkfs") ? "mkfs, mount" : "mount";
}

static void print_text_option(const json_t *option) {
    const char *fallback = member(option, "default");
    const char *letter = member(option, "letter");
    json_t *choice;
    size_t index;

    printf("    %-18s %-11s %s%s%s", member(option, "name"), scope_name(option), *letter ? "-" : "",
           letter, *letter ? "  " : "");
    printf("%s%s%s%s\n", member(option, "description"), *fallback ? " (default: " : "", fallback,
           *fallback ? ")" : "");
    json_array_foreach (json_object_get(option, "choices"), index, choice)
        printf("    %30s   %-16s %s\n", "", member(choice, "value"), member(choice, "description"));
}

static void print_text(const json_t *all) {
    json_t *layout, *type, *option;
    size_t i, j;

    json_array_foreach (json_object_get(all, "layouts"), i, layout) {
        printf("%s%s: %s\n", i ? "\n" : "", member(layout, "name"), member(layout, "description"));
        json_array_foreach (json_object_get(layout, "types"), j, type)
            printf("  -t %-10s %s\n", member(type, "name"), member(type, "description"));
        if (json_array_size(json_object_get(layout, "options")))
            printf("  -o\n");
        json_array_foreach (json_object_get(layout, "options"), j, option)
            print_text_option(option);
    }
    if (json_array_size(json_object_get(all, "options")))
        printf("\nEvery layout:\n  -o\n");
    json_array_foreach (json_object_get(all, "options"), j, option)
        print_text_option(option);
}

/* --- the table for manual pages --------------------------------------------------------------- */

/* scdoc gives these characters a meaning. */
static void print_escaped(const char *text) {
    for (; *text; text++) {
        if (strchr("\\*_<>[]#|", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_scdoc_option(const json_t *option) {
    const char *letter = member(option, "letter");
    const char *fallback = member(option, "default");
    json_t *choice;
    size_t index;

    printf("*");
    print_escaped(member(option, "name"));
    /* A pattern such as "x-*" says all by itself. */
    bool whole = !strcmp(member(option, "kind"), "switch") || strchr(member(option, "name"), '*');
    printf("*%s", whole ? "" : "=");
    if (!whole)
        printf("_%s_", member(option, "kind"));
    if (*letter)
        printf(", *-%s*", letter);
    printf("\n\t");
    print_escaped(member(option, "description"));
    if (*fallback) {
        printf(" (default: ");
        print_escaped(fallback);
        printf(")");
    }
    printf("\n\n");
    json_array_foreach (json_object_get(option, "choices"), index, choice) {
        printf("\t*");
        print_escaped(member(choice, "value"));
        printf("*: ");
        print_escaped(member(choice, "description"));
        printf("\n\n");
    }
}

static void print_scdoc(const json_t *all) {
    json_t *layout, *type, *option;
    size_t i, j;

    json_array_foreach (json_object_get(all, "layouts"), i, layout) {
        printf("## Layout %s\n\n", member(layout, "name"));
        print_escaped(member(layout, "description"));
        printf("\n\n");
        json_array_foreach (json_object_get(layout, "types"), j, type) {
            printf("*-t %s*\n\t", member(type, "name"));
            print_escaped(member(type, "description"));
            printf("\n\n");
        }
        json_array_foreach (json_object_get(layout, "options"), j, option)
            print_scdoc_option(option);
    }
    if (json_array_size(json_object_get(all, "options"))) {
        printf("## Every layout\n\n");
        json_array_foreach (json_object_get(all, "options"), j, option)
            print_scdoc_option(option);
    }
}

/* --- the command ------------------------------------------------------------------------------ */

enum { KEY_JSON = 0x100, KEY_SCDOC, KEY_MKFS, KEY_MOUNT };

static const struct argp_option options_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 0},
    {"mkfs", KEY_MKFS, NULL, 0, "Only options of mkfs", 0},
    {"mount", KEY_MOUNT, NULL, 0, "Only options of mount", 0},
    {"scdoc", KEY_SCDOC, NULL, 0, "Print the source of a manual page's section", 0},
    {0},
};

static error_t options_parse_argument(int key, char *argument, struct argp_state *state) {
    struct options_command *command = state->input;

    switch (key) {
    case KEY_JSON:
        command->format = FORMAT_JSON;
        return 0;
    case KEY_SCDOC:
        command->format = FORMAT_SCDOC;
        return 0;
    case KEY_MKFS:
        command->scope = OPTION_MKFS;
        return 0;
    case KEY_MOUNT:
        command->scope = OPTION_MOUNT;
        return 0;
    case ARGP_KEY_ARGS:
        command->names = state->argv + state->next;
        command->count = state->argc - state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_options(int argc, char **argv) {
    static const struct argp argp = {
        .options = options_options,
        .parser = options_parse_argument,
        .args_doc = "[LAYOUT|TYPE...]",
        .doc = "Lists layouts with their types, strategies and options, and the defaults.",
    };
    struct options_command command = {.scope = OPTION_MKFS | OPTION_MOUNT};

    argp_parse(&argp, argc, argv, 0, NULL, &command);
    for (int i = 0; i < command.count; i++) {
        const struct layout *layout;
        const struct layout_type *type;
        if (layout_find(command.names[i], &layout, &type))
            return tool_fail("there is no layout or type '%s'", command.names[i]);
    }
    json_t *all = all_object(&command);
    if (!all)
        return tool_fail("out of memory");
    if (command.format == FORMAT_JSON)
        print_json(stdout, all);
    else if (command.format == FORMAT_SCDOC)
        print_scdoc(all);
    else
        print_text(all);
    json_decref(all);
    return TOOL_DONE;
}

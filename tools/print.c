/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. See tools/print.h.
 */
#include "tools/print.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define INDENT       2
#define SCALAR_SIZE  64
#define COLUMNS_MAX  16
#define LINE_COLUMNS 96

/* --- objects ---------------------------------------------------------------------------------- */

static bool is_container(json_t *value) {
    return json_is_object(value) || json_is_array(value);
}

/* The text of a value that is no container; `buffer` may be used to hold it. */
static const char *scalar_text(json_t *value, char buffer[SCALAR_SIZE]) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_string_value(value);
    case JSON_INTEGER:
        snprintf(buffer, SCALAR_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return buffer;
    case JSON_REAL:
        snprintf(buffer, SCALAR_SIZE, "%.6g", json_real_value(value));
        return buffer;
    case JSON_TRUE:
        return "yes";
    case JSON_FALSE:
        return "no";
    default:
        return "-";
    }
}

/* Objects that have the first one's keys and only scalars make a table. */
static bool is_table(json_t *array) {
    json_t *first = json_array_get(array, 0);
    size_t index;
    json_t *row;

    if (!json_is_object(first) || json_object_size(first) > COLUMNS_MAX)
        return false;
    json_array_foreach (array, index, row) {
        const char *key;
        json_t *value;

        if (!json_is_object(row) || json_object_size(row) != json_object_size(first))
            return false;
        json_object_foreach (row, key, value) {
            if (is_container(value) || !json_object_get(first, key))
                return false;
        }
    }
    return true;
}

static int max_int(int a, int b) {
    return a > b ? a : b;
}

static void print_table(FILE *file, json_t *array, int indent) {
    json_t *first = json_array_get(array, 0);
    int widths[COLUMNS_MAX] = {0};
    char buffer[SCALAR_SIZE];
    const char *key;
    json_t *value, *row;
    size_t index;
    int column = 0;

    json_object_foreach (first, key, value) {
        widths[column] = (int)strlen(key);
        json_array_foreach (array, index, row) {
            const char *text = scalar_text(json_object_get(row, key), buffer);
            widths[column] = max_int(widths[column], (int)strlen(text));
        }
        column++;
    }
    column = 0;
    fprintf(file, "%*s", indent, "");
    json_object_foreach (first, key, value) {
        bool number = json_is_number(value);
        fprintf(file, "%s%*s", column ? "  " : "", number ? widths[column] : -widths[column], key);
        column++;
    }
    fputc('\n', file);
    json_array_foreach (array, index, row) {
        column = 0;
        fprintf(file, "%*s", indent, "");
        json_object_foreach (first, key, value) {
            const char *text = scalar_text(json_object_get(row, key), buffer);
            bool number = json_is_number(value);
            fprintf(file, "%s%*s", column ? "  " : "", number ? widths[column] : -widths[column],
                    text);
            column++;
        }
        fputc('\n', file);
    }
}

/* Scalars one after the other, in lines of at most LINE_COLUMNS. */
static void print_scalars(FILE *file, json_t *array, int indent) {
    char buffer[SCALAR_SIZE];
    int used = 0;
    size_t index;
    json_t *value;

    json_array_foreach (array, index, value) {
        const char *text = scalar_text(value, buffer);
        int length = (int)strlen(text);

        if (used && used + 1 + length > LINE_COLUMNS) {
            fputc('\n', file);
            used = 0;
        }
        used += fprintf(file, "%*s%s", used ? 1 : indent, "", text);
    }
    fputc('\n', file);
}

static void print_members(FILE *file, json_t *object, int indent);

static void print_array(FILE *file, json_t *array, int indent) {
    size_t index;
    json_t *value;

    if (is_table(array)) {
        print_table(file, array, indent);
        return;
    }
    if (!is_container(json_array_get(array, 0))) {
        print_scalars(file, array, indent);
        return;
    }
    json_array_foreach (array, index, value) {
        fprintf(file, "%*s[%zu]\n", indent, "", index);
        if (json_is_object(value))
            print_members(file, value, indent + INDENT);
        else if (json_is_array(value))
            print_array(file, value, indent + INDENT);
    }
}

static void print_members(FILE *file, json_t *object, int indent) {
    char buffer[SCALAR_SIZE];
    const char *key;
    json_t *value;
    int width = 0;

    json_object_foreach (object, key, value) {
        if (!is_container(value))
            width = max_int(width, (int)strlen(key));
    }
    json_object_foreach (object, key, value) {
        if (!is_container(value)) {
            fprintf(file, "%*s%-*s  %s\n", indent, "", width, key, scalar_text(value, buffer));
        } else if (json_is_object(value)) {
            fprintf(file, "%*s%s\n", indent, "", key);
            print_members(file, value, indent + INDENT);
        } else if (json_array_size(value) == 0) {
            fprintf(file, "%*s%-*s  none\n", indent, "", width, key);
        } else {
            fprintf(file, "%*s%s\n", indent, "", key);
            print_array(file, value, indent + INDENT);
        }
    }
}

void print_object(FILE *file, json_t *object) {
    print_members(file, object, 0);
}

void print_json(FILE *file, json_t *object) {
    json_dumpf(object, file, JSON_INDENT(2));
    fputc('\n', file);
}

/* --- modes and times -------------------------------------------------------------------------- */

static char type_letter(uint32_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG:
        return '-';
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFCHR:
        return 'c';
    case S_IFBLK:
        return 'b';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    default:
        return '?';
    }
}

void mode_text(uint32_t mode, char text[MODE_TEXT_SIZE]) {
    static const char letters[] = "rwxrwxrwx";

    text[0] = type_letter(mode);
    for (int i = 0; i < 9; i++)
        text[1 + i] = mode & (0400u >> i) ? letters[i] : '-';
    if (mode & S_ISUID)
        text[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        text[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        text[9] = mode & S_IXOTH ? 't' : 'T';
    text[10] = '\0';
}

void time_text(struct timestamp time, char text[TIME_TEXT_SIZE]) {
    time_t seconds = (time_t)time.seconds;
    struct tm parts;
    size_t length = gmtime_r(&seconds, &parts)
                        ? strftime(text, TIME_TEXT_SIZE - 10, "%Y-%m-%d %H:%M:%S", &parts)
                        : 0;

    if (length == 0)
        length = (size_t)snprintf(text, TIME_TEXT_SIZE - 10, "@%" PRId64, time.seconds);
    snprintf(text + length, TIME_TEXT_SIZE - length, ".%09" PRIu32, time.nanoseconds);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/describe.h.
 */
#include "fs/describe.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

void describe_number(json_t *object, const char *key, uint64_t number) {
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

void describe_text(json_t *object, const char *key, const char *text) {
    json_object_set_new(object, key, json_string(text));
}

void describe_bool(json_t *object, const char *key, bool value) {
    json_object_set_new(object, key, json_boolean(value));
}

/* Bytes of a name from the disk, which need not be UTF-8: what is not printable becomes '?'. */
void describe_name(json_t *object, const char *key, const char *name, size_t length) {
    char text[256];
    size_t used = 0;
    for (; used < length && used < sizeof(text) - 1 && name[used]; used++)
        text[used] = name[used] >= ' ' && name[used] <= '~' ? name[used] : '?';
    text[used] = '\0';
    describe_text(object, key, text);
}

void describe_fields(json_t *object, const struct describe_field *fields, const void *record) {
    for (const struct describe_field *field = fields; field->name; field++) {
        const uint8_t *bytes = (const uint8_t *)record + field->offset;
        uint64_t value = 0;
        for (int i = field->width - 1; i >= 0; i--)
            value = value << 8 | bytes[i];
        describe_number(object, field->name, value);
    }
}

void describe_time(json_t *object, const char *key, int64_t seconds) {
    time_t time = (time_t)seconds;
    struct tm parts;
    char text[64];
    if (gmtime_r(&time, &parts) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts))
        describe_text(object, key, text);
}

/* As RFC 9562 writes it. */
void describe_uuid(json_t *object, const char *key, const uint8_t uuid[16]) {
    char text[37];
    size_t used = 0;
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%02x", dash ? "-" : "", uuid[i]);
    }
    describe_text(object, key, text);
}

const char *describe_type(uint32_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "regular file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symbolic link";
    case S_IFCHR:
        return "character device";
    case S_IFBLK:
        return "block device";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    default:
        return "none";
    }
}

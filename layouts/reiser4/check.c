/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/layout.h; how it is done:
 * layouts/reiser4/check.h.
 */
#include "layouts/reiser4/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_CACHE_BYTES (32u << 20)
#define OBJECTS_MIN       1024u

/* --- findings --------------------------------------------------------------------------------- */

static void emit(struct reiser4_check *check, enum check_severity severity, const char *text) {
    check->report->wrong += severity == CHECK_WRONG;
    if (check->report->finding)
        check->report->finding(check->report->context, severity, text);
}

static void emit_formatted(struct reiser4_check *check, enum check_severity severity,
                           const char *format, va_list args) {
    char text[512];

    vsnprintf(text, sizeof(text), format, args);
    emit(check, severity, text);
}

void reiser4_check_wrong(struct reiser4_check *check, const char *format, ...) {
    va_list args;

    va_start(args, format);
    emit_formatted(check, CHECK_WRONG, format, args);
    va_end(args);
}

void reiser4_check_note(struct reiser4_check *check, const char *format, ...) {
    va_list args;

    va_start(args, format);
    emit_formatted(check, CHECK_NOTE, format, args);
    va_end(args);
}

/* What would have been logged at mount, or later, is a finding here. */
static void log_to_finding(void *context, enum log_level level, const char *text) {
    emit(context, level == LOG_LEVEL_ERROR ? CHECK_WRONG : CHECK_NOTE, text);
}

/* --- objects ---------------------------------------------------------------------------------- */

static struct reiser4_check_object *probe(const struct reiser4_check *check, uint64_t oid) {
    size_t at = (size_t)(oid * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (check->room - 1);

    while (check->object[at].object.oid != 0 && check->object[at].object.oid != oid)
        at = (at + 1) & (check->room - 1);
    return &check->object[at];
}

static int objects_grow(struct reiser4_check *check) {
    struct reiser4_check_object *old = check->object;
    size_t old_room = check->room, room = old_room ? old_room * 2 : OBJECTS_MIN;
    struct reiser4_check_object *larger = calloc(room, sizeof(*larger));

    if (!larger)
        return -ENOMEM;
    check->object = larger;
    check->room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].object.oid != 0)
            *probe(check, old[i].object.oid) = old[i];
    free(old);
    return 0;
}

struct reiser4_check_object *reiser4_check_object_of(struct reiser4_check *check, uint64_t oid) {
    if (check->count >= check->room / 4 * 3 && objects_grow(check) != 0)
        return NULL;
    struct reiser4_check_object *object = probe(check, oid);
    check->count += object->object.oid == 0;
    object->object.oid = oid;
    return object;
}

struct reiser4_check_object *reiser4_check_object_find(const struct reiser4_check *check,
                                                       uint64_t oid) {
    struct reiser4_check_object *object = check->room ? probe(check, oid) : NULL;

    return object && object->object.oid == oid ? object : NULL;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int take_up(struct reiser4_check *check) {
    struct options options;
    int error = options_init(&options, reiser4_option_table, OPTION_MOUNT, check->volume.log);

    check->volume.read_only = true;
    if (!error) /* a wrong bitmap is told later, and must not keep from looking at the rest */
        error = options_parse(&options, "dont_load_bitmap");
    if (!error)
        error = reiser4_mount(&check->volume, &options);
    options_free(&options);
    if (!error)
        check->r4 = reiser4_of(&check->volume);
    return error;
}

static int check_volume(struct reiser4_check *check) {
    int error;

    check->complete = true;
    check->used = calloc(check->r4->space.region_count, sizeof(*check->used));
    if (!check->used)
        return -ENOMEM;
    error = reiser4_check_supers(check);
    if (!error)
        error = reiser4_check_tree(check);
    if (!error)
        error = reiser4_check_objects(check);
    return error ? error : reiser4_check_space(check);
}

static int check_close(struct reiser4_check *check, int error) {
    int closed = 0;

    if (check->r4) {
        for (uint64_t i = 0; check->used && i < check->r4->space.region_count; i++)
            free(check->used[i]);
        closed = reiser4_unmount(&check->volume);
    }
    free(check->used);
    free(check->object);
    volume_destroy_bare(&check->volume);
    free(check);
    return error ? error : closed;
}

int reiser4_check(struct device *device, const struct log *log, struct check_report *report) {
    struct reiser4_check *check = calloc(1, sizeof(*check));

    if (!check)
        return -ENOMEM;
    const struct log findings = {log_to_finding, check, log ? log->threshold : LOG_LEVEL_WARNING};
    check->report = report;
    int error = volume_init_bare(&check->volume, device, &findings, CHECK_CACHE_BYTES);
    if (error) {
        free(check);
        return error;
    }
    error = take_up(check);
    if (!error)
        error = check_volume(check);
    error = check_close(check, error);
    /* Damage that ended the examination has been reported as a finding. */
    return report->wrong > 0 && (error == -EUCLEAN || error == -ENOTSUP) ? 0 : error;
}

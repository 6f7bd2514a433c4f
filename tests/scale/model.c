/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: see tests/scale/model.h.
 */
#include "tests/scale/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void die(const char *format, ...) {
    va_list arguments;

    fflush(stdout);
    fputs("scale: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* --- objects ---------------------------------------------------------------------------------- */

static struct object *model_append(struct model *model) {
    if (model->count == model->room) {
        model->room = model->room ? 2 * model->room : 1024;
        model->objects = reallocarray(model->objects, model->room, sizeof(*model->objects));
        if (!model->objects)
            die("out of memory");
    }
    struct object *object = &model->objects[model->count++];
    memset(object, 0, sizeof(*object));
    return object;
}

void model_init(struct model *model, uint64_t seed) {
    *model = (struct model){.random = {.state = seed}};
    model_append(model)->mode = S_IFDIR | 0755;
}

void model_free(struct model *model) {
    free(model->objects);
    *model = (struct model){0};
}

uint32_t model_index(const struct model *model, const struct object *object) {
    return (uint32_t)(object - model->objects);
}

/* Half of the names are short, half long enough to make directory blocks split at odd places. */
void model_rename(struct model *model, struct object *object) {
    uint64_t bits = random_next(&model->random);

    snprintf(object->name, sizeof(object->name), "%x-%.*s%x", model_index(model, object),
             bits & 1 ? (int)(bits >> 1 & 31) : 0, "a_name_that_is_longer_than_most_",
             (uint32_t)(bits >> 32) & 0xffff);
}

struct object *model_new(struct model *model, uint32_t parent, const char *name, uint32_t mode) {
    struct object *object = model_append(model);

    object->parent = parent;
    object->mode = mode;
    object->seed = random_next(&model->random);
    if (name)
        snprintf(object->name, sizeof(object->name), "%s", name);
    else
        model_rename(model, object);
    return object;
}

void model_made(struct model *model, const struct object *object) {
    model->objects[object->parent].children++;
}

void model_gone(struct model *model, struct object *object) {
    model->objects[object->parent].children--;
    object->mode = 0;
}

struct object *model_pick(struct model *model, uint32_t type) {
    for (int attempt = 0; attempt < 10000; attempt++) {
        struct object *object = &model->objects[random_below(&model->random, model->count)];
        if ((object->mode & S_IFMT) == type)
            return object;
    }
    return NULL;
}

bool model_below(const struct model *model, const struct object *object,
                 const struct object *above) {
    const struct object *root = &model->objects[MODEL_ROOT];

    while (object != above && object != root)
        object = &model->objects[object->parent];
    return object == above;
}

const char *model_path(const struct model *model, const struct object *object) {
    static char path[4096];
    char *start = path + sizeof(path) - 1;
    const struct object *root = &model->objects[MODEL_ROOT];

    for (; object != root; object = &model->objects[object->parent]) {
        size_t length = strlen(object->name);
        if (start < path + length + 1)
            break;
        start -= length;
        memcpy(start, object->name, length);
        *--start = '/';
    }
    return *start ? start : "/";
}

/* --- in a file between two runs --------------------------------------------------------------- */

void model_save(const struct model *model, const char *path) {
    FILE *file = fopen(path, "w");

    if (!file)
        die("%s: cannot be written", path);
    fprintf(file, "%" PRIu64 "\n", model->random.state);
    for (uint32_t i = 1; i < model->count; i++) {
        const struct object *object = &model->objects[i];
        fprintf(file, "%s %u %o %u %" PRIu64 " %" PRIu64 " %" PRId64 "\n", object->name,
                object->parent, object->mode, object->sparse, object->size, object->seed,
                object->mtime);
    }
    if (fclose(file) != 0)
        die("%s: cannot be written", path);
}

void model_load(struct model *model, const char *path) {
    FILE *file = fopen(path, "r");
    struct object read = {0};

    model_init(model, 0);
    if (!file || fscanf(file, "%" SCNu64, &model->random.state) != 1)
        die("%s: cannot be read", path);
    while (fscanf(file, "%47s %u %o %u %" SCNu64 " %" SCNu64 " %" SCNd64, read.name, &read.parent,
                  &read.mode, &read.sparse, &read.size, &read.seed, &read.mtime) == 7)
        *model_append(model) = read;
    if (ferror(file) || !feof(file))
        die("%s: not a model", path);
    fclose(file);
    for (uint32_t i = 1; i < model->count; i++) {
        if (model->objects[i].parent >= model->count)
            die("%s: not a model", path);
        if (model->objects[i].mode)
            model_made(model, &model->objects[i]);
    }
}

/* --- contents --------------------------------------------------------------------------------- */

static void pattern_fill(uint64_t seed, uint64_t offset, uint8_t *buffer, size_t length) {
    while (length > 0) {
        struct random random = {.state = seed + offset / 8};
        uint64_t word = random_next(&random);
        size_t skip = offset % 8, bytes = 8 - skip < length ? 8 - skip : length;
        memcpy(buffer, (const uint8_t *)&word + skip, bytes);
        buffer += bytes;
        offset += bytes;
        length -= bytes;
    }
}

/* They end at fifths of the size, the last one at the end. */
void content_piece(const struct object *file, uint32_t number, uint64_t *start, uint64_t *end) {
    *end = file->size / CONTENT_PIECES * (number + 1);
    if (number == CONTENT_PIECES - 1)
        *end = file->size;
    *start = *end - CONTENT_PIECE_BYTES;
}

void content_fill(const struct object *file, uint64_t offset, uint8_t *buffer, size_t length) {
    if (!file->sparse) {
        pattern_fill(file->seed, offset, buffer, length);
        return;
    }
    memset(buffer, 0, length);
    for (uint32_t i = 0; i < CONTENT_PIECES; i++) {
        uint64_t start, end;
        content_piece(file, i, &start, &end);
        if (start < offset)
            start = offset;
        if (end > offset + length)
            end = offset + length;
        if (start < end)
            pattern_fill(file->seed, start, buffer + (start - offset), (size_t)(end - start));
    }
}

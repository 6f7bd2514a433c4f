/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench (over libarchive). See source.h.
 * Strings and contents live in an arena of large pieces, since they are all freed together. Paths
 * are found through an open-addressing hash table of entry indices.
 */
#include "bench/source.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/source_private.h"

#define ARENA_PIECE (1u << 20)

struct arena_piece {
    struct arena_piece *next;
    char bytes[];
};

struct arena {
    struct arena_piece *pieces;
    char *free;
    size_t room;
};

struct path_index {
    uint32_t *slots; /* entry index + 1; 0: empty */
    uint32_t size;   /* a power of two, more than twice the entries */
};

/* --- the arena -------------------------------------------------------------------------------- */

void *source_allocate(struct source *source, size_t size) {
    struct arena *arena = source->arena;
    void *result;

    size = (size + 7u) & ~(size_t)7u;
    if (size > arena->room) {
        size_t room = size > ARENA_PIECE / 4 ? size : ARENA_PIECE;
        struct arena_piece *piece = malloc(sizeof(*piece) + room);
        if (!piece)
            return NULL;
        piece->next = arena->pieces;
        arena->pieces = piece;
        if (room == size) /* a piece of its own; the current one stays in use */
            return piece->bytes;
        arena->free = piece->bytes;
        arena->room = room;
    }
    result = arena->free;
    arena->free += size;
    arena->room -= size;
    return result;
}

static char *arena_text(struct source *source, const char *text, size_t length) {
    char *copy = source_allocate(source, length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* --- finding entries by parent and name ------------------------------------------------------- */

static uint32_t hash_entry(uint32_t parent, const char *name, size_t length) {
    uint64_t hash = UINT64_C(14695981039346656037) ^ parent; /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return (uint32_t)(hash ^ hash >> 32);
}

static void index_put(struct source *source, uint32_t number) {
    const struct source_entry *entry = &source->entries[number];
    struct path_index *index = source->index;
    uint32_t slot = hash_entry(entry->parent, entry->name, strlen(entry->name));

    while (index->slots[slot &= index->size - 1])
        slot++;
    index->slots[slot] = number + 1;
}

static int index_grow(struct source *source) {
    struct path_index *index = source->index;
    uint32_t size = index->size ? index->size * 2 : 4096;
    uint32_t *slots = calloc(size, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    free(index->slots);
    index->slots = slots;
    index->size = size;
    for (uint32_t i = 0; i < source->count; i++)
        index_put(source, i);
    return 0;
}

static uint32_t index_find(const struct source *source, uint32_t parent, const char *name,
                           size_t length) {
    const struct path_index *index = source->index;
    uint32_t slot = hash_entry(parent, name, length);

    for (; index->size && index->slots[slot &= index->size - 1]; slot++) {
        uint32_t number = index->slots[slot] - 1;
        const struct source_entry *entry = &source->entries[number];
        if (entry->parent == parent && strncmp(entry->name, name, length) == 0 &&
            entry->name[length] == '\0')
            return number;
    }
    return SOURCE_ROOT;
}

static int append_entry(struct source *source, uint32_t parent, const char *name, size_t length,
                        uint32_t mode, struct timestamp mtime) {
    struct source_entry *entry;

    if (source->count == source->capacity) {
        uint32_t capacity = source->capacity ? source->capacity * 2 : 1024;
        struct source_entry *entries =
            reallocarray(source->entries, capacity, sizeof(*source->entries));
        if (!entries)
            return -ENOMEM;
        source->entries = entries;
        source->capacity = capacity;
    }
    if (source->index->size <= source->count * 2 && index_grow(source))
        return -ENOMEM;
    entry = &source->entries[source->count];
    *entry = (struct source_entry){
        .name = arena_text(source, name, length),
        .parent = parent,
        .depth = parent == SOURCE_ROOT ? 0 : source->entries[parent].depth + 1,
        .mode = mode,
        .mtime = mtime,
    };
    if (!entry->name)
        return -ENOMEM;
    index_put(source, source->count++);
    return 0;
}

int source_add(struct source *source, const char *path, uint32_t mode, struct timestamp mtime,
               struct source_entry **entry) {
    uint32_t parent = SOURCE_ROOT;

    for (;;) {
        size_t length = strcspn(path, "/");
        const char *next = path + length + strspn(path + length, "/");
        uint32_t number = index_find(source, parent, path, length);
        bool last = *next == '\0';
        int error = 0;

        if (length == 0 || length > 255 || (length == 2 && memcmp(path, "..", 2) == 0))
            return -EINVAL;
        if (length == 1 && path[0] == '.' && !last) {
            path = next;
            continue;
        }
        if (length == 1 && path[0] == '.')
            return -EINVAL;
        if (number == SOURCE_ROOT) {
            number = source->count;
            error = append_entry(source, parent, path, length, last ? mode : S_IFDIR | 0755, mtime);
        } else if (!last && !S_ISDIR(source->entries[number].mode)) {
            error = -ENOTDIR;
        } else if (last && !(S_ISDIR(mode) && S_ISDIR(source->entries[number].mode))) {
            error = -EEXIST;
        } else if (last) {
            source->entries[number].mode = mode;
            source->entries[number].mtime = mtime;
        }
        if (error)
            return error;
        if (last) {
            if (entry)
                *entry = &source->entries[number];
            return 0;
        }
        parent = number;
        path = next;
    }
}

int source_find(struct source *source, const char *path, struct source_entry **entry) {
    uint32_t number = SOURCE_ROOT;

    for (;;) {
        size_t length = strcspn(path, "/");
        if (length != 1 || path[0] != '.') {
            number = index_find(source, number, path, length);
            if (number == SOURCE_ROOT)
                return -ENOENT;
        }
        path += length + strspn(path + length, "/");
        if (*path == '\0')
            break;
    }
    if (number == SOURCE_ROOT)
        return -ENOENT;
    *entry = &source->entries[number];
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

int source_create(struct source **result) {
    struct source *source = calloc(1, sizeof(*source));

    if (!source)
        return -ENOMEM;
    source->arena = calloc(1, sizeof(*source->arena));
    source->index = calloc(1, sizeof(*source->index));
    if (!source->arena || !source->index) {
        source_close(source);
        return -ENOMEM;
    }
    *result = source;
    return 0;
}

void source_close(struct source *source) {
    if (!source)
        return;
    while (source->arena && source->arena->pieces) {
        struct arena_piece *piece = source->arena->pieces;
        source->arena->pieces = piece->next;
        free(piece);
    }
    if (source->index)
        free(source->index->slots);
    free(source->arena);
    free(source->index);
    free(source->pool);
    free(source->entries);
    free(source);
}

void source_finish(struct source *source) {
    source->files = source->directories = source->symlinks = 0;
    source->bytes = 0;
    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        if (S_ISDIR(entry->mode))
            source->directories++;
        else if (S_ISLNK(entry->mode))
            source->symlinks++;
        else
            source->files++;
        source->bytes += entry->size;
    }
}

int source_find_installed(char path[SOURCE_PATH_MAX]) {
    static const char *const patterns[] = {"/usr/src/linux-source-*.tar.*",
                                           "/usr/src/linux-headers-*-common"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) == 0) {
            size_t length = strlen(found.gl_pathv[0]);
            bool fits = length < SOURCE_PATH_MAX;
            if (fits)
                memcpy(path, found.gl_pathv[0], length + 1);
            globfree(&found);
            if (fits)
                return 0;
        }
    }
    return -ENOENT;
}

int source_open(const char *path, const struct log *log, struct source **result) {
    struct source *source;
    struct stat stat_buffer;
    int error;

    if (stat(path, &stat_buffer) < 0) {
        error = -errno;
        log_error(log, "%s: %s", path, strerror(-error));
        return error;
    }
    error = source_create(&source);
    if (error)
        return error;
    if (S_ISDIR(stat_buffer.st_mode))
        error = source_load_directory(source, path, log);
    else
        error = source_load_archive(source, path, log);
    source_finish(source);
    if (!error && source->files == 0) {
        log_error(log, "%s: holds no regular file", path);
        error = -EINVAL;
    }
    if (error) {
        source_close(source);
        return error;
    }
    *result = source;
    return 0;
}

/* --- thinning --------------------------------------------------------------------------------- */

/* Marks the directories whose files stay. Walking in archive order, a directory is taken whenever
 * the share taken so far has fallen behind the share wanted. */
static void choose_directories(const struct source *source, const uint32_t *held, uint32_t files,
                               bool *keep) {
    uint64_t seen = 0, kept = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        if (held[i] == 0)
            continue;
        seen += held[i];
        if ((kept + held[i] / 2) * source->files <= seen * files) {
            keep[i] = true;
            kept += held[i];
        }
    }
}

/* Marks every entry that stays: those in a chosen directory, and all directories above them. */
static void choose_entries(const struct source *source, const bool *chosen, bool *keep) {
    for (uint32_t i = source->count; i-- > 0;) {
        const struct source_entry *entry = &source->entries[i];
        if (!S_ISDIR(entry->mode))
            keep[i] = entry->parent == SOURCE_ROOT || chosen[entry->parent];
        if (keep[i] && entry->parent != SOURCE_ROOT)
            keep[entry->parent] = true;
    }
}

static void drop_others(struct source *source, const bool *keep, uint32_t *moved) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        if (!keep[i])
            continue;
        moved[i] = count;
        source->entries[count] = source->entries[i];
        if (source->entries[count].parent != SOURCE_ROOT)
            source->entries[count].parent = moved[source->entries[count].parent];
        count++;
    }
    source->count = count;
}

int source_thin(struct source *source, uint32_t files) {
    uint32_t *held; /* files in each directory; then each entry's new index */
    bool *keep, *chosen;

    if (files >= source->files)
        return 0;
    held = calloc(source->count, sizeof(*held));
    chosen = calloc(source->count, sizeof(*chosen));
    keep = calloc(source->count, sizeof(*keep));
    if (held && keep && chosen) {
        for (uint32_t i = 0; i < source->count; i++) {
            const struct source_entry *entry = &source->entries[i];
            if (S_ISREG(entry->mode) && entry->parent != SOURCE_ROOT)
                held[entry->parent]++;
        }
        choose_directories(source, held, files, chosen);
        choose_entries(source, chosen, keep);
        drop_others(source, keep, held);
        source_finish(source);
    }
    bool failed = !held || !keep || !chosen;
    free(held);
    free(chosen);
    free(keep);
    return failed ? -ENOMEM : 0;
}

/* --- contents --------------------------------------------------------------------------------- */

size_t source_content(const struct source *source, const struct source_entry *entry,
                      uint64_t offset, const char **data) {
    uint64_t start, room;

    if (offset >= entry->size)
        return 0;
    if (entry->content) {
        *data = entry->content + offset;
        return (size_t)(entry->size - offset);
    }
    start = (entry->pool_start + offset) % source->pool_size;
    room = source->pool_size - start;
    *data = source->pool + start;
    return (size_t)(room < entry->size - offset ? room : entry->size - offset);
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench (over libarchive). Fills a source from an archive or a directory.
 * What is kept: regular files, directories, symlinks. A hard link in an archive becomes a file of
 * its own with the same contents. Anything else is counted in source->skipped.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/source_private.h"

#define READ_BLOCK (1u << 18)

/* --- archives --------------------------------------------------------------------------------- */

static struct timestamp archive_mtime(struct archive_entry *from) {
    return (struct timestamp){.seconds = archive_entry_mtime(from),
                              .nanoseconds = (uint32_t)archive_entry_mtime_nsec(from)};
}

static int load_content(struct source *source, struct archive *archive, uint64_t size,
                        const char **content) {
    char *bytes = source_allocate(source, size ? size : 1);
    uint64_t filled = 0;

    if (!bytes)
        return -ENOMEM;
    while (filled < size) {
        la_ssize_t got = archive_read_data(archive, bytes + filled, (size_t)(size - filled));
        if (got <= 0)
            return -EIO;
        filled += (uint64_t)got;
    }
    *content = bytes;
    return 0;
}

/* The entry that a hard link names, made into a copy. */
static int add_hard_link(struct source *source, const char *path, const char *target,
                         struct timestamp mtime) {
    struct source_entry *first, *copy;
    struct source_entry found;
    int error = source_find(source, target, &first);

    if (error || !S_ISREG(first->mode))
        return -EINVAL;
    found = *first; /* adding moves the entries */
    error = source_add(source, path, found.mode, mtime, &copy);
    if (error)
        return error;
    copy->size = found.size;
    copy->content = found.content;
    return 0;
}

static int add_from_archive(struct source *source, struct archive *archive,
                            struct archive_entry *from) {
    const char *path = archive_entry_pathname(from);
    struct source_entry *entry;
    mode_t mode = archive_entry_mode(from);
    int error;

    while (path && (path[0] == '/' || (path[0] == '.' && path[1] == '/')))
        path++;
    if (!path || path[0] == '\0' || strcmp(path, ".") == 0)
        return 0;
    if (archive_entry_hardlink(from))
        return add_hard_link(source, path, archive_entry_hardlink(from), archive_mtime(from));
    if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode)) {
        source->skipped++;
        return 0;
    }
    error = source_add(source, path, mode, archive_mtime(from), &entry);
    if (error)
        return error;
    if (S_ISLNK(mode)) {
        const char *target = archive_entry_symlink(from);
        char *copy = target ? source_allocate(source, strlen(target) + 1) : NULL;
        if (!copy)
            return target ? -ENOMEM : -EINVAL;
        entry->target = strcpy(copy, target);
    }
    if (!S_ISREG(mode))
        return 0;
    entry->size = (uint64_t)archive_entry_size(from);
    return load_content(source, archive, entry->size, &entry->content);
}

static int read_entries(struct source *source, struct archive *archive, const char *path,
                        const struct log *log) {
    struct archive_entry *from;
    int status;

    while ((status = archive_read_next_header(archive, &from)) >= ARCHIVE_WARN) {
        if (status == ARCHIVE_EOF)
            return 0;
        int error = add_from_archive(source, archive, from);
        if (error) {
            log_error(log, "%s: archive member \"%s\": %s", path, archive_entry_pathname(from),
                      strerror(-error));
            return error;
        }
    }
    log_error(log, "%s: not a readable archive: %s", path, archive_error_string(archive));
    return -EINVAL;
}

int source_load_archive(struct source *source, const char *path, const struct log *log) {
    struct archive *archive = archive_read_new();
    int error;

    if (!archive)
        return -ENOMEM;
    archive_read_support_filter_all(archive);
    archive_read_support_format_all(archive);
    if (archive_read_open_filename(archive, path, READ_BLOCK) != ARCHIVE_OK) {
        log_error(log, "%s: %s", path, archive_error_string(archive));
        error = -EINVAL;
    } else {
        error = read_entries(source, archive, path, log);
    }
    archive_read_free(archive);
    snprintf(source->description, sizeof(source->description), "archive %.150s", path);
    return error;
}

/* --- directories ------------------------------------------------------------------------------ */

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int read_file(int dir, const char *name, char *bytes, uint64_t size) {
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint64_t filled = 0;
    int error = 0;

    if (fd < 0)
        return -errno;
    while (filled < size && !error) {
        ssize_t got = read(fd, bytes + filled, (size_t)(size - filled));
        if (got < 0)
            error = -errno;
        else if (got == 0)
            error = -EIO; /* it has shrunk since it was looked at */
        else
            filled += (uint64_t)got;
    }
    close(fd);
    return error;
}

static int read_target(struct source *source, int dir, const char *name, size_t size,
                       const char **target) {
    char *text = source_allocate(source, size + 1);
    ssize_t got;

    if (!text)
        return -ENOMEM;
    got = readlinkat(dir, name, text, size);
    if (got < 0)
        return -errno;
    text[got] = '\0';
    *target = text;
    return 0;
}

static int add_from_directory(struct source *source, int dir, const char *path, const char *name,
                              const struct stat *stat) {
    struct timestamp mtime = {.seconds = stat->st_mtim.tv_sec,
                              .nanoseconds = (uint32_t)stat->st_mtim.tv_nsec};
    struct source_entry *entry;
    int error = source_add(source, path, stat->st_mode, mtime, &entry);
    char *bytes;

    if (error || S_ISDIR(stat->st_mode))
        return error;
    if (S_ISLNK(stat->st_mode))
        return read_target(source, dir, name, (size_t)stat->st_size, &entry->target);
    entry->size = (uint64_t)stat->st_size;
    bytes = source_allocate(source, entry->size ? entry->size : 1);
    if (!bytes)
        return -ENOMEM;
    entry->content = bytes;
    return read_file(dir, name, bytes, entry->size);
}

static int load_tree(struct source *source, int dir, const char *prefix, const struct log *log);

static int load_name(struct source *source, int dir, const char *prefix, const char *name,
                     const struct log *log) {
    char path[SOURCE_PATH_MAX];
    struct stat stat;
    int error = 0, child;

    if (snprintf(path, sizeof(path), "%s%s", prefix, name) >= (int)sizeof(path) - 1)
        error = -ENAMETOOLONG;
    else if (fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
        error = -errno;
    else if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode) && !S_ISLNK(stat.st_mode))
        source->skipped++;
    else
        error = add_from_directory(source, dir, path, name, &stat);
    if (error) {
        log_error(log, "%s%s: %s", prefix, name, strerror(-error));
        return error;
    }
    if (!S_ISDIR(stat.st_mode))
        return 0;
    child = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child < 0) {
        error = -errno;
        log_error(log, "%s: %s", path, strerror(-error));
        return error;
    }
    strcat(path, "/");
    error = load_tree(source, child, path, log);
    close(child);
    return error;
}

static int load_tree(struct source *source, int dir, const char *prefix, const struct log *log) {
    struct dirent **names;
    int count = scandirat(dir, ".", &names, not_dot, by_bytes);
    int error = 0;

    if (count < 0) {
        error = -errno;
        log_error(log, "%s: %s", prefix, strerror(-error));
        return error;
    }
    for (int i = 0; i < count; i++) {
        if (!error)
            error = load_name(source, dir, prefix, names[i]->d_name, log);
        free(names[i]);
    }
    free(names);
    return error;
}

int source_load_directory(struct source *source, const char *path, const struct log *log) {
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error;

    if (dir < 0) {
        error = -errno;
        log_error(log, "%s: %s", path, strerror(-error));
        return error;
    }
    error = load_tree(source, dir, "", log);
    close(dir);
    snprintf(source->description, sizeof(source->description), "directory %.150s", path);
    return error;
}

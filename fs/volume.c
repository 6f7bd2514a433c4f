/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. The life of a mounted volume, its attributes, and the periodic work. Interface and
 * locking order: fs/volume.h. The namespace is in volume_names.c, data in volume_data.c.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/volume_internal.h"

#define RELATIME_AGE (24 * 60 * 60) /* seconds; as in Linux */

static const struct option_choice atime_choices[] = {
    {"relatime", "on read, if it is older than mtime, ctime or a day", ATIME_RELATIME},
    {"noatime", "never on read", ATIME_NONE},
    {"strictatime", "at every read", ATIME_STRICT},
    {0},
};

const struct option_spec volume_options[] = {
    {.name = "atime",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "relatime",
     .choices = atime_choices,
     .description = "when reading a file or directory updates its access time"},
    {.name = "diratime",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "on",
     .description = "listing a directory updates its access time, too"},
    {.name = "cache",
     .kind = OPTION_SIZE,
     .scope = OPTION_MOUNT,
     .minimum = 1 << 20,
     .maximum = INT64_C(1) << 46,
     .description = "memory for cached data and metadata, bytes (default: 512M, or the "
                    "modelled machine's)"},
    {0},
};

/* Write-back as Linux does it by default, with a cache that suits a mount. */
static const struct machine wall_machine = {
    .name = "wall",
    .memory_bytes = UINT64_C(512) << 20,
    .dirty_background_percent = 10,
    .dirty_percent = 40,
    .dirty_expire_ns = 30 * NS_PER_SEC,
    .writeback_interval_ns = 5 * NS_PER_SEC,
    .readahead_bytes = 1 << 20,
};

/* --- shared helpers -------------------------------------------------------------------------- */

pthread_rwlock_t *inode_data_lock(struct inode *inode) {
    return &inode->volume->data_locks[inode->ino % VOLUME_DATA_LOCKS];
}

int volume_readable(const struct volume *volume) {
    return volume->shut_down ? -EIO : 0;
}

int volume_writable(const struct volume *volume) {
    return volume->shut_down ? -EIO : volume->read_only ? -EROFS : 0;
}

void volume_fail(struct volume *volume, bool shut_down) {
    volume->failed = true;
    volume->read_only = true;
    if (shut_down)
        volume->shut_down = true;
}

int volume_step_begin(struct volume *volume) {
    volume_note_change(volume);
    return volume->layout->step_begin ? volume->layout->step_begin(volume) : 0;
}

int volume_step_end(struct volume *volume, int error) {
    int end = volume->layout->step_end ? volume->layout->step_end(volume) : 0;

    return error ? error : end;
}

void volume_wait_writes(struct volume *volume) {
    /* A check's volume has no page cache. Of errors who is concerned has been told. */
    if (volume->page_cache)
        (void)writeback_settle_stores(volume);
}

int volume_sync_possible(const struct volume *volume, bool *nothing_to_do) {
    *nothing_to_do = volume->read_only;
    return volume->shut_down ? -EIO : volume->failed ? -EROFS : 0;
}

int volume_change_begin(struct volume *volume) {
    pthread_rwlock_wrlock(&volume->lock);
    int error = volume_writable(volume);
    if (!error)
        error = volume_step_begin(volume);
    if (error)
        pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_change_end(struct volume *volume, int error) {
    error = volume_step_end(volume, error);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

static bool time_before(struct timestamp a, struct timestamp b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.nanoseconds < b.nanoseconds;
}

struct timestamp volume_clamp_time(const struct volume *volume, struct timestamp time) {
    const struct layout_limits *limits = &volume->limits;

    if (time_before(time, limits->time_min))
        return limits->time_min;
    if (time_before(limits->time_max, time))
        return limits->time_max;
    if (limits->time_granularity_ns > 1)
        time.nanoseconds -= time.nanoseconds % limits->time_granularity_ns;
    return time;
}

struct timestamp volume_now(struct volume *volume) {
    return volume_clamp_time(volume, clock_calendar(volume->clock));
}

void volume_end_operation(struct volume *volume) {
    inode_cache_tidy(volume);
    if (clock_is_virtual(volume->clock))
        volume_tick(volume);
}

/* --- mounting -------------------------------------------------------------------------------- */

static unsigned table_count(const struct option_spec *table) {
    unsigned count = 0;

    while (table && table[count].name)
        count++;
    return count;
}

/* The core's options followed by the layout's, as one table. */
static struct option_spec *merge_tables(const struct option_spec *layout_table) {
    unsigned core = table_count(volume_options), own = table_count(layout_table);
    struct option_spec *table = calloc(core + own + 1, sizeof(*table));

    if (table) {
        memcpy(table, volume_options, core * sizeof(*table));
        if (own)
            memcpy(table + core, layout_table, own * sizeof(*table));
    }
    return table;
}

static int parse_options(struct options *options, const struct option_spec *table,
                         const struct layout_type *type, const char *text, const struct log *log) {
    int error = options_init(options, table, OPTION_MOUNT, log);

    if (error)
        return error;
    if (type && type->mount_options)
        error = options_parse(options, type->mount_options);
    if (!error)
        error = options_parse(options, text);
    if (error)
        options_free(options);
    return error;
}

int volume_options_check(const char *type, const char *text, const struct log *log) {
    const struct layout *layout;
    const struct layout_type *layout_type;
    struct options options;
    int error = layout_find(type, &layout, &layout_type);

    if (error)
        return error;
    struct option_spec *table = merge_tables(layout->options);
    if (!table)
        return -ENOMEM;
    error = parse_options(&options, table, layout_type, text, log);
    if (!error)
        options_free(&options);
    free(table);
    return error;
}

static int choose_layout(struct volume *volume, const struct volume_config *config,
                         const struct layout_type **type) {
    struct probe_result probe;

    if (config->type) {
        int error = layout_find(config->type, &volume->layout, type);
        if (error)
            log_error(config->log, "%s: unknown type; 'layoutfs options' lists them", config->type);
        return error;
    }
    *type = NULL;
    int error = layout_probe(config->device, &volume->layout, &probe);
    if (!error && probe.type)
        layout_find(probe.type, &volume->layout, type);
    return error;
}

static void init_locks(struct volume *volume) {
    pthread_rwlock_init(&volume->lock, NULL);
    commit_init(&volume->commit);
    for (unsigned i = 0; i < VOLUME_DATA_LOCKS; i++)
        pthread_rwlock_init(&volume->data_locks[i], NULL);
}

static void destroy_locks(struct volume *volume) {
    pthread_rwlock_destroy(&volume->lock);
    commit_destroy(&volume->commit);
    for (unsigned i = 0; i < VOLUME_DATA_LOCKS; i++)
        pthread_rwlock_destroy(&volume->data_locks[i]);
}

/* The reverse of volume_build, for whatever part of it has happened. */
static void volume_release(struct volume *volume) {
    inode_cache_destroy(volume->inode_cache);
    page_cache_destroy(volume->page_cache);
    volume_destroy_bare(volume);
    destroy_locks(volume);
    free(volume);
}

static int volume_build(struct volume *volume, const struct options *options) {
    int error = inode_cache_create(volume, &volume->inode_cache);

    if (!error)
        error = page_cache_create(volume, &volume->page_cache);
    if (!error)
        error = volume->layout->mount(volume, options);
    return error;
}

static void apply_core_options(struct volume *volume, const struct volume_config *config,
                               const struct options *options) {
    volume->machine = config->machine ? *config->machine : wall_machine;
    if (options_given(options, "cache"))
        volume->machine.memory_bytes = (uint64_t)options_number(options, "cache");
    volume->diratime = options_number(options, "diratime");
    volume->atime_policy = (enum atime_policy)options_number(options, "atime");
}

static int volume_new(const struct volume_config *config, struct volume **out) {
    struct volume *volume = calloc(1, sizeof(*volume));

    if (!volume)
        return -ENOMEM;
    volume->device = config->device;
    volume->clock = config->clock;
    volume->log = config->log;
    volume->direct_read_bytes = config->direct_read_bytes;
    volume->direct_write_bytes = config->direct_write_bytes;
    volume->setid_by_caller = config->setid_by_caller;
    volume->read_only = config->read_only || (config->device && config->device->read_only);
    snprintf(volume->name, sizeof(volume->name), "%s",
             config->device ? config->device->name
             : config->type ? config->type
                            : "volume");
    *out = volume;
    return 0;
}

static int mount_with(struct volume *volume, const struct volume_config *config,
                      const struct layout_type *type) {
    struct option_spec *table = merge_tables(volume->layout->options);
    struct options options;

    if (!table)
        return -ENOMEM;
    int error = parse_options(&options, table, type, config->options, config->log);
    if (!error) {
        apply_core_options(volume, config, &options);
        error = pool_init(&volume->pool, volume->machine.memory_bytes);
        if (!error) {
            init_locks(volume);
            error = volume_build(volume, &options);
            if (error)
                volume_release(volume);
        } else {
            free(volume);
        }
        options_free(&options);
    } else {
        free(volume);
    }
    free(table);
    return error;
}

/* Everything but the device. */
static int volume_shut(struct volume *volume) {
    flusher_stop(volume);
    commit_finish(volume);
    int first_error = volume_sync(volume);
    pthread_rwlock_wrlock(&volume->lock);
    inode_cache_purge(volume);
    int error = volume->layout->unmount(volume);
    pthread_rwlock_unlock(&volume->lock);
    volume_release(volume);
    return first_error ? first_error : error;
}

int volume_init_bare(struct volume *volume, struct device *device, const struct log *log,
                     uint64_t cache_bytes) {
    volume->device = device;
    volume->clock = device->clock;
    volume->log = log;
    snprintf(volume->name, sizeof(volume->name), "%s", device->name);
    return pool_init(&volume->pool, cache_bytes);
}

void volume_destroy_bare(struct volume *volume) {
    if (volume->buffers)
        buffer_cache_destroy(volume->buffers);
    pool_destroy(&volume->pool);
}

int volume_close(struct volume *volume) {
    struct device *device = volume->device;
    int error = volume_shut(volume);

    device_close(device);
    return error;
}

int volume_open(const struct volume_config *config, struct volume **out) {
    const struct layout_type *type;
    struct volume *volume;
    int error = volume_new(config, &volume);

    if (error)
        return error;
    error = choose_layout(volume, config, &type);
    if (!error && !config->device && !(volume->layout->flags & LAYOUT_VOLATILE)) {
        log_error(config->log, "type %s needs an image or device", volume->layout->name);
        error = -EINVAL;
    }
    if (error) {
        free(volume);
        return error;
    }
    error = mount_with(volume, config, type);
    if (error)
        return error;
    volume->writeback_next_ns = clock_now(volume->clock) + volume->machine.writeback_interval_ns;
    volume->commit_due_ns = INT64_MAX;
    if (!clock_is_virtual(volume->clock)) {
        error = flusher_start(volume);
        if (error) {
            volume_shut(volume);
            return error;
        }
    }
    *out = volume;
    return 0;
}

/* --- inodes and attributes ------------------------------------------------------------------- */

int volume_get(struct volume *volume, uint64_t ino, struct inode **inode) {
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume_readable(volume);
    if (!error)
        error = inode_cache_get(volume, ino, inode);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_root(struct volume *volume, struct inode **inode) {
    return volume_get(volume, volume->root_ino, inode);
}

/* The volume's lock is held. */
static struct attributes attributes_of(const struct inode *inode) {
    const struct volume *volume = inode->volume;

    return (struct attributes){
        .ino = inode->ino,
        .size = inode->size,
        .sectors = inode->sectors,
        .atime = inode->atime,
        .mtime = inode->mtime,
        .ctime = inode->ctime,
        .btime = inode->btime,
        .generation = inode->generation,
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .nlink = inode->nlink,
        .rdev = inode->rdev,
        .flags = inode->flags,
        .project = inode->project,
        .block_size = volume->buffers ? buffer_block_size(volume->buffers) : PAGE_SIZE_BYTES,
    };
}

void volume_getattr(struct inode *inode, struct attributes *a) {
    pthread_rwlock_rdlock(&inode->volume->lock);
    *a = attributes_of(inode);
    pthread_rwlock_unlock(&inode->volume->lock);
}

bool inode_atime_due(const struct inode *inode) {
    struct volume *volume = inode->volume;

    if (volume->atime_policy == ATIME_NONE || inode->flags & INODE_NOATIME ||
        (S_ISDIR(inode->mode) && !volume->diratime) || inode_writable(inode))
        return false;
    if (volume->atime_policy == ATIME_STRICT || !time_before(inode->mtime, inode->atime) ||
        !time_before(inode->ctime, inode->atime))
        return true;
    return volume_now(volume).seconds - inode->atime.seconds >= RELATIME_AGE;
}

void inode_atime_update(struct inode *inode) {
    struct volume *volume = inode->volume;

    pthread_rwlock_wrlock(&volume->lock);
    if (inode_atime_due(inode)) {
        inode->atime = volume_now(volume);
        inode_mark_dirty(inode);
    }
    pthread_rwlock_unlock(&volume->lock);
}

#define SETTABLE_FLAGS                                                                             \
    ((uint32_t)(INODE_SYNC | INODE_IMMUTABLE | INODE_APPEND | INODE_NODUMP | INODE_NOATIME))

static void apply_times(struct inode *inode, unsigned mask, const struct attributes *a,
                        struct timestamp now) {
    const struct volume *volume = inode->volume;

    if (mask & SETATTR_ATIME)
        inode->atime = volume_clamp_time(volume, a->atime);
    if (mask & SETATTR_MTIME)
        inode->mtime = volume_clamp_time(volume, a->mtime);
    if (mask & SETATTR_ATIME_NOW)
        inode->atime = now;
    if (mask & SETATTR_MTIME_NOW)
        inode->mtime = now;
    inode->ctime = mask & SETATTR_CTIME ? volume_clamp_time(volume, a->ctime) : now;
}

/* Without the group's right to execute, S_ISGID meant mandatory locking. */
void inode_clear_setid(struct inode *inode) {
    if (S_ISDIR(inode->mode))
        return;
    inode->mode &= ~(uint32_t)S_ISUID;
    if (inode->mode & S_IXGRP)
        inode->mode &= ~(uint32_t)S_ISGID;
}

static uint32_t settable_flags(const struct inode *inode) {
    bool inherit = inode->volume->limits.projects && S_ISDIR(inode->mode);

    return SETTABLE_FLAGS | (inherit ? (uint32_t)INODE_PROJECT_INHERIT : 0);
}

static uint32_t with_flags(const struct inode *inode, uint32_t flags) {
    uint32_t settable = settable_flags(inode);

    return (inode->flags & ~settable) | (flags & settable);
}

static void apply_attributes(struct inode *inode, unsigned mask, const struct attributes *a) {
    if (mask & SETATTR_MODE)
        inode->mode = (inode->mode & S_IFMT) | (a->mode & 07777);
    if (mask & SETATTR_UID)
        inode->uid = a->uid;
    if (mask & SETATTR_GID)
        inode->gid = a->gid;
    bool new_owner = mask & (SETATTR_UID | SETATTR_GID);
    if (mask & SETATTR_KILL_SUID_SGID || (new_owner && !(mask & SETATTR_MODE)))
        inode_clear_setid(inode);
    if (mask & SETATTR_FLAGS)
        inode->flags = with_flags(inode, a->flags);
    if (mask & SETATTR_PROJECT)
        inode->project = a->project;
}

/* What was applied could not be stored. */
static void take_back(struct inode *inode, const struct attributes *before) {
    const unsigned all = SETATTR_MODE | SETATTR_UID | SETATTR_GID | SETATTR_FLAGS | SETATTR_PROJECT;

    apply_attributes(inode, all, before);
    inode->atime = before->atime;
    inode->mtime = before->mtime;
    inode->ctime = before->ctime;
}

/* An immutable or append-only file takes no change but of its flags, and of its access time. */
static int setattr_allowed(const struct inode *inode, unsigned mask) {
    unsigned harmless = SETATTR_FLAGS | SETATTR_PROJECT | SETATTR_CTIME;

    if (inode->past)
        return -EROFS;
    if (inode->flags & INODE_IMMUTABLE && mask & ~harmless)
        return -EPERM;
    harmless |= SETATTR_ATIME_NOW | SETATTR_MTIME_NOW | SETATTR_KILL_SUID_SGID;
    return inode->flags & INODE_APPEND && mask & ~harmless ? -EPERM : 0;
}

static int setattr_step(struct inode *inode, unsigned mask, const struct attributes *a) {
    int error = setattr_allowed(inode, mask);

    if (!error && mask & SETATTR_FLAGS && a->flags & ~inode->flags & ~settable_flags(inode))
        error = -EOPNOTSUPP;
    if (!error && mask & SETATTR_PROJECT && a->project != 0 && !inode->volume->limits.projects)
        error = -EOPNOTSUPP;
    if (!error && mask & SETATTR_MODE)
        error = volume_acl_chmod(inode, a->mode);
    if (error)
        return error;
    const struct attributes before = attributes_of(inode);
    apply_attributes(inode, mask, a);
    apply_times(inode, mask, a, volume_now(inode->volume));
    error = inode_store(inode);
    if (error == -ENOSPC)
        take_back(inode, &before);
    return error;
}

int volume_setattr(struct inode *inode, unsigned mask, const struct attributes *attributes) {
    struct volume *volume = inode->volume;
    bool tried = false;
    int error = 0;

    if (mask & SETATTR_SIZE) {
        error = volume_truncate(inode, attributes->size);
        mask &= ~(unsigned)SETATTR_SIZE;
    }
    if (!error && mask) {
        do {
            commit_point(volume);
            error = volume_change_begin(volume);
            if (!error)
                error = volume_change_end(volume, setattr_step(inode, mask, attributes));
        } while (commit_for_space(volume, error, &tried));
    }
    volume_end_operation(volume);
    return error;
}

/* --- extended attributes --------------------------------------------------------------------- */

/* Formats have room for other names, but Linux gives them no meaning. -ENOTSUP, or -EINVAL for a
 * prefix alone. */
static int xattr_name_check(const char *name) {
    static const char *const prefixes[] = {"user.", "trusted.", "security."};

    if (acl_kind_of(name))
        return 0;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], length) == 0)
            return name[length] ? 0 : -EINVAL;
    }
    return -ENOTSUP;
}

int64_t volume_getxattr(struct inode *inode, const char *name, void *value, size_t size) {
    struct volume *volume = inode->volume;
    int error = volume->layout->xattr_get ? xattr_name_check(name) : -ENOTSUP;

    if (error)
        return error;
    pthread_rwlock_rdlock(&volume->lock);
    int64_t result = volume_readable(volume);
    if (!result)
        result = volume->layout->xattr_get(inode, name, value, size);
    pthread_rwlock_unlock(&volume->lock);
    return result;
}

int64_t volume_listxattr(struct inode *inode, char *list, size_t size) {
    struct volume *volume = inode->volume;

    if (!volume->layout->xattr_list)
        return 0; /* no error, says the kernel: there are none */
    pthread_rwlock_rdlock(&volume->lock);
    int64_t result = volume_readable(volume);
    if (!result)
        result = volume->layout->xattr_list(inode, list, size);
    pthread_rwlock_unlock(&volume->lock);
    return result;
}

/* Sets the attribute, or removes it where value is NULL. */
static int xattr_step(struct inode *inode, const char *name, const void *value, size_t size,
                      int flags) {
    const struct layout *layout = inode->volume->layout;
    unsigned acl = acl_kind_of(name);
    int error;

    if (inode->past)
        return -EROFS;
    if (inode->flags & (INODE_IMMUTABLE | INODE_APPEND))
        return -EPERM;
    if (acl)
        error = volume_acl_set(inode, (enum acl_kind)acl, value, size);
    else if (value)
        error = layout->xattr_set(inode, name, value, size, flags & ~SETXATTR_KILL_SGID);
    else
        error = layout->xattr_remove(inode, name);
    if (error)
        return error;
    if (flags & SETXATTR_KILL_SGID)
        inode->mode &= ~(uint32_t)S_ISGID;
    inode->ctime = volume_now(inode->volume);
    return inode_store(inode);
}

static int xattr_change(struct inode *inode, const char *name, const void *value, size_t size,
                        int flags) {
    struct volume *volume = inode->volume;
    bool tried = false;
    int error;

    do {
        commit_point(volume);
        error = volume_change_begin(volume);
        if (!error)
            error = volume_change_end(volume, xattr_step(inode, name, value, size, flags));
    } while (commit_for_space(volume, error, &tried));
    volume_end_operation(volume);
    return error;
}

int volume_setxattr(struct inode *inode, const char *name, const void *value, size_t size,
                    int flags) {
    int error = inode->volume->layout->xattr_set ? xattr_name_check(name) : -ENOTSUP;

    return error ? error : xattr_change(inode, name, value ? value : "", size, flags);
}

int volume_removexattr(struct inode *inode, const char *name) {
    int error = inode->volume->layout->xattr_remove ? xattr_name_check(name) : -ENOTSUP;

    return error ? error : xattr_change(inode, name, NULL, 0, 0);
}

/* --- the whole volume ------------------------------------------------------------------------ */

int volume_statfs(struct volume *volume, struct volume_usage *usage) {
    *usage =
        (struct volume_usage){0}; /* no byte of it, which goes to programs, is left as it was */
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume_readable(volume);
    if (!error)
        error = volume->layout->statfs(volume, usage);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_sync(struct volume *volume) {
    bool nothing_to_do;
    int error = volume_sync_possible(volume, &nothing_to_do);

    if (error || nothing_to_do)
        return error;
    error = writeback_all(volume);
    int failed = page_cache_take_volume_error(volume);
    int second = commit_wait(volume, NULL, COMMIT_SYNC);
    if (!error)
        error = failed;
    return error ? error : second;
}

void volume_commit_counts(struct volume *volume, struct commit_counts *counts) {
    pthread_mutex_lock(&volume->commit.mutex);
    *counts = (struct commit_counts){volume->commit.asked, volume->commit.made};
    pthread_mutex_unlock(&volume->commit.mutex);
}

/* What a journal keeps from its place until it is committed is dirty still after a sync. */
static int buffers_settle(struct volume *volume) {
    int error;

    if (!volume->buffers || volume_writable(volume))
        return 0;
    pthread_rwlock_rdlock(&volume->lock);
    error = buffer_sync(volume->buffers);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_drop_caches(struct volume *volume) {
    int error = volume_sync(volume);

    if (!error)
        error = buffers_settle(volume);
    if (!error && volume->device)
        error = device_drain(volume->device);
    pthread_rwlock_wrlock(&volume->lock);
    inode_cache_trim(volume, 0);
    pool_lock(&volume->pool);
    pool_shrink(&volume->pool, 0);
    pool_unlock(&volume->pool);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

/* What volume_note_change has said since the last tick. */
static void take_changes(struct volume *volume, int64_t now) {
    unsigned changed = atomic_exchange(&volume->changed, 0);

    if (!changed)
        return;
    volume->changed_ns = now;
    if (volume->idle_next_ns == INT64_MAX)
        volume->idle_next_ns = now;
    if (changed & CHANGED_SINCE_COMMIT && volume->limits.commit_interval_ns &&
        volume->commit_due_ns == INT64_MAX)
        volume->commit_due_ns = now + volume->limits.commit_interval_ns;
}

int volume_tick(struct volume *volume) {
    int64_t now = clock_now(volume->clock);
    const struct layout *layout = volume->layout;
    int error = 0;

    bool committing = commit_progress(volume);
    if (volume_writable(volume))
        return 0;
    take_changes(volume, now);
    if (now >= volume->writeback_next_ns) {
        volume->writeback_next_ns = now + volume->machine.writeback_interval_ns;
        pthread_rwlock_wrlock(&volume->lock);
        error = inode_cache_store_dirty(volume);
        pthread_rwlock_unlock(&volume->lock);
        int second = writeback_periodic(volume);
        if (!error)
            error = second;
    }
    if (now >= volume->commit_due_ns && !committing) {
        volume->commit_due_ns = INT64_MAX;
        volume->commit.wanted = true;
    }
    if (layout->idle && now >= volume->idle_next_ns) {
        pthread_rwlock_wrlock(&volume->lock);
        int second = layout->idle(volume, now, &volume->idle_next_ns);
        pthread_rwlock_unlock(&volume->lock);
        if (!error)
            error = second;
    }
    commit_point(volume); /* of what has been done here, too */
    return error;
}

int volume_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                    json_t **object) {
    if (!volume->layout->describe)
        return -ENOTSUP;
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume->layout->describe(volume, kind, number, object);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_explain(struct inode *inode, json_t **object) {
    struct volume *volume = inode->volume;

    if (!volume->layout->explain)
        return -ENOTSUP;
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume->layout->explain(inode, object);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

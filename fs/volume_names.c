/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. The namespace half of fs/volume.h: look-up, create, link, unlink, rename, readdir.
 *
 * Every change follows one pattern: take the exclusive lock, check, begin a step, let the layout
 * change the directory, adjust link counts and times, store the inodes, end the step. References
 * are given back after the lock is released, since the last one deletes the inode.
 *
 * Invariants:
 *  1. A name is entered only after its inode is complete, and removed before its inode's link count
 *     drops.
 *  2. A directory's link count is 2 plus its subdirectories.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/volume_internal.h"

#define SYMLINKS_MAX 40 /* followed in one path walk, as Linux */

static int name_check(const char *name, uint32_t length) {
    if (length == 0)
        return -ENOENT;
    if (length > NAME_LENGTH_MAX)
        return -ENAMETOOLONG;
    return memchr(name, '/', length) || memchr(name, '\0', length) ? -EINVAL : 0;
}

static bool is_dot_name(const char *name, uint32_t length) {
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

/* What every change below a directory needs; exclusive lock held. */
static int dir_changeable(const struct inode *dir) {
    int error = inode_writable(dir);

    if (error)
        return error;
    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    if (dir->nlink == 0)
        return -ENOENT;
    return dir->flags & INODE_IMMUTABLE ? -EPERM : 0;
}

/* Link counts of directories count their subdirectories, until a format gives up counting: then the
 * count is 1 for good. */

static bool subdir_fits(const struct inode *dir) {
    const struct layout_limits *limits = &dir->volume->limits;
    return dir->nlink < limits->subdir_max || limits->subdirs_uncounted;
}

static void subdir_added(struct inode *dir) {
    if (dir->nlink != 1 && ++dir->nlink > dir->volume->limits.subdir_max)
        dir->nlink = 1;
}

static void subdir_removed(struct inode *dir) {
    if (dir->nlink > 2)
        dir->nlink--;
}

static int find_name(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    clock_charge(dir->volume->clock, COST_LOOKUP, 1);
    return dir->volume->layout->dir_find(dir, name, length, ino);
}

/* -EEXIST, 0, or another error. */
static int name_absent(struct inode *dir, const char *name, uint32_t length) {
    uint64_t ino;
    int error = find_name(dir, name, length, &ino);

    return error == -ENOENT ? 0 : error ? error : -EEXIST;
}

static int find_inode(struct inode *dir, const char *name, uint32_t length, struct inode **inode) {
    struct volume *volume = dir->volume;
    uint64_t ino;
    int error = find_name(dir, name, length, &ino);

    if (error)
        return error;
    error = inode_cache_get(volume, ino, inode);
    if (error == -ESTALE) {
        log_error(volume->log,
                  "%s: directory inode %llu: entry \"%.*s\" names inode %llu, which is "
                  "not in use; run a check",
                  volume->name, (unsigned long long)dir->ino, (int)length, name,
                  (unsigned long long)ino);
        return -EUCLEAN;
    }
    return error;
}

static void touch_dir(struct inode *dir, struct timestamp now) {
    dir->mtime = dir->ctime = now;
    inode_mark_dirty(dir);
}

/* Stores up to two inodes that an operation changed; the first error counts. */
static int store_two(struct inode *a, struct inode *b) {
    int error = a ? inode_store(a) : 0;
    int second = b && b != a ? inode_store(b) : 0;

    return error ? error : second;
}

int volume_lookup(struct inode *dir, const char *name, uint32_t length, struct inode **inode) {
    struct volume *volume = dir->volume;
    int error = name_check(name, length);

    if (error)
        return error;
    pthread_rwlock_rdlock(&volume->lock);
    error = volume_readable(volume);
    if (!error && !S_ISDIR(dir->mode))
        error = -ENOTDIR;
    if (!error)
        error = find_inode(dir, name, length, inode);
    pthread_rwlock_unlock(&volume->lock);
    volume_end_operation(volume);
    return error;
}

/* --- creating -------------------------------------------------------------------------------- */

static void new_inode_fill(struct inode *inode, const struct inode *dir,
                           const struct create_request *request) {
    inode->mode = request->mode;
    inode->uid = request->uid;
    inode->gid = request->gid;
    inode->rdev = request->rdev;
    if (dir->mode & S_ISGID) {
        inode->gid = dir->gid;
        if (S_ISDIR(inode->mode))
            inode->mode |= S_ISGID;
    }
    inode->nlink = S_ISDIR(inode->mode) ? 2 : 1;
    inode->atime = inode->mtime = inode->ctime = inode->btime = volume_now(inode->volume);
}

/* A directory may hand its project on; then only what is of the project can be moved or linked to
 * it. */
static bool hands_project_on(const struct inode *dir) {
    return dir->volume->limits.projects && dir->flags & INODE_PROJECT_INHERIT;
}

static void inherit_project(const struct inode *dir, struct inode *inode) {
    if (!hands_project_on(dir))
        return;
    inode->project = dir->project;
    if (S_ISDIR(inode->mode))
        inode->flags |= INODE_PROJECT_INHERIT;
}

static bool project_forbids(const struct inode *dir, const struct inode *inode) {
    return hands_project_on(dir) && dir->project != inode->project;
}

/* An inode that got no name: the caller's put, as its last one, frees it. */
static void new_inode_fail(struct inode *inode) {
    const struct layout *layout = inode->volume->layout;

    inode->nlink = 0;
    if (!inode_store(inode) && layout->orphan_add)
        (void)layout->orphan_add(inode); /* what went wrong before is what counts */
}

/* Makes all of the inode but its name. On failure inode->ino is 0, or it is the put that frees. */
static int new_inode_make(struct inode *dir, const char *name, uint32_t length, struct inode *inode,
                          const struct create_request *request) {
    const struct layout *layout = dir->volume->layout;

    clock_charge(dir->volume->clock, COST_INODE_CREATE, 1);
    new_inode_fill(inode, dir, request);
    int error = layout->inode_create(dir, name, length, inode);
    if (error)
        return error;
    error = inode_cache_insert(inode);
    if (error) { /* whatever was made belongs to the other inode of that number */
        inode->ino = 0;
        return error;
    }
    inherit_project(dir, inode);
    error = volume_acl_create(dir, inode, request->umask);
    if (!error && S_ISLNK(inode->mode)) {
        inode->size = strlen(request->target);
        error = layout->symlink_write(inode, request->target, (uint32_t)inode->size);
    }
    if (error)
        new_inode_fail(inode);
    return error;
}

/* Makes the inode and its name. On failure nothing is left behind. */
static int create_step(struct inode *dir, const char *name, uint32_t length, struct inode *inode,
                       const struct create_request *request) {
    int error = new_inode_make(dir, name, length, inode, request);

    if (error)
        return error;
    error = dir->volume->layout->dir_insert(dir, name, length, inode);
    if (error) {
        new_inode_fail(inode);
        return error;
    }
    if (S_ISDIR(inode->mode))
        subdir_added(dir);
    touch_dir(dir, inode->ctime);
    return store_two(inode, dir);
}

/* The counterpart of create_step without a name. */
static int create_nameless_step(struct inode *dir, struct inode *inode,
                                const struct create_request *request) {
    const struct layout *layout = dir->volume->layout;
    int error = new_inode_make(dir, NULL, 0, inode, request);

    if (error)
        return error;
    inode->nlink = 0;
    inode->nameless = true;
    error = inode_store(inode);
    return !error && layout->orphan_add ? layout->orphan_add(inode) : error;
}

static int create_locked(struct inode *dir, const char *name, uint32_t length, struct inode *inode,
                         const struct create_request *request) {
    struct volume *volume = dir->volume;
    int error = dir_changeable(dir);

    if (!error && name)
        error = name_absent(dir, name, length);
    if (!error && S_ISDIR(request->mode) && !subdir_fits(dir))
        error = -EMLINK;
    if (!error && S_ISLNK(request->mode) && strlen(request->target) > volume->limits.symlink_max)
        error = -ENAMETOOLONG;
    if (error)
        return error;
    error = volume_step_begin(volume);
    if (error)
        return error;
    return volume_step_end(volume, name ? create_step(dir, name, length, inode, request)
                                        : create_nameless_step(dir, inode, request));
}

/* `name` NULL: without one. */
static int create_once(struct inode *dir, const char *name, uint32_t length,
                       const struct create_request *request, struct inode **out) {
    struct volume *volume = dir->volume;
    struct inode *inode = inode_cache_new(volume);
    int error;

    if (!inode)
        return -ENOMEM;
    commit_point(volume);
    pthread_rwlock_wrlock(&volume->lock);
    error = create_locked(dir, name, length, inode, request);
    bool entered = inode->ino != 0;
    if (error && !entered)
        inode_cache_abandon(inode);
    pthread_rwlock_unlock(&volume->lock);

    if (!error && out)
        *out = inode;
    else if (entered)
        volume_put(inode, 1);
    return error;
}

static int create_inode(struct inode *dir, const char *name, uint32_t length,
                        const struct create_request *request, struct inode **out) {
    bool tried = false;
    int error;

    do
        error = create_once(dir, name, length, request, out);
    while (commit_for_space(dir->volume, error, &tried));
    volume_end_operation(dir->volume);
    return error;
}

int volume_create(struct inode *dir, const char *name, uint32_t length,
                  const struct create_request *request, struct inode **inode) {
    int error = name_check(name, length);

    if (error)
        return error;
    if (is_dot_name(name, length))
        return -EEXIST;
    if (S_ISLNK(request->mode) && (!request->target || !*request->target))
        return -ENOENT;
    return create_inode(dir, name, length, request, inode);
}

int volume_create_nameless(struct inode *dir, const struct create_request *request,
                           struct inode **inode) {
    return S_ISREG(request->mode) ? create_inode(dir, NULL, 0, request, inode) : -EINVAL;
}

/* The inode gets a name, perhaps its first. */
static int link_step(struct inode *inode, struct inode *dir, const char *name, uint32_t length) {
    const struct layout *layout = dir->volume->layout;
    int error = layout->dir_insert(dir, name, length, inode);

    if (error)
        return error;
    bool first = inode->nlink == 0;
    inode->nlink++;
    inode->nameless = false;
    inode->ctime = volume_now(dir->volume);
    touch_dir(dir, inode->ctime);
    error = first && layout->orphan_remove ? layout->orphan_remove(inode) : 0;
    int second = store_two(inode, dir);
    return error ? error : second;
}

static int link_locked(struct inode *inode, struct inode *dir, const char *name, uint32_t length) {
    struct volume *volume = dir->volume;
    int error = dir_changeable(dir);

    if (!error)
        error = inode_writable(inode);
    if (!error && S_ISDIR(inode->mode))
        error = -EPERM;
    if (!error && (inode->flags & (INODE_IMMUTABLE | INODE_APPEND)))
        error = -EPERM;
    if (!error && inode->nlink == 0 && !inode->nameless)
        error = -ENOENT;
    if (!error && project_forbids(dir, inode))
        error = -EXDEV;
    if (!error)
        error = name_absent(dir, name, length);
    if (!error && inode->nlink >= volume->limits.link_max)
        error = -EMLINK;
    if (!error)
        error = volume_step_begin(volume);
    if (error)
        return error;
    return volume_step_end(volume, link_step(inode, dir, name, length));
}

int volume_link(struct inode *inode, struct inode *dir, const char *name, uint32_t length) {
    struct volume *volume = dir->volume;
    bool tried = false;
    int error = name_check(name, length);

    if (error)
        return error;
    do {
        commit_point(volume);
        pthread_rwlock_wrlock(&volume->lock);
        error = link_locked(inode, dir, name, length);
        pthread_rwlock_unlock(&volume->lock);
    } while (commit_for_space(volume, error, &tried));
    volume_end_operation(volume);
    return error;
}

/* --- removing -------------------------------------------------------------------------------- */

/* Takes one name away from an inode (a directory loses both its counts). */
static int drop_link(struct inode *inode, struct timestamp now) {
    struct volume *volume = inode->volume;

    inode->ctime = now;
    inode->nlink = S_ISDIR(inode->mode) ? 0 : inode->nlink - 1;
    int error = inode_store(inode);
    if (!error && inode->nlink == 0 && volume->layout->orphan_add)
        error = volume->layout->orphan_add(inode);
    return error;
}

static int removable(const struct inode *dir, const struct inode *inode, bool directory) {
    if (directory != (bool)S_ISDIR(inode->mode))
        return directory ? -ENOTDIR : -EISDIR;
    if (inode->ino == inode->volume->root_ino)
        return -EBUSY;
    if (inode->past)
        return -EROFS;
    if ((dir->flags & INODE_APPEND) || (inode->flags & (INODE_IMMUTABLE | INODE_APPEND)))
        return -EPERM;
    return inode->nlink == 0 ? -EUCLEAN : 0;
}

static int remove_step(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct timestamp now = volume_now(dir->volume);
    int error = dir->volume->layout->dir_remove(dir, name, length, inode);

    if (error)
        return error;
    if (S_ISDIR(inode->mode))
        subdir_removed(dir);
    touch_dir(dir, now);
    error = inode_store(dir);
    int second = drop_link(inode, now);
    return error ? error : second;
}

static int remove_locked(struct inode *dir, const char *name, uint32_t length, bool directory,
                         struct inode **inode) {
    struct volume *volume = dir->volume;
    int error = dir_changeable(dir);

    if (!error)
        error = find_inode(dir, name, length, inode);
    if (!error)
        error = removable(dir, *inode, directory);
    if (!error && directory)
        error = volume->layout->dir_empty(*inode);
    if (!error)
        error = volume_step_begin(volume);
    if (error)
        return error;
    return volume_step_end(volume, remove_step(dir, name, length, *inode));
}

static int remove_name(struct inode *dir, const char *name, uint32_t length, bool directory) {
    struct volume *volume = dir->volume;
    int error = name_check(name, length);
    bool tried = false;

    if (error)
        return error;
    if (is_dot_name(name, length))
        return !directory ? -EISDIR : length == 1 ? -EINVAL : -ENOTEMPTY;
    do {
        struct inode *inode = NULL;
        commit_point(volume);
        pthread_rwlock_wrlock(&volume->lock);
        error = remove_locked(dir, name, length, directory, &inode);
        pthread_rwlock_unlock(&volume->lock);
        volume_put(inode, 1);
    } while (commit_for_space(volume, error, &tried));
    volume_end_operation(volume);
    return error;
}

int volume_unlink(struct inode *dir, const char *name, uint32_t length) {
    return remove_name(dir, name, length, false);
}

int volume_rmdir(struct inode *dir, const char *name, uint32_t length) {
    return remove_name(dir, name, length, true);
}

/* --- renaming -------------------------------------------------------------------------------- */

/* -EINVAL when `dir` is `ancestor` or lies below it: a directory cannot move into itself. */
static int not_below(struct inode *dir, const struct inode *ancestor) {
    struct volume *volume = dir->volume;
    uint64_t ino = dir->ino;

    for (uint32_t depth = 0; ino != volume->root_ino; depth++) {
        struct inode *inode;

        if (ino == ancestor->ino)
            return -EINVAL;
        if (depth > UINT16_MAX) {
            log_error(volume->log, "%s: directory inode %llu: its parents form a loop; run a check",
                      volume->name, (unsigned long long)dir->ino);
            return -EUCLEAN;
        }
        int error = inode_cache_get(volume, ino, &inode);
        if (error)
            return error == -ESTALE ? -EUCLEAN : error;
        error = find_name(inode, "..", 2, &ino);
        /* Holds a name, so this is never the reference that deletes it. */
        volume_put(inode, 1);
        if (error)
            return error == -ENOENT ? -EUCLEAN : error;
    }
    return ancestor->ino == volume->root_ino ? -EINVAL : 0;
}

static int movable(const struct inode *dir, const struct inode *inode) {
    if (inode->ino == inode->volume->root_ino)
        return -EBUSY;
    if (inode->past)
        return -EROFS;
    if ((dir->flags & INODE_APPEND) || (inode->flags & (INODE_IMMUTABLE | INODE_APPEND)))
        return -EPERM;
    return 0;
}

static int victim_check(const struct rename *r) {
    const struct layout *layout = r->inode->volume->layout;
    bool directory = S_ISDIR(r->inode->mode);

    if (directory && !S_ISDIR(r->victim->mode))
        return -ENOTDIR;
    if (!directory && S_ISDIR(r->victim->mode))
        return -EISDIR;
    if (r->victim->nlink == 0)
        return -EUCLEAN;
    return directory ? layout->dir_empty(r->victim) : 0;
}

/* The inode that the old name is to mean, complete, as all inodes that get a name. */
static int whiteout_make(const struct rename *r) {
    const struct create_request request = {
        .mode = S_IFCHR,
        .uid = r->inode->uid,
        .gid = r->inode->gid,
    };

    int error =
        new_inode_make(r->source_dir, r->source_name, r->source_length, r->whiteout, &request);
    if (error)
        return error;
    error = inode_store(r->whiteout);
    if (error)
        new_inode_fail(r->whiteout);
    return error;
}

/* Everything that can be refused, before anything changes. */
static int rename_check(const struct rename *r) {
    bool exchange = r->flags & RENAME_EXCHANGE_NAMES;
    bool moves = r->source_dir != r->target_dir;
    int error = movable(r->source_dir, r->inode);

    if (!error && (project_forbids(r->target_dir, r->inode) ||
                   (exchange && project_forbids(r->source_dir, r->victim))))
        error = -EXDEV;
    if (!error && r->victim)
        error = movable(r->target_dir, r->victim);
    if (!error && moves && S_ISDIR(r->inode->mode))
        error = not_below(r->target_dir, r->inode);
    if (!error && exchange && moves && S_ISDIR(r->victim->mode))
        error = not_below(r->source_dir, r->victim);
    if (!error && !exchange && r->victim)
        error = victim_check(r);
    if (error || !moves)
        return error;
    bool to_target = S_ISDIR(r->inode->mode) && !(r->victim && S_ISDIR(r->victim->mode));
    bool to_source = exchange && S_ISDIR(r->victim->mode) && !S_ISDIR(r->inode->mode);
    if ((to_target && !subdir_fits(r->target_dir)) || (to_source && !subdir_fits(r->source_dir)))
        return -EMLINK;
    return 0;
}

/* How the two directories' link counts change. */
static void rename_link_counts(const struct rename *r) {
    bool inode_is_dir = S_ISDIR(r->inode->mode);
    bool victim_is_dir = r->victim && S_ISDIR(r->victim->mode);

    if (inode_is_dir)
        subdir_removed(r->source_dir);
    if (victim_is_dir)
        subdir_removed(r->target_dir);
    if (inode_is_dir)
        subdir_added(r->target_dir);
    if (victim_is_dir && r->flags & RENAME_EXCHANGE_NAMES)
        subdir_added(r->source_dir);
}

static int rename_names(const struct rename *r) {
    int error = r->whiteout ? whiteout_make(r) : 0;

    if (error)
        return error;
    error = r->source_dir->volume->layout->dir_rename(r);
    if (error && r->whiteout)
        new_inode_fail(r->whiteout);
    return error;
}

static int rename_step(const struct rename *r) {
    struct volume *volume = r->source_dir->volume;
    int error = rename_names(r);

    if (error)
        return error;
    struct timestamp now = volume_now(volume);
    rename_link_counts(r);
    touch_dir(r->source_dir, now);
    touch_dir(r->target_dir, now);
    r->inode->ctime = now;
    error = store_two(r->source_dir, r->target_dir);
    int second = inode_store(r->inode);
    if (!error)
        error = second;
    if (!r->victim)
        return error;
    if (r->flags & RENAME_EXCHANGE_NAMES) {
        r->victim->ctime = now;
        second = inode_store(r->victim);
    } else {
        second = drop_link(r->victim, now);
    }
    return error ? error : second;
}

/* The victim, if there is one, checked against the flags. */
static int find_victim(struct rename *r, unsigned flags) {
    int error = find_inode(r->target_dir, r->target_name, r->target_length, &r->victim);

    if (error == -ENOENT)
        return flags & RENAME_EXCHANGE ? -ENOENT : 0;
    if (error)
        return error;
    return flags & RENAME_NOREPLACE ? -EEXIST : 0;
}

static int rename_locked(struct rename *r, unsigned flags) {
    struct volume *volume = r->source_dir->volume;
    int error = dir_changeable(r->source_dir);

    if (!error)
        error = dir_changeable(r->target_dir);
    if (!error)
        error = find_inode(r->source_dir, r->source_name, r->source_length, &r->inode);
    if (!error)
        error = find_victim(r, flags);
    if (error || r->inode == r->victim) /* two names of one file: nothing to do */
        return error;
    error = rename_check(r);
    if (!error)
        error = volume_step_begin(volume);
    if (error)
        return error;
    return volume_step_end(volume, rename_step(r));
}

/* `r` has directories and names. */
static int rename_once(struct rename r, unsigned flags) {
    struct volume *volume = r.source_dir->volume;

    if (flags & RENAME_WHITEOUT) {
        r.whiteout = inode_cache_new(volume);
        if (!r.whiteout)
            return -ENOMEM;
    }
    commit_point(volume);
    pthread_rwlock_wrlock(&volume->lock);
    int error = rename_locked(&r, flags);
    if (r.whiteout && r.whiteout->ino == 0) {
        inode_cache_abandon(r.whiteout);
        r.whiteout = NULL;
    }
    pthread_rwlock_unlock(&volume->lock);
    volume_put(r.inode, 1);
    volume_put(r.victim, 1);
    volume_put(r.whiteout, 1);
    return error;
}

int volume_rename(struct inode *dir, const char *name, uint32_t length, struct inode *new_dir,
                  const char *new_name, uint32_t new_length, unsigned flags) {
    struct volume *volume = dir->volume;
    const struct rename r = {
        .source_dir = dir,
        .target_dir = new_dir,
        .source_name = name,
        .target_name = new_name,
        .source_length = length,
        .target_length = new_length,
        .flags = flags & RENAME_EXCHANGE ? RENAME_EXCHANGE_NAMES : 0,
    };
    bool tried = false;
    int error = name_check(name, length);

    if (!error)
        error = name_check(new_name, new_length);
    if (error)
        return error;
    if (is_dot_name(name, length) || is_dot_name(new_name, new_length))
        return -EBUSY;
    if ((flags & ~(unsigned)(RENAME_EXCHANGE | RENAME_NOREPLACE | RENAME_WHITEOUT)) ||
        (flags & RENAME_EXCHANGE && flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
        return -EINVAL;
    do
        error = rename_once(r, flags);
    while (commit_for_space(volume, error, &tried));
    volume_end_operation(volume);
    return error;
}

/* --- reading --------------------------------------------------------------------------------- */

int volume_readdir(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    struct volume *volume = dir->volume;

    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume_readable(volume);
    if (!error)
        error = volume->layout->dir_iterate(dir, cookie, visit, context);
    bool atime = !error && inode_atime_due(dir);
    pthread_rwlock_unlock(&volume->lock);
    if (atime)
        inode_atime_update(dir);
    volume_end_operation(volume);
    return error;
}

int volume_readlink(struct inode *inode, char *target, size_t size) {
    struct volume *volume = inode->volume;

    if (!S_ISLNK(inode->mode))
        return -EINVAL;
    pthread_rwlock_rdlock(&volume->lock);
    int error = volume_readable(volume);
    if (!error && inode->size >= size)
        error = -ENAMETOOLONG;
    if (!error)
        error = volume->layout->symlink_read(inode, target);
    if (!error)
        target[inode->size] = '\0';
    bool atime = !error && inode_atime_due(inode);
    pthread_rwlock_unlock(&volume->lock);
    if (atime)
        inode_atime_update(inode);
    volume_end_operation(volume);
    return error;
}

/* A walk along a path. `at` and `parent` are referenced; `rest` points into `path`. */
struct walk {
    struct inode *at, *parent;
    char *rest;
    int symlinks;
    char path[2 * PATH_MAX]; /* a path and a symlink's target */
    char target[PATH_MAX];
};

/* `at` is a symlink: puts its target before the rest of the path and steps back to its parent. */
static int walk_follow(struct walk *w) {
    struct inode *base = w->parent;
    size_t left = strlen(w->rest);
    int error = volume_readlink(w->at, w->target, sizeof(w->target));

    if (error)
        return error;
    size_t length = strlen(w->target);
    if (++w->symlinks > SYMLINKS_MAX)
        return -ELOOP;
    if (length + left >= sizeof(w->path))
        return -ENAMETOOLONG;
    memmove(w->path + length, w->rest, left + 1);
    memcpy(w->path, w->target, length);
    w->rest = w->path;
    if (w->target[0] == '/') {
        error = volume_root(w->at->volume, &base);
        if (error)
            return error;
    } else {
        volume_hold(base, 1);
    }
    volume_put(w->at, 1);
    w->at = base;
    return 0;
}

static int walk_down(struct walk *w) {
    size_t length = strcspn(w->rest, "/");
    struct inode *child;
    int error = volume_lookup(w->at, w->rest, (uint32_t)length, &child);

    if (error)
        return error;
    volume_put(w->parent, 1);
    w->parent = w->at;
    w->at = child;
    w->rest += length;
    return 0;
}

static int walk_path(struct walk *w, bool follow) {
    while (*(w->rest += strspn(w->rest, "/"))) {
        int error = walk_down(w);
        bool last = *w->rest == '\0';

        if (!error && S_ISLNK(w->at->mode) && (follow || !last))
            error = walk_follow(w);
        if (error)
            return error;
    }
    return 0;
}

int volume_resolve(struct volume *volume, const char *path, bool follow, struct inode **inode) {
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    strcpy(w->path, path);
    w->rest = w->path;
    int error = volume_root(volume, &w->at);
    if (!error) {
        volume_hold(w->at, 1); /* the root is its own parent */
        w->parent = w->at;
        error = walk_path(w, follow);
        volume_put(w->parent, 1);
        if (error)
            volume_put(w->at, 1);
        else
            *inode = w->at;
    }
    free(w);
    return error;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface and invariants: layouts/nilfs/history.h.
 *
 * A checkpoint's ifile is opened with the first look at one of its inodes, and a few of them are
 * kept: who walks through a tree asks for the same one again and again.
 */
#include "layouts/nilfs/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/layout.h"

#define IFILES    8u
#define NAME_SIZE 64u
/* Of the directory of checkpoints: "." and ".." come first, then checkpoint cno has the cookie...
 */
#define COOKIE(cno) ((cno) + 2)

struct nilfs_history {
    pthread_mutex_t mutex;             /* of the ifiles: a leaf, but for files_mutex */
    struct nilfs_file *ifiles[IFILES]; /* referenced, or NULL; the latest one that was used first */
    int64_t time;                      /* seconds: of the mount */
};

int nilfs_history_new(struct nilfs *nilfs) {
    struct nilfs_history *history = calloc(1, sizeof(*history));

    if (!history)
        return -ENOMEM;
    pthread_mutex_init(&history->mutex, NULL);
    history->time = nilfs_now(nilfs);
    nilfs->history = history;
    return 0;
}

void nilfs_history_free(struct nilfs *nilfs) {
    struct nilfs_history *history = nilfs->history;

    if (!history)
        return;
    for (unsigned i = 0; i < IFILES; i++)
        nilfs_file_put(history->ifiles[i]);
    pthread_mutex_destroy(&history->mutex);
    free(history);
    nilfs->history = NULL;
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static bool is_directory_of_checkpoints(const struct inode *inode) {
    return inode->ino == NILFS_HISTORY_INO;
}

/* -ENOENT: there is none, or it is not shown. */
static int checkpoint_read(struct nilfs *nilfs, uint64_t cno, struct nilfs_checkpoint *found) {
    if (cno == 0 || cno > nilfs->newest || cno >= NILFS_HISTORY_END)
        return -ENOENT;
    return nilfs_cpfile_read(nilfs, cno, found);
}

/* May the inode be looked at? */
static int check_alive(const struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t cno = inode->ino >> NILFS_INO_BITS;
    struct nilfs_checkpoint found;

    if (!inode->past || is_directory_of_checkpoints(inode))
        return 0;
    int error = checkpoint_read(nilfs, cno, &found);
    if (error != -ENOENT)
        return error;
    log_info(inode->volume->log,
             "%s: nilfs: checkpoint %" PRIu64 " was deleted while its inode %" PRIu64
             " was in use; keep a checkpoint with 'layoutfs snapshot keep'",
             inode->volume->name, cno, inode->ino & NILFS_INO_MASK);
    return -ESTALE;
}

/* Returns its length. */
static uint32_t checkpoint_name(const struct nilfs_checkpoint *checkpoint, char name[NAME_SIZE]) {
    const char *kind = checkpoint->flags & NILFS_CP_SNAPSHOT ? "ss" : "cp";
    time_t seconds = checkpoint->created;
    size_t length = 0;
    struct tm time;

    if (gmtime_r(&seconds, &time))
        length = strftime(name, NAME_SIZE, "%Y-%m-%dT%H:%M:%S.", &time);
    length +=
        (size_t)snprintf(name + length, NAME_SIZE - length, "%s%" PRIu64, kind, checkpoint->cno);
    return (uint32_t)length;
}

/* The number at the end of a name; 0: none. */
static uint64_t number_of(const char *name, uint32_t length) {
    uint64_t number = 0, unit = 1;

    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9' &&
           unit < NILFS_HISTORY_END) {
        number += (uint64_t)(name[--length] - '0') * unit;
        unit *= 10;
    }
    return number;
}

static uint64_t root_of(uint64_t cno) {
    return cno << NILFS_INO_BITS | NILFS_ROOT_INO;
}

static int find_checkpoint(struct nilfs *nilfs, const char *name, uint32_t length, uint64_t *ino) {
    struct nilfs_checkpoint found;
    char expected[NAME_SIZE];

    int error = checkpoint_read(nilfs, number_of(name, length), &found);
    if (error)
        return error;
    if (checkpoint_name(&found, expected) != length || memcmp(name, expected, length) != 0)
        return -ENOENT;
    *ino = root_of(found.cno);
    return 0;
}

/* Visits those behind the one with that cookie. */
static int list_checkpoints(struct nilfs *nilfs, uint64_t cookie, dir_visit visit, void *context) {
    struct nilfs_checkpoint found = {.cno = cookie > COOKIE(0) ? cookie - COOKIE(0) : 0};
    char name[NAME_SIZE];

    for (;;) {
        int error = nilfs_cpfile_next(nilfs, found.cno + 1, false, &found);
        if (error == -ENOENT ||
            (!error && (found.cno > nilfs->newest || found.cno >= NILFS_HISTORY_END)))
            return 0;
        if (error)
            return error;
        uint32_t length = checkpoint_name(&found, name);
        struct dir_entry entry = {name, length, root_of(found.cno), S_IFDIR, COOKIE(found.cno)};
        if (!visit(context, &entry))
            return 0;
    }
}

static int list(struct nilfs *nilfs, uint64_t cookie, dir_visit visit, void *context) {
    const struct dir_entry dots[] = {{".", 1, NILFS_HISTORY_INO, S_IFDIR, 1},
                                     {"..", 2, NILFS_ROOT_INO, S_IFDIR, 2}};

    for (; cookie < 2; cookie++)
        if (!visit(context, &dots[cookie]))
            return 0;
    return list_checkpoints(nilfs, cookie, visit, context);
}

/* --- inodes ----------------------------------------------------------------------------------- */

/* The kept one of that number, referenced, or NULL. */
static struct nilfs_file *ifile_grab(struct nilfs_history *history, uint64_t cno) {
    struct nilfs_file *ifile = NULL;

    pthread_mutex_lock(&history->mutex);
    for (unsigned i = 0; i < IFILES && history->ifiles[i]; i++) {
        if (history->ifiles[i]->cno != cno)
            continue;
        ifile = history->ifiles[i];
        memmove(&history->ifiles[1], history->ifiles, i * sizeof(struct nilfs_file *));
        history->ifiles[0] = ifile;
        nilfs_file_hold(ifile);
        break;
    }
    pthread_mutex_unlock(&history->mutex);
    return ifile;
}

/* Two threads may keep the same one twice, which does no harm. */
static void ifile_keep(struct nilfs_history *history, struct nilfs_file *ifile) {
    nilfs_file_hold(ifile);
    pthread_mutex_lock(&history->mutex);
    struct nilfs_file *last = history->ifiles[IFILES - 1];
    memmove(&history->ifiles[1], history->ifiles, (IFILES - 1) * sizeof(struct nilfs_file *));
    history->ifiles[0] = ifile;
    pthread_mutex_unlock(&history->mutex);
    nilfs_file_put(last);
}

static int ifile_open(struct nilfs *nilfs, const struct nilfs_checkpoint *checkpoint,
                      struct nilfs_file **ifile) {
    *ifile = ifile_grab(nilfs->history, checkpoint->cno);
    if (*ifile)
        return 0;
    int error = nilfs_file_new(nilfs, NILFS_IFILE_INO, checkpoint->cno, NILFS_MULTI,
                               &checkpoint->ifile, ifile);
    if (!error)
        ifile_keep(nilfs->history, *ifile);
    return error;
}

static void load_directory_of_checkpoints(struct inode *inode) {
    const struct nilfs *nilfs = nilfs_of(inode->volume);

    inode->mode = S_IFDIR | 0555;
    inode->nlink = 2;
    inode->atime = inode->mtime = inode->ctime = (struct timestamp){nilfs->history->time, 0};
}

static int load_past(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_checkpoint found;
    struct nilfs_file *ifile;

    int error = checkpoint_read(nilfs, inode->ino >> NILFS_INO_BITS, &found);
    if (error)
        return error == -ENOENT ? -ESTALE : error;
    error = ifile_open(nilfs, &found, &ifile);
    if (error)
        return error;
    error = nilfs_inode_load_from(inode, ifile, inode->ino & NILFS_INO_MASK);
    nilfs_file_put(ifile);
    return error;
}

int nilfs_history_inode_load(struct inode *inode) {
    const struct nilfs *nilfs = nilfs_of(inode->volume);

    if (inode->ino <= NILFS_INO_MASK)
        return nilfs_inode_load(inode);
    if (!nilfs->history)
        return -ESTALE;
    inode->past = true;
    if (!is_directory_of_checkpoints(inode))
        return load_past(inode);
    load_directory_of_checkpoints(inode);
    return 0;
}

/* --- the contract ----------------------------------------------------------------------------- */

int nilfs_history_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    static const char entrance[] = NILFS_HISTORY_NAME;

    if (is_directory_of_checkpoints(dir))
        return find_checkpoint(nilfs, name, length, ino);
    int error = check_alive(dir);
    if (!error)
        error = nilfs_dir_find(dir, name, length, ino);
    if (error != -ENOENT || !nilfs->history || dir->ino != NILFS_ROOT_INO ||
        length != sizeof(entrance) - 1 || memcmp(name, entrance, length) != 0)
        return error;
    *ino = NILFS_HISTORY_INO;
    return 0;
}

int nilfs_history_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context) {
    if (is_directory_of_checkpoints(dir))
        return list(nilfs_of(dir->volume), cookie, visit, context);
    int error = check_alive(dir);
    return error ? error : nilfs_dir_iterate(dir, cookie, visit, context);
}

int nilfs_history_dir_empty(struct inode *dir) {
    if (is_directory_of_checkpoints(dir))
        return -ENOTEMPTY;
    int error = check_alive(dir);
    return error ? error : nilfs_dir_empty(dir);
}

int nilfs_history_symlink_read(struct inode *inode, char *target) {
    int error = check_alive(inode);
    return error ? error : nilfs_symlink_read(inode, target);
}

int nilfs_history_load(struct inode *inode, const struct data_range *range,
                       struct device_batch *batch) {
    int error = check_alive(inode);
    return error ? error : nilfs_load(inode, range, batch);
}

int nilfs_history_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    int error = is_directory_of_checkpoints(inode) ? -ENOTSUP : check_alive(inode);
    return error ? error : nilfs_map(inode, offset, extent);
}

int nilfs_history_explain(struct inode *inode, json_t **object) {
    int error = is_directory_of_checkpoints(inode) ? -ENOTSUP : check_alive(inode);
    return error ? error : nilfs_explain(inode, object);
}

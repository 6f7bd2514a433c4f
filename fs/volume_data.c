/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the page cache and the layout contract. Interface: fs/volume.h ("data"); of what
 * it shares with volume_fallocate.c and volume_copy.c: fs/volume_internal.h.
 *
 * Locking: the inode's data lock first, shared to read and exclusive to change; then, for as short
 * as possible, volume->lock: around attributes and calls into the layout. The page cache is called
 * without volume->lock, since it takes it to load and store. inode->size changes under both locks,
 * so that either is enough to read it.
 *
 * Between steps, holding no lock, every change passes a commit point. A cut that the layout could
 * not finish in one step leaves inode->cut set; until it is done, whoever wants to change the data
 * goes on with it first (data_lock), so that nothing is written where blocks are yet to be freed.
 *
 * A write has two halves: `reserve` with the new attributes, which can fail, under volume->lock;
 * and copying into the page cache. Partly covered pages are loaded before, because blocks freshly
 * reserved hold old bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/volume_internal.h"

/* Written under one hold of the locks; dirty limits are looked at in between. */
#define WRITE_PIECE (1u << 20)

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Regular files only. volume->lock is held. */
static int data_check_type(const struct inode *inode) {
    return S_ISREG(inode->mode) ? 0 : S_ISDIR(inode->mode) ? -EISDIR : -EINVAL;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Data lock held. *atime: the read is to update the access time. */
static int64_t data_read(struct inode *inode, void *buffer, size_t room, uint64_t offset,
                         bool *atime) {
    struct volume *volume = inode->volume;
    size_t size;
    int error;

    pthread_rwlock_rdlock(&volume->lock);
    error = volume_readable(volume);
    if (!error)
        error = data_check_type(inode);
    *atime = !error && inode_atime_due(inode);
    pthread_rwlock_unlock(&volume->lock);
    if (error || offset >= inode->size)
        return error;
    size = smaller(smaller(room, inode->size - offset), INT64_MAX);
    error = size > 0 ? page_cache_read(inode, buffer, room, size, offset) : 0;
    return error ? error : (int64_t)size;
}

static int64_t locked_read(struct inode *inode, void *buffer, size_t size, uint64_t offset,
                           bool *atime) {
    pthread_rwlock_t *data_lock = inode_data_lock(inode);

    pthread_rwlock_rdlock(data_lock);
    int64_t result = data_read(inode, buffer, size, offset, atime);
    pthread_rwlock_unlock(data_lock);
    return result;
}

int64_t volume_read_noatime(struct inode *inode, void *buffer, size_t size, uint64_t offset) {
    bool atime;
    int64_t result = locked_read(inode, buffer, size, offset, &atime);

    volume_end_operation(inode->volume);
    return result;
}

int64_t volume_read(struct inode *inode, void *buffer, size_t size, uint64_t offset) {
    bool atime;
    int64_t result = locked_read(inode, buffer, size, offset, &atime);

    if (atime && result >= 0)
        inode_atime_update(inode);
    volume_end_operation(inode->volume);
    return result;
}

/* --- truncating: the layout's part ------------------------------------------------------------ */

void data_modified(struct inode *inode) {
    inode->mtime = inode->ctime = volume_now(inode->volume);
    if (!inode->volume->setid_by_caller)
        inode_clear_setid(inode);
    inode_mark_dirty(inode);
}

static int cut_step(struct inode *inode, uint64_t size) {
    int result = inode->volume->layout->truncate(inode, size);

    if (result < 0)
        return result;
    if (size != inode->size) {
        inode->size = size;
        data_modified(inode);
    } else {
        inode_mark_dirty(inode); /* what was left of a cut, or preallocated */
    }
    inode->cut = result == LAYOUT_AGAIN;
    return inode->cut ? inode_store(inode) : 0;
}

/* The layout's and the attributes' part. Data lock exclusive. */
static int truncate_layout(struct inode *inode, uint64_t size) {
    int error = volume_change_begin(inode->volume);
    bool cut = inode->cut;

    if (error)
        return error;
    error = cut_step(inode, size);
    if (error) /* of what is left to be cut there is no more, or it has to wait */
        inode->cut = cut && error == -ENOSPC;
    return volume_change_end(inode->volume, error);
}

int data_lock(struct inode *inode) {
    pthread_rwlock_t *lock = inode_data_lock(inode);
    int error = 0;

    do {
        commit_point(inode->volume);
        pthread_rwlock_wrlock(lock);
        if (!inode->cut)
            return 0;
        error = truncate_layout(inode, inode->size);
        pthread_rwlock_unlock(lock);
    } while (!error);
    return error;
}

void data_unlock(struct inode *inode) {
    pthread_rwlock_unlock(inode_data_lock(inode));
}

/* --- writing ---------------------------------------------------------------------------------- */

int data_may_change(struct inode *inode, uint64_t offset) {
    struct volume *volume = inode->volume;
    int error;

    pthread_rwlock_rdlock(&volume->lock);
    error = inode_writable(inode);
    if (!error)
        error = data_check_type(inode);
    if (!error && inode->flags & INODE_IMMUTABLE)
        error = -EPERM;
    if (!error && inode->flags & INODE_APPEND && offset < inode->size)
        error = -EPERM;
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

/* Reserves [offset, offset + size) and changes the attributes. The bytes that were reserved, or an
 * error. Data lock exclusive. */
static int64_t write_reserve(struct inode *inode, uint64_t size, uint64_t offset) {
    struct volume *volume = inode->volume;
    int error = volume_change_begin(volume);

    if (error)
        return error;
    int64_t granted = volume->layout->reserve(inode, offset, size);
    if (granted > 0) {
        if (offset + (uint64_t)granted > inode->size)
            inode->size = offset + (uint64_t)granted;
        data_modified(inode);
    }
    error = volume_change_end(volume, granted < 0 ? (int)granted : 0);
    return error ? error : granted;
}

/* The bytes into the cache, or large runs of whole pages past it. */
static int data_put(struct inode *inode, const char *buffer, size_t size, uint64_t offset) {
    size_t whole = size - size % PAGE_SIZE_BYTES;
    int error = 0;

    if (!buffer || !page_cache_is_direct(inode, whole, offset))
        return page_cache_write(inode, buffer, size, offset);
    error = page_cache_write_direct(inode, buffer, whole, offset);
    if (error || whole == size)
        return error;
    return page_cache_write(inode, buffer + whole, size - whole, offset + whole);
}

/* Writes a piece, zeros where buffer is NULL. Data lock exclusive. */
static int64_t data_write(struct inode *inode, const void *buffer, uint64_t size, uint64_t offset) {
    uint64_t size_max = inode->volume->limits.file_size_max;
    int64_t granted;
    int error;

    if (offset >= size_max)
        return -EFBIG;
    size = smaller(size, size_max - offset);
    error = data_may_change(inode, offset);
    if (!error)
        error = page_cache_prepare(inode, size, offset);
    if (error)
        return error;
    granted = write_reserve(inode, size, offset);
    if (granted <= 0)
        return granted;
    error = data_put(inode, buffer, (size_t)granted, offset);
    return error ? error : granted;
}

/* Bytes that are written at once; a small part of what a commit has room for. */
static uint64_t write_piece(const struct volume *volume) {
    uint64_t share = volume->limits.dirty_data_max / 8;

    if (share == 0 || share >= WRITE_PIECE)
        return WRITE_PIECE;
    return share < PAGE_SIZE_BYTES ? PAGE_SIZE_BYTES : share / PAGE_SIZE_BYTES * PAGE_SIZE_BYTES;
}

int64_t data_write_pieces(struct inode *inode, const char *buffer, uint64_t size, uint64_t offset) {
    uint64_t done = 0, most = write_piece(inode->volume);
    bool tried = false;

    while (done < size) {
        uint64_t piece = smaller(size - done, most);
        int64_t result;
        int error = data_lock(inode);

        if (error)
            return error;
        result = data_write(inode, buffer ? buffer + done : NULL, piece, offset + done);
        data_unlock(inode);
        if (commit_for_space(inode->volume, result, &tried))
            continue;
        if (result < 0)
            return done > 0 ? (int64_t)done : result;
        done += (uint64_t)result;
        error = writeback_throttle(inode->volume);
        if (error) /* what is dirty cannot be stored, and there is no room for more */
            return error;
        if ((uint64_t)result < piece && !commit_for_space(inode->volume, -ENOSPC, &tried))
            break;
    }
    return (int64_t)done;
}

int64_t volume_write(struct inode *inode, const void *buffer, size_t size, uint64_t offset) {
    int64_t result;

    if (offset > INT64_MAX)
        return -EFBIG;
    result = data_write_pieces(inode, buffer, smaller(size, INT64_MAX - offset), offset);
    volume_end_operation(inode->volume);
    return result;
}

/* --- truncating ------------------------------------------------------------------------------- */

int data_truncate(struct inode *inode, uint64_t size) {
    uint64_t page_end = (size + PAGE_SIZE_BYTES - 1) / PAGE_SIZE_BYTES * PAGE_SIZE_BYTES;
    int error = data_may_change(inode, 0);

    /* What was preallocated past the end goes even when the end stays. */
    if (error || (size == inode->size && !inode->volume->layout->preallocate))
        return error;
    if (size > inode->volume->limits.file_size_max)
        return -EFBIG;
    /* Before the layout frees anything: the new last page cannot be read once it is cut. What is to
     * go from there goes afterwards: the layout may refuse. */
    bool shrinks = size < inode->size;
    error = shrinks ? page_cache_prepare(inode, page_end - size, size)
                    : page_cache_prepare(inode, 0, size);
    if (!error)
        error = truncate_layout(inode, size);
    if (!error && shrinks)
        error = page_cache_zero(inode, size, page_end - size);
    if (!error)
        page_cache_truncate(inode, size);
    return error;
}

int volume_truncate(struct inode *inode, uint64_t size) {
    bool tried = false;
    int error;

    do {
        error = data_lock(inode);
        if (!error) {
            error = data_truncate(inode, size);
            data_unlock(inode);
        }
        while (!error && inode->cut) { /* another thread may be at it, too */
            error = data_lock(inode);
            if (!error)
                data_unlock(inode);
        }
    } while (commit_for_space(inode->volume, error, &tried));
    if (!error)
        error = writeback_throttle(inode->volume);
    volume_end_operation(inode->volume);
    return error;
}

/* --- where the data is ------------------------------------------------------------------------ */

static int data_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    struct volume *volume = inode->volume;
    int error;

    pthread_rwlock_rdlock(&volume->lock);
    error = volume_readable(volume);
    if (!error)
        error = data_check_type(inode);
    if (!error)
        error = volume->layout->map(inode, offset, extent);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

int volume_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    pthread_rwlock_t *data_lock = inode_data_lock(inode);
    int error;

    if (!inode->volume->layout->map)
        return -ENOTSUP;
    pthread_rwlock_rdlock(data_lock);
    error = data_map(inode, offset, extent);
    pthread_rwlock_unlock(data_lock);
    return error;
}

/* The piece from `offset` on that is all data or all hole. Data lock held. */
static int seek_piece(struct inode *inode, uint64_t offset, uint64_t *end, bool *hole) {
    const struct layout *layout = inode->volume->layout;
    struct extent extent = {0, inode->size, 0, 0};
    int error = layout->map ? data_map(inode, offset, &extent) : 0;

    if (error)
        return error;
    *hole = extent.flags & (EXTENT_HOLE | EXTENT_UNWRITTEN);
    *end = smaller(extent.offset + extent.length, inode->size);
    if (*hole && (inode->volume->store_changes || extent.flags & EXTENT_UNWRITTEN)) {
        uint64_t dirty = page_cache_next_dirty(inode, offset);

        *hole = dirty > offset;
        *end = smaller(*end, *hole ? dirty : (offset / PAGE_SIZE_BYTES + 1) * PAGE_SIZE_BYTES);
    }
    return *end > offset ? 0 : -EUCLEAN;
}

static int64_t data_seek(struct inode *inode, uint64_t offset, int whence) {
    while (offset < inode->size) {
        uint64_t end;
        bool hole;
        int error = seek_piece(inode, offset, &end, &hole);

        if (error)
            return error;
        if (hole == (whence == SEEK_HOLE))
            return (int64_t)offset;
        offset = end;
    }
    /* There is always a hole at the end. */
    return whence == SEEK_HOLE ? (int64_t)inode->size : -ENXIO;
}

int64_t volume_seek(struct inode *inode, uint64_t offset, int whence) {
    pthread_rwlock_t *data_lock = inode_data_lock(inode);
    int64_t result;

    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return -EINVAL;
    pthread_rwlock_rdlock(data_lock);
    result = offset < inode->size ? data_seek(inode, offset, whence) : -ENXIO;
    pthread_rwlock_unlock(data_lock);
    return result;
}

/* --- durability ------------------------------------------------------------------------------- */

/* What the caller learns now the layout is not to learn later: there is no commit to tell it. */
static void tell_failed_stores(struct volume *volume) {
    pthread_rwlock_wrlock(&volume->lock);
    (void)writeback_settle_stores(volume);
    pthread_rwlock_unlock(&volume->lock);
}

int volume_fsync(struct inode *inode, bool data_only) {
    struct volume *volume = inode->volume;
    pthread_rwlock_t *lock = inode_data_lock(inode);
    bool nothing_to_do;
    int error = volume_sync_possible(volume, &nothing_to_do);

    if (error || nothing_to_do)
        return error;
    commit_point(volume);
    pthread_rwlock_wrlock(lock);
    error = page_cache_flush(inode, true);
    pthread_rwlock_unlock(lock);
    int failed = page_cache_take_error(inode);
    if (!error)
        error = failed;
    if (error)
        tell_failed_stores(volume);
    else
        error = commit_wait(volume, inode, data_only ? COMMIT_FDATASYNC : COMMIT_FSYNC);
    volume_end_operation(volume);
    return error;
}

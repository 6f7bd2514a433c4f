/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over ifile.h, file.h, dir.c and data.c. Interface: layouts/nilfs/layout.h.
 *
 * Inodes: the record in the ifile and struct inode, in both directions; making and freeing them;
 * symbolic links, which have a data block always.
 *
 * Invariants:
 *  1. Of a user's file of the live tree there is one structure while somebody may change it: that
 *     of its in-core inode, of which there is one, or, while there is none, that of recovery; one
 *     that is dirty is found by the inode that comes after (nilfs->files).
 *  2. The record's map and block count are the checkpoint's to write (checkpoint.c), from the file;
 *     all else of the record is written here, and only when it differs, so that what the format
 *     does not keep (access times) makes no checkpoint.
 *  3. inode->sectors is file->sectors after every change, and what is pending of a regular file's
 *     (data.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/space.h"

/* Flags that a new inode takes from its directory, as the driver: beside those of enum inode_flags
 * no tail merging and synchronous directories. */
#define FLAGS_INHERITED     (INODE_SYNC | INODE_NODUMP | INODE_NOATIME | 0x8000u | 0x10000u)
#define FLAG_DIRECTORY_SYNC 0x10000u
#define FLAGS_FOR_OTHERS    (INODE_NODUMP | INODE_NOATIME) /* than files and directories */

/* Blocks of the ifile that a new inode changes: record, bitmap and descriptor; and its own first.
 */
#define CREATE_RECORDS 3u
#define CREATE_DATA    1u

/* --- devices --------------------------------------------------------------------------------- */

static bool is_device(uint32_t mode) {
    return S_ISCHR(mode) || S_ISBLK(mode);
}

/* The low 8 bits of minor, 12 of major, the high 12 of minor; above, what is left of major. */
static uint64_t device_encode(uint32_t rdev) {
    uint64_t major = rdev >> 20, minor = rdev & 0xFFFFF;
    return (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & 0xFFF00) << 12;
}

static uint32_t device_decode(uint64_t code) {
    uint32_t major = code >> 8 & 0xFFF, minor = (code & 0xFF) | (code >> 12 & 0xFFF00);
    return major << 20 | minor;
}

static void device_store(struct nilfs_file *file, uint32_t rdev) {
    le64 code;
    le64_store(&code, device_encode(rdev));
    memcpy(file->bmap.head.byte, code.byte, sizeof code.byte);
    file->device = true;
}

static uint32_t device_load(const struct nilfs_file *file) {
    le64 code;
    memcpy(code.byte, file->bmap.head.byte, sizeof code.byte);
    return device_decode(le64_load(code));
}

/* --- files in core --------------------------------------------------------------------------- */

/* The file of that record; of the live tree the dirty one, if it is. */
static int file_of_record(struct nilfs_file *ifile, uint64_t ino,
                          const struct nilfs_disk_inode *record, struct nilfs_file **file) {
    struct nilfs *nilfs = ifile->nilfs;

    *file = ifile->cno == 0 ? nilfs_file_find_dirty(nilfs, ino) : NULL;
    return *file ? 0 : nilfs_file_new(nilfs, ino, ifile->cno, NILFS_MULTI, record, file);
}

int nilfs_file_open(struct nilfs *nilfs, uint64_t ino, struct nilfs_file **file) {
    struct nilfs_disk_inode record;

    int error = nilfs_ifile_read(nilfs->ifile, ino, &record);
    return error ? error : file_of_record(nilfs->ifile, ino, &record, file);
}

/* --- load ------------------------------------------------------------------------------------ */

static struct timestamp time_decode(le64 seconds, le32 nanoseconds) {
    struct timestamp time = {(int64_t)le64_load(seconds), le32_load(nanoseconds)};
    if (time.nanoseconds > 999999999)
        time.nanoseconds = 0;
    return time;
}

static void record_decode(struct inode *inode, const struct nilfs_disk_inode *record) {
    inode->mode = le16_load(record->i_mode);
    inode->nlink = le16_load(record->i_links_count);
    inode->uid = le32_load(record->i_uid);
    inode->gid = le32_load(record->i_gid);
    inode->flags = le32_load(record->i_flags);
    inode->generation = le32_load(record->i_generation);
    inode->size = le64_load(record->i_size);
    inode->ctime = time_decode(record->i_ctime, record->i_ctime_nsec);
    inode->mtime = time_decode(record->i_mtime, record->i_mtime_nsec);
    inode->atime = inode->mtime;
}

static bool mode_known(uint32_t mode) {
    static const uint32_t types = 1u << (S_IFIFO >> 12) | 1u << (S_IFCHR >> 12) |
                                  1u << (S_IFDIR >> 12) | 1u << (S_IFBLK >> 12) |
                                  1u << (S_IFREG >> 12) | 1u << (S_IFLNK >> 12) |
                                  1u << (S_IFSOCK >> 12);
    return types >> (mode >> 12) & 1;
}

static int attributes_check(const struct inode *inode, uint64_t ino) {
    const struct nilfs *nilfs = nilfs_of(inode->volume);
    uint32_t block_size = nilfs->geometry.block_size;

    if (!mode_known(inode->mode))
        return nilfs_corrupt(nilfs, "inode %" PRIu64 ": mode 0%o has no known file type",
                             inode->ino, inode->mode);
    if (ino == NILFS_ROOT_INO && !S_ISDIR(inode->mode))
        return nilfs_corrupt(nilfs, "inode %" PRIu64 ": mode 0%o, expected a directory, the root",
                             inode->ino, inode->mode);
    if (inode->size > INT64_MAX)
        return nilfs_corrupt(nilfs,
                             "inode %" PRIu64 ": size %" PRIu64 " is more than a file can have",
                             inode->ino, inode->size);
    if (S_ISDIR(inode->mode) && (inode->size == 0 || inode->size % block_size != 0))
        return nilfs_corrupt(
            nilfs, "inode %" PRIu64 ": size %" PRIu64 ", expected of a directory a multiple of %u",
            inode->ino, inode->size, block_size);
    if (S_ISLNK(inode->mode) && (inode->size == 0 || inode->size >= block_size))
        return nilfs_corrupt(
            nilfs, "inode %" PRIu64 ": symlink has a target of %" PRIu64 " bytes, expected 1 to %u",
            inode->ino, inode->size, block_size - 1);
    return 0;
}

int nilfs_inode_load_from(struct inode *inode, struct nilfs_file *ifile, uint64_t ino) {
    struct nilfs_disk_inode record;
    struct nilfs_file *file;

    if (ino != NILFS_ROOT_INO && ino < NILFS_FIRST_INO)
        return -ESTALE;
    int error = nilfs_ifile_read(ifile, ino, &record);
    if (error)
        return error;
    if (le16_load(record.i_links_count) == 0)
        return -ESTALE;
    record_decode(inode, &record);
    error = attributes_check(inode, ino);
    if (!error)
        error = file_of_record(ifile, ino, &record, &file);
    if (error)
        return error;
    inode->sectors = file->sectors;
    inode->rdev = is_device(inode->mode) ? device_load(file) : 0;
    *nilfs_inode_of(inode) = (struct nilfs_inode){.file = file};
    return 0;
}

int nilfs_inode_load(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);

    return nilfs_inode_load_from(inode, nilfs->ifile, inode->ino);
}

/* --- store ----------------------------------------------------------------------------------- */

static void record_encode(struct inode *inode, struct nilfs_disk_inode *record) {
    uint64_t uncut = nilfs_file_uncut(nilfs_inode_of(inode)->file);

    le16_store(&record->i_mode, (uint16_t)inode->mode);
    le16_store(&record->i_links_count, (uint16_t)inode->nlink);
    le32_store(&record->i_uid, inode->uid);
    le32_store(&record->i_gid, inode->gid);
    le32_store(&record->i_flags, inode->flags);
    le32_store(&record->i_generation, inode->generation);
    le64_store(&record->i_size, uncut > inode->size ? uncut : inode->size);
    le64_store(&record->i_ctime, (uint64_t)inode->ctime.seconds);
    le64_store(&record->i_mtime, (uint64_t)inode->mtime.seconds);
    le32_store(&record->i_ctime_nsec, inode->ctime.nanoseconds);
    le32_store(&record->i_mtime_nsec, inode->mtime.nanoseconds);
}

/* The record changes alone, or as a part of what has been claimed: the step before, or what has
 * made the inode dirty. */
static int claim_record(const struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    const struct nilfs_demand demand = {.blocks = nilfs_space_change(nilfs->ifile)};

    if (nilfs->claimed || inode->dirty)
        return 0;
    return nilfs_space_claim(nilfs, NILFS_CLAIM_REMOVE, &demand);
}

int nilfs_inode_store(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_disk_inode before, after, *record;

    int error = nilfs_ifile_read(nilfs->ifile, inode->ino, &before);
    if (error)
        return error == -ESTALE
                   ? nilfs_corrupt(nilfs, "ifile: inode %" PRIu64 " is in use, but marked free",
                                   inode->ino)
                   : error;
    after = before;
    record_encode(inode, &after);
    if (memcmp(&before, &after, sizeof after) == 0)
        return 0;
    error = claim_record(inode);
    if (error)
        return error;
    error = nilfs_ifile_change(nilfs, inode->ino, &record);
    if (error)
        return nilfs_fail(nilfs, error);
    *record = after;
    nilfs->user_changes = true;
    return 0;
}

/* --- create ---------------------------------------------------------------------------------- */

static uint32_t flags_inherited(const struct inode *dir, uint32_t mode) {
    uint32_t flags = dir->flags & FLAGS_INHERITED;

    if (S_ISDIR(mode))
        return flags;
    return flags & (S_ISREG(mode) ? ~FLAG_DIRECTORY_SYNC : FLAGS_FOR_OTHERS);
}

/* The number is taken; what fails from here on has changed something. */
static int create_file(struct inode *dir, struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_file *file;

    int error = nilfs_file_new(nilfs, inode->ino, 0, NILFS_MULTI, NULL, &file);
    if (error)
        return error;
    *nilfs_inode_of(inode) = (struct nilfs_inode){.file = file};
    if (is_device(inode->mode))
        device_store(file, inode->rdev);
    file->data_only_unsafe = true;
    error = nilfs_file_mark_dirty(file);
    if (error)
        return error;
    return S_ISDIR(inode->mode) ? nilfs_dir_initialise(inode, dir->ino) : 0;
}

int nilfs_inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(dir->volume);
    uint64_t ino;

    int error = nilfs_space(nilfs, CREATE_RECORDS * nilfs_space_change(nilfs->ifile) + CREATE_DATA);
    if (error)
        return error;
    error = nilfs_ifile_allocate(nilfs, &ino);
    if (error)
        return error == -ENOSPC ? error : nilfs_fail(nilfs, error);
    inode->ino = ino;
    inode->generation = nilfs->next_generation++;
    inode->flags = flags_inherited(dir, inode->mode);
    inode->size = 0;
    inode->sectors = 0;
    inode->btime = (struct timestamp){0};
    nilfs->inodes_count++;
    nilfs->user_changes = true;
    error = create_file(dir, inode);
    if (error)
        inode->ino = 0;
    return nilfs_fail(nilfs, error);
}

/* --- free ------------------------------------------------------------------------------------ */

/* The record keeps its contents, as the driver leaves it, but links and flags. */
static int free_number(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);

    inode->size = 0;
    inode->flags = 0;
    int error = nilfs_inode_store(inode);
    return error ? error : nilfs_fail(nilfs, nilfs_ifile_free(nilfs, inode->ino));
}

int nilfs_inode_free(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_inode *private = nilfs_inode_of(inode);

    int result = nilfs_data_free(inode);
    if (result)
        return result;
    result = free_number(inode);
    if (result)
        return result;
    nilfs->inodes_count--;
    /* Before the number is another inode's. */
    if (private->file->dirty)
        nilfs_file_mark_clean(private->file);
    nilfs_file_put(private->file);
    nilfs_inode_of(inode)->file = NULL;
    return 0;
}

void nilfs_inode_evict(struct inode *inode) {
    nilfs_data_forget(inode);
    nilfs_file_put(nilfs_inode_of(inode)->file);
}

/* --- symlinks -------------------------------------------------------------------------------- */

int nilfs_symlink_write(struct inode *inode, const char *target, uint32_t length) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_file *file = nilfs_inode_of(inode)->file;
    uint8_t *data;

    if (length >= nilfs->geometry.block_size)
        return -ENAMETOOLONG;
    int error = nilfs_file_make(file, 0, &data, NULL);
    if (error)
        return nilfs_fail(nilfs, error);
    memcpy(data, target, length);
    inode->size = length;
    inode->sectors = file->sectors;
    return 0;
}

int nilfs_symlink_read(struct inode *inode, char *target) {
    struct nilfs_view view;

    int error = nilfs_file_read(nilfs_inode_of(inode)->file, 0, PURPOSE_DATA, &view);
    if (error)
        return error == -ENOENT
                   ? nilfs_corrupt(nilfs_of(inode->volume),
                                   "inode %" PRIu64 ": symlink has no block for its target",
                                   inode->ino)
                   : error;
    memcpy(target, view.data, inode->size);
    nilfs_view_put(&view);
    return 0;
}

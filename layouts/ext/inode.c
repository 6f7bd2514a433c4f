/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over group.c, indirect.c, dir.c and xattr.c.
 *
 * Inodes: the record on disk and struct inode, in both directions; making and freeing them.
 *
 * Invariants:
 *  1. A record is changed field by field, so that what this code does not know survives; only a new
 *     inode's record starts from zeros.
 *  2. A field past the first 128 bytes is read and written only when the inode's own
 *     i_extra_isize covers it.
 *  3. ext_inode.block holds numbers in host order, except a fast symlink's and those of an inode
 *     with EXT_INODE_EXTENTS or EXT_INODE_INLINE_DATA: the bytes as on disk.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/checksum.h"

/* Flags that a new inode takes from its directory, beside those of enum inode_flags: as Linux ext2
 * lists them (secure deletion, undelete, data journaling, no tail merging, synchronous directory).
 */
#define FLAGS_INHERITED                                                                            \
    (0x1u | 0x2u | INODE_SYNC | INODE_NODUMP | INODE_NOATIME | 0x4000u | 0x8000u | 0x10000u)
#define FLAGS_NOT_FOR_FILES 0x10000u /* synchronous directory */
#define FLAGS_FOR_OTHERS    (INODE_NODUMP | INODE_NOATIME)

/* Does the inode's extra part reach over the field? */
#define EXTRA_HOLDS(extra_size, field)                                                             \
    (EXT_INODE_BASE_SIZE + (extra_size) >=                                                         \
     offsetof(struct ext_disk_inode, field) + sizeof(((struct ext_disk_inode *)0)->field))

#define EXTRA_SIZE_NEW ((uint32_t)sizeof(struct ext_disk_inode) - EXT_INODE_BASE_SIZE)
#define SIZE_MAX_SMALL INT32_MAX /* without the large_file feature */

int ext_inode_record(struct ext *ext, uint64_t ino, struct buffer **buffer,
                     struct ext_disk_inode **record) {
    const struct ext_geometry *geometry = &ext->geometry;
    if (ino == 0 || ino > geometry->inodes_count)
        return ext_corrupt(ext, "inode number %" PRIu64 " is not between 1 and %u", ino,
                           geometry->inodes_count);
    uint32_t group = ext_group_of_inode(geometry, ino);
    uint32_t byte = (uint32_t)((ino - 1) % geometry->inodes_per_group) * geometry->inode_size;
    int rc =
        buffer_get(ext->buffers, ext->groups[group].inode_table + (byte >> geometry->block_bits),
                   PURPOSE_INODE, buffer);
    if (rc < 0)
        return rc;
    *record = (void *)((uint8_t *)buffer_data(*buffer) + (byte & (geometry->block_size - 1)));
    return 0;
}

void ext_inode_record_changed(struct ext *ext, uint64_t ino, struct buffer *buffer,
                              struct ext_disk_inode *record) {
    ext_inode_checksum_set(&ext->geometry, ino, record);
    ext_dirty(ext, buffer);
}

uint64_t ext_record_file_acl(const struct ext *ext, const struct ext_disk_inode *record) {
    uint64_t block = le32_load(record->i_file_acl);
    if (ext->geometry.incompat & EXT_INCOMPAT_64BIT)
        block |= (uint64_t)le16_load(record->i_file_acl_high) << 32;
    return block;
}

uint64_t ext_record_sectors(const struct ext *ext, const struct ext_disk_inode *record) {
    uint64_t blocks = le32_load(record->i_blocks);
    if (!(ext->geometry.ro_compat & EXT_RO_COMPAT_HUGE_FILE))
        return blocks;
    blocks |= (uint64_t)le16_load(record->i_blocks_high) << 32;
    if (le32_load(record->i_flags) & EXT_INODE_HUGE_FILE)
        blocks <<= ext->geometry.block_bits - 9;
    return blocks;
}

/* --- times ----------------------------------------------------------------------------------- */

/* Signed 32-bit seconds; the extra word adds two bits above them and 30 bits of nanoseconds, which
 * reaches from 1901 to 2446 (Documentation/filesystems/ext4/inodes.rst, "Inode Timestamps"). */
static struct timestamp time_decode(le32 seconds, le32 extra) {
    uint32_t word = le32_load(extra);
    struct timestamp time = {
        .seconds = (int64_t)(int32_t)le32_load(seconds) + ((int64_t)(word & 3) << 32),
        .nanoseconds = word >> 2,
    };
    if (time.nanoseconds > 999999999)
        time.nanoseconds = 0;
    return time;
}

static uint32_t time_extra(struct timestamp time) {
    int64_t above = (time.seconds - (int32_t)(uint32_t)time.seconds) >> 32;
    return (uint32_t)(above & 3) | time.nanoseconds << 2;
}

#define TIME_LOAD(private, record, name)                                                           \
    time_decode((record)->i_##name, EXTRA_HOLDS((private)->extra_size, i_##name##_extra)           \
                                        ? (record)->i_##name##_extra                               \
                                        : (le32){{0}})

#define TIME_STORE(private, record, name, time)                                                    \
    do {                                                                                           \
        le32_store(&(record)->i_##name, (uint32_t)(time).seconds);                                 \
        if (EXTRA_HOLDS((private)->extra_size, i_##name##_extra))                                  \
            le32_store(&(record)->i_##name##_extra, time_extra(time));                             \
    } while (0)

/* --- devices --------------------------------------------------------------------------------- */

/* Slot 0 holds the old encoding (8 bits each), or is 0 and slot 1 holds the new one: 12 bits of
 * major between the low 8 and the high 12 bits of minor. */
static uint32_t device_decode(const uint32_t block[EXT_BLOCK_SLOTS]) {
    uint32_t old = block[0], new = block[1];
    if (old != 0)
        return (old >> 8 & 0xFF) << 20 | (old & 0xFF);
    return (new >> 8 & 0xFFF) << 20 | (new >> 12 & 0xFFF00) | (new & 0xFF);
}

static void device_encode(uint32_t rdev, uint32_t block[EXT_BLOCK_SLOTS]) {
    uint32_t major = rdev >> 20, minor = rdev & 0xFFFFF;
    memset(block, 0, EXT_BLOCK_SLOTS * sizeof *block);
    if (major < 256 && minor < 256)
        block[0] = major << 8 | minor;
    else
        block[1] = (minor & 0xFFF00) << 12 | major << 8 | (minor & 0xFF);
}

static bool is_device(uint32_t mode) {
    return S_ISCHR(mode) || S_ISBLK(mode);
}

/* --- load ------------------------------------------------------------------------------------ */

uint32_t ext_inode_flags_unknown(const struct ext_geometry *geometry) {
    uint32_t extents = geometry->incompat & EXT_INCOMPAT_EXTENTS ? 0 : EXT_INODE_EXTENTS;
    uint32_t data = geometry->incompat & EXT_INCOMPAT_INLINE_DATA ? 0 : EXT_INODE_INLINE_DATA;
    uint32_t value = geometry->incompat & EXT_INCOMPAT_EA_INODE ? 0 : EXT_INODE_EA_INODE;
    return extents | data | value;
}

static int record_check(struct ext *ext, uint64_t ino, const struct ext_disk_inode *record) {
    uint32_t mode = le16_load(record->i_mode), flags = le32_load(record->i_flags);
    static const uint32_t types = 1u << (S_IFIFO >> 12) | 1u << (S_IFCHR >> 12) |
                                  1u << (S_IFDIR >> 12) | 1u << (S_IFBLK >> 12) |
                                  1u << (S_IFREG >> 12) | 1u << (S_IFLNK >> 12) |
                                  1u << (S_IFSOCK >> 12);

    if (!(types >> (mode >> 12) & 1))
        return ext_corrupt(ext, "inode %" PRIu64 ": mode 0%o has no known file type", ino, mode);
    if (flags & ext_inode_flags_unknown(&ext->geometry))
        return ext_corrupt(ext,
                           "inode %" PRIu64
                           ": flags 0x%x ask for a feature that the super block does not announce",
                           ino, flags);
    if (flags & (EXT_INODE_EXTENTS | EXT_INODE_INLINE_DATA) && !S_ISREG(mode) && !S_ISDIR(mode) &&
        !S_ISLNK(mode))
        return ext_corrupt(
            ext, "inode %" PRIu64 ": mode 0%o, which has no blocks, has extents or contents", ino,
            mode);
    if (flags & EXT_INODE_EXTENTS && flags & EXT_INODE_INLINE_DATA)
        return ext_corrupt(ext, "inode %" PRIu64 ": it has both extents and contents inside", ino);
    if (ext->geometry.inode_size > EXT_INODE_BASE_SIZE) {
        uint32_t extra = le16_load(record->i_extra_isize);
        if (extra % 4 != 0 || extra > ext->geometry.inode_size - EXT_INODE_BASE_SIZE)
            return ext_corrupt(
                ext, "inode %" PRIu64 ": i_extra_isize is %u, expected a multiple of 4 up to %u",
                ino, extra, ext->geometry.inode_size - EXT_INODE_BASE_SIZE);
    }
    return 0;
}

/* The block slots, once size and sectors are known. */
static int slots_load(struct inode *inode, const struct ext_disk_inode *record) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);

    if (ext_symlink_is_fast(inode)) {
        if (inode->size >= sizeof private->block)
            return ext_corrupt(ext,
                               "inode %" PRIu64 ": symlink without blocks has a target of %" PRIu64
                               " bytes, expected less than %zu",
                               inode->ino, inode->size, sizeof private->block);
        memcpy(private->block, record->i_block, sizeof private->block);
        return 0;
    }
    if (S_ISLNK(inode->mode) && inode->size >= ext->geometry.block_size)
        return ext_corrupt(ext,
                           "inode %" PRIu64 ": symlink has a target of %" PRIu64
                           " bytes, expected less than a block of %u",
                           inode->ino, inode->size, ext->geometry.block_size);
    if (inode->flags & (EXT_INODE_EXTENTS | EXT_INODE_INLINE_DATA)) {
        memcpy(private->block, record->i_block, sizeof private->block);
        return 0;
    }
    for (int i = 0; i < EXT_BLOCK_SLOTS; i++)
        ext_inode_of(inode)->block[i] = le32_load(record->i_block[i]);
    if (is_device(inode->mode))
        inode->rdev = device_decode(private->block);
    return 0;
}

/* i_size_high was i_dir_acl once. */
static bool has_wide_size(const struct ext *ext, uint32_t mode) {
    return S_ISREG(mode) || (S_ISDIR(mode) && ext->geometry.incompat & EXT_INCOMPAT_LARGEDIR);
}

static int record_decode(struct inode *inode, const struct ext_disk_inode *record) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);

    *private = (struct ext_inode){
        .file_acl = ext_record_file_acl(ext, record),
        .group = ext_group_of_inode(&ext->geometry, inode->ino),
        .orphan_next = le32_load(record->i_dtime),
    };
    if (ext->geometry.inode_size > EXT_INODE_BASE_SIZE)
        ext_inode_of(inode)->extra_size = le16_load(record->i_extra_isize);
    inode->mode = le16_load(record->i_mode);
    inode->nlink = le16_load(record->i_links_count);
    inode->uid = le16_load(record->i_uid) | (uint32_t)le16_load(record->i_uid_high) << 16;
    inode->gid = le16_load(record->i_gid) | (uint32_t)le16_load(record->i_gid_high) << 16;
    inode->flags = le32_load(record->i_flags);
    inode->generation = le32_load(record->i_generation);
    inode->sectors = ext_record_sectors(ext, record);
    inode->rdev = 0;
    inode->size = le32_load(record->i_size);
    if (has_wide_size(ext, inode->mode))
        inode->size |= (uint64_t)le32_load(record->i_size_high) << 32;
    inode->atime = TIME_LOAD(private, record, atime);
    inode->ctime = TIME_LOAD(private, record, ctime);
    inode->mtime = TIME_LOAD(private, record, mtime);
    inode->btime = (struct timestamp){0};
    if (EXTRA_HOLDS(private->extra_size, i_crtime_extra))
        inode->btime = time_decode(record->i_crtime, record->i_crtime_extra);

    if (inode->size > inode->volume->limits.file_size_max)
        return ext_corrupt(ext, "inode %" PRIu64 ": size %" PRIu64 " is more than a file can have",
                           inode->ino, inode->size);
    return slots_load(inode, record);
}

int ext_inode_load(struct inode *inode) {
    /* Directories hold none like this (dir.c has looked), but an old file handle may. */
    if (!ext_inode_number_valid(&ext_of(inode->volume)->geometry, inode->ino))
        return -ESTALE;
    int rc = ext_inode_load_any(inode);
    /* Nor an attribute's value, which has no name. */
    return rc == 0 && (inode->nlink == 0 || inode->flags & EXT_INODE_EA_INODE) ? -ESTALE : rc;
}

int ext_inode_load_any(struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    struct buffer *buffer;
    struct ext_disk_inode *record;

    if (inode->ino == 0 || inode->ino > ext->geometry.inodes_count ||
        !ext_inode_record_exists(ext, inode->ino))
        return -ESTALE;
    int rc = ext_inode_record(ext, inode->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    if (le16_load(record->i_mode) == 0)
        rc = -ESTALE;
    if (rc == 0 && !ext_inode_checksum_valid(&ext->geometry, inode->ino, record))
        rc = ext_corrupt(ext, "inode %" PRIu64 ", volume block %" PRIu64 ": its checksum is wrong",
                         inode->ino, buffer->block);
    if (rc == 0)
        rc = record_check(ext, inode->ino, record);
    if (rc == 0)
        rc = record_decode(inode, record);
    buffer_put(buffer);
    return rc;
}

/* --- store ----------------------------------------------------------------------------------- */

/* 32 bits of sectors; with huge_file 48 bits, of blocks where that does not suffice. */
static void sectors_encode(const struct ext *ext, struct inode *inode,
                           struct ext_disk_inode *record) {
    uint32_t sectors = ext->geometry.block_size / 512;
    uint64_t blocks = inode->sectors - ext_writer_look(inode)->promised_data * sectors;
    if (ext->geometry.ro_compat & EXT_RO_COMPAT_HUGE_FILE) {
        inode->flags &= ~(uint32_t)EXT_INODE_HUGE_FILE;
        if (blocks >> 48 != 0) {
            inode->flags |= EXT_INODE_HUGE_FILE;
            blocks >>= ext->geometry.block_bits - 9;
        }
        le16_store(&record->i_blocks_high, (uint16_t)(blocks >> 32));
    }
    le32_store(&record->i_blocks, (uint32_t)blocks);
}

static void slots_store(struct inode *inode, struct ext_disk_inode *record) {
    struct ext_inode *private = ext_inode_of(inode);
    if (is_device(inode->mode))
        device_encode(inode->rdev, private->block);
    if (ext_symlink_is_fast(inode) || inode->flags & (EXT_INODE_EXTENTS | EXT_INODE_INLINE_DATA)) {
        memcpy(record->i_block, private->block, sizeof record->i_block);
        return;
    }
    for (int i = 0; i < EXT_BLOCK_SLOTS; i++)
        le32_store(&record->i_block[i], private->block[i]);
}

static void record_encode(struct inode *inode, struct ext_disk_inode *record) {
    struct ext *ext = ext_of(inode->volume);
    const struct ext_inode *private = ext_inode_of(inode);

    le16_store(&record->i_mode, (uint16_t)inode->mode);
    le16_store(&record->i_links_count, (uint16_t)inode->nlink);
    le16_store(&record->i_uid, (uint16_t)inode->uid);
    le16_store(&record->i_uid_high, (uint16_t)(inode->uid >> 16));
    le16_store(&record->i_gid, (uint16_t)inode->gid);
    le16_store(&record->i_gid_high, (uint16_t)(inode->gid >> 16));
    le32_store(&record->i_generation, inode->generation);
    le32_store(&record->i_file_acl, (uint32_t) private->file_acl);
    if (ext->geometry.incompat & EXT_INCOMPAT_64BIT)
        le16_store(&record->i_file_acl_high, (uint16_t)(private->file_acl >> 32));
    uint64_t size = ext_store_size(inode);
    le32_store(&record->i_size, (uint32_t)size);
    if (has_wide_size(ext, inode->mode)) {
        le32_store(&record->i_size_high, (uint32_t)(size >> 32));
        if (size > SIZE_MAX_SMALL)
            ext_feature_announce(ext, &ext->geometry.ro_compat, &ext->super.s_feature_ro_compat,
                                 EXT_RO_COMPAT_LARGE_FILE);
    }
    sectors_encode(ext, inode, record);
    le32_store(&record->i_flags, inode->flags);
    slots_store(inode, record);
    if (ext->geometry.inode_size > EXT_INODE_BASE_SIZE)
        le16_store(&record->i_extra_isize, (uint16_t) private->extra_size);
    TIME_STORE(private, record, atime, inode->atime);
    TIME_STORE(private, record, ctime, inode->ctime);
    TIME_STORE(private, record, mtime, inode->mtime);
    if (EXTRA_HOLDS(private->extra_size, i_crtime_extra)) {
        le32_store(&record->i_crtime, (uint32_t)inode->btime.seconds);
        le32_store(&record->i_crtime_extra, time_extra(inode->btime));
    }
}

/* What fdatasync must not lose: that the inode is there, where its data are, and how much of them.
 */
static bool data_differs(const struct ext_disk_inode *a, const struct ext_disk_inode *b) {
    return le16_load(a->i_links_count) == 0 ||
           memcmp(&a->i_size, &b->i_size, sizeof a->i_size) != 0 ||
           memcmp(&a->i_size_high, &b->i_size_high, sizeof a->i_size_high) != 0 ||
           memcmp(&a->i_blocks, &b->i_blocks, sizeof a->i_blocks) != 0 ||
           memcmp(a->i_block, b->i_block, sizeof a->i_block) != 0;
}

/* Stores the inode; as deleted when `dtime` is not 0. */
static int record_store(struct inode *inode, uint32_t dtime) {
    const struct ext_inode *private = ext_inode_of(inode);
    struct buffer *buffer;
    struct ext_disk_inode *record;
    struct ext *ext = ext_of(inode->volume);
    int rc = ext_inode_record(ext, inode->ino, &buffer, &record);
    if (rc < 0)
        return rc;

    struct ext_disk_inode before;
    memcpy((void *)&before, record, EXT_INODE_BASE_SIZE);
    record_encode(inode, record);
    le32_store(&record->i_dtime, private->orphan ? private->orphan_next : dtime);
    ext_note_change(inode, data_differs(&before, record));
    ext_inode_record_changed(ext, inode->ino, buffer, record);
    buffer_put(buffer);
    return 0;
}

int ext_inode_store(struct inode *inode) {
    return record_store(inode, 0);
}

/* --- create and free ------------------------------------------------------------------------- */

uint32_t ext_extra_size(const struct ext *ext) {
    uint32_t room = ext->geometry.inode_size - EXT_INODE_BASE_SIZE;
    uint32_t size = EXTRA_SIZE_NEW < room ? EXTRA_SIZE_NEW : room;
    if (ext->geometry.ro_compat & EXT_RO_COMPAT_EXTRA_ISIZE) {
        uint32_t least = le16_load(ext->super.s_min_extra_isize);
        uint32_t want = le16_load(ext->super.s_want_extra_isize);
        if (least > size && least <= room)
            size = least;
        if (want > size && want <= room)
            size = want;
    }
    return size & ~3u;
}

static uint32_t flags_inherited(const struct inode *dir, uint32_t mode) {
    uint32_t flags = dir->flags & FLAGS_INHERITED;
    if (S_ISDIR(mode))
        return flags;
    return flags & (S_ISREG(mode) ? ~FLAGS_NOT_FOR_FILES : FLAGS_FOR_OTHERS);
}

/* Wipes what a former inode left in the record, attributes behind its extra part included. */
static int record_initialise(struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    struct buffer *buffer;
    struct ext_disk_inode *record;
    int rc = ext_inode_record(ext, inode->ino, &buffer, &record);
    if (rc < 0)
        return rc;
    memset((void *)record, 0, ext->geometry.inode_size);
    if (ext->geometry.inode_size > EXT_INODE_BASE_SIZE)
        le16_store(&record->i_extra_isize, (uint16_t)ext_inode_of(inode)->extra_size);
    ext_inode_record_changed(ext, inode->ino, buffer, record);
    buffer_put(buffer);
    return 0;
}

int ext_inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);
    int rc = ext_inode_number_allocate(ext, dir, inode->mode, &inode->ino);
    if (rc < 0)
        return rc;

    *private = (struct ext_inode){
        .extra_size = ext_extra_size(ext),
        .group = ext_group_of_inode(&ext->geometry, inode->ino),
    };
    inode->generation = ext->generation++;
    inode->flags = flags_inherited(dir, inode->mode);
    if (S_ISREG(inode->mode) || S_ISDIR(inode->mode))
        ext_map_initialise(inode);
    inode->size = 0;
    inode->sectors = 0;
    inode->btime = (struct timestamp){0};
    if (EXTRA_HOLDS(private->extra_size, i_crtime_extra))
        inode->btime = inode->ctime;
    /* ext2 gave up a file's preallocation when it was closed, which a layout does not see. That
     * the next file is made is the sign: files written one after another leave no gaps. */
    ext_windows_retire(ext);

    rc = record_initialise(inode);
    if (rc == 0 && S_ISDIR(inode->mode))
        rc = ext_dir_initialise(inode, dir->ino);
    if (rc < 0) {
        /* The error to report is the first one, whatever becomes of the undoing. */
        (void)ext_truncate(inode, 0);
        (void)ext_inode_number_free(ext, inode->ino, S_ISDIR(inode->mode));
        inode->ino = 0;
    }
    return rc;
}

int ext_inode_free(struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    int64_t now = clock_calendar(inode->volume->clock).seconds;

    int rc = ext_xattr_free(inode);
    if (rc == 0)
        rc = ext_truncate(inode, 0);
    if (rc == LAYOUT_AGAIN) {
        int error = ext_inode_store(inode);
        return error ? error : rc;
    }
    if (rc < 0)
        return rc;
    inode->size = 0;
    inode->nlink = 0;
    ext_order_drop(inode);
    rc = ext_orphan_remove(inode);
    if (rc == 0)
        rc = record_store(inode, now > 0 && now <= UINT32_MAX ? (uint32_t)now : UINT32_MAX);
    if (rc < 0)
        return rc;
    return ext_inode_number_free(ext, inode->ino, S_ISDIR(inode->mode));
}

void ext_inode_evict(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    ext_order_drop(inode);
    if (private->orphan) /* could not be freed: the next mount will */
        TAILQ_REMOVE(&ext_of(inode->volume)->orphans, private, orphan_link);
    private->orphan = false;
    ext_window_release(inode);
    ext_store_release(inode);
    ext_writer_release(inode);
}

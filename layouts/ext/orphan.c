/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over inode.c. The orphan list: inodes that have no name but are in use, and
 * those whose blocks behind their end are being freed in more than one transaction. What is on it
 * when the system fails is freed, or cut, by the next mount.
 *
 * On disk the list begins in the super block's s_last_orphan and goes on in the inodes' i_dtime. In
 * core it is kept as well, in the same order, to find an inode's predecessor. Without a journal
 * there is none: nothing says then which parts of it would reach the disk.
 *
 * Invariants:
 *  1. ext->orphans and the list on disk (in buffers) hold the same inodes in the same order.
 *  2. An inode on the list stores orphan_next in i_dtime (inode.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "layouts/ext/ext.h"
#include "layouts/ext/journal.h"

static void list_begin(struct ext *ext, uint64_t ino) {
    le32_store(&ext->super.s_last_orphan, (uint32_t)ino);
    ext->super_dirty = true;
}

int ext_orphan_add(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    struct ext *ext = ext_of(inode->volume);
    int rc;

    if (!ext->journal || private->orphan)
        return 0;
    private->orphan = true;
    private->orphan_next = le32_load(ext->super.s_last_orphan);
    rc = ext_inode_store(inode);
    if (rc < 0) {
        private->orphan = false;
        return rc;
    }
    TAILQ_INSERT_HEAD(&ext->orphans, private, orphan_link);
    list_begin(ext, inode->ino);
    return 0;
}

int ext_orphan_remove(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *previous;
    int rc = 0;

    if (!private->orphan)
        return 0;
    previous = TAILQ_PREV(private, ext_orphan_list, orphan_link);
    if (previous) {
        previous->orphan_next = private->orphan_next;
        rc = ext_inode_store((struct inode *)(void *)previous - 1);
    } else {
        list_begin(ext, private->orphan_next);
    }
    TAILQ_REMOVE(&ext->orphans, private, orphan_link);
    private->orphan = false;
    return rc < 0 ? rc : ext_inode_store(inode);
}

/* --- at mount -----------------------------------------------------------------------------------
 */

/* Frees or cuts the first inode of the list, in as many steps as it takes. */
static int orphan_finish(struct ext *ext, struct inode *inode) {
    int rc;

    do {
        rc = inode->nlink == 0 ? ext_inode_free(inode) : ext_truncate(inode, inode->size);
        if (rc == 0 && inode->nlink > 0)
            rc = ext_inode_store(inode);
        if (rc == LAYOUT_AGAIN) {
            int error = ext_journal_commit_now(ext->journal);

            rc = error ? error : rc;
        }
    } while (rc == LAYOUT_AGAIN);
    return rc;
}

static int orphan_clean(struct ext *ext, struct inode *inode, uint64_t ino) {
    struct ext_inode *private = ext_inode_of(inode);
    int rc;

    inode->volume = ext->volume;
    inode->ino = ino;
    rc = ext_inode_number_valid(&ext->geometry, ino) ? ext_inode_number_used(ext, ino) : 0;
    if (rc == 1)
        rc = ext_inode_load_any(inode);
    else if (rc == 0)
        rc = -ESTALE;
    if (rc == -ESTALE ||
        (rc == 0 && inode->nlink > 0 && !ext_has_block_map(inode) && !ext_is_inline(inode)))
        return ext_corrupt(ext,
                           "orphan list: inode %" PRIu64 " is not one to be freed or cut; the list "
                           "is given up, run e2fsck -f",
                           ino);
    if (rc < 0)
        return rc;
    /* Its i_dtime is the rest of the list, which the first step takes it off. */
    private->orphan = true;
    TAILQ_INSERT_HEAD(&ext->orphans, private, orphan_link);
    return orphan_finish(ext, inode);
}

int ext_orphans_clean(struct ext *ext) {
    uint32_t cleaned = 0;
    int rc = 0;

    while (rc == 0 && le32_load(ext->super.s_last_orphan) != 0) {
        uint32_t ino = le32_load(ext->super.s_last_orphan);
        struct inode *inode = calloc(1, sizeof(*inode) + sizeof(struct ext_inode));

        if (!inode)
            return -ENOMEM;
        /* Each leaves the list, so that one that goes in a circle comes to an unused inode. */
        rc = cleaned++ < ext->geometry.inodes_count ? orphan_clean(ext, inode, ino) : -EUCLEAN;
        ext_inode_evict(inode);
        free(inode);
    }
    if (cleaned > 0)
        log_info(ext->volume->log, "%s: orphan list: %u inodes freed or cut", ext->volume->name,
                 cleaned);
    if (rc == -EUCLEAN) { /* as noted: the volume can be used */
        list_begin(ext, 0);
        rc = ext->volume->read_only ? -EUCLEAN : 0;
    }
    return rc;
}

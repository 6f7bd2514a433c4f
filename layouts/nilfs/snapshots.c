/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top, over cpfile.h: the checkpoints as the contract has them.
 * Interface: layouts/nilfs/layout.h.
 */
#include <errno.h>

#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/layout.h"

static struct checkpoint described(const struct nilfs_checkpoint *found) {
    return (struct checkpoint){
        .number = found->cno,
        .time = found->created,
        .blocks = found->blocks,
        .inodes = found->inodes,
        .written = found->increment,
        .flags = (found->flags & NILFS_CP_SNAPSHOT ? CHECKPOINT_KEPT : 0) |
                 (found->flags & NILFS_CP_MINOR ? CHECKPOINT_MINOR : 0),
    };
}

/* The slot of a checkpoint under construction exists for a while before the checkpoint does. */
int64_t nilfs_checkpoint_list(struct volume *volume, uint64_t from, struct checkpoint *list,
                              size_t room) {
    struct nilfs *nilfs = nilfs_of(volume);
    struct nilfs_checkpoint found;
    size_t count = 0;

    while (count < room) {
        int error = nilfs_cpfile_next(nilfs, from, false, &found);
        if (error == -ENOENT || (!error && found.cno > nilfs->newest))
            break;
        if (error)
            return error;
        list[count++] = described(&found);
        from = found.cno + 1;
    }
    return (int64_t)count;
}

/* A checkpoint's slot, its two neighbours in the list of snapshots, and the header. */
static int claim_slots(struct nilfs *nilfs) {
    const struct nilfs_demand demand = {.blocks = 4 * nilfs_space_change(nilfs->cpfile)};

    return nilfs_space_claim(nilfs, NILFS_CLAIM_REMOVE, &demand);
}

int nilfs_checkpoint_keep(struct volume *volume, uint64_t *number, bool keep) {
    struct nilfs *nilfs = nilfs_of(volume);

    if (*number == 0)
        *number = nilfs->newest;
    if (*number > nilfs->newest)
        return -ENOENT;
    int error = claim_slots(nilfs);
    if (error)
        return error;
    nilfs_cleaner_forget(nilfs);
    return nilfs_cpfile_keep(nilfs, *number, keep);
}

int nilfs_checkpoint_delete(struct volume *volume, uint64_t number) {
    struct nilfs *nilfs = nilfs_of(volume);
    struct nilfs_checkpoint found;

    if (number >= nilfs->newest)
        return number == nilfs->newest ? -EBUSY : -ENOENT;
    int error = nilfs_cpfile_read(nilfs, number, &found);
    if (!error)
        error = claim_slots(nilfs);
    return error ? error : nilfs_cpfile_delete(nilfs, number, number + 1);
}

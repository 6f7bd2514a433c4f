#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Many files, large files, large directories, full disks, without mounting: every byte is read again,
# e2fsck is content, and the free counts are right after every stage.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
. "$LAYOUTFS_SOURCE/tests/scale/stages.sh"

prepare_image() { :; }
look_again() { :; }

run_scale() {
    "$scale" "$1" disk.img model "$options"
}

# With little memory everything is evicted and read again in between.
options=cache=24M
for mkfs_options in "-b 1024 -I 256" "-b 4096"; do
    tree_stages "$mkfs_options" halve clear
    full_stages "$mkfs_options"
done
# Other strategies than the defaults.
options=cache=24M,dir_placement=old,alloc=goal,prealloc=64
full_stages "-b 1024"
options=cache=24M,dir_placement=sequential,alloc=first-fit
tree_stages "-b 2048"
full_stages "-b 2048 -I 256"

# With a journal, whose transactions have to end in the midst of it all.
# journaled TYPE MKFS_OPTIONS [OPTIONS]
journaled() {
    type=$1 options=cache=24M${3:+,$3}
    tree_stages "$2" halve clear
    full_stages "$2"
}
journaled ext3 "-b 4096"
journaled ext4 "-b 4096"
type=ext4 options=cache=24M,delalloc=off
full_stages "-b 1024"
# Where a removal makes no room at once, a full disk is another matter (mount_lifetime.sh).
type=nilfs2 options=cache=24M
tree_stages "-b 4096" halve clear
if [ "${LAYOUTFS_TEST_FACTOR:-1}" -gt 1 ]; then
    for block_size in 1024 2048; do
        journaled ext3 "-b $block_size"
        journaled ext4 "-b $block_size"
    done
    for mode in writeback data; do
        journaled ext3 "-b 1024" "journal=$mode"
        journaled ext4 "-b 4096" "journal=$mode"
    done
    journaled ext3 "-b 1024 -o journal_size=1M"
    journaled ext4 "-b 4096" delalloc=off
    for block_size in 1024 2048; do
        type=nilfs2 options=cache=24M
        tree_stages "-b $block_size" halve clear
    done
fi
echo "everything is as it was left"

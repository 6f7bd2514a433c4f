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
echo "everything is as it was left"

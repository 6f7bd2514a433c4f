#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The model checker (tests/model) through mounts: random operations, each of which must do what it
# does to a simple model of a POSIX tree; and on the kernel's ext4, which judges the model.
# A failure prints the shortest sequence found; LAYOUTFS_TEST_SEED replays it, LAYOUTFS_TEST_FACTOR
# makes the sequences more.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need e2fsck mke2fs mountpoint

checker=$(dirname "$LAYOUTFS")/../tests/model_mounted
[ -x "$checker" ] || skip "the tests are not built"
factor=${LAYOUTFS_TEST_FACTOR:-1}
mnt=$PWD/mnt
mkdir mnt
leave() {
    ! mountpoint -q mnt || layoutfs umount "$mnt" || umount mnt || true
}
trap leave EXIT

# check_model WHAT SEQUENCES ARGUMENTS...: on what is mounted. What is not supported goes to ./lacks.
check_model() {
    local what=$1 sequences=$2
    shift 2
    echo "$what"
    "$checker" -n $((sequences * factor)) -l 1500 "$@" mnt >out || {
        cat out >&2
        fail "$what differs from the model"
    }
    grep LAYOUTFS_TEST_SEED out
    sed -n 's/^not supported: *//p' out >lacks
}

expect_lacks() {
    [ "$(cat lacks)" = "$1" ] || fail "not supported: $(cat lacks); expected: $1"
}

layoutfs mount -t memory none mnt -o allow_other
check_model memory 16 -x
expect_lacks "collapse insert"
layoutfs umount mnt

# image TYPE OPTIONS MKFS...: with a remount now and then.
image() {
    local type=$1 options=$2 size=256M sequences=8 space=-x
    local lacks="preallocate-keep-size zero-keep-size collapse insert"
    shift 2
    case $type in
    ext4) lacks="collapse insert" ;;
    # What was overwritten or removed makes no room before the cleaner comes to it.
    nilfs2) size=2G sequences=4 lacks+=" xattr" space= ;;
    # Nor what was removed before it is committed.
    reiser4) sequences=4 lacks+=" xattr" space= ;;
    esac
    rm -f disk.img
    layoutfs mkfs -q -t "$type" --size $size "$@" disk.img
    layoutfs mount disk.img mnt -o "$options"
    check_model "$type${*:+ $*}, $options" $sequences $space \
        -r "$LAYOUTFS umount $mnt && $LAYOUTFS mount $PWD/disk.img $mnt -o $options"
    expect_lacks "$lacks"
    layoutfs umount mnt
    expect_sound "$type" disk.img
}

image ext2 rw -I 256
image ext2 writeback -b 1024
image ext2 cache=8M -b 2048 -O ^dir_index
image ext2 writeback,cache=8M -I 256
image ext3 writeback -b 1024
image ext3 journal=data -I 256
image ext4 writeback
image ext4 delalloc=on,cache=8M -b 1024
image nilfs2 rw
image nilfs2 writeback,cache=8M,interval=1 -b 1024

image reiser4 rw -o create=reg40
# (Not with writeback: the kernel then shows times before 1970 that the format cannot keep.)
image reiser4 cache=8M,txmod=journal,tmgr.atom_max_age=1 -o create=reg40,formatting=extents

# The model itself.
truncate -s 256M kernel.img
mke2fs -q -F -t ext4 kernel.img
if mount -t ext4 -o loop kernel.img mnt 2>mount.err; then
    check_model "the kernel's ext4" 4 -x
    expect_lacks ""
    umount mnt
fi

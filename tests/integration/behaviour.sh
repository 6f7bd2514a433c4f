#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What programs may expect of a filesystem (behaviour.py), on mounts of every layout, once more after
# a remount, and read-only. The kernel's ext4 is the judge: it runs the same checks, and the largest
# file is as large as there.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need python3 e2fsck mke2fs mountpoint

checks=$LAYOUTFS_SOURCE/tests/integration/behaviour.py
wide="time_min=-2147483648 time_max=15032385535 ns=1"
narrow="time_min=-2147483648 time_max=2147483647 ns=0"
any_time="time_min=-999999999999 time_max=999999999999 ns=1"
mkdir mnt
leave() {
    ! mountpoint -q mnt || layoutfs umount "$PWD/mnt" || umount -l mnt || true
}
trap leave EXIT

# What the kernel reads ahead keeps a mount in use for a moment after its last user has gone.
unmount() {
    for _ in $(seq 100); do
        ! layoutfs umount mnt 2>umount.err || return 0
        sleep 0.1
    done
    fail "$(cat umount.err)"
}

# check PHASE WHAT FACT...
check() {
    local phase=$1 what=$2
    shift 2
    # shellcheck disable=SC2048,SC2086 # a word each
    python3 "$checks" "$phase" "$PWD/mnt" $* >out || {
        cat out >&2
        fail "$what: $phase"
    }
}

layoutfs mount -t memory none mnt -o allow_other
check make memory "$any_time"
unmount

# image TYPE FACTS OPTION...: an image made with these options. The sizes of its files go to ./limit.
image() {
    local type=$1 facts=$2
    shift 2
    rm -f disk.img
    layoutfs mkfs -q -t "$type" --size 256M "$@" disk.img
    layoutfs mount disk.img mnt -o allow_other
    check make "$type $*" "$facts"
    grep file_max out >limit
    unmount
    expect_sound "$type" disk.img
    layoutfs mount disk.img mnt -o allow_other
    check verify "$type $*" "$facts"
    unmount
    layoutfs mount disk.img mnt -o ro,allow_other
    check read-only "$type $*" "$facts"
    unmount
}

# The kernel's largest file in the same image.
expect_kernels_limit() {
    mount -t ext4 -o loop disk.img mnt 2>mount.err || return 0
    python3 - "$PWD/mnt" >kernels-limit <<'PYTHON'
import os, sys
file, low, high = os.open(sys.argv[1] + "/largest", os.O_CREAT | os.O_RDWR), 0, (1 << 63) - 1
while low < high:
    middle = (low + high + 1) // 2
    try: os.ftruncate(file, middle); low = middle
    except OSError: high = middle - 1
print("file_max %d" % low)
PYTHON
    umount mnt
    expect_same kernels-limit limit "the largest file, of the kernel and here"
}

for block_size in 1024 2048 4096; do
    image ext2 "$narrow" -b $block_size -I 128
    expect_kernels_limit
done
image ext3 "$wide" -I 256
for block_size in 1024 4096; do
    image ext4 "$wide" -b $block_size
    expect_kernels_limit
done
image nilfs2 "$any_time xattrs=0 segment=$((2048 << 12))"

# The checks themselves.
mke2fs -q -F -t ext4 disk.img
if mount -t ext4 -o loop disk.img mnt 2>mount.err; then
    check make "the kernel's ext4" "$wide"
    umount mnt
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Requests that the FUSE front end reads by itself, and what only a mount shows: O_TMPFILE, times of
# birth, copy_file_range and fallocate beside cached pages, ioctls, reserved blocks, file handles,
# positions in listings.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need e2fsck python3

cleanup() {
    ! grep -q " $PWD/mnt " /proc/mounts || layoutfs umount "$PWD/mnt" >/dev/null 2>&1 || true
}
trap cleanup EXIT
mkdir -p mnt
tests=$LAYOUTFS_SOURCE/tests/integration

# mount_fresh TYPE OPTIONS: in the foreground, so that its log counts requests.
mount_fresh() {
    local image=disk.img
    rm -f $image
    case $1 in
    memory) image=none ;;
    ext2) layoutfs mkfs -q -t ext2 --size 64M -L label -I 256 $image ;;
    *) layoutfs mkfs -q -t "$1" --size 256M -L label $image ;;
    esac
    mount_again "$1" $image "$2"
}

mount_again() {
    layoutfs mount -f -v -t "$1" "$2" mnt -o "allow_other,$3" >mount.log 2>&1 &
    server=$!
    until grep -q " $PWD/mnt " /proc/mounts; do
        kill -0 $server 2>/dev/null || fail "$(cat mount.log)"
        sleep 0.05
    done
}

unmount() {
    layoutfs umount mnt
    wait $server || fail "$(cat mount.log)"
}

# requests NAME: how many of these the last mount served.
requests() {
    sed -n "s/.*requests served:.* $1 \([0-9]*\).*/\1/p" mount.log
}

# A handle is good after a remount, and of no use for what is gone.
for type in memory ext2 nilfs2; do
    for options in rw writeback; do
        mount_fresh $type $options
        python3 "$tests/mount_protocol.py" mnt "$type,$options" all handles.bin
        unmount
        [ $type != memory ] || continue
        expect_sound $type disk.img
        mount_again $type disk.img $options
        python3 "$tests/mount_protocol.py" mnt "$type,$options" handles handles.bin
        unmount
        expect_sound $type disk.img
    done
done

# The time of birth costs who asks for it a request, once, and nobody else any.
for type in memory ext2; do
    mount_fresh $type rw
    for name in $(seq 20); do echo x >"mnt/$name"; done
    ls -lR mnt >/dev/null
    python3 -c 'import os, sys
for name in os.listdir("mnt"): os.stat("mnt/" + name)'
    for _ in 1 2; do
        [ "$(stat -c %W mnt/7)" -ge $(($(date +%s) - 100)) ] || fail "$type: no time of birth"
    done
    unmount
    [ "$(requests statx)" = 1 ] || fail "$type: $(requests statx) requests for one time of birth"
done

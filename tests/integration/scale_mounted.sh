#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The same as scale.sh through mounts; and for root, the Linux ext4 driver must see the same trees,
# down to inode numbers and nanoseconds, and report the same space.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_fuse
. "$LAYOUTFS_SOURCE/tests/scale/stages.sh"
need debugfs mountpoint

mkdir mnt kernel
leave() {
    ! mountpoint -q mnt || layoutfs umount mnt || true
    ! mountpoint -q kernel || umount kernel || true
}
trap leave EXIT

# A plain user must own the root to make something in it.
prepare_image() {
    [ "$(id -u)" -ne 0 ] || return 0
    debugfs -w -R "set_inode_field / uid $(id -u)" disk.img 2>/dev/null
}

run_scale() {
    layoutfs mount disk.img mnt -o "$options" &&
        "$scale" "$1" mnt model &&
        layoutfs umount mnt
}

# listing DIR: all that stat tells but access times, one line an object.
listing() {
    (cd "$1" && find . -printf '%P %i %y %m %n %U %G %s %b %T@ %C@ %l\n' | sort)
    stat -f -c 'block size %S, blocks %b, free %f, available %a, inodes %c, free %d, names to %l' "$1"
}

kernel_mounts() {
    [ "$(id -u)" -eq 0 ] && [ "$type" != nilfs2 ] && mount -t ext4 -o loop,ro disk.img kernel 2>mount.err
}

# With the caches of the mount empty; and what the kernel sees.
look_again() {
    case $1 in
    sizes | fill | exhaust) ;;
    *) return 0 ;;
    esac
    layoutfs mount disk.img mnt -o "ro,$options"
    "$scale" verify mnt model >/dev/null || fail "$1: looked at through a mount"
    if kernel_mounts; then
        "$scale" verify kernel model >/dev/null || fail "$1: the kernel sees something else"
        listing mnt >ours
        listing kernel >kernels
        expect_same kernels ours "$1: what the kernel sees and what is mounted"
        umount kernel
    fi
    layoutfs umount mnt
}

# at_once STAGE...: three programs at a time, each in a directory of its own.
at_once() {
    local stage number programs program
    rm -f disk.img model[123]
    layoutfs mkfs -q -t "$type" -b 1024 --size 64M disk.img
    prepare_image
    layoutfs mount disk.img mnt -o "$options"
    mkdir mnt/1 mnt/2 mnt/3
    for stage in "$@"; do
        programs=()
        for number in 1 2 3; do
            "$scale" "$stage" "mnt/$number" "model$number" >/dev/null &
            programs+=($!)
        done
        for program in "${programs[@]}"; do
            wait "$program" || fail "$stage, three at once"
        done
        layoutfs umount mnt
        expect_clean disk.img
        expect_exit 0 layoutfs check disk.img
        layoutfs mount disk.img mnt -o "$options"
        for number in 1 2 3; do
            "$scale" verify "mnt/$number" "model$number" >/dev/null || fail "$stage, three at once"
        done
    done
    layoutfs umount mnt
}

# With little memory: data is evicted, and read again in between.
options=cache=24M
tree_stages "-b 1024"
full_stages "-b 1024"
full_stages "-b 4096 -I 256"
at_once fill halve fill
type=ext3
full_stages "-b 4096"
type=ext4
tree_stages "-b 4096"
full_stages "-b 4096"
at_once fill halve fill
if [ "$(id -u)" -eq 0 ]; then # whom its root belongs to
    type=nilfs2
    run_stages "-b 4096 --size 2G" unpack halve storm sizes
fi
if [ "${LAYOUTFS_TEST_FACTOR:-1}" -gt 1 ]; then
    if [ "$type" = nilfs2 ]; then
        for block_size in 1024 2048 4096; do
            tree_stages "-b $block_size" halve clear
        done
    fi
    type=ext2
    tree_stages "-b 4096 -I 256"
    for type in ext3 ext4; do
        for block_size in 1024 2048 4096; do
            tree_stages "-b $block_size" halve clear
            full_stages "-b $block_size"
        done
        at_once fill halve fill
    done
fi
echo "everything is as it was left"

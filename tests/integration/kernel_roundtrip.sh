#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The Linux ext4 driver as the judge, in both directions: what the kernel has written is read here,
# and what was written here is read by the kernel; trees must agree in owners, modes, times, link
# counts, device numbers, extended attributes, holes and contents.
. "${LAYOUTFS_SOURCE:?}/tests/tree.sh"
need_loop
need mke2fs e2fsck setfattr getfattr setfacl

mount_point=$PWD/mnt
mkdir "$mount_point"
leave() {
    ! mountpoint -q "$mount_point" || umount "$mount_point"
}
trap leave EXIT

# kernel_mount IMAGE [OPTIONS]: the loop device goes away with the mount.
kernel_mount() {
    mount -t ext4 -o "loop${2:+,$2}" "$1" "$mount_point" 2>mount.err ||
        mount -t ext2 -o "loop${2:+,$2}" "$1" "$mount_point" 2>>mount.err || {
        grep -q 'unknown filesystem type' mount.err && skip "the kernel has no ext2"
        grep -qi 'permission\|failed to setup loop' mount.err && skip "may not mount loop devices"
        cat mount.err >&2
        fail "the kernel does not mount $1"
    }
}

kernel_umount() {
    umount "$mount_point"
}

# The kernel writes, layoutfs reads.
for inode_size in 128 256; do
    truncate -s 400M kernel.img
    mke2fs -q -F -t ext2 -I $inode_size kernel.img
    kernel_mount kernel.img user_xattr,acl
    # 128-byte inodes cannot tell 2100 from 1964.
    make_tree "$mount_point"
    [ $inode_size -eq 256 ] || touch -d '2030-01-01' "$mount_point/white space"
    listing "$mount_point" >want
    kernel_umount

    rm -rf copy
    layoutfs cp -a kernel.img:/ copy
    listing copy >got
    expect_same want got "a tree by the kernel ($inode_size-byte inodes)"
    expect_exit 0 layoutfs check kernel.img

    # Both take turns on one image: layoutfs removes and adds, the kernel judges.
    layoutfs rm -r kernel.img /many /dir/data
    layoutfs cp -a copy/many kernel.img:/dir
    expect_clean kernel.img
    kernel_mount kernel.img
    [ "$(find "$mount_point/dir/many" -type f | wc -l)" -eq 3000 ] ||
        fail "the kernel does not see what was added"
    rm -r "$mount_point/dir/many"
    kernel_umount
    expect_clean kernel.img
    rm kernel.img
done

# layoutfs writes, the kernel reads.
for block_size in 1024 2048 4096; do
    layoutfs mkfs -q -t ext2 -b $block_size -I 256 --size 400M ours.img
    layoutfs cp -a copy/. ours.img:/
    layoutfs rm -r ours.img /dir/double-indirect
    expect_clean ours.img
    kernel_mount ours.img
    listing "$mount_point" >got
    listing copy | grep -v dir/double-indirect >want
    grep -v '^dir d ' want >want.rest
    grep -v '^dir d ' got >got.rest # its time tells of the removal
    expect_same want.rest got.rest "a tree by layoutfs ($block_size-byte blocks)"
    echo "by the kernel" >"$mount_point/plain"
    rm -r "$mount_point/many"
    kernel_umount
    expect_clean ours.img
    [ "$(layoutfs cat ours.img /plain)" = "by the kernel" ] || fail "the kernel's bytes are not seen"
    rm ours.img
done
echo "both read what the other has written"

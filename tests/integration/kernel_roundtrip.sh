#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The Linux ext4 driver as the judge, in both directions: what the kernel has written is read here,
# and what was written here is read by the kernel; trees must agree in owners, modes, times, link
# counts, device numbers, extended attributes, holes and contents.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
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

# make_tree DIR: one of everything.
make_tree() (
    cd "$1"
    mkdir -p dir/deeper 'white space' many
    echo text >plain
    head -c 5000000 /dev/urandom >dir/data
    head -c 70000000 /dev/zero | tr '\0' 'd' >dir/double-indirect
    truncate -s 3G sparse
    printf middle | dd of=sparse bs=1 seek=2000000000 conv=notrunc status=none
    printf end | dd of=sparse bs=1 seek=3221225469 conv=notrunc status=none
    ln plain dir/hard
    ln plain dir/deeper/hard
    ln -s ../plain dir/fast
    ln -s "$(printf 'long/%.0s' {1..150})" dir/slow
    mkfifo dir/fifo
    mknod dir/null c 1 3
    mknod dir/disk b 8 17
    mknod dir/large c 300 70000
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("dir/socket")'
    seq -f 'many/a-file-with-a-rather-long-name-%05g' 3000 | xargs touch
    chown 1234:567 plain
    chown -h 70000:80000 dir/fast dir/deeper
    chmod 6755 dir/data
    chmod 1777 'white space'
    chmod 2750 dir
    setfattr -n user.note -v 'a value' plain
    setfattr -n user.large -v "$(printf 'v%.0s' {1..900})" dir/data
    setfattr -n trusted.kept -v 0x00010203 dir
    setfacl -m u:4321:rwx,g:8765:r plain
    setfacl -d -m u:4321:rx dir/deeper
    touch -h -d '2001-02-03 04:05:06.123456789' plain dir/fast dir/data
    touch -d '1969-12-31 23:59:58.5' dir/null
    touch -d '2100-06-07 08:09:10.987654321' 'white space'
)

# listing DIR: all that a copy must keep, one line an object; of directories all but the size.
listing() (
    cd "$1"
    find . -mindepth 1 ! -path './lost+found*' \
        \( -type d -printf '%P %y %m %U %G %T@\n' -o \
        -printf '%P %y %m %n %U %G %s %T@ %l\n' \) | sort
    find . \( -type b -o -type c \) -exec stat -c '%n %t:%T' {} + | sort
    find . ! -path './lost+found*' ! -type l -print0 | sort -z |
        xargs -0 getfattr --absolute-names -d -m '^(user|trusted|system)\.' -e hex 2>/dev/null
    find . -type f -size -100M -print0 | sort -z | xargs -0 sha256sum
    # The large sparse file: where it is not zero, and that its holes are holes.
    tail -c 3 sparse && dd if=sparse bs=1 skip=2000000000 count=6 status=none
    [ "$(stat -c %b sparse)" -lt 200 ] && echo ' with holes'
)

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

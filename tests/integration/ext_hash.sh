#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Indexed directories of every hash version, signed and unsigned, with names beyond ASCII: what the
# Linux driver has made is found here, in the same order, and what was added here the driver finds.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_loop
need mke2fs e2fsck debugfs python3

mount_point=$PWD/mnt
mkdir "$mount_point"
leave() {
    ! mountpoint -q "$mount_point" || umount "$mount_point"
}
trap leave EXIT

# make_names DIR PREFIX COUNT: empty files, their names ending in bytes above 127.
make_names() {
    python3 -c '
import os, sys
directory, prefix, count = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), int(sys.argv[3])
for i in range(count):
    open(directory + b"/" + prefix + b"%d\xc3\xa9" % i + b"\xff" * (i % 40), "w").close()' "$@"
}

# order DIR: names as readdir gives them.
order() {
    python3 -c '
import os, sys
for name in os.listdir(os.fsencode(sys.argv[1])):
    sys.stdout.buffer.write(name + b"\n")' "$1"
}

names=$PWD/names
mkdir added
make_names added ours 1500

for hash in legacy half_md4 tea; do
    for flags in 1 2; do # signed, unsigned
        truncate -s 40M disk.img
        mke2fs -q -F -t ext2 -b 1024 -N 8000 disk.img
        debugfs -w -f - disk.img >/dev/null 2>&1 <<<"ssv def_hash_version $hash
ssv flags $flags"
        mount -t ext4 -o loop disk.img "$mount_point" 2>mount.err ||
            skip "the kernel does not mount: $(cat mount.err)"
        mkdir "$mount_point/dir"
        make_names "$mount_point/dir" kernel 2500
        order "$mount_point/dir" >want
        umount "$mount_point"

        if [ -w /dev/fuse ] && layoutfs mount disk.img "$mount_point" 2>mount.err; then
            order "$mount_point/dir" >got
            layoutfs umount "$mount_point"
            cmp want got || fail "$hash, flags $flags: not the kernel's order"
        fi
        layoutfs cp -r added/. disk.img:/dir
        expect_clean disk.img
        mount -t ext4 -o loop disk.img "$mount_point"
        (cd added && ls) >"$names"
        (cd "$mount_point/dir" && xargs -a "$names" -d '\n' stat -c %n) >found ||
            fail "$hash, flags $flags: the kernel does not find what was added"
        cmp "$names" found
        (cd "$mount_point/dir" && xargs -a "$names" -d '\n' rm)
        order "$mount_point/dir" | sort >got
        sort want | cmp - got || fail "$hash, flags $flags: names are lost"
        umount "$mount_point"
        expect_clean disk.img
        rm disk.img
    done
done
echo "all hash versions agree with the kernel's"

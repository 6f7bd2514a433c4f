#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Extent trees, with e2fsck, debugfs and the Linux ext4 driver as judges, in both directions: files
# with holes, with very many extents, preallocated, and with a block map beside them.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_loop
need mke2fs e2fsck debugfs python3

mount_point=$PWD/mnt
mkdir "$mount_point"
leave() {
    ! mountpoint -q "$mount_point" || umount "$mount_point"
}
trap leave EXIT

# make_files DIR: one of each kind of map.
make_files() {
    python3 - "$1" <<'EOF'
import os, random, sys
os.chdir(sys.argv[1])
random.seed(4)
def holes(name, count, step, size):
    with open(name, 'wb') as f:
        order = list(range(count))
        random.shuffle(order)
        for i in order:
            f.seek(i * step)
            f.write(b'%08d' % i * (size // 8))
holes('forty-thousand-extents', 40000, 8192, 1024)
holes('to-two-terabytes', 300, 6 << 30, 4096)
with open('five-gigabytes', 'wb') as f:
    for i in range(6):
        f.seek(i * 900000000 + 17)
        f.write(os.urandom(300000))
    f.truncate(5 << 30)
os.makedirs('dir')
for i in range(3000):
    open('dir/a-file-with-a-rather-long-name-%05d' % i, 'wb').write(b'%d' % i * (i % 60))
os.symlink('long/' * 120, 'slow')
os.symlink('fast', 'quick')
open('empty', 'wb').close()
EOF
}

# sums DIR: names, sizes and what is in them, by pages that are not zero.
sums() {
    python3 - "$1" <<'EOF'
import hashlib, os, sys
os.chdir(sys.argv[1])
for root, dirs, files in os.walk('.'):
    dirs.sort()
    for name in sorted(files + [d for d in dirs if os.path.islink(os.path.join(root, d))]):
        path = os.path.join(root, name)
        if os.path.islink(path):
            print(path, '->', os.readlink(path))
            continue
        fd = os.open(path, os.O_RDONLY)
        size, at, total = os.fstat(fd).st_size, 0, hashlib.md5()
        while at < size:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA) // 4096 * 4096
            except OSError:
                break
            end = os.lseek(fd, at, os.SEEK_HOLE)
            end = max(end, at + 4096)
            while at < end:
                piece = os.pread(fd, 4096, at)
                if piece.strip(b'\0'):
                    total.update(b'%d:' % at + piece)
                at += 4096
        print(path, size, total.hexdigest())
        os.close(fd)
EOF
}

# check_both IMAGE: both checkers are content.
check_both() {
    expect_clean "$1"
    layoutfs check "$1" >check.out || fail "layoutfs check $1: $(cat check.out)"
}

# The kernel writes, we read; then we copy within the image, and the kernel reads that.
both_ways() {
    local image=$1
    shift
    rm -rf "$image" out.tree
    truncate -s 1G "$image"
    mke2fs -q -F -t ext4 -N 10000 "$@" "$image"
    kernel_mount "$image"
    mkdir "$mount_point/kernel"
    make_files "$mount_point/kernel"
    fallocate -l 3M "$mount_point/kernel/preallocated"
    printf written | dd of="$mount_point/kernel/preallocated" bs=1 seek=1000000 conv=notrunc \
        status=none
    sums "$mount_point/kernel" >kernel.sums
    umount "$mount_point"
    check_both "$image"

    mkdir out.tree
    layoutfs cp -r "$image:/kernel" out.tree
    sums out.tree/kernel >ours.sums
    expect_same kernel.sums ours.sums "what the kernel wrote and what is read here"
    layoutfs cp -r out.tree/kernel "$image:/ours"
    check_both "$image"
    kernel_mount "$image"
    sums "$mount_point/ours" >back.sums
    expect_same kernel.sums back.sums "what was written here and what the kernel reads"
    rm -rf "$mount_point/kernel"
    umount "$mount_point"
    layoutfs rm -r "$image" /ours
    check_both "$image"
}

both_ways one.img -b 1024 -O \
    '^has_journal,^metadata_csum,^64bit,^flex_bg,^uninit_bg,^orphan_file,^huge_file,^resize_inode'
both_ways four.img -b 4096

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# mkfs against mke2fs: dumpe2fs must show the same volume, but for UUID, hash seed and times, over
# many sizes and parameters; e2fsck must be content; the published ext2 row must come out.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need mke2fs dumpe2fs e2fsck debugfs

# The programs flush what they make, 300 times: in memory, where there is enough (it takes 1 GiB).
in_memory=
if [ "$(df -m --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4096 ] 2>/dev/null; then
    in_memory=$(mktemp -d /dev/shm/layoutfs-mkfs.XXXXXX)
    trap 'rm -rf "$in_memory"' EXIT
fi
cd "${in_memory:-.}"

dump() {
    dumpe2fs "$1" 2>/dev/null |
        grep -Ev '^(Filesystem (UUID|created)|Last write time|Last checked|Directory Hash Seed|Checksum|Lifetime writes):'
}

compared=0
type=ext2
# compare SIZE LETTERS...: the same letters to both programs.
compare() {
    local size=$1
    shift
    rm -f ours.img theirs.img
    truncate -s "$size" ours.img theirs.img
    mke2fs -q -F -t $type "$@" theirs.img >mke2fs.log 2>&1 ||
        fail "mke2fs $* of $size: $(cat mke2fs.log)"
    layoutfs mkfs -t $type "$@" ours.img >mkfs.log 2>&1 ||
        fail "layoutfs mkfs $* of $size: $(cat mkfs.log)"
    dump theirs.img >theirs.txt
    dump ours.img >ours.txt
    expect_same theirs.txt ours.txt "mke2fs and layoutfs mkfs $* of $size"
    expect_clean ours.img
    compared=$((compared + 1))
}

# Sizes around whole groups: a last group that is too short is dropped.
for block in 1024 2048 4096; do
    for inode in 128 256; do
        for size in 512K 1M 1441K 5M 8193K 8300K 9M 100M 129M 300M 1G 4097M; do
            compare $size -b $block -i 8192 -I $inode
        done
    done
done
compare 256K -b 1024 -i 8192 -I 128
compare 2T -b 4096 -i 65536 -I 128

for features in none ^resize_inode ^sparse_super,^resize_inode ^filetype ^large_file ^dir_index \
    ^ext_attr; do
    compare 700M -b 1024 -i 8192 -I 128 -O $features
    compare 700M -b 4096 -i 8192 -I 128 -O $features
done
for ratio in 2048 4096 16384 65536; do
    compare 1237M -b 1024 -i $ratio -I 256
done
for ratio in 4096 16384 65536 1048576 4194304; do
    compare 1237M -b 4096 -i $ratio -I 256
done
for reserved in 0 0.5 1 2.25 33.3333 50; do
    compare 777M -b 4096 -i 8192 -I 128 -m $reserved
done
for inodes in 1000 77777 500000; do
    compare 3G -b 4096 -I 128 -N $inodes
done
compare 64M -b 4096 -i 8192 -I 128 -L 'a label'

# With one UUID for both, even the checksums of groups and bitmaps are equal.
type=ext4
uuid=12345678-9abc-def0-1234-56789abcdef0
# (Where a journal goes is compared for some sizes only: it is of no consequence.)
for size in 8M 64M 129M 300M 1G 2176M 2300M; do
    for block in 1024 4096; do
        compare $size -U $uuid -b $block -i 16384 -I 256 -O ^has_journal
    done
done
for size in 64M 1G; do
    compare $size -U $uuid -b 4096 -i 16384 -I 256
done
for features in ^metadata_csum ^metadata_csum,uninit_bg ^flex_bg ^64bit ^extent,^64bit \
    meta_bg,^resize_inode sparse_super2,^resize_inode metadata_csum_seed large_dir ^resize_inode \
    ^huge_file,^dir_nlink,^extra_isize ^metadata_csum,^flex_bg,uninit_bg; do
    for block in 1024 4096; do
        compare 600M -U $uuid -b $block -i 8192 -I 256 -O ^has_journal,$features
    done
done
compare 1G -U $uuid -b 4096 -i 16384 -I 256 -G 4 -O ^has_journal
# A single group leaves a gap between its bitmaps, which may be too small for lost+found.
for block in 1024 2048 4096; do
    for groups in 2 4 8 16 32; do
        rm -f ours.img
        layoutfs mkfs -q -t ext4 -b $block -G $groups -O ^has_journal --size 8M ours.img
        expect_clean ours.img
    done
done
rm -f ours.img
layoutfs mkfs -q -t ext4 --size 15T ours.img # ext4 holds no file of 16T
[ "$(du -m ours.img | cut -f 1)" -lt 1024 ] || fail 'a large volume is not sparse'
type=ext2

# The published row: total, used and available in KiB.
compare 60051568K -b 4096 -i 8192 -I 128 -O ^resize_inode
value() {
    sed -n "s/^$1: *//p" ours.txt
}
total=$(($(value 'Block count') - $(value 'Overhead clusters')))
free=$(value 'Free blocks' | head -n 1)
row="$((total * 4)) $(((total - free) * 4)) $(((free - $(value 'Reserved block count')) * 4))"
[ "$row" = '59107604 20 56105008' ] || fail "df would show $row"

# A given UUID makes two equal volumes (made within the same second, else the times differ).
for attempt in 1 2 3; do
    for name in one two; do
        rm -f $name.img
        layoutfs mkfs -t ext2 -U 12345678-9abc-def0-1234-56789abcdef0 --size 16M $name.img >/dev/null
    done
    ! cmp -s one.img two.img || break
    [ $attempt -lt 3 ] || fail 'equal parameters made different volumes three times'
done

# The root's owner.
rm -f ours.img
layoutfs mkfs -q -t ext4 -o root_owner=70000:100 --size 16M ours.img
debugfs -R 'stat /' ours.img 2>/dev/null | grep -Eq 'User: +70000 +Group: +100 ' || fail 'root_owner'
expect_clean ours.img
expect_exit 2 layoutfs mkfs -q -F -t ext4 -o root_owner=root ours.img

# check knows what mke2fs leaves unwritten or without a name. (An older mke2fs lacks some of these.)
for features in uninit_bg metadata_csum quota,project has_journal,orphan_file; do
    rm -f theirs.img
    mke2fs -q -F -t ext2 -b 1024 -I 256 -O "$features" theirs.img 96M >mke2fs.log 2>&1 || continue
    expect_exit 0 layoutfs check theirs.img
done

echo "$compared volumes compared with mke2fs"

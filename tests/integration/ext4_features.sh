#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every combination of ext4's features in a table: mke2fs makes a volume with them, layoutfs writes a
# tree, e2fsck and our check are content, the kernel reads the tree and writes one of its own, which
# layoutfs reads and removes; e2fsck is content after each step. Then what is refused, by its name.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_loop
need_fuse
need mke2fs e2fsck tune2fs resize2fs debugfs setfattr getfattr

mount_point=$PWD/mnt
mkdir "$mount_point"
leave() {
    ! mountpoint -q "$mount_point" || umount "$mount_point"
}
trap leave EXIT

# A directory that outgrows one block of index entries with 1 KiB blocks, a file of many extents or
# indirect blocks, links, attributes in both places.
make_tree() (
    mkdir -p "$1/many" "$1/dir/deeper"
    cd "$1"
    seq -f 'many/a-file-with-a-rather-long-name-%05g' 1500 | xargs touch
    head -c 3000000 /dev/urandom >dir/data
    for i in 1 3 5 7 9 11; do
        printf "%s" "piece $i" | dd of=sparse bs=1 seek=$((i * 1000000)) conv=notrunc status=none
    done
    ln dir/data dir/deeper/hard
    ln -s ../data dir/deeper/fast
    ln -s "$(printf 'long/%.0s' {1..150})" slow
    setfattr -n user.small -v 'a value' dir
    setfattr -n user.large -v "$(printf 'v%.0s' {1..700})" dir/data
    find . -exec touch -h -d @1000000000 {} + # small inodes have whole seconds
)

listing() (
    cd "$1"
    find . -mindepth 1 ! -path './lost+found*' \
        \( -type d -printf '%P %y %m\n' -o -printf '%P %y %m %n %s %T@ %l\n' \) | sort
    find . ! -path './lost+found*' ! -type l -print0 | sort -z |
        xargs -0 getfattr --absolute-names -d -m '^user\.' -e hex 2>/dev/null
    find . -type f -size +0 -print0 | sort -z | xargs -0 sha256sum
)

make_tree tree
listing tree >want

rows=0
# both_ways WHAT: i.img, on which nothing of ours is yet, in both directions.
both_ways() {
    layoutfs cp -a tree/. i.img:/ >cp.log 2>&1 || fail "$1: writing: $(cat cp.log)"
    expect_clean i.img
    expect_exit 0 layoutfs check i.img
    kernel_mount i.img
    listing "$mount_point" >got
    expect_same want got "$1: what the kernel reads"
    rm "$mount_point"/many/*7
    cp -a tree "$mount_point/kernel"
    umount "$mount_point"
    rm -rf back
    layoutfs cp -a i.img:/kernel back >cp.log 2>&1 || fail "$1: reading: $(cat cp.log)"
    listing back >got
    expect_same want got "$1: what the kernel has written"
    layoutfs rm -r i.img /kernel /many >rm.log 2>&1 || fail "$1: removing: $(cat rm.log)"
    expect_clean i.img
    expect_exit 0 layoutfs check i.img
    rows=$((rows + 1))
}

# row FEATURES [LETTERS...]
row() {
    local features=$1
    shift
    rm -f i.img
    truncate -s 160M i.img
    mke2fs -q -F -t ext4 -O "$features" "$@" i.img >mke2fs.log 2>&1 ||
        fail "mke2fs -O $features $*: $(cat mke2fs.log)"
    both_ways "-O $features $*"
}

row extent # today's default
row extent -b 1024
row extent -b 2048 -I 512
row ^has_journal
row ^has_journal,^metadata_csum
row ^metadata_csum -b 1024
row ^metadata_csum,uninit_bg
row ^metadata_csum,uninit_bg,^64bit,^flex_bg -b 1024
row ^64bit
row ^64bit,^flex_bg -b 1024
row ^extent,^64bit
row ^extent,^64bit -b 1024
row ^flex_bg
row meta_bg,^resize_inode
row meta_bg,^resize_inode,^64bit -b 1024
row sparse_super2,^resize_inode
row sparse_super2,^resize_inode -b 1024
row metadata_csum_seed
row large_dir -b 1024
row ^huge_file,^dir_nlink
row ^extra_isize,^metadata_csum -I 128
row metadata_csum,^extra_isize -I 128 -b 1024
row ^dir_index
row ^resize_inode,^sparse_super
row extent -G 4 -b 1024
row extent -E lazy_itable_init=1,nodiscard
row stable_inodes
row ^filetype,^ext_attr

# df shows what the kernel shows.
for features in extent ^has_journal ^extent,^64bit; do
    rm -f i.img
    mke2fs -q -F -t ext4 -O "$features" i.img 160M >/dev/null 2>&1
    kernel_mount i.img
    stat -f -c '%b %f %a %c %d %s' "$mount_point" >want.df
    umount "$mount_point"
    if layoutfs mount i.img "$mount_point" >mount.log 2>&1; then
        stat -f -c '%b %f %a %c %d %s' "$mount_point" >got.df
        umount "$mount_point"
        expect_same want.df got.df "df of -O $features"
    fi
done

# What we make.
for letters in '' '-b 1024' '-O ^64bit' '-O uninit_bg,^metadata_csum' '-O meta_bg,^resize_inode' \
    '-O ^flex_bg -b 1024' '-O metadata_csum_seed,large_dir'; do
    rm -f i.img
    # shellcheck disable=SC2086 # letters and their values
    layoutfs mkfs -q -t ext4 $letters --size 160M i.img
    both_ways "mkfs $letters"
done

# Volumes that others have changed since.
changed() {
    expect_clean i.img
    both_ways "$1"
}
fresh() {
    rm -f i.img
    truncate -s "${2:-160M}" i.img
    mke2fs -q -F -t ext4 -b 1024 -O "$1" i.img
}
fresh ^metadata_csum
tune2fs -O metadata_csum i.img >/dev/null 2>&1
changed 'tune2fs -O metadata_csum'
fresh extent
tune2fs -O ^metadata_csum i.img >/dev/null 2>&1
tune2fs -L label -U random i.img >/dev/null 2>&1
changed 'tune2fs -O ^metadata_csum -L -U'
fresh extent
tune2fs -U random i.img >/dev/null 2>&1 || tune2fs -f -U random i.img >/dev/null 2>&1
changed 'tune2fs -U with metadata_csum'
fresh extent 80M
truncate -s 160M i.img
resize2fs i.img >/dev/null 2>&1
changed 'resize2fs, larger'
fresh extent 320M
resize2fs i.img 160M >/dev/null 2>&1
changed 'resize2fs, smaller'
fresh meta_bg,^resize_inode 80M
truncate -s 160M i.img
resize2fs i.img >/dev/null 2>&1
changed 'resize2fs, larger, meta_bg'

# refused FEATURES NAME [LETTERS...]: for writing; `ro`: reading is possible.
refused() {
    local features=$1 name=$2
    shift 2
    rm -f i.img
    mke2fs -q -F -t ext4 -O "$features" "$@" i.img 64M >mke2fs.log 2>&1 || return 0
    expect_exit 1 layoutfs mkdir i.img /new
    expect_text "\"$name\"" err
}
refused quota quota
refused quota,project project
refused mmp mmp
refused bigalloc bigalloc
refused casefold casefold
refused encrypt encrypt
refused verity verity
fresh quota
expect_exit 0 layoutfs ls i.img /

# A damaged checksum is found where the structure is read.
fresh extent
layoutfs cp -a tree/. i.img:/ >/dev/null
debugfs -w -R 'set_inode_field /many mtime 1' i.img >/dev/null 2>&1 # keeps the checksum right
expect_exit 0 layoutfs ls i.img /many
at=$(debugfs -R 'imap /dir' i.img 2>/dev/null |
    sed -n 's/.*located at block \([0-9]*\), offset 0x\([0-9a-f]*\).*/\1 \2/p')
read -r block offset <<<"$at"
printf '\377' | dd of=i.img bs=1 seek=$((block * 1024 + 16#$offset + 16)) conv=notrunc status=none
expect_exit 1 layoutfs ls i.img /dir
expect_text 'checksum' err
expect_exit 1 layoutfs check i.img

echo "$rows volumes written and read by both"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every combination of ext4's features in a table: mke2fs makes a volume with them, layoutfs writes a
# tree, e2fsck and our check are content, the kernel reads the tree and writes one of its own, which
# layoutfs reads and removes; e2fsck is content after each step. Then what is refused, by its name.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_loop
need_fuse
need mke2fs e2fsck dumpe2fs tune2fs resize2fs debugfs setfattr getfattr

mount_point=$PWD/mnt
mkdir "$mount_point"
leave() {
    ! mountpoint -q "$mount_point" || umount "$mount_point"
}
trap leave EXIT

# make_tree DIR NAMES: a directory, a file of many extents or indirect blocks, links, attributes in
# both places.
make_tree() (
    mkdir -p "$1/many" "$1/dir/deeper"
    cd "$1"
    seq -f 'many/a-file-with-a-rather-long-name-%05g' "$2" | xargs touch
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

# With 1 KiB blocks the names are too many for one block of index entries, with others for a block.
make_tree large 1500
make_tree small 300
for tree in large small; do
    listing $tree >want.$tree
done

rows=0
# both_ways WHAT: i.img, on which nothing of ours is yet, in both directions.
both_ways() {
    local tree=small
    [ "$(dumpe2fs -h i.img 2>/dev/null | sed -n 's/^Block size: *//p')" -ne 1024 ] || tree=large
    layoutfs cp -a $tree/. i.img:/ >cp.log 2>&1 || fail "$1: writing: $(cat cp.log)"
    expect_clean i.img
    expect_exit 0 layoutfs check i.img
    kernel_mount i.img
    listing "$mount_point" >got
    expect_same want.$tree got "$1: what the kernel reads"
    rm "$mount_point"/many/*7
    cp -a $tree "$mount_point/kernel"
    umount "$mount_point"
    rm -rf back
    layoutfs cp -a i.img:/kernel back >cp.log 2>&1 || fail "$1: reading: $(cat cp.log)"
    listing back >got
    expect_same want.$tree got "$1: what the kernel has written"
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

# Contents that lie in inodes, as the kernel and debugfs leave them. What fits stays there, what does
# not, and directories that change, get blocks.
small_tree() (
    cd "$1"
    mkdir -p empty full/sub moved
    touch none full/{one,two,three,four-with-a-longer-name,five}
    printf 'x%.0s' {1..6} >short
    printf 'y%.0s' {1..110} >long # more than i_block holds
    cp long inside
    cp long cut-behind
    for name in cut grown sparse overwritten punched gone; do
        printf "$name%.0s" {1..5} >$name
    done
    setfattr -n user.small -v 'a value' short
)
change_small_tree() (
    cd "$1"
    echo more >>long
    truncate -s 3 cut
    truncate -s 100000 grown
    truncate -s 0 gone
    printf 'far away' | dd of=sparse bs=1 seek=70000 conv=notrunc status=none
    printf 'MIDDLE' | dd of=overwritten bs=1 seek=20 conv=notrunc status=none
    printf 'MIDDLE' | dd of=inside bs=1 seek=57 conv=notrunc status=none
    truncate -s 70 cut-behind
    truncate -s 90 cut-behind
    fallocate -p -o 0 -l 10 punched
    rm full/one
    mv full/two full/2
    mv moved empty/
    mv full/sub full/sub-of-another-name
    touch full/six empty/file
    ln full/three hard
    rm -r full/five short
    setfattr -n user.new -v 'another' none
)
# inline_row FEATURES [LETTERS...]
inline_row() {
    local features=$1 i
    shift
    rm -rf i.img want-tree back
    mkdir want-tree
    small_tree want-tree
    mke2fs -q -F -t ext4 -O "$features" "$@" i.img 64M >mke2fs.log 2>&1 || fail "$(cat mke2fs.log)"
    kernel_mount i.img
    small_tree "$mount_point"
    cp -a --attributes-only "$mount_point/." want-tree # times
    umount "$mount_point"
    for i in 1 20; do # in i_block alone, and not
        debugfs -w -R "symlink link$i $(printf 'to/%.0s' $(seq $i))" i.img >/dev/null 2>&1
    done
    expect_clean i.img
    expect_exit 0 layoutfs check i.img
    layoutfs cp -a i.img:/ back >cp.log 2>&1 || fail "-O $features $*: reading: $(cat cp.log)"
    [ "$(readlink back/link20)" = "$(printf 'to/%.0s' {1..20})" ] || fail "a symlink in the inode"
    rm back/link1 back/link20
    listing want-tree >want.small
    listing back >got
    expect_same want.small got "-O $features $*: contents in inodes"
    layoutfs mount i.img "$mount_point" >mount.log 2>&1 || fail "$(cat mount.log)"
    change_small_tree "$mount_point"
    rm "$mount_point"/link*
    layoutfs umount "$mount_point"
    change_small_tree want-tree
    expect_clean i.img
    for i in cut overwritten punched inside cut-behind gone; do
        debugfs -R "stat /$i" i.img 2>/dev/null | grep -q 'Flags: 0x10000000' ||
            fail "/$i is not in its inode any more"
    done
    expect_exit 0 layoutfs check i.img
    kernel_mount i.img
    cp -a --attributes-only want-tree/. "$mount_point" # times
    listing want-tree >want.small
    listing "$mount_point" >got
    umount "$mount_point"
    expect_same want.small got "-O $features $*: what has become of contents in inodes"
    expect_clean i.img
    rows=$((rows + 1))
}
inline_row inline_data
inline_row inline_data -b 1024 -I 512
inline_row inline_data,^has_journal -b 1024
inline_row inline_data,^metadata_csum,^extent,^64bit
inline_row inline_data,^dir_index -b 2048 -I 1024

# On a full volume nothing is lost that cannot be converted.
mke2fs -q -F -t ext4 -O inline_data -b 1024 -m 0 i.img 8M >/dev/null 2>&1
kernel_mount i.img
small_tree "$mount_point"
umount "$mount_point"
layoutfs mount i.img "$mount_point" >mount.log 2>&1 || fail "$(cat mount.log)"
dd if=/dev/zero of="$mount_point/filler" bs=1024 status=none 2>/dev/null || true
more=0
for _ in 1 2 3; do # storing may take less than was promised
    sync -f "$mount_point"
    while printf x >"$mount_point/filler$more"; do
        more=$((more + 1)) # a larger file might need a block for its map
    done 2>/dev/null
done
listing "$mount_point" >want.small
expect_exit 1 touch "$mount_point/full/six"
expect_text 'No space' err
expect_exit 1 dd if=/dev/zero of="$mount_point/long" bs=1 seek=200 count=1 conv=notrunc status=none
expect_text 'No space' err
listing "$mount_point" >got
expect_same want.small got "contents in inodes of a full volume"
rm "$mount_point"/filler*
touch "$mount_point/full/six"
layoutfs umount "$mount_point"
expect_clean i.img

# Values of attributes that have inodes of their own are read.
rm -f i.img
mke2fs -q -F -t ext4 -O ea_inode i.img 64M >/dev/null 2>&1
kernel_mount i.img
touch "$mount_point"/{one,two,small}
setfattr -n user.a -v "$(printf 'v%.0s' {1..5000})" "$mount_point/one"
setfattr -n user.a -v "$(printf 'v%.0s' {1..5000})" "$mount_point/two" # shares the value
setfattr -n user.b -v "$(printf 'b%.0s' {1..50000})" "$mount_point/two"
setfattr -n user.c -v small "$mount_point/small"
getfattr --absolute-names -d "$mount_point"/{one,two,small} >want.values
umount "$mount_point"
expect_exit 0 layoutfs check i.img
expect_exit 1 layoutfs mkdir i.img /new
expect_text '"ea_inode"' err
layoutfs mount i.img "$mount_point" -o ro >mount.log 2>&1 || fail "$(cat mount.log)"
getfattr --absolute-names -d "$mount_point"/{one,two,small} >got
layoutfs umount "$mount_point"
expect_same want.values got "values in inodes of their own"
expect_clean i.img
value=$(debugfs -R 'ea_get -V /two user.b' i.img 2>/dev/null | wc -c)
[ "$value" -ge 50000 ] || fail "debugfs reads a value of $value bytes"
for inode in $(seq 11 30); do
    if debugfs -R "stat <$inode>" i.img 2>/dev/null | grep -q 'Size: 50000$'; then
        debugfs -w -R "set_inode_field <$inode> atime 12345" i.img >/dev/null 2>&1
    fi
done
layoutfs mount i.img "$mount_point" -o ro >mount.log 2>&1 || fail "$(cat mount.log)"
expect_exit 1 getfattr --absolute-names -n user.b "$mount_point/two"
expect_text 'cleaning' err
expect_exit 0 getfattr --absolute-names -n user.a "$mount_point/two"
layoutfs umount "$mount_point"

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
layoutfs cp -a small/. i.img:/ >/dev/null
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

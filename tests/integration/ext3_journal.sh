#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The journal, judged by others: logs left dirty by the Linux driver and by debugfs are replayed here;
# logs left dirty here (the server killed at work) by e2fsck and by the Linux driver.
. "${LAYOUTFS_SOURCE:?}/tests/tree.sh"
need mke2fs e2fsck debugfs dumpe2fs xz

mount_point=$PWD/mnt
server=
mkdir "$mount_point"
leave() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    ! mountpoint -q "$mount_point" || umount -l "$mount_point"
}
trap leave EXIT

# needs_recovery IMAGE
needs_recovery() {
    dumpe2fs -h "$1" 2>/dev/null | grep -q needs_recovery
}

# file_sums DIR: name|SHA-256 of every regular file.
file_sums() {
    (cd "$1" && find . -type f -print0 | xargs -0r sha256sum) | sed 's/^\([0-9a-f]*\)  \(.*\)$/\2|\1/' | sort
}

# A volume that the driver of Linux 6.1 left dirty. Read-only first: recovered
# in memory, with the image as it was.
xz -dc "$LAYOUTFS_SOURCE/tests/data/ext3-dirty.img.xz" >dirty.img
cp dirty.img before.img
needs_recovery dirty.img || fail "the sample has nothing to recover"
layoutfs cp -a dirty.img:/ copy
cmp dirty.img before.img || fail "a read-only mount changed the image"
file_sums copy >got
expect_same "$LAYOUTFS_SOURCE/tests/data/ext3-dirty.files" got "what is recovered in memory"
layoutfs mkdir dirty.img /added
layoutfs rm -r dirty.img /added
! needs_recovery dirty.img || fail "a recovered volume still asks for recovery"
expect_clean dirty.img
rm -rf copy
layoutfs cp -a dirty.img:/ copy
file_sums copy >got
expect_same "$LAYOUTFS_SOURCE/tests/data/ext3-dirty.files" got "what is recovered on the disk"
rm -rf copy before.img dirty.img

# Logs by debugfs: plain and with checksums of each version, blocks that look like the log's own,
# revoked ones. (In a sum over a transaction debugfs counts revoke blocks, too: e2fsck and the Linux
# driver refuse it as well.)
head -c 1024 /dev/urandom >block
{
    printf '\300\073\071\230'
    head -c 1020 /dev/urandom
} >magic
for log in "ext3:" "ext3:-c" "ext4:" "ext4:-c -v 2" "ext4:-c -v 3"; do
    revoke="jw -b 9002 $PWD/block
jw -r 9002"
    [ "$log" != ext3:-c ] || revoke=
    truncate -s 16M debugfs.img
    layoutfs mkfs -t "${log%%:*}" -b 1024 debugfs.img >/dev/null
    debugfs -w -f - debugfs.img >debugfs.log 2>&1 <<EOF
jo ${log#*:}
jw -b 9000 $PWD/block
jw -b 9001 $PWD/magic
$revoke
jc
EOF
    needs_recovery debugfs.img || fail "debugfs wrote no log: $(cat debugfs.log)"
    layoutfs mkdir debugfs.img /new
    for pair in 9000:block 9001:magic; do
        dd if=debugfs.img bs=1024 skip="${pair%:*}" count=1 status=none | cmp - "${pair#*:}" ||
            fail "block ${pair%:*} of a log by debugfs ($log) did not come home"
    done
    dd if=debugfs.img bs=1024 skip=9002 count=1 status=none | cmp -s - block &&
        fail "a revoked block came home ($log)"
    expect_clean debugfs.img
    rm debugfs.img
done

# ext2 becomes ext3 and ext2 again; what is in it stays.
for size in 1024 4096; do
    truncate -s 64M convert.img
    layoutfs mkfs -t ext2 -b $size convert.img >/dev/null
    layoutfs cp -r "$LAYOUTFS_SOURCE/fs" convert.img:/
    layoutfs convert convert.img -o has_journal,journal_size=5M
    dumpe2fs -h convert.img 2>/dev/null >head.txt
    expect_text 'Total journal size: *5120k' head.txt
    expect_clean convert.img
    layoutfs mkdir convert.img /new
    expect_exit 1 layoutfs convert convert.img -o has_journal
    layoutfs convert convert.img -o nohas_journal
    expect_clean convert.img
    rm -rf copy
    layoutfs cp -r convert.img:/fs copy
    diff -r "$LAYOUTFS_SOURCE/fs" copy || fail "a file changed while the volume was converted"
    rm -rf copy convert.img
done

need_root
need_fuse

# start_server IMAGE OPTIONS
start_server() {
    "$LAYOUTFS" mount -f -o "$2" "$1" "$mount_point" &
    server=$!
    for _ in $(seq 100); do
        ! mountpoint -q "$mount_point" || return 0
        sleep 0.1
    done
    fail "$1 was not mounted"
}

# The server is killed at work. Then everybody recovers a copy: what was fsynced is there.
for mode in ordered writeback data; do
    truncate -s 64M killed.img
    layoutfs mkfs -t ext3 -b 1024 -o journal_size=1M killed.img >/dev/null
    start_server killed.img "journal=$mode,commit=1"
    mkdir "$mount_point/durable"
    for i in $(seq 60); do
        dd if=/dev/urandom of="$mount_point/durable/f$i" bs=1000 count=$((i % 7 + 1)) \
            conv=fsync status=none
        seq 500 >"$mount_point/noise$((i % 9))"
        [ $((i % 3)) -ne 0 ] || rm -f "$mount_point/noise$((i % 5))"
    done
    (cd "$mount_point/durable" && sha256sum ./*) >durable.sums
    (while :; do
        seq 3000 >"$mount_point/late"
        rm "$mount_point/late"
    done) 2>/dev/null &
    writer=$!
    sleep 0.3
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
    kill "$writer" 2>/dev/null || true
    wait "$writer" 2>/dev/null || true
    umount -l "$mount_point"
    needs_recovery killed.img || fail "a killed server left nothing to recover"

    # What is examined before the replay is what it will make of the image, which stays as it is.
    cp killed.img before.img
    layoutfs check killed.img >check.log || fail "the recovered volume: $(cat check.log)"
    expect_text '^note: the journal has not been replayed' check.log
    cmp killed.img before.img || fail "check changed the image"
    layoutfs check --repair before.img >check.log || fail "check --repair: $(cat check.log)"
    ! needs_recovery before.img || fail "check --repair did not replay the journal"
    expect_clean before.img
    rm before.img

    cp killed.img e2fsck.img
    e2fsck -fy e2fsck.img >e2fsck.log 2>&1 || [ $? -eq 1 ] || fail "e2fsck: $(cat e2fsck.log)"
    expect_clean e2fsck.img
    cp killed.img ours.img
    layoutfs mkdir ours.img /new
    expect_clean ours.img
    layoutfs check ours.img >/dev/null
    for image in e2fsck.img ours.img; do
        rm -rf copy
        layoutfs cp -a $image:/durable copy
        (cd copy && sha256sum --quiet -c ../durable.sums) || fail "$image has lost what was fsynced"
    done
    if losetup --find >/dev/null 2>&1 && mount -t ext4 -o loop killed.img "$mount_point" 2>/dev/null; then
        (cd "$mount_point/durable" && sha256sum --quiet -c "$OLDPWD/durable.sums") ||
            fail "the kernel does not find what was fsynced ($mode)"
        umount "$mount_point"
        expect_clean killed.img
    fi
    rm -rf copy killed.img e2fsck.img ours.img
done

# The Linux driver's logs, taken from under a mounted volume: plain, with a sum over each transaction,
# and with commit blocks that wait for nothing, for which the sums must vouch.
need_loop
for options in data=ordered journal_checksum journal_async_commit,data=writeback; do
    truncate -s 64M kernel.img
    layoutfs mkfs -t ext3 -b 1024 kernel.img >/dev/null
    mount -t ext4 -o "loop,$options" kernel.img "$mount_point"
    mkdir "$mount_point/dir"
    cp -r "$LAYOUTFS_SOURCE/layouts" "$mount_point/dir"
    sync -f "$mount_point/dir"
    rm -r "$mount_point/dir/layouts/memory"
    echo durable >"$mount_point/dir/last"
    sync "$mount_point/dir/last"
    cp kernel.img taken.img
    umount "$mount_point"
    needs_recovery taken.img || fail "the kernel left nothing to recover"
    cp taken.img damaged.img
    layoutfs cp -a taken.img:/dir copy
    [ "$(cat copy/last)" = durable ] || fail "the kernel's log was not replayed ($options)"
    [ ! -e copy/layouts/memory ] || fail "what the kernel removed is there"
    diff -r "$LAYOUTFS_SOURCE/layouts/ext" copy/layouts/ext || fail "the kernel's files differ"
    layoutfs mkdir taken.img /new
    expect_clean taken.img
    rm -rf copy kernel.img taken.img
    [ "$options" = journal_checksum ] || continue

    # A byte of a logged block is another: the transaction's sum does not hold.
    block=$(debugfs -R 'logdump -a' damaged.img 2>/dev/null | sed -n 's/.*logged at journal block \([0-9]*\) .*/\1/p' | head -n 1)
    block=$(debugfs -R "bmap <8> $block" damaged.img 2>/dev/null)
    printf 'damage' | dd of=damaged.img bs=1 seek=$((block * 1024 + 500)) conv=notrunc status=none
    expect_exit 1 layoutfs mkdir damaged.img /new
    expect_text 'differ from the checksum in its commit block' err
    expect_exit 1 layoutfs check damaged.img
done
rm damaged.img

# The journal's inode is gone: the copy of its map in the super block leads to the log.
for type in ext3 ext4; do
    truncate -s 32M kernel.img
    layoutfs mkfs -t $type -b 1024 -o journal_size=1M kernel.img >/dev/null
    mount -t ext4 -o loop kernel.img "$mount_point"
    echo durable >"$mount_point/last"
    sync "$mount_point/last"
    cp kernel.img taken.img
    umount "$mount_point"
    debugfs -w -R 'clri <8>' taken.img 2>/dev/null
    layoutfs cp taken.img:/last copy 2>err
    [ "$(cat copy)" = durable ] || fail "the log was not found"
    expect_text 'the copy of its map in the super block is used' err
    layoutfs mkdir taken.img /new
    e2fsck -fy taken.img >e2fsck.log 2>&1 || [ $? -eq 1 ] || fail "e2fsck: $(cat e2fsck.log)"
    layoutfs ls taken.img / >ls.log
    expect_text '^new$' ls.log
    rm -f copy kernel.img taken.img
done

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Volumes written here, judged by the Linux nilfs2 driver and its tools in a virtual machine: after
# each of the histories below it mounts the volume, shows the same tree and snapshots, goes on
# writing, takes a snapshot and cleans; and what it leaves is read here as it read it, with the same
# counts of free space. GRUB reads the clean ones, too. LAYOUTFS_TEST_FACTOR above 1: further
# histories, and that many volumes that a killed server left.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need qemu-system-x86_64
"$LAYOUTFS_SOURCE/tests/vm/build.sh" >vm 2>&1 || skip "$(tail -n 1 vm)"

manifest=$(dirname "$LAYOUTFS")/../tests/manifest
judge=$LAYOUTFS_SOURCE/tests/vm/nilfs2_judge.sh
factor=$((${LAYOUTFS_TEST_FACTOR:-1} > 6 ? 6 : ${LAYOUTFS_TEST_FACTOR:-1})) # a disk each: 24 in all
mkdir mnt
server=
leave() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    ! mountpoint -q mnt || umount -l mnt
}
trap leave EXIT

# serve IMAGE [OPTIONS]: mounts it on mnt, the server being a child of this shell.
serve() {
    "$LAYOUTFS" mount -f ${2:+-o "$2"} "$1" mnt 2>>server.log &
    server=$!
    for _ in $(seq 200); do
        ! mountpoint -q mnt || return 0
        sleep 0.05
    done
    cat server.log >&2
    fail "$1 was not mounted"
}
finish() {
    fusermount3 -u mnt
    wait "$server" || fail "the server of $name ended badly: $(tail -n 3 server.log)"
    server=
}
# crash: the server is killed after that many seconds, whatever is being written.
crash() {
    sleep "$1"
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
    umount -l mnt
}

# --- histories: what happens in the mounted volume, the current directory ----------------------

history_trees() {
    mkdir -p a/b/c/d 'white space' sticky
    echo text >a/plain
    ln a/plain a/b/hard
    ln a/plain 'white space/hard'
    ln -s ../plain a/b/link
    ln -s "$(printf 'long/%.0s' {1..200})" a/long-link
    mkfifo a/fifo
    mknod a/null c 1 3
    mknod a/large b 259 70000
    head -c 3000000 /dev/urandom >a/b/data
    head -c 100000 /dev/urandom >a/b/c/d/middle
    chown 1234:70000 a/plain
    chmod 1777 sticky
    chmod 6755 a/b/data
    touch "$(printf 'n%.0s' {1..255})" 'ümlaut' a/empty
    touch -d '2001-02-03 04:05:06' a/empty
}
history_deletions() {
    mkdir many
    seq -f 'many/a-file-with-a-rather-long-name-%04g' 400 | xargs touch
    sync -f .
    find many -name '*[1-7]' -delete
    for i in $(seq 20); do echo "$i" >"many/later-$i"; done
    mkdir -p gone/deeper
    head -c 500000 /dev/urandom >gone/deeper/data
    sync -f .
    rm -r gone
}
history_renames() {
    mkdir one two
    for i in $(seq 30); do echo "$i" >"one/$i"; done
    sync -f .
    for i in $(seq 2 2 30); do mv "one/$i" "two/moved-$i"; done
    for i in $(seq 1 4 29); do mv "one/$i" "two/moved-$((i + 1))" 2>/dev/null; done
    mkdir one/sub
    echo inside >one/sub/file
    mv one/sub two/sub
    mv two/sub/file two/sub/renamed
}
history_holes() {
    truncate -s 4G sparse
    for at in 0 1 6 7 600 70000 900000; do
        head -c 4096 /dev/urandom | dd of=sparse bs=4096 seek=$at conv=notrunc status=none
    done
    truncate -s 1T only-a-hole
    head -c 900000 /dev/urandom >punched
    sync -f .
    fallocate -p -o 100000 -l 500000 punched
}
history_truncation() {
    for size in 0 1 4095 4096 24576 24577 1000000 3000000; do
        head -c 3000000 /dev/urandom >"to-$size"
    done
    sync -f .
    for size in 0 1 4095 4096 24576 24577 1000000 3000000; do
        truncate -s $size "to-$size"
        truncate -s $((size + 5000)) "to-$size"
    done
    sync -f .
    head -c 100 /dev/urandom >>to-4096
}
history_small_blocks() {
    history_deletions
    history_trees
    head -c 2000000 /dev/urandom >overwritten
    for i in 1 2 3; do
        head -c 300000 /dev/urandom | dd of=overwritten bs=1000 seek=$((i * 300)) conv=notrunc status=none
        sync -f .
    done
}
history_checkpoints() {
    for i in $(seq 60); do
        echo "$i" >"f$((i % 7))"
        sync -f .
    done
}
history_snapshots() {
    for i in 1 2 3; do
        head -c 200000 /dev/urandom >data
        echo "$i" >"new-$i"
        layoutfs snapshot create . >>../numbers
        rm -f "new-$((i - 1))"
    done
    layoutfs snapshot release . "$(sed -n 2p ../numbers)"
}
history_large_directory() {
    mkdir large
    seq -f 'large/%05g' $((1000 * factor)) | xargs touch
    head -c 6000000 /dev/urandom >overwritten
}
history_overwrites() {
    head -c 4000000 /dev/urandom >overwritten
    for i in $(seq 40); do
        head -c 8192 /dev/urandom |
            dd of=overwritten bs=4096 seek=$((i * 37 % 900)) conv=notrunc,fdatasync status=none
    done
}
history_full() {
    mkdir fill
    for i in $(seq 200); do
        head -c 400000 /dev/urandom >"fill/a-file-$i" 2>/dev/null || break
    done
    [ "$i" -lt 200 ] || fail "the volume does not get full"
    rm fill/a-file-2 fill/a-file-"$i"
}
# What the cleaner then has to choose from: segments all dead, half dead and alive, two snapshots.
history_cleaned() {
    local i
    head -c 3000000 /dev/urandom >overwritten
    mkdir kept gone
    for i in $(seq 24); do head -c 60000 /dev/urandom >"kept/$i"; done
    layoutfs snapshot create . >>../numbers
    for i in $(seq 24); do
        head -c 60000 /dev/urandom >"gone/$i"
        head -c 60000 /dev/urandom | dd of=overwritten bs=60000 seek="$i" conv=notrunc,fsync status=none
    done
    layoutfs snapshot create . >>../numbers
    rm -r gone kept/*[1-5]
    sync -f .
}
history_remounted() {
    rm -r a/b
    mkdir again
    echo text >again/file
}
# Endless; what is made durable is told in ../durable.
work_for_ever() {
    local i=0
    head -c 300000 /dev/urandom >base
    sync base
    while i=$((i + 1)); do
        mkdir -p "d$((i % 5))"
        head -c $((i * 7919 % 50000 + 1)) /dev/urandom >"d$((i % 5))/f$((i % 23))"
        [ $((i % 4)) -ne 0 ] || sync "d$((i % 5))/f$((i % 23))"
        head -c 4096 /dev/urandom |
            dd of=base bs=4096 seek=$((i * 13 % 70)) conv=notrunc,fdatasync status=none
        [ $((i % 6)) -ne 0 ] || rm -f "d$(((i + 2) % 5))/f$((i % 19))"
        [ $((i % 9)) -ne 0 ] || mv "d$((i % 5))" "d$((i % 5))-$i"
    done
}

# --- making them -------------------------------------------------------------------------------

# live NAME: its history happens in NAME.img.
live() {
    name=$1
    echo "$name" >>volumes
    serve "$name.img"
    (cd mnt && "history_$name") || fail "history $name"
    finish
}
# make NAME SIZE [MKFS-OPTION...]
make() {
    layoutfs mkfs -q -t nilfs2 --size "$2" "${@:3}" "$1.img"
    live "$1"
}
make trees 136M
make holes 40M -B 256
make truncation 64M -B 256
make small_blocks 40M -b 1024 -B 1024
make snapshots 40M -B 256
make large_directory 64M -b 2048 -B 512
make overwrites 40M -B 256
make full 20M -B 128
cp trees.img remounted.img
live remounted
if [ "$factor" -gt 1 ]; then
    make deletions 40M -B 256
    make renames 40M -B 256
    make checkpoints 40M -B 256
fi

# listed: the tree of $name.img and those of its snapshots.
listed() {
    local snapshot
    "$manifest" "$name.img" || fail "$name cannot be listed"
    for snapshot in $(layoutfs snapshot list "$name.img" | awk '$4 == "snapshot" { print $1 }'); do
        "$manifest" "$name.img" "cp=$snapshot" || fail "$name: snapshot $snapshot cannot be listed"
    done
}
# cleaned POLICY BLOCK-SIZE SEGMENT-BLOCKS: the cleaner moves what is alive, and it is the same tree.
cleaned() {
    name=cleaned_$1
    layoutfs mkfs -q -t nilfs2 --size 40M -b "$2" -B "$3" "$name.img"
    echo "$name" >>volumes
    serve "$name.img"
    (cd mnt && history_cleaned) || fail "history $name"
    finish
    listed >before
    layoutfs clean --policy="$1" --protection=0 "$name.img" >clean.log || fail "$name: $(cat clean.log)"
    grep -Eq '^ +[1-9][0-9]* blocks moved' clean.log || fail "$name: nothing was moved"
    listed >after
    expect_same before after "$name before and after the cleaner"
}
cleaned timestamp 1024 1024
if [ "$factor" -gt 1 ]; then
    cleaned greedy 2048 512
    cleaned cost-benefit 4096 256
fi

for i in $(seq "$factor"); do
    name=crash$i
    layoutfs mkfs -q -t nilfs2 --size 64M -B 256 "$name.img"
    echo "$name" >>volumes
    serve "$name.img" interval=1
    (cd mnt && work_for_ever) >/dev/null 2>&1 &
    worker=$!
    crash "$((RANDOM % 2)).$((RANDOM % 10 + 3))"
    kill "$worker" 2>/dev/null || true
    wait "$worker" 2>/dev/null || true
done

# --- what is in them, as read here -------------------------------------------------------------

mkdir judged
while read -r name; do
    case $name in
    crash*)
        cp "$name.img" ours.img
        "$manifest" -w ours.img >"$name.ours" || fail "$name cannot be recovered"
        layoutfs check --contents ours.img >check.log || fail "$name, recovered: $(cat check.log)"
        "$manifest" "$name.img" >again || fail "$name cannot be recovered in core"
        expect_same "$name.ours" again "$name recovered in core and on the disk"
        ;;
    *)
        layoutfs check --contents "$name.img" >check.log || fail "$name: $(cat check.log)"
        "$manifest" "$name.img" >"$name.ours" || fail "$name cannot be listed"
        ;;
    esac
done <volumes

# GRUB's reader: every file of a volume without holes and deleted names.
if command -v grub-fstest >/dev/null; then
    for file in /a/b/data /a/b/c/d/middle /a/plain; do
        layoutfs cat trees.img $file >wanted
        grub-fstest trees.img cmp "(loop0)$file" wanted >grub.log 2>&1 || fail "GRUB: $(cat grub.log)"
    done
fi

# --- the driver --------------------------------------------------------------------------------

cp volumes "$judge" judged/
mapfile -t names <volumes
images=("${names[@]/%/.img}")
code=0
LAYOUTFS_VM_SECONDS=${LAYOUTFS_VM_SECONDS:-900} "$LAYOUTFS_SOURCE/tests/vm/run.sh" -d judged "${images[@]}" -- 'sh ./nilfs2_judge.sh' >judge.log || code=$?
[ $code -eq 0 ] || {
    cat judge.log >&2
    fail "the Linux driver is not content ($code)"
}
for name in "${names[@]}"; do
    expect_same "$name.ours" "judged/$name.before" "$name as the driver sees it"
    for snapshot in judged/"$name".cp*; do
        [ -e "$snapshot" ] || continue
        "$manifest" "$name.img" "cp=${snapshot##*.cp}" >got || fail "$snapshot cannot be listed"
        expect_same "$snapshot" got "$snapshot"
    done
    serve "$name.img" ro
    stat -f -c '%b %f %a %c %d' mnt >got
    finish
    expect_same "judged/$name.statfs" got "$name: free space and inodes"
    "$manifest" "$name.img" >got || fail "$name cannot be read after the driver"
    expect_same "judged/$name.after" got "$name after the driver and its cleaner"
    layoutfs check --contents "$name.img" >check.log || fail "$name, after the driver: $(cat check.log)"
    layoutfs snapshot list -a "$name.img" | awk 'NR > 1 { print $1 }' >numbers.ours
    awk 'NR > 1 { print $1 }' "judged/$name.lscp" >numbers.driver
    # Unmounting may make one more.
    diff numbers.driver numbers.ours | grep -q '^<' && fail "$name lost a checkpoint"
    # And goes on here.
    layoutfs mkdir "$name.img" /by-layoutfs || [ "$name" = full ] || fail "$name cannot be written to"
    layoutfs check --contents "$name.img" >check.log || fail "$name, at last: $(cat check.log)"
done
echo "${#names[@]} histories: the driver reads what was written here, and the reverse"

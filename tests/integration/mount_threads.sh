#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Many programs at once on one mount. Run in a build with ThreadSanitizer, too, whose report ends the
# server with an error.
# threads
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_fuse
need e2fsck tar cmp python3

export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:exitcode=66}
server=

cleanup() {
    ! grep -q " $PWD/mnt " /proc/mounts || layoutfs umount "$PWD/mnt" >/dev/null 2>&1 || true
}
trap cleanup EXIT
mkdir -p mnt

# serve ARGUMENTS...: mounts in the foreground of a background process, and waits for the mount.
serve() {
    layoutfs mount -f "$@" >server.log 2>&1 &
    server=$!
    for _ in $(seq 200); do
        ! grep -q " $PWD/mnt " /proc/mounts || return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    fail "no mount: $(cat server.log)"
}

end_service() {
    layoutfs umount "$PWD/mnt" || fail "umount"
    local code=0
    wait $server || code=$?
    [ $code -eq 0 ] || fail "the server ended with $code: $(head -40 server.log)"
}

mkdir tree
for directory in a b c; do
    mkdir tree/$directory
    for file in $(seq 40); do
        head -c $((file * 997)) /dev/zero | tr '\0' "$directory" >"tree/$directory/file$file"
    done
done
tar -cf tree.tar tree

unpack_and_remove() {
    local round
    for round in 1 2; do
        mkdir "mnt/$1" && tar -xf tree.tar -C "mnt/$1" && diff -r tree "mnt/$1/tree" || return 1
        rm -r "mnt/$1" || return 1
    done
    echo "$round rounds" >/dev/null
}

append() {
    local line
    for line in $(seq 100); do
        printf '%s %04d\n' "$1" "$line" >>mnt/log
    done
}

durable() { # so that commits are shared
    local round
    for round in $(seq 30); do
        dd if=tree.tar of="mnt/durable$1" bs=4k count="$round" conv=fsync status=none
    done
}

overwrite() { # large and small writes over each other, and a truncation in between
    local round
    for round in 1 2 3; do
        dd if=/dev/zero of=mnt/big bs=256k count=8 conv=notrunc status=none
        dd if=tree.tar of=mnt/big bs=4k conv=notrunc status=none
        truncate -s $((round * 100000)) mnt/big
        cat mnt/big >/dev/null
    done
}

look_around() {
    local round
    for round in $(seq 10); do
        find mnt -ls >/dev/null 2>&1 || true # names come and go
        sync -f mnt
    done
    echo "$round rounds" >/dev/null
}

rename_about() {
    local round
    for round in $(seq 60); do
        mkdir "mnt/one$1"
        mv "mnt/one$1" "mnt/two" 2>/dev/null || true # the other one does the same
        rmdir mnt/two/one* mnt/two "mnt/one$1" 2>/dev/null || true
    done
    echo "$round rounds" >/dev/null
}

work() {
    local jobs=() job
    unpack_and_remove u1 & jobs+=($!)
    unpack_and_remove u2 & jobs+=($!)
    append x & jobs+=($!)
    append y & jobs+=($!)
    overwrite & jobs+=($!)
    durable 1 & jobs+=($!)
    durable 2 & jobs+=($!)
    durable 3 & jobs+=($!)
    look_around & jobs+=($!)
    rename_about 1 & jobs+=($!)
    rename_about 2 & jobs+=($!)
    for job in "${jobs[@]}"; do
        wait "$job" || fail "a program failed: $(head -40 server.log)"
    done
    [ "$(sort mnt/log | uniq | wc -l)" -eq 200 ] || fail "appended lines are missing"
}

# all_at_once TYPE OPTIONS [MKFS_ARGUMENT...]: calls of all kinds for some seconds, and a cleaner that never rests.
all_at_once() {
    rm -f disk.img
    truncate -s 96M disk.img
    layoutfs mkfs --force -t "$1" "${@:3}" disk.img >/dev/null
    serve -v -o "$2,cache=8M" disk.img mnt
    python3 "$LAYOUTFS_SOURCE/tests/integration/mount_threads.py" mnt "$seconds" "$seed" ||
        fail "$1,$2: seed $seed: $(head -40 server.log)"
    end_service
    expect_sound "$1" disk.img
}

# everything OPTIONS
everything() {
    serve -v -o "$1" -t memory none mnt
    work
    end_service
    on_disk ext2 "$1"
    on_disk ext3 "$1,commit=1"
    on_disk ext4 "$1,commit=1"
    on_disk nilfs2 "$1" 1G # nothing is cleaned while it is in use
}

# on_disk TYPE OPTIONS [SIZE]: with little memory, so that pages come and go.
on_disk() {
    rm -f disk.img
    truncate -s "${3:-64M}" disk.img
    layoutfs mkfs --force -t "$1" disk.img >/dev/null
    serve -v -o "$2,cache=4M" disk.img mnt
    work
    end_service
    expect_sound "$1" disk.img
}

everything rw
seed=${LAYOUTFS_TEST_SEED:-$RANDOM}
seconds=$((2 * ${LAYOUTFS_TEST_FACTOR:-1}))
[ $seconds -le 20 ] || seconds=20
all_at_once ext3 journal=ordered,commit=1
all_at_once ext4 commit=1
all_at_once nilfs2 interval=1,protection_period=0,min_clean_segments=0,cleaning_interval=1,wait -B 128
if [ -w /sys/module/fuse/parameters/enable_uring ]; then
    setting=$(cat /sys/module/fuse/parameters/enable_uring)
    everything io_uring
    grep -q 'served by io_uring' server.log || fail "io_uring was not used: $(cat server.log)"
    [ "$(cat /sys/module/fuse/parameters/enable_uring)" = "$setting" ] || fail "the setting was left"
else
    echo "not run by io_uring: this kernel, or this user, has none"
fi

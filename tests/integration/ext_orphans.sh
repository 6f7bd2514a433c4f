#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGKILL of the server while files are open that have no name any more, and while a long truncate or
# removal is under way. Whoever recovers the image frees them: there is as much space as before.
. "${LAYOUTFS_SOURCE:?}/tests/kill.sh"
need fallocate

seed=${LAYOUTFS_TEST_SEED:-$RANDOM$RANDOM}
rounds=$((2 * ${LAYOUTFS_TEST_FACTOR:-1}))
echo "LAYOUTFS_TEST_SEED=$seed"
short_size=12345

# free_of IMAGE: free blocks and inodes, of an unmounted image
free_of() {
    dumpe2fs -h "$1" 2>/dev/null | sed -n 's/^Free blocks: *//p; s/^Free inodes: *//p' | paste -sd ' '
}

# new_image TYPE SIZE: $empty is what is free as long as no file is there; directories keep their blocks.
# The groups have more bitmaps than a transaction of the small log may have blocks (ext4: than the
# log has).
new_image() {
    rm -f new.img
    layoutfs mkfs -q -t "$1" -b 1024 -g 256 -O ^resize_inode,^64bit -o journal_size=1M --size "$2" new.img
    serve new.img "$options"
    mkdir "$mount_point/dir" "$mount_point/gone"
    touch "$mount_point/dir/large" "$mount_point"/gone/{1..30}
    rm "$mount_point/dir/large" "$mount_point"/gone/*
    layoutfs umount "$mount_point"
    wait "$server"
    server=
    empty=$(free_of new.img)
}

# recover_all COMMAND: by everybody, on copies of disk.img. Then there must be $empty free.
recover_all() {
    local who
    for who in "${recoverers[@]}"; do
        cp --sparse=always disk.img copy.img
        recover "$who" copy.img "$1"
        [ "$(free_of copy.img)" = "$empty" ] ||
            fail "recovered by $who: free $(free_of copy.img), $empty before"
    done
}

no_names() {
    [ -z "$(ls "$mount_point/gone")" ] || fail "names are back: $(ls "$mount_point/gone")"
}

# The large file has the old size or the new one, or is gone; it goes, so that space can be compared.
large_is_whole() {
    local size=gone
    [ ! -e "$mount_point/dir/large" ] || size=$(stat -c %s "$mount_point/dir/large")
    echo "$size" >>seen
    case $size in
    gone | "$large_size" | "$short_size") ;;
    *) fail "the large file has $size bytes" ;;
    esac
    rm -f "$mount_point/dir/large"
}

# Thirty files are open, durable, and have lost their names, which is durable as well.
open_and_nameless() {
    cp --sparse=always new.img disk.img
    serve disk.img "$options"
    python3 - "$mount_point/gone" <<'END' &
import os, sys, time
files = []
for number in range(1, 31):
    path = f"{sys.argv[1]}/{number}"
    files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    os.write(files[-1], b"x" * number * 7000)
    os.pwrite(files[-1], b"x", number << 20)
    os.fsync(files[-1])
    os.unlink(path)
os.close(files.pop())
directory = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(directory)
open("nameless", "w").close()
time.sleep(600)
END
    local holder=$!
    until [ -e nameless ]; do
        kill -0 $holder 2>/dev/null || fail "no files to lose their names"
        sleep 0.05
    done
    rm nameless
    kill_server
    kill $holder
    wait $holder 2>/dev/null || true
    forget_mount
    [ -n "$(dumpe2fs -h disk.img 2>/dev/null | sed -n 's/^First orphan inode: *//p')" ] ||
        echo "the list is in the log only"
    recover_all no_names
}

# make_large: on a fresh disk.img, which is mounted then.
make_large() {
    cp --sparse=always new.img disk.img
    serve disk.img "$options"
    fallocate -l $large_size "$mount_point/dir/large"
    sync "$mount_point/dir/large"
}

# cut_or_remove ROUND
cut_or_remove() {
    if [ $(($1 % 2)) -eq 0 ]; then
        truncate -s $short_size "$mount_point/dir/large" && sync "$mount_point/dir/large"
    else
        rm "$mount_point/dir/large"
    fi
}

# How long cutting takes, in ms. (rm returns before the blocks are free.)
measure_removal() {
    make_large
    local start=$EPOCHREALTIME
    cut_or_remove 0
    took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000 + 1))
    layoutfs umount "$mount_point"
    wait "$server"
    server=
}

# The server is killed while the large file goes.
cut_short() { # ROUND
    local cutter delay
    make_large
    cut_or_remove "$1" 2>/dev/null &
    cutter=$!
    delay=$(random_of "$seed" "$type $1" $((2 * took))) # others want the processor, too
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    kill_server
    wait $cutter || true
    forget_mount
    rm -f recovery.log
    recover_all large_is_whole
    ! grep -q 'orphan list: 1 ' recovery.log || halfway=$((halfway + 1))
}

for type in ext3 ext4; do
    options=commit=1,alloc=first-fit
    case $type in
    ext3) large_size=$((200 << 20)) && new_image ext3 256M ;;
    ext4) large_size=$((700 << 20)) && new_image ext4 900M ;;
    esac
    open_and_nameless
    measure_removal
    : >seen
    halfway=0 round=0
    while [ $round -lt "$rounds" ] || { [ $halfway -eq 0 ] && [ $round -lt 20 ]; }; do
        round=$((round + 1))
        cut_short $round
    done
    echo "$type: the large file went within $took ms, $round times not wholly, $halfway times half;" \
        "recovered: $(sort seen | uniq -c | xargs)"
    [ $halfway -gt 0 ] || fail "$type: the server was never killed halfway"
done

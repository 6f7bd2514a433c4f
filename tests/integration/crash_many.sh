#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Many files in one volume, made through a mount whose server is killed at the end: the next mount
# recovers it, and shows all that was fsynced; a check finds nothing. Prints how long the mount
# takes. LAYOUTFS_TEST_FACTOR above 1: a million files, and more types.
. "${LAYOUTFS_SOURCE:?}/tests/kill.sh"

directories=10 types=(ext4 nilfs2)
if [ "${LAYOUTFS_TEST_FACTOR:-1}" -gt 1 ]; then
    directories=1000 types=(ext3 ext4 nilfs2)
fi
[ $# -eq 0 ] || types=("$@")
files=$((directories * 1000))

# Directories of a thousand files; the last but one file is made durable, more follow.
make_files() {
    python3 - "$mount_point" $directories <<'PYTHON'
import os, sys
def make(path):
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
for d in range(int(sys.argv[2])):
    os.mkdir(f"{sys.argv[1]}/{d}")
    for f in range(1000):
        os.close(make(f"{sys.argv[1]}/{d}/f{f}"))
last = make(sys.argv[1] + "/durable")
os.write(last, b"x" * 100000)
os.fsync(last)
for f in range(1000):
    os.write(make(f"{sys.argv[1]}/late{f}"), b"y" * 5000)
PYTHON
}

look() {
    local count
    count=$(find "$mount_point" -mindepth 2 -type f -name 'f*' | wc -l)
    [ "$count" -eq $files ] || { echo "$count of $files files are there" && return 1; }
    [ "$(stat -c %s "$mount_point/durable")" -eq 100000 ]
}

for type in "${types[@]}"; do
    case $type in
    ext*) options="-N $((files + 10000))" ;;
    *) options= ;;
    esac
    rm -f disk.img
    # shellcheck disable=SC2086 # words
    layoutfs mkfs -q -t "$type" $options --size $((files / 400 + 400))M disk.img
    serve disk.img rw
    start=$EPOCHREALTIME
    make_files
    made=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    kill_server
    forget_mount
    start=$EPOCHREALTIME
    layoutfs mount -v disk.img "$mount_point" 2>mount.log || fail "$type: $(cat mount.log)"
    mounted=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    look || fail "$type: after a recovery"
    layoutfs umount "$mount_point"
    start=$EPOCHREALTIME
    expect_sound "$type" disk.img
    checked=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    echo "$type: $files files made in $made ms, mounted after the crash in $mounted ms, checked in $checked ms"
done

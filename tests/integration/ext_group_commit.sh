#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Eight threads write 4 KiB and call fsync, again and again: they share commits. What one thread
# asks for it gets. `layoutfs mount -v` tells how many there were.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_fuse
need python3 mountpoint e2fsck

mkdir mnt
leave() {
    ! mountpoint -q mnt || layoutfs umount mnt
}
trap leave EXIT
fsyncs=50 # of a thread

cat >writers.py <<'END'
import os, sys, threading

def work(number, rounds):
    file = os.open(f"mnt/f{number}", os.O_CREAT | os.O_WRONLY, 0o600)
    for _ in range(rounds):
        os.write(file, b"x" * 4096)
        os.fsync(file)

threads = [threading.Thread(target=work, args=(i, int(sys.argv[2]))) for i in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
END

# commits_of TYPE THREADS: $written and $asked
commits_of() {
    rm -f disk.img
    layoutfs mkfs -q -t "$1" --size 64M disk.img
    layoutfs mount -f -v disk.img mnt 2>server.log &
    local server=$!
    until mountpoint -q mnt; do
        kill -0 $server 2>/dev/null || fail "no mount: $(cat server.log)"
        sleep 0.05
    done
    python3 writers.py "$2" $fsyncs || fail "$1: a writer failed"
    layoutfs umount mnt
    wait $server || fail "the server ended with an error: $(cat server.log)"
    read -r written asked < <(sed -n 's/.*commits: \([0-9]*\) written, \([0-9]*\) asked for$/\1 \2/p' server.log)
    echo "$1: $2 threads, $(($2 * fsyncs)) fsyncs: $written commits, $asked asked for"
    [ "$asked" -ge $(($2 * fsyncs)) ] || fail "not every fsync asked for a commit"
    expect_clean disk.img
}

for type in ext3 ext4; do
    commits_of $type 1
    [ "$written" -ge $fsyncs ] || fail "$type: an fsync without a commit"
    commits_of $type 8
    [ "$written" -lt $((8 * fsyncs)) ] || fail "$type: no commit was shared"
done

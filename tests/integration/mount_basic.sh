#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Mounts the memory, the ext2 and the nilfs2 layout and uses them as programs do.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_fuse
need e2fsck sha256sum tar python3

mounted() {
    grep -q " $PWD/$1 " /proc/mounts
}

cleanup() {
    local directory
    exec 7>&- 8>&-
    for directory in mnt other; do
        mounted "$directory" && layoutfs umount "$PWD/$directory" >/dev/null 2>&1 || true
    done
}
trap cleanup EXIT
mkdir -p mnt other

fresh_image() {
    rm -f disk.img
    truncate -s 256M disk.img
    layoutfs mkfs -t "$1" disk.img >/dev/null
}

# The process that has an image open.
server_of() {
    find /proc/[0-9]*/fd -maxdepth 1 -lname "$PWD/$1" 2>/dev/null | cut -d/ -f3 | sort -u || true # processes come and go
}

make_source() {
    mkdir -p source/deep/er/still source/many
    local i
    for i in $(seq 300); do
        head -c $((i * 37)) /dev/urandom >"source/many/file$i"
    done
    head -c 3000000 /dev/urandom >source/deep/large
    : >source/empty
    ln -s deep/large source/link
    ln -s "$(printf 'x%.0s' $(seq 300))" source/longlink
    ln source/deep/large source/deep/er/hardlink
    mkfifo source/fifo
    truncate -s 5M source/sparse
    printf end >>source/sparse
    chmod 750 source/deep
    chmod 4711 source/empty
    touch -d '2001-02-03 04:05:06' source/deep/large
}

same_tree() {
    diff -r --no-dereference --exclude=fifo --exclude=lost+found "$1" "$2" || fail "$3: contents differ"
    (cd "$1" && find . -printf '%p %y %m %n %s %U %G %Ts %l\n' | grep -v lost+found | sort) >a.list
    (cd "$2" && find . -printf '%p %y %m %n %s %U %G %Ts %l\n' | grep -v lost+found | sort) >b.list
    # The root's link count and size differ with what else is in it.
    expect_same <(grep -v '^\. ' a.list | sed 's/ d \([0-7]*\) \([0-9]*\) [0-9]* / d \1 \2 /') \
        <(grep -v '^\. ' b.list | sed 's/ d \([0-7]*\) \([0-9]*\) [0-9]* / d \1 \2 /') "$3: attributes"
}

# What every layout must do while mounted on ./mnt.
exercise() {
    local what=$1
    tar -C source -cf - . | tar -C mnt --same-owner -xpf - || fail "$what: tar"
    same_tree source mnt "$what"

    # Unlinked while open.
    exec 7<>mnt/open-file
    echo first >&7
    rm mnt/open-file
    echo second >&7
    [ "$(cat /proc/self/fd/7 2>/dev/null || true)" = "$(printf 'first\nsecond')" ] ||
        fail "$what: an unlinked open file lost its contents"
    exec 7>&-

    python3 - mnt "$what" <<'PYTHON'
import errno, os, sys
root, what = sys.argv[1:]
def fail(text): sys.exit("FAIL: %s: %s" % (what, text))
def path(name): return os.path.join(root, name)
def expect(error, call, *arguments):
    try: call(*arguments)
    except OSError as problem:
        if problem.errno != error: fail("%s instead of %s" % (problem, os.strerror(error)))
    else: fail("%s%r succeeded" % (call.__name__, arguments))

# Renames: a storm, then the special cases.
os.mkdir(path("storm"))
for i in range(200):
    open(path("storm/f%d" % i), "w").write(str(i))
for round in range(5):
    for i in range(200):
        os.rename(path("storm/f%d" % i), path("storm/g%d" % i))
    for i in range(200):
        os.rename(path("storm/g%d" % i), path("storm/f%d" % i))
if sorted(open(path("storm/f%d" % i)).read() for i in range(200)) != sorted(map(str, range(200))):
    fail("the storm lost a file")
os.mkdir(path("storm/dir")); os.mkdir(path("storm/dir/sub"))
expect(errno.EINVAL, os.rename, path("storm/dir"), path("storm/dir/sub/x"))
expect(errno.ENOTEMPTY, os.rmdir, path("storm/dir"))
os.replace(path("storm/f1"), path("storm/f2"))
if open(path("storm/f2")).read() != "1": fail("a rename onto a file kept the old one")
os.link(path("storm/f2"), path("storm/hard")); os.rename(path("storm/hard"), path("storm/f2"))
if not os.path.exists(path("storm/hard")): fail("a rename onto the same inode removed a name")

# Names are found absent, then present, then absent again.
for i in range(50):
    name = path("storm/flicker%d" % i)
    if os.path.exists(name): fail("a name out of nothing")
    open(name, "w").close()
    if not os.path.exists(name): fail("a name that was looked for before is not seen")
    os.unlink(name)
    if os.path.exists(name): fail("a removed name is still seen")
if len(os.listdir(path("storm"))) != 199 + 1 + 1: fail("a listing is out of date")

# Data: append, truncate, holes, seek.
name = path("data")
with open(name, "wb") as file: file.write(b"a" * 10000)
with open(name, "ab") as file: file.write(b"b" * 10)
os.truncate(name, 5000); os.truncate(name, 9000)
if open(name, "rb").read() != b"a" * 5000 + b"\0" * 4000: fail("truncate down and up")
with open(name, "r+b") as file:
    file.seek(1 << 20); file.write(b"end"); file.flush()
    data = os.lseek(file.fileno(), 16384, os.SEEK_DATA)
    if data != 1 << 20: fail("SEEK_DATA finds %d" % data)
if os.stat(name).st_size != (1 << 20) + 3: fail("size with a hole")
open(name, "w").close()
if os.stat(name).st_size: fail("O_TRUNC")

# A file nobody may write to can be written by who creates it.
file = os.open(path("mode0444"), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444)
os.write(file, b"x"); os.close(file)
if os.stat(path("mode0444")).st_mode & 0o7777 != 0o444: fail("mode of a new file")
os.utime(path("mode0444"), ns=(1234567890123456789, 1234567890000000001))
if os.stat(path("mode0444")).st_mtime_ns // 10**9 != 1234567890: fail("utimens")
for entry in os.scandir(path("storm")):
    if entry.is_file(): os.unlink(entry.path)
PYTHON

    if [ "$(id -u)" -eq 0 ]; then
        chattr +i mnt/empty || fail "$what: chattr"
        ! rm -f mnt/empty 2>/dev/null || fail "$what: an immutable file was removed"
        chattr -i mnt/empty
    fi
    df -P mnt >/dev/null || fail "$what: df"
    sync -f mnt/empty || fail "$what: sync"
    rm -rf mnt/storm mnt/data mnt/mode0444
    same_tree source mnt "$what after removals"
}

make_source

# --- the volatile layout
layoutfs mount -t memory none mnt -o size=100M
mounted mnt || fail "mount returned before it was there"
exercise memory
layoutfs umount mnt
mounted mnt && fail "umount left memory mounted"

# --- an image; the root directory of a new one is root's
[ "$(id -u)" -eq 0 ] || exit 0
fresh_image nilfs2
layoutfs mount disk.img mnt
exercise nilfs2
layoutfs umount mnt
expect_sound nilfs2 disk.img
fresh_image ext2
layoutfs mount disk.img mnt
exercise ext2
# A second mount, and tools, keep their hands off.
expect_exit 1 layoutfs mount disk.img other
[ -s err ] || fail "a busy image was refused without a word"
mounted other && fail "a busy image was mounted again"
layoutfs umount mnt
expect_clean disk.img
expect_exit 0 layoutfs mount disk.img mnt
same_tree source mnt "ext2 after a remount"

# --- busy: umount refuses, and a signal to the server ends it all the same, saving the data
exec 8>mnt/busy
echo kept >&8
expect_exit 1 layoutfs umount mnt
expect_text 'in use' err
server=$(server_of disk.img)
[ -n "$server" ] || fail "cannot find the server"
# shellcheck disable=SC2086 # one word each
kill -TERM $server
for _ in $(seq 100); do
    # shellcheck disable=SC2086
    kill -0 $server 2>/dev/null || break
    sleep 0.1
done
mounted mnt && fail "still mounted after SIGTERM"
exec 8>&- || true
expect_clean disk.img
[ "$(layoutfs cat disk.img /busy)" = kept ] || fail "SIGTERM lost data"

# --- the last user may leave at any moment of that
for _ in $(seq 10); do
    "$LAYOUTFS" mount -f disk.img mnt &
    server=$!
    until mounted mnt; do sleep 0.05; done
    (while echo x >mnt/many/busy; do :; done) 2>/dev/null &
    sleep 0.05
    kill -TERM $server
    wait $server || fail "SIGTERM to a mount in use: exit status $?"
    wait
    mounted mnt && fail "still mounted after SIGTERM under load"
    expect_clean disk.img
done

# --- an idle mount ends with SIGTERM just as well
layoutfs mount disk.img mnt
head -c 1000000 /dev/urandom >mnt/last
sum=$(sha256sum <mnt/last)
# shellcheck disable=SC2046
kill -TERM $(server_of disk.img)
for _ in $(seq 100); do
    [ -z "$(server_of disk.img)" ] && break
    sleep 0.1
done
mounted mnt && fail "still mounted after SIGTERM"
expect_clean disk.img
[ "$(layoutfs cat disk.img /last | sha256sum)" = "$sum" ] || fail "SIGTERM lost the last file"

# --- read-only leaves every byte alone
before=$(sha256sum <disk.img)
layoutfs mount -o ro disk.img mnt
cat mnt/deep/large >/dev/null
ls -lR mnt >/dev/null
expect_exit 1 touch mnt/new
expect_text 'Read-only' err
layoutfs umount mnt
[ "$(sha256sum <disk.img)" = "$before" ] || fail "a read-only mount changed the image"

# --- umount tells that the image is not complete: its disk is full; its server was killed
if mount -t tmpfs -o size=1M none other 2>err; then
    truncate -s 64M other/full.img
    layoutfs mkfs -t ext2 -q other/full.img
    layoutfs mount other/full.img mnt
    head -c 4M /dev/urandom >mnt/large
    expect_exit 1 layoutfs umount mnt
    expect_text 'No space left' err
    umount other
fi
cp --sparse=always disk.img killed.img
layoutfs mount killed.img mnt
# shellcheck disable=SC2046
kill -KILL $(server_of killed.img)
expect_exit 1 layoutfs umount "$PWD/mnt"
expect_text 'server died' err
mounted mnt && fail "a mount without server stayed"

# --- mistakes get a sentence
expect_exit 2 layoutfs mount disk.img mnt -o no_such_option
expect_text 'no_such_option' err
mounted mnt && fail "mounted in spite of an unknown option"
expect_exit 1 layoutfs mount missing.img mnt
expect_text 'missing.img' err
head -c 1M /dev/zero >zero.img
expect_exit 1 layoutfs mount zero.img mnt
expect_text 'zero.img' err
expect_exit 1 layoutfs mount disk.img missing-directory
expect_text 'missing-directory' err
expect_exit 2 layoutfs mount disk.img
expect_exit 1 layoutfs umount mnt
expect_text 'nothing is mounted' err
expect_exit 0 layoutfs mount disk.img mnt -o rw,noatime,allow_other
expect_exit 0 layoutfs umount mnt

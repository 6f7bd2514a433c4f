#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# From mount to unmount, and what may happen instead: exit codes, logs, plain users, signals, a
# killed server, read-only devices; the numbers of df beside the kernel's; memory and idle time.
# What depends on the layout is done for one type of each, with LAYOUTFS_TEST_FACTOR for all, or for
# those named by arguments.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_own_mounts
need_fuse
need setpriv e2fsck python3 losetup

factor=${LAYOUTFS_TEST_FACTOR:-1}
types=(ext2 nilfs2)
[ "$factor" -eq 1 ] || types=(ext2 ext3 ext4 nilfs2)
[ $# -eq 0 ] || types=("$@")
type=ext2
loop=
cleanup() {
    local directory
    for directory in mnt kernel user; do
        ! grep -q " $PWD/$directory " /proc/mounts || umount -l "$PWD/$directory" || true
    done
    [ -z "$loop" ] || losetup -d "$loop" || true
}
trap cleanup EXIT
mkdir -p mnt kernel user

# fresh IMAGE SIZE [MKFS-OPTION...]
fresh() {
    rm -f "$1"
    truncate -s "$2" "$1"
    layoutfs mkfs -q -t "$type" "${@:3}" "$1"
}
# fresh_small IMAGE SIZE: or as small as the type can be; a log that fits.
fresh_small() {
    case $type in
    nilfs2) fresh "$1" 96M -B 256 ;;
    ext2) fresh "$@" ;;
    *) fresh "$@" -b 1024 -o journal_size=1M ;;
    esac
}
# What a mount is told so that what was removed makes room at once.
at_once() {
    [ "$type" != nilfs2 ] || echo protection_period=0,wait,clean_check_interval=1,mc_cleaning_interval=0
}
mounted() {
    grep -q " $PWD/$1 fuse.layoutfs" /proc/mounts
}
# The process that has an image locked. (A look at what all processes have open would itself hold
# the images and mounts of tests beside this one, for an instant.)
server_of() {
    awk -v inode=":$(stat -c %i "$1")" '$6 ~ inode "$" { print $5; exit }' /proc/locks
}
# Waits until nobody has the image.
released() {
    flock -w 30 "$1" true || fail "$1 stays in use"
}
# Mends an image that was not unmounted: e2fsck exits with 0 or 1 (mended); else a mount does it.
mend() {
    local code=0
    if [[ $type = ext* ]]; then
        e2fsck -fy "$1" >fsck.log 2>&1 || code=$?
        [ $code -le 1 ] || { cat fsck.log >&2 && fail "e2fsck cannot mend: exit $code"; }
    else
        layoutfs mount "$1" mnt && layoutfs umount mnt || fail "$1 does not recover"
    fi
    expect_sound "$type" "$1"
}
fresh disk.img 64M

# --- exit codes and words
expect_exit 2 layoutfs mount disk.img mnt -o bogus
expect_text '"bogus"' err
layoutfs options >options.out
for option in writeback allow_other 'log=' noatime nosuid; do
    expect_text "^ *$option" options.out
done
expect_exit 2 layoutfs mount disk.img mnt -o cache=much
expect_text 'cache=much' err
expect_exit 2 layoutfs mount disk.img mnt -o remount,ro
expect_text 'remount' err
expect_exit 2 layoutfs mount -t ext99 disk.img mnt
expect_exit 2 layoutfs mount -f disk.img mnt -o bogus
expect_exit 1 layoutfs mount missing.img mnt
expect_exit 2 layoutfs mkfs -t ext2 -F -o uuid=neither disk.img
expect_text 'uuid' err
expect_exit 0 layoutfs mount disk.img mnt
expect_exit 1 layoutfs mount disk.img user
expect_text 'disk.img' err
expect_exit 0 layoutfs umount mnt

# --- the log goes to standard error, or where it is told to
layoutfs mount -f -v disk.img mnt 2>foreground.log &
server=$!
until mounted mnt; do sleep 0.05; done
ls mnt >/dev/null
expect_exit 0 layoutfs umount mnt
wait $server || fail "a mount in the foreground exits with $? after an unmount"
expect_text 'requests served' foreground.log
expect_exit 0 layoutfs mount -v -o "log=background.log" disk.img mnt
ls mnt >/dev/null
expect_exit 0 layoutfs umount mnt
expect_text "^[-0-9]+ [:0-9]+ layoutfs.[0-9]+.: $PWD/mnt: requests served" background.log
expect_exit 1 layoutfs mount -o log=/nonexistent/log disk.img mnt

# --- signals: in the foreground and idle
signals() {
    local signal
    fresh_small disk.img 64M
    for signal in TERM INT HUP; do
        layoutfs mount -f disk.img mnt &
        server=$!
        until mounted mnt; do sleep 0.05; done
        echo $signal >"mnt/$signal"
        kill -$signal "$(server_of disk.img)"
        wait $server || fail "$type: SIG$signal: exit code $?"
        ! mounted mnt || fail "$type: SIG$signal: still mounted"
        expect_sound "$type" disk.img
        [ "$(layoutfs cat disk.img /$signal)" = $signal ] || fail "$type: SIG$signal lost a file"
    done
}
for type in "${types[@]}"; do
    signals
done
type=ext2
fresh disk.img 64M

# --- a plain user's image and mount: what belongs to root shows as such
layoutfs mkdir disk.img /etc
echo secret >shadow
layoutfs cp shadow disk.img:/etc/shadow
open_fuse_to_all
directory=$PWD
reachable=true
as_user() {
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
while [ "$directory" != / ]; do
    as_user test -x "$directory" || reachable=false
    directory=$(dirname "$directory")
done
if $reachable; then
    chown 65534:65534 disk.img user
    expect_exit 0 as_user "$LAYOUTFS" mount disk.img user
    [ "$(as_user stat -c '%u %g' user/etc/shadow)" = '0 0' ] || fail "a user's mount changes owners"
    expect_exit 1 as_user touch user/etc/new # root's directory
    expect_exit 0 layoutfs mount -t memory none mnt
    expect_exit 1 as_user "$LAYOUTFS" umount mnt
    expect_text 'only root and who mounted it' err
    expect_exit 0 layoutfs umount mnt
    expect_exit 2 ls user                    # nobody else's mount, not even root's
    grep " $PWD/user " /proc/mounts >line
    expect_text 'nosuid,nodev.*user_id=65534' line
    expect_exit 0 as_user "$LAYOUTFS" umount user
    expect_clean disk.img
    echo '# nothing is allowed' >fuse.conf
    mount --bind fuse.conf /etc/fuse.conf
    expect_exit 1 as_user "$LAYOUTFS" mount disk.img user -o allow_other
    expect_text 'user_allow_other' err
    ! grep 'disk.img: ' err || fail "the image is blamed for a mount that is not allowed"
    echo user_allow_other >>fuse.conf
    expect_exit 0 as_user "$LAYOUTFS" mount disk.img user -o allow_other
    ls user >/dev/null || fail "allow_other does not"
    # root may unmount it, too
    expect_exit 0 layoutfs umount user
    chmod 400 disk.img
    expect_exit 0 as_user "$LAYOUTFS" mount -o ro disk.img user
    expect_exit 0 as_user "$LAYOUTFS" umount user
    chmod 600 disk.img
    chown 0:0 disk.img
fi

# --- the server is killed while programs write, at any moment: the image can be mended
load() {
    local i=0
    while :; do
        i=$((i + 1))
        { mkdir -p mnt/d$((i % 7)) && head -c $((i % 50000)) /dev/zero >mnt/d$((i % 7))/f$((i % 300)) &&
            mv mnt/d$((i % 7))/f$((i % 300)) "mnt/g$((i % 90))" && rm -f mnt/g$((i % 31)) &&
            ln -f mnt/g$((i % 90)) "mnt/h$i"; } || break
        [ $((i % 40)) -ne 0 ] || rm -f mnt/h*
    done 2>/dev/null
}
# Only where nothing recovers by itself there is something to say.
expect_warning() {
    [ "$type" != ext2 ] || expect_text 'not unmounted' err
}
# killed_at_work ROUNDS
killed_at_work() {
    local round code
    for ((round = 0; round < $1; round++)); do
        [ $((round % 10)) -ne 0 ] || fresh_small killed.img 32M
        layoutfs mount killed.img mnt -o "$(at_once)" 2>/dev/null
        load &
        sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
        kill -KILL "$(server_of killed.img)"
        wait
        expect_exit 1 layoutfs umount mnt
        expect_text 'server died' err
        ! mounted mnt || fail "a dead mount stays"
        cp --sparse=always killed.img ours.img
        expect_exit 0 layoutfs mount -o ro killed.img mnt
        expect_warning
        expect_exit 0 layoutfs umount mnt
        mend killed.img
        code=0
        layoutfs check --repair ours.img >check.log 2>&1 || code=$?
        if [ $code -eq 0 ]; then
            expect_sound "$type" ours.img
        else
            [ -s check.log ] || fail "check --repair exits with $code and says nothing"
            mend ours.img
        fi
    done
    rm -f ours.img
}

# --- a new mount takes the place of a dead one
dead_mount() {
    layoutfs mount killed.img mnt
    ls mnt >/dev/null
    kill -KILL "$(server_of killed.img)"
    released killed.img
    expect_exit 0 layoutfs mount killed.img mnt
    expect_text 'died; detached' err
    [ "$(grep -c " $PWD/mnt " /proc/mounts)" -eq 1 ] ||
        fail "the dead mount is still below the new one"
    expect_exit 0 layoutfs umount mnt
    rm killed.img
}

# --- another mount namespace keeps the mount: umount says what it waits for, and ends with that
other_namespace() {
    local holder umount
    fresh_small other.img 16M
    layoutfs mount other.img mnt
    unshare --mount --propagation private sleep infinity &
    holder=$!
    while [ "$(readlink "/proc/$holder/ns/mnt")" = "$(readlink /proc/self/ns/mnt)" ]; do
        sleep 0.1
    done
    layoutfs umount mnt 2>err &
    umount=$!
    for _ in $(seq 300); do
        ! grep -q 'another mount namespace' err || break
        sleep 0.1
    done
    expect_text 'another mount namespace' err
    kill -0 "$umount" || fail "umount did not wait for the mount in another namespace"
    kill "$holder"
    wait "$umount" || fail "umount failed after the other namespace had gone"
    rm other.img
}

# --- read-only: an image that was not unmounted, a file and a device that cannot be written
read_only() {
    local before
    layoutfs mount disk.img mnt
    echo x >mnt/unclean
    sync mnt/unclean
    kill -KILL "$(server_of disk.img)"
    umount -l mnt
    released disk.img
    before=$(sha256sum <disk.img)
    expect_exit 0 layoutfs mount -o ro,strictatime disk.img mnt
    expect_warning
    [ "$(cat mnt/unclean)" = x ] || fail "$type: an fsynced file is not shown by a read-only mount"
    walk "an image that was not unmounted"
    chmod 444 disk.img
    expect_exit 0 layoutfs mount -o ro disk.img mnt
    walk "a file without permission to write"
    chmod 644 disk.img
    loop=$(losetup -r -f --show disk.img)
    expect_exit 0 layoutfs mount -o ro "$loop" mnt
    walk "a read-only device"
    expect_exit 1 layoutfs mount "$loop" mnt
    losetup -d "$loop"
    loop=
    mend disk.img
}
walk() {
    find mnt -type f -exec cat {} + >/dev/null
    expect_exit 1 touch mnt/new
    expect_text 'Read-only' err
    expect_exit 0 layoutfs umount mnt
    [ "$(sha256sum <disk.img)" = "$before" ] || fail "$type: $1 was changed by a read-only mount"
}
for type in "${types[@]}"; do
    if [ "$type" = ext2 ]; then rounds=16; else rounds=4; fi
    killed_at_work $((rounds * factor))
    dead_mount
    [ "$type" != ext2 ] || other_namespace # the same for all, and slow
    fresh_small disk.img 64M
    read_only
done
type=ext2

# --- statfs as the kernel tells it, for images of several shapes
statfs_of() {
    python3 - "$1" <<'PYTHON'
import os, sys
v = os.statvfs(sys.argv[1])
print("bsize", v.f_bsize, "frsize", v.f_frsize, "blocks", v.f_blocks, v.f_bfree, v.f_bavail,
      "files", v.f_files, v.f_ffree, v.f_favail, "namemax", v.f_namemax)
f = sys.argv[1] + "/sparse"
if os.path.exists(f): print("sparse", os.stat(f).st_size, os.stat(f).st_blocks)
PYTHON
}
for options in '' '-b 1024' '-b 1024 -m 0' '-b 2048 -I 128 -N 500' '-O ^resize_inode -m 20'; do
    rm -f numbers.img
    truncate -s 40M numbers.img
    # shellcheck disable=SC2086 # one word each
    layoutfs mkfs -q -t ext2 $options numbers.img
    layoutfs mount numbers.img mnt
    truncate -s 5G mnt/sparse && echo end >>mnt/sparse
    for i in $(seq 60); do head -c $((i * 1000)) /dev/zero >"mnt/$i"; done
    sync
    statfs_of mnt >ours
    layoutfs umount mnt
    mount -t ext4 -o loop,ro numbers.img kernel 2>err || skip "the kernel has no ext2: $(cat err)"
    statfs_of kernel >kernels
    umount kernel
    expect_same kernels ours "statfs, mkfs '$options'"
done

# --- a full disk says so at the write; mapped writes say so at msync or by SIGBUS
full() {
    local code=0
    fresh_small full.img 8M
    layoutfs mount full.img mnt -o "$(at_once)"
    python3 - mnt <<'PYTHON' || code=$?
import errno, mmap, os, signal, sys
d = sys.argv[1]
hole = os.open(d + "/hole", os.O_RDWR | os.O_CREAT)
os.ftruncate(hole, 4 << 20)
fill = os.open(d + "/fill", os.O_WRONLY | os.O_CREAT)
written = 0
try:
    while True: written += os.write(fill, b"x" * 65536)
except OSError as problem:
    if problem.errno != errno.ENOSPC: sys.exit("FAIL: a full disk: %s" % problem)
try:
    while True: written += os.write(fill, b"x")
except OSError: pass
os.fsync(fill)
if os.fstat(fill).st_size != written: sys.exit("FAIL: %d of %d bytes" % (os.fstat(fill).st_size, written))
signal.signal(signal.SIGBUS, lambda *unused: os._exit(9))
memory = mmap.mmap(hole, 4 << 20)
try:
    memory[0:1 << 20] = b"y" * (1 << 20)
    memory.flush()
except OSError as problem:
    if problem.errno not in (errno.ENOSPC, errno.EIO): sys.exit("FAIL: msync: %s" % problem)
    os._exit(9)
sys.exit("FAIL: a mapped write into a hole of a full disk succeeded")
PYTHON
    [ $code -eq 9 ] || fail "$type: mapped writes on a full disk"
    rm -f mnt/hole mnt/fill
    sync -f mnt 2>/dev/null || true # somebody has to be told of the failure above once more
    # A cleaner needs commits for that.
    for _ in $(seq 100); do
        ! echo again 2>/dev/null >mnt/again || break
        sleep 0.2
    done
    [ -s mnt/again ] || fail "$type: no space after everything was removed"
    layoutfs umount mnt
    expect_sound "$type" full.img
}
for type in "${types[@]}"; do
    full
done

# --- no inode left: df -i says how many there are, and who wants one more is told; what exists can
# be written, and a removal makes room
no_inodes() {
    local free made=0
    fresh inodes.img 8M -b 1024 -N 64
    layoutfs mount inodes.img mnt
    free=$(stat -f -c %d mnt)
    while touch "mnt/$made" 2>err; do made=$((made + 1)); done
    expect_text 'No space left' err
    [ "$made" = "$free" ] || fail "$type: $made files with $free free inodes"
    [ "$(stat -f -c %d mnt)" = 0 ] || fail "$type: df -i finds $(stat -f -c %d mnt) inodes"
    ! mkdir mnt/directory 2>/dev/null || fail "$type: mkdir without an inode"
    ! ln -s target mnt/link 2>/dev/null || fail "$type: a symbolic link without an inode"
    ln mnt/0 mnt/name && echo text >mnt/name || fail "$type: what exists cannot be linked or written"
    rm mnt/1
    for _ in $(seq 100); do # until the kernel has told that it has forgotten it
        ! mkdir mnt/directory 2>/dev/null || break
        sleep 0.1
    done
    [ -d mnt/directory ] || fail "$type: no inode after a removal"
    layoutfs umount mnt
    expect_sound "$type" inodes.img
}
for type in "${types[@]}"; do
    [[ $type != ext* ]] || no_inodes # others make inodes as they need them
done

# --- memory: bounded while the kernel knows many files, and given back when it forgets them. No
# CPU time when nothing happens.
memory() {
    local files=$((20000 * factor)) size allowed quiet
    size=$((50 + files / 100))M
    case $type in
    ext*) fresh many.img "$size" -N $((files + 1000)) -I 128 ;;
    *) fresh many.img "$size" ;;
    esac
    layoutfs mount many.img mnt -o cache=16m
    server=$(server_of many.img)
    python3 - mnt $files <<'PYTHON'
import os, sys
for i in range(int(sys.argv[2])):
    if i % 5000 == 0: os.mkdir("%s/d%d" % (sys.argv[1], i // 5000))
    os.close(os.open("%s/d%d/f%d" % (sys.argv[1], i // 5000, i), os.O_CREAT | os.O_WRONLY))
PYTHON
    sync
    find mnt -type f -print0 | xargs -0 stat -c %i | wc -l >count
    allowed=$(((16 + 64) * 1024 + files * 300 / 1024))
    [ "$(resident)" -le $allowed ] ||
        fail "$type: $(resident) KiB of memory with $files files in core, more than $allowed"
    echo 2 >/proc/sys/vm/drop_caches
    for _ in $(seq 50); do
        [ "$(resident)" -gt $(((16 + 40) * 1024)) ] || break
        sleep 0.2
    done
    [ "$(resident)" -le $(((16 + 40) * 1024)) ] ||
        fail "$type: $(resident) KiB of memory for files forgotten"
    # It goes to sleep some seconds after it has written all; others' statfs may wake it.
    for _ in $(seq 8); do
        quiet=$(switches)
        sleep 5
        [ "$(switches)" -ne "$quiet" ] || break
    done
    [ "$(switches)" -eq "$quiet" ] || fail "$type: an idle mount keeps working"
    layoutfs umount mnt
    expect_sound "$type" many.img
}
resident() {
    awk '/^VmRSS/ { print $2 }' "/proc/$server/status"
}
switches() {
    awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$server/task/"*/status
}
for type in "${types[@]}"; do
    memory
done

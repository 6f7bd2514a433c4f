# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the integration tests that kill the server of a mount at work (SIGKILL: what was not on
# the disk is lost) and let everybody recover what it leaves: our mount, and, of an image of ext's,
# e2fsck and the Linux driver.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need e2fsck dumpe2fs mountpoint python3

type= # of the image; the script's
mount_point=$PWD/mnt
server=
mkdir "$mount_point"
leave() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    ! grep -q " $mount_point " /proc/mounts || umount -l "$mount_point"
}
trap leave EXIT

# Who can recover an image of ext's here; of others, we can.
recoverers=(ours e2fsck)
if losetup --find >/dev/null 2>&1 && grep -qw ext4 /proc/filesystems; then
    recoverers+=(kernel)
else
    echo "not recovered by the kernel: no loop device, or no ext4"
fi
recovered_by_us_alone() {
    recoverers=(ours)
}

# random_of SEED NAME BELOW: a number from 0 to BELOW - 1 that SEED and NAME stand for.
random_of() {
    local sum
    sum=$(cksum <<<"$1 $2")
    echo $((${sum%% *} % $3))
}

# serve IMAGE OPTIONS: mounts it, and leaves the server in $server.
serve() {
    "$LAYOUTFS" mount -f -o "$2" "$1" "$mount_point" 2>server.log &
    server=$!
    local _
    for _ in $(seq 200); do
        ! mountpoint -q "$mount_point" || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "$1 was not mounted: $(cat server.log)"
}

kill_server() {
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    server=
}

forget_mount() {
    umount -l "$mount_point"
}

# recover WHO IMAGE COMMAND...: recovers it; COMMAND must like what it sees in $mount_point; then
# the image is unmounted, and no check has anything to say.
recover() {
    local who=$1 image=$2 what="ext, recovered by $1"
    shift 2
    [ ${#recoverers[@]} -gt 1 ] || what="${type:?}, recovered by us"
    if [ "$who" = e2fsck ]; then
        # It replays the log and frees orphans without a question; whatever else it asks is damage,
        # but for trees that could be smaller.
        e2fsck -fy "$image" >e2fsck.log 2>&1 || [ $? -eq 1 ] || fail "e2fsck: $(cat e2fsck.log)"
        ! grep -v 'Optimize? yes$' e2fsck.log | grep -q '? yes$' || fail "e2fsck had to mend: $(cat e2fsck.log)"
    fi
    if [ "$who" = kernel ]; then
        mount -t ext4 -o loop "$image" "$mount_point" || fail "the kernel does not mount it"
    else
        layoutfs mount -v "$image" "$mount_point" 2>>recovery.log || fail "$image cannot be mounted"
    fi
    "$@" || fail "after a recovery by $who"
    if [ "$who" = kernel ]; then
        umount "$mount_point"
    else
        layoutfs umount "$mount_point"
    fi
    expect_sound "$what" "$image"
}

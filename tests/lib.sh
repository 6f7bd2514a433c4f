# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by every integration test. The runner starts a test in an empty directory of its own, with
# the program to test in $LAYOUTFS and the source tree in $LAYOUTFS_SOURCE.
set -euo pipefail

export LC_ALL=C TZ=UTC
PATH=$PATH:/usr/sbin:/sbin
: "${LAYOUTFS:?the program to test}"

# skip REASON: the test cannot run here.
skip() {
    echo "skip: $*"
    exit 77
}

# fail MESSAGE: the test has found something wrong.
fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# need COMMAND...: skips the test unless all are installed.
need() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null || skip "$command is not installed"
    done
}

# need_root: skips the test for plain users.
need_root() {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
}

# need_own_mounts: skips the test where what it mounts over the system's files would be seen outside.
need_own_mounts() {
    [ "${LAYOUTFS_TEST_NAMESPACE:-}" = own ] || skip "needs a mount namespace of its own"
}

# need_fuse: skips the test where nothing can be mounted through FUSE.
need_fuse() {
    need fusermount3
    [ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "/dev/fuse is not usable"
}

# open_fuse_to_all: plain users can use /dev/fuse.
open_fuse_to_all() {
    need_own_mounts
    mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse || skip "cannot open /dev/fuse to all"
}

# need_loop: skips the test where no loop device can be had.
need_loop() {
    need_root
    need losetup mount umount
    losetup --find >/dev/null 2>&1 || skip "no free loop device"
}

# kernel_mount IMAGE: the Linux ext4 driver mounts it on $mount_point.
kernel_mount() {
    mount -t ext4 -o loop "$1" "${mount_point:?}" 2>mount.err || {
        grep -q 'unknown filesystem type' mount.err && skip "the kernel has no ext4"
        grep -qi 'permission\|failed to setup loop' mount.err && skip "may not mount loop devices"
        cat mount.err >&2
        fail "the kernel does not mount $1"
    }
}

# layoutfs ARGUMENTS...: the program under test.
layoutfs() {
    "$LAYOUTFS" "$@"
}

# expect_exit CODE COMMAND...: runs the command, whose output goes to ./out and ./err.
expect_exit() {
    local wanted=$1 code=0
    shift
    "$@" >out 2>err </dev/null || code=$?
    [ "$code" -eq "$wanted" ] || {
        cat out err >&2
        fail "'$*' exited with $code instead of $wanted"
    }
}

# expect_text PATTERN FILE: FILE has a line that matches the extended regular expression.
expect_text() {
    grep -Eq -- "$1" "$2" || {
        cat "$2" >&2
        fail "no line matches '$1' in $2"
    }
}

# expect_same A B [WHAT]: the two files are equal.
expect_same() {
    diff -u "$1" "$2" >&2 || fail "${3:-$1 and $2} differ"
}

# expect_clean IMAGE: e2fsck finds nothing to complain about.
expect_clean() {
    e2fsck -fn "$1" >fsck.log 2>&1 || {
        cat fsck.log >&2
        fail "e2fsck -fn $1 is not content"
    }
}

# has_xattrs DIRECTORY: its filesystem can hold extended attributes.
has_xattrs() {
    local answer
    answer=$(setfattr -x user.none "$1" 2>&1 || true)
    [[ $answer != *"not supported"* ]]
}

# expect_sound TYPE IMAGE: our check finds nothing wrong, nor does the format's own, where there is one.
expect_sound() {
    case $1 in
    ext*) expect_clean "$2" ;;
    reiser4*)
        if command -v fsck.reiser4 >/dev/null; then # which writes
            cp --sparse=always "$2" fsck.img
            fsck.reiser4 --check -y -f fsck.img >fsck.log 2>&1 ||
                fail "$1: fsck.reiser4 is not content with $2: $(tail -n 20 fsck.log)"
        fi
        ;;
    esac
    layoutfs check "$2" >check.log 2>&1 || {
        cat check.log >&2
        fail "$1: layoutfs check $2 is not content"
    }
}

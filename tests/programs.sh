# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by tests/integration/programs_*.sh, which run real programs on a mount of every layout that
# the program under test has: a new layout is in them without a change here. In `make check` a layout
# is represented by the last of its types, which has the most in it (ext: ext4); with
# LAYOUTFS_TEST_FACTOR above 1 all types are.
#
# LAYOUTFS_TEST_TYPES chooses the types. "kernel:ext4" among them is the kernel's own ext4 on a loop
# device, the judge of whether a test asks for the right thing.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"

# How much more than in `make check` is to be done.
# shellcheck disable=SC2034 # for the scripts
factor=${LAYOUTFS_TEST_FACTOR:-1}

# Shared by all cases: the type under test, its mount point, and its image if it has one.
type=
mount_point=$PWD/mnt
image_directory=$PWD/images
image=

# list_types [--mkfs]: all types, or those with an image.
list_types() {
    layoutfs options --json "$@" | python3 -c '
import json, sys
for layout in json.load(sys.stdin)["layouts"]:
    for type in layout["types"]: print(type["name"])'
}

# The types to be tested.
chosen_types() {
    layoutfs options --json | python3 -c '
import json, sys
for layout in json.load(sys.stdin)["layouts"]:
    for type in layout["types"][0 if int(sys.argv[1]) > 1 else -1:]: print(type["name"])' "$factor"
}

# programs_mount SIZE: an empty filesystem on $mount_point.
programs_mount() {
    image=
    case $type in
    kernel:*)
        image=$image_directory/disk.img
        truncate -s "$1" "$image"
        mke2fs -q -F -t "${type#kernel:}" "$image"
        mount -o loop "$image" "$mount_point"
        return
        ;;
    esac
    if list_types --mkfs | grep -x -- "$type" >/dev/null; then
        image=$image_directory/disk.img
        layoutfs mkfs -q -t "$type" --size "$1" "$image" >/dev/null
    fi
    if [ "$(id -u)" -eq 0 ]; then
        layoutfs mount -t "$type" -o allow_other "${image:-none}" "$mount_point"
    else
        layoutfs mount -t "$type" "${image:-none}" "$mount_point"
    fi
}

# programs_judge: unmounts, and has the image examined by us and by whoever knows the format.
programs_judge() {
    case $type in
    kernel:*) umount "$mount_point" || fail "$type: umount" ;;
    *) layoutfs umount "$mount_point" || fail "$type: umount" ;;
    esac
    [ -n "$image" ] || return 0
    case $type in
    kernel:ext*) expect_clean "$image" ;;
    *) expect_sound "$type" "$image" ;;
    esac
    rm "$image"
}

programs_leave() {
    local code=$?
    [ $code -eq 0 ] || [ $code -eq 77 ] || echo "in the test on type $type" >&2
    ! grep -q " $mount_point " /proc/mounts || layoutfs umount "$mount_point" >/dev/null 2>&1 ||
        umount -l "$mount_point"
    ! grep -q " $image_directory " /proc/mounts || umount -l "$image_directory"
}

# on_every_type FUNCTION [SIZE]: calls FUNCTION in a subshell with an empty filesystem of the type on
# $mount_point, then unmounts and judges. The subshell is left at the first command that fails.
on_every_type() {
    local body=$1 size=${2:-1G} before
    need_fuse
    need python3 e2fsck
    trap programs_leave EXIT
    mkdir -p "$mount_point" "$image_directory"
    # In memory, as the programs here wait for the disk thousands of times.
    [ "$(id -u)" -ne 0 ] || mount -t tmpfs -o size=2G images "$image_directory" 2>/dev/null || true
    for type in ${LAYOUTFS_TEST_TYPES:-$(chosen_types)}; do
        before=$SECONDS
        programs_mount "$size"
        ("$body")
        programs_judge
        echo "$body: $type is right, $((SECONDS - before)) s"
    done
}

# copy_project DIR: the source of this project, without what has been built.
copy_project() {
    mkdir -p "$1"
    tar -C "$LAYOUTFS_SOURCE" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$1" -xf -
}

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# overlayfs, the filesystem of containers, with the mount as its lower layer and as its upper one.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need_root
need mount umount setfattr
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || skip "the kernel has no overlayfs"

merged=$PWD/merged
ram=$PWD/ram

# fill DIR: a lower layer.
fill() {
    mkdir -p "$1/kept" "$1/gone/deep" "$1/moved" "$1/replaced"
    seq 1000 >"$1/kept/text"
    chmod 640 "$1/kept/text"
    chown 12:34 "$1/kept/text"
    head -c 300000 /dev/urandom >"$1/kept/data"
    ln -s text "$1/kept/link"
    ln "$1/kept/data" "$1/kept/hard"
    echo gone | tee "$1/gone/deep/file" "$1/gone/file" "$1/replaced/old" >/dev/null
    seq -f "$1/moved/file%g" 50 | while read -r file; do
        echo "$file" >"$file"
    done
    echo lower >"$1/removed"
    mknod "$1/null" c 1 3
}

# overlay LOWER UPPER WORK: 1 if the kernel does not want it.
overlay() {
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3,redirect_dir=on" "$merged" \
        2>mount.err
}

# change: what containers do to their root.
change() {
    cd "$merged"
    cmp kept/data "$1/kept/data"
    echo appended >>kept/text
    truncate -s 1000 kept/data
    [ "$(stat -c '%a %u %g' kept/text)" = "640 12 34" ] || fail "$type: a copied-up file's attributes"
    rm removed null
    rm -r gone
    mkdir gone # opaque: what was in it stays hidden
    echo new >gone/new
    mv moved elsewhere
    mv kept/link kept/link2
    rm -r replaced
    echo file >replaced
    mkdir -p new/deep
    seq -f 'new/deep/f%g' 200 | xargs touch
    rm new/deep/f?
    ln new/deep/f10 new/hard
    mkfifo new/fifo
    setfattr -n user.note -v value new/hard 2>/dev/null || true
    exec 7<>new/temporary
    rm new/temporary
    echo unlinked >&7
    exec 7>&-
    echo first >new/renamed && echo second >new/renamed.tmp && mv new/renamed.tmp new/renamed
}

# expect_changed: the merged tree after change.
expect_changed() {
    cd "$merged"
    [ "$(tail -n 1 kept/text)" = appended ] || fail "$type: an append is lost"
    [ "$(stat -c %s kept/data)" -eq 1000 ] || fail "$type: a truncation is lost"
    [ ! -e removed ] && [ ! -e null ] || fail "$type: a removed file is back"
    [ "$(ls gone)" = new ] || fail "$type: a new directory shows what the old one held"
    [ ! -e moved ] && [ "$(ls elsewhere | wc -l)" -eq 50 ] || fail "$type: a directory's rename is lost"
    [ "$(readlink kept/link2)" = text ] && [ ! -L kept/link ] || fail "$type: a link's rename is lost"
    [ "$(cat replaced)" = file ] || fail "$type: a directory was not replaced by a file"
    [ "$(ls new/deep | wc -l)" -eq 191 ] || fail "$type: new files are missing"
    [ new/hard -ef new/deep/f10 ] || fail "$type: a hard link is lost"
    [ -p new/fifo ] && [ ! -e new/temporary ] && [ "$(cat new/renamed)" = second ] ||
        fail "$type: new names are wrong"
}

# use_as LOWER UPPER WORK: changes through the overlay stay, also after it was mounted again.
use_as() {
    overlay "$@" || fail "$type: $(cat mount.err)"
    (change "$1")
    (expect_changed)
    umount "$merged"
    overlay "$@" || fail "$type: mounted again: $(cat mount.err)"
    (expect_changed)
    umount "$merged"
    [ "$(cat "$1/removed")" = lower ] || fail "$type: the lower layer was changed"
}

use_overlay() {
    mkdir -p "$merged" "$ram"
    mount -t tmpfs tmpfs "$ram"
    mkdir "$ram/upper" "$ram/work"
    fill "$mount_point/lower"
    if ! overlay "$mount_point/lower" "$ram/upper" "$ram/work"; then
        mkdir "$ram/lower"
        overlay "$ram/lower" "$ram/upper" "$ram/work" && fail "$type: no lower layer: $(cat mount.err)"
        skip "overlays may not be mounted"
    fi
    umount "$merged"
    rm -r "${ram:?}"/*
    mkdir "$ram/upper" "$ram/work"
    use_as "$mount_point/lower" "$ram/upper" "$ram/work"

    # An upper layer keeps in extended attributes what it hides.
    if ! has_xattrs "$mount_point"; then
        umount "$ram"
        return
    fi
    # Both on the mount; and upper alone, with whiteouts and copies from another filesystem.
    mkdir "$mount_point/upper" "$mount_point/work"
    use_as "$mount_point/lower" "$mount_point/upper" "$mount_point/work"
    rm -r "$mount_point"/{upper,work}
    mkdir "$mount_point/upper" "$mount_point/work"
    fill "$ram/lower"
    use_as "$ram/lower" "$mount_point/upper" "$mount_point/work"
    umount "$ram"
}
on_every_type use_overlay

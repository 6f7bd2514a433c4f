#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# mount(8), umount(8) and /etc/fstab with the mount helpers that `make install` installs. An
# overlay adds the helpers to /sbin.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_own_mounts
need_fuse
need mount umount meson e2fsck setpriv

helpers=(mount.layoutfs mount.fuse.layoutfs umount.layoutfs umount.fuse.layoutfs)

# --- what an installation puts where
build=$(dirname "$(dirname "$LAYOUTFS")")
meson install -C "$build" --no-rebuild --quiet --destdir "$PWD/installed" >install.log 2>&1 ||
    { cat install.log >&2 && fail "meson install"; }
for helper in "${helpers[@]}"; do
    target=$(readlink "installed/sbin/$helper") || fail "$helper is not installed in /sbin"
    [ -x "installed/$target" ] || fail "$helper points to $target, where nothing is"
done

mkdir -p helpers mnt
for helper in "${helpers[@]}"; do
    ln -s "$LAYOUTFS" "helpers/$helper"
done
sbin=$(realpath /sbin)
mount -t overlay -o "lowerdir=$PWD/helpers:$sbin" overlay "$sbin" 2>err ||
    skip "cannot add to $sbin in a namespace: $(head -n 1 err)"

cleanup() {
    ! grep -q " $PWD/mnt " /proc/mounts || umount -l "$PWD/mnt" || true
}
trap cleanup EXIT
mounted() {
    grep -q "^$PWD/disk.img $PWD/mnt fuse.layoutfs.$layout $1" /proc/mounts
}
# new_image TYPE: of a size that all types can have
new_image() {
    layout=$1
    rm -f disk.img
    truncate -s 160M disk.img
    layoutfs mkfs -q -t "$layout" disk.img
}

# expect_refusal COMMAND...: mount(8) and umount(8) turn the helper's code into one of their own.
expect_refusal() {
    ! "$@" >out 2>err </dev/null || fail "'$*' succeeded"
    [ -s err ] || fail "'$*' failed without a word"
}

# clean_umount COMMAND...: once it returns the image is complete.
clean_umount() {
    expect_exit 0 "$@"
    cp --sparse=always disk.img copy.img
    ! mounted '' || fail "$* left it mounted"
    expect_sound "$layout" copy.img
}

# --- all names of a type
names() {
    local type
    for type in layoutfs fuse.layoutfs "layoutfs.$layout" "fuse.layoutfs.$layout"; do
        expect_exit 0 mount -t "$type" disk.img mnt
        mounted rw || fail "mount -t $type: $(grep "$PWD/mnt" /proc/mounts)"
        head -c 5M /dev/urandom >"mnt/$type"
        cp "mnt/$type" written
        clean_umount umount mnt
        layoutfs cat copy.img "/$type" | cmp - written ||
            fail "umount(8) returned before the data was in the image"
    done
}
others=(nilfs2)
[ "${LAYOUTFS_TEST_FACTOR:-1}" -eq 1 ] || others=(ext3 ext4 nilfs2)
for other in "${others[@]}" ext2; do
    new_image "$other"
    names
done
# What mount(8) and the helpers do beside is the same for all.
expect_exit 0 mount -t layoutfs.ext2 -o ro disk.img mnt
expect_exit 0 umount "$PWD/disk.img"
expect_exit 0 mount -t layoutfs.memory none mnt -o size=10M
grep -q " $PWD/mnt fuse.layoutfs.memory rw" /proc/mounts || fail "mount -t layoutfs.memory"
expect_exit 0 umount mnt

# --- what mount(8) hands down
expect_exit 0 mount -n -v -t layoutfs disk.img mnt \
    -o nosuid,nodev,noexec,noatime,nodiratime,nofail,_netdev,noauto,user,x-systemd.automount,comment=x
mounted 'rw,nosuid,nodev,noexec,noatime' || fail "options: $(grep "$PWD/mnt" /proc/mounts)"
# It has noexec, so no program runs; and no device works.
cp /bin/true mnt/
expect_exit 126 mnt/true
clean_umount umount -v mnt
for options in defaults rw relatime strictatime sync suid,dev,exec,async,auto,group; do
    expect_exit 0 mount -t layoutfs -o "$options" disk.img mnt
    mounted rw || fail "-o $options"
    clean_umount umount -n mnt
done
expect_exit 0 mount -r -t layoutfs disk.img mnt
mounted ro || fail "mount -r"
expect_exit 1 touch mnt/new
expect_exit 0 umount mnt

# --- looking only; being sloppy; refusing
before=$(sha256sum <disk.img)
expect_exit 0 mount -f -t layoutfs disk.img mnt
! mounted '' || fail "mount -f mounted"
expect_refusal mount -t layoutfs -o bogus disk.img mnt
expect_text 'bogus' err
expect_refusal mount -f -t layoutfs -o bogus disk.img mnt
expect_exit 0 mount -s -f -t layoutfs -o bogus disk.img mnt
expect_text 'bogus' err
expect_refusal mount -t layoutfs missing.img mnt
expect_text 'missing.img' err
[ "$(sha256sum <disk.img)" = "$before" ] || fail "an image was changed that was not mounted"
expect_exit 0 mount -s -t layoutfs -o bogus,noatime disk.img mnt
mounted 'rw,noatime' || fail "mount -s"
expect_refusal mount -o remount,ro mnt
expect_text 'remount' err
expect_refusal mount -t layoutfs disk.img mnt # a second time
mkdir -p other
exec 7>mnt/busy
expect_refusal umount mnt
expect_text 'in use' err
expect_exit 0 umount -l mnt
! mounted '' || fail "umount -l left the name"
exec 7>&-
expect_exit 0 flock disk.img true # the server is done
expect_clean disk.img
expect_exit 1 mount.layoutfs disk.img
expect_exit 1 mount.layoutfs disk.img mnt -o bogus
expect_exit 1 umount.layoutfs

# --- /etc/fstab
cat >fstab <<FSTAB
$PWD/disk.img $PWD/mnt layoutfs noauto,noatime,nofail,x-systemd.device-timeout=1 0 0
$PWD/user.img $PWD/user fuse.layoutfs noauto,user 0 0
FSTAB
expect_exit 0 mount --fstab fstab "$PWD/mnt"
mounted rw,noatime || fail "mount of a line of fstab"
clean_umount umount mnt

# --- a plain user's line: mount(8) hands it to the helper, which works with that user's rights
id -u nobody >/dev/null 2>&1 || skip "no user nobody"
as_user() {
    setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"
}
mkdir -p user
truncate -s 16M user.img
layoutfs mkfs -q -t ext2 user.img
chown nobody user.img user
directory=$PWD
while [ "$directory" != / ]; do
    as_user test -x "$directory" || skip "user nobody cannot enter $directory"
    directory=$(dirname "$directory")
done
mount --bind fstab /etc/fstab
open_fuse_to_all
expect_exit 0 as_user mount "$PWD/user"
grep -q " $PWD/user fuse.layoutfs.ext2 rw,nosuid,nodev,.*user_id=$(id -u nobody)" /proc/mounts ||
    fail "a user's mount: $(grep "$PWD/user" /proc/mounts)"
as_user test -d user/lost+found || fail "a user does not see the mount"
expect_exit 0 as_user umount "$PWD/user"
expect_clean user.img

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# rsync, tar and dpkg: a tree with one of everything is copied, archived and unpacked, and all that
# the filesystem knows of it is compared. The original lies on the mount, too, so that what a format
# cannot hold is missing in both.
. "${LAYOUTFS_SOURCE:?}/tests/tree.sh"
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need_root
need rsync tar dpkg dpkg-deb setfattr getfattr setfacl

# same_tree COPY [EXCEPT]: as ./tree, but for lines that match.
same_tree() {
    local lists
    lists=$(dirname "$mount_point")
    listing tree | grep -Ev "${2:-^$}" >"$lists/want"
    listing "$1" | grep -Ev "${2:-^$}" >"$lists/got"
    expect_same "$lists/want" "$lists/got" "$type: $1"
}

use_rsync() {
    rsync -aHAX -S -@-1 tree/ rsynced
    same_tree rsynced
    rsync -aHAX -S -@-1 --itemize-changes tree/ rsynced >rsync.log
    [ ! -s rsync.log ] || fail "$type: the second rsync copies: $(head rsync.log)"
    rsync -aHAX -S -@-1 -c --itemize-changes tree/ rsynced >rsync.log
    [ ! -s rsync.log ] || fail "$type: rsync finds other contents: $(head rsync.log)"

    # Changes to the copy are found.
    echo more >>rsynced/plain
    rm -r rsynced/many
    ! has_xattrs . || setfattr -n user.note -v 'another value' rsynced/dir/data
    rsync -aHAX -S -@-1 --delete tree/ rsynced
    same_tree rsynced
    rm -r rsynced
}

use_tar() {
    tar --xattrs --xattrs-include='*' --acls -S --numeric-owner --format=posix -C tree -cf tree.tar .
    [ "$(stat -c %s tree.tar)" -lt 20000000 ] || fail "$type: tar -S stores holes"
    mkdir untarred
    tar --xattrs --xattrs-include='*' --acls -S --numeric-owner -C untarred -xpf tree.tar
    same_tree untarred 'dir/socket ' # tar has no form for sockets
    tar -C untarred --compare -f tree.tar >tar.log || fail "$type: $(head tar.log)"
    rm -r untarred tree.tar
}

# make_package VERSION: package.VERSION.deb, whose files differ from those of other versions.
make_package() {
    mkdir -p package/DEBIAN package/usr/share/thing package/etc package/usr/bin
    printf '%s\n' "Package: thing" "Version: $1" "Architecture: all" "Maintainer: Test <t@example.org>" \
        "Description: a package to test a filesystem" >package/DEBIAN/control
    echo /etc/thing.conf >package/DEBIAN/conffiles
    echo "version=$1" >package/etc/thing.conf
    seq -f "package/usr/share/thing/file-%05g-of-$1" 200 | while read -r file; do
        echo "$file" >"$file"
    done
    printf '#!/bin/sh\necho thing %s\n' "$1" >package/usr/bin/thing
    chmod 755 package/usr/bin/thing
    ln -f package/usr/bin/thing package/usr/bin/thing-linked
    ln -sfn ../share/thing package/usr/bin/things
    dpkg-deb --root-owner-group -Zgzip --build package "package.$1.deb" >/dev/null
    rm -r package/usr/share/thing
}

# in_root ARGUMENTS...: dpkg, with its database on the mount, too.
in_root() {
    dpkg --root="$PWD/root" --log="$PWD/dpkg.log" "$@" >dpkg.out 2>&1 </dev/null ||
        fail "$type: dpkg $*: $(cat dpkg.out)"
}

use_dpkg() {
    make_package 1
    make_package 2
    dpkg-deb -x package.1.deb unpacked
    [ "$(find unpacked/usr/share/thing -type f | wc -l)" -eq 200 ] || fail "$type: dpkg-deb -x"

    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates root/var/lib/dpkg/triggers
    : >root/var/lib/dpkg/status
    in_root --install package.1.deb
    in_root --verify
    diff -r --no-dereference unpacked/usr root/usr || fail "$type: dpkg --unpack and dpkg-deb -x differ"
    [ "$(root/usr/bin/thing)" = "thing 1" ] || fail "$type: the program of the package does not run"
    in_root --install package.2.deb # every file is replaced or removed
    in_root --verify
    [ "$(root/usr/bin/thing-linked)" = "thing 2" ] || fail "$type: dpkg has not updated"
    find root/usr/share/thing -name '*-of-1' | grep . && fail "$type: old files stay"
    [ root/usr/bin/thing -ef root/usr/bin/thing-linked ] || fail "$type: a hard link was copied"
    in_root --purge thing
    [ -z "$(find root/usr root/etc ! -type d 2>/dev/null)" ] || fail "$type: dpkg --purge leaves files"
}

copy_trees() {
    cd "$mount_point"
    mkdir tree
    make_tree tree
    # Large files are for filesystems to test, not for rsync, which reads holes as zeros.
    rm tree/sparse tree/dir/double-indirect
    truncate -s 20M tree/sparse
    printf end >>tree/sparse
    use_rsync
    use_tar
    use_dpkg
}
on_every_type copy_trees

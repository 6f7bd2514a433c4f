#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the virtual machine in which tests/vm/run.sh asks a real Linux driver for its judgement:
# `kernel` and `initramfs` in $XDG_CACHE_HOME/layoutfs/vm (~/.cache/...), whose name is printed.
# Where they are there already, nothing is done.
#
# The kernel is Debian's: its package is downloaded and unpacked, not installed. In the initramfs are
# busybox, the modules named below, and nilfs-tools of this system. A failure tells why: the tests
# that need the machine are then skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=${XDG_CACHE_HOME:-$HOME/.cache}/layoutfs/vm
modules=(virtio_pci virtio_blk nilfs2)
programs=(mount.nilfs2 umount.nilfs2 lscp mkcp chcp rmcp lssu dumpseg nilfs_cleanerd nilfs-clean)
PATH=$PATH:/usr/sbin:/sbin

fail() {
    echo "no virtual machine: $*" >&2
    exit 1
}

mkdir -p "$target"
exec 9>"$target/lock"
flock 9
if [ "$target/initramfs" -nt "$here/build.sh" ] && [ "$target/initramfs" -nt "$here/init" ]; then
    echo "$target"
    exit 0
fi

[ "$(uname -m)" = x86_64 ] || fail "only x86-64 is provided for"
for program in apt-get dpkg-deb depmod modprobe cpio busybox "${programs[@]}"; do
    command -v "$program" >/dev/null || fail "$program is not installed"
done
if ldd "$(command -v busybox)" >/dev/null 2>&1; then
    fail "busybox is not the static one"
fi

work=$(mktemp -d "$target/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,etc,job,mnt,modules,proc,sys,tmp}

# The kernel: what the metapackage depends on is the newest one.
package=$(apt-cache depends --important linux-image-amd64 2>/dev/null |
    sed -n 's/^ *|\{0,1\}Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1)
[ -n "$package" ] || fail "apt knows no linux-image-amd64 (apt-get update?)"
(cd "$work" && apt-get -q download "$package" >download.log 2>&1) ||
    fail "$package cannot be downloaded: $(tail -n 1 "$work/download.log")"
dpkg-deb -x "$work/$package"_*.deb "$work/kernel"
version=$(basename "$work"/kernel/boot/vmlinuz-*)
version=${version#vmlinuz-}

# Modules in the order in which they are to be loaded.
tree=$work/kernel
[ -d "$tree/lib/modules" ] || tree=$work/kernel/usr
depmod -b "$tree" "$version" 2>"$work/depmod.log" || fail "$(head -n 1 "$work/depmod.log")"
for module in "${modules[@]}"; do
    modprobe -d "$tree" -S "$version" --show-depends "$module" || fail "$package has no $module"
done | while read -r verb path _; do
    name=$(basename "$path")
    name=${name%.ko*}.ko
    if [ "$verb" != insmod ] || [ -e "$root/modules/$name" ]; then
        continue
    fi
    case $path in
    *.xz) xz -dc "$path" >"$root/modules/$name" ;;
    *.zst) zstd -qdc "$path" >"$root/modules/$name" ;;
    *) cp "$path" "$root/modules/$name" ;;
    esac
    echo "$name" >>"$root/modules/order"
done

# Programs, with the libraries that they are linked with, where they lie here.
cp "$(command -v busybox)" "$root/bin/busybox"
for program in "${programs[@]}"; do
    path=$(command -v "$program")
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
        install -D "$library" "$root$library"
    done
    install -D "$path" "$root/bin/$program"
done
install "$here/init" "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"

mv "$work"/kernel/boot/vmlinuz-* "$target/kernel"
mv "$work/initramfs" "$target/initramfs"
echo "$target"

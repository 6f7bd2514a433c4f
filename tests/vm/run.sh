#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   tests/vm/run.sh [-d DIR] IMAGE... -- COMMANDS
#
# Runs shell COMMANDS in a virtual machine with a Linux kernel that has the real drivers; the IMAGEs
# are its disks /dev/vda, /dev/vdb..., written in place. The commands' working directory begins as
# a copy of DIR, and what they leave there comes back to DIR. They have busybox, nilfs-tools, and
# ./manifest.sh (of this directory).
#
# What they print is printed; the exit code is theirs, 125 when the machine did not come to its end
# (LAYOUTFS_VM_SECONDS, 600). 77: there is no machine here, and why.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
usage() {
    sed -n 's/^# \{0,1\}//; 4p' "$0" >&2
    exit 2
}

shared=
if [ "${1:-}" = -d ]; then
    shared=$(cd "${2:?}" && pwd)
    shift 2
fi
images=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    images+=("$1")
    shift
done
if [ $# -ne 2 ] || [ ${#images[@]} -gt 24 ]; then
    usage
fi
commands=$2

command -v qemu-system-x86_64 >/dev/null || {
    echo "qemu-system-x86_64 is not installed"
    exit 77
}
machine=$("$here/build.sh" 2>&1) || {
    echo "$machine" | tail -n 1
    exit 77
}

work=$(mktemp -d "${TMPDIR:-/tmp}/layoutfs-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The kernel unpacks archives that follow each other one over the other.
mkdir -p "$work/root/job"
[ -z "$shared" ] || cp -R "$shared/." "$work/root/job"
cp "$here/manifest.sh" "$work/root/job"
printf '%s\n' "$commands" >"$work/root/job/commands"
(cd "$work/root" && find job | cpio --quiet -o -H newc | gzip -1) >"$work/job.cpio"
cat "$machine/initramfs" "$work/job.cpio" >"$work/initramfs"

# The last disk takes the results.
truncate -s 256M "$work/results"
drives=()
for image in "${images[@]}" "$work/results"; do
    drives+=(-drive "file=$image,if=virtio,format=raw,cache=unsafe,discard=unmap")
done
letters=abcdefghijklmnopqrstuvwxyz
timeout "${LAYOUTFS_VM_SECONDS:-600}" qemu-system-x86_64 -accel tcg -m 512 -no-reboot \
    -nodefaults -display none -serial "file:$work/console" \
    -kernel "$machine/kernel" -initrd "$work/initramfs" "${drives[@]}" \
    -append "console=ttyS0 panic=-1 mitigations=off results=/dev/vd${letters:${#images[@]}:1}" \
    </dev/null >"$work/qemu.log" 2>&1 || true
mkdir "$work/out"
tar -xf "$work/results" -C "$work/out" 2>/dev/null || true
[ -f "$work/out/status" ] || {
    tail -n 20 "$work/qemu.log" "$work/console" >&2
    exit 125
}
[ -z "$shared" ] || cp -R "$work/out/." "$shared"
cat "$work/out/output"
exit "$(cat "$work/out/status")"

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the virtual machine, for tests/integration/nilfs2_kernel.sh: the Linux driver's judgement of the
# volumes named in ./volumes, one a line in the order of the disks. It mounts each for writing and
# lists it (NAME.before), and its snapshots (NAME.cpN); its tools parse every segment; it adds, takes
# a snapshot, and lets its own cleaner work; what is there then is NAME.after, NAME.lscp, NAME.statfs.
# shellcheck disable=SC2317 # `each` calls what looks unreachable
set -u
fault() {
    echo "$name: $*"
    faults=$((faults + 1))
}
faults=0

cat >cleanerd.conf <<'CONF'
protection_period 0
min_clean_segments 0
max_clean_segments 0
clean_check_interval 1
selection_policy timestamp
nsegments_per_clean 4
mc_nsegments_per_clean 8
cleaning_interval 0.2
mc_cleaning_interval 0.1
min_reclaimable_blocks 0
mc_min_reclaimable_blocks 0
retry_interval 1
use_mmap
log_priority info
CONF

letters=abcdefghijklmnopqrstuvwxyz
# each COMMAND: runs it with $name, $disk and $tree of every volume.
each() {
    volume=0
    while read -r name; do
        volume=$((volume + 1))
        disk=/dev/vd$(echo "$letters" | cut -c $volume)
        tree=/mnt/$name
        "$@" </dev/null
    done <volumes
}

judge() {
    mkdir -p "$tree" /mnt/snapshot
    mount -t nilfs2 "$disk" "$tree" || {
        fault "the driver does not mount it"
        return
    }
    ./manifest.sh "$tree" >"$name.before" || fault "the tree cannot be listed"
    for number in $(lscp -s "$disk" | awk 'NR > 1 { print $1 }'); do
        mount -t nilfs2 -o "ro,cp=$number" "$disk" /mnt/snapshot || fault "snapshot $number"
        ./manifest.sh /mnt/snapshot >"$name.cp$number"
        umount /mnt/snapshot
    done
    segments=$(lssu "$disk" | awk 'NR > 1 { print $1 }')
    # shellcheck disable=SC2086 # a list
    dumpseg "$disk" $segments >parsed 2>&1 || fault "dumpseg: $(tail -n 1 parsed)"
    grep -i 'error\|invalid\|bad' parsed && fault "dumpseg complains"

    mkdir "$tree/by-linux"
    cp /bin/busybox "$tree/by-linux/busybox" || touch "$name.full"
    [ -e "$name.full" ] || head -c 40000 /bin/busybox >"$tree/by-linux/small"
    [ -e "$name.full" ] || mkcp -s "$disk" || fault "mkcp -s"
    rm -f "$tree/by-linux/busybox"
    for object in "$tree"/*/a-file* "$tree"/overwritten; do
        [ ! -f "$object" ] || rm "$object"
        break
    done
    sync
    nilfs_cleanerd -c "$PWD/cleanerd.conf" "$disk" "$tree" >"$name.cleaner" 2>&1
}

finish() {
    [ -e "$name.cleaner" ] || return
    cleaner=$(sed -n 's/^NILFS_CLEANERD_PID=//p' "$name.cleaner") # a daemon, which tells late
    kill "${cleaner:-none}" || fault "no cleaner: $(cat "$name.cleaner")"
    while kill -0 "${cleaner:-none}" 2>/dev/null; do
        sleep 0.1
    done
    sync
    ./manifest.sh "$tree" >"$name.after" || fault "the tree cannot be listed after the cleaner"
    lscp -a "$disk" >"$name.lscp"
    stat -f -c '%b %f %a %c %d' "$tree" >"$name.statfs"
    umount "$tree" || fault "cannot be unmounted"
}

each judge
sleep 4
each finish
dmesg | grep -i 'nilfs.*\(error\|corrupt\|bad\|broken\|warning\)' && faults=$((faults + 1))
exit $((faults > 0))

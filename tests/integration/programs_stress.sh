#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# stress-ng's class of filesystem stressors, which verify what they read, and dbench, which plays the
# file requests of office programs.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need stress-ng dbench setfattr

# Not of the class: those that use kernel filesystems of their own (bind-mount, binderfs, procfs), no
# filesystem (eventfd, ioprio), or watch rather than use one (dnotify, fanotify).
stressors=(
    access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl fiemap
    file-ioctl filename flock fpunch fsize fstat getdent handle hdd inode-flags inotify io iomix lease
    link locka lockf lockofd mknod open rename symlink sync-file touch utime verity xattr
)

use_stress() {
    local stressor arguments=()
    for stressor in "${stressors[@]}"; do
        [ "$stressor" != xattr ] || has_xattrs "$mount_point" || continue
        arguments+=("--$stressor" 1)
    done
    stress-ng --verify --temp-path "$mount_point" --timeout $((6 * factor)) --metrics-brief \
        --hdd-bytes 8M --iomix-bytes 8M --copy-file-bytes 128M --fallocate-bytes 8M \
        --sync-file-bytes 8M --dirdeep-inodes 2000 \
        "${arguments[@]}" >stress.log 2>&1 || fail "$type: $(grep -v metrc: stress.log)"
    rm -rf "${mount_point:?}"/*
    dbench -D "$mount_point" -t $((2 * factor)) 3 >dbench.log 2>&1 || fail "$type: $(tail dbench.log)"
    ! grep -E 'ERROR|failed in' dbench.log || fail "$type: dbench has met errors"
}
on_every_type use_stress 2G

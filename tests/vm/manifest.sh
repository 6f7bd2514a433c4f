#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# manifest.sh DIR: one line an object, in byte order of the paths: type|mode|uid|gid|links|size|inode|
# device|mtime|path|SHA-256 or target. Of a file above 32 MiB the first and last MiB are summed up.
# Runs on the host and under busybox in the virtual machine, where a process is dear: few are started
# a file. tests/tools/manifest.c prints the same of an image. No path may have a newline.
export LC_ALL=C
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
find . | sort | tr '\n' '\0' | xargs -0 stat -c '%F|%a|%u|%g|%h|%s|%i|%t:%T|%Y|%n' >"$work/objects"
# Two lines each: path, contents.
{
    find . -type f -size -65537 -print0 | xargs -0 -r sha256sum | sed 's/^\([0-9a-f]*\)..\(.*\)$/\2\n\1/'
    find . -type f -size +65536 | while IFS= read -r path; do
        echo "$path"
        {
            head -c 1048576 "$path"
            tail -c 1048576 "$path"
        } | sha256sum | sed 's/^\([0-9a-f]*\).*/ends:\1/'
    done
    find . -type l | while IFS= read -r path; do
        printf '%s\n->%s\n' "$path" "$(readlink "$path")"
    done
} >"$work/contents"
# The path is what follows the ninth bar.
awk -v contents="$work/contents" '
BEGIN {
    while ((getline path < contents) > 0 && (getline line < contents) > 0)
        content[path] = line
}
{
    path = $0
    for (i = 0; i < 9; i++)
        path = substr(path, index(path, "|") + 1)
    print $0 "|" (path in content ? content[path] : "-")
}' "$work/objects"

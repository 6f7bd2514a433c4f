#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# manifest.sh DIR: one line an object, in byte order of the paths: type|mode|uid|gid|links|size|inode|
# device|mtime|path|SHA-256 or target. Of a file above 32 MiB the first and last MiB are summed up.
# Runs on the host and under busybox in the virtual machine; tests/tools/manifest.c prints the same
# of an image.
cd "$1" || exit 1
export LC_ALL=C
find . | sort | while IFS= read -r path; do
    if [ -L "$path" ]; then
        content="->$(readlink "$path")"
    elif [ ! -f "$path" ]; then
        content=-
    elif [ "$(stat -c %s "$path")" -gt 33554432 ]; then
        content=ends:$({
            head -c 1048576 "$path"
            tail -c 1048576 "$path"
        } | sha256sum | cut -d ' ' -f 1)
    else
        content=$(sha256sum <"$path" | cut -d ' ' -f 1)
    fi
    # The name is no part of the format: it may have a % in it.
    printf '%s|%s|%s\n' "$(stat -c '%F|%a|%u|%g|%h|%s|%i|%t:%T|%Y' "$path")" "$path" "$content"
done

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Prints where a real file tree for the demo lies: a kernel's header files, as Debian ships them.
#
#   scripts/fetch-source.sh DIR
#
# What is installed under /usr/src is preferred; else the headers' package is downloaded (10 MB, by
# apt-get, needs no root) and unpacked below DIR, once. Where neither works nothing is printed, and
# the bench takes a synthetic tree.
set -euo pipefail
target=${1:?usage: $0 DIR}

find_tree() {
    local tree
    for tree in /usr/src/linux-source-*.tar.* /usr/src/linux-headers-*-common \
        "$target"/usr/src/linux-headers-*-common; do
        [ ! -e "$tree" ] || { echo "$tree" && return; }
    done
    return 1
}

depends_on() { # PACKAGE PATTERN: the first package it depends on that matches
    apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: //p' | grep -m1 -- "$2"
}

if find_tree; then
    exit 0
fi
headers=$(depends_on "linux-headers-$(dpkg --print-architecture 2>/dev/null)" linux-headers || true)
package=$(depends_on "${headers:-none}" '-common$' || true)
if [ -z "$package" ]; then
    echo "no linux-headers package is known to apt; the tree will be synthetic" >&2
    exit 0
fi
echo "downloading: $package (apt-get download, 10 MB) for a real file tree" >&2
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
if (cd "$download" && apt-get download -qq "$package" >/dev/null 2>&1); then
    mkdir -p "$target"
    dpkg-deb -x "$download"/*.deb "$target"
    find_tree
else
    echo "$package could not be downloaded; the tree will be synthetic" >&2
fi

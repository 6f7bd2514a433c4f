#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what is missing of the Debian packages that layoutfs needs, and says so first.
#
#   scripts/install-packages.sh build|check
#
# build: to build the program. check: to run every test and lint, too. Where all are installed,
# nothing is asked of the network.
set -euo pipefail

build_packages=(
    build-essential meson ninja-build pkg-config
    libfuse3-dev fuse3 liburing-dev libjansson-dev libinih-dev libarchive-dev libdeflate-dev zlib1g-dev
    liblzo2-dev libzstd-dev liblz4-dev uuid-dev uthash-dev libbsd-dev
    scdoc
)
check_packages=(
    check libmd-dev e2fsprogs fuse2fs attr acl clang-format clang-tidy cppcheck shellcheck python3
    git sqlite3 postgresql rsync stress-ng dbench fio # run on mounts
    qemu-system-x86 busybox-static kmod cpio xz-utils zstd nilfs-tools reiser4progs grub-common # other readers
)

case ${1:-} in
build) wanted=("${build_packages[@]}") ;;
check) wanted=("${build_packages[@]}" "${check_packages[@]}") ;;
*)
    echo "usage: $0 build|check" >&2
    exit 2
    ;;
esac

command -v dpkg-query >/dev/null || {
    echo "$0: this is no Debian system; please install what corresponds to: ${wanted[*]}" >&2
    exit 0
}

missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | sort -u) || true
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo >/dev/null; then
    as_root=(sudo)
else
    echo "$0: neither root nor sudo; please have these packages installed: ${missing[*]}" >&2
    exit 1
fi

echo "installing: ${missing[*]} (apt-get)"
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
}
# Tests start servers of their own: that the package brings no running one is said to it while it is
# installed.
no_cluster=/etc/postgresql-common/createcluster.d/layoutfs-tests.conf
if [[ " ${missing[*]} " = *" postgresql "* ]]; then
    "${as_root[@]}" mkdir -p "${no_cluster%/*}"
    echo "create_main_cluster = false" | "${as_root[@]}" tee "$no_cluster" >/dev/null
    trap '"${as_root[@]}" rm -f "$no_cluster"' EXIT
fi
# The package lists may be absent or old: a second try is made with new ones.
install || { "${as_root[@]}" apt-get update -qq && install; }

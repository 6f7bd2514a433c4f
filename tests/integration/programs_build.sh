#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A compiler at work: the source of this project is copied to the mount, configured and built there,
# and the program runs from there. In `make check` what is built is a test of the core, with all that
# it needs: a fifth of the files.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need meson ninja cc

# has_built: the program from the mount works as ours does, on an image there.
has_built() {
    build/tools/layoutfs options >here.txt
    layoutfs options >there.txt
    expect_same there.txt here.txt "$type: the program built on the mount"
    build/tools/layoutfs mkfs -q -t ext2 --size 64M inner.img
    build/tools/layoutfs cp -a source/fs inner.img:/
    build/tools/layoutfs check inner.img >check.log || fail "$type: $(cat check.log)"
    build/tools/layoutfs cp -a inner.img:/fs fs
    diff -r source/fs fs || fail "$type: the program built on the mount does not copy"
}

build_project() {
    local target=tests/test_hdd tests=enabled
    [ "$factor" -eq 1 ] && [ -x "$(dirname "$LAYOUTFS")/../$target" ] || target=all tests=disabled
    cd "$mount_point"
    copy_project source
    # As fast as the compiler can, since it is not the one that is tested.
    meson setup build source -Doptimization=0 -Ddebug=false -Dtests=$tests -Dman=disabled \
        >meson.log 2>&1 || fail "$type: meson: $(tail -20 meson.log)"
    ninja -C build "$target" >ninja.log 2>&1 || fail "$type: ninja: $(tail -20 ninja.log)"
    ninja -C build -n "$target" >again.log
    grep -q 'no work to do' again.log || fail "$type: times of files have ninja build again"

    if [ "$target" = all ]; then
        has_built
    else
        "build/$target" >test.log || fail "$type: the program built on the mount: $(cat test.log)"
    fi
}
on_every_type build_project

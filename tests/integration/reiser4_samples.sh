#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Volumes that the Reiser4 driver wrote, and others, show what they are known to hold
# (tests/data/reiser4), and a crashed one what must be recovered, without a byte being changed.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need xz
samples=$LAYOUTFS_SOURCE/tests/data/reiser4
manifest=$(dirname "$LAYOUTFS")/../tests/reiser4_manifest

# wanted SAMPLE: its manifest, without what is said of compressed contents.
wanted() {
    xz -dc "$samples/$1.manifest.xz" >manifest.text
    if grep -q '^dir40 / ' manifest.text; then
        awk '/^ccreg40/ { sub(/\] .*/, "]"); skip = 1; print; next } /^  len/ && skip { next }
             { skip = /^  len/ ? skip : 0; print }' manifest.text
    else
        awk -F'|' -v OFS='|' '/^#/ { next } $9 == "ccreg40" { $8 = "?"; NF = 11 } { print }' \
            manifest.text
    fi
}

for sample in k-reg40 k-crash-pending k-crash-done reg40 node41-4k; do
    xz -dc "$samples/$sample.img.xz" >$sample.img
    [ $sample != k-crash-pending ] || sha256sum $sample.img >before.sum
    wanted $sample | LC_ALL=C sort >want
    form=()
    ! grep -q '^dir40 / ' want || form=(-a)
    "$manifest" "${form[@]}" $sample.img >out || fail "'$sample' cannot be read"
    LC_ALL=C sort out >got
    expect_same want got "$sample"
done
sha256sum --quiet -c before.sum || fail "the crashed volume's log was replayed by a read-only mount"
echo "all samples show what they hold"

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

for sample in k-reg40 k-crash-pending node41-4k; do
    expect_exit 0 layoutfs check $sample.img
    expect_text 'clean$' out
done

# Recovered by a mount for writing, which is cut after each of its writes: the next one ends at the
# same tree, and fsck.reiser4 finds nothing wrong.
cut=$(dirname "$LAYOUTFS")/../tests/cut_recovery
wanted k-crash-pending | LC_ALL=C sort >want
writes=$("$cut" k-crash-pending.img)
[ "$writes" -ge 6 ] || fail "the recovery wrote $writes times"
for ((n = 0; n <= writes; n++)); do
    cp --sparse=always k-crash-pending.img cut.img
    "$cut" k-crash-pending.img cut.img $n
    "$manifest" cut.img | LC_ALL=C sort >got || fail "cut after $n writes: cannot be read"
    expect_same want got "cut after $n writes, read only"
    [ "$("$cut" cut.img)" -ge 0 ] || fail "cut after $n writes: cannot be recovered"
    cp --sparse=always cut.img again.img
    "$cut" cut.img again.img 1000000
    "$manifest" again.img | LC_ALL=C sort >got || fail "cut after $n writes: cannot be recovered"
    expect_same want got "cut after $n writes"
    ! command -v fsck.reiser4 >/dev/null || fsck.reiser4 --check -y -f again.img >fsck.log 2>&1 ||
        fail "cut after $n writes: $(tail -n 20 fsck.log)"
done

# Structures, at places that are known of this volume.
# expect_shown PATTERN ARGUMENT...: `layoutfs show k-reg40.img` with these has a line that matches.
expect_shown() {
    expect_exit 0 layoutfs show k-reg40.img "${@:2}"
    expect_text "$1" out
}
expect_shown '^block_count +16384$' super
expect_shown '^free_blocks +16072$' group 0
expect_shown '^ +nodeptr40 +29:1:0:2a:0 +8 +24$' block 23
expect_shown '^hash +r5_hash$' inode 42
expect_shown '^ +16384 +146 +3$' map 65566
expect_exit 0 layoutfs explain k-reg40.img /tails/one.4097
expect_text '^ +3872 +225 +41 +yes' out
expect_exit 1 layoutfs show k-reg40.img inode 65534
expect_exit 1 layoutfs show k-reg40.img group 1

need_fuse
mkdir mnt
trap '! mountpoint -q mnt || fusermount3 -u mnt' EXIT
layoutfs mount -o ro k-reg40.img mnt
find mnt -mindepth 1 | wc -l >got
xz -dc "$samples/k-reg40.manifest.xz" | grep -c '^/[^|]' >want
expect_same want got "objects under the mount"
xz -dc "$samples/k-reg40.manifest.xz" |
    awk -F'|' '$2 == "f" && $7 > 0 && !/\/big\// { print $8 "  mnt" $1 }' >sums
sha256sum --quiet -c sums || fail "contents under the mount"
fusermount3 -u mnt
echo "all samples show what they hold"

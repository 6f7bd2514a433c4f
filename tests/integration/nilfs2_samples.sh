#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Volumes that the Linux nilfs2 driver wrote show what they showed there (tests/data/nilfs2), in
# process and mounted. What a crash left is recovered, in core and on the disk.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need xz
samples=$LAYOUTFS_SOURCE/tests/data/nilfs2
manifest=$(dirname "$LAYOUTFS")/../tests/manifest

# expect_manifest WANTED ARGUMENTS...: tests/tools/manifest.c with these says so.
expect_manifest() {
    local wanted=$1
    shift
    "$manifest" "$@" >got || fail "'manifest $*' failed"
    expect_same "$samples/$wanted.manifest" got "manifest $*"
}

for sample in kernel 1k snapshots gc unclean; do
    xz -dc "$samples/$sample.img.xz" >$sample.img
    sha256sum $sample.img >before.sum
    expect_manifest $sample $sample.img
    sha256sum --quiet -c before.sum || fail "a read-only mount changed $sample.img"
done
expect_manifest snapshots.cp3 snapshots.img cp=3
expect_exit 1 "$manifest" snapshots.img cp=6 # deleted

# Opened for writing: what is recovered stays, and nothing is left to be recovered.
for sample in unclean gc; do
    for _ in 1 2; do
        expect_manifest $sample -w $sample.img
    done
    expect_manifest $sample $sample.img
    expect_exit 0 layoutfs check $sample.img
done
# As the driver listed them.
for sample in snapshots gc; do
    xz -dc "$samples/$sample.img.xz" >$sample.img
    layoutfs snapshot list -a $sample.img | awk 'NR > 1 { print $1, $2, $3 }' >got
    awk 'NR > 1 { print $1, $2, $3 }' "$samples/$sample.lscp" >want
    expect_same want got "checkpoints of $sample"
done
layoutfs diff snapshots.img 3 >got
cat >want <<'END'
changed  /a (contents)
changed  /b (contents)
added    /c
removed  /d
removed  /d/x
removed  /d/y
added    /fill
removed  /s
END
expect_same want got "what changed since checkpoint 3"

need_fuse
mkdir mnt
trap '! mountpoint -q mnt || fusermount3 -u mnt' EXIT
# expect_mounted WANTED IMAGE [OPTIONS]
expect_mounted() {
    layoutfs mount -o "ro${3:+,$3}" "$2" mnt
    sh "$LAYOUTFS_SOURCE/tests/vm/manifest.sh" mnt >got
    fusermount3 -u mnt
    expect_same "$samples/$1.manifest" got "$2 mounted"
}
for sample in kernel 1k snapshots gc; do
    expect_mounted $sample $sample.img
done
expect_mounted snapshots.cp3 snapshots.img cp=3
xz -dc "$samples/unclean.img.xz" >unclean.img
expect_mounted unclean unclean.img
echo "all samples show what the driver showed"

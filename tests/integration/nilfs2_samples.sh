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
    expect_exit 0 layoutfs check --contents $sample.img
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

# Structures, at places that are known of this volume.
# expect_shown PATTERN ARGUMENT...: `layoutfs show kernel.img` with these has a line that matches.
expect_shown() {
    expect_exit 0 layoutfs show kernel.img "${@:2}"
    expect_text "$1" out
}
expect_shown '^s_last_pseg +1500$' super
expect_shown '^ +1135 +365 +3 ' group 0
expect_shown '^summary_bytes +488$' log 1500
expect_shown '^no_log +there is no log$' log 1501
expect_shown '^inodes +237$' checkpoint 4
expect_shown '^block +18$' virtual 16384
expect_shown '^inode +24$' block 851
expect_shown '^kind +super root$' block 1527
expect_shown '^ +1 +255 +265 +848 +2$' map 24
expect_shown '^i_blocks +6184$' inode 24
expect_exit 0 layoutfs explain kernel.img /big3m
expect_text '^ +511 +255 +590 +522 +2$' out
expect_text '^ +2 +4 +0$' out
expect_exit 1 layoutfs show kernel.img checkpoint 5
expect_exit 1 layoutfs show kernel.img group 16
for what in "virtual 0" "virtual 99999999999" "inode 999" "map 999"; do
    # shellcheck disable=SC2086 # two words
    expect_exit 1 layoutfs show kernel.img $what
    [ "$(cat err)" = "layoutfs: kernel.img: cannot show $what: No such file or directory" ] ||
        fail "show $what: $(cat err)"
done

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

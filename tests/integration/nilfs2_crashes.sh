#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Volumes that a crash left, written here and by the Linux nilfs2 driver in a virtual machine: the
# driver and ours recover the same tree from the same image. With LAYOUTFS_TEST_FACTOR above 1 there
# are 50 written here and 16 by the driver, else 6 and none. CRASH_SEED chooses them.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need qemu-system-x86_64 mkfs.nilfs2
"$LAYOUTFS_SOURCE/tests/vm/build.sh" >vm 2>&1 || skip "$(tail -n 1 vm)"

manifest=$(dirname "$LAYOUTFS")/../tests/manifest
machine=$LAYOUTFS_SOURCE/tests/vm/run.sh
here=6 there=0
[ "${LAYOUTFS_TEST_FACTOR:-1}" -eq 1 ] || here=50 there=16
RANDOM=${CRASH_SEED:=$(($$ % 32768))}
echo "CRASH_SEED=$CRASH_SEED"

# written_here NUMBER: the disk of a random workload at a random moment of it, as a power cut may
# leave it: whole up to there, without some writes of the last epoch, or with a torn one.
shapes=("block_size=1024,blocks_per_segment=64" "block_size=2048,blocks_per_segment=16"
    "block_size=4096,blocks_per_segment=16")
written_here() {
    local id kinds
    for _ in {1..50}; do
        kinds=(a a "r$((RANDOM % 9 + 1))" "d$((RANDOM % 4 + 1))" "k$((RANDOM % 4 + 1))" "t$((RANDOM % 6 + 1))")
        id=random.$((RANDOM % 90 + 1)).$((RANDOM % 250 + 2)).${kinds[RANDOM % ${#kinds[@]}]}
        if layoutfs crash --replay "$id" -t nilfs2 --mkfs-options="${shapes[$1 % 3]}" \
            --save "here$1.img" >replay.log 2>&1; then
            echo "here$1 $id ${shapes[$1 % 3]}"
            return
        fi
        # Not every workload is so long, or has such a state.
        grep -q 'names no state' replay.log || fail "$id: $(tail -n 2 replay.log)"
    done
    fail "no state was found"
}
for ((i = 1; i <= here; i++)); do
    written_here $i
    echo "here$i" >>volumes
done

# The driver's: a machine that stops while every volume is being written to.
names=()
for ((i = 1; i <= there; i++)); do
    truncate -s 40M "there$i.img"
    mkfs.nilfs2 -q -f -b $((1024 << i % 3)) -B $((1024 >> i % 3)) "there$i.img" >/dev/null 2>&1 ||
        fail "mkfs.nilfs2"
    names+=("there$i.img")
    echo "there$i" >>volumes
done
crash_there() {
    local code=0
    mkdir writing
    cat >writing/write.sh <<'END'
letters=abcdefghijklmnopqrstuvwxyz
worker() { # TREE NUMBER
    i=0
    while i=$((i + 1)); do
        mkdir -p "$1/d$((i % 4))"
        head -c $(((i * 7919 + $2 * 104729) % 60000 + 1)) /bin/busybox >"$1/d$((i % 4))/f$(((i + $2) % 17))"
        [ $(((i + $2) % 3)) -ne 0 ] || sync "$1/d$((i % 4))/f$(((i + $2) % 17))"
        [ $((i % 5)) -ne 0 ] || rm -f "$1/d$(((i + 1) % 4))/f$((i % 13))"
        [ $((i % 7)) -ne 0 ] || mv "$1/d$((i % 4))" "$1/d$((i % 4))-$i"
        [ $((i % 11)) -ne 0 ] || sync -f "$1"
    done
}
for i in $(seq "$1"); do
    tree=/mnt/$i
    mkdir -p $tree
    mount -t nilfs2 "/dev/vd$(echo $letters | cut -c $i)" $tree || exit 1
    worker $tree $i &
done
sleep "$2"
echo b >/proc/sysrq-trigger
END
    "$machine" -d writing "${names[@]}" -- "sh ./write.sh $there $((RANDOM % 4 + 4 + there / 3))" \
        >write.log 2>&1 || code=$?
    [ $code -eq 125 ] || fail "the machine did not stop at once ($code): $(cat write.log)"
}
[ $there -eq 0 ] || crash_there

# --- what they are for us: recovered in core and on the disk ------------------------------------

while read -r name; do
    "$manifest" "$name.img" >"$name.ours" || fail "$name cannot be recovered"
    cp --sparse=always "$name.img" ours.img
    "$manifest" -w ours.img >again || fail "$name cannot be recovered on the disk"
    expect_same "$name.ours" again "$name recovered in core and on the disk"
    layoutfs check --contents ours.img >check.log || fail "$name, recovered: $(cat check.log)"
done <volumes
for name in "${names[@]%.img}"; do
    [ "$(wc -l <"$name.ours")" -gt 3 ] || fail "$name: the driver had not written much: $(cat "$name.ours")"
done

# --- and for the driver --------------------------------------------------------------------------

cat >judge.sh <<'END'
letters=abcdefghijklmnopqrstuvwxyz
volume=0 faults=0
while read -r name; do
    volume=$((volume + 1))
    if mount -t nilfs2 "/dev/vd$(echo $letters | cut -c $volume)" /mnt; then
        ./manifest.sh /mnt >"$name.driver" || faults=$((faults + 1))
        umount /mnt
    else
        echo "$name: the driver does not mount it"
        faults=$((faults + 1))
    fi
done <batch
exit $((faults > 0))
END
mkdir judged
split -l 24 volumes batch.
for batch in batch.*; do
    cp "$batch" judged/batch
    cp judge.sh judged
    mapfile -t names <"$batch"
    "$machine" -d judged "${names[@]/%/.img}" -- 'sh ./judge.sh' >judge.log ||
        fail "the driver is not content: $(cat judge.log)"
done
while read -r name; do
    expect_same "judged/$name.driver" "$name.ours" "$name as the driver recovers it, and as we do"
    "$manifest" "$name.img" >again || fail "$name cannot be read after the driver"
    expect_same "$name.ours" again "$name after the driver's recovery"
done <volumes
echo "$here crashes written here, $there by the driver: both recover the same trees"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGKILL of the server at random moments under load: the image is recovered by our mount and, if it
# is of ext's, by e2fsck and by the Linux driver; all find what was fsynced, and no check finds
# anything. Moments follow from LAYOUTFS_TEST_SEED (as far as timing can be repeated);
# LAYOUTFS_TEST_FACTOR makes them 200 a type. Arguments choose the types.
. "${LAYOUTFS_SOURCE:?}/tests/kill.sh"
need tar

seed=${LAYOUTFS_TEST_SEED:-$RANDOM$RANDOM}
moments=$((6 * ${LAYOUTFS_TEST_FACTOR:-1}))
[ $moments -le 60 ] || moments=200
programs=3
program=$LAYOUTFS_SOURCE/tests/integration/kill_mounted.py
echo "LAYOUTFS_TEST_SEED=$seed"
tar -cf tree.tar -C "$LAYOUTFS_SOURCE" fs layouts

# What keeps the disk and the log busy, and is not looked at again.
noise() {
    local count=0
    while mkdir "$mount_point/noise" && tar -xf tree.tar -C "$mount_point/noise" &&
        head -c 6000000 /dev/zero >"$mount_point/noise/large" && rm -r "$mount_point/noise"; do
        count=$((count + 1))
    done
} 2>/dev/null

# work_and_kill ROUND: on disk.img
work_and_kill() {
    local round=$1 number jobs=()
    serve disk.img "$options,cache=16M"
    for number in $(seq $programs); do
        python3 "$program" write "$mount_point/r$round.$number" "log.$number" "$seed$round$number" &
        jobs+=($!)
    done
    noise &
    jobs+=($!)
    for number in $(seq $programs); do
        until [ -s "log.$number" ]; do sleep 0.01; done
    done
    sleep "0.$(printf %03d $((50 + $(random_of "$seed" "$type $round" 900))))"
    kill_server
    for number in "${jobs[@]}"; do
        wait "$number" || fail "a program failed: job $number, round $round"
    done
    forget_mount
}

look() {
    local number pairs=()
    for number in $(seq $programs); do
        pairs+=("$mount_point/r$round.$number" "log.$number")
    done
    python3 "$program" verify "${pairs[@]}" || return 1
    rm -rf "$mount_point/noise" "$mount_point"/r*.*
}

# moments_of TYPE OPTIONS MKFS_OPTIONS
moments_of() {
    type=$1 options=$2
    local round who fsyncs=0
    rm -f disk.img
    # shellcheck disable=SC2086 # words
    layoutfs mkfs -q -t "$type" $3 disk.img
    for round in $(seq $moments); do
        rm -f log.*
        work_and_kill "$round"
        fsyncs=$((fsyncs + $(grep -h -A1 -E 'begin f(data)?sync' log.* | grep -c '^end')))
        for who in "${recoverers[@]}"; do
            cp --sparse=always disk.img "$who.img"
            recover "$who" "$who.img" look
        done
        # One of them goes on.
        mv "${recoverers[round % ${#recoverers[@]}]}.img" disk.img
    done
    echo "$type $options: killed $moments times, recovered by ${recoverers[*]}; $fsyncs fsyncs were kept"
}

[ $# -gt 0 ] || set -- ext3 ext4 nilfs2 reiser4
for kind in "$@"; do
    case $kind in
    ext3) moments_of ext3 journal=ordered,commit=1 "--size 96M -b 1024 -o journal_size=2M" ;;
    ext4) moments_of ext4 journal=ordered,commit=1 "--size 96M -b 4096" ;;
    # What was overwritten stays until the cleaner, which has little time, comes to it.
    nilfs2)
        recovered_by_us_alone
        cleaner=protection_period=0,clean_check_interval=1,min_clean_segments=70,max_clean_segments=80
        moments_of nilfs2 "interval=1,$cleaner" "--size 512M -o blocks_per_segment=256"
        ;;
    reiser4)
        recovered_by_us_alone
        moments_of reiser4 tmgr.atom_max_age=1 "--size 256M -o create=reg40"
        ;;
    esac
done

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Earlier states of a mounted volume: each as a directory of .checkpoints/, and mounted by its
# number; what was asked to stay survives a crash, and none of it can be changed.
. "${LAYOUTFS_SOURCE:?}/tests/kill.sh"
recovered_by_us_alone

options=history,interval=1,cleaner=off
layoutfs mkfs -q -t nilfs2 --size 200M disk.img
serve disk.img "$options"
mkdir old

# listing DIRECTORY: what is there, with contents; of inode numbers only which are the same.
listing() {
    (cd "$1" && find . -mindepth 1 -printf '%P %y %m %n %s %T@ %l\n' | sort &&
        find . -type f -exec cksum {} + | sort -k 3)
}

# work ROUND: changes everything that it finds, and adds to it.
work() {
    mkdir "$mount_point/d$1"
    head -c $((70000 * $1 + 11)) /dev/urandom >"$mount_point/d$1/grows"
    [ "$1" -eq 1 ] || cat "$mount_point/d$(($1 - 1))/grows" >>"$mount_point/d$1/grows"
    for name in a b c "$1"; do
        echo "$1 $name" >>"$mount_point/$name"
    done
    ln -sfn "d$1/grows" "$mount_point/newest"
    ln "$mount_point/$1" "$mount_point/d$1/linked"
    [ "$1" -ne 3 ] || rm -r "$mount_point/d1" "$mount_point/1"
    truncate -s $((30000 / $1)) "$mount_point/a"
}

numbers=()
for round in 1 2 3 4; do
    work $round
    numbers[round]=$(layoutfs snapshot create "$mount_point")
    listing "$mount_point" >"then.$round"
done

# look_back [NUMBER]: at every round; the number tells apart those that look at the same time.
look_back() {
    local round state seen=seen${1-}
    for round in 1 2 3 4; do
        state=("$mount_point"/.checkpoints/*.ss"${numbers[round]}")
        [ -d "${state[0]}" ] || fail "no directory for checkpoint ${numbers[round]}: $(ls "$mount_point/.checkpoints")"
        listing "${state[0]}" >"$seen"
        expect_same "then.$round" "$seen" "round $round in .checkpoints"
    done
}
look_back
# Everybody at once, while the volume changes.
lookers=()
for number in 1 2 3; do
    look_back $number &
    lookers+=($!)
done
work 5
for looker in "${lookers[@]}"; do
    wait "$looker" || fail "a look at the past while the volume changed"
done
[ "$(find "$mount_point" -maxdepth 1 -name .checkpoints)" = "" ] || fail ".checkpoints is listed"

# --- nothing of the past changes
past=$(echo "$mount_point"/.checkpoints/*.ss"${numbers[2]}")
for command in "touch $past/new" "rm $past/b" "mv $past/b $past/x" "chmod 600 $past/b" "rmdir $past" \
    "truncate -s 0 $past/a" "mkdir $mount_point/.checkpoints/x"; do
    # shellcheck disable=SC2086 # words
    expect_exit 1 $command
    expect_text 'Read-only|not permitted' err
done
expect_exit 1 ln "$past/b" "$mount_point/from-the-past"
# But it can be taken back.
cp "$mount_point"/.checkpoints/*.ss"${numbers[1]}"/d1/grows "$mount_point/back"
cmp "$mount_point/back" "$past/d1/grows"

# --- after a crash
sync "$mount_point/back"
kill_server
forget_mount
serve disk.img "$options"
look_back
listing "$mount_point" >now
layoutfs umount "$mount_point"
wait "$server"
server=

# --- mounted by number
for round in 1 2 3 4; do
    expect_exit 0 layoutfs mount -o "ro,cp=${numbers[round]}" disk.img old
    listing old >seen
    expect_same "then.$round" seen "checkpoint ${numbers[round]}, mounted"
    expect_exit 1 touch old/new
    expect_exit 0 layoutfs umount old
done
expect_exit 1 layoutfs mount -o "ro,cp=999999" disk.img old
expect_text '999999' err
expect_exit 0 layoutfs snapshot release disk.img "${numbers[1]}"
expect_exit 0 layoutfs snapshot delete disk.img "${numbers[1]}"
expect_exit 1 layoutfs mount -o "ro,cp=${numbers[1]}" disk.img old
layoutfs mount disk.img "$mount_point" -o "$options"
listing "$mount_point" >seen
expect_same now seen "the newest state"
[ -z "$(find "$mount_point/.checkpoints" -maxdepth 1 -name "*s${numbers[1]}")" ] || fail "a deleted checkpoint is shown"
layoutfs umount "$mount_point"
expect_sound nilfs2 disk.img
echo "five states of a volume, each as it was"

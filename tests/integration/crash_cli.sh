#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# layoutfs crash from the command line, with e2fsck as a second judge.
source "$LAYOUTFS_SOURCE/tests/lib.sh"
need e2fsck

factor=${LAYOUTFS_TEST_FACTOR:-1}

# What ext2 promises it keeps, and e2fsck recovers the same.
layoutfs crash seq-1 -t ext2 --fsck-states $((60 * factor)) >out || fail "$(cat out)"
expect_text '^seq-1 ext2: .* ([5-9][0-9]|[0-9]{3,}) shown to others. fsck; 0 findings' out
layoutfs crash random -t ext2 --sample $((20 * factor)) --seed "$RANDOM" \
    --fsck-states $((40 * factor)) >out || fail "$(cat out)"
layoutfs crash errors -t ext2 --sample $((2 * factor)) --seed "$RANDOM" \
    --fsck-states $((40 * factor)) >out || fail "$(cat out)"

# Checkpoints, and logs of fdatasync behind them.
layoutfs crash seq-1 -t nilfs2 >out || fail "$(cat out)"
expect_text '^seq-1 nilfs2: .*; 0 findings' out
layoutfs crash seq-2 -t nilfs2 --sample $((200 * factor)) --seed "$RANDOM" \
    --mkfs-options block_size=4096,blocks_per_segment=16 >out || fail "$(cat out)"
layoutfs crash errors -t nilfs2 --sample $((2 * factor)) --seed "$RANDOM" >out || fail "$(cat out)"
expect_exit 1 layoutfs crash seq-1 -t nilfs2 -o log_fault=no-replay
expect_text '^layoutfs crash --replay seq-1\..* has at [0-9]* a byte that was not there' out

# A finding is a command that makes it again.
expect_exit 1 layoutfs crash seq-1 -t ext2 --expect strict --seed 3 --jobs 2
expect_text '^layoutfs crash --replay seq-1\.' out
cp out first
finding=$(grep -m 1 'the check finds' first)
eval "set -- ${finding%%  #*}"
shift
expect_exit 1 layoutfs "$@" --save cut.img
expect_text '^  power cut$' out
grep -Fq "${finding##*  # }" out || fail "the replay finds something else: $(cat out)"
code=0
e2fsck -fn cut.img >fsck.log 2>&1 || code=$?
[ "$code" -eq 4 ] || fail "e2fsck finds nothing wrong in the saved image"

# The number of processes does not change what is found.
expect_exit 1 layoutfs crash seq-1 -t ext2 --expect strict --seed 3 --jobs 1
expect_same <(grep -v 'states/s' first) <(grep -v 'states/s' out)

# A checker that complains is a finding, where the recovered volume is to be in order.
cp "$(type -P false)" judge
expect_exit 1 layoutfs crash random -t ext2 --expect strict --sample 1 --fsck ./judge

expect_exit 2 layoutfs crash
expect_exit 2 layoutfs crash seq-1
expect_exit 2 layoutfs crash seq-4 -t ext2
expect_exit 2 layoutfs crash seq-1 -t memory
expect_exit 2 layoutfs crash --replay seq-1.zz.1.a -t ext2
expect_exit 2 layoutfs crash seq-1 -t ext2 --expect miracles
expect_exit 2 layoutfs crash seq-1 -t ext2 --save image

# The kernel's spelling of a mode promises the same.
expect_exit 0 layoutfs crash seq-1 -t ext3 -o data=writeback --fsck ''

# Wrong arguments are told, and are no findings.
expect_exit 2 layoutfs crash seq-1 -t ext3 -o foo=1
expect_text 'unknown option "foo"' err
expect_exit 2 layoutfs crash seq-1 -t ext3 --mkfs-options foo=1
expect_exit 2 layoutfs crash seq-1 -t nilfs2 --size 2G
expect_exit 2 layoutfs crash seq-1 -t ext2 --seed ' -1'
expect_exit 2 layoutfs crash errors -t ext2 --sample 1 --fsck-states 18446744073709551615
expect_exit 2 layoutfs crash seq-1 -t ext2 --replay seq-1.5d.17.a
expect_exit 2 layoutfs crash --replay errors.0.1.o -t ext2 --save image
expect_exit 1 layoutfs crash seq-1 -t ext2 --fsck ./missing
expect_text "'./missing' is no command" err
expect_exit 0 layoutfs crash --replay seq-1.5d.17.a -t ext3
expect_exit 1 layoutfs crash --replay seq-1.5d.17.a -t ext3 --save missing/image
expect_text 'missing/image: not saved' err
for id in seq-1..17.a seq-1.05d.17.a 'seq-1. 5d.17.a' seq-1.5d.17.d99 seq-1.5d.017.a \
    seq-1.5d.-3.a errors.0.-1.o errors.0.1. errors.0.1.ox errors.0.1.m; do
    expect_exit 2 layoutfs crash --replay "$id" -t ext3
    expect_text 'names no state' err
done

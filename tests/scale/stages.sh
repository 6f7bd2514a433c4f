# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the integration tests that take a filesystem to its limits, one of $type on ./disk.img:
# which stages of the program tests/scale run, and the judgement after each. The script that sources
# this says how, with these functions:
#
#   prepare_image      a new image is to be used
#   run_scale STAGE    runs the stage with the mount options in $options; prints free blocks and inodes
#   look_again STAGE   the image has passed the judgement: a further look at it
need e2fsck dumpe2fs
type=ext2
options= # of mounting
scale=$(dirname "$LAYOUTFS")/../tests/scale
[ -x "$scale" ] || skip "tests/scale is not built"

# recorded_counts: free blocks and inodes as the superblock of an ext filesystem has them.
recorded_counts() {
    dumpe2fs -h disk.img 2>/dev/null |
        sed -n 's/^Free blocks: *//p; s/^Free inodes: *//p' | paste -sd ' '
}
counts_are_recorded() {
    [[ $type = ext* ]]
}

# judge WHAT: of the unmounted image; ./counts is what the filesystem reported last.
judge() {
    expect_sound "$type" disk.img
    ! counts_are_recorded || [ "$(cat counts)" = "$(recorded_counts)" ] ||
        fail "$1: reported free $(cat counts), recorded $(recorded_counts)"
    "$scale" verify disk.img model "$options" >counts || fail "$1: looked at again"
    ! counts_are_recorded || [ "$(cat counts)" = "$(recorded_counts)" ] ||
        fail "$1: opened again: free $(cat counts), recorded $(recorded_counts)"
}

# run_stages MKFS_OPTIONS STAGE...: on a new image, which `clear` must leave as empty as it was.
run_stages() {
    local mkfs_options=$1 stage what start empty
    shift
    rm -f disk.img model
    # shellcheck disable=SC2086 # words
    layoutfs mkfs -q -t "$type" $mkfs_options disk.img
    prepare_image
    empty=$(! counts_are_recorded || recorded_counts)
    for stage in "$@"; do
        what="$stage ($type $mkfs_options, $options)"
        start=$EPOCHREALTIME
        run_scale "$stage" >counts || fail "$what"
        printf '%6d ms  %s\n' $(((${EPOCHREALTIME/./} - ${start/./}) / 1000)) "$what"
        judge "$what"
        [ "$stage" != clear ] || ! counts_are_recorded || [ "$(cat counts)" = "$empty" ] ||
            fail "$what: free $(cat counts), $empty when it was new"
        look_again "$stage"
    done
}

# tree_stages MKFS_OPTIONS [STAGE...]: 21,000 files, large and sparse ones, a directory with 100,000
# names; and what else is asked for.
tree_stages() {
    local size="--size 700M -i 4096"
    [ "$type" != nilfs2 ] || size="--size 2G" # keeps what was removed
    run_stages "$1 $size" unpack halve storm sizes crowd "${@:2}"
}

# full_stages MKFS_OPTIONS: until there is no block, then until there is no inode.
full_stages() {
    run_stages "$1 --size 64M -i 4096" fill halve fill clear
    run_stages "$1 --size 64M -N 3000" exhaust halve exhaust clear
}

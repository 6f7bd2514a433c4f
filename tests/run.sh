#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs the tests and ends with the line "N passed, N failed, N skipped"; exit code 1 if any failed.
#
#   tests/run.sh [--jobs N] [--only REGEX] [--lint] BUILD [SANITIZED_BUILD [THREADS_BUILD]]
#
# BUILD is a meson build directory: its unit tests and all integration tests run. In
# SANITIZED_BUILD, made with -Db_sanitize=address,undefined, the unit tests run again and those
# integration tests that feed the program bad input ("# sanitized" on a line of their own in the
# script). In THREADS_BUILD, made with -Db_sanitize=thread, those run that have "# threads" in the
# same way. --lint adds scripts/lint.sh, one test a tool.
#
# A unit test program counts once for each of its cases. An integration test is one case; it runs in
# an empty directory of its own, exits with 0 (passed), 77 (skipped, the last line says why) or else,
# and says "# alone" on a line of its own when others must not run beside it.
#
# Run by root, each test has mounts and processes of its own (LAYOUTFS_TEST_NAMESPACE=own), which end
# with it.
set -uo pipefail
export LC_ALL=C

source_root=$(cd "$(dirname "$0")/.." && pwd)
export LAYOUTFS_SOURCE=$source_root
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-300}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$source_root/tests/lsan.supp:print_suppressions=0}
time_limit=${LAYOUTFS_TEST_SECONDS:-1200}

usage() {
    sed -n 's/^# \{0,1\}//; 4,19p' "$0" >&2
    exit 2
}

jobs=$(($(nproc) + 1)) # tests wait, too: for disks, and for time to pass
only=.
lint=false
while [ $# -gt 0 ]; do
    case $1 in
    --jobs) jobs=${2:?} && shift 2 ;;
    --only) only=${2:?} && shift 2 ;;
    --lint) lint=true && shift ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -ge 1 ] && [ $# -le 3 ] || usage
build=$(cd "$1" && pwd) || exit 2
sanitized=${2:+$(cd "$2" && pwd)}
threads=${3:+$(cd "$3" && pwd)}

results=$(mktemp -d "${TMPDIR:-/tmp}/layoutfs-tests.XXXXXX")
chmod 755 "$results" # some tests act as a plain user
stop() {
    local job
    for job in $(jobs -pr); do
        pkill -TERM -P "$job" # timeout, which passes it on to the test
    done
    wait
    rm -rf "$results"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

# Put before a command: runs it in a mount and a PID namespace of its own where that can be made. They
# are made from the runner's, in which no test has mounted anything: a program beside a test that
# copies all mounts, as a new namespace does, thus cannot keep alive what the test has unmounted. What
# a test leaves, served or mounted, ends with its namespaces. The shell is there to stay, as it is
# whom the kernel gives the orphans to (exec would leave them to a program that does not wait for them).
# As slaves, what is unmounted outside goes here, too, and is not held in use.
# shellcheck disable=SC2016 # for the inner shell
isolated=(unshare --mount --propagation slave --pid --mount-proc --kill-child bash -c '"$@"; exit' isolated)
export LAYOUTFS_TEST_NAMESPACE=own
"${isolated[@]}" true 2>/dev/null || isolated=() LAYOUTFS_TEST_NAMESPACE=

# clean_up DIR: removes it, and what a failed test without namespaces has left mounted there.
clean_up() {
    local mount_point
    while read -r _ mount_point _; do
        case $mount_point in
        "$1"/*) umount "$mount_point" || fusermount3 -uz "$mount_point" || umount -l "$mount_point" ;;
        esac
    done </proc/mounts 2>/dev/null
    rm -rf "$1"
}

# cpu_seconds FILE: what `times` says there of the programs that were waited for.
cpu_seconds() {
    awk 'NR == 2 { gsub("s", ""); split($0, t, "[m ]"); printf "%.1f", 60 * (t[1] + t[3]) + t[2] + t[4] }' "$1"
}

# run_test NUMBER KIND NAME BUILD: leaves NUMBER.log, and NUMBER.result with "passed failed skipped".
run_test() {
    local number=$1 kind=$2 name=$3 build=$4 start=$EPOCHREALTIME code=0
    local log=$results/$1.log tap=$results/$1.tap work=$results/$1.work
    mkdir "$work"
    (
        cd "$work" || exit 1
        export TMPDIR=$work LAYOUTFS=$build/tools/layoutfs
        case $kind in
        unit) export CK_TAP_LOG_FILE_NAME=$tap && command=("$build/tests/test_$name") ;;
        lint) command=(bash "$source_root/scripts/lint.sh" "$name" "$build") ;;
        *) command=(bash "$source_root/tests/integration/$name.sh") ;;
        esac
        exec timeout -k 10 "$time_limit" "${isolated[@]}" "${command[@]}"
    ) >"$log" 2>&1 </dev/null || code=$?
    clean_up "$work"
    [ $code -ne 124 ] || echo "took longer than $time_limit s" >>"$log"

    local passed=0 failed=0 skipped=0 note=
    if [ -s "$tap" ]; then
        passed=$(grep -c '^ok ' "$tap")
        failed=$(grep -c '^not ok ' "$tap")
        note="$((passed + failed)) cases"
    elif [ $code -eq 0 ]; then
        passed=1
    elif [ $code -eq 77 ]; then
        skipped=1
        note=$(tail -n 1 "$log")
    fi
    # A crash or a leak between the cases is a failure, too.
    [ $code -eq 0 ] || [ $code -eq 77 ] || [ "$failed" -gt 0 ] || failed=1
    [ "$failed" -eq 0 ] || note+="${note:+, }exit code $code"

    local verdict=pass label=$kind/$name
    [ "$skipped" -eq 0 ] || verdict=skip
    [ "$failed" -eq 0 ] || verdict=FAIL
    [ "$build" != "$sanitized" ] || label+=" (sanitized)"
    [ "$build" != "$threads" ] || label+=" (threads)"
    local elapsed=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000)) cpu
    times >"$results/$number.times" # not in a subshell, which has waited for nothing
    cpu=$(cpu_seconds "$results/$number.times")
    printf '%s  %-44s %4d.%03d s, %5s s CPU  %s\n' "$verdict" "$label" \
        $((elapsed / 1000)) $((elapsed % 1000)) "$cpu" "$note"
    echo "$passed $failed $skipped $label" >"$results/$number.result"
}

# What takes longest, the longest first: these begin first, so that at the end none runs alone while
# the other processors idle.
longest=(unit/crash unit/hostile unit/model integration/programs_build integration/mount_lifetime
    integration/nilfs2_kernel integration/ext4_features integration/scale_mounted
    integration/programs_copy integration/scale integration/programs_git integration/ext4_extents
    integration/programs_stress integration/kill_mounted integration/ext_orphans integration/mkfs
    integration/programs_postgresql integration/model_mounted lint/cppcheck lint/tidy unit/ext_dir)

planned=()
# plan_test KIND NAME BUILD
plan_test() {
    local rank
    grep -Eq -- "$only" <<<"$1/$2" || return 0
    for rank in "${!longest[@]}"; do
        [ "${longest[rank]}" != "$1/$2" ] || break
        rank=${#longest[@]}
    done
    planned+=("$rank $1 $2 $3")
}

number=0
# run_planned: each as soon as fewer than $jobs run; returns when all are done.
run_planned() {
    local kind name build_of
    while read -r _ kind name build_of; do
        while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
            wait -n
        done
        number=$((number + 1))
        run_test $number "$kind" "$name" "$build_of" &
    done < <([ ${#planned[@]} -eq 0 ] || printf '%s\n' "${planned[@]}" | sort -s -n -k 1,1)
    planned=()
    wait
}

unit_tests() {
    local program
    for program in "$1"/tests/test_*; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        program=${program##*/}
        # Damaged images are for the sanitizers to watch.
        [ "$program" != test_hostile ] || [ "$1" = "${sanitized:-$1}" ] || continue
        plan_test unit "${program#test_}" "$1"
    done
}

# integration_tests BUILD MARK yes|no: those that have (or have not) the mark.
integration_tests() {
    local script marked name
    for script in "$source_root"/tests/integration/*.sh; do
        name=${script##*/}
        marked=no
        ! grep -qx "# $2" "$script" || marked=yes
        [ "$marked" != "$3" ] || plan_test integration "${name%.sh}" "$1"
    done
}

[ -z "$sanitized" ] || unit_tests "$sanitized" # which take longer
unit_tests "$build"
integration_tests "$build" alone no
[ -z "$sanitized" ] || integration_tests "$sanitized" sanitized yes
[ -z "$threads" ] || integration_tests "$threads" threads yes
if $lint; then
    for tool in format tidy cppcheck shell; do
        plan_test lint "$tool" "$build"
    done
fi
run_planned
jobs=1
integration_tests "$build" alone yes
run_planned

passed=0 failed=0 skipped=0
for ((i = 1; i <= number; i++)); do
    read -r p f s label <"$results/$i.result" || continue
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$f" -eq 0 ] || { printf '\n--- %s ---\n' "$label" && cat "$results/$i.log"; }
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two runs of one modelled scenario agree to the last byte but for the header; with other threads
# too. What the table and results.json must hold; wrong usage.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need python3

# ask FILE EXPRESSION: evaluates it over the parsed results `r`.
ask() {
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"
}

# without_header FILE: the header is the first object.
without_header() {
    sed '/^  "header": {$/,/^  },$/d' "$1"
}

bench() {
    layoutfs bench orlov-2002 --source synthetic --scale 0.1 "$@"
}

# --- determinism ------------------------------------------------------------------------------

rows=old,orlov,sequential,ext2:dir_placement=old
bench --layout $rows --json first.json --jobs 1 >first.txt
bench --layout $rows --json second.json --jobs 3 >second.txt
for run in first second; do
    without_header $run.json >$run.body
    grep -q '"scenario"' $run.body || fail "$run.body is not the body of the results"
    grep -q '"date"' $run.body && fail "$run.body has the header in it"
done
expect_same first.body second.body "results.json of two runs"
cmp -s first.json second.json && fail "the headers should differ (date, command)"
sed -i '/results in/d' first.txt second.txt
expect_same first.txt second.txt "the tables of two runs"

# The comparison can fail: one figure changed by one nanosecond is found.
sed '0,/"ns": [0-9]*/s/"ns": \([0-9]*\)/"ns": 1\1/' second.json | without_header /dev/stdin >changed.body
cmp -s first.body changed.body && fail "a changed figure went unnoticed"

# --- contents ---------------------------------------------------------------------------------

for field in date host command version; do
    [ -n "$(ask first.json "r['header']['$field']")" ] || fail "the header's $field is empty"
done
[ "$(ask first.json "[row['status'] for row in r['rows']] == ['done'] * 4")" = True ] ||
    fail "not all rows were done"
steps="[step for row in r['rows'] for step in row['steps']]"
[ "$(ask first.json "all(step['ns'] > 0 for step in $steps if step['timed'])")" = True ] ||
    fail "a step took no time"
[ "$(ask first.json "all(step['cpu_ns'] <= step['ns'] for step in $steps)")" = True ] ||
    fail "a step used more CPU time than time"
expect_text 'scaled to 0\.1' first.txt
expect_text 'cold traversal' first.txt

# --- rows and reports -------------------------------------------------------------------------

bench --layout orlov,memory --report reports >table.txt
[ "$(ask reports/results.json "' '.join(row['id'] for row in r['rows'])")" = "orlov memory" ] ||
    fail "--layout did not choose its rows"
layoutfs bench --list >list.txt
expect_text '^orlov-2002' list.txt

cat >own.ini <<'END'
[scenario]
title = rows that are not there yet
disk = laptop-2002
machine = laptop-2002
volume_size = 1G
[workload tree]
files = 1000
bytes = 2M
[row here]
type = ext2
published.unpack = 10
[row later]
type = nosuchfs
published.unpack = 20
END
layoutfs bench ./own.ini --json own.json >own.txt
expect_text 'later .*20\.0.*not emulated' own.txt
[ "$(ask own.json "r['rows'][1]['status']")" = "not emulated" ] || fail "a row was made up"

# --- what is refused --------------------------------------------------------------------------

expect_exit 1 layoutfs bench nosuch
expect_text 'nosuch' err
echo 'nonsense' >bad.ini
expect_exit 1 layoutfs bench ./bad.ini
expect_text '\./bad\.ini:1:' err
expect_exit 1 layoutfs bench orlov-2002 --source /nosuch/file
expect_text '/nosuch/file' err
expect_exit 2 layoutfs bench --scale 7
expect_exit 0 layoutfs bench orlov-2002 -q --source synthetic --scale 0.001 --layout orlov
expect_exit 1 layoutfs bench orlov-2002 --layout nosuch

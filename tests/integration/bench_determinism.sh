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

# --- the journal, and bytes by purpose ----------------------------------------------------------

journal() {
    layoutfs bench ext3-journal --source synthetic --scale 0.1 "$@"
}
journal --json journal1.json --jobs 1 >journal1.txt
journal --json journal2.json --jobs 3 >journal2.txt
for run in journal1 journal2; do
    without_header $run.json >$run.body
    sed -i '/results in/d' $run.txt
done
expect_same journal1.body journal2.body "results.json of two runs with a journal"
expect_same journal1.txt journal2.txt "the tables of two runs with a journal"
expect_text '^MB by purpose' journal1.txt
expect_text '^\(shutdown\)' journal1.txt
grep -q '^MB by purpose' first.txt && fail "a scenario that does not ask for purposes shows them"

# sum ROW OPERATION PURPOSE [STEP]: bytes, of all steps unless one is named.
sum() {
    ask journal1.json "sum(step['device']['bytes']['$2']['$3'] for row in r['rows']
        if row['id'] == '$1' for step in row['steps'] if '${4:-}' in ('', step['name']))"
}
[ "$(sum ext2 write journal)" = 0 ] || fail "ext2 wrote to a journal"
for row in writeback ordered data; do
    [ "$(sum $row write journal)" -gt 0 ] || fail "$row wrote nothing to its journal"
done
# Checkpoints bring home what the log holds: cold is cold with a journal, too.
[ "$(sum ordered write inode 'reboot before delete')" -gt 0 ] || fail "inodes were not brought home"
[ "$(sum ordered read inode delete)" = "$(sum ext2 read inode delete)" ] ||
    fail "the deletion was not as cold with a journal as without"
# Data is written once, and no less than there is.
[ "$(sum ordered write data)" -ge "$(ask journal1.json "r['source']['bytes']")" ] ||
    fail "less data was written than the tree has"
[ "$(ask journal1.json "[sum(s['device']['flushes'] for s in row['steps'] if s['name'] == 'mail')
    for row in r['rows'] if row['id'].startswith('ordered')][0]")" -ge 400 ] ||
    fail "200 messages are durable without two flushes each"

# A log much smaller than what may be dirty: with journal=data it all goes through it. The log is
# freed by bringing home what is in memory; it is not read again.
cat >small.ini <<'END'
[scenario]
title = a small log
disk = ata-2001
machine = athlon-700
volume_size = 1G
[workload copy]
files = 1000
bytes = 20M
mails = 200
[row data]
type = ext3
mkfs = journal_size=4M
mount = journal=data
[row ordered]
type = ext3
mkfs = journal_size=4M
END
layoutfs bench ./small.ini --source synthetic --json small.json >small.txt
[ "$(ask small.json "[row['status'] for row in r['rows']] == ['done'] * 2")" = True ] ||
    fail "$(grep failed: small.txt)"
[ "$(ask small.json "sum(step['device']['bytes']['read']['journal']
    for row in r['rows'] for step in row['steps'])")" = 0 ] || fail "the log was read again"

# --- a log-structured volume, whose checkpoints and cleaner go on beside the program ------------

cat >log.ini <<'END'
[scenario]
title = checkpoints and a cleaner
disk = ata-2001
machine = athlon-700
volume_size = 256M
[workload copy]
files = 2000
bytes = 40M
mails = 200
[row nilfs2]
type = nilfs2
mkfs = blocks_per_segment=256
[row cleaned]
type = nilfs2
mkfs = blocks_per_segment=256
mount = protection_period=0,min_clean_segments=90,max_clean_segments=95,cleaning_interval=0
END
for scenario in ./log.ini "nilfs2-2008 --scale 0.02"; do
    for run in 1 2; do
        # shellcheck disable=SC2086 # words
        layoutfs bench $scenario --source synthetic --json log$run.json --jobs $((2 * run - 1)) >log$run.txt
        without_header log$run.json >log$run.body
        sed -i '/results in/d' log$run.txt
    done
    expect_same log1.body log2.body "results.json of two runs of $scenario"
    expect_same log1.txt log2.txt "the tables of two runs of $scenario"
    [ "$(ask log1.json "all(row['status'] in ('done', 'not emulated') for row in r['rows'])")" = True ] ||
        fail "$scenario: $(grep failed: log1.txt)"
done

# --- rows and reports -------------------------------------------------------------------------

bench --layout orlov,memory --report reports >table.txt
[ "$(ask reports/results.json "' '.join(row['id'] for row in r['rows'])")" = "orlov memory" ] ||
    fail "--layout did not choose its rows"
layoutfs bench --list >list.txt
expect_text '^orlov-2002' list.txt
expect_text '^ext3-journal' list.txt

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

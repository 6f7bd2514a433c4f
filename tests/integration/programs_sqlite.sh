#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sqlite3: thousands of transactions with every kind of journal, and two processes at a time.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need sqlite3

# transactions FIRST COUNT: as SQL, each one an insertion, every fourth an update, every tenth undone.
transactions() {
    awk -v first="$1" -v count="$2" 'BEGIN {
        for (i = first; i < first + count; i++) {
            print "BEGIN IMMEDIATE;"
            printf "INSERT INTO t VALUES(%d, hex(randomblob(%d)));\n", i, 20 + i % 300
            if (i % 4 == 0) printf "UPDATE t SET b = b || hex(randomblob(50)) WHERE a = %d;\n", i - 2
            print i % 10 == 0 ? "ROLLBACK;" : "COMMIT;"
        }
    }'
}

# ask DATABASE SQL
ask() {
    sqlite3 -batch -bail -cmd '.timeout 60000' "$1" "$2"
}

# client DATABASE MODE: transactions from the standard input, through a cache that is too small.
client() {
    {
        # WAL is a property of the database, the others of a connection.
        echo "PRAGMA journal_mode=$2; PRAGMA cache_size=50;"
        [ "$2" != wal ] || echo "PRAGMA wal_autocheckpoint=40;"
        cat
    } | sqlite3 -batch -bail -cmd '.timeout 60000' "$1" >/dev/null
}

use_sqlite() {
    local mode first second count=$((500 * factor)) shared=$((50 * factor))
    cd "$mount_point"
    for mode in delete truncate persist wal; do
        ask $mode.db "PRAGMA journal_mode=$mode; PRAGMA page_size=1024;
            CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);" >/dev/null
        transactions 1 "$count" | client $mode.db $mode
        # Two at a time wait for each other most of the time: fewer of these.
        transactions $((count + 1)) "$shared" | client $mode.db $mode & first=$!
        transactions $((count + shared + 1)) "$shared" | client $mode.db $mode & second=$!
        wait $first
        wait $second
        [ "$(ask $mode.db 'PRAGMA integrity_check')" = ok ] || fail "$type: $mode: not intact"
        [ "$(ask $mode.db 'SELECT count(*) FROM t')" -eq $(((count + 2 * shared) * 9 / 10)) ] ||
            fail "$type: $mode: transactions are missing"
        ask $mode.db "DELETE FROM t WHERE a % 3 = 0; VACUUM; PRAGMA integrity_check" | grep -x ok >/dev/null ||
            fail "$type: $mode: not intact after VACUUM"
    done
    sqlite3 wal.db .dump >wal.sql
    sqlite3 again.db <wal.sql
    sqlite3 again.db .dump | cmp - wal.sql || fail "$type: a dump and its copy differ"
}
on_every_type use_sqlite

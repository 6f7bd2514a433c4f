#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# PostgreSQL: a cluster with page checksums is made, worked on by several clients, stopped, crashed,
# and examined.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need_own_mounts
need mount umount setpriv
# Debian keeps the server's programs out of PATH.
for directory in /usr/lib/postgresql/*/bin; do
    PATH=$directory:$PATH
done
need initdb pg_ctl pgbench psql pg_amcheck pg_checksums
user=$(id -u postgres 2>/dev/null) || user=$(id -u nobody)

# as_user COMMAND...: with the mount at /mnt, as the server's user may not look into the directory
# that the test runs in.
as_user() {
    env -C /mnt -i PATH="$PATH" LC_ALL=C TZ=UTC PGHOST=/mnt PGUSER=test PGDATABASE=postgres \
        setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
}

leave_server() {
    [ ! -e "$mount_point/data/postmaster.pid" ] || as_user pg_ctl -D data -m immediate -s stop || true
    umount /mnt
}

start_server() {
    as_user pg_ctl -D data -l log -s -w -o "-c listen_addresses= -k /mnt -c full_page_writes=on \
        -c shared_buffers=4MB -c checkpoint_timeout=30s -c max_wal_size=32MB" start ||
        fail "$type: the server does not start: $(tail -20 "$mount_point/log")"
}

use_postgresql() {
    mount --bind "$mount_point" /mnt
    trap leave_server EXIT
    chmod 1777 "$mount_point"
    as_user initdb -D data -k -A trust -U test --no-locale -E UTF8 --no-sync >initdb.log ||
        fail "$type: initdb: $(cat initdb.log)"
    start_server
    as_user pgbench -q -i -s $((2 * factor)) >pgbench.log 2>&1 || fail "$type: $(cat pgbench.log)"
    as_user pgbench -c 4 -j 2 -t $((150 * factor)) >pgbench.log 2>&1 || fail "$type: $(cat pgbench.log)"
    as_user psql -qc 'CREATE TABLE extra AS SELECT g, md5(g::text) FROM generate_series(1, 20000) g'
    as_user pg_ctl -D data -m fast -s -w stop
    as_user pg_checksums -D data --check >checksums.log || fail "$type: $(cat checksums.log)"

    # What the balances sum up to, each transaction has added to four tables at once.
    start_server
    as_user pgbench -n -c 2 -t $((50 * factor)) >pgbench.log 2>&1 || fail "$type: $(cat pgbench.log)"
    as_user pg_ctl -D data -m immediate -s -w stop # a crash: the log is replayed at the start
    start_server
    local sums
    sums=$(as_user psql -qAtc 'SELECT sum(abalance) = (SELECT sum(delta) FROM pgbench_history),
        (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches),
        (SELECT count(*) FROM pgbench_history), (SELECT count(*) FROM extra) FROM pgbench_accounts')
    [ "$sums" = "t|t|$((700 * factor))|20000" ] || fail "$type: balances: $sums"
    as_user psql -qc 'CREATE EXTENSION amcheck'
    as_user pg_amcheck --heapallindexed -d postgres || fail "$type: pg_amcheck"
    as_user psql -qc 'VACUUM FULL'
    as_user psql -qc 'DROP TABLE extra'
    as_user pg_ctl -D data -m fast -s -w stop
    as_user pg_checksums -D data --check >checksums.log || fail "$type: $(cat checksums.log)"
}
on_every_type use_postgresql

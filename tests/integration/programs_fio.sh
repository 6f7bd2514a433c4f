#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fio writes and reads back, block by block with checksums: in sequence and at random, through the
# cache and around it, through read and write and through shared mappings, several jobs at a time.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need fio

# What is written stays, so that each group meets the files of the one before: with extents of other
# sizes, and pages of another way to write in the cache.
cat >jobs.ini <<INI
[global]
size=$((6 * factor))m
verify=crc32c
verify_fatal=1
randrepeat=1
group_reporting
nrfiles=2
stonewall

[sequential]
rw=write
bs_unaligned
bsrange=512-64k
numjobs=2

[random]
rw=randwrite
bs=4k
numjobs=3
fsync=100

[unaligned]
rw=randwrite
bs=3k
verify=md5
numjobs=2

[mixed]
rw=randrw
rwmixread=40
bs=12k
fdatasync=50
numjobs=2

[direct-sequential]
rw=write
bs=128k
direct=1
numjobs=2

[direct-random]
rw=randwrite
bs=4k
direct=1
ioengine=libaio
iodepth=16
numjobs=2

[mmap-random]
rw=randwrite
bs=4k
ioengine=mmap
numjobs=2
fsync=200

[mmap-sequential]
rw=write
bs=16k
ioengine=mmap

[preallocated]
rw=randwrite
bs=8k
fallocate=posix
filename_format=\$jobname.\$jobnum.\$filenum
numjobs=2

[buffered-after]
rw=randwrite
bs=4k
overwrite=1
verify_backlog=64
verify_async=2
INI

use_fio() {
    fio --directory="$mount_point" --output=fio.log jobs.ini >fio.err 2>&1 ||
        fail "$type: fio: $(cat fio.err; grep -v '^ ' fio.log)"
    ! grep -E 'verify: |error' fio.err || fail "$type: fio"
}
on_every_type use_fio

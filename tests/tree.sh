# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by tests that copy a tree with one of everything, and compare copy and original.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"

# make_tree DIR: one of everything that the filesystem can hold.
make_tree() (
    cd "$1"
    mkdir -p dir/deeper 'white space' many
    echo text >plain
    head -c 5000000 /dev/urandom >dir/data
    head -c 70000000 /dev/zero | tr '\0' 'd' >dir/double-indirect
    truncate -s 3G sparse
    printf middle | dd of=sparse bs=1 seek=2000000000 conv=notrunc status=none
    printf end | dd of=sparse bs=1 seek=3221225469 conv=notrunc status=none
    ln plain dir/hard
    ln plain dir/deeper/hard
    ln -s ../plain dir/fast
    ln -s "$(printf 'long/%.0s' {1..150})" dir/slow
    mkfifo dir/fifo
    mknod dir/null c 1 3
    mknod dir/disk b 8 17
    mknod dir/large c 300 70000
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("dir/socket")'
    seq -f 'many/a-file-with-a-rather-long-name-%05g' 3000 | xargs touch
    chown 1234:567 plain
    chown -h 70000:80000 dir/fast dir/deeper
    chmod 6755 dir/data
    chmod 1777 'white space'
    chmod 2750 dir
    if has_xattrs .; then
        setfattr -n user.note -v 'a value' plain
        setfattr -n user.large -v "$(printf 'v%.0s' {1..900})" dir/data
        setfattr -n trusted.kept -v 0x00010203 dir
        setfacl -m u:4321:rwx,g:8765:r plain
        setfacl -d -m u:4321:rx dir/deeper
    fi
    touch -h -d '2001-02-03 04:05:06.123456789' plain dir/fast dir/data
    touch -d '1969-12-31 23:59:58.5' dir/null
    touch -d '2100-06-07 08:09:10.987654321' 'white space'
)

# listing DIR: all that a copy must keep, one line an object; of directories all but the size.
listing() (
    cd "$1"
    find . -mindepth 1 ! -path './lost+found*' \
        \( -type d -printf '%P %y %m %U %G %T@\n' -o \
        -printf '%P %y %m %n %U %G %s %T@ %l\n' \) | sort
    find . \( -type b -o -type c \) -exec stat -c '%n %t:%T' {} + | sort
    ! has_xattrs . || find . ! -path './lost+found*' ! -type l -print0 | sort -z |
        xargs -0 getfattr --absolute-names -d -m '^(user|trusted|system)\.' -e hex 2>/dev/null
    find . -type f -size -100M -print0 | sort -z | xargs -0 sha256sum
    # The large sparse file: where it is not zero, and that its holes are holes.
    tail -c 3 sparse && dd if=sparse bs=1 skip=2000000000 count=6 status=none
    [ "$(stat -c %b sparse)" -lt 200 ] && echo ' with holes'
)

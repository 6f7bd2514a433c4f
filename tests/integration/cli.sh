#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command on ext2 images, judged by e2fsck and debugfs; exit codes; wrong usage.
# sanitized
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need e2fsck debugfs dumpe2fs

# --- the program itself -----------------------------------------------------------------------

expect_exit 2 layoutfs
expect_exit 2 layoutfs lss
expect_text "did you mean 'ls'" err
expect_exit 0 layoutfs --help
for command in mkfs mount umount ls cat cp rm mkdir check clean show explain snapshot diff options bench crash; do
    expect_text "^  $command " out
done
for command in mkfs mount umount ls cat cp rm mkdir check clean show explain snapshot diff options bench crash; do
    expect_exit 0 layoutfs $command --help
    expect_text "^Usage: layoutfs $command" out
    expect_exit 0 layoutfs help $command
    expect_exit 2 layoutfs $command --no-such-option
done
layoutfs help | sed -n 's/^  \([a-z]*\) .*/\1/p' >commands.txt
[ "$(wc -l <commands.txt)" -eq 18 ] || fail "the help lists $(wc -l <commands.txt) commands"
expect_exit 0 layoutfs --version
expect_text '^layoutfs [0-9]+\.[0-9]+' out

# --- checkpoints ------------------------------------------------------------------------------

layoutfs mkfs -q -t nilfs2 -B 64 --size 8M log.img
layoutfs mkdir log.img /old
expect_exit 0 layoutfs snapshot create log.img
number=$(cat out)
layoutfs rm -r log.img /old
layoutfs mkdir log.img /new
expect_exit 0 layoutfs snapshot list --json log.img
expect_text '"snapshot": true' out
expect_exit 0 layoutfs diff log.img "$number"
printf 'added    /new\nremoved  /old\n' >wanted
expect_same wanted out "what changed"
expect_exit 0 layoutfs diff log.img "$number" "$number"
[ ! -s out ] || fail "a checkpoint differs from itself"
expect_exit 1 layoutfs snapshot delete log.img "$number"
expect_text 'kept as a snapshot' err
expect_exit 0 layoutfs snapshot release log.img "$number"
expect_exit 0 layoutfs snapshot delete log.img "$number"
expect_exit 1 layoutfs snapshot keep log.img "$number"
expect_text 'no such checkpoint' err
expect_exit 1 layoutfs diff log.img "$number"
expect_exit 1 layoutfs snapshot list .
expect_text 'not a mount of layoutfs' err
[ ! -s out ] || fail "a list of nothing has a head"
layoutfs mkfs -q -t ext2 --size 1M plain.img
expect_exit 1 layoutfs snapshot list plain.img
expect_text 'keeps no checkpoints' err
for arguments in list create "keep log.img" "keep log.img x" "nosuch log.img" "list log.img 1"; do
    # shellcheck disable=SC2086 # several words
    expect_exit 2 layoutfs snapshot $arguments
done
expect_exit 2 layoutfs diff log.img
expect_exit 2 layoutfs diff log.img 1x

# --- mkfs -------------------------------------------------------------------------------------

expect_exit 2 layoutfs mkfs
expect_exit 2 layoutfs mkfs disk.img
expect_text 'type is missing' err
expect_exit 2 layoutfs mkfs -t nosuch --size 8M disk.img
expect_text 'ext2' err
expect_exit 1 layoutfs mkfs -t ext2 disk.img
expect_text '\-\-size' err
expect_exit 2 layoutfs mkfs -t ext2 --size nonsense disk.img
expect_exit 2 layoutfs mkfs -t ext2 -o nosuch=1 --size 8M disk.img
expect_text nosuch err
expect_exit 2 layoutfs mkfs -t ext2 -b 1000 --size 8M disk.img
[ ! -e disk.img ] || fail "a refused mkfs has left a file"
expect_exit 1 layoutfs mkfs -t ext2 --size 8K tiny.img
[ ! -e tiny.img ] || fail "a failed mkfs has left a file"

expect_exit 0 layoutfs mkfs disk.img -t ext2 --size 8M -n
[ ! -e disk.img ] || fail "--dry-run has made a file"
expect_text 'disk.img: ext2' out
expect_exit 0 layoutfs mkfs disk.img -t ext2 --size 64M -b 1024 -I 256 -L some-label -m 1 \
    -U 12345678-1234-4321-8765-123456789abc -N 4000
expect_clean disk.img
dumpe2fs -h disk.img >super.txt 2>/dev/null
expect_text '^Filesystem volume name: +some-label$' super.txt
expect_text '^Filesystem UUID: +12345678-1234-4321-8765-123456789abc$' super.txt
expect_text '^Block size: +1024$' super.txt
expect_text '^Inode size:[[:space:]]+256$' super.txt
expect_text '^Block count: +65536$' super.txt
expect_text '^Reserved block count: +655$' super.txt

expect_exit 1 layoutfs mkfs -t ext2 --size 64M disk.img
expect_text '\-\-force' err
expect_text some-label err
expect_clean disk.img
layoutfs mkfs -t ext2 --size 16M old.img -q >out
[ ! -s out ] || fail "mkfs --quiet prints something"
expect_exit 0 layoutfs mkfs -t ext2 -F old.img -o label=new
expect_clean old.img
dumpe2fs -h old.img 2>/dev/null | expect_text '^Filesystem volume name: +new$' /dev/stdin

# --- a tree to copy ---------------------------------------------------------------------------

mkdir -p tree/sub/deep tree/empty
echo hello >tree/hello
head -c 3000000 /dev/urandom >tree/sub/random
truncate -s 5000000 tree/sparse
printf tail | dd of=tree/sparse bs=1 seek=4000000 conv=notrunc status=none
ln tree/hello tree/sub/hard
ln -s hello tree/short
ln -s "$(printf 'x%.0s' {1..200})" tree/long
mkfifo tree/fifo
: >'tree/a name with spaces'
chmod 4711 tree/sub/random
chmod 1750 tree/sub
touch -h -d '2001-02-03 04:05:06.789012345' tree/sub/random tree/short tree/empty
touch -d '1995-05-05 05:05:05' tree/sub

# listing DIR: what a copy must keep. Directory sizes are the filesystem's own affair.
listing() {
    (cd "$1" && find . -mindepth 1 ! -path './lost+found*' \
        \( -type d -printf '%P %y %m %U %G %TY-%Tm-%Td %TT\n' -o \
        -printf '%P %y %m %n %U %G %s %TY-%Tm-%Td %TT %l\n' \) | sort)
    (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

# --- cp, in and out ---------------------------------------------------------------------------

expect_exit 2 layoutfs cp
expect_exit 2 layoutfs cp disk.img:/
expect_exit 2 layoutfs cp tree/hello elsewhere
expect_exit 1 layoutfs cp tree disk.img:/
expect_text '\-r is not given' err
expect_exit 1 layoutfs cp -r nosuch disk.img:/
expect_exit 1 layoutfs cp -r tree nosuch.img:/
expect_exit 1 layoutfs cp tree/hello disk.img:/no/such/directory
expect_clean disk.img

layoutfs cp tree disk.img:/ -a
expect_clean disk.img
layoutfs cp -a disk.img:/tree copied
listing tree >want
listing copied >got
expect_same want got "the tree copied in and out"
[ "$(stat -c %b copied/sparse)" -lt 2000 ] || fail "holes were filled"
debugfs -R 'dump /tree/sub/random random.debugfs' disk.img 2>/dev/null
cmp tree/sub/random random.debugfs || fail "debugfs reads other bytes"
debugfs -R 'stat /tree/hello' disk.img 2>/dev/null | expect_text 'Links: 2' /dev/stdin
debugfs -R 'stat /tree/sub/random' disk.img 2>/dev/null |
    expect_text 'Mode:  04711' /dev/stdin

layoutfs cp -r tree/. disk.img:/merged
layoutfs cp -r tree/. disk.img:/merged
layoutfs cp -r disk.img:/merged/ merged
listing merged >got
expect_same want got "a directory's contents, twice"
layoutfs mkdir disk.img /into
layoutfs cp tree/hello tree/sub/random disk.img:/into
layoutfs cp disk.img:/into/hello renamed
cmp tree/hello renamed
expect_exit 1 layoutfs cp tree/hello tree/sparse disk.img:/two-into-one
expect_exit 1 layoutfs cp -r disk.img:/merged disk.img:/merged/sub/again
expect_text 'into itself' err
expect_exit 1 layoutfs cp disk.img:/tree/hello disk.img:/tree/hello
expect_text 'same file' err
expect_clean disk.img

layoutfs mkfs -q -t ext2 --size 64M other.img
layoutfs cp -a disk.img:/tree other.img:/
expect_clean other.img
layoutfs cp -a other.img:/tree from-other
# 128-byte inodes keep whole seconds.
whole_seconds() {
    sed -E 's/(:[0-9][0-9])\.[0-9]+/\1/'
}
listing from-other | whole_seconds >got
listing tree | whole_seconds >want
expect_same want got "a tree copied between images"

# Nothing in the destination is written through.
mkdir victim && ln -s ../victim/file trap && : >victim/file
layoutfs cp disk.img:/tree/hello trap
[ ! -s victim/file ] || fail "cp has followed a symlink in the destination"

# A full image: an error, and a sound filesystem.
layoutfs mkfs -q -t ext2 --size 2M small.img
expect_exit 1 layoutfs cp -r tree small.img:/
expect_text 'No space left' err
expect_clean small.img

# --- ls, cat ----------------------------------------------------------------------------------

expect_exit 2 layoutfs ls
expect_exit 1 layoutfs ls nosuch.img
expect_text 'nosuch.img' err
: >empty.img
expect_exit 1 layoutfs ls empty.img
head -c 100000 /dev/zero >zero.img
expect_exit 1 layoutfs ls zero.img
expect_text 'zero.img' err
layoutfs ls disk.img >got
printf '%s\n' into lost+found merged tree >want
expect_same want got "ls"
layoutfs ls disk.img /tree -l >got
expect_text '^prw.* fifo$' got
expect_text '^lrwxrwxrwx .* 2001-02-03 04:05:06\.789012345 short -> hello$' got
expect_text '^drwxr-x--T .* 1995-05-05 05:05:05\.000000000 sub$' got
layoutfs ls -R disk.img /tree/sub >got
printf '%s\n' /tree/sub: deep hard random '' /tree/sub/deep: >want
expect_same want got "ls -R"
layoutfs ls -d -i disk.img / | expect_text '^2 /$' /dev/stdin
layoutfs ls -a disk.img /tree/empty | expect_text '^\.\.$' /dev/stdin
expect_exit 1 layoutfs ls disk.img /nosuch /tree
expect_text 'disk.img:/nosuch: No such file' err
expect_text '^hello$' out

layoutfs cat disk.img /tree/hello /tree/short tree/hello >got
printf 'hello\nhello\nhello\n' >want
expect_same want got "cat"
layoutfs cat disk.img /tree/sparse | cmp - tree/sparse
expect_exit 2 layoutfs cat disk.img
expect_exit 1 layoutfs cat disk.img /tree
expect_text 'Is a directory' err
expect_exit 1 layoutfs cat disk.img /tree/hello/x
if [ -w /dev/full ]; then
    code=0
    layoutfs cat disk.img /tree/sub/random >/dev/full 2>err || code=$?
    [ $code -eq 1 ] || fail "cat to a full device exited with $code"
fi

# --- mkdir, rm --------------------------------------------------------------------------------

layoutfs mkdir disk.img /one /two -m 700
layoutfs ls -ld disk.img /one | expect_text '^drwx------ 2 ' /dev/stdin
expect_exit 1 layoutfs mkdir disk.img /one
expect_text 'File exists' err
expect_exit 1 layoutfs mkdir disk.img /x/y/z
layoutfs mkdir -p disk.img /x/y/z /x/y/z x//y/w/
layoutfs ls disk.img /x/y >got
printf '%s\n' w z >want
expect_same want got "mkdir -p"
expect_exit 1 layoutfs mkdir -p disk.img /tree/hello/below

expect_exit 1 layoutfs rm disk.img /one
expect_text 'Is a directory' err
expect_exit 1 layoutfs rm disk.img /nosuch
expect_exit 0 layoutfs rm -f disk.img /nosuch /no/such
expect_exit 1 layoutfs rm -r disk.img /
layoutfs rm disk.img /tree/hello /tree/short
layoutfs cat disk.img /tree/sub/hard | cmp - tree/hello
layoutfs rm disk.img -r /into /tree /merged /one /two /x
layoutfs ls disk.img >got
echo lost+found >want
expect_same want got "what is left"
expect_clean disk.img
dumpe2fs -h disk.img 2>/dev/null >super.txt
[ "$(sed -n 's/^Free inodes: *//p' super.txt)" -eq \
    "$(($(sed -n 's/^Inode count: *//p' super.txt) - 11))" ] || fail "inodes were lost"

# --- check, show, explain, options ------------------------------------------------------------

layoutfs cp -a tree disk.img:/
expect_exit 0 layoutfs check disk.img
expect_text 'clean' out
expect_exit 0 layoutfs check disk.img --json
python3 -c 'import json; o = json.load(open("out")); assert o["clean"] and not o["findings"], o' ||
    fail "check --json"
cp disk.img damaged.img
debugfs -w -R 'set_inode_field /tree/hello links_count 7' damaged.img 2>/dev/null
expect_exit 1 layoutfs check damaged.img
expect_text '^wrong: ' out
expect_exit 1 layoutfs check --json damaged.img
python3 -c 'import json; o = json.load(open("out")); assert not o["clean"] and o["findings"], o' ||
    fail "check --json of a damaged image"
expect_exit 1 layoutfs check zero.img
expect_exit 2 layoutfs check

for what in super 'group 0' 'inode 2' 'block 1'; do
    # shellcheck disable=SC2086
    expect_exit 0 layoutfs show disk.img $what
    [ -s out ] || fail "show $what prints nothing"
    # shellcheck disable=SC2086
    expect_exit 0 layoutfs show --json disk.img $what
    python3 -c 'import json; assert json.load(open("out"))' || fail "show --json $what"
done
layoutfs show disk.img super | expect_text 'some-label' /dev/stdin
expect_exit 2 layoutfs show disk.img
expect_exit 2 layoutfs show disk.img nonsense
expect_exit 2 layoutfs show disk.img inode
expect_exit 2 layoutfs show disk.img inode x
expect_exit 2 layoutfs show disk.img super 1
expect_exit 1 layoutfs show disk.img inode 99999999
expect_exit 1 layoutfs show disk.img group 4444

expect_exit 0 layoutfs explain disk.img /tree/sub/random /tree/short
expect_text '^path +/tree/sub/random$' out
expect_exit 0 layoutfs explain --json disk.img /tree/sub/random
python3 - <<'PYTHON' || fail "explain --json"
import json
explanation = json.load(open("out"))
assert explanation["path"] == "/tree/sub/random", explanation
assert explanation["inode"] and explanation["extents"], explanation
PYTHON
expect_exit 1 layoutfs explain disk.img /nosuch
expect_exit 2 layoutfs explain disk.img

expect_exit 0 layoutfs options
for word in ext2 memory dir_placement orlov first-fit block_size atime; do
    expect_text "$word" out
done
expect_exit 0 layoutfs options --json ext2
python3 - <<'PYTHON' || fail "options --json"
import json
layouts = json.load(open("out"))["layouts"]
assert [layout["name"] for layout in layouts] == ["ext"], layouts
assert any(option["name"] == "dir_placement" for option in layouts[0]["options"])
PYTHON
expect_exit 0 layoutfs options --mkfs ext2
! grep -q dir_placement out || fail "options --mkfs lists an option of mount"
expect_exit 1 layoutfs options nosuch

# --- an image in use --------------------------------------------------------------------------

if command -v flock >/dev/null; then
    expect_exit 1 flock disk.img "$LAYOUTFS" mkdir disk.img /busy
    expect_text 'disk.img' err
    expect_clean disk.img
fi
echo "all commands do as they say"

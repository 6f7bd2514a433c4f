#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the kernel and the server only get right together: access control lists, set-id bits, access
# times, whiteouts.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need_root
need_fuse
need e2fsck python3

cleanup() {
    ! grep -q " $PWD/mnt " /proc/mounts || layoutfs umount "$PWD/mnt" >/dev/null 2>&1 || true
}
trap cleanup EXIT
mkdir -p mnt

cat >rules.py <<'PYTHON'
import ctypes, errno, os, stat, struct, sys
root, what, options = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
OWNER, USER, GROUP, MASK, OTHER = 1, 2, 4, 16, 32
def fail(text): sys.exit("FAIL: %s: %s" % (what, text))
def path(name): return os.path.join(root, name)
def mode(name): return stat.S_IMODE(os.stat(path(name)).st_mode)
def expect_mode(name, wanted, why):
    if mode(name) != wanted: fail("%s: mode %o, not %o" % (why, mode(name), wanted))
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, rights, who) for tag, rights, who in entries)
NOBODY = 0xffffffff

def as_user(uid, call):
    """The errno that call() ends with in a process of that user, or 0."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
            call()
        except OSError as problem: code = problem.errno
        except BaseException: code = 255
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def write(name, flags=0):
    file = os.open(path(name), os.O_WRONLY | flags)
    os.write(file, b"x"); os.close(file)
def read(name, flags=0):
    file = os.open(path(name), os.O_RDONLY | flags)
    os.read(file, 100); os.close(file)
def new(name, mode, uid=0, text=b"text"):
    with open(path(name), "wb") as file: file.write(text)
    os.chown(path(name), uid, uid); os.chmod(path(name), mode)

# Access control lists. Names that nobody has looked at before: no answer is remembered.
os.umask(0o022)
def lists():
    named = acl((OWNER, 6, NOBODY), (USER, 6, 1000), (GROUP, 0, NOBODY), (MASK, 6, NOBODY),
                (OTHER, 0, NOBODY))
    new("acl", 0o600)
    if as_user(1000, lambda: read("acl")) != errno.EACCES: fail("0600 lets others read")
    os.setxattr(path("acl"), "system.posix_acl_access", named)
    expect_mode("acl", 0o660, "the mask shows as the group's rights")
    for call in (lambda: read("acl"), lambda: write("acl", os.O_APPEND)):
        if as_user(1000, call): fail("who is named in the list is refused")
        if as_user(1001, call) != errno.EACCES: fail("who is not named is let in")
    os.chmod(path("acl"), 0o600)
    if as_user(1000, lambda: read("acl")) != errno.EACCES: fail("chmod does not mask the list")
    os.chmod(path("acl"), 0o640)
    if as_user(1000, lambda: read("acl")): fail("chmod does not bring the rights back")
    if as_user(1000, lambda: write("acl")) != errno.EACCES: fail("0640 lets write")
    os.removexattr(path("acl"), "system.posix_acl_access")
    if as_user(1000, lambda: read("acl")) != errno.EACCES: fail("a removed list still counts")

    os.mkdir(path("plain"), 0o777)
    expect_mode("plain", 0o755, "the umask counts without a default list")
    os.mkdir(path("default"))
    os.setxattr(path("default"), "system.posix_acl_default",
                acl((OWNER, 7, NOBODY), (USER, 7, 1000), (GROUP, 5, NOBODY), (MASK, 7, NOBODY),
                    (OTHER, 0, NOBODY)))
    os.umask(0o077)
    open(path("default/file"), "w").close()
    expect_mode("default/file", 0o660, "a default list stands in for the umask")
    os.mkdir(path("default/sub"))
    expect_mode("default/sub", 0o770, "the same for a directory")
    if as_user(1000, lambda: write("default/file")): fail("an inherited list does not count")
    if as_user(1001, lambda: write("default/file")) != errno.EACCES: fail("it counts for all")
    if not os.getxattr(path("default/sub"), "system.posix_acl_default"): fail("no default list passed on")
    os.umask(0o022)
if not what.startswith("nilfs2"): lists() # which has none
else: os.mkdir(path("plain"))

# Set-id bits: root's changes keep them, a plain user's do not.
def changes(name):
    yield "write", lambda: write(name)
    yield "append", lambda: write(name, os.O_APPEND)
    yield "truncate", lambda: os.truncate(path(name), 2)
    yield "O_TRUNC", lambda: write(name, os.O_TRUNC)
    yield "fallocate", lambda: fallocate(name)
def fallocate(name):
    file = os.open(path(name), os.O_WRONLY)
    try: os.posix_fallocate(file, 0, 5000)
    finally: os.close(file)
for name, change in changes("setid"):
    new("setid", 0o6755, 1000)
    change()
    expect_mode("setid", 0o6755, "%s by root" % name)
    if as_user(1000, change): fail("%s by the owner" % name)
    expect_mode("setid", 0o755, "%s by the owner" % name)
new("setid", 0o6755, 1000)
os.chown(path("setid"), 1001, -1)
expect_mode("setid", 0o755, "chown")
os.mkdir(path("setgid")); os.chmod(path("setgid"), 0o2775); os.chown(path("setgid"), 1000, 1000)
expect_mode("setgid", 0o2775, "chown of a directory")

# Whiteouts.
libc = ctypes.CDLL(None, use_errno=True)
def rename(old, new, flags):
    if libc.renameat2(-100, path(old).encode(), -100, path(new).encode(), flags):
        return ctypes.get_errno()
    return 0
new("moved", 0o600); new("onto", 0o600)
for target in ("onto", "plain/there"):
    if rename("moved", target, 4): fail("RENAME_WHITEOUT")
    found = os.lstat(path("moved"))
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev: fail("that is no whiteout")
    if open(path(target), "rb").read() != b"text": fail("the renamed file is not there")
    os.unlink(path("moved")); new("moved", 0o600)
if rename("moved", "onto", 6) != errno.EINVAL: fail("EXCHANGE and WHITEOUT together")

# Access times. What the kernel has cached it reads without a word, so each read is the first.
def times(name):
    os.utime(path(name), (1000, 2000))
    return os.stat(path(name)).st_atime
def moved(name, use):
    before = times(name); use(name)
    return os.stat(path(name)).st_atime != before
files = dirs = "noatime" not in options
dirs = dirs and "nodiratime" not in options
new("read", 0o600); new("quiet", 0o600); os.mkdir(path("listed"))
times("read"), times("quiet"), times("listed")
os.sync(); open("/proc/sys/vm/drop_caches", "w").write("3")
if moved("quiet", lambda name: read(name, os.O_NOATIME)): fail("O_NOATIME moves the access time")
if moved("read", read) != files: fail("access time of a file read")
if moved("listed", lambda name: os.listdir(path(name))) != dirs: fail("access time of a listing")
PYTHON

for options in rw writeback noatime nodiratime; do
    layoutfs mount -t memory none mnt -o "allow_other,$options"
    python3 rules.py mnt "memory,$options" "$options"
    layoutfs umount mnt
    rm -f disk.img
    truncate -s 64M disk.img
    layoutfs mkfs -t ext2 -o inode_size=256 disk.img >/dev/null
    layoutfs mount disk.img mnt -o "allow_other,$options"
    python3 rules.py mnt "ext2,$options" "$options"
    layoutfs umount mnt
    expect_clean disk.img
    rm disk.img
    layoutfs mkfs -q -t nilfs2 --size 256M disk.img
    layoutfs mount disk.img mnt -o "allow_other,$options"
    python3 rules.py mnt "nilfs2,$options" "$options"
    layoutfs umount mnt
    expect_sound nilfs2 disk.img
done

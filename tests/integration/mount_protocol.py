# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of mount_protocol.sh that makes system calls: mount_protocol.py ROOT WHAT PART FILE."""
import ctypes, errno, fcntl, mmap, os, stat, struct, sys

root, what, part, saved = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
type = what.split(",")[0]
on_disk = type != "memory" # which has all that a format can have

def fail(text): sys.exit("FAIL: %s: %s" % (what, text))
def path(name): return os.path.join(root, name)
def check(truth, text):
    if not truth: fail(text)
def drop_caches(): os.sync(); open("/proc/sys/vm/drop_caches", "w").write("3")
def code(call):
    """The errno that call() ends with, or 0."""
    try: call()
    except OSError as problem: return problem.errno
    return 0
def as_user(uid, call, gid=None):
    child = os.fork()
    if child == 0:
        result = 255
        try:
            os.setgroups([]); os.setresgid(*[gid or uid] * 3); os.setresuid(uid, uid, uid)
            result = code(call)
        finally: os._exit(result)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def new(name, content=b""):
    with open(path(name), "wb", buffering=0) as file: file.write(content)
def content(name): return open(path(name), "rb").read()

# --- files without a name ---

def link_descriptor(file, name):
    if libc.linkat(-100, b"/proc/self/fd/%d" % file, -100, path(name).encode(), 0x400):
        raise OSError(ctypes.get_errno(), name)

def tmpfiles():
    os.mkdir(path("tmp"))
    free = os.statvfs(root)
    file = os.open(path("tmp"), os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(file, b"x" * 10000)
    found = os.fstat(file)
    check(found.st_nlink == 0 and found.st_size == 10000 and not os.listdir(path("tmp")), "O_TMPFILE")
    check(os.lseek(file, 0, os.SEEK_SET) == 0 and os.read(file, 20000) == b"x" * 10000, "its contents")
    link_descriptor(file, "tmp/named")
    check(os.fstat(file).st_nlink == 1, "the first name does not count")
    check(code(lambda: link_descriptor(file, "tmp/named")) == errno.EEXIST, "a name that exists")
    os.close(file); drop_caches()
    check(content("tmp/named") == b"x" * 10000, "a file that got a name")
    file = os.open(path("tmp"), os.O_TMPFILE | os.O_EXCL | os.O_WRONLY, 0o600)
    check(code(lambda: link_descriptor(file, "tmp/no")) == errno.ENOENT, "O_EXCL forbids names")
    os.close(file)
    file = os.open(path("tmp/named"), os.O_RDONLY); os.unlink(path("tmp/named"))
    check(code(lambda: link_descriptor(file, "tmp/no")) == errno.ENOENT, "the last name went")
    os.close(file)
    check(as_user(1000, lambda: os.open(path("tmp"), os.O_TMPFILE | os.O_RDWR)) == errno.EACCES,
          "a user's O_TMPFILE in root's directory")
    os.rmdir(path("tmp")); os.sync()
    after = os.statvfs(root)
    check(after.f_ffree >= free.f_ffree, "inodes of files without a name are not freed")

# --- data ---

def copies():
    new("source", b"")
    os.truncate(path("source"), 1 << 20)
    source = os.open(path("source"), os.O_RDWR); os.pwrite(source, b"data" * 1024, 512 << 10)
    new("target", b"old!" * (1 << 18))
    target = os.open(path("target"), os.O_RDWR)
    view = mmap.mmap(target, 1 << 20)
    check(view[512 << 10] == ord("o"), "a mapped page")
    done = 0
    while done < 1 << 20:
        count = os.copy_file_range(source, target, (1 << 20) - done, done, done)
        check(count > 0, "copy_file_range ends early"); done += count
    check(view[512 << 10 : (512 << 10) + 4096] == b"data" * 1024 and view[0] == 0, "what was mapped")
    check(content("target") == content("source"), "a copy")
    check(os.stat(path("target")).st_blocks == os.stat(path("source")).st_blocks, "holes of a copy")
    check(code(lambda: os.copy_file_range(source, source, 8192, 0, 4096)) == errno.EINVAL, "overlap")
    check(os.copy_file_range(source, source, 4096, 512 << 10, 0) == 4096, "a copy within a file")
    check(content("source")[:4] == b"data", "what was copied within a file")
    check(os.copy_file_range(source, target, 99, 1 << 20, 0) == 0, "a copy from the end")
    os.chown(path("target"), 1000, 1000)
    os.chmod(path("target"), 0o6755); os.chmod(path("source"), 0o644)
    def copy():
        a, b = os.open(path("source"), os.O_RDONLY), os.open(path("target"), os.O_WRONLY)
        os.copy_file_range(a, b, 100)
    copy()
    check(stat.S_IMODE(os.stat(path("target")).st_mode) == 0o6755, "root's copy clears set-id bits")
    check(as_user(1000, copy) == 0, "a user's copy")
    check(stat.S_IMODE(os.stat(path("target")).st_mode) == 0o755, "a user's copy keeps set-id bits")
    view.close(); os.close(source); os.close(target)

def fallocate(file, mode, offset, length):
    if libc.fallocate(file, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")

def allocations():
    new("allocated", b"z" * 100000)
    file = os.open(path("allocated"), os.O_RDWR)
    view = mmap.mmap(file, 100000)
    check(view[50000] == ord("z"), "a mapped page")
    refused = code(lambda: fallocate(file, 1, 0, 1 << 20)) # KEEP_SIZE
    check(refused == (errno.EOPNOTSUPP if on_disk else 0), "KEEP_SIZE past the end")
    check(os.fstat(file).st_size == 100000, "KEEP_SIZE keeps no size")
    check(on_disk or os.fstat(file).st_blocks >= 2048, "KEEP_SIZE gives no blocks")
    fallocate(file, 0x10, 5000, 60000) # ZERO_RANGE
    check(view[4999] == ord("z") and view[5000] == 0 and view[64999] == 0 and view[65000] == ord("z"),
          "ZERO_RANGE")
    fallocate(file, 0x10, 90000, 20000)
    check(os.fstat(file).st_size == 110000 and os.pread(file, 4, 99998) == bytes(4), "it grows a file")
    fallocate(file, 3, 65536, 8192) # PUNCH_HOLE
    check(view[65535] == ord("z") and view[65536] == 0 and view[73728] == ord("z"), "PUNCH_HOLE")
    os.ftruncate(file, 110000)
    check(os.fstat(file).st_blocks < 1024, "a truncate leaves what was preallocated")
    view.close(); os.close(file)

# --- attributes ---

def ioctl(name, command, size, value=b""):
    file = os.open(path(name), os.O_RDONLY)
    try: return fcntl.ioctl(file, command, value.ljust(size, b"\0"))
    finally: os.close(file)
GETVERSION, FSGETXATTR, FSSETXATTR, GETFSLABEL = 0x80087601, 0x801C581F, 0x401C5820, 0x81009431
FITRIM = 0xC0185879

def project(name): return struct.unpack_from("<I", ioctl(name, FSGETXATTR, 28), 12)[0]
def set_project(name, number, flags=0):
    ioctl(name, FSSETXATTR, 28, struct.pack("<IIII", flags, 0, 0, number))

def ioctls():
    new("io"); os.mkdir(path("iodir"))
    versions = [ioctl(name, GETVERSION, 8)[:4] for name in ("io", "iodir")]
    check(versions[0] != versions[1], "generations")
    label = ioctl("iodir", GETFSLABEL, 256).rstrip(b"\0")
    check(label == (b"label" if on_disk else b""), "the label is %r" % label)
    check(code(lambda: set_project("io", 7)) == (errno.EOPNOTSUPP if on_disk else 0), "project id")
    check(code(lambda: ioctl("iodir", FITRIM, 24)) == errno.EOPNOTSUPP, "fstrim")
    set_project("io", 0, 0x80) # no dump
    check(struct.unpack_from("<I", ioctl("io", FSGETXATTR, 28))[0] == 0x80, "a flag")
    if on_disk: return
    set_project("iodir", 9, 0x200) # inherit
    new("iodir/file"); os.mkdir(path("iodir/sub")); new("iodir/sub/file")
    check(project("iodir/sub/file") == 9 and project("io") == 0, "a project inherited")
    check(code(lambda: os.link(path("io"), path("iodir/io"))) == errno.EXDEV, "a link to a project")
    check(code(lambda: os.rename(path("io"), path("iodir/io"))) == errno.EXDEV, "a move to a project")
    os.rename(path("iodir/sub/file"), path("iodir/moved")); os.rename(path("iodir/moved"), path("io"))

def lists():
    """Who is no member of the file's group loses the set-group-id bit with a list he sets."""
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
        (1, 7, 0xffffffff), (2, 4, 5), (4, 5, 0xffffffff), (16, 5, 0xffffffff), (32, 5, 0xffffffff)))
    def set_list(): os.setxattr(path("list"), "system.posix_acl_access", value)
    for user, group, mode in ((1000, 1001, 0o755), (1000, 2000, 0o2755), (0, 0, 0o2755)):
        new("list"); os.chown(path("list"), 1000, 2000); os.chmod(path("list"), 0o2755)
        check((code(set_list) if user == 0 else as_user(user, set_list, group)) == 0, "a list")
        found = stat.S_IMODE(os.stat(path("list")).st_mode)
        check(found == mode, "mode %o after user %d set a list" % (found, user))
        os.unlink(path("list"))
    new("list")
    check(code(lambda: os.setxattr(path("list"), "other.x", b"")) == errno.EOPNOTSUPP, "a namespace")

# --- space ---

def reserved():
    os.mkdir(path("full")); os.chmod(path("full"), 0o777)
    def fill():
        file = os.open(path("full/user%d" % os.getuid()), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while True: os.write(file, bytes(1 << 20))
        finally: os.fsync(file)
    if "writeback" in what: return # there a full disk is noticed by root's write-back alone
    check(as_user(1000, fill) == errno.ENOSPC, "a user fills the volume")
    found = os.statvfs(root)
    check(found.f_bavail == 0 and found.f_bfree > found.f_blocks // 25, "reserved blocks")
    check(as_user(1000, lambda: os.mkdir(path("full/dir"))) == errno.ENOSPC, "a user's directory")
    os.mkdir(path("full/dir"))
    check(code(fill) == errno.ENOSPC and os.statvfs(root).f_bfree <= 1, "root uses the rest")
    for name in ("user1000", "user0"): os.unlink(path("full/" + name))

# --- handles ---

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
def handle_of(name):
    handle, mount = Handle(128), ctypes.c_int()
    if libc.name_to_handle_at(-100, path(name).encode(), ctypes.byref(handle), ctypes.byref(mount), 0):
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    return handle
def open_handle(handle, flags=os.O_RDONLY):
    mount = os.open(root, os.O_RDONLY)
    try:
        file = libc.open_by_handle_at(mount, ctypes.byref(handle), flags)
        if file < 0: raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return file
    finally: os.close(mount)
def read_handle(handle):
    file = open_handle(handle)
    try: return os.read(file, 100)
    finally: os.close(file)

def handles():
    os.makedirs(path("h/a/b")); new("h/a/b/file", b"by handle"); new("h/gone", b"gone")
    file, directory, gone = handle_of("h/a/b/file"), handle_of("h/a/b"), handle_of("h/gone")
    for _ in range(2):
        check(read_handle(file) == b"by handle", "a file's handle")
        opened = open_handle(directory, os.O_RDONLY | os.O_DIRECTORY)
        check(os.listdir(opened) == ["file"], "a directory's handle")
        check(os.readlink("/proc/self/fd/%d" % opened).endswith("/h/a/b"), "its parents")
        os.close(opened); drop_caches()
    os.unlink(path("h/gone"))
    for number in range(20): # the inode's number is used again
        check(code(lambda: read_handle(gone)) == errno.ESTALE, "a handle of what is gone")
        new("h/again%d" % number, b"again")
        if number % 7 == 3: drop_caches()
    for number in (0, 3, 1 << 31, 1 << 63): # none of these was ever handed out
        forged = Handle(gone.bytes, gone.type)
        for i, byte in enumerate(struct.pack("<III", number >> 32, number & 0xffffffff, 1)):
            forged.data[i] = byte
        check(code(lambda: open_handle(forged)) == errno.ESTALE, "a handle of inode %d" % number)
    with open(saved, "wb") as out:
        for handle in file, gone: out.write(bytes(handle))

def handles_after_remount():
    raw = open(saved, "rb").read()
    file, gone = (Handle.from_buffer_copy(raw, at) for at in (0, len(raw) // 2))
    check(read_handle(file) == b"by handle", "a handle after a remount")
    check(code(lambda: read_handle(gone)) == errno.ESTALE, "a dead handle after a remount")
    new("h/another"); os.unlink(path("h/a/b/file"))
    check(code(lambda: read_handle(file)) == errno.ESTALE, "a handle of what has just gone")

# --- listings ---

class Entry(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_ulong), ("off", ctypes.c_long), ("length", ctypes.c_ushort),
                ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]
libc.opendir.restype = ctypes.c_void_p
libc.readdir.restype, libc.readdir.argtypes = ctypes.POINTER(Entry), [ctypes.c_void_p]
libc.telldir.restype, libc.telldir.argtypes = ctypes.c_long, [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
libc.closedir.argtypes = [ctypes.c_void_p]

def names_from(stream, most=1 << 30):
    names = []
    while len(names) < most:
        entry = libc.readdir(stream)
        if not entry: break
        if entry.contents.name not in (b".", b".."): names.append(entry.contents.name.decode())
    return names

def positions():
    """What is there all the time is seen once, wherever a listing stands still meanwhile."""
    os.mkdir(path("list.d"))
    for number in range(3000): new("list.d/name-%d" % number)
    for seek in (False, True):
        before = set(os.listdir(path("list.d")))
        stream = libc.opendir(path("list.d").encode())
        seen = names_from(stream, len(before) // 2)
        position = libc.telldir(stream)
        for name in seen[::2] + seen[-1:]:
            if os.path.exists(path("list.d/" + name)): os.unlink(path("list.d/" + name))
        for number in range(500): new("list.d/new-%s-%d" % (seek, number))
        os.listdir(path("list.d")); os.listdir(path("list.d")) # the kernel has another list now
        if seek: libc.seekdir(stream, position)
        rest = names_from(stream)
        libc.closedir(stream)
        check(len(set(rest)) == len(rest) and not set(rest) & set(seen), "a name is listed twice")
        check(before - set(seen) <= set(rest), "a name is not listed")
    # As rm -r does, but with a second reader.
    stream = libc.opendir(path("list.d").encode())
    for name in iter(lambda: names_from(stream, 1), []):
        os.unlink(path("list.d/" + name[0]))
        if hash(name[0]) % 100 == 0: os.listdir(path("list.d"))
    libc.closedir(stream)
    check(code(lambda: os.rmdir(path("list.d"))) == 0, "a listing missed what was to be removed")

def full_page():
    """The kernel's copy of a listing fills a page exactly; a place that is gone is still found."""
    os.mkdir(path("page.d"))
    for number in range(127): new("page.d/n%03d" % number) # with the dots, 128 times 32 bytes are 4 KiB; one more
    stream = libc.opendir(path("page.d").encode())
    seen = names_from(stream, 60)
    position = libc.telldir(stream)
    os.unlink(path("page.d/" + seen[-1]))
    for again in range(3):
        check(len(os.listdir(path("page.d"))) == 126, "a listing that fills a page")
        libc.seekdir(stream, position)
        check(len(names_from(stream)) == 127 - 60, "a place that is gone is taken for the end")
    libc.closedir(stream)

os.umask(0o022)
if part == "handles":
    handles_after_remount()
else:
    tmpfiles(); copies(); allocations(); ioctls()
    if type != "nilfs2": lists() # which has no extended attributes
    handles(); positions(); full_page()
    if type == "ext2": reserved()

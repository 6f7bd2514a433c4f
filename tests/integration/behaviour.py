# SPDX-License-Identifier: GPL-2.0-or-later
# What programs may expect of a filesystem, through system calls; see behaviour.sh.
#
#   behaviour.py PHASE DIRECTORY [FACT=VALUE]...
#
# PHASE: "make" runs every check and leaves a tree behind; "verify" looks at that tree again, after a
# remount; "read-only" tries to change it. Facts of the format: time_min and time_max (seconds), ns (0:
# whole seconds), xattrs (0: it has none; 1 unless told), segment (bytes: a log
# uses space in such pieces, and gives it back when it is cleaned). "make" tells the largest size of a file.
import ctypes, errno, fcntl, json, mmap, os, resource, select, signal, socket, stat, struct, sys, time

phase, root = sys.argv[1:3]
facts = {"xattrs": "1", "segment": "0"} | dict(word.split("=") for word in sys.argv[3:])
has_xattrs = facts["xattrs"] == "1"
NS = 10 ** 9
libc = ctypes.CDLL(None, use_errno=True)
checks, failures = [], []


def check(function):
    checks.append(function)
    return function


class Wrong(Exception):
    pass


def want(condition, text, *values):
    if not condition:
        raise Wrong(text % values)


def refused(codes, call, *arguments, **keywords):
    """The call must fail with one of the error codes."""
    codes = codes if isinstance(codes, tuple) else (codes,)
    try:
        call(*arguments, **keywords)
    except OSError as problem:
        want(problem.errno in codes, "%s%r: %s instead of %s", call.__name__, arguments, problem.strerror,
             errno.errorcode[codes[0]])
        return
    raise Wrong("%s%r succeeded" % (call.__name__, arguments))


def write(path, data=b"", flags=0):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        return os.write(file, data)
    finally:
        os.close(file)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def setxattr(path, name, value):
    """Sets an attribute, or is refused by a format that has none."""
    if has_xattrs:
        os.setxattr(path, name, value)
    else:
        refused(errno.EOPNOTSUPP, os.setxattr, path, name, value)


def in_child(call, uid=0):
    """Runs call() in a process of that user. The errno that it ends with, or 0; a signal: negative."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            if uid:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            call()
        except OSError as problem:
            code = problem.errno
        except BaseException as problem:
            print(repr(problem), file=sys.stderr)
            code = 255
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2", old)


# --- names ---------------------------------------------------------------------------------------

@check
def names_of_all_bytes():
    names = [bytes([byte]) for byte in range(1, 256) if byte not in b"./"]
    names += [b"..." , b"-rf", b"x" * 255, b"\xff" * 255, b"\xc3\xa9", b"e\xcc\x81", b"case", b"Case"]
    for name in names:
        write(name, name)
    want(sorted(os.listdir(b".")) == sorted(names), "the listing has other names")
    for name in names:
        want(read(name) == name, "%r has another file's contents", name)


@check
def names_too_long():
    long, here = "y" * 256, "here"
    write(here)
    for call, arguments in ((os.mkdir, (long,)), (os.lstat, (long,)), (os.symlink, ("t", long)),
                            (os.link, (here, long)), (os.rename, (here, long)), (os.unlink, (long,)),
                            (os.rmdir, (long,)), (os.mkfifo, (long,)), (write, (long,))):
        refused(errno.ENAMETOOLONG, call, *arguments)
    want(os.statvfs(".").f_namemax == 255, "f_namemax is %d", os.statvfs(".").f_namemax)
    for name in (".", ".."):
        refused((errno.EEXIST, errno.EISDIR), write, name, b"", os.O_EXCL)
        refused((errno.EINVAL, errno.EBUSY, errno.ENOTEMPTY), os.rmdir, name)
    refused(errno.EEXIST, os.mkdir, ".")
    refused((errno.ENOTDIR, errno.EISDIR), write, here + "/")
    refused(errno.ENOTDIR, os.stat, here + "/below")


@check
def trees_deeper_than_a_path():
    level, depth = "d" * 200, 60  # 12,000 bytes
    top = os.getcwd()
    for _ in range(depth):
        os.mkdir(level)
        os.chdir(level)
    write("bottom", b"deep")
    want(read("bottom") == b"deep", "the file at the bottom")
    refused(errno.ENAMETOOLONG, os.stat, "/".join([level] * depth))
    inode = os.stat("..").st_ino
    os.chdir("..")
    want(os.stat(".").st_ino == inode, "'..' is another directory")
    os.unlink(level + "/bottom")
    for _ in range(depth - 1):
        os.rmdir(level)
        os.chdir("..")
    os.rmdir(level)
    want(os.path.samefile(top, "."), "the way back ends elsewhere")


@check
def symbolic_links_of_every_length():
    lengths = [*range(1, 260), *range(900, 1024, 7), 1023]
    for length in lengths:
        os.symlink("".join(chr(97 + (i + length) % 26) for i in range(length)), "l%d" % length)
    for length in lengths:
        want(os.lstat("l%d" % length).st_size == length, "size of a link of %d bytes", length)
        want(os.readlink("l%d" % length) == "".join(chr(97 + (i + length) % 26) for i in range(length)),
             "target of a link of %d bytes", length)
    refused(errno.ENAMETOOLONG, os.symlink, "t" * 4096, "longer")
    refused(errno.ENOENT, os.symlink, "", "empty")
    os.symlink("two", "one"), os.symlink("one", "two")
    refused(errno.ELOOP, os.stat, "one")
    refused(errno.ELOOP, os.open, "l100", os.O_RDONLY | os.O_NOFOLLOW)
    write("file")
    refused(errno.EINVAL, os.readlink, "file")
    os.rename("l60", "l61")
    want(len(os.readlink("l61")) == 60, "a rename onto a link keeps the old target")


@check
def links_themselves():
    write("target"), os.symlink("target", "link")
    before = os.stat("target")
    os.lchown("link", 77, 88)
    os.utime("link", ns=(5 * NS, 7 * NS), follow_symlinks=False)
    os.link("link", "hard", follow_symlinks=False)
    link, after = os.lstat("hard"), os.stat("target")
    want((link.st_uid, link.st_gid, link.st_mtime, link.st_nlink) == (77, 88, 7, 2), "the link's own: %r", link)
    want((after.st_uid, after.st_mtime_ns) == (before.st_uid, before.st_mtime_ns), "its target changed")
    want(stat.S_IMODE(link.st_mode) == 0o777, "mode of a link")


@check
def renames_refused():
    os.makedirs("dir/sub/deep"), os.mkdir("empty"), write("file", b"f"), os.makedirs("full/x")
    refused(errno.EINVAL, os.rename, "dir", "dir/sub/deep/inside")
    refused(errno.EINVAL, os.rename, "dir", "dir/sub")
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rename, "dir/sub", "dir")
    refused(errno.ENOTDIR, os.rename, "dir", "file")
    refused(errno.EISDIR, os.rename, "file", "empty")
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rename, "dir", "full")
    refused(errno.ENOENT, os.rename, "missing", "file")
    refused(errno.ENOENT, os.rename, "file", "missing/file")
    refused((errno.EBUSY, errno.EINVAL), os.rename, ".", "elsewhere")
    os.rename("dir", "empty")
    want(os.path.isdir("empty/sub/deep"), "a directory renamed onto an empty one")


@check
def renames_onto_own_hard_link():
    write("a", b"x"), os.link("a", "b"), os.mkdir("s"), os.link("a", "s/c")
    for target in ("b", "s/c", "a"):
        os.rename("a", target)
    want(os.stat("a").st_nlink == 3 and read("s/c") == b"x", "%d links", os.stat("a").st_nlink)


@check
def renames_with_flags():
    write("a", b"A"), write("b", b"B"), os.mkdir("dir"), write("dir/in", b"I")
    refused(errno.EEXIST, renameat2, "a", "b", 1)
    renameat2("a", "b", 2)
    want((read("a"), read("b")) == (b"B", b"A"), "EXCHANGE of files")
    renameat2("a", "dir", 2)
    want((read("dir"), read("a/in")) == (b"B", b"I"), "EXCHANGE of a file and a directory")
    refused(errno.ENOENT, renameat2, "a", "missing", 2)
    refused(errno.EINVAL, renameat2, "a", "a/in", 2)
    for flags in (3, 6, 1 << 20):
        refused(errno.EINVAL, renameat2, "b", "c", flags)


@check
def descriptors_survive_renames():
    os.makedirs("p/q")
    file = os.open("p/q/x", os.O_CREAT | os.O_RDWR)
    os.rename("p", "P"), os.write(file, b"abc")
    os.rename("P/q/x", "y"), os.write(file, b"def"), os.ftruncate(file, 5), os.close(file)
    want(read("y") == b"abcde", "contents %r", read("y"))
    for version in range(100):
        write("new", b"%d" % version), os.rename("new", "current")
        want(read("current") == b"%d" % version, "version %d is not seen", version)


@check
def files_without_a_name():
    free = os.statvfs(".").f_bfree
    file = os.open("gone", os.O_CREAT | os.O_RDWR)
    os.write(file, b"a" * (8 << 20)), os.unlink("gone")
    os.ftruncate(file, 9 << 20), os.fchmod(file, 0o600), os.fsync(file), os.utime(file, (5, 5))
    found = os.fstat(file)
    want((found.st_nlink, found.st_size, found.st_mtime) == (0, 9 << 20, 5), "%r", found)
    want(os.pread(file, 3, (8 << 20) - 1) == b"a\0\0", "contents")
    os.close(file)
    directory = os.open(".", os.O_RDONLY)
    os.mkdir("left"), os.chdir("left"), os.rmdir("../left")
    refused(errno.ENOENT, write, "file")
    refused(errno.ENOENT, os.mkdir, "sub")
    want(os.listdir(".") == [] and os.stat(".").st_nlink == 0, "a removed directory")
    os.fchdir(directory), os.close(directory)
    for _ in range(100):  # the kernel tells the server that it has forgotten the file a little later
        os.sync()
        if free - os.statvfs(".").f_bfree < 64 or int(facts["segment"]):
            return
        time.sleep(0.05)
    raise Wrong("the space does not come back")


@check
def listings_while_names_change():
    class entry(ctypes.Structure):
        _fields_ = [("ino", ctypes.c_uint64), ("offset", ctypes.c_int64), ("length", ctypes.c_uint16),
                    ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]
    libc.opendir.restype, libc.readdir.restype = ctypes.c_void_p, ctypes.POINTER(entry)
    libc.telldir.restype = ctypes.c_long
    for function in ("readdir", "telldir", "closedir", "rewinddir"):
        getattr(libc, function).argtypes = [ctypes.c_void_p]
    libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]

    def following(stream):
        found = libc.readdir(stream)
        return found.contents.name.decode() if found else None
    count = 1500
    for i in range(count):
        write("a-name-of-some-length-%d" % i)
    stream = libc.opendir(b".")
    order, positions = [], []
    while True:
        positions.append(libc.telldir(stream))
        order.append(following(stream))
        if order[-1] is None:
            break
    want(len(set(order)) == count + 3, "%d different names of %d", len(set(order)) - 1, count + 2)
    for i in (700, 3, 1499, 0, 1100):
        libc.seekdir(stream, positions[i])
        want(following(stream) == order[i], "seekdir to entry %d", i)
    # Removing and adding move nothing that stays.
    for i in range(0, 600):
        if order[i] not in (".", ".."):
            os.unlink(order[i])
    for i in range(50):
        write("another-%d" % i)
    libc.seekdir(stream, positions[800])
    want(following(stream) == order[800], "seekdir after removals and additions")
    seen = [order[800]] + [name for name in iter(lambda: following(stream), None)]
    old = [name for name in seen if not name.startswith("another")]
    want(old == [name for name in order[800:-1]], "what stays is seen once")
    libc.rewinddir(stream)
    for name in iter(lambda: following(stream), None):
        if name not in (".", ".."):
            os.unlink(name)
    libc.closedir(stream)
    want(os.listdir(".") == [], "rm during a listing leaves %d names", len(os.listdir(".")))


@check
def change_is_told_to_watchers():
    watch = libc.inotify_init1(os.O_NONBLOCK)
    want(libc.inotify_add_watch(watch, b".", 0xfff) >= 0, "inotify_add_watch")

    def events():
        found = set()
        while select.select([watch], [], [], 0.1)[0]:
            data, at = os.read(watch, 65536), 0
            while at < len(data):
                mask, length = struct.unpack_from("4xI4xI", data, at)
                found.add((mask & 0xfff, data[at + 16:at + 16 + length].rstrip(b"\0")))
                at += 16 + length
        return found
    for what, call, expected in (
            ("a new file", lambda: write("a", b"x"), {(0x100, b"a"), (2, b"a"), (8, b"a")}),
            ("chmod", lambda: os.chmod("a", 0o600), {(4, b"a")}),
            ("rename", lambda: os.rename("a", "b"), {(0x40, b"a"), (0x80, b"b")}),
            ("link", lambda: os.link("b", "c"), {(0x100, b"c")}),
            ("mkdir, rmdir", lambda: (os.mkdir("d"), os.rmdir("d")), {(0x100, b"d"), (0x200, b"d")}),
            ("unlink", lambda: os.unlink("b"), {(0x200, b"b")})):
        call()
        found = events()
        want(expected <= found, "%s: %r", what, found)
    os.close(watch)


# --- data ----------------------------------------------------------------------------------------

@check
def appending_from_many_processes():
    children = []
    for writer in range(4):
        child = os.fork()
        if child == 0:
            file = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            for i in range(250):
                os.write(file, b"%d:%04d:%s\n" % (writer, i, b"x" * (i % 90)))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    lines = read("log").splitlines()
    want(len(lines) == 1000 and len(set(lines)) == 1000, "%d different lines of 1000", len(set(lines)))
    for writer in range(4):
        own = [line for line in lines if line.startswith(b"%d:" % writer)]
        want(own == sorted(own), "the lines of one writer are out of order")
    file = os.open("log", os.O_RDWR | os.O_APPEND)
    size = os.fstat(file).st_size
    os.lseek(file, 0, os.SEEK_SET), os.write(file, b"end"), os.close(file)
    want(read("log").endswith(b"end") and os.stat("log").st_size == size + 3, "O_APPEND writes at the end")


@check
def truncation_by_open():
    write("f", b"abc" * 5000), write("f", b"1", os.O_TRUNC)
    want(read("f") == b"1", "a shorter rewrite")
    write("f", os.urandom(300000)), write("f", b"", os.O_TRUNC), os.truncate("f", 300000)
    want(read("f") == bytes(300000), "old bytes come back")
    os.chmod("f", 0o444)
    want(in_child(lambda: write("f", b"", os.O_TRUNC), 12345) == errno.EACCES, "0444 is written to")
    want(os.stat("f").st_size == 300000, "an open that was refused has truncated")


@check
def mappings_between_processes():
    page = mmap.PAGESIZE
    write("m", b"a" * (3 * page + 100))
    file = os.open("m", os.O_RDWR)
    shared = mmap.mmap(file, 3 * page + 100)

    def other():
        mine = mmap.mmap(os.open("m", os.O_RDWR), 3 * page + 100)
        if mine[5000:5006] != b"parent" or mine[9000:9004] != b"PWRT":
            os._exit(1)
        mine[6000:6005] = b"child"
    shared[5000:5006] = b"parent"
    want(os.pread(file, 6, 5000) == b"parent", "read(2) does not see what is mapped")
    os.pwrite(file, b"PWRT", 9000)
    want(in_child(other) == 0 and shared[6000:6005] == b"child", "two processes see different bytes")
    os.ftruncate(file, 5003), os.ftruncate(file, 3 * page)
    want(shared[5000:5005] == b"par\0\0" and shared[9000:9004] == bytes(4), "truncation shows in a mapping")
    shared[7000:7003] = b"new"
    shared.flush(), shared.close()
    private = mmap.mmap(file, page, mmap.MAP_PRIVATE)
    private[0:4] = b"priv"
    private.close()
    want(read("m")[:4] == b"aaaa" and read("m")[7000:7003] == b"new", "what a mapping has left")

    def beyond():
        mine = mmap.mmap(file, 2 * page)
        os.ftruncate(file, page)
        print(mine[page])
    want(in_child(beyond) == -signal.SIGBUS, "no SIGBUS beyond the end")
    os.close(file)


@check
def direct_and_buffered_are_coherent():
    block = mmap.mmap(-1, 8192)
    write("d", b"a" * 65536)
    want(read("d") == b"a" * 65536, "contents")
    direct = os.open("d", os.O_RDWR | os.O_DIRECT)
    plain = os.open("d", os.O_RDWR)
    mapping = mmap.mmap(plain, 65536)
    block[:] = b"D" * 8192
    os.pwritev(direct, [block], 8192)
    want(os.pread(plain, 8192, 8192) == b"D" * 8192, "read(2) after a direct write")
    want(mapping[8192:16384] == b"D" * 8192, "a mapping after a direct write")
    os.pwrite(plain, b"B" * 100, 10000)
    mapping[12000:12003] = b"MAP"
    mapping.flush()
    os.preadv(direct, [block], 8192)
    want(block[1808:1908] == b"B" * 100 and block[3808:3811] == b"MAP", "a direct read")
    os.close(direct), os.close(plain)


def largest_size(file):
    low, high = 0, (1 << 63) - 1
    while low < high:
        middle = (low + high + 1) // 2
        try:
            os.ftruncate(file, middle)
            low = middle
        except OSError:
            high = middle - 1
    return low


@check
def large_offsets():
    file = os.open("large", os.O_CREAT | os.O_RDWR)
    limit = largest_size(file)
    print("file_max %d" % limit)
    os.ftruncate(file, 0)
    offsets = [o for bits in (31, 32, 33, 40, 42) for o in ((1 << bits) - 5000, (1 << bits) + 100000)]
    offsets = [o for o in offsets if o + 20 < limit]
    if limit < 1 << 62:
        offsets.append(limit - 20)
    for offset in offsets:
        os.pwrite(file, b"at %014d" % offset, offset)
    os.fsync(file)
    for offset in offsets:
        want(os.pread(file, 17, offset) == b"at %014d" % offset, "what is at %d", offset)
    want(os.pread(file, 100, 12345) == bytes(100), "the hole is not empty")
    want(os.fstat(file).st_blocks < 8192, "%d blocks", os.fstat(file).st_blocks)
    if limit < 1 << 62:
        want(os.pwrite(file, b"x" * 10, limit - 3) == 3, "a write over the end is cut there")
        refused(errno.EFBIG, os.pwrite, file, b"x", limit)
        refused((errno.EFBIG, errno.EINVAL), os.ftruncate, file, limit + 1)
        want(os.fstat(file).st_size == limit, "a refused write moves the end")
    os.close(file)

    def over_the_users_limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        own = os.open("limited", os.O_CREAT | os.O_WRONLY)
        if os.pwrite(own, b"x" * 100, 9950) != 50:
            os._exit(254)
        os.pwrite(own, b"x", 10000)
    want(in_child(over_the_users_limit) == errno.EFBIG, "RLIMIT_FSIZE")
    os.unlink("large")


@check
def holes_take_no_room():
    file = os.open("sparse", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, 64 << 20)
    for at in (0, 20 << 20, 50 << 20):
        os.pwrite(file, b"d" * 65536, at)
    found = []
    for round in range(2):
        want(os.fstat(file).st_blocks * 512 < 1 << 20 or round == 0, "st_blocks %d", os.fstat(file).st_blocks)
        found = [os.lseek(file, at, whence) for at, whence in (
            (0, os.SEEK_HOLE), (65536, os.SEEK_DATA), (20 << 20, os.SEEK_HOLE), (64 << 20, os.SEEK_END))]
        os.fsync(file)
    want(found == [65536, 20 << 20, (20 << 20) + 65536, 128 << 20], "holes at %r", found)
    refused(errno.ENXIO, os.lseek, file, 51 << 20, os.SEEK_DATA)
    os.close(file)


@check
def everything_can_be_synced():
    os.mkdir("base")
    directory, file = os.open("base", os.O_RDONLY), os.open("base/f", os.O_CREAT | os.O_RDWR)
    for flags in (os.O_SYNC, os.O_DSYNC):
        write("base/s", b"x" * 5000, flags)
    os.posix_fallocate(file, 0, 1 << 20), os.pwrite(file, b"data", 0)
    for descriptor in (file, directory):
        os.fsync(descriptor), os.fdatasync(descriptor)
    want(libc.syncfs(file) == 0 and libc.sync_file_range(file, 0, 0, 7) == 0, "syncfs, sync_file_range")
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.unlink("base/f"), os.unlink("base/s"), os.rmdir("base")
    os.fsync(file), os.fsync(directory)
    want(os.pread(file, 4, 0) == b"data", "an unlinked file after fsync")
    os.close(file), os.close(directory)


@check
def locks_between_processes():
    write("lock")
    file = os.open("lock", os.O_RDWR)

    def other(call, kind):
        mine = os.open("lock", os.O_RDWR)
        call(mine, kind | fcntl.LOCK_NB)
    for call in (fcntl.flock, fcntl.lockf):
        call(file, fcntl.LOCK_EX)
        want(in_child(lambda: other(call, fcntl.LOCK_EX)) in (errno.EAGAIN, errno.EACCES), "%s", call)
        call(file, fcntl.LOCK_UN)
        want(in_child(lambda: other(call, fcntl.LOCK_EX)) == 0, "%s after unlocking", call)
    os.close(file)


@check
def programs_run():
    script = b"#!/bin/sh\necho run\n"
    write("script", script), os.chmod("script", 0o755)
    want(os.popen("./script").read() == "run\n", "a script")
    write("sleep", read("/bin/sleep")), os.chmod("sleep", 0o755)
    child = os.spawnv(os.P_NOWAIT, "./sleep", ["sleep", "30"])
    time.sleep(0.1)
    refused(errno.ETXTBSY, write, "sleep", b"x")
    write("new", script), os.chmod("new", 0o755), os.rename("new", "sleep")
    os.kill(child, signal.SIGKILL), os.waitpid(child, 0)
    os.chmod("script", 0o644)
    want(in_child(lambda: os.execv("./script", ["script"])) == errno.EACCES, "0644 runs")


# --- attributes ----------------------------------------------------------------------------------

@check
def owners_of_new_objects():
    for umask, mode in ((0, 0o777), (0o22, 0o755), (0o77, 0o700)):
        os.umask(umask), os.mkdir("m%o" % umask, 0o777)
        want(stat.S_IMODE(os.stat("m%o" % umask).st_mode) == mode, "umask %o", umask)
    os.umask(0o22)
    os.mkdir("group"), os.chown("group", 0, 54321), os.chmod("group", 0o2777)

    def fill():
        os.chdir("group")
        write("f"), os.mkdir("d"), os.symlink("x", "l"), os.mkfifo("p")
    want(in_child(fill, 12345) == 0, "a plain user in a set-gid directory")
    for name in "fdlp":
        found = os.lstat("group/" + name)
        want((found.st_uid, found.st_gid) == (12345, 54321), "%s belongs to %d:%d", name, found.st_uid, found.st_gid)
    want(stat.S_IMODE(os.stat("group/d").st_mode) == 0o2755, "set-gid is handed down to directories")
    write("many", b"x")
    os.chown("many", 4294967294, 70001), os.chown("many", -1, -1)
    want(os.stat("many").st_uid == 4294967294 and os.stat("many").st_gid == 70001, "large ids")


@check
def sticky_directories():
    os.mkdir("tmp"), os.chown("tmp", 11111, 11111), os.chmod("tmp", 0o1777)
    for name in "abcd":
        want(in_child(lambda: write("tmp/" + name), 12345) == 0, "a user's own file")
    denied = (errno.EPERM, errno.EACCES)
    for what, call in (("unlink", lambda: os.unlink("tmp/a")), ("rename", lambda: os.rename("tmp/a", "tmp/x")),
                       ("replace", lambda: (write("tmp/mine"), os.rename("tmp/mine", "tmp/a")))):
        want(in_child(call, 22222) in denied, "another user's %s", what)
    want(in_child(lambda: os.rename("tmp/b", "tmp/b2"), 12345) == 0, "the owner's rename")
    want(in_child(lambda: os.unlink("tmp/c"), 11111) == 0, "the directory's owner")


@check
def modes_of_new_files_bind_later_opens():
    os.chmod(".", 0o777)

    def own():
        file = os.open("ro", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444)
        if os.write(file, b"data") != 4:
            os._exit(254)
        os.close(file)
        os.open("ro", os.O_WRONLY)
    want(in_child(own, 12345) == errno.EACCES and read("ro") == b"data", "a file created read-only")
    want(in_child(lambda: os.mknod("null", stat.S_IFCHR | 0o600, os.makedev(1, 3)), 12345) == errno.EPERM,
         "a plain user made a device")


@check
def flags_of_inodes():
    GET, SET, IMMUTABLE, APPEND = 0x80086601, 0x40086602, 0x10, 0x20

    def ioctl(name, command, flags):
        file = os.open(name, os.O_RDONLY)
        try:
            return struct.unpack("L", fcntl.ioctl(file, command, struct.pack("L", flags)))[0]
        finally:
            os.close(file)

    def set_flag(name, flag):
        ioctl(name, SET, ioctl(name, GET, 0) & ~(IMMUTABLE | APPEND) | flag)
    write("file", b"text"), os.mkdir("dir"), write("dir/in")
    try:
        set_flag("file", IMMUTABLE), set_flag("dir", IMMUTABLE)
    except OSError as problem:
        want(problem.errno in (errno.ENOTTY, errno.EOPNOTSUPP), "chattr: %s", problem)
        return
    try:
        for call, arguments in ((write, ("file", b"x")), (os.unlink, ("file",)), (os.chmod, ("file", 0o600)),
                                (os.rename, ("file", "other")), (os.link, ("file", "other")),
                                (write, ("dir/new",)), (os.unlink, ("dir/in",)), (os.utime, ("file", (1, 1))),
                                (os.setxattr, ("file", "user.a", b"1"))):
            if call != os.setxattr or has_xattrs:
                refused((errno.EPERM, errno.EACCES), call, *arguments)
        set_flag("file", APPEND), set_flag("dir", APPEND)
        write("file", b"more", os.O_APPEND), write("dir/new"), os.utime("file")
        for call, arguments in ((write, ("file", b"x")), (write, ("file", b"x", os.O_APPEND | os.O_TRUNC)),
                                (os.truncate, ("file", 1)), (os.unlink, ("file",)), (os.unlink, ("dir/in",)),
                                (os.rename, ("dir/in", "dir/out"))):
            refused(errno.EPERM, call, *arguments)
        want(read("file") == b"textmore", "an append-only file")
        refused(errno.EPERM, os.utime, "file", (1, 1))
    finally:
        set_flag("file", 0), set_flag("dir", 0)
    for flag in 0x1, 0x2, 0x4, 0x8, 0x40, 0x80, 0x8000, 0x400000, 0x800000:  # chattr +suScdAtmC
        try:
            set_flag("file", flag)
        except OSError as problem:
            want(problem.errno == errno.EOPNOTSUPP, "flag 0x%x: %s", flag, problem)
        else:
            want(ioctl("file", GET, 0) & flag, "flag 0x%x was accepted, and is not kept", flag)
    os.unlink("file")


@check
def times_that_are_set_stay():
    want_ns = 1579062896 * NS + (123456789 if int(facts["ns"]) else 0)
    file = os.open("a", os.O_CREAT | os.O_RDWR)
    os.write(file, b"x" * 100000), os.utime(file, ns=(want_ns, want_ns)), os.close(file)
    file = os.open("b", os.O_CREAT | os.O_RDWR)
    os.write(file, b"x" * 9000)
    mapping = mmap.mmap(file, 9000)
    mapping[5:9] = b"mmap"
    mapping.flush(), os.utime("b", ns=(want_ns, want_ns)), mapping.close(), os.close(file)
    os.chmod("a", 0o600), os.rename("a", "c"), os.link("c", "d"), setxattr("c", "user.x", b"1")
    os.sync()
    for name in "bcd":
        want(os.stat(name).st_mtime_ns == want_ns, "%s: %d", name, os.stat(name).st_mtime_ns)


@check
def extended_attributes_at_their_limits():
    write("f")
    setxattr("f", "user.a", b"hello")
    if not has_xattrs:
        want(os.listxattr("f") == [], "names where there can be none: %r", os.listxattr("f"))
        return
    os.setxattr("f", "user.empty", b"")
    os.setxattr("f", "user." + "n" * 250, bytes(range(256)))
    want(sorted(os.listxattr("f")) == ["user.a", "user.empty", "user." + "n" * 250], "names: %r", os.listxattr("f"))
    buffer = ctypes.create_string_buffer(8)
    for call, arguments, expected in ((libc.getxattr, (b"f", b"user.a", None, 0), 5),
                                      (libc.getxattr, (b"f", b"user.a", buffer, 3), -errno.ERANGE),
                                      (libc.getxattr, (b"f", b"user.b", buffer, 8), -errno.ENODATA),
                                      (libc.listxattr, (b"f", buffer, 8), -errno.ERANGE)):
        result = call(*arguments)
        want((result if result >= 0 else -ctypes.get_errno()) == expected, "%r", arguments)
    for code, name, value, flags in ((errno.EEXIST, "user.a", b"x", os.XATTR_CREATE),
                                     (errno.ENODATA, "user.b", b"x", os.XATTR_REPLACE),
                                     (errno.ERANGE, "user." + "n" * 251, b"x", 0),
                                     (errno.EOPNOTSUPP, "nowhere.a", b"x", 0),
                                     (errno.E2BIG, "user.b", b"x" * 65537, 0)):
        refused(code, os.setxattr, "f", name, value, flags)
    os.setxattr("f", "trusted.t", b"T")
    try:
        for i in range(3000):
            os.setxattr("f", "user.k%d" % i, b"x" * 100)
    except OSError as problem:
        want(problem.errno == errno.ENOSPC, "no more room: %s", problem)
    want(os.getxattr("f", "user.a") == b"hello", "an attribute set before")
    os.symlink("f", "l"), os.chmod("f", 0o644)
    refused(errno.EPERM, os.setxattr, "l", "user.x", b"1", follow_symlinks=False)
    want(in_child(lambda: "trusted.t" in os.listxattr("f") and os._exit(1), 12345) == 0, "trusted is shown to all")
    want(in_child(lambda: os.getxattr("f", "trusted.t"), 12345) in (errno.ENODATA, errno.EPERM), "trusted is read")
    want(in_child(lambda: os.setxattr("f", "user.a", b""), 12345) == errno.EACCES, "0644 lets others set")


@check
def numbers_of_the_filesystem():
    def usage():
        os.sync()
        return os.statvfs(".")
    before = usage()
    want(before.f_blocks >= before.f_bfree >= before.f_bavail > 0, "%r", before)
    write("f", os.urandom(8 << 20))
    after = usage()
    used = (before.f_bfree - after.f_bfree) * before.f_frsize
    segment = int(facts["segment"])
    want(8 << 20 <= used + segment and used <= (8 << 20) + 200000 + segment, "8 MiB take %d bytes", used)
    want(before.f_bfree - after.f_bfree == before.f_bavail - after.f_bavail, "f_bavail goes its own way")
    want(after.f_blocks == before.f_blocks, "f_blocks changes")
    want(before.f_files == 0 or before.f_ffree - after.f_ffree == 1, "one file, %d inodes",
         before.f_ffree - after.f_ffree)


# --- what must be there after a remount ----------------------------------------------------------

def kept_time(ns):
    low, high = int(facts["time_min"]), int(facts["time_max"])
    if ns // NS < low:
        return low * NS
    if ns // NS > high:
        return high * NS
    return ns if int(facts["ns"]) else ns // NS * NS


TIMES = [-(1 << 31) * NS, -NS - 1, -1, 0, NS * 10 ** 9 + 999999999, (1 << 31) * NS - 1, (1 << 31) * NS,
         (1 << 32) * NS + 5, 15032385535 * NS, 253402300800 * NS]
DEVICES = [(stat.S_IFCHR, 1, 3), (stat.S_IFCHR, 255, 255), (stat.S_IFCHR, 256, 256), (stat.S_IFCHR, 4095, 1048575),
           (stat.S_IFBLK, 8, 17), (stat.S_IFBLK, 259, 65537)]


@check
def kept():
    for i, ns in enumerate(TIMES):
        write("time%d" % i), os.utime("time%d" % i, ns=(ns, ns))
    for i, (kind, major, minor) in enumerate(DEVICES):
        os.mknod("device%d" % i, kind | 0o640, os.makedev(major, minor))
    os.mkfifo("fifo", 0o600)
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind("socket"), server.listen(1), client.connect("socket"), client.send(b"hi")
    want(server.accept()[0].recv(9) == b"hi", "a socket")
    if os.fork() == 0:
        write("fifo", b"through")
        os._exit(0)
    want(read("fifo") == b"through", "a FIFO")
    os.wait()
    write("owned"), os.chown("owned", 70000, 4294967294), os.chmod("owned", 0o6750), os.link("owned", "second")
    setxattr("owned", "user.k", b"v" * 500), setxattr("owned", "security.k", b"s")
    os.symlink("s" * 300, "slow"), os.symlink("fast", "fast-link")
    os.mkdir("dir"), os.chmod("dir", 0o1777), os.utime("dir", ns=(3 * NS, 4 * NS))
    write("data", b"0123456789" * 100000)
    verify_kept()
    numbers = {name: os.lstat(name).st_ino for name in os.listdir(".")}
    with open("inodes", "w") as file:
        json.dump(numbers, file)


def verify_kept():
    for i, ns in enumerate(TIMES):
        found = os.stat("time%d" % i).st_mtime_ns
        want(found == kept_time(ns), "time %d is kept as %d", ns, found)
    for i, (kind, major, minor) in enumerate(DEVICES):
        found = os.lstat("device%d" % i)
        want((found.st_mode, found.st_rdev) == (kind | 0o640, os.makedev(major, minor)), "device %d:%d", major, minor)
    want(stat.S_ISFIFO(os.lstat("fifo").st_mode) and stat.S_ISSOCK(os.lstat("socket").st_mode), "FIFO, socket")
    found = os.stat("owned")
    want((found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), found.st_nlink) == (70000, 4294967294, 0o6750, 2),
         "owned: %r", found)
    if has_xattrs:
        want(os.getxattr("owned", "user.k") == b"v" * 500 and os.getxattr("owned", "security.k") == b"s", "attributes")
    want(os.readlink("slow") == "s" * 300 and os.readlink("fast-link") == "fast", "links")
    want(stat.S_IMODE(os.stat("dir").st_mode) == 0o1777 and os.stat("dir").st_mtime == 4, "directory")
    want(read("data") == b"0123456789" * 100000, "data")


def verify():
    os.chdir(root + "/kept")
    verify_kept()
    with open("inodes") as file:
        for name, number in json.load(file).items():
            want(os.lstat(name).st_ino == number, "%s has another inode number", name)


def read_only():
    os.chdir(root + "/kept")
    verify_kept()
    for call, arguments in ((write, ("new",)), (write, ("data", b"x")), (os.truncate, ("data", 0)),
                            (os.unlink, ("data",)), (os.mkdir, ("new",)), (os.rmdir, ("dir",)),
                            (os.rename, ("data", "new")), (os.link, ("data", "new")), (os.symlink, ("x", "new")),
                            (os.chmod, ("data", 0o600)), (os.chown, ("data", 1, 1)), (os.utime, ("data", (1, 1))),
                            (os.mkfifo, ("new",)), (os.setxattr, ("data", "user.a", b"1")),
                            (os.removexattr, ("owned", "user.k"))):
        refused(errno.EROFS, call, *arguments)
    want(os.statvfs(".").f_flag & os.ST_RDONLY and not os.access("data", os.W_OK), "it does not look read-only")


def run(function, directory=None):
    try:
        if directory:
            os.mkdir(directory)
            os.chdir(directory)
        function()
    except (Wrong, OSError) as problem:
        line = sys.exc_info()[2].tb_next.tb_lineno
        failures.append("%s (line %d): %s" % (function.__name__, line, problem))
    os.umask(0o22)


if phase == "make":
    for function in checks:
        start = time.monotonic()
        run(function, os.path.join(root, function.__name__))
        print("%6.2f s  %s" % (time.monotonic() - start, function.__name__))
else:
    run({"verify": verify, "read-only": read_only}[phase])
for failure in failures:
    print("FAIL: " + failure)
sys.exit(bool(failures))

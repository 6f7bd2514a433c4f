# SPDX-License-Identifier: GPL-2.0-or-later
# Many processes at once on one mount, each at something else; see mount_threads.sh.
#
#   mount_threads.py DIRECTORY SECONDS SEED
#
# Writers that fsync files of their own check what they read; others change shared files, whose
# contents nobody can foretell. Ends with 1 when a call fails that must not, or bytes are wrong.
import ctypes, errno, multiprocessing, os, random, sys, time

root, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
deadline = time.monotonic() + seconds
libc = ctypes.CDLL(None, use_errno=True)
SHARED = ["shared%d" % i for i in range(4)]
# Names come and go under those who use them; the volume may be full for a moment.
EXPECTED = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOSPC, errno.ENODATA, errno.ENOTSUP)


def path(*names):
    return os.path.join(root, *names)


def fallocate(descriptor, mode, offset, length):
    offset, length = ctypes.c_long(offset), ctypes.c_long(length)
    if libc.fallocate(descriptor, mode, offset, length):
        raise OSError(ctypes.get_errno(), "fallocate")


def durable(chance, number):
    """Its own file: what was written is there, whatever others do meanwhile."""
    length = chance.randrange(1, 60000)
    contents = bytes([number]) * length
    with open(path("own%d" % number), "wb", buffering=0) as file:
        file.write(contents)
        (os.fsync if chance.random() < 0.5 else os.fdatasync)(file.fileno())
    with open(path("own%d" % number), "rb") as file:
        if file.read() != contents:
            sys.exit("own%d: not the bytes that were written" % number)


def overwrite(chance, number):
    with open(path(chance.choice(SHARED)), "r+b", buffering=0) as file:
        file.seek(chance.randrange(300000))
        file.write(os.urandom(chance.randrange(1, 20000)))
        if chance.random() < 0.3:
            os.fdatasync(file.fileno())


def cut(chance, number):
    name = path(chance.choice(SHARED))
    os.truncate(name, chance.randrange(400000))
    with open(name, "r+b", buffering=0) as file:
        mode = chance.choice([0, 1, 3])  # allocate; behind the end, too; punch a hole
        fallocate(file.fileno(), mode, chance.randrange(300000), chance.randrange(1, 50000))


def read(chance, number):
    with open(path(chance.choice(SHARED)), "rb") as file:
        file.seek(chance.randrange(200000))
        file.read(100000)
    os.stat(path(chance.choice(SHARED)))


def rename(chance, number):
    one, two = (path("dir%d" % chance.randrange(3), "name%d" % chance.randrange(6)) for _ in "ab")
    act = chance.randrange(5)
    if act == 0:
        os.rename(one, two)
    elif act == 1:
        os.unlink(one)
    elif act == 2:
        os.link(path(SHARED[0]), one)
    elif act == 3:
        os.symlink("x" * chance.randrange(1, 200), one)
    else:
        os.close(os.open(one, os.O_CREAT | os.O_WRONLY, 0o644))


def nameless(chance, number):
    """Files that are removed while in use."""
    name = path("going%d" % number)
    descriptor = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    os.write(descriptor, b"gone" * chance.randrange(1, 10000))
    os.unlink(name)
    os.fsync(descriptor)
    os.close(descriptor)


def ask(chance, number):
    os.statvfs(root)
    for name in ["."] + ["dir%d" % i for i in range(3)]:
        for entry in os.scandir(path(name)):
            entry.stat(follow_symlinks=False)
    os.getxattr(path(chance.choice(SHARED)), "user.colour")


def colour(chance, number):
    os.setxattr(path(chance.choice(SHARED)), "user.colour", b"r" * chance.randrange(1, 300))


def syncs(chance, number):
    time.sleep(0.05)
    descriptor = os.open(root, os.O_RDONLY)
    libc.syncfs(descriptor)
    os.fsync(descriptor)
    os.close(descriptor)


def work(job, number):
    chance = random.Random(seed * 100 + number)
    while time.monotonic() < deadline:
        try:
            job(chance, number)
        except OSError as problem:
            if problem.errno not in EXPECTED:
                sys.exit("%s: %s" % (job.__name__, problem))


for name in SHARED:
    open(path(name), "wb").close()
for i in range(3):
    os.mkdir(path("dir%d" % i))
jobs = [durable, durable, durable, overwrite, overwrite, cut, read, rename, rename, nameless, ask, colour, syncs]
workers = [multiprocessing.Process(target=work, args=(job, i)) for i, job in enumerate(jobs)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
sys.exit(any(worker.exitcode for worker in workers))

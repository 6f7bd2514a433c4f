# SPDX-License-Identifier: GPL-2.0-or-later
"""A program whose files outlive the server of its filesystem, or whose loss is noticed.

    kill_mounted.py write DIRECTORY LOG SEED    works until the filesystem is gone
    kill_mounted.py verify DIRECTORY LOG...     looks at what is there after a recovery, in pairs

It creates files, appends to them, renames them (over each other), removes and fsyncs them. The log
lies elsewhere: a line before each operation and a line after it. A file's bytes follow from the
number that it begins with, so that each one found can be checked.

What is asked of the recovered directory: it is as it was after one of the operations between the
last one that was durable and the last that was begun (so a rename shows the old state or the new
one); a file has at least the bytes that were fsynced; and no byte is another than was written there
(but zero behind what was fsynced, where a size went ahead of the data).
"""
import errno
import os
import random
import sys

PERIOD = 8191
HEADER = 16
FILES_MAX = 24
SIZE_MAX = 1 << 20  # so that the volume is never full
GONE = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.EBADF, errno.ENODEV}


def contents(number, start, end):
    """Bytes [start, end) of the file with this number."""
    period = f"{number:015d}\n".encode() + random.Random(number).randbytes(PERIOD - HEADER)
    repeated = period * ((end - start) // PERIOD + 2)
    return repeated[start % PERIOD :][: end - start]


class Files:
    """What a directory holds: names, the files behind them, and how long these are."""

    def __init__(self):
        self.names = {}  # name: number
        self.sizes = {}  # number: bytes written

    def apply(self, operation, name, argument):
        if operation == "create":
            self.names[name] = int(argument)
            self.sizes[int(argument)] = 0
        elif operation == "append":
            self.sizes[self.names[name]] += int(argument)
        elif operation == "rename":
            self.names[argument] = self.names.pop(name)
        elif operation == "unlink":
            del self.names[name]


def choose(files, rng, number):
    """The next operation: its name, a file name, and its argument."""
    names = sorted(files.names)
    new = f"f{rng.randrange(FILES_MAX)}"
    if not names or (new not in files.names and rng.random() < 0.2):
        return "create", new, str(number)
    name = rng.choice(names)
    if files.sizes[files.names[name]] > SIZE_MAX:
        return "unlink", name, "-"
    chance = rng.random()
    if chance < 0.45:
        return "append", name, str(rng.choice((1, 100, 4096, rng.randrange(1, 60000))))
    if chance < 0.6 and new != name:
        return "rename", name, new
    if chance < 0.65:
        return "unlink", name, "-"
    return ("fsync" if chance < 0.9 else "fdatasync"), name, "-"


def perform(directory, files, operation, name, argument):
    path = os.path.join(directory, name)
    if operation == "rename":
        os.rename(path, os.path.join(directory, argument))
    elif operation == "unlink":
        os.unlink(path)
    elif operation == "create":
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    else:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if operation == "append":
                number = files.names[name]
                data = contents(number, files.sizes[number], files.sizes[number] + int(argument))
                while data:  # a write that was cut short tells why when it is continued
                    data = data[os.write(fd, data) :]
            elif operation == "fsync":
                os.fsync(fd)
            else:
                os.fdatasync(fd)
        finally:
            os.close(fd)


def write(directory, log, seed):
    rng = random.Random(seed)
    files = Files()
    with open(log, "w", buffering=1) as lines:
        try:
            os.mkdir(directory)
        except OSError as error:
            if error.errno in GONE:
                return
            raise
        for number in range(1, 1 << 30):
            operation = choose(files, rng, number)
            lines.write(" ".join(("begin",) + operation) + "\n")
            try:
                perform(directory, files, *operation)
            except OSError as error:
                if error.errno in GONE:
                    return
                raise
            files.apply(*operation)
            lines.write("end\n")


def read_log(log):
    """The operations that were begun, and how many of them ended."""
    operations, ended = [], 0
    with open(log) as lines:
        for line in lines:
            words = line.split()
            if words[0] == "end":
                ended += 1
            else:
                operations.append(tuple(words[1:]))
    return operations, ended


class Promise:
    """What the log says must be there."""

    def __init__(self, operations, ended):
        self.durable = 0  # operations that have to be seen
        self.sizes = {}  # number: bytes that were fsynced
        self.states = [{}]  # the names after each operation
        self.written = {}
        files = Files()
        touched = {}
        for index, operation in enumerate(operations):
            kind, name, _ = operation
            number = files.names.get(name)
            files.apply(*operation)
            self.states.append(dict(files.names))
            if kind in ("fsync", "fdatasync"):
                if index < ended:
                    self.sizes[number] = files.sizes[number]
                    # Another fsync of it may find nothing to do, whatever happened to others.
                    if kind == "fsync":
                        self.durable = max(self.durable, touched[number] + 1)
            else:
                touched[files.names.get(name, number)] = index
        self.written = files.sizes


def check_file(path, number, promise):
    """What is wrong with it, or None."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < promise.sizes.get(number, 0):
        return f"{len(data)} bytes of the {promise.sizes[number]} that were fsynced"
    if len(data) > promise.written[number]:
        return f"{len(data)} bytes, only {promise.written[number]} were written"
    wanted = contents(number, 0, len(data))
    if data == wanted:
        return None
    for at, (got, want) in enumerate(zip(data, wanted)):
        if got != want and (got != 0 or at < promise.sizes.get(number, 0)):
            return f"byte {at} of {len(data)} is {got}, which nobody wrote"
    return None


def check_state(directory, found, state, promise):
    if found != set(state):
        return f"names {sorted(found ^ set(state))} do not fit"
    for name, number in state.items():
        wrong = check_file(os.path.join(directory, name), number, promise)
        if wrong:
            return f"{name} (file {number}): {wrong}"
    return None


def verify(directory, log):
    operations, ended = read_log(log)
    promise = Promise(operations, ended)
    if not os.path.isdir(directory):
        return [] if promise.durable == 0 else ["the directory is missing"]
    found = set(os.listdir(directory))
    wrong = []
    for index in range(promise.durable, len(promise.states)):
        wrong.append(f"after operation {index}: "
                     + (check_state(directory, found, promise.states[index], promise) or ""))
        if wrong[-1].endswith(": "):
            return []
    return wrong


def main():
    if sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return 0
    code = 0
    for directory, log in zip(sys.argv[2::2], sys.argv[3::2]):
        wrong = verify(directory, log)
        if wrong:
            wrong.sort(key=lambda line: "do not fit" in line)  # the nearest ones first
            print(f"{directory} is as it was at no time since the last fsync:", file=sys.stderr)
            print("\n".join(wrong[:8]), file=sys.stderr)
            code = 1
    return code


sys.exit(main())

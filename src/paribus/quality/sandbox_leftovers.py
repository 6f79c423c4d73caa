"""Attacks over two programs, as data: the first leaves something behind, the second looks for it in the same sandbox.

A program that finds what an earlier test computed passes tests that it should fail, and one answer would meet another.
"""

from __future__ import annotations

from paribus.quality.attack import attack

_CALLS = """
mark, key = facts["digits"].encode(), int(facts["digits"])
calls = {"x86_64": (240, 248, 250), "aarch64": (180, 217, 219)}[os.uname().machine]
libc.syscall.restype = ctypes.c_long
def call(number, *words):
    return libc.syscall(number, *words)
"""

_FOLDERS = """
import fcntl
def flags(place, *new):
    number = os.open(place, os.O_RDONLY)
    return fcntl.ioctl(number, 0x40086602, new[0]) if new else fcntl.ioctl(number, 0x80086601, bytes(8))
seconds = int(facts["digits"])
for place in ("/tmp", "/dev/shm"):
"""

_PORT = """
port = 20000 + int(facts["digits"]) % 10000
"""

LEFTOVERS = (
    attack(
        "leave-in-memory",
        "leaves shared memory, a semaphore and a message for the next program",
        f"""{_CALLS}
libc.shmat.restype = ctypes.c_void_p
def share():
    number = libc.shmget(key, 4096, 0o1666)
    if number >= 0: ctypes.memmove(libc.shmat(number, None, 0), mark, len(mark))
share()
libc.semget(key, 1, 0o1666)
libc.msgget(key, 0o1666)
call(calls[0], b"paribus", os.O_CREAT | os.O_RDWR, 0o600, None)
""",
        then=f"""{_CALLS}
attempt("shared memory", lambda: libc.shmget(key, 0, 0) >= 0)
attempt("semaphore", lambda: libc.semget(key, 0, 0) >= 0)
attempt("message", lambda: libc.msgget(key, 0) >= 0)
attempt("queue", lambda: call(calls[0], b"paribus", os.O_RDONLY, 0, None) >= 0)
for kind in ("shm", "sem", "msg"):
    attempt("list of " + kind, lambda: open("/proc/sysvipc/" + kind).read().splitlines()[1:] or None)
""",
    ),
    attack(
        "leave-keys",
        "leaves a key for the next program",
        f"""{_CALLS}
for ring in (-3, -4, -5):
    call(calls[1], b"user", mark, mark, len(mark), ctypes.c_int(ring))
""",
        then=f"""{_CALLS}
for ring in (-3, -4, -5):
    attempt("key in " + str(ring), lambda: call(calls[2], 10, ctypes.c_int(ring), b"user", mark, 0) > 0)
""",
    ),
    attack(
        "leave-marks",
        "marks the folders that outlive it",
        f"""{_FOLDERS}
    for change in (
        lambda: os.setxattr(place, "user.mark", facts["digits"].encode()),
        lambda: flags(place, (64).to_bytes(8, sys.byteorder)),
        lambda: os.utime(place, (seconds, seconds)),
        lambda: os.chmod(place, 0o751),
    ):
        try: change()
        except OSError: pass
""",
        then=f"""{_FOLDERS}
    about = os.stat(place)
    attempt("mark on " + place, lambda: os.listxattr(place) or None)
    attempt("flag of " + place, lambda: flags(place)[0] & 64 or None)
    attempt("time of " + place, lambda: seconds in (int(about.st_atime), int(about.st_mtime)))
    attempt("mode of " + place, lambda: stat.S_IMODE(about.st_mode) == 0o751)
""",
    ),
    attack(
        "leave-limits",
        "changes limits and priority of the process that runs it, which the next program inherits",
        """
import resource
above = (1, os.getppid())
number = int(facts["digits"])
for change in (
    lambda pid: resource.prlimit(pid, resource.RLIMIT_RSS, (number, number)),
    lambda pid: os.setpriority(os.PRIO_PROCESS, pid, min(19, os.getpriority(os.PRIO_PROCESS, 0) + 1)),
    lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
):
    for pid in above:
        try: change(pid)
        except OSError: pass
""",
        then="""
import resource
def number_of(pid):
    return int(facts["digits"]) == resource.prlimit(pid, resource.RLIMIT_RSS)[0]
for pid in (0, 1, os.getppid()):
    attempt("limit of " + str(pid), lambda: number_of(pid))
    found = [os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), sorted(os.sched_getaffinity(pid))]
    attempt("schedule of " + str(pid), lambda: found != facts["schedule"] and found)
""",
    ),
    attack(
        "leave-ports",
        "leaves a used port and counted packets for the next program",
        f"""{_PORT}
def use():
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", port)); server.listen()
        client.connect(("127.0.0.1", port))
        client.close(); server.accept()[0].close()
def count():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(100): sender.sendto(b"x", ("127.0.0.1", port))
for step in (use, count):
    try: step()
    except OSError: pass
""",
        then=f"""{_PORT}
attempt("port", lambda: f":{{port:04X}}" in open("/proc/net/tcp").read())
attempt("a ring that makes sockets", lambda: libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0)
attempt("packets", lambda: int(open("/proc/net/dev").read().rpartition("lo:")[2].split()[1]) >= 100)
""",
    ),
)

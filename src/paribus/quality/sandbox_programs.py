"""Hostile programs for `paribus sandbox test`, as data. Each runs inside the sandbox only; `attack` says what one is."""

from __future__ import annotations

from paribus.quality.attack import Attack, attack
from paribus.quality.sandbox_leftovers import LEFTOVERS

__all__ = ["ATTACKS", "Attack"]

ATTACKS = (
    attack(
        "network-loopback",
        "connects to a server on this machine",
        """
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2); s.connect(address); return s.recv(64)
attempt("loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", facts["port"])))
attempt("abstract socket", lambda: connect(socket.AF_UNIX, "\\0" + facts["abstract"]))
""",
    ),
    attack(
        "network-outside",
        "finds an interface, a route or a name server",
        """
names = [line.partition(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
if names != ["lo"] and names: print("BREACH interfaces", names)
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 9)); return s.getsockname()
attempt("route", udp)
attempt("raw socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
attempt("name server", lambda: socket.gethostbyname("example.com"))
""",
    ),
    attack(
        "host-write",
        "writes to this machine's files",
        """
for place in [facts["secret"], facts["folder"] + "/new", "/usr/bin/env", "/etc/passwd", "/x", "/box/x",
              "/box/inner.py", os.__file__, "/dev/x"]:
    attempt("write " + place, lambda: open(place, "a"))
for folder in ("/usr", "/lib", "/bin", "/", "/box", os.path.dirname(os.__file__), "/etc", "/dev", "/proc"):
    def make():
        os.mkdir(folder + "/paribus-sandbox-test")
        os.rmdir(folder + "/paribus-sandbox-test")
        return True
    attempt("mkdir in " + folder, make)
attempt("chmod", lambda: os.chmod("/usr/bin/env", stat.S_IMODE(os.stat("/usr/bin/env").st_mode)) or True)
""",
    ),
    attack(
        "host-read",
        "reads private files of this machine",
        """
for place in [facts["secret"], facts["folder"], "/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/srv", "/opt",
              "/proc/1/root" + facts["secret"], "/proc/self/root" + facts["secret"], "/proc/1/cwd/..", "/run", "/mnt"]:
    attempt("read " + place, lambda: (os.listdir(place) if os.path.isdir(place) else open(place).read(200)) or None
            if not place.endswith("..") else (set(os.listdir(place)) - set(os.listdir("/")) or None))
""",
    ),
    attack(
        "secrets-environment",
        "looks for secrets in environment variables",
        """
known = {"PATH", "HOME", "LANG", "TMPDIR", "PWD", "LC_CTYPE", "SHLVL", "_", "LD_LIBRARY_PATH"}
known |= {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
more = sorted(set(os.environ) - known)
if more: print("BREACH variables", more)
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    attempt("environ of " + pid, lambda: facts["mark"].encode() in open(f"/proc/{pid}/environ", "rb").read())
    attempt("secret variable of " + pid, lambda: b"PARIBUS_SECRET" in open(f"/proc/{pid}/environ", "rb").read())
""",
    ),
    attack(
        "processes",
        "sees other processes",
        """
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
    attempt("process " + str(pid), lambda: facts["mark"].encode() in open(f"/proc/{pid}/cmdline", "rb").read())
count = len([p for p in os.listdir("/proc") if p.isdigit()])
if count > 6: print("BREACH sees", count, "processes")
""",
    ),
    attack(
        "signal",
        "signals the process that started it, and everything else",
        """
attempt("signal the host's process", lambda: os.kill(facts["pid"], 0) or True)
attempt("stop the host's process", lambda: os.kill(facts["pid"], signal.SIGSTOP) or True)
print("tried"); sys.stdout.flush(); time.sleep(0.2)
os.kill(-1, signal.SIGKILL)
""",
        "lost",
        "memory",
        "error",
        "timeout",
    ),
    attack(
        "stop-the-runner",
        "stops the process that would enforce its time limit, then runs on",
        """
print("tried"); sys.stdout.flush()
os.kill(os.getppid(), signal.SIGSTOP)
while True: pass
""",
        "timeout",
        "lost",
    ),
    attack(
        "memory",
        "takes 3 GB",
        """
held = []
try:
    for _ in range(48):
        held.append(bytearray(b"x") * (64 << 20))
        if len(held) * (64 << 20) > 2 * facts["memory"]:
            print("BREACH took", len(held) * (64 << 20))
            sys.stdout.flush()
except MemoryError:
    print("limited")
del held
""",
        "memory",
        "lost",
        "error",
        "timeout",
    ),
    attack(
        "memory-of-many",
        "takes 3 GB over many processes",
        """
for _ in range(24):
    if os.fork() == 0:
        try:
            x = bytearray(b"x") * (128 << 20)
            time.sleep(3)
        finally:
            os._exit(0)
until = time.monotonic() + 1.5
while time.monotonic() < until:
    time.sleep(0.02)
    ended, status = os.waitpid(-1, os.WNOHANG)
    if ended and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        print("limited"); sys.stdout.flush()
        break
held = 0
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    try: held += int(open(f"/proc/{pid}/statm").read().split()[1]) * 4096
    except OSError: pass
print("held", held)
if held > 2 * facts["memory"]: print("BREACH resident", held)
""",
        "memory",
        "lost",
        "error",
        "timeout",
    ),
    attack(
        "fork-bomb",
        "starts processes without end",
        """
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        made += 1
except OSError:
    print("limited")
if made > 2 * facts["processes"]: print("BREACH", made, "processes")
""",
        "lost",
        "timeout",
    ),
    attack("cpu-loop", "never ends", "print('tried')\nsys.stdout.flush()\nwhile True: pass", "timeout"),
    attack(
        "sleep",
        "never ends, without using the CPU, deaf to signals",
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM): signal.signal(s, signal.SIG_IGN)\n"
        "print('tried')\nsys.stdout.flush()\nwhile True: time.sleep(60)",
        "timeout",
    ),
    attack(
        "daemon",
        "leaves a process behind",
        """
print("tried"); sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sleep", ["/bin/sleep", "31" + facts["digits"]])
    os._exit(0)
os.wait()
time.sleep(0.2)
""",
    ),
    attack(
        "mount",
        "mounts file systems",
        """
attempt("tmpfs", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
attempt("proc", lambda: libc.mount(b"proc", b"/tmp", b"proc", 0, None) == 0)
attempt("remount", lambda: libc.mount(b"none", b"/", None, 32, None) == 0)
attempt("umount", lambda: libc.umount2(b"/proc", 2) == 0)
attempt("chroot", lambda: os.chroot("/tmp") or True)
attempt("pivot_root", lambda: libc.syscall(155, b"/tmp", b"/tmp") == 0)
""",
    ),
    attack(
        "nested-namespaces",
        "makes namespaces of its own, where it would be root",
        """
for name, bit in {"user": 0x10000000, "net": 0x40000000, "mount": 0x20000, "pid": 0x20000000, "uts": 0x4000000}.items():
    attempt(name, lambda: libc.unshare(bit) == 0)
    attempt(name + " in a user namespace", lambda: libc.unshare(bit | 0x10000000) == 0)
attempt("sysctl", lambda: os.open("/proc/sys/user/max_user_namespaces", os.O_WRONLY) + 1)
""",
    ),
    attack(
        "become-root",
        "becomes another user or gains capabilities",
        """
attempt("setuid", lambda: os.setuid(0) or True)
attempt("setgid", lambda: os.setgid(0) or True)
attempt("setgroups", lambda: os.setgroups([0]) or True)
if os.getuid() != 65534: print("BREACH uid", os.getuid())
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
    if int(status[name], 16): print("BREACH", name, status[name].strip())
if status["NoNewPrivs"].strip() != "1": print("BREACH no_new_privs is off")
""",
    ),
    attack(
        "devices",
        "makes or opens devices",
        """
attempt("mknod", lambda: os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)) or True)
allowed = {"null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd", "core", "pts", "ptmx", "shm",
           "console"}
more = sorted(set(os.listdir("/dev")) - allowed)
if more: print("BREACH devices", more)
for name in ("null", "zero", "full", "random", "urandom", "tty"):  # this machine's own: no change is made to any
    mode = stat.S_IMODE(os.stat("/dev/" + name).st_mode)
    attempt("chmod " + name, lambda: os.chmod("/dev/" + name, mode) or True)
attempt("memory", lambda: open("/dev/mem", "rb").read(1))
attempt("terminal", lambda: open("/dev/tty", "rb", 0))
""",
    ),
    attack(
        "kernel",
        "changes the kernel's settings",
        """
# Opening for writing is proof enough; nothing is written, so that a sandbox that fails this leaves the kernel as it was.
for place in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname",
              "/proc/sys/kernel/randomize_va_space", "/proc/sys/net/ipv4/ip_forward", "/proc/1/oom_score_adj"):
    attempt("open for writing " + place, lambda: os.open(place, os.O_WRONLY) + 1)
attempt("hostname", lambda: libc.sethostname(os.uname().nodename.encode(), len(os.uname().nodename)) == 0)
attempt("cgroups", lambda: os.listdir("/sys/fs/cgroup"))
if os.uname().nodename == facts["host"]: print("BREACH hostname")
attempt("ctrl-alt-del", lambda: libc.reboot(0) == 0 or ctypes.get_errno() == 22)
""",
    ),
    attack(
        "trace",
        "traces other processes and reads their memory",
        """
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()] + [facts["pid"]]:
    if pid == os.getpid(): continue
    def memory():
        maps = [l.split() for l in open(f"/proc/{pid}/maps") if " rw" in l]
        with open(f"/proc/{pid}/mem", "rb", 0) as file:
            for words in maps:
                low, high = (int(x, 16) for x in words[0].split("-"))
                file.seek(low)
                if facts["half"].encode() + facts["other_half"].encode() in file.read(min(high - low, 64 << 20)): return True
    attempt("memory of " + str(pid), memory)
""",
    ),
    attack(
        "expected-output",
        "looks for the expected output in stack frames, objects and open files",
        """
import gc, re
form = re.compile("EXPECTED-" + "[0-9a-f]{32}")
seen = []
frame = sys._getframe()
while frame is not None:
    seen += [repr(v)[:100000] for v in list(frame.f_locals.values()) + list(frame.f_globals.values())]
    frame = frame.f_back
for thing in gc.get_objects():
    try: seen.append(repr(thing)[:5000])
    except BaseException: pass
for number in range(64):
    try: seen.append(os.read(os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_NONBLOCK), 65536).decode("latin-1"))
    except OSError: pass
for text in seen:
    for found in form.findall(text): print("BREACH", found)
""",
    ),
    attack(
        "open-files",
        "uses files that were left open",
        """
for number in range(3, 256):
    attempt("descriptor " + str(number), lambda: os.fstat(number) and os.readlink(f"/proc/self/fd/{number}")
            if "/proc" not in os.readlink(f"/proc/self/fd/{number}") else None)
""",
    ),
    attack(
        "huge-output",
        "prints without end",
        "print('tried')\nwhile True: os.write(1, b'x' * 65536)",
        "output",
        "timeout",
    ),
    attack(
        "huge-errors",
        "prints errors without end",
        "print('tried')\nsys.stdout.flush()\nwhile True: os.write(2, b'x' * 65536)",
        "timeout",
    ),
    attack(
        "fill-disk",
        "fills the disk",
        """
total = 0
for place in ("/tmp", "/dev/shm", "/dev"):
    try:
        for n in range(64):
            with open(f"{place}/fill{n}", "wb") as file:
                for _ in range(16): total += file.write(b"x" * (1 << 20)); file.flush()
    except OSError as error:
        if error.errno == 28: print("limited")
if total > 2 * facts["files"]: print("BREACH", total, "bytes")
""",
        "memory",
        "lost",
    ),
    attack(
        "links",
        "leaves links for the host to follow, and follows links out",
        """
for n, place in enumerate([facts["secret"], "/etc/shadow", "../../../../.." + facts["secret"], "/proc/1/root/etc/shadow"]):
    os.symlink(place, f"/tmp/link{n}")
    attempt("link to " + place, lambda: open(f"/tmp/link{n}").read(100) or None)
attempt("hard link", lambda: os.link("/usr/bin/env", "/tmp/env") or None)
def climb():
    handle = os.open("/", os.O_RDONLY)
    for _ in range(20): handle = os.open("..", os.O_RDONLY, dir_fd=handle)
    return (set(os.listdir(handle)) - {"usr", "lib", "lib64", "bin", "etc", "box", "proc", "dev", "tmp"}) or None
attempt("climb", climb)
""",
    ),
    attack(
        "terminal",
        "types into the terminal that started it",
        """
import fcntl
for number in (0, 1, 2):
    attempt("TIOCSTI", lambda: fcntl.ioctl(number, 0x5412, b"x") or True)
if os.getsid(0) == facts["session"]: print("BREACH session")
""",
    ),
    attack(
        "forge-report",
        "writes a made-up report into the runner's own channel",
        """
print("tried"); sys.stdout.flush()
import struct
fake = json.dumps({"status": "ok", "code": 0, "note": facts["mark"]}).encode()
frame = struct.pack(">I", len(fake)) + fake + struct.pack(">I", 6) + b"forged"
for number in range(3, 64):
    try:
        target = os.open(f"/proc/{os.getppid()}/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
        os.write(target, frame)
    except OSError:
        pass
""",
        "lost",
        "ok",
        "error",
    ),
    *LEFTOVERS,
)

"""A process that adopts orphans keeps none of a sandbox's, and takes no exit code from anybody."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, subprocess, sys, time
from pathlib import Path
from paribus.machine import guard
from paribus.quality.sandbox import Limits, sandboxed

def zombies():
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(int(entry))
    return found

guard.adopt_orphans()
other = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
while zombies() != [other.pid]:
    time.sleep(0.01)
limits = Limits(time_s=1, processes=8)
with sandboxed("print(input())", limits) as box:
    assert box.run(b"one").output == b"one\\n"
with sandboxed("import time; time.sleep(60)", limits) as box:
    assert box.run(b"").status == "timeout"
with sandboxed("print(input())", limits) as box:
    os.killpg(box._process.pid, 9)  # as a machine without memory does
    box._process.wait()
    assert box.run(b"two").status == "lost"
print(zombies() == [other.pid], other.wait())
"""


@pytest.mark.usefixtures("box")
def test_nothing_of_a_sandbox_stays_as_a_zombie() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True 7\n", done.stderr

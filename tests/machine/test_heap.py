"""Memory is given back, and only what is safe to give back."""

import mmap
import os
import sys
from pathlib import Path

import pytest

from paribus.machine.heap import _unchanged, give_back, let_go_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def resident_kb(path):
    held, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and not line.split()[0].endswith(":"):
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            held += int(line.split()[1])
    return held


@linux
def test_pages_of_a_file_that_was_read_leave_memory_and_come_back_when_touched(tmp_path):
    path = tmp_path / "tables"
    path.write_bytes(b"abcdefgh" * (1 << 19))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as tables:
        assert sum(tables[i] for i in range(0, len(tables), 4096)) > 0
        assert resident_kb(path) >= 4096
        let_go_of(path)
        assert resident_kb(path) < 1024
        assert tables[:8] == b"abcdefgh"


@linux
def test_pages_that_were_changed_stay_as_they_are(tmp_path):
    path = tmp_path / "tables"
    path.write_bytes(b"a" * (1 << 20))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE,
                                            prot=mmap.PROT_READ | mmap.PROT_WRITE) as tables:  # fmt: skip
        tables[5:8] = b"xyz"
        let_go_of(path)
        assert tables[:9] == b"aaaaaxyza"


def area(name, rights, anonymous):
    return f"7f00-7fff {rights} 00000000 fe:00 12 {' ' * 12}{name}\nRss: 8 kB\nAnonymous: {' ' * 8}{anonymous} kB\n"


def test_only_areas_of_this_file_that_cannot_be_written_and_hold_nothing_of_their_own_are_let_go():
    name = "/a folder/lib.so"
    areas = [area(name, "r--p", 0), area(name, "r-xp", 0), area(name, "r--p", 4), area(name, "rw-p", 0)]
    areas += [area("/a folder/lib.so.2", "r--p", 0), area("", "r--p", 0)]
    assert [len(list(_unchanged(text, name))) for text in areas] == [1, 1, 0, 0, 0, 0]


def test_a_file_that_is_not_mapped_and_freed_memory_are_no_trouble(tmp_path):
    before = os.getpid()
    let_go_of(tmp_path / "nothing")
    give_back()
    assert os.getpid() == before

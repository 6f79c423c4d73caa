"""Memory that this process holds and doesn't need: what was freed, and pages of files that were read once."""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_MADV_DONTNEED = 4
_AREA = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)")


def give_back() -> None:
    """Hand freed memory back to the system where the C library can (glibc's `malloc_trim`); elsewhere nothing."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def let_go_of(file: Path) -> None:
    """Let the pages of a mapped file (a library's tables, say) leave memory; Linux only.

    They are read from the file again when they are touched, so only pages that nobody changed are let go: areas that
    can't be written and hold nothing of their own. See madvise(2).
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for start, end in list(_unchanged(Path("/proc/self/smaps").read_text(), str(file))):
            library.madvise(start, end - start, _MADV_DONTNEED)


def _unchanged(areas: str, file: str) -> Iterator[tuple[int, int]]:
    """Start and end of a file's areas that can't be written and of which no page was changed (proc(5), smaps)."""
    area: tuple[int, int] | None = None
    for line in areas.splitlines():
        if head := _AREA.fullmatch(line):
            fits = head[4] == file and "w" not in head[3]
            area = (int(head[1], 16), int(head[2], 16)) if fits else None
        elif area and line.split() == ["Anonymous:", "0", "kB"]:
            yield area

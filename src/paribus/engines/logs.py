"""Engine logs: the end of one for an error, and what of one is kept with a start. Always scrubbed."""

from __future__ import annotations

import re
from pathlib import Path

from paribus.machine import scrub

_HEAD, _TAIL = 16_000, 32_000
_ERROR = re.compile(r"(?i)\b[a-z.]*(?:error|exception): |\bout of memory\b")
"""What a first error looks like. Engines of several processes end with the others' errors, far below their cause."""


def log_end(log: Path, lines: int = 12) -> str:
    """The end of an engine's log for an error, indented below it, scrubbed; before it the first error further up."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "its log can't be read"
    said = [line.rstrip()[:300] for line in scrub(text).splitlines() if line.strip()]
    kept = said[-lines:]
    first = next((line for line in said[:-lines] if _ERROR.search(line)), None)
    kept = [first, "...", *kept] if first else kept
    return "the end of its log:\n" + "\n".join(f"  | {line}" for line in kept) if kept else "its log is empty"


def last_words(log: Path, most: int = 200) -> str:
    """What an engine said in the end, on one line, scrubbed: its first error and its last line."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "its log can't be read"
    said = [" ".join(line.split()) for line in scrub(text).splitlines() if line.strip()]
    first = next((line for line in said if _ERROR.search(line)), None)
    words = dict.fromkeys(line[:most] for line in (first, *said[-1:]) if line)
    return " ... ".join(words) or "its log is empty"


def kept_log(log: Path, root: Path) -> str:
    """What is kept of an engine's log: its beginning (the loading) and its end, whole lines, scrubbed."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    if len(text) > _HEAD + _TAIL:
        head, tail = text[:_HEAD].rsplit("\n", 1)[0], text[-_TAIL:].split("\n", 1)[-1]
        text = f"{head}\n... {len(text) - len(head) - len(tail):,} characters left out ...\n{tail}"
    return scrub(text, root=root)

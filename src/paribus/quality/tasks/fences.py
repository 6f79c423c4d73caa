"""Fenced blocks of code in an answer, read the way models write them.

Line by line; the first that fits counts:

1. A fence at a line's beginning with nothing but a word behind it, or with Python's tag, opens a block, also where
   another was never closed: a fence with a tag closes nothing.
2. Inside a block, any other fence at a line's beginning closes it; words behind it are text. It must be as long as the
   opening one and indented by less than 4 more, or else it is part of the code (a docstring, say).
3. A line of text that ends in a fence with Python's tag opens a block ("Here it is: ```python").
4. Inside a block, a line of code that ends in a fence closes it behind that line.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Collection
from dataclasses import dataclass

_FENCE = re.compile(r"(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>.*)$")
_PYTHON = re.compile(r"[{.]*(?:lang(?:uage)?-)?(?:python|pypy|py)[\d.]*(?![\w+#-]).*", re.IGNORECASE)
_INDENT = 4
_DEFINITION = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Block:
    """A block. `tag`: the word behind its fence; `closed`: whether it ended before the text did; `begin`, `end`: where
    its lines stand in the text."""

    tag: str
    code: str
    closed: bool
    begin: int
    end: int

    @property
    def python(self) -> bool:
        """Whether it is marked as Python: `python`, `py3`, `python3.11`, `{.python}`, `python:main.py`."""
        return is_python(self.tag)


@dataclass(frozen=True)
class _Opened:
    fence: str
    indent: int
    tag: str
    begin: int


def is_python(tag: str) -> bool:
    """Whether a fence's word says Python. A console's log (`pycon`, `python-repl`) is no program."""
    return _PYTHON.fullmatch(tag) is not None


def is_program(code: str, names: Collection[str] = ()) -> bool:
    """Whether a text is Python that a solution could be.

    With `names` it must define one of them, as a class or a function. Without, it must define, import or read
    something: an example's output or a trace of variables (`input: 3`) may be Python too, but does none of that.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if names:
        return any(isinstance(node, _DEFINITION) and node.name in names for node in tree.body)
    return any(
        isinstance(node, _DEFINITION | ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("input", "open"))
        for node in ast.walk(tree)
    )


def blocks(text: str) -> list[Block]:
    """Every block of a text, in order."""
    found: list[Block] = []
    opened: _Opened | None = None
    lines: list[str] = []
    place = 0
    for line in text.split("\n"):
        begin, place = place, place + len(line) + 1
        opens = _opening(line, opened, place)
        tail = None if opens else _closing(line, opened)
        if opened and (opens or tail is not None):
            found.append(_block(opened, [*lines, tail] if tail else lines, begin, closed=True))
            opened = None
        elif opened:
            lines.append(line)
        if opens:
            opened, lines = opens, []
    return [*found, _block(opened, lines, len(text), closed=False)] if opened else found


def _opening(line: str, opened: _Opened | None, place: int) -> _Opened | None:
    """The block that a line opens, if it does."""
    match = _FENCE.match(line)
    if match:
        words = match["info"].split()
        if "`" in match["info"] or (opened and not _opens_within(match, words, opened)):
            return None
        return _Opened(match["fence"], len(match["indent"]), words[0].lower() if words else "", place)
    head, fence, tag = line.rpartition("```")
    words = tag.split()
    if not fence or len(words) != 1 or not is_python(words[0]) or (opened and _comment(line)):
        return None
    longer = len(head) - len(head.rstrip("`"))
    return _Opened(fence + "`" * longer, len(line) - len(line.lstrip()), words[0].lower(), place)


def _opens_within(match: re.Match[str], words: list[str], opened: _Opened) -> bool:
    """Whether a fence opens a block where another is open."""
    if words and is_python(words[0]):
        longer = len(match["fence"]) >= len(opened.fence) and len(match["indent"]) < opened.indent + _INDENT
        return longer or not is_python(opened.tag)
    return len(words) == 1 and _counts(match, opened)


def _closing(line: str, opened: _Opened | None) -> str | None:
    """The code before the fence of a line that closes the block; null where the line closes nothing."""
    if opened is None:
        return None
    match = _FENCE.match(line)
    if match:
        return "" if _counts(match, opened) else None
    code = line.rstrip()
    head = code.removesuffix(opened.fence)
    return head if head != code and "`" not in head and not _comment(line) else None


def _counts(match: re.Match[str], opened: _Opened) -> bool:
    """Whether a fence may close (or end) the open block."""
    return match["fence"].startswith(opened.fence) and len(match["indent"]) < opened.indent + _INDENT


def _comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _block(opened: _Opened, lines: list[str], end: int, *, closed: bool) -> Block:
    """A block; one that is indented as a whole (in a list, say) is moved to the left."""
    code = "\n".join(lines) + "\n"
    first = next((line for line in lines if line.strip()), "")
    return Block(opened.tag, textwrap.dedent(code) if first[:1].isspace() else code, closed, opened.begin, end)

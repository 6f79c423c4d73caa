"""What an attack on the sandbox is: a program that tries, and how one sees that it was contained.

A program reads facts of the host (a JSON object: paths, ports, process ids) from its standard input, prints `tried`
once it has really tried, and a line `BREACH ...` for everything that worked. Where the attack ends by being stopped,
`stopped` names the statuses that prove it. One that met the limit it is for, and saw that, prints `limited`.
"""

from __future__ import annotations

from dataclasses import dataclass

_START = """
import os, sys, json, socket, signal, ctypes, time, stat
facts = json.loads(sys.stdin.readline())
def attempt(what, function):
    try:
        result = function()
    except BaseException:
        return
    if result is not None and result is not False:
        print("BREACH", what, str(result)[:200])
libc = ctypes.CDLL(None, use_errno=True)
"""


@dataclass(frozen=True)
class Attack:
    """One attack: what it tries, its program, and the statuses that also count as contained.

    `then`: a second program, which runs in the same sandbox behind the first as long as that may be used again.
    """

    name: str
    title: str
    program: str
    stopped: tuple[str, ...] = ()
    then: str = ""


def attack(name: str, title: str, body: str, *stopped: str, then: str = "") -> Attack:
    """An attack whose programs have the helpers of `_START` before them, and say at their end that they tried."""
    return Attack(name, title, _whole(body), stopped, _whole(then) if then else "")


def _whole(body: str) -> str:
    return f"{_START}{body}\nprint('tried')\nsys.stdout.flush()\n"

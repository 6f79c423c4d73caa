"""Scrub logs and manifests: no host or user names, home folders, addresses, serials or keys.

What is replaced reads as a word in angle brackets (`<user>`, `<address>`), so a log stays legible.
"""

from __future__ import annotations

import contextlib
import getpass
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""Names of variables whose values are told to nobody."""

# Names that tell nothing and are also words or parts of programs: replaced inside paths only.
_COMMON = frozenset(
    {"root", "user", "admin", "ubuntu", "debian", "runner", "worker", "nobody", "guest", "test", "dev", "docker",
     "node", "app", "home", "localhost", "host", "linux", "vm", "server", "machine", "gpu", "cpu", "python", "paribus",
     "build", "data", "local", "default", "main", "model", "models"}
)  # fmt: skip

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 <key>"),
    (re.compile(r"\b(?:sk|pk|rk|hf|gh[opsu]|github_pat|xox[abp]|nvapi|gsk|AKIA)[-_]?[A-Za-z0-9_-]{16,}"), "<key>"),
    (
        re.compile(
            r"(?i)((?:api[_-]?key|access[_-]?token|auth[_-]?token|password|passwd|secret)[\"']?\s*[=:]\s*[\"']?)"
            r"[^\s\"',;&]{4,}"
        ),
        r"\1<key>",
    ),
    (re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s/@:]+(?::[^\s/@]*)?@", re.IGNORECASE), r"\1<user>@"),
    (re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<serial>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"(?i)(\bserial(?:[ _-]?(?:number|no))?[\"']?\s*[:=]\s*[\"']?)[\w-]{4,}"), r"\1<serial>"),
    (re.compile(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", re.IGNORECASE), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<mail>"),
    (re.compile(r"(?<![\w/])(/home|/Users|/export/home|/var/home)/[^/\s:\"'<>]+"), r"<home>"),
    (re.compile(r"(?<![\w/.])/(?:root)(?=[/\s:\"']|$)"), "<home>"),
    (re.compile(r"(?i)\b[a-z]:\\Users\\[^\\\s\"']+"), "<home>"),
)
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-fA-F:]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:%\w+)?(?![\w:])")


@dataclass(frozen=True)
class Owner:
    """What identifies this machine's owner: names, folders and secrets, the longest first."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    folders: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def here(cls, variables: Mapping[str, str] | None = None) -> Owner:
        """This process's machine, user and environment."""
        env = os.environ if variables is None else variables
        host = socket.gethostname()
        hosts = {host, host.split(".")[0], env.get("HOSTNAME", "")}
        users = {env.get("USER", ""), env.get("LOGNAME", ""), env.get("SUDO_USER", ""), env.get("USERNAME", "")}
        with contextlib.suppress(KeyError, OSError):  # a user id without a name, as in containers
            users.add(getpass.getuser())
        folders = [(str(Path.home()), "<home>")]
        if env.get("HOME"):
            folders.append((env["HOME"].rstrip("/"), "<home>"))
        secrets = {value for name, value in env.items() if SECRET_NAME.search(name) and len(value) >= 8}
        return cls(_longest(hosts), _longest(users), tuple(f for f in folders if len(f[0]) > 1), _longest(secrets))


def _longest(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted((name for name in names if len(name) >= 2), key=lambda name: (-len(name), name)))


@lru_cache(maxsize=1)
def _owner() -> Owner:
    return Owner.here()


def _own_address(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return address.is_loopback or address.is_unspecified


def _address(match: re.Match[str]) -> str:
    text = match.group().split("%")[0]
    if not any(letter.isdigit() for letter in text):
        return match.group()  # `a::b` is a name in C++ before it is an address
    try:
        return match.group() if _own_address(text) else "<address>"
    except ValueError:
        return match.group()


def _name(text: str, name: str, word: str) -> str:
    if name.lower() in _COMMON or len(name) < 3:
        return text
    return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", word, text)


def scrub(text: str, owner: Owner | None = None, root: Path | None = None) -> str:
    """The text without what would identify its owner; `root` (the repository) reads as `.`."""
    who = owner or _owner()
    for secret in who.secrets:
        text = text.replace(secret, "<key>")
    if root is not None and len(str(root.resolve())) > 1:
        text = re.sub(re.escape(str(root.resolve())) + r"(?![\w-])", ".", text)
    for folder, word in who.folders:
        text = re.sub(rf"(?<![\w/.]){re.escape(folder)}(?![\w-])", word, text)
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    text = _IPV4.sub(_address, text)
    text = _IPV6.sub(_address, text)
    for host in who.hosts:
        text = _name(text, host, "<host>")
    for user in who.users:
        text = _name(text, user, "<user>")
    return text


def scrub_value(value: Any, owner: Owner | None = None, root: Path | None = None) -> Any:
    """A JSON value with every string in it scrubbed (keys stay)."""
    if isinstance(value, str):
        return scrub(value, owner, root)
    if isinstance(value, dict):
        return {key: scrub_value(each, owner, root) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_value(each, owner, root) for each in value]
    return value

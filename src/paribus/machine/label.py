"""The machine's label: a name for one machine (or a pool of identical ones) that says nothing about its owner."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from paribus.conditions import EnvironmentFault, UsageError, is_slug
from paribus.machine.files import disk_faults, sync_folder

VARIABLE = "PARIBUS_MACHINE"
# No vowels and no look-alikes: a label never spells a word and is read aloud without doubt.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"


def machine_label(root: Path | None = None) -> str:
    """`PARIBUS_MACHINE`, else the label in `build/machine-label` below `root` (made once, at random, when missing).

    Raises `UsageError` when either isn't a slug.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return _checked(given, f"the variable {VARIABLE}")
    path = (root or Path.cwd()) / "build" / "machine-label"
    try:
        return _checked(path.read_text(encoding="ascii", errors="replace").strip(), str(path))
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise EnvironmentFault(f"can't read {path}: {error.strerror}") from error


def _checked(label: str, where: str) -> str:
    if not is_slug(label) or len(label) > 40:
        raise UsageError(
            f"{where} is {label!r}: a machine's label is lower-case letters and digits in words joined by hyphens"
        )
    return label


def _make(path: Path) -> str:
    """Make the label; when two processes try at once, both return the same one."""
    label = "m-" + "".join(secrets.choice(_LETTERS) for _ in range(6))
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".machine-label.", dir=path.parent)
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(label + "\n")
            os.fchmod(file.fileno(), 0o644)
        try:
            os.link(draft, path)
        except FileExistsError:
            label = _checked(path.read_text(encoding="ascii").strip(), str(path))
        finally:
            draft.unlink()
        sync_folder(path.parent)
    return label

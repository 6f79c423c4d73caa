"""Reading the catalog's YAML files; every fault becomes one sentence that names the file and the place in it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from paribus.conditions import UsageError

T = TypeVar("T", bound=BaseModel)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def one_sentence(error: ValueError | yaml.YAMLError) -> str:
    """The first fault of a validation in one sentence, and how many more there are."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    faults = error.errors()
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where + ': ' if where else ''}{first['msg']}{more}"


def read_yaml(path: Path, kind: type[T]) -> T:
    """One YAML file as the given type; a `UsageError` with file and place otherwise."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 (a safe loader, in C)
        return kind.model_validate(data)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read {path}: {error}") from error
    except (ValueError, yaml.YAMLError) as error:  # a ValueError: also a date or number that is none
        raise UsageError(f"{path}: {one_sentence(error)}") from error

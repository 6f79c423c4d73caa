"""Safe markup: text that strangers wrote becomes harmless before it reaches a page, an attribute or an SVG."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from paribus.conditions import harmless


def clean(value: Any) -> Any:
    """The value; in text, control, bidirectional and invisible characters and lone surrogates become U+FFFD."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return harmless(value)


def text(value: Any) -> Markup:
    """A value as escaped, harmless text."""
    return escape(clean(str(value)))


def tag(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """One element. Children that aren't `Markup` are escaped; `None` attributes are left out.

    Underscores in attribute names become hyphens; a trailing one is dropped (`class_`).
    """
    parts = [
        f'{key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None
    ]
    head = Markup(" ".join([name, *parts]))  # noqa: S704 (every attribute is escaped above)
    inner = joined(children)
    return Markup("<{}>{}</{}>").format(head, inner, Markup(name))  # noqa: S704 (our own element names)


def joined(parts: Iterable[Markup | str]) -> Markup:
    """Parts one after the other, escaped where they aren't markup."""
    return Markup("").join(part if isinstance(part, Markup) else text(part) for part in parts)

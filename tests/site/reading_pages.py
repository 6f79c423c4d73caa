"""A page as a test sees it: elements with attributes, text, links, ids; with the standard library's parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "br", "img", "hr", "input"}
INLINE = {"a", "span", "code", "svg", "button"}
"""Elements after which the text goes on without a space."""


@dataclass
class Element:
    """One element: its name, attributes, and all text inside it."""

    name: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text with single spaces."""
        return " ".join("".join(self.parts).split())


class Page(HTMLParser):
    """A parsed page. `faults` lists elements that were closed in the wrong order or not at all."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self._open: list[Element] = []
        self.feed(source)
        self.close()
        self.faults += [f"<{e.name}> is never closed" for e in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.faults.append(f"<{tag}> has an attribute twice")
        element = Element(tag, {k: v or "" for k, v in attrs}, tuple(e.name for e in self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].name != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes {self._open[-1].name if self._open else 'nothing'}")
        while self._open and self._open.pop().name != tag:
            pass
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def all(self, *names: str) -> list[Element]:
        """Elements of those names."""
        return [e for e in self.elements if e.name in names]

    def with_class(self, name: str) -> list[Element]:
        """Elements that carry a class."""
        return [e for e in self.elements if name in e.attributes.get("class", "").split()]

    @property
    def text(self) -> str:
        """All text of the page's body."""
        return self.all("body")[0].text

    @property
    def ids(self) -> list[str]:
        """Every id, in order."""
        return [e.attributes["id"] for e in self.elements if "id" in e.attributes]


def read_page(path: Path) -> Page:
    """A page from its file."""
    return Page(path.read_text(encoding="utf-8"))

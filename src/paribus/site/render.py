"""Rendering: from the database to a folder of pages. The same input gives the same bytes; what didn't change stays."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from paribus import __version__
from paribus.catalog import Catalog
from paribus.conditions import EnvironmentFault, UsageError
from paribus.site import words
from paribus.site.charts import Chart, inline_mark
from paribus.site.content import read_content
from paribus.site.exports import copy_data
from paribus.site.faulty import faulty, without
from paribus.site.markup import clean
from paribus.site.page import Page, Site, board_path, figure_path, pair_path, race_path, run_path, site_root
from paribus.site.pages import all_pages

LEDGER = ".pages.json"
"""In the site's folder: which inputs each page was made from, and which files belong to it."""


@dataclass(frozen=True)
class Rendered:
    """What a rendering did: pages in all, pages that changed, files removed.

    `left_out`: runs and races that no page could be made of, by path, with the reason.
    """

    out: Path
    pages: int
    changed: int
    removed: int
    left_out: Mapping[str, str] = field(default_factory=dict)


def render_site(database: Path, out: Path, root: Path) -> Rendered:
    """Render the site of one database into `out`. `root` is the repository: its catalog, templates and assets.

    Pages whose inputs didn't change are left as they are; files of pages that are gone are removed. What is in the
    database comes from strangers: a run or a race that no page can be made of is left out and named, and ends no site.
    """
    folder = site_root(root)
    _refuse_foreign(out)
    content = read_content(database)
    try:
        site = Site(content, Catalog(root))
        previous = _ledger(out)
        environment, code = _environment(folder / "templates"), _code_digest(folder)
        left_out: dict[str, str] = {}
        stale = _names(previous)
        writer = _Writer(out, environment, code, previous)
        try:
            writer.pages(site)
        except OSError:
            raise
        except Exception:
            # Who is to blame is asked only now: looking at each alone takes as long as a first rendering.
            left_out = faulty(site, lambda page, alone: _files(page, environment, alone))
            if not left_out:
                raise
            # What the first rendering wrote stands: as it is for those that stay, to be removed for the others.
            stale |= _names(writer.ledger)
            changed, writer = writer.changed, _Writer(out, environment, code, {**previous, **writer.ledger})
            writer.pages(without(site, left_out))
            writer.changed |= changed & writer.ledger.keys()
        writer.copied("assets", _copy_assets(folder / "assets", out))
        writer.copied("data", copy_data(database, out))
    except OSError as error:
        raise EnvironmentFault(f"can't write the site into {out}: {error.strerror or error}") from error
    finally:
        content.close()
    removed = _remove_stale(out, stale - _names(writer.ledger))
    _write(out / LEDGER, json.dumps(writer.ledger, indent=1, sort_keys=True) + "\n")
    pages = len([p for p in writer.ledger if p.endswith(".html")])
    return Rendered(out, pages, len(writer.changed), removed, left_out)


Ledger = dict[str, dict[str, Any]]


class _Writer:
    """Writes pages with their charts and keeps the ledger."""

    def __init__(self, out: Path, environment: Environment, code: str, previous: Ledger) -> None:
        self.out, self.environment, self.code, self.previous = out, environment, code, previous
        self.ledger: Ledger = {}
        self.changed: set[str] = set()

    def pages(self, site: Site) -> None:
        for page in all_pages(site):
            self.page(page, site)

    def page(self, page: Page, site: Site) -> None:
        key = _key([self.code, site.edition, page.inputs]) if page.inputs is not None else ""
        known = self.previous.get(page.path)
        if key and known and known["key"] == key and all((self.out / name).is_file() for name in known["files"]):
            self.ledger[page.path] = known
            return
        files = _files(page, self.environment, site)
        changed = [_write(self.out / name, text) for name, text in files.items()]
        self.ledger[page.path] = {"key": key, "files": sorted(files)}
        if any(changed):
            self.changed.add(page.path)

    def copied(self, name: str, files: Iterable[str]) -> None:
        self.ledger[name] = {"key": "", "files": sorted(files)}


def _files(page: Page, environment: Environment, site: Site) -> dict[str, str]:
    """A page and the files of its charts, by path below the site's folder."""
    view = page.view()
    try:
        html = environment.get_template(page.template).render(
            **view.values, base=page.base, path=page.path, edition=site.edition
        )
    except TemplateError as error:
        raise EnvironmentFault(f"the template {page.template} is faulty: {error}") from error
    files = {page.path: html.rstrip() + "\n"}
    for chart in view.charts:
        files[f"charts/{chart.name}.svg"] = chart.file
        files[f"charts/{chart.name}.csv"] = chart.csv
    return files


def _environment(templates: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(
        words=words,
        mark=inline_mark,
        version=__version__,
        run_path=run_path,
        figure_path=figure_path,
        board_path=board_path,
        race_path=race_path,
        pair_path=pair_path,
    )
    environment.filters["date"] = words.date
    return environment


def _key(inputs: Any) -> str:
    """A digest of a page's inputs; what JSON lacks becomes text."""
    return hashlib.sha256(json.dumps(inputs, default=str, sort_keys=True).encode()).hexdigest()


def _code_digest(folder: Path) -> str:
    """A digest of templates and of this package: when either changes, every page is rendered again."""
    digest = hashlib.sha256()
    for root in (folder / "templates", Path(__file__).parent):
        for path in sorted(p for p in root.rglob("*") if p.suffix in (".html", ".py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _refuse_foreign(out: Path) -> None:
    """Rendering removes files: refuse a folder that holds something else."""
    if out.is_dir() and not (out / LEDGER).is_file() and any(out.iterdir()):
        raise UsageError(f"{out} holds files that `paribus site` didn't write: choose an empty folder with --out")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is not a folder: choose another with --out")


def _ledger(out: Path) -> Ledger:
    try:
        ledger: Ledger = json.loads((out / LEDGER).read_text(encoding="utf-8"))
        return {name: {"key": str(e["key"]), "files": [str(f) for f in e["files"]]} for name, e in ledger.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # No ledger, or one that was cut off: everything is rendered again.
        return {}


def _write(path: Path, text: str) -> bool:
    """Write a file whole or not at all; leave it alone, and return False, when it already says the same."""
    data = text.encode("utf-8", errors="replace")
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)
    return True


def _copy_assets(source: Path, out: Path) -> list[str]:
    names = []
    for path in sorted(p for p in source.iterdir() if p.is_file()):
        target = out / "assets" / path.name
        if not target.is_file() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        names.append(f"assets/{path.name}")
    return names


def _remove_stale(out: Path, names: Iterable[str]) -> int:
    """Remove the files of pages that are gone. Only names below the folder that an earlier rendering wrote."""
    removed = 0
    for name in sorted(names):
        path = out / name
        if path.is_file() and path.resolve().is_relative_to(out.resolve()):
            path.unlink()
            removed += 1
            if not any(path.parent.iterdir()) and path.parent != out:
                path.parent.rmdir()
    return removed


def _names(ledger: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {name for entry in ledger.values() for name in entry["files"]}


__all__ = ["Chart", "Rendered", "render_site"]

"""The site in a real browser: no complaint on the console, nothing loaded from elsewhere, readable at 390 pixels."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import Browser, browser, find_browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if find_browser() is None:
        reason = "there is no Chromium on the path"
        if os.environ.get("PARIBUS_REQUIRE"):
            pytest.fail(f"{reason}, and PARIBUS_REQUIRE asks for it")
        pytest.skip(reason)
    with browser() as page:
        yield page


@pytest.fixture
def page(chromium: Browser) -> Browser:
    chromium.complaints.clear()
    chromium.requests.clear()
    return chromium


def one_of_each(built) -> list[str]:
    """The first page of every kind."""
    kinds: dict[str, str] = {}
    for path in built.pages:
        kinds.setdefault(path.split("/")[0], path)
    return list(kinds.values())


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_complains_scrolls_sideways_or_loads_from_elsewhere(page, any_site, width):
    for path in one_of_each(any_site):
        page.open((any_site.out / path).as_uri(), width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert page.complaints == []
    assert page.requests
    assert all(address.startswith(("file:", "data:")) for address in page.requests)


def test_a_screenshot_at_both_widths_shows_a_page(page, demo, tmp_path):
    for width in (390, 1440):
        page.open((demo.out / "index.html").as_uri(), width=width)
        page.screenshot(tmp_path / f"{width}.png")
        data = (tmp_path / f"{width}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert int.from_bytes(data[16:20], "big") == width


def test_the_first_column_stays_when_a_table_is_scrolled_sideways(page, demo):
    page.open((demo.out / "index.html").as_uri(), width=390)
    moved = page.evaluate(
        "(() => { const box = document.querySelector('#board .scroll'); const cell = box.querySelector('tbody th');"
        "const before = cell.getBoundingClientRect().left; box.scrollLeft = 120;"
        "return [box.scrollLeft, cell.getBoundingClientRect().left - before]; })()"
    )
    assert moved[0] > 50
    assert abs(moved[1]) < 2


def test_without_scripts_everything_is_there_and_a_choice_is_a_page(page, demo):
    page.open((demo.out / "index.html").as_uri(), scripts=False)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.evaluate("document.querySelectorAll('th button').length") == 0
    assert "1.17 times as fast" in page.evaluate("document.body.innerText")
    assert page.evaluate("document.querySelector('#board .choices a[href$=\"c16-long.html\"]').href").endswith(
        "/board/cpu/c16-long.html"
    )


def test_a_table_can_be_sorted_with_the_keyboard(page, demo):
    page.open((demo.out / "index.html").as_uri())
    order = "[...document.querySelectorAll('table.sortable tbody th a')].map(a => a.textContent.trim())"
    first = page.evaluate(order)
    page.evaluate("document.querySelectorAll('table.sortable thead button')[1].focus()")
    for _ in range(2):
        for kind in ("rawKeyDown", "char", "keyUp"):
            page.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13
            )
    assert (
        page.evaluate("document.querySelectorAll('table.sortable thead th')[1].getAttribute('aria-sort')")
        == "ascending"
    )
    assert page.evaluate(order) == first[::-1]


def test_served_over_http_a_choice_changes_the_board_in_place_and_its_links_still_lead_somewhere(page, demo):
    with serving(demo.out) as address:
        page.open(f"{address}/index.html")
        page.evaluate(
            "window.stayed = true; document.querySelector('#board .choices a[href$=\"c16-long.html\"]').click()"
        )
        wait = "new Promise(done => { const look = () => location.pathname.endsWith('c16-long.html') ? done(1) : "
        page.evaluate(wait + "setTimeout(look, 20); look(); })")
        assert page.evaluate("window.stayed") is True
        assert (
            page.evaluate("document.querySelector('#board h2').textContent") == "Sixteen requests at once, long answers"
        )
        assert page.evaluate("document.querySelectorAll('h1').length") == 1
        assert page.evaluate("document.querySelectorAll('#board th button').length") > 3
        links = page.evaluate(
            "[...document.querySelectorAll('#board a')].map(a => new URL(a.getAttribute('href'), location).href)"
        )
        assert links
        for link in links:
            assert (demo.out / link.removeprefix(address + "/").split("#")[0]).is_file(), link
    assert page.complaints == []


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A plain file server on a free port of this machine."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """The standard file server without its log."""

    def log_message(self, *args) -> None:
        """Say nothing."""


def test_dark_mode_turns_the_page_dark(page, demo):
    page.open((demo.out / "index.html").as_uri(), dark=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 21, 19)"


def test_the_front_page_prints(page, demo):
    page.open((demo.out / "index.html").as_uri())
    assert page.pdf().startswith(b"%PDF")


def test_hostile_text_runs_nothing(page, hostile):
    for path in hostile.pages:
        page.open((hostile.out / path).as_uri())
    assert page.complaints == []

"""The documentation as a person sees it: nothing is cut off, and the search finds pages."""

from __future__ import annotations

import functools
import http.server
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.test_site import ROOT, make_site

CUT_OFF = """() => [...document.querySelectorAll('.md-content *')].filter((each) => {
  const box = each.getBoundingClientRect();
  const column = document.querySelector('.md-content__inner').getBoundingClientRect();
  if (!box.width || !each.matches('img') && !each.textContent.trim() || each.closest('.md-clipboard, .headerlink, .md-code__nav')) return false;
  const scrolls = getComputedStyle(each).overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1;
  return scrolls && each.clientWidth > 0 || box.right > column.right + 20;
}).map((each) => each.outerHTML.slice(0, 200))"""
FITS = "(width) => innerWidth === width && document.documentElement.scrollWidth <= width"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, pathlib.Path]]:
    """The address and the folder of the site; its search needs a server."""
    folder = tmp_path_factory.mktemp("site") / "new"
    done = make_site(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


def test_nothing_is_cut_off(browser: Any, site: tuple[str, pathlib.Path]) -> None:
    address, folder = site
    with browser.new_context() as context:
        page = context.new_page()
        found = {}
        for file in sorted(folder.rglob("*.html")):
            page.goto(f"{address}/{file.relative_to(folder)}", wait_until="load")
            for width in (1280, 400):
                page.set_viewport_size({"width": width, "height": 900})
                # The page lays itself out after the call; one that stays too wide fails here.
                page.wait_for_function(FITS, arg=width, timeout=10_000)
                if cut := page.evaluate(CUT_OFF):
                    found[str(file.relative_to(folder)), width] = cut[:3]
    assert not found


def test_home_fits_one_screen(browser: Any, site: tuple[str, pathlib.Path]) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{site[0]}/index.html")
        links = page.locator("article a[href$='.html']")
        assert links.count() == 3
        assert links.last.bounding_box()["y"] < 900


def test_search_finds_a_dataset(browser: Any, site: tuple[str, pathlib.Path]) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{site[0]}/index.html?q=dataset")
        results = page.locator(".md-search-result__link")
        results.first.wait_for()
        found = [link.get_attribute("href").partition("#")[0] for link in results.all()]
        assert any(link.partition("?")[0].endswith("storage.html") for link in found)
        assert not any("CHANGELOG" in link for link in found[:3])

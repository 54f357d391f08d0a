"""What a page on a run costs: its size, and how long a browser needs until something is to be seen."""

from __future__ import annotations

import importlib
import pathlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import (
    TIMES,
    NotMeasured,
    Row,
    Samples,
    in_turns,
    python,
    repeated,
    samples,
    wall_ms,
)
from tests.report.page import stories

_SIZES = ((1, 150_000), (200, 2_000_000), (10_000, 5_000_000))
"""Instances, and the most bytes of their page."""

FIRST_PAINT_MS = 1000.0
WRITTEN_MS = 1000.0
WRITTEN_MS_PER_INSTANCE = 3.0
_READ = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.jsonl"):
    list(map(json.loads, path.read_text().splitlines()))
"""
_TIMING = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const paint of list.getEntriesByName("first-contentful-paint")) {
    done({ paint: paint.startTime, load: performance.getEntriesByType("navigation")[0].loadEventEnd });
  }
}).observe({ type: "paint", buffered: true }))"""
"""The first paint is recorded with a frame, which may come after the end of loading."""


class _Page(NamedTuple):
    """A page that was written.

    Attributes:
        instances: that it shows.
        file: where it is.
        most_bytes: what it may take.
    """

    instances: int
    file: pathlib.Path
    most_bytes: int


def rows() -> Iterator[Row]:
    """Writing the pages on gangs, beside reading their journals; and their first paint.

    Raises:
        NotMeasured: there is no browser for the first paint.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pages = [_Page(n, folder / f"{n}.html", most_bytes) for n, most_bytes in _SIZES]
        for page in pages:
            yield _written(page, folder)
        yield from _painted(pages, folder)


def _written(page: _Page, folder: pathlib.Path) -> Row:
    count, file = page.instances, page.file
    logs = stories.write(folder / f"gang-{count}", stories.gang(count, failing=count // 3))
    written, read = in_turns(
        TIMES,
        lambda: wall_ms(lambda: python("-m", "pairun", "report", "--html", str(file), str(logs))),
        lambda: wall_ms(lambda: python("-c", _READ, str(logs))),
    )
    most_ms = max(WRITTEN_MS, count * WRITTEN_MS_PER_INSTANCE)
    size = file.stat().st_size
    return Row(
        f"report --html, {count} instance{'s' * (count > 1)}", "ms", written, most_ms,
        "Python reads the journals as JSON", read,
        f"{size / 1000:.0f} of {page.most_bytes / 1000:.0f} kB", broken=size > page.most_bytes,
    )  # fmt: skip


def _painted(pages: Sequence[_Page], folder: pathlib.Path) -> Iterator[Row]:
    chromium = shutil.which("chromium")
    try:
        api = importlib.import_module("playwright.sync_api")
    except ImportError as e:
        raise NotMeasured("the page's first paint: there is no playwright") from e
    if chromium is None:
        raise NotMeasured("the page's first paint: there is no chromium")
    empty = folder / "empty.html"
    empty.write_text("<!doctype html><title>empty</title><p>empty")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            baseline, _ = _opened(browser, empty)
            for page in pages:
                paint, load = _opened(browser, page.file)
                yield Row(
                    f"its first paint, {page.instances} instance{'s' * (page.instances > 1)}", "ms",
                    paint, FIRST_PAINT_MS, "an empty page", baseline,
                    f"complete after {load.least:.0f} ms",
                )  # fmt: skip
        finally:
            browser.close()


def _opened(browser: Any, file: pathlib.Path) -> tuple[Samples, Samples]:
    """The first paint and the end of loading, in milliseconds since the navigation began."""

    def opened() -> Any:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri())
        timing = page.evaluate(_TIMING)
        page.close()
        return timing

    taken = repeated(TIMES, opened)
    return samples([each["paint"] for each in taken]), samples([each["load"] for each in taken])

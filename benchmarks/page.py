"""What a page on a run costs: its size, and how long a browser needs until something is to be seen."""

from __future__ import annotations

import importlib
import pathlib
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import NotMeasured, Row, python
from pairun.report.page.document import document
from pairun.report.page.html import element
from tests.report.page import stories

_SIZES = ((1, 150_000), (200, 2_000_000), (10_000, 5_000_000))
"""Instances, and the most bytes of their page."""

FIRST_PAINT_MS = 1000.0
_TIMES = 5
_TIMING = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const paint of list.getEntriesByName("first-contentful-paint")) {
    done({ paint: paint.startTime, load: performance.getEntriesByType("navigation")[0].loadEventEnd });
  }
}).observe({ type: "paint", buffered: true }))"""
"""The first paint is recorded with a frame, which may come after the end of loading."""


def rows() -> Iterator[Row]:
    """The first paint of the pages on gangs, beside that of an almost empty page."""
    chromium = shutil.which("chromium")
    try:
        api = importlib.import_module("playwright.sync_api")
    except ImportError as e:
        raise NotMeasured("the page of a report: there is no playwright") from e
    if chromium is None:
        raise NotMeasured("the page of a report: there is no chromium")
    with tempfile.TemporaryDirectory() as folder, api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield from _rows(pathlib.Path(folder), browser)
        finally:
            browser.close()


def _rows(folder: pathlib.Path, browser: Any) -> Iterator[Row]:
    empty = folder / "empty.html"
    empty.write_text(document("empty", element("p", "empty"), {}, style="", script=""))
    baseline, _ = _opened_ms(browser, empty)
    for count, most_bytes in _SIZES:
        logs = stories.write(folder / f"gang-{count}", stories.gang(count, failing=count // 3))
        file = folder / f"{count}.html"
        python("-m", "pairun", "report", "--html", str(file), str(logs))
        size = file.stat().st_size
        paint, load = _opened_ms(browser, file)
        yield Row(
            f"report page, {count} instances",
            paint,
            FIRST_PAINT_MS,
            "an empty page",
            baseline,
            f"first paint; complete after {load:.0f} ms; {size / 1000:.0f} of {most_bytes / 1000:.0f} kB",
            broken=size > most_bytes,
        )


def _opened_ms(browser: Any, file: pathlib.Path) -> tuple[float, float]:
    """Medians of the first paint and of the end of loading, since the navigation began."""
    taken = []
    for _ in range(_TIMES):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri())
        taken.append(page.evaluate(_TIMING))
        page.close()
    return (
        statistics.median(each["paint"] for each in taken),
        statistics.median(each["load"] for each in taken),
    )

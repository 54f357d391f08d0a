"""What a page on a run costs: its size, and how long a browser needs until something is to be seen."""

from __future__ import annotations

import importlib
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import TIMES, NotMeasured, Row, Samples, in_turns, python, samples, wall_ms
from pairun.report.page.document import document
from pairun.report.page.html import element
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
    baseline, _ = _opened(browser, empty)
    for count, most_bytes in _SIZES:
        logs = stories.write(folder / f"gang-{count}", stories.gang(count, failing=count // 3))
        file = folder / f"{count}.html"
        written, read = in_turns(
            TIMES,
            lambda: wall_ms(
                lambda: python("-m", "pairun", "report", "--html", str(file), str(logs))  # noqa: B023
            ),
            lambda: wall_ms(lambda: python("-c", _READ, str(logs))),  # noqa: B023
        )
        most_ms = max(WRITTEN_MS, count * WRITTEN_MS_PER_INSTANCE)
        yield Row(
            f"report --html, {count} instances", "ms", written, most_ms,
            "Python reads the journals as JSON", read,
        )  # fmt: skip
        size = file.stat().st_size
        paint, load = _opened(browser, file)
        yield Row(
            f"its first paint, {count} instances", "ms", paint, FIRST_PAINT_MS,
            "an empty page", baseline,
            f"complete after {load.least:.0f} ms; {size / 1000:.0f} of {most_bytes / 1000:.0f} kB",
            broken=size > most_bytes,
        )  # fmt: skip


def _opened(browser: Any, file: pathlib.Path) -> tuple[Samples, Samples]:
    """The first paint and the end of loading, in milliseconds since the navigation began."""
    taken = []
    for _ in range(TIMES):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri())
        taken.append(page.evaluate(_TIMING))
        page.close()
    return samples([each["paint"] for each in taken]), samples([each["load"] for each in taken])

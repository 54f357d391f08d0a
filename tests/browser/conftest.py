"""A real browser: Debian's Chromium, driven over its own protocol."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.cli.main import main
from tests.report.page import reviewstories, stories

CHROMIUM = shutil.which("chromium")

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("there is no chromium, and CI is set")
        pytest.skip("there is no chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as driver:
        # Root of a container may have no user namespaces for Chromium's sandbox.
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a file as a person would; fails when the page complains or asks the network for anything."""
    complaints: list[str] = []
    contexts = []

    def opened(file: pathlib.Path, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url),
        )
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """The page on each story, made by the command."""
    folder = tmp_path_factory.mktemp("pages")
    journals_of = {
        "success": {"worker-0": stories.success()},
        "stopped": {"worker-0": stories.stopped()},
        "retries": {"worker-0": stories.retries()},
        "gang": stories.gang(200),
        "many": stories.gang(400),
    }
    files = {}
    for name, journals in journals_of.items():
        stories.write(folder / name, journals)
        files[name] = folder / f"{name}.html"
        assert main(["report", "--html", str(files[name]), str(folder / name)]) == 0
    with contextlib.chdir(folder):  # so that the pages name the jobs as a person would
        for name, job, code in (
            ("review", reviewstories.JOB, 0),
            ("refused", reviewstories.REFUSED, 1),
        ):
            (folder / f"{name}.yaml").write_text(job)
            files[name] = folder / f"{name}.html"
            assert main(["--dry-run", "--html", str(files[name]), f"{name}.yaml"]) == code
    return files


def serious_violations(page: Any) -> list[Any]:
    """What axe finds that is serious or critical: the rule and the first element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # axe is a script of the test's; the page's own policy would refuse it.
    violations = axe.Axe().run(page).response["violations"]
    return [
        (v["id"], v["nodes"][0]["html"])
        for v in violations
        if v["impact"] in ("serious", "critical")
    ]

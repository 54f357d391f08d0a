"""`pairun report --html` in a real browser: what a person sees, clicks and types."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from tests.browser.conftest import Open, serious_violations
from tests.report.page import stories
from tests.report.page.test_document import HOSTILE, hostile, page_of

Pages = dict[str, pathlib.Path]


def box(page: Any, selector: str) -> Any:
    return page.locator(selector).first.bounding_box()


def test_a_gang_says_who_failed_first(open_page: Open, pages: Pages) -> None:
    """The first thing on the page is the instance that failed first, and what to do."""
    page = open_page(pages["gang"])
    assert page.locator(".sentence").inner_text().startswith("worker-3 failed first: the program")
    assert "train.py, line 41" in page.locator("header").inner_text()
    assert page.locator(".row .name b").first.inner_text() == "worker-3"
    assert page.locator(".timeline .row:not(.axis)").count() == 200


def test_a_task_opens_and_closes(open_page: Open, pages: Pages) -> None:
    """A click shows attempts, messages and the last lines; Escape gives the focus back."""
    page = open_page(pages["retries"])
    bar = page.get_by_role("button", name="mount_storage, failed")
    bar.click()
    details = page.locator("#details")
    text = details.inner_text()
    for expected in ("the server refuses the share", "ask who runs the server",
                     "Attempt 2: failed", "mount: access denied"):  # fmt: skip
        assert expected in text
    page.keyboard.press("Escape")
    assert details.is_hidden()
    assert bar.evaluate("bar => bar === document.activeElement")


def test_a_task_says_who_set_what(open_page: Open, pages: Pages) -> None:
    """The details of a task name the layer, file and line of what was overridden."""
    page = open_page(pages["gang"])
    page.get_by_role("button", name="fetch_code, changed").first.click()
    text = page.locator("#details").inner_text()
    assert "the task comes from built-in plugin_specs/git.yaml:26:5" in text
    assert "retries = 3 ← job job.yaml:36:18, was 9 (built-in plugin_specs/git.yaml:34:14)" in text
    assert "args.depth = 1 ← job job.yaml:37:23, was the default" in text


def test_the_log_of_what_failed_opens(open_page: Open, pages: Pages) -> None:
    """It is folded, and a click shows the last lines of the failed task."""
    page = open_page(pages["retries"])
    line = page.locator("details", has_text="last 2 lines of mount_storage").locator("pre")
    assert line.is_hidden()
    page.get_by_text("last 2 lines of mount_storage").click()
    assert "mount: access denied" in line.inner_text()


def test_a_stop_signal_is_a_mark(open_page: Open, pages: Pages) -> None:
    """A signal stands where it came, and says who sent it."""
    page = open_page(pages["stopped"])
    mark = page.get_by_role("button", name="signal SIGTERM from outside the container")
    command = box(page, ".bar.command")
    assert command["x"] < mark.bounding_box()["x"] < command["x"] + command["width"]
    mark.focus()
    assert "SIGTERM from outside the container" in page.locator("#tip").inner_text()


def test_attempts_and_waits_are_inside_their_task(open_page: Open, pages: Pages) -> None:
    """The marks of attempts and waits lie below the task's own bar, in order."""
    page = open_page(pages["retries"])
    task = page.get_by_role("button", name="fetch_code, changed, 3 attempts").bounding_box()
    parts = [p.bounding_box() for p in page.locator(".part").all()][:5]
    assert all(task["x"] - 1 <= p["x"] <= task["x"] + task["width"] for p in parts)
    attempts = [p["x"] for p in (parts[0], parts[1], parts[2])]
    assert attempts == sorted(attempts)


def test_zoom_and_pan(open_page: Open, pages: Pages) -> None:
    """Zooming makes a bar wider, panning moves it, and All brings everything back."""
    page = open_page(pages["success"])
    before = box(page, ".bar.command")
    page.get_by_role("button", name="Zoom in").click()
    wider = box(page, ".bar.command")
    assert wider["width"] > 1.9 * before["width"]
    page.get_by_role("button", name="Later").click()
    assert box(page, ".bar.command")["x"] < wider["x"]
    page.get_by_role("button", name="The whole time").click()
    assert box(page, ".bar.command") == before


def test_the_keyboard_reaches_every_task(open_page: Open, pages: Pages) -> None:
    """One Tab enters a lane, arrow keys move along it and between lanes, Enter opens a task."""
    page = open_page(pages["gang"])

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))

    page.get_by_role("button", name="barrier, ok").first.focus()
    page.keyboard.press("ArrowRight")
    assert focused().startswith("environment, changed")
    page.keyboard.press("End")
    assert focused().startswith("exit handler upload")
    page.keyboard.press("ArrowDown")
    assert focused().startswith("exit handler upload")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text() == "worker-0: barrier"


def test_filters(open_page: Open, pages: Pages) -> None:
    """Text hides the lanes that do not have it, and says how many are left."""
    page = open_page(pages["gang"])
    page.get_by_role("searchbox").fill("worker-3")
    visible = page.locator(".timeline .row:not(.axis):visible")
    assert visible.count() == 11
    assert "11 of 200 shown" in page.locator(".controls [role=status]").inner_text()
    page.get_by_role("searchbox").fill("no such thing")
    assert visible.count() == 0


def test_focus_and_hover_tell_the_numbers(open_page: Open, pages: Pages) -> None:
    """Whoever points at a bar, or reaches it by keyboard, reads what it is and how long it took."""
    page = open_page(pages["success"])
    page.locator(".bar.command").hover()
    assert page.locator("#tip").inner_text().split("\n") == [
        "the user's command",
        "exit code 0",
        "14 s",
    ]
    page.locator(".bar").first.focus()
    assert "barrier: ok" in page.locator("#tip").inner_text()


def test_many_instances_are_bands(open_page: Open, pages: Pages) -> None:
    """Of many instances a role's tasks are bands, whose quantiles a click shows."""
    page = open_page(pages["many"])
    assert "400 instances" in page.locator(".row .state").first.inner_text()
    page.get_by_role("button", name="init barrier, 400 ok").click()
    assert "median" in page.locator("#details").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("story", ["success", "stopped", "retries", "gang", "many"])
def test_nobody_is_shut_out(
    open_page: Open, pages: Pages, story: str, width: int, scheme: str
) -> None:
    """Nothing serious is found by axe, and a small screen needs no sideways scrolling, in both themes."""
    page = open_page(pages[story], width, color_scheme=scheme)
    page.locator(".bar").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not serious_violations(page)


def test_hostile_texts_run_nothing(open_page: Open, tmp_path: pathlib.Path) -> None:
    """Scripts, handlers and addresses in a journal's fields are shown as the text that they are."""
    journals = {k: hostile(v) for k, v in stories.gang(3, failing=1).items()}
    file = tmp_path / "page.html"
    file.write_text(page_of(stories.write(tmp_path / "logs", journals), HOSTILE))
    page = open_page(file)
    page.locator(".bar").last.click()
    assert "<script>alert(1)</script>" in page.locator("#details").inner_text()
    assert page.locator("img").count() == 0


def test_it_prints(open_page: Open, pages: Pages) -> None:
    """On paper every lane is there, and no button."""
    page = open_page(pages["gang"])
    page.emulate_media(media="print")
    assert page.locator(".controls").is_hidden()
    assert page.locator(".timeline .row:not(.axis):visible").count() == 200

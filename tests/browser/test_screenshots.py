"""Pictures of the pages, to look at: kept in `build/screenshots`."""

from __future__ import annotations

import pathlib

import pytest

from tests.browser.conftest import Open

FOLDER = pathlib.Path(__file__).parents[2] / "build" / "screenshots"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("story", ["success", "stopped", "retries", "gang"])
def test_pictures(
    open_page: Open, pages: dict[str, pathlib.Path], story: str, width: int, scheme: str
) -> None:
    """Each story has a picture, in which the timeline is on the first screen."""
    page = open_page(pages[story], width, color_scheme=scheme)
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=FOLDER / f"report-{story}-{width}-{scheme}.png")
    assert page.locator(".timeline .bar").first.bounding_box()["y"] < 900


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_pictures_of_reviews(
    open_page: Open, pages: dict[str, pathlib.Path], width: int, scheme: str
) -> None:
    """A review has a picture, in which what would change is on the first screen."""
    page = open_page(pages["review"], width, color_scheme=scheme)
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=FOLDER / f"review-{width}-{scheme}.png")
    assert page.locator(".changes li").first.bounding_box()["y"] < 900
    refused = open_page(pages["refused"], width, color_scheme=scheme)
    refused.screenshot(path=FOLDER / f"review-refused-{width}-{scheme}.png")

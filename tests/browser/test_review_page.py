"""`pairun --dry-run --html` in a real browser: what a reviewer sees, clicks and types."""

from __future__ import annotations

import pathlib

import pytest

from pairun.report.page.reviewpage import review_page
from tests.browser.conftest import Open, serious_violations
from tests.desk import Desk
from tests.report.page import reviewstories
from tests.report.page.test_document import HOSTILE

Pages = dict[str, pathlib.Path]


def test_roles_are_columns(open_page: Open, pages: Pages) -> None:
    """Roles stand beside each other on a wide screen, below each other on a narrow one."""
    wide = open_page(pages["review"]).locator(".role-column")
    tops = [box["y"] for box in (column.bounding_box() for column in wide.all())]
    assert len(tops) == 3
    assert len(set(tops)) == 1
    narrow = open_page(pages["review"], 400).locator(".role-column")
    lefts = [box["x"] for box in (column.bounding_box() for column in narrow.all())]
    assert len(set(lefts)) == 1


def test_a_change_leads_to_its_task(open_page: Open, pages: Pages) -> None:
    """A link of what would change opens the task in its role's column."""
    page = open_page(pages["review"])
    git = page.locator(".changes li", has_text="git").first
    git.get_by_role("link", name="worker").click()
    column = page.locator(".role-column[data-role=worker]")
    opened = column.locator("details.task[open]", has_text="clone the repository")
    assert opened.locator("summary").first.evaluate("each => each === document.activeElement")


def test_the_chain_of_a_value_opens_on_demand(open_page: Open, pages: Pages) -> None:
    """The keyboard opens what a value replaced, with its place."""
    page = open_page(pages["review"])
    git = page.locator(".role-column").first.locator(
        "details.task", has_text="clone the repository"
    )
    git.evaluate("each => each.open = true")
    chain = git.locator(".chain-of").first
    assert chain.locator("ol").is_hidden()
    chain.locator("summary").focus()
    page.keyboard.press("Enter")
    assert "plugin_specs/git.yaml:" in chain.locator("ol").inner_text()


def test_filters(open_page: Open, pages: Pages) -> None:
    """Text and the check box hide tasks, and the page says how many are left."""
    page = open_page(pages["review"])
    visible = page.locator(".task:visible")
    every = visible.count()
    page.get_by_label("only changes and possible changes").check()
    changing = visible.count()
    assert 0 < changing < every
    page.get_by_role("searchbox").fill("git.example.com")
    assert visible.count() == 3
    assert f"3 of {every} tasks shown" in page.locator(".controls [role=status]").inner_text()


def test_a_refusal_leads_to_its_line(open_page: Open, pages: Pages) -> None:
    """A refused override is marked at its task; its link shows the job's line and the policy's."""
    page = open_page(pages["refused"])
    page.locator(".task .in-place a").first.click()
    problem = page.locator(".problem:target")
    assert "retries: 4" in problem.inner_text()
    assert "the policy" in problem.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("story", ["review", "refused"])
def test_it_is_accessible(
    open_page: Open, pages: Pages, story: str, width: int, scheme: str
) -> None:
    """Axe finds nothing serious, and a small screen needs no sideways scrolling, in both themes."""
    page = open_page(pages[story], width, color_scheme=scheme)
    page.get_by_role("button", name="Open every task").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not serious_violations(page)


def test_without_script_nothing_is_missing(open_page: Open, pages: Pages) -> None:
    """The page is HTML: it opens tasks where scripts are switched off."""
    page = open_page(pages["review"], java_script_enabled=False)
    page.locator(".task:not([open]) > summary").first.click()
    assert page.locator(".task").count() == 30


def test_hostile_texts_run_nothing(open_page: Open, tmp_path: pathlib.Path) -> None:
    """Scripts, handlers and addresses in a job's fields are shown as the text that they are."""
    desk = Desk(tmp_path)
    root = desk.root({"playbooks/policy.yaml": desk.all_open})
    review = desk.review(reviewstories.hostile_job(HOSTILE), root)
    file = tmp_path / "page.html"
    file.write_text(review_page([review], desk.content(root)))
    page = open_page(file)
    page.get_by_role("button", name="Open every task").click()
    assert "<script>alert(1)</script>" in page.locator(".task").last.inner_text()
    assert page.locator("img").count() == 0


def test_it_prints(open_page: Open, pages: Pages) -> None:
    """Paper has every task open and no button; the screen is afterwards as it was."""
    page = open_page(pages["review"])
    open_before = page.locator("details[open]").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".controls").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == open_before

"""The page on a review: what would change, who set each value, problems in place."""

from __future__ import annotations

import html.parser
import pathlib
import re

from pairun.report.page.reviewpage import review_page
from tests.desk import Desk
from tests.report.page import reviewstories
from tests.report.page.test_document import HOSTILE, Parsed


class Text(html.parser.HTMLParser):
    """The texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.texts.append(data)


def page_of(desk: Desk, text: str, *roots: pathlib.Path) -> str:
    """The page on a job."""
    return review_page([desk.review(text, *roots)], desk.content(*roots))


def text_of(page: str) -> str:
    """The text of a page, blanks folded."""
    body = page[page.index("<body>") : page.index('<script type="application/json"')]
    return re.sub(r"\s+", " ", "".join(Text(re.sub("<(?=[a-z/])", " <", body)).texts))


def test_what_would_change_comes_first(tmp_path: pathlib.Path) -> None:
    """A change that several roles share is one line, before the roles and before what is unknown."""
    page = text_of(page_of(Desk(tmp_path), reviewstories.JOB))
    changes = page[page.index("What would change") : page.index("Roles and their tasks")]
    assert changes.startswith(
        "What would change ~ writes job_environment in init of ps , worker , evaluator"
    )
    assert changes.index("writes git") < changes.index("runs cmd") < changes.index("unknown ssh")


def test_each_value_says_who_set_it(tmp_path: pathlib.Path) -> None:
    """Layer, file and line stand at a value, and what it replaced below it."""
    page = text_of(page_of(Desk(tmp_path), reviewstories.JOB))
    assert "args.depth 1 job job.yaml:37:23" in page
    assert re.search(
        r"retries 3 job job.yaml:36:18 was 9 9 built-in \S*plugin_specs/git.yaml:34:14", page
    )
    assert re.search(r"delay 2s built-in \S*plugin_specs/git.yaml:35:12", page)
    assert "disabled by job.yaml:38:18 (job)" in page


def test_problems_stand_at_their_tasks(tmp_path: pathlib.Path) -> None:
    """A refused override links to its task in every role, and the task to the problem."""
    page = page_of(Desk(tmp_path), reviewstories.REFUSED)
    assert page.count('class="badge error">error PR402</span>') == 6
    about = text_of(page)
    assert "tasks that may be patched" in about
    assert "about barrier of ps , barrier of worker , barrier of evaluator" in about
    anchors = set(re.findall(r' id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', page)
    assert links
    assert set(links) <= anchors


def test_a_role_as_another_says_so(tmp_path: pathlib.Path) -> None:
    """A task that a role shares with one before it is folded and names that role."""
    page = page_of(Desk(tmp_path), reviewstories.JOB)
    assert text_of(page).count("as in ps") > 6


def test_hostile_texts_are_text(tmp_path: pathlib.Path) -> None:
    """Whatever a job's fields hold, the page has the same elements, and no character that hides."""
    desk = Desk(tmp_path)
    root = desk.root({"playbooks/policy.yaml": desk.all_open})
    plain = page_of(desk, reviewstories.hostile_job("plain"), root)
    evil = page_of(desk, reviewstories.hostile_job(HOSTILE), root)
    tags = [tag for tag, _ in Parsed(evil).tags]
    assert tags.count("script") == 2
    assert not {"img", "iframe", "object"} & set(tags)
    assert [t for t in tags if t in ("style", "script")] == [
        t for t, _ in Parsed(plain).tags if t in ("style", "script")
    ]
    assert "\u202e" not in evil
    assert "\x1b" not in evil
    assert text_of(evil).count("alert(1)") > 8
    for _, attributes in Parsed(evil).tags:
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)


def test_secrets_are_masked_in_values_and_in_what_they_replaced(tmp_path: pathlib.Path) -> None:
    desk = Desk(tmp_path)
    root = desk.root(
        {
            "playbooks/policy.yaml": desk.all_open,
            "playbooks/runtime.yaml": "phase: runtime\ntasks:\n"
            "  - {id: call, name: Call, cmd: {script: x}, environment: {API_TOKEN: first-secret}}\n"
            + desk.command,
        }
    )
    text = desk.job("runtime:\n  - patch: call\n    environment: {API_TOKEN: second-secret}")
    review = desk.review(text, root)
    page = review_page([review], desk.content(root))
    assert "first-secret" not in page
    assert "second-secret" not in page
    assert "environment.API_TOKEN" in page


def test_a_job_that_is_not_valid(tmp_path: pathlib.Path) -> None:
    """Its page has the problems and no roles."""
    page = text_of(page_of(Desk(tmp_path), "name: 5\n"))
    assert "Problems" in page
    assert "Roles and their tasks" not in page

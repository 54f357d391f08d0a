"""`make docs` writes the documentation as a web site."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def make_site(checkout: pathlib.Path, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run `make docs` of a checkout, from another folder."""
    ready = f"--assume-old={sys.prefix}/.ready"
    return subprocess.run(
        ["make", "-C", checkout, ready, "docs", f"VENV={sys.prefix}", f"SITE={folder}"],
        cwd="/", capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The site of this checkout."""
    folder = tmp_path_factory.mktemp("site") / "new"
    done = make_site(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_part_of_the_site(built: pathlib.Path) -> None:
    """Pages (a page without a place in the navigation is an error), pictures, schemas, linked files."""
    for page in (ROOT / "docs").rglob("*.md"):
        if page.parent.name == "parts":
            continue  # of a generated page
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        shown = name.with_name("index.html") if page.name == "README.md" else name
        assert (built / shown).is_file()
    for file in (
        "pictures/phases.svg",
        "examples/pod.yaml",
        "CHANGELOG.html",
    ):
        assert (built / file).is_file()


def test_the_site_has_no_files_of_python(built: pathlib.Path) -> None:
    assert not [p for p in built.rglob("*") if "__pycache__" in p.parts or p.suffix == ".py"]


def test_search_finds_a_dataset_and_ranks_pages_for_contributors_last(built: pathlib.Path) -> None:
    index = json.loads((built / "search/search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0] for entry in index if "dataset" in entry["text"]}
    assert "storage.html" in found
    assert {"jobs.html", "reference/modules.html"} & found
    boosts = {e["location"].partition("#")[0]: e.get("boost", 1) for e in index}
    low = {page for page, boost in boosts.items() if boost < 1}
    assert low == {
        "CHANGELOG.html", "CONTRIBUTING.html", "SECURITY.html", "architecture.html", "bundle.html",
        "volume.html",
    }  # fmt: skip


def test_the_site_loads_nothing_from_elsewhere(built: pathlib.Path) -> None:
    """Scripts, styles, fonts and pictures are files of the site."""
    for page in built.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img)\b[^>]*>", page.read_text()):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), f"{page}: {tag}"


def test_every_picture_says_what_it_shows(built: pathlib.Path) -> None:
    """Each has an alternative text of some words."""
    pictures = [
        tag for p in built.rglob("*.html") for tag in re.findall(r"<img\b[^>]*>", p.read_text())
    ]
    assert pictures
    for tag in pictures:
        text = re.search(r'alt="([^"]*)"', tag)
        assert text is not None, tag
        assert len(text[1]) > 20, tag


def test_dead_links_are_errors_all_at_once(tmp_path: pathlib.Path) -> None:
    """A link to a page or a heading that does not exist; the build leaves no file beside the site."""
    checkout = tmp_path / "checkout"
    (checkout / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "docs/hooks.py", checkout / "docs")
    shutil.copy(ROOT / "Makefile", checkout)
    config = (ROOT / "mkdocs.yml").read_text().partition("nav:")[0]
    (checkout / "mkdocs.yml").write_text(config + "nav: [README.md]\n")
    (checkout / "docs/README.md").write_text("# Home\n\n[a](gone.md) [b](#no-heading)\n")
    before = sorted(checkout.rglob("*"))
    done = make_site(checkout, tmp_path / "site")
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "#no-heading" in done.stderr
    assert sorted(checkout.rglob("*")) == before

"""`pairun doc --site` writes the documentation as a web site, whole or not at all."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from pairun.errors import PairunError
from pairun.report import site
from pairun.report.site import build_site

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The site of this checkout."""
    folder = tmp_path_factory.mktemp("site") / "new"
    assert build_site(folder) == folder / "index.html"
    return folder


def test_every_page_is_part_of_the_site(built: pathlib.Path) -> None:
    """Pages (a page without a place in the navigation is an error), pictures, schemas, linked files."""
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        shown = name.with_name("index.html") if page.name == "README.md" else name
        assert (built / shown).is_file()
    for file in (
        "pictures/phases.svg",
        "schemas/job.schema.json",
        "examples/pod.yaml",
        "CHANGELOG.html",
    ):
        assert (built / file).is_file()


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


def test_an_earlier_site_is_replaced_and_nothing_else(
    built: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """A folder with other files stays as it is."""
    folder = tmp_path / "site"
    shutil.copytree(built, folder)
    (folder / "stale.html").touch()
    build_site(folder)
    assert not (folder / "stale.html").exists()
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("years of work")
    with pytest.raises(PairunError) as refused:
        build_site(other)
    assert "contains files that are not a site" in str(refused.value)
    assert (other / "chapter.tex").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["site", "thesis"]


def test_dead_links_are_errors_all_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to a page or a heading that does not exist is named, and no site is left."""
    checkout = tmp_path / "checkout"
    (checkout / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "docs/hooks.py", checkout / "docs")
    config = (ROOT / "mkdocs.yml").read_text().partition("nav:")[0]
    (checkout / "mkdocs.yml").write_text(config + "nav: [README.md]\n")
    (checkout / "docs/README.md").write_text("# Home\n\n[a](gone.md) [b](#no-heading)\n")
    monkeypatch.setattr(site, "built_in_folder", lambda: str(checkout))
    with pytest.raises(PairunError) as refused:
        build_site(tmp_path / "site")
    texts = [p.message for p in refused.value.problems]
    assert any("gone.md" in text for text in texts)
    assert any("#no-heading" in text for text in texts)
    assert [p.name for p in tmp_path.iterdir()] == ["checkout"]


def test_without_mkdocs_it_says_what_to_install(tmp_path: pathlib.Path) -> None:
    """The command is there in every installation, its packages may not be."""
    code = (
        "import sys; sys.modules['mkdocs'] = None\n"
        "from pairun.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "doc", "--site", str(tmp_path / "site")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "error[PR813]: the site needs MkDocs" in done.stderr
    assert "pip install 'pairun[docs]'" in done.stderr


def test_a_page_and_the_site_do_not_go_together(tmp_path: pathlib.Path) -> None:
    """The site has every page, so a name beside --site is wrong usage."""
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "doc", "--site", str(tmp_path / "site"), "PR402"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--site writes every page; omit the names" in done.stderr


def test_the_wheel_contains_every_file_that_a_page_links_to() -> None:
    """`pairun doc --site` of an installed pairun has the same files as that of a checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    sdist = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    paths = {
        (page.parent / target).resolve().relative_to(ROOT)
        for page in (ROOT / "docs").rglob("*.md")
        for target in re.findall(r"\]\((\.\./[^)#]+)[)#]", page.read_text())
    }
    linked = {str(path) for path in paths if path.parts[0] != "docs"}
    assert "image/packages.lock" in linked
    for included in (wheel, sdist):
        folders = tuple(f"{path}/" for path in included)
        assert not {t for t in linked if t not in included and not t.startswith(folders)}

"""What the site adds to MkDocs: linked files from outside ``docs/``, labels of narrow tables, the order of search results."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

_OUTSIDE = re.compile(r"\]\((?:\.\./)+((?!docs/)[^)#]+)\)")
"""A link that leaves ``docs/``: to an example, or to the changelog."""
_FOR_CONTRIBUTORS = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "architecture.md", "bundle.md", "volume.md"}  # fmt: skip


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the files outside ``docs/`` that a page links to or the navigation has, under their own paths."""
    top = pathlib.Path(config.docs_dir).parent
    linked = {t for p in files.documentation_pages() for t in _OUTSIDE.findall(p.content_string)}
    for target in sorted(linked | _FOR_CONTRIBUTORS):
        if (top / target).is_file() and files.get_file_from_path(target) is None:
            files.append(File.generated(config, target, abs_src_path=str(top / target)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite such a link to the file's place in the site, and those of such a file back."""
    path = page.file.src_uri
    if path in _FOR_CONTRIBUTORS:
        page.meta["search"] = {"boost": 0.1}
    if path == "README.md":
        page.meta["hide"] = ["navigation", "toc"]
    if path == "reference/openpai.md":  # seven columns
        page.meta["hide"] = ["toc"]
    depth = path.count("/")
    if page.file.generated_by:
        return re.sub(r"\]\(docs/", f"]({'../' * depth}", markdown)
    return _OUTSIDE.sub(lambda link: f"]({'../' * depth}{link[1]})", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Let long code in tables wrap, and give each cell its column's head, which a narrow screen shows."""
    return re.sub(r"<table>.*?</table>", _narrow, html, flags=re.DOTALL)


def _narrow(table: re.Match[str]) -> str:
    heads = [re.sub(r"<[^>]*>", "", head) for head in re.findall(r"<th>(.*?)</th>", table[0])]

    def row(match: re.Match[str]) -> str:
        labels = iter(heads)
        return re.sub(r"<td>", lambda _: f'<td data-label="{next(labels, "")}">', match[0])

    labelled = re.sub(r"<tr>.*?</tr>", row, table[0], flags=re.DOTALL)
    return re.sub(r"(?<=<code>)[^<]{16,}(?=</code>)", _with_breaks, labelled)


def _with_breaks(code: re.Match[str]) -> str:
    return re.sub(r"(?<=[./_,:=-])(?=\w)|(?<=[a-z])(?=[A-Z])", "<wbr>", code[0])

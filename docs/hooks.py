"""What the site adds to MkDocs: files beside ``docs/`` that a page links to are part of the site."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

_BESIDE = re.compile(r"\]\((?:\.\./)+((?!docs/)[^)#]+)\)")
"""A link that leaves ``docs/``: to an example, or to the changelog."""


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add each file beside ``docs/`` that a page links to, under its own path."""
    top = pathlib.Path(config.docs_dir).parent
    for page in list(files.documentation_pages()):
        for target in _BESIDE.findall(page.content_string):
            if (top / target).is_file() and files.get_file_from_path(target) is None:
                files.append(File.generated(config, target, abs_src_path=str(top / target)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite such a link to the file's place in the site, and those of such a file back."""
    depth = page.file.src_uri.count("/")
    if page.file.generated_by:
        return re.sub(r"\]\(docs/", f"]({'../' * depth}", markdown)
    return _BESIDE.sub(lambda link: f"]({'../' * depth}{link[1]})", markdown)

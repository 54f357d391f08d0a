"""One self-contained HTML file: text, style, script and data, under a strict policy.

The Content-Security-Policy allows only the file's own style and script, by their hashes (Content
Security Policy Level 3, section 2.3.1). No text in the page can load or run anything else. Data is
JSON in a block that browsers do not execute (HTML Living Standard, section 4.12.1); every character
that could end the block is escaped. Templates escape every text.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import sys
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pairun.errors import PairunError, Problem
from pairun.report.shown import count_of

_HERE = os.path.dirname(os.path.abspath(__file__))


def assets(*names: str) -> str:
    """Read the files to embed into a page, one after the other."""
    texts = []
    for name in names:
        with open(os.path.join(_HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


def document(
    template: str, title: str, data: Any = None, *, style: str, script: str, **values: Any
) -> str:
    """Build the whole file.

    Args:
        template: the template's file; it extends ``page.html.j2``.
        title: the page's title; any text.
        data: the script's data; must be valid as JSON.
        style: CSS.
        script: JavaScript.
        values: what the template shows.
    """
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    # Only ASCII, and nothing that an HTML parser interprets inside a script.
    text = json.dumps(data or {}, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for each in "<>&":
        text = text.replace(each, f"\\u{ord(each):04x}")
    pages = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        finalize=printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters |= {"as_text": _as_text, "count_of": count_of}
    return pages.get_template(template).render(
        values,
        title=title,
        policy=policy,
        data=text,
        style=style,
        script=script,
    )


def printable(value: Any) -> Any:
    r"""Show what controls a terminal or reverses the text direction as an escape like ``\u202e``."""
    if hasattr(value, "__html__") or str(value).isprintable():
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
        for c in str(value)
    )


def _as_text(data: Any) -> str:
    """A text stays as it is, other data becomes JSON."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def write_page(file: str, page: str) -> None:
    """Write a page to a temporary file in the same folder, and rename it when complete.

    Args:
        file: the path; ``-`` is standard output.
        page: the HTML.

    Raises:
        PairunError: the file cannot be written (PR811).
    """
    if file == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(page.encode())
        return
    unfinished = f"{file}.{os.getpid()}"
    try:
        with open(unfinished, "w", encoding="utf-8") as f:
            f.write(page)
        os.replace(unfinished, file)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise PairunError(Problem("PR811", f"{file} cannot be written: {e.strerror}")) from e


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

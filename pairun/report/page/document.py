"""One self-contained HTML file: text, style, script and data, under a strict policy.

The Content-Security-Policy allows only the file's own style and script, by their hashes (Content
Security Policy Level 3, section 2.3.1). No text in the page can load or run anything else. Data is
JSON in a block that browsers do not execute (HTML Living Standard, section 4.12.1); every character
that could end the block is escaped.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import sys
from typing import Any

from pairun.errors import PairunError, Problem
from pairun.report.page.html import Html, escape

_HERE = os.path.dirname(os.path.abspath(__file__))


def assets(*names: str) -> str:
    """Read the files to embed into a page, one after the other."""
    texts = []
    for name in names:
        with open(os.path.join(_HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


def document(title: str, body: Html, data: Any, *, style: str, script: str) -> str:
    """Build the whole file.

    Args:
        title: the page's title; any text.
        body: its content.
        data: the script's data; must be valid as JSON.
        style: CSS.
        script: JavaScript.
    """
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            body,
            f'<script type="application/json" id="data">{_json(data)}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        )
    )


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


def _json(data: Any) -> str:
    # Only ASCII, and nothing that an HTML parser interprets inside a script.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

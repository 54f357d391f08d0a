"""One HTML file that needs nothing else: text, style, script and data, under a strict policy.

The Content-Security-Policy allows the file's own style and script by their hashes and nothing else
(Content Security Policy Level 3, section 2.3.1), so whatever text slips into the page can load or run
nothing. Data is JSON in a block that no browser executes (HTML Living Standard, section 4.12.1), with
every character escaped that could end the block.
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
    """The files that become a part of a page, one after the other."""
    texts = []
    for name in names:
        with open(os.path.join(_HERE, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


def document(title: str, body: Html, data: Any, *, style: str, script: str) -> str:
    """The whole file.

    Args:
        title: of the page; any text.
        body: its content.
        data: what the script reads; anything that is JSON.
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
    """Write a page beside its place, and rename it when it is whole.

    Args:
        file: the place; ``-`` is standard output.
        page: the HTML.

    Raises:
        PairunError: it cannot be written (PR811).
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
    # ASCII alone, and nothing that an HTML parser looks at inside a script.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

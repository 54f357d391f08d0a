"""Secrets: the bundle as PID 1 masks whatever programs make of them, in tasks and in the command."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

from pairun.secrets.forms import MASK
from tests.secrets.derivations import VALUES, printing, shown_of


def test_what_programs_make_of_secrets(
    volume: Any, start: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    """Trimmed, split, joined, in every form: no stream, file, journal or message shows a piece."""
    command = printing(tmp_path)
    task = {"append": None, "id": "look", "name": "Look", "cmd": {"script": command}}
    volume.prepare(
        f"{command}; exit 7", runtime=f"runtime: {json.dumps([task])}\n", secrets=tuple(VALUES)
    )
    message = tmp_path / "termination-log"
    running = start(
        "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", volume.path / "runtime",
        env={"PATH": "/usr/bin:/bin", "PAIRUN_PAI_DIR": str(volume.path),
             "FC_POD_UID": volume.log.name, "PAIRUN_TERMINATION_LOG": str(message)},
    )  # fmt: skip
    assert running.end() == 7, running.text
    texts = {p.name: p.read_text(errors="replace") for p in volume.log.rglob("*") if p.is_file()}
    assert {"journal.jsonl", "runtime.log", "current"} <= texts.keys()
    texts |= {"stream": running.text, "message": message.read_text()}
    assert {name: found for name, text in texts.items() if (found := shown_of(text))} == {}
    for label in ("cat", "read", "lines", "words"):
        assert {f"{label} {MASK}", f"  look | {label} {MASK}"} <= set(running.lines)
    assert MASK in texts["message"]

"""Secrets: whatever programs make of them, no sink of PID 1 shows them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from pairun.secrets.forms import MASK
from tests.secrets.derivations import VALUES, printing, shown_of


def test_what_programs_make_of_secrets(volume: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """Trimmed, split, joined, in every form: the stream, the files and the message show nothing."""
    folder = volume.root / "logs" / "local"
    folder.mkdir(parents=True)
    content = {"schema": 2, "redact": VALUES, "values": {}}
    (volume.files / "secrets.json").write_text(json.dumps(content))
    message = tmp_path / "termination-log"
    volume.command(f"{printing(tmp_path)}; exit 7")
    running = start(PAIRUN_TERMINATION_LOG=str(message))
    assert running.end() == 7
    sinks = {p.relative_to(folder): p for p in folder.rglob("*") if p.is_file()}
    assert {"user-all", "user-stdout", "journal.jsonl"} <= {path.parts[0] for path in sinks}
    texts = {str(name): path.read_text(errors="replace") for name, path in sinks.items()}
    texts |= {"stream": "\n".join(running.lines), "message": message.read_text()}
    assert {name: found for name, text in texts.items() if (found := shown_of(text))} == {}
    for name in ("stream", "message", "user-all/current"):
        assert MASK in texts[name], name
    for label in ("cat", "trace", "read", "while", "lines", "commas", "words"):
        assert f"{label} {MASK}" in texts["stream"]

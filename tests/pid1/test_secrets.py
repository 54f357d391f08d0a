"""Secrets: whatever programs make of them, no sink of PID 1 shows them."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from pairun.base.processes import limit_cores
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


@pytest.mark.parametrize("part", ["tasks", "handlers", "command"])
def test_no_core_dump_and_no_environment_has_a_secret(
    volume: Any, start: Any, succeeded: Any, part: str, tmp_path: pathlib.Path
) -> None:
    """No process of pairun leaves a core dump; the command may. None has the command's secrets."""
    content = {"schema": 2, "redact": ["open-sesame"], "values": {"a": "open-sesame"}}
    (volume.files / "secrets.json").write_text(json.dumps(content))
    volume.plan["command"]["environment"] = {"TOKEN": {"$secret": "a"}}
    seen = tmp_path / "seen"
    # PID 1 has the command's limit for the moment in which it starts the command
    again = 'n=0; while [ $n -lt 900 ] && ! grep -q "core file size *0 " /proc/$PPID/limits; do n=$((n+1)); sleep 0.01; done'
    look = f"{again}; cat /proc/$PPID/limits /proc/$PPID/environ > {seen}"
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={part: look})
    volume.command(f"echo limit $(ulimit -c) token $TOKEN; {look if part == 'command' else 'true'}")
    before = limit_cores((1024 * 1024, limit_cores()[1]))
    try:
        running = start()
    finally:
        limit_cores(before)
    assert running.end() == 0
    assert running.got("limit 1024 token ******")
    data = seen.read_text()
    assert re.search(r"Max core file size +0 ", data)
    assert "PAI_TASK_INDEX=0" in data or part == "command"
    assert "open-sesame" not in data

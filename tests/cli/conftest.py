"""The command line, in this process for breadth and as a process of its own for truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pairun.cli.main import main
from tests.desk import ALL_OPEN, JOB

PROJECT = Path(__file__).parents[2]


class Said(NamedTuple):
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out, parse_constant=lambda c: pytest.fail(f"{c} is not JSON"))

    @property
    def ids(self) -> list[str]:
        """The ids of all problems that were printed for people, in order."""
        marks = ("error[", "warning[")
        return [line.split("[")[1][:5] for line in self.err.splitlines() if line.startswith(marks)]


class Shell:
    """Runs commands in a directory of the test's own.

    Attributes:
        tmp: the directory, which is also HOME and the working directory.
    """

    project = PROJECT
    job_text = JOB
    all_open = ALL_OPEN

    def __init__(self, tmp: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.tmp = tmp
        self._capture = capture

    def file(self, path: str, text: str | bytes) -> Path:
        """A file below the directory."""
        place = self.tmp / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def job(self, pairun: str = "", *, more: str = "", path: str = "job.yaml") -> Path:
        """A job's file, with its ``extras.pairun`` and further top-level keys."""
        extras = ""
        if pairun:
            body = textwrap.indent(textwrap.dedent(pairun), "    ").rstrip()
            extras = f"extras:\n  pairun:\n{body}\n"
        return self.file(path, JOB + more + extras)

    def root(self, files: Mapping[str, str], name: str = "cluster") -> Path:
        """A content root with these files."""
        for path, text in files.items():
            self.file(f"{name}/{path}", text)
        return self.tmp / name

    def __call__(self, *argv: object) -> Said:
        """Run a command in this process; an exception that escapes fails the test."""
        self._capture.readouterr()
        try:
            code = main([str(a) for a in argv])
        except SystemExit as e:
            code = int(e.code or 0)
        out, err = self._capture.readouterr()
        assert "Traceback" not in out + err
        assert "pairun itself failed" not in err
        return Said(code, out, err)

    def process(
        self,
        *argv: object,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
        cwd: Path | None = None,
    ) -> Said:
        """Run a command as a person would.

        Args:
            argv: the arguments.
            stdin: what it reads.
            env: further variables.
            before: a program and arguments that start it.
            cwd: where; the test's directory by default.
        """
        full = {"PATH": os.environ["PATH"], "HOME": str(self.tmp), "TMPDIR": str(self.tmp)}
        done = subprocess.run(
            [*before, sys.executable, "-m", "pairun", *map(str, argv)],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**full, **(env or {})},
            cwd=cwd or self.tmp,
            timeout=120,
        )
        assert "Traceback" not in done.stdout + done.stderr
        assert "pairun itself failed" not in done.stderr
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """A shell in a directory of the test's own, without the outer environment's roots."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAIRUN_DEBUG", "1")
    for name in ("PAIRUN_PATH", "PAI_CONFIG_DIR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path, capsys)

"""Every form that programs give a secret is masked in every sink of both phases and of the commands."""

from __future__ import annotations

import base64
import html
import json
import os
import shlex
import subprocess
import sys
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.secrets.derivations import VALUES, printing, shown_of

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECRET = "Zq7'Marker <b>&\"w\\ $x9Kd and-some-more-of-it"
PIECES = ("Zq7", "Marker", "x9Kd", "some-more")
"""What no quoting changes: whoever sees one of these sees some of the secret."""

OPEN = (
    'job_may:\n  patch: {"*": "*"}\n  insert: {init: "*", runtime: "*"}\n  plugins: {allow: "*"}\n'
)


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return "\n".join(indent + text[at : at + width] for at in range(0, len(text), width))


def forms() -> Mapping[str, str]:
    """The secret as programs write it."""
    raw = SECRET.encode()
    encoded = base64.b64encode(raw).decode()
    traced = subprocess.run(
        ["bash", "-xc", ': "$1"', "_", SECRET], capture_output=True, text=True, check=True
    )
    quoted = subprocess.run(
        ["bash", "-c", 'printf %q "$1"', "_", SECRET], capture_output=True, text=True, check=True
    )
    return {
        "raw": SECRET,
        "coloured": f"{SECRET[:5]}\x1b[31m{SECRET[5:]}\x1b[0m",
        "set -x": traced.stderr.rstrip("\n"),
        "printf %q": quoted.stdout,
        "shlex": shlex.quote(SECRET),
        "repr": repr(SECRET),
        "repr of bytes": repr(raw),
        "HTML": html.escape(SECRET),
        "JSON": json.dumps(SECRET),
        "URL": urllib.parse.quote(SECRET, safe=""),
        "form": urllib.parse.quote_plus(SECRET),
        "base64": encoded,
        "base64 behind a name": base64.b64encode(b"user:" + raw).decode(),
        "base64 in lines": _wrapped(encoded, 16),
        "base64, indented": _wrapped(encoded, 20, "    "),
        "base64 for addresses": base64.urlsafe_b64encode(raw).decode(),
        "hexadecimal": raw.hex(),
        "hexadecimal, upper": raw.hex().upper(),
    }


FORMS = forms()


def leaks(text: str) -> list[str]:
    """What of the secret a text shows."""
    middle = [base64.b64encode(SECRET.encode()).decode()[8:20], SECRET.encode().hex()[8:20]]
    middle += [middle[1].upper(), base64.b64encode(b"user:" + SECRET.encode()).decode()[20:32]]
    return [piece for piece in (*PIECES, *middle) if piece in text] + shown_of(text)


def job(tasks: str, command: str = "true", more: Sequence[str] = VALUES) -> str:
    """A job with the secret, more secrets, and tasks of its own."""
    return (
        "protocolVersion: 2\nname: forms\ntype: job\n"
        f"secrets: {json.dumps({'s': SECRET, 'more': more})}\n"
        "prerequisites:\n- {name: i, type: dockerimage, uri: 'r.example.com/team/busybox:1.36'}\n"
        "taskRoles:\n  w:\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n"
        f"    commands: [{json.dumps(command)}]\n"
        f"extras:\n  pairun:\n{tasks}"
    )


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A cluster whose jobs may do everything."""
    folder = tmp_path / "root" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "policy.yaml").write_text(OPEN)
    return str(folder.parent)


def test_the_pieces_show_each_form() -> None:
    """Unmasked, each of these would be noticed."""
    for name, text in FORMS.items():
        joined = "".join(text.split()) if "base64" in name else text
        assert leaks(joined), name


def test_what_a_job_prints(tmp_path: Path, root: str, shell: Shell) -> None:
    """Init's output, the command's streams, logs, journals, the summary and reports hold no form."""
    printed = tmp_path / "printed"
    printed.write_text("".join(f"{name}: {text}\n" for name, text in FORMS.items()))
    path = tmp_path / "job.yaml"
    show = f"cat {printed}; cat {printed} >&2; {printing(tmp_path)}; exit 7"
    tasks = "".join(
        f"    {phase}:\n      - {where}\n        id: {phase}_shows\n        name: Shows them\n"
        f"        cmd: {{script: {json.dumps(show)}}}\n        failure_policy: ignore\n"
        for phase, where in (("init", "before: image_check"), ("runtime", "before: user_command"))
    )
    path.write_text(job(tasks, show))
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", str(path), "--root", root, "--no-namespace",
         "--workdir", str(work)],
        capture_output=True, text=True, cwd=ROOT, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 7, done.stdout + done.stderr
    for name in FORMS:
        # init's task, the runtime's task and the command, on both of its streams
        assert done.stdout.count(f"{name}: ") >= 6, name
    assert leaks(done.stdout + done.stderr) == []
    kept = {"secrets.json", "secrets.yaml", "user.sh", "framework.json"}
    files = [p for p in work.rglob("*") if p.is_file() and p.name not in kept]
    shown = {p.name: found for p in files if (found := leaks(p.read_text(errors="replace")))}
    assert shown == {}
    assert {"journal.jsonl", "pai-termination-log"} <= {p.name for p in files}
    for words in (["report"], ["report", "--json"], ["report", "--blame"]):
        said = shell(*words, str(work))
        assert said.code == 0, said.err
        assert leaks(said.out + said.err) == []


@pytest.mark.parametrize("name", FORMS)
def test_what_commands_show_of_a_job(name: str, tmp_path: Path, root: str, shell: Shell) -> None:
    """Names, arguments and wrong values that hold a form show none of it."""
    text = json.dumps(FORMS[name])
    padding = json.dumps(f"some words that come before it, so that lines are wrapped {FORMS[name]}")
    good = (
        "    runtime:\n      - before: user_command\n        id: shows\n"
        f"        name: {padding}\n        cmd: {{argv: [echo, {text}, {padding}]}}\n"
    )
    path = tmp_path / "job.yaml"
    for tasks in (good, good + f"        retries: {text}\n", good + f"        on_exit: {text}\n"):
        path.write_text(job(tasks))
        for words in (
            ["--dry-run", str(path), "--root", root],
            ["--dry-run", "--json", str(path), "--root", root],
            ["--dry-run", str(path), "--root", root, "--why", "shows.args.argv"],
            ["lint", str(path), "--root", root],
            ["lint", "--json", str(path), "--root", root],
            ["diff", "built-in", root, str(path)],
            ["diff", "--json", "built-in", root, str(path)],
            ["run", str(path), "--root", root, "--workdir", f"{path}/not-a-folder"],
            ["manifest", str(path), "--root", root, "--engine", "jobset"],
        ):
            said = shell(*words)
            assert leaks(said.out + said.err) == [], words
        # What it prints is the job, with its secrets.
        assert leaks(shell("convert", str(path)).err) == []

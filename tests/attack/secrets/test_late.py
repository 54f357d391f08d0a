"""Secrets that nobody knows before a task has read or made them are masked from then on, in every sink."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_init import UID, Init, init

__all__ = ["init"]

ROOT = Path(__file__).parents[3]
LATE = "late-Zq7'Marker <b>&\"w\\ $x9Kd and-some-more"
PIECES = ("Zq7", "Marker", "x9Kd", "some-more")
"""What no quoting changes."""

MODULE = '''
"""Learns a secret of its own."""

from pairun.module import Context, Failure, Result, StateModule, Verdict, arg, define, will_change


@define
class Learn(StateModule):
    """Learn a secret."""

    phases = ("init", "runtime")
    example = "learn: {path: /etc/credential}"
    verify = False

    path: str = arg("Where it is.")

    def probe(self, ctx: Context) -> str:
        """It."""
        text = (ctx.read_file(self.path) or b"").decode()
        ctx.hide([text])
        ctx.log(f"learned {text}")
        return text

    def plan(self, state: str) -> Verdict:
        """Tell it."""
        return will_change(f"use {state}")

    def apply(self, ctx: Context) -> Result:
        """Use it, and fail with it."""
        text = self.probe(ctx)
        return Result(message=f"used {text}", values={"it": text}, environment={"GOT": text})
'''
POLICY = (
    'job_may:\n  patch: {"*": "*"}\n  insert: {init: "*", runtime: "*"}\n  plugins: {allow: "*"}\n'
)


def leaks(text: str) -> list[str]:
    """What of the secret a text shows."""
    return [piece for piece in PIECES if piece in text]


def job(credential: Path, command: str) -> str:
    """A job whose tasks learn the secret, print it, fail with it, and hand it to the command."""
    learn = f"name: Learns it\n        learn: {{path: {credential}}}\n"
    show = json.dumps('printf "%s\\n" "$GOT"; printf "%s\\n" "$GOT" >&2')
    return f"""\
protocolVersion: 2
name: late
type: job
prerequisites:
- {{name: i, type: dockerimage, uri: 'r.example.com/team/busybox:1.36'}}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands: [{json.dumps(command)}]
extras:
  pairun:
    init:
      - before: image_check
        id: init_learns
        {learn}\
      - after: init_learns
        id: init_shows
        name: Shows it
        cmd: {{script: {show}}}
    runtime:
      - before: user_command
        id: learns
        {learn}\
        on_exit:
          - name: Shows it at the end
            event: always
            cmd: {{script: {show}}}
            failure_policy: ignore
      - after: learns
        id: shows
        name: Shows it
        cmd: {{script: {show}}}
      - after: shows
        id: fails
        name: Fails with it
        cmd: {{argv: [sh, -c, {json.dumps('echo "no use of $GOT" >&2; exit 3')}]}}
        failure_policy: ignore
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cluster with a module that learns a secret, whose jobs may do everything."""
    for folder in ("playbooks", "modules"):
        (tmp_path / "root" / folder).mkdir(parents=True)
    (tmp_path / "root/playbooks/policy.yaml").write_text(POLICY)
    (tmp_path / "root/modules/learn.py").write_text(MODULE)
    return tmp_path / "root"


@pytest.mark.slow
def test_a_secret_that_a_task_has_read(tmp_path: Path, root: Path) -> None:
    """Later tasks, the command, exit handlers, logs, journals, the termination message hide it."""
    credential = tmp_path / "credential"
    credential.write_text(LATE)
    path = tmp_path / "job.yaml"
    show = 'echo "command: $GOT"; echo "error: $GOT" >&2; env | sort; exit 7'
    path.write_text(job(credential, show))
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", str(path), "--root", str(root), "--no-namespace",
         "--workdir", str(work)],
        capture_output=True, text=True, cwd=ROOT, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 7, done.stdout + done.stderr
    assert "command: ******" in done.stdout
    assert done.stdout.count("******") >= 12, done.stdout
    assert leaks(done.stdout + done.stderr) == []
    files = [p for p in work.rglob("*") if p.is_file()]
    shown = {str(p): found for p in files if (found := leaks(p.read_text(errors="replace")))}
    assert shown == {}
    assert {"journal.jsonl", "pai-termination-log"} <= {p.name for p in files}


def test_the_token_of_the_service_account(init: Init) -> None:
    """What init proves itself with at the API server is in no output, whoever prints it."""
    credentials = init.folder / "credentials"
    credentials.mkdir()
    (credentials / "token").write_text(LATE.replace(" ", "_"))
    init.env |= {
        "PAIRUN_API_CREDENTIALS": str(credentials),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "1",
    }
    init.placed(
        "  - append:\n"
        "    id: shows\n"
        "    name: Shows it\n"
        f"    cmd: {{script: 'cat {credentials}/token; echo; echo shown'}}\n"
    )
    code, printed = init.run()
    assert code == 0, printed
    assert "shown" in printed
    assert leaks(printed) == []
    for path in (init.volume / "logs").rglob("*"):
        assert not path.is_file() or leaks(path.read_text(errors="replace")) == []
    assert leaks((init.volume / "runtime.d/secrets.json").read_text()) == []


def test_the_key_of_the_rendezvous(init: Init) -> None:
    """The key that all instances of a job share is in no output of init, and is not handed over again."""
    key = base64.b64encode(b"Marker-of-the-rendezvous-key").decode()
    (init.volume / "rendezvous").mkdir()
    (init.volume / "rendezvous/key").write_text(key)
    init.placed(
        "  - append:\n"
        "    id: shows\n"
        "    name: Shows it\n"
        f"    cmd: {{script: 'cat {init.volume}/rendezvous/key; echo; echo shown'}}\n"
    )
    code, printed = init.run()
    assert code == 0, printed
    assert "shown" in printed
    assert key not in printed
    assert key not in (init.volume / "logs" / UID / "journal.jsonl").read_text()
    assert key not in (init.volume / "runtime.d/secrets.json").read_text()

"""While a job runs, its secrets are in no argument list, and in no file or environment that is not theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.secrets.watching import Watch
from tests.cli.conftest import Shell
from tests.cli.test_secret_forms import OPEN
from tests.webserver import Answer, Asked, WebServer

ROOT = Path(__file__).parents[3]
MARK = "Zq7MarkerX9Kd-and-some-more"

JOB = f"""\
protocolVersion: 2
name: sweep
type: job
secrets: {{s: {MARK}}}
prerequisites:
- name: i
  type: dockerimage
  uri: 'localhost:1/team/busybox:1.36'
  auth: {{username: u, password: <% $secrets.s %>}}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands: ["sleep 0.3; test -n <% $secrets.s %>; exit 7"]
extras:
  pairun:
    init:
      - patch: image_check
        failure_policy: ignore
        retries: 0
      - before: image_check
        id: clones
        name: Clones with a password
        git_clone: {{repo: 'http://user:{{{{ secrets.s }}}}@localhost:PORT/repo.git', dest: DIR/clone}}
        retries: 0
        failure_policy: ignore
    runtime:
      - before: user_command
        id: downloads
        name: Downloads with a header
        download: {{url: 'http://localhost:PORT/file', dest: DIR/file, headers: {{Authorization: 'Bearer {{{{ secrets.s }}}}'}}}}
        retries: 0
        failure_policy: ignore
      - before: user_command
        id: tells
        name: Sends it
        notify: {{url: 'http://localhost:PORT/hook', headers: {{Authorization: 'Bearer {{{{ secrets.s }}}}'}}}}
        retries: 0
        failure_policy: ignore
      - before: user_command
        id: uses
        name: Has it as a variable
        cmd: {{script: 'sleep 0.3; exit 3'}}
        environment: {{TOKEN: '{{{{ secrets.s }}}}'}}
        failure_policy: ignore
        on_exit:
          - name: Ends with it
            event: always
            cmd: {{script: 'sleep 0.3'}}
            environment: {{TOKEN: '{{{{ secrets.s }}}}'}}
            failure_policy: ignore
"""


def refuse(asked: Asked) -> Answer:
    """Refuse everything, and quote the credential."""
    data = f"no: {asked.authorization} {MARK}".encode()
    return Answer(401, {"WWW-Authenticate": f'Basic realm="{MARK}"'}, data, f"no {MARK}")


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_a_run_from_outside(mask: int, tmp_path: Path, shell: Shell) -> None:
    """Argument lists, environments, files at any moment, output, journals, page, report, diagnosis."""
    server = WebServer(refuse)
    shell.file("root/playbooks/policy.yaml", OPEN)
    text = JOB.replace("PORT", str(server.port)).replace("DIR", str(tmp_path))
    job = shell.file("job/job.yaml", text)
    job.chmod(0o600)
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    temporary.mkdir()
    argv = [sys.executable, "-m", "pairun", "run", str(job), "--root", str(tmp_path / "root"),
            "--no-namespace", "--workdir", str(work)]  # fmt: skip
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(temporary),
    }
    with Watch(MARK, str(tmp_path), [work, temporary]) as watch:
        done = subprocess.run(
            argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False,
            umask=mask,
        )  # fmt: skip
    server.shutdown()
    server.server_close()
    assert done.returncode == 7, done.stdout + done.stderr
    assert MARK not in done.stdout + done.stderr
    assert {Path(program).name for program in watch.programs} & {"bash", "sh"}
    environments = {where for kind, where in watch.sights if kind == "environ"}
    assert [s for s in watch.sights if s.kind != "environ"] == []
    # what the author put it into: the task's script, its handler, git for its own credential helper
    for where in environments:
        assert any(word in where for word in ("sleep", "git", "bash", "sh ")), where
    assert list(temporary.rglob("*")) == []
    kept = {"secrets.json", "secrets.yaml", "user.sh", "framework.json"}
    for path in work.rglob("*"):
        if path.is_file() and MARK.encode() in path.read_bytes():
            assert path.name in kept, path
            assert path.stat().st_mode & 0o077 == 0, path
    page, review = tmp_path / "page.html", tmp_path / "review.html"
    for words in (["report"], ["report", "--json"], ["report", "--blame"], ["report", "--metrics"],
                  ["report", "--html", str(page)],
                  ["diagnose", str(work)], ["--dry-run", str(job)], ["--dry-run", "--json", str(job)],
                  ["--dry-run", "--html", str(review), str(job)]):  # fmt: skip
        more = [str(work)] if words[0] == "report" else []
        said = shell(*words, *more)
        assert MARK not in said.out + said.err, words
    assert MARK not in page.read_text() + review.read_text()
    assert json.loads(shell("report", "--json", str(work)).out)

"""A secret at every place where a job or a cluster can hold one is in no output whatsoever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

ROOT = Path(__file__).parents[2]
MARK = "s3cretMARK"
JOB = f"""\
protocolVersion: 2
name: hidden
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: "https://alice:{MARK}image@r.example.com/team/busybox:1.36"
    auth:
      username: alice
      password: {MARK}password
      pasword: {MARK}pasword
      registryuri: r.example.com
parameters: {{token: "<% $secrets.token %>"}}
secrets:
  token: {MARK}token
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0}}
    commands:
      - echo http://bob:{MARK}command@127.0.0.1:9/a
      - echo "<% $secrets.token %>" "<% $parameters.token %>"
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: git
      failurePolicy: ignore
      parameters: {{repo_uri: "http://reader:<% $secrets.token %>@127.0.0.1:9/team/x.git"}}
    - plugin: git
      failurePolicy: ignore
      parameters: {{repo_uri: "http://reader:{MARK}repo@127.0.0.1:9/team/y.git"}}
  pairun:
    init:
      - patch: git
        retries: 0
      - patch: git_2
        retries: 0
    runtime:
      - before: user_command
        id: data
        name: Get {{{{ secrets.token }}}}
        download:
          url: http://127.0.0.1:9/a
          dest: /tmp/pairun-never-there
          headers:
            Authorization: "Bearer {{{{ secrets.token }}}}"
            X-Token: "{{{{ parameters.token }}}}"
            Cookie: {MARK}cookie
        failure_policy: ignore
"""
OPEN = """\
job_may:
  patch: {"*": "*"}
  insert: {init: "*", runtime: "*"}
  plugins: {allow: "*"}
"""
INIT = f"""\
phase: init
patches:
  - patch: image_check
    args: {{auth: {{username: alice, password: {MARK}cluster, registry: r.example.com}}}}
"""
RUNTIME = f"""\
phase: runtime
patches:
  - before: user_command
    id: cluster_data
    name: The data of the cluster is here
    download:
      url: http://127.0.0.1:9/b
      dest: /tmp/pairun-never-there-either
      headers: {{Authorization: Bearer {MARK}header}}
    failure_policy: ignore
    environment: {{SOME_TOKEN: {MARK}environment}}
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    """The job's file."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return str(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cluster's content root."""
    folder = tmp_path / "root" / "playbooks"
    folder.mkdir(parents=True)
    for name, text in (("policy", OPEN), ("init", INIT), ("runtime", RUNTIME)):
        (folder / f"{name}.yaml").write_text(text)
    return folder.parent


@pytest.mark.parametrize(
    "words",
    [
        "--dry-run JOB --root ROOT",
        "--dry-run JOB --root ROOT --json",
        "--dry-run JOB",
        "--dry-run JOB --root ROOT --why image_check.args.auth --why data.args.headers.Cookie",
        "--dry-run JOB --root ROOT --why image_check.args.auth.password --why cluster_data.args",
        "lint JOB --root ROOT",
        "lint JOB --root ROOT --json",
        "lint ROOT/playbooks/init.yaml ROOT/playbooks/runtime.yaml",
        "diff built-in ROOT JOB",
        "diff built-in ROOT JOB --json",
        "diff ROOT built-in JOB",
    ],
)
def test_no_review_shows_a_secret(words: str, shell: Shell, job: str, root: Path) -> None:
    """Reviews, JSON, histories, lints and diffs name every value but the secret ones."""
    said = shell(*words.replace("JOB", job).replace("ROOT", str(root)).split())
    assert said.out + said.err
    assert MARK not in said.out + said.err


@pytest.mark.parametrize(
    "slip",
    [
        ("secrets:\n  token", "secret:\n  token"),
        ("    uri: ", "    urii: "),
        ("registryuri: r.example.com", "registryuri: [1]"),
        (f"password: {MARK}password", f"password: [{MARK}password]"),
        ("parameters: {token", "parameter: {token"),
        ("    commands:", "  commands:\n  :"),
        ("url: http://", f"url: http://carol:{MARK}url@"),
        ("dest: /tmp", "dset: /tmp"),
        (f"Cookie: {MARK}cookie", f"Cookie: [{MARK}cookie]"),
        ("failurePolicy: ignore", "failurePolicy: nope"),
        ('"Bearer {{', '"Bearer {{ nope }} {{'),
        (f"  token: {MARK}", f"  token: *{MARK}"),
        (f"  token: {MARK}", f"  token: !{MARK} "),
        (f"  token: {MARK}", f"  token: !!int {MARK}"),
        (f"secrets:\n  token: {MARK}token", f"secrets: {{pw: *{MARK}}}"),
        (f"secrets:\n  token: {MARK}token", f'{{"secrets": {{"pw": *{MARK}}}}}'),
        (f"password: {MARK}", f"password: *{MARK}"),
        (f"password: {MARK}", f"password: !{MARK}"),
        (f"password: {MARK}", f"password: @{MARK}"),
        (f"password: {MARK}", f'password: "{MARK}'),
        (f"password: {MARK}", f"password: {{{MARK}"),
        (f"password: {MARK}password", f"password: |\n        {MARK}\n      : ]"),
    ],
)
def test_no_error_shows_a_secret(slip: tuple[str, str], shell: Shell, job: str, root: Path) -> None:
    Path(job).write_text(JOB.replace(*slip))
    stack = ["--root", str(root)]
    for words in (
        ["--dry-run", job, *stack],
        ["lint", job, *stack],
        ["--dry-run", "--json", job, *stack],
        ["run", job, *stack],
        ["diff", "built-in", str(root), job],
        ["diff", "--json", "built-in", str(root), job],
        ["convert", job],
        ["manifest", job, "--engine", "jobset", "--image", "r.example.com/pairun", *stack],
    ):
        said = shell(*words)
        # convert prints the job's own text where it can be read
        assert MARK not in (
            said.err if words[0] in ("convert", "manifest") else said.out + said.err
        ), words


@pytest.mark.parametrize(
    ("old", "new"),
    [("password:", "pasword:"), ("username: alice", "username: 5"), ("auth: {", "auth: [{")],
)
def test_no_error_shows_the_cluster_s_secret(
    old: str, new: str, shell: Shell, job: str, root: Path
) -> None:
    """A playbook's misspelt key is shown without its value."""
    text = INIT.replace(old, new) + ("]}" if "[" in new else "")
    (root / "playbooks" / "init.yaml").write_text(text)
    for words in (["--dry-run", job, "--root", str(root)], ["lint", job, "--root", str(root)],
                  ["lint", str(root / "playbooks" / "init.yaml")]):  # fmt: skip
        said = shell(*words)
        assert said.code == 1 or words[0] == "lint"
        assert MARK not in said.out + said.err, words


def test_a_pod_s_settings_show_no_secret(shell: Shell, tmp_path: Path) -> None:
    """The addresses of RUNTIME_CONFIG and the values of INIT_CONFIG are masked as a job's are."""
    runtime = tmp_path / "runtime.yaml"
    runtime.write_text(
        "commands: [a]\nruntimePlugin:\n- {plugin: git, parameters: {repo_uri: "
        f'"http://alice:{MARK}@127.0.0.1/x.git", repo_urii: x}}}}\n'
    )
    for more in ([], ["--json"], ["--why", "git.args.repo"]):
        said = shell("--dry-run", "--runtime-config", str(runtime), *more)
        assert "git" in said.out
        assert MARK not in said.out + said.err


def test_a_run_shows_no_secret(job: str, root: Path, tmp_path: Path) -> None:
    """The screen, the logs, the journals and the plan of a run hold none, whatever fails."""
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", job, "--root", str(root), "--no-namespace",
         "--workdir", str(work)],
        capture_output=True, text=True, cwd=ROOT, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "Clone 127.0.0.1:9/team/x.git" in done.stdout, done.stdout + done.stderr
    assert "succeeded" in done.stdout, done.stdout
    assert MARK not in done.stdout + done.stderr
    kept = {"secrets.json", "secrets.yaml", "user.sh", "framework.json"}
    found = [p for p in work.rglob("*") if p.is_file() and not p.is_symlink()]
    shown = [p for p in found if p.name not in kept and MARK.encode() in p.read_bytes()]
    assert not shown
    plan = next(p for p in found if p.name == "plan.json")
    secrets = json.loads(plan.with_name("secrets.json").read_text())
    assert f"Bearer {MARK}token" in secrets["values"].values()
    # a login of the cluster's init phase does not reach the user's container
    assert not any(f"{MARK}cluster" in p.read_text(errors="replace") for p in found)


@pytest.mark.parametrize("secret", ["type", "outcome", "null", "schema"])
def test_a_secret_that_equals_a_word_of_the_journal(
    secret: str, tmp_path: Path, shell: Shell
) -> None:
    """The job's exit code is the command's own, and the report reads the journal."""
    path = tmp_path / "job.yaml"
    path.write_text(
        "protocolVersion: 2\nname: words\ntype: job\n"
        f"secrets: {{x: {secret!r}}}\n"
        "prerequisites: [{name: i, type: dockerimage, uri: 'r.example.com/team/busybox:1.36'}]\n"
        "taskRoles:\n  w:\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n"
        "    commands: ['echo <% $secrets.x %>; exit 7']\n"
    )
    work = tmp_path / "work"
    done = shell("run", str(path), "--no-namespace", "--workdir", str(work))
    assert done.code == 7, done.out + done.err
    assert "KeyError" not in done.out + done.err
    report = shell("report", str(work))
    assert report.code == 0, report.err
    assert "failure" in report.out or "failed" in report.out or "7" in report.out


def test_a_secret_of_a_job_reaches_its_tasks(shell: Shell, job: str, root: Path) -> None:
    """Under extras.pairun, `secrets` are the job's own; nothing of the cluster's layer sees them."""
    said = shell("--dry-run", job, "--root", str(root), "--json")
    tasks = {t["id"]: t for t in said.data["roles"]["worker"]["runtime"]}
    assert tasks["data"]["args"]["headers"] == {
        "Authorization": "Bearer ******",
        "X-Token": "******",
        "Cookie": "******",
    }
    text = RUNTIME.replace(f"Bearer {MARK}header", '"{{ secrets.token }}"')
    (root / "playbooks" / "runtime.yaml").write_text(text)
    assert "PR301" in shell("--dry-run", job, "--root", str(root)).ids


@pytest.mark.parametrize(
    ("tag", "instead"),
    [("<% $secrets.token %>", "{{ secrets.token }}"), ("<%$parameters.x%>", "{{ parameters.x }}")],
)
def test_a_tag_is_no_expression(tag: str, instead: str, shell: Shell, job: str) -> None:
    """A tag under extras.pairun would be sent as it is: the error says what to write."""
    Path(job).write_text(JOB.replace(f"Cookie: {MARK}cookie", f"Cookie: '{tag}'"))
    for command in ("--dry-run", "lint", "run"):
        said = shell(command, job)
        assert said.code == 1
        assert "PR306" in said.ids
        assert f"write an expression: {instead}" in said.err


def test_a_misspelt_login_is_told(shell: Shell, job: str) -> None:
    """OpenPAI accepts any key in an image's login, so one that nobody reads is a warning."""
    said = shell("lint", job)
    assert "PR916" in said.ids
    assert "did you mean 'password'?" in said.err


def test_a_name_is_no_secret(shell: Shell, job: str, root: Path) -> None:
    """A task's name shows what stands around a secret, and the plugin git's nothing of it."""
    said = shell("--dry-run", job, "--root", str(root), "--json")
    init = {t["id"]: t["name"] for t in said.data["roles"]["worker"]["init"]}
    runtime = {t["id"]: t["name"] for t in said.data["roles"]["worker"]["runtime"]}
    assert init["git"] == "Clone 127.0.0.1:9/team/x.git"
    assert init["git_2"] == "Clone 127.0.0.1:9/team/y.git"
    assert runtime["data"] == "Get ******"
    Path(job).write_text(JOB.replace("Get {{", "Get {{ 1 / (secrets.token | length - 6) }} {{"))
    said = shell("--dry-run", job, "--root", str(root), "--json")
    names = {t["id"]: t["name"] for t in said.data["roles"]["worker"]["runtime"]}
    assert names["data"] == "******"

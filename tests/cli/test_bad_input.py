"""Bad input of every kind: one clear error with an id, exit 1, quickly, and never a traceback."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairun.errors import PairunError, Source, render
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.document.reading import Node, node_of, read_text
from pairun.playbook.effective import Layers
from pairun.report.problems import problem_data
from pairun.report.task_view import view_of
from pairun.review.jobreview import review_loaded
from pairun.secrets.vault import Vault
from tests.effort import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Said, Shell

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
GROWN = "\n".join(f"a{n}: &a{n} ['{'x' * 100}', *a{n - 1}]" if n else "a0: &a0 [x]" for n in range(60_000))  # fmt: skip
TEXTS: list[tuple[str, bytes, str, str]] = [
    ("not YAML", b"a: [\n", "PR101", "not YAML"),
    ("tabs", b"a:\n\tb: 1\n", "PR101", "not with tabs"),
    ("an open quote", b'a: "b\n', "PR101", "not YAML"),
    ("an alias bomb", BOMB.encode(), "PR105", "expand to more than"),
    ("ten megabytes of aliases", GROWN.encode()[: 10 << 20], "PR103", "larger than 4 MiB"),
    ("deep lists", b"a: " + b"[" * 100_000, "PR104", "64 levels"),
    ("deep mappings", b'{"a":' * 100_000, "PR104", "64 levels"),
    ("deep blocks", b"".join(b" " * n + b"-\n" for n in range(900)), "PR104", "64 levels"),
    ("UTF-16", "name: ü\n".encode("utf-16"), "PR102", "not UTF-8"),
    ("latin-1", "name: Müller\n".encode("latin-1"), "PR102", "byte 0xfc"),
    ("NUL bytes", b"name: a\0b\n", "PR101", "not YAML"),
    ("empty", b"", "PR501", "the file is empty"),
    ("a comment only", b"# nothing\n", "PR501", "the file is empty"),
    ("a list", b"[a, b]\n", "PR501", "a mapping, not a list"),
    ("a number", b"42\n", "PR501", "a mapping, not 42"),
    ("binary", bytes(range(256)) * 40, "PR102", "not UTF-8"),
    ("an executable", b"\x7fELF\x02\x01\x01\0\0\0", "PR101", "not YAML"),
    ("two documents", b"a: 1\n---\nb: 2\n", "PR109", "more than one document"),
    ("a recursive alias", b"a: &a [*a]\n", "PR101", "contains itself"),
    ("an alias without anchor", b"a: *b\n", "PR101", "alias"),
    ("duplicate keys", b"name: a\nname: b\n", "PR106", "'name' is given twice"),
    ("an object", b"a: !!python/object/apply:os.system [ls]\n", "PR107", "not supported"),
    ("a key that is a list", b"? [a]\n: b\n", "PR107", "a key must be text"),
    ("five megabytes", b"a" * (5 << 20), "PR103", "larger than 4 MiB"),
]


def refused(said: Said, id_: str, says: str) -> None:
    """Exit 1, the id, the sentence, and no word of Python."""
    assert said.code == 1
    assert id_ in said.ids, said.err
    assert says in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("kind", ["a job", "a playbook", "linted", "in JSON"])
@pytest.mark.parametrize(("text", "id_", "says"), [t[1:] for t in TEXTS], ids=[t[0] for t in TEXTS])
def test_a_text_that_cannot_be_used(
    shell: Shell, text: bytes, id_: str, says: str, kind: str
) -> None:
    """Whatever bytes come as a job or a playbook, the answer is one error, at once."""
    begun = time.process_time()
    if kind == "a playbook":
        shell.file("root/playbooks/init.yaml", text)
        said = shell("--dry-run", shell.job(), "--root", "root")
        wanted = {"PR501": "PR204"}.get(id_, id_)
        refused(said, wanted, "a mapping, not" if wanted == "PR204" else says)
    elif kind == "in JSON":
        said = shell("--dry-run", "--json", shell.file("job.yaml", text))
        assert said.code == 1
        assert id_ in {p["id"] for p in said.data["problems"]}
    else:
        command = "lint" if kind == "linted" else "--dry-run"
        refused(shell(command, shell.file("job.yaml", text)), id_, says)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(("name", "text", "id_"), [(t[0], t[1], t[2]) for t in TEXTS[::5]])
def test_as_a_process_too(shell: Shell, name: str, text: bytes, id_: str) -> None:
    """The same through the real command, which catches nothing on the way."""
    said = shell.process("--dry-run", shell.file("job.yaml", text))
    assert (said.code, id_ in said.ids) == (1, True), name


def test_what_is_no_file(shell: Shell) -> None:
    """An absent file, a directory, one without permission: the path and the reason."""
    refused(shell("--dry-run", "absent.yaml"), "PR108", "absent.yaml cannot be read: No such file")
    refused(shell("--dry-run", shell.tmp), "PR108", "Is a directory")
    if os.geteuid() != 0:
        closed = shell.file("closed.yaml", "")
        closed.chmod(0)
        refused(shell("--dry-run", closed), "PR108", "Permission denied")
    refused(shell("--dry-run", "/dev/zero"), "PR103", "larger than 4 MiB")


IMAGE = '  - {name: image, type: dockerimage, uri: "ubuntu:22.04"}\n'
JOBS: list[tuple[str, str, str, str, str]] = [
    ("without roles", "taskRoles:", "taskRole:", "PR502", "did you mean 'taskRoles'?"),
    ("with no role", "  worker:\n", "  {}\n#", "PR501", ""),
    ("with a missing prerequisite", "dockerImage: image", "dockerImage: imag", "PR505", "imag"),
    ("with two prerequisites of one name", IMAGE, IMAGE * 2, "PR508", "image"),
    ("with an unknown key", "name: mnist", "name: mnist\nnmae: x", "PR502", "did you mean 'name'?"),
    ("with instances as text", "instances: 2", "instances: two", "PR503", "a whole number"),
    ("with a broken tag", "[train]", "['<% #each %>']", "PR510", "tags"),
    ("with extras that are text", "name: mnist", "name: mnist\nextras: x", "PR503", "a mapping"),
]


@pytest.mark.parametrize(("old", "new", "id_", "says"), [j[1:] for j in JOBS if j[3] != "PR501"], ids=[j[0] for j in JOBS if j[3] != "PR501"])  # fmt: skip
def test_a_job_that_is_none(shell: Shell, old: str, new: str, id_: str, says: str) -> None:
    """A job that the protocol does not allow is refused with the place and the remedy."""
    assert old in shell.job_text
    refused(shell("--dry-run", shell.file("job.yaml", shell.job_text.replace(old, new))), id_, says)


def test_roles_whose_names_become_one(shell: Shell) -> None:
    """A Pod's name keeps letters and digits only, so two roles may collide."""
    role = shell.job_text[shell.job_text.index("  worker:") :]
    text = shell.job_text + role.replace("worker", "Work_er")
    refused(shell("--dry-run", shell.file("job.yaml", text)), "PR507", "worker")


@pytest.mark.parametrize(
    ("extras", "id_", "says"),
    [
        ("init: [{patch: git_clon, retries: 1}]", "PR401", "there is no task 'git_clon' in init"),
        ("init: [{patch: barrier, retries: 1}]", "PR402", "tasks that may be patched"),
        ("init: barrier", "PR204", "a list, not 'barrier'"),
        ("- patch: barrier", "PR204", "a mapping, not a list"),
        ("runtime: [{append: , name: X, cmd: {argv: [a]}, when: '{{ x }}'}]", "PR302", "leave out"),
        ('runtime: [{append: , name: "{{ 9**9**9 }}", cmd: {argv: [a]}}]', "PR304", "too much"),
        ('runtime: [{append: , name: "{% for i in range(9) %}{% endfor %}", cmd: {argv: [a]}}]', "PR303", "a if b else c"),
    ],
)  # fmt: skip
def test_an_override_that_cannot_be(shell: Shell, extras: str, id_: str, says: str) -> None:
    """An override of an unknown task, one that is forbidden, one of a wrong shape."""
    refused(shell("--dry-run", shell.job(extras)), id_, says)


def test_the_expressions_of_a_job_share_one_limit(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many expressions, each within the limit, are stopped together."""
    monkeypatch.setattr("pairun.job.model.MAX_SECONDS", 0.05)
    slow = "{{ range(10000) | map('string') | join | length }}"
    tasks = ", ".join(f'{{append: , name: "{slow} {n}", cmd: {{argv: [a]}}}}' for n in range(60))
    refused(shell("--dry-run", shell.job(f"runtime: [{tasks}]")), "PR304", "s of CPU time")


GREET = "from pairun.module import CheckModule, arg, define\n\n@define\nclass {}(CheckModule):\n    x: int = arg('X.', default=1)\n"
FOREVER = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}"
USES = "phase: runtime\ntasks: [{name: N, greet: {}}]\n"
ROOTS: list[tuple[str, dict[str, str], str, str]] = [
    ("a module that raises", {"modules/greet.py": "1 / 0\n", "playbooks/runtime.yaml": USES}, "PR602", "ZeroDivisionError"),
    ("a module that exits", {"modules/greet.py": "import sys; sys.exit(0)\n", "playbooks/runtime.yaml": USES}, "PR602", "SystemExit"),
    ("a module that is no Python", {"modules/greet.py": "class:\n", "playbooks/runtime.yaml": USES}, "PR602", "line 1"),
    ("a module with two classes", {"modules/greet.py": GREET.format("A") + GREET.format("B"), "playbooks/runtime.yaml": USES}, "PR602", "it holds 2"),
    ("a module without a class", {"modules/greet.py": "x = 1\n", "playbooks/runtime.yaml": USES}, "PR602", "it holds 0"),
    ("a module that is binary", {"modules/greet.py": "\0\0\0", "playbooks/runtime.yaml": USES}, "PR602", "fails on import"),
    ("a module with a keyword's name", {"modules/when.py": ""}, "PR213", "'when' is a keyword"),
    ("a plugin with a keyword's name", {"plugin_specs/name.yaml": ""}, "PR213", "'name' is a keyword"),
    ("a spec that is no YAML", {"plugin_specs/cmd.yaml": "a: [\n"}, "PR101", "not YAML"),
    ("a spec with a bad schema", {"plugin_specs/cmd.yaml": "summary: S\nparameters: {type: 5}\n"}, "PR204", "not a JSON Schema"),
    ("a spec that is a list", {"plugin_specs/cmd.yaml": "- a\n"}, "PR204", "a mapping, not a list"),
    ("a policy with unknown keys", {"playbooks/policy.yaml": "job_may: {ptach: {}}\n"}, "PR406", "did you mean 'patch'?"),
    ("a policy that is a list", {"playbooks/policy.yaml": "- a\n"}, "PR406", "a mapping, not a list"),
    ("a playbook that is empty", {"playbooks/init.yaml": ""}, "PR204", "a mapping, not null"),
    ("a playbook without tasks", {"playbooks/init.yaml": "phase: init\n"}, "PR205", "'tasks' or 'patches'"),
    ("a playbook of the wrong phase", {"playbooks/init.yaml": "phase: runtime\ntasks: []\n"}, "PR204", "init"),
    ("a template that never ends", {"playbooks/runtime.yaml": f'phase: runtime\ntasks: [{{name: "{FOREVER}", cmd: {{argv: [a]}}}}]\n'}, "PR304", "s of CPU time"),
    ("a file in place of a root", {"file": ""}, "PR601", "not a content root"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "id_", "says"), [r[1:] for r in ROOTS], ids=[r[0] for r in ROOTS])  # fmt: skip
def test_a_content_root_with_mistakes(
    shell: Shell, files: dict[str, str], id_: str, says: str
) -> None:
    """What an operator wrote wrongly is said with the file it stands in."""
    begun = time.process_time()
    plugin = "extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {preCommands: [a]}}]}\n"
    said = shell("--dry-run", shell.job(more=plugin), "--root", shell.root(files))
    refused(said, id_, says)
    assert "cluster" in said.err
    assert time.process_time() - begun < 10


def test_modules_that_nobody_uses_may_be_as_they_like(shell: Shell) -> None:
    """A module that hangs on import does not hold up a review that does not use it."""
    root = shell.root({"modules/hangs.py": "while True: pass\n"})
    assert shell.process("--dry-run", shell.job(), "--root", root).code == 0


# --- any mistake anywhere ---------------------------------------------------------------------------

JOB = """\
protocolVersion: 2
name: j
type: job
prerequisites: [{name: image, type: dockerimage, uri: "ubuntu:22.04"}]
secrets: {tok: hunter2hunter2}
taskRoles: {w: {dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}}
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: git, parameters: {repo_uri: "https://e.org/r", options: [--depth=1]}}
    - {plugin: cmd, parameters: {preCommands: [a], postCommands: [b]}}
    - {plugin: ssh, parameters: {jobssh: true}}
    - {plugin: tensorboard, parameters: {port: 99, logdir: {a: /b}}}
  pairun:
    vars: {depth: 1}
    init:
      - {patch: git, retries: 3, args: {dest: /x, options: [a]}, environment: {A: b}, exit_codes: {timeout: 3}, when: "true"}
      - {disable: port_check}
    runtime:
      - after: mount_storage
        id: warm
        name: W
        cmd: {argv: [a], ok_codes: [0]}
        failure_policy: ignore
        environment: {A: b}
        vars: {v: 1}
        retries: 2
        retry_on: [timeout]
        delay: 1s
        timeout: 1s
        deadline: 5s
        exit_codes: {timeout: 3}
        when: "v == 1"
        on_exit: [{name: B, event: always, cmd: {script: x}, id: h}, {name: C, event: [success], file: {path: /x, content: y}}]
      - {append: , name: F, file: {path: /a, mode: '0644', content: x}}
"""
OTHER: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "{{ x }}", "{{ job }}", "{{ cluster.own }}", "{{", "{% x %}",
     "{{ results.warm.values.x }}", [], {}, [None], [[]], {"a": None}, [{}], {"a": {}}, ["x"], [1],
     "600", "1s", "<% $secrets.tok %>", {"timeout": "x"}]
)  # fmt: skip
WORD = st.sampled_from(
    ["retriess", "ignore_errors", "args", "cmd", "user_command", "patch", "parallel", "tasks",
     "disable", "before", "on_exit", "event", "locked", "id", "parameters", "extras", "init"]
)  # fmt: skip


@pytest.fixture(scope="module")
def open_layers(tmp_path_factory: pytest.TempPathFactory) -> Layers:
    """The built-in roots under a policy that permits everything."""
    root = tmp_path_factory.mktemp("open")
    (root / "playbooks").mkdir()
    policy = 'job_may: {patch: {"*": ["*", on_exit, environment, exit_codes, locked, vars]}, disable: "*", insert: {init: "*", runtime: "*"}, vars: "*", plugins: {allow: "*"}}\n'
    (root / "playbooks/policy.yaml").write_text(policy)
    return Layers(Content([built_in_root(), Root(path=str(root), layer="cluster")]))


def places(node: Node) -> list[tuple[Node, str | int]]:
    """Every value of a tree: what holds it, and under which key."""
    found: list[tuple[Node, str | int]] = []
    children: Any = node.value.items() if isinstance(node.value, dict) else enumerate(node.elements())  # fmt: skip
    for key, child in children:
        found += [(node, key), *places(child)]
    return found


@given(data=st.data())
@settings(max_examples=cases(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_job_with_any_mistake_is_reviewed(open_layers: Layers, data: st.DataObject) -> None:
    """Replace, remove or add any value of a job: it is valid or has errors, it never crashes."""
    tree = read_text(Source("job.yaml", "job", JOB), JS)
    for _ in range(data.draw(st.integers(1, 2))):
        found = [p for p in places(tree) if p[0] is not tree]
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        change = data.draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        place = holder.value[key].place
        if change == "remove":
            del holder.value[key]
        elif change == "add" and isinstance(holder.value, dict):
            holder.value[data.draw(WORD)] = node_of(data.draw(OTHER), place)
        else:
            holder.value[key] = node_of(data.draw(OTHER), place)
    job, problems = read_job(tree)
    review = review_loaded("job.yaml", job, problems, open_layers, [], vault=Vault())
    for p in review.problems:
        assert render(p)
        assert problem_data(p, review.vault)
    for phases in review.tasks.values():
        for tasks in phases.values():
            assert "hunter2" not in str([view_of(t, review.vault).data for t in tasks])


@given(text=st.text(st.sampled_from("ab:-[]{},'\"\n &*!|>#%@`\\<{}%"), max_size=60))
@settings(max_examples=cases(300))
def test_any_text_is_a_tree_or_an_error(text: str) -> None:
    """Reading ends in a tree or in problems with an id, whatever the text."""
    try:
        read_text(Source("f", "job", text), JS)
    except PairunError as e:
        problems = e.problems
    else:
        return
    assert all(p.id.startswith("PR1") for p in problems)
    assert all(render(p) for p in problems)


def test_the_file_of_a_problem_is_found_again(shell: Shell) -> None:
    """The place in a message is one that an editor can open: path, line, column."""
    path = shell.file("deep/job.yaml", "name: [\n")
    said = shell("--dry-run", path)
    shown = said.err.split("--> ")[1].split(" ")[0]
    file, line, column = shown.rsplit(":", 2)
    assert Path(file) == path
    assert int(line) >= 1
    assert int(column) >= 1

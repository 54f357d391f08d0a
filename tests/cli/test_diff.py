"""``pairun diff``: what other defaults change for a job, value by value, and who set each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pairun.review.comparison as command
from pairun.playbook.content import Content
from pairun.playbook.effective import Layers

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

GIT = """\
  com.microsoft.pai.runtimeplugin:
    - plugin: git
      parameters: {repo_uri: "https://git.example.com/team/train.git"}
"""
GREET = '''\
"""Says something."""
from __future__ import annotations

from typing import Literal

from pairun.module import CheckModule, Context, arg, define

Words = Literal[WORDS]


@define
class Greet(CheckModule):
    """Say a word."""

    phases = ("init",)
    example = "greet: {word: hello}"
    word: Words = arg("The word.", default=DEFAULT)
    MORE

    def check(self, ctx: Context) -> dict[str, str]:
        """Nothing is checked."""
        return {}
'''


def init(body: str) -> dict[str, str]:
    """A content root with a playbook of the init phase."""
    return {"playbooks/init.yaml": f"phase: init\n{body}"}


def changed(data: Any, job: Path | str, role: str = "worker") -> dict[str, tuple[Any, Any]]:
    """Path to old and new value of what differs for a role in the JSON."""
    return {c["path"]: _values(c) for c in data["jobs"][str(job)]["roles"][role]["changes"]}


def _values(change: Any) -> tuple[Any, Any]:
    return tuple(change[side] and change[side]["value"] for side in ("old", "new"))


def test_the_same_roots_make_no_difference(shell: Shell) -> None:
    """A root compared with itself says so, in words, in JSON and with its exit code."""
    job = shell.job()
    said = shell.process("diff", "built-in", "built-in", "--exit-code", job)
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"job mnist · {job}\nno difference\n")
    data = shell.process("diff", "built-in", shell.project, "--json", job).data
    assert data["differs"] is False
    assert changed(data, job) == {}


def test_a_value_is_shown_as_it_was_and_is_with_who_set_each(shell: Shell) -> None:
    """Old and new value stand together, with layer, file, line and column of both."""
    root = shell.root(init("patches:\n  - patch: barrier\n    args: {timeout: 20m}\n"))
    job = shell.job()
    said = shell.process("diff", "built-in", root, "--exit-code", job, env={"COLUMNS": "120"})
    assert said.code == 2
    flat = "".join(said.out.split())  # a long path is broken anywhere
    assert (
        f'args.timeout:"10m"→"20m"←cluster{root}/playbooks/init.yaml:4:21,'
        "wasbuilt-inplaybooks/init.yaml:14:16"
    ) in flat
    assert said.out.endswith("1 value changed\n")
    assert shell.process("diff", "built-in", root, job).code == 0


def test_a_value_that_nobody_set_before_was_the_default(shell: Shell) -> None:
    """A keyword or argument that only one side sets is compared with its default."""
    body = (
        "patches:\n  - patch: port_check\n    retries: 3\n"
        "  - patch: image_check\n    args: {policy: warn}\n"
    )
    root = shell.root(init(body))
    job = shell.job()
    data = shell("diff", "built-in", root, "--json", job).data
    changes = {c["path"]: c for c in data["jobs"][str(job)]["roles"]["worker"]["changes"]}
    retries = changes["init.port_check.retries"]
    assert retries["old"] == {"value": 0, "by": "the default"}
    assert retries["new"] == {"value": 3, "by": f"cluster {root}/playbooks/init.yaml:4:14"}
    assert changes["init.image_check.args.policy"]["old"]["by"] == "the default"


def test_a_value_written_otherwise_is_the_same(shell: Shell) -> None:
    """600s are ten minutes: what means the same is no difference."""
    root = shell.root(init("patches:\n  - patch: barrier\n    args: {timeout: 600s}\n"))
    assert "no difference" in shell("diff", "built-in", root, shell.job()).out


def test_tasks_that_come_go_and_move(shell: Shell) -> None:
    """Added and removed tasks have their module and its place, moved ones another order."""
    say = "    cmd: {argv: [echo]}\n    timeout: 5s\n"
    tasks = {n: f"  - id: {n}\n    name: Says {n}\n{say}" for n in "abcd"}
    old = shell.root(init("tasks:\n" + tasks["a"] + tasks["b"] + tasks["c"]), "old")
    new = shell.root(init("tasks:\n" + tasks["d"] + tasks["c"] + tasks["a"]), "new")
    job = shell.job()
    out = shell("diff", old.name, new.name, job).out
    assert 'init.d.task: (none) → "cmd"  ← cluster new/playbooks/init.yaml:3:5' in out
    assert out.endswith("1 task added, 1 task removed, 1 value changed\n")
    found = changed(shell("diff", old, new, "--json", job).data, job)
    assert found["init.b.task"] == ("cmd", None)
    assert "init.b.args.argv" not in found
    assert found["init.d.args.argv"] == (None, ["echo"])
    assert found["init.order"] == (["a", "c"], ["c", "a"])


def test_a_task_that_changes_its_phase(shell: Shell) -> None:
    """It is gone in one, and new in the other."""
    task = "  - append:\n    id: warm\n    name: Warm\n    cmd: {argv: [warm]}\n    timeout: 5s\n"
    old = shell.root(init("patches:\n" + task), "old")
    new = shell.root({"playbooks/runtime.yaml": "phase: runtime\npatches:\n" + task}, "new")
    job = shell.job()
    found = changed(shell("diff", old, new, "--json", job).data, job)
    assert found["init.warm.task"] == ("cmd", None)
    assert found["runtime.warm.task"] == (None, "cmd")


def test_a_task_that_a_layer_takes_out_names_the_place(shell: Shell) -> None:
    """A disabled task is a removed one, with the line that took it out."""
    root = shell.root(init("patches:\n  - disable: port_check\n"))
    job = shell.job()
    data = shell("diff", "built-in", root, "--json", job).data
    by = {c["path"]: c["new"] for c in data["jobs"][str(job)]["roles"]["worker"]["changes"]}
    assert by == {
        "init.port_check.disabled": {
            "value": True,
            "by": f"{root}/playbooks/init.yaml:3:14 (cluster)",
        },
        "init.port_check.task": None,
    }
    back = changed(shell("diff", root, "built-in", "--json", job).data, job)
    assert back["init.port_check.task"] == (None, "port_check")


def test_a_replaced_module_is_named(shell: Shell) -> None:
    """A task that keeps its id and does its work with another module says both."""
    text = "tasks:\n  - id: fetch\n    name: Fetch\n    timeout: 5s\n    "
    old = shell.root(init(text + "cmd: {argv: [fetch]}\n"), "old")
    new = shell.root(
        init(text + 'download: {url: "https://files.example.com/a", dest: /a}\n'), "new"
    )
    job = shell.job()
    assert 'init.fetch.task: "cmd" → "download"' in shell("diff", old, new, job).out
    found = changed(shell("diff", old, new, "--json", job).data, job)
    assert found["init.fetch.args.url"] == (None, "https://files.example.com/a")


def test_a_variable_behind_a_value_is_named(shell: Shell) -> None:
    """Where a layer sets a variable, the value that it changes names that line."""
    root = shell.root(init('vars: {gang: "{{ false }}"}\npatches: []\n'))
    out = " ".join(shell("diff", "built-in", root.name, shell.job()).out.split())
    assert "gang from cluster cluster/playbooks/init.yaml:2:14" in out
    assert "→ false" in out


def test_a_variable_of_an_expression_that_only_the_run_knows(shell: Shell) -> None:
    """The text of an expression stays, what goes into it changes: that is a difference."""
    task = (
        "patches:\n  - append:\n    id: late\n    name: Late\n    timeout: 5s\n"
        '    cmd: {argv: ["{{ word }}-{{ env.POD }}"]}\n'
    )
    old = shell.root(init("vars: {word: one}\n" + task), "old")
    new = shell.root(init("vars: {word: two}\n" + task), "new")
    job = shell.job()
    said = shell("diff", old, new, "--exit-code", job)
    assert said.code == 2
    assert '"one" → "two"' in said.out


def test_exit_handlers_are_compared(shell: Shell) -> None:
    """A handler's values and a handler that is new are seen below the task that has it."""
    text = (
        "patches:\n  - append:\n    id: lock\n    name: Lock\n    cmd: {argv: [lock]}\n"
        "    timeout: 5s\n    on_exit:\n      - name: Unlock\n        event: always\n        timeout: 1m\n"
        "        cmd: {argv: [unlock, ONE]}\n"
    )
    more = "      - id: tell\n        name: Tell\n        event: always\n        timeout: 1m\n        cmd: {argv: [tell]}\n"
    old = shell.root(init(text.replace("ONE", "a")), "old")
    new = shell.root(init(text.replace("ONE", "b") + more), "new")
    job = shell.job()
    values = changed(shell("diff", old, new, "--json", job).data, job)
    assert values["init.lock.on_exit.lock.on_exit.args.argv"] == (["unlock", "a"], ["unlock", "b"])
    assert values["init.lock.on_exit.tell.module"] == (None, "cmd")


def test_a_group_and_the_grace_time_are_compared(shell: Shell) -> None:
    """What stands beside the tasks counts too."""
    task = "- {id: a, name: A, timeout: 5s, cmd: {argv: [a]}}\n"
    old = shell.root(init("tasks:\n  " + task), "old")
    new = shell.root(
        init("grace: 1m\ntasks:\n  - parallel: At once\n    tasks:\n      " + task), "new"
    )
    out = shell("diff", old, new, shell.job()).out
    assert 'init.grace: "30s" → "1m"' in out
    assert 'init.a.parallel: (none) → "At once"' in out


def test_settings_of_pods_are_compared(shell: Shell) -> None:
    """Like values of tasks, each entry of a mapping for itself, with who set it."""
    queue = "{queue: %s, metadata: {labels: {team: %s, site: a}}}"
    old, new = (
        shell.root(
            {"playbooks/policy.yaml": f"job_may: {{}}\npod: {{defaults: {queue % values}}}\n"}, name
        )
        for name, values in (("old", ("day", "x")), ("new", ("night", "y")))
    )
    job = shell.job()
    text = shell.process("diff", old, new, job, env={"COLUMNS": "200"}).out
    flat = "".join(text.split())
    assert 'pod.queue:"day"→"night"←cluster' in flat
    assert "was" + f"cluster{old}/playbooks/policy.yaml:2:25" in flat
    assert text.endswith("2 values changed\n")
    data = shell.process("diff", old, new, "--json", job).data
    assert list(changed(data, job)) == ["pod.queue", "pod.metadata.labels.team"]
    assert shell.process("diff", new, new, "--exit-code", job).code == 0


def test_an_override_that_is_refused_now_is_an_error_of_the_new_side(shell: Shell) -> None:
    """What the old policy allowed and the new one does not is shown with both places; exit 1."""
    old = shell.root({"playbooks/policy.yaml": "job_may: {disable: [port_check]}\n"}, "old")
    new = shell.root({"playbooks/policy.yaml": "job_may: {disable: []}\n"}, "new")
    job = shell.job("init:\n  - disable: port_check\n")
    said = shell("diff", old, new, job)
    assert said.code == 1
    assert "only with the new roots" in said.out
    assert "error[PR402]: a job may not disable the task 'port_check'" in said.out
    assert f"{job}:" in said.out
    assert "new/playbooks/policy.yaml:1:" in said.out
    assert said.out.endswith(
        "1 task added, 1 error with the new roots only, what all jobs share changed\n"
    )
    data = shell("diff", old, new, "--json", job).data
    assert [p["id"] for p in data["jobs"][str(job)]["problems"]["new"]] == ["PR402"]


def test_an_error_that_is_gone_is_a_difference_and_no_failure(shell: Shell) -> None:
    """An upgrade that heals a job exits with 0, or 2 when asked whether something differs."""
    old = shell.root({"playbooks/policy.yaml": "job_may: {disable: []}\n"}, "old")
    job = shell.job("init:\n  - disable: port_check\n")
    said = shell("diff", old, "built-in", job)
    assert said.code == 0
    assert "only with the old roots" in said.out
    assert shell("diff", old, "built-in", "--exit-code", job).code == 2


def test_an_error_of_both_sides_is_no_difference(shell: Shell) -> None:
    """A job that is wrong with any defaults is reported as everywhere, and fails."""
    job = shell.file("job.yaml", "protocolVersion: 2\nname: a b\n")
    said = shell("diff", "built-in", "built-in", job)
    assert said.code == 1
    assert said.ids
    assert "only with" not in said.out
    assert f"{job} is not valid" in " ".join(said.out.split())


def test_modules_of_both_sides_are_not_mixed_up(shell: Shell) -> None:
    """Two roots have a module of one name and class: each side is planned with its own."""
    use = init("patches:\n  - append:\n    name: Greet\n    timeout: 5s\n    greet: {}\n")
    one = GREET.replace("WORDS", "'a', 'b'").replace("DEFAULT", '"a"').replace("    MORE\n", "")
    more = '    loud: bool = arg("How.", default=False)\n'
    other = GREET.replace("WORDS", "'c'").replace("DEFAULT", '"c"').replace("    MORE\n", more)
    old = shell.root({**use, "modules/greet.py": one}, "old")
    new = shell.root({**use, "modules/greet.py": other}, "new")
    job = shell.job()
    for first, second, was, is_ in ((old, new, "a", "c"), (new, old, "c", "a")):
        said = shell("diff", first, second, "--json", job)
        assert said.code == 0, said.out
        found = changed(said.data, job)
        assert found.pop("module.greet")
        assert found == {"init.greet.args.word": (was, is_)}


def test_a_modules_argument_that_is_gone_is_an_error_of_the_new_side(shell: Shell) -> None:
    use = init("patches:\n  - append:\n    name: G\n    timeout: 5s\n    greet: {loud: true}\n")
    code = GREET.replace("WORDS", "'a'").replace("DEFAULT", '"a"')
    loud = '    loud: bool = arg("How.", default=False)\n'
    old = shell.root({**use, "modules/greet.py": code.replace("    MORE\n", loud)}, "old")
    new = shell.root({**use, "modules/greet.py": code.replace("    MORE\n", "")}, "new")
    said = shell("diff", old, new, shell.job())
    assert said.code == 1
    assert "error[PR604]: greet: there is no argument 'loud'" in said.out


def test_a_plugins_spec_that_means_the_same_is_no_difference(shell: Shell) -> None:
    """A comment in a spec changes nothing for a job."""
    spec = (shell.project / "plugin_specs/git.yaml").read_text()
    root = shell.root({"plugin_specs/git.yaml": spec + "# a comment\n"})
    job = shell.job(more="extras:\n" + GIT)
    data = shell("diff", "built-in", root, "--json", job).data
    assert changed(data, job) == {}


def test_a_whole_root_stands_in_the_place_of_the_built_in_one(shell: Shell) -> None:
    """The root of another pairun's image is the lowest layer itself, and can have more on top."""
    whole = shell.tmp / "old-image"
    for folder in ("modules", "playbooks", "plugin_specs"):
        shutil.copytree(shell.project / folder, whole / folder)
    playbook = whole / "playbooks/init.yaml"
    playbook.write_text(playbook.read_text().replace("timeout: 10m", "timeout: 9m"))
    top = shell.root(init("patches:\n  - patch: image_check\n    retries: 3\n"))
    job = shell.job()
    data = shell("diff", f"{whole}:{top}", f"built-in:{top}", "--json", job).data
    assert [r["layer"] for r in data["roots"]["old"]] == ["built-in", "cluster"]
    assert data["roots"]["old"][0]["path"] == str(whole)
    assert changed(data, job) == {"init.barrier.args.timeout": ("9m", "10m")}
    said = shell("diff", "built-in", f"{top}:{whole}", job)
    assert (said.code, said.ids) == (2, ["PR801"])


@pytest.mark.parametrize("argument", ["nowhere", "", "built-in:nowhere"])
def test_a_folder_that_is_no_root(shell: Shell, argument: str) -> None:
    """It is an error of its own, in JSON too, where nothing else is printed."""
    job = shell.job()
    said = shell("diff", "built-in", argument, job)
    assert (said.code, said.ids) == (1, ["PR601"])
    said = shell("diff", argument, "built-in", "--json", job)
    assert said.code == 1
    assert [p["id"] for p in said.data["problems"]] == ["PR601"]


def test_a_root_that_cannot_be_read(shell: Shell) -> None:
    """A playbook with a mistake ends the comparison with that mistake."""
    root = shell.root(init("tasks: 7\n"))
    said = shell("diff", "built-in", root, shell.job())
    assert said.code == 1
    assert said.ids


def test_a_module_that_cannot_be_loaded_any_more(shell: Shell) -> None:
    """A role that cannot be planned with one side says so; jobs without that module are compared."""
    use = init("patches:\n  - append:\n    name: Greet\n    timeout: 5s\n    greet: {}\n")
    code = GREET.replace("WORDS", "'a'").replace("DEFAULT", '"a"').replace("    MORE\n", "")
    old = shell.root({**use, "modules/greet.py": code}, "old")
    new = shell.root({**use, "modules/greet.py": "import nothing_of_that_name\n"}, "new")
    said = shell("diff", old, new, shell.job())
    assert said.code == 1
    assert "it cannot be planned with the new side" in said.out
    assert "error[PR602]" in said.out
    back = shell("diff", new, old, "--exit-code", shell.job())
    assert back.code == 2
    assert "it cannot be planned with the old side" in back.out


def test_the_environments_roots_are_on_neither_side(shell: Shell) -> None:
    """What is compared is what the command line says."""
    root = shell.root(init("patches:\n  - patch: barrier\n    args: {timeout: 20m}\n"))
    job = shell.job()
    env = {"PAIRUN_PATH": str(root)}
    said = shell.process("diff", "built-in", "built-in", "--json", job, env=env)
    assert [len(r) for r in said.data["roots"].values()] == [1, 1]


def test_standard_input_is_read_once_for_both_sides(shell: Shell) -> None:
    """One of the jobs may come from standard input; two cannot."""
    job = shell.job()
    said = shell.process("diff", "built-in", "built-in", "-", job, stdin=job.read_text())
    assert said.code == 0
    assert "job mnist · -\nno difference" in said.out
    said = shell.process("diff", "built-in", "built-in", "-", "-", stdin=job.read_text())
    assert (said.code, said.ids) == (2, ["PR801"])


def test_a_job_that_the_cluster_stored_is_compared_too(shell: Shell) -> None:
    """Whatever `--dry-run` reads, `diff` reads: a Framework with its job in it."""
    root = shell.root(init("patches:\n  - patch: barrier\n    args: {timeout: 20m}\n"))
    stored = {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {
            "name": "abc",
            "labels": {"userName": "alice"},
            "annotations": {"jobName": "mnist", "config": shell.job_text},
        },
        "spec": {"taskRoles": [{"name": "worker", "taskNumber": 2}]},
    }
    job = shell.file("framework.json", json.dumps(stored))
    assert '"10m" → "20m"' in shell("diff", "built-in", root, job).out


def test_a_job_file_that_is_not_there(shell: Shell) -> None:
    """The other jobs are compared all the same."""
    job = shell.job()
    said = shell("diff", "built-in", "built-in", "nowhere.yaml", job)
    assert said.code == 1
    assert "PR108" in said.ids
    assert "job mnist" in said.out


def test_roots_are_read_once_for_all_jobs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten jobs do not read the playbooks ten times."""
    made = []

    def counted(content: Content) -> Layers:
        made.append(content)
        return Layers(content)

    monkeypatch.setattr(command, "Layers", counted)
    jobs = [shell.job(path=f"{n}.yaml") for n in range(10)]
    assert shell("diff", "built-in", "built-in", *jobs).code == 0
    assert len(made) == 2


def test_secrets_are_shown_nowhere(shell: Shell) -> None:
    """A value with a secret in it that changes is masked in words and in JSON."""
    secret = "tok-3n-0f-the-team"
    spec = (
        "summary: Log in\nparameters: {properties: {token: {type: string}}}\nruntime:\n"
        "  - name: Logged in\n    timeout: 5s\n"
        "    cmd: {script: 'HOW {{ parameters.token }}', export: true}\n"
    )
    old = shell.root({"plugin_specs/login.yaml": spec.replace("HOW", "login -p")}, "old")
    new = shell.root({"plugin_specs/login.yaml": spec.replace("HOW", "login --token")}, "new")
    more = (
        f"secrets: {{token: {secret}}}\nextras:\n  com.microsoft.pai.runtimeplugin:\n"
        '    - plugin: login\n      parameters: {token: "<% $secrets.token %>"}\n'
    )
    job = shell.job(more=more)
    text = shell("diff", old, new, job)
    assert '"login -p ******" → "login --token ******"' in text.out
    data = shell("diff", old, new, "--json", job)
    assert "plugin.login" in changed(data.data, job)
    for said in (text, data, shell("diff", "built-in", new, "--json", job)):
        assert secret not in said.out + said.err


def test_roles_with_the_same_differences_are_shown_once(shell: Shell) -> None:
    """A second role says as which it is."""
    root = shell.root(init("patches:\n  - patch: barrier\n    args: {timeout: 20m}\n"))
    text = shell.job_text
    role = text[text.index("  worker:") :].replace("worker", "server")
    job = shell.file("job.yaml", text + role)
    out = shell("diff", "built-in", root, job).out
    assert "role server: as role worker" in out
    assert out.count("args.timeout") == 1
    only = shell("diff", "built-in", root, "--role", "server", job).out
    assert "role worker" not in only


def test_long_values_are_compared_line_by_line(shell: Shell) -> None:
    """Of a script with one other line only that line and its neighbours are shown."""
    lines = [f"echo line number {n}" for n in range(20)]
    body = "patches:\n  - append:\n    id: say\n    name: Say\n    timeout: 5s\n    cmd:\n      script: |\n"

    def root(name: str, text: list[str]) -> Path:
        return shell.root(init(body + "".join(f"        {x}\n" for x in text)), name)

    new = [*lines[:10], "echo something else", *lines[11:]]
    out = shell("diff", root("old", lines), root("new", new), shell.job()).out
    assert "- echo line number 10" in out
    assert "+ echo something else" in out
    assert "line number 5" not in out


def test_nothing_of_this_machine_is_looked_at(shell: Shell) -> None:
    """The comparison is of plans: no file is made beside the jobs."""
    job = shell.job()
    before = sorted(shell.tmp.rglob("*"))
    assert shell.process("diff", "built-in", "built-in", job).code == 0
    assert sorted(shell.tmp.rglob("*")) == before


def test_the_json_is_one_document_and_has_a_schema(shell: Shell) -> None:
    """Every job has its entry, valid or not, and the roots name their digests."""
    good, bad = shell.job(), shell.file("bad.yaml", "name: [")
    said = shell.process("diff", "built-in", "built-in", "--json", good, bad)
    assert said.code == 1
    data = json.loads(said.out)
    assert data["schema"] == 2
    assert data["jobs"].keys() == {str(good), str(bad)}
    assert data["jobs"][str(bad)]["roles"] == {}
    assert len(data["roots"]["old"][0]["digest"]) == 12


@pytest.mark.parametrize("flags", [["/nope"], ["JOB", "--role", "nope"], ["-"], ["EMPTY"]])
def test_what_was_not_compared_is_not_said_to_be_the_same(shell: Shell, flags: list[str]) -> None:
    """No job, no such role: nothing was compared, in text, in JSON and by the exit code."""
    files = {"JOB": str(shell.job()), "EMPTY": str(shell.file("empty.yaml", ""))}
    root = shell.root({"playbooks/policy.yaml": "job_may: {}\n"})
    words = [files.get(word, word) for word in flags]
    said = shell.process("diff", "built-in", root, *words, stdin="")
    assert said.code == 1
    assert "no difference" not in said.out
    assert "nothing was compared" in said.out
    assert said.ids
    said = shell.process("diff", "--json", "built-in", root, *words, stdin="")
    data = json.loads(said.out)
    assert [job["compared"] for job in data["jobs"].values()] == [False]


def test_a_program_of_a_plugin_folder_that_changed_is_named(shell: Shell) -> None:
    """What it does nobody can tell before it runs; that it is another one can be told."""
    roots = [
        shell.root({"plugins/hello/desc.yaml": "init-script: init.py\n",
                    "plugins/hello/init.py": text}, name)
        for name, text in (("old", "a = 1\n"), ("new", "a = 2\n"))
    ]  # fmt: skip
    job = shell.job(more="extras: {com.microsoft.pai.runtimeplugin: [{plugin: hello}]}\n")
    assert "plugin.hello" in changed(shell("diff", "--json", *roots, job).data, job)


def test_rules_and_exit_codes_of_the_diagnosis(shell: Shell) -> None:
    """They are of no task, and containers end with other codes: a difference of every job."""
    text = "exit_codes: {gpu_oom: 20}\ndisable: [bus-error]\n"
    root = shell.root({"diagnosis/own.yaml": text})
    for sides, want in ((("built-in", root), (None, 20)), ((root, "built-in"), (20, None))):
        data = shell("diff", "--json", *sides, shell.job()).data
        shared = {c["path"]: _values(c) for c in data["shared"]}
        assert shared["exit_codes.gpu_oom"] == want
        assert "rules.cluster own" in shared
    data = shell("diff", "--json", root, root, shell.job()).data
    assert (data["shared"], data["differs"]) == ([], False)


def test_a_lock_and_a_policy_that_the_job_does_not_meet(shell: Shell) -> None:
    """Both change what jobs may do, though this job's tasks stay the same."""
    locked = shell.root(init("patches: [{patch: port_check, locked: true}]\n"), "locked")
    said = shell("diff", "--exit-code", "built-in", locked, shell.job())
    assert (said.code, said.out.splitlines()[-1]) == (2, "1 value changed")
    assert "locked: (none) → true  ← cluster" in said.out
    strict = shell.root({"playbooks/policy.yaml": "job_may: {disable: [], vars: []}\n"}, "strict")
    said = shell("diff", "--exit-code", "built-in", strict, shell.job())
    assert (said.code, said.out.splitlines()[-1]) == (2, "what all jobs share changed")
    assert 'policy.job_may.disable: ["port_check"] → (none), was set by built-in' in said.out
    data = shell("diff", "--json", "built-in", strict, shell.job()).data
    assert data["differs"] is True
    shared = {c["path"]: _values(c) for c in data["shared"]}
    assert shared["policy.job_may.hold_max"] == ("30m", None)
    kept = ("policy.job_may.vars", "policy.pod.defaults", "policy.plugin_folders")
    assert not [path for path in shared if path.startswith(kept)]
    said = shell("diff", "--exit-code", strict, strict, shell.job())
    assert (said.code, said.out.splitlines()[-1]) == (0, "no difference")

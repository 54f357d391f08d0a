"""Plugin folders in OpenPAI's form: which content roots bring them, and what stands in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import render
from pairun.playbook.linting import unknown_names

if TYPE_CHECKING:
    from tests.desk import Desk

DESC = "name: hello\ninit-script: init.py\n"
FOLDER = {"plugins/hello/desc.yaml": DESC, "plugins/hello/init.py": ""}
SPEC = "summary: S\nruntime: [{name: Of the spec, cmd: {argv: [a]}}]\n"
USE = "- {plugin: hello, parameters: {who: anna}}\n"
JOB_MAY = 'job_may: {plugins: {allow: "*"}}\n'


def warnings(desk: Desk, *roots: object) -> list[str]:
    """The warnings of a review, rendered."""
    review = desk.review(desk.job(plugins=USE), *roots)  # type: ignore[arg-type]
    return [render(p) for p in review.problems if p.severity == "warning"]


def test_a_folder_is_a_plugin(desk: Desk) -> None:
    """A task of init runs its program; a task of runtime and its exit handler wait for its scripts."""
    review = desk.valid(desk.job(plugins=USE), desk.root(FOLDER))
    assert desk.order(review, "init")[-1] == "hello"
    assert desk.order(review, "runtime")[-2:] == ["hello_2", "user_command"]
    task = desk.task(review, "hello")
    assert task.args["folder"] == str(desk.tmp / "cluster/plugins/hello")
    assert task.args["parameters"] == '{"who": "anna"}'
    assert task.args["pre"] == "/usr/local/pai/runtime.d/plugin_pre0.sh"
    assert desk.draft(review, "hello").origin == "plugin"


def test_a_slip_in_a_folders_name_is_named(desk: Desk) -> None:
    """A plugin that does not exist gets the names of folders, too."""
    use = desk.job(plugins="- {plugin: helo, parameters: {}}\n")
    (problem,) = desk.problems(use, desk.root(FOLDER))
    assert (problem.id, problem.hint) == ("PR511", "did you mean 'hello'?")


def test_a_folder_replaces_a_lower_spec(desk: Desk) -> None:
    """A cluster that keeps its own ssh has its own, and a spec above it replaces it again."""
    folder = desk.root({"plugins/cmd/desc.yaml": DESC, "plugins/cmd/init.py": ""}, "old")
    use = desk.job(plugins="- {plugin: cmd, parameters: {preCommands: [a]}}\n")
    assert "folder" in desk.task(desk.valid(use, folder), "cmd").args
    spec = desk.root({"plugin_specs/cmd.yaml": SPEC}, "new")
    assert desk.task(desk.valid(use, folder, spec), "cmd").args == {"argv": ["a"]}


def test_a_spec_beside_the_folder_is_used(desk: Desk) -> None:
    """Whoever rewrote a plugin as a spec gets it, and a warning of the folder that is left."""
    root = desk.root({**FOLDER, "plugin_specs/hello.yaml": SPEC})
    assert desk.task(desk.valid(desk.job(plugins=USE), root), "hello").args == {"argv": ["a"]}
    (warning,) = warnings(desk, root)
    assert "pairun does not read" in warning
    assert "plugins/hello" in warning


def test_the_policy_names_the_roots(desk: Desk) -> None:
    """A list of roots opens these alone; a policy without a word of it opens all."""
    root = desk.root({**FOLDER, "playbooks/policy.yaml": JOB_MAY}, "silent")
    assert not desk.problems(desk.job(plugins=USE), root)
    policy = f"{JOB_MAY}plugin_folders: {{roots: []}}\n"
    root = desk.root({**FOLDER, "playbooks/policy.yaml": policy}, "closed")
    (problem,) = desk.problems(desk.job(plugins=USE), root)
    assert (problem.id, "no plugin 'hello'" in problem.message) == ("PR511", True)
    assert any("to the policy's 'plugin_folders'" in w for w in warnings(desk, root))
    policy = f"{JOB_MAY}plugin_folders: {{roots: [{desk.tmp}/open]}}\n"
    root = desk.root({**FOLDER, "playbooks/policy.yaml": policy}, "open")
    assert not desk.problems(desk.job(plugins=USE), root)


@pytest.mark.parametrize("relative", [True, False])
def test_folders_under_another_path(desk: Desk, *, relative: bool) -> None:
    """The policy names it: in a root, or absolute."""
    path = "src/plugins" if relative else str(desk.tmp / "elsewhere")
    policy = f'{JOB_MAY}plugin_folders: {{roots: "*", paths: [{path}]}}\n'
    root = desk.root(
        {
            "playbooks/policy.yaml": policy,
            f"{path}/hello/desc.yaml": DESC,
            f"{path}/hello/init.py": "",
        }
    )
    review = desk.valid(desk.job(plugins=USE), root)
    assert desk.task(review, "hello").args["folder"].endswith("/hello")


@pytest.mark.parametrize(
    ("description", "id_"),
    [("init-script: [a]\n", "PR204"), ("a: [\n", "PR101")],
)
def test_a_description_that_is_wrong(desk: Desk, description: str, id_: str) -> None:
    """The error stands in the folder's own file."""
    root = desk.root({"plugins/hello/desc.yaml": description})
    problems = desk.problems(desk.job(plugins=USE), root)
    assert [p.id for p in problems] == [id_]
    assert problems[0].place is not None
    assert problems[0].place.source.file.endswith("plugins/hello/desc.yaml")


def test_the_digest_of_a_root_covers_programs(desk: Desk) -> None:
    """A changed program is a changed root."""
    root = desk.root(FOLDER)
    before = desk.content(root).roots[-1].digest()
    (root / "plugins/hello/init.py").write_text("print(1)\n")
    assert desk.content(root).roots[-1].digest() != before


def test_a_policy_may_name_a_folder(desk: Desk) -> None:
    """`lint` knows it as a plugin."""
    policy = "job_may: {plugins: {allow: [hello]}}\n"
    root = desk.root({**FOLDER, "playbooks/policy.yaml": policy})
    assert not desk.problems(desk.job(plugins=USE), root)
    content = desk.content(root)
    (document,) = content.playbooks("policy")[-1:]
    assert not list(unknown_names(document, content, {}))


def test_a_folder_without_its_program(desk: Desk) -> None:
    """A review says so where the program is missing; where failures are ignored, as a warning."""
    root = desk.root({"plugins/hello/desc.yaml": DESC})
    (problem,) = desk.problems(desk.job(plugins=USE), root)
    assert (problem.id, desk.at(problem.place)) == ("PR108", "init.py")
    ignored = USE.replace("plugin: hello", "plugin: hello, failurePolicy: ignore")
    review = desk.valid(desk.job(plugins=ignored), root)
    assert [p.id for p in review.problems] == ["PR108"]
    assert "hello" in desk.order(review, "init")
    patch = "init: [{patch: hello, retries: 1, timeout: 1m}]"
    policy = desk.root({"playbooks/policy.yaml": desk.all_open}, "policy")
    assert [p.id for p in desk.problems(desk.job(patch, plugins=USE), root, policy)] == ["PR108"]


@pytest.mark.parametrize("description", ["name: hello\n", "{}\n"])
def test_a_folder_without_a_program_does_nothing(desk: Desk, description: str) -> None:
    root = desk.root({"plugins/hello/desc.yaml": description})
    (said,) = warnings(desk, root)
    assert "PR912" in said
    assert "the plugin does nothing: no init-script" in said
    assert "hello" not in desk.order(desk.valid(desk.job(plugins=USE), root), "init")

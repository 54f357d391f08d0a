"""``pairun lint``: job files, playbooks, policies and plugin specs, all problems at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

PLAYBOOK = "phase: runtime\ntasks:\n"
BAD: list[tuple[str, str, list[str]]] = [
    ("a playbook", f"{PLAYBOOK}  - {{name: N, cmd: {{argv: [a]}}, timeout: 600}}\n", ["PR210"]),
    ("an argument", f"{PLAYBOOK}  - {{name: N, cmd: {{argvv: [a]}}}}\n", ["PR604"]),
    ("an argument of a handler", f"{PLAYBOOK}  - {{name: N, cmd: {{argv: [a]}}, on_exit: [{{name: H, event: always, file: {{}}}}]}}\n", ["PR606"]),
    ("a phase", f"{PLAYBOOK}  - {{name: N, barrier: {{backend: framework}}}}\n", ["PR212"]),
    ("a group", f"{PLAYBOOK}  - {{parallel: P, tasks: [{{name: N, file: {{}}}}]}}\n", ["PR606"]),
    ("no module", f"{PLAYBOOK}  - {{name: N}}\n", ["PR203"]),
    ("patches", "phase: init\npatches: [{pach: barrier}]\n", ["PR201"]),
    ("a spec", "summary: S\nparameters: {type: strin}\n", ["PR204"]),
    ("a spec's task", "summary: S\nruntime: [{name: N, cmd: {argv: 5}}]\n", ["PR605"]),
    ("a policy", "job_may: {patches: {}}\n", ["PR406"]),
    ("a job", "protocolVersion: 2\nname: a\ntype: job\n", ["PR504"]),
    ("text", "a: [\n", ["PR101"]),
    ("nothing", "", ["PR501"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ids"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_file_with_mistakes(shell: Shell, text: str, ids: list[str]) -> None:
    """What kind of file it is, its content tells; its mistakes are errors with ids."""
    said = shell("lint", shell.file("some.yaml", text))
    assert said.code == 1
    assert sorted(set(said.ids)) == ids
    assert said.out == ""
    data = shell("lint", "--json", shell.tmp / "some.yaml").data
    assert sorted({p["id"] for p in data["problems"]}) == ids


def test_all_files_and_all_their_problems_at_once(shell: Shell) -> None:
    """Several files in one go, each with everything that is wrong with it."""
    one = shell.file("one.yaml", f"{PLAYBOOK}  - {{name: N, cmd: {{}}, retries: -1, whenn: a}}\n")
    two = shell.file("two.yaml", "job_may: {patches: {}, insrt: {}}\n")
    said = shell("lint", one, two, shell.job())
    assert said.code == 1
    assert sorted(said.ids) == ["PR201", "PR204", "PR406", "PR406", "PR605", "PR910"]


def test_what_is_shipped_has_nothing_to_complain_about(shell: Shell) -> None:
    """Every built-in playbook, the policy and every plugin spec, against themselves."""
    files = [p for f in ("playbooks", "plugin_specs") for p in (shell.project / f).glob("*.yaml")]
    said = shell("lint", *files)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{len(files)} files: nothing to complain about\n"


def test_standard_input_is_linted_whatever_it_is(shell: Shell) -> None:
    """``-`` takes a playbook or a job; it is read once."""
    said = shell.process("lint", "-", stdin=f"{PLAYBOOK}  - {{name: N}}\n")
    assert (said.code, said.ids) == (1, ["PR203"])
    said = shell.process("lint", "-", stdin=shell.job_text)
    assert (said.code, said.ids) == (0, [])


def test_a_job_is_checked_against_the_clusters_roots(shell: Shell) -> None:
    """What a review would refuse, lint refuses: patches, policy, plugins."""
    root = shell.root({"playbooks/policy.yaml": "job_may: {}\n"})
    job = shell.job("init: [{disable: port_check}]")
    assert shell("lint", job).code == 0
    said = shell("lint", job, "--root", root)
    assert (said.code, said.ids) == (1, ["PR402"])


def test_a_job_is_read_as_openpai_reads_it(shell: Shell) -> None:
    """A job's scalars follow the REST server's dialect here as well."""
    text = shell.job_text.replace("instances: 2", "instances: 0b10")
    assert shell("lint", shell.file("job.yaml", text)).code == 0


def test_warnings_are_no_errors(shell: Shell) -> None:
    """Retries that nothing bounds are worth a word, not a failure."""
    text = f"{PLAYBOOK}  - {{name: N, cmd: {{argv: [a]}}, retries: 3}}\n"
    said = shell("lint", shell.file("p.yaml", text))
    assert (said.code, said.ids) == (0, ["PR910"])
    assert "nothing to complain about" not in said.out
    bounded = text.replace("retries: 3", "retries: 3, deadline: 1m")
    assert shell("lint", shell.file("p.yaml", bounded)).ids == []


def test_expressions_are_left_for_the_review(shell: Shell) -> None:
    """An argument with an expression is not looked at: lint knows no job."""
    text = f"{PLAYBOOK}  - {{name: N, cmd: {{argv: ['{{{{ a }}}}'], ok_codes: '{{{{ b }}}}'}}}}\n"
    assert shell("lint", shell.file("p.yaml", text)).code == 0


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_roots_that_are_not_in_order_are_said_too(shell: Shell, flags: list[str]) -> None:
    """An error in a content root is an error of the command, in JSON as well."""
    root = shell.root({"playbooks/init.yaml": "a: [\n"})
    said = shell("lint", shell.job(), "--root", root, *flags)
    assert said.code == 1
    if flags:
        assert [p["id"] for p in json.loads(said.out)["problems"]] == ["PR101"]
    else:
        assert said.ids == ["PR101"]


def test_a_file_that_cannot_be_read(shell: Shell) -> None:
    """An absent file is an error beside the others', which are checked all the same."""
    said = shell("lint", shell.tmp / "absent", shell.file("p.yaml", "job_may: {x: 1}\n"))
    assert (said.code, sorted(said.ids)) == (1, ["PR108", "PR406"])

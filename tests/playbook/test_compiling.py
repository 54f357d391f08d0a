"""The effective playbook becomes a plan: what is known is resolved, the rest waits for the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pairun.errors import Problems, render
from pairun.job.planning import plan_role, secrets_of
from pairun.module import Secret, reveal
from pairun.plan import EVENTS, Late
from pairun.playbook.expressions.template import resolve
from pairun.secrets.vault import Vault
from pairun.volume.planfile import SecretStore, dump_plan, load_plan
from pairun.volume.reader import Secrets, body

if TYPE_CHECKING:
    from tests.desk import Desk
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.desk import Desk

DATA = "{{ 7*7 }}"


def runtime(desk: Desk, tasks: str, job: str | None = None) -> Any:
    """The review of a job under a runtime playbook with these tasks."""
    text = f"phase: runtime\ntasks:\n{tasks}{desk.command}"
    root = desk.root({"playbooks/runtime.yaml": text, "playbooks/policy.yaml": desk.all_open})
    return desk.review(job or desk.job_text, root)


def test_values_are_resolved_as_far_as_they_are_known(desk: Desk) -> None:
    """Known expressions are values with their type in the plan; others wait, and say for what."""
    review = runtime(
        desk,
        """\
  - id: one
    name: For {{ job.role.name }} at {{ cluster.own.host_ip }}
    vars: {count: "{{ job.role.instances * 2 }}", label: "n{{ count }}"}
    cmd:
      argv: ["{{ label }}", "{{ cluster.own.host_ip }}"]
      ok_codes: ["{{ count }}"]
    environment: {COUNT: "{{ count }}"}
    retries: "{{ count }}"
    timeout: "{{ count }}s"
    when: job.role.instances > 1
""",
    )
    assert not review.problems.errors
    task = desk.task(review, "one")
    assert "cluster.own" in task.title
    assert "Late(" not in task.title
    assert task.args["argv"][0] == "n4"
    assert isinstance(task.args["argv"][1], Late)
    assert task.args["ok_codes"] == [4]
    assert (task.environment, task.retries, task.timeout_s, task.when) == (
        {"COUNT": 4},
        4,
        4.0,
        True,
    )


@pytest.mark.parametrize("keyword", ["retries", "delay", "timeout", "deadline"])
def test_what_the_executor_must_know_cannot_wait(desk: Desk, keyword: str) -> None:
    """A number of retries or a limit that only the run can tell is an error."""
    body = f'  - {{id: one, name: One, cmd: {{argv: [a]}}, {keyword}: "{{{{ results.one.values.x }}}}"}}\n'
    found = [p for p in runtime(desk, body).problems.errors if p.id == "PR305"]
    assert [p.message.partition(",")[0] for p in found] == [
        f"'{keyword}' must be known before the run"
    ]


def test_results_of_other_tasks_are_known_by_name(desk: Desk) -> None:
    """An expression may wait for a task that exists; a name that does not is an error now."""
    body = '  - {{id: one, name: One, cmd: {{argv: ["{{{{ results.{}.values.code }}}}"]}}}}\n'
    assert not runtime(desk, body.format("user_command")).problems.errors
    (problem,) = runtime(type(desk)(desk.tmp / "other"), body.format("user_comand")).problems.errors
    assert problem.message == "'results.user_comand' is not defined"
    assert problem.hint == "did you mean 'user_command'?"


def test_a_variable_that_holds_late_values_resolves(desk: Desk) -> None:
    """A playbook's variable may hold a mapping of values that only the run can tell."""
    root = desk.root(
        {
            "playbooks/runtime.yaml": f"""\
phase: runtime
vars:
  paths: {{code: "{{{{ results.user_command.values.path }}}}"}}
tasks:
  - {{id: one, name: One, cmd: {{argv: ["{{{{ paths.code }}}}"]}}}}
{desk.command}"""
        }
    )
    value = desk.task(desk.valid(desk.job_text, root), "one").args["argv"][0]
    assert resolve(value, {"results": {"user_command": {"values": {"path": DATA}}}}) == DATA


def test_handlers_have_ids_events_and_a_policy_of_their_own(desk: Desk) -> None:
    """Handlers default to `ignore`, are numbered, and one whose condition is false is left out."""
    review = runtime(
        desk,
        """\
  - id: one
    name: One
    cmd: {argv: [a]}
    on_exit:
      - {name: A, event: always, cmd: {argv: [a]}}
      - {name: B, event: [failure, signal], cmd: {argv: [b]}, failure_policy: fail}
      - {name: C, event: success, cmd: {argv: [c]}, id: mine}
      - {name: D, event: success, cmd: {argv: [d]}, when: job.role.instances > 9}
""",
    )
    assert not review.problems.errors
    made = [(h.id, h.events, h.failure_policy) for h in desk.task(review, "one").on_exit]
    assert made == [
        ("one.on_exit", EVENTS, "ignore"),
        ("one.on_exit_2", ("failure", "signal"), "fail"),
        ("mine", ("success",), "ignore"),
    ]


def test_combinations_of_different_layers_are_no_error(desk: Desk) -> None:
    """Who adds a delay to somebody else's task need not know of its retries."""
    low = "phase: runtime\ntasks:\n  - {id: one, name: One, cmd: {argv: [a]}, failure_policy: ignore}\n"
    root = desk.root(
        {"playbooks/runtime.yaml": low + desk.command, "playbooks/policy.yaml": desk.all_open}
    )
    text = desk.job("runtime: [{patch: one, exit_codes: {timeout: 3}}]")
    assert not desk.review(text, root).problems.errors


JOB = f"""\
protocolVersion: 2
name: mnist
type: job
description: "{DATA}"
version: "{DATA}"
contributor: "{DATA}"
prerequisites:
  - {{name: image, type: dockerimage, uri: "{DATA}", description: "{DATA}", auth: {{username: "{DATA}", password: "p-{DATA}", registryuri: "{DATA}"}}}}
  - {{name: digits, type: data, uri: ["{DATA}"]}}
  - {{name: code, type: script, uri: "{DATA}"}}
  - {{name: out, type: output, uri: "{DATA}"}}
  - {{name: prep, type: data, uri: ["{DATA}"], plugin: com.microsoft.pai.runtimeplugin.carry, text: "{DATA}", list: ["{DATA}"], deep: {{a: {{b: "{DATA}"}}}}}}
parameters: {{p: "{DATA}", deep: {{list: ["{DATA}"]}}}}
secrets: {{s: "x-{DATA}"}}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    data: digits
    script: code
    output: out
    prerequisites: [prep]
    resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}
    commands:
      - echo "{DATA}"
      - echo <% $parameters.p %> <% $data.uri[0] %> <% $script.uri %> <% $output.uri %>
      - echo <% $secrets.s %>
extras:
  storages: [{{name: "{DATA}"}}]
  com.microsoft.pai.runtimeplugin:
    - plugin: carry
      parameters: {{text: "{DATA} <% $parameters.p %>", list: ["<% $data.uri[0] %>"], deep: {{a: {{b: "<% $secrets.s %>"}}}}}}
"""
CARRY = """\
summary: Carries every field
parameters: {type: object}
runtime:
  - name: Carry {{ parameters.text }}
    vars: {all: "{{ parameters }}", again: "{{ parameters.text }}"}
    cmd:
      argv:
        - "{{ parameters.text }}"
        - "{{ again }}"
        - "<{{ again }}>"
        - "{{ parameters.list[0] }}"
        - "{{ parameters.list | join(' ') }}"
        - "{{ job.image.uri }}"
        - "{{ job.image.auth.username }} {{ job.image.auth.registry }}"
        - "{{ job.storages[0] }}"
        - "{{ results.prep.values.stdout }}"
      script: "{{ parameters.deep.a.b }}"
    environment: {TEXT: "{{ parameters.text }}", SECRET: "{{ job.image.auth.password }}"}
    when: parameters.text
"""


def test_no_text_of_a_job_is_ever_rendered(desk: Desk) -> None:
    """Braces carried through every field of the protocol arrive as braces, in both phases."""
    root = desk.root(
        {
            "plugin_specs/carry.yaml": CARRY,
            "playbooks/init.yaml": """\
phase: init
vars: {p: "{{ parameters.p }}", q: "{{ p }}"}
tasks:
  - id: one
    name: One
    cmd: {argv: ["{{ q }}", "{{ parameters.deep.list[0] }}", "{{ parameters.deep | tojson }}"]}
""",
        }
    )
    review = desk.review(JOB, root)
    # argv and script exclude each other; everything else must be in order
    assert {p.id for p in review.problems.errors} <= {"PR605"}, list(map(render, review.problems))
    plans = review.plans[0].plans
    secrets = SecretStore()
    whole = [dump_plan(p, secrets) for p in plans.values()]
    assert "49" not in json.dumps([without_places(whole), secrets.dump()])
    assert desk.task(review, "one").args["argv"][:2] == [DATA, DATA]
    for id_ in ("prep", "carry"):
        task = desk.task(review, id_)
        assert task.when is True
        assert task.args["argv"][1] in (DATA, f"{DATA} {DATA}")
        assert task.args["argv"][5:8] == [DATA, f"{DATA} {DATA}", DATA]
        assert reveal(task.environment["SECRET"]) == f"p-{DATA}"
        late = task.args["argv"][8]
        assert resolve(late, {"results": {"prep": {"values": {"stdout": DATA}}}, "env": {}}) == DATA
    assert reveal(desk.task(review, "carry").args["script"]) == f"x-{DATA}"
    command = desk.task(review, "user_command").args["script"]
    assert isinstance(command, Secret)
    assert command.reveal() == f'echo "{DATA}"\necho {DATA} {DATA} {DATA} {DATA}\necho x-{DATA}'


def without_places(value: Any) -> Any:
    """A plan without what may hold any number: places, paths and digests."""
    if isinstance(value, dict):
        hidden = ("where", "modules", "pairun")
        return {k: without_places(v) for k, v in value.items() if k not in hidden}
    return [without_places(v) for v in value] if isinstance(value, list) else value


def test_a_plan_with_late_values_and_secrets_comes_back_the_same(desk: Desk) -> None:
    """What is written to the volume is what was planned, secrets by reference only."""
    root = desk.root({"plugin_specs/carry.yaml": CARRY})
    plan = desk.review(JOB, root).plans[0].plans["runtime"]
    store = SecretStore()
    text = json.dumps(dump_plan(plan, store))
    assert f"x-{DATA}" not in text
    assert f"p-{DATA}" not in text
    secrets = Secrets(store.dump()["values"])
    assert load_plan(body(json.loads(text), "plan.json"), secrets, "plan.json") == plan


def test_every_secret_of_a_job_is_known_to_the_vault(desk: Desk) -> None:
    """Passwords, tokens and numbers among the secrets, in the text that people would see."""
    more = (
        "secrets: {a: hunter2hunter2, deep: {list: [12345.0, 98765, {b: deep-secret}]}, c: true}\n"
    )
    review = desk.valid(desk.job(more=more))
    assert review.job is not None
    assert set(secrets_of(review.job)) == {"hunter2hunter2", "12345", "98765", "deep-secret"}


def test_a_jobs_layer_sees_what_it_may_and_nothing_else(desk: Desk) -> None:
    """A job's expressions see the job, not the environment and not a cluster's variables."""
    root = desk.root(
        {"playbooks/policy.yaml": desk.all_open.replace('vars: "*"\n', "vars: [mine]\n")}
    )
    insert = 'vars: {{mine: 1}}\nruntime: [{{append: , id: x, name: X, cmd: {{argv: ["{{{{ {} }}}}"]}}}}]'
    for seen in (
        "job.name",
        "parameters | tojson",
        "cluster.own",
        "results.user_command",
        "mine ~ ''",
    ):
        assert not desk.problems(desk.job(insert.format(seen)), root), seen
    hidden = ("env.HOME", "gang", "plugin", "user_extension", "(results.x.a | length) ~ env.HOME")
    for name in hidden:
        assert {p.id for p in desk.problems(desk.job(insert.format(name)), root)} == {"PR301"}, name


def test_the_volumes_path_is_replaced_where_there_are_no_namespaces(desk: Desk) -> None:
    """A run without namespaces gets another folder in every text, however deep."""
    review = runtime(
        desk,
        "  - {id: one, name: One, cmd: {argv: [/usr/local/pai/x, 'a {{ 1 }} /usr/local/pai']}}\n",
    )
    assert review.job is not None
    planned = plan_role(
        desk.layers(desk.tmp / "cluster"),
        review.job,
        review.job.roles[0],
        env={"init": {}, "runtime": {}},
        rewrite=("/usr/local/pai", "/tmp/p"),
        vault=Vault(),
        problems=Problems(),
    )
    task = next(t for t in planned.plans["runtime"].tasks() if t.id == "one")
    assert task.args["argv"] == ["/tmp/p/x", "a 1 /tmp/p"]


def test_an_argument_that_counted_attempts_sets_the_retries(desk: Desk) -> None:
    """``tries: 3`` becomes ``retries: 2`` with a warning; written retries win; it must be known."""
    task = "- {id: n, name: N, notify: {url: 'http://e.org', tries: %s}%s}\n"

    def planned(tries: str, more: str = "") -> Any:
        text = f"phase: runtime\ntasks:\n  {task % (tries, more)}{desk.command}"
        return desk.review(
            desk.job_text, desk.root({"playbooks/runtime.yaml": text}, name=f"{tries}{more}")
        )

    review = planned("3")
    assert desk.task(review, "n").retries == 2
    assert "tries" not in desk.task(review, "n").args
    (warning,) = [p for p in review.problems if p.id == "PR214"]
    assert warning.hint == "set the task's 'retries: 2' instead"
    assert desk.task(planned("3", ", retries: 5"), "n").retries == 5
    assert [p.id for p in planned("0").problems.errors] == ["PR605"]
    late = planned("'{{ cluster.own.index }}'")
    assert [p.id for p in late.problems.errors] == ["PR305"]


RUNTIME = """\
phase: runtime
tasks:
  - name: C
    user_command: {script: a}
"""


@pytest.mark.parametrize(
    ("files", "caret"),
    [
        ({"playbooks/runtime.yaml": "phase: runtime\ntasks: []\n"}, "tasks"),
        ({"playbooks/runtime.yaml": f"{RUNTIME}    when: false\n"}, "false"),
        ({"playbooks/runtime.yaml": f"{RUNTIME}    when: 1 > 2\n"}, "1 > 2"),
    ],
)
def test_the_users_command_must_be_there(desk: Desk, files: dict[str, str], caret: str) -> None:
    """A runtime phase that would run nothing is an error before it is submitted."""
    (problem,) = desk.problems(desk.job_text, desk.root(files))
    assert problem.id == "PR205"
    assert problem.message.startswith("'user_command' is missing")
    assert desk.at(problem.place).startswith(caret)


def test_the_users_command_cannot_be_taken_out(desk: Desk) -> None:
    """Where a cluster's own playbook did not lock it, the place that disables it is shown."""
    low = desk.root({"playbooks/runtime.yaml": RUNTIME}, "low")
    patch = "phase: runtime\npatches: [{disable: user_command}]\n"
    high = desk.root({"playbooks/runtime.yaml": patch}, "high")
    (problem,) = desk.problems(desk.job_text, low, high)
    assert (problem.id, desk.at(problem.place)[:12]) == ("PR205", "user_command")

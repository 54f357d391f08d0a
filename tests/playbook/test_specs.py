"""Plugin specs: YAML turns a plugin of the job protocol into tasks of either phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from pairun.errors import render
from pairun.plan import Late
from pairun.playbook.expressions.template import resolve

if TYPE_CHECKING:
    from tests.desk import Desk

SPEC = """\
summary: A greeting
parameters:
  type: object
  required: [who]
  properties:
    who: {type: string}
    loud: {type: boolean, default: false}
    times: {type: [integer, "null"], default: 2}
    anything: true
init:
  - name: Prepare for {{ parameters.who }}
    cmd: {argv: [prepare]}
runtime:
  - name: Greet {{ parameters.who }}
    cmd: {argv: [greet, "{{ parameters.who }}", "{{ parameters.times | string }}"]}
    on_exit: [{name: Bye, event: always, cmd: {argv: [bye]}}]
  - name: Shout
    when: parameters.loud
    cmd: {argv: [shout, "{{ plugin.name }}", "{{ plugin.id }}"]}
"""
USE = "- {plugin: greet, parameters: {who: anna}}\n"


def test_a_spec_brings_tasks_before_the_users_command(desk: Desk) -> None:
    """Tasks of both phases, ids of the plugin's name, defaults filled in, false ones left out."""
    review = desk.valid(desk.job(plugins=USE), desk.root({"plugin_specs/greet.yaml": SPEC}))
    assert desk.order(review, "init")[-1] == "greet"
    assert desk.order(review, "runtime")[-2:] == ["greet_2", "user_command"]
    task = desk.task(review, "greet_2")
    assert task.args["argv"] == ["greet", "anna", "2"]
    assert (task.failure_policy, task.on_exit[0].failure_policy) == ("fail", "fail")
    assert desk.draft(review, "greet_2").origin == "plugin"


def test_ids_of_further_uses_and_tasks_are_counted(desk: Desk) -> None:
    """Every task of every use has an id of its own, in the order of collection."""
    twice = USE + "- {plugin: greet, parameters: {who: otto, loud: true}, failurePolicy: ignore}\n"
    review = desk.valid(desk.job(plugins=twice), desk.root({"plugin_specs/greet.yaml": SPEC}))
    assert desk.order(review, "init")[-2:] == ["greet", "greet_3"]
    assert desk.order(review, "runtime")[-4:] == ["greet_2", "greet_4", "greet_5", "user_command"]
    assert desk.task(review, "greet_5").args["argv"] == ["shout", "greet", "greet"]
    assert desk.task(review, "greet_5").failure_policy == "ignore"
    assert desk.task(review, "greet_4").on_exit[0].failure_policy == "ignore"


def test_null_is_the_default_of_a_parameter(desk: Desk) -> None:
    """A parameter that is null has its default, as everywhere."""
    use = "- {plugin: greet, parameters: {who: anna, times: null}}\n"
    review = desk.valid(desk.job(plugins=use), desk.root({"plugin_specs/greet.yaml": SPEC}))
    assert desk.task(review, "greet_2").args["argv"][2] == "2"


@pytest.mark.parametrize(
    ("parameters", "caret", "says"),
    [
        ("{}", "parameters: {}", "'who' is missing"),
        ("{who: 5}", "5", "'who' must be text, not 5"),
        ("{who: a, loud: maybe}", "maybe", "true or false, not 'maybe'"),
        ("[who]", "[who]", "a mapping, not a list"),
    ],
)
def test_parameters_that_do_not_fit(desk: Desk, parameters: str, caret: str, says: str) -> None:
    """The spec's schema bounds what a job may say, and the error stands in the job."""
    root = desk.root({"plugin_specs/greet.yaml": SPEC})
    text = desk.job(plugins=f"- {{plugin: greet, parameters: {parameters}}}\n")
    found = [p for p in desk.problems(text, root) if p.id == "PR512"]
    assert found, [render(p) for p in desk.problems(text, root)]
    assert says in found[0].message
    assert desk.at(found[0].place).startswith(caret)


def test_an_unknown_plugin_names_the_nearest(desk: Desk) -> None:
    """A slip in a plugin's name is an error; with failurePolicy ignore, a warning."""
    root = desk.root({"plugin_specs/greet.yaml": SPEC})
    (problem,) = desk.problems(desk.job(plugins="- {plugin: gret}\n"), root)
    assert (problem.id, problem.hint) == ("PR511", "did you mean 'greet'?")
    review = desk.review(desk.job(plugins="- {plugin: gret, failurePolicy: ignore}\n"), root)
    assert [(p.id, p.severity) for p in review.problems] == [("PR511", "warning")]


def test_the_parameters_of_built_in_plugins_are_valid_schemas(desk: Desk) -> None:
    content = desk.content()
    for path, root in content.specs.values():
        if (parameters := content.document(path, root).get("parameters")) is not None:
            Draft202012Validator.check_schema(parameters.plain())


@pytest.mark.parametrize(
    ("spec", "id_", "says"),
    [
        ("parameters: {}\n", "PR205", "'summary' is missing"),
        ("summary: S\nparams: {}\n", "PR201", "did you mean 'parameters'?"),
        ("summary: S\nparameters: []\n", "PR204", "a mapping, not a list"),
        ("summary: S\nparameters: {type: strin}\n", "PR204", "not a JSON Schema"),
        ("summary: S\nparameters: {properties: {a: {pattern: '('}}}\n", "PR204", "not a JSON Schema"),
        ("summary: S\nparameters: {properties: {a: 5}}\n", "PR204", "not a JSON Schema"),
        ("summary: S\nparameters: {properties: []}\n", "PR204", "not a JSON Schema"),
        ("summary: S\nruntime: {}\n", "PR204", "a list, not a mapping"),
        ("summary: S\nruntime: [{name: N}]\n", "PR203", "has no module"),
        ("summary: S\nruntime: [{name: N, cmdd: {}}]\n", "PR201", "did you mean 'cmd'?"),
        ("summary: S\nruntime: [{parallel: P, tasks: []}]\n", "PR201", "no keyword 'parallel'"),
        ("summary: S\nruntime: [{name: N, ignore_errors: true, cmd: {argv: [a]}}]\n", "PR209", "failure_policy"),
        ("summary: S\nruntime: [{name: N, cmd: {argv: [a], x: 1}}]\n", "PR604", "no argument 'x'"),
        ("summary: S\nruntime: [{name: '{{ parameters.no }}', cmd: {argv: [a]}}]\n", "PR301", "parameters.no"),
        ("summary: [\n", "PR101", "not YAML"),
        ("summary: S\nparameters: {$ref: 'http://127.0.0.1:9/schema'}\n", "PR512", "does not define"),
    ],
)  # fmt: skip
def test_a_spec_with_mistakes(desk: Desk, spec: str, id_: str, says: str) -> None:
    """A mistake in a spec is an error in the spec, never a crash and never a request."""
    root = desk.root({"plugin_specs/greet.yaml": spec})
    found = desk.problems(desk.job(plugins=USE), root)
    assert any(p.id == id_ and says in render(p) for p in found), [render(p) for p in found]
    if id_ != "PR512":
        assert all("greet.yaml" in render(p) for p in found)


def test_a_spec_that_no_role_uses_stops_nobody(desk: Desk) -> None:
    """A broken spec concerns the jobs that ask for its plugin, and no other."""
    root = desk.root({"plugin_specs/greet.yaml": "summary: [\n"})
    assert not desk.problems(desk.job_text, root)


def test_a_secret_in_a_parameter_is_checked_and_not_shown(desk: Desk) -> None:
    """A secret that does not fit the schema is refused without its value."""
    spec = "summary: S\nparameters: {properties: {k: {type: array, uniqueItems: true}, n: {const: 1}}}\n"
    root = desk.root({"plugin_specs/greet.yaml": spec})
    for parameters in (
        '{k: ["<% $secrets.t %>", "<% $secrets.t %>"]}',
        '{n: "<% $secrets.t %>"}',
        '{k: "<% $secrets.t %>"}',
    ):
        text = desk.job(
            plugins=f"- {{plugin: greet, parameters: {parameters}}}\n",
            more="secrets: {t: hunter2hunter2}\n",
        )
        review = desk.review(text, root)
        assert {p.id for p in review.problems.errors} == {"PR512"}
        for p in review.problems:
            assert "hunter2" not in review.vault.text(render(p))


def test_tensorboard_names_every_log_directory(desk: Desk) -> None:
    """The built-in spec with a loop in it renders."""
    use = "- {plugin: tensorboard, parameters: {port: 6006, logdir: {a: /a, b: /b}}}\n"
    review = desk.valid(desk.job(plugins=use))
    assert desk.task(review, "tensorboard").environment["LOGDIR_SPEC"] == "a:/a,b:/b"


@pytest.mark.parametrize("given", ["soon", "10m", -3, "-1"])
def test_the_ssh_barrier_takes_minutes(desk: Desk, given: object) -> None:
    """What is no number of them is said before the job runs."""
    use = f"- {{plugin: ssh, parameters: {{jobssh: true, sshbarrierTimeout: {given!r}}}}}\n"
    assert {p.id for p in desk.problems(desk.job(plugins=use))} == {"PR512"}


@pytest.mark.parametrize("given", [10, 0.5, "30", "0.5", ""])
def test_minutes_of_the_ssh_barrier(desk: Desk, given: object) -> None:
    """Numbers, also as text, as OpenPAI's portal writes them; nothing is the default."""
    use = f"- {{plugin: ssh, parameters: {{sshbarrier: true, sshbarrierTimeout: {given!r}}}}}\n"
    review = desk.valid(desk.job(plugins=use))
    # Without jobssh the task is there to say that there is nothing to wait for.
    assert desk.task(review, "ssh").args == {"timeout_min": given, "wanted": False}


def test_parameters_that_do_not_fit_bring_nothing_else(desk: Desk) -> None:
    """One mistake is one error: no task of that use, and no complaint about patches of it."""
    root = desk.root({"plugin_specs/greet.yaml": SPEC, "playbooks/policy.yaml": desk.all_open})
    patch = "runtime: [{patch: greet_2, retries: 1}]\n"
    use = "- {plugin: greet, parameters: {woh: anna}}\n"
    (problem,) = desk.problems(desk.job(patch, plugins=use), root)
    assert (problem.id, problem.message) == ("PR512", "'who' is missing")
    assert problem.hint == "did you mean 'who' instead of 'woh'?"


def test_a_problem_in_a_spec_names_the_jobs_line_too(desk: Desk) -> None:
    """A value that came from the job's parameters does not fit where the spec puts it."""
    spec = "summary: S\nparameters: {properties: {a: true}}\nruntime:\n"
    spec += "  - {name: N, cmd: {argv: '{{ parameters.a }}'}}\n"
    root = desk.root({"plugin_specs/greet.yaml": spec})
    given = (("{a: 5}", "PR605", "it is given here"), ("{}", "PR301", "the plugin is used here"))
    for parameters, id_, words in given:
        text = desk.job(plugins=f"- {{plugin: greet, parameters: {parameters}}}\n")
        (problem,) = desk.problems(text, root)
        assert problem.id == id_
        ((label, place),) = problem.also
        assert label == words
        assert desk.at(place).startswith("5}}" if id_ == "PR605" else "{plugin: greet")


def test_a_misspelt_optional_parameter_is_a_warning(desk: Desk) -> None:
    """A key that the spec does not list would be dropped in silence."""
    use = "- {plugin: cmd, parameters: {preCommand: [a]}}\n"
    review = desk.valid(desk.job(plugins=use))
    ((id_, hint, place),) = [(p.id, p.hint, p.place) for p in review.problems]
    assert (id_, hint) == ("PR911", "did you mean 'preCommands'?")
    assert desk.at(place).startswith("preCommand:")


@pytest.mark.parametrize("more", ["additionalProperties: true", "patternProperties: {x: {}}"])
def test_a_spec_may_take_further_parameters(desk: Desk, more: str) -> None:
    """Where the schema says that other keys are meant, none is a slip."""
    spec = f"summary: S\nparameters: {{properties: {{who: {{}}}}, {more}}}\n"
    root = desk.root({"plugin_specs/greet.yaml": spec})
    text = desk.job(plugins="- {plugin: greet, parameters: {woh: a}}\n")
    assert not list(desk.valid(text, root).problems)


def test_a_prerequisite_carries_free_keys(desk: Desk) -> None:
    """Of a prerequisite's own keys only a near miss of a parameter is worth a word."""
    root = desk.root({"plugin_specs/greet.yaml": SPEC})
    entry = "{name: hi, type: data, plugin: com.microsoft.pai.runtimeplugin.greet, who: anna, uri: [a], version: 2"
    for more, ids in (("}", []), (", lout: true}", ["PR911"])):
        text = desk.job_text.replace("taskRoles:", f"  - {entry}{more}\ntaskRoles:").replace(
            "    instances", "    prerequisites: [hi]\n    instances"
        )
        assert [p.id for p in desk.valid(text, root).problems] == ids


EXPANDS = """\
summary: Paths
parameters: {type: object, properties: {to: {type: string}, from: {type: string}}}
expands: [to]
runtime:
  - name: Copy to {{ parameters.to }}
    cmd: {argv: [cp, "{{ parameters.from }}", "{{ expanded.to }}"]}
"""


@pytest.mark.parametrize("to", ["$HOME/x", "a/${B}", "~/x"])
def test_an_expanded_parameter_is_known_at_run_time(desk: Desk, to: str) -> None:
    """What a shell would expand waits for the user's container; the parameter itself does not."""
    use = f"- {{plugin: copy, parameters: {{to: '{to}', from: $HOME}}}}\n"
    review = desk.valid(desk.job(plugins=use), desk.root({"plugin_specs/copy.yaml": EXPANDS}))
    task = desk.task(review, "copy")
    assert task.name == f"Copy to {to}"
    program, source, target = task.args["argv"]
    assert (program, source) == ("cp", "$HOME")
    assert isinstance(target, Late)
    assert resolve(target, {"env": {"HOME": "/h", "B": "b"}}) == {
        "$HOME/x": "/h/x", "a/${B}": "a/b", "~/x": "/h/x"
    }[to]  # fmt: skip


@pytest.mark.parametrize("to", ["/x", "a~", "x/~/y", ""])
def test_a_parameter_without_variables_is_known(desk: Desk, to: str) -> None:
    """Where there is nothing to expand, the review shows the value."""
    use = f"- {{plugin: copy, parameters: {{to: '{to}', from: x}}}}\n"
    review = desk.valid(desk.job(plugins=use), desk.root({"plugin_specs/copy.yaml": EXPANDS}))
    assert desk.task(review, "copy").args["argv"][2] == to


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A$B", "1"), ("${A}b", "1b"), ("$Ab", ""), ("~x/$A", "~x/1"), ("~", "/h"), ("$", "$"),
        ("${A", "${A"), ("$(x)", "$(x)"), ("$1", "$1"), ("{{ env.A }}", "{{ env.A }}"),
    ],
)  # fmt: skip
def test_expanding_is_all_that_a_shell_does(text: str, expanded: str) -> None:
    """Variables and the home directory; no command, no pattern, no expression."""
    late = Late(
        template="{{ text | expand(env) }}", because="", expression=True, vars={"text": text}
    )
    assert resolve(late, {"env": {"A": "1", "HOME": "/h"}}) == expanded


def test_only_parameters_can_be_expanded(desk: Desk) -> None:
    """A name in ``expands`` that is no parameter is an error of the spec."""
    spec = EXPANDS.replace("expands: [to]", "expands: [too]")
    (problem,) = desk.problems(
        desk.job(plugins="- {plugin: copy, parameters: {to: x, from: y}}\n"),
        desk.root({"plugin_specs/copy.yaml": spec}),
    )
    assert problem.id == "PR204"
    assert "unknown parameter 'too'" in problem.message

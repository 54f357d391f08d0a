"""What a job may change: a table of attempts, each with what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.errors import render

if TYPE_CHECKING:
    from tests.desk import Desk

PLAYBOOKS = {
    "playbooks/init.yaml": """\
phase: init
tasks:
  - id: git_clone
    name: The code is here
    git_clone: {repo: "https://example.org/code", dest: /code}
  - id: image_check
    name: The image exists
    image_check: {image: "{{ job.image.uri }}"}
    retries: 5
  - id: port_check
    name: The ports are free
    port_check: {ports: {}}
  - id: sealed
    name: Nobody touches this
    cmd: {argv: [ls]}
    locked: true
""",
    "playbooks/runtime.yaml": """\
phase: runtime
tasks:
  - id: mount_storage
    name: The storage is mounted
    volume_check: {paths: [/mnt/data]}
  - id: warm
    name: Warm up
    cmd: {argv: [a, b], ok_codes: [0, 1]}
    environment: {A: low, B: low}
    retries: 2
    delay: 4s
    exit_codes: {timeout: 9}
  - id: user_command
    name: The user's command
    user_command: {script: "{{ job.user_command }}"}
    locked: true
""",
}
DEFAULT = """\
job_may:
  patch:
    git_clone: [retries, delay, args.depth]
    image_check: [retries, args.policy]
  disable: [port_check]
  insert: {runtime: [cmd, file, download, git_clone]}
  vars: []
  plugins: {allow: "*", deny: []}
"""
STAR = """\
job_may:
  patch: "*"
  disable: "*"
  insert: {init: "*", runtime: "*"}
  vars: "*"
"""
STAR_BY_TASK = 'job_may: {patch: {"*": ["*"]}}\n'
NAMED = "job_may: {patch: {warm: [environment, on_exit, exit_codes, vars, locked, args.argv]}}\n"
NAMED_AND_INSERT = """\
job_may: {patch: {warm: [on_exit]}, insert: {runtime: [cmd]}}
"""
HOLD = "job_may: {insert: {runtime: [cmd, hold]}, hold_max: 30m, vars: [t]}\n"
UNBOUNDED = "job_may: {insert: {runtime: [cmd, hold]}}\n"
HOLDS = "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}, on_exit: [{name: H, event: failure, hold: {time: TIME}}]}]"
NOTHING = "job_may: {}\n"
DEPTHS = "job_may: {patch: {warm: [args.*], cmd: [retries]}, vars: [depth]}\n"
PLUGINS = "job_may: {plugins: {allow: [cmd, ssh], deny: [ssh]}}\n"

Row = tuple[str, str, str, str, dict[str, Any]]
# What the job tries, under which policy; the error's id and a part of what would be allowed, or
# the effect: attributes of planned tasks, or the order of a phase.
ATTEMPTS: list[Row] = [
    ("patch retries", DEFAULT, "init: [{patch: git_clone, retries: 7}]", "", {"git_clone.retries": 7}),
    ("patch delay", DEFAULT, "init: [{patch: git_clone, retries: 1, delay: 9s}]", "", {"git_clone.delay_s": 9.0}),
    ("patch an argument", DEFAULT, "init: [{patch: git_clone, args: {depth: 1}}]", "", {"git_clone.args.depth": 1}),
    ("patch another argument", DEFAULT, "init: [{patch: git_clone, args: {dest: /x}}]", "PR402 of 'git_clone' a job may change: args.depth, delay, retries", {"git_clone.args.dest": "/code"}),
    ("patch two arguments", DEFAULT, "init: [{patch: git_clone, args: {depth: 1, repo: x}}]", "PR402 args.depth, delay, retries", {}),
    ("patch timeout", DEFAULT, "init: [{patch: git_clone, timeout: 1s}]", "PR402 args.depth, delay, retries", {"git_clone.timeout_s": None}),
    ("patch args.policy", DEFAULT, "init: [{patch: image_check, args: {policy: warn}}]", "", {"image_check.args.policy": "warn"}),
    ("patch when", DEFAULT, "init: [{patch: image_check, when: false}]", "PR402 args.policy, retries", {"image_check.when": True}),
    ("patch failure_policy", DEFAULT, "init: [{patch: image_check, failure_policy: ignore}]", "PR402 args.policy", {"image_check.failure_policy": "fail"}),
    ("patch what no policy names", DEFAULT, "runtime: [{patch: warm, retries: 1}]", "PR402 tasks that may be patched: git_clone, image_check", {"warm.retries": 2}),
    ("patch a locked task", DEFAULT, "init: [{patch: sealed, retries: 1}]", "PR403", {"sealed.retries": 0}),
    ("patch the command", DEFAULT, "runtime: [{patch: user_command, args: {script: x}}]", "PR403", {"user_command.args.script": "train"}),
    ("patch an unknown id", DEFAULT, "init: [{patch: git_clon, retries: 1}]", "PR401 did you mean 'git_clone'?", {}),
    ("patch in the wrong phase", DEFAULT, "runtime: [{patch: git_clone, retries: 1}]", "PR401 it is in init: move this entry to init", {"git_clone.retries": 0}),
    ("patch the id", DEFAULT, "init: [{patch: git_clone, id: other}]", "PR404", {"git_clone.retries": 0}),
    ("patch the module's key", DEFAULT, "init: [{patch: git_clone, git_clone: {depth: 1}}]", "PR404 args", {}),
    ("patch nothing known", DEFAULT, "init: [{patch: git_clone, retriess: 1}]", "PR201 did you mean 'retries'?", {}),
    ("patch with a wrong value", DEFAULT, "init: [{patch: git_clone, retries: -1}]", "PR204", {}),
    ("patch with an unknown argument", STAR, "init: [{patch: git_clone, args: {dept: 1}}]", "PR604 did you mean 'depth'?", {}),
    ("null returns to the default", STAR, "init: [{patch: image_check, retries: null}]", "", {"image_check.retries": 0}),
    ("null for an argument", STAR, "runtime: [{patch: warm, args: {ok_codes: null}}]", "", {"warm.args": {"argv": ["a", "b"]}}),
    ("null for a delay", STAR, "runtime: [{patch: warm, delay: null}]", "", {"warm.delay_s": 1.0}),
    ("lists replace", STAR, "runtime: [{patch: warm, args: {argv: [c]}}]", "", {"warm.args": {"argv": ["c"], "ok_codes": [0, 1]}}),
    ("disable", DEFAULT, "init: [{disable: port_check}]", "", {"init": ["git_clone", "image_check", "sealed"]}),
    ("disable another", DEFAULT, "init: [{disable: image_check}]", "PR402 tasks that may be disabled: port_check", {}),
    ("disable a locked task", STAR, "init: [{disable: sealed}]", "PR403", {}),
    ("disable an unknown id", DEFAULT, "init: [{disable: prot_check}]", "PR401 did you mean 'port_check'?", {}),
    ("a plugin that the job lacks", DEFAULT, "init: [{patch: tensorboard, retries: 1}]", "PR401 the role does not use the plugin 'tensorboard'", {}),
    ("disable in the wrong phase", DEFAULT, "runtime: [{disable: port_check}]", "PR401 it is in init: move this entry to init", {}),
    ("disable and more", DEFAULT, "init: [{disable: port_check, retries: 3}]", "PR404 ", {}),
    ("disable by star", STAR, "runtime: [{disable: warm}]", "", {"runtime": ["mount_storage", "user_command"]}),
    ("insert after", DEFAULT, "runtime: [{after: mount_storage, id: x, name: X, cmd: {argv: [x]}}]", "", {"runtime": ["mount_storage", "x", "warm", "user_command"]}),
    ("insert before", DEFAULT, "runtime: [{before: mount_storage, id: x, name: X, cmd: {argv: [x]}}]", "", {"runtime": ["x", "mount_storage", "warm", "user_command"]}),
    ("append", DEFAULT, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}}]", "", {"runtime": ["mount_storage", "warm", "x", "user_command"]}),
    ("two after one keep their order", DEFAULT, "runtime: [{after: mount_storage, id: x, name: X, cmd: {argv: [x]}}, {after: mount_storage, id: y, name: Y, cmd: {argv: [y]}}]", "", {"runtime": ["mount_storage", "x", "y", "warm", "user_command"]}),
    ("after what was inserted", DEFAULT, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}}, {after: x, id: y, name: Y, cmd: {argv: [y]}}]", "", {"runtime": ["mount_storage", "warm", "x", "y", "user_command"]}),
    ("before the command", DEFAULT, "runtime: [{before: user_command, id: x, name: X, cmd: {argv: [x]}}]", "", {"runtime": ["mount_storage", "warm", "x", "user_command"]}),
    ("after the command", DEFAULT, "runtime: [{after: user_command, id: x, name: X, cmd: {argv: [x]}}]", "PR208 on_exit", {}),
    ("after an unknown id", DEFAULT, "runtime: [{after: mount_storag, name: X, id: x, cmd: {argv: [x]}}]", "PR401 did you mean 'mount_storage'?", {}),
    ("insert into init", DEFAULT, "init: [{append: , id: x, name: X, cmd: {argv: [x]}}]", "PR402 modules that may be inserted into init: none", {}),
    ("insert a module that is not named", DEFAULT, "runtime: [{append: , id: x, name: X, ssh_setup: {}}]", "PR402 into runtime: cmd, file, download, git_clone", {}),
    ("insert into init by star", STAR, "init: [{after: git_clone, id: x, name: X, cmd: {argv: [x]}}]", "", {"init": ["git_clone", "x", "image_check", "port_check", "sealed"]}),
    ("insert a locked task", DEFAULT, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}, locked: true}]", "PR402 ", {}),
    ("insert with an id that is taken", DEFAULT, "runtime: [{append: , id: warm, name: X, cmd: {argv: [x]}}]", "PR206", {}),
    ("insert with a handler", DEFAULT, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}, on_exit: [{name: B, event: always, file: {path: /a, content: b}}]}]", "", {"x.on_exit.0.module": "file"}),
    ("insert with a handler that is not named", DEFAULT, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}, on_exit: [{name: B, event: always, ssh_setup: {}}]}]", "PR402 into runtime: cmd, file", {}),
    ("star has no environment", STAR, "runtime: [{patch: warm, environment: {C: d}}]", "PR402 '*' covers everything but on_exit, environment", {"warm.environment": {"A": "low", "B": "low"}}),
    ("star has no exit_codes", STAR, "runtime: [{patch: warm, exit_codes: {timeout: 3}}]", "PR402 '*' covers", {}),
    ("star has no on_exit", STAR, "runtime: [{patch: warm, on_exit: [{name: B, event: always, cmd: {argv: [x]}}]}]", "PR402 '*' covers", {"warm.on_exit": ()}),
    ("star has no locked", STAR, "runtime: [{patch: warm, locked: true}]", "PR402 '*' covers", {}),
    ("star has no vars", STAR, "runtime: [{patch: warm, vars: {a: b}}]", "PR402 '*' covers", {}),
    ("star of a task has no environment", STAR_BY_TASK, "runtime: [{patch: warm, environment: {C: d}}]", "PR402 '*' covers", {}),
    ("star of a task has the rest", STAR_BY_TASK, "runtime: [{patch: warm, failure_policy: ignore, exit_codes: null}]", "PR402", {}),
    ("star has the rest", STAR, "runtime: [{patch: warm, retries: 1, timeout: 3s, when: 'job.gang', name: N}]", "", {"warm.timeout_s": 3.0, "warm.name": "N", "warm.when": True}),
    ("named environment merges", NAMED, "runtime: [{patch: warm, environment: {A: high, C: high}}]", "", {"warm.environment": {"A": "high", "B": "low", "C": "high"}}),
    ("null takes one variable out", NAMED, "runtime: [{patch: warm, environment: {A: null}}]", "", {"warm.environment": {"B": "low"}}),
    ("null takes one exit code out", NAMED, "runtime: [{patch: warm, exit_codes: {timeout: null, permanent: 7}}]", "", {"warm.exit_codes": {"permanent": 7}}),
    ("a named argument", NAMED, "runtime: [{patch: warm, args: {argv: [z]}}]", "", {"warm.args.argv": ["z"]}),
    ("a handler is an insertion", NAMED, "runtime: [{patch: warm, on_exit: [{name: B, event: always, cmd: {argv: [x]}}]}]", "PR402 modules that may be inserted into runtime: none", {"warm.on_exit": ()}),
    ("a handler whose module may be inserted", NAMED_AND_INSERT, "runtime: [{patch: warm, on_exit: [{name: B, event: failure, cmd: {argv: [x]}}]}]", "", {"warm.on_exit.0.events": ("failure",)}),
    ("all arguments", DEPTHS, "runtime: [{patch: warm, args: {argv: [q], workdir: /w}}]", "", {"warm.args.workdir": "/w"}),
    ("by the module's name", DEPTHS, "runtime: [{patch: warm, retries: 8}]", "", {"warm.retries": 8}),
    ("arguments are no keywords", DEPTHS, "runtime: [{patch: warm, delay: 8s}]", "PR402 args.*, retries", {}),
    ("set a variable", DEFAULT, "vars: {depth: 1}", "PR402 variables that may be set: none", {}),
    ("set a permitted variable", DEPTHS, 'vars: {depth: 3}\nruntime: [{patch: warm, args: {argv: ["{{ depth }}x"]}}]', "", {"warm.args.argv": ["3x"]}),
    ("set another variable", DEPTHS, "vars: {dpth: 3}", "PR402 variables that may be set: depth", {}),
    ("patch under no policy", NOTHING, "init: [{patch: git_clone, retries: 1}]", "PR402 no task may be patched", {}),
    ("insert under no policy", NOTHING, "runtime: [{append: , id: x, name: X, cmd: {argv: [x]}}]", "PR402 into runtime: none", {}),
    ("hold within the bound", HOLD, HOLDS.replace("TIME", "30m"), "", {"x.on_exit.0.args.time": "30m"}),
    ("two holds within the bound", HOLD, HOLDS.replace("TIME}}", "30m}}, {name: I, event: failure, hold: {time: 30m}}"), "", {"x.on_exit.1.args.time": "30m"}),
    ("hold beyond the bound", HOLD, HOLDS.replace("TIME", "31m"), "PR402 at most 30m", {}),
    ("hold for what is not known", HOLD, HOLDS.replace("TIME", "'{{ results.x.message }}'"), "PR402 known before the run", {}),
    ("hold where a variable is beyond", HOLD, "vars: {t: 2h}\n" + HOLDS.replace("TIME", "'{{ t }}'"), "PR402 at most 30m", {}),
    ("hold without a bound", UNBOUNDED, HOLDS.replace("TIME", "9h"), "", {"x.on_exit.0.args.time": "9h"}),
    ("nothing to do", DEFAULT, "init: [{retries: 1}]", "PR404 write patch, disable, before, after or append", {}),
    ("two things to do", DEFAULT, "init: [{patch: git_clone, disable: git_clone}]", "PR404", {}),
    ("not an operation", DEFAULT, "init: [git_clone]", "PR404", {}),
    ("an unknown key beside the phases", DEFAULT, "runtim: []", "PR201 did you mean 'runtime'?", {}),
    ("a job's expression and env", STAR, 'runtime: [{patch: warm, args: {argv: ["{{ env.HOME }}"]}}]', "PR301", {}),
    ("a job's statement", STAR, 'runtime: [{patch: warm, args: {argv: ["{% if 1 %}a{% endif %}"]}}]', "PR303", {}),
    ("a job's expression and the job", STAR, 'runtime: [{patch: warm, args: {argv: ["{{ job.role.name }}"]}}]', "", {"warm.args.argv": ["worker"]}),
]  # fmt: skip


def root_with(desk: Desk, policy: str) -> Path:
    """A cluster's root with the playbooks above and a policy."""
    return desk.root({**PLAYBOOKS, "playbooks/policy.yaml": policy})


def effect(desk: Desk, review: Any, path: str) -> Any:
    """The order of a phase, or an attribute of a planned task."""
    if path in ("init", "runtime"):
        return desk.order(review, path)  # type: ignore[arg-type]
    id_, *rest = path.split(".")
    value: Any = desk.task(review, id_)
    for step in rest:
        if isinstance(value, tuple):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value[step]
        else:
            value = getattr(value, step)
    return value


@pytest.mark.parametrize(("policy", "extras", "error", "effects"), [r[1:] for r in ATTEMPTS], ids=[r[0] for r in ATTEMPTS])  # fmt: skip
def test_an_attempt(
    desk: Desk, policy: str, extras: str, error: str, effects: dict[str, Any]
) -> None:
    """What a job tries is done, or refused with its id and what would be allowed; never half."""
    review = desk.review(desk.job(extras), root_with(desk, policy))
    ids = {p.id for p in review.problems.errors}
    wanted, _, says = error.partition(" ")
    assert (wanted in ids) if wanted else not ids, [render(p) for p in review.problems.errors]
    assert any(says in render(p) for p in review.problems.errors if p.id == wanted) or not wanted
    for path, value in effects.items():
        assert effect(desk, review, path) == value


def test_the_table_is_long_enough() -> None:
    """At least forty attempts, each with a name of its own."""
    assert len({r[0] for r in ATTEMPTS}) == len(ATTEMPTS) >= 40


@pytest.mark.parametrize(
    ("extras", "job_caret", "policy_caret"),
    [
        ("init: [{patch: git_clone, args: {dest: /x}}]", "dest: /x", "git_clone: [retries"),
        ("init: [{patch: port_check, retries: 1}]", "retries: 1", "patch:"),
        ("init: [{disable: image_check}]", "image_check", "disable:"),
        ("runtime: [{append: , name: X, ssh_setup: {}}]", "{append", "runtime: [cmd"),
        ("vars: {depth: 1}", "depth: 1", "vars: []"),
    ],
)
def test_a_violation_shows_the_jobs_line_and_the_policys(
    desk: Desk, extras: str, job_caret: str, policy_caret: str
) -> None:
    """Both places stand in the message, each with a caret, and what would be allowed."""
    problems = desk.problems(desk.job(extras), root_with(desk, DEFAULT))
    (problem,) = [p for p in problems if p.id == "PR402"]
    assert desk.at(problem.place).startswith(job_caret)
    ((label, place),) = problem.also
    assert label == "the policy"
    assert desk.at(place).startswith(policy_caret)
    text = render(problem)
    assert "job.yaml:" in text
    assert "policy.yaml:" in text
    assert problem.hint


def test_a_plugin_that_the_policy_denies(desk: Desk) -> None:
    """A denied plugin is refused with the policy's line, one not listed as well."""
    root = root_with(desk, PLUGINS)
    for plugin, caret in (("ssh", "ssh]"), ("git", "allow: [cmd")):
        text = desk.job(plugins=f'- {{plugin: {plugin}, parameters: {{repo_uri: "x"}}}}\n')
        (problem,) = desk.problems(text, root)
        assert problem.id == "PR402"
        assert desk.at(problem.also[0][1]).startswith(caret)
    assert not desk.problems(desk.job(plugins="- {plugin: cmd, parameters: {}}\n"), root)


def test_without_any_policy_a_job_may_change_nothing(desk: Desk) -> None:
    """The safe answer where nobody wrote a policy."""
    from pairun.errors import Problems
    from pairun.playbook.policy import read_policy

    policy = read_policy([], Problems())
    assert not policy.may_patch("a", "cmd", "retries").allowed
    assert not policy.may_disable("a", "cmd").allowed
    assert not policy.may_insert("runtime", "cmd").allowed
    assert not policy.may_set("a").allowed
    assert not policy.may_use("git").allowed


def test_the_highest_root_with_a_policy_decides(desk: Desk) -> None:
    """Policies replace each other whole, they do not merge."""
    open_, closed = (
        desk.root({"playbooks/policy.yaml": STAR}, "a"),
        desk.root({"playbooks/policy.yaml": NOTHING}, "b"),
    )
    text = desk.job("init: [{disable: port_check}]")
    assert not desk.problems(text, closed, open_)
    assert [p.id for p in desk.problems(text, open_, closed)] == ["PR402"]


@pytest.mark.parametrize(
    ("policy", "caret", "says"),
    [
        ("job_my: {}\n", "job_my", "did you mean 'job_may'?"),
        ("job_may: {ptach: {}}\n", "ptach", "did you mean 'patch'?"),
        ("job_may: {patch: [a]}\n", "[a]", "not a list"),
        ("job_may: {patch: {a: 5}}\n", "5", "not 5"),
        ("job_may: {insert: {runtimes: []}}\n", "runtimes", "did you mean 'runtime'?"),
        ("job_may: {disable: port_check}\n", "port_check", "not 'port_check'"),
        ("job_may: {plugins: {alow: []}}\n", "alow", "did you mean 'allow'?"),
        ("job_may: {plugins: {deny: ssh}}\n", "ssh", "a list, not 'ssh'"),
        ("job_may: []\n", "[]", "a mapping, not a list"),
        ("{}\n", "{}", "'job_may' is missing"),
    ],
)
def test_a_policy_that_makes_no_sense(desk: Desk, policy: str, caret: str, says: str) -> None:
    """A mistake in a policy is an error at its place: a slip must not open or close a cluster."""
    problems = desk.problems(desk.job_text, desk.root({"playbooks/policy.yaml": policy}))
    assert {p.id for p in problems} == {"PR406"}
    assert any(desk.at(p.place).startswith(caret) and says in render(p) for p in problems)


SAMPLE = """\
vars: {depth: 1}
init:
  - patch: image_check            # task keywords, and args for the module's arguments
    retries: 10
    args: {policy: warn}
  - disable: port_check
runtime:
  - after: mount_storage          # or before: / append:
    id: warm_cache
    name: Read the data set once
    cmd: {argv: [vmtouch, -t, /data]}
    failure_policy: ignore
"""


def test_the_documented_sample(desk: Desk) -> None:
    """The sample override does what it says where the policy permits the variable."""
    root = root_with(desk, DEFAULT.replace("vars: []", "vars: [depth]"))
    review = desk.valid(desk.job(SAMPLE), root)
    check = desk.task(review, "image_check")
    assert (check.retries, check.args["policy"]) == (10, "warn")
    assert desk.order(review, "init") == ["git_clone", "image_check", "sealed"]
    assert desk.order(review, "runtime") == ["mount_storage", "warm_cache", "warm", "user_command"]
    assert desk.task(review, "warm_cache").failure_policy == "ignore"
    assert review.plans[0].effective.drafts["init"].vars["depth"].value == 1


def test_the_documented_sample_under_the_default_policy(desk: Desk) -> None:
    """There the variable is the one thing that is refused."""
    (problem,) = desk.problems(desk.job(SAMPLE), root_with(desk, DEFAULT))
    assert problem.message == "a job may not set the variable 'depth'"


def test_tasks_of_plugins_are_patched_by_their_printed_ids(desk: Desk) -> None:
    """A policy that names a module covers the tasks that a plugin spec made of it."""
    plugins = '- {plugin: git, parameters: {repo_uri: "https://example.org/x"}}\n'
    text = desk.job("init: [{patch: git, args: {depth: 1}}]", plugins=plugins)
    review = desk.valid(text, desk.root({"playbooks/policy.yaml": DEFAULT}))
    assert desk.task(review, "git").args["depth"] == 1


def test_a_review_repeats_that_a_denied_plugin_is_unknown(desk: Desk) -> None:
    """A slip there opens what the cluster means to close, so whoever reviews a job reads it."""
    policy = 'job_may: {plugins: {allow: "*", deny: [tensorbord, ssh]}}\n'
    review = desk.review(desk.job(), desk.root({"playbooks/policy.yaml": policy}))
    (problem,) = review.problems
    assert (problem.id, problem.severity) == ("PR406", "warning")
    assert problem.message == "there is no plugin 'tensorbord'"
    assert problem.hint == "did you mean 'tensorboard'?"

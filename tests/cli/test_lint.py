"""``pairun lint``: job files, playbooks, policies and plugin specs, all problems at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pairun.base.runfolders import MARKER
from pairun.contract.sources import built_in_modules

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

PLAYBOOK = "phase: runtime\ntasks:\n"
BAD: list[tuple[str, str, list[str]]] = [
    ("a playbook", f"{PLAYBOOK}  - {{name: N, cmd: {{argv: [a]}}, timeout: 600}}\n", ["PR210"]),
    ("an argument", f"{PLAYBOOK}  - {{name: N, cmd: {{argvv: [a]}}}}\n", ["PR604"]),
    ("an argument of a handler", f"{PLAYBOOK}  - {{name: N, cmd: {{argv: [a]}}, on_exit: [{{name: H, event: always, file: {{}}}}]}}\n", ["PR606"]),
    ("a phase", f"{PLAYBOOK}  - {{name: N, image_check: {{image: a}}}}\n", ["PR212"]),
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


def test_slips_in_an_exit_spec(shell: Shell) -> None:
    text = (
        "- {containerExitCode: 1, containerExitCode: 2}\n- {containerExitCode: 999, patterns: []}\n"
    )
    said = shell("lint", shell.file("runtime-exit-spec.yaml", text))
    assert (said.code, said.ids) == (1, ["PR106", "PR742"])
    assert "runtime-exit-spec.yaml:1:" in said.err
    spec = shell.project / "deploy" / "exit-spec" / "runtime-exit-spec.yaml"
    assert shell("lint", spec).out == "1 file: no problems\n"


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
    assert said.out == f"{len(files)} files: no problems\n"


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
    assert said.err.endswith("\n1 warning\n")
    assert "no problems" not in said.out
    bounded = text.replace("retries: 3", "retries: 3, deadline: 1m")
    assert shell("lint", shell.file("p.yaml", bounded)).ids == []


def test_expressions_are_left_for_the_review(shell: Shell) -> None:
    """An argument with an expression is not looked at: lint knows no job."""
    text = f"{PLAYBOOK}  - {{name: N, cmd: {{argv: ['{{{{ a }}}}'], ok_codes: '{{{{ b }}}}'}}}}\n"
    assert shell("lint", shell.file("p.yaml", text)).code == 0


EXPRESSIONS = """\
phase: init
vars: {a: "{{ b. }}"}
tasks:
  - name: Fetch
    cmd:
      script: |
        echo {{ 1 }}
        {% for x in y %}
        {% endfr %}
    timeout: "{{ 1 + }}"
    when: a ==
    on_exit: [{name: H, event: always, when: "{{ a }}", cmd: {argv: ["{{ a | nofilter }}"]}}]
"""


def test_expressions_are_compiled(shell: Shell) -> None:
    """What is no expression is an error at its place, also where only a job tells its value."""
    said = shell("lint", shell.file("p.yaml", EXPRESSIONS))
    assert said.code == 1
    assert said.ids == ["PR302"] * 6
    places = ("2:12", "9:9", "10:15", "11:11", "12:46", "12:71")
    assert [p for p in places if f"p.yaml:{p} " not in said.err] == []


def test_expressions_of_a_spec_are_compiled(shell: Shell) -> None:
    """A plugin's too; the texts of its parameters' schema are data."""
    text = (
        "summary: S {{\nparameters: {properties: {x: {default: '{{ 1 + }}'}}}\n"
        "init: [{name: '{{ parameters.x', cmd: {script: '{% endfr %}'}}]\n"
    )
    said = shell("lint", shell.file("s.yaml", text))
    assert (said.code, said.ids) == (1, ["PR302", "PR302"])
    assert "s.yaml:3:16 " in said.err
    assert "s.yaml:3:49 " in said.err


def test_settings_of_a_plain_pod(shell: Shell) -> None:
    """Both settings are linted as what they are, and not as job files."""
    wrong = "{commands: [a, 1], runtimePlugin: []}\n"
    said = shell("lint", shell.file("runtime.yaml", wrong))
    assert (said.code, said.ids) == (1, ["PR712"])
    assert "'commands[1]' must be text, not 1" in said.err
    slip = "{commands: [a], runtimePlugin: [{plugin: cmd, parameters: {preComands: [x]}}]}\n"
    assert shell("lint", shell.file("runtime.yaml", slip)).ids == ["PR911"]
    assert shell("lint", shell.file("runtime.yaml", "commands: []\n")).ids == ["PR712"]
    listed = "initPlugins: [{name: a, command: frameworkBarier}]\n"
    assert shell("lint", shell.file("init.yaml", listed)).ids == ["PR720"]
    assert shell("lint", shell.file("init.yaml", "initPlugins: [{name: a}]\n")).ids == ["PR713"]
    said = shell.process("lint", "-", stdin="commands: [a]\n")
    assert (said.code, said.ids) == (1, ["PR801"])


@pytest.mark.parametrize(
    ("task", "hint"),
    [
        ("barrier", "it is in init: move this entry to init"),
        ("git", "it is a plugin: a job patches its tasks in extras.pairun"),
    ],
)
def test_a_patch_of_a_root_that_fits_elsewhere(shell: Shell, task: str, hint: str) -> None:
    """A content root's patch of the other phase's task or of a plugin says where it belongs."""
    text = f"phase: runtime\npatches: [{{patch: {task}, retries: 3}}]\n"
    said = shell("lint", shell.root({"playbooks/runtime.yaml": text}))
    assert (said.code, said.ids) == (1, ["PR401"])
    assert hint in said.err


def test_patches_of_a_file_alone(shell: Shell) -> None:
    """Whether another layer brings a task is not known of a file alone; with the roots it is."""
    text = (
        "phase: init\npatches:\n  - {after: barrier, id: mine, name: N, cmd: {argv: [a]}}\n"
        "  - {patch: barrier, retries: 2}\n  - {patch: nope, retries: 2}\n"
    )
    alone = shell.file("alone/p.yaml", text)
    said = shell("lint", alone)
    assert (said.code, said.ids) == (0, ["PR401"])
    assert "warning[PR401]: there is no task 'nope' in init of the built-in playbooks" in said.err
    assert "--root DIR" in said.err
    other = shell.root({"playbooks/policy.yaml": "job_may: {}\n"})
    said = shell("lint", alone, "--root", other)
    assert (said.code, said.ids) == (1, ["PR401"])
    wrong = text.replace("retries: 2", "args: {intervall: 1s}", 1)
    assert shell("lint", shell.file("alone/w.yaml", wrong)).ids == ["PR604", "PR401"]


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


MODULE = '''\
from pairun.module import CheckModule, Context, define
import json
import requests


@define
class Greet(CheckModule):
    """Greet somebody."""

    example = "greet: {}"

    def check(self, ctx: Context) -> None:
        ctx.log("hello")
'''


def test_a_module_is_linted(shell: Shell) -> None:
    """A module's file is loaded; what the user's image may not have is a warning."""
    text = MODULE.replace("import requests", "try:\n    import requests\nexcept ImportError: ...")
    said = shell("lint", shell.file("greet.py", text))
    assert (said.code, said.ids) == (0, ["PR603"])
    assert "imports requests" in said.err
    assert "greet.py:4:5" in said.err
    only_init = text.replace("example =", "phases = ('init',)\n    example =")
    assert shell("lint", shell.file("greet.py", only_init)).ids == []
    assert shell("lint", shell.file("greet.py", "1 / 0\n")).ids == ["PR602"]
    assert shell("lint", shell.file("greet.py", text.replace("check", "chek"))).ids == ["PR603"]
    assert shell("lint", shell.file("when.py", only_init)).ids == ["PR213"]
    assert shell("lint", *built_in_modules().values()).code == 0


EXAMPLE = '''
from pairun.module import CheckModule, Context, Duration, arg, define

class _Named:
    # a base class
    example = {}

@define
class FreeSpace(_Named, CheckModule):
    """Check the disk."""

    path: str = arg("The directory.")
    gib: int = arg("How much is needed.", default=1)
    wait: Duration = arg("A duration.", default=Duration(1))

    def require(self):
        if self.gib > 9:
            yield "'gib' must be below 10"

    def check(self, ctx: Context) -> None:
        ctx.log("hello")
'''


@pytest.mark.parametrize(
    ("example", "id_", "message"),
    [
        ("free_space: {path: /, size: 1}", "PR604", "there is no argument 'size'"),
        ("free_space: {path: /, gib: ten}", "PR605", "'gib' must be integer, not 'ten'"),
        ("free_space: {path: /, gib: 20}", "PR605", "'gib' must be below 10"),
        ("free_space: {path: /, wait: 10}", "PR210", "durations carry a unit"),
        ("free_space: {}", "PR606", "the argument 'path' is missing"),
        ("free_space: /data", "PR204", "must be a mapping of arguments"),
        ("free_spce: {path: /}", "PR201", "'free_spce'"),
        ("free_space: {path: /}\ntimout: 5s", "PR201", "'timout'"),
        ("free_space: {path: '{{ 1 + }}'}", "PR302", "expression"),
        ("free_space: {path: /", "PR101", ""),
        ({"free_space": {"path": "/"}}, "PR603", "must be text, not dict"),
    ],
)
def test_the_example_of_a_module_is_checked(
    shell: Shell, example: object, id_: str, message: str
) -> None:
    """`pairun doc` shows the example, so a mistake in it is a warning at its line."""
    text = EXAMPLE.format(repr(example))
    said = shell("lint", shell.file("free_space.py", text))
    assert (said.code, said.ids) == (0, [id_])
    assert "the example of free_space " in said.err
    assert message in said.err
    assert "free_space.py:6:5" in said.err


@pytest.mark.parametrize(
    "example",
    [
        "",
        "free_space: {path: /data, gib: 9, wait: 10s}",
        "free_space: {path: '{{ job.name }}', gib: '{{ results.x }}'}",
        "free_space:\n  path: /data\nretries: 3\ntimeout: 5s\nwhen: job.name == 'x'",
    ],
)
def test_a_valid_example_has_no_problems(shell: Shell, example: str) -> None:
    """Expressions are values, keywords of a task are allowed, and an example is not required."""
    said = shell("lint", shell.file("free_space.py", EXAMPLE.format(repr(example))))
    assert (said.code, said.ids) == (0, [])


DEFAULTS = '''
from typing import Any, Literal
from pairun.module import CheckModule, Context, Duration, Mode, Secret, arg, define

@define
class Greet(CheckModule):
    """Say hello."""

    n: int = arg("A number.", default="x")
    wait: Duration = arg("A duration.", default="10s")
    mode: Mode | None = arg("A mode.", default="0644")
    name: str = arg("A name.", default=None)
    again: bool = arg("A switch.", default=0)
    which: Literal["a", "b"] = arg("A choice.", default="c")
    words: list[str] = arg("Words.", factory=lambda: [1])
    table: dict[str, int] = arg("Numbers.", default={"a": "b"})
    ok: Duration = arg("A duration.", default=10)
    fine: str | Secret | None = arg("A text.", default=None)
    modes: list[Mode] = arg("Modes.", factory=lambda: [Mode(0o600)])
    level: float = arg("A number.", default=1)
    rest: Any = arg("Anything.", default=())

    def check(self, ctx: Context) -> None:
        ctx.log("hello")
'''


STATE = '''
from pairun.module import Context, StateModule, Verdict, arg, define, no_change

@define
class Keep(StateModule):
    """Keep a file."""

    path: str = arg("The file.")

    def probe(self, ctx: Context) -> bytes | None:
        return ctx.read_file(self.path)

    def plan(self, state: bytes | None) -> Verdict:
        return no_change("it is there")

    def apply(self, ctx: Context) -> None:
        ctx.write_file(self.path, b"")
'''


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (
            "plan(self, state: bytes | None)",
            "plan(self)",
            "13:5",
            "cannot call: too many positional",
        ),
        (
            "probe(self, ctx: Context)",
            "probe(self, ctx, more)",
            "10:5",
            "write `def probe(self, ctx)`",
        ),
        ("def apply", "def aply", "5:1", "lacks the method 'apply'"),
        ("path: str = arg", "path = arg", "8:5", "'path' without a type"),
        ('no_change("it is', 'unchanged("it is', "14:16", "Undefined name `unchanged` (F821)"),
        ("@define", "@defined", "4:1", "NameError: name 'defined' is not defined"),
        ("plan(self, state: bytes | None)", "plan(self, state, why=1)", "", ""),
        ("    def plan(self, ", "    @staticmethod\n    def plan(", "", ""),
    ],
)
def test_a_mistake_in_a_module_is_found_at_its_line(
    shell: Shell, old: str, new: str, place: str, message: str
) -> None:
    """Missing arguments, undefined names and untyped arguments, before a job runs the module."""
    assert old in STATE
    said = shell("lint", shell.file("keep.py", STATE.replace(old, new)))
    assert said.code == bool(place), said.err
    assert len(said.ids) == bool(place), said.err
    assert message in said.err
    assert not place or f"keep.py:{place} (file)\n" in said.err


def test_without_ruff_a_module_is_linted_by_its_import(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    name = STATE.replace('no_change("it is', 'unchanged("it is')
    assert shell("lint", shell.file("keep.py", name)).code == 0
    assert shell("lint", shell.file("keep.py", name.replace("plan(self, ", "plan("))).code == 1


def test_a_default_of_the_wrong_type_is_an_error_at_its_place(shell: Shell) -> None:
    """Every default has the type of its argument, or lint names the line."""
    said = shell("lint", shell.file("greet.py", DEFAULTS))
    assert (said.code, said.ids) == (1, ["PR603"] * 8)
    assert "the default of 'n' must be integer, not 'x'" in said.err
    assert [n for n in range(1, 30) if f"greet.py:{n}:5" in said.err] == list(range(9, 17))
    assert "write seconds: default=Duration(10.0)" in said.err
    assert "write a number: default=Mode(0o644)" in said.err


def test_a_module_that_is_a_folder_is_linted(shell: Shell) -> None:
    """All its files are, whether the folder or one of them is named."""
    helper = "def ask():\n    import requests\n    import greeting\n"
    shell.file("greet/greeting.py", MODULE.replace("import requests\n", "from . import helper\n"))
    folder = shell.file("greet/__init__.py", "from .greeting import Greet\n").parent
    assert shell("lint", shell.file("greet/helper.py", helper)).ids == ["PR603", "PR602"]
    said = shell("lint", folder)
    assert (said.code, said.ids) == (1, ["PR603", "PR602"])
    assert "greet/helper.py:2:5" in said.err
    assert "write `from .greeting import …`" in said.err
    shell.file("greet/helper.py", "x = \n")
    assert shell("lint", folder).ids == ["PR602"]
    shell.file("greet/helper.py", "")
    assert shell("lint", folder).ids == []
    (folder / "link.py").symlink_to("helper.py")
    assert "link.py: it is a symbolic link" in shell("lint", folder).err


def test_a_file_is_checked_against_the_root_it_lies_in(shell: Shell) -> None:
    """A playbook, spec or policy sees the modules and tasks of its own content root."""
    root = shell.root(
        {
            "modules/greet.py": MODULE.replace("import requests\n", ""),
            "playbooks/init.yaml": "phase: init\ntasks: [{name: G, greet: {}}]\n",
            "playbooks/runtime.yaml": "phase: runtime\npatches: [{patch: mount_storag}]\n",
            "plugin_specs/hello.yaml": "summary: S\nruntime: [{name: N, greet: {}}]\n",
            "playbooks/policy.yaml": "job_may: {patch: {greet: [retries]}}\n",
        }
    )
    for path in ("playbooks/init.yaml", "plugin_specs/hello.yaml", "playbooks/policy.yaml"):
        assert shell("lint", root / path).ids == []
    said = shell("lint", "cluster/playbooks/runtime.yaml")
    assert (said.code, said.ids) == (1, ["PR401"])
    assert "did you mean 'mount_storage'?" in said.err


def test_lint_finds_what_the_review_of_a_job_refuses(shell: Shell) -> None:
    """Unknown names, values that are no numbers, and files that have no meaning by their names."""
    task = "{name: 'N {{ paramters.x }}', retries: many, cmd: {argv: ['{{ clusters_own }}']}}"
    root = shell.root(
        {
            "playbooks/init.yaml": "phase: init\nvars: {clusters_own: a}\npatches: []\n",
            "playbooks/inti.yaml": "phase: init\npatches: []\n",
            "playbooks/policy.yml": "job_may: {}\n",
            "plugin_specs/hello.yaml": f"summary: S\nruntime: [{task}]\n",
        }
    )
    said = shell("lint", root)
    assert sorted(said.ids) == ["PR204", "PR301", "PR910", "PR912", "PR912"]
    hints = (
        "did you mean 'parameters'?",
        "did you mean 'init.yaml'?",
        "did you mean 'policy.yaml'?",
    )
    assert [hint for hint in hints if hint not in said.err] == []


def test_a_patch_is_checked_as_it_is_stacked(shell: Shell) -> None:
    """Its mistakes are found at once: keywords, ids, and arguments of the patched task's module."""
    root = shell.root(
        {
            "playbooks/init.yaml": "phase: init\npatches:\n"
            "  - {patch: barrier, retris: 1}\n"
            "  - {patch: barier}\n"
            "  - {patch: image_check, args: {polcy: warn}}\n"
            "  - {patch: barrier, args: {timeout: 5}}\n"
        }
    )
    said = shell("lint", root / "playbooks/init.yaml")
    assert sorted(said.ids) == ["PR201", "PR210", "PR401", "PR604"]
    with_root = shell("lint", root / "playbooks/init.yaml", "--root", root)
    assert sorted(with_root.ids) == sorted(said.ids)


@pytest.mark.parametrize(
    ("path", "text", "id_", "says"),
    [
        ("plugin_specs/a.yaml", "sumary: S\n", "PR201", "did you mean 'summary'?"),
        ("playbooks/init.yaml", "phse: init\ntasks: []\n", "PR201", "did you mean 'phase'?"),
        ("playbooks/init.yaml", "phase: runtime\npatches: []\n", "PR204", "must be init"),
        ("playbooks/policy.yaml", "jobmay: {}\n", "PR406", "did you mean 'job_may'?"),
        ("else/a.yaml", "sumary: S\n", "PR201", "did you mean 'summary'?"),
        ("else/a.yaml", "phas: init\n", "PR201", "did you mean 'phase'?"),
        ("else/a.yaml", "jobmay: {}\n", "PR406", "did you mean 'job_may'?"),
        ("else/a.yaml", "tasks: []\n", "PR205", "'phase' is missing"),
    ],
)
def test_a_slip_does_not_make_it_a_job(
    shell: Shell, path: str, text: str, id_: str, says: str
) -> None:
    """What a file is meant to be, its folder tells, or a key that is nearly right."""
    said = shell("lint", shell.file(f"cluster/{path}", text))
    assert id_ in said.ids
    assert says in said.err
    assert not {"PR501", "PR502", "PR504"} & set(said.ids)


POLICY: list[tuple[str, str]] = [
    ("plugins: {deny: [shh]}", "there is no plugin 'shh'"),
    ("plugins: {allow: [gti]}", "there is no plugin 'gti'"),
    ("insert: {runtime: [downlod]}", "there is no module 'downlod'"),
    ("insert: {runtime: [image_check]}", "does not run in runtime"),
    ("patch: {git_clone: [retris]}", "there is no keyword 'retris'"),
    ("patch: {git_clone: [args.dept]}", "the module 'git_clone' has no argument 'dept'"),
    (
        "patch: {barrier: [args.backend, args.bakend.x]}",
        "the module 'barrier' has no argument 'bakend'",
    ),
    ("patch: {git_clon: [retries]}", "there is no task or module 'git_clon'"),
    ("disable: [port_chek]", "there is no task or module 'port_chek'"),
]


@pytest.mark.parametrize(("text", "says"), POLICY)
def test_names_in_a_policy_that_nothing_bears(shell: Shell, text: str, says: str) -> None:
    """A slip in a policy is a warning; another version may have what is named."""
    said = shell("lint", shell.file("p.yaml", f"job_may: {{{text}}}\n"))
    assert (said.code, said.ids) == (0, ["PR406"])
    assert says in said.err


def test_a_policy_may_name_what_a_job_brings(shell: Shell) -> None:
    """Ids of plugins' tasks, of prerequisites, the star, and every part of an argument."""
    text = (
        "job_may:\n  patch: {'*': [retries], git_2: ['*'], mnist: [args.x], file: [args.mode]}\n"
        "  disable: '*'\n  insert: {init: '*', runtime: [cmd]}\n  plugins: {allow: '*', deny: []}\n"
    )
    assert shell("lint", shell.file("p.yaml", text)).ids == []


BROKEN = '''\
from pairun.module import Context, StateModule, Verdict, define, no_change

print("hello")


@define
class Bad(StateModule):
    """Go wrong."""

    example = "bad: {}"

    def probe(self, ctx: Context) -> float:
        print("looking")
        return 1 / 0

    def plan(self, state: float) -> Verdict:
        return no_change("fine")

    def apply(self, ctx: Context) -> None:
        ctx.log("applied")
'''


def test_a_faulty_module_is_not_pairuns_fault(shell: Shell) -> None:
    """A review with it is a document still, and its verdict says who failed."""
    playbook = "phase: init\ntasks: [{name: B, bad: {}}]\n"
    root = shell.root({"modules/bad.py": BROKEN, "playbooks/init.yaml": playbook})
    data = shell.process("--dry-run", "--json", shell.job(), "--root", root).data
    (task,) = data["roles"]["worker"]["init"]
    assert (task["verdict"], task["because"]) == (
        "unknown",
        "the module's probe failed: ZeroDivisionError: division by zero",
    )


def test_the_rest_is_documented_beside_what_cannot_be_loaded(shell: Shell) -> None:
    """One broken file of a root does not take the reference of all others."""
    root = shell.root({"modules/bad.py": "1 / 0\n", "plugin_specs/worse.yaml": "a: [\n"})
    said = shell("doc", "--root", root)
    assert said.code == 0
    assert "(cannot be loaded: the module bad fails on import" in said.out
    assert "(cannot be read: " in said.out
    assert "image_check" in said.out


@pytest.mark.parametrize(
    ("description", "code", "ids"),
    [
        ("name: hello\n", 0, ["PR912"]),
        ("name: hello\ninit-script: absent.py\n", 1, ["PR108"]),
        ("name: hello\ninit-script: [a]\n", 1, ["PR204"]),
        ("name: hello\ninit-script: init.py\n", 0, []),
    ],
)
def test_a_plugin_folder_is_checked(
    shell: Shell, description: str, code: int, ids: list[str]
) -> None:
    """Its description names a program that is there, whether the file or its root is linted."""
    files = {"plugins/hello/desc.yaml": description, "plugins/hello/init.py": ""}
    root = shell.root(files)
    said = shell("lint", root / "plugins/hello/desc.yaml")
    assert (said.code, said.ids) == (code, ids)
    said = shell("lint", shell.job(), "--root", root)
    assert (said.code, said.ids) == (code, ids)


EMPTY_MODULE = """\
from pairun.module import CheckModule, define


@define
class {0}(CheckModule):
    \"\"\"Check nothing.\"\"\"

    phases = ("init",)
    example = "{1}: {{}}"

    def check(self, ctx):
        pass
"""
ROOT_FILES = {
    "modules/one.py": EMPTY_MODULE.format("One", "one"),
    "modules/two/__init__.py": EMPTY_MODULE.format("Two", "two"),
    "modules/two/more.yaml": "not: a playbook",
    "playbooks/init.yaml": "phase: init\npatches: [{disable: port_check}]\n",
    "playbooks/policy.yaml": 'job_may: {plugins: {allow: "*"}}\n',
    "plugin_specs/hello.yaml": "summary: S\nruntime: [{name: N, cmd: {argv: [a]}}]\n",
    "plugins/old/desc.yaml": "name: old\ninit-script: init.py\n",
    "plugins/old/init.py": "",
    "plugins/old/data.yaml": "a: 1\n",
    "values.yml": "replicas: 3\n",
    "_draft.yaml": "a: [\n",
    ".git/config.yaml": "a: [\n",
}
KINDS = {
    "modules/one.py": "module",
    "modules/two": "module",
    "playbooks/init.yaml": "playbook",
    "playbooks/policy.yaml": "policy",
    "plugin_specs/hello.yaml": "plugin spec",
    "plugins/old/desc.yaml": "plugin folder",
    "values.yml": "skipped: nothing that pairun reads",
}


def test_a_content_root_is_linted_whole(shell: Shell) -> None:
    """Every file of it, each with what it was taken for; of a plugin or module what belongs to it."""
    root = shell.root(ROOT_FILES)
    said = shell("lint", root)
    assert (said.code, said.err) == (0, "")
    lines = [f"{root}/{path}: {kind}" for path, kind in KINDS.items()]
    assert said.out.splitlines() == [*lines, "6 files: no problems"]
    files = shell("lint", "--json", root).data["files"]
    assert files == [{"file": f"{root}/{path}", "kind": kind} for path, kind in KINDS.items()]


def test_jobs_in_a_folder_are_linted_with_the_root_that_it_is(shell: Shell) -> None:
    """A job beside the plugin that it uses finds it; a folder within has its mistakes found too."""
    use = "  com.microsoft.pai.runtimeplugin: [{plugin: hello}]\n"
    job = shell.job_text + f"extras:\n{use}"
    root = shell.root({**ROOT_FILES, "jobs/a.yaml": job, "jobs/b/c.yml": "name: x\ntaskRoles: 1\n"})
    said = shell("lint", root)
    assert said.code == 1
    assert {*said.ids} == {"PR503", "PR504"}
    assert f"{root}/jobs/b/c.yml: job\n" in said.out
    assert "a.yaml" not in said.err


@pytest.mark.parametrize("name", ["modules/two", "modules", "plugins/old", "plugins"])
def test_a_part_of_a_root_is_linted(shell: Shell, name: str) -> None:
    """A module's folder, the folder of modules, one plugin, all plugins."""
    root = shell.root(ROOT_FILES)
    said = shell("lint", root / name)
    assert (said.code, said.err) == (0, "")
    listed = [f"{root}/{path}: {kind}" for path, kind in KINDS.items() if path.startswith(name)]
    assert said.out.splitlines()[:-1] == listed


def test_a_folder_is_bounded(shell: Shell) -> None:
    """Too many files and a link to itself; other folders are checked all the same."""
    root = shell.root({f"many/{n}.yaml": "" for n in range(1001)})
    said = shell("lint", root / "many")
    assert (said.code, said.ids) == (1, ["PR108"])
    said = shell("lint", root / "many", shell.file("bad.yaml", "tasks: []\n"))
    assert (said.code, said.ids) == (1, ["PR108", "PR205"])
    linked = shell.root({"a/job.yaml": shell.job_text}, "linked")
    (linked / "a/again").symlink_to(linked)
    assert shell("lint", linked).out.splitlines()[-1] == "1 file: no problems"


def test_the_folders_of_runs_are_skipped(shell: Shell) -> None:
    """What `pairun run` makes beside a job holds copies of its settings, many levels deep."""
    run = "pairun-run/job/"
    files = {f"{run}{MARKER}": "", run + "/".join("abcdefghi") + "/x.yaml": "replicas: 3\n"}
    folder = shell.root({"job.yaml": shell.job_text, **files}, "jobs")
    assert shell("lint", folder).out == f"{folder}/job.yaml: job\n1 file: no problems\n"


def test_a_folder_without_files(shell: Shell) -> None:
    """There is nothing to lint, which is no success."""
    (shell.tmp / "empty").mkdir()
    said = shell("lint", shell.tmp / "empty")
    assert (said.code, said.ids) == (1, ["PR108"])


def test_formats_for_programs(shell: Shell) -> None:
    """The same problems in each; standard output holds nothing else."""
    file = shell.file("p.yaml", f"{PLAYBOOK}  - {{name: N, cmd: {{}}, whenn: a}}\n")
    data = shell("lint", "--format", "json", file).data
    assert data == shell("lint", "--json", file).data
    said = shell("lint", "--format", "github", file)
    assert (said.code, said.err) == (1, "")
    assert [line.split(",")[1] for line in said.out.splitlines()] == ["line=3", "line=3"]
    fine = shell.job()
    assert shell("lint", "--format", "github", fine).out == ""


def test_no_format_shows_a_secret(shell: Shell) -> None:
    """A message quotes what is wrong; a secret in it is masked everywhere."""
    job = shell.job(
        more="secrets: {token: hunter2-hunter2}\ndefaults: {deployment: hunter2-hunter2}\n"
    )
    for form in ("text", "json", "github"):
        said = shell("lint", "--format", form, job)
        assert said.code == 1
        assert "hunter2" not in said.out + said.err


FOREIGN = {
    "modules/vpc/main.tf": "",
    "modules/util.py": "import os\n",
    "modules/package/__init__.py": "",
    "modules/package/job.yaml": "JOB",
    "playbooks/site.yaml": "- hosts: all\n  tasks: []\n",
    "plugins/filter.py": "def f(): pass\n",
    "diagnosis/patients.yaml": "a: 1\n",
    "deep/er/train.yml": "JOB",
}


def test_a_folder_of_another_project(shell: Shell) -> None:
    """Names of folders make no content root; the jobs below are found at any depth."""
    files = {path: text.replace("JOB", shell.job_text) for path, text in FOREIGN.items()}
    root = shell.root(files, "project")
    said = shell("lint", root)
    assert (said.code, said.ids) == (0, [])
    kinds = {
        f["file"].removeprefix(f"{root}/"): f["kind"]
        for f in shell("lint", "--json", root).data["files"]
    }
    assert kinds.pop("modules/package/job.yaml") == kinds.pop("deep/er/train.yml") == "job"
    assert set(kinds) == {"playbooks/site.yaml", "diagnosis/patients.yaml"}
    assert all(kind.startswith("skipped") for kind in kinds.values())
    # One file of it alone is checked without its neighbours, too.
    assert shell("lint", root / "modules/package/job.yaml").code == 0


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
MANIFESTS = {
    "pod.yaml": POD,
    "several.yaml": f"# two objects\n{POD}---\n{POD}",
    "list.yaml": "apiVersion: v1\nkind: List\nitems: [{kind: Pod}, {kind: Pod}]\n",
}


def test_manifests_are_skipped(shell: Shell) -> None:
    """Named or in a folder, one object or several; a template of Helm only in a folder."""
    root = shell.root(MANIFESTS, "manifests")
    says = "skipped: a manifest of Kubernetes, for `pairun inject`"
    lines = [f"{root}/{name}: {says}" for name in sorted(MANIFESTS)]
    for files in ([root], [root / name for name in sorted(MANIFESTS)]):
        said = shell("lint", *files)
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines() == [*lines, "0 files: no problems"]
    chart = shell.root({"t.yaml": f"{POD}spec: {{{{ .Values.spec }}}}\n"}, "chart")
    assert shell("lint", chart).code == 0
    assert shell("lint", chart / "t.yaml").ids == ["PR107"]


def test_frameworks_are_not_skipped(shell: Shell) -> None:
    """A list of them is an error, as it is for a review."""
    text = "apiVersion: v1\nkind: List\nitems:\n- {kind: Framework}\n- {kind: Framework}\n"
    assert shell("lint", shell.file("list.yaml", text)).ids == ["PR735"]


def test_a_job_beside_its_root(shell: Shell) -> None:
    """In a folder it is checked against the root; whoever names it, names its roots, too."""
    use = "extras: {com.microsoft.pai.runtimeplugin: [{plugin: hello}]}\n"
    root = {path: text for path, text in ROOT_FILES.items() if path.startswith("plugin_specs")}
    files = {f"plugin/{p}": t for p, t in {**root, "job.yaml": shell.job_text + use}.items()}
    folder = shell.root(files, "examples")
    said = shell("lint", folder)
    assert (said.code, said.err) == (0, "")
    assert shell("lint", folder / "plugin/job.yaml").ids == ["PR511"]


@pytest.mark.parametrize(
    ("name", "text", "id_", "says"),
    [
        ("runtime", "runtime: [{append: , id: a, name: A, cmd: {argv: [a]}}]\n", "PR205", "write 'phase: runtime', and the list below 'patches:'"),
        ("init", "some: thing\n", "PR205", "a playbook has 'tasks' or 'patches'"),
        ("policy", "some: thing\n", "PR406", "'job_may' is missing"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("others", [{}, {"plugin_specs/x.yaml": "summary: S\n"}])
def test_a_roots_playbook_is_never_skipped(
    shell: Shell, name: str, text: str, id_: str, says: str, others: dict[str, str]
) -> None:
    """The place of a file shows its kind, whatever the file contains."""
    said = shell("lint", shell.root({f"playbooks/{name}.yaml": text, **others}))
    assert (said.code, id_ in said.ids) == (1, True)
    assert says in said.err


def test_a_cluster_has_no_secrets(shell: Shell) -> None:
    """A root that uses a job's secrets fails every job, so lint reports it."""
    task = "{append: , id: a, name: A, cmd: {argv: ['{{ secrets.token }}']}}"
    root = shell.root({"playbooks/runtime.yaml": f"phase: runtime\npatches: [{task}]\n"})
    for said in (shell("lint", root), shell("--dry-run", shell.job(), "--root", root)):
        assert (said.code, said.ids) == (1, ["PR301"])
        assert "only the layer of a job, extras.pairun, can use them" in said.err
    spec = "summary: S\nruntime: [{name: N, cmd: {argv: ['{{ secrets.a | default(1) }}']}}]\n"
    assert shell("lint", shell.file("plugin_specs/s.yaml", spec)).ids == []


def test_a_folder_is_linted_at_any_depth(shell: Shell) -> None:
    """There is no limit of levels, as there is none for people."""
    assert shell("lint", shell.root({f"{'d/' * 100}x.yaml": "tasks: []\n"})).ids == ["PR205"]


CHANGES = "vars: {a: 1}\nruntime:\n  - {before: user_command, id: w, name: W, cmd: {script: ls}}\n"


def test_changes_for_an_injection(shell: Shell) -> None:
    """They are checked as a job's layer: alone, in a folder, and against a policy."""
    root = shell.root({"playbooks/policy.yaml": "job_may: {vars: [a], insert: {runtime: [cmd]}}\n"})
    file = shell.file("jobs/changes.yaml", CHANGES)
    said = shell("lint", "--root", root, file.parent)
    kind = "changes of the playbooks, for `pairun inject --playbook`"
    assert (said.code, said.out) == (0, f"{file}: {kind}\n1 file: no problems\n")
    assert shell("lint", file).ids == ["PR402"]  # the variable
    wrong = (
        "init: [{patch: barier}, {befor: x}]\nruntime: [{append: , name: N, cmd: {argvv: []}}]\n"
    )
    ids = shell("lint", shell.file("wrong.yaml", wrong)).ids
    assert sorted(ids) == ["PR201", "PR401", "PR404", "PR604"]
    secret = "runtime: [{append: , id: n, name: N, cmd: {argv: ['{{ secrets.x }}']}}]\n"
    assert shell("lint", shell.file("secret.yaml", secret)).ids == []
    # A list of another program is none.
    other = shell.root({"values.yaml": "init: [{name: a}]\n"}, "other")
    assert shell("lint", other).out.splitlines()[-1] == "0 files: no problems"


def test_a_file_in_a_folder_that_is_named_too_is_checked_once(shell: Shell) -> None:
    job = shell.job()
    job.write_text(job.read_text().replace("commands:", "commands: [echo $NOPE]\n    x:", 1))
    once = shell("lint", "job.yaml")
    twice = shell("lint", ".", "job.yaml")
    assert once.ids
    assert twice.ids == once.ids

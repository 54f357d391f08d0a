"""A plain Pod's settings: where they are read, what they become, and what is said of bad ones."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base import folder
from pairun.errors import PairunError, Place, Problem, Problems, Source, render
from pairun.init.handingover import read_variables
from pairun.job.jsyaml import JS
from pairun.job.templates import user_command
from pairun.openpai import podconfig
from pairun.openpai.initconfig import program_of, read_init_config
from pairun.openpai.plainpod import PLAIN_POD_SCHEMA, plain_cluster, pod_name, read_plain_job
from pairun.openpai.podconfig import PodConfig, read_secrets, read_setting
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.drafts import TaskDraft
from pairun.playbook.effective import Layers
from pairun.playbook.initplugins import InitPlugins

PROPOSED = """\
initPlugins:
- name: frameworkBarrier
  command: 'frameworkBarrier framework.json'
- name: frameworkParser
  command: 'python frameworkParser.py framework.json'
- name: imageChecker
  command: 'python imageChecker.py'
- name: portChecker
  command: 'python portChecker.py portListFile'
- name: userCommandRender
  command: 'python command_render.py'
"""


class Pod:
    """A plain Pod in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_dir = folder / "config"
        self.volume = folder / "pai"
        self.problems = Problems()
        for path in (self.config_dir, self.volume):
            path.mkdir()

    def config(self, **env: str) -> PodConfig:
        """Its settings, with further variables."""
        given = {"PAI_CONFIG_DIR": str(self.config_dir), **env}
        return PodConfig(env=given, pai_dir=str(self.volume), problems=self.problems)

    def write(self, path: str, text: str) -> Path:
        """A file of the mounted folder."""
        place = self.config_dir / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def secrets(self) -> object:
        """What the mounted secrets say."""
        node = read_secrets(self.config())
        return node and node.plain()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """A plain Pod."""
    return Pod(tmp_path)


def listed(text: str, init_dir: Path | None = None) -> InitPlugins:
    """A list of init plugins, which must be valid."""
    problems = Problems()
    found = read_init_config(source(text), str(init_dir) if init_dir else None, problems)
    assert not problems, list(problems)
    return found


def source(text: str, layer: str = "cluster") -> Source:
    """A text as a variable holds it."""
    return Source("INIT_CONFIG", layer, text)


def tasks(plugins: InitPlugins) -> list[TaskDraft]:
    """The init phase with these plugins, tasks that were taken out included."""
    problems = Problems()
    effective = Layers(Content([built_in_root()])).effective(
        [], init_plugins=plugins, problems=problems
    )
    assert not problems.errors, list(problems)
    return list(effective.drafts["init"].tasks())


def ids(plugins: InitPlugins) -> list[str]:
    """The ids of what runs, in order."""
    return [t.id for t in tasks(plugins) if not t.disabled]


def refused(read: Callable[[], object]) -> list[Problem]:
    """The problems that reading ends with."""
    with pytest.raises(PairunError) as e:
        read()
    return list(e.value.problems)


def errors(text: str) -> list[Problem]:
    """The errors of a list of init plugins."""
    problems = Problems()
    try:
        read_init_config(source(text), None, problems)
    except PairunError as e:
        problems.extend(e.problems)
    return problems.errors


def at(place: Place | None) -> str:
    """The text that a caret points at."""
    assert place is not None
    return f"{place.source.text}\n".split("\n")[place.line - 1][place.column - 1 :]


# --- where settings are read -------------------------------------------------------------------------


def test_a_variable_wins_over_the_file(pod: Pod) -> None:
    """INIT_CONFIG and RUNTIME_CONFIG come before the files; an empty variable is none."""
    pod.write("init_plugins.yaml", "initPlugins: []")
    pod.write("runtime_plugin.yaml", "commands: [file]")
    config = pod.config(INIT_CONFIG="initPlugins: [x]", RUNTIME_CONFIG="commands: [variable]")
    init, runtime = config.init(), config.runtime()
    assert init is not None
    assert runtime is not None
    assert (init.file, init.layer) == ("INIT_CONFIG", "cluster")
    assert (runtime.file, runtime.layer, runtime.text) == (
        "RUNTIME_CONFIG",
        "job",
        "commands: [variable]",
    )
    emptied = pod.config(INIT_CONFIG="", RUNTIME_CONFIG=" \n")
    init, runtime = emptied.init(), emptied.runtime()
    assert init is not None
    assert runtime is not None
    assert init.file.endswith("/init_plugins.yaml")
    assert runtime.text == "commands: [file]"


def test_nothing_is_set(pod: Pod) -> None:
    """Without variables and files there is nothing, and that is no problem."""
    config = pod.config()
    assert config.init() is None
    assert config.runtime() is None
    assert config.exit_spec() is None
    assert read_secrets(config) is None
    assert not pod.problems


def test_the_default_folders(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PAI_CONFIG_DIR the platform's folder is read, then the one mounted in the volume."""
    monkeypatch.setattr(podconfig, "DEFAULT_CONFIG_DIR", str(pod.config_dir))
    pod.write("init_plugins.yaml", "initPlugins: []")
    inner = pod.volume / "config" / "runtime_plugin.yaml"
    inner.parent.mkdir()
    inner.write_text("commands: [x]")
    monkeypatch.setattr(folder, "mount_points", lambda: frozenset({str(inner)}))
    config = PodConfig(env={}, pai_dir=str(pod.volume), problems=pod.problems)
    init, runtime = config.init(), config.runtime()
    assert init is not None
    assert runtime is not None
    assert (init.file, runtime.file) == (str(pod.config_dir / "init_plugins.yaml"), str(inner))


def test_the_clusters_layer_of_the_default_folder(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts where the platform mounted it, unless PAI_CONFIG_DIR names another folder."""
    monkeypatch.setattr(podconfig, "DEFAULT_CONFIG_DIR", str(pod.volume / "not mounted"))
    assert podconfig.with_config_dir({"A": "b"}) == {"A": "b"}
    monkeypatch.setattr(podconfig, "DEFAULT_CONFIG_DIR", str(pod.config_dir))
    found = podconfig.with_config_dir({"A": "b"})
    assert found == {"A": "b", "PAI_CONFIG_DIR": str(pod.config_dir)}
    assert podconfig.with_config_dir({"PAI_CONFIG_DIR": "own"}) == {"PAI_CONFIG_DIR": "own"}


@pytest.mark.parametrize("planted", ["file", "folder link", "file link"])
def test_what_lies_on_the_volume_is_not_trusted(pod: Pod, planted: str) -> None:
    """A setting that the user's container could have left is not read, and that is said."""
    outside = pod.write("init_plugins.yaml", "initPlugins: []")
    folder = pod.volume / "config"
    if planted == "folder link":
        folder.symlink_to(pod.config_dir)
    else:
        folder.mkdir()
        if planted == "file":
            (folder / "init_plugins.yaml").write_text("initPlugins: []")
        else:
            (folder / "init_plugins.yaml").symlink_to(outside)
    config = PodConfig(env={}, pai_dir=str(pod.volume), problems=pod.problems)
    assert config.init() is None
    assert [p.id for p in pod.problems] == ["PR718"]
    assert not pod.problems.errors


def test_the_folder_of_programs(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    """PAI_INIT_DIR, else the image's folders; never one that the volume brings."""
    given, other = pod.folder / "given", pod.folder / "other"
    for path in (given, other, pod.volume / "init.d"):
        path.mkdir()
    monkeypatch.setattr(podconfig, "INIT_DIRS", (str(pod.folder / "none"), str(other)))
    assert pod.config(PAI_INIT_DIR=str(given)).init_dir() == str(given)
    assert pod.config().init_dir() == str(other)
    assert not pod.problems
    assert pod.config(PAI_INIT_DIR=str(pod.volume / "init.d")).init_dir() == str(other)
    assert [p.id for p in pod.problems] == ["PR718"]
    other.rmdir()
    assert pod.config().init_dir() is None
    (problem,) = refused(pod.config(PAI_INIT_DIR="/nowhere").init_dir)
    assert problem.id == "PR716"


def test_programs_of_an_image_without_a_volume(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder below /usr/local/pai counts where no volume hides it."""
    monkeypatch.setattr(podconfig, "DEFAULT_PAI_DIR", str(pod.volume))
    monkeypatch.setattr(podconfig, "INIT_DIRS", ())
    (pod.volume / "init.d").mkdir()
    assert pod.config().init_dir() == str(pod.volume / "init.d")
    monkeypatch.setattr("os.path.ismount", lambda path: path == str(pod.volume))
    assert pod.config().init_dir() is None


# --- init plugins ------------------------------------------------------------------------------------


def test_the_proposed_list() -> None:
    """Every name of the proposal is a task of ours, in the proposal's order."""
    found = tasks(listed(PROPOSED))
    assert [t.id for t in found] == [
        "barrier", "job_environment", "image_check", "port_check", "userCommandRender",
    ]  # fmt: skip
    assert not any(t.disabled for t in found)
    codes = {t.id: n.plain() for t in found if (n := t.node.get("exit_codes"))}
    assert codes == {
        "barrier": {"timeout": 251, "permanent": 252},
        "port_check": {"conflict": 253},
        "image_check": {"permanent": 254},
    }
    assert found[4].args.plain() == {"script": ""}


def test_who_asked_for_a_task_is_known() -> None:
    """The history of a task's sentence leads to the line of the list, then to the playbook."""
    (barrier, *_) = tasks(listed(PROPOSED))
    name = barrier.node.get("name")
    assert name is not None
    assert name.overrides is not None
    assert (str(name.place), name.place.source.layer) == ("INIT_CONFIG:2:9", "cluster")
    assert name.overrides.place.source.layer == "built-in"
    (mine, *_) = tasks(listed("initPlugins: [{name: mine, command: do it}]"))
    assert (mine.origin, str(mine.place)) == ("cluster", "INIT_CONFIG:1:22")


def test_what_is_not_listed_does_not_run() -> None:
    """The list replaces the playbook; the review still knows what was taken out, and by whom."""
    found = {t.id: t for t in tasks(listed("initPlugins: []"))}
    assert all(str(t.disabled) == "INIT_CONFIG:1:1" for t in found.values())
    assert "barrier" in found


@pytest.mark.parametrize(
    ("name", "command", "expected"),
    [
        ("frameworkParser", "pai/frameworkBarrier framework.json", "barrier"),
        ("frameworkParser", "frameworkParser.py framework.json", "job_environment"),
        ("x", "python3.11 -u portChecker.py list", "port_check"),
        ("x", "/usr/bin/python3 image_checker.py", "image_check"),
        ("x", "python envGenerator.py", "job_environment"),
        ("x", "python portConflictChecker.py", "port_check"),
        ("imageChecker", "python something.py", "image_check"),
        ("x", "python command_render.py", "x"),
        ("x", "echo frameworkBarrier", "x"),
        ("x", "python -c 'import frameworkParser'", "x"),
        ("x", "/opt/ours/frameworkBarrier", "x"),
        ("x", "echo 'unbalanced", "x"),
        ("a b.c-d", "true", "a_b_c_d"),
    ],
)
def test_which_task_a_command_is(name: str, command: str, expected: str) -> None:
    """The program decides, then the name; anything else is a command of its own."""
    text = f"initPlugins:\n- name: {name}\n  command: {command!r}\n"
    assert ids(listed(text)) == [expected]


def test_the_operators_own_program_comes_first(tmp_path: Path) -> None:
    """A program that lies in init.d is run, whatever it is called, there and with it in PATH."""
    (tmp_path / "pai").mkdir()
    for name in ("pai/frameworkBarrier", "imageChecker.py"):
        (tmp_path / name).write_text("")
    text = """\
    initPlugins:
    - {name: frameworkBarrier, command: pai/frameworkBarrier framework.json}
    - {name: imageChecker, command: python imageChecker.py}
    - {name: portChecker, command: python portChecker.py}
    """
    found = [t for t in tasks(listed(textwrap.dedent(text), tmp_path)) if not t.disabled]
    assert [t.id for t in found] == ["frameworkBarrier", "imageChecker", "port_check"]
    assert found[0].args.plain() == {
        "script": "pai/frameworkBarrier framework.json",
        "workdir": str(tmp_path),
    }
    environment = found[0].node.get("environment")
    assert environment is not None
    assert environment.plain()["PATH"].startswith("{{ init_plugin.dir }}:")


def test_names_that_are_given_twice() -> None:
    """A second plugin of a name, and one that is called like another task, get a number."""
    text = (
        "initPlugins: [{name: a, command: x}, {name: a, command: y}, {name: barrier, command: z}]"
    )
    assert ids(listed(text)) == ["a", "a_2", "barrier_2"]
    twice = "initPlugins: [{name: portChecker, command: x}, {name: portChecker, command: y}]"
    assert ids(listed(twice)) == ["port_check", "port_check_2"]


def test_a_command_is_data() -> None:
    """What looks like an expression in a command is not one."""
    (task,) = [t for t in tasks(listed("initPlugins: [{name: a, command: 'echo {{ 7*7 }}'}]"))
               if not t.disabled]  # fmt: skip
    assert task.scope["init_plugin"]["command"] == "echo {{ 7*7 }}"
    assert task.args.plain() == {"script": "{{ init_plugin.command }}"}


def test_a_playbook_without_the_task(tmp_path: Path) -> None:
    """A plugin that stands for a task which the cluster's own playbook lacks is an error."""
    from pairun.playbook.content import Root

    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/init.yaml").write_text(
        "phase: init\ntasks: [{id: ports, name: Ports, port_check: {ports: {}}}]\n"
    )
    roots = [built_in_root(), Root(path=str(tmp_path), layer="cluster")]
    problems = Problems()
    effective = Layers(Content(roots)).effective(
        [], init_plugins=listed(PROPOSED), problems=problems
    )
    assert {p.id for p in problems.errors} == {"PR715"}
    assert [at(p.place) for p in problems.errors] == [
        "frameworkBarrier", "frameworkParser", "imageChecker",
    ]  # fmt: skip
    # A task that was given another id is found by its module.
    assert [t.id for t in effective.drafts["init"].tasks()] == ["ports", "userCommandRender"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a]", [("PR712", "'INIT_CONFIG' must be a mapping, not a list", "[a]", None)]),
        ("hello", [("PR712", "'INIT_CONFIG' must be a mapping, not 'hello'", "hello", None)]),
        ("initPlugins: {}", [("PR712", "'initPlugins' must be a list, not a mapping", "{}", None)]),
        (
            "initPlugin: []",
            [("PR711", "there is no key 'initPlugin' here", "initPlugin: []", "did you mean 'initPlugins'?")],
        ),
        (
            "initPlugins:\n- name: a\n- command: b\n- {}\n",
            [
                ("PR713", "'command' is missing", "name: a", None),
                ("PR713", "'name' is missing", "command: b", None),
                ("PR713", "'command' is missing", "{}", None),
                ("PR713", "'name' is missing", "{}", None),
            ],
        ),
        (
            "initPlugins:\n- {name: a, comand: b, command: 3}\n",
            [
                ("PR711", "there is no key 'comand' here", "comand: b, command: 3}",
                 "did you mean 'command'?"),
                ("PR712", "'command' must be text, not 3", "3}", "quote it"),
            ],
        ),
        ("initPlugins: [ls]", [("PR712", "'initPlugins[0]' must be a mapping, not 'ls'", "ls]", None)]),
        ("initPlugins: [", [("PR101", None, "", None)]),
    ],
)  # fmt: skip
def test_a_bad_list(text: str, expected: list[tuple[str, str | None, str, str | None]]) -> None:
    """Everything that is wrong is said at once, each at its place."""
    found = sorted(errors(text), key=lambda p: (p.place and p.place[1:], p.message))
    assert [p.id for p in found] == [e[0] for e in expected]
    for problem, (_, message, place, hint) in zip(found, expected, strict=True):
        assert message is None or problem.message == message
        assert at(problem.place) == place
        assert hint is None or problem.hint == hint


@pytest.mark.parametrize(
    ("command", "expected"),
    [("a b", "a"), ("python a.py b", "a.py"), ("bash -e x/y.sh", "x/y.sh"), ("python -m a", None),
     ("", None), ("python", None), ("'", None)],
)  # fmt: skip
def test_the_program_of_a_command(command: str, expected: str | None) -> None:
    """An interpreter and its options are passed over."""
    assert program_of(command) == expected


# --- text that was folded ----------------------------------------------------------------------------

FOLDED = [
    ('commands: ["ls  -al",  "echo hi"] runtimePlugin: - plugin: ssh\n  parameters:\n    jobssh: true',
     "runtimePlugin: - plugin: ssh",
     'commands: ["ls  -al",  "echo hi"]\nruntimePlugin:\n- plugin: ssh\n  parameters:'),
    ("commands: - ls - echo hi", "- ls - echo hi", "commands:\n- ls\n- echo hi"),
    ("commands: [ls] image: x", "image: x", "commands: [ls]\nimage: x"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "caret", "corrected"), FOLDED)
def test_folded_text(text: str, caret: str, corrected: str) -> None:
    """A block that began with `>-` is recognised: the place, the word to use, the right form."""
    (problem,) = refused(
        lambda: read_setting(source(text), tuple(PLAIN_POD_SCHEMA["properties"]), JS)
    )
    assert problem.id == "PR714"
    assert at(problem.place) == caret
    assert problem.hint is not None
    assert "`|`" in problem.hint
    assert textwrap.indent(corrected, " " * 8) in problem.hint


def test_a_folded_list_of_init_plugins() -> None:
    """The proposal's own second block is recognised too."""
    text = "initPlugins: - name: a\n  command: b\n- name: c\n  command: d"
    (problem,) = errors(text)
    assert problem.id == "PR714"
    assert "initPlugins:\n        - name: a\n          command: b\n        - name: c" in render(
        problem
    )


@pytest.mark.parametrize("text", ["commands: [a", "commands: 'x", "a: b: c", "commands:\n\t- x"])
def test_other_errors_are_not_called_folded(text: str) -> None:
    """What is not YAML for another reason is said as such."""
    (problem,) = refused(
        lambda: read_setting(source(text), tuple(PLAIN_POD_SCHEMA["properties"]), JS)
    )
    assert problem.id == "PR101"


# --- commands and plugins ----------------------------------------------------------------------------


def test_a_plain_pod_is_a_job_of_one() -> None:
    """Commands are joined as in a job; plugins keep their places; the gang is one instance."""
    text = """\
    commands: [' ls ', 'echo <% $parameters.x %>']
    parameters: {x: 1}
    runtimePlugin: [{plugin: ssh}]
    image: example.com/a:1
    """
    job, problems = read_plain_job(source(text, "job"), name="p", user="me")
    assert not problems.errors
    assert job is not None
    (role,) = job.roles
    assert user_command(job, role) == "ls\necho 1"
    assert (job.name, job.user, job.gang, role.instances) == ("p", "me", False, 1)
    assert [(p.plugin, p.node.place.line) for p in job.plugins] == [("ssh", 3)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ["PR713"]),
        ("commands: []", ["PR712"]),
        ("commands: ls", ["PR712"]),
        ("commands: [ls]\nruntimePlugins: []", ["PR711"]),
        ("commands: [ls]\nruntimePlugin: [{plugn: ssh}]", ["PR504"]),
        ("commands: [ls]\nruntimePlugin: [ssh]", ["PR712"]),
        ("commands: [ls]\nports: {http: 80}", ["PR712"]),
        ("commands: [ls]\nports: {http: [0]}", ["PR712"]),
        ("commands: [ls]\nextras: {pairunn: {}}", ["PR711"]),
        ("commands: [2020-01-02]", ["PR712"]),
        ("commands: ['<% a']", ["PR510"]),
        ("null", ["PR712"]),
    ],
)
def test_a_bad_plain_pod(text: str, expected: list[str]) -> None:
    """Bad commands and plugins have an id and a place in the text."""
    job, problems = read_plain_job(source(text, "job"))
    assert job is None
    assert [p.id for p in problems.errors] == expected
    assert all(p.place and p.place.source.file == "INIT_CONFIG" for p in problems.errors)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"PAIRUN_HOST_IP": "10.0.0.1", "POD_IP": "10.0.0.2"}, "10.0.0.1"),
        ({"POD_IP": "10.0.0.2"}, "10.0.0.2"),
        ({}, "10.0.0.3"),
    ],
)
def test_the_cluster_of_one(
    env: Mapping[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address comes from the variables, else from the host's name; ports are as asked."""
    monkeypatch.setattr("socket.gethostbyname", lambda name: "10.0.0.3")
    job, _ = read_plain_job(source("commands: [x]\nports: {http: [8080, 8081]}", "job"))
    assert job is not None
    own = plain_cluster(job, env).own
    assert own is not None
    assert (own.host_ip, dict(own.ports)) == (expected, {"http": (8080, 8081)})


def test_a_host_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the host's name leads nowhere, nothing is made up."""

    def fail(name: str) -> str:
        raise OSError

    monkeypatch.setattr("socket.gethostbyname", fail)
    job, _ = read_plain_job(source("commands: [x]", "job"))
    assert job is not None
    own = plain_cluster(job, {}).own
    assert own is not None
    assert own.host_ip is None


def test_the_name_of_a_pod() -> None:
    """A Pod's name has dots, a job's has not."""
    assert pod_name({"POD_NAME": "a.b", "HOSTNAME": "c"}) == "a-b"
    assert (pod_name({"HOSTNAME": "c"}), pod_name({})) == ("c", "pod")


# --- secrets and the description of exit codes -------------------------------------------------------


@pytest.mark.parametrize("name", ["secret.yaml", "secrets.yaml"])
def test_secrets_in_a_file(pod: Pod, name: str) -> None:
    """Either name is read."""
    pod.write(name, "token: abc")
    assert pod.secrets() == {"token": "abc"}


def test_secrets_in_a_folder(pod: Pod) -> None:
    """A Secret is mounted as a folder of links: each key is a secret, one line end off."""
    pod.write("secrets.yaml/..2024/token", "abcd\n")
    pod.write("secrets.yaml/..2024/key", "a: b")
    (pod.config_dir / "secrets.yaml/..data").symlink_to("..2024")
    for key in ("token", "key"):
        (pod.config_dir / "secrets.yaml" / key).symlink_to(f"..data/{key}")
    assert pod.secrets() == {"token": "abcd", "key": "a: b"}


def test_a_document_in_a_folder(pod: Pod) -> None:
    """A Secret with one key of that name is the document."""
    pod.write("secrets.yaml/secrets.yaml", "token: abc")
    assert pod.secrets() == {"token": "abc"}


@pytest.mark.parametrize(
    "text", ["[s3cr3t]", "s3cr3t", "password: *s3cr3t", "s3cr3t: [", "a: s3cr3t\n\tb"]
)
def test_bad_secrets_are_not_shown(pod: Pod, text: str) -> None:
    """A message about secrets names file and place, and no word of them."""
    pod.write("secret.yaml", text)
    for problem in refused(pod.secrets):
        assert problem.id == "PR716"
        assert problem.place is not None
        assert "s3cr3t" not in render(problem)


def test_the_description_of_exit_codes(pod: Pod) -> None:
    """A file or a mounted folder with that key."""

    def found() -> str:
        source = pod.config().exit_spec()
        return source.text if source else ""

    path = pod.write("runtime-exit-spec.yaml", "- code: 1\n")
    assert found() == "- code: 1\n"
    path.unlink()
    path.mkdir()
    assert [p.id for p in refused(pod.config().exit_spec)] == ["PR716"]
    (path / "runtime-exit-spec.yaml").write_text("- code: 2\n")
    assert found() == "- code: 2\n"


# --- runtime.d/env -----------------------------------------------------------------------------------

NAMES = st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n != "export")
VALUES = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]))


@given(st.dictionaries(NAMES, VALUES), st.sampled_from(["", "export ", "export\t ", "  "]))
def test_every_value_arrives(variables: dict[str, str], before: str) -> None:
    """Whatever a value holds arrives as it is: quotes, dollars and spaces mean nothing."""
    text = "# c\n\n" + "".join(f"{before}{n}={v}\n" for n, v in variables.items())
    problems = Problems()
    assert read_variables(Source("env", "cluster", text), problems) == variables
    assert not problems


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Every line is a variable, says nothing, or is a problem with its number."""
    problems = Problems()
    found = read_variables(Source("env", "cluster", text), problems)
    lines = text.split("\n")
    bare = (x.removesuffix("\r").lstrip(" \t") for x in lines)
    said = [x for x in bare if x and not x.startswith("#")]
    assert len(found) + len(problems.errors) <= len(said)
    assert bool(found) or len(problems.errors) == len(said)
    for problem in problems:
        assert problem.place is not None
        assert lines[problem.place.line - 1]


def test_bad_lines() -> None:
    """Each bad line is said with its number and column, and its text, maybe a secret, is not."""
    text = "A=1\nhello s3cr3t\n  export 1B=s3cr3t\nC =s3cr3t\nD=\0s3cr3t\nA=2\r\n"
    problems = Problems()
    assert read_variables(Source("env", "cluster", text), problems) == {"A": "2"}
    assert [str(p.place) for p in problems] == ["env:2:1", "env:3:10", "env:4:1", "env:5:1"]
    assert "s3cr3t" not in "".join(map(render, problems))

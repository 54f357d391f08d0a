"""A plain Pod from end to end: settings go in, the user's command runs with what init left."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text

if TYPE_CHECKING:
    from tests.cli.conftest import Shell
from tests.doors import DoorWatch

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SENTINEL = "s3cr3t-value"
INIT = """\
initPlugins:
- name: frameworkParser
  command: python frameworkParser.py framework.json
- name: mine
  command: echo "it is {{ 7*7 }}" && echo "GREETING=it's {{ 7*7 }} \\$HOME" > "$PAI_RUNTIME_DIR/env"
"""
RUNTIME = """\
commands:
- echo "command says $GREETING"
runtimePlugin:
- plugin: cmd
  parameters: {preCommands: ['echo "plugin says $GREETING"']}
"""


class Pod:
    """A Pod whose containers are processes on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.volume = folder / "pai"
        self.config = folder / "config"
        self.config.mkdir()
        self.watch = DoorWatch(self.volume, folder / "door-watch")
        self.env = {
            **self.watch.env,
            "PAI_CONFIG_DIR": str(self.config),
            "PAIRUN_HOST_IP": "10.0.0.9",
        }

    def run(self, *args: str, **env: str) -> tuple[int, str]:
        """Run a command of pairun as a container; its exit code and all it printed."""
        base = {"PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(self.volume)}
        done = subprocess.run(
            [sys.executable, "-m", "pairun", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**base, **self.env, **env},
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stdout
        assert not self.watch.violations()
        return done.returncode, done.stdout

    def both(self, **env: str) -> str:
        """Run both phases, which must succeed; all they printed."""
        self.env |= env
        code, said = self.run("init")
        assert code == 0, said
        code, more = self.run("runtime")
        assert code == 0, more
        return said + more

    def left(self, name: str) -> str:
        """A file that init left."""
        return (self.volume / "runtime.d" / name).read_text()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """A Pod."""
    return Pod(tmp_path)


# --- both phases -------------------------------------------------------------------------------------


def test_both_phases(pod: Pod) -> None:
    """Init plugins run in order, what they hand on arrives as data, the command runs."""
    said = pod.both(INIT_CONFIG=INIT, RUNTIME_CONFIG=RUNTIME)
    assert "mine | it is {{ 7*7 }}" in said
    assert "plugin says it's {{ 7*7 }} $HOME" in said
    assert "\ncommand says it's {{ 7*7 }} $HOME" in said
    assert "export PAI_HOST_IP_main_0='10.0.0.9'" in pod.left("runtime_env.sh")
    # Again, as when a Pod is set up anew: nothing of the first time is left over.
    first = pod.left("runtime_env.sh")
    pod.both()
    assert pod.left("runtime_env.sh") == first


def test_the_example(pod: Pod) -> None:
    """The manifest of examples/ parses, mounts what it names, and its settings run as they are."""
    documents = yaml.safe_load_all((ROOT / "examples/plain-pod.yaml").read_text())
    *others, manifest = documents
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "Pod")
    spec = manifest["spec"]
    (init,), (app,) = spec["initContainers"], spec["containers"]
    volumes = {v["name"] for v in spec["volumes"]}
    for container in (init, app):
        assert {m["name"] for m in container["volumeMounts"]} <= volumes
        assert "/usr/local/pai" in {m["mountPath"] for m in container["volumeMounts"]}
    assert app["command"] == ["/usr/local/pai/runtime"]
    env = {e["name"]: e["value"] for e in init["env"] if "value" in e}
    named = {(o["kind"], o["metadata"]["name"]) for o in others}
    assert named == {("Secret", "job-secrets"), ("ConfigMap", "job-exit-spec")}
    said = pod.both(**env)
    assert "skipped  barrier" in said
    assert "changed  job_environment" in said
    assert "\ntotal " in said  # ls
    assert "before the command\n" in said
    assert "\nhi\n" in said


def test_settings_in_files(pod: Pod) -> None:
    """Files of PAI_CONFIG_DIR do the same as the variables."""
    (pod.config / "init_plugins.yaml").write_text(INIT)
    (pod.config / "runtime_plugin.yaml").write_text(RUNTIME)
    said = pod.both()
    assert "command says it's" in said
    assert "PR912" not in said


def test_the_default_playbook(pod: Pod) -> None:
    """Without init plugins the stacked playbook runs: nobody is waited for, no image is asked."""
    said = pod.both(RUNTIME_CONFIG="commands: [echo hi]")
    assert "skipped  barrier" in said
    assert "skipped  image_check" in said
    assert "changed  job_environment" in said


def test_the_operators_programs(pod: Pod) -> None:
    """What lies in init.d is run there and by name, before a program of OpenPAI's."""
    folder = pod.folder / "init.d"
    (folder / "pai").mkdir(parents=True)
    for name in ("pai/frameworkBarrier", "tool"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name}: $1 in $PWD"\n')
        (folder / name).chmod(0o755)
    (folder / "imageChecker.py").write_text("print('my own check')")
    listed = """\
initPlugins:
- {name: frameworkBarrier, command: pai/frameworkBarrier framework.json}
- {name: tool, command: tool x}
- {name: imageChecker, command: python imageChecker.py}
"""
    said = pod.both(
        PAI_INIT_DIR=str(folder), INIT_CONFIG=listed, RUNTIME_CONFIG="commands: ['true']",
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    )  # fmt: skip
    assert f"frameworkBarrier | pai/frameworkBarrier: framework.json in {folder}" in said
    assert f"tool | tool: x in {folder}" in said
    assert "imageChecker | my own check" in said


def test_an_init_plugin_that_fails(pod: Pod) -> None:
    """A failed command ends the phase with 1, later plugins do not run, nothing is handed over."""
    listed = "initPlugins: [{name: a, command: 'echo no; exit 7'}, {name: b, command: echo yes}]"
    code, said = pod.run("init", INIT_CONFIG=listed, RUNTIME_CONFIG="commands: ['true']")
    assert code == 1
    assert "a | no" in said
    assert "yes" not in said
    assert not (pod.volume / "runtime.d/plan.json").exists()


def test_secrets(pod: Pod) -> None:
    """A mounted Secret reaches the command, also through runtime.d/env, and no other eye."""
    mounted = pod.config / "secrets.yaml" / "..data"
    mounted.mkdir(parents=True)
    (mounted / "token").write_text(SENTINEL + "\n")
    (pod.config / "secrets.yaml" / "token").symlink_to("..data/token")
    source = pod.config / "secrets.yaml" / "token"
    listed = (
        f'initPlugins: [{{name: a, command: \'echo "T=$(cat {source})" > $PAI_RUNTIME_DIR/env; '
        f"cat {source}'}}]"
    )
    command = "commands: ['test <% $secrets.token %> = \"$T\" && echo the same']"
    said = pod.both(INIT_CONFIG=listed, RUNTIME_CONFIG=command, PAIRUN_APP_UID=str(os.getuid()))
    assert "\nthe same\n" in said
    assert "a | ******" in said
    assert SENTINEL not in said
    holding = {
        str(p.relative_to(pod.volume)): p.stat().st_mode & 0o777
        for p in pod.volume.rglob("*")
        if p.is_file() and SENTINEL.encode() in p.read_bytes()
    }
    # The first is what the task itself wrote.
    assert set(holding) == {"runtime.d/env", "runtime.d/secrets.json", "runtime.d/user.sh"}
    assert holding["runtime.d/secrets.json"] == holding["runtime.d/user.sh"] == 0o600


def test_the_description_of_exit_codes_is_copied(pod: Pod) -> None:
    """It stands in runtime.d before the first task."""
    spec = pod.config / "runtime-exit-spec.yaml"
    spec.write_text("- {code: 1}\n")
    listed = "initPlugins: [{name: a, command: cat $PAI_RUNTIME_DIR/runtime-exit-spec.yaml}]"
    said = pod.both(INIT_CONFIG=listed, RUNTIME_CONFIG="commands: ['true']")
    assert "a | - {code: 1}" in said
    assert pod.left("runtime-exit-spec.yaml") == "- {code: 1}\n"


@pytest.mark.parametrize(
    ("text", "warning", "code"),
    [
        ("- {containerExitCode: 1, containerExitCode: 2}\n- {containerExitCode: 9, patterns: [{exitCode: 7}]}", "PR106", 9),
        ("- [", "PR101", 7),
        ("\0", "PR101", 7),
        (None, "PR716", 7),
    ],
)  # fmt: skip
def test_a_slip_in_the_exit_spec_stops_no_job(
    pod: Pod, text: str | None, warning: str, code: int
) -> None:
    """Init's log names file and line; the rest of the spec holds, or the command's own code."""
    spec = pod.config / "runtime-exit-spec.yaml"
    if text is None:
        spec.mkdir()
    else:
        spec.write_text(text)
    pod.env["RUNTIME_CONFIG"] = "commands: [exit 7]"
    done, said = pod.run("init")
    assert done == 0, said
    assert f"warning[{warning}]" in said
    assert f"{spec}:" in said or text is None
    assert pod.run("runtime")[0] == code


def test_warnings_are_told(pod: Pod) -> None:
    """A misspelt parameter of a plugin, which would have no effect, is told once; init goes on."""
    runtime = "{commands: [echo hi], runtimePlugin: [{plugin: cmd, parameters: {preComands: [x]}}]}"
    pod.env["RUNTIME_CONFIG"] = runtime
    code, said = pod.run("init")
    assert code == 0, said
    assert said.count("warning[PR911]: the plugin 'cmd' has no parameter 'preComands'") == 1


def test_a_bad_environment_file(pod: Pod) -> None:
    """A line that is no variable ends the phase with its number, and is not shown."""
    listed = (
        "initPlugins: [{name: a, command: \"printf 'A=1\\\\nno way\\\\n' > $PAI_RUNTIME_DIR/env\"}]"
    )
    code, said = pod.run("init", INIT_CONFIG=listed, RUNTIME_CONFIG="commands: ['true']")
    assert code == 1
    assert "error[PR717]: this line is not NAME=value" in said
    assert "runtime.d/env:2:1" in said
    assert "no way" not in said


def test_what_is_on_the_volume_is_not_read(pod: Pod) -> None:
    """Settings that the user's container may have left there are named, and have no effect."""
    del pod.env["PAI_CONFIG_DIR"]
    (pod.volume / "config").mkdir(parents=True)
    (pod.volume / "config/init_plugins.yaml").write_text(INIT)
    said = pod.both(RUNTIME_CONFIG="commands: [echo hi]")
    assert "warning[PR718]" in said
    assert "mine" not in said


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "the variable FC_TASK_INDEX is not set"),
        ({}, "a plain Pod sets RUNTIME_CONFIG instead"),
        ({"INIT_CONFIG": INIT}, "the variable PAIRUN_FRAMEWORK_FILE is not set"),
        ({"RUNTIME_CONFIG": "commands: ls"}, "error[PR712]: 'commands' must be a list, not 'ls'"),
        ({"RUNTIME_CONFIG": "commands: ls"}, "--> RUNTIME_CONFIG:1:11 (job)"),
        (
            {"RUNTIME_CONFIG": "commands: [a] runtimePlugin: - plugin: b"},
            "error[PR714]: RUNTIME_CONFIG has lost its line ends",
        ),
        ({"INIT_CONFIG": "a", "RUNTIME_CONFIG": "commands: [a]"}, "--> INIT_CONFIG:1:1 (cluster)"),
        (
            {"RUNTIME_CONFIG": "commands: [a]\nextras: {pairun: {init: [{append: , cmd: {}}]}}"},
            "a job may not insert 'cmd' into init",
        ),
    ],
)
def test_bad_settings(pod: Pod, env: dict[str, str], says: str) -> None:
    """Each is an error with an id and a place, before anything runs."""
    code, said = pod.run("init", **env)
    assert code == 1
    assert says in said
    assert not pod.volume.exists()


# --- with a Framework --------------------------------------------------------------------------------


def framework(folder: Path, *, compressed: bool = False) -> Path:
    """A Framework of two instances that was saved with its statuses."""
    text = (ROOT / "examples/hello.yaml").read_text()
    job, problems = read_job(read_text(Source("job", "job", text), JS))
    assert job is not None, list(problems)
    (role,) = job.roles
    pods = [{"podUID": f"uid-{i}", "podHostIP": f"10.0.0.{i}"} for i in range(role.instances)]
    made: dict[str, Any] = with_statuses(make_framework(job), {role.fc_name: pods})
    if compressed:
        attempt = made["status"]["attemptStatus"]
        statuses = json.dumps(attempt.pop("taskRoleStatuses")).encode()
        attempt["taskRoleStatusesCompressed"] = base64.b64encode(gzip.compress(statuses)).decode()
    path = folder / "framework.json"
    path.write_text(json.dumps(made))
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_a_saved_framework(pod: Pod, compressed: bool) -> None:
    """An instance of a saved Framework is reviewed and run with the addresses in it."""
    path = framework(pod.folder, compressed=compressed)
    args = ("--framework", str(path), "--role", "server", "--index", "0")
    layer = pod.folder / "layer.yaml"
    layer.write_text("init: [{disable: image_check}, {disable: port_check}]")
    pod.env["PAIRUN_ENGINE_LAYER"] = str(layer)
    code, said = pod.run("init", "--dry-run", *args)
    assert code == 0, said
    assert "disabled by the addresses that were saved" in said
    assert '"PAI_HOST_IP_server_0", "10.0.0.0"' in said
    assert not pod.volume.exists()
    code, said = pod.run("init", *args)
    assert code == 0, said
    assert "export PAI_HOST_IP_server_0='10.0.0.0'" in pod.left("runtime_env.sh")
    assert (pod.volume / "runtime.d/plan.json").exists()


def test_options_of_a_saved_framework(pod: Pod) -> None:
    """What is missing or wrong is said; the options mean nothing without the object."""
    assert pod.run("init", "--role", "server")[0] == 2
    path = str(framework(pod.folder))
    code, said = pod.run("init", "--framework", path, "--role", "serve", "--index", "0")
    assert code == 1
    assert "--role is 'serve'" in said
    assert "did you mean 'server'?" in said
    code, said = pod.run("init", "--framework", path)
    assert code == 1
    assert "--role is missing" in said
    assert "--index is missing" in said
    assert "FC_" not in said
    code, said = pod.run("init", "--framework", path, "--role", "server", "--index", "x")
    assert (code, "--index is 'x', which is not a number" in said) == (1, True)


def test_a_framework_wins(pod: Pod) -> None:
    """With a Framework its job is what runs; a plain Pod's commands are said to have no effect."""
    path = framework(pod.folder)
    code, said = pod.run(
        "init", "--dry-run", "--framework", str(path), "--role", "server", "--index", "0",
        RUNTIME_CONFIG="commands: [x]", INIT_CONFIG=INIT,
    )  # fmt: skip
    assert code == 0, said
    assert "warning[PR719]: RUNTIME_CONFIG has no effect" in said
    # The cluster's own list holds for it too.
    assert "(cluster: INIT_CONFIG:4:9)" in said


# --- reviews -----------------------------------------------------------------------------------------


def test_a_review_of_both(shell: Shell) -> None:
    """Both phases, in the order of the lists, with the line that asked for each task."""
    shell.file("init.yaml", INIT)
    shell.file("run.yaml", RUNTIME)
    init, runtime = "init.yaml", "run.yaml"
    said = shell("--dry-run", "--full", "--init-config", init, "--runtime-config", runtime)
    assert (said.code, said.err) == (0, "")
    assert f"init plugins: {init}" in said.out
    assert "a plain Pod" in said.out
    assert "The variables of the job are written (frameworkParser)" in said.out
    assert "(cluster: init.yaml:4:9)" in said.out
    assert f"disabled by {init}:1:1 (cluster)" in said.out
    assert "{{ 7*7 }}" in said.out


def test_a_review_as_json(shell: Shell) -> None:
    """The JSON has the one role with both phases; of an init list alone the init phase."""
    shell.file("init.yaml", INIT)
    shell.file("run.yaml", RUNTIME)
    init, runtime = "init.yaml", "run.yaml"
    both = shell("--dry-run", "--json", "--init-config", init, "--runtime-config", runtime).data
    role = both["roles"]["main"]
    assert role["user_command"] == 'echo "command says $GREETING"'
    assert [t["id"] for t in role["init"]] == [
        "job_environment", "mine", "barrier", "port_check", "image_check",
    ]  # fmt: skip
    assert [t["id"] for t in role["runtime"]] == ["mount_storage", "cmd", "user_command"]
    assert (role["init"][1]["layer"], role["init"][1]["where"]) == ("cluster", f"{init}:4:9")
    alone = shell("--dry-run", "--json", "--init-config", init).data["roles"]["main"]
    assert "runtime" not in alone
    (bad,) = shell("--dry-run", "--json", "--init-config", "nowhere").data["problems"]
    assert bad["id"] == "PR108"


def test_a_review_without_init_plugins(shell: Shell) -> None:
    """Commands alone are reviewed with the stacked playbook; why nobody is waited for is said."""
    said = shell("--dry-run", "--full", "--runtime-config", shell.file("run.yaml", RUNTIME))
    assert said.code == 0
    assert "skipped: job.gang is false" in said.out
    assert "skipped: job.image.uri is false" in said.out
    assert "PR" not in said.err


def test_a_program_that_is_nearly_openpais(shell: Shell, pod: Pod) -> None:
    """A misspelt program of OpenPAI is a warning with the right name; another one's is none."""
    text = "initPlugins: [{name: a, command: python frameworkBarier.py}, {name: b, command: fetch}]"
    said = shell("--dry-run", "--init-config", shell.file("init.yaml", text))
    assert (said.code, said.ids) == (0, ["PR720"])
    assert "did you mean 'frameworkBarrier'?" in said.err
    pod.env |= {"INIT_CONFIG": text, "RUNTIME_CONFIG": "commands: [true && echo hi]"}
    assert "warning[PR720]" in pod.run("init", "--dry-run")[1]
    folder = shell.file("own/frameworkBarier.py", "").parent
    assert "PR720" not in pod.run("init", "--dry-run", PAI_INIT_DIR=str(folder))[1]


def test_why(shell: Shell) -> None:
    """The chain of a value leads through the list to the playbook."""
    shell.file("init.yaml", INIT)
    said = shell(
        "--dry-run",
        "--init-config",
        "init.yaml",
        "--why",
        "job_environment.name",
        "--why",
        "barrier.args.gang",
    )
    assert said.code == 0
    assert "cluster init.yaml:2:9" in " ".join(said.out.split())
    assert '"{{ gang }}"  ← built-in' in said.out


def test_a_job_with_the_clusters_init_plugins(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list holds for a job too, also where it comes from PAI_CONFIG_DIR, and no policy grows."""
    job = shell.job("init: [{patch: mine, retries: 3}]")
    shell.file("config/init_plugins.yaml", INIT)
    given = shell("--dry-run", "--init-config", "config/init_plugins.yaml", job)
    monkeypatch.setenv("PAI_CONFIG_DIR", "config")
    found = shell("--dry-run", job)
    for said in (given, found):
        assert said.ids == ["PR402"]
        assert "init plugins: config/init_plugins.yaml" in said.out


def test_a_bad_list_in_a_review(shell: Shell) -> None:
    """An error of the list is shown at its place, for people and as JSON."""
    init = shell.file("init.yaml", "initPlugins: [{name: a}]")
    said = shell("--dry-run", "--init-config", init)
    assert said.code == 1
    assert said.ids == ["PR713"]
    (problem,) = shell("--dry-run", "--json", "--init-config", init).data["problems"]
    assert (problem["id"], problem["line"], problem["column"]) == ("PR713", 1, 15)


def test_a_secret_in_plain_text_is_a_warning(shell: Shell) -> None:
    """As in a job: everyone who may read the Pod can read it."""
    settings = shell.file("runtime_plugin.yaml", "commands: ['mysql --password=hunter2hunter2']\n")
    for argv in (("lint", settings), ("plan", "--full", "--runtime-config", settings)):
        said = shell(*argv)
        assert (said.code, said.ids.count("PR937")) == (0, 1), said.err
        assert "hunter2" not in said.out + said.err

"""``pairun init`` from end to end: a Framework file goes in, a volume comes out."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pairun.base.paths import PLAIN_FILES
from pairun.errors import Source
from pairun.init.podplans import PodPlans
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text
from pairun.secrets.vault import Vault
from pairun.volume.journal import read_journal
from pairun.volume.logjournal import LOG_JOURNAL_VARIABLE, read_log
from pairun.volume.planfile import read_plan
from tests.doors import DoorWatch

ROOT = pathlib.Path(__file__).parents[2]
UID = "11111111-2222-3333-4444-555555555555"
SENTINEL = "s3cr3t-s3cr3t"
WAIT_S = 40.0
JOB: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "small",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
    "secrets": {"token": SENTINEL},
    "taskRoles": {
        "worker": {
            "instances": 2,
            "dockerImage": "i",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"http": 1}},
            "commands": ["echo {{ 7*7 }}", "login <% $secrets.token %>"],
        }
    },
}


class Init:
    """One ``pairun init`` in a folder that stands for the Pod."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.volume = folder / "pai"
        self.volume.mkdir()
        (self.volume / ".pairun").touch()
        (self.volume / "secrets").mkdir()
        (self.volume / "secrets/secrets.yaml").write_text(json.dumps(JOB["secrets"]))
        self.watch = DoorWatch(self.volume, folder / "door-watch")
        self.env = {
            **self.watch.env,
            "PAIRUN_PAI_DIR": str(self.volume),
            "PAIRUN_FRAMEWORK_FILE": str(folder / "framework.json"),
            "PAIRUN_ENGINE_LAYER": str(folder / "layer.yaml"),
            "PAIRUN_HOST_IP": "127.0.0.1",
            "PAIRUN_GANG_DIR": str(folder / "gang"),
            "PAIRUN_APP_UID": str(os.getuid()),
            "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "1",
            "FC_POD_UID": UID,
            PLAIN_FILES: "1",
        }
        self.roots: list[str] = []
        self.framework()
        self.process: subprocess.Popen[str] | None = None

    def framework(self, document: dict[str, Any] = JOB) -> None:
        """Write the Framework of a job, with an address for each of its tasks."""
        # as a person writes it: only such secrets are masked by the REST server
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in document.items())
        job, problems = read_job(read_text(Source("job", "job", text), JS))
        assert job is not None, list(problems)
        made = make_framework(job)
        pods = {
            role.fc_name: [
                {"podUID": UID if i == 1 else f"{i}" * 8, "podHostIP": f"10.0.0.{i + 1}"}
                for i in range(role.instances)
            ]
            for role in job.roles
        }
        (self.folder / "framework.json").write_text(json.dumps(with_statuses(made, pods)))

    def layer(self, text: str) -> None:
        """Change the playbooks as an engine may."""
        (self.folder / "layer.yaml").write_text(text)

    def placed(self, more: str = "") -> None:
        """Let a task leave on the volume what the barrier leaves there.

        Args:
            more: further operations.
        """
        source = self.folder / "framework.json"
        self.layer(
            "init:\n"
            "  - disable: barrier\n"
            "  - disable: image_check\n"
            "  - disable: port_check\n"
            "  - before: job_environment\n"
            "    id: placed\n"
            "    name: The addresses are there\n"
            f"    cmd: {{script: 'cp {source} {self.volume}/framework.json'}}\n" + more
        )

    def start(self, *args: str, wrap: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start the phase."""
        roots = [x for root in self.roots for x in ("--root", root)]
        self.process = subprocess.Popen(
            [*wrap, sys.executable, "-m", "pairun", "init", *roots, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **self.env},
        )
        return self.process

    def stopped_in(self, where: str) -> tuple[int, str]:
        """Run the phase, and send it SIGTERM when it begins one of its functions."""
        owner, name = where.split(".")
        code = (
            "import os, signal, sys\n"
            "from pairun.init import handingover as init\n"
            f"original = init.{owner}.{name}\n"
            "def stop(*args, **more):\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "    return original(*args, **more)\n"
            f"init.{owner}.{name} = stop\n"
        )
        return self.in_process(code)

    def in_process(self, prelude: str) -> tuple[int, str]:
        """Run the phase in a process that runs something first."""
        code = f"{prelude}import sys\nfrom pairun.cli.main import main\nsys.exit(main(['init']))\n"
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **self.env},
            check=False,
        )
        return done.returncode, done.stdout

    def run(self, *args: str) -> tuple[int, str]:
        """Run the phase; returns its exit code and what it printed."""
        process = self.start(*args)
        said, _ = process.communicate(timeout=WAIT_S)
        return process.returncode, said

    def files(self) -> dict[str, tuple[str, bytes]]:
        """Mode and content of every file on the volume, the Pod's logs left out."""
        return {
            str(p.relative_to(self.volume)): (
                stat.filemode(p.lstat().st_mode),
                p.read_bytes() if p.is_file() else b"",
            )
            for p in sorted(self.volume.rglob("*"))
            if "logs" not in p.parts
        }


@pytest.fixture
def init(tmp_path: pathlib.Path) -> Iterator[Init]:
    """A Pod in which ``pairun init`` can run."""
    made = Init(tmp_path)
    made.placed()
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.communicate()
    assert not made.watch.violations()


def test_the_volume(init: Init) -> None:
    """The handover stands on the volume with its modes, and secrets only where they belong."""
    code, said = init.run()
    assert code == 0, said
    modes = {name: mode for name, (mode, _) in init.files().items()}
    assert modes["runtime.d/plan.json"] == "-rw-r--r--"
    assert modes["runtime.d/runtime_env.sh"] == "-rw-r--r--"
    assert modes["runtime.d/secrets.json"] == "-rw-------"
    assert modes["runtime.d/user.sh"] == "-rw-------"
    assert modes["run"] == "drwxrwxrwt"
    assert stat.S_IMODE((init.volume / "logs" / UID).stat().st_mode) == 0o777
    with_secret = {name for name, (_, data) in init.files().items() if SENTINEL.encode() in data}
    assert with_secret == {"runtime.d/secrets.json", "runtime.d/user.sh", "secrets/secrets.yaml"}
    assert SENTINEL not in said
    assert SENTINEL not in (init.volume / "logs" / UID / "journal.jsonl").read_text()


def test_the_handover_can_be_read(init: Init) -> None:
    """The plan loads with its secrets, the command is as the job wrote it, peers are known."""
    assert init.run()[0] == 0
    files = init.volume / "runtime.d"
    plan = read_plan(str(init.volume), Vault())
    assert plan.phase == "runtime"
    assert [t.id for t in plan.tasks()][-1] == "user_command"
    script = (files / "user.sh").read_text()
    assert f"echo {{{{ 7*7 }}}}\nlogin {SENTINEL}\n" in script
    env = (files / "runtime_env.sh").read_text()
    assert "export PAI_HOST_IP_worker_0='10.0.0.1'" in env
    assert "export PAI_CURRENT_CONTAINER_IP='10.0.0.2'" in env or "10.0.0.2" in env


def test_the_job_file_is_left(init: Init) -> None:
    """``job_config.yaml`` is the Framework's text of the job, as OpenPAI's runtime leaves it."""
    assert init.run()[0] == 0
    framework = json.loads((init.folder / "framework.json").read_text())
    text = framework["metadata"]["annotations"]["config"]
    assert (init.volume / "runtime.d/job_config.yaml").read_text() == text
    assert SENTINEL not in text


def test_secrets_in_plain_sight_do_not_reach_the_job_file(init: Init) -> None:
    """The REST server masks no secrets in JSON; the file for the user's container does."""
    framework = json.loads((init.folder / "framework.json").read_text())
    framework["metadata"]["annotations"]["config"] = json.dumps(JOB)
    (init.folder / "framework.json").write_text(json.dumps(framework))
    assert init.run()[0] == 0
    left = (init.volume / "runtime.d/job_config.yaml").read_text()
    assert SENTINEL not in left
    assert json.loads(left)["name"] == "small"


def test_without_the_apps_uid(init: Init) -> None:
    """Where nobody knows who the command runs as, it must be readable by all."""
    del init.env["PAIRUN_APP_UID"]
    assert init.run()[0] == 0
    assert init.files()["runtime.d/secrets.json"][0] == "-rw-r--r--"


def test_the_log_shows_the_journal(init: Init) -> None:
    """Where the cluster wants it; the words on a failure stay the last, as kubelet reads them."""
    init.env[LOG_JOURNAL_VARIABLE] = "true"
    code, output = init.run()
    assert code == 0
    records = [json.loads(line) for line in (read_log(output.splitlines()) or b"").splitlines()]
    assert records == read_journal(str(init.volume / "logs" / UID / "journal.jsonl"))
    assert SENTINEL not in json.dumps(records)
    init.placed(
        "  - before: job_environment\n    id: bad\n    name: B\n    cmd: {script: 'echo no; exit 9'}\n"
    )
    code, output = init.run()
    assert code != 0
    message = output[-2048:]
    assert "failed   bad: B" in message
    assert message.splitlines()[-1].startswith("init phase: failure")
    last = json.loads((read_log(output.splitlines()) or b"").splitlines()[-1])
    assert (last["type"], last["outcome"]) == ("phase_end", "failure")


def test_a_second_run_is_the_same(init: Init) -> None:
    """A phase that starts again leaves the same volume."""
    assert init.run()[0] == 0
    first = init.files()
    assert init.run()[0] == 0
    assert init.files() == first
    records = read_journal(str(init.volume / "logs" / UID / "journal.jsonl"))
    assert [r["outcome"] for r in records if r["type"] == "phase_end"] == ["success", "success"]


def test_what_an_earlier_run_left_is_removed(init: Init) -> None:
    """Old files go, what the platform mounts and the logs stay."""
    old = init.volume / "runtime.d" / "modules"
    old.mkdir(parents=True)
    (old / "evil.py").write_text("boo")
    (init.volume / "old").mkdir()
    (init.volume / "old" / "file").write_text("x")
    log = init.volume / "logs" / "other" / "user.log"
    log.parent.mkdir(parents=True)
    log.write_text("precious")
    assert init.run()[0] == 0
    assert not (init.volume / "old").exists()
    assert not old.exists()
    assert log.read_text() == "precious"
    assert (init.volume / "secrets/secrets.yaml").exists()


def _refused(init: Init, *words: str) -> None:
    """Init must refuse its folder in words, and leave what is in it."""
    code, said = init.run()
    assert code == 1, said
    assert said.startswith("error[PR701]: the work directory cannot be used: "), said
    for word in words:
        assert word in said
    assert "Traceback" not in said
    assert not (init.volume / "runtime.d").exists()


def test_a_folder_that_is_not_ours(init: Init) -> None:
    """A folder that holds something and has no marker of ours is refused, and nothing is lost."""
    (init.volume / ".pairun").unlink()
    (init.volume / "thesis.tex").write_text("precious")
    _refused(init, "'thesis.tex'", "PAIRUN_PAI_DIR", "new or empty folder")
    assert (init.volume / "thesis.tex").read_text() == "precious"


def test_a_marker_that_is_a_link(init: Init) -> None:
    """Only our own file is a marker, not a link to one, nor a folder of its name."""
    marker = init.volume / ".pairun"
    marker.rename(init.folder / "mark")
    marker.symlink_to(init.folder / "mark")
    (init.volume / "thesis.tex").write_text("precious")
    _refused(init)
    assert (init.volume / "thesis.tex").read_text() == "precious"


def test_a_folder_that_is_a_link(init: Init) -> None:
    """A link in the place of the folder is not followed, whatever it leads to."""
    link = init.folder / "link"
    link.symlink_to(init.volume)
    (init.volume / "thesis.tex").write_text("precious")
    init.env["PAIRUN_PAI_DIR"] = f"{link}/"
    _refused(init, "is a symbolic link")
    assert (init.volume / "thesis.tex").read_text() == "precious"


def test_a_home_directory(init: Init) -> None:
    """A home directory is refused even when it has the marker, and so is what holds one."""
    init.env["HOME"] = str(init.volume)
    _refused(init, "home directory")
    (init.volume / "alice").mkdir()
    init.env["HOME"] = str(init.volume / "alice")
    _refused(init, "home directory")


def test_a_new_folder_gets_the_marker(init: Init) -> None:
    """A folder with nothing but what the platform mounts is taken, and may be cleaned again."""
    (init.volume / ".pairun").unlink()
    assert init.run()[0] == 0
    assert (init.volume / ".pairun").is_file()
    (init.volume / "old").touch()
    assert init.run()[0] == 0
    assert not (init.volume / "old").exists()


@pytest.mark.parametrize("name", ["runtime.d", "run", "plan", "framework.json"])
def test_a_link_on_the_volume_is_not_followed(init: Init, name: str) -> None:
    """A symbolic link that somebody left is removed, and what it points to is untouched."""
    outside = init.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious")
    target = outside / "file" if name == "framework.json" else outside
    (init.volume / name).symlink_to(target)
    before = stat.S_IMODE(outside.stat().st_mode)
    assert init.run()[0] == 0
    assert not (init.volume / name).is_symlink()
    assert [p.name for p in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "precious"
    assert stat.S_IMODE(outside.stat().st_mode) == before


def test_a_link_among_the_logs(init: Init) -> None:
    """The one folder that the user's container may write to leads nowhere else."""
    outside = init.folder / "outside"
    outside.mkdir()
    (init.volume / "logs").mkdir()
    (init.volume / "logs" / UID).symlink_to(outside)
    code, said = init.run()
    assert list(outside.iterdir()) == []
    assert code == 1
    assert "error[PR701]" in said


def test_a_journal_that_somebody_planted(init: Init) -> None:
    """A link in the place of the journal costs the journal, not the job, and is not followed."""
    target = init.folder / "target"
    target.write_text("precious")
    logs = init.volume / "logs" / UID
    logs.mkdir(parents=True)
    (logs / "journal.jsonl").symlink_to(target)
    code, said = init.run()
    assert code == 0
    assert said.count("cannot write the journal") == 1
    assert target.read_text() == "precious"


# --- what is missing ---------------------------------------------------------------------------------


def test_a_work_directory_that_cannot_be_used(init: Init) -> None:
    """A volume that cannot be written is PR701, before anything runs."""
    init.env["PAIRUN_PAI_DIR"] = "/dev/null"
    code, said = init.run()
    assert code == 1
    assert "error[PR701]" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", ["PAIRUN_FRAMEWORK_FILE", "FC_TASKROLE_NAME", "FC_TASK_INDEX"])
def test_missing_variables(init: Init, name: str) -> None:
    """Every variable that is not set is named."""
    del init.env[name]
    code, said = init.run()
    assert code == 1
    assert f"error[PR704]: the variable {name} is not set" in said


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"metadata": 1}'])
def test_a_framework_that_is_none(init: Init, text: str | None) -> None:
    """A Framework file that cannot be read is an error with an id, and no trace of ours."""
    path = init.folder / "framework.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    code, said = init.run()
    assert code == 1
    assert "error[PR" in said
    assert "Traceback" not in said


# --- the phase --------------------------------------------------------------------------------------


HANDLER = (
    "    on_exit:\n"
    "      - {id: undo, name: Undo, event: [success, failure, signal], cmd: {script: echo undone}}\n"
)


def test_a_task_that_fails(init: Init) -> None:
    """A failed task decides the exit code, its handlers run, and there is no handover."""
    init.placed(
        "  - append:\n"
        "    id: bad\n"
        "    name: Fails\n"
        "    cmd: {script: exit 3}\n"
        "    exit_codes: {transient: 77}\n" + HANDLER
    )
    code, said = init.run()
    assert code == 77, said
    assert "undo | undone" in said
    assert not (init.volume / "runtime.d" / "plan.json").exists()


STRANGER = '''
from pairun.module import CheckModule, Context, Result, arg, define

@define
class Stranger(CheckModule):
    """Hand over what no module may."""

    example = "stranger: {how: environment}"
    how: str = arg("What to hand over.")

    def check(self, ctx: Context) -> Result | None:
        if self.how == "progress":
            ctx.progress("half way")
            return None
        if self.how == "nul":
            return Result(environment={"A": "x\\0y"})
        return Result(environment={"A": 3})
'''


def strangers(init: Init, phase: str) -> str:
    """Tasks of a phase that hand over what no module may, and an exit handler, as a layer."""
    root = init.folder / "root" / "modules"
    root.mkdir(parents=True)
    (root / "stranger.py").write_text(STRANGER)
    init.roots.append(str(root.parent))
    where = "after: job_environment" if phase == "init" else "before: user_command"
    tasks = "".join(
        f"  - {where}\n"
        f"    id: bad_{how}\n"
        f"    name: Hand over a bad {how}\n"
        f"    stranger: {{how: {how}}}\n"
        "    failure_policy: ignore\n"
        "    on_exit:\n"
        f"      - {{name: Undo {how}, event: always, cmd: {{script: 'echo undone {how}'}}}}\n"
        for how in ("progress", "nul", "environment")
    )
    return tasks if phase == "init" else f"runtime:\n{tasks}"


def check_strangers(text: str, journal: list[dict[str, Any]]) -> None:
    """Each has failed as internal, named its file and line, and its exit handler has run."""
    ends = {r["task"]: r for r in journal if r["type"] == "task_end"}
    for how in ("progress", "nul", "environment"):
        assert (ends[f"bad_{how}"]["outcome"], ends[f"bad_{how}"]["kind"]) == (
            "ignored",
            "internal",
        )
        assert "root/modules/stranger.py, line " in ends[f"bad_{how}"]["message"].replace(
            "runtime.d/modules", "root/modules"
        )
        assert f"undone {how}" in text


def test_modules_that_hand_over_nonsense(init: Init) -> None:
    """The phase goes on under their policy, hands over, and runs their exit handlers."""
    init.placed(strangers(init, "init"))
    code, text = init.run()
    assert code == 0, text
    check_strangers(text, read_journal(str(init.volume / f"logs/{UID}/journal.jsonl")))
    assert (init.volume / "runtime.d/plan.json").exists()


def test_modules_that_hand_over_nonsense_to_pid_1(init: Init) -> None:
    """The user's command runs, the exit handlers run, and the exit code is the command's."""
    init.placed(strangers(init, "runtime"))
    assert init.run()[0] == 0
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "runtime"], check=False, capture_output=True, text=True,
        cwd=ROOT, env={"PATH": os.environ["PATH"], **init.env}, timeout=WAIT_S,
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == 1, text  # that of `login`
    assert "{{ 7*7 }}" in text
    check_strangers(text, read_journal(str(init.volume / f"logs/{UID}/journal.jsonl")))


def test_peers_without_an_address(init: Init) -> None:
    """Without the barrier's file nothing is written, and the message says what is missing."""
    init.layer("init: [{disable: barrier}, {disable: image_check}, {disable: port_check}]\n")
    code, said = init.run()
    assert code == 1
    assert "framework.json" in said
    assert "Traceback" not in said
    assert not (init.volume / "runtime.d" / "plan.json").exists()


def test_the_handover_fails(init: Init) -> None:
    """When the handover cannot be written the handlers still run, for a failure."""
    init.placed(
        "  - append:\n"
        "    id: in_the_way\n"
        "    name: A directory stands where the plan belongs\n"
        f"    cmd: {{script: 'mkdir -p {init.volume}/runtime.d/plan.json'}}\n" + HANDLER
    )
    code, said = init.run()
    assert code == 1
    assert "undo | undone" in said
    assert "1 exit handler for failure" in said
    records = read_journal(str(init.volume / "logs" / UID / "journal.jsonl"))
    assert [r["outcome"] for r in records if r["type"] == "phase_end"] == ["failure"]


def test_a_handler_comes_after_the_handover(init: Init) -> None:
    """The plan is on the volume before the handlers of a success run."""
    look = f"test -e {init.volume}/runtime.d/plan.json && echo it is there"
    init.placed(
        "  - append:\n"
        "    id: last\n"
        "    name: Registers one\n"
        "    cmd: {argv: ['true']}\n"
        f"    on_exit: [{{id: look, name: Look, event: success, cmd: {{script: '{look}'}}}}]\n"
    )
    code, said = init.run()
    assert code == 0, said
    assert "look | it is there" in said


def wait_for(process: subprocess.Popen[str], part: str) -> None:
    """Wait for a line that holds a text."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if part in line:
            return
    raise AssertionError(f"no line with {part!r}: {said}")


HANG = (
    "  - append:\n    id: hang\n    name: Hangs\n    cmd: {script: echo up; sleep 60}\n" + HANDLER
)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped(init: Init, number: signal.Signals, expected: int) -> None:
    """A stop cancels the task, runs the handlers, hands nothing over, and ends with its code."""
    init.placed(HANG)
    process = init.start()
    wait_for(process, "hang | up")
    process.send_signal(number)
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == expected
    assert "undo | undone" in said
    assert not (init.volume / "runtime.d" / "plan.json").exists()


@pytest.mark.parametrize("delay", range(6))
def test_stopped_at_any_moment(init: Init, delay: int) -> None:
    """Wherever the stop comes, as PID 1 too: its code, or a success that was complete."""
    wrap = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        wrap += ["--user", "--map-root-user"]
        init.env["PAIRUN_APP_UID"] = "0"
    if subprocess.run([*wrap, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this kernel lets us make no PID namespace")
    marks = ["placed: The", "job_environment:", "last |", "1 exit handler", "undo |", "undo:"]
    init.placed("  - append:\n    id: last\n    name: L\n    cmd: {script: echo up}\n" + HANDLER)
    process = init.start(wrap=wrap)
    wait_for(process, marks[delay])
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
        children = f.read().split()
    for pid in children:
        os.kill(int(pid), signal.SIGTERM)
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 143 or (process.returncode == 0 and delay >= 4), said


RAISED = [
    ("OSError(28, 'No space left on device', '/v/{s}/x')", "error[PR701]: /v/******/x cannot be used: No space left on device"),
    ("Permanent('cannot copy git: {s}', hint='free {s}')", "error[PR701]: cannot copy git: ******"),
    ("ZeroDivisionError('of {s}')", "error: pairun itself failed: ZeroDivisionError: of ******"),
]  # fmt: skip


@pytest.mark.parametrize(("raised", "expected"), RAISED)
def test_the_handover_fails_for_another_reason(init: Init, raised: str, expected: str) -> None:
    """Whatever fails is printed, masked, before the handlers run for a failure."""
    init.placed("  - append:\n    id: last\n    name: L\n    cmd: {script: echo up}\n" + HANDLER)
    code, text = init.in_process(
        "from pairun.module import Permanent\n"
        "from pairun.volume.writer import Volume\n"
        "def fail(*args, **more):\n"
        f"    raise {raised.format(s=SENTINEL)}\n"
        "Volume.hand_over = fail\n"
    )
    assert code == 1, text
    assert expected in text
    assert "undo | undone" in text
    assert SENTINEL not in text


def test_an_error_before_the_first_task_is_masked(init: Init) -> None:
    """What the command line prints of an error hides the secrets that were read before it."""
    init.placed()
    code, text = init.in_process(
        "from pairun.init.podplans import PodPlans\n"
        "def fail(*args, **more):\n"
        f"    raise ValueError({SENTINEL!r})\n"
        "PodPlans.make = fail\n"
    )
    assert (code, SENTINEL in text) == (1, False), text
    assert "error: pairun itself failed: ValueError: ******" in text


def test_stopped_before_the_first_task(init: Init) -> None:
    """A stop that comes while the plan is made lets no task begin, and ends with its code."""
    init.placed()
    code, said = init.stopped_in("PodPlans.make")
    assert code == 143, said
    assert "placed" not in said
    assert "init phase: signal, exit code 143" in said


def test_stopped_during_the_handover(init: Init) -> None:
    """A stop that comes in the handover makes the outcome a signal, for the handlers too."""
    init.placed("  - append:\n    id: last\n    name: L\n    cmd: {script: echo up}\n" + HANDLER)
    code, said = init.stopped_in("Volume.hand_over")
    assert code == 143, said
    assert "1 exit handler for signal" in said


PROGRAM = """\
from plugins.plugin_utils import PluginHelper, plugin_init
config, pre, post = plugin_init()
print("the key is", config["user_extension"]["jobSSH"]["key"])
PluginHelper(config).inject_commands(["use " + config["user_extension"]["jobSSH"]["key"]], pre)
PluginHelper(config).inject_commands(["echo done"], post)
"""


def test_a_key_that_a_plugin_folder_gets(init: Init, tmp_path: pathlib.Path) -> None:
    """It is masked in the log, and the scripts that its program writes are kept with the secrets."""
    key = "PRIVATE-KEY-OF-THE-JOB"
    folder = tmp_path / "root/plugins/keys"
    folder.mkdir(parents=True)
    (folder / "desc.yaml").write_text("name: keys\ninit-script: init.py\n")
    (folder / "init.py").write_text(PROGRAM)
    mounted = init.volume / "user-extension-secrets"
    mounted.mkdir()
    (mounted / "userExtensionSecrets.yaml").write_text(json.dumps({"jobSSH": {"key": key}}))
    # What the program itself opens on the volume is its own business.
    init.env = {k: v for k, v in init.env.items() if k not in init.watch.env} | {PLAIN_FILES: "1"}
    init.roots = [str(tmp_path / "root")]
    init.framework({**JOB, "extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": "keys"}]}})
    init.placed()
    code, out = init.run()
    assert code == 0, out
    assert "the key is ******" in out
    assert key not in out
    held = {p.name for p in init.volume.rglob("*") if p.is_file() and key in p.read_text("latin-1")}
    assert held == {"userExtensionSecrets.yaml", "secrets.json", "plugin_pre0.sh"}
    assert (init.volume / "runtime.d/plugin_pre0.sh").stat().st_mode & 0o777 == 0o600
    plan = json.loads((init.volume / "runtime.d/plan.json").read_text())
    (task,) = [s for s in plan["steps"] if s.get("id") == "keys_2"]
    script = task["on_exit"][0]["args"]["script"]
    secrets = json.loads((init.volume / "runtime.d/secrets.json").read_text())
    assert secrets["values"][script["$secret"]] == "set -o errexit\necho done\n"


@pytest.mark.parametrize(
    ("given", "backend", "gang"),
    [
        ({}, "framework", True),
        ({"GANG_ALLOCATION": "false"}, "framework", False),
        ({"GANG_ALLOCATION": "true", "PAIRUN_BARRIER": "pods"}, "pods", True),
    ],
)
def test_the_pods_environment_sets_the_barrier(
    init: Init, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], backend: str, gang: bool
) -> None:
    """The engine sets the backend, and the platform whether all tasks start together."""
    init.layer("init: []")
    monkeypatch.setenv("PAIRUN_PAI_DIR", str(init.volume))
    plans = PodPlans([], {**init.env, **given}, Vault())
    barrier = next(t for t in plans.make().plans["init"].tasks() if t.id == "barrier")
    assert (barrier.args["backend"], barrier.args["gang"]) == (backend, gang)

"""A name server that never answers: whoever looks up a name ends in time, with an error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.net.nameserver import ASKED
from tests.net.test_failures import HERE, NAMESPACE

ROOT = HERE.parents[1]
WAIT_S = 60.0
"""The system's resolver waits for 150 s."""

INIT = """
import sys
from pairun.cli.main import main
from pairun.init import fromcluster
fromcluster._TIMEOUTS_S = (0, 1200)
fromcluster._DEFAULT_TIMEOUT_S, fromcluster._ANSWER_S = LIMITS
sys.exit(main(["init"]))
"""
BARRIER = """
import os, sys
from pairun.contract.loading import ModuleFile, plan_loader
from pairun.contract.sources import built_in_modules
from pairun.executor.phase import Executor
from pairun.executor.shared import Shared
from pairun.plan import Plan, Task
from pairun.report.console import Console
from pairun.secrets.vault import Vault

vault = Vault()
file = ModuleFile(path=built_in_modules()["barrier"], sha256="", built_in=True)
task = Task(id="barrier", name="Wait", module="barrier", timeout_s=LIMIT,
            args={"backend": "framework"})
shared = Shared(load=plan_loader({"barrier": file}), resolve=None, vault=vault, env=dict(os.environ),
                emit=Console(sys.stdout, vault), pai_dir=os.environ["PAIRUN_PAI_DIR"])
executor = Executor(Plan(phase="init", steps=(task,), modules={"barrier": file}), shared)
with executor.loop:
    outcome = executor.run_handlers(executor.run_tasks())
    executor.end(outcome)
sys.exit(outcome.exit_code)
"""
GATHERING = """
import os
from pairun.host.context import HostContext
from pairun.rendezvous import background
background._LOOKUP_S = LIMIT
print("gathering:", HostContext(os.environ, os.environ["PAIRUN_PAI_DIR"]).gather({"worker": 2}, print))
"""
EVENTS = """
import os
from pairun.kube.events import Note
from pairun.net.podevents import send_event
print(send_event(Note("TaskFailed", "it failed", True), os.environ, LIMIT, print))
"""
COMMAND = """
import sys
from pairun.cli.main import main
from pairun.engines.kubernetes import apierrors
apierrors.CONNECT_S = LIMIT
sys.exit(main(ARGV))
"""


def start(tmp: Path, code: str) -> subprocess.Popen[str]:
    """Run a program of a Pod where no name server answers."""
    (tmp / "pai").mkdir()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp / "kubeconfig").write_text(json.dumps(config))
    env = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "KUBECONFIG": str(tmp / "kubeconfig"),
        "PAIRUN_PAI_DIR": str(tmp / "pai"), "PAIRUN_API_CREDENTIALS": str(tmp), "PAIRUN_BUNDLE": "",
        "KUBE_APISERVER_ADDRESS": "https://api.example.com:6443", "POD_NAMESPACE": "n",
        "FC_FRAMEWORK_NAMESPACE": "n", "FC_FRAMEWORK_NAME": "job", "FC_POD_NAME": "job-worker-0",
        "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0", "FC_POD_UID": "u",
        "PAIRUN_ROLES": json.dumps({"worker": {"count": 2, "ports": {}}}),
    }  # fmt: skip
    server = [sys.executable, str(HERE / "nameserver.py"), str(tmp), "hangs"]
    return subprocess.Popen(
        [*NAMESPACE, *server, sys.executable, "-c", code],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp,
    )  # fmt: skip


def end(running: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code and output."""
    try:
        output, _ = running.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        running.kill()
        output, _ = running.communicate()
        pytest.fail(f"it hangs: {output}")
    if "unshare" in output:
        pytest.skip("this kernel makes no namespaces for this user")
    assert "Traceback" not in output, output
    return running.returncode, output


def command(*argv: str) -> str:
    """A command of pairun that waits for the name for a second."""
    return COMMAND.replace("LIMIT", "1.0").replace("ARGV", repr(list(argv)))


ENDS = {
    "init": (INIT.replace("LIMITS", "(2, 1.0)"), 1, "did not answer within 1s"),
    "barrier": (BARRIER.replace("LIMIT", "3.0"), 1, "within 3s|stopped after 3"),
    "gathering": (GATHERING.replace("LIMIT", "1.0"), 0, "gathering: None"),
    "events": (EVENTS.replace("LIMIT", "1.0"), 0, "did not answer within"),
    "submit": (command("submit", "--engine", "job", str(ROOT / "examples/hello.yaml")), 1, "PR787"),
    "logs": (command("logs", "job"), 1, "PR787"),
    "status": (command("status", "job"), 1, "PR787"),
}
STOPS = {
    "init": (INIT.replace("LIMITS", "(600, 60.0)"), 143),
    "barrier": (BARRIER.replace("LIMIT", "600.0"), 143),
    "events": (EVENTS.replace("LIMIT", "600.0"), -signal.SIGTERM),
    "submit": (ENDS["submit"][0].replace("1.0", "600.0"), -signal.SIGTERM),
    "logs": (ENDS["logs"][0].replace("1.0", "600.0"), -signal.SIGTERM),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.slow
def test_it_ends_within_its_limit(tmp_path: Path, name: str) -> None:
    program, code, message = ENDS[name]
    status, output = end(start(tmp_path, program))
    assert status == code, output
    assert any(part in output for part in message.split("|")), output


@pytest.mark.parametrize("name", STOPS)
def test_a_stop_signal_ends_it(tmp_path: Path, name: str) -> None:
    program, code = STOPS[name]
    with start(tmp_path, program) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if ASKED in line:
                running.send_signal(signal.SIGTERM)
                break
        assert end(running)[0] == code

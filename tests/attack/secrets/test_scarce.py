"""Where threads, memory or file descriptors run out, output is masked or discarded, never shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.attack.secrets.test_late import LATE, MODULE, leaks
from tests.cli.test_init import ROOT, UID, Init, init
from tests.cli.test_secret_forms import FORMS, SECRET
from tests.cli.test_secret_forms import leaks as leaks_of_known

__all__ = ["init"]

LIMITS = [
    *(f"-n {count}" for count in (6, 9, 12, 16, 24)),
    *(f"-v {mib * 1024}" for mib in (40, 60, 80, 120, 200)),
    *(f"-u {count}" for count in (1, 4)),
]


@pytest.fixture
def volume(init: Init) -> Init:
    """A volume that init has prepared: the command prints each form of a secret, and fails."""
    printed = init.folder / "printed"
    printed.write_text("".join(f"{name}: {text}\n" for name, text in FORMS.items()))
    credential = init.folder / "credential"
    credential.write_text(LATE)
    (init.folder / "root/modules").mkdir(parents=True)
    (init.folder / "root/modules/learn.py").write_text(MODULE)
    show = f'cat {printed}; cat {printed} >&2; printf "%s\\n" "$GOT"; exit 7'
    document = {
        "protocolVersion": 2, "name": "small", "type": "job", "secrets": {"token": SECRET},
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
        "taskRoles": {"worker": {
            "instances": 2, "dockerImage": "i", "commands": [show],
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
        }},
    }  # fmt: skip
    init.framework(document)
    (init.volume / "secrets/secrets.yaml").write_text(json.dumps(document["secrets"]))
    cat = json.dumps(f"cat {printed}")
    init.placed(
        "runtime:\n"
        "  - before: user_command\n"
        "    id: learns\n"
        "    name: Learns one more\n"
        f"    learn: {{path: {credential}}}\n"
        "    on_exit:\n"
        "      - name: Shows it at the end\n"
        "        event: always\n"
        f"        cmd: {{script: {cat}}}\n"
        "        failure_policy: ignore\n"
        "  - after: learns\n"
        "    id: shows\n"
        "    name: Shows it\n"
        f"    cmd: {{script: {cat}}}\n"
    )
    init.roots = [str(init.folder / "root")]
    code, said = init.run()
    assert code == 0, said
    return init


def runtime(init: Init, limit: str) -> tuple[int, str]:
    """Run the runtime phase under a limit; returns the exit code and all that was printed."""
    # A limit of processes does not hold for root.
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    argv = ["bash", "-c", f'ulimit {limit}; exec "$@"', "_"]
    done = subprocess.run(
        [*(user if limit.startswith("-u") else []), *argv, sys.executable, "-P", "-m", "pairun", "runtime"],
        cwd="/", capture_output=True, text=True, errors="replace", timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PAIRUN_PAI_DIR": str(init.volume),
             "FC_POD_UID": UID, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def shown(init: Init, printed: str) -> dict[str, list[str]]:
    """What the output and the logs show of either secret."""
    logs = [p for p in (init.volume / "logs").rglob("*") if p.is_file()]
    texts = {"output": printed, **{str(p): p.read_text(errors="replace") for p in logs}}
    return {n: found for n, text in texts.items() if (found := leaks_of_known(text) + leaks(text))}


@pytest.mark.slow
def test_without_limits(volume: Init) -> None:
    """The command runs, and every form is masked: else the test below would say nothing."""
    code, printed = runtime(volume, "-c 0")
    assert code == 7, printed
    assert printed.count("******") >= 40
    assert shown(volume, printed) == {}


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
def test_with_a_limit(volume: Init, limit: str) -> None:
    """Whatever cannot be had, no form of a secret is on a stream, in a log or in a message."""
    if limit.startswith("-u"):
        if os.geteuid() != 0:
            pytest.skip("only root can become a user without other processes")
        for path in (volume.volume, *volume.volume.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        for folder in list(volume.volume.parents)[:4]:
            folder.chmod(0o755)
    _, printed = runtime(volume, limit)
    assert printed
    assert shown(volume, printed) == {}

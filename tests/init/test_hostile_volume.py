"""``pairun init`` on a volume that an earlier attempt's command has prepared against it."""

from __future__ import annotations

import os
import stat

import pytest

from pairun.base.paths import PLAIN_FILES
from tests.cli.test_init import SENTINEL, UID, Init, init

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

__all__ = ["init"]

PLANTED = "token: planted-by-the-command\n"


@pytest.mark.parametrize(
    "name", ["secrets/secrets.yaml", "user-extension-secrets/userExtensionSecrets.yaml"]
)
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("link", False),
        ("folder-link", False),
        ("file", False),
        ("link", True),
        ("folder-link", True),
    ],
)
def test_secrets_that_an_earlier_attempt_left(init: Init, name: str, kind: str, told: bool) -> None:
    """What the platform did not mount is no secret of the job: nothing of it reaches the command."""
    outside = init.folder / "outside"
    outside.mkdir()
    path = init.volume / name
    (outside / path.name).write_text(PLANTED)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(outside / path.name)
    elif kind == "folder-link":
        path.parent.rmdir()
        path.parent.symlink_to(outside)
    else:
        path.write_text(PLANTED)
    if not told:
        del init.env[PLAIN_FILES]
    code, said = init.run()
    path.unlink()
    for _, data in init.files().values():
        assert b"planted-by-the-command" not in data
    if not told:
        assert "warning[PR718]" in said
    else:
        assert code == 1
        assert "a symbolic link, which is not followed" in said
    assert "Traceback" not in said
    assert SENTINEL not in said


@pytest.mark.parametrize(
    "name", ["secrets/secrets.yaml", "user-extension-secrets/userExtensionSecrets.yaml"]
)
def test_a_fifo_in_the_place_of_secrets(init: Init, name: str) -> None:
    """Init does not wait for a writer of a FIFO that an earlier attempt left."""
    path = init.volume / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    code, said = init.run()
    assert code == 1
    assert f"{path}" in said
    assert "it is not a regular file" in said


@pytest.mark.parametrize("name", ["env", "runtime_env.sh"])
def test_a_task_leaves_a_fifo(init: Init, name: str) -> None:
    """What a command of init leaves on the volume is opened without waiting, too."""
    init.placed(
        "  - append:\n"
        "    id: planted\n"
        "    name: A FIFO\n"
        f"    cmd: {{script: 'cd {init.volume}/runtime.d; echo A=b > env; rm -f {name}; mkfifo {name}'}}\n"
    )
    code, said = init.run()
    assert code == 1
    assert "Traceback" not in said
    assert f"{name}: it is not a regular file" in said


def test_addresses_in_a_fifo(init: Init) -> None:
    """A FIFO in the place of what the barrier leaves is an error in words."""
    init.layer(
        "init:\n"
        "  - disable: barrier\n"
        "  - disable: image_check\n"
        "  - disable: port_check\n"
        "  - before: job_environment\n"
        "    id: placed\n"
        "    name: A FIFO\n"
        f"    cmd: {{script: 'mkfifo {init.volume}/framework.json'}}\n"
    )
    code, said = init.run()
    assert code == 1
    assert "framework.json cannot be read: it is not a regular file" in said


def test_a_runtime_environment_that_is_a_folder(init: Init) -> None:
    """A folder in the place of the environment file is an error in words."""
    init.placed(
        "  - append:\n"
        "    id: planted\n"
        "    name: A folder\n"
        f"    cmd: {{script: 'cd {init.volume}/runtime.d; rm runtime_env.sh; mkdir runtime_env.sh; echo A=b > env'}}\n"
    )
    code, said = init.run()
    assert code == 1
    assert "Traceback" not in said
    assert "runtime_env.sh" in said


def test_logs_that_lead_elsewhere(init: Init) -> None:
    """With a link in the place of ``logs`` nothing is made, opened to others or moved behind it."""
    outside = init.folder / "outside"
    (outside / UID).mkdir(parents=True)
    os.chmod(outside / UID, 0o700)
    (outside / UID / "file").write_text("precious")
    (init.volume / "logs").symlink_to(outside)
    code, said = init.run()
    assert code == 1
    assert "error[PR701]" in said
    assert "symbolic link" in said
    assert [p.name for p in outside.iterdir()] == [UID]
    assert [p.name for p in (outside / UID).iterdir()] == ["file"]
    assert stat.S_IMODE((outside / UID).stat().st_mode) == 0o700


def test_an_init_log_that_is_a_fifo(init: Init) -> None:
    """A FIFO in the place of ``init.log`` costs the log, not the phase."""
    logs = init.volume / "logs" / UID
    logs.mkdir(parents=True)
    os.mkfifo(logs / "init.log")
    code, said = init.run()
    assert code == 0, said
    assert "cannot write a log for now" in said


def test_modes_of_what_init_writes(init: Init) -> None:
    """Nothing but ``run`` and the Pod's log directory can be written by others."""
    init.volume.chmod(0o777)
    before = os.umask(0o002)
    try:
        assert init.run()[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(init.volume.stat().st_mode) == 0o755
    writable = {
        name
        for name, (mode, _) in init.files().items()
        if mode[0] != "l" and "w" in (mode[5], mode[8])
    }
    assert writable == {"run"}

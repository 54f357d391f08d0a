"""A host's name that does not exist, and a name server that does not answer, are told apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pairun.module.failures import NEW_NAME_S

HERE = Path(__file__).parent
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--net")
ASK = """
import json, sys
from pairun.contract.sources import built_in_modules
from pairun.module import Failure
from pairun.testing import RealWorld, load, make, run

ARGS = {
    "git_clone": {"repo": "https://git.example.com/a.git", "dest": "{tmp}/code"},
    "download": {"url": "https://files.example.com/a", "dest": "{tmp}/a"},
    "image_check": {"image": "registry.example.com/team/a:1"},
    "git over ssh": {"repo": "ssh://git@git.example.com/a.git", "dest": "{tmp}/ssh"},
}
failures = {}
for name, args in ARGS.items():
    module = "git_clone" if name == "git over ssh" else name
    with RealWorld() as world:
        outcome = run(make(load(built_in_modules()[module]), world.fill(args)), world)
        failures[name] = outcome.failure
with RealWorld() as world:
    try:
        world.ctx.lookup("storage.example.com")
    except Failure as e:
        failures["lookup"] = e
print(json.dumps({
    name: [e.kind, e.message, e.hint, e.retry_within_s] for name, e in failures.items()
}))
"""


def ask(tmp: Path, answer: str) -> dict[str, tuple[str, str, str | None, float | None]]:
    """How each module fails where a name server has this answer for every name."""
    program = [sys.executable, str(HERE / "nameserver.py"), str(tmp), answer]
    done = subprocess.run(
        [*NAMESPACE, *program, sys.executable, "-c", ASK],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip("this kernel makes no namespaces for this user")
    assert done.returncode == 0, done.stderr
    failures: dict[str, tuple[str, str, str | None, float | None]] = json.loads(
        done.stdout.splitlines()[-1]
    )
    return failures


def test_a_name_that_does_not_exist_is_retried_for_a_short_time(tmp_path: Path) -> None:
    """By git, over https and ssh, by downloads, registries and storages: with the name and a hint."""
    failures = ask(tmp_path, "nxdomain")
    assert len(failures) == 5
    for name, (kind, message, hint, within_s) in failures.items():
        assert (kind, within_s) == ("transient", NEW_NAME_S), (name, message)
        assert ".example.com: no such host (" in message
        assert hint is not None
        assert "typo" in hint


@pytest.mark.parametrize("answer", ["servfail", "silent"])
@pytest.mark.slow
def test_a_name_server_without_an_answer_is_retried_as_ever(tmp_path: Path, answer: str) -> None:
    """Nothing is known about the name then."""
    failures = ask(tmp_path, answer)
    assert len(failures) == 5
    for name, (kind, message, hint, within_s) in failures.items():
        assert kind in ("transient", "timeout"), (name, message)
        assert within_s is None, (name, message)
        assert "typo" not in (hint or "")

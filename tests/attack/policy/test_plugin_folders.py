"""A job against a policy that denies a plugin folder: no spelling and no way around runs its program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Shell

NAMES: list[Any] = [
    "denied", "Denied", "DENIED", "./denied", "denied/", "denied/.", "open/../denied", "../plugins/denied",
    "plugins/denied", "../outside", "..", ".", "", "/outside", "~denied", "denied ", " denied", "denied\t",
    "denied\n", "\ndenied", "denied\0", "denied\0x", "de\u200bnied", "\uff44enied", "den\u0131ed", "%64enied", "%2e%2e/denied",
    "*", "den*", "[d]enied", "{open,denied}", "open,denied", "open denied", "open;denied", "$(echo denied)", "{{ 'denied' }}",
    "{{ 'den' ~ 'ied' }}", "<% 'denied' %>", ["denied"], {"denied": 1}, None, True, 1,
]  # fmt: skip
"""What a job writes as the name of the plugin."""

TASK = "openpai_plugin: {plugin: denied, folder: FOLDER, program: init.py, parameters: '{}', pre: /tmp/a, post: /tmp/b}"
WAYS = [
    f"runtime: [{{append: , name: X, {TASK}}}]",
    f"init: [{{append: , name: X, {TASK}}}]",
    f"init: [{{before: barrier, name: X, {TASK}}}]",
    "init: [{patch: open, args: {folder: FOLDER}}]",
    "init: [{patch: open, args: {plugin: denied, program: ../denied/init.py}}]",
    "init: [{patch: open, environment: {PYTHONPATH: FOLDER}}]",
    "init: [{replace: open, name: X, cmd: {argv: [python3, FOLDER/init.py]}}]",
    "policy: {job_may: {plugins: {allow: '*', deny: []}}}",
    "job_may: {plugins: {allow: '*', deny: []}}",
    "plugin_folders: {roots: '*', paths: [plugins]}",
    "roots: [FOLDER]",
    "vars: {plugins: denied}",
    "locked: []",
]
"""What a job writes into ``extras.pairun``."""


@pytest.fixture
def cluster(shell: Shell) -> Path:
    """A content root with two plugin folders, of which jobs may use one."""
    policy = "job_may: {plugins: {allow: '*', deny: [denied]}}\n"
    files = {"playbooks/policy.yaml": policy}
    for name in ("plugins/open", "plugins/denied", "outside"):
        files[f"{name}/desc.yaml"] = f"name: {name.rpartition('/')[2]}\ninit-script: init.py\n"
        files[f"{name}/init.py"] = "print('ran')\n"
    return shell.root(files)


def _plugin(name: object, pairun: str = "") -> str:
    used = f"com.microsoft.pai.runtimeplugin: [{{plugin: {json.dumps(name)}, parameters: {{}}}}]"
    return f"extras: {{{used}, pairun: {{{pairun}}}}}\n"


def test_the_plugin_that_is_allowed_runs(shell: Shell, cluster: Path) -> None:
    """The other tests would pass without it."""
    said = shell("--root", cluster, "--dry-run", "--full", shell.job(more=_plugin("open")))
    assert said.code == 0
    assert "folder: " in said.out


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_name_reaches_it(shell: Shell, cluster: Path, name: object) -> None:
    said = shell("--root", cluster, "--dry-run", "--full", shell.job(more=_plugin(name)))
    assert said.code == 1
    assert set(said.ids) & {"PR402", "PR503", "PR511"}, said.err
    assert "folder: " not in said.out


@pytest.mark.parametrize("way", WAYS)
def test_no_key_of_a_job_reaches_it(shell: Shell, cluster: Path, way: str) -> None:
    folder = str(cluster / "plugins" / "denied")
    said = shell(
        "--root",
        cluster,
        "--dry-run",
        "--full",
        shell.job(more=_plugin("open", way.replace("FOLDER", folder))),
    )
    assert said.code == 1
    assert said.ids
    assert f"folder: {folder}" not in said.out

"""The module openpai_plugin: a program in OpenPAI's form and what it is given."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.module import Failure, Secret

if TYPE_CHECKING:
    from pathlib import Path

    from tests.modules.conftest import Harness

TAKES_A_FILE = """\
import json, sys
from plugins.plugin_utils import plugin_init
config, pre, post = plugin_init()
json.dump([config, pre, post, sys.argv, __file__], open("seen.json", "w"))
"""
TAKES_ARGUMENTS = """\
import json, os, sys
json.dump([sys.argv, os.getcwd()], open("seen.json", "w"))
"""
HELPER = """\
from plugins.plugin_utils import PluginHelper, plugin_init, try_to_install_by_cache
config, pre, post = plugin_init()
helper = PluginHelper(config)
helper.inject_commands(["a", try_to_install_by_cache("ssh", ["b", "c"])], pre)
helper.inject_commands(["d"], pre)
helper.inject_commands([], post)
"""


class Folder:
    """A plugin folder, and what its program left."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.path = harness.tmp / "root/plugins/hello"
        self.path.mkdir(parents=True)

    def args(self, text: str, **more: Any) -> dict[str, Any]:
        """The arguments of a task whose program has this text."""
        (self.path / "init.py").write_text(text)
        (self.harness.pai_dir / "runtime.d").mkdir(exist_ok=True)
        return {
            "plugin": "hello",
            "folder": str(self.path),
            "program": "init.py",
            "parameters": "{}",
            "pre": str(self.script("pre")),
            "post": str(self.script("post")),
            **more,
        }

    def script(self, kind: str) -> Path:
        """The path of a script."""
        return self.harness.pai_dir / f"runtime.d/plugin_{kind}0.sh"

    def run(self, program: str, **more: Any) -> str:
        """Run the program; the message of the task."""
        outcome = self.harness.run_once("openpai_plugin", self.args(program, **more))
        assert outcome.result is not None
        return outcome.result.message

    def seen(self) -> Any:
        """What the program left in its working directory."""
        return json.loads((self.harness.pai_dir / "seen.json").read_text())


@pytest.fixture
def folder(harness: Harness) -> Folder:
    """A plugin folder without a program."""
    return Folder(harness)


def test_a_program_that_takes_a_file_has_no_secret_in_its_arguments(folder: Folder) -> None:
    """It gets the whole configuration; its arguments, which are public, lack what holds secrets."""
    extension = json.dumps({"jobSSH": {"key": "private"}})
    parameters = Secret(json.dumps({"password": "open-sesame"}))
    folder.run(TAKES_A_FILE, parameters=parameters, user_extension=extension)
    config, pre, post, argv, file = folder.seen()
    assert config == {
        "plugin": "hello",
        "failurePolicy": "fail",
        "parameters": {"password": "open-sesame"},
        "user_extension": {"jobSSH": {"key": "private"}},
    }
    assert [pre, post] == [str(folder.script("pre")), str(folder.script("post"))]
    assert yaml.safe_load(argv[1]) == {"plugin": "hello", "failurePolicy": "fail"}
    assert argv[0] == file == str(folder.harness.pai_dir / "plugins/hello/init.py")


@pytest.mark.parametrize(
    "text", ['it\'s "two"\n\tlines', "ünï \U0001f600", "\x7f\x85\u2028\ufeff", "7: {"]
)
def test_a_program_that_takes_arguments_reads_yaml(folder: Folder, text: str) -> None:
    """The first argument is YAML of version 1.1 for any text, and the directory is the volume."""
    folder.run(TAKES_ARGUMENTS, parameters=json.dumps({"text": text, "n": 12, "on": None}))
    argv, directory = folder.seen()
    assert yaml.safe_load(argv[1])["parameters"] == {"text": text, "n": 12, "on": None}
    assert argv[2:] == [str(folder.script("pre")), str(folder.script("post"))]
    assert directory == str(folder.harness.pai_dir)


@pytest.mark.parametrize(
    ("policy", "script"),
    [
        ("fail", "set -o errexit\na\nb; c\nset -o errexit\nd\n"),
        ("Ignore", "set +o errexit\na\nb; c\nset -o errexit\nset +o errexit\nd\nset -o errexit\n"),
    ],
)
def test_commands_are_appended(folder: Folder, policy: str, script: str) -> None:
    """The helper writes what OpenPAI's does, and no script where there is no command."""
    assert folder.run(HELPER, failure_policy=policy) == "the program wrote plugin_pre0.sh"
    assert folder.script("pre").read_text() == script
    assert not folder.script("post").exists()
    assert folder.run(HELPER, failure_policy=policy)
    assert folder.script("pre").read_text() == script, "what an earlier run wrote is replaced"


def test_a_program_that_fails(folder: Folder) -> None:
    """The message names program, plugin and exit code; scripts stay closed to others."""
    program = "import sys; open(sys.argv[2], 'w').write('echo half'); sys.exit(7)\n"
    outcome = folder.harness.run_once("openpai_plugin", folder.args(program))
    assert outcome.failure is not None
    assert "init.py of the plugin hello ended with exit code 7" in outcome.failure.message
    assert outcome.failure.exit_code == 7, "the kind is then no more than a guess"
    assert folder.script("pre").stat().st_mode & 0o777 == 0o600


def test_a_program_that_a_signal_ends(folder: Folder) -> None:
    """The exit code is that of a shell: 128 and the signal's number."""
    outcome = folder.harness.run_once(
        "openpai_plugin", folder.args("import os; os.kill(os.getpid(), 9)\n")
    )
    assert outcome.failure is not None
    assert outcome.failure.exit_code == 137


def test_a_program_that_is_missing(folder: Folder) -> None:
    """Nothing runs, and the hint names the file to correct."""
    outcome = folder.harness.run_once("openpai_plugin", folder.args("", program="absent.py"))
    assert isinstance(outcome.failure, Failure)
    assert (outcome.failure.kind, "desc.yaml" in str(outcome.failure.hint)) == ("permanent", True)


def test_a_link_in_the_folder_is_refused(folder: Folder) -> None:
    """Nothing from outside the folder gets onto the volume."""
    (folder.path / "passwd").symlink_to("/etc/passwd")
    outcome = folder.harness.run_once("openpai_plugin", folder.args(TAKES_ARGUMENTS))
    assert outcome.failure is not None
    assert "neither a file nor a folder" in outcome.failure.message


def test_plugins_import_each_other(folder: Folder) -> None:
    """Other plugins are packages of ``plugins``, files of the folder are modules, as they were."""
    (folder.path.parent / "other").mkdir()
    (folder.path.parent / "other/words.py").write_text("WORD = 'other'\n")
    (folder.path / "near.py").write_text("WORD = 'near'\n")
    (folder.path.parent.parent / "common").mkdir()
    (folder.path.parent.parent / "common/exceptions.py").write_text("WORD = 'common'\n")
    folder.run(
        "import json, near\nfrom plugins.other.words import WORD\nimport common.exceptions as e\n"
        "json.dump([near.WORD, WORD, e.WORD], open('seen.json', 'w'))\n"
    )
    assert folder.seen() == ["near", "other", "common"]


def test_a_review_says_that_a_program_decides(folder: Folder) -> None:
    """Its verdict needs no run."""
    module = folder.harness.make("openpai_plugin", folder.args(TAKES_ARGUMENTS))
    assert folder.harness.review(module) == "unknown"
    assert not (folder.harness.pai_dir / "seen.json").exists()


@pytest.mark.parametrize("program", ["/bin/sh", "../x.py", ""])
def test_a_program_outside_its_folder(folder: Folder, program: str) -> None:
    """The arguments are refused."""
    problems = folder.harness.problems("openpai_plugin", folder.args("", program=program))
    assert "'program' must be a path within the folder" in problems[0].message


def test_scripts_of_the_folder_are_executable_on_the_volume(folder: Folder) -> None:
    """OpenPAI's image makes all of them executable; their own mode is 644."""
    (folder.path / "sub").mkdir()
    script = folder.path / "sub/install.sh"
    script.write_text("#!/bin/sh\necho installed\n")
    script.chmod(0o644)
    folder.run("")
    copy = folder.harness.pai_dir / "plugins/hello/sub/install.sh"
    assert subprocess.run([copy], capture_output=True, check=True).stdout == b"installed\n"


@pytest.mark.parametrize(
    ("system", "installs", "output"),
    [
        ("", "", "-V some packages\n-i ./a.deb ./b.deb\n-V some packages\n"),
        ("", "exit 0", "-V some packages\n"),
        ("", "exit 1", "-V some packages\n-i ./a.deb ./b.deb\nb\nc\n"),
        ("other", "", "b\nc\n"),
    ],
    ids=["installs", "has them", "fails", "other system"],
)
def test_packages_come_from_the_cache(
    folder: Folder, system: str, installs: str, output: str
) -> None:
    """The fallback runs where the cache lacks the system or its packages cannot be installed."""
    tmp = folder.harness.tmp
    of_this = 'cd /; . /etc/os-release; printf %s "$ID$VERSION_ID"'
    own = subprocess.run(["sh", "-c", of_this], capture_output=True, check=True).stdout.decode()
    group = tmp / f"cache/ssh-{system or own}"
    group.mkdir(parents=True)
    (tmp / "cache/nfs-x").mkdir()
    (group / "packages").write_text("some packages\n")
    (group / "b.deb").touch()
    (group / "a.deb").touch()
    folder.run(
        "import plugins.plugin_utils as utils\n"
        f"utils.CACHE = {str(tmp / 'cache')!r}\n"
        "config, pre, post = utils.plugin_init()\n"
        "command = utils.try_to_install_by_cache('ssh', ['echo b', 'echo c'])\n"
        "utils.PluginHelper(config).inject_commands([command], pre)\n"
    )
    assert not (folder.harness.pai_dir / "package_cache/nfs-x").exists()
    programs = tmp / "programs"
    programs.mkdir()
    dpkg = programs / "dpkg"
    verifies = '[ "$1" = -i ] && touch "$0.installed"; [ -e "$0.installed" ]'
    dpkg.write_text(f'#!/bin/sh\necho "$@" >> {tmp}/ran\n{installs or verifies}\n')
    dpkg.chmod(0o755)
    script = folder.script("pre")
    done = subprocess.run(
        ["bash", script],
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    ran = tmp / "ran"
    assert (ran.read_text() if ran.exists() else "") + done.stdout == output

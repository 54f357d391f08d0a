"""The image by itself: its default command, its users, what is in it, and an operator's own."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any, Protocol

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text

ROOT = pathlib.Path(__file__).parents[2]
COMMANDS = json.dumps({"commands": ["echo hi"]})
NOBODY = 65534
MAX_MB = 140
"""The whole image, unpacked."""

MAX_PULLED_MB = 60
"""What a node downloads, in layers of zstd."""


class _Done(Protocol):
    code: int
    out: str
    err: str
    said: str


class _Podman(Protocol):
    def image(self, name: str) -> str: ...
    def ok(self, *argv: str | pathlib.Path, timeout_s: float = 60.0) -> str: ...
    def run(self, *argv: str | pathlib.Path, stdin: str | None = None) -> _Done: ...


class _Pod(Protocol):
    podman: _Podman
    image: str
    uid: str
    env: dict[str, str]
    volume: pathlib.Path
    config: pathlib.Path
    data: pathlib.Path
    logs: pathlib.Path

    def init(self, *args: str, options: tuple[str, ...] = (), **env: str) -> _Done: ...
    def start(self, image: str, options: tuple[str, ...] = (), **env: str) -> None: ...
    def end(self) -> _Done: ...


# --- what is in it ----------------------------------------------------------------------------------


def test_version(podman: _Podman, image: str) -> None:
    """`--version` names what a scanner or an advisory asks for, the bundle's parts too."""
    said = podman.ok("run", "--rm", image, "--version")
    assert said.startswith("pairun ")
    assert "built-in playbooks " in said
    inside = next(line for line in said.splitlines() if line.startswith("  "))
    for name in ("python3.11", "openssl", "musl", "zlib", "requests", "jinja2"):
        assert f"{name} " in inside


def test_labels_and_entry(podman: _Podman, image: str) -> None:
    """The image says what it is, and without arguments it is the init phase."""
    (found,) = json.loads(podman.ok("image", "inspect", image))
    config: dict[str, Any] = found["Config"]
    assert config["Entrypoint"] == ["pairun"]
    assert config["Cmd"] == ["init"]
    labels = {n.removeprefix("org.opencontainers.image."): v for n, v in config["Labels"].items()}
    assert labels["title"] == "pairun"
    assert (labels["version"], labels["revision"]) == ("1.2.3", "abc")
    assert labels["licenses"] == "MIT"
    assert not [v for v in config["Env"] if "PIP" in v or "CACHE" in v or "DEBIAN" in v]


def test_size(podman: _Podman, image: str, tmp_path: pathlib.Path) -> None:
    """It is small on a node's disk and on the wire."""
    (found,) = json.loads(podman.ok("image", "inspect", image))
    assert found["Size"] < MAX_MB * 1_000_000
    folder = tmp_path / "pushed"
    podman.ok(
        "push", "--quiet", "--compress", "--compression-format=zstd", image, f"dir:{folder}",
        timeout_s=600.0,
    )  # fmt: skip
    assert sum(path.stat().st_size for path in folder.iterdir()) < MAX_PULLED_MB * 1_000_000


def test_nothing_that_is_not_needed(podman: _Podman, image: str) -> None:
    """There is no compiler, package manager or documentation, and nothing that everybody may write to."""
    looked = podman.ok(
        "run", "--rm", "--entrypoint=sh", image, "-c",
        "which gcc pip pip3 apt dpkg perl; ls -d /usr/share/man /opt/build /src 2>/dev/null; "
        "find / -xdev -perm -0002 ! -type l ! -path '/proc/*' ! -perm -1000; echo end",
    )  # fmt: skip
    assert looked == "end\n"


def test_no_script_of_a_shell(podman: _Podman, image: str) -> None:
    """No shell starts pairun; the scripts there are those that git brings for submodules."""
    looked = podman.ok(
        "run", "--rm", "--entrypoint=sh", image, "-c",
        "find /usr/bin /usr/lib/git-core /opt -xdev -type f | while read -r file; do "
        "case \"$(head -c 20 \"$file\" 2>/dev/null | head -n 1)\" in '#!'*sh*) echo \"$file\";; esac; done",
    )  # fmt: skip
    assert all(line.startswith("/usr/lib/git-core/") for line in looked.splitlines()), looked


def test_what_init_programs_find(podman: _Podman, image: str) -> None:
    """Python with its packages, git with LFS and submodules, ssh and a shell with the usual programs work."""
    script = (
        "import bz2, ctypes, decimal, lzma, ssl, uuid, zlib\n"
        "import jsonschema, kubernetes.client, rich.console, rpds, yaml\n"
        "assert yaml.__with_libyaml__ and kubernetes.client.V1Pod\n"
        "assert ssl.create_default_context().cert_store_stats()['x509_ca'] > 100\n"
        "print('imported')\n"
    )
    said = podman.ok("run", "--rm", "--entrypoint=python3", image, "-c", script)
    assert said == "imported\n"
    said = podman.ok(
        "run", "--rm", "--entrypoint=bash", image, "-euc",
        "ssh -V 2>&1 | cut -c 1-8; git lfs version | cut -c 1-7; cd /tmp; git init -q inner; "
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
        "git -C inner commit -q --allow-empty -m x; git init -q outer; cd outer; "
        "git -c protocol.file.allow=always submodule --quiet add file:///tmp/inner inner; git commit -qm x; "
        "git -c protocol.file.allow=always clone -q --recurse-submodules file:///tmp/outer /tmp/clone 2>&1; "
        "git -C /tmp/clone submodule status | grep -c inner; "
        "echo b a | tr ' ' '\\n' | sort | xargs",
    )  # fmt: skip
    assert said.splitlines() == ["OpenSSH_", "git-lfs", "1", "a b"]


def test_messages_of_gits_scripts(podman: _Podman, image: str) -> None:
    """The program that puts variables into them replaces the named ones, and nothing else."""
    said = podman.ok(
        "run", "--rm", "--entrypoint=bash", image, "-c",
        ". /usr/lib/git-core/git-sh-i18n; export other=no; name='a $other b'; "
        "eval_gettextln 'in $name: ${missing}. 100% $5 $$ ${'",
    )  # fmt: skip
    assert said == "in a $other b: . 100% $5 $$ ${\n"


def test_bill_of_materials(podman: _Podman, image: str) -> None:
    """It lists what the image, the program and the tools are made of; licences are beside it."""
    listed = json.loads(
        podman.ok("run", "--rm", "--entrypoint=cat", image, "/opt/pairun/sbom.cdx.json")
    )
    urls = {component["purl"].partition("@")[0] for component in listed["components"]}
    debian = {"git", "libc6", "openssl", "openssh", "musl", "rclone", "golang-1.19-go"}
    assert {*(f"pkg:deb/debian/{name}" for name in debian), "pkg:pypi/jinja2"} <= urls
    licences = podman.ok("run", "--rm", "--entrypoint=ls", image, "/opt/pairun/licences").split()
    assert {"openssl", "openssh", "musl", "python3.11", "rclone", "golang-1.19-go"} <= set(licences)


def test_review(podman: _Podman, image: str) -> None:
    """`docker run -i IMAGE --dry-run -` reviews a job of standard input, as any user, offline."""
    job = (ROOT / "examples" / "hello.yaml").read_text()
    options = ("--network=none", "--read-only", "--user=65534", "--cap-drop=all")
    done = podman.run("run", "--rm", "-i", *options, image, "--dry-run", "-", stdin=job)
    assert done.code == 0, done.said
    assert "user_command" in done.out
    assert "using built-in defaults only" in done.out


# --- the init container -------------------------------------------------------------------------------


def test_the_default_command(pod: _Pod) -> None:
    """Without arguments it prepares the volume; what it prints is shown and stands in init.log."""
    done = pod.init(RUNTIME_CONFIG=COMMANDS)
    assert done.code == 0, done.said
    assert (pod.volume / "runtime.d" / "plan.json").exists()
    assert (pod.volume / "runtime").stat().st_mode & 0o111
    assert "init phase: success" in done.out
    assert (pod.logs / "init.log").read_text().startswith(done.out)
    assert pod.logs.stat().st_mode & 0o777 == 0o777


def test_a_failure(pod: _Pod) -> None:
    """The exit status is init's own, and what was wrong is shown and kept."""
    done = pod.init(RUNTIME_CONFIG="commands: 7")
    assert done.code == 1
    assert "error[PR712]" in done.said
    assert "error[PR712]" in (pod.logs / "init.log").read_text()


def test_again_in_the_same_volume(pod: _Pod) -> None:
    """A restarted Pod starts clean: logs are put aside, init.log goes on, what is mounted stays."""
    first = pod.init(RUNTIME_CONFIG=COMMANDS)
    pod.start(pod.podman.image("busybox"))
    assert pod.end().code == 0
    (pod.volume / "stale").write_text("old")
    (pod.volume / "run" / "release").touch()
    secrets, mounted = pod.data / "secrets", pod.data / "mounted"
    for folder in (secrets, mounted):
        folder.mkdir()
        (folder / "here").write_text("kept")
    options = (
        "-v", f"{secrets}:/usr/local/pai/user-extension-secrets:ro",
        "-v", f"{mounted}:/usr/local/pai/plugins/deep:ro",
    )  # fmt: skip
    second = pod.init(RUNTIME_CONFIG=COMMANDS, options=options)
    assert second.code == 0, second.said
    assert second.err == ""
    log = (pod.logs / "init.log").read_text()
    assert log.startswith(first.out)
    assert second.out in log
    assert (pod.logs / "user-stdout" / "current").read_text() == "hi\n"
    assert (pod.logs / "prelog_1" / "runtime.log").exists()
    assert sorted(p.name for p in pod.logs.iterdir()) == [
        "init.log",
        "journal.jsonl",
        "prelog_1",
        "user-all",
        "user-stderr",
        "user-stdout",
    ]
    assert not (pod.volume / "stale").exists()
    assert not (pod.volume / "run" / "release").exists()
    assert (secrets / "here").read_text() == (mounted / "here").read_text() == "kept"


def test_stopped(pod: _Pod) -> None:
    """A stop of the init container reaches its tasks; it never ends with 0."""
    (pod.config / "init.yaml").write_text(
        "phase: init\npatches:\n  - before: barrier\n    id: wait\n    name: Wait\n"
        "    cmd: {script: 'echo waiting; kill -TERM 1; sleep 1000'}\n"
    )
    done = pod.init(RUNTIME_CONFIG=COMMANDS, options=("--user=0",))
    assert done.code == 143, done.said
    assert "waiting" in (pod.logs / "init.log").read_text()


def test_not_root(pod: _Pod) -> None:
    """Init as another user works where that user may write to the volume (fsGroup)."""
    _as_kubelet_does(pod.volume)
    for _ in range(2):
        done = pod.init(RUNTIME_CONFIG=COMMANDS, options=_AS_NOBODY)
        assert done.code == 0, done.said
    assert (pod.volume / "runtime").stat().st_uid == NOBODY
    pod.start(pod.podman.image("nonroot"))
    ended = pod.end()
    assert ended.code == 0, ended.said
    assert (pod.logs / "user-stdout" / "current").read_text() == "hi\n"


def test_not_root_after_a_root(pod: _Pod) -> None:
    """What is root's on the volume is more than such an init can clean, and it says so."""
    _as_kubelet_does(pod.volume)
    (pod.volume / "code").mkdir()
    (pod.volume / "code" / "of-root").touch()
    done = pod.init(RUNTIME_CONFIG=COMMANDS, options=_AS_NOBODY)
    assert done.code == 1
    assert "error[PR701]" in done.said
    assert "Permission denied" in done.said


def test_not_root_and_not_writable(pod: _Pod) -> None:
    """A volume that its user may not write to is named, before anything was run."""
    done = pod.init(RUNTIME_CONFIG=COMMANDS, options=_AS_NOBODY)
    assert done.code == 1
    assert "error[PR701]: the work directory /usr/local/pai cannot be used" in done.said


_AS_NOBODY = (f"--user={NOBODY}:{NOBODY}", "--cap-drop=all", "--read-only")


def _as_kubelet_does(volume: pathlib.Path) -> None:
    """Give the volume the group of the Pod's fsGroup."""
    os.chown(volume, 0, NOBODY)
    volume.chmod(0o2777)


# --- a Framework ------------------------------------------------------------------------------------


def test_a_saved_framework(pod: _Pod) -> None:
    """A job of OpenPAI with its Framework: peers, ports and the command are those of the job."""
    port = "echo $PAI_PORT_LIST_worker_0_web"
    job = {
        "protocolVersion": 2, "name": "small", "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
        "taskRoles": {"worker": {
            "instances": 2, "dockerImage": "i",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {"web": 1}},
            "commands": ["echo $PAI_TASK_ROLE_INSTANCES $PAI_HOST_IP_worker_1", port],
        }},
    }  # fmt: skip
    read, problems = read_job(read_text(Source("job", "job", json.dumps(job)), JS))
    assert read is not None, list(problems)
    pods = [{"podUID": pod.uid, "podHostIP": "10.0.0.1"}, {"podUID": "b", "podHostIP": "10.0.0.2"}]
    framework = with_statuses(make_framework(read), {"worker": pods})
    (pod.config / "framework.json").write_text(json.dumps(framework))
    (pod.config / "init.yaml").write_text("phase: init\npatches: [{disable: image_check}]\n")
    done = pod.init("init", "--framework", "/usr/local/pai-config/framework.json",
                    "--role", "worker", "--index", "0")  # fmt: skip
    assert done.code == 0, done.said
    pod.start(pod.podman.image("busybox"))
    ended = pod.end()
    assert ended.code == 0, ended.said
    *_, peers, number = ended.out.splitlines()
    assert peers == "worker:0,worker:1 10.0.0.2"
    assert 15000 <= int(number) < 40000


# --- an operator's own image ------------------------------------------------------------------------


def test_an_operators_image(podman: _Podman, cluster_image: str) -> None:
    """Its root is named, its module has a page, its default is in the review with its place."""
    assert "/opt/cluster" in podman.ok("run", "--rm", cluster_image, "--version")
    assert "free_space" in podman.ok("run", "--rm", cluster_image, "doc", "free_space")
    job = (ROOT / "examples" / "hello.yaml").read_text()
    why = ("--why", "image_check.retries")
    done = podman.run("run", "--rm", "-i", cluster_image, "--dry-run", *why, "-", stdin=job)
    assert done.code == 0, done.said
    assert "/opt/cluster/playbooks/init.yaml:6:14" in done.out
    done = podman.run("run", "--rm", "-i", cluster_image, "--dry-run", "-", stdin=job)
    assert "! free_space" in done.out
    assert "retries = 5" in done.out


def test_an_operators_module_runs(make_pod: Callable[[], _Pod], cluster_image: str) -> None:
    """The module runs where the operator's playbook says."""
    pod = make_pod()
    pod.image = cluster_image
    done = pod.init(RUNTIME_CONFIG=COMMANDS)
    assert done.code == 0, done.said
    assert "free_space: The node has space" in done.out

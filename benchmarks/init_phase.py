"""What the init phase costs a Pod: the whole process, of a job for which nobody is waited.

It is compared with what OpenPAI's runtime spends on starting its programs alone, imitated by the
order in which its ``src/init`` calls them: a bash, and seven times a Python that imports what the
program does, and ends (``framework_parser.py`` twice, ``initializer.py`` and the one plugin's
``init.py``, ``port.py``, ``image_checker.py``, ``user_command_renderer.py``). All that they do is
left out, and so are the barrier's program, ``pystache`` (which each of them imports), ``find``,
``mv`` and ``cp``: the real one takes longer. Where ``requests`` is not installed, what it stands on
is imported in its place.

Both find compiled what they import, as in an image, and the same Python runs both. CPU time is
compared, of runs in turns: a busy machine slows both, and neither evenly. Every run finds its volume
as a new Pod has it, with nothing of an earlier run.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import ROOT, Row, cpu_ms, in_turns
from pairun.errors import Problems, Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import with_statuses
from pairun.playbook import readyrules
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_text
from pairun.volume.bundle import find_bundle
from tests.restserver import framework_of

TIMES = 15

SHARE_OF_OLD = 0.8
"""What the phase may cost, as a share of the old runtime's starts."""

_SECRETS = {"token": "a-secret-that-is-looked-for"}
_PARSER = "argparse, base64, hashlib, logging, gzip, json, os, sys, re"
_OLD_IMPORTS = (
    _PARSER,
    _PARSER,
    "argparse, copy, logging, os, re, subprocess, sys, yaml",
    "logging, os, pathlib, sys, argparse, shutil, yaml, re",
    "argparse, logging, os, re, sys, socket",
    "argparse, base64, copy, http, logging, os, re, sys, {requests}, yaml",
    "argparse, logging, os, sys, yaml, re",
)
"""What each Python of OpenPAI's runtime imports, in the order in which they start."""


class _Registry(http.server.BaseHTTPRequestHandler):
    """Has every image."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Say so."""
        self.send_response(200)
        self.send_header("Docker-Content-Digest", "sha256:" + "0" * 64)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing of it."""


class Fixture(NamedTuple):
    """A Pod whose init container is about to start.

    Attributes:
        volume: of the Pod.
        run: run the phase to its end, on the volume as the platform made it; it may be run again.
        env: of its Python.
    """

    volume: pathlib.Path
    run: Callable[[], None]
    env: Mapping[str, str]


def rows() -> Iterator[Row]:
    """The phase beside the old runtime's starts."""
    ssh = {"plugin": "ssh", "parameters": {"jobssh": True}}
    with prepared([ssh]) as fixture:
        script = _old_starts()
        old = {**fixture.env, "PYTHON": sys.executable}
        fixture.run()  # compiles what it imports
        measured, starts = in_turns(
            TIMES,
            lambda: cpu_ms(fixture.run),
            lambda: cpu_ms(lambda: _run(["bash", "-c", script], old)),
        )
    with_bundle = "with" if find_bundle(os.environ) else "without"
    yield Row(
        "CPU of pairun init, two roles", "ms", measured, SHARE_OF_OLD * starts.least,
        "the old runtime's starts", starts,
        f"{with_bundle} the bundle to hand over",
    )  # fmt: skip


@contextlib.contextmanager
def prepared(plugins: Sequence[Mapping[str, Any]]) -> Iterator[Fixture]:
    """A Pod of a job of two roles, with a registry that has its image.

    Args:
        plugins: of the job.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Registry) as registry,
    ):
        threading.Thread(target=registry.serve_forever, daemon=True).start()
        path = pathlib.Path(folder)
        env = {**os.environ, "PYTHONPYCACHEPREFIX": str(path / "compiled")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        rules = path / "rules.json.z"
        env[readyrules.RULES_VARIABLE] = str(rules)
        made = readyrules.made_rules(open_content([], {}), Problems())
        rules.write_bytes(readyrules.packed(made))
        image = f"127.0.0.1:{registry.server_address[1]}/team/image:1"
        ours = _prepare(path, env, _framework(image, plugins))
        volume = path / "pai"
        mounted = {entry.name for entry in volume.iterdir()}

        def run() -> None:
            for entry in volume.iterdir():
                if entry.name not in mounted:
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            _run(_command(path), ours)

        yield Fixture(volume, run, env)
        registry.shutdown()


def _old_starts() -> str:
    """The script that starts what OpenPAI's runtime starts."""
    try:
        import requests  # noqa: F401
    except ImportError:
        found = "urllib.request, http.client, ssl"
    else:
        found = "requests"
    lines = (f'"$PYTHON" -c "import {i.format(requests=found)}"' for i in _OLD_IMPORTS)
    return "\n".join(["set -o errexit", *lines])


def _prepare(
    folder: pathlib.Path, env: Mapping[str, str], framework: Mapping[str, Any]
) -> dict[str, str]:
    """Leave a volume and the Framework of a job; returns the environment of its init container."""
    volume = folder / "pai"
    (volume / "secrets").mkdir(parents=True)
    (volume / ".pairun").touch()
    (volume / "secrets" / "secrets.yaml").write_text(json.dumps(_SECRETS))
    (folder / "framework.json").write_text(json.dumps(framework))
    return {
        **env, "PAIRUN_PAI_DIR": str(volume), "PAIRUN_HOST_IP": "127.0.0.1",
        "PAIRUN_APP_UID": str(os.getuid()), "FC_POD_UID": "worker-1",
    }  # fmt: skip


def _framework(image: str, plugins: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A job of two roles and five instances, each with an address."""
    document = {
        "protocolVersion": 2,
        "name": "measured",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
        "secrets": _SECRETS,
        "taskRoles": {
            name: {
                "instances": count,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0, "ports": {"http": 1}},
                "commands": ["login <% $secrets.token %>", "exec train"],
            }
            for name, count in (("server", 1), ("worker", 4))
        },
        "extras": {"com.microsoft.pai.runtimeplugin": list(plugins)},
    }
    # As people write it: the REST server masks such secrets alone.
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in document.items())
    job, problems = read_job(read_text(Source("job", "job", text), JS))
    if job is None:
        raise RuntimeError(f"not a job: {list(problems)}")
    pods = {
        role.fc_name: [
            {"podUID": f"{role.fc_name}-{n}", "podHostIP": f"10.0.0.{n + 1}"}
            for n in range(role.instances)
        ]
        for role in job.roles
    }
    return with_statuses(framework_of(job), pods)


def _command(folder: pathlib.Path) -> list[str]:
    file = str(folder / "framework.json")
    phase = [sys.executable, "-m", "pairun", "init"]
    return [*phase, "--framework", file, "--role", "worker", "--index", "1"]


def _run(argv: list[str], env: Mapping[str, str]) -> None:
    done = subprocess.run(
        argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    # A registry that does not answer fails no task, and takes another time.
    if done.returncode or "ignored" in done.stdout:
        raise RuntimeError(f"{argv[:4]}: {done.returncode}\n{done.stdout}{done.stderr}")

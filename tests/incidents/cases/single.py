"""Jobs of one process or script that fail, or run well, in ways that are easily mistaken."""

from __future__ import annotations

import os
import signal

from tests.incidents.incident import Incident, Label, Outside, alone, ranks

_SETUP = """from setuptools import Extension, setup

setup(name="fastops", version="0.3", ext_modules=[Extension("fastops", ["fastops.c"])])
"""


def _extension(job: str) -> None:
    """Write a package whose C source includes a header that is not installed."""
    os.mkdir(os.path.join(job, "fastops"))
    for name, text in {"setup.py": _SETUP, "fastops.c": '#include "cuda_ops.h"\n'}.items():
        with open(os.path.join(job, "fastops", name), "w") as f:
            f.write(text)


def _start(job: str) -> None:
    """Write a start script that nobody may execute."""
    with open(os.path.join(job, "start.sh"), "w") as f:
        f.write("#!/bin/bash\npython saving.py\n")


_REQUESTS = "; ".join(
    f"curl -s -o /dev/null {request} || true; sleep 0.3"
    for request in ("localhost:8000/health", "localhost:8000/v1/models", "-X POST localhost:8000/")
)

INCIDENTS: dict[str, Incident] = {
    "server-healthy": Incident(
        Label("a server answers with 404 and 501 and is stopped by its script", "none", None),
        alone(f"python -m http.server 8000 & sleep 1; {_REQUESTS}; kill $!; wait; echo stopped"),
    ),
    "build-fails": Incident(
        Label(
            "pip cannot compile an extension: a header is missing",
            "build_failed", "after_fix",
        ),
        alone(
            "set -e; pip install --no-build-isolation --no-deps ./fastops; python -c 'import fastops'"
        ),
        files=_extension,
    ),
    "not-executable": Incident(
        Label("the start script has no permission to run", "permission_denied", "after_fix"),
        alone("./start.sh; exit $?"),
        files=_start,
    ),
    "syntax-error": Incident(
        Label("a parenthesis is missing in the program, for all ranks", "syntax_error", "after_fix"),
        alone("mv unclosed.txt unclosed.py; torchrun --standalone --nproc-per-node 2 unclosed.py"),
    ),
    "ranks-stopped-gracefully": Incident(
        Label(
            "all ranks get SIGTERM, save a checkpoint and exit",
            "terminated_sigterm", "retry", None, ["evicted"],
        ),
        ranks("exec python graceful.py", 4),
        outside=Outside(signal.SIGTERM, "step 10"),
        pods=True,
    ),
}  # fmt: skip

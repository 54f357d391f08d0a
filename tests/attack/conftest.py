"""The fixtures of the rooms that are attacked: PID 1 as a process, a shell, servers and peers."""

from __future__ import annotations

from tests.cli.conftest import shell
from tests.modules.conftest import harness
from tests.modules.git_clone.conftest import served
from tests.modules.image_check.conftest import ask, elsewhere, registry
from tests.pid1.conftest import (
    driver,
    eventually,
    in_namespace,
    print_signals,
    pytest_generate_tests,
    start,
    succeeded,
    volume,
)
from tests.rendezvous.conftest import gathering

__all__ = [
    "ask", "driver", "elsewhere", "eventually", "gathering", "harness", "in_namespace",
    "print_signals", "pytest_generate_tests", "registry", "served", "shell", "start", "succeeded",
    "volume",
]  # fmt: skip

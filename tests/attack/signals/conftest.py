"""The runtime phase as a process, as the tests of PID 1 start it."""

from tests.pid1.conftest import (
    driver,
    eventually,
    in_namespace,
    print_signals,
    pytest_generate_tests,
    start,
    volume,
)

__all__ = [
    "driver", "eventually", "in_namespace", "print_signals", "pytest_generate_tests", "start", "volume",
]  # fmt: skip

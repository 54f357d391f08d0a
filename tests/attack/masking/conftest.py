"""The runtime phase as a process, as the tests of PID 1 start it."""

from tests.pid1.conftest import driver, in_namespace, start, succeeded, volume

__all__ = ["driver", "in_namespace", "start", "succeeded", "volume"]

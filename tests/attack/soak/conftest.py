"""The volume that the tests of PID 1 use."""

from tests.pid1.conftest import volume

__all__ = ["volume"]

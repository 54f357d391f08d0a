"""A shell as the tests of the command line use it."""

from __future__ import annotations

from tests.cli.conftest import shell

__all__ = ["shell"]

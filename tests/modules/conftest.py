"""The built-in modules by name, in a real folder of the test."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairun import testing
from pairun.base.paths import PLAIN_FILES
from pairun.contract.arguments import build
from pairun.contract.kinds import ArgumentProblem
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.host.context import HostContext
from pairun.module import Module
from pairun.testing import Outcome, RealWorld
from pairun.testing.runs import run_once
from tests.doors import InnerWatch


class Harness:
    """Runs built-in modules by name on real files below one folder.

    Attributes:
        tmp: the folder, ``{tmp}`` in arguments and variables.
        pai_dir: the shared volume.
        log: the lines that modules logged.
    """

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.log: list[str] = []
        self.pai_dir = tmp / "pai"
        self.pai_dir.mkdir()

    def load(self, name: str) -> type[Module]:
        """The class of a built-in module."""
        return load_module(name, built_in_modules()[name])

    def make(self, name: str, args: Mapping[str, Any]) -> Module:
        """A module with valid arguments."""
        return testing.make(self.load(name), self.world().fill(args))

    def problems(self, name: str, args: Mapping[str, Any]) -> list[ArgumentProblem]:
        """What is wrong with arguments."""
        return build(self.load(name), self.world().fill(args))[1]

    def world(
        self,
        env: Mapping[str, str] | None = None,
        *,
        deadline: float | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> RealWorld:
        """This machine with a small environment.

        Args:
            env: further variables.
            deadline: `time.monotonic` seconds at which the attempt is stopped.
            answers: method of the context to what it answers in place of this machine.
        """
        left_s = None if deadline is None else deadline - time.monotonic()
        world = RealWorld(self.tmp, env=env, answers=answers, deadline_s=left_s)
        world.log = self.log
        return world

    def context(
        self, env: Mapping[str, str] | None = None, deadline: float | None = None
    ) -> HostContext:
        """This machine with a small environment, as a module gets it."""
        return self.world(env, deadline=deadline).ctx

    def run(
        self,
        name: str,
        args: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Outcome:
        """One run, and the second one that finds nothing to do."""
        return testing.run(self.make(name, args), self.world(env, deadline=deadline))

    def run_once(
        self, name: str, args: Mapping[str, Any], env: Mapping[str, str] | None = None
    ) -> Outcome:
        """One run alone."""
        return run_once(self.make(name, args), self.world(env))

    def table(self, name: str, row: Mapping[str, Any]) -> Outcome:
        """One row of a table; ``env`` holds further variables."""
        fields = {key: value for key, value in row.items() if key != "env"}
        return testing.run_case(self.load(name), fields, self.world(row.get("env")))

    def review(self, module: Module) -> str:
        """The kind of verdict in the empty Pod."""
        return testing.review(module, str(self.pai_dir)).kind

    def changes_nothing(self, module: Module, env: Mapping[str, str] | None = None) -> None:
        """Require that a run finds nothing to do and touches nothing."""
        testing.changes_nothing(module, self.world(env))

    def snapshot(self) -> Mapping[str, Hashable]:
        """Every path below the folder with what changes when somebody touches it."""
        return self.world().snapshot()


@pytest.fixture
def harness(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """A harness on a directory of the test's own, whose volume is reached through the door alone."""
    harness = Harness(tmp_path)
    with InnerWatch(harness.pai_dir, tmp_path_factory.mktemp("watch") / "report") as watch:
        yield harness
    assert not watch.violations()


@pytest.fixture(autouse=True)
def plain_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests put the platform's files onto the volume themselves, as an engine without mounts does."""
    monkeypatch.setenv(PLAIN_FILES, "1")


def place_tools(tools: Path, target: Path) -> None:
    """Put the image's programs onto a volume as init does: as files, for no link is followed there."""
    shutil.copytree(tools, target, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)

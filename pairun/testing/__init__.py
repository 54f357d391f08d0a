"""Test a module: in a fake world or in a real folder, with any test framework.

Example::

    from pairun.testing import FakeWorld, load, make, run

    def test_the_directory_is_made() -> None:
        world = FakeWorld()
        outcome = run(make(load("modules/make_dir.py"), {"path": "/data"}), world)
        assert outcome.changed
        assert world.changes == ["make_dir"]

`run` always makes a second run, which must find nothing to do and change nothing.
"""

from __future__ import annotations

from pairun.testing.cases import Case as Case
from pairun.testing.cases import run_case as run_case
from pairun.testing.fakeworld import FakeWorld as FakeWorld
from pairun.testing.realworld import RealWorld as RealWorld
from pairun.testing.runs import Outcome as Outcome
from pairun.testing.runs import changes_nothing as changes_nothing
from pairun.testing.runs import load as load
from pairun.testing.runs import make as make
from pairun.testing.runs import problems as problems
from pairun.testing.runs import review as review
from pairun.testing.runs import run as run
from pairun.testing.script import Call as Call
from pairun.testing.script import in_turn as in_turn
from pairun.testing.world import World as World

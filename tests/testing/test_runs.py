"""A run makes the second run too, and an author who breaks the contract learns it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from pairun import testing
from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Permanent,
    Result,
    Skip,
    StateModule,
    Verdict,
    arg,
    define,
    no_change,
    will_change,
)
from pairun.testing import FakeWorld, RealWorld, World


@define
class Line(StateModule):
    """Keep a line in a file; with a fault where the test wants one."""

    path: str = arg("The file.")
    fault: str = arg("What is wrong with this module.", default="")
    wait: Duration = arg("Nothing.", default=Duration(1.0))

    def probe(self, ctx: Context) -> bytes | None:
        if self.fault == "probe writes":
            ctx.write_file(self.path, b"x")
        if self.fault == "skip":
            raise Skip("no reason")
        return ctx.read_file(self.path)

    def plan(self, state: bytes | None) -> Verdict:
        return (
            no_change("it is there")
            if state == b"line"
            else will_change("write it", "none", "line")
        )

    def apply(self, ctx: Context) -> Result:
        if self.fault == "permanent":
            raise Permanent("no", fault="user")
        ctx.write_file(self.path, b"half" if self.fault == "half" else b"line")
        return Result(values={"done": True})


@define
class Unverified(Line):
    """The same, without a promise."""

    verify: ClassVar[bool] = False


@define
class Picky(Line):
    """The same; a wrong line fails its probe."""

    def probe(self, ctx: Context) -> bytes | None:
        line = super().probe(ctx)
        if line == b"half":
            raise Permanent("half is no line", fault="user")
        return line


@define
class Careless(Line):
    """The same, with a mistake in its probe."""

    def probe(self, ctx: Context) -> bytes | None:
        line = super().probe(ctx)
        if line == b"half":
            raise ValueError("half")
        return line


@define
class Free(CheckModule):
    """A port is free."""

    port: int = arg("The port.")

    def check(self, ctx: Context) -> Result:
        return Result(message=str(ctx.port_taken(self.port)))


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Either world."""
    return FakeWorld() if request.param == "fake" else RealWorld(tmp_path)


def run(world: World, fault: str = "", cls: type[StateModule] = Line) -> testing.Outcome:
    """Run the module on a file of the world."""
    return testing.run(
        testing.make(cls, {"path": f"{world.folder}/x", "fault": fault, "wait": "10s"}), world
    )


def test_a_run_changes_once(world: World) -> None:
    """The first run changes, a further one finds nothing to do."""
    outcome = run(world)
    assert outcome.changed
    assert outcome.result == Result(values={"done": True})
    assert outcome.verdict == will_change("write it", "none", "line")
    assert world.text(f"{world.folder}/x") == "line"
    again = run(world)
    assert (again.changed, again.result) == (False, None)
    assert world.changes == ["write_file"]


def test_a_module_that_does_half_the_work_fails(world: World) -> None:
    """The second run must find nothing to do, unless the module cannot promise it."""
    with pytest.raises(AssertionError, match="the second run must find nothing to do"):
        run(world, "half")
    assert run(world, "half", Unverified).changed


def test_the_second_run_names_what_it_finds_and_what_fails_in_it(world: World) -> None:
    """The message shows the verdict in words, or the failure that the second probe raises."""
    with pytest.raises(AssertionError, match=r"but: will change: write it \(none → line\)$"):
        run(world, "half")
    world.put(f"{world.folder}/x", "other")
    with pytest.raises(AssertionError, match="but it failed: Permanent: half is no line"):
        run(world, "half", Picky)
    world.put(f"{world.folder}/x", "other")
    with pytest.raises(AssertionError, match="but it failed: ValueError: half"):
        run(world, "half", Careless)


def test_a_probe_that_changes_something_fails(world: World) -> None:
    """Reading is all that probe may do."""
    with pytest.raises(AssertionError, match="write_file in probe"):
        run(world, "probe writes")
    assert world.text(f"{world.folder}/x") is None


def test_failures_and_skips_are_outcomes(world: World) -> None:
    """What a module raises on purpose is what the test looks at."""
    failure = run(world, "permanent").failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    skip = run(world, "skip").skip
    assert skip is not None
    assert skip.because == "no reason"


def test_a_check_module_is_checked() -> None:
    """A check returns its result, and has no second run."""
    outcome = testing.run(Free(port=80), FakeWorld(answers={"port_taken": "taken"}))
    assert (outcome.result, outcome.verdict) == (Result(message="taken"), None)


def test_touching_a_file_in_the_second_run_fails(tmp_path: Path) -> None:
    """Not one inode or time may differ."""
    world = RealWorld(tmp_path)
    (tmp_path / "x").write_text("line")

    def read(path: str, **_: Any) -> bytes:
        Path(path).write_bytes(b"line")
        return b"line"

    world = RealWorld(tmp_path, answers={"read_file": read})
    with pytest.raises(AssertionError, match=f"the second run touched {tmp_path}/x"):
        testing.changes_nothing(Line(path=f"{tmp_path}/x"), world)


def test_arguments_are_those_of_a_playbook() -> None:
    """Durations have units, and a wrong argument is said."""
    made: Any = testing.make(Line, {"path": "/x", "wait": "2m"})
    assert made.wait == 120.0
    with pytest.raises(AssertionError, match="there is no argument 'paht'"):
        testing.make(Line, {"paht": "/x"})
    assert testing.problems(Line, {"path": "/x"}) == []
    assert len(testing.problems(Line, {})) == 1


def test_a_review_is_in_an_empty_pod() -> None:
    """On the volume nothing is; elsewhere only the run can tell."""
    assert testing.review(Line(path="/usr/local/pai/x")).kind == "will_change"
    assert testing.review(Line(path="/etc/x")).because == "depends on /etc/x in the container"


def test_a_module_is_loaded_by_path() -> None:
    """The class of a file, as a plan loads it."""
    path = Path(__file__).parents[2] / "modules" / "file.py"
    assert issubclass(testing.load(path), StateModule)


def test_a_temporary_folder_is_removed() -> None:
    """A world that has made its folder takes it away, and keeps one that it was given."""
    with RealWorld(env={"HERE": "{tmp}"}) as world:
        folder = Path(world.folder)
        assert world.ctx.env["HERE"] == world.folder
        assert run(world).changed
    assert not folder.exists()


@define
class Untyped(CheckModule):
    """Returns what no attempt accepts."""

    def check(self, ctx: Context) -> Any:
        return {"free": 1}


@define
class Yes(Line):
    """Its plan is no verdict."""

    def plan(self, state: bytes | None) -> Any:
        return True


@pytest.mark.parametrize(
    ("cls", "args", "says"),
    [
        (Untyped, {}, r"check\(\) must return a Result or None, it returned \{'free': 1\}"),
        (Yes, {"path": "/x"}, r"plan\(\) must return a Verdict, it returned True"),
    ],
)
def test_a_wrong_return_fails_as_in_a_run(cls: Any, args: dict[str, str], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        testing.run(testing.make(cls, args), FakeWorld())

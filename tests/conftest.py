"""What every test stands on: the shared texts, and no silent skips where nothing may be skipped."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pairun.base.refusals import REFUSALS
from tests.effort import EFFORT, NIGHT, cases
from tests.emulation import arm64_programs
from tests.podman import Podman
from tests.surroundings import GIVEN, make_plain

if TYPE_CHECKING:
    from tests.desk import Desk

# How long an example takes says something of the machine. In CI, hypothesis tries the same examples
# every time: what it finds elsewhere becomes an example of its own. More effort tries other ones.
settings.register_profile(
    "pairun",
    settings.default,
    deadline=None,
    max_examples=cases(settings().max_examples),
    derandomize=bool(os.environ.get("CI")) and EFFORT < 1,
)
settings.load_profile("pairun")

SHARED = Path(os.environ.get("PAIRUN_SHARED") or Path(__file__).parents[2] / "shared")


def pytest_configure(config: pytest.Config) -> None:
    """The process that runs tests gets plain surroundings; one that only hands them out keeps its own."""
    if not config.getoption("numprocesses", None):
        make_plain()


def pytest_report_header() -> list[str]:
    """The versions of what results depend on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    found = "there" if SHARED.is_dir() else "absent"
    return [f"kernel {platform.release()}, {git.stdout.strip()}, shared texts {found}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nightly tests belong to the night; those of the third-party texts are skipped where these are absent."""
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly and EFFORT < NIGHT:
        items[:] = [item for item in items if item not in nightly]
        config.hook.pytest_deselected(items=nightly)
    if SHARED.is_dir():
        return
    reason = f"needs the third-party texts at {SHARED} (PAIRUN_SHARED)"
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI is set, a test that skips itself fails: nothing there may go unseen."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI is set: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _no_failure_before() -> None:
    """No test begins with failures of another one's API server."""
    REFUSALS._until[0] = 0.0


@pytest.fixture(scope="session")
def lab() -> Callable[..., str]:
    """Run a command of the laboratory beside the checkout, and return what it prints.

    A machine without it skips the test; where CI is set that fails.
    """
    program = SHARED / "lab" / "lab"
    if not program.exists():
        pytest.skip(f"needs the laboratory of real servers at {program.parent}")
    if os.geteuid() != 0:
        pytest.skip("the laboratory of real servers needs root")

    def run(*argv: str) -> str:
        done = subprocess.run(
            [str(program), *argv], env=GIVEN, capture_output=True, text=True, check=False
        )
        if done.returncode and "lab install" in done.stderr:
            pytest.skip(f"lab {shlex.join(argv)}: {done.stderr.strip()}")
        assert done.returncode == 0, f"lab {shlex.join(argv)}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def podman(lab: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Runs podman."""
    return Podman(lab, tmp_path_factory.mktemp("podman"))


@pytest.fixture(scope="session")
def image(podman: Podman) -> str:
    """The image that the Dockerfile makes of this checkout."""
    return podman.build()


@pytest.fixture(scope="session")
def emulator() -> Iterator[None]:
    """The kernel starts programs for arm64, wherever the tests run."""
    with arm64_programs():
        yield


@pytest.fixture(scope="session")
def arm64_image(podman: Podman, emulator: None) -> str:
    """The image for arm64 that the Dockerfile makes of this checkout."""
    return podman.build("arm64")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk in a directory of the test's own."""
    from tests.desk import Desk

    return Desk(tmp_path)

"""The worlds in which a module may only read answer every method that `Context` declares."""

from __future__ import annotations

import ast
import inspect
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pairun
from pairun.host.context import HostContext, ProbeContext
from pairun.host.worlds import ReviewContext
from pairun.module import Context, UnknownUntilRun

EFFECTS = Context.effects()
READS = [name for name, effect in EFFECTS.items() if not effect.changes]
CHANGES = [name for name, effect in EFFECTS.items() if effect.changes]
PUBLIC = {n for n in vars(Context) if not n.startswith("_")} - {"effects"}


def call(context: Context, method: str) -> Any:
    """Call a method with a text for every argument it requires."""
    parameters = list(inspect.signature(getattr(Context, method)).parameters.values())[1:]
    required = [p.name for p in parameters if p.default is p.empty]
    values = {"argv": ["/bin/prog"], "url": "http://me:pw@host:1/x", "port": 80, "seconds": 1.0}
    return getattr(context, method)(**{name: values.get(name, f"/{name}") for name in required})


@pytest.fixture(params=[ProbeContext, ReviewContext])
def reading(request: pytest.FixtureRequest, tmp_path: Path) -> Context:
    """A world in which a module may only read."""
    world: Context = request.param({"PATH": os.environ["PATH"]}, str(tmp_path))
    return world


def test_every_method_is_declared() -> None:
    """No public method of the context lacks its sentence, and the declarations are abstract."""
    assert set(EFFECTS) == PUBLIC == Context.__abstractmethods__


@pytest.mark.parametrize("method", EFFECTS)
def test_the_host_has_the_declared_signature(method: str) -> None:
    """This machine does every declared thing, and takes the declared arguments."""
    declared = inspect.signature(getattr(Context, method))
    assert inspect.signature(getattr(HostContext, method)) == declared


def test_nothing_else_defines_the_methods() -> None:
    """A capability is one declaration and one implementation, on the host."""
    package = Path(pairun.__file__).parent
    classes = {
        node.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and len(PUBLIC & {n.name for n in node.body if isinstance(n, ast.FunctionDef)}) > 5
    }
    assert classes - {"FakeWorld"} == {"Context", "HostContext"}


@pytest.mark.parametrize("method", CHANGES)
def test_a_change_is_a_bug_of_the_module(reading: Context, method: str, tmp_path: Path) -> None:
    """Where a module may only read, every change raises and says what was tried."""
    effect = EFFECTS[method].sentence.partition(" {")[0]
    with pytest.raises(
        RuntimeError, match=f"the module tried to {effect}.* where it may only read"
    ):
        call(reading, method)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", READS)
def test_a_review_knows_the_empty_volume_only(method: str, tmp_path: Path) -> None:
    """What a review cannot know depends on what the declaration says, without any credentials."""
    review = ReviewContext({}, str(tmp_path))
    if EFFECTS[method].none_in_review == "always":
        assert call(review, method) is None
        return
    with pytest.raises(UnknownUntilRun, match=r"^depends on [^{}]+$") as caught:
        call(review, method)
    assert "pw" not in caught.value.because


@pytest.mark.parametrize(
    ("ask", "because"),
    [
        (lambda c: c.fetch("http://me:pw@host:1/x@y"), "depends on the answer of host:1"),
        (
            lambda c: c.query(argv=["/bin/git", "x"]),
            "depends on the output of git in the container",
        ),
        (lambda c: c.connects("a", port=1), "depends on whether a accepts connections on port 1"),
        (lambda c: c.stat("/etc/x"), "depends on /etc/x in the container"),
    ],
)
def test_the_sentences_name_the_arguments(ask: Callable[[Context], Any], because: str) -> None:
    """A review says which host, program or path it cannot know."""
    with pytest.raises(UnknownUntilRun) as caught:
        ask(ReviewContext({}, "/pai"))
    assert caught.value.because == because


def test_a_call_with_wrong_arguments_is_an_error() -> None:
    """A generated method takes what is declared and nothing else."""
    with pytest.raises(TypeError):
        ReviewContext({}, "/pai").stat("/x", wrong=1)  # type: ignore[call-arg]


def test_a_review_sees_an_empty_volume(tmp_path: Path) -> None:
    """Nothing is on the volume, although something is here; a path beside it is unknown."""
    (tmp_path / "f").write_text("x")
    review = ReviewContext({"A": "1"}, str(tmp_path))
    inside = f"{tmp_path}/f"
    for ask in (review.stat, review.read_file, review.digest, review.list_dir):
        assert ask(inside) is None
        for outside in (f"{tmp_path}/../x", f"{tmp_path}-other/x", "relative"):
            with pytest.raises(UnknownUntilRun):
                ask(outside)


def test_a_probe_sees_this_machine(tmp_path: Path) -> None:
    """Reads are real."""
    (tmp_path / "f").write_text("x")
    ctx = ProbeContext({"PATH": os.environ["PATH"]}, str(tmp_path))
    assert ctx.read_file(f"{tmp_path}/f") == b"x"
    assert ctx.query(["echo", "hi"]).stdout == b"hi\n"
    assert ctx.which("sh") is not None
    assert abs(ctx.now() - time.time()) < 60

"""The fake world answers what the test says, keeps files and time, and refuses the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pairun.module import (
    Completed,
    Context,
    Fetched,
    FileStat,
    Permanent,
    Secret,
    TimedOut,
    Transient,
)
from pairun.testing import Call, FakeWorld, RealWorld, World, in_turn


def test_files_are_read_and_written() -> None:
    """A file that the module writes is what it reads afterwards, and a test sees it."""
    world = FakeWorld({"/etc/hosts": "127.0.0.1 localhost\n", "/data": None})
    ctx = world.ctx
    assert ctx.read_file("/etc/hosts") == b"127.0.0.1 localhost\n"
    assert ctx.list_dir("/") == ["data", "etc", "tmp", "usr"]
    ctx.write_file("/data/x", b"one", 0o600)
    assert ctx.stat("/data/x") == FileStat("file", 0o600, 3, 0, 0)
    ctx.make_dir("/data/a/b")
    ctx.rename("/data/x", "/data/a/y")
    assert (world.text("/data/a/y"), ctx.stat("/data/x")) == ("one", None)
    ctx.remove("/data/a")
    assert ctx.list_dir("/data") == []
    assert world.changes == ["write_file", "make_dir", "rename", "remove"]


@pytest.mark.parametrize(
    "deed",
    [
        lambda ctx: ctx.write_file("/none/x", b""),
        lambda ctx: ctx.read_file("/etc"),
        lambda ctx: ctx.read_file("/etc/x", max_bytes=1),
        lambda ctx: ctx.make_dir("/etc/x"),
        lambda ctx: ctx.rename("/none", "/x"),
        lambda ctx: ctx.set_mode("/none", 0o600),
    ],
)
def test_what_cannot_be_fails_as_on_a_host(deed: Any) -> None:
    """A missing parent, a directory in place of a file, a file that is too large."""
    with pytest.raises(Permanent, match="cannot"):
        deed(FakeWorld({"/etc/x": "long"}).ctx)


@pytest.mark.parametrize("kind", ["fake", "real"])
@pytest.mark.parametrize(
    "deed",
    [
        lambda ctx, at: ctx.write_file(f"{at}/x", "text"),
        lambda ctx, at: ctx.write_file(f"{at}/x".encode(), b""),
        lambda ctx, at: ctx.run(["cat"], stdin="text"),
        lambda ctx, at: ctx.run("cat file"),
        lambda ctx, at: ctx.query("cat file"),
        lambda ctx, at: ctx.run(["cat", Secret("x")]),
        lambda ctx, at: ctx.post("http://127.0.0.1:1/", "text", timeout_s=0.1),
    ],
)
def test_text_in_place_of_bytes_is_refused_in_both_worlds(
    kind: str, deed: Any, tmp_path: Path
) -> None:
    """A text where bytes are declared, and the reverse, is a TypeError, not only on a host."""
    fake = FakeWorld(commands={"cat": ""}, fetches={"http://127.0.0.1:1/": b""})
    world: World = fake if kind == "fake" else RealWorld(tmp_path)
    with pytest.raises(TypeError):
        deed(world.ctx, world.folder)


def test_a_refused_argument_is_named() -> None:
    """The message names the method, the argument, and both types."""
    with pytest.raises(TypeError, match="write_file: 'data' must be bytes, not str"):
        FakeWorld().ctx.write_file("/x", "text")  # type: ignore[arg-type]


def test_a_file_that_is_written_again_is_touched() -> None:
    """The same content, written a second time, is another version."""
    world = FakeWorld({"/x": "same"})
    before = world.snapshot()
    assert world.snapshot() == before
    world.ctx.write_file("/x", b"same")
    assert world.snapshot() != before


def test_commands_answer_by_their_beginning() -> None:
    """The longest beginning of the command line counts, and its program exists."""
    world = FakeWorld(commands={"git": Completed(1, b"", b"?"), "git rev-parse": "abc\n"})
    assert world.ctx.query(["git", "rev-parse", "HEAD"]).stdout == b"abc\n"
    assert world.ctx.run(["git", "fetch"], capture=True).code == 1
    assert world.ctx.which("git") == "/usr/bin/git"
    assert world.ctx.which("hg") is None
    with pytest.raises(AssertionError, match=r"no answer for query.*'gitk'"):
        world.ctx.query(["gitk"])


def test_servers_answer_by_address() -> None:
    """A body, a status, a failure, and answers in turn."""
    world = FakeWorld(
        fetches={
            "http://a/": b"body",
            "http://b/": in_turn(Transient("busy"), Fetched(404, {}, b"")),
        }
    )
    assert world.ctx.fetch("http://a/").body == b"body"
    with pytest.raises(Transient):
        world.ctx.fetch("http://b/")
    assert world.ctx.post("http://b/", b"x").status == 404
    with pytest.raises(AssertionError, match="once more"):
        world.ctx.fetch("http://b/")
    with pytest.raises(AssertionError, match=r"add fetches=.*http://c/"):
        world.ctx.fetch("http://c/")


@pytest.mark.parametrize("wrong", ["ok", (200, b"ok"), None])
def test_a_wrong_answer_of_a_server_is_named(wrong: Any) -> None:
    """The message names the address, what an answer is, and what it was."""
    ctx = FakeWorld(fetches={"http://a/": wrong}, commands={"git log": b"x"}).ctx
    expected = re.escape(
        "fetches['http://a/'] must be bytes (a body) or Fetched(status, headers, body), "
        f"not {type(wrong).__name__}"
    )
    for method in ("fetch", "post", "fetch_file"):
        more = {"fetch": (), "post": (b"",), "fetch_file": ("/x",)}[method]
        with pytest.raises(AssertionError, match=expected):
            getattr(ctx, method)("http://a/", *more)
    with pytest.raises(AssertionError, match=r"commands\['git log'\] must be a text .*not bytes"):
        ctx.query(["git", "log"])


def test_a_wrong_content_of_a_file_is_named() -> None:
    """A mapping, as for JSON, is no content."""
    wrong: Any = {"/x.json": {"a": 1}}
    with pytest.raises(TypeError, match=r"files\['/x.json'\] must be a text.*, not dict"):
        FakeWorld(wrong)


def test_a_missing_folder_is_named_with_the_way_to_make_it() -> None:
    """The shared volume of a fake world is empty: a test makes the folders that it needs."""
    with pytest.raises(Permanent, match=re.escape('add files={"/usr/local/pai/run": None}')):
        FakeWorld().ctx.write_file("/usr/local/pai/run/m.json", b"{}")
    world = FakeWorld(files={"/usr/local/pai/run": None})
    world.ctx.write_file("/usr/local/pai/run/m.json", b"{}")
    assert world.text("/usr/local/pai/run/m.json") == "{}"


def test_a_download_becomes_a_file() -> None:
    """The body is the file's content, and another digest than expected is permanent."""
    world = FakeWorld(fetches={"http://a/": b"body"})
    done = world.ctx.fetch_file("http://a/", "/tmp/x", mode=0o755)
    assert (done.size, world.text("/tmp/x")) == (4, "body")
    with pytest.raises(Permanent, match="another SHA-256"):
        world.ctx.fetch_file("http://a/", "/tmp/x", sha256="0" * 64)


def test_time_moves_by_waiting_alone() -> None:
    """Waiting takes no time of the test, and ends with the attempt."""
    world = FakeWorld(time_s=100.0, deadline_s=15.0)
    world.ctx.sleep(10.0)
    assert (world.ctx.now(), world.ctx.remaining_s()) == (110.0, 5.0)
    with pytest.raises(TimedOut):
        world.ctx.sleep(10.0)
    assert world.ctx.now() == 115.0


def test_what_was_done_is_recorded() -> None:
    """Each call is kept with all its arguments, log lines and progress apart."""
    world = FakeWorld(answers={"port_taken": None})
    world.ctx.port_taken(80)
    world.ctx.log("hello")
    world.ctx.progress(1, 2)
    assert world.calls[0] == Call("port_taken", {"port": 80})
    assert (world.log, world.progress) == (["hello"], [(1, 2, "")])
    assert world.changes == []


def test_an_answer_may_be_a_function_that_leaves_a_call_to_the_world() -> None:
    """A function gets what the module passed; NotImplemented means the world answers itself."""
    stat = {"/x": None}
    world = FakeWorld({"/x": "", "/y": ""}, answers={"stat": lambda p: stat.get(p, NotImplemented)})
    assert world.ctx.stat("/x") is None
    assert world.ctx.stat("/y") is not None


@pytest.mark.parametrize("method", ["gather", "mount", "start", "unpack", "ask_api", "lookup"])
def test_what_is_not_scripted_fails_the_test(method: str) -> None:
    """A method that the world cannot answer says how to script it."""
    required: dict[str, tuple[Any, ...]] = {
        "gather": ({}, print), "mount": ("a", "/b", None), "start": (["x"],), "lookup": ("h",),
        "ask_api": ("/api",),
    }  # fmt: skip
    world = FakeWorld()
    limits = {"max_bytes": 1, "max_members": 1} if method == "unpack" else {}
    with pytest.raises(AssertionError, match=f'answers={{"{method}"'):
        getattr(world.ctx, method)(*required.get(method, ("/a", "/b")), **limits)


def test_every_method_can_be_scripted() -> None:
    """An answer comes before all that the world knows."""
    answers = dict.fromkeys(Context.effects(), "scripted")
    ctx: Any = FakeWorld(answers=answers).ctx
    assert ctx.now() == "scripted"
    assert ctx.mounts() == "scripted"
    with pytest.raises(AssertionError, match="did you mean 'fetch'"):
        FakeWorld(answers={"fetsh": None})

"""The module download: real servers that behave and misbehave, real files."""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import io
import json
import os
import re
import signal
import tarfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.contract.loading import ModuleFile, plan_loader
from pairun.contract.sources import built_in_modules, read_source
from pairun.executor.phase import Executor, PhaseOutcome
from pairun.executor.shared import Shared
from pairun.host import context
from pairun.host.context import HostContext
from pairun.module import FetchedFile, Permanent, Secret, StateModule, TimedOut, Transient, Unpacked
from pairun.plan import Plan, Task
from pairun.report.console import Console
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal, read_journal
from tests.webserver import Answer, Asked, Reply, WebServer

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

BODY = bytes(range(256)) * 4096
WAIT_S = 30.0


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Site(WebServer):
    """A server of files with ranges and validators.

    Attributes:
        files: path to content.
        headers: what goes with every 200 and 206.
        acts: replies to the next requests; None for the usual one.
        ranges: whether it knows ranges.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/f": BODY}
        self.headers: dict[str, str] = {"ETag": '"one"'}
        self.acts: deque[Reply | None] = deque()
        self.ranges = True
        super().__init__(self._next)

    def _next(self, asked: Asked) -> Answer | None:
        act = self.acts.popleft() if self.acts else None
        return (act or self.serve)(asked)

    def serve(self, asked: Asked, upto: int | None = None) -> Answer:
        """Answer as RFC 9110 has it; break off after so many bytes."""
        path = asked.target
        if (body := self.files.get(path if "://" in path else asked.path)) is None:
            return Answer(404)
        wanted = re.fullmatch(r"bytes=(\d+)-", asked.headers.get("range", ""))
        valid = asked.headers.get("if-range")
        fresh = valid is None or valid in self.headers.values()
        start = int(wanted[1]) if wanted and self.ranges and fresh else 0
        if start and start >= len(body):
            return Answer(416, {"Content-Range": f"bytes */{len(body)}"})
        sent = {**self.headers, "Content-Length": str(len(body) - start)}
        if start:
            sent["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        if upto is not None:
            sent["Connection"] = "close"
        return Answer(206 if start else 200, sent, body[start:][:upto])

    def breaks_after(self, count: int) -> Reply:
        """Break the connection after so many bytes."""
        return lambda asked: self.serve(asked, count)


def says(status: int, body: bytes = b"", **headers: str) -> Reply:
    """Answer with a status and headers."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Answer(status, sent, body)


@pytest.fixture
def site() -> Iterator[Site]:
    """A server with one file of a mebibyte."""
    made = Site()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Site]:
    """Another server."""
    made = Site()
    yield made
    made.close()


@pytest.fixture
def get(harness: Harness, site: Site) -> Callable[..., Any]:
    """Runs the module for /f of the site; returns what became of it."""

    def run(env: dict[str, str] | None = None, **args: Any) -> Any:
        given = {"url": f"{site.url}/f", "dest": str(harness.tmp / "d" / "f"), **args}
        given = {k: v for k, v in given.items() if v is not None}
        return harness.run("download", given, env)

    return run


@pytest.fixture
def dest(harness: Harness) -> Path:
    """Where the file is to stand."""
    return harness.tmp / "d" / "f"


def left_over(folder: Path) -> list[str]:
    """What lies there besides the file itself."""
    return sorted(p.name for p in folder.iterdir() if p.name != "f")


# --- the state ------------------------------------------------------------------------------------

TABLE: list[dict[str, Any]] = [
    {
        "what": "a file, its directories, its mode",
        "args": {"dest": "{tmp}/d/e/f", "mode": "0600"},
        "verdict": "will_change",
        "because": "download {tmp}/d/e/f from 127.0.0.1",
        "before": "nothing",
        "after": "mode 0600",
        "review": "unknown",
    },
    {
        "what": "with a sum",
        "args": {"dest": "{tmp}/f", "sha256": sha(BODY).upper()},
        "verdict": "will_change",
    },
    {
        "what": "another content than the sum says is replaced",
        "args": {"dest": "{tmp}/f", "sha256": sha(BODY)},
        "files": {"{tmp}/f": "other"},
        "verdict": "will_change",
        "because": "replace {tmp}/f",
        "before": sha(b"other"),
    },
    {
        "what": "one that exists and has no sum is left alone",
        "args": {"dest": "{tmp}/f"},
        "files": {"{tmp}/f": "mine"},
        "verdict": "no_change",
        "because": "does not check its content",
        "leaves": {"{tmp}/f": "mine"},
    },
    {
        "what": "on the shared volume nothing stands yet",
        "args": {"dest": "{tmp}/pai/f"},
        "verdict": "will_change",
        "review": "will_change",
    },
    {
        "what": "a directory is not replaced",
        "args": {"dest": "{tmp}/f"},
        "files": {"{tmp}/f": None},
        "failure": "permanent",
        "fault": "user",
        "says": "is a directory",
    },
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["what"]))
def test_table(harness: Harness, site: Site, row: dict[str, Any]) -> None:
    """Each row of the table holds, and its second run changes nothing."""
    args = {"url": f"{site.url}/f", **row["args"]}
    outcome = harness.table("download", {**row, "args": args})
    if outcome.result is not None:
        path = Path(row["args"]["dest"].replace("{tmp}", str(harness.tmp)))
        assert path.read_bytes() == BODY
        assert path.stat().st_mode & 0o7777 == int(row["args"].get("mode", "0644"), 8)
        assert outcome.result.values["files"][0]["sha256"] == sha(BODY)
        assert sorted(p.name for p in path.parent.iterdir() if p.name.startswith(".")) == []


def test_many_files(harness: Harness, site: Site) -> None:
    """Only what is missing is fetched; each file has its own mode and sum."""
    site.files |= {"/a": b"aa", "/b": b"bb"}
    (harness.tmp / "a").write_text("here")
    files = [
        {"url": f"{site.url}/a", "dest": "{tmp}/a"},
        {"url": f"{site.url}/b", "dest": "{tmp}/b", "sha256": sha(b"bb"), "mode": "0755"},
        {"url": f"{site.url}/f", "dest": "{tmp}/f"},
    ]
    outcome = harness.table("download", {"what": "", "args": {"files": files}})
    assert [r.path for r in site.asked] == ["/b", "/f"]
    assert (harness.tmp / "b").stat().st_mode & 0o777 == 0o755
    assert (harness.tmp / "a").read_text() == "here"
    assert outcome.result is not None
    assert outcome.result.message == "2 files, 1 MiB"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "give either 'url' or 'files'"),
        ({"url": "http://h", "files": [{"url": "http://h", "dest": "/x"}]}, "give either 'url'"),
        ({"files": [{"url": "http://h", "dest": "/x"}], "sha256": "0" * 64}, "into its entries"),
        ({"url": "http://h"}, "give either 'dest' or 'unpack'"),
        ({"url": "http://h", "dest": "x"}, "'dest' must be absolute"),
        ({"url": "http://h", "unpack": "/"}, "must name the directory"),
        ({"url": "http://h", "dest": "/x/"}, "must name the file"),
        ({"url": "http://h", "dest": "/x", "sha256": "abc"}, "64 hexadecimal digits"),
        ({"url": "http://h", "dest": "/x", "headers": {"Range": "bytes=1-"}}, "may not hold"),
        ({"url": "http://h", "dest": "/x", "headers": {"a b": "c"}}, "may not hold"),
        ({"files": [{"dest": "/x"}]}, "files.0: 'url' is missing"),
        ({"url": "ftp://x/a", "dest": "/x"}, "'url' must be an http or https address, not ftp"),
        ({"url": "file:///etc/passwd", "dest": "/x"}, "http or https address, not file"),
        ({"url": "example.com/a", "dest": "/x"}, "'url' must be an http or https address"),
        ({"url": "http://u:p@h/a", "dest": "/x"}, "put them into 'headers', as Authorization"),
        ({"url": "http://h:99999999/a", "dest": "/x"}, "an invalid host or port"),
        ({"url": "http://h:port/a", "dest": "/x"}, "an invalid host or port"),
        ({"url": "http:///a", "dest": "/x"}, "'url' names no server"),
        ({"files": [{"url": "ftp://x", "dest": "/x"}]}, "files.0: 'url' must be an http"),
        ({"files": [{"url": "http://h", "dst": "/x"}]}, "unknown key 'dst'"),
        ({"files": [{"url": "http://h", "dest": "/x", "mode": "999"}]}, "must be octal"),
        (
            {"files": [{"url": "http://h", "dest": "/x"}] * 2},
            "files.1: another entry has the place",
        ),
        ({"url": "http://h", "dest": "/x", "stall": "0s"}, "more than 0"),
        ({"url": "http://h", "unpack": "/x", "max_unpacked_bytes": 0}, "more than 0"),
    ],
)
def test_what_cannot_work_is_refused(harness: Harness, args: dict[str, Any], said: str) -> None:
    """A combination of arguments that makes no sense is a problem in words."""
    problems = harness.problems("download", args)
    assert any(said in p.message for p in problems), problems


def test_only_the_mode_differs(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """A wrong mode alone is set without asking the server."""
    get(sha256=sha(BODY))
    dest.chmod(0o600)
    outcome = get(sha256=sha(BODY), mode="0640")
    assert outcome.verdict.because == f"set the mode of {dest}"
    assert dest.stat().st_mode & 0o7777 == 0o640
    assert len(site.asked) == 1


def test_a_link_is_replaced_and_not_followed(get: Callable[..., Any], dest: Path) -> None:
    """What a symbolic link points to stays as it was."""
    dest.parent.mkdir()
    (dest.parent / "mine").write_text("mine")
    dest.symlink_to("mine")
    assert get().failure is None
    assert not dest.is_symlink()
    assert (dest.parent / "mine").read_text() == "mine"


# --- going on where it was broken off -----------------------------------------------------------------


def test_a_broken_connection_is_gone_on_with(
    get: Callable[..., Any], site: Site, dest: Path
) -> None:
    """What came stays, private, and the next attempt asks for the rest alone."""
    site.acts += [site.breaks_after(300_000), None]
    failure = get(sha256=sha(BODY)).failure
    assert isinstance(failure, Transient)
    assert "293 KiB of 1 MiB arrived; the next attempt continues from there" in failure.message
    part = dest.parent / ".f.pairun-part"
    assert not dest.exists()
    assert part.stat().st_mode & 0o7777 == 0o600
    assert part.read_bytes() == BODY[:300_000]
    outcome = get(sha256=sha(BODY))
    assert outcome.result.values["files"][0]["resumed_at"] == 300_000
    assert (site.asked[1].headers["range"], site.asked[1].headers["if-range"]) == (
        "bytes=300000-",
        '"one"',
    )
    assert dest.read_bytes() == BODY
    assert left_over(dest.parent) == []


def test_a_strong_date_validates_too(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """Without an ETag, a Last-Modified well before the answer is enough."""
    date = email.utils.formatdate(time.time() - 3600, usegmt=True)
    site.headers = {"Last-Modified": date}
    site.acts += [site.breaks_after(1000)]
    get()
    assert get().failure is None
    assert site.asked[1].headers["if-range"] == date
    assert dest.read_bytes() == BODY


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ETag": 'W/"weak"'},
        {"ETag": 'W/"weak"', "Last-Modified": "Tue, 01 Jan 2019 00:00:00 GMT"},
        {"ETag": "unquoted"},
        {"Last-Modified": "Fri, 01 Jan 2100 00:00:00 GMT"},
        {"Last-Modified": "yesterday"},
    ],
    ids=str,
)
def test_what_is_no_strong_validator_begins_anew(
    get: Callable[..., Any], site: Site, dest: Path, headers: dict[str, str]
) -> None:
    """Without proof that the content is the same, nothing old is used."""
    site.headers = headers
    site.acts += [site.breaks_after(1000)]
    assert "starts over" in get().failure.message
    assert get().failure is None
    assert "range" not in site.asked[1].headers
    assert dest.read_bytes() == BODY


NEW = bytes(reversed(BODY))


def _changed(site: Site) -> None:
    site.files["/f"] = NEW
    site.headers = {"ETag": '"two"'}


def _lies_about_the_place(site: Site) -> None:
    site.files["/f"] = NEW
    site.acts.append(says(206, NEW[5:], Content_Range=f"bytes 5-{len(NEW) - 1}/{len(NEW)}"))


def _lies_about_the_length(site: Site) -> None:
    site.files["/f"] = NEW
    site.acts.append(says(206, b"x", Content_Range="bytes 1000-1000/1001"))


def _has_another_etag(site: Site) -> None:
    _changed(site)
    span = f"bytes 1000-{len(NEW) - 1}/{len(NEW)}"
    site.acts.append(says(206, NEW[1000:], Content_Range=span, ETag='"two"'))


def _sends_parts(site: Site) -> None:
    site.files["/f"] = NEW
    site.acts.append(says(206, b"--x\r\n", Content_Type="multipart/byteranges; boundary=x"))


def _knows_no_ranges(site: Site) -> None:
    site.files["/f"] = NEW
    site.ranges = False


def _is_shorter(site: Site) -> None:
    site.files["/f"] = NEW[:500]


@pytest.mark.parametrize(
    "change",
    [_changed, _lies_about_the_place, _lies_about_the_length, _has_another_etag, _sends_parts,
     _knows_no_ranges, _is_shorter],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_never_a_mixed_file(
    get: Callable[..., Any], site: Site, dest: Path, change: Callable[[Site], None]
) -> None:
    """Whatever a server answers to a range, the file is the new one from its first byte."""
    site.acts += [site.breaks_after(1000)]
    get()
    change(site)
    outcome = get()
    assert outcome.failure is None, outcome.failure
    assert dest.read_bytes() == site.files["/f"]
    assert outcome.result.values["files"][0]["resumed_at"] == 0


def test_a_part_that_lies_is_found_out_by_the_sum(
    get: Callable[..., Any], site: Site, dest: Path
) -> None:
    """A wrong first half is not the user's fault: the whole is fetched once more."""
    site.acts += [site.breaks_after(1000)]
    get(sha256=sha(BODY))
    (dest.parent / ".f.pairun-part").write_bytes(b"x" * 1000)
    assert get(sha256=sha(BODY)).failure is None
    assert dest.read_bytes() == BODY
    assert ["range" in a.headers for a in site.asked] == [False, True, False]


def test_another_address_begins_anew(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """A part belongs to its address."""
    site.files["/g"] = NEW
    site.acts += [site.breaks_after(1000)]
    get()
    assert get(url=f"{site.url}/g").failure is None
    assert "range" not in site.asked[1].headers
    assert dest.read_bytes() == NEW


def test_after_a_crash_of_the_machine_it_begins_anew(
    get: Callable[..., Any], site: Site, dest: Path
) -> None:
    """What was written before the machine went down may be torn."""
    site.acts += [site.breaks_after(1000)]
    get()
    note = dest.parent / ".f.pairun-part.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "boot": "another"}))
    assert get().failure is None
    assert "range" not in site.asked[1].headers


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"url": 1}', "\x00", '{"no": "such"}'])
def test_a_broken_note_begins_anew(
    get: Callable[..., Any], site: Site, dest: Path, note: str
) -> None:
    """What does not say what it is a part of is not used."""
    site.acts += [site.breaks_after(1000)]
    get()
    (dest.parent / ".f.pairun-part.json").write_text(note)
    assert get().failure is None
    assert dest.read_bytes() == BODY


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "dangling"])
def test_nothing_foreign_is_written_through(get: Callable[..., Any], dest: Path, kind: str) -> None:
    """Where the part should be, somebody has put something else: it is removed, not used."""
    dest.parent.mkdir()
    precious, part = dest.parent.parent / "precious", dest.parent / ".f.pairun-part"
    precious.write_text("mine")
    if kind == "link":
        part.symlink_to(precious)
    elif kind == "dangling":
        part.symlink_to(dest.parent.parent / "nothing")
    elif kind == "pipe":
        os.mkfifo(part)
    else:
        part.hardlink_to(precious)
    assert get().failure is None
    assert precious.read_text() == "mine"
    assert not (dest.parent.parent / "nothing").exists()
    assert dest.read_bytes() == BODY


def test_two_at_once_do_not_mix(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """While one writes, another is told so, and may try again."""
    began, go_on = threading.Event(), threading.Event()

    def slow(asked: Asked) -> Answer:
        began.set()
        assert go_on.wait(WAIT_S)
        return site.serve(asked)

    site.acts.append(slow)
    first: list[Any] = []
    thread = threading.Thread(target=lambda: first.append(get()))
    thread.start()
    assert began.wait(WAIT_S)
    failure = get().failure
    go_on.set()
    thread.join()
    assert failure.kind == "conflict"
    assert first[0].failure is None
    assert dest.read_bytes() == BODY


def test_a_complete_part_is_not_fetched_again(
    get: Callable[..., Any], site: Site, dest: Path
) -> None:
    """Killed before the file was put into place: the sum says that all is there."""
    site.acts += [site.breaks_after(1000)]
    get(sha256=sha(BODY))
    (dest.parent / ".f.pairun-part").write_bytes(BODY)
    assert get(sha256=sha(BODY)).failure is None
    assert len(site.asked) == 1
    assert dest.read_bytes() == BODY


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_wrong_sum(get: Callable[..., Any], dest: Path) -> None:
    """Both sums are shown, nothing is left, and it is not tried again."""
    failure = get(sha256="ab" * 32).failure
    assert isinstance(failure, Permanent)
    assert failure.fault == "user"
    assert sha(BODY) in failure.message
    assert "ab" * 32 in failure.message
    assert list(dest.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("act", "kind", "said", "wait"),
    [
        (says(429, Retry_After="17"), "transient", "answered 429", 17),
        (says(503), "transient", "answered 503", None),
        (says(401), "permanent", "answered 401", None),
        (says(403), "permanent", "answered 403", None),
        (says(404), "permanent", "answered 404", None),
        (says(410), "permanent", "answered 410", None),
        (says(418), "permanent", "answered 418", None),
        (says(206, b"x", Content_Range="bytes 0-0/1"), "permanent", "answered 206", None),
        (says(302), "permanent", "redirects to an invalid address", None),
        (says(302, Location="ftp://example.com/"), "permanent", "an invalid address", None),
        (says(302, Location="http://h:99999/"), "permanent", "an invalid address", None),
    ],
    ids=lambda v: str(v) if isinstance(v, str) else "",
)
def test_statuses(
    get: Callable[..., Any], site: Site, act: Reply, kind: str, said: str, wait: float | None
) -> None:
    """What may heal is tried again, when the server says; what will not, comes with advice."""
    site.acts.append(act)
    failure = get().failure
    assert (failure.kind, failure.retry_after_s) == (kind, wait)
    assert said in failure.message
    if "answered 4" in said and kind == "permanent" and "418" not in said:
        assert failure.hint
        assert failure.fault == "user"


def test_a_date_to_come_back_at(get: Callable[..., Any], site: Site) -> None:
    """Retry-After may be a date."""
    site.acts.append(says(503, Retry_After=email.utils.formatdate(time.time() + 90, usegmt=True)))
    assert 80 < get().failure.retry_after_s <= 90


def test_a_stall(get: Callable[..., Any], site: Site) -> None:
    """No byte for so long is a timeout that says how far it came; the next attempt goes on."""
    done = threading.Event()

    def stall(asked: Asked) -> None:
        asked.handler.send(site.serve(asked, 1000))
        done.wait(WAIT_S)

    site.acts.append(stall)
    failure = get(stall="300ms").failure
    done.set()
    assert isinstance(failure, TimedOut)
    assert "sent nothing for 300ms: 1000 bytes of 1 MiB arrived" in failure.message
    assert get().result.values["files"][0]["resumed_at"] == 1000


def test_the_attempts_time_bounds_a_trickle(harness: Harness, site: Site) -> None:
    """A server that sends a byte now and then cannot keep us beyond the attempt's time."""

    def trickle(asked: Asked) -> None:
        asked.handler.send(site.serve(asked, 10))
        while True:
            asked.handler.wfile.write(b"x")
            time.sleep(0.02)

    site.acts.append(trickle)
    began = time.monotonic()
    args = {"url": f"{site.url}/f", "dest": "{tmp}/f"}
    failure = harness.run("download", args, deadline=began + 1.0).failure
    assert time.monotonic() - began < 10
    assert isinstance(failure, TimedOut)
    assert "too slow for the time of this attempt" in failure.message


def test_a_body_too_large(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """A limit holds whether or not the server tells the length."""

    def endless(asked: Asked) -> None:
        asked.handler.send_response(200)
        asked.handler.end_headers()
        while True:
            asked.handler.wfile.write(b"x" * 65536)

    assert "1 MiB is more than the 1000 bytes" in get(max_bytes=1000).failure.message
    site.acts.append(endless)
    failure = get(max_bytes=3_000_000).failure
    assert failure.kind == "permanent"
    assert "more than the 2.86 MiB that are allowed" in failure.message
    assert list(dest.parent.iterdir()) == []


def test_chunked_bodies(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """A body in chunks has no length, and an end all the same; one without its end is broken."""

    def chunked(end: bytes) -> Reply:
        def act(asked: Asked) -> None:
            asked.handler.send_response(200)
            asked.handler.send_header("Transfer-Encoding", "chunked")
            asked.handler.end_headers()
            asked.handler.wfile.write(b"5\r\nhello\r\n" + end)

        return act

    site.acts += [chunked(b"5\r\nwor"), chunked(b"0\r\n\r\n")]
    assert isinstance(get().failure, Transient)
    assert get().failure is None
    assert dest.read_bytes() == b"hello"


def test_no_room(
    get: Callable[..., Any], site: Site, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot fit is refused before a byte is taken, with both sizes."""

    class Full:
        f_bavail, f_frsize = 3, 1024

    monkeypatch.setattr(os, "fstatvfs", lambda _: Full)
    failure = get().failure
    assert failure.kind == "transient"
    assert "it needs 1 MiB more, and its file system has 3 KiB free" in failure.message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_fills_up(
    get: Callable[..., Any], dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own words, and what was taken is given back."""
    real = os.write
    full = os.open("/dev/full", os.O_WRONLY)

    def write(fd: int, data: Any) -> int:
        name = os.readlink(f"/proc/self/fd/{fd}")
        if name.endswith(".pairun-part") and os.fstat(fd).st_size >= 500_000:
            return real(full, data)
        return real(fd, data[:100_000] if name.endswith("-part") else data)

    monkeypatch.setattr(os, "write", write)
    failure = get().failure
    os.close(full)
    assert failure.kind == "transient"
    assert failure.message == f"cannot write {dest}: no space left on device"
    assert list(dest.parent.iterdir()) == []


# --- other places and secrets ----------------------------------------------------------------------


def test_secrets_stay_with_their_server(
    get: Callable[..., Any], site: Site, other: Site, dest: Path
) -> None:
    """Headers follow within a server, and go to no other, nor back from there."""
    back = says(302, Location=f"{site.url}/f")
    site.acts += [says(301, Location="/g"), says(307, Location=f"{other.url}/h")]
    other.acts.append(back)
    outcome = get(headers={"Authorization": Secret("Bearer hunter2"), "X-Key": "k"})
    assert outcome.failure is None
    assert [a.path for a in site.asked] == ["/f", "/g", "/f"]
    assert [a.authorization for a in site.asked] == ["Bearer hunter2"] * 2 + [None]
    assert "authorization" not in other.asked[0].headers
    assert "x-key" not in other.asked[0].headers
    assert dest.read_bytes() == BODY


def test_a_redirection_without_end(get: Callable[..., Any], site: Site) -> None:
    """Redirections are counted."""
    site.acts += [says(302, Location="/f")] * 20
    failure = get().failure
    assert failure.kind == "permanent"
    assert "redirects more than" in failure.message
    assert len(site.asked) == 11


def test_a_secret_address_is_not_shown(get: Callable[..., Any], site: Site) -> None:
    """Of a signed address, nothing but the host is said."""
    outcome = get(url=Secret(f"{site.url}/signed?key=hunter2"))
    assert "hunter2" not in str(outcome)
    assert "signed" not in outcome.failure.message
    assert "127.0.0.1" in outcome.failure.message


def test_through_a_proxy(get: Callable[..., Any], site: Site, dest: Path) -> None:
    """The proxy of the task's environment is asked, ranges and all."""
    site.files["http://example.com/f"] = BODY
    site.acts += [site.breaks_after(1000)]
    env = {"http_proxy": site.url}
    get(env, url="http://example.com/f")
    assert get(env, url="http://example.com/f").failure is None
    assert site.asked[1].headers["range"] == "bytes=1000-"
    assert site.asked[0].headers["host"] == "example.com"
    assert dest.read_bytes() == BODY


# --- archives ----------------------------------------------------------------------------------------


def packed(**files: str) -> bytes:
    """A tar.gz of some files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.mark.parametrize("with_sum", [True, False])
def test_an_archive(harness: Harness, site: Site, with_sum: bool) -> None:
    """It is unpacked once; another one takes its place; the archive itself does not stay."""
    for text in ("one", "two"):
        site.files[f"/{text}.tgz"] = packed(a=text)
        args = {"url": f"{site.url}/{text}.tgz", "unpack": "{tmp}/data/set"}
        if with_sum:
            args["sha256"] = sha(site.files[f"/{text}.tgz"])
        row = {"what": "", "args": args, "verdict": "will_change"}
        harness.table("download", {**row, "leaves": {"{tmp}/data/set/a": text}})
    assert [p.name for p in (harness.tmp / "data").iterdir()] == ["set"]
    assert len(site.asked) == 2


@pytest.mark.parametrize(
    ("size", "given", "limit"),
    [
        (1_500, None, 1 << 30),
        (50 << 20, None, 5_000 << 20),
        (5 << 30, None, 100 << 30),
        (1_500, 10, 10),
        (1_500, 1 << 40, 1 << 40),
    ],
)
def test_the_bound_of_an_archive(
    harness: Harness, size: int, given: int | None, limit: int
) -> None:
    """By default a small archive cannot fill the disk; an argument sets another bound."""
    answers = {"fetch_file": FetchedFile(size, "", 0), "unpack": Unpacked(1, 1)}
    args = {"url": "http://h/a.tgz", "unpack": "{tmp}/d"}
    module = harness.make(
        "download", args if given is None else {**args, "max_unpacked_bytes": given}
    )
    world = harness.world(answers=answers)
    assert isinstance(module, StateModule)
    module.apply(world.ctx)
    calls = [call for call in world.script.calls if call.method == "unpack"]
    assert [call.arguments["max_bytes"] for call in calls] == [limit]


def test_a_bomb_is_refused(harness: Harness, site: Site) -> None:
    """The archive stops at its bound; nothing of it stays."""
    site.files["/bomb.tgz"] = packed(a="0" * 2_000_000)
    args = {"url": f"{site.url}/bomb.tgz", "unpack": "{tmp}/d/set", "max_unpacked_bytes": 1_000_000}
    failure = harness.run("download", args).failure
    assert isinstance(failure, Permanent)
    assert "holds more than 977 KiB" in failure.message
    assert "max_unpacked_bytes" in (failure.hint or "")
    assert list((harness.tmp / "d").iterdir()) == []


def test_an_archive_takes_nobodys_place(harness: Harness, site: Site) -> None:
    """A directory with files of somebody else is not replaced; an empty one is."""
    site.files["/a.tgz"] = packed(a="x")
    args = {"url": f"{site.url}/a.tgz", "unpack": "{tmp}/d"}
    (harness.tmp / "d").mkdir()
    (harness.tmp / "d/mine").write_text("mine")
    failure = harness.run("download", args).failure
    assert failure is not None
    assert "its content is not from a download" in failure.message
    assert (harness.tmp / "d/mine").read_text() == "mine"
    (harness.tmp / "d/mine").unlink()
    assert harness.run("download", args).failure is None


def test_a_wrong_archive(harness: Harness, site: Site) -> None:
    """What cannot be unpacked is the user's to correct; nothing of it stays."""
    args = {"url": f"{site.url}/f", "unpack": "{tmp}/d/set"}
    failure = harness.run("download", args).failure
    assert isinstance(failure, Permanent)
    assert "what 127.0.0.1 sent cannot be unpacked" in failure.message
    assert list((harness.tmp / "d").iterdir()) == []


def test_what_was_fetched_before_is_not_fetched_again(harness: Harness, site: Site) -> None:
    """Killed while unpacking: with a sum, the next attempt begins with what is there."""
    data = packed(a="x")
    (harness.tmp / ".set.pairun-archive").write_bytes(data)
    args = {"url": f"{site.url}/gone", "unpack": "{tmp}/set", "sha256": sha(data)}
    assert harness.run("download", args).failure is None
    assert site.asked == []


# --- through the executor -------------------------------------------------------------------------------


class Phase:
    """Runs a download as a task of a phase."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.secrets: list[str] = []

    def run(self, args: dict[str, Any], **more: Any) -> PhaseOutcome:
        source = read_source("download", built_in_modules()["download"])
        file = ModuleFile(path=source.path, sha256=source.sha256(), built_in=True)
        files = {"download": file}
        task = Task(id="data", name="The data", module="download", args=args, **more)
        plan = Plan(phase="runtime", steps=(task,), modules=files)
        vault = Vault(self.secrets)
        with open(self.folder / "console", "a", encoding="utf-8") as stream:
            console = Console(stream, vault)
            door, kept = Door(str(self.folder)), str(self.folder / "journal.jsonl")
            journal = Journal(door, kept, vault.record, console.say)

            def emit(event: dict[str, Any]) -> None:
                self.events.append(event)
                journal(event)
                console(event)

            plain = open(1, "w", encoding="utf-8", closefd=False)
            with plain, contextlib.redirect_stdout(plain):
                shared = Shared(
                    load=plan_loader(plan.modules), resolve=lambda late, *_: late, emit=emit,
                    vault=vault, env={"PATH": os.environ["PATH"]}, pai_dir=str(self.folder),
                )  # fmt: skip
                executor = Executor(plan, shared)
                with executor.loop:
                    outcome = executor.run_tasks()
                executor.end(outcome)
            journal.close()
        return outcome

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of a kind in the journal."""
        return [r for r in read_journal(str(self.folder / "journal.jsonl")) if r["type"] == kind]


@pytest.fixture
def phase(tmp_path: Path) -> Phase:
    """Runs downloads as tasks."""
    return Phase(tmp_path)


def test_three_breaks_and_the_executor(phase: Phase, site: Site, tmp_path: Path) -> None:
    """Each attempt goes on where the one before was broken off; each byte is asked for once."""
    site.acts += [site.breaks_after(200_000)] * 3
    args = {"url": f"{site.url}/f", "dest": str(tmp_path / "f"), "sha256": sha(BODY)}
    outcome = phase.run(args, retries=5, delay_s=0.01)
    assert outcome.event == "success"
    assert (tmp_path / "f").read_bytes() == BODY
    assert [a.headers.get("range") for a in site.asked] == [
        None, "bytes=200000-", "bytes=400000-", "bytes=600000-"
    ]  # fmt: skip
    assert phase.of("task_end")[0]["attempts"] == 4
    records = phase.of("progress")
    assert [(r["attempt"], r["bytes"], r["total"]) for r in records] == [
        (1, 200_000, len(BODY)), (2, 400_000, len(BODY)), (3, 600_000, len(BODY)),
        (4, len(BODY), len(BODY)),
    ]  # fmt: skip
    assert {r["file"] for r in records} == {str(tmp_path / "f")}
    console = (tmp_path / "console").read_text()
    assert f"progress data: {tmp_path}/f 195 KiB of 1 MiB (19 %)" in console


def test_progress_is_redacted(phase: Phase, site: Site, tmp_path: Path) -> None:
    """A secret in the name of a file is in no record and no line."""
    phase.secrets = ["hunter2"]
    args = {"url": f"{site.url}/f", "dest": str(tmp_path / "hunter2")}
    assert phase.run(args).event == "success"
    assert phase.of("progress")[0]["file"].endswith("/******")
    assert "hunter2" not in (tmp_path / "console").read_text()
    assert "hunter2" not in (tmp_path / "journal.jsonl").read_text()


def test_nothing_to_do_tells_no_progress(phase: Phase, site: Site, tmp_path: Path) -> None:
    """A task that moves nothing has no record of it."""
    (tmp_path / "f").write_bytes(BODY)
    (tmp_path / "f").chmod(0o644)
    phase.run({"url": f"{site.url}/f", "dest": str(tmp_path / "f"), "sha256": sha(BODY)})
    assert phase.of("task_end")[0]["outcome"] == "ok"
    assert phase.of("progress") == []


def test_progress_is_told_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a module tells it; the last word is kept for the end."""
    told: list[dict[str, Any]] = []
    ctx = HostContext({}, str(tmp_path), emit_progress=told.append)
    for count in range(1000):
        ctx.progress(count)
    assert told == []
    ctx.last_progress()
    ctx.last_progress()
    assert told == [{"bytes": 999, "total": None, "file": ""}]
    monkeypatch.setattr(context, "PROGRESS_S", 0.0)
    ctx.progress(1, 2, "f")
    assert told[1:] == [{"bytes": 1, "total": 2, "file": "f"}]


def test_killed_in_the_middle(phase: Phase, site: Site, tmp_path: Path) -> None:
    """After kill -9 of an attempt, the next run goes on with what had arrived."""
    part = tmp_path / ".f.pairun-part"
    attempt: list[int] = []

    def stall(asked: Asked) -> None:
        asked.handler.send(site.serve(asked, 300_000))
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and (not part.exists() or part.stat().st_size < 300_000):
            time.sleep(0.005)
        children = [
            int(pid)
            for tid in os.listdir("/proc/self/task")
            for pid in Path(f"/proc/self/task/{tid}/children").read_text().split()
        ]
        held = [p for p in children if _holds(p, part)]
        attempt.extend(held)
        os.kill(held[0], signal.SIGKILL)

    site.acts.append(stall)
    args = {"url": f"{site.url}/f", "dest": str(tmp_path / "f")}
    assert phase.run(args).event == "failure"
    assert "SIGKILL" in phase.of("task_end")[0]["message"]
    assert not (tmp_path / "f").exists()
    assert phase.run(args).event == "success"
    assert site.asked[1].headers["range"] == "bytes=300000-"
    assert (tmp_path / "f").read_bytes() == BODY


def _holds(pid: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == str(path) for fd in os.listdir(f"/proc/{pid}/fd"))  # fmt: skip
    return False


def test_the_limits_of_names(harness: Harness, site: Site) -> None:
    """A name as long as a name may be leaves room for the part beside it."""
    dest = harness.tmp / ("n" * 255)
    site.acts += [site.breaks_after(1000)]
    args = {"url": f"{site.url}/f", "dest": str(dest)}
    assert harness.run("download", args).failure is not None
    assert harness.run("download", args).failure is None
    assert site.asked[1].headers["range"] == "bytes=1000-"
    assert dest.read_bytes() == BODY

"""Unpacking: what an archive holds comes out, and nothing in it reaches anything else."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairun.host import archivemembers
from pairun.host.context import HostContext
from pairun.module import Failure, Permanent, Transient, Unpacked
from tests.effort import cases

Entry = dict[str, Any]
LIMITS: dict[str, Any] = {"max_bytes": 1_000_000, "max_members": 50}


def tar_of(*entries: Entry, pax: dict[str, str] | None = None) -> bytes:
    """A tar file; an entry is the fields of its header, and ``data``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers=pax, errors="surrogateescape") as tar:
        for entry in entries:
            member = tarfile.TarInfo(entry["name"])
            member.type = entry.get("type", tarfile.REGTYPE)
            member.linkname = entry.get("link", "")
            member.mode = entry.get("mode", 0o644)
            member.uid = entry.get("uid", 0)
            data = entry.get("data", b"")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zip_of(*entries: Entry, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file; a link has its target as data."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for entry in entries:
            member = zipfile.ZipInfo(entry["name"])
            member.create_system = entry.get("system", 3)
            member.external_attr = entry.get("bits", 0o100644) << 16
            archive.writestr(member, entry.get("data", b""), how)
    return out.getvalue()


def file(name: str, data: bytes = b"x", **more: Any) -> Entry:
    return {"name": name, "data": data, **more}


def link(name: str, target: str, **more: Any) -> Entry:
    return {"name": name, "type": tarfile.SYMTYPE, "link": target, **more}


def hard(name: str, target: str) -> Entry:
    return {"name": name, "type": tarfile.LNKTYPE, "link": target}


@pytest.fixture
def ctx(tmp_path: Path) -> HostContext:
    """This machine."""
    return HostContext({}, str(tmp_path / "pai"))


@pytest.fixture
def unpack(ctx: HostContext, tmp_path: Path) -> Callable[..., Unpacked]:
    """Unpacks bytes into ``out``; whatever happens, nothing stays beside it."""

    def run(data: bytes, **more: Any) -> Unpacked:
        (tmp_path / "a").write_bytes(data)
        try:
            return ctx.unpack(str(tmp_path / "a"), str(tmp_path / "out"), **{**LIMITS, **more})
        finally:
            assert {p.name for p in tmp_path.iterdir()} <= {"a", "out"}

    return run


SAMPLE = (
    {"name": "./", "type": tarfile.DIRTYPE, "mode": 0o700},
    file("d/e/f", b"hello", mode=0o4777),
    {"name": "d", "type": tarfile.DIRTYPE, "mode": 0o1777},
    file("run", b"#!", mode=0o755, uid=12345),
    file("secret", b"s", mode=0o000),
    link("d/up", "../run"),
    link("away/l", "../d/e"),
    hard("again", "d/e/f"),
)


def tar_sample() -> bytes:
    return tar_of(*SAMPLE)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_tar_file(
    unpack: Callable[..., Unpacked], tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Files, directories and links come out, as ours, without special bits."""
    assert unpack(pack(tar_sample()), extra={".mark": b"m"}) == Unpacked(8, 8)
    out = tmp_path / "out"
    assert (out / "d/e/f").read_bytes() == b"hello"
    assert stat.S_IMODE((out / "d/e/f").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "d").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "secret").stat().st_mode) == 0o600
    assert (out / "run").stat().st_uid == os.geteuid()
    assert (out / "d/up").read_bytes() == b"#!"
    assert (out / "away/l/f").read_bytes() == b"hello"
    assert (out / "again").samefile(out / "d/e/f")
    assert (out / ".mark").read_bytes() == b"m"
    assert stat.S_IMODE(out.stat().st_mode) == 0o755


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_file(unpack: Callable[..., Unpacked], tmp_path: Path, how: int) -> None:
    """The same from a zip file, with Unix's modes or without."""
    data = zip_of(
        {"name": "d/", "bits": 0o040700},
        file("d/f", b"hello", bits=0o104755),
        {"name": "l", "bits": 0o120777, "data": b"d/f"},
        file("plain", b"p", system=0),
        how=how,
    )
    assert unpack(data) == Unpacked(4, 6)
    out = tmp_path / "out"
    assert (out / "l").read_bytes() == b"hello"
    assert stat.S_IMODE((out / "d/f").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "plain").stat().st_mode) == 0o644


def test_xz_in_several_streams(unpack: Callable[..., Unpacked], tmp_path: Path) -> None:
    """An xz file may be several, with padding between."""
    data = tar_of(file("f", bytes(range(256)) * 1000))
    unpack(lzma.compress(data[:5000]) + bytes(8) + lzma.compress(data[5000:]))
    assert (tmp_path / "out/f").read_bytes() == bytes(range(256)) * 1000


def test_long_names_and_bytes_that_are_no_text(
    unpack: Callable[..., Unpacked], tmp_path: Path
) -> None:
    """Names of either extension, and names in no known encoding, stay as they are."""
    deep = "/".join(["d" * 60] * 5)
    unpack(tar_of(file(deep), file("\udcff\udcfe")))
    assert (tmp_path / "out" / deep).exists()
    assert b"\xff\xfe" in os.listdir(os.fsencode(tmp_path / "out"))


def test_it_replaces_as_a_whole(unpack: Callable[..., Unpacked], tmp_path: Path) -> None:
    """What was unpacked before is gone; after a failure it is untouched."""
    unpack(tar_of(file("old")))
    with pytest.raises(Permanent):
        unpack(tar_of(file("new"), file("../x")))
    assert os.listdir(tmp_path / "out") == ["old"]
    unpack(tar_of(file("new")))
    assert os.listdir(tmp_path / "out") == ["new"]


def test_what_an_earlier_try_left_is_removed(
    unpack: Callable[..., Unpacked], tmp_path: Path
) -> None:
    """Somebody was killed in the middle, twice."""
    for name in (".out.pairun-unpack", ".out.pairun-old"):
        (tmp_path / name / "d").mkdir(parents=True)
    unpack(tar_of(file("old")))
    unpack(tar_of(file("new")))
    assert os.listdir(tmp_path / "out") == ["new"]


REFUSED: list[tuple[str, bytes, str]] = [
    ("absolute", tar_of(file("/etc/x")), "leads outside"),
    ("up", tar_of(file("../x")), "leads outside"),
    ("up in the middle", tar_of(file("a/../../x")), "leads outside"),
    ("link out", tar_of(link("l", "/etc")), "is a link that leads outside"),
    ("link up", tar_of(link("d/l", "../../x")), "is a link that leads outside"),
    ("link down and up", tar_of(link("l", "d/../..")), "is a link that leads outside"),
    ("link over a link", tar_of(link("d/l", ".."), link("m", "d/l/..")), "that leads outside"),
    ("link below a link", tar_of(link("a/b/l", "../.."), link("a/b/l/m", "../../../x")),
     "below a path that is not a directory"),
    ("empty link", tar_of(link("l", "")), "is a link that leads outside"),
    ("through a link", tar_of(link("l", "."), file("l/x")), "below a path that is not a directory"),
    ("through a file", tar_of(file("f"), file("f/x")), "below a path that is not a directory"),
    ("directory over a link", tar_of(link("l", "d"), {"name": "l", "type": tarfile.DIRTYPE}),
     "below a path that is not a directory"),
    ("hard link out", tar_of(hard("l", "/etc/passwd")), "leads outside"),
    ("hard link up", tar_of(hard("l", "../x")), "leads outside"),
    ("hard link to a link", tar_of(link("l", "d"), hard("m", "l")), "not an earlier file of the archive"),
    ("hard link to nothing", tar_of(hard("m", "l")), "not an earlier file of the archive"),
    ("hard link to a directory", tar_of({"name": "d", "type": tarfile.DIRTYPE}, hard("m", "d")),
     "not an earlier file of the archive"),
    ("twice", tar_of(file("f"), file("f")), "appears twice"),
    ("file over a link", tar_of(link("f", "g"), file("f")), "appears twice"),
    ("device", tar_of({"name": "n", "type": tarfile.CHRTYPE}), "not a file, directory or link"),
    ("block device", tar_of({"name": "n", "type": tarfile.BLKTYPE}), "not a file, directory or link"),
    ("pipe", tar_of({"name": "n", "type": tarfile.FIFOTYPE}), "not a file, directory or link"),
    ("unknown kind", tar_of({"name": "n", "type": b"Z"}), "not a file, directory or link"),
    ("no name", tar_of(file("./")), "has no name"),
    ("too deep", tar_of(file("d/" * 101 + "f")), "directories deep"),
    ("the mark", tar_of(file(".mark")), "appears twice"),
    ("too many", tar_of(*(file(str(n)) for n in range(51))), "more than 50 members"),
    ("too large", tar_of(file("f", bytes(1_000_001))), "holds more than 977 KiB"),
    ("bomb", gzip.compress(tar_of(file("f", bytes(9_000_000)))), "holds more than 977 KiB"),
    ("header bomb", gzip.compress(tar_of(file("f"), pax={"comment": "x" * 3_000_000})),
     "the description of its members is too large"),
    ("no archive", b"hello", "is not an archive"),
    ("nothing", b"", "is not an archive"),
    ("torn", tar_of(file("f", bytes(9000)))[:5000], "is damaged"),
    ("torn gzip", gzip.compress(tar_of(file("f", os.urandom(9000))))[:5000], "is damaged"),
    ("torn xz", lzma.compress(tar_of(file("f", os.urandom(9000))))[:5000], "is damaged"),
    ("rubbish in the middle", tar_of(file("f"))[:1024] + b"x" * 1024, "is damaged"),
    ("zstandard", b"\x28\xb5\x2f\xfd" + bytes(20), "packed with zstandard"),
    ("zip absolute", zip_of(file("/x")), "leads outside"),
    ("zip up", zip_of(file("../x")), "leads outside"),
    ("zip link", zip_of({"name": "l", "bits": 0o120777, "data": b"../x"}), "leads outside"),
    ("zip long link", zip_of({"name": "l", "bits": 0o120777, "data": b"x" * 5000}), "too long"),
    ("zip pipe", zip_of({"name": "l", "bits": 0o010644}), "not a file, directory or link"),
    ("zip lzma", zip_of(file("f"), how=zipfile.ZIP_LZMA), "unsupported compression method"),
    ("zip bomb", zip_of(file("f", bytes(9_000_000))), "holds more than 977 KiB"),
    ("zip torn", zip_of(file("f", b"x" * 99))[:-30], "is damaged"),
    ("zip damaged", zip_of(file("f", b"abc"), how=0).replace(b"abc", b"abd"), "is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_refused(
    unpack: Callable[..., Unpacked], tmp_path: Path, data: bytes, said: str
) -> None:
    """A bad member ends it all, in words, and nothing is left."""
    with pytest.raises(Permanent, match=said) as caught:
        unpack(data, extra={".mark": b""})
    assert caught.value.fault == "user"
    assert os.listdir(tmp_path) == ["a"]


def test_an_encrypted_zip_file(unpack: Callable[..., Unpacked]) -> None:
    """A password is nothing we could ask for."""
    data = bytearray(zip_of(file("f")))
    for start in (data.index(b"PK\1\2") + 8, 6):
        data[start] |= 1
    with pytest.raises(Permanent, match="is encrypted"):
        unpack(bytes(data))


def test_xz_takes_no_more_memory_than_it_may(
    unpack: Callable[..., Unpacked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that an xz file asks for is bounded."""
    monkeypatch.setattr(archivemembers, "_XZ_MEMORY", 1_000_000)
    with pytest.raises(Permanent, match="emory"):
        unpack(lzma.compress(tar_sample()))


def test_trouble_with_the_places_is_in_words(ctx: HostContext, tmp_path: Path) -> None:
    """No archive, no directory to unpack into, and what stands in its place."""
    (tmp_path / "a").write_bytes(tar_sample())
    for archive, directory in (("nothing", "out"), (".", "out"), ("a", "no/out"), ("a", "a/out")):
        with pytest.raises((Permanent, Transient)):
            ctx.unpack(str(tmp_path / archive), str(tmp_path / directory), **LIMITS)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Permanent, match="not a regular file"):
        ctx.unpack(str(tmp_path / "pipe"), str(tmp_path / "out"), **LIMITS)
    assert sorted(os.listdir(tmp_path)) == ["a", "pipe"]


def test_a_link_on_the_volume_leads_nowhere(tmp_path: Path) -> None:
    """Below the shared volume, a directory that is a link is refused."""
    ctx = HostContext({}, str(tmp_path / "pai"))
    (tmp_path / "pai").mkdir()
    (tmp_path / "pai/l").symlink_to(tmp_path)
    (tmp_path / "a").write_bytes(tar_sample())
    with pytest.raises(Permanent, match="symbolic link"):
        ctx.unpack(str(tmp_path / "a"), str(tmp_path / "pai/l/out"), **LIMITS)
    with pytest.raises(Permanent, match="symbolic link"):
        ctx.fetch_file("http://127.0.0.1:9/", str(tmp_path / "pai/l/f"))
    with pytest.raises(Permanent, match="symbolic link"):
        ctx.set_mode(str(tmp_path / "pai/l/a"), 0o600)


# --- whatever it says -----------------------------------------------------------------------------

# Few names, so that they meet; the odd ones come now and then.
PLAIN = st.sampled_from(["a", "b"])
NAMES = st.lists(PLAIN, min_size=1, max_size=3).map("/".join)
ODD = st.lists(
    st.sampled_from(["a", "..", ".", "", "\n", "é", "out", "secret"]), min_size=1, max_size=4
).map("/".join)
TARGETS = st.lists(st.sampled_from(["..", "a", "b"]), min_size=1, max_size=4).map("/".join)
ENTRIES = st.lists(
    st.one_of(
        NAMES.map(file),
        NAMES.map(lambda n: {"name": n, "type": tarfile.DIRTYPE}),
        st.tuples(NAMES, TARGETS).map(lambda p: link(*p)),
        st.tuples(NAMES, TARGETS).map(lambda p: link(*p)),
        st.tuples(NAMES, NAMES).map(lambda p: hard(*p)),
        ODD.map(file),
        st.tuples(NAMES, ODD).map(lambda p: link(*p)),
        st.tuples(NAMES, ODD).map(lambda p: hard(*p)),
    ),
    max_size=6,
)


def _as_zip(entries: list[Entry]) -> bytes:
    kinds = {tarfile.SYMTYPE: 0o120777, tarfile.DIRTYPE: 0o040755}
    return zip_of(
        *(
            {
                "name": e["name"] or "x",
                "bits": kinds.get(e.get("type", b""), 0o100644),
                "data": e.get("link", "x").encode(),
            }
            for e in entries
        )
    )


@settings(max_examples=cases(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=ENTRIES, zipped=st.booleans())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_nothing_is_ever_made_outside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], zipped: bool
) -> None:
    """Whatever the names and links say, only the directory appears, and no link in it leads out."""
    base = tmp_path_factory.mktemp("u")
    (base / "secret").write_text("mine")
    (base / "a").write_bytes(_as_zip(entries) if zipped else tar_of(*entries))
    before = {p: p.lstat() for p in (base / "secret", base / "a")}
    try:
        HostContext({}, str(base / "pai")).unpack(str(base / "a"), str(base / "out"), **LIMITS)
    except Failure as e:
        assert e.kind == "permanent"
    assert {p.name for p in base.iterdir()} <= {"secret", "a", "out"}
    for path, old in before.items():
        now = path.lstat()
        assert (now.st_ino, now.st_mtime_ns, now.st_nlink) == (old.st_ino, old.st_mtime_ns, 1)
    root = os.path.realpath(base / "out")
    for folder, directories, names in os.walk(base / "out"):
        for name in directories + names:
            inner = os.path.join(folder, name)
            try:
                os.stat(inner)
            except OSError as e:
                if e.errno == errno.ELOOP:
                    # A loop leads nowhere; realpath() takes ``a//a`` in one for an absolute path.
                    continue
            real = os.path.realpath(inner)
            assert real == root or real.startswith(root + "/")

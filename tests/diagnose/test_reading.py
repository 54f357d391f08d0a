"""Files are read whatever packs them and however large they are."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.logfiles import ArchiveError, Reading, read_file, read_stream

TEXT = b"".join(b"step %d loss 0.5\n" % n for n in range(3000)) + b"KeyError: 'label'\n"


def never() -> bool:
    """Reading has all the time it wants."""
    return False


def read(path: Path, budget: int = 1 << 20) -> Reading:
    """Read a file as a log."""
    return read_file(str(path), path.name, budget, is_over=never)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_packed_file_is_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """The first bytes say what packs it, and not its name."""
    path = tmp_path / "rank0.log"
    path.write_bytes(pack(TEXT))
    assert read(path).log.data == TEXT


def test_a_packed_file_that_is_cut_off_is_read_to_its_end(tmp_path: Path) -> None:
    """A killed job leaves such files."""
    path = tmp_path / "rank0.log.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 8000 + TEXT, 1)[:-200])
    assert len(read(path).log.data) > 1 << 20


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_small_packed_file_that_is_cut_off_shows_its_lines(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Only the trailer is missing; the answer names the damage."""
    path = tmp_path / "rank0.log.gz"
    path.write_bytes(pack(TEXT)[:-4])
    reading = read(path)
    assert reading.log.data == TEXT
    assert reading.unread == "rank0.log.gz: its end is missing or damaged"


def test_a_packed_file_with_damaged_bytes_is_read_up_to_them(tmp_path: Path) -> None:
    """An error of the format is an end, too; a file of which nothing unpacks is refused."""
    packed = bytearray(gzip.compress(random.Random(1).randbytes(1 << 16) + TEXT))
    path = tmp_path / "rank0.log.gz"
    path.write_bytes(packed[:60000] + b"\xff" * 8000)
    assert read(path).unread
    path.write_bytes(packed[:10] + b"\xff" * 8000)
    with pytest.raises(OSError, match="it cannot be unpacked"):
        read(path)


@pytest.mark.parametrize(
    ("form", "program"), [("zip", "unzip"), ("tar", "tar xf"), ("gztar", "tar xf")]
)
def test_an_archive_is_refused_with_the_command_that_unpacks_it(
    tmp_path: Path, form: str, program: str
) -> None:
    """Its files are no one log, so that their lines together show nothing."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "rank0.log").write_bytes(TEXT)
    archive = Path(shutil.make_archive(str(tmp_path / "logs"), form, folder))
    with pytest.raises(ArchiveError, match=f"it is packed; unpack it first, with {program}"):
        read(archive)


def test_the_middle_of_a_large_file_counts_where_it_mentions_errors(tmp_path: Path) -> None:
    """What is kept has the numbers of its lines in the file; memory stays small."""
    quiet = b"step 1 loss 0.5\n" * (1 << 18)
    path = tmp_path / "big.log"
    path.write_bytes(quiet + b"KeyError: 'middle'\n" + quiet + b"the end\n")
    log = read(path, 1 << 18).log
    assert len(log.data) < 1 << 20
    at = log.data.index(b"KeyError: 'middle'")
    assert log.number(at) == (1 << 18) + 1
    assert log.offset((1 << 18) + 1) == at
    assert log.number(log.data.index(b"the end")) == (1 << 19) + 2


def test_what_was_left_out_is_said() -> None:
    """Errors all over a large file are more than pairun judges."""
    stream = io.BytesIO(b"an error of the day\n" * (1 << 19))
    reading = read_stream(stream, "noisy.log", 1 << 19, is_over=never)
    assert reading.unread.startswith("noisy.log: about ")
    assert reading.unread.endswith("MiB in the middle that mention errors were not judged")


def test_reading_ends_when_its_time_is_over() -> None:
    """The answer says how much was read."""
    reading = read_stream(io.BytesIO(TEXT * 100), "slow.log", 1 << 20, is_over=lambda: True)
    assert reading.unread == "slow.log: only the first 0 MiB were read"

"""The journal as a file: what is kept, what is masked, and what happens when it cannot be written."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import MAX_RECORD, Journal, JournalTail, read_journal


def journal(path: pathlib.Path) -> tuple[Journal, list[str]]:
    """A journal, and what it complains of."""
    complaints: list[str] = []
    return Journal(
        Door(str(path.parent)), str(path), Vault(["geheim"]).record, complaints.append
    ), complaints


def test_output_is_not_kept(tmp_path: pathlib.Path) -> None:
    """Output goes to the log; the journal holds the last lines of a failure only."""
    write, _ = journal(tmp_path / "j")
    write({"type": "output", "task": "a", "line": "x"})
    assert (tmp_path / "j").read_bytes() == b""


def test_secrets_and_odd_texts(tmp_path: pathlib.Path) -> None:
    """Secrets are masked, and a text that is no UTF-8 costs no record."""
    write, _ = journal(tmp_path / "j")
    write({"type": "wait", "because": "ge\udcffheim \ud800 geheim ä"})
    (record,) = read_journal(str(tmp_path / "j"))
    assert record["because"] == "ge?heim ? ****** ä"


@pytest.mark.parametrize("secret", ["type", "outcome", "schema", "null", "phase_end", "success"])
def test_a_secret_that_equals_a_word_of_the_journal_breaks_no_record(
    tmp_path: pathlib.Path, secret: str
) -> None:
    """Only values are masked: a reader finds every key, and the words that pairun itself chooses."""
    path = tmp_path / "j"
    write = Journal(Door(str(path.parent)), str(path), Vault([secret]).record, print)
    write({"type": "phase_end", "phase": "init", "outcome": "success", "exit_code": 0,
           "message": f"a {secret}", "hint": None})  # fmt: skip
    (record,) = read_journal(str(path))
    assert (record["type"], record["phase"], record["outcome"]) == ("phase_end", "init", "success")
    assert (record["message"], record["hint"]) == ("a ******", None)


def test_a_torn_line_spoils_nothing(tmp_path: pathlib.Path) -> None:
    """What a killed writer left is left out, and the next record stands on a line of its own."""
    path = tmp_path / "j"
    journal(path)[0]({"type": "wait", "n": 1})
    with open(path, "ab") as f:
        f.write(b'{"schema": 1, "type": "wa')
    assert [r["n"] for r in read_journal(str(path))] == [1]
    journal(path)[0]({"type": "wait", "n": 2})
    journal(path)[0]({"type": "wait", "n": 3})
    assert [r["n"] for r in read_journal(str(path))] == [1, 2, 3]


def test_foreign_lines_are_left_out(tmp_path: pathlib.Path) -> None:
    """A reader takes what it knows."""
    path = tmp_path / "j"
    lines = ["[]", "7", "{}", '{"schema": 99}', "\x00\xff", '{"schema": 1, "type": "wait"}', ""]
    path.write_text("\n".join(lines), encoding="latin-1")
    assert [r["type"] for r in read_journal(str(path))] == ["wait"]
    assert read_journal(str(tmp_path / "none")) == []


@pytest.mark.parametrize("what", ["link", "pipe", "directory", "missing"])
def test_what_stands_there_is_not_trusted(tmp_path: pathlib.Path, what: str) -> None:
    """A link is not followed, a pipe is not waited for: there is no journal, and that is said."""
    path, target = tmp_path / "j", tmp_path / "target"
    target.write_text("precious")
    if what == "link":
        path.symlink_to(target)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    else:
        path = tmp_path / "no" / "j"
    write, complaints = journal(path)
    write({"type": "wait"})
    write({"type": "wait"})
    assert len(complaints) == 1
    assert complaints[0].startswith("cannot write the journal: ")
    assert target.read_text() == "precious"


def test_a_full_file_system(tmp_path: pathlib.Path) -> None:
    """The same on a file system that is really full, for the journal and for what people see."""
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    script = (
        f"mount -t tmpfs -o size=16k none {tmp_path} || exit 99; cd {tmp_path}; "
        "head -c 8000 /dev/zero > fill; "
        f'exec {os.sys.executable} -c "$CODE" > {tmp_path}/out'  # type: ignore[attr-defined]
    )
    code = """
import os, sys
from pairun.volume.door import Door
from pairun.volume.journal import Journal
from pairun.secrets.vault import Vault
from pairun.report.console import Console
console = Console(sys.stdout, Vault())
said = []
journal = Journal(Door(os.getcwd()), os.path.abspath('journal'), Vault().record, said.append)
for n in range(400):
    journal({'type': 'wait', 'n': n})
    console.say('x' * 50)
assert len(said) == 1 and said[0].startswith('the journal ends here'), said
sys.stderr.write('done')
"""
    done = subprocess.run(
        ["unshare", *user, "--mount", "sh", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "CODE": code, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])},
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("this kernel lets us mount nothing")
    assert (done.returncode, done.stderr) == (0, "done")


def test_records_come_once_and_whole(tmp_path: pathlib.Path) -> None:
    """A torn line waits for its rest; what is no record is left out."""
    path = tmp_path / "logs" / "uid" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    tail = JournalTail(str(path))
    assert tail.read() == []
    with path.open("w") as f:
        f.write('{"schema": 1, "type": "a"}\n[]\nnonsense\n{"schema": 9}\n{"schema": 1, "ty')
        f.flush()
        assert [r["type"] for r in tail.read()] == ["a"]
        assert tail.read() == []
        f.write('pe": "b"}\n')
        f.flush()
        assert [r["type"] for r in tail.read()] == ["b"]
        f.write("x" * 2 * MAX_RECORD)
        f.flush()
        for _ in range(9):
            assert tail.read() == []
        assert len(tail._rest) <= MAX_RECORD
    tail.close()


def test_a_link_and_a_pipe_are_not_read(tmp_path: pathlib.Path) -> None:
    """An instance owns its volume: what it puts in the journal's place is refused."""
    folder = tmp_path / "logs" / "uid"
    folder.mkdir(parents=True)
    (tmp_path / "private").write_text('{"schema": 1, "type": "a"}\n')
    (folder / "journal.jsonl").symlink_to(tmp_path / "private")
    os.mkfifo(folder / "pipe")
    for name in ("journal.jsonl", "pipe"):
        assert JournalTail(str(folder / name)).read() == []

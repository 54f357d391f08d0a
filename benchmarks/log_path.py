"""What the logs cost: a quarter of a gigabyte of short lines, from the command to where they end.

Each way takes the same bytes from the same ``cat`` to a pipe that is read at once, and keeps them in
two files: PID 1 with all that it does besides (whole lines in one of the files, rotation, secrets),
``tee``, and a chain of ``tee`` and ``multilog`` as OpenPAI's runtime has it.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import string
import subprocess
import tempfile
from collections.abc import Iterator

from benchmarks.measure import ROOT, TIMES, NotMeasured, Row, in_turns, wall_ms
from benchmarks.volume import prepare, program

BYTES = 250_000_000
SECRETS = 10
TIMES_TEE = 2.0
TIMES_TEE_WITH_SECRETS = 5.0
TIMES_FASTER = 6.0

_OLD_CHAIN = """
mkfifo one all
multilog s268435456 n2 ./user-stdout < one & multilog s268435456 n2 ./user-all < all &
cat "$DATA" | tee one all | cat > /dev/null
wait
"""


def rows() -> Iterator[Row]:
    """The cost of the bytes on each way.

    Raises:
        NotMeasured: the programs of the old chain are not here.
    """
    argv, name = program()
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        _write_data(data)
        tee, plain, masked = in_turns(
            TIMES,
            lambda: wall_ms(lambda: _shell(data, 'cat "$DATA" | tee a b | cat > /dev/null')),
            lambda: wall_ms(lambda: _through_pid1(data, argv, 0)),
            lambda: wall_ms(lambda: _through_pid1(data, argv, SECRETS)),
        )
        note, most = f"{name}, {_speed(plain.least)}", TIMES_TEE * tee.least
        yield Row("250 MB of output", "ms", plain, most, "tee a b", tee, note)
        note, most = f"{name}, {_speed(masked.least)}", TIMES_TEE_WITH_SECRETS * tee.least
        yield Row(f"the same with {SECRETS} secrets", "ms", masked, most, "tee a b", tee, note)
        if shutil.which("multilog") is None:
            raise NotMeasured("the old way of output: multilog is missing (Debian's daemontools)")
        again, old = in_turns(
            TIMES,
            lambda: wall_ms(lambda: _through_pid1(data, argv, 0)),
            lambda: wall_ms(lambda: _shell(data, _OLD_CHAIN)),
        )
        yield Row(
            "250 MB of output", "ms", again, old.least / TIMES_FASTER, "tee and multilog", old,
            _speed(old.least),
        )  # fmt: skip


def _write_data(path: pathlib.Path) -> None:
    lines = b"".join(
        b"step %d loss=%.5f accuracy=%.4f lr=3e-4 examples/s=%d\n"
        % (n, 4 / (n + 1), 1 - 1 / (n + 1), n * 7919 % 9000)
        for n in range(20_000)
    )
    with path.open("wb") as f:
        while f.tell() < BYTES:
            f.write(lines)


def _shell(data: pathlib.Path, script: str) -> None:
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        env = {**os.environ, "DATA": str(data)}
        subprocess.run(["bash", "-c", script], check=True, cwd=folder, env=env, stderr=-3)


def _through_pid1(data: pathlib.Path, argv: list[str], secrets: int) -> None:
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        volume = pathlib.Path(folder)
        hidden = tuple(_secret(n) for n in range(secrets))
        env = prepare(volume, f"exec cat {data}\n", hidden)
        script = 'set -o pipefail; "$@" 2> /dev/null | cat > /dev/null'
        subprocess.run(["bash", "-c", script, "-", *argv], check=True, cwd=ROOT, env=env)
        kept = volume / "logs" / "local" / "user-all" / "current"
        if kept.stat().st_size != data.stat().st_size:
            raise RuntimeError(f"of the output {kept.stat().st_size} bytes were kept")


def _secret(number: int) -> str:
    """A value as tokens are: letters and digits without a pattern."""
    letters = string.ascii_letters + string.digits
    return "".join(letters[(number * 31 + n * n * 17 + n * number * 7) % 62] for n in range(24))


def _speed(milliseconds: float) -> str:
    return f"{BYTES / milliseconds / 1e6:.2f} GB/s"

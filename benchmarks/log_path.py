"""What the logs cost: a quarter of a gigabyte of short lines, from the command to where they end.

Each way takes the same bytes from the same ``cat`` to a pipe that is read at once, and keeps them in
two files: PID 1 with all that it does besides (whole lines in one of the files, rotation, secrets),
``tee``, and a chain of ``tee`` and ``multilog`` as OpenPAI's runtime has it.

The rows of masking are the CPU time that secrets add, by kind of text and set of secrets.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import random
import shutil
import string
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.measure import ROOT, TIMES, NotMeasured, Row, cpu_ms, in_turns, wall_ms
from benchmarks.volume import prepare, program

BYTES = 250_000_000
MASKED_BYTES = 20_000_000
TIMES_TEE = 2.0
TIMES_FASTER = 6.0
LEAST_MB_S = {"writes of 40 bytes": 20.0}
"""The goal of masking for a kind of text, in MB of it per second of CPU time; 30 for the others."""

_OLD_CHAIN = """
mkfifo one all
multilog s268435456 n2 ./user-stdout < one & multilog s268435456 n2 ./user-all < all &
cat "$DATA" | tee one all | cat > /dev/null
wait
"""


def rows() -> Iterator[Row]:
    """The cost of the bytes on each way, and of masking by kind of text.

    Raises:
        NotMeasured: the programs of the old chain are not here.
    """
    argv, name = program()
    ten = _tokens(10)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        _write_data(data, KINDS["log lines"], BYTES)
        tee, plain, masked = in_turns(
            TIMES,
            lambda: wall_ms(lambda: _shell(data, 'cat "$DATA" | tee a b | cat > /dev/null')),
            lambda: wall_ms(lambda: _through_pid1(data, argv, ())),
            lambda: wall_ms(lambda: _through_pid1(data, argv, ten)),
        )
        most = TIMES_TEE * tee.least
        for what, each in (("250 MB of output", plain), ("the same with 10 secrets", masked)):
            note = f"{name}, {_speed(each.least)}"
            yield Row(what, "ms", each, most, "tee a b", tee, note)
        yield from _masking(pathlib.Path(folder) / "kind", argv)
        if shutil.which("multilog") is None:
            raise NotMeasured("the old way of output: multilog is missing (Debian's daemontools)")
        again, old = in_turns(
            TIMES,
            lambda: wall_ms(lambda: _through_pid1(data, argv, ())),
            lambda: wall_ms(lambda: _shell(data, _OLD_CHAIN)),
        )
        yield Row(
            "250 MB of output", "ms", again, old.least / TIMES_FASTER, "tee and multilog", old,
            _speed(old.least),
        )  # fmt: skip


def _masking(data: pathlib.Path, argv: list[str]) -> Iterator[Row]:
    """The CPU time that each set of secrets adds to each kind of text."""
    sets = {"10 tokens": _tokens(10), "key and account": _keys(), "1,000 tokens": _tokens(1000)}
    for kind, line in KINDS.items():
        _write_data(data, line, MASKED_BYTES)
        program = f"dd bs=40 status=none if={data}" if "writes" in kind else f"cat {data}"
        runs = [partial(_through_pid1, data, argv, each, program) for each in ((), *sets.values())]
        plain, *masked = in_turns(TIMES, *(partial(cpu_ms, run) for run in runs))
        goal = MASKED_BYTES / LEAST_MB_S.get(kind, 30.0) / 1000
        for name, each in zip(sets, masked, strict=True):
            added = each.less(plain)
            speed = f"{MASKED_BYTES / max(1.0, added.least) / 1000:.0f} MB/s"
            yield Row(f"masking: {kind}, {name}", "ms", added, goal, "no secrets", plain, speed)


def _log_line(n: int, rng: random.Random) -> bytes:
    loss = rng.random()
    path = f"/data/checkpoints/run-{n // 1000:04}/step-{n:08}.pt"
    return f"2026-11-24 10:{n % 60:02} INFO train: step {n} loss={loss:.5f} saved {path}\n".encode()


def _json_line(n: int, rng: random.Random) -> bytes:
    return (
        json.dumps({"level": "info", "step": n, "loss": rng.random(), "host": "worker-3"}).encode()
        + b"\n"
    )


def _coloured(n: int, rng: random.Random) -> bytes:
    return b"\x1b[32mINFO\x1b[0m \x1b[1mstep\x1b[0m %d loss=\x1b[36m%.5f\x1b[0m\n" % (
        n,
        rng.random(),
    )


def _progress(n: int, rng: random.Random) -> bytes:
    bar = "█" * (n % 10) + " " * (10 - n % 10)
    return f"\r{n % 100:3}%|{bar}| {n}/5000 [00:10<01:12, {rng.random() * 90:.2f}it/s]".encode()


def _dump(n: int, rng: random.Random) -> bytes:
    raw = rng.randbytes(16)
    shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)
    return f"{n * 16:08x}: {raw.hex(' ', -2)}  {shown}\n".encode()


KINDS: dict[str, Callable[[int, random.Random], bytes]] = {
    "log lines": _log_line,
    "JSON lines": _json_line,
    "base64": lambda _, rng: base64.b64encode(rng.randbytes(600)) + b"\n",
    "wrapped base64": lambda _, rng: base64.encodebytes(rng.randbytes(57)),
    "progress bar": _progress,
    "hex dump": _dump,
    "colours": _coloured,
    "a digest per line": lambda n, rng: f"{rng.randbytes(32).hex()}  part-{n:05}\n".encode(),
    "writes of 40 bytes": _log_line,
}
"""Makes a line of each kind of text."""


def _write_data(path: pathlib.Path, line: Callable[[int, random.Random], bytes], size: int) -> None:
    rng = random.Random(1)
    lines = b"".join(line(n, rng) for n in range(20_000))
    with path.open("wb") as f:
        while f.tell() < size:
            f.write(lines)


def _shell(data: pathlib.Path, script: str) -> None:
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        env = {**os.environ, "DATA": str(data)}
        subprocess.run(["bash", "-c", script], check=True, cwd=folder, env=env, stderr=-3)


def _through_pid1(
    data: pathlib.Path, argv: list[str], secrets: tuple[str, ...], program: str = ""
) -> None:
    with tempfile.TemporaryDirectory(dir=data.parent) as folder:
        volume = pathlib.Path(folder)
        env = prepare(volume, f"exec {program or f'cat {data}'}\n", secrets)
        script = 'set -o pipefail; "$@" 2> /dev/null | cat > /dev/null'
        subprocess.run(["bash", "-c", script, "-", *argv], check=True, cwd=ROOT, env=env)
        kept = volume / "logs" / "local" / "user-all" / "current"
        if kept.stat().st_size != data.stat().st_size:
            raise RuntimeError(f"of the output {kept.stat().st_size} bytes were kept")


def _tokens(count: int) -> tuple[str, ...]:
    """Values as tokens are: letters and digits without a pattern."""
    rng, letters = random.Random(2), string.ascii_letters + string.digits
    return tuple("".join(rng.choices(letters, k=24)) for _ in range(count))


def _keys() -> tuple[str, str]:
    """A key as in a PEM file, and the JSON of a service account with it."""
    body = base64.b64encode(random.Random(3).randbytes(1218)).decode()
    lines = [body[n : n + 64] for n in range(0, len(body), 64)]
    key = "\n".join(("-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""))
    account = {
        "type": "service_account",
        "project_id": "team-project",
        "private_key_id": random.Random(4).randbytes(20).hex(),
        "private_key": key,
        "client_email": "train@team-project.iam.gserviceaccount.com",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return key, json.dumps(account, indent=2)


def _speed(milliseconds: float) -> str:
    return f"{BYTES / milliseconds / 1e6:.2f} GB/s"

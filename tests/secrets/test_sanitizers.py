"""The scanner in C reads and writes no byte that is not its own, and finds what the other one finds."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pairun.secrets.masking import mask
from pairun.secrets.scanner import PythonScanner
from tests.secrets.conftest import build, load

ROOT = Path(__file__).parents[2]
CASES = 12_000
PARTS = [
    b"A" * 16, b"A" * 15, b"ab", b"abcab", b"\n", b"\r\n", b"\r", b"-_+/", b" ", b"\x1b[31m", b"\x1b[",
    b"\x1b", b"\x1b]0;title\x07", b"\x1b]", b"\x1b(B", b"\x1b[" + b"1" * 65, b"\x1b]" + b"t" * 501, b"\0",
]  # fmt: skip


def run(path: str) -> None:
    """Compare the scanners on random forms and texts, as a process with sanitizers."""
    compiled, rng = load(path), random.Random(1)
    for _ in range(CASES):
        parts = [*PARTS, rng.randbytes(rng.randrange(1, 9))]
        forms = {
            b"".join(rng.choices(parts, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 9))
        }
        ordered = sorted({f + b"ab" for f in forms}, key=lambda form: (-len(form), form))
        some = rng.choice(ordered)
        parts += [some, some[: rng.randrange(len(some))], some[rng.randrange(len(some)) :]]
        # A copy at its own place, so that a sanitizer sees a read before or after it.
        data = bytes(bytearray(b"".join(rng.choices(parts, k=rng.randrange(9)))))
        one, other = PythonScanner(ordered), compiled(ordered)
        final, before = rng.random() < 0.5, rng.randrange(17)
        assert one.spans(data, final) == other.spans(data, final), (ordered, data, final)
        mask(other, data, final=final, before=before)
        mask(other, data[:-1], final=final, before=before)


@pytest.mark.slow
def test_no_byte_of_another(tmp_path: Path) -> None:
    """12,000 cases under AddressSanitizer and UndefinedBehaviorSanitizer."""
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    path = build(tmp_path, "-g", "-O1", *sanitizers)
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    script = f"from tests.secrets.test_sanitizers import run; run({str(path)!r})"
    env = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees nothing at its end
        "PYTHONMALLOC": "malloc",  # else one block has many objects
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]

"""No input makes pairun fail with a traceback, hang, or take much memory (docs/security.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.fuzz.targets import PROJECT, TARGETS
from tests.effort import EFFORT

CASES = 400
NIGHTLY_CASES = 5000
SEED = 20


def in_a_small_process(*argv: str) -> subprocess.CompletedProcess[str]:
    """Fuzz in a process that forks its cases: this one has more memory than a case may."""
    return subprocess.run(
        [sys.executable, "-m", "tests.attack.fuzz", *argv],
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_promise_is_broken(target: str, tmp_path: Path) -> None:
    """400 cases in CI, 5,000 in a night, of one seed: each ends with a documented exit code."""
    cases = min(NIGHTLY_CASES, round(CASES * EFFORT)) // len(TARGETS) + 1
    done = in_a_small_process(
        "--seed", str(SEED), "--cases", str(cases), "--target", target, "--out", str(tmp_path)
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases} cases, 0 broke a promise" in done.stdout


def merges(count: int) -> bytes:
    """A text that merges nothing, very often."""
    return b"a:\n" + b"- <<: {}\n" * count


def passwords(count: int) -> bytes:
    """A text with a different password in every line."""
    return b"a:\n" + b"".join(b"  p%d: {password: 'hunter%d'}\n" % (n, n) for n in range(count))


def many_patterns(count: int) -> bytes:
    """A rule with very many patterns, each with a word."""
    patterns = ", ".join(f"'(abcdef|ghijk{n}).*x'" for n in range(count))
    rule = f"id: a, class: nccl_timeout, positive: [abcdefx, abcdefx], negative: [x, y], patterns: [{patterns}]"
    return f"rules:\n- {{{rule}}}\n".encode()


def deep_aliases(count: int) -> bytes:
    """Aliases of aliases, each many levels deep."""
    lines = ["a0: &a0 x"]
    lines += [f"a{n}: &a{n} {'[' * 60}*a{n - 1}{']' * 60}" for n in range(1, count)]
    return "\n".join(lines).encode()


def job(more: str = "", *, command: str = "train") -> bytes:
    """A small job file.

    Args:
        more: further keys.
        command: of its one role.
    """
    head = "protocolVersion: 2\nname: j\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: u}]\n"
    role = f'{{dockerImage: i, resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}, commands: ["{command}"]}}'
    return f"{head}taskRoles: {{w: {role}}}\n{more}".encode()


CMD = "{plugin: cmd, parameters: {preCommands: [a]}}"
RULE = b"rules:\n- {id: a, class: nccl_timeout, patterns: ['%s'], positive: [abcdef, abcdef], negative: [x, y]}\n"
MINIMAL: list[tuple[str, str, bytes]] = [
    ("429 KB of merges", "jobs", merges(47_000)),
    ("300 KB of passwords", "jobs", passwords(9_000)),
    ("1 MB of merges in a playbook", "playbooks", merges(110_000)),
    ("1,000 levels by aliases", "jobs", deep_aliases(16)),
    ("15 KB of patterns", "rules", many_patterns(600)),
    ("150 KB of patterns", "rules", many_patterns(6_000)),
    ("300 KB of letters before ://", "jobs", job(command="a" * 300_000 + "://")),
    (
        "5,000 secrets",
        "jobs",
        job(f"secrets: {{{', '.join(f's{n}: hunterhunter{n}' for n in range(5_000))}}}\n"),
    ),
    (
        "300 plugins",
        "jobs",
        job(f"extras: {{com.microsoft.pai.runtimeplugin: [{', '.join([CMD] * 300)}]}}\n"),
    ),
    (
        "a duration of 5,000 digits",
        "playbooks",
        f"phase: init\ntasks: [{{id: a, name: N, timeout: {'9' * 5000}s, hold: {{}}}}]\n".encode(),
    ),
    ("old Macintosh line ends", "jobs", job().replace(b"\n", b"\r")),
    ("a NUL in a folder's name", "policies", b'job_may: {}\nplugin_folders: {paths: ["a\\0"]}\n'),
    ("half a character in a pattern", "rules", RULE % b"\\ud800abcdef"),
    ("5,000 levels in a pattern", "rules", RULE % (b"(" * 5_000 + b"abcdef" + b")" * 5_000)),
]
"""What it is, its format, and the input: each broke a promise once."""


@pytest.mark.slow
@pytest.mark.parametrize(("target", "data"), [m[1:] for m in MINIMAL], ids=[m[0] for m in MINIMAL])
def test_what_broke_a_promise_once(target: str, data: bytes, tmp_path: Path) -> None:
    """Every input that fuzzing found, and those found by hand, stay harmless."""
    (tmp_path / "input").write_bytes(data)
    done = in_a_small_process("--target", target, "--file", str(tmp_path / "input"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("1 / 0", "a traceback"),
        ("raise SystemExit(7)", "exit code 7 is not documented"),
        ("while True: pass", "1 s of CPU time"),
        ("b'x' * (400 << 20)", "300 MB"),
        ("import os; os.abort()", "died of SIGABRT"),
        ("0", ""),
    ],
)
def test_the_box_notices(code: str, broken: str) -> None:
    """The box in which cases run tells every broken promise from a kept one."""
    program = (
        "from tests.attack.fuzz.box import judge\n"
        f"def run(folder):\n    exec({code!r})\n    return 0\n"
        "print(judge(run, {0, 1}, cpu_s=1).broken)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert (broken in done.stdout) if broken else not done.stdout.strip(), done.stdout

"""Runs git so that nothing in the address, the environment or a repository starts a program."""

from __future__ import annotations

import os
import re

from pairun.module import Completed, Context, Secret, is_worth_a_retry, retry_after_s

from .address import PROTOCOLS, credentials_in, is_local, plain_url
from .meanings import failure_of, require_host

_KEPT_VARIABLES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY")
"""The variables of git that a task may set: they name files with certificates.

All others are removed: many start programs (GIT_SSH_COMMAND, GIT_CONFIG_…, GIT_EXTERNAL_DIFF, …).
"""

_SSH = (
    "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)

_CREDENTIAL_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n"'
    ' "$PAIRUN_GIT_USERNAME" "$PAIRUN_GIT_PASSWORD"; }; f'
)
"""Gives git the user and the password from the environment (gitcredentials(7)).

So they are in no argument list, no log and no configuration of the clone.
"""

_TRACE_BYTES = 1 << 20
"""How many bytes of the headers are read, from their end."""

_PROGRESS_S = 10.0
"""The shortest time between two progress lines in the log, in seconds."""

_RECEIVING = re.compile(
    r"Receiving objects: +[0-9]+% \(([0-9]+)/([0-9]+)\), ([0-9.]+) (bytes|KiB|MiB|GiB)"
)
"""git's progress of a transfer (git-fetch-pack(1)); it has a total of objects, but not of bytes."""

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Git:
    """Runs git.

    Args:
        repo: the repository's address; its credentials are only for its server.
        lfs: whether to use Git LFS if git-lfs is installed.
        stall_s: how long a server may be silent, in seconds.
        lazy: whether git may fetch objects when it needs them, which a partial clone does.

    Attributes:
        url: the address without credentials.
        lfs: whether git uses Git LFS.
    """

    def __init__(self, ctx: Context, repo: str, *, lfs: bool, stall_s: float, lazy: bool) -> None:
        self._ctx, self._repo, self._stall_s, self._lazy = ctx, repo, stall_s, lazy
        self.url = plain_url(repo)
        self.lfs = lfs and ctx.which("git-lfs") is not None

    def query(self, words: list[str], target: str) -> Completed:
        """Run a read-only command in a clone that we made."""
        return self._ctx.query(["git", *words], env=self._environment(self._stall_s), cwd=target)

    def list_remote(self, names: list[str], timeout_s: float) -> Completed:
        """Ask the server for the commits of references.

        Raises:
            TimedOut: the server does not respond in time.
        """
        return self._ctx.query(
            ["git", "ls-remote", "--quiet", "--", self.url, *names],
            env=self._environment(min(self._stall_s, timeout_s / 2)),
            cwd="/",
            timeout_s=timeout_s,
        )

    def run(self, command: str, words: list[str], cwd: str) -> None:
        """Run a git command, and log its messages as they arrive.

        Raises:
            Failure: the command fails.
        """
        quiet = "--quiet" in words or command == "update-ref"
        ctx, progress = self._ctx, [] if quiet else ["--progress"]
        if command == "submodule":
            progress, words = [], [words[0], *progress, *words[1:]]
        with open(os.memfd_create("pairun-git-trace"), "rb") as trace:
            env = self._environment(self._stall_s)
            # git does not report a server's Retry-After. This file in memory gets the headers of
            # all answers to git and the programs that it starts, with credentials redacted.
            env["GIT_TRACE_CURL"] = f"/proc/{os.getpid()}/fd/{trace.fileno()}"
            env["GIT_TRACE_CURL_NO_DATA"] = env["GIT_TRACE_REDACT"] = "1"
            argv = ["git", command, *progress, *words]
            done = ctx.run(argv, env=env, cwd=cwd, capture=True, watch=_Log(ctx).take)
            if done.code != 0:
                require_host(done, ctx)
                # If a server sends headers without end, read the last ones.
                trace.seek(max(0, os.fstat(trace.fileno()).st_size - _TRACE_BYTES))
                headers = trace.read(_TRACE_BYTES).decode("latin-1")
                raise failure_of(command, done, _asked_wait_s(headers, ctx.now()))

    def _environment(self, stall_s: float) -> dict[str, str | Secret | None]:
        """No questions, English messages, the credentials, and nothing that starts a program."""
        ctx, (user, password, server) = self._ctx, credentials_in(self._repo)
        ctx.hide([password])
        foreign = (name for name in ctx.env if name.startswith("GIT_"))
        return {
            **{name: None for name in foreign if name not in _KEPT_VARIABLES},
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_SSH_COMMAND": _SSH,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TEMPLATE_DIR": "",
            "GIT_NO_LAZY_FETCH": "0" if self._lazy else "1",
            "LC_ALL": "C",
            "PAIRUN_GIT_USERNAME": Secret(user),
            "PAIRUN_GIT_PASSWORD": Secret(password),
            **_settings(server, local=is_local(self._repo), lfs=self.lfs, stall_s=stall_s),
        }


class _Log:
    """Logs git's messages as they arrive; reports transfers' progress, and logs other progress."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._rest = b""
        self._next = ctx.now() + _PROGRESS_S

    def take(self, data: bytes) -> None:
        """Take the next bytes of git's output."""
        *lines, self._rest = re.split(b"(?<=[\r\n])", self._rest[-65536:] + data)
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if line.endswith(b"\r"):
                if transfer := _RECEIVING.match(text):
                    self._report(*transfer.groups())
                    continue
                if self._ctx.now() < self._next:
                    continue
                self._next = self._ctx.now() + _PROGRESS_S
            if text:
                self._ctx.log(text)

    def _report(self, objects: str, of: str, amount: str, unit: str) -> None:
        """Report the bytes so far, and an estimated total from the share of objects."""
        try:
            done = int(float(amount) * _UNITS[unit])
        except ValueError:
            return
        total = done * int(of) // int(objects) if int(objects) else None
        self._ctx.progress(done, total)


def _settings(server: str | None, *, local: bool, lfs: bool, stall_s: float) -> dict[str, str]:
    """The variables of git's settings, which also bind submodules (git(1), GIT_CONFIG_COUNT).

    Args:
        server: scheme, host and port that may get the credentials: a submodule or a redirect may
            lead to another one.
        local: whether the repository is a directory of this machine, as its submodules may be.
        stall_s: how long an http server may be silent, in seconds.
    """
    # An empty helper removes all others.
    settings = [("credential.helper", "")]
    if server is not None:
        key = f"credential.{server}.helper"
        settings += [(key, ""), (key, _CREDENTIAL_HELPER)]
    settings += [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("protocol.allow", "never"),
        *((f"protocol.{name}.allow", "always") for name in PROTOCOLS),
        *((f"protocol.{name}.allow", "never") for name in ("ext", "fd")),
        ("protocol.file.allow", "always" if local else "never"),
        ("http.followRedirects", "initial"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", str(max(1, round(stall_s)))),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("advice.detachedHead", "false"),
        # The only filter that a repository's .gitattributes can name.
        ("filter.lfs.process", "git-lfs filter-process" if lfs else ""),
        ("filter.lfs.clean", "git-lfs clean -- %f" if lfs else ""),
        ("filter.lfs.smudge", "git-lfs smudge -- %f" if lfs else ""),
        ("filter.lfs.required", "true" if lfs else "false"),
        ("lfs.activitytimeout", str(max(1, round(stall_s)))),
    ]
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _asked_wait_s(headers: str, now: float) -> float | None:
    """The last answer's ``Retry-After`` in seconds, if a retry can help.

    Args:
        headers: git's trace of requests and answers.
        now: seconds since the epoch.
    """
    status, value = 0, None
    for line in re.finditer(
        r"<= Recv header: (?:HTTP/[\d.]+ (\d+)|retry-after: *([^\r\n]*))", headers, re.IGNORECASE
    ):
        if line[1]:
            status, value = int(line[1]), None
        elif is_worth_a_retry(status):
            value = line[2].strip()
    return retry_after_s(value, now)

"""The barrier's output: its log, the Framework, and FrameworkController's injector."""

from __future__ import annotations

import json
import os
import time

from pairun.module import Context, Failure, differing_files

from .objects import Object, all_members, task_attempts


class BarrierLog:
    """Writes lines to the task's log and to ``barrier.log`` in the Pod's log directory."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._folder = os.path.join(ctx.pai_dir, "logs", ctx.env["FC_POD_UID"])
        self._lines: list[str] = []
        self._works = True

    def say(self, line: str) -> None:
        """Log one line, also in the file."""
        self._ctx.log(line)
        self.keep(line)

    def keep(self, line: str) -> None:
        """Append one line to the file; if that fails, log the failure once and continue."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._ctx.now()))
        self._lines.append(f"{stamp} {line}\n")
        if not self._works:
            return
        try:
            self._ctx.make_dir(self._folder)
            path = os.path.join(self._folder, "barrier.log")
            self._ctx.write_file(path, "".join(self._lines).encode())
        except Failure as e:
            self._works = False
            self._ctx.log(f"cannot write barrier.log: {e.message}")


def write_if_changed(ctx: Context, name: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file on the shared volume, unless it has this content and mode."""
    if differing_files(ctx, ctx.pai_dir, {name: (data, mode)}):
        ctx.write_file(os.path.join(ctx.pai_dir, name), data, mode)


def write_framework(ctx: Context, framework: Object) -> None:
    """Write ``framework.json``."""
    # One line: for a large gang, indenting takes longer than everything else.
    write_if_changed(ctx, "framework.json", json.dumps(framework).encode() + b"\n")


def write_injector(ctx: Context, framework: Object) -> None:
    """Write ``injector.sh``, the script of FrameworkController's barrier.

    The shell that sources it sets ``FB_<ROLE>_PORT``.
    """
    attempts = task_attempts(framework)
    ips: dict[str, list[str]] = {}
    for member in all_members(framework):
        ip = attempts.get(member, {}).get("podIP")
        ips.setdefault(member.role, []).extend([ip] if ip else [])
    lines = ["#!/bin/bash", ""]
    for suffix, port in (("IPS", ""), ("ADDRESSES", ":${{FB_{}_PORT}}")):
        for role, known in ips.items():
            name = f"FB_{role.upper()}_{suffix}"
            values = ",".join(ip + port.format(role.upper()) for ip in known)
            lines += [f"export {name}={values}", f"echo {name}=${{{name}}}"]
    write_if_changed(ctx, "injector.sh", "\n".join(lines).encode() + b"\n", 0o755)

"""Write the variables of the job for the user's container."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pairun.module import (
    Context,
    Result,
    StateModule,
    Verdict,
    arg,
    define,
    differing_files,
    no_change,
    will_change,
)


class _State(NamedTuple):
    """The names of files that are missing or differ, and whether one of these exists."""

    wrong: list[str]
    exists: bool


@define
class JobEnvironment(StateModule):
    """Write ``runtime.d/runtime_env.sh`` and ``runtime.d/cluster.json`` on the shared volume.

    The first is what OpenPAI's own runtime writes: one ``export NAME='value'`` per line, in the
    order given. The second has the same data and more for programs.
    """

    phases = ("init",)
    certainly = "writes"
    privileges = "may write to the shared volume"
    example = "job_environment: {environment: [[PAI_TASK_ROLE_INSTANCES, 'worker:0']], cluster: {}}"

    environment: list[list[str]] = arg("Pairs of a variable's name and value, in order.")
    cluster: dict[str, Any] = arg("Peers, ports and the task's own place, as data.", factory=dict)

    def require(self) -> Iterator[str]:
        """Every entry is a pair."""
        for number, pair in enumerate(self.environment):
            if len(pair) != 2:
                yield f"environment.{number} must be a pair of name and value"

    def probe(self, ctx: Context) -> _State:
        """Compare both files with what they must hold."""
        folder = os.path.join(ctx.pai_dir, "runtime.d")
        wrong = differing_files(ctx, folder, self._files())
        exists = any(ctx.stat(os.path.join(folder, name)) is not None for name in wrong)
        return _State(wrong, exists)

    def plan(self, state: _State) -> Verdict:
        """Compare both files."""
        if not state.wrong:
            return no_change("both files match")
        before = "other content" if state.exists else "nothing"
        after = f"{len(self._exported())} variables"
        return will_change(f"write {' and '.join(state.wrong)}", before, after)

    def apply(self, ctx: Context) -> Result:
        """Write both files."""
        for name, _ in self.environment:
            if not _shell_can_name(name):
                ctx.log(f"the variable {name!r} is left out: a shell cannot export that name")
        directory = os.path.join(ctx.pai_dir, "runtime.d")
        ctx.make_dir(directory)
        for name, file in self._files().items():
            ctx.write_file(os.path.join(directory, name), *file)
        return Result(message=f"{len(self._exported())} variables")

    def _exported(self) -> list[list[str]]:
        return [pair for pair in self.environment if _shell_can_name(pair[0])]

    def _files(self) -> dict[str, tuple[bytes, int]]:
        lines = [f"export {name}={_quoted(value)}\n" for name, value in self._exported()]
        cluster = json.dumps(self.cluster, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        return {
            "runtime_env.sh": ("".join(lines).encode("utf-8", "surrogateescape"), 0o644),
            "cluster.json": (cluster.encode("utf-8", "surrogateescape"), 0o644),
        }


def _shell_can_name(name: str) -> bool:
    # The file is sourced: anything else would be a syntax error or, worse, a command.
    return re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is not None


def _quoted(value: str) -> str:
    """A value in single quotes, where nothing but the quote itself is special (sh, 2.2.2)."""
    return "'" + value.replace("\0", "").replace("'", "'\\''") + "'"

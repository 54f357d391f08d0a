"""A world in memory: reads and changes nothing on this machine."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from pairun.module import (
    Completed,
    Context,
    Fetched,
    FetchedFile,
    FileStat,
    Permanent,
    Secret,
    TimedOut,
    reveal,
)
from pairun.testing.script import Call, Script, answer
from pairun.testing.world import World


@attrs.frozen
class _Node:
    """A file, or a directory if the data are None; each change gives it a new version."""

    data: bytes | None
    mode: int
    version: int


class FakeWorld(World):
    """A world whose files, commands, servers and time the test defines.

    A call without a scripted answer fails the test, and the message names it. An answer is a value,
    an exception, a function that gets the call's arguments, or `in_turn(…)`.

    Args:
        files: path to content; None for a directory. Parents are made.
        commands: the start of a command line to its answer: a `Completed`, or the text that it
            prints. The longest matching start wins. `which` finds the programs named here.
        fetches: address to its answer: a `Fetched`, or the bytes of a body with status 200. For
            ``fetch``, ``post`` and ``fetch_file``.
        answers: context method to its answer; overrides everything else.
        env: the environment of the task.
        time_s: seconds since the epoch when the test begins; only waiting moves the clock.
        deadline_s: seconds until the attempt is stopped; None for no limit.
        pai_dir: the shared volume; it exists.

    Attributes:
        time_s: the clock.
        progress: every progress report: bytes done, bytes in total, file.
        hidden: the texts that the module hid, in order.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes | None] | None = None,
        *,
        commands: Mapping[str, Any] | None = None,
        fetches: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        time_s: float = 1_700_000_000.0,
        deadline_s: float | None = None,
        pai_dir: str = "/usr/local/pai",
    ) -> None:
        self.folder = "/tmp"
        self.pai_dir = pai_dir
        self.log: list[str] = []
        self.progress: list[tuple[int, int | None, str]] = []
        self.hidden: list[str] = []
        self.time_s = time_s
        self._end_s = None if deadline_s is None else time_s + deadline_s
        self._commands = commands or {}
        self._fetches = fetches or {}
        self._versions = itertools.count()
        self._nodes: dict[str, _Node] = {"/": _Node(None, 0o755, 0)}
        for folder in (self.folder, pai_dir):
            self.put(folder, None)
        for path, content in (files or {}).items():
            self.put(path, content)
        self.script = Script(answers or {})
        base: Any = Context  # abstract until its methods are generated
        self.ctx = self.script.context_class(base, self._rest)(dict(env or {}), pai_dir)

    def put(self, path: str, text: str | bytes | None) -> None:
        """Make a file, or a directory if the content is None; makes parents."""
        path = os.path.abspath(path)
        if text is None:
            self._make_dir(path, 0o755)
            return
        if not isinstance(text, str | bytes):
            raise TypeError(
                f"files[{path!r}] must be a text, bytes or None (a folder), "
                f"not {type(text).__name__}"
            )
        self._make_dir(os.path.dirname(path), 0o755)
        self._write(path, text.encode() if isinstance(text, str) else text, 0o644)

    def text(self, path: str) -> str | None:
        """The text of a file; None if there is no file."""
        node = self._nodes.get(os.path.abspath(path))
        return None if node is None or node.data is None else node.data.decode()

    def snapshot(self) -> Mapping[str, Hashable]:
        """Every path with its content, mode and version."""
        return dict(self._nodes)

    def _rest(
        self, context: Context, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Answer a call from files, commands, fetches and the clock."""
        del context
        if call.method in ("run", "query"):
            return self._command(call, args, kwargs)
        if call.method in ("fetch", "post", "fetch_file"):
            return self._fetch(call, args, kwargs)
        own = getattr(self, f"_{call.method}", None)
        if own is None:
            raise _not_scripted(call, f'add answers={{"{call.method}": …}}')
        return own(**call.arguments)

    # --- files ---

    def _node(self, path: str) -> _Node | None:
        return self._nodes.get(os.path.abspath(path))

    def _data(self, path: str) -> bytes | None:
        node = self._node(path)
        if node is not None and node.data is None:
            raise Permanent(f"cannot read {path}: it is not a regular file", fault="user")
        return node.data if node else None

    def _write(self, path: str, data: bytes | None, mode: int) -> None:
        self._nodes[path] = _Node(data, mode, next(self._versions))

    def _stat(self, path: str) -> FileStat | None:
        node = self._node(path)
        if node is None:
            return None
        if node.data is None:
            return FileStat("directory", node.mode, 0, 0, 0)
        return FileStat("file", node.mode, len(node.data), 0, 0)

    def _read_file(self, path: str, max_bytes: int) -> bytes | None:
        data = self._data(path)
        if data is not None and len(data) > max_bytes:
            raise Permanent(
                f"cannot read {path}: it is larger than {max_bytes} bytes", fault="user"
            )
        return data

    def _digest(self, path: str) -> str | None:
        data = self._data(path)
        return None if data is None else hashlib.sha256(data).hexdigest()

    def _list_dir(self, path: str) -> list[str] | None:
        path, node = os.path.abspath(path), self._node(path)
        if node is None or node.data is not None:
            return None
        return sorted(
            os.path.basename(p) for p in self._nodes if os.path.dirname(p) == path and p != "/"
        )

    def _write_file(self, path: str, data: bytes, mode: int) -> None:
        path = os.path.abspath(path)
        parent = self._node(os.path.dirname(path))
        if parent is None or parent.data is not None:
            # The end is for the author of the test; an assertion shows the message only.
            message = f"cannot write {path}: no such file or directory"
            advice = f'to make the folder, add files={{"{os.path.dirname(path)}": None}}'
            raise Permanent(f"{message}; {advice}" if parent is None else message, fault="user")
        self._write(path, data, mode)

    def _set_mode(self, path: str, mode: int) -> None:
        node = self._node(path)
        if node is None:
            raise Permanent(f"cannot set the mode of {path}: no such file", fault="user")
        self._write(os.path.abspath(path), node.data, mode)

    def _make_dir(self, path: str, mode: int) -> None:
        path, node = os.path.abspath(path), self._node(path)
        if node is None:
            self._make_dir(os.path.dirname(path), 0o755)
            self._write(path, None, mode)
        elif node.data is not None:
            raise Permanent(f"cannot make the directory {path}: file exists", fault="user")

    def _rename(self, source: str, target: str) -> None:
        source, target = os.path.abspath(source), os.path.abspath(target)
        if source not in self._nodes:
            raise Permanent(f"cannot move {source}: no such file or directory", fault="user")
        self._remove(target)
        for path in self._below(source):
            node = self._nodes.pop(path)
            self._write(target + path.removeprefix(source), node.data, node.mode)

    def _remove(self, path: str) -> None:
        for below in self._below(os.path.abspath(path)):
            del self._nodes[below]

    def _below(self, path: str) -> list[str]:
        """A path and all paths below it."""
        return [p for p in self._nodes if p == path or p.startswith(path + "/")]

    # --- commands and servers ---

    def _command(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Completed:
        line = " ".join(call.arguments["argv"])
        fitting = [c for c in self._commands if line == c or line.startswith(f"{c} ")]
        if not fitting:
            raise _not_scripted(call, f'add commands={{"{line}": …}}')
        start = max(fitting, key=len)
        output = answer(self._commands[start], args, kwargs)
        if isinstance(output, str):
            return Completed(0, output.encode(), b"")
        if not isinstance(output, Completed):
            raise _wrong_answer(
                "commands", start, output, "a text (its output) or Completed(code, stdout, stderr)"
            )
        return output

    def _which(self, program: str) -> str | None:
        programs = {os.path.basename(line.split()[0]) for line in self._commands}
        return f"/usr/bin/{program}" if program in programs else None

    def _fetch(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Fetched | FetchedFile:
        url: str | Secret = call.arguments["url"]
        if reveal(url) not in self._fetches:
            raise _not_scripted(call, f'add fetches={{"{url}": …}}')
        scripted = answer(self._fetches[reveal(url)], args, kwargs)
        if not isinstance(scripted, bytes | Fetched):
            raise _wrong_answer(
                "fetches", str(url), scripted, "bytes (a body) or Fetched(status, headers, body)"
            )
        response = Fetched(200, {}, scripted) if isinstance(scripted, bytes) else scripted
        if call.method != "fetch_file":
            return response
        if response.status != 200:
            raise AssertionError(
                f"fetch_file raises for status {response.status}: script a Failure"
            )
        sha256 = hashlib.sha256(response.body).hexdigest()
        if call.arguments["sha256"] not in (None, sha256):
            raise Permanent(f"{url} has another SHA-256: {sha256}")
        self._write_file(call.arguments["path"], response.body, call.arguments["mode"])
        return FetchedFile(len(response.body), sha256, 0)

    # --- time and words ---

    def _now(self) -> float:
        return self.time_s

    def _remaining_s(self) -> float | None:
        return None if self._end_s is None else self._end_s - self.time_s

    def _sleep(self, seconds: float) -> None:
        left = self._remaining_s()
        if left is not None and left < seconds:
            self.time_s += max(0.0, left)
            raise TimedOut("the time limit of this attempt expired")
        self.time_s += seconds

    def _log(self, line: str) -> None:
        self.log.append(line)

    def _hide(self, texts: Sequence[str | Secret]) -> None:
        self.hidden += [reveal(text) for text in texts]

    def _progress(self, done: int, total: int | None, file: str) -> None:
        self.progress.append((done, total, file))


def _wrong_answer(argument: str, key: str, scripted: Any, expected: str) -> AssertionError:
    return AssertionError(
        f"{argument}[{key!r}] must be {expected}, not {type(scripted).__name__}; "
        "or an exception, a function, in_turn(…)"
    )


def _not_scripted(call: Call, hint: str) -> AssertionError:
    shown = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return AssertionError(f"the test has no answer for {call.method}({shown[:300]}); {hint}")

"""The recorded conversations with a Kubernetes 1.32 server, played again by the tests' API server.

The clock of a replay moves only when a client asks: by `timeoutSeconds` for a watch, else by `STEP_S`, as
in the recordings of restarts. So a minute of a recording takes a moment, and is the same each time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conftest import SHARED
from tests.fakeapi import Answer, Handler, status

OBSERVED = SHARED / "kubernetes" / "observed" / "1.32"
STEP_S = 0.1
OWNERS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "FC_FRAMEWORK_NAME")
"""Labels of a Pod with the name of its workload."""

Object = dict[str, Any]
Said = tuple[int, Any, dict[str, str]]
"""Status, body and headers of a recorded answer."""


class Conversation:
    """A recorded conversation.

    Args:
        name: the beginning of its folder's name, such as ``01``.
    """

    def __init__(self, name: str) -> None:
        [folder] = OBSERVED.glob(f"{name}-*")
        text = (folder / "conversation.jsonl").read_text()
        self.lines: list[Object] = [json.loads(line) for line in text.splitlines()]

    def exchanges(self) -> Iterator[Object]:
        """The requests with one answer, in order."""
        for line in self.lines:
            if line.keys() >= {"method", "status", "body"} and "timeline" not in line:
                yield line

    def said(self, words: str) -> Said:
        """The answer of the first exchange whose note, or method and path, contains words."""
        for line in self.exchanges():
            if words in (line.get("note") or "") or words in f"{line['method']} {line['path']}":
                return _answer(line)
        raise LookupError(words)

    def rows(self, label: str) -> Iterator[Said | None]:
        """The answers of a timeline, row by row; a body is that of the last row that shows one."""
        whole: dict[int, Object] = {}
        for row in self.lines:
            if row.get("timeline") == label:
                if "error" in row:
                    yield None
                    continue
                shown = whole.setdefault(row["status"], {})
                shown |= {key: row[key] for key in ("status", "headers", "body") if key in row}
                yield _answer(shown)


def _answer(line: Mapping[str, Any]) -> Said:
    """A recorded response; `Fake` sends its length."""
    body = line.get("body") or b""
    headers = {k: v for k, v in line.get("headers") or () if k not in _FRAMING}
    return line["status"], body.encode() if isinstance(body, str) else body, headers


_FRAMING = ("Content-Length", "Transfer-Encoding")


class Replay:
    """The API server of a conversation: objects as its watches showed them, else as it answered.

    Args:
        conversation: the recording.
        job: begin with the creation of this workload.

    Attributes:
        now: the recording's clock, in seconds.
        told: answers for a method and a path, instead of the recording's.
        bodies: what clients sent, by method and path.

    Raises:
        ValueError: the recording leaves out events of this job.
    """

    def __init__(self, conversation: Conversation, job: str = "") -> None:
        self._lines = list(conversation.exchanges())
        self._events = list(_events(conversation.lines))
        self._watched = {path for _, path, _, _ in self._events}
        self.told: dict[tuple[str, str], Answer] = {}
        self.bodies: dict[tuple[str, str], Any] = {}
        self.now = 0.0
        if job:
            for line in conversation.lines:
                left_out = re.search(r"left out .* named (\S+)", line.get("note") or "")
                if left_out and (re.match(left_out[1], job) or re.match(left_out[1], f"{job}-")):
                    raise ValueError(line["note"])
            self.now = min(t for t, _, _, each in self._events if _name(each) == job)

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        self.bodies[method, path] = body
        is_watch = "watch" in query
        self.now += float(query["timeoutSeconds"]) if is_watch else STEP_S
        if is_watch:
            return 200, b"".join(self._news(path, query))
        if (method, path) in self.told:
            return self.told[method, path]
        if method == "GET" and path in self._watched:
            return 200, self._list(path, query.get("labelSelector", ""))
        collection, _, name = path.rpartition("/")
        if method == "GET" and collection in self._watched:
            found = [o for o in self._list(collection, "")["items"] if _name(o) == name]
            return (200, found[0]) if found else status(404, "NotFound", f'"{name}" not found')
        asked = [
            each for each in self._lines
            if each["method"] == method and each["path"].partition("?")[0] == path
        ]  # fmt: skip
        earlier = [each for each in asked if each["t"] <= self.now]
        if not asked:
            return status(404, "NotFound", f"{path} not found")
        code, said, headers = _answer([*asked[:1], *earlier][-1])
        return code, _marked_all(said), headers

    def _news(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        since = int(query.get("resourceVersion") or 0)
        for t, watched, kind, each in self._events:
            is_new = watched == path and t <= self.now and _version(each) > since
            if is_new and (kind == "BOOKMARK" or _fits(each, query.get("labelSelector", ""))):
                yield json.dumps({"type": kind, "object": each}).encode() + b"\n"

    def _list(self, path: str, selector: str) -> Object:
        found: dict[str, Object] = {}
        version = 1
        for t, watched, kind, each in self._events:
            if watched == path and t <= self.now:
                version = max(version, _version(each))
                if kind == "DELETED":
                    found.pop(_name(each), None)
                elif kind != "BOOKMARK":
                    found[_name(each)] = each
        items = [each for each in found.values() if _fits(each, selector)]
        return {"metadata": {"resourceVersion": str(version)}, "items": items}


def _events(lines: list[Object]) -> Iterator[tuple[float, str, str, Object]]:
    """Time, collection, type and object of each event; the first watch of a collection counts."""
    watches: dict[str, str] = {}
    for line in lines:
        if "watch" in line and "path" in line:
            path = line["path"].partition("?")[0]
            if path not in watches.values():
                watches[line["watch"]] = path
        elif "event" in line and line["watch"] in watches:
            event = line["event"]
            yield line["t"], watches[line["watch"]], event["type"], _marked(event["object"])


def _marked(thing: Object) -> Object:
    """An object with the labels that pairun gives to its own."""
    meta = thing.get("metadata") or {}
    labels = meta.get("labels") or {}
    owner = next((labels[key] for key in OWNERS if key in labels), meta.get("name"))
    return {**thing, "metadata": {**meta, "labels": {**labels, "pairun/job": owner}}}


def _marked_all(said: Any) -> Any:
    if not isinstance(said, dict) or said.get("kind") == "Status":
        return said
    return {**said, "items": [*map(_marked, said["items"])]} if "items" in said else _marked(said)


def _name(thing: Object) -> str:
    return str(thing["metadata"].get("name"))


def _version(thing: Object) -> int:
    return int(thing["metadata"].get("resourceVersion") or 0)


def _fits(thing: Object, selector: str) -> bool:
    labels = thing["metadata"]["labels"]
    return all(
        labels.get(k) == v for k, _, v in (s.partition("=") for s in selector.split(",")) if k
    )


def through(rows: Iterator[Said | None], inner: Handler) -> Handler:
    """A server whose first requests get the rows of a timeline; where a row is a success, `inner` answers."""

    def handle(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        row: Said | None = next(rows, (200, b"", {}))
        return row if row is None or row[0] >= 300 else inner(method, path, query, body)

    return handle

"""What objects of Kubernetes show of Pods and nodes, as ``kubectl get ... -o json`` or ``-o yaml`` prints them.

Source: Kubernetes API reference, Pod, Node, Event and List; FrameworkController's Framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json_at
from pairun.diagnose.classes import EXIT_CODES
from pairun.diagnose.signals import EFFECT, KUBERNETES, SYSTEM, Signal
from pairun.diagnose.systemfacts import of_event, of_message, of_reason
from pairun.diagnose.times import Moment, moment_in
from pairun.kube.events import subject_of, time_of
from pairun.kube.frameworkpods import ended_pod, init_names, retries_of, tasks_of, trigger_of
from pairun.kube.pods import conditions_of, place_of, statements_of, states_of, statuses_of

MAX_BYTES = 64 << 20
_MAX_YAML_BYTES = 8 << 20
_MAX_OBJECTS = 20000
_JSON = re.compile(rb'\s*[\[{][^\0]{0,400}?"(?:apiVersion|kind)": ?"')
_YAML = re.compile(rb"(?m)\A(?:---\s*\n|#[^\n]*\n)*(?:- )?(?:apiVersion|kind): \S")


class ObjectReport(NamedTuple):
    """What an object reports about a Pod or a node, or a Framework about itself.

    Attributes:
        kind: ``Pod``, ``Event`` of a Pod, ``Node`` (also of its Events) or ``Framework``.
        name: of the Pod or the node.
        where: the file and the line with its name.
        signals: what shows why it failed.
        at: when the Pod ended; None if unknown.
        started: whether a container of the Pod has started.
        uid: of the Pod, as all below.
        role: in its labels; may be empty.
        number: its number in the role; None if unknown.
        node: may be empty.
        exit_code: of the first container that failed; 0 if the others ended with 0; None if none ended.
        by_code: what this exit code alone states; None for 0 and None.
        message: the termination messages of containers that failed: the end of the log, or PID 1's diagnosis.
        message_line: the line of the first of them.
        retries: of a Framework: how often its controller has retried the job or one of its tasks.
        trigger: of a Framework: role and number of the task that ended its last attempt.
    """

    kind: str
    name: str
    where: tuple[str, int]
    signals: tuple[Signal, ...] = ()
    at: Moment | None = None
    started: bool = False
    uid: str = ""
    role: str = ""
    number: int | None = None
    node: str = ""
    exit_code: int | None = None
    by_code: Signal | None = None
    message: str = ""
    message_line: int = 0
    retries: int = 0
    trigger: tuple[Any, Any] = (None, None)

    @property
    def label(self) -> str:
        """Role and number as pairun names an instance; else the name."""
        return f"{self.role}-{self.number}" if self.role and self.number is not None else self.name


class _Part(NamedTuple):
    """The part of a file from an object's name to that of the next one."""

    file: str
    line: int
    text: bytes

    def where(self, key: str, value: object) -> tuple[str, int]:
        """The file and the line that states a reason, a message or an exit code; else that of the name."""
        # a long text in YAML has several lines
        words = [re.escape(word).replace('"', r'\\?"') for word in str(value).split()[:3]]
        start = rf'\b{key}"?:\s*(?:[>|][-+]?\s*)?["\']?' + r"\s+".join(words)
        match = re.search(start.encode(), self.text) if words else None
        below = self.text.count(b"\n", 0, match.end()) if match else 0
        return self.file, self.line + below


def may_be_objects(head: bytes) -> bool:
    """Whether a file that begins so may hold objects."""
    return _JSON.match(head) is not None or _YAML.match(head) is not None


def object_reports(data: bytes, file: str) -> list[ObjectReport]:
    """What the objects in a file report, also in Lists and in several documents; empty without objects.

    Args:
        data: the file.
        file: its name for people.
    """
    is_json = data.lstrip()[:1] in (b"{", b"[")
    after_name = rb'"\s*[,}]' if is_json else rb'"?[ \r]*$'
    found: list[tuple[Mapping[str, Any], int]] = []
    at = 0
    for item in _items(_from_json(data) if is_json else _from_yaml(data)):
        # an Event's message is below the first of the two; somebody may have left out its own name
        named = [
            each for each in (item.get("metadata"), subject_of(item)) if isinstance(each, dict)
        ]
        names = {re.escape(str(each["name"])).encode() for each in named if each.get("name")}
        if item["kind"] not in tuple(_READERS) or not names or len(found) == _MAX_OBJECTS:
            continue
        searched = [re.compile(rb'(?m)"?name"?: ?"?' + name + after_name) for name in names]
        matches = [match for each in searched if (match := each.search(data, at))]
        found.append((item, min((match.start() for match in matches), default=at)))
        at = max((match.end() for match in matches), default=at)
    reports: list[ObjectReport] = []
    line, before = 1, 0
    for (item, start), end in zip(
        found, [*(start for _, start in found[1:]), len(data)], strict=False
    ):
        line, before = line + data.count(b"\n", before, start), start
        try:
            reports += _READERS[item["kind"]](item, _Part(file, line, data[start:end]))
        except (AttributeError, TypeError, ValueError):
            continue  # another program's object
    return reports


def _items(documents: Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        for part in document if isinstance(document, list) else [document]:
            if not isinstance(part, dict):
                continue
            items = part.get("items")
            # a List of one kind may leave out the kind of its items
            kind = str(part.get("kind") or "").removesuffix("List")
            for item in items if isinstance(items, list) else [part]:
                if isinstance(item, dict):
                    yield {"kind": kind, **item}


def _from_json(data: bytes) -> Iterator[Any]:
    """Objects one after another, as ``kubectl get --watch -o json`` prints them."""
    text = data.decode("utf-8", "replace")
    at = 0
    while start := re.compile(r"[\[{]").search(text, at):
        try:
            document, at = parse_json_at(text, start.start())
        except ValueError:
            return
        yield document


def _from_yaml(data: bytes) -> Iterator[Any]:
    if len(data) > _MAX_YAML_BYTES:
        return
    # imported here: few folders hold YAML
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.load_all(data, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return


def _of_pod(pod: Mapping[str, Any], part: _Part) -> Iterator[ObjectReport]:
    meta, containers = pod.get("metadata") or {}, statuses_of(pod)
    name, (role, number) = str(meta.get("name")), place_of(pod)
    if number is None and (match := re.search(r"-(\d{1,5})$", name)):
        number = int(match[1])
    signals = []
    for key, text, container in statements_of(pod):
        if signal := of_message(text) if key == "message" else of_reason(text):
            signals.append(_weighed(signal, container)._replace(where=part.where(key, text)))
    states = [(state, container) for container in containers for state in states_of(container)]
    ended = [(end, container) for state, container in states if (end := state.get("terminated"))]
    failed = [each for each in ended if each[0].get("exitCode")]
    code = next((int(end["exitCode"]) for end, _ in failed or ended), None)
    by_code = None
    if code:
        klass, weight = EXIT_CODES.get(code, ("child_failed", EFFECT))
        by_code = Signal(klass, weight, f"the container's exit code is {code}", KUBERNETES)
        by_code = _weighed(by_code, failed[0][1])._replace(where=part.where("exitCode", code))
    times = [moment_in(str(end.get("finishedAt"))) for end, _ in failed or ended]
    messages = [str(end["message"]) for end, _ in failed if end.get("message")]
    yield ObjectReport(
        "Pod", name, (part.file, part.line), tuple(signals),
        at=min((each for each in times if each), default=None),
        started=any(state.keys() & {"running", "terminated"} for state, _ in states),
        uid=str(meta.get("uid") or ""), role=role, number=number,
        node=str((pod.get("spec") or {}).get("nodeName") or ""), exit_code=code, by_code=by_code,
        message="\n".join(messages),
        message_line=part.where("message", messages[0])[1] if messages else part.line,
    )  # fmt: skip


def _weighed(signal: Signal, container: Mapping[str, Any]) -> Signal:
    """A signal about a container, which counts little if the container runs again and is ready."""
    running = (container.get("state") or {}).get("running")
    if running is None or container.get("ready") is not True:
        return signal
    since, restarts = moment_in(str(running.get("startedAt"))), container.get("restartCount")
    at = f" since {since.clock()}" if since is not None else ""
    count = "1 restart" if restarts in (1, None) else f"{restarts} restarts"
    words = f"{signal.words}; it runs again{at} ({count})"
    return signal._replace(weight=min(signal.weight, EFFECT), words=words)


def _of_framework(framework: Mapping[str, Any], part: _Part) -> Iterator[ObjectReport]:
    """The retries, and the Pods that have ended: FrameworkController deletes them."""
    tasks, inits = list(tasks_of(framework)), init_names(framework)
    statuses = [framework.get("status") or {}, *(task for _, task in tasks)]
    yield ObjectReport(
        "Framework", "", (part.file, part.line), retries=max(map(retries_of, statuses)),
        trigger=trigger_of(framework),
    )  # fmt: skip
    for role, task in tasks:
        if pod := ended_pod(role, task, inits):
            yield from _of_pod(pod, part)


def _of_event(event: Mapping[str, Any], part: _Part) -> Iterator[ObjectReport]:
    about, reason = subject_of(event), str(event.get("reason") or "")
    key = next((key for key in ("message", "note") if event.get(key)), "reason")
    signal = of_event(reason, "" if key == "reason" else str(event[key]))
    signals = (signal._replace(where=part.where(key, event.get(key))),) if signal else ()
    yield ObjectReport(
        "Event" if about.get("kind") == "Pod" else str(about.get("kind")),
        str(about.get("name") or ""), (part.file, part.line), signals,
        moment_in(time_of(event)) if signals else None, reason == "Started", str(about.get("uid") or ""),
    )  # fmt: skip


def _of_node(node: Mapping[str, Any], part: _Part) -> Iterator[ObjectReport]:
    """What the conditions state: all but ``Ready`` name a problem, which is absent only if it is false."""
    signals = []
    for kind, condition in conditions_of(node.get("status") or {}).items():
        state = str(condition.get("status"))
        if state == ("True" if kind == "Ready" else "False"):
            continue
        key = "message" if condition.get("message") else "reason"
        why = str(condition.get(key) or "")
        words = f"the node's condition {kind} is {state}: {why}"
        signals.append(Signal("node_stuck", SYSTEM, words, KUBERNETES, where=part.where(key, why)))
    name = str((node.get("metadata") or {}).get("name"))
    yield ObjectReport("Node", name, (part.file, part.line), signals=tuple(signals))


_READERS = {"Pod": _of_pod, "Framework": _of_framework, "Event": _of_event, "Node": _of_node}

"""The logs of a job's Pods: one Pod after the other, or all at once as lines arrive."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import attrs

from pairun.engines.kubernetes.apierrors import SILENCE_S, ClusterRefusal, Patience, Unreachable
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import JobObjects, find, instances_of
from pairun.engines.kubernetes.jobstate import state_of
from pairun.engines.kubernetes.watching import from_thread
from pairun.errors import PairunError, Problem
from pairun.kube.endwords import APP, INIT
from pairun.kube.frameworkpods import log_folder
from pairun.kube.podstates import ENDED, PodState, is_over

MOST_STREAMS = 50
"""The largest number of Pods to follow at once; each needs a connection."""
LINE_BYTES = 64 * 1024
"""Longer lines are printed in parts."""
QUEUED = 1000
"""The largest number of lines that wait to be printed; then the readers wait."""
AGAIN_S = 1.0
_QUIET_S = 600
"""pairun reconnects after this many seconds without a byte."""
NO_LOG = (400, 404, 500)
"""The statuses of a log that does not exist: not begun, deleted, or on a node that does not answer."""
LOOK_S = 3.0
"""How often pairun looks for new Pods of a followed job, in seconds."""


@attrs.frozen(kw_only=True)
class LogSelection:
    """Which logs to read.

    Attributes:
        role: only this role; None for all.
        index: only the instance with this number; None for all.
        init: read the init container's log instead of the user's.
        previous: read the log of the container's previous run.
        tail: only this many lines at the end; None for all.
    """

    role: str | None = None
    index: int | None = None
    init: bool = False
    previous: bool = False
    tail: int | None = None

    @property
    def container(self) -> str:
        """The container's name."""
        return INIT if self.init else APP

    def chosen(self, instances: Sequence[PodState]) -> list[PodState]:
        """The selected instances."""
        return [
            i for i in instances if self.role in (None, i.role) and self.index in (None, i.index)
        ]

    def query(self) -> dict[str, str]:
        """The query parameters of the Pod API ("read log")."""
        asked = {"container": self.container}
        if self.previous:
            asked["previous"] = "true"
        if self.tail is not None:
            asked["tailLines"] = str(self.tail)
        return asked


Say = Callable[[str], None]
Show = Callable[[PodState, str], None]


def print_logs(cluster: Cluster, name: str, wanted: LogSelection, show: Show, say: Say) -> bool:
    """Print the logs so far, one instance after the other.

    Args:
        show: receives each line.
        say: receives notes about missing logs.

    Returns:
        Whether every selected instance had a log.

    Raises:
        PairunError: the job or the instance does not exist, or the API server refuses.
    """
    job = find(cluster, name)
    chosen = _chosen(cluster, job, wanted)
    if not chosen:
        say("the job has no Pod yet, so there is no log")
    whole = bool(chosen)
    for each in chosen:
        because = _missing(job, each, wanted)
        if each.gone:
            say(f"{each.label}: no log: {because}")
            whole = False
            continue
        try:
            for line in lines(cluster.log(each.pod, wanted.query())):
                if line.startswith(_KUBELET):
                    because = because or line
                    continue
                show(each, line)
                because = ""
        except ClusterRefusal as e:
            if e.status not in NO_LOG:
                raise
            because = because or str(e)
        if because:
            say(f"{each.label}: no log: {because}")
            whole = False
    return whole


def _chosen(cluster: Cluster, job: JobObjects, wanted: LogSelection) -> list[PodState]:
    """The selected instances; none if the job has no Pods yet.

    Raises:
        PairunError: the job has Pods, but none is selected.
    """
    instances = instances_of(cluster, job)
    chosen = wanted.chosen(instances)
    if instances and not chosen:
        what = f"role '{wanted.role}'" if wanted.role else "the job"
        if wanted.index is not None:
            what = f"number {wanted.index} of {what}"
        roles = ", ".join(sorted({i.role for i in instances}))
        text = f"job '{job.name}' has no Pod of {what}"
        raise PairunError(Problem("PR789", text, hint=f"roles with Pods: {roles}"))
    return chosen


def _missing(job: JobObjects, instance: PodState, wanted: LogSelection) -> str:
    """Why an instance has no log: it is deleted, or has not started; empty if it may have one."""
    if instance.gone:
        words = "FrameworkController deleted its Pod when it ended, and the log with it"
        if job.framework is not None and (folder := log_folder(job.framework, instance)):
            return f"{words}; node {instance.node or 'unknown'} keeps it in {folder}"
        return f"{words}; --log-host-path of `pairun submit` keeps logs on the nodes"
    failed_in_init = bool(not wanted.init and instance.init_code)
    started = {"running", "stopping", "lost", *ENDED, *(("init",) if wanted.init else ())}
    if instance.phase in started and not failed_in_init:
        return ""
    reason = f": {instance.reason}" if instance.reason else ""
    more = "; --init shows that phase's log" if failed_in_init else ""
    return f"it is {instance.phase}{reason}{more}"


def lines(data: Iterator[bytes]) -> Iterator[str]:
    """Split a stream of bytes into lines, with bounded memory: long lines come in parts."""
    rest = b""
    for part in data:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        while len(rest) > LINE_BYTES:
            yield rest[:LINE_BYTES].decode("utf-8", "replace")
            rest = rest[LINE_BYTES:]
    if rest:
        yield rest.decode("utf-8", "replace")


def follow_logs(cluster: Cluster, name: str, wanted: LogSelection, show: Show, say: Say) -> None:
    """Print logs as lines arrive, until the job has ended and all its logs are read.

    pairun also follows Pods that start later. After a broken connection it reconnects and continues
    after the last line.

    Args:
        show: receives each line, always in the same thread.
        say: receives notes about missing logs.

    Raises:
        PairunError: the job does not exist, or the API server refuses or does not respond.
    """
    streams: dict[str, threading.Thread] = {}

    def read(put: Put) -> None:
        try:
            _follow(cluster, name, wanted, streams, say, put)
        except PairunError as e:
            gone = not isinstance(e, ClusterRefusal | Unreachable) and e.problems[0].id == "PR789"
            if not (streams and gone):
                raise
            # The job was deleted: read the open streams to their end.
            for thread in streams.values():
                thread.join(LOOK_S)
            say("the job was deleted")

    for item in from_thread(read, QUEUED):
        if isinstance(item, tuple):
            show(*item)


Put = Callable[[tuple[PodState, str] | Exception], None]


def _follow(
    cluster: Cluster,
    name: str,
    wanted: LogSelection,
    streams: dict[str, threading.Thread],
    say: Say,
    put: Put,
) -> None:
    """Start a stream for every selected Pod; ends when the job and all streams have ended."""
    patience = Patience(say)
    waiting = False
    while True:
        try:
            job = find(cluster, name)
            instances = instances_of(cluster, job)
            patience.answered()
        except (ClusterRefusal, Unreachable) as e:
            patience.bear(e)
            time.sleep(LOOK_S)
            continue
        chosen = wanted.chosen(instances)
        if len(chosen) > MOST_STREAMS:
            text = f"{len(chosen)} Pods cannot be followed at once; the limit is {MOST_STREAMS}"
            raise PairunError(Problem("PR801", text, hint="choose some with --role and --index"))
        new = [i for i in chosen if not i.gone and i.uid not in streams]
        for each in new:
            run = _Stream(cluster, each, wanted, put).run
            streams[each.uid] = threading.Thread(target=run, daemon=True)
            streams[each.uid].start()
        if not streams and not waiting and not any(i.gone for i in chosen):
            waiting = True
            say("no Pod yet; waiting for one")
        busy = any(t.is_alive() for t in streams.values())
        over = state_of(job, cluster.namespace, instances).ended
        ends = {*ENDED, "running", "stopping"} if wanted.init else ENDED
        # They print no more, even if the job continues.
        read = bool(chosen) and all(i.phase in ends for i in chosen)
        if not (busy or new) and (over or read):
            for each in chosen:
                was_read = each.gone and each.uid in streams
                if not was_read and (because := _missing(job, each, wanted)):
                    say(f"{each.label}: no log: {because}")
            return
        time.sleep(AGAIN_S if streams and not busy else LOOK_S)


class _Stream:
    """Reads the output of one container; reconnects when needed."""

    def __init__(
        self, cluster: Cluster, instance: PodState, wanted: LogSelection, put: Put
    ) -> None:
        self._cluster = cluster
        self._instance = instance
        self._wanted = wanted
        self._put = put
        self._last = ""

    def run(self) -> None:
        """Read until the container has ended; passes any exception to the reader."""
        try:
            self._run()
        except Exception as e:  # noqa: BLE001  # a line that is missing must not go unseen
            self._put(e)

    def _run(self) -> None:
        patience = Patience()
        while True:
            # asked before the read, so that no line is missed
            ended = self._ended()
            began = time.monotonic()
            try:
                self._read()
                patience.answered()
            except (ClusterRefusal, Unreachable) as e:
                if time.monotonic() - began > SILENCE_S:
                    patience.answered()
                elif not (isinstance(e, ClusterRefusal) and e.status in (400, 404)):
                    patience.bear(e)
                    ended = False
            if ended:
                return
            time.sleep(AGAIN_S)

    def _ended(self) -> bool:
        """Whether the container prints no more."""
        try:
            pod = self._cluster.get(self._cluster.path("v1", "pods", self._instance.pod))
        except ClusterRefusal as e:
            if e.status != 404 and not e.passing:
                raise
            return e.status == 404
        except Unreachable:
            return False
        return is_over(pod, self._wanted.container)

    def _read(self) -> None:
        """Read one connection. Lines have timestamps, so the next one continues after the last."""
        query = {**self._wanted.query(), "follow": "true", "timestamps": "true"}
        if self._last:
            query.pop("tailLines", None)
            # sinceTime has whole seconds, so some lines repeat
            query["sinceTime"] = self._last.partition(".")[0].rstrip("Z") + "Z"
        before = _nanoseconds(self._last)
        for line in lines(self._cluster.log(self._instance.pod, query, _QUIET_S)):
            stamp, blank, text = line.partition(" ")
            if not (blank and _STAMP.fullmatch(stamp)):
                if not line.startswith(_KUBELET):
                    self._put((self._instance, line))  # the rest of a long line
            elif _nanoseconds(stamp) > before:
                self._last = stamp
                self._put((self._instance, text))


_KUBELET = ("rpc error: code = NotFound desc = ", "unable to retrieve container logs for ")
"""The kubelet's errors in place of the log of a removed container."""
_STAMP = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z")


def _nanoseconds(stamp: str) -> tuple[str, str]:
    """A time (RFC 3339, UTC, up to nanoseconds) in a form that sorts by time."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return whole, part.ljust(9, "0")

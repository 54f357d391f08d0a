"""Jobs in a cluster: what Pods say, what is told of a job, and an API server that misbehaves."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.cli import main as cli
from pairun.engines.completionpolicy import RolePolicy
from pairun.engines.kubernetes import apierrors, watching
from pairun.engines.kubernetes import clusterlogs as podlogs
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Unreachable
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.clusterlogs import LogSelection, follow_logs, lines, print_logs
from pairun.engines.kubernetes.endwords import INIT_CODES, diagnosis, headline, meaning
from pairun.engines.kubernetes.jobobjects import KINDS, POD, JobObjects
from pairun.engines.kubernetes.jobstate import changes, state_of
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.engines.kubernetes.podstates import PodState, newest, read_pod
from pairun.engines.kubernetes.submitting import remove, submit
from pairun.errors import PairunError
from pairun.runtime.termination import Summary, message

TOKEN = "eyJhbGciOi-very-secret"


def ids(e: pytest.ExceptionInfo[PairunError]) -> list[str]:
    """The ids of the problems of an error."""
    return [p.id for p in e.value.problems]


# --- Pods ----------------------------------------------------------------------------------------


def pod(role: str = "worker", index: int = 0, **status: Any) -> dict[str, Any]:
    """A Pod as the API server has it."""
    return {
        "metadata": {
            "name": f"mnist-{role}-{index}",
            "uid": f"u-{role}-{index}",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "resourceVersion": "5",
            "labels": {"pairun/job": "mnist", "pairun/role": role, "pairun/index": str(index)},
        },
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 40, "restartPolicy": "Never"},
        "status": status,
    }


def ended(name: str, code: int, **more: Any) -> dict[str, Any]:
    """The status of a container that has ended."""
    state = {"exitCode": code, "finishedAt": f"2024-01-01T00:00:{code % 60:02}Z", **more}
    return {"name": name, "restartCount": 0, "state": {"terminated": state}}


def waits(name: str, reason: str, text: str = "") -> dict[str, Any]:
    """The status of a container that waits."""
    return {"name": name, "state": {"waiting": {"reason": reason, "message": text}}}


def runs(name: str) -> dict[str, Any]:
    """The status of a container that runs."""
    return {"name": name, "restartCount": 1, "state": {"running": {}}}


PLACED = [{"type": "PodScheduled", "status": "True"}]
UNPLACED = [
    {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 cpu."}
]
EVICTED = {
    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting", "lastTransitionTime": "2024-01-01T00:00:30Z",
}  # fmt: skip
EVICTION = "evicted (EvictionByEvictionAPI: Eviction API: evicting)"
SAID = message(Summary(exit_code=3, user_exit_code=3, user_log="a\nCUDA out of memory\n"))
WHY = {
    "class": "gpu_oom", "fault": "user", "retry": "after_fix", "confidence": 0.9,
    "headline": "the GPU's memory is full", "evidence": "CUDA out of memory", "advice": "use less",
}  # fmt: skip
DIAGNOSED = message(Summary(exit_code=3, user_exit_code=3, user_log="a\nbye\n", diagnosis=WHY))
UNCLEAR = DIAGNOSED.replace("gpu_oom", "unknown")
INIT_LOG = """ok       barrier: Every task of the job has an address (106ms)
failed   image_check: The image exists and this job may pull it (54.4ms)
         there is no image a/b:1 [permanent; fault: user]
         help: check name and tag
init phase: failure, exit code 254, 194ms
"""
INIT_WORDS = (
    "init ended with 254 (the image does not exist, or the registry refuses this job): "
    "image_check: there is no image a/b:1 [permanent; fault: user]"
)


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ({}, "pending", ""),
        ({"phase": "Pending"}, "pending", ""),
        ({"phase": "Pending", "conditions": UNPLACED}, "unschedulable",
         "0/3 nodes are available: 3 cpu."),
        ({"phase": "Pending", "conditions": PLACED,
          "initContainerStatuses": [waits("init", "PodInitializing")]}, "starting", ""),
        ({"phase": "Pending", "conditions": PLACED,
          "initContainerStatuses": [waits("init", "ImagePullBackOff", "no such image")]}, "stuck",
         "ImagePullBackOff: no such image"),
        ({"phase": "Pending", "conditions": PLACED, "initContainerStatuses": [runs("init")]},
         "init", ""),
        ({"phase": "Pending", "conditions": PLACED, "initContainerStatuses": [
            {**waits("init", "CrashLoopBackOff"), "lastState": {"terminated": {"exitCode": 252}}}]},
         "stuck", "CrashLoopBackOff: init ended with 252 (the barrier cannot pass)"),
        ({"phase": "Running", "conditions": PLACED, "initContainerStatuses": [ended("init", 0)],
          "containerStatuses": [runs("sidecar"), runs("app")]}, "running", ""),
        ({"phase": "Succeeded", "containerStatuses": [ended("app", 0)]}, "succeeded", ""),
        ({"phase": "Failed", "initContainerStatuses": [ended("init", 251)],
          "containerStatuses": [waits("app", "PodInitializing")]}, "failed",
         "init ended with 251 (the gang was not complete in time)"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=SAID)]}, "failed",
         "the command ended with 3: CUDA out of memory"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=DIAGNOSED)]}, "failed",
         "the command ended with 3: the GPU's memory is full (gpu_oom): CUDA out of memory"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 3, message=UNCLEAR)]}, "failed",
         "the command ended with 3: bye"),
        ({"phase": "Failed", "initContainerStatuses": [ended("init", 254, message=INIT_LOG)]},
         "failed", INIT_WORDS),
        ({"phase": "Failed", "containerStatuses": [ended("app", 137, reason="OOMKilled")]},
         "failed", "the command ended with 137 (out of memory)"),
        ({"phase": "Failed", "containerStatuses": [ended("app", 143)]}, "failed",
         "the command ended with 143 (ended by SIGTERM)"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on disk\x1b[31m"}, "failed",
         "evicted (low on disk\N{REPLACEMENT CHARACTER}[31m)"),
        ({"phase": "Running", "conditions": [*PLACED, EVICTED],
          "containerStatuses": [runs("app")]}, "failed", EVICTION),
        ({"phase": "Failed", "conditions": [EVICTED], "containerStatuses": [ended("app", 143)]},
         "failed", EVICTION),
        ({"phase": "Succeeded", "conditions": [EVICTED], "containerStatuses": [ended("app", 0)]},
         "failed", EVICTION),
        ({"phase": "Unknown"}, "lost", "its node does not answer"),
    ],
)  # fmt: skip
def test_what_a_pod_says(status: dict[str, Any], phase: str, reason: str) -> None:
    """Phase and reason in words, whatever the Pod waits for or fell by."""
    found = read_pod(pod(**status))
    assert (found.phase, found.reason) == (phase, reason)


@pytest.mark.parametrize(
    ("labels", "annotations", "label"),
    [
        ({"pairun/role": "ps", "pairun/index": "3"}, {}, "ps-3"),
        ({"FC_TASKROLE_NAME": "ps"}, {"FC_TASK_INDEX": "7"}, "ps-7"),
        ({"pairun/role": "ps"}, {"batch.kubernetes.io/job-completion-index": "2"}, "ps-2"),
        ({}, {"FC_TASK_INDEX": "x"}, "pod-0"),
    ],
)
def test_which_instance_a_pod_is(
    labels: dict[str, str], annotations: dict[str, str], label: str
) -> None:
    """Role and number, by our labels, FrameworkController's, or an Indexed Job's."""
    meta = {"name": "p", "uid": "u", "labels": labels, "annotations": annotations}
    assert read_pod({"metadata": meta}).label == label


def test_the_newest_pod_counts_those_before_it() -> None:
    """Of two Pods of one instance the later one is shown, with a restart more."""
    old, new = pod(phase="Failed"), pod(phase="Running", containerStatuses=[runs("app")])
    new["metadata"] |= {"uid": "later", "creationTimestamp": "2024-01-01T00:01:00Z"}
    (found,) = newest(map(read_pod, (new, old)))
    assert (found.uid, found.restarts) == ("later", 2)


def test_a_diagnosis_is_kept_whole_for_programs() -> None:
    """Every part that PID 1 writes, and nothing else, whatever a container says in its place."""
    read = read_pod(pod(phase="Failed", containerStatuses=[ended("app", 3, message=DIAGNOSED)]))
    assert read.diagnosis == WHY
    for wrong in (SAID, "a", DIAGNOSED.replace("diagnosis:", "diagnosis: 1\nx:")):
        assert diagnosis(wrong) == {}
    without = {name: value for name, value in WHY.items() if name != "confidence"}
    assert diagnosis(DIAGNOSED.replace("0.9", ".nan")) == without


def test_a_pod_that_was_deleted_says_so() -> None:
    """Also where its kubelet never told how the containers ended; init is not blamed for it."""
    gone = pod(phase="Failed", initContainerStatuses=[ended("init", 0)])
    gone["metadata"]["deletionTimestamp"] = "2024-01-01T00:01:00Z"
    assert read_pod(gone).reason == "its Pod was deleted"
    assert state_of(objects("pod"), "d", instances(gone)).because == "worker-0 ended with 1"


@given(text=st.text(max_size=300), tagged=st.booleans())
def test_a_headline_is_one_short_line(text: str, tagged: bool) -> None:
    """Whatever a container left as its message."""
    said = message(Summary(exit_code=1, user_exit_code=1, user_log=text)) if tagged else text
    line = headline(said)
    assert len(line) <= 200
    assert line.isprintable()


def test_codes_mean_what_the_document_says() -> None:
    """The table of the init phase is that of docs/exit-codes.md."""
    document = (Path(apierrors.__file__).parents[3] / "docs/exit-codes.md").read_text()
    for code in (251, 252, 253, 254):
        words = meaning(code, INIT_CODES).partition("(")[2].rstrip(")")
        row = next(x for x in document.splitlines() if x.startswith(f"| {code} |"))
        assert words in row.replace(" (`image_check`)", "").replace(":", "")


# --- jobs ----------------------------------------------------------------------------------------


def objects(engine: str, *workloads: dict[str, Any]) -> JobObjects:
    """A job of an engine."""
    kind = next((k for k in KINDS if k.engine == engine), POD)
    return JobObjects("mnist", kind, workloads)


def completed(kind: str) -> dict[str, Any]:
    """A Framework that has ended."""
    done = {"type": {"name": kind}, "phrase": "PodFailed", "diagnostics": "one\ntwo"}
    return {
        "spec": {"taskRoles": [{"taskNumber": 2}, {"taskNumber": 3}]},
        "status": {"state": "Completed", "attemptStatus": {"completionStatus": done}},
    }


def condition(kind: str, **spec: Any) -> dict[str, Any]:
    """An object with a condition that holds."""
    held = {"type": kind, "status": "True", "reason": "R", "message": "m"}
    return {"spec": spec, "status": {"conditions": [{"type": "Failed", "status": "False"}, held]}}


REPLICATED = [{"replicas": 2, "template": {"spec": {"completions": 3}}}, {"template": {}}]


@pytest.mark.parametrize(
    ("found", "state", "because", "total"),
    [
        (objects("framework", completed("Succeeded")), "succeeded", "", 5),
        (objects("framework", completed("Failed")), "failed", "PodFailed: one", 5),
        (objects("framework", {"status": {"state": "AttemptPreparing"}}), "waiting",
         "AttemptPreparing", 0),
        (objects("framework", {"spec": {"executionType": "Stop"}}), "stopping", "", 0),
        (objects("job", condition("Complete", completions=4)), "succeeded", "", 4),
        (objects("job", condition("Failed")), "failed", "R: m", 1),
        (objects("job", condition("Suspended")), "waiting", "suspended", 1),
        (objects("jobset", condition("Completed", replicatedJobs=REPLICATED)), "succeeded", "", 7),
        (objects("jobset", {"metadata": {"deletionTimestamp": "x"}}), "stopping", "", 0),
        (objects("pod"), "waiting", "", 0),
    ],
)  # fmt: skip
def test_the_state_of_a_job(found: JobObjects, state: str, because: str, total: int) -> None:
    """What the workload's own status says, and how many instances there are to be."""
    now = state_of(found, "default", ())
    assert (now.state, now.because, now.total) == (state, because, total)


def instances(*pods: dict[str, Any]) -> tuple[PodState, ...]:
    """The instances of some Pods."""
    return newest(map(read_pod, pods))


def failed(index: int, code: int) -> dict[str, Any]:
    """A Pod that failed, the sooner the smaller the code."""
    return pod(index=index, phase="Failed", containerStatuses=[ended("app", code)])


def test_plain_pods_are_decided_by_their_completion_policy() -> None:
    """By the job's own policy where it is known, else the first failure counts."""
    pods = instances(failed(0, 7), pod(index=1, phase="Running"))
    assert state_of(objects("pod"), "default", pods).exit_code == 7
    policies = (RolePolicy("worker", 2, -1, 2),)
    found = JobObjects("mnist", POD, (), policies)
    assert state_of(found, "default", pods).state == "running"


def test_an_evicted_plain_pod_fails_its_job_at_once() -> None:
    """While its command still saves its work; the eviction is the reason."""
    evicted = pod(phase="Running", conditions=[*PLACED, EVICTED], containerStatuses=[runs("app")])
    now = state_of(objects("pod"), "d", instances(evicted))
    assert (now.state, now.because, now.exit_code) == ("failed", f"worker-0: {EVICTION}", 1)


def test_an_evicted_pod_that_its_controller_counts_as_a_success_stays_one() -> None:
    """The Job's own status decides; a contradiction would help nobody."""
    saved = pod(phase="Succeeded", conditions=[EVICTED], containerStatuses=[ended("app", 0)])
    saved["metadata"]["ownerReferences"] = [{"kind": "Job"}]
    assert read_pod(saved).phase == "succeeded"


STUCK = pod(
    phase="Pending",
    conditions=PLACED,
    initContainerStatuses=[waits("init", "ErrImagePull", "no such image")],
)
STARTING = pod(index=1, phase="Pending", conditions=PLACED)


@pytest.mark.parametrize("found", [objects("pod"), objects("job", {"spec": {"completions": 2}})])
def test_a_job_of_which_nothing_runs_waits_and_says_for_what(
    found: JobObjects, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that are pulled or not there make no running job; one container that runs does."""
    state = state_of(found, "d", instances(STARTING, STUCK))
    monkeypatch.setattr("pairun.cli.status.connect", lambda _: None)
    monkeypatch.setattr("pairun.cli.status.read_job", lambda *_: state)
    assert cli.main(["status", "mnist"]) == 0
    said = capsys.readouterr().out.partition("\n")[0]
    engine = found.kind.engine
    why = "worker-0 is stuck: ErrImagePull: no such image"
    assert said == f"mnist in d ({engine}) is waiting: {why}"
    begun = pod(index=1, phase="Pending", conditions=PLACED, initContainerStatuses=[runs("init")])
    assert state_of(found, "d", instances(STUCK, begun)).state == "running"


def test_the_first_failure_gives_the_jobs_code() -> None:
    """By the time of its end, not by its number."""
    now = state_of(objects("job", condition("Failed")), "d", instances(failed(0, 9), failed(1, 4)))
    assert now.exit_code == 4
    assert now.because == "worker-1: the command ended with 4; R: m"


def test_a_job_whose_pods_are_refused_says_why(serve: Serve) -> None:
    """In the latest words of its controller, not in those for an earlier job of this name."""
    job = {
        "metadata": {"name": "mnist", "creationTimestamp": "2024-01-01T00:00:10Z"},
        "spec": {"completions": 2},
    }

    def event(name: str, second: int, text: str) -> dict[str, Any]:
        when = f"2024-01-01T00:00:{second}Z"
        return {"involvedObject": {"name": name}, "lastTimestamp": when, "message": text}

    events = [
        event("mnist", 11, "first"), event("mnist", 12, "exceeded quota"),
        event("mnistify", 13, "another job's"),
    ]  # fmt: skip

    def handler(_: str, path: str, query: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/events"):
            assert "reason=FailedCreate" in query["fieldSelector"]
            return 200, {"items": events}
        if path.endswith("/jobs"):
            return 200, {"items": [job], "metadata": {}}
        if path == PODS:
            return 200, {"items": [], "metadata": {"resourceVersion": "1"}}
        return status(404, "NotFound", "not found")

    cluster, _ = serve(handler)
    assert watching.read_job(cluster, "mnist").because == "exceeded quota"
    job["metadata"]["creationTimestamp"] = "2024-01-01T00:01:00Z"  # type: ignore[index]
    assert watching.read_job(cluster, "mnist").because == ""


WAITS = {"type": "QuotaReserved", "status": "False", "message": "no quota for nvidia.com/gpu"}
RESERVED = {"type": "QuotaReserved", "status": "True"}
ADMITTED = {"type": "Admitted", "status": "True"}
EVICTED = {"type": "Evicted", "status": "True", "message": "preempted"}


@pytest.mark.parametrize(
    ("workload", "because"),
    [
        (
            {"status": {"conditions": [WAITS]}},
            "waiting for quota in queue research: no quota for nvidia.com/gpu",
        ),
        (
            {"status": {"conditions": [WAITS, EVICTED]}},
            "waiting for quota in queue research: no quota for nvidia.com/gpu (evicted: preempted)",
        ),
        (
            {
                "status": {
                    "conditions": [RESERVED],
                    "admissionChecks": [{"name": "a", "state": "Ready"}, {"name": "b"}],
                }
            },
            "quota is reserved in queue research; waiting for admission checks: b",
        ),
        ({"spec": {"active": False}}, "deactivated in queue research"),
        ({"status": {"conditions": [RESERVED, ADMITTED]}}, "suspended"),
        (None, "waiting for quota in queue research: Kueue has no Workload of this job"),
        (404, "waiting in queue research: the cluster has no Kueue that would start the job"),
        (403, "waiting in queue research; why cannot be read: "),
    ],
)
@pytest.mark.parametrize("served", ["v1beta1", "v1beta2"])
def test_a_job_in_a_queue_says_what_it_waits_for(
    serve: Serve, workload: dict[str, Any] | int | None, because: str, served: str
) -> None:
    """In the words of the Workload that Kueue makes for it, in the version that Kueue serves."""
    job = {
        "metadata": {
            "name": "mnist",
            "uid": "u-1",
            "labels": {"kueue.x-k8s.io/queue-name": "research"},
        },
        "spec": {"completions": 2, "suspend": True},
        "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
    }

    def handler(_: str, path: str, query: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/workloads"):
            if served not in path or workload == 404:
                return status(404, "NotFound", "not found")
            if workload == 403:
                return status(403, "Forbidden", "no right to list workloads")
            assert query["labelSelector"] == "kueue.x-k8s.io/job-uid=u-1"
            return 200, {"items": [workload] if workload else [], "metadata": {}}
        if path.endswith("/jobs"):
            return 200, {"items": [job], "metadata": {}}
        if path == PODS:
            return 200, {"items": [], "metadata": {"resourceVersion": "1"}}
        return status(404, "NotFound", "not found")

    cluster, _ = serve(handler)
    state = watching.read_job(cluster, "mnist")
    assert state.state == "waiting"
    assert state.because.startswith(because)


def test_the_group_of_plain_pods_goes_with_their_configmap(serve: Serve) -> None:
    """A PodGroup belongs to the workload; plain Pods have none, so to what `delete` removes."""
    owned: dict[str, str] = {}

    def handler(method: str, path: str, _: dict[str, str], body: Any) -> Answer:
        if method == "PATCH":
            [owner] = body["metadata"]["ownerReferences"]
            owned[path.rsplit("/", 2)[1]] = owner["kind"]
            return 200, {}
        meta = {**body["metadata"], "uid": f"u-{body['kind']}"}
        return 201, {**body, "metadata": meta}

    cluster, _ = serve(handler)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    for kind, version in (("Pod", "v1"), ("Job", "batch/v1")):
        workload = {"apiVersion": version, "kind": kind}
        named = [{**o, "metadata": {"name": "a"}} for o in (config, group, workload)]
        submit(cluster, "a", named)
        owners = {
            "Pod": {"podgroups": "ConfigMap"},
            "Job": {"podgroups": "Job", "configmaps": "Job"},
        }
        assert owned == owners[kind]
        owned.clear()


def test_progress_is_a_line_for_each_change() -> None:
    """Instances that came to the same point share a line; what stays is not told again."""
    found = objects("framework", {"spec": {"taskRoles": [{"taskNumber": 5}]}})
    placed = [pod(index=n, phase="Pending", conditions=PLACED) for n in range(4)]
    waiting = pod(index=4, phase="Pending", conditions=UNPLACED)
    first = state_of(found, "d", instances(*placed, waiting))
    assert changes(None, first) == [
        "worker-0, worker-1, worker-2 and 1 more: starting (4 of 5 starting)",
        "worker-4: unschedulable: 0/3 nodes are available: 3 cpu. (1 of 5 unschedulable)",
    ]
    assert changes(first, first) == []
    then = state_of(found, "d", instances(failed(0, 3), *placed[1:]))
    assert changes(first, then) == [
        "worker-0: failed: the command ended with 3 (1 of 5 failed)",
        "worker-4: the Pod is gone",
    ]
    assert changes(None, state_of(found, "d", ())) == ["no Pod yet"]


@given(
    text=st.lists(st.text("ab\u00e9 ", max_size=9), max_size=9),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_lines_are_the_same_however_the_bytes_come(text: list[str], cuts: list[int]) -> None:
    """Cut anywhere, also inside a character."""
    data = "".join(f"{t}\n" for t in text).encode()
    ends = sorted({0, *(min(c, len(data)) for c in cuts), len(data)})
    parts = [data[a:b] for a, b in itertools.pairwise(ends)]
    assert list(lines(iter(parts))) == text


def test_a_line_without_an_end_comes_in_parts() -> None:
    """So that memory stays bounded."""
    got = list(lines(iter([b"x" * 100_000] * 3)))
    assert max(map(len, got)) <= 100_000
    assert "".join(got) == "x" * 300_000


# --- an API server that does as it is told -------------------------------------------------------

Answer = tuple[int, Any] | None
Handler = Callable[[str, str, dict[str, str], Any], Answer]


class Fake:
    """An API server of one function; None breaks the connection off."""

    def __init__(self, handler: Handler) -> None:
        outer = self
        self.asked: list[str] = []

        class Handling(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                outer.asked.append(f"{self.command} {url.path}")
                answer = handler(self.command, url.path, query, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, said = answer
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Who gave the call up is no error here."""

        self.server = Server(("127.0.0.1", 0), Handling)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"


def kubeconfig(path: Path, server: str, helper: str = "exit 0") -> str:
    """A kubeconfig, with a token or the command that gets one, that leads to a server."""
    path.write_text(
        json.dumps({
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "space"}},
                {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
                {"name": "nobody", "context": {"cluster": "c"}},
                {"name": "stranger", "context": {"cluster": "c", "user": "v"}},
                {"name": "helped", "context": {"cluster": "c", "user": "helper"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": server} if server else {}}],
            "users": [
                {"name": "u", "user": {"token": TOKEN}},
                {"name": "helper", "user": {"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
                    "args": ["-c", helper], "interactiveMode": "Never",
                }}},
            ],
        })
    )  # fmt: skip
    return str(path)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Handler], tuple[Cluster, Fake]]]:
    """Start an API server of a function, and connect to it."""
    started: list[Fake] = []

    def start(handler: Handler) -> tuple[Cluster, Fake]:
        fake = Fake(handler)
        started.append(fake)
        return connect(Access(kubeconfig(tmp_path / "config", fake.url))), fake

    yield start
    for fake in started:
        fake.server.shutdown()
        fake.server.server_close()


Serve = Callable[[Handler], tuple[Cluster, Fake]]


def status(code: int, reason: str = "", text: str = "") -> Answer:
    """An error as the API server says it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": text}


PODS = "/api/v1/namespaces/space/pods"


def test_too_many_questions_are_asked_again(serve: Serve) -> None:
    """A 429 is waited out, and nobody hears of it."""
    cluster, fake = serve(
        lambda *_: status(429, "TooManyRequests") if len(fake.asked) < 3 else (200, {"items": [{}]})
    )
    assert list(cluster.objects(PODS, "a=b")) == [{}]
    assert len(fake.asked) == 3


@pytest.mark.parametrize(
    ("answer", "id_", "words"),
    [
        ((200, b"<html>"), "PR787", "the response is not an API server's"),
        ((200, b"[" * 9999), "PR787", "the response is not an API server's"),
        (None, "PR787", "it closed the connection"),
        ((503, b"busy"), "PR788", "HTTP status 503"),
        (status(401, "Unauthorized"), "PR788", "does not accept this login"),
        (status(403, "Forbidden", 'User "x" cannot list resource "pods"'), "PR788", "list pods"),
    ],
)
def test_an_api_server_that_misbehaves(serve: Serve, answer: Answer, id_: str, words: str) -> None:
    """One sentence with an id, advice, and no token."""
    cluster, _ = serve(lambda *_: answer)
    with pytest.raises((ClusterRefusal, Unreachable)) as e:
        list(cluster.objects(PODS, "a=b"))
    assert ids(e) == [id_]
    assert words in str(e.value)
    assert e.value.problems[0].hint
    assert TOKEN not in f"{e.value} {e.value.problems[0].hint}"


def test_a_silent_server_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call has a deadline, whatever the server does."""
    monkeypatch.setattr(apierrors, "SILENCE_S", 0.2)
    let_go = threading.Event()
    cluster, _ = serve(lambda *_: (200, {}) if let_go.wait(30) else None)
    with pytest.raises(Unreachable) as e:
        cluster.get(PODS)
    let_go.set()
    assert "it sends nothing" in str(e.value)


def test_trouble_is_borne_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer in between starts the time anew; a refusal that stays counts at once."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience, trouble = apierrors.Patience(), Unreachable()
    for now[0] in (0.0, apierrors.TROUBLE_S):
        patience.bear(trouble)
    patience.answered()
    now[0] += 1
    patience.bear(trouble)
    now[0] += apierrors.TROUBLE_S + 1
    with pytest.raises(Unreachable):
        patience.bear(trouble)


# --- kubeconfigs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no such file"),
        ("", "not the YAML of a kubeconfig"),
        (f"users: [{{token: {TOKEN}\n", "not the YAML of a kubeconfig (line"),
        (f"- {TOKEN}\n", "not the YAML of a kubeconfig"),
        ("{}\n", "it has no current context"),
        ("contexts: 5\n", "not the YAML of a kubeconfig"),
        (f"users: [{{token: {TOKEN}}}]\ncontexts: [{{nix: {TOKEN}}}]\n", "not the YAML"),
    ],
)
def test_a_kubeconfig_that_is_none(tmp_path: Path, text: str | None, words: str) -> None:
    """Absent, empty, broken: said in one sentence that shows nothing of it."""
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PairunError) as e:
        connect(Access(str(path)))
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert str(path) in str(e.value)
    assert TOKEN not in str(e.value)


@pytest.mark.parametrize(
    ("server", "context", "words"),
    [
        ("http://x", "hree", "there is no context 'hree'"),
        ("http://x", "lost", "Expected object with name nowhere"),
        ("http://x", "stranger", "there is no user 'v' in it"),
        ("", "here", "has no address of a server"),
        ("localhost", "here", "has no address of a server"),
    ],
)
def test_a_context_that_leads_nowhere(
    tmp_path: Path, server: str, context: str, words: str
) -> None:
    """Its name, its cluster or its address are wrong; the near one is named."""
    with pytest.raises(PairunError) as e:
        connect(Access(kubeconfig(tmp_path / "config", server), context))
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert TOKEN not in str(e.value)


NO_TOKEN = json.dumps(
    {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {}}
)


@pytest.mark.parametrize(
    ("helper", "words"),
    [
        ("echo the login has expired >&2; exit 1", "the login has expired"),
        ("exec no-such-helper", "process returned 127"),
        ("echo garbage", "login of 'helper' failed"),
        (f"echo '{NO_TOKEN}'", "missing token"),
    ],
)
def test_a_login_that_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], helper: str, words: str
) -> None:
    """The command that gets a token has the word, and nobody goes on without one."""
    with pytest.raises(PairunError) as e:
        connect(Access(kubeconfig(tmp_path / "config", "http://x", helper), "helped"))
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert capfd.readouterr() == ("", "")


def test_the_namespace_is_the_contexts_unless_it_is_given(tmp_path: Path) -> None:
    """And default where nobody names one."""
    path = kubeconfig(tmp_path / "config", "http://x")
    assert connect(Access(path)).namespace == "space"
    assert connect(Access(path, None, "mine")).namespace == "mine"
    assert connect(Access(path, "nobody")).namespace == "default"


def test_a_client_that_is_incomplete_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the client cannot be imported, a message says so; no traceback appears."""
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(PairunError) as e:
        connect(Access())
    assert ids(e) == ["PR785"]
    assert "kubernetes.client is missing" in e.value.problems[0].message


# --- submit and delete ---------------------------------------------------------------------------


def described(kind: str, name: str) -> dict[str, Any]:
    """An object to make."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


class Store:
    """Objects under their paths; answers as the API server does, but for what is told otherwise."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.told: dict[tuple[str, str], Answer] = {}
        self.silent: set[str] = set()

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if (method, path) in self.told:
            return self.told[method, path]
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return status(409, "AlreadyExists", "already exists")
            body["metadata"]["uid"] = f"uid-{len(self.objects)}"
            self.objects[path] = body
            return None if path in self.silent else (201, body)
        if path in self.objects:
            if method == "DELETE":
                return 200, self.objects.pop(path)
            return 200, self.objects[path]
        if method == "GET" and path.endswith(("pods", "secrets", "configmaps")):
            items = [o for p, o in self.objects.items() if p.startswith(f"{path}/")]
            return 200, {"items": items, "metadata": {}}
        return status(404, "NotFound", "not found")


BATCH = [
    described("Secret", "mnist-key"),
    described("ConfigMap", "mnist-job"),
    described("Pod", "p"),
]


@pytest.mark.parametrize(
    "answer", [status(403, "Forbidden", "no"), status(422, "Invalid", "bad"), None]
)
def test_a_submission_that_fails_leaves_nothing(serve: Serve, answer: Answer) -> None:
    """Whatever was made before is removed, and said."""
    store = Store()
    cluster, _ = serve(store)
    store.told["POST", PODS] = answer
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert "removed again: Secret mnist-key, ConfigMap mnist-job" in str(e.value)
    assert store.objects == {}


def test_what_was_made_without_an_answer_goes_too(serve: Serve) -> None:
    """A Pod whose creation did not answer is found by its mark and removed."""
    store = Store()
    cluster, _ = serve(store)
    store.silent.add(f"{PODS}/p")
    with pytest.raises(PairunError):
        submit(cluster, "mnist", BATCH)
    assert store.objects == {}


def test_what_cannot_be_removed_is_said(serve: Serve) -> None:
    """With its kind and name."""
    store = Store()
    cluster, _ = serve(store)
    store.told["POST", PODS] = status(422, "Invalid", "bad")
    secret = "/api/v1/namespaces/space/secrets/mnist-key"
    store.told["DELETE", secret] = status(403, "Forbidden", "no")
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert str(e.value).endswith("could not be removed: Secret mnist-key")


def test_a_job_of_this_name_stays_as_it_is(serve: Serve) -> None:
    """The second submission is refused, and removes nothing of the first."""
    store = Store()
    cluster, _ = serve(store)
    submit(cluster, "mnist", BATCH)
    before = dict(store.objects)
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert ids(e) == ["PR789"]
    assert "`pairun delete mnist --namespace " in (e.value.problems[0].hint or "")
    assert store.objects == before


def test_what_is_left_of_a_job_can_be_deleted(serve: Serve) -> None:
    """Its Secret and ConfigMap, when somebody deleted the workload; then there is no job."""
    store = Store()
    cluster, _ = serve(store)
    submit(cluster, "mnist", BATCH[:2])
    assert remove(cluster, "mnist").what == ["Secret mnist-key", "ConfigMap mnist-job"]
    with pytest.raises(PairunError) as e:
        remove(cluster, "mnist")
    assert ids(e) == ["PR789"]


@pytest.mark.parametrize("name", ["Mnist", "a b", "x" * 64, "a,b=c", ""])
def test_a_name_that_no_job_has(serve: Serve, name: str) -> None:
    """Nothing is asked with it, and the answer is the same."""
    cluster, _ = serve(lambda *_: (200, {"items": []}))
    with pytest.raises(PairunError) as e:
        watching.read_job(cluster, name)
    assert ids(e) == ["PR789"]


# --- logs ----------------------------------------------------------------------------------------


class Logs:
    """Two Pods that print; the first breaks off once, the second starts late."""

    def __init__(self) -> None:
        self.reads = 0
        self.asked = 0
        self.since: list[str] = []

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path.endswith("worker-0/log"):
            self.reads += 1
            if query.get("sinceTime"):
                self.since.append(query["sinceTime"])
            first = "2024-01-01T00:00:01.5Z one\n2024-01-01T00:00:01.5Z two\n"
            return 200, (first + "2024-01-01T00:00:02Z three\n" * (self.reads > 1)).encode()
        if path.endswith("worker-1/log"):
            if self.reads < 2:
                return status(400, "BadRequest", "waiting to start: PodInitializing")
            return 200, b"2024-01-01T00:00:03Z late\n"
        done = self.reads > 1
        phase = "Succeeded" if done else "Running"
        pods = [pod(index=0, phase=phase), pod(index=1, phase=phase if done else "Pending")]
        if path == PODS:
            return 200, {"items": pods, "metadata": {}}
        if path.endswith("configmaps"):
            return 200, {"items": [], "metadata": {}}
        if path.startswith(PODS):
            return 200, pods[int(path[-1])]
        return status(404, "NotFound", "not found")


def test_followed_logs_come_whole_and_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a connection that broke the next line follows; a late Pod is waited for."""
    monkeypatch.setattr(podlogs, "AGAIN_S", 0.01)
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    logs = Logs()
    cluster, _ = serve(logs)
    seen: list[tuple[str, str]] = []
    follow_logs(cluster, "mnist", LogSelection(), lambda i, t: seen.append((i.label, t)), print)
    assert [t for who, t in seen if who == "worker-0"] == ["one", "two", "three"]
    assert [t for who, t in seen if who == "worker-1"] == ["late"]
    assert logs.since[0] == "2024-01-01T00:00:01Z"


def test_logs_that_are_not_there_yet_are_said(serve: Serve) -> None:
    """Without --follow what there is is printed, and who has none is named with its phase."""
    cluster, _ = serve(Logs())
    seen: list[str] = []
    said: list[str] = []
    whole = print_logs(
        cluster, "mnist", LogSelection(), lambda i, _: seen.append(i.label), said.append
    )
    assert not whole
    assert seen == ["worker-0"] * 2
    assert said == ["worker-1: no log: it is pending"]


def ended_pod(pod: dict[str, Any], log: Answer) -> Handler:
    """A job of one plain Pod that has ended, and what the API server says of its log."""

    def handler(_: str, path: str, __: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/log"):
            return log
        if path == PODS:
            return 200, {"items": [pod], "metadata": {}}
        return (200, pod) if path.startswith(PODS) else (200, {"items": [], "metadata": {}})

    return handler


@pytest.mark.parametrize("read", [print_logs, follow_logs])
def test_a_command_that_never_began_has_no_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, read: Callable[..., object]
) -> None:
    """Init failed: that is said with its reason and where its log is, also with --follow."""
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    one = pod(phase="Failed", initContainerStatuses=[ended("init", 254, message=INIT_LOG)])
    refused = status(400, "BadRequest", "waiting to start: PodInitializing")
    cluster, _ = serve(ended_pod(one, refused))
    said: list[str] = []
    read(cluster, "mnist", LogSelection(), lambda *_: None, said.append)
    reason = f"{INIT_WORDS}; --init shows that phase's log"
    assert said == [f"worker-0: no log: it is failed: {reason}"]


def test_the_kubelets_own_words_are_no_log(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers for a container that it has removed is not what the user printed."""
    monkeypatch.setattr(podlogs, "LOOK_S", 0.01)
    one = pod(phase="Succeeded", containerStatuses=[ended("app", 0)])
    log = b"2024-01-01T00:00:01.5Z one\nunable to retrieve container logs for containerd://4461"
    cluster, _ = serve(ended_pod(one, (200, log)))
    seen: list[str] = []
    follow_logs(cluster, "mnist", LogSelection(), lambda _, text: seen.append(text), print)
    assert seen == ["one"]


def test_an_instance_that_is_not_there(serve: Serve) -> None:
    """The roles that are there are named."""
    cluster, _ = serve(Logs())
    with pytest.raises(PairunError) as e:
        print_logs(cluster, "mnist", LogSelection(role="wroker"), lambda *_: None, print)
    assert ids(e) == ["PR789"]
    assert "worker" in str(e.value.problems[0].hint)


def test_too_many_logs_to_follow(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with what to choose by, instead of a connection for each."""
    monkeypatch.setattr(podlogs, "MOST_STREAMS", 1)
    cluster, _ = serve(Logs())
    with pytest.raises(PairunError) as e:
        follow_logs(cluster, "mnist", LogSelection(), lambda *_: None, print)
    assert ids(e) == ["PR801"]


def test_logs_of_a_cluster_that_refuses_them(serve: Serve) -> None:
    """A right that is missing ends the following, and is named."""
    logs = Logs()

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path.endswith("/log"):
            return status(403, "Forbidden", 'User "x" cannot get resource "pods/log"')
        return logs(method, path, query, body)

    cluster, _ = serve(handler)
    with pytest.raises(ClusterRefusal) as e:
        follow_logs(cluster, "mnist", LogSelection(), lambda *_: None, print)
    assert "get pods/log" in str(e.value)

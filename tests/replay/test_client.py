"""What a client of a real API server must know: each of the ten points of the recordings' README."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun import testing
from pairun.cli.main import main
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.engines.kubernetes import apierrors, watching
from pairun.engines.kubernetes.clusterlogs import LogSelection, print_logs
from pairun.engines.kubernetes.submitting import remove, submit, wait_until_gone
from pairun.engines.kubernetes.watching import follow, read_job
from pairun.errors import PairunError
from pairun.kube.ports import rendezvous_port
from pairun.kube.workloads import KINDS
from pairun.module import CheckModule
from pairun.net.apiserver import ApiServer
from pairun.rendezvous.locating import Leader, LeaderPod
from pairun.testing import RealWorld
from tests.engines.kubernetes.samples import ended, ids, pod
from tests.engines.kubernetes.test_submitting import BATCH, Store
from tests.fakeapi import Answer, Fake, Handler
from tests.replay.conftest import Serve
from tests.replay.replaying import Conversation, Replay, through

pytestmark = pytest.mark.shared

conversation = functools.cache(Conversation)


def job(name: str, label: str, recording: str = "01", skip: int = 0) -> Handler:
    """A job that succeeds, behind a server that restarts as a timeline has it from a row on."""
    rows = itertools.islice(conversation(name).rows(label), skip, None)
    return through(rows, Replay(conversation(recording), "ok"))


@contextlib.contextmanager
def barrier(url: str, folder: Path) -> Iterator[RealWorld]:
    """The world of a recorded Framework's first Pod."""
    uid = next(
        each["metadata"]["uid"]
        for _, _, _, each in Replay(conversation("09"))._events
        if each["metadata"].get("name") == "ok-worker-0"
    )
    env = {
        "FC_FRAMEWORK_NAMESPACE": "fw", "FC_FRAMEWORK_NAME": "ok", "FC_FRAMEWORK_ATTEMPT_ID": "0",
        "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0", "FC_POD_UID": uid,
        "KUBE_APISERVER_ADDRESS": url, "PAIRUN_API_CREDENTIALS": str(folder / "none"),
    }  # fmt: skip
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with RealWorld(folder, env=env, answers={"now": lambda: now[0], "sleep": sleep}) as world:
        yield world
        assert world.ctx._api is not None
        world.ctx._api.close()


def pass_barrier(url: str, folder: Path) -> list[str]:
    """Let the barrier of a recorded Framework pass; its log, in which it found both addresses."""
    module = testing.make(
        load_module("barrier", built_in_modules()["barrier"]), {"backend": "framework"}
    )
    assert isinstance(module, CheckModule)
    with barrier(url, folder) as world:
        module.check(world.ctx)
        assert world.log[-1] == "2 of 2 instances have addresses"
        return world.log


# --- 1, 2: a server that starts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (name, label)
        for name in ("12", "13")
        for label in ("alice cert list pods", "alice cert list jobs", "reader token list pods")
    ],
)
def test_a_false_403_after_a_restart_does_not_end_a_wait(
    serve: Serve, name: str, label: str
) -> None:
    cluster, _ = serve(job(name, label), "jobs")
    *_, last = follow(cluster, "ok")
    assert (last.state, last.exit_code) == ("succeeded", 0)


def test_a_true_403_ends_a_wait(serve: Serve) -> None:
    """It was there before any failure."""
    cluster, _ = serve(job("12", "nobody token list pods"), "jobs")
    with pytest.raises(PairunError, match="cannot list resource"):
        list(follow(cluster, "ok"))


def test_a_false_403_after_a_restart_does_not_end_the_barrier(serve: Serve, tmp_path: Path) -> None:
    _, fake = serve(job("13", "reader token list pods", "09", skip=9), "fw")
    assert "may not get frameworks" in str(pass_barrier(fake.url, tmp_path))


@pytest.mark.parametrize("name", ["12", "13"])
def test_a_kind_that_is_not_served_yet(serve: Serve, name: str) -> None:
    """A JobSet's 503 says nothing of the job."""
    cluster, _ = serve(job(name, "missing kind", "03"), "sets")
    *_, last = follow(cluster, "ok")
    assert (last.state, last.exit_code) == ("succeeded", 0)


def test_status_says_that_a_kind_is_not_served_yet(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(job("12", "missing kind", "03", skip=12), "sets")
    assert main(["status", "ok", "--kubeconfig", str(tmp_path / "config"), "-n", "sets"]) == 1
    shown = capsys.readouterr().err
    assert "before all known HTTP paths have been installed" in shown
    assert "retry later; the server has a problem" in shown


# --- 3: a server that stops ---------------------------------------------------------------------------


def test_a_server_that_stops_for_a_minute_is_reported_and_borne(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apierrors, "_SAY_AFTER_S", 0)
    cluster, _ = serve(job("10", "reader list", skip=15), "jobs")
    said: list[str] = []
    *_, last = follow(cluster, "ok", say=said.append)
    assert last.state == "succeeded"
    assert "cannot be reached: it closed the connection; pairun retries for " in said[0]
    assert said[-1].startswith("the API server responds again, after ")


def test_a_watch_that_is_silent_beyond_its_time_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a server that stops: without an event, and without an end."""
    monkeypatch.setattr(apierrors, "SILENCE_S", 0.1)
    monkeypatch.setattr(watching, "WINDOW_S", 0.1)
    replay, ending, silent = Replay(conversation("01"), "ok"), threading.Event(), [1]

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if "watch" in query and silent and silent.pop():
            ending.wait(60)
            return None
        return replay(method, path, query, body)

    cluster, _ = serve(handler, "jobs")
    states = follow(cluster, "ok")
    assert next(states).state == "waiting"
    next(states)
    assert not ending.is_set()
    ending.set()
    *_, last = states
    assert last.state == "succeeded"


# --- 4, 5: versions, pages, bookmarks ---------------------------------------------------------------


def test_a_version_that_is_too_old_starts_a_new_list(serve: Serve) -> None:
    """A 200 whose only event is the error."""
    replay = Replay(conversation("01"), "ok")
    [error] = (
        x["event"] for x in conversation("04").lines if x.get("watch") == "one" and "event" in x
    )
    answers: list[Answer] = [(200, json.dumps(error).encode())]

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        answer = replay(method, path, query, body)
        return answers.pop() if "watch" in query and answers else answer

    cluster, fake = serve(handler, "jobs")
    *_, last = follow(cluster, "ok")
    assert (last.state, answers) == ("succeeded", [])
    assert sum(asked.endswith("/pods") for asked in fake.asked) > 3


def test_pages_go_on_after_their_token_has_expired(serve: Serve) -> None:
    """With the token in the 410, which the server gives for that."""
    first = conversation("04").said("GET /api/v1/namespaces/watch/pods?limit=3")
    told = {line["path"].partition("continue=")[2]: line for line in conversation("04").exchanges()
            if "continue=ey" in line["path"] and "&resourceVersion" not in line["path"]}  # fmt: skip

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        del method, path, body
        if not (token := query.get("continue")):
            return first
        # The last answer to a token is that after etcd was compacted.
        found = told[token]
        return found["status"], found["body"]

    cluster, _ = serve(handler, "watch")
    names = [o["metadata"]["name"] for o in cluster.objects(cluster.path("v1", "pods"), "")]
    assert sorted(names) == sorted(set(names))
    assert len(names) >= 7


def test_a_server_that_lags_behind_is_borne_by_the_barrier(serve: Serve, tmp_path: Path) -> None:
    """It does not know yet the version that another one told."""
    late = conversation("04").said("GET /api/v1/namespaces/watch/pods/p0?resourceVersion=99999999")
    replay = Replay(conversation("09"), "ok")
    answers: list[Answer] = [late]

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        answer = replay(method, path, query, body)
        return answers.pop() if "resourceVersion" in query and answers else answer

    _, fake = serve(handler, "fw")
    assert "answered 504" in str(pass_barrier(fake.url, tmp_path))
    assert not answers


def test_a_watch_that_lags_behind_hides_no_exit_code(serve: Serve) -> None:
    """The job is read from a server that knows its end, and the Pods from one that does not yet."""
    replay = Replay(conversation("01"), "fail0")

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        answer = replay(method, path, query, body)
        return (200, b"") if "watch" in query else answer

    cluster, _ = serve(handler, "jobs")
    *_, last = follow(cluster, "fail0")
    assert (last.state, last.exit_code) == ("failed", 7)


def test_a_bookmark_is_no_pod(serve: Serve) -> None:
    """Its object is a Pod without a name, whose containers are null."""
    bookmark = next(
        x["event"] for x in conversation("01").lines
        if x.get("event", {}).get("type") == "BOOKMARK" and x["watch"] == "pods"
    )  # fmt: skip
    assert bookmark["object"]["spec"]["containers"] is None
    cluster, _ = serve(Replay(conversation("01"), "fail2"), "jobs")
    for state in follow(cluster, "fail2"):
        assert {i.label for i in state.instances} <= {"pod-0", "pod-1"}


def test_the_leader_is_found_where_watches_need_a_version() -> None:
    """On an old etcd a watch without one is an error."""
    [error] = (
        x["event"] for x in conversation("04b").lines if x.get("watch") == "none" and "event" in x
    )
    reads: list[str] = []
    leader = {"metadata": {"uid": "uid-1"}, "status": {"podIP": "10.1.2.3"}}

    def handler(_: str, path: str, query: dict[str, str], __: Any) -> Answer:
        if "watch" in query:
            return 200, json.dumps(error).encode()
        reads.append(path)
        return (
            (200, leader)
            if len(reads) > 1
            else conversation("02").said("GET /api/v1/namespaces/demo/pods/nosuch")
        )

    fake = Fake(handler)
    with contextlib.closing(ApiServer(fake.url)) as api:
        assert LeaderPod(api, "ns", name="l")(30) == Leader(("10.1.2.3", rendezvous_port("uid-1")))
    fake.close()


# --- 6: bodies that are no Status -------------------------------------------------------------------


def test_a_throttled_request_is_retried(serve: Serve) -> None:
    """Priority and fairness answer in plain text."""
    answers = [conversation("08").said("GET /api/v1/namespaces/thr/pods?limit=1")] * 3
    replay = Replay(conversation("01"), "ok")
    cluster, _ = serve(lambda *asked: answers.pop() if answers else replay(*asked), "jobs")
    assert read_job(cluster, "ok").state == "waiting"
    assert not answers


def test_doctor_is_throttled(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It waits, and then sees what a login without rights sees."""
    answers = [conversation("08").said("GET /version")]
    review = conversation("02").said("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    no_right = conversation("02").said("GET /api/v1/namespaces/demo/pods")
    discovery = Replay(conversation("06"))

    def handler(method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if answers:
            return answers.pop()
        if method == "POST":
            return review
        return (
            discovery(method, path, query, body)
            if path.startswith(("/version", "/apis/"))
            else no_right
        )

    serve(handler, "demo")
    assert main(["doctor", "--kubeconfig", str(tmp_path / "config"), "-n", "demo"]) == 1
    shown = capsys.readouterr().out
    assert "answers: Kubernetes 1.32" in shown
    assert "rights of you: --engine jobset: may not " in shown


def test_a_group_that_is_not_installed_has_no_job(serve: Serve) -> None:
    replay = Replay(conversation("01"), "ok")
    missing = conversation("02").said("a kind whose CRD is not installed")
    assert missing[:2] == (404, b"404 page not found\n")
    cluster, _ = serve(replay, "jobs")
    for kind in KINDS[:2]:
        replay.told["GET", cluster.path(kind.version, kind.plural, "ok")] = missing
    assert read_job(cluster, "ok").engine == "job"


def test_the_servers_own_timeout_is_told(serve: Serve) -> None:
    """A 504 in JSON that is no Status."""
    late = conversation("14").said("GET /api/v1/namespaces/demo/pods?limit=1&timeout=4s")
    cluster, _ = serve(lambda *_: late, "demo")
    with pytest.raises(
        PairunError, match="request did not complete within the allotted timeout"
    ) as e:
        read_job(cluster, "ok")
    assert e.value.problems[0].hint == "retry later; the server has a problem"


# --- 7, 8: refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "note", "words"),
    [
        ("02", "quota exceeded", "exceeded quota: "),
        ("02", "count of Pods exceeded", "exceeded quota: "),
        ("02", "over max", "maximum cpu usage per Container"),
        ("02", "baseline: Pod privileged", 'violates PodSecurity "baseline:latest": privileged'),
        ("02", "unknown fields, Strict", "unknown field"),
        ("02", "3.2 MB of data", "Request entity too large"),
        ("05", "refused: two containers", "ValidatingAdmissionPolicy"),
        ("05", "the server's refusal", "denied request"),
        ("03", "name too long for its Pods", 'admission webhook "vjobset.kb.io" denied'),
        ("03", "create without the webhook", "failed calling webhook"),
    ],
)
def test_a_refused_submission_leaves_nothing_and_tells_why(
    serve: Serve, name: str, note: str, words: str
) -> None:
    store = Store()
    cluster, _ = serve(store, "space")
    store.told["POST", cluster.path("v1", "pods")] = conversation(name).said(note)
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert ids(e) == ["PR788"]
    assert words in str(e.value)
    assert "not permitted" not in str(e.value)
    assert store.objects == {}


@pytest.mark.parametrize(
    ("name", "namespace", "job", "words"),
    [
        ("02", "quota", "qj", "exceeded quota: q"),
        ("02", "ps-baseline", "real", 'violates PodSecurity "baseline:latest"'),
        ("02", "ps-restricted", "real", 'violates PodSecurity "restricted:latest"'),
        ("05", "demo", "injbad", "ValidatingAdmissionPolicy"),
    ],
)
def test_a_job_without_a_condition_whose_pods_are_refused(
    serve: Serve,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    namespace: str,
    job: str,
    words: str,
) -> None:
    """Only its events tell, and a wait ends."""
    replay = Replay(conversation(name))
    replay.now = 10_000
    nothing = {"items": [], "metadata": {"resourceVersion": "1"}}
    replay.told["GET", f"/api/v1/namespaces/{namespace}/pods"] = 200, nothing
    serve(replay, namespace)
    where = [job, "--kubeconfig", str(tmp_path / "config"), "-n", namespace]
    assert main(["status", *where]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert main(["status", *where, "--watch", "--stuck-timeout", "100ms"]) == 1
    shown = capsys.readouterr().err
    assert "the job is stuck for " in shown
    assert words in shown


# --- 9 is in test_jobs; 10: deletion and logs ---------------------------------------------------------


def test_a_deletion_asks_for_the_end_of_the_pods(serve: Serve) -> None:
    """Without a policy they would stay."""
    replay = Replay(conversation("01"), "jd-background")
    path = "/apis/batch/v1/namespaces/jobs/jobs/jd-background"
    replay.told["DELETE", path] = conversation("01").said("DELETE " + path)
    cluster, _ = serve(replay, "jobs")
    replay.now += 0.05
    removed = remove(cluster, "jd-background")
    assert replay.bodies["DELETE", path]["propagationPolicy"] == "Background"
    assert (removed.what, removed.pods) == (["Job jd-background"], 2)
    assert wait_until_gone(cluster, removed) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("previous log, empty", "unable to retrieve container logs for containerd://d1d3"),
        ("GET /api/v1/namespaces/podsx/pods/gates/log", "no log: it is "),
        ("log with the kubelet gone", "connect: connection refused"),
        ("after it failed", "is waiting to start: PodInitializing"),
    ],
)
def test_a_log_that_is_none_is_a_note_and_the_others_are_printed(
    serve: Serve, words: str, says: str
) -> None:
    failed = {"phase": "Failed", "containerStatuses": [ended("app", 1)]}
    pods = [pod(index=n, **({"phase": "Pending"} if "gates" in words else failed)) for n in (0, 1)]

    def handler(_: str, path: str, __: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/log"):
            return conversation("07").said(words) if "worker-0" in path else (200, b"mine\n")
        if path.endswith("/pods"):
            return 200, {"items": pods, "metadata": {}}
        return 404, {}

    cluster, _ = serve(handler, "space")
    shown: list[str] = []
    said: list[str] = []
    whole = print_logs(
        cluster,
        "mnist",
        LogSelection(previous=True),
        lambda _, line: shown.append(line),
        said.append,
    )
    assert (whole, shown) == (False, ["mine"]), said
    [line] = said
    assert line.startswith("worker-0: no log: ")
    assert says in line

"""The module notify, against a real HTTP server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.contract.loading import load_module
from pairun.host.context import HostContext, ProbeContext
from pairun.host.worlds import ReviewContext
from pairun.module import FailureKind, Note, Secret
from pairun.plan import Task
from pairun.review.taskreview import judge
from tests.webserver import Answer, Asked, WebServer

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

FILE = Path(__file__).parents[2] / "modules" / "notify.py"
HIDDEN = "T000-B000-s3cret"
ENV = {
    "PAI_JOB_NAME": "anna~mnist", "PAI_CURRENT_TASK_ROLE_NAME": "worker", "FC_TASK_INDEX": "3",
}  # fmt: skip
FAILED = {**ENV, "PAIRUN_EVENT": "failure", "PAIRUN_EXIT_CODE": "137", "PAIRUN_MESSAGE": "the command ended"}  # fmt: skip


class Server(WebServer):
    """A webhook: it answers with what stands next, or hangs where that is None.

    Attributes:
        answers: status and headers; the last one stays.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]] | None] = [(200, {})]
        super().__init__(self._next)
        self.url += f"/services/{HIDDEN}"

    def _next(self, _: Asked) -> Answer | None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return self.hang() if answer is None else Answer(*answer, f"no {HIDDEN}".encode())

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was posted."""
        return [json.loads(asked.body) for asked in self.asked]


@pytest.fixture
def servers() -> Iterator[Callable[[], Server]]:
    """Makes webhooks."""
    made: list[Server] = []

    def make() -> Server:
        made.append(Server())
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def server(servers: Callable[[], Server]) -> Server:
    """One webhook."""
    return servers()


# --- the message ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "args", "body"),
    [
        (ENV, {}, {"event": "start", "exit_code": None, "message": "",
                   "text": "anna~mnist, worker-3 started"}),
        ({**ENV, "PAIRUN_EVENT": "success", "PAIRUN_EXIT_CODE": "0", "PAIRUN_MESSAGE": ""}, {},
         {"event": "success", "exit_code": 0, "text": "anna~mnist, worker-3 succeeded"}),
        (FAILED, {}, {"event": "failure", "exit_code": 137, "message": "the command ended",
                      "text": "anna~mnist, worker-3 failed with exit code 137: the command ended"}),
        ({**FAILED, "PAIRUN_EVENT": "signal"}, {}, {"event": "signal", "exit_code": 137}),
        (FAILED, {"text": "see the curves"}, {"text": "see the curves", "exit_code": 137}),
        (FAILED, {"event": "start"}, {"event": "start", "exit_code": None, "message": ""}),
        ({"PAI_JOB_NAME": "\udcff", "FC_TASK_INDEX": "x"}, {},
         {"job": "?", "index": None, "text": "?, instance started"}),
        ({}, {}, {"job": "", "role": "", "text": "the job, instance started"}),
    ],
    ids=["start", "success", "failure", "signal", "own words", "own event", "odd variables", "none"],
)  # fmt: skip
def test_the_body(
    harness: Harness,
    server: Server,
    env: dict[str, str],
    args: dict[str, Any],
    body: dict[str, Any],
) -> None:
    """Job, role, index, event, exit code and message come as JSON; another Pod has another id."""
    for pod in ("one", "one", "two"):
        outcome = harness.run("notify", {"url": server.url, **args}, {**env, "FC_POD_UID": pod})
        assert outcome.failure is None
    first, second, elsewhere = server.bodies
    if env is ENV:
        assert (first["job"], first["role"], first["index"]) == ("anna~mnist", "worker", 3)
    assert {k: first[k] for k in body} == body
    assert sorted(first) == sorted(
        ["id", "event", "job", "role", "index", "exit_code", "message", "text"]
    )
    assert server.asked[0].headers["content-type"] == "application/json"
    assert first["id"] == second["id"] != elsewhere["id"]


def test_headers_and_address_may_be_secret(harness: Harness, server: Server) -> None:
    """They reach the server, and nobody else."""
    args = {"url": Secret(server.url), "headers": {"Authorization": Secret("Bearer abc")}}
    server.answers = [(403, {})]
    outcome = harness.run("notify", args, ENV)
    assert server.asked[0].headers["authorization"] == "Bearer abc"
    assert server.asked[0].path.endswith(HIDDEN)
    assert outcome.failure is not None
    assert outcome.failure.message == "the webhook at 127.0.0.1: it answered 403"
    shown = repr(outcome) + str(outcome.failure.hint) + "".join(harness.log)
    assert HIDDEN not in shown
    assert "abc" not in shown


# --- receivers that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ((503, {}), "transient", "it answered 503"),
        ((401, {}), "permanent", "it answered 401"),
        ((404, {}), "permanent", "it answered 404"),
        ((307, {"Location": "/elsewhere"}), "permanent", "it answered 307, a redirect"),
        (None, "timeout", "did not answer within 200ms"),
    ],
    ids=["503", "401", "404", "redirect", "hanging"],
)  # fmt: skip
def test_a_message_that_cannot_be_sent(
    harness: Harness,
    server: Server,
    answer: tuple[int, dict[str, str]] | None,
    kind: FailureKind,
    message: str,
) -> None:
    """One attempt is one request; its failure is harmless unless the policy says otherwise."""
    server.answers = [answer]
    args = {"url": server.url, "timeout": "200ms"}
    outcome = harness.run("notify", args, FAILED)
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert message in outcome.failure.message
    assert HIDDEN not in str(outcome.failure) + "".join(harness.log)
    assert len(server.asked) == 1
    assert kind in harness.make("notify", args).harmless
    assert not harness.make("notify", {**args, "policy": "fail"}).harmless


def test_a_server_that_asks_for_time_is_obeyed(harness: Harness, server: Server) -> None:
    """``Retry-After`` reaches the executor, which retries."""
    server.answers = [(429, {"Retry-After": "86400"})]
    outcome = harness.run("notify", {"url": server.url}, FAILED)
    assert outcome.failure is not None
    assert outcome.failure.retry_after_s == 86400


def test_a_redirection_gets_nothing(
    harness: Harness, server: Server, servers: Callable[[], Server]
) -> None:
    """Another server learns neither the address nor the message, nor that there was a token."""
    other = servers()
    server.answers = [(308, {"Location": other.url})]
    args = {"url": server.url, "headers": {"Authorization": Secret("Bearer abc")}}
    harness.run("notify", args, ENV)
    assert len(server.asked) == 1
    assert other.asked == []


def test_a_server_that_is_gone(harness: Harness, server: Server) -> None:
    """A refused connection may heal."""
    server.close()
    outcome = harness.run("notify", {"url": server.url}, ENV)
    assert outcome.failure is not None
    assert outcome.failure.kind == "transient"
    assert "the connection to 127.0.0.1" in outcome.failure.message


def test_the_handlers_time_bounds_it(harness: Harness, server: Server) -> None:
    """With little time left it fails with its own message before it would be stopped."""
    server.answers = [None]
    end = time.monotonic() + 1.0
    outcome = harness.run("notify", {"url": server.url}, ENV, deadline=end)
    assert outcome.failure is not None
    assert "did not answer" in outcome.failure.message


# --- events, where there is no token --------------------------------------------------------------


def test_no_token_is_no_event(harness: Harness, server: Server) -> None:
    """Without a token there is no Event, and the webhook gets its message all the same."""
    env = {**ENV, "PAIRUN_API_CREDENTIALS": "{tmp}/none"}
    outcome = harness.run("notify", {"kubernetes": True}, env)
    assert outcome.skip is not None
    assert "no token is mounted" in outcome.skip.because
    both = harness.run("notify", {"kubernetes": True, "url": server.url}, env)
    assert both.result is not None
    assert "sent to the webhook at 127.0.0.1; no token is mounted" in both.result.message


def test_an_api_server_that_is_not_there_keeps_nobody_from_it(
    harness: Harness, server: Server
) -> None:
    """The webhook gets its message though the API server cannot be reached."""
    folder = harness.tmp / "credentials"
    folder.mkdir()
    (folder / "token").write_text("abc")
    env = {
        **ENV, "PAIRUN_API_CREDENTIALS": str(folder), "FC_POD_NAME": "p", "FC_FRAMEWORK_NAMESPACE": "n",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1",
    }  # fmt: skip
    args = {"kubernetes": True, "url": server.url}
    outcome = harness.run("notify", args, env)
    assert outcome.failure is not None
    assert outcome.failure.message.startswith("the Pod's events: the connection to the API server")
    assert len(server.asked) == 1


def test_a_pod_that_does_not_know_itself(harness: Harness) -> None:
    """Without name and namespace there is no Event."""
    (harness.tmp / "token").write_text("abc")
    outcome = harness.run("notify", {"kubernetes": True}, {"PAIRUN_API_CREDENTIALS": "{tmp}"})
    assert outcome.failure is not None
    assert "the name or the namespace of this Pod is unknown" in outcome.failure.message


# --- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "give 'url'"),
        ({"url": "ftp://e.org"}, "http or https"),
        ({"url": "http://user:s3cret@e.org/"}, "must not contain a user or password"),
        ({"url": "http://e.org:99999/"}, "an invalid host or port"),
        ({"url": "http://e.org", "headers": {"Host": "x"}}, "may not hold 'Host'"),
        ({"url": "http://e.org", "headers": {"a\nb": "x"}}, "may not hold"),
        ({"url": "http://e.org", "timeout": "0s"}, "more than 0s"),
    ],
)
def test_wrong_arguments(harness: Harness, args: dict[str, Any], says: str) -> None:
    """What cannot work is reported before anything runs, and shows no secret."""
    (problem, *_) = harness.problems("notify", args)
    assert says in problem.message
    assert "s3cret" not in problem.message


def test_a_review_sends_nothing(harness: Harness, server: Server) -> None:
    """A review and a dry run send nothing; the contexts they have could not."""
    args = {"url": server.url}
    task = Task(id="notify", name="N", module="notify", args=args)
    cls = load_module("notify", str(FILE))
    for context in (ReviewContext({}, "/pai"), ProbeContext({}, str(harness.pai_dir))):
        assert judge(task, cls, context).kind == "check"
        with pytest.raises(RuntimeError, match="may only read"):
            context.post(server.url, b"")
        with pytest.raises(RuntimeError, match="may only read"):
            context.create_event(Note("JobStarted", "started", warning=False))
    assert server.asked == []


def test_fetch_still_only_reads(harness: Harness, server: Server) -> None:
    """Whoever wants to send something takes `post`."""
    context: HostContext = harness.context()
    with pytest.raises(ValueError, match="not POST"):
        context.fetch(server.url, method="POST")  # type: ignore[arg-type]


def run_job(tmp_path: Path, command: str, task: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run a job of one instance with a runtime task of its own."""
    job = {
        "protocolVersion": 2, "name": "tell", "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
        "taskRoles": {"main": {
            "instances": 1, "dockerImage": "i", "commands": [command],
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
        }},
        "extras": {"pairun": {"runtime": [
            {"append": None, "id": "notify", "name": "The start is reported", **task}
        ]}},
    }  # fmt: skip
    policy = {"job_may": {"insert": {"runtime": ["notify"]}, "patch": "*"}}
    (tmp_path / "root" / "playbooks").mkdir(parents=True)
    (tmp_path / "root" / "playbooks" / "policy.yaml").write_text(yaml.safe_dump(policy))
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    return subprocess.run(
        [sys.executable, "-m", "pairun", "run", "job.yaml", "--root", "root"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_as_exit_handlers_of_a_job(tmp_path: Path, server: Server) -> None:
    """A job's own handlers report its start and its failure, with the exit code of its command."""
    notify = {"notify": {"url": server.url}}
    handler = {"id": "end", "name": "The end is reported", "event": "always", **notify}
    done = run_job(tmp_path, "exit 7", {**notify, "on_exit": [handler]})
    assert done.returncode == 7, done.stdout + done.stderr
    start, end = server.bodies
    assert (start["event"], start["role"], start["index"]) == ("start", "main", 0)
    assert (end["event"], end["exit_code"]) == ("failure", 7)
    assert "the command ended with 7" in end["message"]


@pytest.mark.slow
def test_retries_send_the_same_message(tmp_path: Path, server: Server) -> None:
    """500, then 429, then good: three attempts of the executor, one message, one id."""
    server.answers = [(500, {}), (429, {"Retry-After": "1"}), (204, {})]
    task = {"notify": {"url": server.url}, "retries": 2, "delay": "1ms"}
    done = run_job(tmp_path, "true", task)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(server.asked) == 3
    assert len({body["id"] for body in server.bodies}) == 1


@pytest.mark.slow
def test_a_message_that_is_never_sent_is_ignored(tmp_path: Path, server: Server) -> None:
    """After the last attempt the task is ignored, and the command runs; ``tries`` counts attempts."""
    server.answers = [(503, {})]
    task = {"notify": {"url": server.url, "tries": 2}}
    done = run_job(tmp_path, "echo it runs", task)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it runs" in done.stdout
    assert len(server.asked) == 2
    assert "it answered 503" in done.stdout

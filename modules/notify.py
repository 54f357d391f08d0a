"""Report the start and the end of a job to people and systems."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Failure,
    FailureKind,
    Note,
    Permanent,
    Result,
    Secret,
    Skip,
    TimedOut,
    Transient,
    arg,
    define,
    is_worth_a_retry,
    retry_after_s,
    reveal,
)

_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
# The part of an attempt's time that is reserved for the module's message.
_RESERVE_S = 0.5
_MAX_TEXT_CHARACTERS = 4096
_OUR_HEADERS = ("content-type", "content-length", "host", "connection", "transfer-encoding")
_Event = Literal["start", "success", "failure", "signal"]
_VERBS = {"start": "started", "success": "succeeded", "failure": "failed", "signal": "was stopped"}
_REASONS = {"start": "Started", "success": "Succeeded", "failure": "Failed", "signal": "Stopped"}

Message = dict[str, Any]
"""The content for a webhook, as a JSON object."""


@define
class Notify(CheckModule):
    """Send a message to a webhook, or to the Pod's events, when the job starts or ends.

    As a task it reports the start, as an exit handler the outcome of the phase. A webhook gets one
    POST per attempt, with a JSON object of id, event, job, role, index, exit_code, message and text;
    the id is the same in every attempt. If it cannot be sent, the task is
    ignored, unless `policy` is fail.
    """

    privileges = "network; for events, a Pod's token that may create events"
    asks_servers = True
    example = "notify: {url: 'https://hooks.example.com/jobs', text: 'look at the curves'}"

    url: str | Secret | None = arg("The webhook, http or https.", default=None)
    headers: dict[str, str | Secret] = arg(
        "Further headers for it, such as Authorization.", factory=dict
    )
    kubernetes: bool = arg(
        "Also create an Event of this Pod, if a token is mounted.", default=False
    )
    text: str | None = arg("Your own text; by default one sentence about the event.", default=None)
    event: _Event | None = arg(
        "The event to report; by default the one the exit handlers run for, or the start.",
        default=None,
    )
    tries: int | None = arg("Use the task's 'retries'.", default=None, replaced_by="retries")
    timeout: Duration = arg("The longest time for one request.", default=Duration(10.0))
    policy: Literal["warn", "fail"] = arg(
        "What happens when a message cannot be sent: the task is ignored, or it fails.",
        default="warn",
    )

    def require(self) -> Iterator[str]:
        """There is a receiver, with a valid address."""
        if self.url is None and not self.kubernetes:
            yield "give 'url', or 'kubernetes: true', or both"
        if self.url is not None and (mistake := _address_mistake(reveal(self.url))):
            yield mistake
        for name in self.headers:
            if (
                not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name)
                or name.lower() in _OUR_HEADERS
            ):
                yield f"'headers' may not hold {name!r}"
        if self.timeout <= 0:
            yield "'timeout' must be more than 0s"

    @property
    def harmless(self) -> frozenset[FailureKind]:
        """Under ``warn``, a failed notification does not fail the job."""
        kinds: frozenset[FailureKind] = frozenset({"transient", "timeout", "conflict", "permanent"})
        return kinds if self.policy == "warn" else frozenset()

    def check(self, ctx: Context) -> Result:
        """Send to every receiver, even if one fails.

        Raises:
            Skip: the only receiver is the Pod's events, and no token is mounted.
            Failure: a receiver did not get the message.
        """
        message = self._message(ctx)
        receivers: list[tuple[str, Callable[[], None]]] = []
        notes = []
        if self.kubernetes:
            folder = ctx.env.get("PAIRUN_API_CREDENTIALS") or _CREDENTIALS
            if ctx.stat(os.path.join(folder, "token")) is not None:
                receivers.append(("the Pod's events", lambda: self._create_event(ctx, message)))
            else:
                notes.append(f"no token is mounted at {folder}, so no Event is created")
        if self.url is not None:
            host = urlsplit(reveal(self.url)).hostname
            receivers.append((f"the webhook at {host}", lambda: self._post(ctx, message)))
        if not receivers:
            raise Skip(notes[0])
        failures = [f for name, send in receivers if (f := _failure_of(name, send)) is not None]
        if failures:
            # Of several failures, one that a retry may fix decides whether to retry.
            failures.sort(key=lambda f: not isinstance(f, Transient | TimedOut))
            for other in failures[1:]:
                ctx.log(other.message)
            raise failures[0]
        names = " and ".join(name for name, _ in receivers)
        return Result(message="; ".join([f"{message['event']}: sent to {names}", *notes]))

    def _message(self, ctx: Context) -> Message:
        env = ctx.env
        event = self.event or env.get("PAIRUN_EVENT") or "start"
        ended = event != "start" and event == env.get("PAIRUN_EVENT")
        job = env.get("PAI_JOB_NAME") or env.get("FC_FRAMEWORK_NAME") or ""
        role = env.get("PAI_CURRENT_TASK_ROLE_NAME") or env.get("FC_TASKROLE_NAME") or ""
        index = _number(env.get("FC_TASK_INDEX"))
        code = _number(env.get("PAIRUN_EXIT_CODE")) if ended else None
        message = env.get("PAIRUN_MESSAGE", "") if ended else ""
        who = f"{job or 'the job'}, {role or 'instance'}" + ("" if index is None else f"-{index}")
        sentence = f"{who} {_VERBS.get(event, event)}"
        sentence += f" with exit code {code}" if code else ""
        sentence += f": {message}" if message else ""
        text = (sentence if self.text is None else self.text)[:_MAX_TEXT_CHARACTERS]
        values = {
            "id": _id_of(ctx, event, text), "event": event, "job": job, "role": role, "index": index,
            "exit_code": code, "message": message, "text": text,
        }  # fmt: skip
        # Text in a variable that is not Unicode is not valid JSON either.
        return {k: _unicode(v) if isinstance(v, str) else v for k, v in values.items()}

    def _post(self, ctx: Context, message: Message) -> None:
        headers = {**self.headers, "Content-Type": "application/json"}
        url = reveal(self.url or "")
        answer = ctx.post(
            url, json.dumps(message).encode(), headers=headers, timeout_s=_limit(ctx, self.timeout)
        )
        if 200 <= answer.status < 300:
            return
        # Show no text from the server: it may repeat the address.
        status = f"it answered {answer.status}"
        if 300 <= answer.status < 400:
            raise Permanent(f"{status}, a redirect", hint="give the address it redirects to")
        if is_worth_a_retry(answer.status):
            asked_s = retry_after_s(answer.header("retry-after"), ctx.now())
            raise Transient(status, retry_after_s=asked_s)
        raise Permanent(status)

    def _create_event(self, ctx: Context, message: Message) -> None:
        event = message["event"]
        note = Note("Job" + _REASONS.get(event, "Told"), message["text"], event == "failure")
        ctx.create_event(note, key=message["id"], timeout_s=_limit(ctx, self.timeout))


def _failure_of(receiver: str, send: Callable[[], None]) -> Failure | None:
    try:
        send()
    except Failure as e:
        return type(e)(
            f"{receiver}: {e.message}", fault=e.fault, hint=e.hint, retry_after_s=e.retry_after_s
        )
    return None


def _id_of(ctx: Context, event: str, text: str) -> str:
    """An id that is the same in every attempt: one executor, our parent, starts all of them."""
    executor = os.getppid()
    try:
        with open(f"/proc/{executor}/stat", encoding="utf-8", errors="replace") as f:
            started = f.read().rpartition(")")[2].split()[19]  # proc_pid_stat(5): starttime
    except (OSError, IndexError):
        started = ""
    parts = (ctx.env.get("FC_POD_UID", ""), os.uname().nodename, executor, started, event, text)
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _limit(ctx: Context, seconds: float) -> float:
    left = ctx.remaining_s()
    return seconds if left is None else max(0.05, min(seconds, left - _RESERVE_S))


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("-?[0-9]{1,9}", text) else None


def _address_mistake(url: str) -> str | None:
    """The mistake in an address; the sentence shows nothing of it."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number or too large
    except ValueError:
        return "'url' has an invalid host or port"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "'url' must be an http or https address"
    if "@" in parts.netloc:
        return (
            "'url' must not contain a user or password: put them into 'headers', as Authorization"
        )
    return None

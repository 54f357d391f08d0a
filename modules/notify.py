"""Tell somebody how it goes."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Failure,
    Fetched,
    Permanent,
    Result,
    Secret,
    Skip,
    TimedOut,
    Transient,
    arg,
    define,
    reveal,
)

_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
# What the tries leave of the attempt's time, to say what became of them before it is stopped.
_RESERVE_S = 0.5
_LONGEST_TEXT = 4096
# The API server refuses an Event with a longer message.
_LONGEST_MESSAGE = 1024
_OURS = ("content-type", "content-length", "host", "connection", "transfer-encoding")
_Event = Literal["start", "success", "failure", "signal"]
_WORDS = {"start": "started", "success": "succeeded", "failure": "failed", "signal": "was stopped"}
_REASONS = {"start": "Started", "success": "Succeeded", "failure": "Failed", "signal": "Stopped"}


_News = dict[str, Any]


@define
class Notify(CheckModule):
    """Tell a webhook, or the Pod's events in Kubernetes, that the job starts or how it ended.

    As a task it tells of the start, as an exit handler of what became of the phase. A webhook gets
    one POST with a JSON object of id, event, job, role, index, exit_code, message and text; the id
    is the same for every try. Nobody who listens is no reason to fail, unless `policy` says so.
    """

    privileges = "network; for events, a Pod's token that may create events"
    example = "notify: {url: 'https://hooks.example.com/jobs', text: 'look at the curves'}"

    url: str | Secret | None = arg("The webhook, http or https.", default=None)
    headers: dict[str, str | Secret] = arg(
        "Further headers for it, such as Authorization.", factory=dict
    )
    kubernetes: bool = arg(
        "Also write an Event of this Pod, where a token is mounted; else nothing.", default=False
    )
    text: str | None = arg(
        "Words of your own; by default a sentence of what happened.", default=None
    )
    event: _Event | None = arg(
        "What to tell of; by default what the exit handlers run for, or the start.", default=None
    )
    tries: int = arg("How often at most: no answer, 408, 425, 429 and 5xx.", default=3)
    timeout: Duration = arg("The longest time for one try.", default=Duration(10.0))
    policy: Literal["warn", "fail"] = arg(
        "What becomes of it when nobody could be told.", default="warn"
    )

    def require(self) -> Iterator[str]:
        """Somebody to tell, at an address that can be."""
        if self.url is None and not self.kubernetes:
            yield "give 'url', or 'kubernetes: true', or both"
        if self.url is not None and (said := _address_mistake(reveal(self.url))):
            yield said
        for name in self.headers:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or name.lower() in _OURS:
                yield f"'headers' may not hold {name!r}"
        if self.tries < 1 or self.timeout <= 0:
            yield "'tries' and 'timeout' must be more than nothing"

    def check(self, ctx: Context) -> Result:
        """Tell everybody; one who cannot be told keeps nobody else from it."""
        news = self._news(ctx)
        whom: list[tuple[str, Callable[[], None]]] = []
        notes = []
        if self.kubernetes:
            folder = ctx.env.get("PAIRUN_API_CREDENTIALS") or _CREDENTIALS
            if ctx.stat(os.path.join(folder, "token")) is not None:
                whom.append(("the Pod's events", lambda: self._write(ctx, news)))
            else:
                notes.append(f"no token is mounted at {folder}, so there is no Event")
        if self.url is not None:
            host = urlsplit(reveal(self.url)).hostname
            whom.append((f"the webhook at {host}", lambda: self._send(ctx, news)))
        if not whom:
            raise Skip(notes[0])
        ends = {name: self._try(ctx, name, tell) for name, tell in whom}
        told = [name for name, failure in ends.items() if failure is None]
        failures = [failure for failure in ends.values() if failure is not None]
        if failures and self.policy == "fail":
            raise failures[0]
        for failure in failures:
            ctx.log(failure.message)
        notes += [failure.message for failure in failures]
        said = f"{news['event']}: told {' and '.join(told) or 'nobody'}"
        return Result(message="; ".join([said, *notes]))

    def _news(self, ctx: Context) -> _News:
        env = ctx.env
        event = self.event or env.get("PAIRUN_EVENT") or "start"
        ended = event != "start" and event == env.get("PAIRUN_EVENT")
        job = env.get("PAI_JOB_NAME") or env.get("FC_FRAMEWORK_NAME") or ""
        role = env.get("PAI_CURRENT_TASK_ROLE_NAME") or env.get("FC_TASKROLE_NAME") or ""
        index = _number(env.get("FC_TASK_INDEX"))
        code = _number(env.get("PAIRUN_EXIT_CODE")) if ended else None
        message = env.get("PAIRUN_MESSAGE", "") if ended else ""
        who = f"{job or 'the job'}, {role or 'instance'}" + ("" if index is None else f"-{index}")
        sentence = f"{who} {_WORDS.get(event, event)}"
        sentence += f" with exit code {code}" if code else ""
        sentence += f": {message}" if message else ""
        text = (sentence if self.text is None else self.text)[:_LONGEST_TEXT]
        news = {
            "id": os.urandom(16).hex(), "event": event, "job": job, "role": role, "index": index,
            "exit_code": code, "message": message, "text": text,
        }  # fmt: skip
        # What is not Unicode in a variable is no JSON either.
        return {k: _unicode(v) if isinstance(v, str) else v for k, v in news.items()}

    def _try(self, ctx: Context, whom: str, tell: Callable[[], None]) -> Failure | None:
        """Tell one of them, some times; why it was not to be."""
        attempt = 0
        while True:
            attempt += 1
            try:
                tell()
            except Failure as e:
                failure = type(e)(
                    f"{whom}: {e.message}",
                    fault=e.fault,
                    hint=e.hint,
                    retry_after_s=e.retry_after_s,
                )
            else:
                return None
            wait = random.uniform(0, _FIRST_WAIT_S * 2.0**attempt)  # noqa: S311 - jitter
            wait += failure.retry_after_s or 0.0
            left = ctx.remaining_s()
            if (
                attempt == self.tries
                or not isinstance(failure, Transient | TimedOut)
                or wait > _LONGEST_WAIT_S
                or (left is not None and wait > left - _RESERVE_S)
            ):
                return failure
            ctx.log(f"{failure.message}; trying again (try {attempt} of {self.tries})")
            ctx.sleep(wait)

    def _send(self, ctx: Context, news: _News) -> None:
        headers = {**self.headers, "Content-Type": "application/json"}
        url = reveal(self.url or "")
        answer = ctx.post(
            url, json.dumps(news).encode(), headers=headers, timeout_s=_limit(ctx, self.timeout)
        )
        if 200 <= answer.status < 300:
            return
        # Nothing of what the server says: it may say the address.
        said = f"it answered {answer.status}"
        if 300 <= answer.status < 400:
            raise Permanent(
                f"{said}, which sends elsewhere", hint="give the address that it sends to"
            )
        if answer.status in (408, 425, 429) or answer.status >= 500:
            raise Transient(said, retry_after_s=_retry_after(answer))
        raise Permanent(said)

    def _write(self, ctx: Context, news: _News) -> None:
        namespace = ctx.env.get("FC_FRAMEWORK_NAMESPACE") or ctx.env.get("POD_NAMESPACE")
        pod = ctx.env.get("FC_POD_NAME") or ctx.env.get("HOSTNAME")
        if not namespace or not pod:
            raise Permanent(
                "this Pod does not know its name and its namespace",
                fault="platform",
                hint="the variables FC_POD_NAME and FC_FRAMEWORK_NAMESPACE tell",
            )
        event = _kubernetes_event(news, ctx.now(), namespace, pod, ctx.env.get("FC_POD_UID"))
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        ctx.post_api(path, json.dumps(event).encode(), timeout_s=_limit(ctx, self.timeout))


def _kubernetes_event(
    news: _News, when: float, namespace: str, pod: str, uid: str | None
) -> dict[str, Any]:
    """An Event of a Pod (Kubernetes API reference, Event v1 core).

    Its name is its own, so that a second try makes no second one.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    involved = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": namespace}
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": pod[:200] + "." + news["id"][:16], "namespace": namespace},
        "involvedObject": involved | ({"uid": uid} if uid else {}),
        "type": "Warning" if news["event"] == "failure" else "Normal",
        "reason": "Job" + _REASONS.get(news["event"], "Told"),
        "message": news["text"].encode()[:_LONGEST_MESSAGE].decode("utf-8", "ignore"),
        "source": {"component": "pairun"}, "reportingComponent": "pairun",
        "reportingInstance": pod[:128], "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    }  # fmt: skip


def _limit(ctx: Context, seconds: float) -> float:
    left = ctx.remaining_s()
    return seconds if left is None else max(0.05, min(seconds, left - _RESERVE_S))


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("-?[0-9]{1,9}", text) else None


def _address_mistake(url: str) -> str | None:
    """What is wrong with an address, of which nothing is shown."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for what is no number, or too large a one
    except ValueError:
        return "'url' has a host or a port that cannot be one"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "'url' must be an http or https address"
    if "@" in parts.netloc:
        return "'url' may hold no user and no password: they go into 'headers', as Authorization"
    return None


def _retry_after(answer: Fetched) -> float | None:
    """Seconds of ``Retry-After`` (RFC 9110, 10.2.3), where it is a number."""
    text = (answer.header("retry-after") or "").strip()
    return float(text) if re.fullmatch("[0-9]{1,9}", text) else None

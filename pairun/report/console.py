"""Prints the events of a phase as lines."""

from __future__ import annotations

import io
import os
from typing import IO, Any

from pairun.base.durations import shown_duration
from pairun.module import format_size
from pairun.report.shown import known_kind
from pairun.secrets.vault import Vault
from pairun.volume.journal import CONDITION_IS_FALSE

_RETRIABLE = ("transient", "timeout", "conflict")


class Console:
    """Prints events as they arrive.

    Args:
        stream: the stream to print to.
        vault: masks secrets.
    """

    def __init__(self, stream: IO[str], vault: Vault) -> None:
        if isinstance(stream, io.TextIOWrapper):
            # A character that the stream cannot encode must not end the phase.
            stream.reconfigure(errors="backslashreplace")
        self._stream = stream
        self._vault = vault

    def __call__(self, event: dict[str, Any]) -> None:
        """Print one event, if it has a text for people."""
        method = getattr(self, f"_{event['type']}", None)
        if method is not None:
            method(event)

    def say(self, line: str) -> None:
        """Print a line; a missing reader or a full disk does not fail the phase."""
        # a file name may contain bytes that are not valid text
        clean = line.encode("utf-8", "backslashreplace").decode()
        self.say_masked(self._vault.text(clean))

    def say_masked(self, line: str) -> None:
        """Print a line in which secrets are already masked."""
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except OSError:
            # The stream's buffer would fail again when the interpreter exits.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    def _output(self, event: dict[str, Any]) -> None:
        self.say(f"  {event['task']} | {event['line']}")

    def _progress(self, event: dict[str, Any]) -> None:
        done, total = event["bytes"], event["total"]
        of = f" of {format_size(total)} ({100 * done // total} %)" if total else ""
        file = f" {event['file']}" if event["file"] else ""
        self.say(f"progress {event['task']}:{file} {format_size(done)}{of}")

    def _wait(self, event: dict[str, Any]) -> None:
        wait = shown_duration(event["seconds"])
        self.say(f"retry    {event['task']}: {event['because']}; next in {wait}")

    def _task_end(self, event: dict[str, Any]) -> None:
        outcome = event["outcome"]
        if outcome == "skipped" and event["message"] == CONDITION_IS_FALSE:
            self.say(f"skipped  {event['task']}: {CONDITION_IS_FALSE}")
            return
        attempts = (
            f", attempt {event['attempts']} of {event['of']}" if event["attempts"] > 1 else ""
        )
        seconds = shown_duration(event["seconds"])
        task = f"{event['task']}: {event['name']}" if event["name"] else event["task"]
        self.say(f"{outcome:8} {task} ({seconds}{attempts})")
        if outcome in ("failed", "ignored"):
            tried = "; ".join(filter(None, (_tried(event), f"fault: {event['fault']}")))
            self.say(f"         {event['message']} [{tried}]")
            if event.get("hint"):
                self.say(f"         help: {event['hint']}")
        elif event["message"] and outcome == "skipped":
            self.say(f"         {event['message']}")

    def _handlers_begin(self, event: dict[str, Any]) -> None:
        count = event["count"]
        self.say(f"{count} exit handler{'s' if count > 1 else ''} for {event['event']}")

    def _phase_end(self, event: dict[str, Any]) -> None:
        seconds = shown_duration(event["seconds"])
        self.say(
            f"{event['phase']} phase: {event['outcome']}, exit code {event['exit_code']}, {seconds}"
        )


def _tried(event: dict[str, Any]) -> str:
    """The kind of a failure, and whether the task was retried."""
    kind, attempts = known_kind(event), event["attempts"]
    if attempts > 1:
        return f"{kind} after {attempts} attempts".lstrip()
    if event["kind"] not in _RETRIABLE or attempts == 0:
        return kind
    tried = "no retries" if event["of"] == 1 else "not retried"
    return f"{kind}: {tried}" if kind else tried

"""Journals as both phases write them, for pages: a success, a failed gang, retries."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

BEGAN = 1_790_000_000.0

Records = list[dict[str, Any]]


def write(folder: pathlib.Path, journals: Mapping[str, Records]) -> pathlib.Path:
    """A shared volume's `logs/` with one journal for each instance."""
    for label, records in journals.items():
        (folder / label).mkdir(parents=True)
        lines = (json.dumps({"schema": 1, **record}) + "\n" for record in records)
        (folder / label / "journal.jsonl").write_text("".join(lines))
    return folder


class Story:
    """Builds the records of one instance; `at` is the clock, in seconds since the job began."""

    def __init__(self, at: float = 0.0) -> None:
        self.records: Records = []
        self.at = at
        self._phase_began = at
        self._phase = ""

    def _add(self, record: str, /, **data: Any) -> None:
        self.records.append({"time": round(BEGAN + self.at, 3), "type": record, **data})

    def begin(self, phase: str) -> None:
        self._phase, self._phase_began = phase, self.at
        self._add("phase_begin", phase=phase, pairun="0.1.0", tasks=3)

    def task(self, id_: str, *seconds: float, module: str = "script", outcome: str = "changed",
             wait_s: float = 1.0, handler: bool = False, **failure: Any) -> None:  # fmt: skip
        """A task of one attempt per number; all but the last fail."""
        about = {"task": id_, "name": f"What {id_} does", "handler": handler, "of": 10}
        began = self.at
        for number, each in enumerate(seconds, 1):
            last = number == len(seconds)
            self._add("attempt_begin", attempt=number, module=module, **about)
            self.at += each
            ended = {"outcome": outcome if last else "failed"}
            if not last or outcome == "failed":
                ended |= {"kind": "transient", "message": "the server hung up", **failure}
            self._add("attempt_end", attempt=number, seconds=each, **about, **ended)
            if not last:
                self._add("wait", seconds=wait_s, because="the server hung up", **about)
                self.at += wait_s
        self._add("task_end", outcome=outcome, attempts=len(seconds),
                  seconds=round(self.at - began, 3), message=failure.get("message", "done"),
                  **{k: v for k, v in failure.items() if k in ("kind", "fault", "hint")}, **about)  # fmt: skip

    def command(self, seconds: float, code: int = 0) -> None:
        self.command_begins()
        self.at += seconds
        self.command_ends(seconds, code)

    def command_begins(self) -> None:
        self._add("command_begin")

    def command_ends(self, seconds: float, code: int) -> None:
        self._add("command_end", exit_code=code, seconds=seconds)

    def settings(self, phase: str, task: str, where: str, *overrides: Mapping[str, Any]) -> None:
        """Who brought a task, and what other layers set of it."""
        self._add("settings", phase=phase, task=task, layer="built-in", where=where, set=overrides)

    def stop(self, signal: str, **sender: Any) -> None:
        self._add("stop", signal=signal, **sender)

    def handlers(self, event: str) -> None:
        self._add("handlers_begin", event=event, count=1)

    def diagnosis(self, klass: str, headline: str, advice: str, evidence: str) -> None:
        self._add("diagnosis", fault="user", retry="after_fix", confidence=0.92, headline=headline,
                  advice=advice, evidence=[{"text": evidence, "line": 12}], **{"class": klass})  # fmt: skip

    def end(self, outcome: str = "success", code: int = 0, message: str = "") -> None:
        seconds = round(self.at - self._phase_began, 3)
        self._add("phase_end", phase=self._phase, outcome=outcome, exit_code=code, message=message,
                  seconds=seconds)  # fmt: skip


BARRIER_TIMEOUT = {
    "path": "args.timeout", "value": "30m", "layer": "cluster", "where": "cluster/playbooks/init.yaml:4:18",
    "was": {"value": "10m", "layer": "built-in", "where": "playbooks/init.yaml:14:16"},
}  # fmt: skip
GIT_DEPTH = {
    "path": "args.depth", "value": 1, "layer": "job", "where": "job.yaml:37:23",
    "was": {"value": None, "layer": "built-in", "where": "plugin_specs/git.yaml:28:7"},
}  # fmt: skip
GIT_RETRIES = {
    "path": "retries", "value": 3, "layer": "job", "where": "job.yaml:36:18",
    "was": {"value": 9, "layer": "built-in", "where": "plugin_specs/git.yaml:34:14"},
}  # fmt: skip


def init(story: Story, barrier_s: float = 2.0) -> Story:
    """An init phase that gathers, checks and fetches."""
    story.begin("init")
    story.settings("init", "barrier", "playbooks/init.yaml:7:5", BARRIER_TIMEOUT)
    story.settings("init", "fetch_code", "plugin_specs/git.yaml:26:5", GIT_DEPTH, GIT_RETRIES)
    story.settings("runtime", "mount_storage", "playbooks/runtime.yaml:5:5")
    story.task("barrier", barrier_s, module="barrier", outcome="ok")
    story.task("environment", 0.05, module="job_environment")
    story.task("fetch_code", 1.4, module="git_clone")
    story.end()
    story.at += 1.2
    return story


def success() -> Records:
    story = init(Story())
    story.begin("runtime")
    story.task("mount_storage", 0.8, module="mount_storage")
    story.command(14.0)
    story.handlers("success")
    story.task("upload", 1.1, handler=True)
    story.end()
    return story.records


def retries() -> Records:
    story = Story()
    story.begin("init")
    story.settings("init", "fetch_code", "plugin_specs/git.yaml:26:5", GIT_DEPTH, GIT_RETRIES)
    story.task("barrier", 1.0, module="barrier", outcome="ok")
    story.task("fetch_code", 2.0, 3.1, 1.2, module="git_clone", wait_s=2.5)
    story.end()
    story.begin("runtime")
    story.task("mount_storage", 1.0, 1.0, module="mount_storage", outcome="failed",
               kind="permanent", fault="platform", message="the server refuses the share",
               hint="ask who runs the server", output=["mount: /data", "mount: access denied"])  # fmt: skip
    story.end("failure", 1, "mount_storage failed")
    return story.records


def stopped() -> Records:
    """A command that a signal from outside ends."""
    story = init(Story())
    story.begin("runtime")
    story.command_begins()
    story.at += 9.0
    story.stop("SIGTERM", sender="outside", uid=0)
    story.at += 2.0
    story.command_ends(11.0, 143)
    story.handlers("signal")
    story.task("upload", 1.5, handler=True)
    story.end("signal", 143, "stopped by SIGTERM")
    return story.records


def gang(count: int, failing: int = 3) -> dict[str, Records]:
    """A gang in which one instance raises and the others stop waiting for it."""
    journals = {}
    for index in range(count):
        late = 6.0 if index == count // 2 else (index * 37 % 100) / 50
        story = init(Story(late), 8.0 - late)
        story.begin("runtime")
        story.task("mount_storage", 0.5 + (index * 13 % 10) / 20, module="mount_storage")
        if index == failing:
            story.command(20.0, 1)
            story.diagnosis("python_exception", "the program raised KeyError: 'loss'",
                            "correct train.py, line 41", "KeyError: 'loss'")  # fmt: skip
        else:
            story.command(31.0, 134)
            story.diagnosis("nccl_timeout", "a collective waited for a rank that had ended",
                            "look for the rank that failed first", "Watchdog caught timeout")  # fmt: skip
        story.handlers("failure")
        story.task("upload", 0.6, handler=True)
        story.end("failure", 1 if index == failing else 134, "the command failed")
        journals[f"worker-{index}"] = story.records
    return journals

"""Everything that a module's author imports.

A module is a file or a folder with one class: a frozen record of typed, documented arguments.
A *state* module has ``probe`` (reads the world), ``plan`` (a pure comparison) and ``apply`` (changes
the world). A *check* module has only ``check``. Every effect goes through the `Context`: it bounds
the time, hides secrets, writes the journal, and a test replaces it.

Example::

    from pairun.module import Context, StateModule, Verdict, arg, define, no_change, will_change

    @define
    class MakeDir(StateModule):
        \"\"\"Make sure that a directory exists.\"\"\"

        example = "make_dir: {path: /tmp/x}"

        path: str = arg("The directory.")

        def probe(self, ctx: Context) -> bool:
            return ctx.stat(self.path) is not None

        def plan(self, state: bool) -> Verdict:
            return no_change("it exists") if state else will_change("make it")

        def apply(self, ctx: Context) -> None:
            ctx.make_dir(self.path)
"""

from __future__ import annotations

from pairun.base.durations import Duration, format_duration, parse_duration
from pairun.base.foreignjson import parse_json, parse_record
from pairun.base.gpureport import GpuReportElement, parse_gpu_report, uncorrectable_errors
from pairun.base.linklocal import is_link_local
from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.base.sizes import format_size
from pairun.kube.events import Note
from pairun.module.answers import (
    Completed,
    Fetched,
    FetchedFile,
    FileStat,
    Gathering,
    Mount,
    Peer,
    Talk,
    Unpacked,
)
from pairun.module.classes import (
    CheckModule,
    Mode,
    Module,
    Phase,
    Result,
    StateModule,
    Verdict,
    arg,
    define,
    no_change,
    runs,
    unknown,
    will_change,
)
from pairun.module.context import Context, differing_files
from pairun.module.failures import (
    FAILURE_KINDS,
    Conflict,
    Failure,
    FailureKind,
    Fault,
    NoSuchHost,
    Permanent,
    Skip,
    TimedOut,
    Transient,
    UnknownUntilRun,
)
from pairun.module.gang import RESTARTS, Instance, cluster_path, job_instances, own_rank
from pairun.secrets.secret import Secret, reveal

__all__ = (  # noqa: RUF022 - by subject
    # the classes
    "CheckModule", "Context", "Module", "Phase", "StateModule", "arg", "define",
    # types of arguments
    "Duration", "Mode", "Secret", "reveal",
    # verdicts and results
    "Result", "Verdict", "no_change", "runs", "unknown", "will_change",
    # failures
    "Conflict", "FAILURE_KINDS", "Failure", "FailureKind", "Fault", "NoSuchHost", "Permanent", "Skip", "TimedOut", "Transient",
    "UnknownUntilRun",
    # what the context returns
    "Completed", "Fetched", "FetchedFile", "FileStat", "Gathering", "Instance", "Mount", "Peer", "Talk",
    "Unpacked",
    # readers and writers
    "GpuReportElement", "Note", "RESTARTS", "cluster_path", "differing_files", "format_duration", "format_size",
    "is_link_local", "is_worth_a_retry", "job_instances", "own_rank", "parse_duration", "parse_gpu_report", "parse_json",
    "parse_record", "retry_after_s", "uncorrectable_errors",
)  # fmt: skip
"""What a module's author may import; docs/modules.md documents each name."""

"""Wait until every task of the job has an address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pairun.module import CheckModule, Context, Duration, Failure, Permanent, Result, arg, define

from .members import INSTANCE_VARIABLES, Look
from .objects import OBJECT_VARIABLES, parse_object

if TYPE_CHECKING:
    from .framework import FrameworkBackend
    from .pods import PodsBackend

# Only a check needs these imports; a review loads this file, too.

_LOOKS_PER_S = {"framework": 150.0, "pods": 25.0}
"""How many requests per second a whole gang sends to one API server."""

_NEEDED = {
    "local": ("PAIRUN_GANG_DIR", "PAIRUN_HOST_IP", *INSTANCE_VARIABLES),
    "framework": (*OBJECT_VARIABLES, *INSTANCE_VARIABLES),
    "pods": ("PAIRUN_FRAMEWORK_FILE", *OBJECT_VARIABLES, *INSTANCE_VARIABLES),
}
_SETTINGS = {
    "BARRIER_CHECK_INTERVAL_SEC": (5, 1200),
    "BARRIER_CHECK_TIMEOUT_SEC": (60, 1200),
}
"""The variables of FrameworkController's barrier, with the range of seconds that it accepts."""


@define
class Barrier(CheckModule):
    """Wait until every task of the job has an address; write them to ``framework.json``.

    With the local backend, every task announces itself in a directory that all tasks share. The
    framework backend reads the job's Framework from the cluster's API server, the pods backend its
    Pods; both also write ``injector.sh`` and, in the Pod's log directory, ``barrier.log``. Where
    the tasks find each other (docs/rendezvous.md), they send each other their addresses, and the
    barrier asks the server rarely.

    With ``ready: running``, a task of the runtime phase, it waits only after this container has
    restarted in its Pod, because init does not run again then: until the containers of all other
    tasks run or have succeeded. Tasks export the new addresses of instances that have moved.

    If ``BARRIER_CHECK_INTERVAL_SEC`` or ``BARRIER_CHECK_TIMEOUT_SEC`` is set, it replaces
    ``interval`` or ``timeout``.
    """

    phases = ("init", "runtime")
    privileges = (
        "may write to the shared volume and, with the local backend, to the gang's directory; the "
        "other backends may get frameworks or list pods, and get pods to say why one is missing"
    )
    example = "barrier: {backend: local, interval: 1s, timeout: 5m}"

    backend: Literal["local", "framework", "pods"] = arg("What knows the addresses.")
    gang: bool = arg("Wait for all tasks; if false, only for this one (local: always all).",
                     default=True)  # fmt: skip
    interval: Duration = arg("Longest time between two looks; small gangs look more often.",
                             default=Duration(10.0))  # fmt: skip
    timeout: Duration = arg("How long to wait for the last task.", default=Duration(600.0))
    ready: Literal["address", "init", "port", "running"] = arg(
        "With pods, what the others must have: an address, completed init containers, an open port, "
        "or after a restart of this container, containers that run.",
        default="address",
    )
    port: str = arg(
        "With `ready: port`, the label of the TCP port that must accept connections.", default=""
    )
    compat: Literal["", "strict"] = arg(
        "strict: `framework.json` is the whole object, even with more than 800 tasks.", default=""
    )

    def require(self) -> Iterator[str]:
        """`ready` and `port` fit each other and the backend."""
        if (self.ready == "port") != bool(self.port):
            yield "`ready: port` and `port` go together"
        if self.ready != "address" and self.backend != "pods":
            yield f"`ready: {self.ready}` needs `backend: pods`"

    def check(self, ctx: Context) -> Result:
        """Wait for the others, and record their addresses."""
        missing = [name for name in _NEEDED[self.backend] if not ctx.env.get(name)]
        if missing:
            raise Permanent(
                f"the barrier needs {', '.join(missing)} in its environment",
                fault="platform",
                hint="the engine that starts the tasks sets them",
            )
        from .outputs import write_framework, write_injector

        if self.ready == "running":
            from .restart import meet_again

            return meet_again(ctx, self.interval, self.timeout, _LOOKS_PER_S["pods"])
        look = self._obtain(ctx)
        write_framework(ctx, look.framework)
        if self.backend != "local":
            write_injector(ctx, look.framework)
        message = f"all {len(look.members)} tasks have addresses"
        return Result(message=message if self.gang else "this task has its address")

    def _obtain(self, ctx: Context) -> Look:
        """The Framework with every address."""
        from .outputs import BarrierLog
        from .waiting import Wait

        if self.backend == "local":
            from .local import LocalBackend

            local = LocalBackend(ctx)
            return Wait(ctx, local, self.interval, self.timeout, ctx.log).result()
        settings = {name: _setting(ctx, name) for name in _SETTINGS}
        timeout = settings["BARRIER_CHECK_TIMEOUT_SEC"] or self.timeout
        backend: FrameworkBackend | PodsBackend
        if self.backend == "framework":
            from .framework import FrameworkBackend

            backend = FrameworkBackend(ctx, self.gang, strict=self.compat == "strict")
        else:
            from .pods import PodsBackend

            backend = PodsBackend(ctx, self.gang, self.ready, self.port)
        log = BarrierLog(ctx)
        wait = Wait(ctx, backend, self.interval, timeout, log.say)
        roles = parse_object(ctx.env.get("PAIRUN_ROLES", "{}").encode(), "PAIRUN_ROLES")
        if self.gang and self.ready == "address" and roles:
            counts = {name: role["count"] for name, role in roles.items()}
            if (gathering := ctx.gather(counts, log.say)) is not None:
                tasks = sum(counts.values())
                wait.meet(gathering, tasks, lambda: backend.met(roles, gathering))
        if interval := settings["BARRIER_CHECK_INTERVAL_SEC"]:
            wait.interval = interval
        else:
            wait.looks_per_s = _LOOKS_PER_S[self.backend]
        try:
            return wait.result()
        except Failure as e:
            log.keep(e.message)
            raise


def _setting(ctx: Context, name: str) -> float | None:
    """The seconds in a variable, or None.

    Raises:
        Permanent: FrameworkController's barrier would not accept it.
    """
    text, (low, high) = ctx.env.get(name, ""), _SETTINGS[name]
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high:
        return float(text)
    raise Permanent(
        f"{name} is '{text[:40]}', not a number of seconds from {low} to {high}",
        fault="platform",
        hint="correct the variable, or unset it",
    )

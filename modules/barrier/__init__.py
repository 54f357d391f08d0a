"""Wait until every instance of the job has an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pairun.module import CheckModule, Context, Duration, Failure, Permanent, Result, arg, define

from .objects import INSTANCE_VARIABLES, OBJECT_VARIABLES, Backend, Look, parse_object

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
    """Wait until every instance of the job has an address; write them to ``framework.json``.

    With the local backend, every instance announces itself in a directory that all share. The
    framework backend reads the job's Framework from the cluster's API server, the pods backend its
    Pods; both also write ``injector.sh`` and, in the Pod's log directory, ``barrier.log``. Instances
    that find each other (docs/gang.md) send each other their addresses, so the barrier asks the
    server rarely.

    With ``ready: running``, a task of the runtime phase, it waits only after this container has
    restarted in its Pod, because init does not run again then: until the containers of all other
    instances run or have succeeded. Tasks export the new addresses of instances that have moved.

    If ``BARRIER_CHECK_INTERVAL_SEC`` or ``BARRIER_CHECK_TIMEOUT_SEC`` is set, it replaces
    ``interval`` or ``timeout``.
    """

    phases = ("init", "runtime")
    privileges = (
        "may write to the shared volume and, with the local backend, to the gang's directory; the "
        "other backends may get frameworks or list pods, and get pods to say why one is missing"
    )
    example = "barrier: {backend: local, interval: 1s, timeout: 5m}"

    backend: Literal["local", "framework", "pods"] = arg("The source of the addresses.")
    gang: bool = arg("Wait for all instances; if false, only for this one (local: always all).",
                     default=True)  # fmt: skip
    interval: Duration = arg("The longest time between two checks; small gangs check more often.",
                             default=Duration(10.0))  # fmt: skip
    timeout: Duration = arg("How long to wait for the last instance.", default=Duration(600.0))
    ready: Literal["address", "init", "port", "running"] = arg(
        "With pods, what the others must have: an address, completed init containers, an open port, "
        "or after a restart of this container, containers that run.",
        default="address",
    )
    port: str = arg(
        "With `ready: port`, the label of the TCP port that must accept connections.", default=""
    )
    compat: Literal["", "strict"] = arg(
        "strict: `framework.json` is the whole object, even of more than 800 instances.", default=""
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
                hint="the engine that starts the instances sets them",
            )
        # Imported here: a review loads this file, too.
        from .outputs import write_framework, write_injector

        if self.ready == "running":
            from .restart import meet_again

            return meet_again(ctx, self.interval, self.timeout)
        look = self._obtain(ctx)
        write_framework(ctx, look.framework)
        if self.backend != "local":
            write_injector(ctx, look.framework)
        message = f"all {len(look.members)} instances have addresses"
        return Result(message=message if self.gang else "this instance has its address")

    def _obtain(self, ctx: Context) -> Look:
        """The Framework with every address."""
        from .outputs import BarrierLog
        from .waiting import Wait

        if self.backend == "local":
            from .local import LocalBackend

            return Wait(ctx, LocalBackend(ctx), self.interval, self.timeout, ctx.log).result()
        interval, timeout = (_setting(ctx, name) for name in _SETTINGS)
        if self.backend == "framework":
            from .framework import FrameworkBackend

            backend: Backend = FrameworkBackend(ctx, self.gang, strict=self.compat == "strict")
        else:
            from .pods import PodsBackend

            backend = PodsBackend(ctx, self.gang, self.ready, self.port)
        log = BarrierLog(ctx)
        wait = Wait(ctx, backend, interval or self.interval, timeout or self.timeout, log.say)
        if interval:
            wait.looks_per_s = 0.0
        if self.gang and self.ready == "address":
            wait.meet(parse_object(ctx.env.get("PAIRUN_ROLES", "{}").encode(), "PAIRUN_ROLES"))
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
    if re.fullmatch("[0-9]{1,9}", text) and low <= int(text) <= high:
        return float(text)
    raise Permanent(
        f"{name} is '{text[:40]}', not a number of seconds from {low} to {high}",
        fault="platform",
        hint="correct the variable, or unset it",
    )

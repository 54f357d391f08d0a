"""Check that the ports of this task are free on its node."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.module import CheckModule, Conflict, Context, Result, Skip, arg, define

_SHOWN = 5


@define
class PortCheck(CheckModule):
    """Check that the ports of the instance are free.

    Ports are computed from the Pod's identity, so a new Pod gets others.
    """

    privileges = "none; it names the owner of a port only if it may see the process"
    example = "port_check: {ports: {http: [20080], ssh: [20022]}}"

    ports: dict[str, list[int]] = arg("The ports of the task: label to numbers.")

    def require(self) -> Iterator[str]:
        """Every number is a port."""
        for label, numbers in self.ports.items():
            for number in numbers:
                if not 1 <= number <= 65535:
                    yield f"port {number} of '{label}' is not between 1 and 65535"

    def check(self, ctx: Context) -> Result:
        """Check for duplicates first, then every port."""
        numbered = [(number, label) for label, numbers in self.ports.items() for number in numbers]
        if not numbered:
            raise Skip("the task has no ports")
        seen: dict[int, str] = {}
        for number, label in numbered:
            if number in seen:
                message = f"port {number} was given twice, as '{seen[number]}' and as '{label}'"
                raise Conflict(message, fault="platform", hint="a new Pod gets other ports")
            seen[number] = label
        taken = []
        for number, label in numbered:
            if (holder := ctx.port_taken(number)) is not None:
                taken.append(f"port {number} ('{label}'): {holder}")
        if taken:
            more = f"; and {len(taken) - _SHOWN} more" if len(taken) > _SHOWN else ""
            message = f"taken on this node: {'; '.join(taken[:_SHOWN])}{more}"
            raise Conflict(message, fault="platform", hint="a new Pod gets other ports")
        return Result(message=f"{len(numbered)} ports are free")

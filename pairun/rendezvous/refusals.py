"""The errors that the rendezvous raises."""

from __future__ import annotations

from pairun.errors import PairunError, Problem


class NotInTime(PairunError):
    """A wait for members or facts timed out.

    Attributes:
        missing: some of a gathering's missing members, as ``(role, index)``.
        missing_count: the number of missing members, or None if unknown.
    """

    def __init__(
        self,
        message: str,
        missing: tuple[tuple[str, int], ...] = (),
        missing_count: int | None = None,
    ) -> None:
        super().__init__(Problem("PR775", message))
        self.missing = missing
        self.missing_count = missing_count


class LeaderRefusal(PairunError):
    """The leader refuses this member or this request; a retry does not help.

    Attributes:
        why: the leader's reason, a key of `_WORDS`.
    """

    def __init__(self, why: str) -> None:
        super().__init__(Problem("PR776", f"the job's leader refuses: {_WORDS.get(why, why)}"))
        self.why = why


class PortTaken(PairunError):
    """This process cannot listen on the port that the other members expect."""


class NoKey(PairunError):
    """The job has no key, so its members accept no values from each other."""

    def __init__(self) -> None:
        super().__init__(
            Problem("PR778", "this job has no key, so its Pods accept no values from each other")
        )


_WORDS = {
    "older": "this Pod belongs to an older attempt of the job",
    "newer": "the leader belongs to an older attempt of the job",
    "job": "this Pod belongs to another job",
    "size": "the value is too large",
    "full": "there are too many names",
    "count": "another member gave a different count for the barrier",
}

"""What the rendezvous raises, in the words of the rest."""

from __future__ import annotations

from pairun.errors import PairunError, Problem


class NotInTime(PairunError):
    """What was waited for did not come.

    Attributes:
        missing: of a gathering, some of those who did not come, as ``(role, index)``.
        missing_count: how many did not come; None where nobody could say.
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
        why: the leader's word.
    """

    def __init__(self, why: str) -> None:
        super().__init__(Problem("PR776", f"the job's leader refuses: {_WORDS.get(why, why)}"))
        self.why = why


class NoKey(PairunError):
    """Values are not taken from peers that cannot prove themselves."""

    def __init__(self) -> None:
        super().__init__(
            Problem("PR778", "this job has no key, so its Pods take no values from each other")
        )


_WORDS = {
    "older": "this Pod belongs to an older attempt of the job",
    "newer": "the leader belongs to an older attempt of the job",
    "job": "this Pod belongs to another job",
    "size": "the value is too large",
    "full": "there are too many names already",
    "count": "the barrier was begun with another count of members",
}

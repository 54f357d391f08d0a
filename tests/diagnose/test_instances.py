"""Which instance failed first, from what each says of its end."""

from __future__ import annotations

from pairun.diagnose.instances import InstanceFailure, first_of, what_followed


def test_a_cause_comes_before_its_consequences_whatever_the_clock_says() -> None:
    """An instance that lost its peer ended first, by its clock."""
    failures = [
        InstanceFailure("worker-0", "peer_lost", 100.0),
        InstanceFailure("worker-1", "user_code_error", 101.0),
        InstanceFailure("worker-2", "nccl_timeout", 701.0),
    ]
    assert first_of(failures) == 1
    assert what_followed(failures) == "2 others stopped waiting for it within 1 s"


def test_a_consequence_long_before_its_cause_is_said_to_be_earlier() -> None:
    """A watchdog that ran out nine minutes before did not follow within a second."""
    failures = [
        InstanceFailure("worker-0", "user_code_error", 600.0),
        InstanceFailure("worker-1", "nccl_timeout", 60.0),
    ]
    assert what_followed(failures) == "1 other stopped waiting for it 9 min earlier"


def test_of_two_causes_the_earlier_counts() -> None:
    """The clock decides."""
    late = InstanceFailure("worker-0", "gpu_oom", 9.0)
    assert first_of([late, InstanceFailure("worker-1", "disk_full", 3.0)]) == 1


def test_an_unknown_time_comes_last() -> None:
    """A failure whose time is known is named before one whose time is not."""
    known = InstanceFailure("worker-1", "", 3.0)
    assert first_of([InstanceFailure("worker-0", ""), known]) == 1


def test_nothing_followed_where_no_instance_waited() -> None:
    """Two causes are no consequence of each other."""
    failures = [InstanceFailure("a", "gpu_oom", 1.0), InstanceFailure("b", "gpu_oom", 2.0)]
    assert what_followed(failures) == ""
    assert what_followed([]) == ""

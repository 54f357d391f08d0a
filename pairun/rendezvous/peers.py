"""The instances of a job that share the verdicts of tasks (`run_on`)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.errors import PairunError
from pairun.module import Transient
from pairun.rendezvous.facts import Facts
from pairun.rendezvous.refusals import NoKey, NotInTime
from pairun.rendezvous.roster import Address, Gang, JobKey, checked_address
from pairun.rendezvous.wire import BadPeer
from pairun.volume.door import Door

if TYPE_CHECKING:
    from pairun.plan import PeerVerdict, RunOn
    from pairun.rendezvous.otherpods import OtherPods

GONE_S = 60.0
"""Seconds without the leader after which an instance runs a task itself."""

PROMPT_S = 1.5
"""Seconds without a verdict after which init checks whether one can still come."""

_MAX_KEY_BYTES = 4096
_LEAST_KEY_BYTES = 16
_MAX_PLACE_BYTES = 1024 * 1024


class MemberPlace(NamedTuple):
    """A member's place in its job.

    Attributes:
        leader: the leader's address.
        job: the attempt.
        rank: this member's number among all.
        gang: the roles and their counts.
        leader_ended: whether the leader had ended when this instance's init phase asked.
    """

    leader: Address
    job: JobKey
    rank: int
    gang: Gang
    leader_ended: bool = False


def write_place(pai_dir: str, place: MemberPlace) -> None:
    """Write the file; it contains no secret.

    Raises:
        OSError: it cannot be written.
    """
    data = {
        "schema": 1,
        "leader": list(place.leader),
        "job": list(place.job),
        "rank": place.rank,
        "roles": [list(role) for role in place.gang.roles],
        "leader_ended": place.leader_ended,
    }
    Door(pai_dir).write(os.path.join(pai_dir, PLACE_FILE), json.dumps(data).encode())


def read_place(pai_dir: str) -> MemberPlace | None:
    """Read the file; None if it is missing or invalid."""
    try:
        data = parse_json(Door(pai_dir).read(os.path.join(pai_dir, PLACE_FILE), _MAX_PLACE_BYTES))
        leader = checked_address(data["leader"])
        uid, attempt = data["job"]
        roles = tuple((str(name), int(count)) for name, count in data["roles"])
        job, rank = JobKey(str(uid), int(attempt)), int(data["rank"])
        # 0.1 does not write it.
        has_ended = data.get("leader_ended") is True
        place = MemberPlace(leader, job, rank, Gang(roles), has_ended)  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, BadPeer):
        return None
    return place if leader and data["schema"] == 1 else None


def read_key(pai_dir: str) -> bytes | None:
    """Read the job's key; None if the platform mounted no usable one.

    Args:
        pai_dir: path of the shared volume.
    """
    try:
        text = Door(pai_dir).read(os.path.join(pai_dir, KEY_FILE), _MAX_KEY_BYTES)
        key = base64.b64decode(text.strip(), validate=True)
    except (OSError, binascii.Error):
        return None
    return key if len(key) >= _LEAST_KEY_BYTES else None


def job_key(env: Mapping[str, str]) -> JobKey:
    """The attempt of the job to which this instance belongs.

    Args:
        env: contains FrameworkController's variables, which other engines also set.
    """
    uid = env.get("FC_FRAMEWORK_UID") or env.get("FC_FRAMEWORK_NAME") or ""
    attempt = env.get("FC_FRAMEWORK_ATTEMPT_ID", "")
    return JobKey(uid, int(attempt) if attempt.isdigit() else 0)


class JobPeers(NamedTuple):
    """The instances of this instance's job; see `pairun.plan.Peers`.

    Attributes:
        place: this instance's place in the job.
        facts: the facts that the instances share.
        phase: the phase of the tasks.
        pods: the other Pods at the API server; None if it cannot be asked.
        pai_dir: path of the shared volume; the runtime phase reads there whether the leader ended.
    """

    place: MemberPlace
    facts: Facts
    phase: str
    pods: OtherPods | None = None
    pai_dir: str = ""

    @property
    def name(self) -> str:
        """This instance's name for people."""
        return _name(self.place.gang.place(self.place.rank))

    def first(self, run_on: RunOn) -> str | None:
        """The name of the instance that runs a task for the others; None if it is this one.

        After the leader ended every instance runs its tasks itself: they can share no verdicts.
        """
        if self.place.leader_ended:
            return None
        role, index = self.place.gang.place(self.place.rank)
        if run_on == "first_of_role":
            return _name((role, 0)) if index else None
        return _name(self.place.gang.place(0)) if self.place.rank else None

    def topic(self, run_on: RunOn, task: str) -> str:
        """The name of the fact for a task's verdict."""
        role = f" {self.place.gang.place(self.place.rank)[0]}" if run_on == "first_of_role" else ""
        return f"task {self.phase} {task}{role}"

    def take(self, topic: str, timeout_s: float) -> PeerVerdict:
        """Wait for a verdict.

        Raises:
            Failure: there is no verdict within the timeout.
        """
        try:
            verdict = self._verdict(topic, timeout_s)
        except PairunError as e:
            raise Transient(e.problems[0].message, fault="platform") from e
        if not isinstance(verdict, dict):
            raise Transient("the leader sent an invalid verdict", fault="platform")
        return verdict

    def _verdict(self, topic: str, timeout_s: float) -> Any:
        if (pods := self.pods) is None:
            return self.facts.get(topic, timeout_s, gone_s=GONE_S)
        began = time.monotonic()
        prompt_s = min(PROMPT_S, timeout_s)
        try:
            return self.facts.get(topic, prompt_s, gone_s=GONE_S, has_ended=self._leader_has_ended)
        except NotInTime:
            if self._leader_has_ended() or pods.is_past_init(*self._runner(topic)):
                raise
        left_s = max(0.0, timeout_s - (time.monotonic() - began))
        return self.facts.get(topic, left_s, gone_s=GONE_S, has_ended=self._leader_has_ended)

    def _leader_has_ended(self) -> bool:
        """Whether the leader has ended; if so, records it on the volume for the runtime phase."""
        if self.pods is None or not self.pods.has_ended(*self.place.gang.place(0)):
            return False
        if self.pai_dir:
            with contextlib.suppress(OSError):
                write_place(self.pai_dir, self.place._replace(leader_ended=True))
        return True

    def _runner(self, topic: str) -> tuple[str, int]:
        """The instance that publishes a topic's verdict."""
        _, _, _, *role = topic.split(" ")
        return (role[0], 0) if role else self.place.gang.place(0)

    def give(self, topic: str, verdict: PeerVerdict, timeout_s: float) -> None:
        """Publish a verdict; it replaces an earlier one.

        Raises:
            Failure: the leader cannot be reached, has ended, or refuses.
        """
        if self.place.leader_ended:
            return
        try:
            has_ended = None if self.pods is None else self._leader_has_ended
            self.facts.put(topic, verdict, timeout_s, replace=True, has_ended=has_ended)
        except PairunError as e:
            raise Transient(e.problems[0].message, fault="platform") from e


def peers_of(pai_dir: str, phase: str, pods: OtherPods | None = None) -> JobPeers | None:
    """The instances of the job; None if it has no rendezvous or no key.

    Args:
        pai_dir: path of the shared volume.
        phase: the phase of the tasks.
        pods: the other Pods at the API server, if it can be asked.
    """
    place = read_place(pai_dir)
    try:
        facts = Facts(place.leader, place.job, read_key(pai_dir)) if place else None
    except NoKey:
        return None
    return JobPeers(place, facts, phase, pods, pai_dir) if place and facts else None


def _name(place: tuple[str, int]) -> str:
    return "{}-{}".format(*place)

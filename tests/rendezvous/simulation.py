"""Many members that meet, on a fake clock.

The members and the leader are the product's own state machines; what is simulated is the clock, the
network, the API server and the Pods' fates. All of it follows from one seed. What is assumed of the
world stands in the constants below.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Callable
from typing import NamedTuple

from pairun.rendezvous.joining import Joiner
from pairun.rendezvous.leading import Leader, fan_of
from pairun.rendezvous.loop import CONNECT_RETRY_S
from pairun.rendezvous.machine import StateMachine
from pairun.rendezvous.roster import Address, Gang, JobKey
from pairun.rendezvous.wire import Packed

GOAL_S = 1.0
"""From the last that is ready to the last that is released, of up to 1,000 members."""
GOAL_LARGE_S = 3.0
"""The same for 10,000 members."""
GOAL_CALLS = 3.0
GOAL_BYTES = 100_000

LATENCY_S = 0.0005
BYTES_PER_S = 125e6  # one gigabit, shared by all that a node sends
CONTACT_CPU_S = 0.00008  # with two messages 0.14 ms; on loopback 0.08 to 0.13 ms were measured
MESSAGE_CPU_S = 0.00003
CPU_PER_BYTE_S = 3e-9
BACKLOG = 4096
SYN_AGAIN_S = 1.0
FAILING = 0.01  # of all connections: half have lost packets, half fail; and 1 % break in a minute

API_CALL_S = 1 / 3000
API_EVENT_S = 1 / 20_000
POD_BYTES = 8_000
ABSENT_BYTES = 400
EVENTS_UNTIL_ADDRESS = 4
START_S = 2.0  # from a Pod's address to its init process
CROSSING_S = 0.1  # a Pod replaced so shortly before the release may cross it on its way


class World:
    """The clock, and what is to happen."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.nodes: dict[Address, Node] = {}
        self.api = Api(self)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Plan something."""
        self._count += 1
        heapq.heappush(self._events, (moment, self._count, action))

    def run(self, until_s: float) -> None:
        """Let happen what is planned."""
        while self._events and self.now < until_s:
            self.now, _, action = heapq.heappop(self._events)
            action()


class Api:
    """The API server: knows the leader's Pod, counts what it is asked and what it says."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.address: Address | None = None
        self.calls: dict[int, int] = {}
        self.bytes: dict[int, int] = {}
        self._free = 0.0
        self._watchers: list[tuple[int, Node]] = []

    def _said(self, rank: int, size: int, calls: int = 0) -> None:
        self.calls[rank] = self.calls.get(rank, 0) + calls
        self.bytes[rank] = self.bytes.get(rank, 0) + size

    def locate(self, node: Node) -> None:
        """One read; a watch as well where the leader has no address."""
        self._free = max(self._free, self.world.now) + API_CALL_S
        found = self.address
        self._said(node.rank, POD_BYTES if found else ABSENT_BYTES, calls=1)
        if found:
            self.world.at(self._free + LATENCY_S, lambda: node.located(found))
        else:
            self._said(node.rank, 0, calls=1)
            self._watchers.append((node.rank, node))

    def publish(self, address: Address | None) -> None:
        """The leader's Pod has an address, or is gone."""
        self.address = address
        if address is None:
            return
        watchers, self._watchers = self._watchers, []
        self.world.rng.shuffle(watchers)
        for n, (rank, node) in enumerate(watchers):
            self._said(rank, POD_BYTES * EVENTS_UNTIL_ADDRESS)
            at = self.world.now + n * API_EVENT_S
            self.world.at(at, lambda node=node: node.located(address))  # type: ignore[misc]


class Node:
    """A process with one address: the network and the processor of a state machine."""

    def __init__(self, world: World, rank: int, address: Address) -> None:
        self.world = world
        self.rank = rank
        self.address = address
        self.machine: StateMachine
        self.joiner: Joiner | None = None
        self.alive = True
        self.released_at: float | None = None
        self._peers: dict[int, tuple[Node, int]] = {}
        self._next = 0
        self._nic_free = 0.0
        self._cpu_free = 0.0
        self._tick_at = float("inf")
        world.nodes[address] = self

    # What a state machine sees (pairun.rendezvous.machine.Net).

    def connect(self, address: Address) -> int:
        """Begin a connection."""
        self._next += 1
        self._reach(self._next, address, self.world.now + CONNECT_RETRY_S, [])
        return self._next

    def _reach(self, mine: int, address: Address, by: float, waiting: list[Packed]) -> None:
        world, other = self.world, self.world.nodes.get(address)
        self._peers[mine] = (self, 0)  # until it is there
        self._pending = getattr(self, "_pending", {})
        self._pending.setdefault(mine, waiting)
        if other is None or not other.alive:
            gone = LATENCY_S if other is None else CONNECT_RETRY_S
            return world.at(world.now + gone, lambda: self._broken(mine))
        chance = world.rng.random()
        if chance < FAILING / 2:
            return world.at(world.now + LATENCY_S, lambda: self._broken(mine))
        is_full = (other._cpu_free - world.now) / CONTACT_CPU_S > BACKLOG
        if is_full or chance < FAILING:
            if world.now + SYN_AGAIN_S > by:
                return world.at(by, lambda: self._broken(mine))
            again = world.now + SYN_AGAIN_S
            return world.at(again, lambda: self._reach(mine, address, by, waiting))
        return world.at(world.now + 2 * LATENCY_S, lambda: self._made(mine, other))

    def _made(self, mine: int, other: Node) -> None:
        if mine not in self._peers or not self.alive:
            return None
        if not other.alive:
            return self._broken(mine)
        other._next += 1
        theirs = other._next
        self._peers[mine], other._peers[theirs] = (other, theirs), (self, mine)
        other._cpu_free = max(other._cpu_free, self.world.now) + CONTACT_CPU_S
        for packed in self._pending.pop(mine):
            self.send(mine, packed)
        if self.world.rng.random() < FAILING:
            breaks = self.world.now + 60 * self.world.rng.random()
            self.world.at(breaks, lambda: self._break(mine, other, theirs))
        return None

    def _break(self, mine: int, other: Node, theirs: int) -> None:
        if self._peers.get(mine) == (other, theirs):
            self._broken(mine)
            other._broken(theirs)

    def _broken(self, mine: int) -> None:
        if self._peers.pop(mine, None) and self.alive:
            self.machine.closed(mine, self.world.now)
            self._after()

    def send(self, peer: int, packed: Packed) -> None:
        """Send through this node's one network card."""
        if peer not in self._peers:
            return
        other, theirs = self._peers[peer]
        if theirs == 0:
            self._pending[peer].append(packed)
            return
        cpu = MESSAGE_CPU_S + len(packed.data) * CPU_PER_BYTE_S
        self._cpu_free = max(self._cpu_free, self.world.now) + cpu
        sent = max(self._nic_free, self._cpu_free) + (len(packed.data) + 80) / BYTES_PER_S
        self._nic_free = sent
        self.world.at(sent + LATENCY_S, lambda: other._arrives(theirs, packed))

    def _arrives(self, mine: int, packed: Packed) -> None:
        cpu = MESSAGE_CPU_S + len(packed.data) * CPU_PER_BYTE_S
        self._cpu_free = max(self._cpu_free, self.world.now) + cpu
        self.world.at(self._cpu_free, lambda: self._received(mine, packed))

    def _received(self, mine: int, packed: Packed) -> None:
        if mine in self._peers and self.alive:
            self.machine.received(mine, packed, self.world.now)
            self._after()

    def close(self, peer: int) -> None:
        """Close when all is sent."""
        other, theirs = self._peers.pop(peer, (self, 0))
        if theirs:
            at = max(self._nic_free, self.world.now) + LATENCY_S
            self.world.at(at, lambda: other._hears_end(theirs))

    def _hears_end(self, mine: int) -> None:
        # After what came before it.
        self.world.at(max(self._cpu_free, self.world.now), lambda: self._broken(mine))

    # What happens to it.

    def located(self, address: Address) -> None:
        """The API server told where the leader is."""
        if self.alive and self.joiner:
            self.joiner.located(address, self.world.now)
            self._after()

    def _after(self) -> None:
        due = self.machine.tick(self.world.now)
        if self.joiner and self.joiner.rows is not None and self.released_at is None:
            self.released_at = self.world.now
        if self.joiner and self.joiner.is_finished(self.world.now):
            # The Pod stays: its kernel refuses connections to a process that has ended.
            del self.world.nodes[self.address]
            self.die()
        elif due is not None and due < self._tick_at:
            self._tick_at = due
            self.world.at(max(due, self.world.now), self._tick)

    def _tick(self) -> None:
        self._tick_at = float("inf")
        if self.alive:
            self._after()

    def die(self) -> None:
        """The process ends: its peers notice."""
        self.alive = False
        peers, self._peers = self._peers, {}
        for other, theirs in peers.values():
            if theirs:
                self.world.at(
                    self.world.now + LATENCY_S,
                    lambda other=other, theirs=theirs: other._broken(theirs),  # type: ignore[misc]
                )


class Result(NamedTuple):
    """What a scenario came to.

    Attributes:
        release_s: from the last Pod that was ready to the last that was released.
        calls: to the API server per Pod, on average and at most.
        api_bytes: from the API server per Pod, on average and at most.
        agree: every member holds the same roster; one that was replaced at the very moment of the
            release may hold one with itself in its predecessor's place.
    """

    release_s: float
    calls: tuple[float, int]
    api_bytes: tuple[float, int]
    agree: bool


class Simulation:
    """One job.

    Args:
        total: its members.
        leader_last: the leader comes after all others.
        dies: the leader's Pod is replaced, with all that it knew, while they gather.
        seed: of everything that is left to chance.
    """

    def __init__(self, total: int, *, leader_last: bool, dies: bool, seed: int) -> None:
        self.world = World(seed)
        self.dies = dies
        self.gang = Gang((("master", 1), ("worker", total - 1)))
        self.job = JobKey("b5a4c7de-3c51-4b8f-a3f0-9a1f6e2d8c11", 0)
        self.members: dict[int, Node] = {}
        self.planned = self.last_ready = 0.0
        self.leader: Node | None = None
        self._generation = 0
        self._replaced_at: dict[int, float] = {}
        rng = self.world.rng
        for rank in range(1, total):
            ready = 60 * rng.random() + (60 * rng.random() if rng.random() < 0.01 else 0)
            self._start(rank, ready)
            if rng.random() < 0.01:
                self._start(rank, ready + 30 * rng.random())  # its Pod is replaced
        begins = self.planned + 5 if leader_last else 10.0
        self._lead(begins)
        if dies:
            self.world.at(50.0, self._kill_leader)
            self._lead(70.0)

    def _start(self, rank: int, ready: float) -> None:
        self.planned = max(self.planned, ready)
        self.world.at(ready, lambda: self._member(rank))

    def _member(self, rank: int) -> None:
        if old := self.members.get(rank):
            if old.released_at is not None:
                return  # all were here before this Pod was replaced
            old.die()
            self._replaced_at[rank] = self.world.now
        rng, world = self.world.rng, self.world
        self.last_ready = world.now
        self._generation += 1
        n = self._generation
        address = (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}", 20_000)
        role, index = self.gang.place(rank)
        uid = f"{rng.getrandbits(128):032x}"
        host = f"10.200.{rank // 2000}.{rank // 8 % 250}"
        row = [rank, uid, address[0], host, f"a-name-of-a-framework-{role}-{index}"]
        node = Node(world, rank, address)
        at = address if self.gang.total > fan_of(self.gang.total) else None
        node.joiner = Joiner(
            self.gang, row, self.job, node, lambda: world.api.locate(node), at=at, rng=rng
        )
        node.machine = node.joiner
        self.members[rank] = node
        world.api.locate(node)

    def _lead(self, ready: float) -> None:
        self.planned = max(self.planned, ready)
        address = ("10.255.0.1", 15_000 + self.world.rng.randrange(25_000))
        self.world.at(ready - START_S, lambda: self.world.api.publish(address))
        self.world.at(ready, lambda: self._leader_starts(address))

    def _leader_starts(self, address: Address) -> None:
        self.leader = node = Node(self.world, -1, address)
        node.machine = Leader(self.gang, self.job, node)
        self._member(0)

    def _kill_leader(self) -> None:
        assert self.leader is not None
        self.leader.die()
        self.members[0].die()
        self.world.api.publish(None)

    def run(self) -> Result:
        """Let them gather."""
        self.world.run(self.planned + 120)
        nodes = self.members.values()
        released = [n.released_at for n in nodes if n.released_at is not None]
        until = min(released, default=float("inf")) - CROSSING_S
        settled = [n for n in nodes if self._replaced_at.get(n.rank, 0.0) < until]
        rosters = [n.joiner.rows for n in settled if n.joiner]
        agree = len(released) == self.gang.total and all(r == rosters[0] for r in rosters)
        calls, api_bytes = self.world.api.calls, self.world.api.bytes
        return Result(
            max(released, default=float("inf")) - self.last_ready,
            (statistics.fmean(calls.values()), max(calls.values())),
            (statistics.fmean(api_bytes.values()), max(api_bytes.values())),
            agree,
        )


SCENARIOS = {
    "the leader comes early": (False, False),
    "the leader comes last": (True, False),
    "the leader's Pod is replaced": (False, True),
}

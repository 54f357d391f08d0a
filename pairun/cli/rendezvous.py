"""``pairun rendezvous DIR``: the server of the job's first instance, as PID 1 starts it."""

from __future__ import annotations

import argparse
import sys

from pairun.base.signals import Signals
from pairun.rendezvous.peers import read_key, read_place
from pairun.rendezvous.server import Server
from pairun.volume.door import Door


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("pai_dir", metavar="DIR", help="the shared volume")


def run(args: argparse.Namespace) -> int:
    """Serve until a stop signal; continues with the state that init's server left."""
    with Signals(resend=False) as signals:
        place = read_place(args.pai_dir)
        if place is None or place.rank != 0:
            return 0
        server = Server(
            dict(place.gang.roles),
            place.job,
            key=read_key(args.pai_dir),
            host=place.leader[0],
            port=place.leader[1],
            log=say,
        )
        # Another user may own the file, so it is only read; new state stays in memory.
        server.load(Door(args.pai_dir))
        server.serve_forever(signals.fd, is_last=True)
    return 0


def say(line: str) -> None:
    """Write one line for people."""
    print(f"rendezvous: {line}", file=sys.stderr, flush=True)

"""A server and its workers over TCP, without a framework; TROUBLE is RANK:KIND@ROUND."""

import os
import pickle
import socket
import struct
import sys
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TROUBLE, _, AT = os.environ.get("TROUBLE", "").partition("@")
WHO, _, KIND = TROUBLE.partition(":")
STAMP = os.environ.get("STAMP", "")


def say(message: str) -> None:
    """Print a line."""
    print(f"{time.strftime(STAMP)}{' ' if STAMP else ''}{message}", file=sys.stderr, flush=True)


def trouble(n: int) -> None:
    """Have this process's trouble."""
    if str(RANK) != WHO or str(n) != AT:
        return
    if KIND == "decode":
        b"caf\xe9".decode()
    if KIND == "memory":
        bytearray(1 << 50)
    if KIND == "kill":
        os.kill(os.getpid(), 9)
    if KIND == "stuck":
        time.sleep(600)
    if KIND == "logged":
        say("ERROR bin 7 of the index is corrupt: checksum 0x1f differs from 0x2e; giving up")
        sys.exit(4)


def send(peer: socket.socket, value: object) -> None:
    """Send a value."""
    body = pickle.dumps(value)
    peer.sendall(struct.pack("!I", len(body)) + body)


def receive(peer: socket.socket) -> object:
    """Receive a value."""
    return pickle.loads(exactly(peer, struct.unpack("!I", exactly(peer, 4))[0]))


def exactly(peer: socket.socket, size: int) -> bytes:
    """Receive so many bytes."""
    body = b""
    while len(body) < size:
        part = peer.recv(size - len(body))
        if not part:
            raise EOFError(f"connection closed by peer after {len(body)} of {size} bytes")
        body += part
    return body


def serve() -> None:
    """Add what the workers send."""
    listening = socket.create_server(("", 7070))
    peers = [listening.accept()[0] for _ in range(SIZE - 1)]
    for peer in peers:
        peer.settimeout(float(os.environ.get("WAIT_S", "60")))
    say(f"server has {len(peers)} workers")
    for n in range(30):
        trouble(n)
        total = sum(receive(peer) for peer in peers)
        for peer in peers:
            send(peer, total)
        if n % 5 == 0:
            say(f"round {n}: {total}")


def work() -> None:
    """Send numbers, and get their sum."""
    for _ in range(100):
        try:
            server = socket.create_connection((os.environ["SERVER"], 7070))
            break
        except OSError:
            time.sleep(0.1)
    for n in range(30):
        if n % 5 == 0:
            say(f"worker {RANK} sends round {n}")
        trouble(n)
        send(server, n * RANK)
        total = receive(server)
        time.sleep(0.05)
    say(f"worker {RANK} is done: {total}")


serve() if RANK == 0 else work()

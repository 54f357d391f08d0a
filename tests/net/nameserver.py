"""Runs a program where every name is looked up at one name server, which has one answer.

    unshare --user --map-root-user --mount --net python nameserver.py FOLDER ANSWER PROGRAM…

ANSWER is ``nxdomain``, ``servfail`` or ``silent`` (RFC 1035, section 4.1.1: RCODE 3, 2, none); with
``hangs`` there is no answer either, and the system's resolver waits for minutes. The server prints
`ASKED` at the first question.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys

ASKED = "a name is looked up"
RCODES = {"nxdomain": 3, "servfail": 2}
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41


def serve(server: socket.socket, rcode: int | None, client_pid: int) -> None:
    """Answer every question with no answer in it, or not at all, until the program has ended."""
    said = False
    server.settimeout(0.2)
    while os.getppid() == client_pid:
        try:
            question, client = server.recvfrom(4096)
        except TimeoutError:
            continue
        if not said:
            said = True
            os.write(1, f"{ASKED}\n".encode())
        if rcode is not None:
            header = question[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, 0, 0, 0)
            end = question.index(b"\0", 12) + 5
            server.sendto(header + question[12:end], client)


def main(folder: str, answer: str, *program: str) -> None:
    """Serve in a child, and become the program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))
    patience = "timeout:30 attempts:5" if answer == "hangs" else "timeout:1 attempts:1"
    for name, text in {
        "resolv.conf": f"nameserver 127.0.0.1\noptions {patience}\n",
        "nsswitch.conf": "hosts: files dns\n",
    }.items():
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(text)
        subprocess.run(["mount", "--bind", path, os.path.realpath(f"/etc/{name}")], check=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    pid = os.getpid()
    if os.fork() == 0:
        serve(server, RCODES.get(answer), pid)
        os._exit(0)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])

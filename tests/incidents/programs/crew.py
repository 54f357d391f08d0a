"""A launcher of its own: starts workers that sum over a queue, and reports how one ended."""

import multiprocessing
import os
import signal
import sys
import time

KIND, AT = sys.argv[1], int(sys.argv[2])


def work(rank: int, barrier: "multiprocessing.synchronize.Barrier") -> None:
    """Do rounds with the others."""
    for n in range(12):
        if rank == AT and n == 7:
            if KIND == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if KIND == "code":
                print("shard 7 has no index", file=sys.stderr)
                sys.exit(9)
        barrier.wait(timeout=8)
        if n % 3 == 0:
            print(f"worker {rank}: round {n}", flush=True)


if __name__ == "__main__":
    meeting = multiprocessing.Barrier(3)
    crew = [multiprocessing.Process(target=work, args=(r, meeting)) for r in range(3)]
    for worker in crew:
        worker.start()
    while all(worker.is_alive() for worker in crew):
        time.sleep(0.1)
    for rank, worker in enumerate(crew):
        if worker.exitcode not in (None, 0):
            print(
                f"worker {rank} (pid {worker.pid}) exited with code {worker.exitcode}", flush=True
            )
    for worker in crew:
        worker.join()
    sys.exit(1)

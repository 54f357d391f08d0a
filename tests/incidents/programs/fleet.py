"""Trains by steps of its own and a reduction after each; TROUBLE is RANKS:KIND@STEP.

Errors are caught where a trainer of a company would catch them: logged, and turned into an exit.
"""

# ruff: noqa: G004, PLW2101, TRY400 - as programs of users are

import asyncio
import datetime
import faulthandler
import os
import queue
import signal
import sys
import threading
import time

import logs_of_kinds
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TROUBLE, _, AT = os.environ.get("TROUBLE", "").partition("@")
WHO, _, KIND = TROUBLE.partition(":")
MINE = str(RANK) in WHO.split(",")
STEPS = int(os.environ.get("STEPS", "20"))
PAUSE_S = float(os.environ.get("PAUSE_S", "0.05"))
ROUTES = {"north": 3, "south": 5}
log = logs_of_kinds.logger(os.environ.get("LOGS", "plain"))


class Parcels(Dataset):
    """Samples, of which some take for ever to read."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, n: int) -> torch.Tensor:
        if MINE and n == 41 and KIND == "loader-raises":
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        if MINE and n == 41 and KIND in {"loader-stuck", "loader-asleep"}:
            time.sleep(600)
        return torch.full((8,), float(n))


def batches() -> "queue.Queue[torch.Tensor]":
    """Fill a queue from a thread, which may fail by itself."""
    ready: queue.Queue[torch.Tensor] = queue.Queue(2)

    def fill() -> None:
        for n in range(STEPS):
            if MINE and KIND == "thread" and str(n) == AT:
                print(ROUTES["west"])
            if MINE and KIND == "thread-logged" and str(n) == AT:
                try:
                    int("4x2")
                except ValueError as error:
                    log.error(f"prefetcher stopped: {error}")
                    return
            ready.put(torch.full((8,), float(n)))

    threading.Thread(target=fill, name="prefetch", daemon=True).start()
    return ready


def trouble(n: int) -> None:
    """Have this rank's trouble."""
    if not MINE or str(n) != AT:
        return
    if KIND == "key":
        print(ROUTES["west"])
    if KIND == "value":
        raise ValueError(f"depot {RANK} has no dock for parcel {n}")
    if KIND == "zero":
        print(len(ROUTES) / (n - int(AT)))
    if KIND == "write":
        with open("/proc/version", "w") as f:
            f.write("x")
    if KIND == "full":
        with open("/dev/full", "w") as f:
            f.write("x" * 100_000)
    if KIND == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if KIND == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if KIND == "exit":
        os._exit(3)
    if KIND == "leave":
        sys.exit(0)
    if KIND == "asleep":
        wait_for_quota()
    if KIND == "lock":
        with threading.Lock() as _, open(os.devnull) as held:
            threading.Event().wait()
            held.close()
    if KIND == "kept":
        log.info(f"cached {len([torch.ones(4_000_000) for _ in range(200)])} shards")
    if KIND == "shape":
        print(torch.ones(4, 3) @ torch.ones(4, 3))
    if KIND == "task":
        asyncio.run(refresh())
    if KIND == "nan":
        raise FloatingPointError(f"loss is nan at step {n}")
    if KIND == "attribute":
        print(torch.ones(3).colour)


def wait_for_quota() -> None:
    """Wait for what never comes."""
    while True:
        time.sleep(30)


async def refresh() -> None:
    """Have a task fail that nobody waits for, and wait for its result."""
    done = asyncio.Event()

    async def fetch() -> None:
        print(ROUTES["token"])
        done.set()

    tasks = [asyncio.create_task(fetch())]
    await asyncio.sleep(0.1)
    del tasks[:]
    await done.wait()


def train() -> None:
    """Train."""
    limit = datetime.timedelta(seconds=float(os.environ.get("WAIT_S", "90")))
    if MINE and KIND == "early-import":
        import parcel_kernels  # noqa: F401
    if MINE and KIND == "late-start":
        log.info("fetching the dataset's index")
        time.sleep(120)
    if MINE and KIND == "settings":
        open("conf/fleet.toml").close()
    dist.init_process_group("gloo", timeout=limit)
    log.info(os.environ.get("HELLO", "joined: {r} of {n} on {h}").format(
        r=RANK, n=SIZE, h=os.uname().nodename
    ))  # fmt: skip
    if KIND.startswith("loader"):
        data = DataLoader(
            Parcels(), batch_size=4, num_workers=1, timeout=12 if KIND == "loader-stuck" else 0
        )
        reading = iter(data)
    ready = batches() if KIND.startswith("thread") else None
    for n in range(STEPS):
        if ready:
            batch = ready.get()
        elif KIND.startswith("loader"):
            batch = next(reading)[0]
        else:
            batch = torch.full((8,), float(n))
        if n == 3 and os.environ.get("NOISE"):
            handled(n)
        trouble(n)
        time.sleep(PAUSE_S * (60 if MINE and KIND == "slow" and n > 8 else 1))
        dist.all_reduce(batch)
        if n % int(os.environ.get("EVERY", "4")) == 0:
            log.info(f"step {n}/{STEPS} loss {1 / (n + 1):.4f}")
    dist.barrier()
    log.info("finished")


def handled(n: int) -> None:
    """Log an error that does no harm."""
    try:
        open(f"/cache/{n}.idx").close()
    except OSError:
        log.exception("index is not cached, building it")


def main() -> None:
    """Train, and end as the job's conventions say."""
    if os.environ.get("STACKS_AFTER_S"):
        faulthandler.dump_traceback_later(float(os.environ["STACKS_AFTER_S"]))
    if KIND == "segv":
        faulthandler.enable()
    if os.environ.get("ON_TERM"):

        def stop(number: int, frame: object) -> None:
            log.info(f"got signal {number}, leaving")
            sys.exit(143)

        signal.signal(signal.SIGTERM, stop)
    convention = os.environ.get("ON_ERROR", "raise")
    if convention == "raise":
        train()
        return
    try:
        train()
    except Exception as error:
        if convention == "logged":
            log.exception("training failed")
            sys.exit(1)
        if convention == "message":
            log.error(f"run aborted: {type(error).__name__}: {error}")
            sys.exit(1)
        if convention == "swallowed":
            log.error(f"unhandled error, stopping this worker ({error!r})")
            return
        log.exception("fatal")
        os._exit(1)


main()

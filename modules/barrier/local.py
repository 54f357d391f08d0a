"""A directory that all tasks of a job on one machine share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from pairun.module import Context, parse_json

from .members import Look, Member, all_members, own_member
from .objects import read_framework, with_addresses
from .outputs import write_if_changed


class LocalBackend:
    """Every task announces its address in a directory; an earlier run's is replaced.

    Args:
        ctx: the world; ``PAIRUN_GANG_DIR`` is the directory.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        gang = ctx.env["PAIRUN_GANG_DIR"]
        self._framework = read_framework(ctx, os.path.join(gang, "framework.json"))
        self._members = all_members(self._framework)
        self._directory = os.path.join(gang, "announce")
        own = own_member(ctx, self._members)
        ip = ctx.env["PAIRUN_HOST_IP"]
        address = {"podUID": ctx.env["FC_POD_UID"], "podIP": ip, "podHostIP": ip}
        ctx.make_dir(self._directory)
        write_if_changed(ctx, self._file(own), json.dumps(address, indent=1).encode() + b"\n")

    def _file(self, member: Member) -> str:
        return os.path.join(self._directory, f"{member}.json")

    def look(self) -> Look:
        """The tasks that have announced an address."""
        name = (self._framework.get("metadata") or {}).get("name", "job")
        announced = set(self._ctx.list_dir(self._directory) or ())
        addresses = {}
        for member in self._members:
            if f"{member}.json" not in announced:
                continue
            try:
                content = parse_json(self._ctx.read_file(self._file(member)) or b"")
                address = {key: content[key] for key in ("podUID", "podIP", "podHostIP")}
            except (ValueError, KeyError, TypeError):
                continue
            if address["podIP"]:
                addresses[member] = {**address, "podName": f"{name}-{member}"}
        missing = [m for m in self._members if m not in addresses]
        return Look(with_addresses(self._framework, addresses), self._members, missing)

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """Returns no reasons: the directory contains none."""
        _ = missing
        yield from ()

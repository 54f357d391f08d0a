"""A directory that all instances of a job on one machine share."""

from __future__ import annotations

import json
import os

from pairun.module import Context, parse_json

from .objects import Backend, Look, Member, meta, with_addresses
from .outputs import write_if_changed


class LocalBackend(Backend):
    """Every instance announces its address in a directory; an earlier run's is replaced.

    Args:
        ctx: the world; ``PAIRUN_GANG_DIR`` is the directory.
    """

    def __init__(self, ctx: Context) -> None:
        gang, ip = ctx.env["PAIRUN_GANG_DIR"], ctx.env["PAIRUN_HOST_IP"]
        super().__init__(ctx, True, os.path.join(gang, "framework.json"))
        self._directory = os.path.join(gang, "announce")
        address = {"podUID": ctx.env["FC_POD_UID"], "podIP": ip, "podHostIP": ip}
        ctx.make_dir(self._directory)
        data = json.dumps(address, indent=1).encode() + b"\n"
        write_if_changed(ctx, self._file(self._own), data)

    def _file(self, member: Member) -> str:
        return os.path.join(self._directory, f"{member}.json")

    def look(self) -> Look:
        """The instances that have announced an address."""
        name = meta(self._framework, "name") or "job"
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

"""Download files over HTTP, or unpack archives."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.module import (
    Context,
    Duration,
    FetchedFile,
    Mode,
    Permanent,
    Result,
    Secret,
    StateModule,
    Verdict,
    arg,
    define,
    format_size,
    no_change,
    reveal,
    will_change,
)

from .items import MARKER, Item, Target, entry_problems, look

_LEAST_UNPACKED, _MOST_UNPACKED = 1 << 30, 100 << 30
_RATIO = 100
"""How many times its size an archive may hold by default; data sets hold 2 to 20 times."""

_OURS = ("range", "if-range", "accept-encoding", "host", "connection", "transfer-encoding")


@define
class Download(StateModule):
    """Download files over HTTP, each completely or not at all; a retry resumes a download.

    With a sha256, every run verifies the content. Without one, an existing file stays as it is. An
    archive is unpacked into its own directory, which then belongs to this task: another archive
    replaces it.
    """

    privileges = "network; may write to the directory"
    asks_servers = True
    example = "download: {url: 'https://example.com/data.bin', dest: /tmp/data.bin}"

    url: str | Secret | None = arg("The address, http or https.", default=None)
    dest: str | None = arg("Where to write the file; an absolute path.", default=None)
    unpack: str | None = arg(
        "Instead of dest: the directory into which a tar or zip archive is unpacked.", default=None
    )
    sha256: str | None = arg("The SHA-256 of what is downloaded, in hexadecimal.", default=None)
    mode: Mode = arg("The permissions of the file.", default=Mode(0o644))
    files: list[dict[str, str | Secret]] = arg(
        "Instead of url: several of {url, dest or unpack, sha256, mode}.", factory=list
    )
    headers: dict[str, str | Secret] = arg(
        "Headers such as Authorization; only for the server in the address.", factory=dict
    )
    stall: Duration = arg(
        "The longest time without a byte; timeout bounds the whole download.",
        default=Duration(60.0),
    )
    max_bytes: int | None = arg("The largest download; no limit by default.", default=None)
    max_unpacked_bytes: int | None = arg(
        "The largest size of all unpacked files; by default 100 times the size of the archive, at "
        "least 1 GiB and at most 100 GiB.",
        default=None,
    )
    max_members: int = arg("The largest number of members in an archive.", default=1_000_000)

    def require(self) -> Iterator[str]:
        """Each item has an address and a separate path."""
        if bool(self.files) == (self.url is not None):
            yield "give either 'url' or 'files'"
        elif self.files and (self.dest or self.unpack or self.sha256):
            yield "with 'files', put 'dest', 'unpack' and 'sha256' into its entries"
        else:
            yield from self._require_items()
        for name in self.headers:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or name.lower() in _OURS:
                yield f"'headers' may not hold {name!r}"
        unpacked = 1 if self.max_unpacked_bytes is None else self.max_unpacked_bytes
        if min(self.stall, self.max_members, unpacked) <= 0:
            yield "'stall', 'max_unpacked_bytes' and 'max_members' must be more than 0"

    def _require_items(self) -> Iterator[str]:
        paths: set[str] = set()
        for n, entry in enumerate(self._entries()):
            where = f"files.{n}: " if self.files else ""
            for sentence in entry_problems(entry):
                yield where + sentence
            place = os.path.normpath(reveal(entry.get("dest") or entry.get("unpack") or f"./{n}"))
            if place in paths:
                yield f"{where}another entry has the place {place}"
            paths.add(place)

    def _entries(self) -> list[Mapping[str, str | Secret]]:
        if self.files:
            return list(self.files)
        one = {"url": self.url, "dest": self.dest, "unpack": self.unpack, "sha256": self.sha256}
        return [{k: v for k, v in one.items() if v is not None}]

    def _items(self) -> list[Item]:
        items = []
        for entry in self._entries():
            sha256, mode = entry.get("sha256"), entry.get("mode")
            items.append(
                Item(
                    url=entry["url"],
                    path=os.path.normpath(reveal(entry.get("dest") or entry["unpack"])),
                    unpack="unpack" in entry,
                    sha256=reveal(sha256).lower() if sha256 else None,
                    mode=int(reveal(mode), 8) if mode else self.mode,
                )
            )
        return items

    def writes(self) -> list[str]:
        """The files and directories that it writes."""
        return [item.path for item in self._items()]

    def probe(self, ctx: Context) -> list[Target]:
        """Read each path, with the file's digest if the task has one."""
        return [look(ctx, item) for item in self._items()]

    def plan(self, state: list[Target]) -> Verdict:
        """Compare existence, content and mode."""
        if changes := [target for target in state if target.difference]:
            what = "; ".join(target.difference for target in changes[:3])
            more = f"; and {len(changes) - 3} more" if len(changes) > 3 else ""
            return will_change(what + more, changes[0].before, changes[0].after)
        if not all(target.item.sha256 for target in state):
            return no_change("it exists; without sha256, pairun does not check its content")
        if all(target.item.unpack for target in state):
            return no_change("the content of the archive exists")
        return no_change("the content matches")

    def apply(self, ctx: Context) -> Result:
        """Download files that are missing or differ."""
        done = []
        for item, target in ((item, look(ctx, item)) for item in self._items()):
            if not target.difference:
                continue
            target.require_ours()
            if target.difference.startswith("set the mode"):
                ctx.set_mode(item.path, item.mode)
                continue
            ctx.make_dir(os.path.dirname(item.path))
            if item.unpack:
                done.append(self._unpacked(ctx, item))
            else:
                done.append(_facts(item, self._fetch(ctx, item, item.path)))
        total = sum(d["bytes"] for d in done)
        resumed = sum(d["resumed_at"] for d in done)
        count = f"{len(done)} file{'s' if len(done) != 1 else ''}"
        message = f"{count}, {format_size(total)}"
        message += f", of which {format_size(resumed)} were downloaded before" if resumed else ""
        return Result(values={"files": done}, message=message if done else "the mode was set")

    def _fetch(self, ctx: Context, item: Item, path: str) -> FetchedFile:
        return ctx.fetch_file(
            item.url,
            path,
            headers=self.headers,
            mode=0o600 if item.unpack else item.mode,
            sha256=item.sha256,
            max_bytes=self.max_bytes,
            stall_s=self.stall,
        )

    def _most_unpacked(self, archive_bytes: int) -> int:
        """The most bytes that may come out of an archive: a small one must not fill the disk."""
        if self.max_unpacked_bytes is not None:
            return self.max_unpacked_bytes
        return min(max(_LEAST_UNPACKED, _RATIO * archive_bytes), _MOST_UNPACKED)

    def _unpacked(self, ctx: Context, item: Item) -> dict[str, Any]:
        above, name = os.path.split(item.path)
        archive = os.path.join(above, f".{name[:200]}.pairun-archive")
        stat = ctx.stat(archive)
        if item.sha256 and stat and stat.kind == "file" and ctx.digest(archive) == item.sha256:
            # An earlier attempt has already downloaded it.
            fetched = FetchedFile(stat.size, item.sha256, stat.size)
        else:
            fetched = self._fetch(ctx, item, archive)
        marker = {**item.marker(), "sha256": fetched.sha256, "bytes": fetched.size}
        try:
            unpacked = ctx.unpack(
                archive,
                item.path,
                max_bytes=self._most_unpacked(fetched.size),
                max_members=self.max_members,
                extra={MARKER: json.dumps(marker).encode() + b"\n"},
            )
        except Permanent as e:
            # The same archive would fail again; the server may send another one.
            ctx.remove(archive)
            message = f"what {item.host} sent cannot be unpacked: {e.message}"
            raise Permanent(message, fault=e.fault, hint=e.hint) from e
        ctx.remove(archive)
        return {**_facts(item, fetched), "members": unpacked.members, "unpacked": unpacked.size}


def _facts(item: Item, fetched: FetchedFile) -> dict[str, Any]:
    return {
        "path": item.path,
        "bytes": fetched.size,
        "sha256": fetched.sha256,
        "resumed_at": fetched.resumed_at,
    }

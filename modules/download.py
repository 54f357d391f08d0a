"""Download files over HTTP, or unpack archives."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pairun.module import (
    Context,
    Duration,
    FetchedFile,
    FileStat,
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

_MARKER = ".pairun-unpacked"
_MARKER_BYTES = 64 * 1024
_KEYS = ("url", "dest", "unpack", "sha256", "mode")
_OURS = ("range", "if-range", "accept-encoding", "host", "connection", "transfer-encoding")


class _Item(NamedTuple):
    """One thing to download: a file at ``path``, or an archive that is unpacked there."""

    url: str | Secret
    path: str
    unpack: bool
    sha256: str | None
    mode: int

    def marker(self) -> dict[str, Any]:
        """What is written beside the members of an archive, to know it again."""
        address = hashlib.sha256(reveal(self.url).encode("utf-8", "surrogateescape"))
        return {"schema": 1, "url_sha256": address.hexdigest(), "sha256": self.sha256}


class _Found(NamedTuple):
    """What stands where something is to be."""

    stat: FileStat | None
    sha256: str | None
    marker: dict[str, Any] | None
    empty: bool


@define
class Download(StateModule):
    """Download a file or many over HTTP, whole or not at all, and go on where it was broken off.

    With a sha256, the content is verified, now and at every further run. Without one, a file that
    exists is left as it is. An archive is unpacked into a directory of its own, which then belongs
    to this task: another archive replaces it.
    """

    privileges = "network; may write to the directory"
    example = "download: {url: 'https://example.com/data.bin', dest: /tmp/data.bin}"

    url: str | Secret | None = arg("The address, http or https.", default=None)
    dest: str | None = arg("Where the file stands; an absolute path.", default=None)
    unpack: str | None = arg(
        "Instead of dest: the directory into which a tar or zip archive is unpacked.", default=None
    )
    sha256: str | None = arg("The SHA-256 of what is downloaded, in hexadecimal.", default=None)
    mode: Mode = arg("The permissions of the file.", default=Mode(0o644))
    files: list[dict[str, str | Secret]] = arg(
        "Instead of url: several of {url, dest or unpack, sha256, mode}.", factory=list
    )
    headers: dict[str, str | Secret] = arg(
        "Headers such as Authorization; no other server gets to see them.", factory=dict
    )
    stall: Duration = arg(
        "The longest time without a byte; timeout bounds the whole.", default=Duration(60.0)
    )
    max_bytes: int | None = arg("The largest download; no limit by default.", default=None)
    max_unpacked_bytes: int = arg(
        "The most that may come out of an archive; 100 GiB by default.", default=100 << 30
    )
    max_members: int = arg("The most members of an archive.", default=1_000_000)

    def require(self) -> Iterator[str]:
        """Each item has an address and a place of its own."""
        if bool(self.files) == (self.url is not None):
            yield "give either 'url' or 'files'"
        elif self.files and (self.dest or self.unpack or self.sha256):
            yield "with 'files', 'dest', 'unpack' and 'sha256' stand in its entries"
        else:
            yield from self._require_items()
        for name in self.headers:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or name.lower() in _OURS:
                yield f"'headers' may not hold {name!r}"
        if self.stall <= 0 or min(self.max_unpacked_bytes, self.max_members) <= 0:
            yield "'stall', 'max_unpacked_bytes' and 'max_members' must be more than nothing"

    def _require_items(self) -> Iterator[str]:
        paths: set[str] = set()
        for n, entry in enumerate(self._entries()):
            where = f"files.{n}: " if self.files else ""
            for sentence in _mistakes(entry):
                yield where + sentence
            place = os.path.normpath(reveal(entry.get("dest") or entry.get("unpack") or f"./{n}"))
            if place in paths:
                yield f"{where}another one is to become {place} already"
            paths.add(place)

    def _entries(self) -> list[Mapping[str, str | Secret]]:
        if self.files:
            return list(self.files)
        one = {"url": self.url, "dest": self.dest, "unpack": self.unpack, "sha256": self.sha256}
        return [{k: v for k, v in one.items() if v is not None}]

    def _items(self) -> list[_Item]:
        items = []
        for entry in self._entries():
            sha256, mode = entry.get("sha256"), entry.get("mode")
            items.append(
                _Item(
                    url=entry["url"],
                    path=os.path.normpath(reveal(entry.get("dest") or entry["unpack"])),
                    unpack="unpack" in entry,
                    sha256=reveal(sha256).lower() if sha256 else None,
                    mode=int(reveal(mode), 8) if mode else self.mode,
                )
            )
        return items

    def probe(self, ctx: Context) -> list[_Found]:
        """What stands where they are to be; the content where it can be compared."""
        return [_look(ctx, item) for item in self._items()]

    def plan(self, state: list[_Found]) -> Verdict:
        """Compare existence, content and mode."""
        pairs = list(zip(self._items(), state, strict=True))
        wrong = [(item, found) for item, found in pairs if _difference(item, found)]
        if wrong:
            what = "; ".join(_difference(item, found) or "" for item, found in wrong[:3])
            more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            return will_change(what + more, _before(wrong[0][1]), _after(wrong[0][0]))
        if all(item.sha256 for item, _ in pairs):
            return no_change(
                "what the archive held is there" if all(i.unpack for i, _ in pairs)
                else "the content is as asked"
            )  # fmt: skip
        return no_change("it exists; without a sha256, its content is not looked at")

    def apply(self, ctx: Context) -> Result:
        """Download what is missing or differs."""
        done = []
        for item in self._items():
            found = _look(ctx, item)
            if not (why := _difference(item, found)):
                continue
            _refuse_what_is_not_ours(item, found)
            if why.startswith("set the mode"):
                ctx.set_mode(item.path, item.mode)
                continue
            ctx.make_dir(os.path.dirname(item.path))
            done.append(self._unpacked(ctx, item) if item.unpack else self._fetched(ctx, item))
        total = sum(d["bytes"] for d in done)
        resumed = sum(d["resumed_at"] for d in done)
        count = f"{len(done)} file{'s' if len(done) != 1 else ''}"
        message = f"{count}, {format_size(total)}"
        message += f", of which {format_size(resumed)} were here already" if resumed else ""
        return Result(values={"files": done}, message=message if done else "the mode was set")

    def _fetched(self, ctx: Context, item: _Item) -> dict[str, Any]:
        return _facts(item, self._fetch(ctx, item, item.path))

    def _fetch(self, ctx: Context, item: _Item, path: str) -> FetchedFile:
        return ctx.fetch_file(
            item.url,
            path,
            headers=self.headers,
            mode=0o600 if item.unpack else item.mode,
            sha256=item.sha256,
            max_bytes=self.max_bytes,
            stall_s=self.stall,
        )

    def _unpacked(self, ctx: Context, item: _Item) -> dict[str, Any]:
        above, name = os.path.split(item.path)
        archive = os.path.join(above, f".{name[:200]}.pairun-archive")
        there = ctx.stat(archive)
        if item.sha256 and there and there.kind == "file" and ctx.digest(archive) == item.sha256:
            # An earlier attempt came so far.
            fetched = FetchedFile(there.size, item.sha256, there.size)
        else:
            fetched = self._fetch(ctx, item, archive)
        marker = {**item.marker(), "sha256": fetched.sha256, "bytes": fetched.size}
        try:
            unpacked = ctx.unpack(
                archive,
                item.path,
                max_bytes=self.max_unpacked_bytes,
                max_members=self.max_members,
                extra={_MARKER: json.dumps(marker).encode() + b"\n"},
            )
        except Permanent as e:
            # The same archive would be refused again; another may come in its place.
            ctx.remove(archive)
            raise Permanent(
                f"what {_host(item)} sent cannot be unpacked: {e.message}",
                fault=e.fault,
                hint=e.hint,
            ) from e
        ctx.remove(archive)
        return {**_facts(item, fetched), "members": unpacked.members, "unpacked": unpacked.size}


def _mistakes(entry: Mapping[str, str | Secret]) -> Iterator[str]:
    """What is wrong with one entry."""
    for key in sorted(entry.keys() - set(_KEYS)):
        yield f"there is no '{key}': an entry has {', '.join(_KEYS)}"
    if not entry.get("url"):
        yield "'url' is missing"
    elif said := _address_mistake(reveal(entry["url"])):
        yield said
    if bool(entry.get("dest")) == bool(entry.get("unpack")):
        yield "give either 'dest' or 'unpack'"
    for key in ("dest", "unpack"):
        path = reveal(entry.get(key) or "/x")
        if not os.path.isabs(path) or "\0" in path:
            yield f"'{key}' must be absolute, not {path!r}"
        elif os.path.normpath(path) in ("/", "//") or (key == "dest" and path.endswith("/")):
            yield f"'{key}' must name the {'file' if key == 'dest' else 'directory'}, not {path!r}"
    if not re.fullmatch("[0-9a-fA-F]{64}", reveal(entry.get("sha256") or "0" * 64)):
        yield "'sha256' must be 64 hexadecimal digits"
    if not re.fullmatch("0?[0-7]{3,4}", reveal(entry.get("mode") or "0644")):
        yield "'mode' must be octal text, for example '0644'"
    if "unpack" in entry and "mode" in entry:
        yield "'mode' is of a file; what an archive holds has its own"


def _address_mistake(url: str) -> str | None:
    """What is wrong with an address; of itself it shows its scheme alone."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for what is no number, or too large a one
    except ValueError:
        return "'url' has a host or a port that cannot be one"
    if parts.scheme not in ("http", "https"):
        is_scheme = re.fullmatch("[a-z][a-z0-9+.-]{0,15}", parts.scheme) and "://" in url
        return "'url' must be an http or https address" + (
            f", not {parts.scheme}" if is_scheme else ""
        )
    if "@" in parts.netloc:
        return "'url' may hold no user and no password: they go into 'headers', as Authorization"
    return None if parts.hostname else "'url' names no server"


def _facts(item: _Item, fetched: FetchedFile) -> dict[str, Any]:
    return {
        "path": item.path,
        "bytes": fetched.size,
        "sha256": fetched.sha256,
        "resumed_at": fetched.resumed_at,
    }


def _look(ctx: Context, item: _Item) -> _Found:
    found = ctx.stat(item.path)
    if item.unpack:
        marker, empty = None, False
        if found is not None and found.kind == "directory":
            marker = _parsed(_marker_text(ctx, item))
            empty = not ctx.list_dir(item.path)
        return _Found(found, None, marker, empty)
    comparable = item.sha256 is not None and found is not None and found.kind == "file"
    return _Found(found, ctx.digest(item.path) if comparable else None, None, empty=False)


def _marker_text(ctx: Context, item: _Item) -> bytes:
    path = os.path.join(item.path, _MARKER)
    found = ctx.stat(path)
    if found is None or found.kind != "file" or found.size > _MARKER_BYTES:
        return b""
    return ctx.read_file(path, _MARKER_BYTES) or b""


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        marker = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return marker if isinstance(marker, dict) and marker.get("schema") == 1 else None


def _difference(item: _Item, found: _Found) -> str | None:
    """What would be done, or None."""
    if item.unpack:
        wanted, there = item.marker(), found.marker
        key = "sha256" if item.sha256 else "url_sha256"
        if there is not None and there.get(key) == wanted[key]:
            return None
        return f"{'unpack' if found.stat is None else 'replace'} {item.path} from {_host(item)}"
    if found.stat is None:
        return f"download {item.path} from {_host(item)}"
    if found.stat.kind != "file" or found.sha256 != item.sha256:
        return f"replace {item.path} from {_host(item)}"
    return f"set the mode of {item.path}" if found.stat.mode != item.mode else None


def _before(found: _Found) -> str:
    if found.stat is None:
        return "nothing"
    if found.marker is not None:
        return f"an archive with the sha256 {found.marker.get('sha256')}"
    if found.sha256 is not None:
        return f"sha256 {found.sha256}, mode {found.stat.mode:04o}"
    return f"{found.stat.kind}, mode {found.stat.mode:04o}"


def _after(item: _Item) -> str:
    content = f"sha256 {item.sha256}" if item.sha256 else "whatever is there"
    return content if item.unpack else f"{content}, mode {item.mode:04o}"


def _refuse_what_is_not_ours(item: _Item, found: _Found) -> None:
    """Replace no directory or device that somebody else has put there.

    Raises:
        Permanent: there is one.
    """
    if found.stat is None:
        return
    if not item.unpack and found.stat.kind in ("directory", "other"):
        word = "directory" if found.stat.kind == "directory" else "special file"
        raise Permanent(
            f"{item.path} is a {word}; a file does not replace it",
            fault="user",
            hint="name the file itself, or remove what is there in a task before",
        )
    if item.unpack and found.stat.kind != "directory":
        raise Permanent(f"{item.path} exists and is no directory", fault="user")
    if item.unpack and found.marker is None and not found.empty:
        raise Permanent(
            f"{item.path} exists and holds what no download has unpacked there",
            fault="user",
            hint="name a directory of its own: it is replaced as a whole",
        )


def _host(item: _Item) -> str:
    try:
        return urlsplit(reveal(item.url)).hostname or "?"
    except ValueError:
        return "?"

"""Makes hostile inputs of good ones: by bytes, and by the structure of a YAML or JSON document."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import yaml

TOKENS = (
    b"&a ", b"*a ", b"<<: *a\n", b"<<: {}\n", b"!!python/object:os.system ", b"!!binary ", b"|\n",
    b">-\n", b"---\n", b"...\n", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\x85",
    b"\xe2\x80\xa8", b"{{ ", b" }}", b"{% for x in y %}", b"<% $secrets.a %>", b"<%=", b"%>", b"$(",
    b"1e999", b"-0", b"0x", b"9" * 400, b".nan", b".inf", b"~", b"? ", b": ", b"- ", b"#", b"'", b'"',
    b"[[[[", b"{{{{", b"]", b"}", b"\\ud800", b"\\", b"(a+)+$", b"(?P<x>", b"{99999999999}", b"\x1b[2J",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**300, -(10**300), 0.5, -0.0, 1e308, float("inf"),
    float("nan"), "", " ", "x", "\n", "\x00", "\x1b[31m", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "a" * 10_000, "../" * 50 + "etc/passwd", "/dev/zero", "{{ 9**9**9 }}", "{{ x }}", "{{", "{% if %}",
    "{{ 'a' * 99999999 }}", "<% $parameters.x %>", "<% $secrets.a %>", "<% %>", "$(id)", "600", "1s",
    "-1s", "999999999999h", "0777", "(a+)+$", "(" * 300, "a{99999999999}", "[[:alpha:]", "\\p{Lu}", "(?i)", "(?<x>y)",
    "https://u:p@h:99999/", "http://[::1", "file:///etc/passwd", "ext::sh -c id", "2001-01-01", "0b1", "1_000", "1:30",
    [], {}, [None], [[]], {"": None}, [{}], {"a": {}}, list(range(50)), [0] * 5000, {"a": {"b": {"c": {"d": {}}}}},
)  # fmt: skip


MOST_REPEATED = 2000
"""How many bytes are repeated at once: more would outgrow the memory of the process that makes inputs."""


def by_bytes(text: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Change some bytes of a text.

    Args:
        text: a good input.
        others: inputs of which parts may be taken.
        rng: decides.
    """
    data = bytearray(text)
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(data))
        end = min(len(data), at + rng.choice((1, 4, 30, 300)))
        kind = rng.randrange(8)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = rng.choice(TOKENS) * rng.choice((1, 1, 1, 3, 100))
        elif kind == 3:
            data[at:at] = bytes(data[at:end]) * rng.choice((1, 2, 50))
        elif kind == 4:
            other = rng.choice(others)
            start = rng.randint(0, len(other))
            data[at:end] = other[start : start + rng.choice((4, 30, 300))]
        elif kind == 5:
            data[at:end] = rng.randbytes(end - at)
        elif kind == 6:
            data = data[:at]
        else:
            start = bytes(data).rfind(b"\n", 0, at) + 1
            stop = bytes(data).find(b"\n", at) + 1 or len(data)
            data[at:at] = bytes(data[start : min(stop, start + MOST_REPEATED)]) * rng.choice(
                (1, 20, 500)
            )
    return bytes(data[: 256 * 1024])


def by_structure(text: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Change the values and keys of a YAML or JSON document; of anything else some bytes.

    Args: as `by_bytes`.
    """
    try:
        tree, more = _parsed(text), _parsed(rng.choice(others))
    except (yaml.YAMLError, UnicodeDecodeError):
        return by_bytes(text, others, rng)
    holder = [tree]
    for _ in range(rng.randint(1, 4)):
        _change(holder, more, rng)
    try:
        if text.lstrip().startswith((b"{", b"[")) or rng.random() < 0.2:
            return json.dumps(holder[0]).encode()[: 1 << 20]
        return yaml.dump(holder[0], Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()[
            : 1 << 20
        ]
    except (yaml.YAMLError, RecursionError, TypeError, UnicodeEncodeError):
        return by_bytes(text, others, rng)


def by_lines(text: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Change lines of JSON, their order and their number.

    Args: as `by_bytes`.
    """
    lines = text.splitlines()
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0:
            lines[at] = by_structure(lines[at], lines, rng).replace(b"\n", b" ")
        elif kind == 1:
            lines[at] = by_bytes(lines[at], lines, rng)
        elif kind == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3 and len(lines) > 1:
            del lines[at]
        else:
            lines[at:at] = [lines[at]] * rng.choice((1, 3, 300))
    return b"\n".join(lines)[: 1 << 20] + b"\n"


class _Dumper(yaml.SafeDumper):
    """Writes shared values in full."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write no anchors."""
        return True


def _parsed(text: bytes) -> Any:
    return yaml.load(text, Loader=_Loader)


class _Loader(yaml.CSafeLoader):
    """Reads dates as text, as pairun does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every value: what holds it, and its key or index."""
    places: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(places) < 5000:
        holder = todo.pop()
        entries = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in entries:
            places.append((holder, key))
            if isinstance(value, dict | list):
                todo.append(value)
    return places


def _change(holder: list[Any], more: Any, rng: random.Random) -> None:
    parent, key = rng.choice(_places(holder))
    foreign_parent, foreign_key = rng.choice(_places([more]))
    value = parent[key]
    foreign = foreign_parent[foreign_key]

    def rename() -> None:
        if isinstance(parent, dict):
            name = rng.choice(
                (
                    str(key) + "s",
                    str(foreign_key),
                    "<<",
                    "",
                    str(key).upper(),
                    "id",
                    "args",
                    "a" * 300,
                )
            )
            parent[name] = parent.pop(key)

    def deepen() -> None:
        deep = value
        for _ in range(rng.choice((1, 5, 70, 400))):
            deep = [deep] if rng.random() < 0.5 else {"a": deep}
        parent[key] = deep

    def remove() -> None:
        del parent[key]

    def repeat() -> None:
        if isinstance(value, list) and value:
            parent[key] = (value * rng.choice((2, 40, 400)))[:2000]
        elif isinstance(value, dict) and value:
            first = next(iter(value.values()))
            value.update(
                {f"{rng.randrange(10**6)}": first for _ in range(rng.choice((1, 30, 500)))}
            )
        elif isinstance(value, str):
            parent[key] = (value * rng.choice((2, 50, 2000)))[:60_000]

    def replace() -> None:
        parent[key] = copy.deepcopy(rng.choice(VALUES))

    def transplant() -> None:
        parent[key] = copy.deepcopy(foreign)

    def inside() -> None:
        if isinstance(value, str):
            at = rng.randint(0, len(value))
            token = rng.choice(TOKENS).decode("utf-8", "replace")
            parent[key] = value[:at] + token + value[at:]

    def add() -> None:
        if isinstance(parent, dict):
            parent[str(foreign_key)] = copy.deepcopy(foreign)
        else:
            parent.insert(rng.randint(0, len(parent)), copy.deepcopy(foreign))

    changes: tuple[Callable[[], None], ...] = (
        rename, deepen, remove, repeat, replace, replace, replace, transplant, inside, inside, add,
    )  # fmt: skip
    if parent is holder:
        changes = (deepen, repeat, replace, transplant)
    rng.choice(changes)()

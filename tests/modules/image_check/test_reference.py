"""References of images are read as the grammar of Docker says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import cases
from tests.modules.image_check.conftest import (
    Part,
)

HUB = "docker.io"


HEX = "0123456789abcdef" * 4


LONG = "/".join(["a" * 50] * 5)  # 254 characters


VALID: list[tuple[str, tuple[str, str, str | None, str | None, bool]]] = [
    ("ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("  ubuntu:22.04 \n", (HUB, "library/ubuntu", "22.04", None, False)),
    ("ubuntu:V1.0", (HUB, "library/ubuntu", "V1.0", None, False)),
    ("ubuntu:1.0_GPU", (HUB, "library/ubuntu", "1.0_GPU", None, False)),
    ("ubuntu:_x", (HUB, "library/ubuntu", "_x", None, False)),
    ("ubuntu:" + "T" * 128, (HUB, "library/ubuntu", "T" * 128, None, False)),
    (f"ubuntu@sha256:{HEX}", (HUB, "library/ubuntu", None, f"sha256:{HEX}", False)),
    (f"ubuntu:1@sha256:{HEX}", (HUB, "library/ubuntu", "1", f"sha256:{HEX}", False)),
    (f"a/b@sha512:{HEX * 2}", (HUB, "a/b", None, f"sha512:{HEX * 2}", False)),
    (f"a/b@sha384:{HEX[:32] * 3}", (HUB, "a/b", None, f"sha384:{HEX[:32] * 3}", False)),
    ("openpai/standard:python_3.6", (HUB, "openpai/standard", "python_3.6", None, False)),
    ("a/b/c/d", (HUB, "a/b/c/d", "latest", None, False)),
    ("docker.io/ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("docker.io/library/ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("index.docker.io/a/b:1", (HUB, "a/b", "1", None, False)),
    ("registry-1.docker.io/a", (HUB, "library/a", "latest", None, False)),
    ("Docker.IO/a/b", (HUB, "a/b", "latest", None, False)),
    ("http://docker.io/a/b", (HUB, "a/b", "latest", None, False)),
    ("https://a/b", (HUB, "a/b", "latest", None, False)),
    ("ghcr.io/team/train:1", ("ghcr.io", "team/train", "1", None, False)),
    ("quay.io/a", ("quay.io", "a", "latest", None, False)),
    ("r.example:5000/a", ("r.example:5000", "a", "latest", None, False)),
    ("r.example:5000/a:5000", ("r.example:5000", "a", "5000", None, False)),
    ("r.example:65535/a/b", ("r.example:65535", "a/b", "latest", None, False)),
    ("R.Example/a", ("R.Example", "a", "latest", None, False)),
    ("Host/a/b", ("Host", "a/b", "latest", None, False)),
    ("host:1/a", ("host:1", "a", "latest", None, False)),
    ("host/a", (HUB, "host/a", "latest", None, False)),
    ("xn--n3h.com/a", ("xn--n3h.com", "a", "latest", None, False)),
    ("0.0.0.0/a", ("0.0.0.0", "a", "latest", None, False)),
    ("10.0.0.1:5000/a/b:c", ("10.0.0.1:5000", "a/b", "c", None, False)),
    ("http://r.example/a:b", ("r.example", "a", "b", None, True)),
    ("HTTP://r.example:80/a:b", ("r.example:80", "a", "b", None, True)),
    ("https://r.example/a", ("r.example", "a", "latest", None, False)),
    ("localhost/a", ("localhost", "a", "latest", None, True)),
    ("localhost:5000/a/b", ("localhost:5000", "a/b", "latest", None, True)),
    ("https://localhost:5000/a", ("localhost:5000", "a", "latest", None, False)),
    ("127.0.0.1/a", ("127.0.0.1", "a", "latest", None, True)),
    ("127.0.0.1:9/a", ("127.0.0.1:9", "a", "latest", None, True)),
    ("127.0.0.1.example/a", ("127.0.0.1.example", "a", "latest", None, False)),
    ("localhost.example/a", ("localhost.example", "a", "latest", None, False)),
    ("localhost:5000", (HUB, "library/localhost", "5000", None, False)),
    ("localhost", (HUB, "library/localhost", "latest", None, False)),
    ("[::1]:5000/a", ("[::1]:5000", "a", "latest", None, True)),
    ("[::1]/a:b", ("[::1]", "a", "b", None, True)),
    ("[2001:DB8::1]:5000/a/b:c", ("[2001:DB8::1]:5000", "a/b", "c", None, False)),
    (f"[fe80::2]/a@sha256:{HEX}", ("[fe80::2]", "a", None, f"sha256:{HEX}", False)),
    ("a.b", (HUB, "library/a.b", "latest", None, False)),
    ("a__b/c--d/e-f_g.h", (HUB, "a__b/c--d/e-f_g.h", "latest", None, False)),
    ("a---b", (HUB, "library/a---b", "latest", None, False)),
    ("0/1", (HUB, "0/1", "latest", None, False)),
    (f"{HEX[:63]}", (HUB, f"library/{HEX[:63]}", "latest", None, False)),
    (f"{HEX}:1", (HUB, f"library/{HEX}", "1", None, False)),
    (f"r.example/{HEX}", ("r.example", HEX, "latest", None, False)),
    (f"r.example/a/{HEX}", ("r.example", f"a/{HEX}", "latest", None, False)),
    (f"r.example/{LONG}", ("r.example", LONG, "latest", None, False)),
]  # fmt: skip


INVALID: list[tuple[str, str]] = [
    ("", "no name"),
    (" \n", "no name"),
    ("https://", "repository is missing"),
    (":1", "repository is missing"),
    ("r.example/", "repository is missing"),
    (f"@sha256:{HEX}", "repository is missing"),
    ("Ubuntu", "'Ubuntu' in the repository's name"),
    ("a/B", "'B' in the repository's name"),
    ("r.example/a/Bc:1", "'Bc' in the repository's name"),
    ("a//b", "'' in the repository's name"),
    ("/a", "'' in the repository's name"),
    ("a/b/", "'' in the repository's name"),
    ("-a/b", "'-a' in the repository's name"),
    ("a-/b", "'a-' in the repository's name"),
    ("a_/b", "'a_' in the repository's name"),
    ("a/b._c", "'b._c' in the repository's name"),
    ("a/b___c", "'b___c' in the repository's name"),
    ("a/b..c", "'b..c' in the repository's name"),
    ("a/b c", "'b c' in the repository's name"),
    ("a/ü", "'ü' in the repository's name"),
    ("a/\u0661", "in the repository's name"),
    ("$(id)/a", "'$(id)' in the repository's name"),
    ("a/../b", "'..' in the repository's name"),
    ("a/b\nc", "in the repository's name"),
    (HEX, "is an image's id"),
    ("ubuntu:", "'' is not a tag"),
    ("ubuntu:.x", "'.x' is not a tag"),
    ("ubuntu:-x", "'-x' is not a tag"),
    ("ubuntu:a/b", "not a registry"),
    ("r.example/a:b/c", "'b/c' is not a tag"),
    ("ubuntu:a:b", "'a:b' is not a tag"),
    ("ubuntu:ä", "'ä' is not a tag"),
    ("ubuntu:" + "t" * 129, "is not a tag"),
    ("ubuntu@", "'' is not a digest"),
    ("ubuntu@sha256", "'sha256' is not a digest"),
    ("ubuntu@sha256:abc", "'sha256:abc' is not a digest: 64"),
    (f"ubuntu@sha256:{HEX.upper()}", "is not a digest"),
    (f"ubuntu@sha512:{HEX}", "is not a digest: 128"),
    (f"ubuntu@md5:{HEX[:32]}", "is not a digest"),
    (f"ubuntu@sha256:{HEX}:1", "is not a digest"),
    (f"ubuntu@sha256:{HEX}@sha256:{HEX}", "is not a digest"),
    ("https://user:pw@r.example/a", "put them into 'auth'"),
    ("http://alice:pw@127.0.0.1:5001/x", "put them into 'auth'"),
    ("alice@r.example/a:1", "put them into 'auth'"),
    ("-r.example/a", "'-r.example' is not a registry"),
    ("r-.example/a", "'r-.example' is not a registry"),
    ("r..example/a", "'r..example' is not a registry"),
    ("r_x.example/a", "'r_x.example' is not a registry"),
    ("r.example:/a", "'r.example:' is not a registry"),
    ("r.example:x/a", "'r.example:x' is not a registry"),
    ("r.example:65536/a", "'r.example:65536' is not a registry"),
    ("r.example:1:2/a", "'r.example:1:2' is not a registry"),
    ("[::1/a", "'[::1' is not a registry"),
    ("[::1]x/a", "'[::1]x' is not a registry"),
    ("::1/a", "'::1' is not a registry"),
    ("ftp://r.example/a", "'ftp:' is not a registry"),
    (f"r.example/{LONG}/a", "more than 255"),
]


def test_the_table_is_not_small() -> None:
    """The grammar has many corners."""
    assert len(VALID) + len(INVALID) >= 100


@pytest.mark.parametrize(("text", "parts"), VALID)
def test_a_valid_reference(part: Part, text: str, parts: tuple[Any, ...]) -> None:
    """It is read in parts, and its whole name is read as the same."""
    parse = part("reference").parse_reference
    reference = parse(text)
    assert tuple(reference) == parts
    again = parse(str(reference))
    assert again._replace(plain=reference.plain) == reference


@pytest.mark.parametrize(("text", "says"), INVALID)
def test_an_invalid_reference(part: Part, text: str, says: str) -> None:
    """The part that is wrong is shown."""
    with pytest.raises(ValueError) as caught:
        part("reference").parse_reference(text)
    assert says in str(caught.value)


LABEL = st.from_regex("[a-zA-Z0-9]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?", fullmatch=True)


HOST = st.one_of(
    st.lists(LABEL, min_size=2, max_size=4).map(".".join),
    st.just("localhost"),
    st.ip_addresses(v=6).map(lambda ip: f"[{ip}]"),
)


PORT = st.one_of(st.just(""), st.integers(0, 65535).map(lambda p: f":{p}"))


WORD = st.from_regex("[a-z0-9]{1,4}", fullmatch=True)


COMPONENT = st.builds(
    lambda first, rest: first + "".join(sep + word for sep, word in rest),
    WORD,
    st.lists(st.tuples(st.sampled_from([".", "_", "__", "-", "---"]), WORD), max_size=3),
)


PATH = st.lists(COMPONENT, min_size=1, max_size=5).map("/".join)


TAG = st.none() | st.from_regex("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True)


HASH = st.none() | st.from_regex("sha256:[0-9a-f]{64}", fullmatch=True)


@pytest.fixture(scope="module")
def parse(part: Part) -> Callable[[str], Any]:
    """The parser, for properties."""
    return part("reference").parse_reference  # type: ignore[no-any-return]


@st.composite
def references(draw: st.DrawFn) -> str:
    """A reference by the grammar: with or without host, port, tag, digest, space, scheme."""
    host = draw(st.none() | HOST)
    name = path = draw(PATH)
    if host is not None:
        name = f"{host}{draw(PORT)}/{path}"
    else:
        # A first component with a dot would be a host.
        assume("/" not in path or not re.search("[.]|^localhost$", path.partition("/")[0]))
    tag, digest = draw(TAG), draw(HASH)
    name += (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
    return draw(st.sampled_from(["", "", "http://", "HTTPS://", " ", "\n\t"])) + name


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A reference with something put in, taken out, doubled or turned to upper case."""
    text = draw(references())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from([*"aA0.:/@[]-_ %~", "//", "..", "___", "sha256:", "é", "\n"]))
        end = draw(st.integers(at, min(len(text), at + 3)))
        cut = [text[:at] + piece + text[at:], text[:at] + text[end:], text[:end] + text[at:]]
        text = draw(st.sampled_from([*cut, text[:at] + text[at:end].upper() + text[end:]]))
    return text


ANCHORED = re.compile(
    r"""
    (?: (?P<domain>
          (?: (?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])
              (?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*
            | \[[a-fA-F0-9:]+\] )
          (?: :(?P<port>[0-9]+) )?
        ) / )?
    (?P<path> [a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)* (?:/[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*)* )
    (?: :(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}) )?
    (?: @(?P<digest>sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}) )?
    """,
    re.VERBOSE,
)


def expected(text: str) -> tuple[str, str, str | None, str | None] | None:
    """The grammar once more, as one anchored expression over the normalized name; None: invalid.

    The distribution project's way: the domain is split off first and put in front where there is
    none, then the whole is matched. What it does not have: space around, a scheme, names of the
    Hub in any case, and a bound for ports.
    """
    text = re.sub("^https?://", "", text.strip(), flags=re.IGNORECASE)
    if re.fullmatch("[0-9a-f]{64}", text):
        return None
    head, slash, rest = text.partition("/")
    if not slash or not ("." in head or ":" in head or head == "localhost" or head != head.lower()):
        head, rest = "docker.io", text
    if head.lower() in ("docker.io", "index.docker.io", "registry-1.docker.io"):
        head = "docker.io"
        if "/" not in re.split("[:@]", rest)[0]:
            rest = f"library/{rest}"
    found = ANCHORED.fullmatch(f"{head}/{rest}")
    if not found or found["domain"] != head or len(found["path"]) > 255:
        return None
    if int(found["port"] or 0) > 65535 or len(found["port"] or "") > 5:
        return None
    return (
        head,
        found["path"],
        found["tag"] or (None if found["digest"] else "latest"),
        found["digest"],
    )


def same(parse: Callable[[str], Any], text: str) -> bool:
    """Compare both readings; returns whether the text is valid."""
    try:
        read = parse(text)
    except ValueError:
        assert expected(text) is None
        return False
    assert tuple(read[:4]) == expected(text)
    assert parse(str(read))[:4] == read[:4]
    return True


@settings(max_examples=cases(400))
@given(references())
@pytest.mark.slow
def test_a_reference_is_read_as_the_grammar_says(parse: Callable[[str], Any], text: str) -> None:
    """Every reference that the grammar makes is valid, and has the parts it was made of."""
    assert same(parse, text)


@settings(max_examples=cases(500))
@given(mutations())
@pytest.mark.slow
def test_a_mutation_is_judged_as_the_grammar_says(parse: Callable[[str], Any], text: str) -> None:
    """A reference that was damaged is valid or not as by the second formulation."""
    same(parse, text)


@settings(max_examples=cases(300))
@given(st.text() | st.text("aA0.:/@[]-_ sha256:", max_size=40))
def test_any_text_is_read_or_refused(parse: Callable[[str], Any], text: str) -> None:
    """Nothing but a ValueError escapes, and what is read is safe in a URL."""
    try:
        reference = parse(text)
    except ValueError:
        return
    assert str(reference).isascii()
    assert not set(str(reference)) & set(" \t\r\n?#%\\")

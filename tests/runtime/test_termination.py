"""The termination message: whatever a log holds, it parses and keeps its budget."""

from __future__ import annotations

import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairun.runtime.termination import ERROR_END, ERROR_START, Summary, excerpt, message, printable
from pairun.secrets.vault import Vault

TEXTS = st.text(max_size=200) | st.lists(
    st.sampled_from(
        [
            "",
            " ",
            "\t",
            "line",
            "  deep",
            "é你\N{GRINNING FACE}",
            "x" * 300,
            "a: b",
            "- c",
            "#",
            "|",
            "\r",
            "\x1b[31m",
        ]
    ),
    max_size=60,
).map("\n".join)


def _parsed(text: str) -> dict[str, object]:
    """As OpenPAI's REST server takes a message apart."""
    found = re.search(re.escape(ERROR_START) + r"([\s\S]*)" + re.escape(ERROR_END), text)
    assert found is not None
    parsed = yaml.safe_load(found[1])
    assert isinstance(parsed, dict)
    return parsed


@given(user=TEXTS, platform=TEXTS, matched=st.none() | TEXTS, budget=st.integers(256, 4096))
def test_a_message_parses_and_keeps_its_budget(
    user: str, platform: str, matched: str | None, budget: int
) -> None:
    """At every budget the message parses, never exceeds it, and has the codes."""
    summary = Summary(
        exit_code=255,
        user_exit_code=1,
        matched_user=matched,
        matched_platform=matched,
        double_ecc=True,
        user_log=user,
        platform_log=platform,
    )
    text = message(summary, budget)
    assert len(text.encode()) <= budget
    parsed = _parsed(text)
    assert (parsed["exitCode"], parsed["originUserExitCode"]) == (255, 1)


@given(text=TEXTS)
def test_a_text_comes_back_as_it_was(text: str) -> None:
    """What fits into the budget comes back exactly, but for what YAML cannot carry."""
    parsed = _parsed(message(Summary(exit_code=1, user_exit_code=1, user_log=text), 1 << 20))
    logs = parsed["errorLogs"]
    assert isinstance(logs, dict)
    assert logs["user"] == printable(text)


@given(before=TEXTS, match=st.text(min_size=1, max_size=30), after=TEXTS)
def test_an_excerpt_shows_the_match_in_whole_lines(before: str, match: str, after: str) -> None:
    """The lines of an excerpt are lines of the log, at most as many as asked, with the match's."""
    text = before + match + after
    found = excerpt(text, 15, (len(before), len(before) + len(match)))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    shown = found.split("\n")
    assert set(shown) <= set(lines)
    first = text[before.rfind("\n") + 1 :].replace("\r\n", "\n").replace("\r", "\n").split("\n")[0]
    assert first in shown


def test_without_a_match_the_last_lines_are_shown() -> None:
    """The end of the log counts, with the empty piece after its last newline as one of the lines."""
    text = "".join(f"line {n}\r\n" for n in range(40))
    assert excerpt(text, 15) == "".join(f"line {n}\n" for n in range(26, 40))


def test_secrets_are_masked_after_escape_codes_are_removed() -> None:
    """What colours split is joined in the message; it is masked then, and keys never are."""
    log = "a SENT\x1b[31mINEL\x1b[0mraw7391 b"
    why = {
        "evidence": log,
        "headline": log,
        "class": "c",
        "fault": "user",
        "retry": None,
        "confidence": 1.0,
        "advice": "",
    }
    summary = Summary(exit_code=1, user_exit_code=1, user_log=log, matched_user=log, diagnosis=why)
    shown = message(summary, mask=Vault(["SENTINELraw7391", "exitcode"]).text)
    assert "7391" not in shown
    assert "a ****** b" in shown
    assert _parsed(shown).keys() == _parsed(message(summary)).keys()

"""Hashed features of a log's ending: what a linear classifier sees of it, and all that is kept of its text.

Words, pairs of words and runs of five characters are hashed to 15 bits, so no order and no text is kept.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Sequence

from pairun.diagnose.lines import Line, Log

BITS = 15

_TAIL_LINES = 400
_LAST_LINES = 12
_CUE_LINES = 24
_MAX_CHARS = 400
_RUN = 5
_CUE = re.compile(
    r"(?i)error|fail|fatal|abort|kill|exception|can ?not|can't|unable|denied|timed? ?out|terminat|signal|refused|lost"
    r"|missing|not found|no such|invalid|unexpected|cancel|evict|stuck|hang|hung|nan\b|warn|panic|reset|assert|exceed"
    r"|insufficient|unsupported|incompatible|undefined|unavailable|oom|traceback|core dumped|exit"
)
_HUMP = re.compile(r"([a-z])([A-Z])")
_PATH = re.compile(r"/[\w./-]+/")
_WORD = re.compile(r"[A-Za-z]{2,}|\d+")


def decisive_lines(logs: Sequence[Log]) -> list[str]:
    """The last lines of each log, and the last ones that hold a word of failure."""
    texts: list[str] = []
    for log in logs:
        tail = log.tail(_TAIL_LINES)
        cues = [line for line in tail if _CUE.search(line.text)][-_CUE_LINES:]
        chosen: dict[int, Line] = {line.at: line for line in (*cues, *tail[-_LAST_LINES:])}
        texts += [line.text[:_MAX_CHARS] for line in chosen.values()]
    return texts


def features_of(lines: Sequence[str]) -> tuple[int, ...]:
    """The hashed features of some lines, sorted, each once."""
    names: set[str] = set()
    for text in lines:
        split = _PATH.sub("/", _HUMP.sub(r"\1 \2", text))
        words = ["0" if word.isdigit() else word.lower() for word in _WORD.findall(split)]
        names.update(f"w{word}" for word in words)
        names.update(f"b{one} {two}" for one, two in itertools.pairwise(words))
        joined = " ".join(words)
        names.update(f"c{joined[n : n + _RUN]}" for n in range(len(joined) - _RUN + 1))
    return tuple(sorted({zlib.crc32(name.encode()) & ((1 << BITS) - 1) for name in names}))

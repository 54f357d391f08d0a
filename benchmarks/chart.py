"""The results of all releases as a page: a drawing of how near each is to its goal, and a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.measure import amount

Result = Mapping[str, Any]

_ROW, _TOP, _LABELS, _SCALE, _AMOUNTS = 24, 64, 290, 420, 190
_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Of the goal; the axis is logarithmic. What lies outside is drawn at its end."""

_STYLE = """
.ground { fill: #ffffff } text { fill: #24292f; font: 12px sans-serif }
.grid { stroke: #d0d7de } .goal { stroke: #24292f; stroke-dasharray: 4 3 }
.met { fill: #0969da } .missed { fill: #bc4c00 } .older { fill-opacity: 0.35 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d }
  .goal { stroke: #e6edf3 } .met { fill: #58a6ff } .missed { fill: #f0883e }
}
"""
"""The ground is drawn, so that the text is legible whatever theme the page around it has."""


def page(releases: Sequence[Result]) -> Iterator[str]:
    """The page in Markdown.

    Args:
        releases: the oldest first.
    """
    newest = releases[-1]
    machine = newest["machine"]
    yield "# Benchmarks and accuracy\n"
    yield "This page shows what pairun costs in each release, and [how often its diagnosis is"
    yield "right](#accuracy-of-the-diagnosis). `make bench` measures the costs on your machine, and compares them with other"
    yield "programs in the same run. `python -m benchmarks --json` prints them for programs.\n"
    yield f"![{escape(sentence(releases))}](../pictures/benchmarks.svg)\n"
    yield f"## {newest['pairun']}\n"
    yield f"Measured on {newest['date']}: {machine['processors']} processors ({machine['model']}), Python"
    yield f"{machine['python']}. The smallest of several runs counts for the goal, because other work only adds time."
    yield "The load is that of the machine at the end of the row: above the number of processors, times rise, but"
    yield "ratios hardly change.\n"
    yield "| what | least | median | runs | goal | ratio | compared with | load |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in newest["rows"]:
        unit = row["unit"]
        least, median, goal, peer = (
            amount(row[key], unit) for key in ("least", "median", "goal", "peer_least")
        )
        median = median if row["runs"] > 1 else ""
        goal = goal if row["met"] else f"{goal} (missed)"
        yield (
            f"| {row['what']} | {least} | {median} | {row['runs']} | {goal} | {row['ratio']:.3g} "
            f"| {row['peer']} ({peer}) | {row['load']:.1f} |"
        )
    for part, why in newest["not_measured"].items():
        yield f"\nNot measured: {part}, because {why}."


def sentence(releases: Sequence[Result]) -> str:
    """What the drawing shows, for those who do not see it."""
    rows = releases[-1]["rows"]
    met = sum(row["met"] for row in rows)
    nearest = max(rows, key=_share)
    return (
        f"Measured costs as shares of their goals, by release. In {releases[-1]['pairun']} "
        f"{met} of {len(rows)} goals are met; the nearest to its goal, or farthest beyond it, is "
        f"{nearest['what']} with {_share(nearest):.0%}."
    )


def drawing(releases: Sequence[Result]) -> Iterator[str]:
    """The drawing as SVG: a line for each row, a dot for each release.

    Args:
        releases: the oldest first.
    """
    rows = releases[-1]["rows"]
    width, height = _LABELS + _SCALE + _AMOUNTS, _TOP + _ROW * len(rows) + 16
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="title description">'
    )
    yield '<title id="title">Costs as shares of their goals</title>'
    yield f'<desc id="description">{escape(sentence(releases))}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="ground" width="{width}" height="{height}"/>'
    yield '<text x="12" y="22">share of the goal; dots are releases, the newest is solid</text>'
    for share in _SHARES:
        kind = "goal" if share == 1 else "grid"
        x = _x(share)
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{_TOP - 12}" y2="{height - 12}"/>'
        text = "goal" if share == 1 else f"{share:.0%}"
        yield f'<text x="{x}" y="{_TOP - 20}" text-anchor="middle">{text}</text>'
    for n, row in enumerate(rows):
        yield from _drawn(releases, row, _TOP + n * _ROW + 8)
    yield "</svg>"


def _drawn(releases: Sequence[Result], row: Result, y: int) -> Iterator[str]:
    yield f'<text x="12" y="{y + 4}">{escape(row["what"])}</text>'
    yield f'<line class="grid" x1="{_LABELS}" x2="{_LABELS + _SCALE}" y1="{y}" y2="{y}"/>'
    key = _key(row)
    for release in releases:
        for each in release["rows"]:
            if _key(each) == key:
                older = "" if release is releases[-1] else " older"
                kind = ("met" if each["met"] else "missed") + older
                said = f"{release['pairun']}: {amount(each['least'], each['unit'])}"
                yield (
                    f'<circle class="{kind}" cx="{_x(_share(each))}" cy="{y}" r="5">'
                    f"<title>{escape(said)}</title></circle>"
                )
    amounts = f"{amount(row['least'], row['unit'])} of {amount(row['goal'], row['unit'])}"
    yield f'<text x="{_LABELS + _SCALE + 16}" y="{y + 4}">{escape(amounts)}</text>'


def _key(row: Result) -> tuple[str, str, str]:
    return row["part"], row["what"], row["peer"].split(" ")[0]


def _share(row: Result) -> float:
    return float(row["least"] / row["goal"])


def _x(share: float) -> float:
    """Where a share of the goal stands."""
    low, high = math.log(_SHARES[0]), math.log(_SHARES[-1])
    within = min(max(math.log(max(share, 1e-9)), low), high)
    return round(_LABELS + _SCALE * (within - low) / (high - low), 1)

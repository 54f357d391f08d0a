"""The report of ``nvidia-smi -q -x``: the state of the GPUs, for all driver versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

_MAX_DEPTH = 64


class GpuReportElement:
    """One element of a report: its name, the attributes in its tag, its text, and its children."""

    def __init__(self, name: str, attributes: str = "") -> None:
        self.name = name
        self.attributes = attributes
        self.text = ""
        self.inside: list[GpuReportElement] = []

    def all(self, name: str) -> list[GpuReportElement]:
        """Its children with this name."""
        return [e for e in self.inside if e.name == name]

    def at(self, path: str) -> GpuReportElement | None:
        """The first element at the end of a path of names, or None."""
        element: GpuReportElement | None = self
        for name in path.split("/"):
            element = next(iter(element.all(name)), None) if element else None
        return element

    def value(self, path: str) -> str:
        """The text at the end of a path; empty if there is none."""
        element = self.at(path)
        return element.text.strip().strip("[]") if element else ""

    def texts(self) -> Iterator[str]:
        """All texts in it and in its descendants."""
        yield self.text
        for e in self.inside:
            yield from e.texts()


_PART = r"<(/?)([A-Za-z_][\w.-]{0,99})((?:\s[^<>]{0,500})?)>|<[?!][^<>]{0,500}>"
"""A tag, a comment or a declaration; compiled on use, because every attempt imports this file."""


def parse_gpu_report(report: str) -> GpuReportElement:
    """Parse the output of ``nvidia-smi -q -x``: elements, attributes and text.

    The bundle has no XML parser. This one rejects entities, which no driver declares.

    Args:
        report: the output; text before and after the report is ignored.

    Returns:
        The element ``nvidia_smi_log``.

    Raises:
        ValueError: it is not a complete report; the message gives the reason.
    """
    begin, end = report.find("<nvidia_smi_log"), report.rfind("</nvidia_smi_log>")
    if "<!ENTITY" in report:
        raise ValueError("it declares entities, which drivers never do")
    if begin < 0 or end < begin:
        raise ValueError("it is incomplete" if begin >= 0 else "it is not an XML report")
    root = GpuReportElement("")
    stack, at = [root], begin
    for part in re.compile(_PART).finditer(report, begin, end + len("</nvidia_smi_log>")):
        stack[-1].text += report[at : part.start()]
        at = part.end()
        closes, name, attributes = part[1], part[2], part[3] or ""
        if name is None:
            continue
        if closes:
            if len(stack) == 1 or stack[-1].name != name:
                raise ValueError(f"</{name}> has no opening tag")
            stack.pop()
            continue
        element = GpuReportElement(name, attributes.removesuffix("/"))
        stack[-1].inside.append(element)
        if not attributes.endswith("/"):
            stack.append(element)
        if len(stack) > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
    if len(stack) > 1:
        raise ValueError(f"<{stack[-1].name}> is not closed")
    return root.all("nvidia_smi_log")[0]


def uncorrectable_errors(gpu: GpuReportElement, period: Literal["volatile", "aggregate"]) -> int:
    """The number of a GPU's uncorrectable memory errors; 0 if the driver does not count them.

    Args:
        period: ``volatile`` since the driver was loaded, ``aggregate`` in the GPU's lifetime.

    Drivers before 450 have ``double_bit/total``, later ones ``sram_uncorrectable`` (in two parts
    since 545) and ``dram_uncorrectable``.
    """
    counts = gpu.at(f"ecc_errors/{period}")
    if counts is None:
        return 0
    new = [e for e in counts.inside if re.fullmatch("[a-z]+_uncorrectable(_[a-z]+)?", e.name)]
    texts = [counts.value("double_bit/total"), *(e.text.strip() for e in new)]
    return sum(int(t) for t in texts if re.fullmatch("[0-9]{1,18}", t))

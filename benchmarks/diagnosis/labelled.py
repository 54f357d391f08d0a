"""Labelled logs with their texts: JSON lines, or a CSV file beside a folder of logs."""

from __future__ import annotations

import csv
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.diagnose.lines import Log


class Label(NamedTuple):
    """What a person says of a log.

    Attributes:
        id: its name.
        klass: the class.
        also: other classes that are acceptable.
        retry: whether to run the job again; empty if nobody says.
        framework: what printed it.
        kind: ``excerpt``, ``file`` or ``incident``.
        exit_code: what the job ended with; None if unknown.
        source: where the log is public.
        group: the repository, for cross-validation; the source if that is unknown.
        text_set: the collection that it belongs to.
    """

    id: str
    klass: str
    also: tuple[str, ...] = ()
    retry: str = ""
    framework: str = ""
    kind: str = "excerpt"
    exit_code: int | None = None
    source: str = ""
    group: str = ""
    text_set: str = ""

    def accepts(self, klass: str) -> bool:
        """Whether a class is the label or acceptable."""
        return klass == self.klass or klass in self.also


class LabelledLog(NamedTuple):
    """A label and the texts that it is of."""

    label: Label
    logs: tuple[Log, ...]


def labelled_logs(file: pathlib.Path) -> Iterator[LabelledLog]:
    """The logs of a file of labels.

    Args:
        file: either JSON lines with ``id``, ``class``, and ``text``, ``files`` (name to text) or ``file``
            (a path relative to this file), optionally ``also``, ``retry``, ``framework``, ``kind``,
            ``exit_code``, ``url``, ``repo``; or CSV with ``file``, ``class``, ``exit_code``, ``url``, whose
            logs are below the folder ``logs`` beside it.
    """
    if file.suffix == ".csv":
        with open(file, newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                text = (file.parent / "logs" / row["file"]).read_bytes()
                yield LabelledLog(_of_row(row), (Log(text, row["file"]),))
        return
    with open(file, encoding="utf-8") as f:
        for line in f:
            record = json.loads(line)
            yield LabelledLog(_of_record(record, file.stem), _logs_of(record, file.parent))


def _of_row(row: Mapping[str, str]) -> Label:
    repository = re.match(r"https?://github\.com/([^/\s]+/[^/\s#?]+)", row["url"])
    known = row["exit_code"] and row.get("exit_code_inferred", "") in ("", "0")
    return Label(
        id=row["file"],
        klass=row["class"],
        exit_code=int(row["exit_code"]) if known else None,
        source=row["url"].split()[0],
        group=repository[1] if repository else row["url"],
        text_set="stored",
    )


def _of_record(record: Mapping[str, Any], text_set: str) -> Label:
    return Label(
        id=record["id"],
        klass=record["class"],
        also=tuple(record.get("also") or ()),
        retry=record.get("retry") or "",
        framework=record.get("framework") or "",
        kind=record.get("kind") or "excerpt",
        exit_code=record.get("exit_code"),
        source=record.get("url") or "",
        group=record.get("repo") or record.get("url") or record["id"],
        text_set=text_set,
    )


def _logs_of(record: Mapping[str, Any], folder: pathlib.Path) -> tuple[Log, ...]:
    if record.get("files"):
        return tuple(Log(text.encode(), name) for name, text in record["files"].items())
    if record.get("file"):
        return (Log((folder / record["file"]).read_bytes(), record["file"]),)
    return (Log((record.get("text") or "").encode(), record["id"]),)

"""Writes a document as YAML that OpenPAI's REST server and pairun read alike."""

from __future__ import annotations

from typing import Any

import yaml

from pairun.job.jsyaml import resolve_js
from pairun.playbook.document.scalars import resolve_core


def as_yaml(document: Any) -> str:
    """Plain data as YAML: texts of several lines as blocks, in the original order."""
    text: str = yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=10**9,
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes texts that either dialect would read as a number, a date or a special word."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write aliases out in full: people do not expect anchors in a job file."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if not all(c.isprintable() or c in "\n\t" for c in value):
        # Readers convert line breaks other than \n to \n; escapes keep them.
        style = '"'
    elif "\n" in value:
        style = "|"
    elif type(resolve_js(value)) is not str or type(resolve_core(value)) is not str:
        style = "'"
    elif value in ("y", "Y", "n", "N"):
        style = "'"  # YAML 1.1, which kubectl reads, does not read them as texts, but PyYAML does
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)

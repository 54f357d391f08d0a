"""The job's text in a Framework object, and its user; and which files are jobs of OpenPAI on YARN."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pairun.base.foreignjson import parse_json
from pairun.errors import PairunError, Place, Source
from pairun.playbook.document.reading import MAX_DOCUMENT_BYTES, Node, load_bytes, read_text

API_VERSION = "frameworkcontroller.microsoft.com/v1"
MAX_FRAMEWORK_BYTES = 64 * 1024 * 1024
"""The largest Framework with inflated task statuses; 10,000 tasks need about 10 MiB."""

_JSON_OBJECT = re.compile(r'\s*\{(?s:.*)"(?:apiVersion|kind)"\s*:')
_YAML_OBJECT = re.compile(r"""^["']?(?:apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_API_VERSION = re.compile(r"""^["']?apiVersion["']?[ \t]*:""", re.MULTILINE)
_KIND = re.compile(r"""^["']?kind["']?[ \t]*:""", re.MULTILINE)
_FRAMEWORK = re.compile(r"""\bkind["']?\s*:\s*["']?Framework(?:List)?\b""")
_JOB_KEYS = frozenset({"protocolVersion", "taskRoles", "jobName"})


def job_text(framework: Mapping[str, Any], file: str = "the Framework") -> str:
    """The job file in a Framework, with masked secrets.

    Raises:
        PairunError: it contains no job file.
    """
    try:
        text = framework["metadata"]["annotations"]["config"]
    except (KeyError, TypeError):
        text = None
    if not isinstance(text, str):
        message = f"{file} contains no job: it has no annotation 'config'"
        hint = "only Frameworks of OpenPAI's REST server have it"
        raise PairunError.of("PR704", message, hint=hint)
    return text


def job_source(framework: Mapping[str, Any], file: str = "the Framework") -> Source:
    """The job file in a Framework, as a source for the places of problems.

    Raises:
        PairunError: it contains no job file.
    """
    owner = f"{file}'s" if file == "the Framework" else f"{file},"
    return Source(f"{owner} annotation 'config'", "job", job_text(framework, file))


def user_of(framework: Mapping[str, Any]) -> str:
    """The user who submitted the job, from the labels."""
    labels = framework["metadata"].get("labels")
    user = labels.get("userName") if isinstance(labels, Mapping) else None
    return str(user or "unknown")


def load_input(path: str) -> bytes:
    """Read a file that may be a Framework (``-``: standard input), up to its largest size.

    Raises:
        PairunError: it cannot be opened or read.
    """
    return load_bytes(path, MAX_FRAMEWORK_BYTES)


def framework_in(data: bytes, file: str) -> dict[str, Any] | None:
    """The Framework in a file, as JSON or as ``kubectl get -o yaml`` prints it.

    Returns:
        The object; None if the file is not a Kubernetes object.

    Raises:
        PairunError: it is another kind of object, or cannot be read.
    """
    if len(data) > MAX_FRAMEWORK_BYTES:
        limits = f"{MAX_DOCUMENT_BYTES >> 20} MiB, and than the {MAX_FRAMEWORK_BYTES >> 20} of a Framework"
        raise PairunError.of("PR103", f"{file} is larger than {limits}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None  # the reader of job files reports the place
    parsed = _parsed(text, file)
    if not isinstance(parsed, dict) or not {"apiVersion", "kind"} & parsed.keys():
        return None
    return None if _JOB_KEYS & parsed.keys() else _framework(parsed, file)


def is_manifest(text: str) -> bool:
    """Whether a text seems to contain Kubernetes objects, none of them a Framework.

    Args:
        text: of a file with one or more documents, which may be invalid.
    """
    in_yaml = _API_VERSION.search(text) and _KIND.search(text)
    in_json = _JSON_OBJECT.match(text) and '"apiVersion"' in text and '"kind"' in text
    return bool(in_yaml or in_json) and not _FRAMEWORK.search(text)


def _parsed(text: str, file: str) -> Any:
    """A document that may be a Kubernetes object, as plain data; None for others."""
    if _JSON_OBJECT.match(text):
        try:
            return parse_json(text, strict=True)
        except json.JSONDecodeError as e:
            return _nearly_json(text, file, e)
    if not text.lstrip().startswith("{") and _YAML_OBJECT.search(text):
        return _yaml(text, file) if len(text) <= MAX_DOCUMENT_BYTES else None
    return None


def _yaml(text: str, file: str) -> Any:
    """A YAML document; a manifest with several objects is reported as such."""
    try:
        return read_text(_silent(text, file)).plain()
    except PairunError as e:
        if {p.id for p in e.problems} != {"PR109"} or not is_manifest(text):
            raise
        message = f"{file} is a manifest of Kubernetes with several objects, not a job"
        hint = (
            "use `pairun inject` to add pairun to the Pods of a manifest; the settings of a plain Pod "
            "are reviewed with --init-config and --runtime-config"
        )
        raise PairunError.of("PR735", message, hint=hint) from None


def _nearly_json(text: str, file: str, error: json.JSONDecodeError) -> Any:
    """Read YAML that looks like JSON, such as JSON with an extra comma; else report the error."""
    if len(text) <= MAX_DOCUMENT_BYTES:
        try:
            return read_text(_silent(text, file)).plain()
        except PairunError as e:
            # For a file that is not a Framework, the reader of job files has a better message.
            if API_VERSION not in text and '"Framework"' not in text:
                return None
            if {p.id for p in e.problems} <= {"PR104", "PR106"}:  # depth, a key twice
                raise
    place = Place(_silent(text, file), error.lineno, error.colno)
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    what = "it ends too early" if cut else error.msg
    hint = "check that the file is complete: kubectl get framework NAME -o json > FILE"
    raise PairunError.of("PR736", f"{file} is not JSON: {what}", place, hint)


def _silent(text: str, file: str) -> Source:
    """A source without excerpts, because any line of an object may hold a secret."""
    source = Source(file, "job", text)
    source.hide(1, text.count("\n") + 1)
    return source


def _framework(document: dict[str, Any], file: str) -> dict[str, Any]:
    items = document.get("items")
    if isinstance(items, list) and str(document.get("kind")).endswith("List"):
        if len(items) != 1 or not isinstance(items[0], dict):
            message = f"{file} is a list of {len(items)} objects, not one Framework"
            hint = "save a single one: kubectl get framework NAME -o json"
            raise PairunError.of("PR735", message, hint=hint)
        document = items[0]
    kind, version = document.get("kind"), document.get("apiVersion")
    if (kind, version) != ("Framework", API_VERSION):
        raise PairunError.of(
            "PR735",
            f"{file} is a {kind or 'nameless object'} of {version or 'no apiVersion'}, "
            f"not a Framework of {API_VERSION}",
            hint=None
            if kind in (None, "Framework")
            else "use `pairun inject` to add pairun to the Pods of a manifest",
        )
    return document


def is_yarn(document: Node) -> bool:
    """Whether a document is a job for OpenPAI on YARN."""
    return document.get("protocolVersion") is None and _has_yarn_keys(document)


def is_mixture(document: Node) -> bool:
    """Whether a document has keys of both formats, so that it is neither."""
    return document.get("protocolVersion") is not None and _has_yarn_keys(document)


def _has_yarn_keys(document: Node) -> bool:
    roles = document.get("taskRoles")
    return document.get("jobName") is not None or bool(roles and isinstance(roles.value, list))

"""Values for a reader: secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pairun.module import Secret, reveal
from pairun.plan import EXPAND, Late
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from pairun.playbook.drafts import Setter


def fit(text: str, width: int) -> str:
    """Cut a text to ``width`` characters; an ellipsis marks the cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def count_of(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def known_kind(failure: Mapping[str, Any]) -> str:
    """The kind of a failure; empty if unknown, as for a script that only has an exit code.

    Args:
        failure: the fields of a failure in the journal.
    """
    kind = str(failure.get("kind") or "")
    is_guess = kind == "transient" and failure.get("exit_code") is not None
    return "" if is_guess else kind


def container_texts(*values: Any) -> list[str]:
    """The paths and other texts that only the user's container can expand, each once."""
    texts = (reveal(text) for value in values for text in _known_in_container(value))
    return list(dict.fromkeys(texts))


def _known_in_container(value: Any) -> Iterator[str | Secret]:
    """The texts in a value that only the user's container can expand, such as ``$HOME/x``.

    Args:
        value: the value of an argument or a variable of a planned task.
    """
    if isinstance(value, Late):
        if value.template == EXPAND:
            yield value.vars["text"]
            return
        parameters = value.vars.get("expanded", {})
        for name in re.findall(r"\bexpanded\.(\w+)", value.template):
            yield from _known_in_container(parameters.get(name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _known_in_container(each)
    elif isinstance(value, list):
        for each in value:
            yield from _known_in_container(each)


IN_CONTAINER = "known in the container: "
"""The reason why a value is unknown that only the user's container can expand begins with this."""


def is_late(data: Any) -> bool:
    """Whether plain data is what `shown_data` makes of a late value."""
    return isinstance(data, Mapping) and data.keys() == {"unknown", "template"}


def shown_data(value: Any, vault: Vault) -> Any:
    """Plain data with secrets masked; a late value becomes the reason why it is unknown."""
    if isinstance(value, Secret):
        # Mask only the secret itself: reviewers need the text around it.
        masked = vault.text(value.reveal())
        return masked if masked != value.reveal() else repr(value)
    if isinstance(value, Late):
        texts = vault.text(", ".join(container_texts(value)))
        because = f"{IN_CONTAINER}{texts}" if texts else value.because
        return {"unknown": because, "template": vault.text(value.template)}
    if isinstance(value, Mapping):
        return {k: shown_data(v, vault) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [shown_data(v, vault) for v in value]
    return vault.text(value) if isinstance(value, str) else value


def shown_setter(setter: Setter, path: str, vault: Vault) -> Any:
    """The value that somebody set, as plain data; secrets are masked.

    Args:
        setter: the value.
        path: of the setting; a key such as ``password`` masks the whole value, also if it is too
            short for the vault. So does the name of a parameter.
        vault: masks the rest.
    """
    key = re.split("[ .]", setter.source or path)[-1]
    return shown_data(with_secrets(setter.value, key), vault)


def setter_data(setter: Setter, path: str, vault: Vault) -> dict[str, Any]:
    """A value and who set it, as plain data; the arguments are those of `shown_setter`."""
    value = shown_setter(setter, path, vault)
    return {"value": value, "layer": setter.layer, "where": setter.where}


def source_data(path: str, setter: Setter, vault: Vault) -> dict[str, Any]:
    """A parameter or variable in the value at a path, as plain data; secrets are masked."""
    return {"path": path, **setter_data(setter, path, vault), "source": setter.source}


def override_data(path: str, setter: Setter, before: Setter, vault: Vault) -> dict[str, Any]:
    """An overridden value, as plain data; secrets are masked."""
    was = setter_data(before, path, vault)
    return {"path": path, **setter_data(setter, path, vault), "was": was}

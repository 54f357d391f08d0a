"""Builds HTML safely: every text is escaped, only `element` makes markup."""

from __future__ import annotations

import html


class Html(str):
    """Markup that is safe to put into a page."""

    __slots__ = ()


NOTHING = Html()


def escape(text: str) -> Html:
    r"""Escape a text for an element or a quoted attribute.

    Characters that control a terminal or reverse the text direction become escapes like ``\u202e``.
    """
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
            for c in text
        )
    return Html(html.escape(text, quote=True))


def element(name: str, *children: str, **attributes: str | bool) -> Html:
    """Build an element.

    Args:
        name: its tag name.
        children: markup stays as it is; every other text is escaped.
        attributes: by name, where ``_`` is ``-`` and a last ``_`` is dropped: ``class_``; True is an
            attribute without value, False none.
    """
    opening = name
    for key, value in attributes.items():
        if value is not False:
            attribute = key.removesuffix("_").replace("_", "-")
            opening += f" {attribute}" if value is True else f' {attribute}="{escape(str(value))}"'
    return Html(f"<{opening}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Concatenate markup; every other text is escaped."""
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children))


def facts(pairs: list[tuple[str, str]]) -> Html:
    """A list of names with values; omits pairs without a value."""
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value))
            for name, value in pairs
            if value
        ),
    )

"""The page on a run."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.report.journal.pastinstances import InstancePast
from pairun.report.page.document import asset, document, escape
from pairun.report.page.model import Headline, headline, model


def run_page(instances: Sequence[InstancePast], title: str, problems: Sequence[str]) -> str:
    """The HTML file.

    Args:
        instances: what happened.
        title: what people call the run.
        problems: what could not be read, in sentences.
    """
    shown = headline(instances, title)
    return document(
        f"{shown.title}: {shown.outcome}",
        _body(shown),
        model(instances, problems),
        style=asset("look.css"),
        script=asset("run.js"),
    )


def _body(shown: Headline) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in shown.facts
    )
    advice = f"<p><b>What to do:</b> {escape(shown.advice)}</p>" if shown.advice else ""
    return f"""<header>
<h1><span class="outcome {escape(shown.outcome.replace(" ", "-"))}">{escape(shown.outcome)}</span> {escape(shown.title)}</h1>
<p class="sentence">{escape(shown.sentence)}</p>
{advice}
<dl>{facts}</dl>
</header>
<main id="page">
<noscript><p>The timeline needs JavaScript. The same facts as text: <code>pairun report</code>.</p></noscript>
</main>"""

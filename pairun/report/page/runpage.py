"""The page on a run."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.report.journal.pastinstances import InstancePast
from pairun.report.page.document import assets, document
from pairun.report.page.html import NOTHING, Html, element, facts, joined
from pairun.report.page.model import Headline, headline, model


def run_page(instances: Sequence[InstancePast], title: str, problems: Sequence[str]) -> str:
    """Build the HTML file.

    Args:
        instances: the instances.
        title: the run's name for people.
        problems: what could not be read, in sentences.
    """
    shown = headline(instances, title)
    return document(
        f"{shown.title}: {shown.outcome}",
        _body(shown),
        model(instances, problems),
        style=assets("look.css", "run.css"),
        script=assets("shared.js", "run.js"),
    )


def _body(shown: Headline) -> Html:
    outcome = element("span", shown.outcome, class_=f"outcome {shown.outcome.replace(' ', '-')}")
    advice = element("p", element("b", "What to do:"), f" {shown.advice}")
    no_script = "The timeline needs JavaScript. The same facts as text: "
    return joined(
        element(
            "header",
            element("h1", outcome, f" {shown.title}"),
            element("p", shown.sentence, class_="sentence"),
            advice if shown.advice else NOTHING,
            facts(list(shown.facts)),
        ),
        element(
            "main",
            element("noscript", element("p", no_script, element("code", "pairun report"))),
            id="page",
        ),
    )

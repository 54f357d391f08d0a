"""Late values, arguments and environment of a task, before its first attempt."""

from __future__ import annotations

import pathlib
from typing import Any

from pairun.module import Secret
from pairun.plan import Late


def late(expression: str) -> Late:
    """A value of which only the run can tell."""
    return Late(template=expression, because="a result", expression=True)


def test_results_reach_later_tasks(here: Any) -> None:
    """Arguments and conditions are resolved when the task begins, and keep their types."""
    here.run(
        here.task("a", "result = Result(values={'n': 41, 'go': True})"),
        here.task("b", args={"code": "print(number + 1)", "number": late("results['a']['values']['n']")}),
        here.task("c", "print('went')", when=late("results['a']['values']['go']")),
        here.task("d", "1/0", when=late("not results['a']['values']['go']")),
    )  # fmt: skip
    assert here.lines() == ["42", "went"]
    assert here.end("d")["outcome"] == "skipped"


def test_bad_input_found_late(here: Any) -> None:
    """A late value that does not fit is bad input, not an error of ours."""
    outcome = here.run(
        here.task(args={"code": "", "number": late("'many'")}, exit_codes={"permanent": 252})
    )
    assert (here.end()["kind"], here.end()["fault"]) == ("permanent", "user")
    assert outcome.exit_code == 252
    assert here.of("attempt_begin") == []


def test_a_late_value_that_breaks(here: Any) -> None:
    """An error while resolving is internal, has its trace in the journal, and handlers run."""
    handler = here.task("undo", "print('undone')", events=("failure",))
    outcome = here.run(
        here.task("a", on_exit=(handler,)),
        here.task("b", args={"code": late("1/0")}),
    )
    assert (outcome.failed, here.end("b")["kind"]) == ("b", "internal")
    assert here.lines("undo") == ["undone"]
    assert "ZeroDivisionError" in here.end("b")["trace"]
    assert "Traceback" not in here.console


SHOW = "print(*(ctx.env.get(n) for n in ('A', 'B', 'C')))"


def test_exports_reach_later_tasks(here: Any) -> None:
    """What a task exports is in the environment of later tasks; None removes a variable."""
    here.env |= {"A": "old", "B": "stays"}
    here.run(
        here.task("a", "result = Result(environment={'A': None, 'C': 'new'})"),
        here.task("b", SHOW),
    )
    assert here.lines("b") == ["None stays new"]
    assert here.exports == {"A": None, "C": "new"}


def test_environment_of_one_task(here: Any) -> None:
    """A task's own variables are text as a shell would write them, and stay its own."""
    environment = {"A": True, "B": 3, "C": late("1.5")}
    here.run(here.task("a", SHOW, environment=environment), here.task("b", SHOW))
    assert here.lines() == ["true 3 1.5", "None None None"]


def test_environment_takes_no_lists(here: Any) -> None:
    """A variable that is no text is bad input."""
    here.run(here.task(environment={"A": late("[1]")}))
    assert (here.end()["kind"], here.end()["fault"]) == ("permanent", "user")


def test_a_secret_is_revealed_to_the_process_only(here: Any, tmp_path: pathlib.Path) -> None:
    """A secret variable reaches the task, and stands in no event, journal or output."""
    here.secrets = ["s3cr3t-s3cr3t"]
    code = (
        "assert ctx.env['A'] == 's3cr3t-s3cr3t'; print(ctx.env['A']); "
        "raise Permanent('it was ' + ctx.env['A'], hint=ctx.env['A'])"
    )
    here.run(here.task(code=code, environment={"A": Secret("s3cr3t-s3cr3t")}))
    assert here.end()["kind"] == "permanent"
    assert here.lines() == ["******"]
    for path in ("journal.jsonl", "console"):
        text = (tmp_path / path).read_text()
        assert "******" in text
        assert "s3cr3t" not in text
    assert "s3cr3t" not in str(here.of("output"))

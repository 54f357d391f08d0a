"""What only the container knows is shown as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairun.report.shown import container_texts, shown_data

if TYPE_CHECKING:
    from tests.desk import Desk

PLUGINS = """\
- {plugin: git, parameters: {repo_uri: "https://a/b", clone_dir: $HOME/code}}
- {plugin: tensorboard, parameters: {port: 80, logdir: {a: /logs, b: ~/logs}}}
"""


def test_a_path_with_variables(desk: Desk) -> None:
    """Each variable of a task has the texts that it depends on, and no others."""
    review = desk.valid(desk.job(plugins=PLUGINS))
    git, board = (desk.task(review, i).environment for i in ("git_2", "tensorboard"))
    assert container_texts(git["CLONE_DIR"]) == ["$HOME/code"]
    assert container_texts(board["PORT"]) == []
    assert container_texts(board["LOGDIR_SPEC"]) == ["~/logs"]
    assert container_texts(git, board) == ["$HOME/code", "~/logs"]
    shown = shown_data(git["CLONE_DIR"], review.vault)
    assert shown["unknown"] == "known in the container: $HOME/code"

"""A cluster's own rule that loses its samples to a built-in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.review.lint import lint
from pairun.secrets.vault import Vault

RULE = """\
rules:
  - id: our-reactor
    class: storage_io_error
    patterns: ["CUDA out of memory.*reactor"]
    positive:
      - "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB, reactor 1"
      - "CUDA out of memory on reactor 7"
    negative: ["reactor 7 is on", "no reactor was asked"]
"""


@pytest.mark.parametrize(("weight", "loses"), [("60", True), ("91", False)])
def test_a_rule_that_loses_its_own_sample(tmp_path: Path, weight: str, loses: bool) -> None:
    """A warning names the other rule and a weight that wins."""
    (tmp_path / "diagnosis").mkdir()
    text = RULE.replace("    patterns", f"    weight: {weight}\n    patterns")
    (tmp_path / "diagnosis" / "own.yaml").write_text(text)
    problems = lint([str(tmp_path)], [], Vault()).problems
    assert [p.id for p in problems] == ["PR799"] * loses
    for problem in problems:
        assert "'gpu-out-of-memory' (gpu_oom) decides a sample of 'our-reactor'" in problem.message
        assert "weight: 91" in str(problem.hint)

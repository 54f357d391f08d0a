"""The logs of a folder: whose they are, and that only unexplained ones count."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from pairun.incident.writers import Writer
from pairun.learning.hidden import without_secrets
from pairun.learning.survey import Survey, job_of
from pairun.secrets.vault import Vault
from tests.learning.test_endings import TABLE


@pytest.mark.parametrize(
    ("within", "writer", "job"),
    [
        ("job-7/node-3.log", Writer(3, "node-3", "node-3"), "job-7"),
        ("node-3/job-7.log", Writer(None, "job-7", "node-3"), "job-7"),
        ("node-3/job-7/rank1.log", Writer(1, "rank 1", "node-3"), "job-7"),
        ("train-worker-3.log", Writer(3, "train-worker-3", "train-worker-3"), ""),
        ("train_rank_3.out", Writer(3, "rank 3"), "train"),
        ("slurm-4711.out", Writer(None, "slurm-4711"), "slurm-4711"),
        ("job7_node-3.log.gz", Writer(None, "job7_node-3", "node-3"), "job7"),
    ],
)
def test_the_job_of_a_log(within: str, writer: Writer, job: str) -> None:
    """By its folder or its file, without node and rank."""
    assert job_of(within, writer) == job


@pytest.mark.parametrize(
    ("form", "extent", "points_at"),
    [
        ("job-10{n}/train.log", "4 logs, 4 jobs", ""),
        ("job-10{n}.log", "4 logs, 4 jobs", ""),
        ("run-{n}/stdout.log", "4 logs, 4 jobs", ""),
        ("88321{n}/stdout.log", "4 logs, 4 jobs", ""),
        ("bert-{n}/attempt_0/train.log", "4 logs, 4 jobs", ""),
        ("bert-{n}/rank0.log", "4 logs, 4 jobs", ""),
        ("job-7/train-{n}.log", "4 logs, 1 job", ""),
        ("job-10{n}/node-7.log", "4 logs, 1 node, 4 jobs", "4 jobs on node-7: points at the node"),
        ("node-7/job-10{n}.log", "4 logs, 1 node, 4 jobs", "4 jobs on node-7: points at the node"),
        ("job-7/node-{n}.log", "4 logs, 4 nodes, 1 job", "4 nodes: points at the job, not at a node"),
    ],
)  # fmt: skip
def test_the_name_of_a_job_is_no_node(
    form: str, extent: str, points_at: str, tmp_path: Path
) -> None:
    """A folder or file with a number is a node only if its name or the log says so."""
    for n in range(4):
        path = tmp_path / form.format(n=n)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"FATAL: quark lease 0x100{n} revoked\n")
    survey = Survey()
    survey.read(str(tmp_path), TABLE, lambda line: line)
    (cluster,) = survey.clusters.largest(9)
    assert (cluster.extent, cluster.points_at) == (extent, points_at)


def test_only_unexplained_logs_are_clustered(tmp_path: Path) -> None:
    """Of all logs, also compressed and cut ones; links are not followed, empty files are named."""
    for n in range(4):
        (tmp_path / f"job-{n}").mkdir()
        (tmp_path / f"job-{n}" / "node-7.log").write_text(f"FATAL: reactor {n} scrammed\n")
    (tmp_path / "ok.log").write_text("step 1/9 loss: 0.1\ntraining completed successfully\n")
    (tmp_path / "oom.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n")
    (tmp_path / "z.log.gz").write_bytes(gzip.compress(b"FATAL: reactor 99 scrammed\n"))
    (tmp_path / "empty.log").touch()
    (tmp_path / "link.log").symlink_to("job-0/node-7.log")
    noise = os.urandom(9000).hex().encode()
    cut = gzip.compress(b"FATAL: reactor 5 scrammed\n", mtime=0) + gzip.compress(noise)[:5000]
    (tmp_path / "cut.log.gz").write_bytes(cut)
    survey = Survey()
    survey.read(str(tmp_path), TABLE, lambda line: line)
    assert (survey.logs, survey.unexplained) == (9, 6)
    (cluster,) = survey.clusters.largest(9)
    assert cluster.template == "FATAL: reactor <number> scrammed"
    assert cluster.count == 6
    assert cluster.points_at == "4 jobs on node-7: points at the node"
    assert "training completed successfully" in survey.healthy


def test_lines_of_healthy_logs_are_printable_and_masked(tmp_path: Path) -> None:
    """They become negative samples, and a rules file takes no control characters."""
    line = "epoch\x01 done password=S3cretWord " + "x" * 2000
    (tmp_path / "a.log").write_text(f"{line}\ntraining completed successfully\n")
    survey = Survey()
    survey.read(str(tmp_path), TABLE, lambda text: without_secrets(text, Vault()))
    text = survey.healthy[0]
    assert text.isprintable()
    assert "S3cretWord" not in text
    assert len(text) <= 400

"""The module gang_environment: what torchrun, MPI and JAX need, and never over the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Permanent

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def cluster(folder: Path, *hosts: str | None, own: int = 1) -> None:
    """Write what init leaves of a gang of one leader and workers."""
    instances: list[dict[str, Any]] = [
        {"index": i, "host_ip": h, "ports": {}} for i, h in enumerate(hosts[1:])
    ]
    data: dict[str, Any] = {
        "own": {"role": "worker", "index": own},
        "roles": [
            {
                "fc_name": "leader",
                "name": "leader",
                "instances": [{"index": 0, "host_ip": hosts[0], "ports": {}}],
            },
            {"fc_name": "worker", "name": "worker", "instances": instances},
        ],
    }
    (folder / "runtime.d").mkdir(exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    (folder / "runtime.d" / "cluster.json").write_text(json.dumps(data))


def exported(
    harness: Harness, env: dict[str, str] | None = None, **args: Any
) -> dict[str, str | None]:
    """The variables that the module exports."""
    outcome = harness.run_once("gang_environment", args, env)
    assert outcome.result is not None, outcome
    return dict(outcome.result.environment)


def test_torchrun(harness: Harness) -> None:
    """The leader is rank 0; the second worker of three instances is rank 2."""
    cluster(harness.pai_dir, "10.0.0.1", "10.0.0.2", "10.0.0.3")
    assert exported(harness, styles=["torchrun"]) == {
        "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "3", "RANK": "2",
        "PET_MASTER_ADDR": "10.0.0.1", "PET_MASTER_PORT": "29500", "PET_NNODES": "3",
        "PET_NODE_RANK": "2",
    }  # fmt: skip


def test_the_users_own_variables_win(harness: Harness) -> None:
    """A variable of the container stays what it is."""
    cluster(harness.pai_dir, "10.0.0.1", "10.0.0.2", own=0)
    assert exported(harness, {"JAX_PROCESS_ID": "7"}, styles=["jax"]) == {
        "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234", "JAX_NUM_PROCESSES": "2",
    }  # fmt: skip


def test_mpi(harness: Harness) -> None:
    """MPI's programs find a file with every host."""
    cluster(harness.pai_dir, "10.0.0.1", "10.0.0.2", own=0)
    variables = exported(harness, styles=["mpi"], slots=8)
    path = variables["OMPI_MCA_orte_default_hostfile"]
    assert path is not None
    assert Path(path).read_text() == "10.0.0.1 slots=8\n10.0.0.2 slots=8\n"


@pytest.mark.parametrize("hosts", [("10.0.0.1", None), ("10.0.0.1", "a b")])
def test_a_missing_address(harness: Harness, hosts: tuple[str | None, ...]) -> None:
    """Without every address there is nothing to export."""
    cluster(harness.pai_dir, *hosts, own=0)
    failure = harness.run_once("gang_environment", {"styles": ["jax"]}).failure
    assert isinstance(failure, Permanent)


def test_wrong_arguments(harness: Harness) -> None:
    """No style, and a port that there is not, are errors before anything runs."""
    wrong: list[dict[str, Any]] = [
        {"styles": []}, {"styles": ["jax"], "jax_port": 0}, {"styles": ["mpi"], "slots": 0},
    ]  # fmt: skip
    assert all(harness.problems("gang_environment", args) for args in wrong)

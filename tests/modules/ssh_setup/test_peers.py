"""The aliases of the instances."""

from __future__ import annotations

from tests.modules.ssh_setup.conftest import Place


def test_aliases_lead_to_the_instances(bundled: Place) -> None:
    """By the raw and the sanitised name, with the environment of the job, a second run included."""
    value = "a 'b'\n" + "x" * 5000
    many = {f"PAI_VARIABLE_{n}": str(n) for n in range(3000)}
    done = bundled.run({"jobssh": "true"}, SOME=value, **many)
    assert done.result.environment["PATH"].startswith(f"{bundled.harness.pai_dir}/tools/ssh:")
    for alias in ("workera-1", "worker_A-1", "ps-0"):
        said = bundled.ssh(alias, 'printf "%s" "$SOME$PAI_VARIABLE_2999"; which ssh >&2')
        assert said.returncode == 0, said.stderr
        assert said.stdout == f"{value}2999"
        assert said.stderr == f"{bundled.harness.pai_dir}/tools/ssh/ssh\n"


def test_names_that_are_taken(bundled: Place) -> None:
    """Of two instances with one name the first has it, and the other is told of."""
    bundled.cluster([("a_b", "ab", 1), ("ab", "x", 1)])
    bundled.run({"jobssh": True})
    config = (bundled.folder / "config").read_text()
    assert "Host ab-0 a_b-0\n" in config
    assert "Host x-0\n" in config
    assert any("the alias ab-0 belongs to another instance" in line for line in bundled.harness.log)


def test_peers_without_an_address(bundled: Place) -> None:
    """Who is not there yet has no alias, and is counted."""
    bundled.cluster([("worker", "worker", 3)], host=None)
    bundled.run({"jobssh": True})
    assert "Host " not in (bundled.folder / "config").read_text()
    assert any("3 instances have no address" in line for line in bundled.harness.log)

"""`pairun inject` on the command line: files, folders, standard input, wrong usage."""

from __future__ import annotations

import pytest
import yaml

from tests.cli.conftest import Shell

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: main, image: a, command: [b]}]}
"""


def test_a_folder_is_one_manifest(shell: Shell) -> None:
    """The manifests of a folder come out as documents of one, in the order of their names."""
    folder = shell.tmp / "manifests"
    (folder / "more").mkdir(parents=True)
    (folder / "b.yaml").write_text(POD.replace("NAME", "second"))
    (folder / "a.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first"}, '
                                   '"spec": {"containers": [{"name": "m", "image": "a", "command": ["b"]}]}}')  # fmt: skip
    (folder / "more" / "c.yml").write_text(POD.replace("NAME", "third"))
    (folder / "README.md").write_text("no manifest")
    out = shell("inject", "--image", "pairun:1", folder).out
    assert [d["metadata"]["name"] for d in yaml.safe_load_all(out)] == ["first", "second", "third"]
    assert out.count("PAIRUN_INJECTED") == 3


USAGE = [
    (("--hold", "30"), "--hold 30 is not a duration"),
    (("--entrypoint", "'"), "--entrypoint"),
    (("--init-resources", "cpu"), "'cpu' is not NAME=VALUE"),
    (("--init-resources", "cpu=lots"), "'lots' is not a quantity for cpu"),
    (("--ssh",), "--ssh has no effect without --barrier"),
    (("--barrier", "--gang", "1"), "--gang 1 is not the size of a gang"),
    (("--barrier", "--selector", "a=b"), "--selector needs --gang"),
    (("--barrier", "--index-label", "a"), "--index-label needs --gang N"),
    (
        ("--barrier", "--gang", "2", "--selector", "a=b", "--index-label", "a'"),
        "not the key of a label",
    ),
    (("--barrier", "--ssh", "--key-secret", "none"), "--ssh derives its keys"),
]


@pytest.mark.parametrize(("options", "message"), USAGE)
def test_wrong_usage(shell: Shell, options: tuple[str, ...], message: str) -> None:
    """What cannot be meant is an error that says so, with exit code 2."""
    path = shell.tmp / "pod.yaml"
    path.write_text(POD)
    said = shell("inject", "--image", "pairun:1", *options, path)
    assert (said.code, message in said.err) == (2, True), said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [((), "the init container has no image"), (("--image", "a b"), "'a b' is not an image")],
)
def test_no_image(shell: Shell, options: tuple[str, ...], message: str) -> None:
    """A missing or wrong image is the same error as of `pairun manifest`, with exit code 1."""
    said = shell("inject", *options, shell.file("pod.yaml", POD))
    assert (said.code, said.ids, message in said.err) == (1, ["PR782"], True), said.err


def test_a_hold_beyond_the_policy(shell: Shell) -> None:
    """It is refused once, by the name of the option, and not as a task that nobody wrote."""
    two = POD + "---\n" + POD.replace("NAME", "second")
    said = shell("inject", "--image", "pairun:1", "--hold", "99h", shell.file("pods.yaml", two))
    assert (said.code, said.ids) == (1, ["PR402"])
    assert "--hold 99h is longer than the policy allows" in said.err
    assert "at most 30m" in said.err
    assert "deadline" not in said.err


def test_a_misspelt_command(shell: Shell) -> None:
    """A field that nearly is `command` is named, and no registry is asked."""
    path = shell.file("pod.yaml", POD.replace("command", "commnad"))
    said = shell("inject", "--image", "pairun:1", path)
    assert (said.code, said.ids) == (1, ["PR821"])
    assert "unknown field 'commnad'" in said.err
    assert "did you mean 'command'?" in said.err


def test_a_refusal_prints_no_manifest(shell: Shell) -> None:
    """Where pairun cannot be put in, nothing is printed that somebody could apply."""
    path = shell.tmp / "map.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    said = shell("inject", "--image", "pairun:1", path)
    assert (said.code, said.out) == (1, "")
    assert "PR820" in said.err


def test_a_job_file_is_no_manifest(shell: Shell) -> None:
    """The help names the command for jobs; a removal says that there was nothing to remove."""
    job = shell.job()
    said = shell("inject", "--image", "pairun:1", job)
    assert (said.code, said.out, said.ids) == (1, "", ["PR820"])
    assert "pairun manifest" in said.err
    said = shell("inject", "--remove", job)
    assert (said.code, said.out, said.ids) == (0, job.read_text(), ["PR820"])
    assert "nothing was removed" in said.err
    assert "pairun manifest" in said.err


def test_a_byte_order_mark_and_line_ends_stay(shell: Shell) -> None:
    """A file of Windows comes back as it was."""
    text = "\ufeff" + POD.replace("\n", "\r\n")
    path = shell.file("pod.yaml", text)
    made = shell("inject", "--image", "pairun:1", path)
    assert "\r\n" in made.out
    again = shell.file("injected.yaml", made.out)
    assert shell("inject", "--remove", again).out == text

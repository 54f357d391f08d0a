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
    ((), "the init container has no image"),
    (("--image", "a b"), "'a b' is no image"),
    (("--hold", "30"), "--hold 30 is not a duration"),
    (("--entrypoint", "'"), "--entrypoint"),
    (("--init-resources", "cpu"), "'cpu' is not NAME=VALUE"),
    (("--ssh",), "--ssh has no effect without --barrier"),
    (("--barrier", "--gang", "1"), "--gang 1 is no gang"),
    (("--barrier", "--selector", "a=b"), "--selector needs --gang"),
    (("--barrier", "--ssh", "--key-secret", "none"), "--ssh makes its keys"),
]


@pytest.mark.parametrize(("options", "message"), USAGE)
def test_wrong_usage(shell: Shell, options: tuple[str, ...], message: str) -> None:
    """What cannot be meant is an error that says so, with exit code 2."""
    path = shell.tmp / "pod.yaml"
    path.write_text(POD)
    image = () if not options or "--image" in options else ("--image", "pairun:1")
    said = shell("inject", *image, *options, path)
    assert (said.code, message in said.err) == (2, True), said.err


def test_a_refusal_prints_no_manifest(shell: Shell) -> None:
    """Where pairun cannot be put in, nothing is printed that somebody could apply."""
    path = shell.tmp / "map.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    said = shell("inject", "--image", "pairun:1", path)
    assert (said.code, said.out) == (1, "")
    assert "PR820" in said.err


def test_a_byte_order_mark_and_line_ends_stay(shell: Shell) -> None:
    """A file of Windows comes back as it was."""
    text = "\ufeff" + POD.replace("\n", "\r\n")
    path = shell.file("pod.yaml", text)
    made = shell("inject", "--image", "pairun:1", path)
    assert "\r\n" in made.out
    again = shell.file("injected.yaml", made.out)
    assert shell("inject", "--remove", again).out == text

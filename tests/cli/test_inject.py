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
    (folder / "more" / "d.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: fourth}\n"
    )
    said = shell("inject", "--image", "pairun:1", folder)
    names = [d["metadata"]["name"] for d in yaml.safe_load_all(said.out)]
    assert names == ["first", "second", "third", "fourth"]
    assert said.out.count("PAIRUN_INJECTED") == 3
    assert "left alone  Service fourth: no Pod template" in said.err


USAGE = [
    (("--entrypoint", "'"), "--entrypoint"),
    (("--init-resources", "cpu"), "'cpu' is not NAME=VALUE"),
    (("--init-resources", "cpu=lots"), "'lots' is not a quantity for cpu"),
    (("--env", "ssh"), "--env has no effect without --barrier"),
    (("--use", "Secret/a"), "--use Secret has no effect without --barrier"),
    (("--use", "Pod/a"), "'Pod/a' is no object that pairun can use"),
    (("--pod-group", "A b"), "'A b' is not the name of a PodGroup"),
    (("--barrier", "--gang", "1"), "--gang 1 is not the size of a gang"),
    (("--barrier", "--gang", "4,a=b,c,d"), "is not KEY=VALUE,... and one KEY of a label"),
    (("--barrier", "--gang", "2,a=b,a'"), "is not KEY=VALUE,... and one KEY of a label"),
    (("--selector", "a=b"), "write --gang N,a=b"),
    (("--index-label", "a"), "write --gang N,a"),
    (("--diagnose",), "omit it: it is the default"),
    (("--ssh",), "write --env ssh"),
    (("--service-account", "a"), "write --use ServiceAccount/a"),
    (("--key-secret", "none"), "write --use Secret/none"),
    (("--auth", "a"), "set DOCKER_CONFIG"),
    (("--hold", "30m"), "as docs/pid1.md shows"),
    (("--root", "a"), "set PAIRUN_PATH to a"),
    (("--barrier", "--env", "ssh", "--use", "Secret/none"), "--env ssh derives its keys"),
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


def test_a_playbook_beyond_the_policy(shell: Shell) -> None:
    """Each mistake has its place in the file, once for all templates."""
    two = POD + "---\n" + POD.replace("NAME", "second")
    tasks = "- patch: user_command\n  timeout: 1s\n- patch: nonesuch\n"
    playbook = shell.file("changes.yaml", f"# mine\nruntime:\n{tasks}")
    path = shell.file("pods.yaml", two)
    said = shell("inject", "--image", "pairun:1", "--playbook", playbook, path)
    assert (said.code, said.out) == (1, "")
    assert said.err.count("error[") == 2
    assert "changes.yaml:4:3" in said.err
    assert "changes.yaml:5:10" in said.err


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

"""``pairun inject FILE``: a manifest of any workload with pairun in its Pod templates."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from pairun.base.durations import parse_duration
from pairun.cli.options import add_roots
from pairun.errors import PairunError, Problem, Problems, Source
from pairun.inject.injecting import inject, uninject
from pairun.inject.options import DEFAULT_RESOURCES, Options
from pairun.playbook.document.reading import read_file
from pairun.playbook.document.texts import decode, load_bytes
from pairun.report.problems import print_problems

IMAGE = "PAIRUN_IMAGE"
_ENDINGS = (".yaml", ".yml", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", nargs="?", default="-",
                        help="the manifest, or a folder of manifests (default: -, standard input)")  # fmt: skip
    parser.add_argument("--remove", action="store_true", help="take pairun out again")
    parser.add_argument("--image", metavar="IMAGE",
                        help=f"pairun's image, for the init container (default: ${IMAGE})")  # fmt: skip
    parser.add_argument("--container", metavar="NAME",
                        help="the main container, where a Pod has several")  # fmt: skip
    parser.add_argument("--entrypoint", metavar="COMMAND",
                        help="what images run whose containers have no command")  # fmt: skip
    parser.add_argument("--diagnose", action="store_true",
                        help="PID 1 and its diagnosis alone: the default")  # fmt: skip
    parser.add_argument("--hold", metavar="TIME", default="",
                        help="keep a failed container for this long, as 30m")  # fmt: skip
    parser.add_argument("--playbook", metavar="FILE",
                        help="changes of the playbooks, as in extras.pairun of a job")  # fmt: skip
    parser.add_argument("--init-resources", metavar="NAME=QUANTITY,...",
                        help="requests and limits of the init container; none for no such fields")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the manifest; 0 when pairun is in it, else 1."""
    sources = list(_sources(args.file))
    problems = Problems()
    if args.remove:
        texts = [uninject(source) for source in sources]
    else:
        options = _options(args)
        texts = [inject(source, options, problems) for source in sources]
    print_problems(problems, args.vault)
    if problems.errors:
        return 1
    sys.stdout.write(_joined(texts))
    return 0


def _sources(path: str) -> list[Source]:
    if not os.path.isdir(path):
        return [decode(load_bytes(path), path, "job")]
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(_ENDINGS)
    )
    if not paths:
        hint = f"manifests end with {', '.join(_ENDINGS)}"
        raise PairunError(Problem("PR108", f"{path} has no manifest", hint=hint))
    return [decode(load_bytes(p), p, "job") for p in paths]


def _joined(texts: list[str]) -> str:
    """Several manifests as the documents of one."""
    out = texts[0]
    for text in texts[1:]:
        out += ("" if out.endswith("\n") else "\n") + "---\n" + text
    return out


def _options(args: argparse.Namespace) -> Options:
    problems = Problems()
    image = args.image or os.environ.get(IMAGE, "")
    if not image or image.split() != [image]:
        problems.error(
            "PR801",
            f"'{image}' is no image" if image else "the init container has no image",
            hint=f"give pairun's image, as the cluster pulls it, with --image or {IMAGE}",
        )
    if args.hold and parse_duration(args.hold) is None:
        problems.error("PR801", f"--hold {args.hold} is not a duration", hint="as in 30m")
    entrypoint = None
    if args.entrypoint is not None:
        try:
            entrypoint = shlex.split(args.entrypoint)
        except ValueError as e:
            problems.error("PR801", f"--entrypoint: {e}")
        if entrypoint == []:
            problems.error("PR801", "--entrypoint has no word")
    resources = _resources(args.init_resources, problems)
    problems.raise_errors()
    return Options(
        image=image,
        container=args.container,
        entrypoint=entrypoint,
        hold=args.hold,
        playbook=_playbook(args.playbook),
        resources=resources,
    )


def _resources(text: str | None, problems: Problems) -> Mapping[str, Any]:
    if text is None:
        return DEFAULT_RESOURCES
    if text == "none":
        return {}
    values = {}
    for pair in text.split(","):
        name, equals, quantity = pair.partition("=")
        if not (name and equals and quantity):
            hint = "as in cpu=100m,memory=256Mi"
            problems.error("PR801", f"--init-resources: '{pair}' is not NAME=QUANTITY", hint=hint)
        values[name] = quantity
    return {"requests": values, "limits": values}


def _playbook(path: str | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    node = read_file(path, "job")
    if not isinstance(node.value, dict) or not set(node.value) <= {"vars", "init", "runtime"}:
        raise PairunError(
            Problem(
                "PR801",
                f"--playbook {path} is no mapping of vars, init and runtime",
                node.place,
                "it has what stands under extras.pairun of a job",
            )
        )
    plain: Mapping[str, Any] = node.plain()
    return plain

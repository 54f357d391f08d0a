"""``pairun inject FILE``: add pairun to the Pod templates in a manifest of any workload."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from pairun.base.durations import format_duration, parse_duration
from pairun.base.sizes import QUANTITY
from pairun.cli.options import add_roots
from pairun.errors import PairunError, Problem, Problems, Source
from pairun.inject.imagecommand import Registries
from pairun.inject.injecting import inject, uninject
from pairun.inject.options import DEFAULT_RESOURCES, Options
from pairun.inject.playbookplaces import in_playbook
from pairun.inject.resourcelist import KIND, is_resource_list, options_of
from pairun.inject.treereading import read_tree
from pairun.kube.labels import LABEL_KEY
from pairun.playbook.document.reading import read_file
from pairun.playbook.document.texts import decode, load_bytes
from pairun.report.problems import print_problems

IMAGE = "PAIRUN_IMAGE"
_NOTHING = "none"
_MARK = "\ufeff"
"""The byte order mark that some editors write at the beginning of a file."""
_ENDINGS = (".yaml", ".yml", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", nargs="?", default="-",
                        help="the manifest, or a folder of manifests (default: -, standard input)")  # fmt: skip
    parser.add_argument("--remove", action="store_true", help="remove pairun from the manifest")
    parser.add_argument("--image", metavar="IMAGE",
                        help=f"pairun's image, for the init container (default: ${IMAGE})")  # fmt: skip
    parser.add_argument("--container", metavar="NAME",
                        help="the main container, if a Pod has several")  # fmt: skip
    parser.add_argument("--entrypoint", metavar="COMMAND",
                        help="the command of containers that have none, instead of asking the registry")  # fmt: skip
    parser.add_argument("--auth", metavar="FILE",
                        help="registry logins, to look up the commands of images "
                        "(default: ~/.docker/config.json)")  # fmt: skip
    parser.add_argument("--diagnose", action="store_true",
                        help="add PID 1 and its diagnosis only (the default)")  # fmt: skip
    parser.add_argument("--barrier", action="store_true",
                        help="wait until all Pods of the gang have addresses")  # fmt: skip
    parser.add_argument("--ssh", action="store_true",
                        help="let the Pods of the gang reach each other by ssh; needs --barrier")  # fmt: skip
    parser.add_argument("--events", action="store_true",
                        help="report incomplete gangs and failed commands as Events")  # fmt: skip
    parser.add_argument("--env", action="append", choices=("torchrun", "mpi", "jax"), default=[],
                        help="set the gang's variables for this launcher; needs --barrier")  # fmt: skip
    parser.add_argument("--gang", type=int, metavar="N",
                        help="the number of Pods of the gang, if the kind has no such field")  # fmt: skip
    parser.add_argument("--selector", metavar="KEY=VALUE,...",
                        help="with --gang: labels of the gang's Pods "
                        "(default: those of the kind or of the Pod template)")  # fmt: skip
    parser.add_argument("--index-label", metavar="KEY",
                        help="with --gang: the label that holds a Pod's index, from 0 "
                        "(default: the end of the Pod's name)")  # fmt: skip
    parser.add_argument("--service-account", metavar="NAME",
                        help="the init container's service account, which may get and list Pods "
                        "(default: pairun adds one)")  # fmt: skip
    parser.add_argument("--key-secret", metavar="NAME",
                        help="a Secret with the 'key' that the gang's Pods share; none for no key "
                        "(default: pairun adds one)")  # fmt: skip
    parser.add_argument("--hold", metavar="TIME", default="",
                        help="keep a failed container for this long, such as 30m")  # fmt: skip
    parser.add_argument("--playbook", metavar="FILE",
                        help="overrides of the playbooks, in the form of extras.pairun")  # fmt: skip
    add_roots(parser, "a content root of the cluster, to hold --playbook against its policy")
    parser.add_argument("--init-resources", metavar="NAME=QUANTITY,...",
                        help="requests and limits of the init container; none to set neither")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the manifest; returns 0 if it contains pairun, else 1."""
    read = _read(args.file)
    sources = [decode(data, path, "manifest") for path, data in read]
    problems = Problems()
    if KIND in sources[0].text and is_resource_list(tree := read_tree(sources[0])):
        args = _configured(args, options_of(tree, _option_names()))
    if args.remove:
        texts = [uninject(source, problems) for source in sources]
    else:
        options = _options(args, Registries(os.environ, args.vault, args.auth))
        texts = [inject(source, options, problems) for source in sources]
        if (args.playbook or args.hold or args.root) and not problems.errors:
            _review(sources, texts, args, problems)
    print_problems(problems, args.vault)
    if problems.errors:
        return 1
    # Keep the mark that reading removed: only pairun's additions may differ.
    sys.stdout.write((_MARK if read[0][1].startswith(_MARK.encode()) else "") + _joined(texts))
    return 0


def _option_names() -> list[str]:
    """The long options, without their dashes."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    strings = [s for action in parser._actions for s in action.option_strings]
    return [s.removeprefix("--") for s in strings if s.startswith("--")]


def _configured(args: argparse.Namespace, options: list[str]) -> argparse.Namespace:
    """The arguments of a KRM function: its configuration overrides the command's own."""
    parser = argparse.ArgumentParser(prog="functionConfig", add_help=False)
    add_arguments(parser)
    parser.set_defaults(**vars(args))
    # Builds of manifests must be reproducible, and a new key is not.
    if args.key_secret is None:
        parser.set_defaults(key_secret=_NOTHING)
    configured = parser.parse_args([*options, "--", args.file])
    if not configured.barrier and configured.key_secret == _NOTHING:
        configured.key_secret = None
    return configured


def _review(
    sources: list[Source], texts: list[str], args: argparse.Namespace, problems: Problems
) -> None:
    """Check a person's playbook changes against the layers and the policy of a cluster."""
    from pairun.playbook.content import open_content
    from pairun.playbook.effective import Layers
    from pairun.review.injectedreview import review_injected
    from pairun.review.settings import NO_SETTINGS

    layers = Layers(open_content(args.root, os.environ))
    longest = layers.policy.longest("hold_max")
    if longest and (parse_duration(args.hold or "0s") or 0) > longest[0]:
        # The review would show the generated task, once per template.
        problems.error(
            "PR402",
            f"--hold {args.hold} is longer than the policy allows",
            hint=f"at most {format_duration(longest[0])}",
            also=[("the policy", longest[1])],
        )
        return
    playbook = None if args.playbook is None else read_file(args.playbook, "job")
    for source, text in zip(sources, texts, strict=True):
        made = Source(f"output of {source.file}", source.layer, text)
        for review in review_injected(made, layers, "user", NO_SETTINGS, vault=args.vault):
            found = review.problems
            problems.extend(p if playbook is None else in_playbook(p, playbook) for p in found)


def _read(path: str) -> list[tuple[str, bytes]]:
    """Read the manifests of a file or a folder; returns them with their paths."""
    if not os.path.isdir(path):
        return [(path, load_bytes(path))]
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(_ENDINGS)
    )
    if not paths:
        hint = f"manifests end with {', '.join(_ENDINGS)}"
        raise PairunError(Problem("PR108", f"{path} has no manifest", hint=hint))
    return [(p, load_bytes(p)) for p in paths]


def _joined(texts: list[str]) -> str:
    """Join several manifests into one stream of documents."""
    out = texts[0]
    for text in texts[1:]:
        out += ("" if out.endswith("\n") else "\n") + "---\n" + text
    return out


def _options(args: argparse.Namespace, registries: Registries) -> Options:
    problems = Problems()
    image = args.image or os.environ.get(IMAGE, "")
    if not image or image.split() != [image]:
        problems.error(
            "PR782",
            f"'{image}' is not an image" if image else "the init container has no image",
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
    selector = _pairs("--selector", args.selector, problems)
    _check_gang(args, selector, problems)
    resources = _resources(args.init_resources, problems)
    problems.raise_errors()
    return Options(
        image=image,
        container=args.container,
        entrypoint=entrypoint,
        ask=registries.ask,
        hold=args.hold,
        playbook=_playbook(args.playbook),
        resources=resources,
        barrier=args.barrier,
        ssh=args.ssh,
        events=args.events,
        env=list(dict.fromkeys(args.env)),
        gang=args.gang,
        selector=selector,
        index_label=args.index_label,
        service_account=args.service_account,
        key_secret=None if args.key_secret == _NOTHING else args.key_secret or "",
    )


def _check_gang(args: argparse.Namespace, selector: Mapping[str, str], problems: Problems) -> None:
    if not args.barrier:
        for name in (
            "ssh",
            "env",
            "gang",
            "selector",
            "index_label",
            "service_account",
            "key_secret",
        ):
            if getattr(args, name) and not (args.events and name == "service_account"):
                option = f"--{name.replace('_', '-')}"
                problems.error("PR801", f"{option} has no effect without --barrier")
    if args.gang is not None and args.gang < 2:
        problems.error(
            "PR801", f"--gang {args.gang} is not the size of a gang", hint="give 2 Pods or more"
        )
    if selector and args.gang is None:
        problems.error("PR801", "--selector needs --gang N")
    if args.index_label is not None:
        if args.gang is None:
            problems.error("PR801", "--index-label needs --gang N")
        if not re.fullmatch(LABEL_KEY, args.index_label):
            problems.error("PR801", f"--index-label '{args.index_label}' is not the key of a label")
    if args.ssh and args.key_secret == _NOTHING:
        problems.error(
            "PR801", "--ssh derives its keys from the gang's key, but --key-secret is none"
        )


def _resources(text: str | None, problems: Problems) -> Mapping[str, Any]:
    if text is None:
        return DEFAULT_RESOURCES
    if text == _NOTHING:
        return {}
    values = _pairs("--init-resources", text, problems)
    for name, value in values.items():
        if not re.fullmatch(QUANTITY, value):
            problems.error(
                "PR801",
                f"--init-resources: '{value}' is not a quantity for {name}",
                hint="as in cpu=100m,memory=256Mi",
            )
    return {"requests": values, "limits": values}


def _pairs(option: str, text: str | None, problems: Problems) -> dict[str, str]:
    pairs = {}
    for pair in text.split(",") if text else ():
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            problems.error("PR801", f"{option}: '{pair}' is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _playbook(path: str | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    node = read_file(path, "job")
    if not isinstance(node.value, dict) or not set(node.value) <= {"vars", "init", "runtime"}:
        raise PairunError(
            Problem(
                "PR801",
                f"--playbook {path} is not a mapping of vars, init and runtime",
                node.place,
                "write the content of extras.pairun of a job",
            )
        )
    plain: Mapping[str, Any] = node.plain()
    return plain

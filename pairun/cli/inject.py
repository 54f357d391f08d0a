"""``pairun inject FILE``: add pairun to the Pod templates in a manifest of any workload."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from pairun.base.escapes import visible
from pairun.base.sizes import QUANTITY
from pairun.cli.options import add_removed
from pairun.engines.manifest.choices import IMAGE, check_image
from pairun.errors import PairunError, Problem, Problems
from pairun.inject.imagecommand import Registries
from pairun.inject.injecting import inject, uninject
from pairun.inject.options import DEFAULT_RESOURCES, InjectOptions
from pairun.inject.resourcelist import KIND, is_resource_list, options_of
from pairun.inject.tree import Tree
from pairun.inject.treereading import read_tree
from pairun.kube.labels import LABEL_KEY, OBJECT_NAME
from pairun.playbook.document.reading import read_file
from pairun.playbook.document.texts import decode, load_bytes
from pairun.report.problems import print_problems

ACCOUNT, SECRET = "ServiceAccount", "Secret"
"""The kinds of objects that `--use` names."""
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
    parser.add_argument("--container", metavar="[NAME=]CONTAINER", action="append", default=[],
                        help="the main container, where a Pod has several; NAME is of a role or an object")  # fmt: skip
    parser.add_argument("--entrypoint", metavar="[NAME=]COMMAND", action="append", default=[],
                        help="the command of containers that have none, instead of asking the registry; "
                        "NAME is of a container, a role or an object")  # fmt: skip
    parser.add_argument("--only", metavar="KIND/NAME", action="append", default=[],
                        help="inject this object and leave others alone; annotated for those with the "
                        "annotation pairun.io/inject: 'true'; may be repeated")  # fmt: skip
    parser.add_argument("--kind-template", metavar="PATH", action="append", default=[],
                        help="the path of a Pod template in a kind that pairun does not know")  # fmt: skip
    parser.add_argument("--barrier", action="store_true",
                        help="wait until all Pods of the gang have addresses")  # fmt: skip
    parser.add_argument("--gang", metavar="N[,KEY=VALUE,...][,KEY]",
                        help="the number of Pods of the gang, if the kind has no such field; their labels "
                        "(default: those of the kind or of the Pod template); the label that holds a "
                        "Pod's index, from 0 (default: the end of the Pod's name)")  # fmt: skip
    parser.add_argument("--env", action="append", choices=(*_STYLES, _SSH), default=[],
                        help="prepare the gang for this launcher: its variables, or logins by ssh; "
                        "needs --barrier; may be repeated")  # fmt: skip
    parser.add_argument("--pod-group", metavar="[NAME=]GROUP", action="append", default=[],
                        help="the PodGroup with which the Pods are scheduled; NAME is of a role or an object")  # fmt: skip
    parser.add_argument("--use", metavar="KIND/NAME", action="append", default=[],
                        help="use ServiceAccount/NAME, which may get and list Pods, or Secret/NAME, whose "
                        "'key' the gang shares, instead of adding one; Secret/none for no key")  # fmt: skip
    parser.add_argument("--events", action="store_true",
                        help="report incomplete gangs and failed commands as Events")  # fmt: skip
    parser.add_argument("--playbook", metavar="FILE",
                        help="overrides of the playbooks, in the form of extras.pairun")  # fmt: skip
    parser.add_argument("--init-resources", metavar="NAME=QUANTITY,...",
                        help="requests and limits of the init container; none to set neither")  # fmt: skip
    add_removed(parser, _REMOVED)


_STYLES, _SSH = ("torchrun", "mpi", "jax"), "ssh"
_REMOVED = {
    "--diagnose": "omit it: it is the default",
    "--selector": "write --gang N,{}",
    "--index-label": "write --gang N,{}",
    "--ssh": "write --env ssh",
    "--service-account": f"write --use {ACCOUNT}/{{}}",
    "--key-secret": f"write --use {SECRET}/{{}}",
    "--auth": "set DOCKER_CONFIG to the folder of a config.json with the logins of {}",
    "--hold": "let a task of --playbook hold the container for {}, as docs/pid1.md shows",
    "--root": "set PAIRUN_PATH to {}",
}
"""The options of pairun 0.3, and what stands for each."""


def run(args: argparse.Namespace) -> int:
    """Print the manifest; returns 0 if it contains pairun, else 1."""
    read = _read(args.file)
    sources = [decode(data, path, "manifest") for path, data in read]
    problems = Problems()
    if KIND in sources[0].text and is_resource_list(tree := read_tree(sources[0])):
        args = _configured(args, tree)
    summary: list[str] = []
    if args.remove:
        texts = [uninject(source, problems) for source in sources]
    else:
        options = _options(args, problems)
        texts, summary = inject(sources, options, problems)
    print_problems(problems, args.vault)
    if problems.errors:
        return 1
    for line in summary:
        print(visible(args.vault.text(line)), file=sys.stderr)
    *first, last = texts
    text = "---\n".join([*(t + "\n" * (not t.endswith("\n")) for t in first), last])
    # Keep the mark that reading removed: only pairun's additions may differ.
    sys.stdout.write((_MARK if read[0][1].startswith(_MARK.encode()) else "") + text)
    return 0


def _configured(args: argparse.Namespace, tree: Tree) -> argparse.Namespace:
    """The arguments of a KRM function: its configuration overrides the command's own."""
    parser = argparse.ArgumentParser(prog="functionConfig", add_help=False)
    add_arguments(parser)
    parser.set_defaults(**vars(args))
    long = [s[2:] for a in parser._actions for s in a.option_strings if s.startswith("--")]
    configured = parser.parse_args([*options_of(tree, long), "--", args.file])
    # Builds of manifests must be reproducible, and a new key is not.
    if configured.barrier and not any(each.startswith(SECRET) for each in configured.use):
        configured.use.append(f"{SECRET}/{_NOTHING}")
    return configured


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


def _options(args: argparse.Namespace, problems: Problems) -> InjectOptions:
    image = args.image or os.environ.get(IMAGE, "")
    check_image(image, problems)
    for option, value in args.removed:
        problems.error("PR801", f"{option} is gone", hint=_REMOVED[option].format(value))
    entrypoints = {}
    for name, text in _named(args.entrypoint).items():
        try:
            entrypoints[name] = shlex.split(text)
        except ValueError as e:
            problems.error("PR801", f"--entrypoint: {e}")
        if entrypoints.get(name) == []:
            problems.error("PR801", "--entrypoint has no word")
    groups = _named(args.pod_group)
    for name in groups.values():
        if not re.fullmatch(OBJECT_NAME, name):
            problems.error("PR801", f"--pod-group: '{name}' is not the name of a PodGroup")
    size, selector, index_label = _gang(args.gang, problems)
    used = _used(args, problems)
    resources = _resources(args.init_resources, problems)
    problems.raise_errors()
    return InjectOptions(
        image=image,
        container=_named(args.container),
        entrypoint=entrypoints,
        only=args.only,
        kind_template=args.kind_template,
        ask=Registries(os.environ, args.vault).ask,
        playbook=_playbook(args.playbook, problems),
        resources=resources,
        barrier=args.barrier,
        ssh=_SSH in args.env,
        events=args.events,
        env=[style for style in dict.fromkeys(args.env) if style != _SSH],
        gang=size,
        selector=selector,
        index_label=index_label,
        pod_group=groups,
        service_account=used.get(ACCOUNT),
        key_secret=None if used.get(SECRET) == _NOTHING else used.get(SECRET, ""),
    )


def _named(texts: list[str]) -> dict[str, str]:
    """The values of an option by their names; the last one without a name is for all others."""
    pairs = [re.fullmatch(r"(?:([A-Za-z0-9][\w.-]*)=)?(.*)", t, re.DOTALL) for t in texts]
    return {pair[1] or "": pair[2] for pair in pairs if pair}


def _gang(text: str | None, problems: Problems) -> tuple[int | None, dict[str, str], str | None]:
    """The parts of ``--gang``: the size, labels, and the label with the index."""
    if text is None:
        return None, {}, None
    number, _, rest = text.partition(",")
    size = int(number) if re.fullmatch("[0-9]{1,6}", number) else 0
    if size < 2:
        hint = "give 2 Pods or more, as in 4 or 4,app=train"
        problems.error("PR801", f"--gang {number} is not the size of a gang", hint=hint)
    parts = rest.split(",") if rest else []
    keys = [part for part in parts if "=" not in part]
    labels = _pairs("--gang", ",".join(part for part in parts if "=" in part), problems)
    if len(keys) > 1 or not all(re.fullmatch(LABEL_KEY, key) for key in (*keys, *labels)):
        problems.error("PR801", f"--gang: '{rest}' is not KEY=VALUE,... and one KEY of a label")
    return size, labels, keys[0] if keys else None


def _used(args: argparse.Namespace, problems: Problems) -> dict[str, str]:
    """The objects of ``--use`` by their kinds."""
    used: dict[str, str] = {}
    for given in args.use:
        kind, _, name = given.partition("/")
        if kind not in (ACCOUNT, SECRET) or not re.fullmatch(OBJECT_NAME, name):
            hint = f"as in {ACCOUNT}/NAME or {SECRET}/NAME"
            problems.error("PR801", f"--use: '{given}' is no object that pairun can use", hint=hint)
        used[kind] = name
    asked = {"--env": args.env, "--gang": args.gang, f"--use {SECRET}": used.get(SECRET)}
    asked[f"--use {ACCOUNT}"] = used.get(ACCOUNT) and not args.events
    for option, is_given in asked.items():
        if is_given and not args.barrier:
            problems.error("PR801", f"{option} has no effect without --barrier")
    if _SSH in args.env and used.get(SECRET) == _NOTHING:
        problems.error(
            "PR801",
            f"--env {_SSH} derives its keys from the gang's key, but --use is {SECRET}/{_NOTHING}",
        )
    return used


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


def _playbook(path: str | None, problems: Problems) -> Mapping[str, Any]:
    """The changes of the playbooks, checked against the layers and the policy of the cluster."""
    if path is None:
        return {}
    from pairun.playbook.content import open_content
    from pairun.playbook.effective import Layers
    from pairun.playbook.linting import lint_changes

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
    lint_changes(node, Layers(open_content([], os.environ)), problems)
    plain: Mapping[str, Any] = node.plain()
    return plain

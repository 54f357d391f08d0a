"""Finds variables that a user's command uses but nothing sets: with ``nounset`` it would exit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.errors import Problem
from pairun.formats.shell.mentions import Mention
from pairun.formats.shell.reading import read_shell
from pairun.job.planning import RolePlan
from pairun.job.scripts import command_script
from pairun.module import Secret
from pairun.plan import USER_COMMAND, Plan, Task

_SHELL = (
    r"_|BASH\w*|COLUMNS|DIRSTACK|EPOCH(?:REALTIME|SECONDS)|EUID|FUNCNAME|GROUPS|HOME|HOST(?:NAME|TYPE)"
    r"|IFS|LINENO|LINES|MACHTYPE|OLDPWD|OPT(?:ARG|ERR|IND)|OSTYPE|PATH|PIPESTATUS|PPID|PS4|PWD"
    r"|RANDOM|REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|SRANDOM|TERM|UID"
)
"""Variables that the shell or the container runtime sets; bash(1), Shell Variables."""

_PLATFORM = (
    r"(?:PAI|FC|PAIRUN|KUBERNETES|KUBE|HIVED|JOBSET|NVIDIA|NCCL|OMPI|PMI|SLURM)_\w+"
    r"|USER_CMD|GANG_ALLOCATION|REST_SERVER_URI|STORAGE_CONFIGS"
    r"|\w+_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP)\w*)"
)
"""Variables that OpenPAI, FrameworkController, pairun, Kubernetes or a launcher sets."""

_IMAGES = (
    r"LANG|LC_\w+|TZ|DEBIAN_FRONTEND|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy"
    r"|CUDA_VERSION|CUDNN_VERSION|NV_\w+|ROCM_\w+|CONDA_DIR|CONDA_EXE|MAMBA_\w+"
    r"|PYTHON_VERSION|PYTHON_\w+|JAVA_HOME|HADOOP_\w+|SPARK_HOME|GOPATH|GOROOT|GOLANG_VERSION"
    r"|NODE_VERSION|NVM_DIR|R_HOME|JULIA_\w+|CARGO_HOME|RUSTUP_HOME|PIP_\w+|UV_\w+"
)
"""Variables that base images of languages and accelerators set with ENV."""

_OFTEN_UNSET = frozenset(
    {"PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH",
     "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PS1"}
)  # fmt: skip
"""Variables that scripts often extend and images often do not set."""


def variable_warnings(plan: RolePlan, *, other_settings: bool = False) -> Iterator[Problem]:
    """A warning for each variable that the command of a role uses but nothing sets.

    Args:
        plan: the role's plan.
        other_settings: programs of the cluster may set more variables, as in a plain Pod; then
            report only names in lower case.
    """
    runtime = plan.plans.get("runtime")
    command = (
        next((t for t in runtime.tasks() if t.module == USER_COMMAND), None) if runtime else None
    )
    if runtime is None or command is None or command.args.get("nounset") is False:
        return
    exported = _exported(runtime, command)
    if exported is None or not isinstance(command.args.get("script"), str | Secret):
        return
    script = command_script(plan.job, plan.role)
    for use in read_shell(script.text).unset():
        if use.name in exported or _is_known(use.name, other_settings=other_settings):
            continue
        yield Problem(
            "PR903", _message(use), script.place(use.offset), f"write ${{{use.name}:-}}", "warning"
        )


def _message(use: Mention) -> str:
    unbound = "the command fails with 'unbound variable'"
    if use.name in _OFTEN_UNSET:
        return f"${use.name} may be unset; then {unbound}"
    if use.name.isupper():
        return f"the job does not set ${use.name}; unless the image does, {unbound}"
    return f"nothing sets ${use.name}, so {unbound}"


def _is_known(name: str, *, other_settings: bool) -> bool:
    if name in _OFTEN_UNSET:
        return False
    outside = any(re.fullmatch(names, name) for names in (_SHELL, _PLATFORM, _IMAGES))
    return outside or (other_settings and name.isupper())


def _exported(runtime: Plan, command: Task) -> set[str] | None:
    """The variables that the command's task and scripts before it set; None if unknown."""
    names = {*command.environment}
    for task in runtime.tasks():
        if task.when is False or not task.args.get("export"):
            continue
        script = task.args.get("script")
        text = script.reveal() if isinstance(script, Secret) else script
        if not isinstance(text, str):
            return None
        read = read_shell(text)
        if read.unknown_from is not None:
            return None
        names |= {m.name for m in read.mentions if m.kind != "use"}
    return names

"""The inputs of a Pod's init phase: the job, this instance, secrets, the user extension."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from pairun.errors import PairunError, Problems, Source, did_you_mean
from pairun.job.jsyaml import JS
from pairun.job.model import Job, Role, fc_name
from pairun.job.stored import MAX_FRAMEWORK_BYTES, framework_in, load_input
from pairun.kube.cluster import JobCluster, cluster_from_framework
from pairun.kube.gang import read_gang
from pairun.openpai.enginelayers import command_layer, engine_layer, merged, of_gang
from pairun.openpai.framework import job_from_framework, make_framework
from pairun.openpai.initconfig import read_init_config
from pairun.openpai.plainpod import plain_cluster, pod_name, read_plain_job, without_server_warnings
from pairun.openpai.podconfig import PodConfig, read_secrets
from pairun.playbook.document.reading import Node, decode, read_text
from pairun.playbook.document.scalars import Dialect
from pairun.playbook.initplugins import InitPlugins
from pairun.volume.door import Door

if TYPE_CHECKING:
    from pairun.openpai.exitspec import ExitSpec


@attrs.frozen(kw_only=True)
class PodInput:
    """One instance of a job, seen from its Pod.

    Attributes:
        role: the instance's role.
        index: its number within the role.
        user_extension: plain data of the mounted user extension, or None.
        command: the user's command as the platform rendered it, or None.
        cluster: peers and ports, if they are known from the start, or None.
        engine: the layer of the engine that started the Pod, or None.
        init_plugins: the cluster's list that replaces the init playbook's tasks, or None.
        exit_spec: the cluster's exit spec, or None.
        job_text: the Framework's job file, with its secrets, or None.
        framework: a gang as a Framework without status, for the barrier, or None.
        variables: those that identify an instance of a gang, for tasks.
    """

    job: Job
    role: Role
    problems: Problems
    index: int = 0
    user_extension: Any = None
    command: str | None = None
    cluster: JobCluster | None = None
    engine: Node | None = None
    init_plugins: InitPlugins | None = None
    exit_spec: ExitSpec | None = None
    job_text: str | None = None
    framework: dict[str, Any] | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def job_keys(self) -> list[str]:
        """The private key for the job's ssh, if the user has one; it must be masked."""
        extension = self.user_extension if isinstance(self.user_extension, dict) else {}
        pair = extension.get("jobSSH")
        key = pair.get("key") if isinstance(pair, dict) else None
        return [key] if isinstance(key, str) else []


_FILE = "PAIRUN_FRAMEWORK_FILE"
_OBJECT = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
_INSTANCE = ("FC_TASKROLE_NAME", "FC_TASK_INDEX")
_LEFT = "framework.json"
"""The file that the barrier writes to the volume."""

_OPTIONS = {"FC_TASKROLE_NAME": "--role", "FC_TASK_INDEX": "--index"}
"""The command-line options for a saved Framework; they override an engine's variables."""


def read_pod_input(
    pai_dir: str, env: Mapping[str, str], *, placed: bool = False, dialect: Dialect = JS
) -> PodInput:
    """Read the inputs of the init phase.

    Args:
        pai_dir: the shared volume, with the mounted secrets inside.
        env: ``PAIRUN_FRAMEWORK_FILE`` names a Framework object, or ``FC_FRAMEWORK_NAMESPACE`` and
            ``FC_FRAMEWORK_NAME`` identify it at the API server; ``FC_TASKROLE_NAME`` and
            ``FC_TASK_INDEX`` identify this instance; ``USER_CMD`` is the rendered command.
            Without a Framework, a plain Pod's settings (see `PodConfig`).
        placed: whether the Framework is a saved one; its addresses are used unchanged.
        dialect: how the cluster's REST server reads and writes YAML.

    Raises:
        PairunError: all missing and invalid inputs.
    """
    problems = Problems()
    config = PodConfig(env=env, pai_dir=pai_dir, problems=problems, dialect=dialect)
    init = config.init()
    listed = read_init_config(init, config.init_dir(), problems) if init else None
    exit_spec = _exit_spec(config)
    runtime = config.runtime()
    if runtime is not None and not env.get("PAIRUN_FRAMEWORK_FILE"):
        pod = _plain(env, config, runtime)
    else:
        if runtime is not None:
            problems.warning(
                "PR719", f"{runtime.file} has no effect: the Framework has a job", None
            )
        pod = _of_framework(env, config, placed=placed)
    problems.raise_errors()
    return attrs.evolve(pod, init_plugins=listed, exit_spec=exit_spec)


def _exit_spec(config: PodConfig) -> ExitSpec | None:
    """The cluster's exit spec; its mistakes are warnings, because they must not stop any job."""
    found = Problems()
    spec = None
    try:
        if (source := config.exit_spec()) is not None:
            # Few clusters have one; only they need the code that reads Go's expressions.
            from pairun.openpai.exitspec import read_exit_spec

            spec = read_exit_spec(source, found)
    except PairunError as e:
        ignored = "; pairun ignores the exit spec"
        found.extend(p._replace(message=p.message + ignored) for p in e.problems)
    config.problems.extend(p._replace(severity="warning") for p in found)
    return spec


def _plain(env: Mapping[str, str], config: PodConfig, runtime: Source) -> PodInput:
    problems = config.problems
    secrets = read_secrets(config) or _mounted(config, "secrets", "secrets.yaml")
    gang = of_gang(read_gang, env)
    sizes = {role.name: role.instances for role in gang[0].roles} if gang else None
    job, job_problems = read_plain_job(runtime, name=pod_name(env), secrets=secrets, gang=sizes)
    problems.extend(without_server_warnings(list(job_problems)))
    if job is None:
        raise PairunError(*problems.errors)
    pod = PodInput(
        job=job,
        role=job.roles[0],
        problems=problems,
        user_extension=_user_extension(config),
        engine=merged(engine_layer("plain_pod.yaml", "a plain Pod"), command_layer(env)),
    )
    if gang is None:
        return attrs.evolve(pod, cluster=plain_cluster(job, env))
    pods, name, index = gang
    uid, attempt = pods.key
    variables = {
        "FC_TASKROLE_NAME": name, "FC_TASK_INDEX": str(index), "PAIRUN_BARRIER": "pods",
        "FC_FRAMEWORK_UID": uid, "FC_FRAMEWORK_ATTEMPT_ID": str(attempt),
    }  # fmt: skip
    role = _own_role(job, name, placed=False)
    framework = make_framework(job, framework_name=env.get("FC_FRAMEWORK_NAME") or job.name)
    return attrs.evolve(pod, role=role, index=index, framework=framework, variables=variables)


def _of_framework(env: Mapping[str, str], config: PodConfig, *, placed: bool) -> PodInput:
    problems = config.problems
    _require(env, problems, placed=placed)
    file = env.get(_FILE)
    framework = _framework_of(load_input(file), file) if file else _from_cluster(env)
    job, job_problems = job_from_framework(
        framework, _mounted(config, "secrets", "secrets.yaml"), config.dialect
    )
    problems.extend(job_problems)
    if job is None:
        raise PairunError(*problems.errors)
    saved = "the addresses that were saved"
    role = _own_role(job, env["FC_TASKROLE_NAME"], placed=placed)
    return PodInput(
        job=job,
        role=role,
        problems=problems,
        user_extension=_user_extension(config),
        index=_own_index(env["FC_TASK_INDEX"], placed=placed),
        command=env.get("USER_CMD"),
        job_text=job.text,
        cluster=_cluster_in(framework, env, job) if placed else None,
        engine=engine_layer("saved_framework.yaml", saved) if placed else None,
    )


def _require(env: Mapping[str, str], problems: Problems, *, placed: bool) -> None:
    """Check the variables that a Framework's Pod must have.

    Raises:
        PairunError: variables are not set.
    """
    in_cluster = not env.get(_FILE) and any(env.get(name) for name in _OBJECT)
    missing = [n for n in (*(_OBJECT if in_cluster else (_FILE,)), *_INSTANCE) if not env.get(n)]
    hint = "pairun init runs where an engine starts it; on a laptop use `pairun run JOB`"
    if len(missing) == 1 + len(_INSTANCE):
        hint += "; a plain Pod sets RUNTIME_CONFIG instead"
    for name in missing:
        if placed:
            problems.error(
                "PR704", f"{_OPTIONS[name]} is missing: which instance of the Framework is this?"
            )
        elif in_cluster:
            problems.error("PR774", f"the variable {name} is not set", None, _CONTROLLER)
        else:
            problems.error("PR704", f"the variable {name} is not set", None, hint)
    problems.raise_errors()


def _from_cluster(env: Mapping[str, str]) -> dict[str, Any]:
    # imported here: the HTTP client is heavy, and a file does not need it
    from pairun.init.fromcluster import read_head

    namespace, name = (env[variable] for variable in _OBJECT)
    return read_head(namespace, name, env)


_CONTROLLER = "FrameworkController sets it in every container of a Framework's Pod"


def _user_extension(config: PodConfig) -> Any:
    extension = _mounted(config, "user-extension-secrets", "userExtensionSecrets.yaml")
    return extension.plain() if extension else None


def _framework_of(data: bytes, path: str) -> dict[str, Any]:
    framework = framework_in(data, path)
    if framework is None:
        raise PairunError.of("PR704", f"{path} is not a Framework object")
    return framework


def read_cluster(pai_dir: str, env: Mapping[str, str], job: Job) -> JobCluster:
    """Peers and ports, from the Framework that the barrier wrote to the volume.

    Raises:
        PairunError: it is missing or incomplete.
    """
    path = os.path.join(pai_dir, _LEFT)
    try:
        data = Door(pai_dir).read(path, MAX_FRAMEWORK_BYTES)
    except OSError as e:
        raise PairunError.of("PR108", f"{path} cannot be read: {e.strerror}") from e
    return _cluster_in(_framework_of(data, path), env, job)


def has_cluster(pai_dir: str) -> bool:
    """Whether the barrier has written the file that `read_cluster` reads."""
    return Door(pai_dir).is_file(os.path.join(pai_dir, _LEFT))


def _cluster_in(framework: Mapping[str, Any], env: Mapping[str, str], job: Job) -> JobCluster:
    return cluster_from_framework(
        framework,
        fc_name(env["FC_TASKROLE_NAME"]),
        _own_index(env["FC_TASK_INDEX"]),
        {r.fc_name: r.name for r in job.roles},
        own_pod_uid=env.get("FC_POD_UID"),
        own_host_ip=env.get("PAIRUN_HOST_IP"),
    )


def _mounted(config: PodConfig, folder: str, file: str) -> Node | None:
    """A document that the platform mounts into the volume; None if it mounts none."""
    path = os.path.join(config.pai_dir, folder, file)
    if not config.files.counts(
        path, "only a file that the platform mounts can hold a job's secrets"
    ):
        return None
    return read_text(decode(config.files.load(path), path, "job"), config.dialect)


def _own_role(job: Job, name: str, *, placed: bool) -> Role:
    # The platform gives the sanitised name; a user may give the raw one.
    for role in job.roles:
        if name in (role.name, role.fc_name):
            return role
    message = f"{_option('FC_TASKROLE_NAME', placed)} is '{name}', which is not a role of this job"
    raise PairunError.of("PR509", message, hint=did_you_mean(name, [r.fc_name for r in job.roles]))


def _own_index(text: str, *, placed: bool = False) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        name = _option("FC_TASK_INDEX", placed)
        raise PairunError.of("PR704", f"{name} is '{text}', which is not a number")
    return int(text)


def _option(variable: str, placed: bool) -> str:
    return _OPTIONS[variable] if placed else variable

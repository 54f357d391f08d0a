"""What `--barrier` and related options add to a Pod: the gang, access to its Pods, its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Problems
from pairun.inject.beside import Keys, Object, account_objects, key_object
from pairun.inject.gangs import Gang, gang_of
from pairun.inject.options import Options
from pairun.inject.podspec import VOLUME, Addition, field
from pairun.inject.templates import Owner, Template
from pairun.inject.tree import Mapping as MappingPart
from pairun.inject.variables import RESTARTS, STYLES
from pairun.kube.tokenvolume import CREDENTIALS, token_volume

NAME_MAX = 50
ACCESS = "/var/run/secrets/pairun"
"""Where the main container has the token: for the barrier after a restart, or for Events."""


class Features:
    """Adds the features to the templates of one manifest, and collects the new objects.

    Args:
        options: the command's options.
        keys: the keys of an earlier injection.
        problems: takes errors and warnings.

    Attributes:
        objects: the objects to add to the manifest.
    """

    def __init__(self, options: Options, keys: Keys, problems: Problems) -> None:
        self._options = options
        self._keys = keys
        self._problems = problems
        self.objects: list[Object] = []
        self.gangs = 0

    def addition(
        self, template: Template, container: MappingPart, siblings: Sequence[Template]
    ) -> Addition:
        """The additions for a template with this main container."""
        made = Addition()
        asked = self._options
        name = _name(template.owner)
        gang: Gang | None = None
        if asked.barrier:
            gang = gang_of(
                template, siblings, asked.gang, asked.selector, self._problems, asked.index_label
            )
        if gang is None and not asked.events:
            return made
        made.init_mounts = [{"name": f"{VOLUME}-token", "mountPath": CREDENTIALS, "readOnly": True}]
        made.volumes = [token_volume(f"{VOLUME}-token")]
        made.env = [field("PAIRUN_HOST_IP", "status.podIP")] if gang else []
        restarts = gang is not None and restarts_in_place(template, container)
        if restarts or asked.events:
            made.mounts.append({"name": f"{VOLUME}-token", "mountPath": ACCESS, "readOnly": True})
            made.env.append({"name": "PAIRUN_API_CREDENTIALS", "value": ACCESS})
        self._give_account(template, name, made)
        if gang is None:
            return made
        self.gangs += 1
        self._warn(template, restarts)
        made.init_env = gang.variables(template.owner.name or name)
        if restarts:
            made.init_env.append({"name": RESTARTS, "value": "true"})
        self._give_key(template, name, made)
        self._configure(made)
        return made

    def _configure(self, made: Addition) -> None:
        if self._options.ssh:
            plugin: dict[str, Any] = {"plugin": "ssh", "parameters": {"jobssh": True}}
            made.config["runtimePlugin"] = [plugin]
        if self._options.env:
            made.init_env.append({"name": STYLES, "value": ",".join(self._options.env)})

    def _give_key(self, template: Template, name: str, made: Addition) -> None:
        secret = self._options.key_secret
        if secret is None:
            return
        if not secret:
            secret = f"{name}-key"
            namespace = _namespace(template.owner)
            self._add(key_object(secret, namespace, self._keys.get((namespace, secret))))
        mount = {
            "name": f"{VOLUME}-key",
            "mountPath": f"{DEFAULT_PAI_DIR}/rendezvous",
            "readOnly": True,
        }
        made.volumes.append({"name": f"{VOLUME}-key", "secret": {"secretName": secret}})
        made.init_mounts.append(mount)
        made.mounts.append(mount)

    def _give_account(self, template: Template, name: str, made: Addition) -> None:
        own, asked = _account(template), self._options.service_account
        if own and asked and own != asked:
            self._problems.error(
                "PR828",
                f"{template.label} has the service account '{own}', but --service-account is "
                f"'{asked}'",
                template.spec.place,
                "give the Pod's own account the right to list and get pods, and name it",
            )
        elif asked and not own:
            made.service_account = asked
        elif not asked:
            namespace = _namespace(template.owner)
            events = self._options.events
            for made_object in account_objects(name, namespace, own or None, events=events):
                self._add(made_object)
            if not own:
                made.service_account = name
                self._problems.warning(
                    "PR828",
                    f"{template.label} gets the service account '{name}' in place of 'default': "
                    "the Pod loses the rights and pull secrets of 'default'",
                    template.spec.place,
                    "choose another one with --service-account NAME",
                )

    def _add(self, made: Object) -> None:
        if _identity(made) not in map(_identity, self.objects):
            self.objects.append(made)

    def _warn(self, template: Template, restarts: bool) -> None:
        if restarts:
            self._problems.warning(
                "PR826",
                f"{template.label} restarts a failed container in its Pod, where init containers "
                "do not run again: PID 1 holds the barrier then, and the main container gets the "
                "token that lists Pods",
                template.spec.place,
                None if template.owner.kind in _ONLY_ALWAYS else _NEVER,
            )
        total = (template.owner.data.get("spec") or {}).get("minAvailable")
        if isinstance(total, int) and template.owner.known and template.owner.kind == "Job":
            self._problems.warning(
                "PR824",
                f"{template.label}: minAvailable lets Volcano start {total} Pods, and the barrier "
                "waits for all",
                template.spec.place,
            )


def _identity(made: Object) -> tuple[str, str | None, str]:
    metadata = made["metadata"]
    return made["kind"], metadata.get("namespace"), metadata["name"]


def restarts_in_place(template: Template, container: MappingPart) -> bool:
    """Whether a failed main container restarts in the same Pod without its init containers.

    A container may have its own policy and rules for exit codes (KEP-5307). The action
    ``RestartAllContainers`` (KEP-5532), with which a JobSet restarts in place, does not count: it
    runs the init containers again.
    """
    own = container.plain()
    rules = own.get("restartPolicyRules") or []
    if any(isinstance(rule, dict) and rule.get("action") == "Restart" for rule in rules):
        return True
    if own.get("restartPolicy") is not None:
        return own["restartPolicy"] in _RESTARTING
    policy = template.item.get("restartPolicy") if template.rule and template.rule.count else None
    written = template.spec.get("restartPolicy")
    policy = policy or (written.plain() if written else None)
    # Kubernetes defaults to Always, some controllers to OnFailure.
    return policy is None or policy in _RESTARTING


_RESTARTING = ("Always", "OnFailure")
_ONLY_ALWAYS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
"""Kinds whose Pods allow only one restartPolicy."""
_NEVER = "restartPolicy: Never keeps the token from it, and lets the controller make a new Pod"


def _account(template: Template) -> str:
    """The Pod's own service account; empty if it has none or ``default``."""
    for key in ("serviceAccountName", "serviceAccount"):
        name = template.spec.get(key)
        if name is not None and name.plain() not in (None, "", "default"):
            return str(name.plain())
    return ""


def _namespace(owner: Owner) -> str | None:
    namespace = (owner.data.get("metadata") or {}).get("namespace")
    return str(namespace) if namespace else None


def _name(owner: Owner) -> str:
    metadata = owner.data.get("metadata") or {}
    base = owner.name or str(metadata.get("generateName") or owner.kind.lower())
    return f"{base[:NAME_MAX].rstrip('-.')}-pairun"

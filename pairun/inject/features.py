"""What `--barrier` and related options add to a Pod: the gang, access to its Pods, its key."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Problems
from pairun.inject.beside import Keys, account_objects, key_object
from pairun.inject.gangs import ALONE, InjectedGang, gang_of
from pairun.inject.options import InjectOptions
from pairun.inject.podspec import VOLUME, Addition, field
from pairun.inject.templates import Template, TemplateOwner, mapping_at
from pairun.inject.tree import Mapping as MappingPart
from pairun.kube.owners import Object
from pairun.kube.tokenvolume import CREDENTIALS, token_volume
from pairun.openpai.enginelayers import GANG_RESTARTS, STYLES

_NAME_MAX = 50
ACCESS = "/var/run/secrets/pairun"
"""Where the main container has the token: for the barrier after a restart, or for Events."""


class Features:
    """Adds the features to the templates of one manifest, and collects the new objects.

    Attributes:
        gangs: the number of templates with a barrier.
        without: why other templates, that have others to wait for, have none.
    """

    def __init__(self, options: InjectOptions, keys: Keys, problems: Problems) -> None:
        self._options = options
        self._keys = keys
        self._problems = problems
        self._objects: dict[tuple[str, str | None, str], Object] = {}
        self.gangs = 0
        self.without: list[str] = []

    def addition(
        self, template: Template, container: MappingPart, siblings: Sequence[Template]
    ) -> Addition:
        """The additions for a template with this main container."""
        made = Addition()
        asked = self._options
        name = _name(template.owner)
        gang: InjectedGang | None = None
        if asked.barrier:
            found = gang_of(template, siblings, asked, self._problems)
            if isinstance(found, InjectedGang):
                gang = found
                made.notes.append(f"barrier of {gang.size} Pods")
            else:
                made.notes.append(found)
                self.without += [] if found == ALONE else [f"{template.label}: {found}"]
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
        total = mapping_at(template.owner.data, ("spec",)).get("minAvailable")
        if isinstance(total, int):
            what = f"lets Volcano start {total} Pods, and the barrier waits for all"
            message = f"{template.label}: minAvailable {what}"
            self._problems.warning("PR824", message, template.spec.place)
        made.init_env = gang.variables(template.owner.name or name)
        if restarts:
            made.notes.append(
                "containers that restart in their Pod hold the barrier again, and get the token "
                "that lists Pods"
            )
            made.init_env.append({"name": GANG_RESTARTS, "value": "true"})
        self._give_key(template, name, made)
        if asked.ssh:
            made.config["runtimePlugin"] = [{"plugin": "ssh", "parameters": {"jobssh": True}}]
        if asked.env:
            made.init_env.append({"name": STYLES, "value": ",".join(asked.env)})
        return made

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
            message = (
                f"{template.label} has the service account '{own}', but --use is "
                f"ServiceAccount/{asked}"
            )
            hint = "give the Pod's own account the right to list and get pods, and name it"
            self._problems.error("PR828", message, template.spec.place, hint)
        elif asked and not own:
            made.service_account = asked
        elif not asked:
            namespace = _namespace(template.owner)
            events = self._options.events
            for made_object in account_objects(name, namespace, own or None, events=events):
                self._add(made_object)
            if not own:
                made.service_account = name
                made.notes.append(
                    f"service account '{name}' in place of 'default', without its rights and pull "
                    "secrets"
                )

    def _add(self, made: Object) -> None:
        metadata = made["metadata"]
        identity = made["kind"], metadata.get("namespace"), metadata["name"]
        self._objects.setdefault(identity, made)

    @property
    def objects(self) -> list[Object]:
        """The objects to add to the manifest."""
        return [*self._objects.values()]


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


def _account(template: Template) -> str:
    """The Pod's own service account; empty if it has none or ``default``."""
    for key in ("serviceAccountName", "serviceAccount"):
        name = template.spec.get(key)
        if name is not None and name.plain() not in (None, "", "default"):
            return str(name.plain())
    return ""


def _namespace(owner: TemplateOwner) -> str | None:
    namespace = owner.metadata.get("namespace")
    return str(namespace) if namespace else None


def _name(owner: TemplateOwner) -> str:
    base = owner.name or str(owner.metadata.get("generateName") or owner.kind.lower())
    return f"{base[:_NAME_MAX].rstrip('-.')}-pairun"

"""What a job adds to its playbooks, in the terms of playbooks.

`pairun.job` makes these from a job file, a Framework or a plain Pod. `pairun.playbook` does not know
the job protocol.
"""

from __future__ import annotations

import attrs

from pairun.errors import Place
from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node


@attrs.frozen(kw_only=True)
class PluginUse:
    """One plugin that a role of a job uses.

    Attributes:
        plugin: name of the plugin spec.
        base_id: what its tasks' ids begin with: the plugin's name, or the prerequisite's.
        parameters: rendered; a scalar that a secret went into holds a `Secret`.
        failure_policy: as the job says, ``fail`` by default.
        place: where the job asks for it.
    """

    plugin: str
    base_id: str
    parameters: Node
    failure_policy: FailurePolicy
    place: Place

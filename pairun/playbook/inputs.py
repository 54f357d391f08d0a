"""What a job adds to its playbooks, in terms of playbooks.

`pairun.job` makes these from a job file, a Framework or a plain Pod; `pairun.playbook` does not
depend on the job protocol.
"""

from __future__ import annotations

from typing import NamedTuple

from pairun.errors import Place
from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node


class PluginUse(NamedTuple):
    """One plugin that a role of a job uses.

    Attributes:
        plugin: name of the plugin spec.
        base_id: the prefix of its tasks' ids: the plugin's name, or the prerequisite's.
        parameters: rendered; a scalar that contains a secret holds a `Secret`.
        failure_policy: the job's setting, ``fail`` by default.
        place: where the job uses the plugin.
    """

    plugin: str
    base_id: str
    parameters: Node
    failure_policy: FailurePolicy
    place: Place

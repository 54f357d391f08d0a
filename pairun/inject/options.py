"""The options of `pairun inject`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.inject.commands import AskImage

DEFAULT_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
"""The init container's resources, as in the built-in policy."""


@attrs.frozen(kw_only=True)
class Options:
    """What to put into every template.

    Attributes:
        image: pairun's, for the init container.
        container: the main container's name; None searches for it.
        entrypoint: the command of an image if its container sets none, as argv; None if unknown.
        hold: how long a failed container is kept, as a duration; empty disables it.
        playbook: changes of the playbooks, as in a job's ``extras.pairun``.
        ask: asks the registry for an image's command; None if that is not allowed.
        barrier: wait in the init container until the whole gang has addresses.
        ssh: the Pods of the gang connect to each other by ssh.
        events: Pods create Events on their workload.
        env: the programs whose gang variables are exported: torchrun, mpi, jax.
        gang: the number of its Pods, if the kind's own fields do not give it.
        selector: labels of its Pods, if the kind's own fields do not give them.
        index_label: the label with a Pod's number; None uses the end of its name.
        service_account: an account that may read the Pods; None creates one.
        key_secret: a Secret with the gang's key; empty creates one, None uses no key.
        resources: of the init container; empty sets none.
    """

    image: str
    container: str | None = None
    entrypoint: Sequence[str] | None = None
    hold: str = ""
    playbook: Mapping[str, Any] = attrs.field(factory=dict)
    barrier: bool = False
    ssh: bool = False
    events: bool = False
    env: Sequence[str] = ()
    gang: int | None = None
    selector: Mapping[str, str] = attrs.field(factory=dict)
    index_label: str | None = None
    service_account: str | None = None
    key_secret: str | None = ""
    ask: AskImage | None = None
    resources: Mapping[str, Any] = attrs.field(factory=lambda: DEFAULT_RESOURCES)

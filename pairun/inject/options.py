"""What a person asks of `pairun inject`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.inject.commands import AskImage

DEFAULT_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
"""Of the init container; those of the built-in policy."""


@attrs.frozen(kw_only=True)
class Options:
    """What is put into every template.

    Attributes:
        image: pairun's, for the init container.
        container: the main container's name; None finds it.
        entrypoint: the command of an image whose container has none, as argv; None if unknown.
        hold: how long a failed container is kept, as a duration; empty for not at all.
        playbook: changes of the playbooks, as in a job's ``extras.pairun``.
        ask: asks the registry what an image runs; None where nobody may.
        barrier: wait in the init container until the whole gang has addresses.
        ssh: the Pods of the gang reach each other by ssh.
        events: Pods report to the Events of their workload.
        env: for which programs the gang's variables are exported: torchrun, mpi, jax.
        gang: the number of its Pods, where the kind's own fields do not say it.
        selector: labels of its Pods, likewise.
        index_label: the label with a Pod's number; None for the end of its name.
        service_account: with the right to see the Pods; None to make one.
        key_secret: a Secret with the gang's key; empty to make one, None for a gang without.
        resources: of the init container; empty for none.
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

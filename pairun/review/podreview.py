"""Reviews a plain Pod: treats its settings as a job of one role."""

from __future__ import annotations

import attrs

from pairun.errors import Problems
from pairun.openpai.plainpod import no_commands, read_plain_job, without_server_warnings
from pairun.playbook.document.reading import decode, load_bytes
from pairun.playbook.effective import Layers
from pairun.playbook.specs import PHASES
from pairun.review.jobreview import JobReview, review_loaded
from pairun.review.settings import Settings
from pairun.secrets.vault import Vault


def review_pod(
    path: str | None, layers: Layers, user: str, settings: Settings, *, vault: Vault
) -> JobReview:
    """Review a plain Pod.

    Args:
        path: the file with its commands and plugins; None for only the init phase.
        layers: the content roots, already read.
        user: the user who owns the Pod.
        settings: the cluster's settings.
        vault: collects every secret that is read.

    Raises:
        PairunError: the file cannot be read.
    """
    source = no_commands() if path is None else decode(load_bytes(path), path, "job")
    job, problems = read_plain_job(source, user=user)
    plain = settings._replace(plain=True, phases=PHASES if path else ("init",))
    review = review_loaded(source.file, job, problems, layers, [], plain, vault=vault)
    kept = Problems()
    kept.extend(without_server_warnings(list(review.problems)))
    return attrs.evolve(review, problems=kept)

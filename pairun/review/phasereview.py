"""Reviews a phase in its own container: probes for real, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pairun.contract.loading import plan_loader
from pairun.host.probeworld import ProbeContext
from pairun.plan import Plan
from pairun.review.taskreview import Reviewed, review_phase, review_plan
from pairun.secrets.vault import Vault
from pairun.volume.door import Door

if TYPE_CHECKING:
    # The user's container reviews a finished plan, and has no YAML library.
    from pairun.playbook.content import Content
    from pairun.playbook.drafts import Draft


def probe_phase(
    plan: Plan, draft: Draft, content: Content, env: Mapping[str, str], pai_dir: str, vault: Vault
) -> list[Reviewed]:
    """Review a phase, together with the playbook of its plan."""
    context = ProbeContext(env=env, pai_dir=pai_dir, emit_hidden=vault.add)
    return review_phase(plan, draft, content, context)


def probe_plan(plan: Plan, env: Mapping[str, str], pai_dir: str, vault: Vault) -> list[Reviewed]:
    """Review the plan that init made; the history of its values is unknown here."""
    context = ProbeContext(env=env, pai_dir=pai_dir, emit_hidden=vault.add)
    return review_plan(plan, plan_loader(plan.modules, Door(pai_dir)), context)

"""A module's only way to the world."""

from __future__ import annotations

from collections.abc import Mapping

from pairun.module.changing import Changing
from pairun.module.effects import Effect
from pairun.module.reading import Reading


class Context(Reading, Changing):
    """A module's only way to the world.

    Each method is declared once, in `Reading` or in `Changing`, with one sentence of what it asks
    or changes. The worlds in which a module may not change anything are generated from these
    declarations.

    Args:
        env: the environment of the task: the process's, what earlier tasks exported, and the
            task's own ``environment``.
        pai_dir: the shared volume, ``/usr/local/pai`` in a Pod.
    """

    def __init__(self, env: Mapping[str, str], pai_dir: str) -> None:
        self.env = env
        self.pai_dir = pai_dir

    @classmethod
    def effects(cls) -> dict[str, Effect]:
        """The declared methods by name, in their order."""
        declared = {**vars(Reading), **vars(Changing)}.items()
        return {n: m.effect for n, m in declared if isinstance(getattr(m, "effect", None), Effect)}

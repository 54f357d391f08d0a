"""What a module needs to read the objects of a cluster: `barrier` imports it, and few others."""

from __future__ import annotations

from pairun.kube.gang import GangPods, read_gang
from pairun.kube.pods import init_succeeded, is_done, is_running, of_main_containers, why_missing
from pairun.kube.ports import PORT_ANNOTATION, PortPlan, port_annotation
from pairun.kube.statuses import task_statuses

__all__ = (
    "PORT_ANNOTATION", "GangPods", "PortPlan", "init_succeeded", "is_done", "is_running",
    "of_main_containers", "port_annotation", "read_gang", "task_statuses", "why_missing",
)  # fmt: skip
"""What a module's author may import; docs/modules.md documents each name."""

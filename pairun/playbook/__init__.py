"""Playbooks: text with positions becomes layers, an effective playbook, and a plan."""

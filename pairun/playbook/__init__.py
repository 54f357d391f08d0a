"""Playbooks: turns text with positions into layers, an effective playbook, and a plan."""

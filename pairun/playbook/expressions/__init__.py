"""Expressions in playbooks: Jinja in a strict, bounded sandbox."""

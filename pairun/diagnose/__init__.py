"""Finds why a command died: the failure class and its evidence, from the log and circumstances.

Standard library only: PID 1's exit summary and ``pairun diagnose`` both use it.
"""

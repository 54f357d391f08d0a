"""Why a command died: the class of its failure and the evidence, from the log and the circumstances.

Standard library only: PID 1's exit summary uses it as ``pairun diagnose`` does.
"""

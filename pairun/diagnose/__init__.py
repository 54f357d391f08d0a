"""Why did it die: the class of a failure, and its evidence, from a log and from what else is known.

Standard library only: the exit summary in the user's container uses it as ``pairun diagnose`` does.
"""

"""Finds why a job died: one log, the logs of all its ranks, a cluster's objects.

`weighing` and what it imports read one log, for PID 1's exit summary, with the standard library alone. `gathering` and
`incident` join the logs of a job: which rank failed first, why, and what followed.
"""

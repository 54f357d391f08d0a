"""An incident: the logs of one job, joined to one answer.

Reads files of any system, finds out which rank and host each line is of, diagnoses each rank, and names
the rank that failed first, its cause, and what followed from it.
"""

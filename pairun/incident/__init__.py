"""An incident: the logs of one job, joined to one answer.

Reads log files of any system, finds the rank and host of each line, and diagnoses each rank.
Names the rank that failed first, its cause, and the failures that followed.
"""

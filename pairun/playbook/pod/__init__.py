"""The settings of a job's Pods, ``extras.pairun.pod``: their table, their layers, their limits."""

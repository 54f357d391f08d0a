"""What every process needs from the system: signals, processes, paths, the grace time.

It uses the standard library only.
"""

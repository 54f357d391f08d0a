"""System functions for every process: signals, processes, paths, the grace time.

Uses only the standard library.
"""

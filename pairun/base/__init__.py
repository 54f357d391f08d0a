"""What every room stands on: signals, processes, paths, clocks, log files; standard library alone."""

"""Facts: what a system reports about a failure as data, also where somebody pasted it into a log.

One file for each system: Kubernetes, Slurm, the kernel, the GPU's tools, launchers, PyTorch's flight
recorder. A reader never guesses from free text; that is the rules' part.
"""

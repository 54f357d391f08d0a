"""Facts: a failure as a system reports it in structured form, also if a user pasted it into a log.

One file for each system: Kubernetes, Slurm, the kernel, the GPU's tools, launchers, PyTorch's
flight recorder. Readers never guess from free text; rules do that.
"""

"""The failure classes: whose fault each is, what to do, and what an exit code alone means.

The classes join the failures in published studies of large clusters (Jeon et al., ATC'19; Hu et
al., NSDI'24; the Llama 3 report, arXiv 2407.21783; Kokolis et al., HPCA'25). Exit codes above
128 are a shell's for signals (POSIX, Shell Command Language 2.8.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NONE = "none"
UNKNOWN = "unknown"
FAULTS = ("user", "platform", "hardware", "framework", "unknown")
RETRIES = ("retry", "retry_elsewhere", "after_fix", "never")
NAMED_LINE = "the line that is named"
"""The phrase for the failed line of code in an advice; replaced if a traceback names the line."""


class FailureClass(NamedTuple):
    """One class.

    Attributes:
        meaning: one line for people.
        fault: one of `FAULTS`.
        retry: one of `RETRIES`, or None for no advice on retries.
        advice: what to do; a rule's advice overrides it.
    """

    meaning: str
    fault: str
    retry: str | None
    advice: str


def _user(meaning: str, advice: str, retry: str = "after_fix") -> FailureClass:
    return FailureClass(meaning, "user", retry, advice)


def _platform(meaning: str, advice: str, retry: str = "retry_elsewhere") -> FailureClass:
    return FailureClass(meaning, "platform", retry, advice)


def _hardware(meaning: str, advice: str) -> FailureClass:
    return FailureClass(meaning, "hardware", "retry_elsewhere", advice)


def _unknown(meaning: str, advice: str, retry: str = "retry") -> FailureClass:
    return FailureClass(meaning, "unknown", retry, advice)


CLASSES: Mapping[str, FailureClass] = {
    "gpu_oom": _user(
        "the GPU's memory is full",
        "make the batch, the sequence or the model smaller, shard it, or ask for larger GPUs",
    ),
    "host_oom": _user(
        "the container's memory is full",
        "ask for more memory, or use less: fewer data workers, smaller buffers, memory maps",
    ),
    "shm_too_small": _user(
        "/dev/shm is too small for the data workers",
        "ask for more shared memory, or use fewer data workers",
    ),
    "process_limit": _user(
        "no more processes or threads may be started",
        "start fewer workers and threads (OMP_NUM_THREADS), or ask for a higher limit",
    ),
    "too_many_open_files": _user(
        "the limit of open files is reached",
        "close files, use fewer data workers or the file_system sharing strategy, or raise `ulimit -n`",
    ),
    "disk_full": _user(
        "a disk is full",
        "delete old checkpoints and caches, or write to a larger volume",
    ),
    "disk_quota": _user(
        "a disk quota is used up",
        "delete what is not needed, or ask for more quota",
    ),
    "storage_io_error": _platform(
        "the storage failed",
        "run it again on another node; tell the operator if it comes back",
    ),
    "file_not_found": _user(
        "a file or a folder is not where the job looks for it",
        "correct the path, or mount or download what is missing",
    ),
    "permission_denied": _user(
        "the job may not use a file, a folder or a program",
        "change its owner or mode, or use a place that the job may write to",
    ),
    "input_data_error": _user(
        "the input is there, and malformed",
        "check the file that is named, or skip records that cannot be read",
    ),
    "checkpoint_error": _user(
        "a checkpoint is damaged, or of another model",
        "load an older checkpoint, or make the model as it was when this one was saved",
    ),
    "loss_nan": _user(
        "the training diverged",
        "lower the learning rate, clip gradients, look at the data, or start from an older checkpoint",
    ),
    "user_code_error": _user("the job's own code failed", f"correct {NAMED_LINE}"),
    "syntax_error": _user("Python cannot parse the code", f"correct {NAMED_LINE}"),
    "shape_or_index_error": _user(
        "tensors do not fit together: shape, type, device or index",
        f"compare the shapes, types and devices at {NAMED_LINE}",
    ),
    "device_assert": _user(
        "an assertion failed on the GPU, nearly always labels or indices out of range",
        "check the range of labels and indices; CUDA_LAUNCH_BLOCKING=1 shows the line",
    ),
    "module_not_found": _user(
        "a Python package is missing",
        "install it in the image, or correct PYTHONPATH",
    ),
    "shared_lib_error": _user(
        "a shared library is missing or does not fit",
        "install what is named, in the version that the program was built for",
    ),
    "command_not_found": _user(
        "the shell does not find a program",
        "is the name a typo? else install the program in the image, or correct PATH",
    ),
    "usage_error": _user(
        "a program does not accept its arguments",
        "correct the command line; the program's --help tells more",
    ),
    "config_error": _user("a configuration is invalid", "correct the configuration that is named"),
    "cuda_driver_mismatch": _platform(
        "the node's GPU driver does not fit the image's CUDA",
        "run it on a node with a newer driver, or use an image with an older CUDA",
    ),
    "gpu_arch_unsupported": _user(
        "the program was not built for this kind of GPU",
        "use a build for this GPU, or another kind of GPU",
        "retry_elsewhere",
    ),
    "cudnn_error": _user(
        "cuDNN does not fit or could not start",
        "use a cuDNN of the version that the framework was built with; leave it GPU memory",
    ),
    "gpu_not_available": _platform(
        "there is no usable GPU in the container",
        "see that the job asks for GPUs; run it on another node",
    ),
    "cuda_kernel_error": _unknown(
        "a GPU kernel made an illegal access or could not run",
        "run it again; if it fails in the same place it is a bug, if on the same node bad memory",
    ),
    "gpu_ecc_error": _hardware(
        "a GPU's memory has an error that cannot be corrected",
        "run it on another node; the operator should reset or replace the GPU",
    ),
    "gpu_lost": _hardware(
        "a GPU is lost",
        "run it on another node; the operator should look at this one",
    ),
    "nvlink_error": _hardware(
        "a link between GPUs failed",
        "run it on another node; the operator should look at this one",
    ),
    "nccl_timeout": _unknown(
        "a collective waited too long for other ranks",
        "look at the logs of the other ranks: one failed, hangs or is slow; run it again",
    ),
    "nccl_system_error": _platform(
        "the network between the ranks failed",
        "run it again elsewhere; see NCCL_SOCKET_IFNAME and NCCL_IB_HCA if it always fails",
    ),
    "nccl_cuda_error": _unknown(
        "a CUDA call of NCCL failed",
        "run it again elsewhere; NCCL_DEBUG=INFO tells which call",
        "retry_elsewhere",
    ),
    "rendezvous_timeout": _platform(
        "the workers did not find each other",
        "see that all of them started, and that address and port of the master are right",
        "retry",
    ),
    "peer_lost": _unknown(
        "another worker went away",
        "look at the log of that worker; run it again",
    ),
    "port_in_use": _platform(
        "a port is in use",
        "run it again, or take another port",
        "retry",
    ),
    "network_unreachable": _platform(
        "a service outside the job could not be reached",
        "run it again; see proxy, DNS and the service if it always fails",
        "retry",
    ),
    "remote_auth": _user(
        "a service refused the credentials",
        "give a valid token or key that has the right, and accept the terms of what is asked for",
    ),
    "service_quota": _user(
        "a service's limit is reached",
        "wait, ask less often or for less, or use a mirror or a cache",
        "retry",
    ),
    "container_setup_error": _platform(
        "the container could not be set up",
        "run it on another node; tell the operator if it comes back",
    ),
    "segfault": _unknown(
        "a program crashed with a segmentation fault",
        "run it again; if it comes back, python -X faulthandler shows where",
    ),
    "illegal_instruction": _user(
        "a program was built for another CPU",
        "use a build for this CPU, or a node with a newer one",
        "retry_elsewhere",
    ),
    "native_abort": _unknown(
        "a program aborted itself",
        "run it again; look at what it printed before if it comes back",
    ),
    "build_failed": _user(
        "a package or an extension could not be built or installed",
        "look at the compiler's first error; use a ready-made wheel, or build it into the image",
    ),
    "kernel_resource_limit": _user(
        "a GPU kernel needs more shared memory or registers than the GPU has",
        "use a smaller block size or fewer stages (num_stages), or a GPU with more shared memory",
        "retry_elsewhere",
    ),
    "device_busy": _platform(
        "another process holds the device",
        "end the process that holds it, or run the job on another node",
    ),
    "npu_error": _unknown(
        "an accelerator such as an NPU or a TPU reports an error",
        "run it again; look at the device's own log if it comes back",
    ),
    "pcie_error": _hardware(
        "the bus between CPU and device reports errors (PCIe AER)",
        "run it on another node; the operator should look at the slot, the riser and the device",
    ),
    "node_stuck": _platform(
        "the node or its driver does not respond",
        "run it on another node; the operator should look at this one",
    ),
    "evicted": _platform(
        "Kubernetes or the scheduler removed the job from its node",
        "run it again; ask for what the job uses, or for a higher priority",
    ),
    "unschedulable": _platform(
        "no node can take the job now",
        "wait, or ask for less; compare what the job asks for with what the nodes have",
        "retry",
    ),
    "image_missing": _user(
        "the image or its tag does not exist",
        "correct the image's name and tag, or push it",
    ),
    "registry_unavailable": _platform(
        "the image registry does not answer",
        "run it again; use a mirror or an image that the node already has",
        "retry",
    ),
    "launcher_error": _user(
        "the launcher cannot start the workers with these settings",
        "compare the number of workers, the hosts and the slots with what the job has",
    ),
    "shell_error": _user("a shell script has an error", "correct the line of the script"),
    "locale_error": _user(
        "the image lacks the locale that is set",
        "set LC_ALL=C.UTF-8, or install the locale in the image",
    ),
    "framework_bug": FailureClass(
        "the framework or the compiler has a bug",
        "framework",
        None,
        "use another version of the framework, or switch off what is named; report the message",
    ),
    "child_failed": _unknown(
        "a process that the job started failed, and the log does not show why",
        "look at that process's own log",
    ),
    "hang": _unknown(
        "the job stopped making progress, without an error",
        "see where it waits (py-spy dump); run it again",
    ),
    "terminated_sigterm": _platform(
        "the job was stopped from outside",
        "run it again; save checkpoints more often if that happens a lot",
        "retry",
    ),
    "time_limit": _user(
        "the time limit is reached",
        "ask for more time, or continue from a checkpoint",
    ),
    "cancelled_by_user": _user("a user cancelled the job", "run it again when you like", "never"),
    NONE: FailureClass("nothing is wrong in the log", "unknown", None, ""),
    UNKNOWN: _unknown("cause unknown", "read the last lines", "retry")._replace(retry=None),
}

EXIT_CODES: Mapping[int, tuple[str, int]] = {
    124: ("time_limit", 45),  # timeout(1)
    125: ("container_setup_error", 45),  # docker run
    126: ("permission_denied", 50),  # POSIX: found, but cannot be run
    127: ("command_not_found", 60),  # POSIX
    129: ("terminated_sigterm", 55),
    130: ("cancelled_by_user", 60),
    132: ("illegal_instruction", 65),
    134: ("native_abort", 55),
    135: ("shm_too_small", 45),
    136: ("native_abort", 55),
    137: ("host_oom", 45),
    139: ("segfault", 65),
    143: ("terminated_sigterm", 65),
}
"""The class of an exit code when the log matches no rule, and its weight, 0 to 100."""

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
        check: what to check first.
        command: the command that checks it; NAME is a Pod, NODE a node, FILE a file.
        mend: what usually solves the problem.
    """

    meaning: str
    fault: str
    retry: str | None
    advice: str
    check: str = ""
    command: str = ""
    mend: str = ""


# fmt: off
CLASSES: Mapping[str, FailureClass] = {
    "gpu_oom": FailureClass(
        "the GPU's memory is full", "user", "after_fix",
        "make the batch, the sequence or the model smaller, shard it, or ask for larger GPUs",
        "whether the job alone fills the GPU, and in which step",
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
        "halve the batch size and accumulate gradients, then try activation checkpointing, sharding (FSDP, ZeRO) or a larger GPU. For a serving engine: a shorter context or a smaller cache"),
    "host_oom": FailureClass(
        "the container's memory is full", "user", "after_fix",
        "ask for more memory, or use less: fewer data workers, smaller buffers, memory maps",
        "the highest memory use against the container's limit",
        "cat /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory.max",
        "fewer data workers, streaming in place of loading everything, or a higher memory limit"),
    "shm_too_small": FailureClass(
        "/dev/shm is too small for the data workers", "user", "after_fix",
        "ask for more shared memory, or use fewer data workers",
        "the size of /dev/shm and who fills it",
        "df -h /dev/shm",
        "a larger /dev/shm (shmMB in a job file, --shm-size for docker), or fewer data workers"),
    "process_limit": FailureClass(
        "no more processes or threads may be started", "user", "after_fix",
        "start fewer workers and threads (OMP_NUM_THREADS), or ask for a higher limit",
        "how many processes and threads run, and the limit",
        "ulimit -u; cat /sys/fs/cgroup/pids.current /sys/fs/cgroup/pids.max",
        "OMP_NUM_THREADS=1 and fewer workers; libraries start one thread for each CPU of the node"),
    "too_many_open_files": FailureClass(
        "the limit of open files is reached", "user", "after_fix",
        "close files, use fewer data workers or the file_system sharing strategy, or raise `ulimit -n`",
        "how many files the process has open, and the limit",
        "ulimit -n; ls /proc/self/fd | wc -l",
        "torch.multiprocessing.set_sharing_strategy('file_system'), or `ulimit -n 65536` before"),
    "disk_full": FailureClass(
        "a disk is full", "user", "after_fix",
        "delete old checkpoints and caches, or write to a larger volume",
        "which file system is full, of bytes or of inodes",
        "df -h; df -i; du -xsh /tmp ~/.cache",
        "keep fewer checkpoints, put caches (HF_HOME, TMPDIR) on a volume, or ask for a larger one"),
    "disk_quota": FailureClass(
        "a disk quota is used up", "user", "after_fix",
        "delete what is not needed, or ask for more quota",
        "whose quota is used up",
        "quota -s; lfs quota -h ~",
        "delete old checkpoints and environments, or write to a project's folder"),
    "storage_io_error": FailureClass(
        "the storage failed", "platform", "retry_elsewhere",
        "run it again on another node; tell the operator if it comes back",
        "whether the mount answers, and what the kernel says",
        "stat -f FILE; dmesg -T | grep -iE 'nfs|lustre|ceph|i/o error'",
        "a run on another node; copy the data to a local disk if the storage is often overloaded"),
    "file_not_found": FailureClass(
        "a file or a folder is not where the job looks for it", "user", "after_fix",
        "correct the path, or mount or download what is missing",
        "whether the path exists inside the container",
        "ls -la FILE; pwd; df -h FILE",
        "an absolute path, the storage's mount in the job file, or a download before the command"),
    "permission_denied": FailureClass(
        "the job may not use a file, a folder or a program", "user", "after_fix",
        "change its owner or mode, or use a place that the job may write to",
        "who runs the job and who owns the file",
        "id; ls -lad FILE",
        "write to a folder of your own, set HOME and TMPDIR, or make the file executable"),
    "input_data_error": FailureClass(
        "the input is there, and malformed", "user", "after_fix",
        "check the file that is named, or skip records that cannot be read",
        "the record that is named",
        "file FILE; head -c 300 FILE",
        "fetch the file again and compare its checksum, or skip records that cannot be read"),
    "checkpoint_error": FailureClass(
        "a checkpoint is damaged, or of another model", "user", "after_fix",
        "load an older checkpoint, or make the model as it was when this one was saved",
        "whether the file is whole, and whose model it is",
        "ls -la FILE; python -c \"import torch; torch.load('FILE', map_location='cpu')\"",
        "an older checkpoint; write checkpoints to a temporary name and rename them when whole"),
    "loss_nan": FailureClass(
        "the training diverged", "user", "after_fix",
        "lower the learning rate, clip gradients, look at the data, or start from an older checkpoint",
        "the first step whose loss or gradient is not finite",
        "grep -n -m1 -iE 'nan|inf' FILE",
        "a lower learning rate with warm-up, clipped gradients, bf16 in place of fp16, checked data"),
    "user_code_error": FailureClass(
        "the job's own code failed", "user", "after_fix",
        f"correct {NAMED_LINE}",
        "the innermost line of your own code in the traceback",
        "pairun diagnose FILE",
        "correct that line; a run with one small batch on one GPU shows whether it holds"),
    "syntax_error": FailureClass(
        "Python cannot parse the code", "user", "after_fix",
        f"correct {NAMED_LINE}",
        "whether the Python of the image parses the file",
        "python -m py_compile FILE",
        "correct the line, or use a newer Python in the image if the syntax is newer"),
    "shape_or_index_error": FailureClass(
        "tensors do not fit together: shape, type, device or index", "user", "after_fix",
        f"compare the shapes, types and devices at {NAMED_LINE}",
        "shapes, types and devices of the tensors at the line",
        "print((x.shape, x.dtype, x.device))",
        "the sizes of the model's configuration made to fit the data's, tensors moved to one device"),
    "device_assert": FailureClass(
        "an assertion failed on the GPU, nearly always labels or indices out of range", "user", "after_fix",
        "check the range of labels and indices; CUDA_LAUNCH_BLOCKING=1 shows the line",
        "the smallest and the largest label or index against the number of classes",
        "CUDA_LAUNCH_BLOCKING=1 python FILE",
        "labels from 0 to N-1, a vocabulary as large as the tokenizer's"),
    "module_not_found": FailureClass(
        "a Python package is missing", "user", "after_fix",
        "install it in the image, or correct PYTHONPATH",
        "which Python runs, and what is installed in it",
        "which python; python -m pip list",
        "the package in the image, or the folder of your code in PYTHONPATH"),
    "shared_lib_error": FailureClass(
        "a shared library is missing or does not fit", "user", "after_fix",
        "install what is named, in the version that the program was built for",
        "which library is missing, or which version was loaded",
        "ldd FILE | grep -i 'not found'; ldconfig -p",
        "packages of one release (torch, torchvision, CUDA), and no foreign LD_LIBRARY_PATH"),
    "command_not_found": FailureClass(
        "the shell does not find a program", "user", "after_fix",
        "is the name a typo? else install the program in the image, or correct PATH",
        "whether the image has the program, and PATH names its folder",
        "command -v PROGRAM; echo $PATH",
        "the program in the image, its absolute path, or the environment activated before"),
    "usage_error": FailureClass(
        "a program does not accept its arguments", "user", "after_fix",
        "correct the command line; the program's --help tells more",
        "the options of the version that is installed",
        "PROGRAM --help",
        "the option's new name, or the version that knows it"),
    "config_error": FailureClass(
        "a configuration is invalid", "user", "after_fix",
        "correct the configuration that is named",
        "the setting that the message names",
        "python -c \"import yaml; yaml.safe_load(open('FILE'))\"",
        "correct that setting; sizes must divide each other (heads, GPUs, batch)"),
    "cuda_driver_mismatch": FailureClass(
        "the node's GPU driver does not fit the image's CUDA", "platform", "retry_elsewhere",
        "run it on a node with a newer driver, or use an image with an older CUDA",
        "the driver's CUDA version against the framework's",
        "nvidia-smi | head -4; python -c 'import torch; print(torch.version.cuda)'",
        "an image with an older CUDA, or nodes with a newer driver"),
    "gpu_arch_unsupported": FailureClass(
        "the program was not built for this kind of GPU", "user", "retry_elsewhere",
        "use a build for this GPU, or another kind of GPU",
        "the GPU's compute capability against those of the build",
        "python -c 'import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())'",
        "a build for this GPU (TORCH_CUDA_ARCH_LIST), or another kind of GPU"),
    "cudnn_error": FailureClass(
        "cuDNN does not fit or could not start", "user", "after_fix",
        "use a cuDNN of the version that the framework was built with; leave it GPU memory",
        "which cuDNN is loaded, and how much GPU memory is free",
        "python -c 'import torch; print(torch.backends.cudnn.version())'; nvidia-smi",
        "the cuDNN that came with the framework: no other one in LD_LIBRARY_PATH"),
    "gpu_not_available": FailureClass(
        "there is no usable GPU in the container", "platform", "retry_elsewhere",
        "see that the job asks for GPUs; run it on another node",
        "whether the container sees a GPU at all",
        "nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES",
        "GPUs in the job's request, a framework built with CUDA, or another node"),
    "cuda_kernel_error": FailureClass(
        "a GPU kernel made an illegal access or could not run", "unknown", "retry",
        "run it again; if it fails in the same place it is a bug, if on the same node bad memory",
        "which kernel fails, and whether it fails at the same place again",
        "CUDA_LAUNCH_BLOCKING=1 compute-sanitizer python FILE",
        "a newer version of the extension; another node if it fails on one node alone"),
    "gpu_ecc_error": FailureClass(
        "a GPU's memory has an error that cannot be corrected", "hardware", "retry_elsewhere",
        "run it on another node; the operator should reset or replace the GPU",
        "the GPU's error counters and remapped rows",
        "nvidia-smi -q -d ECC,ROW_REMAPPER",
        "another node; a reset of the GPU, then its replacement"),
    "gpu_lost": FailureClass(
        "a GPU is lost", "hardware", "retry_elsewhere",
        "run it on another node; the operator should look at this one",
        "what the kernel says of the GPU",
        "dmesg -T | grep -iE 'xid|nvrm|aer|oom|blocked for'",
        "another node; a reboot, then power and cooling, then the replacement of the GPU"),
    "nvlink_error": FailureClass(
        "a link between GPUs failed", "hardware", "retry_elsewhere",
        "run it on another node; the operator should look at this one",
        "the state and the error counters of the links",
        "nvidia-smi nvlink -s; nvidia-smi nvlink -e",
        "another node; the fabric manager's restart, then the link's replacement"),
    "nccl_timeout": FailureClass(
        "a collective waited too long for other ranks", "unknown", "retry",
        "look at the logs of the other ranks: one failed, hangs or is slow; run it again",
        "which rank did not come: the logs of all ranks together",
        "pairun diagnose FOLDER",
        "fix that rank; the same number of batches in each; a longer timeout if one rank saves a checkpoint meanwhile"),
    "nccl_system_error": FailureClass(
        "the network between the ranks failed", "platform", "retry_elsewhere",
        "run it again elsewhere; see NCCL_SOCKET_IFNAME and NCCL_IB_HCA if it always fails",
        "which interface NCCL takes, and whether the ports are up",
        "NCCL_DEBUG=INFO; ip -br addr; ibstat",
        "NCCL_SOCKET_IFNAME and NCCL_IB_HCA for this cluster, or other nodes"),
    "nccl_cuda_error": FailureClass(
        "a CUDA call of NCCL failed", "unknown", "retry_elsewhere",
        "run it again elsewhere; NCCL_DEBUG=INFO tells which call",
        "the CUDA call that NCCL names",
        "NCCL_DEBUG=INFO",
        "one GPU for each rank (LOCAL_RANK), NCCL of the framework's release, or another node"),
    "rendezvous_timeout": FailureClass(
        "the workers did not find each other", "platform", "retry",
        "see that all of them started, and that address and port of the master are right",
        "whether all workers run, and the master's address and port answer",
        "nc -vz $MASTER_ADDR $MASTER_PORT",
        "the same MASTER_ADDR, port and number of nodes everywhere; a longer timeout for slow images"),
    "peer_lost": FailureClass(
        "another worker went away", "unknown", "retry",
        "look at the log of that worker; run it again",
        "which worker ended first",
        "pairun diagnose FOLDER",
        "fix that worker; its memory is the most frequent cause"),
    "port_in_use": FailureClass(
        "a port is in use", "platform", "retry",
        "run it again, or take another port",
        "which process holds the port",
        "ss -ltnp",
        "another port, or port 0; end processes of an earlier run"),
    "network_unreachable": FailureClass(
        "a service outside the job could not be reached", "platform", "retry",
        "run it again; see proxy, DNS and the service if it always fails",
        "name, route and proxy",
        "getent hosts HOST; curl -vI https://HOST; env | grep -i proxy",
        "the cluster's proxy or mirror, or the data on a volume before the job"),
    "remote_auth": FailureClass(
        "a service refused the credentials", "user", "after_fix",
        "give a valid token or key that has the right, and accept the terms of what is asked for",
        "whether the token reaches the container and has the right",
        'curl -sI -H "Authorization: Bearer $TOKEN" URL',
        "a valid token as a secret of the job, and the terms of the model accepted"),
    "service_quota": FailureClass(
        "a service's limit is reached", "user", "retry",
        "wait, ask less often or for less, or use a mirror or a cache",
        "which limit, and when it is renewed",
        "curl -sI URL | grep -iE 'ratelimit|retry-after'",
        "a token (anonymous limits are low), a cache or a mirror, one download for all ranks"),
    "container_setup_error": FailureClass(
        "the container could not be set up", "platform", "retry_elsewhere",
        "run it on another node; tell the operator if it comes back",
        "the Pod's events",
        "kubectl describe pod NAME",
        "another node; mounts, secrets and the runtime class that do exist"),
    "segfault": FailureClass(
        "a program crashed with a segmentation fault", "unknown", "retry",
        "run it again; if it comes back, python -X faulthandler shows where",
        "where it crashes",
        "python -X faulthandler FILE",
        "packages of one release, built for this image; a newer version of the one that crashes"),
    "illegal_instruction": FailureClass(
        "a program was built for another CPU", "user", "retry_elsewhere",
        "use a build for this CPU, or a node with a newer one",
        "the CPU's instructions",
        "grep -m1 -o 'avx[^ ]*' /proc/cpuinfo; uname -m",
        "a build for this CPU, or nodes with a newer one"),
    "native_abort": FailureClass(
        "a program aborted itself", "unknown", "retry",
        "run it again; look at what it printed before if it comes back",
        "the message just above the abort",
        "python -X faulthandler FILE",
        "packages of one release; fix the cause that the message names"),
    "build_failed": FailureClass(
        "a package or an extension could not be built or installed", "user", "after_fix",
        "look at the compiler's first error; use a ready-made wheel, or build it into the image",
        "the first error of the compiler, far above the end",
        "grep -n -m3 -iE 'error:|fatal' FILE; nvcc --version; gcc --version",
        "a ready-made wheel for this Python, torch and CUDA; --no-build-isolation; MAX_JOBS=4; the build in the image and not in the job"),
    "kernel_resource_limit": FailureClass(
        "a GPU kernel needs more shared memory or registers than the GPU has", "user", "retry_elsewhere",
        "use a smaller block size or fewer stages (num_stages), or a GPU with more shared memory",
        "the kernel's need against the GPU's limit, which the message names",
        "python -c 'import torch; print(torch.cuda.get_device_properties(0))'",
        "smaller blocks, fewer stages or warps; a version of the kernel tuned for this GPU"),
    "device_busy": FailureClass(
        "another process holds the device", "platform", "retry_elsewhere",
        "end the process that holds it, or run the job on another node",
        "which process holds the device",
        "fuser -v /dev/nvidia* /dev/accel* /dev/vfio/* 2>&1; nvidia-smi",
        "end processes of an earlier run, one process for each device, or another node"),
    "npu_error": FailureClass(
        "an accelerator such as an NPU or a TPU reports an error", "unknown", "retry",
        "run it again; look at the device's own log if it comes back",
        "the state of the devices, and the first error code in the log",
        "npu-smi info; hl-smi; neuron-ls; tpu-info",
        "driver, firmware and framework of one release; another node if the code names the device"),
    "pcie_error": FailureClass(
        "the bus between CPU and device reports errors (PCIe AER)", "hardware", "retry_elsewhere",
        "run it on another node; the operator should look at the slot, the riser and the device",
        "which device reports, and how often",
        "dmesg -T | grep -i aer; nvidia-smi -q -d PERFORMANCE | grep -i replay",
        "another node; the device reseated, its riser or cable replaced"),
    "node_stuck": FailureClass(
        "the node or its driver does not respond", "platform", "retry_elsewhere",
        "run it on another node; the operator should look at this one",
        "the node's conditions and its blocked processes",
        "kubectl describe node NODE; ps -eo pid,stat,wchan:30,cmd | grep ' D'",
        "another node; a reboot of this one, as a process in a driver cannot be killed"),
    "evicted": FailureClass(
        "Kubernetes or the scheduler removed the job from its node", "platform", "retry_elsewhere",
        "run it again; ask for what the job uses, or for a higher priority",
        "what was short: memory, disk, or priority",
        "kubectl get events --field-selector reason=Evicted",
        "requests as large as the use (QoS class Guaranteed), a higher priority, regular checkpoints"),
    "unschedulable": FailureClass(
        "no node can take the job now", "platform", "retry",
        "wait, or ask for less; compare what the job asks for with what the nodes have",
        "what the job asks for against what nodes and queue have",
        "kubectl describe pod NAME; squeue --start",
        "a smaller request, another queue, partition or kind of GPU; else wait"),
    "image_missing": FailureClass(
        "the image or its tag does not exist", "user", "after_fix",
        "correct the image's name and tag, or push it",
        "whether the registry has this name, tag and platform",
        "skopeo inspect docker://IMAGE",
        "correct the tag or push the image; add a pull secret if the registry needs one"),
    "registry_unavailable": FailureClass(
        "the image registry does not answer", "platform", "retry",
        "run it again; use a mirror or an image that the node already has",
        "whether the registry answers from a node",
        "curl -sI https://REGISTRY/v2/",
        "a retry later, or a mirror in the cluster"),
    "launcher_error": FailureClass(
        "the launcher cannot start the workers with these settings", "user", "after_fix",
        "compare the number of workers, the hosts and the slots with what the job has",
        "hosts and slots that the launcher has",
        "cat $HOSTFILE; echo $SLURM_JOB_NODELIST $SLURM_NTASKS $WORLD_SIZE",
        "as many processes as slots; RANK, WORLD_SIZE and MASTER_ADDR from the launcher alone"),
    "shell_error": FailureClass(
        "a shell script has an error", "user", "after_fix",
        "correct the line of the script",
        "the script's syntax and its unset variables",
        "bash -n FILE; shellcheck FILE",
        "quotes around variables, ${NAME:-} where one may be unset, bash where bash is needed"),
    "locale_error": FailureClass(
        "the image lacks the locale that is set", "user", "after_fix",
        "set LC_ALL=C.UTF-8, or install the locale in the image",
        "the locales that the image has",
        "locale -a; env | grep -E 'LC_|LANG'",
        "LC_ALL=C.UTF-8 in the environment of the job"),
    "framework_bug": FailureClass(
        "the framework or the compiler has a bug", "framework", None,
        "use another version of the framework, or switch off what is named; report the message",
        "whether the project knows the message",
        "python -m torch.utils.collect_env",
        "another release, or the feature switched off (torch.compile, CUDA graphs, a fused kernel)"),
    "child_failed": FailureClass(
        "a process that the job started failed, and the log does not show why", "unknown", "retry",
        "look at that process's own log",
        "the log of the process that failed",
        "pairun diagnose FOLDER; torchrun --log-dir FOLDER --tee 3",
        "@record around main() for torchrun, so that its error file has the traceback"),
    "hang": FailureClass(
        "the job stopped making progress, without an error", "unknown", "retry",
        "see where it waits (py-spy dump); run it again",
        "where each rank waits",
        "py-spy dump --pid PID",
        "the same collectives in the same order on all ranks; data workers that time out; a watchdog"),
    "terminated_sigterm": FailureClass(
        "the job was stopped from outside", "platform", "retry",
        "run it again; save checkpoints more often if that happens a lot",
        "who stopped it: preemption, maintenance, a deleted Pod, another instance",
        "kubectl get events; sacct -j JOB -o State,Reason",
        "checkpoints at SIGTERM and a resume from them"),
    "time_limit": FailureClass(
        "the time limit is reached", "user", "after_fix",
        "ask for more time, or continue from a checkpoint",
        "how far the job came",
        "scontrol show job JOB | grep TimeLimit",
        "a longer limit, or several runs that resume from checkpoints"),
    "cancelled_by_user": FailureClass(
        "a user cancelled the job", "user", "never",
        "run it again when you like",
        "who cancelled it",
        "sacct -j JOB -o User,State; last",
        "nothing, if it was intended"),
    NONE: FailureClass("nothing is wrong in the log", "unknown", None, ""),
    UNKNOWN: FailureClass("cause unknown", "unknown", None, "read the last lines"),
}
# fmt: on

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

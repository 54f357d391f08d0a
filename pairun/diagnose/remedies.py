"""Remedies for each failure class: what to check first, the command for it, the usual solution.

``pairun doc CLASS`` and the reference show them; a diagnosis's advice is the short form. PID 1
does not need them. In a command, replace ``NAME`` by a Pod, ``NODE`` by a node, ``FILE`` by a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Remedy(NamedTuple):
    """The remedy for one class.

    Attributes:
        check: what to check first.
        command: the command that checks it.
        mend: what usually solves the problem.
    """

    check: str
    command: str
    mend: str


_DESCRIBE = "kubectl describe pod NAME"
_KERNEL_LOG = "dmesg -T | grep -iE 'xid|nvrm|aer|oom|blocked for'"
_PLACE = "python -X faulthandler FILE"

REMEDIES: Mapping[str, Remedy] = {
    "gpu_oom": Remedy(
        "whether the job alone fills the GPU, and in which step",
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
        "halve the batch size and accumulate gradients, then try activation checkpointing, sharding"
        " (FSDP, ZeRO) or a larger GPU. For a serving engine: a shorter context or a smaller cache",
    ),
    "host_oom": Remedy(
        "the highest memory use against the container's limit",
        "cat /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory.max",
        "fewer data workers, streaming in place of loading everything, or a higher memory limit",
    ),
    "shm_too_small": Remedy(
        "the size of /dev/shm and who fills it",
        "df -h /dev/shm",
        "a larger /dev/shm (shmMB in a job file, --shm-size for docker), or fewer data workers",
    ),
    "process_limit": Remedy(
        "how many processes and threads run, and the limit",
        "ulimit -u; cat /sys/fs/cgroup/pids.current /sys/fs/cgroup/pids.max",
        "OMP_NUM_THREADS=1 and fewer workers; libraries start one thread for each CPU of the node",
    ),
    "too_many_open_files": Remedy(
        "how many files the process has open, and the limit",
        "ulimit -n; ls /proc/self/fd | wc -l",
        "torch.multiprocessing.set_sharing_strategy('file_system'), or `ulimit -n 65536` before",
    ),
    "disk_full": Remedy(
        "which file system is full, of bytes or of inodes",
        "df -h; df -i; du -xsh /tmp ~/.cache",
        "keep fewer checkpoints, put caches (HF_HOME, TMPDIR) on a volume, or ask for a larger one",
    ),
    "disk_quota": Remedy(
        "whose quota is used up",
        "quota -s; lfs quota -h ~",
        "delete old checkpoints and environments, or write to a project's folder",
    ),
    "storage_io_error": Remedy(
        "whether the mount answers, and what the kernel says",
        "stat -f FILE; dmesg -T | grep -iE 'nfs|lustre|ceph|i/o error'",
        "a run on another node; copy the data to a local disk if the storage is often overloaded",
    ),
    "file_not_found": Remedy(
        "whether the path exists inside the container",
        "ls -la FILE; pwd; df -h FILE",
        "an absolute path, the storage's mount in the job file, or a download before the command",
    ),
    "permission_denied": Remedy(
        "who runs the job and who owns the file",
        "id; ls -lad FILE",
        "write to a folder of your own, set HOME and TMPDIR, or make the file executable",
    ),
    "input_data_error": Remedy(
        "the record that is named",
        "file FILE; head -c 300 FILE",
        "fetch the file again and compare its checksum, or skip records that cannot be read",
    ),
    "checkpoint_error": Remedy(
        "whether the file is whole, and whose model it is",
        "ls -la FILE; python -c \"import torch; torch.load('FILE', map_location='cpu')\"",
        "an older checkpoint; write checkpoints to a temporary name and rename them when whole",
    ),
    "loss_nan": Remedy(
        "the first step whose loss or gradient is not finite",
        "grep -n -m1 -iE 'nan|inf' FILE",
        "a lower learning rate with warm-up, clipped gradients, bf16 in place of fp16, checked data",
    ),
    "user_code_error": Remedy(
        "the innermost line of your own code in the traceback",
        "pairun diagnose FILE",
        "correct that line; a run with one small batch on one GPU shows whether it holds",
    ),
    "syntax_error": Remedy(
        "whether the Python of the image parses the file",
        "python -m py_compile FILE",
        "correct the line, or use a newer Python in the image if the syntax is newer",
    ),
    "shape_or_index_error": Remedy(
        "shapes, types and devices of the tensors at the line",
        "print((x.shape, x.dtype, x.device))",
        "the sizes of the model's configuration made to fit the data's, tensors moved to one device",
    ),
    "device_assert": Remedy(
        "the smallest and the largest label or index against the number of classes",
        "CUDA_LAUNCH_BLOCKING=1 python FILE",
        "labels from 0 to N-1, a vocabulary as large as the tokenizer's",
    ),
    "module_not_found": Remedy(
        "which Python runs, and what is installed in it",
        "which python; python -m pip list",
        "the package in the image, or the folder of your code in PYTHONPATH",
    ),
    "shared_lib_error": Remedy(
        "which library is missing, or which version was loaded",
        "ldd FILE | grep -i 'not found'; ldconfig -p",
        "packages of one release (torch, torchvision, CUDA), and no foreign LD_LIBRARY_PATH",
    ),
    "command_not_found": Remedy(
        "whether the image has the program, and PATH names its folder",
        "command -v PROGRAM; echo $PATH",
        "the program in the image, its absolute path, or the environment activated before",
    ),
    "usage_error": Remedy(
        "the options of the version that is installed",
        "PROGRAM --help",
        "the option's new name, or the version that knows it",
    ),
    "config_error": Remedy(
        "the setting that the message names",
        "python -c \"import yaml; yaml.safe_load(open('FILE'))\"",
        "correct that setting; sizes must divide each other (heads, GPUs, batch)",
    ),
    "cuda_driver_mismatch": Remedy(
        "the driver's CUDA version against the framework's",
        "nvidia-smi | head -4; python -c 'import torch; print(torch.version.cuda)'",
        "an image with an older CUDA, or nodes with a newer driver",
    ),
    "gpu_arch_unsupported": Remedy(
        "the GPU's compute capability against those of the build",
        "python -c 'import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())'",
        "a build for this GPU (TORCH_CUDA_ARCH_LIST), or another kind of GPU",
    ),
    "cudnn_error": Remedy(
        "which cuDNN is loaded, and how much GPU memory is free",
        "python -c 'import torch; print(torch.backends.cudnn.version())'; nvidia-smi",
        "the cuDNN that came with the framework: no other one in LD_LIBRARY_PATH",
    ),
    "gpu_not_available": Remedy(
        "whether the container sees a GPU at all",
        "nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES",
        "GPUs in the job's request, a framework built with CUDA, or another node",
    ),
    "cuda_kernel_error": Remedy(
        "which kernel fails, and whether it fails at the same place again",
        "CUDA_LAUNCH_BLOCKING=1 compute-sanitizer python FILE",
        "a newer version of the extension; another node if it fails on one node alone",
    ),
    "gpu_ecc_error": Remedy(
        "the GPU's error counters and remapped rows",
        "nvidia-smi -q -d ECC,ROW_REMAPPER",
        "another node; a reset of the GPU, then its replacement",
    ),
    "gpu_lost": Remedy(
        "what the kernel says of the GPU",
        _KERNEL_LOG,
        "another node; a reboot, then power and cooling, then the replacement of the GPU",
    ),
    "nvlink_error": Remedy(
        "the state and the error counters of the links",
        "nvidia-smi nvlink -s; nvidia-smi nvlink -e",
        "another node; the fabric manager's restart, then the link's replacement",
    ),
    "nccl_timeout": Remedy(
        "which rank did not come: the logs of all ranks together",
        "pairun diagnose FOLDER",
        "fix that rank; the same number of batches in each; a longer timeout if one"
        " rank saves a checkpoint meanwhile",
    ),
    "nccl_system_error": Remedy(
        "which interface NCCL takes, and whether the ports are up",
        "NCCL_DEBUG=INFO; ip -br addr; ibstat",
        "NCCL_SOCKET_IFNAME and NCCL_IB_HCA for this cluster, or other nodes",
    ),
    "nccl_cuda_error": Remedy(
        "the CUDA call that NCCL names",
        "NCCL_DEBUG=INFO",
        "one GPU for each rank (LOCAL_RANK), NCCL of the framework's release, or another node",
    ),
    "rendezvous_timeout": Remedy(
        "whether all workers run, and the master's address and port answer",
        "nc -vz $MASTER_ADDR $MASTER_PORT",
        "the same MASTER_ADDR, port and number of nodes everywhere; a longer timeout for slow images",
    ),
    "peer_lost": Remedy(
        "which worker ended first",
        "pairun diagnose FOLDER",
        "fix that worker; its memory is the most frequent cause",
    ),
    "port_in_use": Remedy(
        "which process holds the port",
        "ss -ltnp",
        "another port, or port 0; end processes of an earlier run",
    ),
    "network_unreachable": Remedy(
        "name, route and proxy",
        "getent hosts HOST; curl -vI https://HOST; env | grep -i proxy",
        "the cluster's proxy or mirror, or the data on a volume before the job",
    ),
    "remote_auth": Remedy(
        "whether the token reaches the container and has the right",
        'curl -sI -H "Authorization: Bearer $TOKEN" URL',
        "a valid token as a secret of the job, and the terms of the model accepted",
    ),
    "service_quota": Remedy(
        "which limit, and when it is renewed",
        "curl -sI URL | grep -iE 'ratelimit|retry-after'",
        "a token (anonymous limits are low), a cache or a mirror, one download for all ranks",
    ),
    "container_setup_error": Remedy(
        "the Pod's events",
        _DESCRIBE,
        "another node; mounts, secrets and the runtime class that do exist",
    ),
    "segfault": Remedy(
        "where it crashes",
        _PLACE,
        "packages of one release, built for this image; a newer version of the one that crashes",
    ),
    "illegal_instruction": Remedy(
        "the CPU's instructions",
        "grep -m1 -o 'avx[^ ]*' /proc/cpuinfo; uname -m",
        "a build for this CPU, or nodes with a newer one",
    ),
    "native_abort": Remedy(
        "the message just above the abort",
        _PLACE,
        "packages of one release; fix the cause that the message names",
    ),
    "build_failed": Remedy(
        "the first error of the compiler, far above the end",
        "grep -n -m3 -iE 'error:|fatal' FILE; nvcc --version; gcc --version",
        "a ready-made wheel for this Python, torch and CUDA; --no-build-isolation; MAX_JOBS=4; the"
        " build in the image and not in the job",
    ),
    "kernel_resource_limit": Remedy(
        "the kernel's need against the GPU's limit, which the message names",
        "python -c 'import torch; print(torch.cuda.get_device_properties(0))'",
        "smaller blocks, fewer stages or warps; a version of the kernel tuned for this GPU",
    ),
    "device_busy": Remedy(
        "which process holds the device",
        "fuser -v /dev/nvidia* /dev/accel* /dev/vfio/* 2>&1; nvidia-smi",
        "end processes of an earlier run, one process for each device, or another node",
    ),
    "npu_error": Remedy(
        "the state of the devices, and the first error code in the log",
        "npu-smi info; hl-smi; neuron-ls; tpu-info",
        "driver, firmware and framework of one release; another node if the code names the device",
    ),
    "pcie_error": Remedy(
        "which device reports, and how often",
        "dmesg -T | grep -i aer; nvidia-smi -q -d PERFORMANCE | grep -i replay",
        "another node; the device reseated, its riser or cable replaced",
    ),
    "node_stuck": Remedy(
        "the node's conditions and its blocked processes",
        "kubectl describe node NODE; ps -eo pid,stat,wchan:30,cmd | grep ' D'",
        "another node; a reboot of this one, as a process in a driver cannot be killed",
    ),
    "evicted": Remedy(
        "what was short: memory, disk, or priority",
        "kubectl get events --field-selector reason=Evicted",
        "requests as large as the use (QoS class Guaranteed), a higher priority, regular checkpoints",
    ),
    "unschedulable": Remedy(
        "what the job asks for against what nodes and queue have",
        f"{_DESCRIBE}; squeue --start",
        "a smaller request, another queue, partition or kind of GPU; else wait",
    ),
    "image_missing": Remedy(
        "whether the registry has this name, tag and platform",
        "skopeo inspect docker://IMAGE",
        "correct the tag or push the image; add a pull secret if the registry needs one",
    ),
    "registry_unavailable": Remedy(
        "whether the registry answers from a node",
        "curl -sI https://REGISTRY/v2/",
        "a retry later, or a mirror in the cluster",
    ),
    "launcher_error": Remedy(
        "hosts and slots that the launcher has",
        "cat $HOSTFILE; echo $SLURM_JOB_NODELIST $SLURM_NTASKS $WORLD_SIZE",
        "as many processes as slots; RANK, WORLD_SIZE and MASTER_ADDR from the launcher alone",
    ),
    "shell_error": Remedy(
        "the script's syntax and its unset variables",
        "bash -n FILE; shellcheck FILE",
        "quotes around variables, ${NAME:-} where one may be unset, bash where bash is needed",
    ),
    "locale_error": Remedy(
        "the locales that the image has",
        "locale -a; env | grep -E 'LC_|LANG'",
        "LC_ALL=C.UTF-8 in the environment of the job",
    ),
    "framework_bug": Remedy(
        "whether the project knows the message",
        "python -m torch.utils.collect_env",
        "another release, or the feature switched off (torch.compile, CUDA graphs, a fused kernel)",
    ),
    "child_failed": Remedy(
        "the log of the process that failed",
        "pairun diagnose FOLDER; torchrun --log-dir FOLDER --tee 3",
        "@record around main() for torchrun, so that its error file has the traceback",
    ),
    "hang": Remedy(
        "where each rank waits",
        "py-spy dump --pid PID",
        "the same collectives in the same order on all ranks; data workers that time out; a watchdog",
    ),
    "terminated_sigterm": Remedy(
        "who stopped it: preemption, maintenance, a deleted Pod, another instance",
        "kubectl get events; sacct -j JOB -o State,Reason",
        "checkpoints at SIGTERM and a resume from them",
    ),
    "time_limit": Remedy(
        "how far the job came",
        "scontrol show job JOB | grep TimeLimit",
        "a longer limit, or several runs that go on from checkpoints",
    ),
    "cancelled_by_user": Remedy(
        "who cancelled it", "sacct -j JOB -o User,State; last", "nothing, if it was intended"
    ),
}

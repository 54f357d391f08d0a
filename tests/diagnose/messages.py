"""Messages of software that people run, made for these tests by the form of each: class, text."""

from __future__ import annotations

from tests.diagnose.cases import TRACE

MESSAGES: list[tuple[str, str]] = [
    (
        "loss_nan",
        "FloatingPointError: Minimum loss scale reached (0.1). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or a larger batch.",
    ),
    ("host_oom", "train-0   0/1   OOMKilled   3 (2m ago)   9m"),
    ("image_missing", "train-0   0/1   ErrImageNeverPull   0   9m"),
    (
        "gpu_oom",
        TRACE
        + "tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized. [Op:_EagerConst]",
    ),
    (
        "gpu_oom",
        "E1122 10:00:00.000000 memory_pool.cc:55] Failed to allocate CUDA memory with byte size 1073741824 on GPU 0: CNMEM_STATUS_OUT_OF_MEMORY",
    ),
    (
        "gpu_oom",
        TRACE
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 384.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 210.50 MiB is free.",
    ),
    ("host_oom", "java.lang.OutOfMemoryError: GC overhead limit exceeded"),
    ("host_oom", "cc1plus: out of memory allocating 65536 bytes after a total of 801234567 bytes"),
    ("host_oom", "ERROR: LoadError: OutOfMemoryError()"),
    ("host_oom", TRACE + "lightgbm.basic.LightGBMError: bad allocation"),
    (
        "host_oom",
        "/var/spool/slurmd/job00012/slurm_script: line 22: 41411 Killed                  python train.py",
    ),
    (
        "shm_too_small",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    ),
    ("shm_too_small", "NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12 to 33030532 bytes"),
    ("process_limit", "sh: 0: Cannot fork"),
    ("process_limit", TRACE + "RuntimeError: can't start new thread"),
    ("too_many_open_files", TRACE + "OSError: [Errno 24] Too many open files"),
    ("too_many_open_files", TRACE + "RuntimeError: received 0 items of ancdata"),
    ("disk_full", "E: You don't have enough free space in /var/cache/apt/archives/."),
    (
        "disk_full",
        TRACE
        + "OSError: Not enough disk space. Needed: 37.22 GiB (download: 11 GiB, generated: 26 GiB)",
    ),
    ("disk_full", TRACE + "OSError: 4096 requested and 0 written"),
    ("disk_full", TRACE + "OSError: 131072 requested and 65536 written"),
    ("disk_full", TRACE + "OSError: [Errno 28] No space left on device"),
    ("disk_quota", "[Errno 69] Disc quota exceeded"),
    ("disk_quota", TRACE + "OSError: [Errno 122] Disk quota exceeded: '/home/x/.cache'"),
    ("storage_io_error", "mount.nfs: access denied by server while mounting 10.0.0.1:/x"),
    ("storage_io_error", TRACE + "OSError: [Errno 16] Device or resource busy: '.nfs000000000012'"),
    ("storage_io_error", TRACE + "OSError: [Errno 521] Unknown error 521"),
    ("storage_io_error", TRACE + "OSError: [Errno 37] No locks available"),
    ("storage_io_error", TRACE + "OSError: [Errno 116] Stale file handle: '/nfs/x'"),
    (
        "file_not_found",
        TRACE
        + "OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5 found in directory /m.",
    ),
    ("file_not_found", "BucketNotFoundException: 404 gs://b bucket does not exist."),
    ("file_not_found", "./run.sh: line 3: cd: /w/x: Not a directory"),
    ("file_not_found", "curl: (22) The requested URL returned error: 404"),
    (
        "file_not_found",
        TRACE + "FileNotFoundError: [Errno 2] No such file or directory: '/data/a.json'",
    ),
    (
        "permission_denied",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
    ),
    ("permission_denied", "sudo: a password is required"),
    (
        "permission_denied",
        "sudo: a terminal is required to read the password; either use the -S option",
    ),
    (
        "permission_denied",
        'sudo: "no new privileges" flag is set, which prevents sudo from running as root.',
    ),
    ("permission_denied", TRACE + "PermissionError: [Errno 13] Permission denied: '/out'"),
    (
        "input_data_error",
        TRACE + "OSError: unrecognized data stream contents when reading image file",
    ),
    ("input_data_error", TRACE + "SyntaxError: broken PNG file (chunk b'\\x00\\x00\\x00\\x00')"),
    (
        "input_data_error",
        TRACE
        + "PIL.Image.DecompressionBombError: Image size (300000000 pixels) exceeds limit of 178956970 pixels, could be decompression bomb DOS attack.",
    ),
    ("input_data_error", TRACE + "datasets.table.CastError: Couldn't cast"),
    (
        "input_data_error",
        TRACE
        + "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ),
    (
        "checkpoint_error",
        TRACE + "ValueError: Cannot assign value to variable 'dense/kernel:0': Shape mismatch.",
    ),
    (
        "checkpoint_error",
        TRACE
        + "ValueError: A total of 1 objects could not be loaded. Example error message for object <Dense>",
    ),
    (
        "checkpoint_error",
        TRACE + "AssertionError: checkpoint has tensor parallel size 4 but current is 8",
    ),
    (
        "checkpoint_error",
        TRACE
        + "flax.errors.ScopeParamShapeError: Initializer expected to generate shape (3, 3) but got shape (5, 5)",
    ),
    (
        "checkpoint_error",
        TRACE
        + 'RuntimeError: Error(s) in loading state_dict for Net:\n\\tMissing key(s) in state_dict: "a.weight".',
    ),
    ("loss_nan", "Loss is nan, stopping training"),
    ("loss_nan", TRACE + "FloatingPointError: Loss became infinite or NaN at iteration=12!"),
    (
        "user_code_error",
        TRACE + "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=1, ip=1.1.1.1)",
    ),
    ("user_code_error", "Error: object 'y' not found\nExecution halted"),
    ("user_code_error", "Error in library(x) : something\nExecution halted"),
    ("user_code_error", "Caused by: java.lang.IllegalStateException: bad"),
    ("user_code_error", TRACE + "NameError: name 'x' is not defined"),
    ("syntax_error", "ERROR: LoadError: syntax: incomplete: premature end of input"),
    ("syntax_error", 'Error: unexpected symbol in "x y"\nExecution halted'),
    ("syntax_error", "Error in parse(text = x) : <text>:1:3: unexpected symbol"),
    ("syntax_error", "ValueError: source code string cannot contain null bytes"),
    (
        "syntax_error",
        "  File \"a.py\", line 3\n    print x\n    ^^^^^^^\nSyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?",
    ),
    (
        "shape_or_index_error",
        TRACE
        + 'einops.EinopsError: Error while processing rearrange-reduction pattern "b c -> c b". Input tensor shape: torch.Size([1]).',
    ),
    (
        "shape_or_index_error",
        TRACE
        + "RuntimeError: Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU",
    ),
    (
        "shape_or_index_error",
        TRACE
        + "ValueError: X has 3 features, but LinearRegression is expecting 4 features as input.",
    ),
    (
        "shape_or_index_error",
        "ERROR: LoadError: BoundsError: attempt to access 3-element Vector{Int64} at index [4]",
    ),
    ("shape_or_index_error", TRACE + "IndexError: list index out of range"),
    ("device_assert", TRACE + "RuntimeError: CUDA error: device-side assert triggered"),
    ("device_assert", TRACE + "torch.AcceleratorError: CUDA error: device-side assert triggered"),
    ("module_not_found", 'Exception in thread "main" java.lang.NoClassDefFoundError: org/x/Y'),
    ("module_not_found", "java.lang.ClassNotFoundException: org.x.Y"),
    (
        "module_not_found",
        TRACE
        + "OSError: [E050] Can't find model 'en_core_web_sm'. It doesn't seem to be a Python package or a valid path to a data directory.",
    ),
    ("module_not_found", TRACE + "ModuleNotFoundError: No module named 'apex'"),
    (
        "shared_lib_error",
        "Error: package or namespace load failed for 'x' in dyn.load(file, DLLpath = DLLpath, ...):\n unable to load shared object '/x.so'",
    ),
    ("shared_lib_error", "java.lang.UnsatisfiedLinkError: no opencv_java in java.library.path"),
    (
        "shared_lib_error",
        TRACE
        + "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
    ),
    (
        "shared_lib_error",
        TRACE
        + "RuntimeError: The detected CUDA libraries: libnvrtc.so not found: Error in dlopen: libnvrtc.so.12: cannot open",
    ),
    (
        "shared_lib_error",
        TRACE
        + "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    ),
    ("command_not_found", "/usr/bin/env: 'python': No such file or directory"),
    ("command_not_found", "/bin/bash: /opt/conda/bin/foo: No such file or directory"),
    (
        "command_not_found",
        "[mpiexec@n1] HYDU_create_process (utils/launch.c:75): execvp error on file foo (No such file or directory)",
    ),
    ("command_not_found", "ash: foo: not found"),
    ("command_not_found", "run.sh: line 4: accelerate: command not found"),
    ("usage_error", "no such option: --foo\nUsage: pip install [options]"),
    ("usage_error", "error: unexpected argument '--x' found\n\nUsage: foo [OPTIONS]"),
    ("usage_error", "error: the argument '--x <X>' cannot be used with '--y'"),
    ("usage_error", "error: invalid value 'a' for '--n <N>': invalid digit found in string"),
    ("usage_error", "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --x"),
    ("config_error", TRACE + "ValueError: Unknown optimizer: foo in config"),
    ("config_error", "Error: couldn't find key X in ConfigMap ns/y"),
    (
        "config_error",
        TRACE
        + "peft: ValueError: Target modules {'x'} not found in the base model. Please check the target modules and try again.",
    ),
    ("config_error", TRACE + "traitlets.config.loader.ConfigFileNotFound: x"),
    (
        "config_error",
        TRACE + "omegaconf.errors.ConfigAttributeError: Key 'x' is not in struct\n    full_key: x",
    ),
    (
        "cuda_driver_mismatch",
        "NVRM: API mismatch: the client has the version 535.1, but this kernel module has the version 525.2.",
    ),
    (
        "cuda_driver_mismatch",
        "This container was built for NVIDIA Driver Release 545.23 or later, but\nversion 470.57 was detected and compatibility mode is UNAVAILABLE.",
    ),
    (
        "cuda_driver_mismatch",
        "pytorch: ROCm: HSA Error: Incompatible kernel and userspace, Queue disabled. Upgrade amdgpu.",
    ),
    (
        "cuda_driver_mismatch",
        TRACE + "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    ),
    (
        "gpu_arch_unsupported",
        TRACE
        + "torch._inductor.exc.GPUTooOldForTriton: Found Tesla P100 which is too old to be supported by the triton GPU compiler",
    ),
    (
        "gpu_arch_unsupported",
        TRACE
        + "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ),
    ("cudnn_error", TRACE + "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    ("cudnn_error", TRACE + "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    ("gpu_not_available", 'could not select device driver "" with capabilities: [[gpu]]'),
    ("gpu_not_available", TRACE + "RuntimeError: 0 active drivers ([]). There should only be one."),
    ("gpu_not_available", TRACE + "RuntimeError: Failed to get device capability: 0 GPUs visible"),
    ("gpu_not_available", "ERROR: LoadError: CUDA driver not found"),
    ("gpu_not_available", TRACE + "RuntimeError: No CUDA GPUs are available"),
    ("cuda_kernel_error", "CUDA_EXCEPTION_14, Warp Illegal Address"),
    (
        "cuda_kernel_error",
        "Accelerator Fatal Error: call to cuStreamSynchronize returned error 700: Illegal address during kernel execution",
    ),
    (
        "cuda_kernel_error",
        TRACE + "RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    ("gpu_ecc_error", TRACE + "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("gpu_ecc_error", "NVRM: Xid (PCI:0000:3b:00): 94, pid=1, Contained: SM"),
    ("gpu_lost", "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus."),
    ("gpu_lost", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."),
    (
        "nvlink_error",
        "NVRM: Xid (PCI:0000:3b:00): 74, pid=1, NVLink: fatal error detected on link 3",
    ),
    ("nvlink_error", "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Fatal, Link 46"),
    ("nccl_timeout", TRACE + "torch.distributed.DistBackendError: NCCL timeout in rank 3"),
    (
        "nccl_timeout",
        TRACE
        + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete",
    ),
    (
        "nccl_system_error",
        "UCX  ERROR   ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited'",
    ),
    (
        "nccl_system_error",
        "libfabric:1:ofi_rxm: fi_cq_readerr: rc -5 Input/output error prov_errno: 110",
    ),
    ("nccl_system_error", TRACE + "gloo::IoException: Unable to find interface for: [0.0.0.0]"),
    ("nccl_system_error", "Open MPI failed an OFI Libfabric library call (fi_endpoint)."),
    (
        "nccl_system_error",
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    ),
    ("nccl_cuda_error", "NCCL WARN Cuda failure 999 'unknown error'"),
    (
        "nccl_cuda_error",
        TRACE + "RuntimeError: NCCL error in: x.cpp:1, unhandled cuda error, NCCL version 2.10.3",
    ),
    (
        "rendezvous_timeout",
        TRACE + "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    ),
    (
        "rendezvous_timeout",
        TRACE
        + "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/4 clients joined.",
    ),
    ("peer_lost", TRACE + "RuntimeError: [rank 1] NCCL communicator was aborted on rank 1."),
    ("peer_lost", TRACE + "ray.exceptions.ObjectLostError: Failed to retrieve object x"),
    (
        "peer_lost",
        "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:3",
    ),
    ("peer_lost", TRACE + "torch.distributed.DistNetworkError: Connection reset by peer"),
    ("port_in_use", TRACE + "OSError: [Errno 98] Address already in use"),
    (
        "port_in_use",
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
    ),
    ("network_unreachable", TRACE + "kafka.errors.NoBrokersAvailable: NoBrokersAvailable"),
    ("network_unreachable", "wandb: ERROR Run initialization has timed out after 90.0 sec."),
    (
        "network_unreachable",
        "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]",
    ),
    (
        "network_unreachable",
        TRACE
        + "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: /x",
    ),
    (
        "remote_auth",
        TRACE
        + "pymysql.err.OperationalError: (1045, \"Access denied for user 'x'@'h' (using password: YES)\")",
    ),
    ("remote_auth", "sshd: no matching host key type found. Their offer: ssh-rsa"),
    (
        "remote_auth",
        TRACE
        + "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://h",
    ),
    ("service_quota", "toomanyrequests: You have reached your pull rate limit."),
    ("container_setup_error", "[ERROR] Could not process JSON input\nenroot-import failed"),
    (
        "container_setup_error",
        "ERROR  : Failed to create user namespace: not allowed to create user namespace",
    ),
    (
        "container_setup_error",
        "Error: could not mount: fuse: device not found, try 'modprobe fuse' first",
    ),
    ("container_setup_error", "cgroups: cgroup mountpoint does not exist: unknown"),
    (
        "container_setup_error",
        "OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0",
    ),
    ("segfault", "exit status 139"),
    ("segfault", "run.sh: line 3: 1 Segmentation fault      (core dumped) python t.py"),
    (
        "illegal_instruction",
        "Please verify that both the operating system and the processor support Intel(R) AVX512F instructions.",
    ),
    ("illegal_instruction", "run.sh: line 1: 1 Illegal instruction     (core dumped) python t.py"),
    ("native_abort", "free(): invalid pointer\nAborted (core dumped)"),
    (
        "native_abort",
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  boom",
    ),
    ("build_failed", "configure: error: C compiler cannot create executables"),
    ("build_failed", "configure: error: no acceptable C compiler found in $PATH"),
    ("build_failed", "ERROR: x.whl is not a supported wheel on this platform."),
    ("build_failed", "ERROR: Invalid requirement: 'foo=='"),
    ("build_failed", "ERROR: Failed building wheel for x"),
    (
        "kernel_resource_limit",
        TRACE + "RuntimeError: CUDA error: too many resources requested for launch",
    ),
    (
        "kernel_resource_limit",
        "ptxas error   : Entry function 'x' uses too much shared data (0x13000 bytes, 0xc000 max)",
    ),
    (
        "device_busy",
        'ABORTED: libtpu.so already in use by another process. Run "$ sudo lsof -w /dev/accel0"',
    ),
    (
        "device_busy",
        TRACE + "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    ),
    ("npu_error", TRACE + "RuntimeError: ACL stream synchronize failed, error code:507015"),
    ("npu_error", "EZ9999: Inner Error!"),
    ("node_stuck", "srun: error: Node failure on n1"),
    ("node_stuck", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:1]"),
    (
        "evicted",
        "The node was low on resource: memory. Container x was using 10Gi, which exceeds its request of 1Gi.",
    ),
    (
        "evicted",
        "The node was low on resource: ephemeral-storage. Threshold quantity: 1, available: 0.",
    ),
    (
        "unschedulable",
        "0/5 nodes are available: 5 Insufficient nvidia.com/gpu. preemption: 0/5 nodes are available",
    ),
    (
        "unschedulable",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
    ),
    (
        "image_missing",
        'Failed to pull image "x:1": rpc error: code = NotFound desc = failed to pull and unpack image: x:1: not found',
    ),
    ("image_missing", "manifest unknown: manifest unknown"),
    (
        "registry_unavailable",
        'FATAL:   While making image from oci registry: error fetching image: pinging container registry r: Get "https://r/v2/": EOF',
    ),
    (
        "registry_unavailable",
        'Failed to pull image "x:1": rpc error: code = Canceled desc = context canceled',
    ),
    (
        "registry_unavailable",
        "Error response from daemon: Get https://r/v2/: dial tcp: lookup r: no such host",
    ),
    ("launcher_error", TRACE + "AssertionError: Default process group... hostfile 'x' is empty"),
    (
        "launcher_error",
        TRACE
        + "RuntimeError: nproc_per_node 8 is more than the 4 GPUs available: local_rank out of range",
    ),
    (
        "launcher_error",
        "A daemon (pid 1) died unexpectedly with status 255 while attempting to launch so we are aborting.",
    ),
    (
        "launcher_error",
        "pdsh: n1: ssh exited with exit code 255: no hosts\nRuntimeError: launcher 'pdsh' not installed.",
    ),
    (
        "launcher_error",
        "There are not enough slots available in the system to satisfy the 8 slots that were requested by the application:",
    ),
    ("shell_error", "run.sh: 3: set: Illegal option -o pipefail"),
    ("shell_error", "run.sh: line 3: cd: too many arguments"),
    ("shell_error", "/bin/sh: [[: not found"),
    ("shell_error", "run.sh: line 4: exit: abc: numeric argument required"),
    ("shell_error", "run.sh: line 3: syntax error near unexpected token `fi'"),
    ("locale_error", "locale.Error: unsupported locale setting"),
    (
        "locale_error",
        "RuntimeError: Click will abort further execution because Python was configured to use ASCII as encoding for the environment.",
    ),
    (
        "framework_bug",
        TRACE
        + 'RuntimeError: 0 INTERNAL ASSERT FAILED at "/pytorch/x.cpp":3, please report a bug to PyTorch.',
    ),
    ("framework_bug", TRACE + "torch._dynamo.exc.InternalTorchDynamoError: AttributeError: x"),
    ("child_failed", "error: recipe for target 'x' failed"),
    (
        "child_failed",
        "snakemake: Error in rule x:\n    (one of the commands exited with non-zero exit code; note that snakemake uses bash strict mode!)",
    ),
    ("child_failed", "Trial train_1 errored after 3 iterations"),
    (
        "child_failed",
        TRACE
        + "subprocess.CalledProcessError: Command '['python', 'a.py']' returned non-zero exit status 1.",
    ),
    ("terminated_sigterm", "[INFO] SIGTERM received from slurm; saving checkpoint and exiting"),
    (
        "terminated_sigterm",
        "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***",
    ),
    ("time_limit", "Error: The operation was canceled: exceeded the maximum time limit"),
    ("time_limit", "CPU time limit exceeded (core dumped)"),
    ("time_limit", "run.sh: line 3: 77 CPU time limit exceeded   python t.py"),
    ("time_limit", "job 12 exceeded its walltime"),
    (
        "time_limit",
        "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***",
    ),
    ("cancelled_by_user", "[mpiexec@n1] Sending Ctrl-C to processes as requested"),
    ("cancelled_by_user", "WARNING: Received SIGINT, stopping"),
    (
        "cancelled_by_user",
        "Tune run interrupted by SIGINT: Stop signal received (e.g. via SIGINT/Ctrl+C), ending Ray Tune run.",
    ),
    ("cancelled_by_user", "Aborted!\nUser pressed Ctrl+C"),
    (
        "cancelled_by_user",
        '^CTraceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    f()\nKeyboardInterrupt',
    ),
    ("pcie_error", "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0"),
    (
        "pcie_error",
        "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
    ),
]

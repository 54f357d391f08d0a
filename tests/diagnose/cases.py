"""Logs as frameworks, shells and kernels write them, made for these tests: class, exit code, text."""

from __future__ import annotations

TRACE = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 41, in <module>\n    main()\n'
)
STEPS = "".join(f"step {n}/500 loss: {9 / (n + 1):.3f} lr: 0.001 12.1 it/s\n" for n in range(1, 30))
EPILOGUE = """\
E0601 10:00:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 71) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/usr/local/lib/python3.10/dist-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-06-01_10:00:00
  host      : node-0
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 71)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
WATCHDOG = """\
[rank1]:[E601 10:10:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600002 milliseconds before timing out.
[rank1]:[E601 10:10:00.2 ProcessGroupNCCL.cpp:630] To avoid data inconsistency, we are taking the entire process down.
"""

FAILED: list[tuple[str, int | None, str]] = [
    (
        "gpu_oom",
        1,
        STEPS
        + TRACE
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.65 GiB\n"
        + EPILOGUE,
    ),
    (
        "gpu_oom",
        1,
        "[rank0]: "
        + TRACE.replace("\n", "\n[rank0]: ")
        + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        + WATCHDOG,
    ),
    (
        "gpu_oom",
        None,
        "2024-01-01 00:00:00.1: W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB\n"
        + TRACE
        + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n",
    ),
    (
        "host_oom",
        137,
        STEPS + "/job/run.sh: line 7:    31 Killed                  python train.py\n",
    ),
    (
        "host_oom",
        1,
        TRACE + "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed.\n",
    ),
    (
        "host_oom",
        1,
        TRACE
        + "numpy.core._exceptions.MemoryError: Unable to allocate 12.0 GiB for an array with shape (9, 9)\n",
    ),
    (
        "host_oom",
        None,
        "train.py FAILED\n  exitcode  : -9 (pid: 71)\n  traceback : Signal 9 (SIGKILL) received by PID 71\n",
    ),
    (
        "shm_too_small",
        1,
        TRACE
        + "RuntimeError: DataLoader worker (pid 3) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
    ),
    ("process_limit", 1, TRACE + "RuntimeError: can't start new thread\n"),
    ("too_many_open_files", 1, TRACE + "OSError: [Errno 24] Too many open files: '/data/a'\n"),
    (
        "disk_full",
        1,
        STEPS
        + TRACE
        + "OSError: [Errno 28] No space left on device\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE
        + "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 64 vs 0\n",
    ),
    ("disk_quota", 1, TRACE + "OSError: [Errno 122] Disk quota exceeded: '/home/a/x'\n"),
    ("storage_io_error", 1, STEPS + TRACE + "OSError: [Errno 116] Stale file handle\n"),
    (
        "file_not_found",
        1,
        TRACE
        + "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.json'\n"
        + EPILOGUE,
    ),
    (
        "file_not_found",
        2,
        "python3: can't open file '/job/trian.py': [Errno 2] No such file or directory\n",
    ),
    ("permission_denied", 126, "/bin/bash: ./run.sh: Permission denied\n"),
    (
        "input_data_error",
        1,
        STEPS + TRACE + "PIL.UnidentifiedImageError: cannot identify image file '/data/1.jpg'\n",
    ),
    (
        "checkpoint_error",
        1,
        TRACE
        + "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 4]) from checkpoint\n",
    ),
    ("loss_nan", 1, STEPS + "Loss is nan, stopping training\n"),
    ("user_code_error", 1, TRACE + "KeyError: 'labels'\n"),
    (
        "user_code_error",
        1,
        STEPS + TRACE + "AttributeError: 'NoneType' object has no attribute 'shape'\n" + EPILOGUE,
    ),
    ("user_code_error", 1, TRACE + "mylib.errors.TrainerFault: weights were not tied\n"),
    (
        "syntax_error",
        1,
        '  File "/job/train.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n',
    ),
    (
        "shape_or_index_error",
        1,
        TRACE
        + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x3 and 4x5)\n"
        + EPILOGUE,
    ),
    (
        "device_assert",
        1,
        "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [3,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        + TRACE
        + "RuntimeError: CUDA error: device-side assert triggered\n",
    ),
    ("module_not_found", 1, TRACE + "ModuleNotFoundError: No module named 'einops'\n"),
    (
        "shared_lib_error",
        1,
        TRACE
        + "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n",
    ),
    ("command_not_found", 127, "run.sh: line 2: deepspeed: command not found\n"),
    (
        "usage_error",
        2,
        "usage: train.py [-h] --data DATA\ntrain.py: error: the following arguments are required: --data\n",
    ),
    (
        "config_error",
        1,
        TRACE
        + 'yaml.scanner.ScannerError: mapping values are not allowed here\n  in "c.yaml", line 3, column 9\n',
    ),
    (
        "cuda_driver_mismatch",
        1,
        TRACE
        + "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n",
    ),
    (
        "gpu_arch_unsupported",
        1,
        TRACE
        + "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
    ),
    ("cudnn_error", 1, TRACE + "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\n"),
    ("gpu_not_available", 1, TRACE + "RuntimeError: No CUDA GPUs are available\n"),
    (
        "cuda_kernel_error",
        1,
        STEPS
        + TRACE
        + "RuntimeError: CUDA error: an illegal memory access was encountered\nterminate called after throwing an instance of 'c10::Error'\n"
        + WATCHDOG,
    ),
    (
        "gpu_ecc_error",
        1,
        STEPS + TRACE + "RuntimeError: CUDA error: uncorrectable ECC error encountered\n",
    ),
    (
        "gpu_lost",
        None,
        "[12345.678901] NVRM: Xid (PCI:0000:1a:00): 79, pid=9, GPU has fallen off the bus.\n"
        + TRACE
        + "RuntimeError: CUDA error: unknown error\n",
    ),
    (
        "nvlink_error",
        None,
        "kernel: NVRM: Xid (PCI:0000:1a:00): 74, pid=9, NVLink: fatal error detected on link 3\n"
        + WATCHDOG,
    ),
    (
        "nccl_timeout",
        134,
        STEPS
        + WATCHDOG
        + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        + EPILOGUE,
    ),
    (
        "nccl_system_error",
        1,
        "n1:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer n2<4>\n"
        + TRACE
        + "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.19.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n",
    ),
    (
        "nccl_cuda_error",
        1,
        TRACE
        + "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled cuda error, NCCL version 2.14.3\nncclUnhandledCudaError: Call to CUDA function failed.\n",
    ),
    (
        "rendezvous_timeout",
        1,
        TRACE
        + "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.\n",
    ),
    (
        "peer_lost",
        1,
        STEPS
        + TRACE
        + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
    ),
    ("port_in_use", 1, TRACE + "OSError: [Errno 98] Address already in use\n"),
    (
        "network_unreachable",
        1,
        TRACE
        + "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: /x (Caused by NameResolutionError(\"Failed to resolve 'hub'\"))\n",
    ),
    (
        "remote_auth",
        128,
        "Cloning into 'x'...\nfatal: Authentication failed for 'https://git.example.com/x.git/'\n",
    ),
    (
        "service_quota",
        1,
        TRACE
        + "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://hub/x\n",
    ),
    (
        "container_setup_error",
        125,
        "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: unknown.\n",
    ),
    (
        "segfault",
        139,
        STEPS + "run.sh: line 3:    12 Segmentation fault      (core dumped) python train.py\n",
    ),
    (
        "illegal_instruction",
        132,
        "run.sh: line 3:    12 Illegal instruction     (core dumped) python train.py\n",
    ),
    (
        "native_abort",
        134,
        STEPS
        + "free(): invalid pointer\nrun.sh: line 3:    12 Aborted                 (core dumped) python train.py\n",
    ),
    (
        "terminated_sigterm",
        143,
        STEPS
        + TRACE
        + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15\n",
    ),
    (
        "time_limit",
        None,
        STEPS
        + "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
    ),
    ("cancelled_by_user", 130, STEPS + TRACE + "KeyboardInterrupt\n"),
    (
        "cancelled_by_user",
        None,
        STEPS + "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***\n",
    ),
    # what is frightening and not the cause
    (
        "file_not_found",
        1,
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 10010).\n".replace(
            "The NVIDIA driver on your system is too old (found version 10010)",
            "CUDA unknown error",
        )
        + TRACE
        + "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'\n",
    ),
    (
        "user_code_error",
        1,
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nretrying with batch size 8\n"
        + STEPS
        + TRACE
        + "TypeError: 'int' object is not iterable\n",
    ),
    (
        "user_code_error",
        1,
        TRACE
        + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE
        + "NameError: name 'b' is not defined\n",
    ),
    (
        "network_unreachable",
        1,
        TRACE
        + "socket.gaierror: [Errno -2] Name or service not known\n\nThe above exception was the direct cause of the following exception:\n\n"
        + TRACE
        + "OSError: We couldn't connect to 'https://hub' to load this file\n",
    ),
    (
        "terminated_sigterm",
        143,
        "wandb: WARNING retrying in 2 s: ConnectionError\n" + STEPS + "Terminated\n",
    ),
    (
        "gpu_oom",
        1,
        TRACE
        + "RuntimeError: CUDA error: out of memory\n"
        + STEPS[:60]
        + "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 12 closing signal SIGTERM\n"
        + EPILOGUE,
    ),
    (
        # the launcher ends the others when one task fails: nobody cancelled the job
        "user_code_error",
        1,
        TRACE
        + "odd.lib.TracerLeak: escaped\nsrun: error: n4: task 3: Exited with exit code 1\nsrun: Terminating StepId=12.0\n"
        + "slurmstepd: error: *** STEP 12.0 ON n4 CANCELLED AT 2024-01-01T00:00:00 ***\nsrun: error: n4: tasks 0-2: Terminated\n",
    ),
    (
        "network_unreachable",
        1,
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to establish a new connection: [Errno 101] Network is unreachable')': /simple/einops/\nERROR: Could not find a version that satisfies the requirement einops (from versions: none)\nERROR: No matching distribution found for einops\n",
    ),
    (
        "network_unreachable",
        128,
        "ssh: Could not resolve hostname git.example.com: Temporary failure in name resolution\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
    ),
    (
        "storage_io_error",
        1,
        TRACE
        + "OSError: [Errno 116] Stale file handle\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE
        + "FileNotFoundError: [Errno 2] No such file or directory: '/nfs/tmp_8'\n",
    ),
    (
        "cuda_driver_mismatch",
        128,
        "docker: Error response from daemon: OCI runtime create failed: error running hook: exit status 1, stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.2, please update your driver to a newer version\n",
    ),
    (
        "rendezvous_timeout",
        1,
        TRACE
        + "tensorflow.python.framework.errors_impl.DeadlineExceededError: Barrier timed out. Barrier_id: start\n",
    ),
    (
        "peer_lost",
        1,
        "E0101 00:00:00.0 9 coordination_service.cc:954] /job:w/task:3 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:w/task:3 heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly.\n",
    ),
    (
        "terminated_sigterm",
        1,
        "W0101 10:10:10.1 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death signal, shutting down workers\n"
        + TRACE
        + "KeyError: 'stopped'\n",
    ),
    (
        "gpu_not_available",
        1,
        'Traceback (most recent call last):\n  File "/job/run.py", line 3, in <module>\n    assert torch.cuda.is_available(), "run this elsewhere"\nAssertionError: run this elsewhere\n',
    ),
    (
        "nccl_timeout",
        134,
        WATCHDOG
        + "Fatal Python error: Aborted\nrun.sh: line 2:  9 Aborted  (core dumped) python t.py\n",
    ),
    (
        "cuda_kernel_error",
        1,
        TRACE + "RuntimeError: CUDA error: an illegal instruction was encountered\n",
    ),
    (
        "nvlink_error",
        None,
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149\n",
    ),
    (
        "cancelled_by_user",
        1,
        "srun: forcing job termination\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        + STEPS[:60]
        + "slurmstepd: error: *** STEP 12.0 ON n4 CANCELLED AT 2024-01-01T00:00:00 ***\nsrun: error: n4: task 0: Killed\n",
    ),
    ("unknown", 3, STEPS),
    ("unknown", 1, "starting\nsomething odd was seen\n"),
    (
        "cancelled_by_user",
        None,
        STEPS
        + "WARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers\n"
        + TRACE,
    ),
    (
        "terminated_sigterm",
        None,
        STEPS
        + "[2024-05-01T10:00:00.123] error: *** STEP 7.0 ON n4 CANCELLED [2024-05-01T10:00:00.124] error: *** JOB 7 ON n4 CANCELLED AT 2024-05-01T10:00:00 DUE TO PREEMPTION ***\nAT 2024-05-01T10:00:00 DUE TO PREEMPTION ***\n",
    ),
    (
        "terminated_sigterm",
        None,
        STEPS
        + "*** Aborted at 17 (unix time) ***\nPC: @ 0x0 (unknown)\n*** SIGTERM (@0x1f) received by PID 31 (TID 0x7f00) from PID 7; stack trace: ***\n",
    ),
    (
        "shape_or_index_error",
        1,
        TRACE
        + "tensorflow.python.framework.errors_impl.InvalidArgumentError: 2 root error(s) found.\n  (0) Invalid argument: logits and labels must be broadcastable: logits_size=[4,9] labels_size=[3,9]\n",
    ),
    (
        "device_assert",
        None,
        STEPS
        + "Loss.cu:52: void loss(float *) [with T = float]: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n\n_classes` fail\ned.\n",
    ),
    (
        "nccl_timeout",
        None,
        STEPS
        + WATCHDOG
        + "Can't find nvmlDeviceGetX: /lib64/libnvidia-ml.so.1: undefined symbol: nvmlDeviceGetX\n",
    ),
    (
        "nccl_system_error",
        1,
        TRACE
        + "RuntimeError: NCCL error in: x.cpp:1275, internal error\nncclInternalError: Internal check failed.\nLast error:\nProxy Call to rank 7 failed (Connect)\n",
    ),
    (
        "peer_lost",
        None,
        "The node 'n2_71_0' has failed to send a keep-alive heartbeat to the rendezvous 'a' due to an error of type RendezvousConnectionError.\ntorch.distributed.elastic.rendezvous.api.RendezvousClosedError\n",
    ),
    ("native_abort", 1, TRACE + "Exception: process 0 terminated with signal SIGABRT\n"),
    ("host_oom", None, STEPS + "run.sh: 行 7:    31 已杀死                  python train.py\n"),
    ("segfault", None, STEPS + "段错误 (核心已转储)\n"),
    ("command_not_found", 127, "run.sh: 行 84: torchrun\uff1a未找到命令\n"),
    ("file_not_found", None, "cat: /data/list.txt: 没有那个文件或目录\n"),
    (
        "build_failed",
        1,
        "Building wheels for collected packages: oddkernels\n  error: subprocess-exited-with-error\n  x python setup.py bdist_wheel did not run successfully.\n      csrc/odd.cpp:7:10: fatal error: odd.h: No such file or directory\n      error: command '/usr/bin/gcc' failed with exit code 1\n  ERROR: Failed building wheel for oddkernels\n",
    ),
    (
        "build_failed",
        1,
        "Building extension module odd_adam...\nFAILED: odd_adam.o\n/usr/bin/c++ -MMD odd_adam.cpp\nninja: build stopped: subcommand failed.\n"
        + TRACE
        + "RuntimeError: Error building extension 'odd_adam'\n",
    ),
    (
        "unschedulable",
        None,
        "Events:\n  Type     Reason            Age   From               Message\n  Warning  FailedScheduling  9s    default-scheduler  0/4 nodes are available: 4 Insufficient nvidia.com/gpu.\n",
    ),
    (
        "kernel_resource_limit",
        1,
        TRACE
        + "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n",
    ),
    (
        "framework_bug",
        1,
        STEPS
        + TRACE
        + 'RuntimeError: x INTERNAL ASSERT FAILED at "/odd/aten/Odd.cpp":70, please report a bug to the authors.\n',
    ),
    ("child_failed", 1, STEPS + EPILOGUE),
    (
        "device_busy",
        1,
        TRACE
        + "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid 12.\n",
    ),
    (
        "npu_error",
        1,
        STEPS
        + TRACE
        + "RuntimeError: npuSynchronize:odd.cpp:429 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507014\n[ERROR] 2025-01-01-00:00:00 (PID:7, Device:0, RankID:0) ERR00100 PTA call acl api failed\n",
    ),
    (
        "shell_error",
        2,
        "preparing\nrun.sh: line 9: syntax error near unexpected token `fi'\nrun.sh: line 9: `fi'\n",
    ),
    (
        "launcher_error",
        1,
        "--------------------------------------------------------------------------\nThere are not enough slots available in the system to satisfy the 8\nslots that were requested by the application:\n\n  python\n",
    ),
    (
        "image_missing",
        125,
        "docker: Error response from daemon: manifest for odd/train:v9 not found: manifest unknown.\n",
    ),
    (
        "registry_unavailable",
        None,
        'Warning  Failed  kubelet  Failed to pull image "hub.example.com/odd:1": rpc error: code = Unknown desc = failed to do request: Head "https://hub.example.com/v2/odd/manifests/1": dial tcp 10.0.0.9:443: i/o timeout\n',
    ),
    (
        "evicted",
        None,
        "Status:   Failed\nReason:   Evicted\nMessage:  The node was low on resource: memory. Container main was using 60Gi, request is 0.\n",
    ),
]

HEALTHY: list[str] = [
    STEPS,
    STEPS + "Training finished in 42 s\n",
    "error_rate: 0.12 false_positive: 3 failure_count: 0\n" + STEPS,
    "wandb: Network error (ConnectTimeout), entering retry loop.\n" + STEPS + "Training complete\n",
    "I tensorflow/core/platform/cpu_feature_guard.cc:142] This TensorFlow binary is optimized with oneDNN\nE tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:9342] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n"
    + STEPS,
    "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory\n"
    + STEPS
    + "Evaluation finished\n",
    "UserWarning: Named tensors and all their associated APIs are an experimental feature\n/opt/x.py:3: DeprecationWarning: invalid escape sequence\n"
    + STEPS,
    TRACE
    + "ValueError: sample 17 is broken\nskipping sample 17\n"
    + STEPS * 3
    + "Training finished\n",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"
    + TRACE
    + "AttributeError: 'NoneType' object has no attribute 'close'\n",
    STEPS
    + "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
    + STEPS,
    "n1:1:1 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation\nn1:1:1 [0] NCCL INFO NET/IB : No device found.\nn1:1:1 [0] NCCL INFO comm 0x1 rank 0 - Abort COMPLETE\n"
    + STEPS,
    "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\n" + STEPS,
    "test_out_of_memory_is_reported PASSED\ntest_segfault PASSED\ntest_permission_denied PASSED\n12 passed in 3.1s\n",
    "Downloading: 100%|##########| 10/10 [00:01<00:00, 9.1it/s]\nSome weights of the model checkpoint were not used when initializing: ['cls']\n"
    + STEPS,
    "class 'nan' has 12 samples; 'inf' has 3\n" + STEPS + "Done. Total time: 0:12:01\n",
    "WARNING: retrying (attempt 2/5) after ConnectionResetError: [Errno 104] Connection reset by peer\n"
    + STEPS,
    "WARNING scheduler.py:9] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space\n"
    + STEPS,
    "skipping record 9: image file is truncated\nread 10000 records, 1 skipped\n",
    "INFO NaN check: will abort on NaN loss\n" + STEPS,
    "errors_seen: 0\nfatal: 0\n",
    "0 errors, 0 warnings\nBuild finished successfully\n",
    "ssh-agent: not found, skipping\nignoring missing file: [Errno 2] No such file or directory: 'cache.json'\n"
    + STEPS,
    "slurmstepd: error: couldn't chdir to `/job': No such file or directory: going to /tmp instead\n"
    + STEPS,
    "the checkpoint a.pt does not exist! Downloading it from the hub...\nFetching 13 files\n",
    "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory\n",
    "[W624 12:52:08.2 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=9): Broken pipe\nTraining finished\n",
    "2024-01-01 00:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_timer.cc:86] Delay kernel timed out: measured time has sub-optimal accuracy.\n",
]

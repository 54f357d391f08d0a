"""What systems report is read as data: it outranks text, and says also that nothing is wrong."""

from __future__ import annotations

import pytest

from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from tests.diagnose.cases import STEPS

_TEXT = "Traceback (most recent call last):\nKeyboardInterrupt\nReceived SIGTERM\n"

FACTS = [
    ("host_oom", "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"),
    ("host_oom", '        "reason": "OOMKilled",\n        "exitCode": 137,\n'),
    ("host_oom", "lastState:\n  terminated:\n    exitCode: 137\n    reason: OOMKilled\n"),
    ("evicted", "Status:  Failed\nReason:  Evicted\nMessage: The node was low on resource: memory.\n"),
    ("evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. \n"),
    ("shm_too_small", 'Usage of EmptyDir volume "dshm" exceeds the limit "8Gi". \n'),
    ("unschedulable", "Warning  FailedScheduling  9s  default-scheduler  0/8 nodes are available: 8 Insufficient nvidia.com/gpu.\n"),
    ("unschedulable", "Status:   Failed\nReason:   OutOfnvidia.com/gpu\n"),
    ("node_stuck", "INFO: task python:991 blocked for more than 120 seconds.\n"),
    (
        "storage_io_error",
        "INFO: task python:991 blocked for more than 120 seconds.\n nfs_file_read+0x8a/0xd0 [nfs]\n",
    ),
    ("host_oom", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,task=python3,pid=7,uid=0\n"),
    ("gpu_lost", "NVRM: Xid (PCI:0000:4f:00): 79, pid=9, GPU has fallen off the bus.\n"),
    ("gpu_ecc_error", "NVRM: Xid (PCI:0000:4f:00): 94, pid=9, Contained: SM (0x1). RST: No\n"),
    ("pcie_error", "pcieport 0000:80:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer\n"),
    ("host_oom", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n"),
    ("time_limit", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***\n"),
    ("node_stuck", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO NODE FAILURE ***\n"),
    ("host_oom", "7.batch   batch   ml   8  OUT_OF_ME+  0:125 \n"),
    ("time_limit", "7   train   gpu   ml   8   TIMEOUT   0:0 \n"),
    ("unschedulable", "sbatch: error: Batch job submission failed: Requested nodes are busy\n"),
    ("loss_nan", "{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.5}\n"),
    ("loss_nan", "Epoch: [3][7/9]  Loss nan (nan)\n"),
    ("hang", "Warning  Unhealthy  9s  kubelet  Container main failed liveness probe, will be restarted\n"),
    ("gpu_not_available", "No devices were found\n"),
    ("gpu_lost", "| ERR!   43C    P0   ERR! / 400W |   1MiB / 81559MiB |   ERR!   Default |\n"),
    ("gpu_ecc_error", "    ECC Errors\n        Volatile\n            DRAM Uncorrectable            : 3\n"),
]  # fmt: skip

HARMLESS = [
    "[ 12.500000] mce: [Hardware Error]: Machine check events logged\n",
    "[ 12.500000] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0\n",
    "[ 12.500000] {1}[Hardware Error]: event severity: corrected\n",
    "  DiskPressure     False   Mon, 01 Jan 2024 09:00:00 +0000   Mon, 01 Jan 2024 09:01:00 +0000   KubeletHasNoDiskPressure     kubelet has no disk pressure\n",
    "  Ready            True    Mon, 01 Jan 2024 09:00:00 +0000   Mon, 01 Jan 2024 09:01:00 +0000   KubeletReady                 kubelet is posting ready status\n",
    "Tolerations:     node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\n",
    "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0\n",
    "PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\npcieport 0000:00:1c.0:   device [8086:a33c] error status/mask=00000001/00002000\n",
    'Normal  Pulling  9s  kubelet  Pulling image "hub.example.com/a:1"\n',
    "Warning  FailedScheduling  9s  default-scheduler  0/8 nodes are available: 8 Insufficient nvidia.com/gpu.\nNormal  Scheduled  2s  default-scheduler  Successfully assigned ml/train-0 to n3\n",
    'Normal  BackOff  9s  kubelet  Back-off pulling image "hub.example.com/a:1"\nNormal  Pulled  2s  kubelet  Successfully pulled image "hub.example.com/a:1" in 4s\n',
    "7   train   gpu   ml   8   COMPLETED   0:0 \n",
    "        Volatile\n            DRAM Uncorrectable            : 0\n        Aggregate\n            DRAM Uncorrectable            : 3\n",
    "      Exit Code:    0\n",
    "n7     Ready,SchedulingDisabled   <none>   3d    v1.28.1\n",
    "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file No plugin found\n".join(
        ["n1:10:10 [0] NCCL INFO "] * 2
    ),
    "hub: 429 Client Error: Too Many Requests for url: https://hub.example.com/api\nWill try to load from local cache.\n",
    '            "OOMKilled": false,\n            "ExitCode": 0,\n',
    "Warning  Unhealthy  9s  kubelet  Readiness probe failed: dial tcp 10.0.0.7:8000: connect: connection refused\n",
    "step 7: loss=nan, skipping\nstep 8: loss=2.25\n",
    'INFO:     10.0.0.7:41010 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error\n',
]  # fmt: skip


@pytest.mark.parametrize(("klass", "text"), FACTS)
def test_a_fact_names_its_class(klass: str, text: str, table: Table) -> None:
    """Facts are recognised in pasted text, whoever wrote the lines around them."""
    diagnosis = diagnose([Log(text.encode())], table)
    assert diagnosis.klass == klass
    assert diagnosis.source
    assert diagnose([Log((STEPS + text).encode())], table).klass == klass


@pytest.mark.parametrize("text", HARMLESS)
def test_data_that_report_no_failure_raise_no_alarm(text: str, table: Table) -> None:
    """The words of a condition that is false are no evidence."""
    assert diagnose([Log(text.encode())], table).is_clean
    assert diagnose([Log((text + STEPS).encode())], table).klass == "none"


_DESCRIBED_PENDING = (
    "Status:           Pending\nConditions:\n  Type           Status\n  PodScheduled   False \nEvents:\n"
    "  Type     Reason            Age                  From               Message\n"
)
_NO_NODE = (
    "  Warning  FailedScheduling  3m (x9 over 7m)  default-scheduler  0/9 nodes are available: 3 node(s) "
    "had untolerated taint {gpu: bad}, 6 Insufficient nvidia.com/gpu. preemption: 0/9 nodes are "
    "available: 3 Preemption is not helpful for scheduling.\n"
)


def test_the_scheduler_s_event_says_more_than_the_condition(table: Table) -> None:
    """`kubectl describe pod` has both; the event names taints and resources."""
    diagnosis = diagnose([Log((_DESCRIBED_PENDING + _NO_NODE).encode())], table)
    assert diagnosis.klass == "unschedulable"
    why = "3 node(s) had untolerated taint {gpu: bad}, 6 Insufficient nvidia.com/gpu"
    assert diagnosis.headline == f"no node fits the Pod: {why}"
    assert diagnosis.evidence[0].text.startswith("Warning")


@pytest.mark.parametrize(
    "text",
    [
        '"reason": "NodeNotReady",\n"reason": "TaintManagerEviction",\n',
        "9s  Normal  TaintManagerEviction  pod/w-1  Marking for deletion Pod ml/w-1\n",
        "reason: DeletionByTaintManager\n",
        "reason: EvictionByEvictionAPI\n",
    ],
)
def test_a_pod_that_left_a_bad_node_needs_no_priority(text: str, table: Table) -> None:
    """Its node was tainted or drained: another one helps, a higher priority does not."""
    diagnosis = diagnose([Log(text.encode())], table)
    assert (diagnosis.klass, diagnosis.retry) == ("evicted", "retry_elsewhere")
    assert "another node" in diagnosis.advice
    assert "priority" not in diagnosis.advice


def test_a_fact_outranks_text(table: Table) -> None:
    """The container was killed for its memory, whatever its programs printed meanwhile."""
    text = _TEXT + "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137\n"
    diagnosis = diagnose([Log(text.encode())], table)
    assert (diagnosis.klass, diagnosis.retry, diagnosis.source) == (
        "host_oom",
        "after_fix",
        "Kubernetes",
    )


def test_an_error_explains_the_stop_after_it(table: Table) -> None:
    """Ranks that outlive a failed one wait until the time limit, which is not the cause."""
    failed = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    x\nKeyError: 9\n'
    stopped = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    assert diagnose([Log((failed + stopped).encode())], table).klass == "user_code_error"
    assert diagnose([Log((stopped + failed).encode())], table).klass == "time_limit"


def test_the_end_of_a_step_has_words(table: Table) -> None:
    """What srun prints when it ends a step says what happened, and an error before it weighs more."""
    ended = "srun: forcing job termination\n"
    assert diagnose([Log(ended.encode())], table).headline == "srun was told to end the job"
    failed = diagnose(
        [Log((_TEXT.replace("KeyboardInterrupt", "KeyError: 9") + ended).encode())], table
    )
    assert failed.klass == "user_code_error"


@pytest.mark.parametrize(
    ("text", "fault", "retry"),
    [
        ("The node was low on resource: memory. \n", "platform", "retry_elsewhere"),
        ("Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. \n", "user", "after_fix"),
        ("Memory cgroup out of memory: Killed process 7 (python3) total-vm:9kB\n", "user", "after_fix"),
        ("Out of memory: Killed process 7 (python3) total-vm:9kB\n", "platform", "retry_elsewhere"),
        ("[ 12.5] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00\n", "hardware", "retry_elsewhere"),
        ("[ 12.500000] EDAC MC0: 1 UE memory read error on CPU_SrcID#0\n", "hardware", "retry_elsewhere"),
        ("kernel: Memory failure: 0x12ab: Killing python3:7 due to hardware memory corruption\n", "hardware",
         "retry_elsewhere"),
    ],
)  # fmt: skip
def test_whose_limit_was_reached_decides_the_fault(
    text: str, fault: str, retry: str, table: Table
) -> None:
    """The container's own limit is the job's fault, the node's memory and disk are the platform's."""
    diagnosis = diagnose([Log(text.encode())], table)
    assert (diagnosis.fault, diagnosis.retry) == (fault, retry)

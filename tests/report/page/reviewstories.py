"""Jobs for the page on a review, and one with something hostile in every text."""

from __future__ import annotations

import json

JOB = """\
protocolVersion: 2
name: gpt-pretraining
type: job
prerequisites:
  - {name: any-image, type: dockerimage, uri: "docker.io/pytorch/pytorch:2.4"}
taskRoles:
  ps:
    instances: 2
    dockerImage: any-image
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 0, ports: {grpc: 1}}
    commands: ["python server.py"]
  worker:
    instances: 8
    dockerImage: any-image
    resourcePerInstance: {cpu: 8, memoryMB: 65536, gpu: 4}
    commands: ["cd /usr/local/pai/code", "python train.py --epochs 10 --data /data"]
  evaluator:
    instances: 1
    dockerImage: any-image
    resourcePerInstance: {cpu: 2, memoryMB: 4096, gpu: 1}
    commands: ["python evaluate.py"]
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true}
    - plugin: git
      parameters: {repo_uri: "https://git.example.com/team/train.git"}
    - plugin: cmd
      parameters:
        callbacks:
          - {event: taskStarts, commands: ["mkdir -p /data", "tar -C /data -xf /mnt/set.tar"]}
          - {event: taskSucceeds, commands: ["rm -r /data"]}
  pairun:
    init:
      - patch: git
        retries: 3
        args: {depth: 1}
      - disable: port_check
    runtime:
      - append:
        id: warm
        name: Read the data set once
        cmd: {argv: [vmtouch, -t, /data]}
        failure_policy: ignore
"""

REFUSED = JOB.replace(
    "      - disable: port_check\n",
    "      - patch: barrier\n        retries: 4\n      - disable: image_check\n",
)
"""The same with two overrides that the default policy refuses."""


def hostile_job(text: str) -> str:
    """A job with the same text in every field that takes any text.

    Args:
        text: any text.
    """
    quoted = json.dumps(text)
    return f"""\
protocolVersion: 2
name: job
type: job
description: {quoted}
prerequisites:
  - {{name: image, type: dockerimage, uri: {quoted}}}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 1024, gpu: 0}}
    commands: [{quoted}, "second line"]
extras:
  pairun:
    {quoted}: 1
    init:
      - patch: image_check
        args: {{image: {quoted}}}
      - patch: {quoted}
    runtime:
      - append:
        id: shown
        name: {quoted}
        cmd: {{argv: [{quoted}], creates: {quoted}}}
        environment: {{A: {quoted}, {quoted}: b}}
        when: {json.dumps(f"results.user_command != {text!r}")}
        on_exit:
          - {{name: {quoted}, event: failure, cmd: {{script: {quoted}}}}}
"""

"""One example for each method of a module's context, for the reference; a test binds every call."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "stat": 'stat = ctx.stat("/data/train.csv")\nif stat is None:\n    raise Permanent("no such file: /data/train.csv", fault="user")',
    "read_file": 'text = (ctx.read_file("/etc/os-release") or b"").decode()',
    "digest": 'is_current = ctx.digest("/data/model.bin") == sha256',
    "list_dir": 'names = ctx.list_dir("/checkpoints") or []',
    "which": 'if ctx.which("rsync") is None:\n    raise Permanent("the image has no rsync", fault="user")',
    "query": 'answer = ctx.query(["nvidia-smi", "-L"], timeout_s=10)\ngpus = answer.stdout.decode().splitlines()',
    "port_taken": 'user = ctx.port_taken(23456)\nif user is not None:\n    raise Conflict(f"port 23456 is in use by {user}")',
    "fetch": 'answer = ctx.fetch("https://example.com/health", timeout_s=5)\nif answer.status != 200:\n    raise Transient(f"the service answered {answer.status}")',
    "ask_api": 'body = ctx.ask_api("/api/v1/namespaces/default/pods/worker-0")\npod = json.loads(body) if body is not None else None',
    "connects": 'if not ctx.connects("worker-1", 23456):\n    raise Transient("worker-1 does not listen on port 23456 yet")',
    "lookup": 'address = ctx.lookup("files.example.com")',
    "mounts": 'is_mounted = any(mount.target == "/data" for mount in ctx.mounts())',
    "real_path": 'path = ctx.real_path("/data/latest")',
    "free_bytes": 'if ctx.free_bytes("/scratch") < 10 * 2**30:\n    raise Permanent("less than 10 GiB are free in /scratch", fault="user")',
    "gather": 'gathering = ctx.gather({"worker": 8}, ctx.log)\nif gathering is not None and gathering.complete:\n    hosts = [peer.pod_ip for peer in gathering.peers or ()]',
    "hide": 'token = reply["token"]\nctx.hide([token])  # before anything can print it',
    "remaining_s": "left_s = ctx.remaining_s()",
    "now": "age_s = ctx.now() - began_at",
    "run": 'done = ctx.run(["rsync", "-a", source, target])\nif done.code != 0:\n    raise Transient(f"rsync ended with {done.code}")',
    "post": 'ctx.post(url, b"{}", headers={"Content-Type": "application/json"})',
    "create_event": 'ctx.create_event(Note("DataChecked", "every file of the dataset is there", warning=False))',
    "start": 'talk = ctx.start(["tail", "-F", "/tmp/progress"])\nwhile talk.code() is None:\n    ctx.log(talk.take().decode(errors="replace"))\n    ctx.sleep(1)',
    "write_file": 'ctx.write_file("/usr/local/pai/run/hostfile", b"worker-0 slots=8\\n", 0o644)',
    "fetch_file": 'ctx.fetch_file("https://example.com/set.tar.gz", "/data/set.tar.gz", sha256=sha256)',
    "unpack": 'ctx.unpack("/data/set.tar.gz", "/data/set", max_bytes=2**40, max_members=10**6)',
    "set_mode": 'ctx.set_mode("/data/run.sh", 0o755)',
    "make_dir": 'ctx.make_dir("/checkpoints/run-1")',
    "rename": 'ctx.rename("/checkpoints/.new", "/checkpoints/last")',
    "remove": 'ctx.remove("/scratch/cache")',
    "mount": 'ctx.mount("files.example.com:/data", "/mnt/data", "nfs4", data="vers=4.2", read_only=True)',
    "unmount": 'ctx.unmount("/mnt/data")',
    "sleep": "ctx.sleep(5)",
    "log": 'ctx.log("17 of 20 files are in place")',
    "progress": 'ctx.progress(done=2**20, total=2**30, file="set.tar.gz")',
}

"""Run the program of a plugin folder in OpenPAI's form."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from pairun.module import (
    Context,
    Permanent,
    Result,
    Secret,
    StateModule,
    Transient,
    Verdict,
    arg,
    define,
    parse_json,
    reveal,
    runs,
)

_LIBRARY = os.path.join(os.path.dirname(__file__), "library")
"""What the programs import: `plugins.plugin_utils` and `common.utils`."""

CONFIG_VARIABLE = "PAIRUN_PLUGIN_CONFIG"
"""The variable with the path of the file that contains the whole configuration."""

_TAKES_A_FILE = re.compile(rb"\bplugin_utils\b|\b" + CONFIG_VARIABLE.encode() + rb"\b")
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SCRIPT_MODE = 0o600
_MAX_ENTRIES = 1000


@define
class OpenpaiPlugin(StateModule):
    """Run the program of a plugin folder in OpenPAI's form, which writes scripts for the command.

    The program is Python, and pairun's own Python runs it. Its arguments are the configuration as
    YAML, the path of the script for before the command, and the path of the one for after it. If it
    imports `plugins.plugin_utils`, it gets secrets in a file; else they are in its arguments.
    """

    phases = ("init",)
    privileges = "those of the program"
    example = (
        "openpai_plugin: {plugin: hello, folder: /opt/plugins/hello, program: init.py, "
        "parameters: '{}', pre: /usr/local/pai/runtime.d/plugin_pre0.sh, "
        "post: /usr/local/pai/runtime.d/plugin_post0.sh}"
    )
    verify = False

    plugin: str = arg("The plugin's name, as the job writes it.")
    folder: str = arg("The plugin's folder.")
    program: str = arg("The program, within the folder.")
    parameters: str | Secret = arg("The plugin's parameters, as JSON.")
    user_extension: str | Secret = arg("The user's extension, as JSON.", default="{}")
    failure_policy: str = arg("The job's failure policy: fail or ignore.", default="fail")
    pre: str = arg("The path of the script for before the command.")
    post: str = arg("The path of the script for after the command.")

    def require(self) -> Iterator[str]:
        """The texts are JSON, and the program is inside the folder."""
        for name in ("parameters", "user_extension"):
            try:
                parse_json(reveal(getattr(self, name)))
            except ValueError:
                yield f"'{name}' must be JSON"
        parts = self.program.split("/")
        if not self.program or os.path.isabs(self.program) or ".." in parts:
            yield f"'program' must be a path within the folder, not {self.program!r}"

    def probe(self, ctx: Context) -> None:
        """Nothing shows whether the program has anything to do."""

    def plan(self, state: None) -> Verdict:
        """It runs the plugin's program."""
        return runs("the plugin's program")

    def apply(self, ctx: Context) -> Result:
        """Run the program on the volume, and let only its owner read its scripts."""
        text = ctx.read_file(os.path.join(self.folder, self.program))
        if text is None:
            message = f"the plugin {self.plugin} has no program {self.program}"
            hint = f"correct 'init-script' in {self.folder}/desc.yaml"
            raise Permanent(message, fault="platform", hint=hint)
        for path in (self.pre, self.post):
            ctx.remove(path)
        # Its program finds its files next to it, and its scripts call them in the user's container.
        shown = os.path.join(ctx.pai_dir, "plugins", self.plugin)
        _copy_folder(ctx, self.folder, shown)
        try:
            code = self._run(ctx, shown, takes_file=_TAKES_A_FILE.search(text) is not None)
        finally:
            written = [p for p in (self.pre, self.post) if self._keep(ctx, p)]
        if code != 0:
            # As in a shell: 128 + n if signal n ended the program.
            code = code if code > 0 else 128 - code
            message = f"{self.program} of the plugin {self.plugin} ended with exit code {code}"
            raise Transient(message, exit_code=code)
        names = " and ".join(os.path.basename(p) for p in written)
        return Result(message=f"the program wrote {names or 'no script'}")

    def _run(self, ctx: Context, shown: str, *, takes_file: bool) -> int:
        config = self._config(public=False)
        with open(os.memfd_create("pairun-plugin"), "w+b") as file:
            file.write(json.dumps(config).encode())
            file.flush()
            done = ctx.run(
                [
                    sys.executable, os.path.join(_LIBRARY, "launch.py"),
                    self.folder, shown, self.program,
                    _yaml(self._config(public=takes_file)), self.pre, self.post,
                ],
                env={
                    CONFIG_VARIABLE: f"/proc/self/fd/{file.fileno()}",
                    # Programs start others, which import the same modules.
                    "PYTHONPATH": ":".join(filter(None, (_LIBRARY, ctx.env.get("PYTHONPATH")))),
                    "PYTHONUNBUFFERED": "1",
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                cwd=ctx.pai_dir,
                pass_fds=[file.fileno()],
            )  # fmt: skip
        return done.code

    def _config(self, *, public: bool) -> dict[str, Any]:
        """The configuration in OpenPAI's form; the public one omits values with secrets."""
        config: dict[str, Any] = {"plugin": self.plugin, "failurePolicy": self.failure_policy}
        if not (public and isinstance(self.parameters, Secret)):
            config["parameters"] = parse_json(reveal(self.parameters))
        if not public:
            config["user_extension"] = parse_json(reveal(self.user_extension))
        return config

    def _keep(self, ctx: Context, path: str) -> bool:
        """Remove other users' access to a script, which may have secrets; False if missing."""
        there = ctx.stat(path)
        if there is None or there.kind != "file":
            return False
        ctx.set_mode(path, _SCRIPT_MODE)
        return True


def _yaml(config: dict[str, Any]) -> str:
    """YAML for every 1.1 parser: JSON, with escapes for characters that YAML cannot print."""
    text = json.dumps(config, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def _copy_folder(ctx: Context, source: str, target: str) -> None:
    """Copy files and folders; every file becomes executable, as in the image of OpenPAI's runtime.

    Raises:
        Permanent: there is something other than files and folders, or too much.
    """
    waiting, copied = [""], 0
    while waiting:
        inner = waiting.pop()
        ctx.make_dir(os.path.join(target, inner))
        for name in ctx.list_dir(os.path.join(source, inner)) or ():
            if name == "__pycache__":
                continue
            copied += 1
            path = os.path.join(source, inner, name)
            there = ctx.stat(path)
            if copied > _MAX_ENTRIES:
                raise Permanent(
                    f"{source} has more than {_MAX_ENTRIES} files and folders", fault="platform"
                )
            if there is None or there.kind not in ("file", "directory"):
                raise Permanent(
                    f"{path} is neither a file nor a folder", fault="platform", hint="remove it"
                )
            if there.kind == "directory":
                waiting.append(os.path.join(inner, name))
            else:
                data = ctx.read_file(path) or b""
                ctx.write_file(
                    os.path.join(target, inner, name), data, (there.mode & 0o755) | 0o111
                )

"""Run a plugin's program from its content root, as if it lay on the shared volume.

Programs look for their files beside themselves, and write there. What is on the volume is never
executed in init.
"""

from __future__ import annotations

import os
import sys
import types


def main() -> None:
    """Take the folder, its copy on the volume, the program's name, and the program's arguments."""
    folder, shown, program, *arguments = sys.argv[1:]
    source, path = os.path.join(folder, program), os.path.join(shown, program)
    with open(source, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    # As Python does with a script: its own folder comes first.
    sys.path.insert(0, os.path.dirname(source))
    # Other plugins, and what lies beside the folder of plugins, can be imported as packages.
    os.environ["PAIRUN_PLUGINS"] = os.path.dirname(os.path.abspath(folder))
    sys.argv = [path, *arguments]
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(code, vars(module))  # noqa: S102 - to run the program is its purpose


if __name__ == "__main__":
    main()

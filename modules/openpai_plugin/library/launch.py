"""Run a plugin's program from its content root, as if it were on the shared volume.

Programs look for their files next to themselves, and write there. Init never executes files from
the volume.
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
    # As Python does for a script: its folder comes first.
    sys.path.insert(0, os.path.dirname(source))
    # Other plugins, and packages next to the plugins' folder, can be imported.
    os.environ["PAIRUN_PLUGINS"] = os.path.dirname(os.path.abspath(folder))
    sys.argv = [path, *arguments]
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(code, vars(module))  # noqa: S102 - to run the program is its purpose


if __name__ == "__main__":
    main()

"""One network host of the ssh tests: takes the module's name and its volume; ends when it is done."""

from __future__ import annotations

import json
import os
import sys

from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.host.context import HostContext
from pairun.module import CheckModule, StateModule

name, pai_dir, args = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
context = HostContext(dict(os.environ), pai_dir)
module = load_module(name, built_in_modules()[name])(**args)
if isinstance(module, CheckModule):
    module.check(context)
else:
    assert isinstance(module, StateModule)
    assert module.plan(module.probe(context)).kind == "will_change"
    module.apply(context)
    assert module.plan(module.probe(context)).kind == "no_change"

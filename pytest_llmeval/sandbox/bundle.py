"""The guest's modules as one message, and the line of Python that starts them in the sandbox."""

from __future__ import annotations

import json
from importlib import resources

from pytest_llmeval.sandbox import guest

_MODULES = (
    "serialization",
    "channel",
    "candidate",
    "proxies",
    "checker",
    "confinement",
    "cleanup",
    "zygote",
    "supervisor",
)

# The image needs Python and nothing of this package. The modules keep their names in there.
_BOOT = """\
import json, os, sys, types
sys.path[:] = [one for one in sys.path if one]
def take(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part: sys.exit(0)
        data += part
    return data
message = json.loads(take(int.from_bytes(take(4), "big")))
for name in ("pytest_llmeval", "pytest_llmeval.sandbox", "pytest_llmeval.sandbox.guest"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, source in message["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    exec(compile(source, name, "exec"), module.__dict__)
sys.modules["pytest_llmeval.sandbox.guest.supervisor"].main(message["config"])
"""

COMMAND = ("-s", "-B", "-c", _BOOT)
"""Arguments to Python."""

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # The same order of a set of strings in each run.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TMPDIR": "/tmp",
}
"""The whole environment: nothing of the host's is passed on."""


def first_message(config: dict[str, object]) -> bytes:
    """Return the message that the started Python waits for."""
    folder = resources.files(guest)
    modules = [
        (f"{guest.__name__}.{module}", (folder / f"{module}.py").read_text()) for module in _MODULES
    ]
    return json.dumps({"modules": modules, "config": config}).encode()

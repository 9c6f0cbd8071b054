"""The message that carries the guest's modules into a sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

from pytest_llmeval.sandbox import guest
from pytest_llmeval.sandbox.bundle import first_message


def test_the_message_has_every_module_of_the_guest():
    names = {
        file.name.removesuffix(".py")
        for file in resources.files(guest).iterdir()
        if file.name.endswith(".py") and file.name != "__init__.py"
    }
    modules = json.loads(first_message({}))["modules"]
    assert {name.removeprefix(f"{guest.__name__}.") for name, _ in modules} == names
    assert len(modules) == len(names)


def test_the_modules_are_in_the_order_in_which_they_import_each_other():
    """Each is executed with those before it alone, as in the sandbox, which has no package."""
    code = """
import json, sys, types
for name in ("pytest_llmeval", "pytest_llmeval.sandbox", "pytest_llmeval.sandbox.guest"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, source in json.load(sys.stdin)["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], input=first_message({}), capture_output=True, timeout=60
    )
    assert done.stderr.decode() == ""

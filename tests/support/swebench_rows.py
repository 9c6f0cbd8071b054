"""Rows, patches and logs in the format of SWE-bench, small and made up."""

from __future__ import annotations

import json
from typing import Any


def patch(text: str, file: str = "calc/core.py") -> str:
    """A patch that only its text tells apart from others."""
    return f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-old\n+{text}\n"


def row(number: int, **changes: Any) -> dict[str, Any]:
    """An instance with the tests ``new`` and ``also`` to pass, and ``old`` to go on passing."""
    repo = "mini/calc" if number % 2 else "mini/text"
    name = f"{repo.replace('/', '__')}-{number}"
    return {
        "instance_id": name,
        "repo": repo,
        "base_commit": f"{number:040x}",
        "patch": patch(f"gold {number}"),
        "test_patch": patch(f"test {number}", "tests/test_core.py"),
        "problem_statement": f"add({number}, 2) is 0",
        "version": "1.0",
        "FAIL_TO_PASS": json.dumps(["t.py::new", "t.py::also"]),
        "PASS_TO_PASS": ["t.py::old"],
        "image": f"swebench/sweb.eval.x86_64.{name}:latest",
        "eval_script": f"#!/bin/bash\npytest -rA t.py # {number}\n",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        **changes,
    }


def log(
    new: str = "PASSED", also: str = "PASSED", old: str = "PASSED", *, ends: bool = True
) -> str:
    """What pytest prints of an instance's three tests, between the official markers."""
    lines = [f"{new} t.py::new", f"{also} t.py::also", f"{old} t.py::old"]
    lines += ["=== 3 tests in 0.01s ==="] if ends else []
    return "\n".join((">>>>> Start Test Output", *lines, ">>>>> End Test Output", ""))

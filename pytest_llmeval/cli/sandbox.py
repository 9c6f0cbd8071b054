"""``llmeval sandbox``: build its image, check it, remove containers that were left behind."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import KINDS
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import open_sandbox
from pytest_llmeval.sandbox.docker import CONTENTS
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import remove_left
from pytest_llmeval.sandbox.image import BASE
from pytest_llmeval.sandbox.image import build_image
from pytest_llmeval.sandbox.types import IMAGE

_CHECKS = {
    "passed": Program("passed", "def f():\n    return 1\n", "assert f() == 1"),
    "failed": Program("failed", "def f():\n    return 2\n", "assert f() == 1"),
    "timeout": Program("timeout", "while True:\n    pass\n", "", timeout=0.5),
    "memory": Program("memory", "found = bytearray(1 << 50)\n", ""),
}
"""One program for each status that a candidate can have."""


def add_commands(commands: Any) -> None:
    """Add ``sandbox`` to the subparsers of ``llmeval``."""
    sandbox = commands.add_parser("sandbox", help="build, check or clean up the sandbox")
    actions = sandbox.add_subparsers(required=True, metavar="ACTION")

    build = actions.add_parser("build", help="make the Docker image")
    build.add_argument("--base", default=BASE, metavar="IMAGE", help=f"start from it ({BASE})")
    build.add_argument(
        "--rootfs", type=Path, metavar="TAR", help="start from this root file system instead"
    )
    build.add_argument("--tag", default=IMAGE)
    build.set_defaults(command=_build)

    check = actions.add_parser("check", help="run a program for each status")
    check.add_argument("kind", nargs="?", choices=sorted(KINDS), default="docker")
    check.set_defaults(command=_check)

    clean = actions.add_parser("clean", help="remove containers that outlived their owner")
    clean.add_argument("--all", action="store_true", help="also those of running sessions")
    clean.set_defaults(command=_clean)


def _build(options: argparse.Namespace) -> int:
    image = build_image(connect(), options.tag, options.base, options.rootfs)
    print(f"built {options.tag}: {image.id}, {image.labels[CONTENTS]}")
    return 0


def _check(options: argparse.Namespace) -> int:
    with open_sandbox(options.kind, workers=1) as sandbox:
        print(sandbox.identity)
        print(f"time limits are multiplied with {sandbox.time_scale:.2f}")
        wrong = [
            execution
            for execution in sandbox.run(_CHECKS.values())
            if execution.status != execution.id
        ]
    if wrong:
        problems = "; ".join(
            f"{execution.id}: {execution.status} ({execution.detail})" for execution in wrong
        )
        raise ConfigError(f"sandbox {options.kind} does not work: {problems}")
    print(f"sandbox {options.kind} works")
    return 0


def _clean(options: argparse.Namespace) -> int:
    removed, kept = remove_left(connect(), everything=options.all)
    print(f"removed {removed} containers" + (f", left {kept} in use" if kept else ""))
    return 0

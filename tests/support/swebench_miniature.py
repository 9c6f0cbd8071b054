"""The miniature of SWE-bench: one instance whose image is made here, and 45 patches for it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import Literal

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import find_image
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.types import IMAGE
from support.swebench_data import RECORDED
from support.swebench_data import lines

MINIATURE = RECORDED / "mini"

_TOOLS = ("git", "patch", "timeout", "pytest")
_REPOSITORY = "pytest-llmeval.swebench-miniature"
"""The image's name here; a row's own name is given by a trial's `image`."""
_FOLDER = "/testbed"
_IMPORTABLE = "/usr/lib/python3/dist-packages/calc.pth"
"""As an editable installation leaves it."""
_AUTHOR = ("-c", "user.name=mini", "-c", "user.email=mini@example.invalid")
_RUNNER = """\
#!/usr/bin/python3
import sys
import pytest
sys.exit(pytest.main(["-rA", "tests/test_core.py", "tests/test_new.py"]))
"""
_RUNNERS = {
    "tests/runtests.py": _RUNNER,
    "bin/test": _RUNNER,
    "tox.ini": "[testenv]\ncommands = pytest -rA {posargs}\n",
}
_TOX = """\
#!/usr/bin/python3
import configparser, os, sys
config = configparser.ConfigParser(interpolation=None)
config.read("tox.ini")
command = config["testenv"]["commands"].replace("{posargs}", " ".join(sys.argv[1:]))
os.execvp("sh", ["sh", "-c", command])
"""
"""As much of tox as `tox --current-env` needs."""


def miniature_image(*, runners: bool = False) -> str:
    """Reference of the instance's image, made from the sandbox's if it is not here.

    With `runners`, its repository has test runners as those of django, sympy and sphinx.

    A skip where that cannot be, a failure where a sandbox is required.
    """
    if not MINIATURE.is_dir():
        pytest.skip(f"no public data: {MINIATURE} does not exist (set LLMEVAL_DATA)")
    try:
        client = connect()
        base = find_image(client, IMAGE)
        tag = base.id.removeprefix("sha256:")[:12] + ("-runners" if runners else "")
        reference = f"{_REPOSITORY}:{tag}"
        try:
            find_image(client, reference)
        except ConfigError:
            _build(client, base, tag)
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))
    client.close()
    return reference


def clone(folder: Path, *, runners: bool) -> Path:
    """The instance's repository in `folder`; with `runners`, a commit that adds them."""
    _git(folder.parent, "clone", "--quiet", str(MINIATURE / "repo.bundle"), str(folder))
    _git(folder, "remote", "remove", "origin")
    if runners:
        for name, text in _RUNNERS.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        _git(folder, "add", "--all")
        _git(folder, *_AUTHOR, "commit", "--quiet", "--message", "Runners")
    return folder


def patch_of(repository: Path, change: Callable[[Path], object]) -> str:
    """The patch that `change(folder)` makes of `repository`."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "changed"
        shutil.copytree(repository, folder, symlinks=True)
        change(folder)
        _git(folder, "add", "--all", "--force")
        return _git(folder, "diff", "--cached", "--binary")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return ran.stdout.decode("utf-8", "surrogateescape")


def _build(client: Any, base: Any, tag: str) -> None:
    container = client.containers.create(
        base.id, entrypoint=["sleep", "infinity"], command=[], network_mode="none"
    )
    try:
        container.start()
        for tool in _TOOLS:
            if container.exec_run(["bash", "-c", f"command -v {tool}"]).exit_code:
                raise ConfigError(
                    f"image {IMAGE!r} has no {tool}: build it from a root file system with git, "
                    "patch and python3-pytest (docs/sandbox.md)"
                )
        container.put_archive("/", _files(runners=tag.endswith("-runners")))
        code, output = container.exec_run(["python3", "-c", "import calc"], workdir="/")
        if code:
            raise ConfigError(f"the miniature cannot be set up: {output.decode(errors='replace')}")
        changes = [f"WORKDIR {_FOLDER}", "ENTRYPOINT []", 'CMD ["bash"]']
        container.commit(_REPOSITORY, tag, changes=changes)
    finally:
        container.remove(force=True)


def _files(*, runners: bool) -> bytes:
    stream = io.BytesIO()
    with tempfile.TemporaryDirectory() as parent, tarfile.open(fileobj=stream, mode="w") as archive:
        repository = clone(Path(parent) / "testbed", runners=runners)
        archive.add(repository, _FOLDER.strip("/"), filter=_owned_by_root)
        for name, text in ((_IMPORTABLE, f"{_FOLDER}\n"), ("/usr/local/bin/tox", _TOX)):
            entry = tarfile.TarInfo(name.strip("/"))
            data = text.encode()
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


Reset = Literal["official", "fixed"]
"""The row's own reset of test files: as in the data of 2026-08-10, which resets nothing where one
of the files is new; or one that works."""


def row(reset: Reset = "official") -> dict[str, Any]:
    """The instance's row."""
    return lines(f"mini/row_{reset}.jsonl")[0]


def predictions() -> dict[str, str | None]:
    """Patches by case."""
    return {
        line["model_name_or_path"]: line["model_patch"] for line in lines("mini/predictions.jsonl")
    }


def expected(reset: Reset) -> dict[str, dict[str, Any]]:
    """Verdicts of swebench 5.0.2 by case, and what is right."""
    verdicts = lines("mini/expected.jsonl")
    return {verdict["case"]: verdict for verdict in verdicts if verdict["script"] == reset}


def trial(
    case: str,
    patch: str,
    image: str,
    /,
    *,
    guarded: bool,
    reset: Reset = "official",
    timeout: float = 15.0,
    **changes: str,
) -> Trial:
    """A trial of `patch` on the instance; `changes` replace fields of its row."""
    fields = row(reset) | changes
    return Trial(
        id=case,
        instance_id=fields["instance_id"],
        image=image,
        base_commit=fields["base_commit"],
        patch=patch,
        test_patch=fields["test_patch"],
        gold_patch=fields["patch"],
        eval_script=fields["eval_script"],
        guarded=guarded,
        timeout=timeout,
    )

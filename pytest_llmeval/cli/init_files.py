"""The files of ``llmeval init``: their places, their sources in CI, and writing them."""

from __future__ import annotations

from pathlib import Path

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.installation import DISTRIBUTION
from pytest_llmeval.core.installation import Origin
from pytest_llmeval.core.installation import git

BASELINE = "last-release"
THRESHOLDS_FILE = "thresholds.toml"
REQUIREMENTS_FILE = "benchmarks/requirements.txt"
WORKFLOW_FILE = ".github/workflows/llmeval.yml"

PLACEHOLDER = "git+https://example.invalid/REPLACE-THIS.git"
"""Requirement for a source that is not known; `init` writes a file with it again."""

# The commits of the releases: a tag can be moved to other code, a commit cannot.
ACTIONS = {
    "checkout": "actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2",
    "setup_python": "actions/setup-python@a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0",
    "cache": "actions/cache@cdf6c1fa76f9f475f3d7449005a359c84ca0f306 # v5.0.3",
    "upload": "actions/upload-artifact@b7c566a772e6b6bfb58ed0dc250532a479d7789f # v6.0.0",
}
"""Actions of the workflows, pinned."""


def write_file(file: Path, text: str) -> bool:
    """Write a new file; False where there is one, unless its source is still to be filled in."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if PLACEHOLDER in text_of(file) and PLACEHOLDER not in text:
            file.unlink()
        with file.open("x", encoding="utf-8", newline="\n") as made:
            made.write(text)
    except FileExistsError:
        if not file.is_file():
            raise ConfigError(f"cannot write {file}: a folder or file is in its way") from None
        return False
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror or error}") from None
    return True


def requirement_of(source: Origin, extras: tuple[str, ...], root: Path) -> tuple[str, str]:
    """Return the requirements file for a source, and a note for the user (or an empty one)."""
    names = f"[{','.join(extras)}]"
    if source.path is not None and source.path.is_relative_to(root):
        return f"./{source.path.relative_to(root).as_posix()}{names}\n", ""
    if source.url is not None:
        return f"{DISTRIBUTION}{names} @ {source.url}\n", source.note
    text = (
        "# Replace the address, or run: llmeval init --from-repo URL@COMMIT\n"
        f"{DISTRIBUTION}{names} @ {PLACEHOLDER}\n"
    )
    return text, (
        f"{source.note}: CI cannot install the plugin before {REQUIREMENTS_FILE} names its source"
        " (llmeval init --from-repo URL@COMMIT)"
    )


def repository_of(folder: Path) -> Path:
    """Return the root of the git repository of a folder; the folder itself without one."""
    start = folder.absolute()
    return next((path for path in (start, *start.parents) if (path / ".git").exists()), start)


def default_branch(root: Path) -> str:
    """Return the branch whose pushes are evaluated: the remote's default, else the current one."""
    remote = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    branches = (git(root, "branch", "--format=%(refname:short)") or "").splitlines()
    named = next((name for name in ("main", "master") if name in branches), None)
    return named or git(root, "symbolic-ref", "--short", "HEAD") or "main"


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

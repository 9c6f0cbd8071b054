"""The origin of this installation, and the commands that install optional libraries.

The name of the distribution belongs to an unrelated project on the public package index, so neither
a message nor a generated file may install it by name alone. What pip records about a direct
installation is in ``direct_url.json`` (PEP 610, packaging.python.org, *Recording the Direct URL
Origin of installed distributions*).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import NamedTuple
from urllib.parse import urlsplit

DISTRIBUTION = "pytest-llmeval"

# host:path, the scp-like syntax of git; a single letter before the colon is a Windows drive.
_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/@:]{2,}):(?!//)/?(?P<path>.+)")


class Origin(NamedTuple):
    """A source from which the package can be installed again.

    ``url``: a requirement that any machine can install (``git+https://…@COMMIT`` or the address of
    a wheel); None if only this machine has the source. ``path``: the folder or file on this
    machine, if it was installed from one. ``commit``: that of the source, if recorded. ``note``:
    why ``url`` is None, or what has to be done before it can be used.
    """

    url: str | None = None
    path: Path | None = None
    commit: str | None = None
    note: str = ""


def install_hint(extra: str) -> str:
    """Return the command that installs the libraries of an extra.

    >>> install_hint("report")
    "pip install 'jinja2>=3.1' (in a checkout of pytest-llmeval: pip install '.[report]')"
    """
    checkout = f"in a checkout of {DISTRIBUTION}: pip install '.[{extra}]'"
    libraries = " ".join(f"'{library}'" for library in _libraries(extra))
    return f"pip install {libraries} ({checkout})" if libraries else checkout


def _libraries(extra: str) -> list[str]:
    """Return the requirements of an extra; an empty list if the package is not installed."""
    from importlib import metadata  # its import takes a tenth of a command's time

    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    split = [requirement.partition(";") for requirement in required]
    return [
        library.strip()
        for library, _, marker in split
        if re.search(rf"""extra\s*==\s*["']{re.escape(extra)}["']""", marker)
    ]


def origin() -> Origin:
    """Return the origin of the installed package."""
    from importlib import metadata  # slow to import, see above

    try:
        recorded = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        recorded = None
    if recorded is None:
        return Origin(note=f"this installation of {DISTRIBUTION} does not record its source")
    return origin_of(json.loads(recorded))


def origin_of(direct_url: Mapping[str, Any]) -> Origin:
    """Return the origin in a ``direct_url.json``; for a folder, that of its git repository."""
    url, vcs = direct_url["url"], direct_url.get("vcs_info")
    subdirectory = direct_url.get("subdirectory")
    if vcs is not None:
        commit = vcs["commit_id"]
        address = public_address(url)
        if vcs["vcs"] != "git" or address is None:
            note = f"{_without_credentials(url)} is not a public git repository"
            return Origin(commit=commit, note=note)
        return Origin(url=_git_url(address, commit, subdirectory), commit=commit)
    if urlsplit(url).scheme == "file":
        from urllib.request import url2pathname  # loads an HTTP client

        path = Path(url2pathname(urlsplit(url).path))
        if path.is_dir():
            return _origin_of_folder(path)
        return Origin(path=path, note=f"{path} exists only on this machine")
    digest = direct_url.get("archive_info", {}).get("hashes", {}).get("sha256")
    return Origin(url=_without_credentials(url) + (f"#sha256={digest}" if digest else ""))


def _origin_of_folder(path: Path) -> Origin:
    commit = git(path, "rev-parse", "HEAD")
    if commit is None:
        return Origin(path=path, note=f"the folder {path} is not a git repository")
    remotes = (git(path, "remote") or "").split()
    remote = "origin" if "origin" in remotes or not remotes else remotes[0]
    address = public_address(git(path, "remote", "get-url", remote) or "")
    if address is None:
        note = f"the checkout {path} has no remote that other machines can reach"
        return Origin(path=path, commit=commit, note=note)
    note = ""
    if not git(path, "branch", "--remotes", "--contains", commit):
        note = f"commit {commit[:12]} of {path} is not on {address}: push it first"
    elif git(path, "status", "--porcelain", "--untracked-files=no"):
        note = f"the checkout {path} has uncommitted changes"
    prefix = (git(path, "rev-parse", "--show-prefix") or "").rstrip("/")
    return Origin(_git_url(address, commit, prefix), path, commit, note)


def origin_at(location: str, commit: str | None) -> Origin:
    """Return the origin for ``URL[@REVISION]`` of a repository, or for the address of a wheel.

    ``commit`` is used if ``location`` has no revision. ``Origin.note`` names the problem, if any.
    """
    location = location.removeprefix("git+")
    address, at, revision = location.rpartition("@")
    if not at or not address or re.search(r"[/:]", revision):
        address, revision = location, ""
    url = public_address(address)
    if url is None:
        return Origin(note="not the https:// address of a git repository or of a wheel")
    if url.endswith(".whl"):
        return Origin(url=url)
    pinned = revision or commit
    if pinned is None:
        return Origin(note="no revision: write URL@COMMIT")
    return Origin(url=_git_url(url, pinned), commit=pinned)


def public_address(url: str) -> str | None:
    """Return the https address of a repository, without user and password; None for a local one.

    A CI machine has no key for ``ssh://git@HOST/PATH`` and ``git@HOST:PATH``, so these become the
    https address of the same host.
    """
    scp = None if "://" in url else _SCP.fullmatch(url)
    if scp is not None:
        return f"https://{scp['host']}/{scp['path']}"
    parts = urlsplit(url)
    if parts.scheme in ("ssh", "git") and parts.hostname:
        return f"https://{parts.hostname}{parts.path}"
    return (
        _without_credentials(url) if parts.scheme in ("http", "https") and parts.hostname else None
    )


def git(folder: Path, *arguments: str) -> str | None:
    """Return the stripped output of git in a folder; None if git fails or is not installed."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()


def _git_url(address: str, commit: str, subdirectory: str | None = None) -> str:
    return f"git+{address}@{commit}" + (f"#subdirectory={subdirectory}" if subdirectory else "")


def _without_credentials(url: str) -> str:
    """Return the URL without user, password, query and fragment, so that no file holds secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()

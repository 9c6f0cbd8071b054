"""Where the package came from, and how an extra is installed without the index's namesake."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from pytest_llmeval.core import installation
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.core.installation import origin
from pytest_llmeval.core.installation import origin_at
from pytest_llmeval.core.installation import origin_of
from pytest_llmeval.core.installation import public_address
from support.paths import REPOSITORY

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def checkout(folder: Path, remote: str | None = None) -> str:
    """A repository with one commit, which the remote has too, if there is one; the commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "file").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=a")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
        git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return git(folder, "rev-parse", "HEAD")


# Extras ------------------------------------------------------------------------------------


def test_the_libraries_of_an_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["pytest>=8.4", "torch>=2.5; extra == 'hf'", 'gguf>=0.10 ; extra == "hf"']
    monkeypatch.setattr(metadata, "requires", lambda name: required)
    assert install_hint("hf") == (
        "pip install 'torch>=2.5' 'gguf>=0.10' (in a checkout of pytest-llmeval: pip install '.[hf]')"
    )


@pytest.mark.parametrize("installed", [None, ["pytest>=8.4"]])
def test_without_metadata_the_checkout_is_named(installed, monkeypatch) -> None:
    """Not installed but imported, or another distribution of that name."""

    def requires(name: str) -> list[str] | None:
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "requires", requires)
    assert install_hint("hf") == "in a checkout of pytest-llmeval: pip install '.[hf]'"


def test_every_extra_that_a_message_names_exists() -> None:
    provided = (REPOSITORY / "pyproject.toml").read_text()
    _, _, table = provided.partition("[project.optional-dependencies]")
    extras = set(re.findall(r"^([a-z-]+) = ", table.partition("\n\n")[0], re.MULTILINE))
    named = {
        extra
        for file in (REPOSITORY / "pytest_llmeval").rglob("*.py")
        for extra in re.findall(r"install_hint\(['\"]([a-z-]+)['\"]\)", file.read_text())
    }
    assert named
    assert named <= extras


# Origins -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "url"),
    [
        (
            {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT},
            f"git+https://example.com/o/p.git@{COMMIT}",
        ),
        ({"vcs": "hg", "commit_id": COMMIT}, None),
    ],
)
def test_an_installation_from_a_repository(recorded, url) -> None:
    origin = origin_of({"url": "https://example.com/o/p.git", "vcs_info": recorded})
    assert origin.url == url
    assert bool(origin.note) is (url is None)


def test_a_subdirectory_of_a_repository() -> None:
    recorded = {
        "url": "https://example.com/o/p.git",
        "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        "subdirectory": "evaluation",
    }
    url = origin_of(recorded).url
    assert url == f"git+https://example.com/o/p.git@{COMMIT}#subdirectory=evaluation"


def test_a_wheel_by_its_address_is_pinned_by_its_hash() -> None:
    address = "https://example.com/p-1-py3-none-any.whl"
    recorded = {"url": address, "archive_info": {"hashes": {"sha256": "ab"}}}
    assert origin_of(recorded).url == f"{address}#sha256=ab"


def test_a_wheel_of_this_machine(tmp_path: Path) -> None:
    wheel = tmp_path / "a b.whl"
    wheel.touch()
    origin = origin_of({"url": wheel.as_uri(), "archive_info": {}})
    assert (origin.url, origin.path) == (None, wheel)
    assert origin.note == f"{wheel} exists only on this machine"


def test_a_checkout_is_pinned_to_its_commit(tmp_path: Path) -> None:
    commit = checkout(tmp_path / "p", "git@example.com:o/p.git")
    recorded = {"url": (tmp_path / "p").as_uri(), "dir_info": {"editable": True}}
    origin = origin_of(recorded)
    assert origin == (f"git+https://example.com/o/p.git@{commit}", tmp_path / "p", commit, "")
    (tmp_path / "p/file").write_text("b")
    assert "uncommitted changes" in origin_of(recorded).note
    git(tmp_path / "p", "commit", "--quiet", "--all", "--message=b")
    assert "is not on https://example.com/o/p.git: push it first" in origin_of(recorded).note


def test_a_checkout_inside_a_repository(tmp_path: Path) -> None:
    commit = checkout(tmp_path / "mono", "https://example.com/o/mono")
    (tmp_path / "mono/tools/p").mkdir(parents=True)
    origin = origin_of({"url": (tmp_path / "mono/tools/p").as_uri(), "dir_info": {}})
    assert origin.url == f"git+https://example.com/o/mono@{commit}#subdirectory=tools/p"


@pytest.mark.parametrize("remote", [None, "/srv/git/p.git", "file:///srv/git/p.git"])
def test_a_checkout_that_no_other_machine_reaches(remote, tmp_path: Path) -> None:
    commit = checkout(tmp_path / "p", remote)
    origin = origin_of({"url": (tmp_path / "p").as_uri(), "dir_info": {}})
    assert (origin.url, origin.commit) == (None, commit)
    assert origin.note.endswith("has no remote that other machines can reach")


def test_a_folder_without_git(tmp_path: Path) -> None:
    origin = origin_of({"url": tmp_path.as_uri(), "dir_info": {}})
    assert (origin.url, origin.path) == (None, tmp_path)
    assert origin.note == f"the folder {tmp_path} is not a git repository"


def test_an_installation_that_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        def read_text(self, name: str) -> None:
            return None

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())
    assert origin().url is None
    assert "does not record its source" in origin().note


def test_the_record_of_this_installation_can_be_read() -> None:
    try:
        text = metadata.distribution(installation.DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is imported without being installed")
    if text is None:
        pytest.skip("installed without a record of its source")
    assert origin() == origin_of(json.loads(text))


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://example.com/o/p.git", "https://example.com/o/p.git"),
        ("https://user:secret@example.com/o/p.git", "https://example.com/o/p.git"),
        ("https://token@example.com:8443/o/p", "https://example.com:8443/o/p"),
        ("git@example.com:o/p.git", "https://example.com/o/p.git"),
        ("example.com:/o/p.git", "https://example.com/o/p.git"),
        ("ssh://git@example.com:22/o/p.git", "https://example.com/o/p.git"),
        ("git://example.com/o/p.git", "https://example.com/o/p.git"),
        ("/srv/git/p.git", None),
        ("../p.git", None),
        ("C:/git/p.git", None),
        ("file:///srv/git/p.git", None),
        ("", None),
    ],
)
def test_the_public_address_of_a_remote(url: str, public: str | None) -> None:
    assert public_address(url) == public


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("https://example.com/o/p", f"git+https://example.com/o/p@{COMMIT}"),
        ("https://example.com/o/p@v1.2", "git+https://example.com/o/p@v1.2"),
        ("git+https://example.com/o/p.git@abc", "git+https://example.com/o/p.git@abc"),
        ("git@example.com:o/p.git@abc", "git+https://example.com/o/p.git@abc"),
        ("git@example.com:o/p.git", f"git+https://example.com/o/p.git@{COMMIT}"),
        ("https://me:secret@example.com/o/p", f"git+https://example.com/o/p@{COMMIT}"),
        ("https://example.com/p-1-py3-none-any.whl", "https://example.com/p-1-py3-none-any.whl"),
        ("../checkout", None),
        ("pytest-llmeval", None),
    ],
)
def test_a_source_that_a_person_names(location: str, url: str | None) -> None:
    assert origin_at(location, COMMIT).url == url


def test_a_source_without_a_revision_is_not_pinned() -> None:
    assert origin_at("https://example.com/o/p", None).note == "no revision: write URL@COMMIT"


# The name of the distribution ----------------------------------------------------------------

# A path, a wheel's file and a requirement with its source (`@`) are not the name alone.
BY_NAME = re.compile(
    r"\b(?:pip3?|pipx|uv|poetry|pdm)\b.*\b(?:install|download|wheel|add)\b.*"
    r"(?<![\w./-])(?<!checkout of )pytest[-_]llmeval(?![\w.-])(?!(?:\[[^\]]*\])?\s*@)"
)


@pytest.mark.parametrize(
    ("line", "by_name"),
    [
        ("pip install pytest-llmeval", True),
        ("python -m pip install -U 'pytest-llmeval[hf]>=0.1'", True),
        ("uv add pytest_llmeval", True),
        ("pip install '.[hf]'", False),
        ("pip install '../pytest-llmeval[hf]'", False),
        ("pip install 'pytest-llmeval[hf] @ git+https://example.com/o/p@abc'", False),
        ("pip install torch (in a checkout of pytest-llmeval: pip install '.[hf]')", False),
        ("pip install wheels/pytest_llmeval-0.1.0-py3-none-any.whl", False),
    ],
)
def test_an_installation_by_name_is_recognised(line: str, by_name: bool) -> None:
    assert bool(BY_NAME.search(line)) is by_name


def test_the_distribution_is_never_installed_by_its_name_alone() -> None:
    """The name on the public index is another project's."""
    folders = ("pytest_llmeval", "docs", "benchmarks", "perf", "scripts", ".ci", ".github")
    files = [*REPOSITORY.glob("*.md"), REPOSITORY / "tox.ini", REPOSITORY / "pyproject.toml"]
    files += [file for folder in folders for file in (REPOSITORY / folder).rglob("*")]
    binary = (".gz", ".pyc", ".webp")
    read = {
        file: file.read_text() for file in files if file.is_file() and file.suffix not in binary
    }
    assert len(read) > 200
    for file, text in read.items():
        assert not [line for line in text.splitlines() if BY_NAME.search(line)], file
    table = read[REPOSITORY / "pyproject.toml"].partition("dependencies = [")[2]
    assert "pytest-llmeval" not in table.partition("[project.entry-points")[0]

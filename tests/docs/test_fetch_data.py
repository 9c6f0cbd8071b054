"""The table of `scripts/fetch_data.py` is the layout that the tests use, and it is followed."""

from __future__ import annotations

import gzip
import importlib.util
import io
import re
import sys
import tarfile
import zipfile
from types import ModuleType

import pytest

from support.paths import DATA
from support.paths import REPOSITORY


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = REPOSITORY / "scripts" / "fetch_data.py"
    spec = importlib.util.spec_from_file_location("fetch_data", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fetch_data"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"repository-0123/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def test_every_target_is_a_file_of_the_data_and_every_folder_is_accounted_for(script):
    if not (DATA / "mmlu").is_dir():
        pytest.skip(f"no public data: {DATA}/mmlu does not exist (set LLMEVAL_DATA)")
    for tree in script.TREES:
        paths = list((DATA / tree.target).rglob("*.csv"))
        names = [path.relative_to(DATA / tree.target).as_posix() for path in paths]
        assert names
        assert all(re.fullmatch(tree.names, name) for name in names)
    assert not [file.target for file in script.FILES if not (DATA / file.target).is_file()]
    assert not [tree.target for tree in script.TREES if not (DATA / tree.target).is_dir()]
    folders = {folder.name for folder in DATA.iterdir() if folder.is_dir()}
    assert folders <= script.LICENCES.keys() | script.NOT_FETCHED


def test_what_the_tests_read_is_fetched_or_named_as_not_fetched(script):
    used: set[str] = set()
    for file in (REPOSITORY / "tests").rglob("*.py"):
        used |= set(re.findall(r'\b(?:data|DATA) / "(\w+)"', file.read_text(encoding="utf-8")))
    assert {"mmlu", "gsm8k"} <= used
    assert used <= script.LICENCES.keys() | script.NOT_FETCHED


def test_sources_are_pinned(script):
    for entry in script.ENTRIES:
        assert entry.source == script.ARC or re.fullmatch(
            r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", entry.source
        )
        assert entry.url.startswith("https://")
        assert not re.search(r"/(main|master)\b", entry.url)
    assert {script.folder_of(entry) for entry in script.ENTRIES} == set(script.LICENCES)


def test_trees_archives_and_files_arrive_in_their_places(script, tmp_path, monkeypatch):
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in script.FILES:
            if script.folder_of(file) == "arc":
                archive.writestr(file.path, file.path)
    requests = []

    def download(url: str) -> bytes:
        requests.append(url)
        if url == script.ARC:
            return zipped.getvalue()
        if "/tar.gz/" in url:
            return tar(
                {"data/dev/a.csv": b"1,2", "data/test/b.csv": b"3", "data/x.md": b"", "y.csv": b""}
            )
        return b'{"row": 1}\n'

    monkeypatch.setattr(script, "download", download)
    kept = tmp_path / "gsm8k" / "test.jsonl"
    kept.parent.mkdir()
    kept.write_text("mine")
    assert script.fetch(tmp_path, ["arc", "cmmlu", "gsm8k"]) == []

    cmmlu = tmp_path / "cmmlu"
    assert {file.relative_to(cmmlu).as_posix() for file in cmmlu.rglob("*.*")} == {
        "dev/a.csv",
        "test/b.csv",
    }
    assert requests.count(script.ARC) == 1
    assert (
        (tmp_path / "arc/ARC-Easy/ARC-Easy-Test.jsonl").read_text().endswith("ARC-Easy-Test.jsonl")
    )
    assert kept.read_text() == "mine"
    packed = (tmp_path / "gsm8k" / "test_socratic.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == b'{"row": 1}\n'
    assert not list(tmp_path.rglob("tmp*"))
    requests.clear()
    assert script.fetch(tmp_path, ["arc", "cmmlu", "gsm8k"]) == []
    assert requests == []


def test_what_cannot_be_fetched_is_one_line_each(script, tmp_path, monkeypatch):
    def download(url: str) -> bytes:
        if "/tar.gz/" in url:
            return tar({"other/a.csv": b""})
        raise OSError("unreachable")

    monkeypatch.setattr(script, "download", download)
    failures = script.fetch(tmp_path, ["cmmlu", "truthfulqa"])
    assert [failure.split(":")[0] for failure in failures] == ["cmmlu", "truthfulqa/TruthfulQA.csv"]
    assert failures[1].endswith("unreachable")
    assert not list(tmp_path.rglob("*.csv"))


def test_no_member_of_an_archive_leaves_the_folder(script, tmp_path):
    (tree,) = [tree for tree in script.TREES if tree.target == "cmmlu"]
    assert script.unpack(tree, tar({"data/../../../evil.csv": b"x"}), tmp_path / "inner") == 0
    assert not list(tmp_path.rglob("*.csv"))


def test_an_unknown_name_is_a_usage_error(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fetch_data.py", "--only", "mmul", "--list"])
    with pytest.raises(SystemExit) as error:
        script.main()
    assert error.value.code == 2
    assert "unknown mmul" in capsys.readouterr().err


def test_the_list_has_a_licence_for_each_folder(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fetch_data.py", "--list"])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(script.LICENCES)
    assert any("not for commercial use" in line for line in lines)

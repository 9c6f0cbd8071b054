"""``llmeval sandbox``, as it is typed."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox.docker import CONTENTS
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import find_image
from pytest_llmeval.sandbox.image import dockerfile
from pytest_llmeval.sandbox.types import IMAGE
from support.opened_sandbox import opened


def test_check_runs_a_program_of_each_status(capsys: pytest.CaptureFixture[str]) -> None:
    opened("docker", timeout_scale=1.0).close()
    assert main(["sandbox", "check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("docker sha256:")
    assert lines[1].startswith("time limits are multiplied with ")
    assert lines[2] == "sandbox docker works"


def test_clean_reports_what_it_removed(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", "clean"]) == 0
    assert capsys.readouterr().out.startswith("removed ")


def test_build_makes_a_working_image_of_a_root_file_system(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = connect()
    container = client.containers.create(IMAGE, command=["python3"])
    rootfs, tag = tmp_path / "rootfs.tar", "llmeval-sandbox-test"
    with rootfs.open("wb") as file:
        file.writelines(container.export())
    container.remove(force=True)
    try:
        assert main(["sandbox", "build", "--rootfs", str(rootfs), "--tag", tag]) == 0
        image = find_image(client, tag)
        assert image.labels[CONTENTS] == find_image(client, IMAGE).labels[CONTENTS]
        assert image.id in capsys.readouterr().out
    finally:
        client.images.remove(tag, force=True)
        client.close()


def test_build_refuses_an_archive_without_a_root_file_system(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", "build", "--rootfs", str(tmp_path / "none.tar")]) == 4
    empty = tmp_path / "empty.tar"
    with tarfile.open(empty, "w") as tar:
        file = tarfile.TarInfo("file")
        file.size = 1
        tar.addfile(file, io.BytesIO(b"x"))
    assert main(["sandbox", "build", "--rootfs", str(empty), "--tag", "llmeval-sandbox-test"]) == 4
    missing, without = capsys.readouterr().err.splitlines()
    assert missing == f"llmeval: sandbox build: no file {tmp_path}/none.tar"
    assert without.startswith("llmeval: sandbox build: python3 does not run in the image")


def test_the_image_of_a_registry_is_its_base_and_numpy() -> None:
    assert dockerfile("python:3.12-slim") == (
        "FROM python:3.12-slim\nRUN python3 -m pip install --no-cache-dir numpy\n"
    )


def test_without_an_engine_all_of_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    for action in ("build", "check", "clean"):
        assert main(["sandbox", action]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all("no Docker engine answers" in line for line in lines)
    with pytest.raises(ConfigError):
        connect()

"""``llmeval seal``: a sealed file, its verification, and mistakes of the user."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from support import order_project

ROWS = [
    {"question": f"Question {k}?", "options": ["red", "green", "blue"], "answer": "ABC"[k % 3]}
    for k in range(9)
]
SEED = "correct horse battery staple"


@pytest.fixture
def faq(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
    write(tmp_path / "faq.jsonl", ROWS)
    return tmp_path


def write(path: Path, rows: list) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_file_is_sealed_and_verified(faq, capsys):
    assert main(["seal", "faq.jsonl", "--out", "sealed.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "wrote sealed.jsonl: 9 items in random order, 9 with options in random order" in out
    (commitment,) = re.findall(r"commitment (sha256:[0-9a-f]{64})", out)
    secret = faq / "sealed.jsonl.seed"
    assert secret.stat().st_mode & 0o077 == 0
    seed = json.loads(secret.read_text())["seed"]
    assert len(seed) == 64
    assert seed not in out
    assert main(["seal", "--verify", "sealed.jsonl"]) == 0
    assert "9 items in the orders of the seed, unchanged" in capsys.readouterr().out
    secret.unlink()
    arguments = ["seal", "--verify", "sealed.jsonl", "--seed", seed, "--commitment", commitment]
    assert main(arguments) == 0
    (canary,) = re.findall(r"canary GUID (\S+)", out)
    assert (faq / "sealed.jsonl").read_text().count(canary) == 9


@pytest.mark.parametrize(("drawn", "status"), [(True, "pass"), (False, "undecided")])
def test_the_orders_of_a_sealed_benchmark_need_no_check(project, drawn, status):
    text = order_project.benchmark(order_project.ASCENDING)
    dataset = f"Dataset(items(), drawn_orders={drawn})"
    (project.path / "test_bench.py").write_text(text.replace("Dataset(items())", dataset))
    (project.path / "conftest.py").write_text(order_project.model())
    project.thresholds("[benchmarks.bench.contamination]\noption_order = 0.01")
    project.run("--llm-contamination=option-order")
    (gate,) = project.document("gates.json")["gates"]
    assert gate["status"] == status


def test_random_seeds_differ(faq, capsys):
    for name in ("a.jsonl", "b.jsonl"):
        assert main(["seal", "faq.jsonl", "--out", name]) == 0
    assert (faq / "a.jsonl").read_text() != (faq / "b.jsonl").read_text()


def test_a_given_seed_gives_the_same_file(faq):
    for name in ("a.jsonl", "b.jsonl"):
        assert main(["seal", "faq.jsonl", "--out", name, "--seed", SEED]) == 0
    assert (faq / "a.jsonl").read_bytes() == (faq / "b.jsonl").read_bytes()


def test_a_changed_file_is_not_verified(faq, capsys):
    main(["seal", "faq.jsonl", "--out", "sealed.jsonl"])
    lines = (faq / "sealed.jsonl").read_text().splitlines(keepends=True)
    (faq / "sealed.jsonl").write_text("".join(sorted(lines)))
    assert main(["seal", "--verify", "sealed.jsonl"]) == 4
    assert "changed after it was sealed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["faq.jsonl"], "--out: name the sealed file to write"),
        (["faq.jsonl", "--out", "faq.jsonl"], "--out faq.jsonl: faq.jsonl exists, and is not repl"),
        (["faqq.jsonl", "--out", "s.jsonl"], "faqq.jsonl: no such file; did you mean 'faq.jsonl'?"),
        (["bad.jsonl", "--out", "s.jsonl"], "bad.jsonl, line 1: no text in field 'question'"),
        (["above.jsonl", "--out", "s.jsonl"], "item 1: option 'all of the above' refers to the pl"),
        (["done.jsonl", "--out", "s.jsonl"], "has a field 'canary': the file is sealed already"),
        (["faq.jsonl", "--out", "s.jsonl", "--seed", "short"], "--seed: 5 characters can be gues"),
        (
            ["faq.jsonl", "--out", "s.jsonl", "--commitment", "a"],
            "--commitment: read with --verify",
        ),
        (["faq.jsonl", "--out", "no/s.jsonl"], "No such file or directory"),
        (["--verify", "faq.jsonl"], "faq.jsonl.seed: no such file with the seed"),
        (["--verify", "faq.jsonl", "--seed", SEED, "--commitment", "0" * 64], "not sealed: no fi"),
        (["--verify", "faq.jsonl", "--seed", SEED, "--commitment", "0"], "not 64 hexadecimal"),
        (["--verify", "faq.jsonl", "--out", "s.jsonl"], "nothing is written with --verify"),
        (["--verify", "done.jsonl"], "done.jsonl.seed: not the seed of a sealed file"),
    ],
)
def test_a_mistake_is_one_line(faq, capsys, arguments, line):
    write(faq / "bad.jsonl", [{"answer": "A"}])
    above = {"question": "q", "options": ["one", "all of the above"], "answer": "A"}
    write(faq / "above.jsonl", [above])
    write(faq / "done.jsonl", [{**ROWS[0], "canary": "x"}])
    (faq / "done.jsonl.seed").write_text("{}")
    assert main(["seal", *arguments]) == 4
    err = capsys.readouterr().err
    assert line in err
    assert len(err.splitlines()) == 1
    assert not (faq / "s.jsonl").exists()
    assert not (faq / "s.jsonl.seed").exists()

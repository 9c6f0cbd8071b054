"""What would make an early verdict wrong: each of these is tried, and does not."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from support.endpoint_server import Script
from support.endpoint_server import serve

SIZES = {"art": 60, "law": 100, "zoo": 140}

GATE = """
[sequential]
wave = 32
[benchmarks.bench]
accuracy = {accuracy}
max_errors = {errors}
"""

ANSWER = """
def respond(self, request):
    right = {right}
    scores = (-2.0, -1.0, -3.0, -4.0) if right else (-1.0, -2.0, -3.0, -4.0)
    return Response(request.id, logprobs=scores, seconds=0.01)
"""


def verdict(project) -> dict[str, Any]:
    gates = project.document("gates.json")["gates"]
    return next(gate for gate in gates if gate["id"] == "bench::accuracy")


def order(project) -> list[str]:
    (course,) = project.document("order.json")["courses"]
    return [item for item, _ in course["items"]]


@pytest.fixture
def subjects(project):
    project.benchmark(**SIZES)
    return project


def test_subjects_of_different_difficulty(subjects):
    """In the order of the file, the first 160 items would be right, and the last 140 wrong."""
    subjects.model(respond=ANSWER.format(right="request.id < 'z'"))
    subjects.thresholds(GATE.format(accuracy=0.7, errors=0))
    subjects.run("--llm-sequential")
    early = verdict(subjects)
    assert early["status"] == "fail"
    assert early["n"] < 300
    first = {item.partition("-")[0] for item in order(subjects)[:32]}
    assert first == set(SIZES)
    # The answers are requested by subject within a wave, so that a subject's shots are shared.
    first_wave = [item.partition("-")[0] for item in subjects.requested[:32]]
    assert sum(a != b for a, b in pairwise(first_wave)) == 2


def test_errors_in_place_of_wrong_answers(subjects):
    """Without the errors, all answers are right."""
    raises = ANSWER.replace(
        "    right =",
        "    if request.id[-1] in '135':\n        raise OSError('timed out')\n    right =",
    )
    subjects.model(respond=raises.format(right="True"))
    for accuracy, expected in ((0.6, "pass"), (0.85, "fail")):
        subjects.thresholds(GATE.format(accuracy=accuracy, errors=100))
        subjects.run("--llm-sequential")
        early = verdict(subjects)
        assert early["status"] == expected
        # Errors count as wrong for a pass and as right for a fail, which only all items decide.
        assert early["n"] < 300 if expected == "pass" else early["n"] == 300


def test_too_many_errors_end_the_run(subjects):
    subjects.model(respond="def respond(self, request):\n    raise OSError('unreachable')")
    subjects.thresholds(GATE.format(accuracy=0.5, errors=3))
    result = subjects.run("--llm-sequential")
    assert result.ret == 1
    assert len(set(subjects.requested)) == 32
    assert "incomplete: 32 errors (max_errors 3)" in verdict(subjects)["reason"]


def test_resuming_repeats_errors_before_it_decides(subjects):
    """An earlier session has errors in the second wave, of which the first wave knows nothing."""
    subjects.thresholds(GATE.format(accuracy=0.7, errors=0))
    healthy = ANSWER.format(right="request.id[-1] not in '19'")
    subjects.model(respond=healthy)
    subjects.run("--llm-sequential")
    requested = sorted(set(subjects.requested))
    assert len(requested) > 64
    second = order(subjects)[32:40]
    (subjects.path / "asked.txt").unlink()
    raises = f"    if request.id in {second!r}:\n        raise OSError('busy')\n    right ="
    subjects.model(respond=healthy.replace("    right =", raises))
    assert subjects.run("--llm-sequential").ret == 1
    assert "incomplete: 8 errors" in verdict(subjects)["reason"]
    subjects.model(respond=healthy)
    (subjects.path / "asked.txt").unlink()
    assert subjects.run("--llm-sequential", "--llm-resume").ret == 0
    assert sorted(subjects.requested) == sorted([*second, *order(subjects)[64 : len(requested)]])


def test_another_seed_is_reported(subjects):
    subjects.model(respond=ANSWER.format(right="request.id[-1] != '1'"))
    subjects.thresholds(GATE.format(accuracy=0.6, errors=0))
    subjects.run("--llm-sequential")
    first = order(subjects)
    result = subjects.run("--llm-sequential", "--llm-seed=1", "-v")
    assert order(subjects) != first
    result.stdout.fnmatch_lines(
        ["*1 earlier run of these gates in *(seed 0): the probability of a wrong verdict holds*"]
    )
    result = subjects.run("--llm-sequential", "--llm-seed=2", "-v")
    result.stdout.fnmatch_lines(["*2 earlier runs of these gates in *(seed 0, 1)*"])
    subjects.thresholds(GATE.format(accuracy=0.5, errors=0))
    result = subjects.run("--llm-sequential", "-v")
    result.stdout.no_fnmatch_line("*earlier run*")


def test_an_item_that_is_skipped_by_its_test(subjects):
    """It is not answered, so that the rest is no random part: nothing is decided early."""
    subjects.model(respond=ANSWER.format(right="True"))
    file = subjects.path / "test_bench.py"
    file.write_text(
        file.read_text().replace(
            "    assert answer.correct", "    if item.id == ITEM: pytest.skip('odd')\n    assert answer.correct"
        ).replace("(answer)", "(answer, item)")
    )  # fmt: skip
    file.write_text(f"ITEM = ''\n{file.read_text()}")
    subjects.thresholds(GATE.format(accuracy=0.6, errors=0))
    subjects.run("--llm-sequential")
    assert verdict(subjects)["status"] == "pass"
    first = order(subjects)[0]
    file.write_text(file.read_text().replace("ITEM = ''", f"ITEM = {first!r}"))
    subjects.run("--llm-sequential")
    assert verdict(subjects)["status"] == "undecided"
    assert subjects.metrics()["missing"] == 1


@pytest.fixture
def endpoint(subjects, monkeypatch):
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (subjects.path / "conftest.py").unlink()
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    return subjects


def reply(letter: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"The answer is {letter}."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


def requested(server) -> list[str]:
    texts = (re.search(r"(\w+) question (\d+)\?", json.dumps(body)) for body in server.bodies)
    return [f"{match[1]}-{int(match[2]):04d}" for match in texts if match is not None]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_latency_that_depends_on_the_answer(endpoint, workers):
    """Sixty-four requests are in flight, and wrong answers are late: the first to arrive are right.

    The decision waits for the whole wave, and no request of the next wave is sent before.
    """
    replies = {"zoo question": [reply("A")], "question": [reply("B")]}
    endpoint.thresholds(GATE.format(accuracy=0.75, errors=0))
    with serve(Script(latency=0.05, late="zoo question", replies=replies)) as server:
        result = endpoint.run(
            f"--llm-model=openai:stand-in?base_url={server.url}",
            "--llm-max-concurrency=64",
            "--llm-sequential",
            *workers,
        )
        received = requested(server)
    assert result.ret == 1
    early = verdict(endpoint)
    assert early["status"] == "fail"
    assert 0 < early["n"] < 300
    assert early["measured"] < 0.75
    expected = order(endpoint)
    assert len(received) == len(set(received)) == early["n"]
    for start in range(0, len(received), 32):
        assert set(received[start : start + 32]) == set(expected[start : start + 32])

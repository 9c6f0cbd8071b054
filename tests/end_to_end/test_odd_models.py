"""Models with odd responses, each of which costs at most its own item."""

from __future__ import annotations

import json

import pytest

from support.run_checks import check_consistent

SLOPPY = {
    "numpy numbers": "logprobs=[np.float32(x) for x in (-2, -1, -3, -4)], prompt_tokens=np.int64(3)",
    "an array": "logprobs=np.array([-2, -1, -3, -4])",
}


USELESS = {
    "bytes": "text=b'B'",
    "seconds": "logprobs=(-2, -1, -3, -4), seconds=float('nan')",
    "none": "logprobs=(None, None, None, None)",
    "three": "logprobs=(-2, -1, -3)",
    "surrogate": "error='\\ud83d'",
}


@pytest.mark.parametrize("given", [*SLOPPY, *USELESS])
def test_one_odd_response_costs_at_most_one_item(project, given):
    arguments = {**SLOPPY, **USELESS}[given]
    project.model(
        respond=f"""
        def respond(self, request):
            import numpy as np
            if request.id == "zoo-0001":
                return Response(request.id, {arguments})
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    project.run()
    expected = (9, 0) if given in SLOPPY else (8, 1)
    assert (project.metrics()["correct"], project.metrics()["errors"]) == expected
    check_consistent(project)


@pytest.mark.parametrize(
    ("answering", "errors"),
    [
        ("for r in requests: yield self.respond(r); yield self.respond(r)", 0),
        ("for r in requests: yield Response('x', text='B'); yield self.respond(r)", 0),
        ("for r in requests: yield {'text': 'B'}", 9),
        ("return iter(())", 9),
        ("raise ValueError('no')", 9),
        ("for r in requests: yield self.respond(r)\n        raise ValueError('no')", 0),
    ],
)
def test_models_that_answer_too_much_or_too_little(project, answering, errors):
    conftest = project.path / "conftest.py"
    head, _, rest = conftest.read_text().partition("    def answer(self, requests):")
    _, method, tail = rest.partition("    def respond(self")
    conftest.write_text(
        f"{head}    def answer(self, requests):\n        {answering}\n\n{method}{tail}"
    )
    project.run()
    assert project.metrics()["errors"] == errors
    check_consistent(project)


POISONED = "if {}.id == 'zoo-0001': raise MemoryError(len(requests))"


@pytest.mark.parametrize(
    "answering",
    [
        f"for r in requests:\n            {POISONED.format('r')}\n            yield self.respond(r)",
        f"for r in requests:\n            {POISONED.format('r')}\n        return map(self.respond, requests)",
        f"for r in requests:\n            {POISONED.format('r')}\n"
        "        return [self.respond(r) for r in requests]",
    ],
    ids=["one by one", "as a batch", "as a list"],
)
def test_an_exception_costs_only_the_item_that_causes_it(project, answering):
    conftest = project.path / "conftest.py"
    head, _, rest = conftest.read_text().partition("    def answer(self, requests):")
    _, method, tail = rest.partition("    def respond(self")
    conftest.write_text(
        f"{head}    def answer(self, requests):\n        {answering}\n\n{method}{tail}"
    )
    project.run()
    metrics = project.metrics()
    assert [metrics[name] for name in ("correct", "wrong", "errors")] == [5, 3, 1]
    records = map(json.loads, (project.run_folder / "records.jsonl").open())
    failed = {(each["item"], each["error"]) for each in records if each["outcome"] == "error"}
    assert failed == {("zoo-0001", "MemoryError: 1")}
    check_consistent(project)


def test_a_surrogate_in_an_exception(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_body(answer):
            raise RuntimeError("\\ud83d")
        """
    )
    result = project.run("-k", "body")
    assert result.ret == 1
    check_consistent(project)


def test_a_template_may_use_fields_of_its_items(project):
    bench = project.path / "test_bench.py"
    text = bench.read_text().replace(
        "question=lambda item: item.question",
        "question=lambda item: item.fields['passage'] + item.question",
    )
    bench.write_text(
        text.replace('"two", "three", "four")', '"two", "three", "four"), {"passage": "P "}')
    )
    assert project.run().ret == 0
    bench.write_text(text)
    project.run()
    assert project.metrics()["errors"] == 9

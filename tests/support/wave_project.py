"""A project with three hundred items for sequential runs, and what its run folder has."""

from __future__ import annotations

from typing import Any

SIZES = {"art": 60, "law": 100, "zoo": 140}

# Wrong answers by the last digit of an item: 80 % right, spread over all subjects.
RULE = """
def respond(self, request):
    wrong = request.id[-1] in "{digits}"
    scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
    return Response(request.id, logprobs=scores, seconds=0.01)
"""

GATES = """
[sequential]
alpha = 0.01
wave = 32
[benchmarks.bench]
accuracy = {accuracy}
max_errors = 0
"""


def gates(project) -> dict[str, dict[str, Any]]:
    return {gate["id"]: gate for gate in project.document("gates.json")["gates"]}


def order(project) -> list[str]:
    (course,) = project.document("order.json")["courses"]
    return [item for item, _ in course["items"]]

"""What checks mean does not change where they call the candidate in another process.

The programs here are the tests' own, so that they may run on the host.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox import open_sandbox

_PAIR = """
class Pair:
    size = 2
    def __init__(self, a, b): self.a, self.b = a, b
    def __len__(self): return 2
    def __iter__(self): return iter([self.a, self.b])
    def __getitem__(self, at): return [self.a, self.b][at]
    def __setitem__(self, at, value): setattr(self, "ab"[at], value)
    def __repr__(self): return f"Pair({self.a}, {self.b})"
    def swapped(self): return Pair(self.b, self.a)
class NarrowError(ValueError): pass
def first(pair): return pair.a
def same(pair): return pair
def narrow(x):
    raise NarrowError(f"{x} is wide")
"""

PASSING = {
    "own classes": (_PAIR, "assert first(Pair(5, 24)) == 5"),
    "attributes": (
        _PAIR,
        "p = Pair(1, 2)\np.a = Pair(3, 4)\nassert p.a.b == 4 and first(p).a == 3 and Pair.size == 2",
    ),
    "protocols of objects": (
        _PAIR,
        "p = Pair(1, 2)\np[0] = 7\n"
        "assert len(p) == 2 and list(p) == [7, 2] and p[0] == 7 and repr(p) == 'Pair(7, 2)'\n"
        "assert p.swapped()[0] == 2 and isinstance(p, Pair) and not isinstance(3, Pair)\n"
        "assert same(p) is p and same(p) == p and Pair(7, 2) != p and p and 2 in p",
    ),
    "exceptions": (
        _PAIR,
        "try:\n    narrow(3)\nexcept ValueError as error:\n    assert str(error) == '3 is wide'\n"
        "else:\n    assert False",
    ),
    "names of errors": (
        "d = {}\ndef f(): d['a']",
        "try:\n    f()\nexcept KeyError: pass\nelse: 1/0",
    ),
    "generators": (
        "def f(n): yield from range(n)",
        "assert list(f(3)) == [0, 1, 2]\nassert next(f(1)) == 0",
    ),
    "sorted in place": (
        "def f(a, b): a.sort(); b['x'][0] = 9; return None",
        "a, inner = [3, 1, 2], [1, 2]\nb = {'x': inner}\nf(a, b)\n"
        "assert a == [1, 2, 3] and b == {'x': [9, 2]} and inner == [9, 2]",
    ),
    "named arguments": ("def f(a, *, b=1): return a - b", "assert f(5, b=2) == 3 and f(a=5) == 4"),
    "functions of the checks": (
        "def f(g, xs): return [g(x) for x in xs]",
        "assert f(lambda x: x + 1, [1, 2]) == [2, 3] and f(abs, [-1]) == [1] and f(str, [1]) == ['1']",
    ),
    "a callback that calls back": (
        "def f(g, n): return g(n) if n else 0\ndef h(n): return n * 2",
        "assert f(lambda n: h(n) + 1, 4) == 9",
    ),
    "iterators of the checks": ("def f(xs): return sum(xs)", "assert f(x for x in range(4)) == 6"),
    "functions that are returned": ("def f(n): return lambda x: x + n", "assert f(2)(3) == 5"),
    "numpy": (
        "import numpy as np\ndef f(xs): return np.array(xs) * 2",
        "import numpy as np\nassert (f([1, 2]) == [2, 4]).all() and f([1]).dtype == int",
    ),
    "tests import": (
        "def f(): return 2.0000001",
        "import math\nassert math.isclose(f(), 2, rel_tol=1e-3)",
    ),
    "the candidate's import": (
        "import sys\ndef f(x): return sys.getsizeof(x)",
        "assert f((1, 2)) == sys.getsizeof((1, 2))",
    ),
    "a global of the candidate's": ("LIMIT = [1, (2, 3)]", "assert LIMIT == [1, (2, 3)]"),
    "dataclasses": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\ndef f(): return P()",
        "assert f().x == 1 and str(f()) == 'P(x=1)'",
    ),
    "a builtin's name": ("def sum(a, b): return a * b", "assert sum(2, 5) == 10"),
    "recursion near the limit": (
        "def f(n): return n and 1 + f(n - 1)",
        "assert f(900) == 900",
    ),
    "identity of constants": ("def f(): return True", "assert f() is True and f() is not None"),
    "output": ("print('x')\ndef f(): return print('y')", "assert f() is None"),
    "main is not run": (
        "if __name__ == '__main__': raise ValueError\ndef f(): return 1",
        "assert f() == 1",
    ),
}

FAILING = {
    "wrong": ("def f(x): return x + 1", "assert f(1) == 3", "AssertionError: assert f(1) == 3"),
    "wrong with a message": (
        "def f(): return 1",
        "assert f() == 2, 'not 2'",
        "AssertionError: not 2",
    ),
    "raises": ("def f(): return {}['a']", "f()", "KeyError: 'a'"),
    "raises its own": (_PAIR, "narrow(4)", "NarrowError: 4 is wide"),
    "missing": ("def g(): pass", "assert f() == 1", "NameError: name 'f' is not defined"),
    "raises where it is defined": (
        "import nothing_like_it",
        "pass",
        "ModuleNotFoundError: No module",
    ),
    "an exit that a check catches": (
        "import os\ndef f(): os._exit(0)",
        "try:\n    f()\nexcept Exception: pass\nexcept BaseException: pass",
        "exited before the checks finished",
    ),
    "arguments of a wrong number": (
        "def f(x): return 1",
        "f()",
        "TypeError: f() missing 1 required",
    ),
    "a line": ("def f(): raise ValueError('a\\nb' * 999)", "f()", "ValueError: a ba b"),
}


@pytest.fixture(scope="module")
def host() -> Iterator[Sandbox]:
    with open_sandbox("none", timeout_scale=1.0, workers=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def executions(host: Sandbox) -> dict[str, Execution]:
    programs = [Program(f"passing {name}", *texts) for name, texts in PASSING.items()]
    programs += [Program(f"failing {name}", *texts[:2]) for name, texts in FAILING.items()]
    programs = [
        Program(program.id, program.source, program.tests, "", _entry_point(program), 20.0)
        for program in programs
    ]
    return {execution.id: execution for execution in host.run(programs)}


def _entry_point(program: Program) -> str | None:
    names = [name for name in ("sum", "f") if f"def {name}(" in program.source]
    return names[0] if names else None


@pytest.mark.parametrize("name", PASSING)
def test_passing(executions: dict[str, Execution], name: str) -> None:
    execution = executions[f"passing {name}"]
    assert (execution.status, execution.detail) == ("passed", "")


@pytest.mark.parametrize("name", FAILING)
def test_failing(executions: dict[str, Execution], name: str) -> None:
    execution = executions[f"failing {name}"]
    assert execution.status == "failed"
    assert execution.detail.startswith(FAILING[name][2])
    assert len(execution.detail) <= 300
    assert "\n" not in execution.detail


def test_a_helper_in_the_context_is_the_trusted_one(host: Sandbox) -> None:
    context = "def helper(x):\n    return x + 1\ndef f(x):\n    '''The stub of a prompt.'''\n"
    right = Program(
        "right",
        "def helper(x): return 0\ndef f(x): return x",
        "assert f(helper(1)) == 2",
        context,
        "f",
    )
    (execution,) = host.run([right])
    assert execution.status == "passed"


def test_what_cannot_be_sent_is_no_fault_of_the_candidate(host: Sandbox) -> None:
    program = Program("a", "def f(x): return 1", "class Own: pass\nassert f(Own()) == 1", "", "f")
    (execution,) = host.run([program])
    assert execution.status == "error"
    assert execution.detail == "a check gives the candidate a Own"


def test_each_program_starts_anew(host: Sandbox) -> None:
    programs = [
        Program(
            "leaves", "import math, builtins\nmath.pi = builtins.left = 3\ndef f(): return 1", "f()"
        ),
        Program(
            "finds",
            "import math, builtins\ndef f(): return math.pi, hasattr(builtins, 'left')",
            "import math\nassert f() == (math.pi, False)",
        ),
    ]
    assert [execution.status for execution in host.run(programs)] == ["passed", "passed"]

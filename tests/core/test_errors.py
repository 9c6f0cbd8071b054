"""Every exception of the package is in the one tree, and has one result."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import errors
from support.exception_tree import defined
from support.exception_tree import drawn
from support.exception_tree import package_files

DEFINED = defined(package_files())
DRAWN = drawn(errors.__doc__ or "")
RESULTS = {"exit code 4", "exit code 1", "item error", "handled"}
BASE = "LlmevalError"


def test_every_exception_is_drawn_where_and_as_it_is_defined():
    assert {name: (bases, path) for name, (bases, path) in DEFINED.items()} == {
        name: ([entry.parent], entry.module) for name, entry in DRAWN.items()
    }


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_every_exception_ends_in_error(name):
    assert name.endswith("Error")
    assert not name.startswith("_")


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_every_exception_has_exactly_one_result(name):
    if name == BASE:
        assert DRAWN[name].result == "base class, never raised"
    else:
        assert DRAWN[name].result in RESULTS


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_every_exception_outside_the_guest_has_the_one_base(name):
    bases, path = DEFINED[name]
    while name != BASE and not path.startswith("sandbox/guest/"):
        (name,) = bases
        bases, path = DEFINED[name]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class A(Exception): pass", ["A"]),
        ("class A(pytest.fail.Exception): pass", ["A"]),
        ("class A(docker.errors.APIError): pass", ["A"]),
        ("class B(A): pass\nclass A(LookupError): pass", ["A", "B"]),
        ("class A(errors.ConfigError): pass", ["A"]),
        ("def f():\n    class A(DeprecationWarning): pass", ["A"]),
        ("class A(Mapping, OSError): pass", ["A"]),
        ("class A(Mapping): pass", []),
    ],
)
def test_exceptions_are_found(text, names):
    assert sorted(defined([("one.py", text)])) == names


def test_a_new_exception_without_an_entry_is_found():
    new = ("models/new.py", "class LateError(ModelError): pass")
    assert set(defined([*package_files(), new])) - set(DRAWN) == {"LateError"}


def test_two_exceptions_of_the_same_name_are_refused():
    with pytest.raises(ValueError, match="two exceptions RunError"):
        defined([*package_files(), ("other.py", "class RunError(Exception): pass")])

"""The project's own fixture that a test uses is the one that pytest would give it."""

from __future__ import annotations

import inspect

import pytest

from pytest_llmeval.plugin.project_fixtures import project_fixture

OWN = "import pytest\n\n@pytest.fixture{}\ndef model():\n    return 1\n"
FILES = {
    "conftest.py": "",
    "test_plain.py": "def test_uses(model): pass\ndef test_does_not(): pass\n",
    "test_module.py": OWN.format("") + "def test_uses(model): pass\ndef test_does_not(): pass\n",
    "test_class.py": """
import pytest

class TestWith:
    @pytest.fixture
    def model(self): return 1
    def test_uses(self, model): pass
    class TestInner:
        def test_uses(self, model): pass

class TestWithout:
    def test_uses(self, model): pass

@pytest.mark.usefixtures("model")
def test_marked(): pass

@pytest.fixture
def through(model): return model

def test_through(through): pass
""",
    "test_renamed.py": """
import pytest

@pytest.fixture(name="model")
def other(): return 1
def test_uses(model): pass
""",
    "test_wrapping.py": """
import pytest

@pytest.fixture
def model(model): return model
@pytest.fixture
def item(): return 1
def test_uses(model, item): pass
""",
    "test_parameters.py": """
import pytest

@pytest.fixture(params=[1, 2])
def model(request): return request.param
def test_uses(model): pass
""",
    "below/conftest.py": OWN.format("(scope='session')"),
    "below/test_below.py": "def test_uses(model): pass\n",
    "below/further/test_further.py": "def test_uses(model): pass\n",
    "test_text.txt": ">>> 1\n1\n",
}


def collect(pytester: pytest.Pytester, files: dict[str, str]) -> list[pytest.Item]:
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    items, _ = pytester.inline_genitems("-p", "no:hypothesispytest", "--import-mode=importlib")
    return items


def resolved_by_pytest(node: pytest.Item, name: str) -> object:
    """The function behind the fixture that pytest itself has resolved for a test."""
    info = getattr(node, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get(name) if info is not None else None
    function = inspect.unwrap(definitions[-1].func) if definitions else None
    return (
        None if function is None or function.__module__.startswith("pytest_llmeval") else function
    )


@pytest.mark.parametrize("root", ["", OWN.format("")], ids=["plugin's", "root conftest's"])
def test_the_fixture_is_the_one_that_pytest_resolves(pytester: pytest.Pytester, root: str) -> None:
    items = collect(pytester, {**FILES, "conftest.py": root})
    expected = {
        (node.nodeid, name): resolved_by_pytest(node, name)
        for node in items
        for name in ("model", "item", "answer")
    }
    resolved = dict.fromkeys(expected)
    for node in items:
        for name in ("model", "item", "answer"):
            resolved[node.nodeid, name] = project_fixture(node, name)
    assert resolved == expected
    assert len(items) == 16
    assert sum(function is not None for function in resolved.values()) == (14 if root else 10)


def test_the_fixture_is_looked_up_once_a_module(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import pytest\n\n@pytest.mark.parametrize('n', range(200))\ndef test_it(n, model): pass\n"
    )
    items = collect(pytester, {"conftest.py": OWN.format(""), "test_many.py": text})
    manager = items[0].config.pluginmanager.get_plugin("funcmanage")
    look_up, lookups = manager.getfixturedefs, []

    def counted(name: str, node: pytest.Collector) -> object:
        lookups.append(name)
        return look_up(name, node)

    monkeypatch.setattr(manager, "getfixturedefs", counted)
    assert len({project_fixture(node, "model") for node in items}) == 1
    assert len(items) == 200
    assert lookups == ["model"]


def test_a_value_parametrized_directly_is_no_fixture(pytester: pytest.Pytester) -> None:
    text = "import pytest\n\n@pytest.mark.parametrize('model', [1])\ndef test_it(model): pass\n"
    (node,) = collect(pytester, {"test_values.py": text})
    assert project_fixture(node, "model") is None

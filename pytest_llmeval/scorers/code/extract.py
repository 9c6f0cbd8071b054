"""``extract_code``: the program in a reply, whatever stands around it.

What parses and defines the function that is asked for decides, not how the reply looks. Two
forms are known: the whole function, and the body alone, which continues the prompt.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_llmeval.scorers.code.layout import TAB
from pytest_llmeval.scorers.code.layout import Piece
from pytest_llmeval.scorers.code.layout import begun_inside
from pytest_llmeval.scorers.code.layout import between_fences
from pytest_llmeval.scorers.code.layout import dedented
from pytest_llmeval.scorers.code.layout import first_line
from pytest_llmeval.scorers.code.layout import indentations
from pytest_llmeval.scorers.code.layout import is_indented
from pytest_llmeval.scorers.code.layout import parts_of_prose
from pytest_llmeval.scorers.code.layout import pieces
from pytest_llmeval.scorers.code.layout import visible
from pytest_llmeval.scorers.code.syntax import Parser
from pytest_llmeval.scorers.code.syntax import acts
from pytest_llmeval.scorers.code.syntax import assigned
from pytest_llmeval.scorers.code.syntax import bound
from pytest_llmeval.scorers.code.syntax import function
from pytest_llmeval.scorers.code.syntax import futures_first
from pytest_llmeval.scorers.code.syntax import gives_back
from pytest_llmeval.scorers.code.syntax import has_strays
from pytest_llmeval.scorers.code.syntax import is_definition
from pytest_llmeval.scorers.code.syntax import is_demonstration
from pytest_llmeval.scorers.code.syntax import lines_of
from pytest_llmeval.scorers.code.syntax import looks_like_code
from pytest_llmeval.scorers.code.syntax import method_owner
from pytest_llmeval.scorers.code.syntax import missing
from pytest_llmeval.scorers.code.syntax import without

_FENCES = ("```", "~~~")


def extract_code(text: str, *, prompt: str = "", entry_point: str | None = None) -> str:
    """The complete program in a reply, up to, not including, the tests; "" where there is none.

    ``prompt`` is the code that the model was to go on with, ``entry_point`` the function that the
    tests call (by default the last one of the prompt). Where several blocks define it, the last
    one that parses is taken; imports, constants and helper functions that it uses come from the
    prompt and from the other blocks. What only tries the function (``print``, ``assert``,
    ``if __name__ …``) is left out. Code that does not parse is returned as it stands, so that it
    fails for what it is.

    A pure function of its arguments that never raises; time and memory are bounded.
    """
    shown = visible(text)
    if not shown.strip():
        return ""
    return _Reading(shown, prompt, entry_point).program()


@dataclass(frozen=True, slots=True)
class _Code:
    source: str
    tree: ast.Module


class _Reading:
    """One reply under examination; all parsing goes through one parser with one budget."""

    def __init__(self, text: str, prompt: str, entry_point: str | None) -> None:
        self._parser = Parser()
        self._text = text
        self._prompt = prompt
        self._prompt_tree = self._parse_prompt()
        self._entry = entry_point or self._last_function()
        self._pieces = self._cut()

    def program(self) -> str:
        return (
            self._continuation()
            or self._whole()
            or self._around_inner_fences()
            or self._body()
            or self._broken()
        )

    def _parse_prompt(self) -> ast.Module:
        for end in ("", "\n    pass\n"):
            tree = self._parser.tree(self._prompt + end)
            if tree is not None:
                return tree
        return ast.Module(body=[], type_ignores=[])

    def _last_function(self) -> str | None:
        names = [
            one.name
            for one in self._prompt_tree.body
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return names[-1] if names else None

    def _cut(self) -> list[Piece]:
        head = begun_inside(self._text)
        if head is not None and (self._defining(head) or next(self._bodies(head), None)):
            return pieces(f"```python\n{self._text}")
        return pieces(self._text)

    # The whole function.

    def _whole(self) -> str | None:
        fenced = [piece.text for piece in self._pieces if piece.fenced]
        prose = [piece.text for piece in self._pieces if not piece.fenced]
        for texts in (fenced, prose):
            for text in reversed(texts):
                code = self._defining(text)
                if code is not None:
                    return self._assembled(code, [one for one in (*prose, *fenced) if one != text])
        return None

    def _defining(self, text: str) -> _Code | None:
        """The code of a piece that defines the entry point: all of it, or the run that does."""
        for source in dict.fromkeys((text, dedented(text))):
            tree = self._parser.tree(source)
            if tree is not None and self._is_answer(tree):
                return _Code(source, tree)
        runs = [_Code(*run) for run in self._parser.segments(dedented(text))]
        answers = [run for run in runs if self._is_answer(run.tree)]
        if not answers:
            return None
        return self._with_lent(answers[-1], [run for run in runs if run is not answers[-1]])

    def _is_answer(self, tree: ast.Module) -> bool:
        return self._is_complete(tree) and not has_strays(tree)

    def _is_complete(self, tree: ast.Module) -> bool:
        if self._entry is None:
            return any(is_definition(one) for one in tree.body) or acts(tree.body)
        found = function(tree, self._entry)
        if found is not None:
            return acts(found.body)
        return assigned(tree, self._entry) or method_owner(tree, self._entry) is not None

    def _assembled(self, code: _Code, others: Iterable[str]) -> str:
        """The answer with what it needs before it, and without its demonstrations."""
        if missing(code.tree.body):
            lenders = [_Code(*run) for other in others for run in self._parser.segments(other)]
            code = self._with_lent(code, lenders)
        source = self._trimmed(code)
        owner = self._owner(code.tree)
        if owner is not None:
            source = f"{source.rstrip()}\n\n\n{self._entry} = {owner}().{self._entry}\n"
        source = self._preamble(code.tree) + source
        tree = self._parser.tree(source) if "__future__" in source else None
        return source if tree is None else futures_first(source, tree)

    def _owner(self, tree: ast.Module) -> str | None:
        """The class that the entry point is a method of, where it is not a function."""
        entry = self._entry
        if entry is None or function(tree, entry) is not None or assigned(tree, entry):
            return None
        return method_owner(tree, entry)

    def _trimmed(self, code: _Code, begin: int = 0) -> str:
        """Without the demonstrations from line ``begin`` on."""
        entry = self._entry
        if entry is None:
            return code.source
        docstring = ast.get_docstring(code.tree, clean=False) is not None
        kept = code.tree.body[0] if docstring else None
        return without(
            code.source,
            code.tree,
            lambda one: one.lineno > begin and one is not kept and is_demonstration(one, entry),
        )

    def _preamble(self, tree: ast.Module) -> str:
        """What the prompt defines beside the entry point and the answer does not define again."""
        own = bound(tree.body)
        kept = [
            one
            for one in self._prompt_tree.body
            if is_definition(one)
            and self._entry not in bound([one])
            and not bound([one]) <= own - {"*"}
        ]
        return lines_of(self._prompt, kept) + "\n\n" if kept else ""

    def _with_lent(self, code: _Code, lenders: Iterable[_Code]) -> _Code:
        """The code behind the definitions of others that it uses and the prompt does not have."""
        available: list[tuple[ast.stmt, _Code]] = []
        defining: dict[str, list[int]] = {}
        for lender in lenders:
            for one in filter(is_definition, lender.tree.body):
                for name in bound([one]):
                    defining.setdefault(name, []).append(len(available))
                available.append((one, lender))
        waiting = list(missing(code.tree.body) - bound(self._prompt_tree.body))
        lent: set[int] = set()
        while waiting:
            for number in defining.pop(waiting.pop(), ()):
                if number not in lent:
                    lent.add(number)
                    waiting.extend(missing([available[number][0]]))
        if not lent:
            return code
        # In their order: of two definitions of a name the later one counts, as where they stood.
        parts = (lines_of(available[n][1].source, [available[n][0]]) for n in sorted(lent))
        source = "".join(parts) + "\n" + code.source
        tree = self._parser.tree(source)
        return code if tree is None else _Code(source, tree)

    # The body alone.

    def _continuation(self) -> str | None:
        """A text that begins with an indented line goes on with the prompt where it can."""
        first = first_line(self._text)[1]
        if not self._prompt or not is_indented(first) or first.lstrip().startswith(_FENCES):
            return None
        text = self._pieces[0].text
        return next(self._bodies(text), None) or self._beginning_of_body(text)

    def _body(self) -> str | None:
        fenced = [one.text for one in self._pieces if one.fenced and one.maybe_python]
        prose = [one.text for one in self._pieces if not one.fenced]
        # In prose the body may begin at the first line that is indented.
        texts = [
            *reversed(fenced),
            *(part for one in reversed(prose) for part in parts_of_prose(one)),
        ]
        for text in texts:
            program = next(self._bodies(text), None)
            if program is not None:
                return program
        for text in texts:
            for indented in indentations(text, self._margin()):
                program = self._beginning_of_body(indented)
                if program is not None:
                    return program
        return None

    def _bodies(self, text: str) -> Iterator[str]:
        """Programs of prompt and text, with the indentation that was meant."""
        if self._prompt and self._entry is not None:
            for indented in indentations(text, self._margin()):
                program = self._checked_body(indented)
                if program is not None:
                    yield program

    def _margin(self) -> str:
        """How the body of the prompt's function is indented."""
        entry = function(self._prompt_tree, self._entry) if self._entry else None
        lines = self._prompt.split("\n")
        if entry is None or entry.body[0].lineno > len(lines):
            return " " * TAB
        margin = lines[entry.body[0].lineno - 1][: entry.body[0].col_offset]
        return margin if margin.isspace() else " " * TAB

    def _checked_body(self, text: str) -> str | None:
        source = self._prompt + text
        tree = self._parser.tree(source)
        return None if tree is None else self._body_program(_Code(source, tree))

    def _beginning_of_body(self, text: str) -> str | None:
        """Prompt and as much of the text as parses, where that is a body."""
        if not self._prompt or self._entry is None:
            return None
        found = self._parser.prefix(self._prompt + text)
        return None if found is None else self._body_program(_Code(*found))

    def _body_program(self, code: _Code) -> str | None:
        if self._entry is None:
            return None
        begin = self._prompt.count("\n")
        found = [
            one
            for one in code.tree.body
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            and one.name == self._entry
            and one.lineno <= begin + 1
        ]
        if not found:
            return None
        added = [one for one in found[-1].body if (one.end_lineno or 0) > begin]
        # A call or an assignment alone is a demonstration, or a body that was cut off.
        if not gives_back(added) or has_strays(code.tree):
            return None
        return self._trimmed(code, begin)

    # What is left.

    def _around_inner_fences(self) -> str | None:
        text = between_fences(self._text)
        code = None if text is None else self._defining(text)
        return None if code is None else self._assembled(code, [])

    def _broken(self) -> str:
        """Code that does not parse, or that defines something else, as it stands."""
        fenced = [one.text for one in self._pieces if one.fenced and one.maybe_python]
        if fenced:
            return fenced[-1]
        if self._prompt and is_indented(self._text):
            return self._prompt + self._text
        return self._text if looks_like_code(self._text) else ""
